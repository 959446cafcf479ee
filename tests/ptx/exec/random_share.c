/* Random instructions on what lanes share: bits of numbers that vary, words of 64-bit numbers, and
 * distances between lanes. See random_kernel.h; random_ways.c joins such values.
 *
 *      %v   numbers that mostly vary              %k0  a guard that holds for no lane
 *      %e   numbers that are mostly even: the     %k1  one that holds for all
 *           same in all lanes                     %k2  one that holds for some
 *      %b   numbers of 64 bits                    %k3  one that holds for all or none, as %n is
 *      %i   the lane's number                     %o   0, which the compiler cannot know
 */
#include <stdio.h>

#include "ptx/exec/random_code.h"

#define PICK(k, list) ((list)[random_pick(k, sizeof(list) / sizeof((list)[0]))])

static const char registers[] =
    ".reg .pred %k<4>, %kt; .reg .b32 %v<8>, %e<4>, %w<4>, %i, %o, %cn, %cm, %cells;\n"
    ".reg .b64 %b<4>, %at<2>, %oo; .reg .f32 %sum<64>, %fa<8>, %fb<8>;\n"
    ".shared .align 16 .b8 cells[4096];\n"
    "mov.u32 %i, %laneid; shr.u32 %o, %n, 20; cvt.u64.u32 %oo, %o; mov.u32 %cells, cells;\n"
    "setp.gt.u32 %k0, %n, 1000000; setp.lt.u32 %k1, %n, 1000000; setp.lt.u32 %k3, %n, 50;\n"
    "mul.wide.u32 %a0, %t, 8; add.u64 %a1, %in, %a0; and.b32 %w0, %r6, 2;\n"
    "setp.ne.u32 %k2, %w0, 0; mov.u64 %at0, %a1; mov.u64 %at1, %in;\n";

/* ---- operands -------------------------------------------------------------------------------- */

struct name {
    char text[24];
};

static struct name
number(struct random_kernel *k, unsigned bits)
{
    static const uint8_t places[] = {0, 1, 2, 3, 4, 5, 5, 6, 7, 8, 8, 8, 9, 12, 16, 24, 31};
    const unsigned low = random_pick(k, 2) ? k->mark : PICK(k, places);
    const unsigned at = low + (bits == 64 && random_pick(k, 2) ? 32 : 0);
    const uint64_t one = UINT64_C(1) << at;
    uint64_t v;
    struct name n;

    switch (random_pick(k, 5)) {
    case 0:
        v = one;
        break;
    case 1:
    case 2:
        v = one - 1;
        break;
    case 3:
        v = -one;
        break;
    default:
        v = UINT64_C(255) << (at & ~7u);
    }
    if (bits == 32)
        v &= UINT32_MAX;
    snprintf(n.text, sizeof(n.text), "0x%llx", (unsigned long long)v);
    return n;
}

static struct name
any_of(struct random_kernel *k, char kind)
{
    struct name n;

    snprintf(n.text, sizeof(n.text), "%%%c%u", kind, random_pick(k, kind == 'v' ? 8 : 4));
    return n;
}

/* A register of 32 bits of any class. */
static struct name
source(struct random_kernel *k)
{
    static const char *const places[] = {"%i", "%i", "%x", "%t", "%l", "%y", "%n", "%o", "%c0"};
    const unsigned what = random_pick(k, 10);
    struct name n;

    if (what < 5)
        return any_of(k, 'v');
    if (what < 6)
        return any_of(k, 'e');
    if (what < 8)
        snprintf(n.text, sizeof(n.text), "%%r%u", random_pick(k, 8));
    else
        snprintf(n.text, sizeof(n.text), "%s", PICK(k, places));
    return n;
}

static struct name
source_or_number(struct random_kernel *k)
{
    return random_pick(k, 2) ? number(k, 32) : source(k);
}

static const char *
even_guard(struct random_kernel *k)
{
    static const char *const guards[] = {"",      "",       "",      "",       "",
                                         "@%k0 ", "@!%k0 ", "@%k0 ", "@!%k1 ", "@%k1 ",
                                         "@%k2 ", "@!%k2 ", "@%k3 ", "@!%k3 "};

    return PICK(k, guards);
}

const char *
random_even_condition(struct random_kernel *k, bool is_even)
{
    static const char *const tests[] = {"eq", "ne", "lt", "ge", "gt"};
    static const char *const known[] = {"%k2", "!%k2", "%k0", "!%k0", "%k1", "%k3", "!%k3"};

    switch (is_even ? random_pick(k, 3) * 4 : random_pick(k, 8)) {
    case 0:
        random_line(k, "setp.%s.u32 %%kt, %%n, %u;", PICK(k, tests), random_pick(k, 80));
        return "%kt";
    case 1:
        random_line(k, "setp.%s.u32 %%kt, %s, %u;", PICK(k, tests), source(k).text,
                    random_pick(k, 40));
        return "%kt";
    case 2:
        random_line(k, "and.b32 %%w0, %s, %s; setp.ne.u32 %%kt, %%w0, 0;", source(k).text,
                    number(k, 32).text);
        return "%kt";
    default:
        return known[is_even ? 2 + random_pick(k, 5) : random_pick(k, 7)];
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

void
random_value(struct random_kernel *k, const char *to, unsigned family)
{
    static const char *const rows[] = {"%i", "%i", "%x", "%t", "%l"};
    static const char *const evens[] = {"%n", "%o", "%e0", "%e1", "%s0", "%n"};
    const char *row = PICK(k, rows), *even = PICK(k, evens);
    const unsigned r = random_pick(k, 8);
    const unsigned far = 1u << (random_pick(k, 3) ? k->mark : random_pick(k, 8));

    switch (family) {
    case RANDOM_ROW:
        if (random_pick(k, 3) == 0)
            random_line(k, "mov.u32 %s, %s;", to, row);
        else if (random_pick(k, 3) == 0)
            random_line(k, "and.b32 %s, %s, %u;", to, row, far - 1);
        else
            random_line(k, "add.u32 %s, %s, %s;", to, row, even);
        break;
    case RANDOM_STEPS:
        random_line(k, "mad.lo.u32 %s, %s, %u, %s;", to, row, 1u << random_pick(k, 4), even);
        break;
    case RANDOM_EVEN:
        if (random_pick(k, 2))
            random_line(k, "mov.u32 %s, %u;", to, random_pick(k, 2) ? 0 : far);
        else
            random_line(k, "add.u32 %s, %s, %u;", to, even, random_pick(k, 2) ? 0 : far);
        break;
    case RANDOM_BITS:
        random_line(k, "%s.b32 %s, %%r%u, %s;", random_pick(k, 3) ? "and" : "or", to, r,
                    number(k, 32).text);
        if (random_pick(k, 2))
            random_line(k, "or.b32 %s, %s, %u;", to, to, far);
        break;
    default:
        if (random_pick(k, 2))
            random_line(k, "xor.b32 %s, %s, %s;", to, row, number(k, 32).text);
        else
            random_line(k, "shr.u32 %%w0, %s, %u; mad.lo.u32 %s, %%w0, %u, %s;", row,
                        random_pick(k, 5), to, far, even);
    }
}

/* ---- bits ------------------------------------------------------------------------------------ */

static void
make_bits(struct random_kernel *k)
{
    static const char *const ops[] = {"and", "and", "and", "or", "xor"};
    static const char *const shifts[] = {"shl.b32", "shr.u32", "shr.s32"};
    static const char *const tables[] = {"0xea", "0xca", "0xb8", "0x80", "0x96", "0xe8", "0x1b"};
    const char *guard = even_guard(k);
    const struct name to = any_of(k, 'v'), from = source(k);

    switch (random_pick(k, 12)) {
    case 0:
        random_line(k, "%slop3.b32 %s, %s, %s, %s, %s;", guard, to.text, from.text,
                    source_or_number(k).text, source_or_number(k).text, PICK(k, tables));
        break;
    case 1:
        random_line(k, "%sselp.b32 %s, %s, %s, %%k%u;", guard, to.text, source_or_number(k).text,
                    source_or_number(k).text, random_pick(k, 4));
        break;
    case 2:
        random_line(k, "%s%s %s, %s, %u;", guard, PICK(k, shifts), to.text, from.text,
                    random_pick(k, 32));
        break;
    case 3:
        random_line(k, "%sbfe.u32 %s, %s, %u, %u;", guard, to.text, from.text, random_pick(k, 16),
                    random_pick(k, 17));
        break;
    case 4:
        random_line(k, "%sbfi.b32 %s, %s, %s, %u, %u;", guard, to.text, from.text,
                    source_or_number(k).text, random_pick(k, 32), random_pick(k, 17));
        break;
    case 5:
        random_line(k, "%sprmt.b32 %s, %s, %s, 0x%x;", guard, to.text, from.text,
                    source_or_number(k).text, random_pick(k, 65536));
        break;
    case 6:
        random_line(k, "%s%s.b32 %s, %s;", guard, random_pick(k, 2) ? "not" : "mov", to.text,
                    from.text);
        break;
    case 7:
        random_line(k, "%s%s.b32 %s, %s, %s;", guard, PICK(k, ops), to.text, from.text,
                    source(k).text);
        break;
    default:
        random_line(k, "%s%s.b32 %s, %s, %s;", guard, PICK(k, ops), to.text, from.text,
                    number(k, 32).text);
    }
}

/* Numbers of 64 bits, which are joined, split, widened and cut. */
static void
make_words(struct random_kernel *k)
{
    static const char *const ops[] = {"and", "and", "or", "xor"};
    const char *guard = even_guard(k);
    const struct name b = any_of(k, 'b'), from = any_of(k, 'b');

    switch (random_pick(k, 11)) {
    case 0:
        random_line(k, "%smov.b64 %s, {%s, %s};", guard, b.text, source(k).text, source(k).text);
        break;
    case 1:
    case 2:
        random_line(k, "%smov.b64 {%%v%u, %%v%u}, %s;", guard, random_pick(k, 4),
                    4 + random_pick(k, 4), from.text);
        break;
    case 3:
        random_line(k, "%scvt.%s %s, %s;", guard, random_pick(k, 2) ? "u64.u32" : "s64.s32", b.text,
                    source(k).text);
        break;
    case 4:
        random_line(k, "%scvt.u32.u64 %s, %s;", guard, any_of(k, 'v').text, from.text);
        break;
    case 5:
        random_line(k, "%scvt.u16.u32 %%h0, %s; %scvt.%s %s, %%h0;", guard, source(k).text, guard,
                    random_pick(k, 2) ? "u32.u16" : "s32.s16", any_of(k, 'v').text);
        break;
    case 6:
        random_line(k, "%s%s.b64 %s, %s, %s;", guard, PICK(k, ops), b.text, from.text,
                    any_of(k, 'b').text);
        break;
    case 7:
        random_line(k, "%s%s %s, %s, %u;", guard, random_pick(k, 2) ? "shl.b64" : "shr.u64", b.text,
                    from.text, random_pick(k, 64));
        break;
    default:
        random_line(k, "%s%s.b64 %s, %s, %s;", guard, PICK(k, ops), b.text, from.text,
                    number(k, 64).text);
    }
}

/* A mask of a number that varies, in a register whose numbers are even; as if it were one. */
static void
make_even(struct random_kernel *k)
{
    const char *guard = even_guard(k);
    const struct name e = any_of(k, 'e'), from = random_pick(k, 3) ? any_of(k, 'v') : source(k);

    if (random_pick(k, 2))
        random_value(k, e.text, RANDOM_EVEN);
    if (random_pick(k, 6) == 0)
        random_line(k, "%sshr.u32 %s, %s, %u;", guard, e.text, from.text, random_pick(k, 10));
    else
        random_line(k, "%sand.b32 %s, %s, %s;", guard, e.text, from.text, number(k, 32).text);
    if (random_pick(k, 4) == 0) {
        random_line(k, "and.b32 %%w0, %s, 1020; cvt.u64.u32 %%a0, %%w0;", e.text);
        random_line(k, "add.u64 %%a1, %%in, %%a0; ld.global.u32 %s, [%%a1];", any_of(k, 'v').text);
    }
}

/* A new number that varies loses some of its bits, and what is left of them is masked. */
static void
make_masked(struct random_kernel *k)
{
    const unsigned to = random_pick(k, 4), far = random_pick(k, 16) * 8;
    const bool is_upper = random_pick(k, 2);
    const struct name e = any_of(k, 'e');

    random_line(k, "mul.wide.u32 %%a0, %%t, 8; add.u64 %%a1, %%in, %%a0;");
    if (random_pick(k, 2)) {
        random_line(k, "ld.global.u64 %%b0, [%%a1+%u]; %sand.b64 %%b0, %%b0, %s;", far,
                    random_pick(k, 4) ? "" : even_guard(k), number(k, 64).text);
        random_line(k, "mov.b64 {%%v%u, %%v%u}, %%b0;", to, to + 4);
    } else {
        random_line(k, "ld.global.v2.u32 {%%v%u, %%v%u}, [%%a1+%u];", to, to + 4, far);
        random_line(k, "and.b32 %%v%u, %%v%u, %s;", is_upper ? to + 4 : to, is_upper ? to + 4 : to,
                    number(k, 32).text);
    }
    if (random_pick(k, 2))
        random_value(k, e.text, RANDOM_EVEN);
    random_line(k, "%sand.b32 %s, %%v%u, %s;", even_guard(k), e.text, is_upper ? to + 4 : to,
                number(k, 32).text);
}

void
random_shared(struct random_kernel *k)
{
    const unsigned what = random_pick(k, 10);

    if (random_pick(k, 8) == 0)
        k->mark = random_pick(k, 10);
    if (what < 3)
        make_bits(k);
    else if (what < 5)
        make_words(k);
    else if (what < 7)
        make_even(k);
    else if (what < 8)
        make_masked(k);
    else if (what < 9)
        random_value(k, any_of(k, 'v').text, random_pick(k, RANDOM_FAMILIES));
    else
        random_line(k, "%smov.u32 %s, %s;", even_guard(k), any_of(k, 'v').text, source(k).text);
}

/* ---- distances ------------------------------------------------------------------------------- */

/* %w0: a number whose distances between lanes may be known. */
void
random_distance(struct random_kernel *k)
{
    static const char *const rows[] = {"%i", "%x", "%l", "%t", "%x"};
    const char *row = PICK(k, rows);
    const unsigned by = random_pick(k, 6), side = 1u << random_pick(k, 5);

    switch (random_pick(k, 6)) {
    case 0:
        random_line(k, "xor.b32 %%w0, %s, %u;", row, random_pick(k, 64));
        break;
    case 1:
        random_line(k, "and.b32 %%w0, %s, %u;", row, random_pick(k, 2) ? side - 1 : ~side);
        break;
    case 2:
        random_line(k, "shr.u32 %%w1, %s, %u; mul.lo.u32 %%w0, %%w1, %u;", row, by,
                    random_pick(k, 40));
        break;
    case 3: /* a tile */
        random_line(k, "and.b32 %%w1, %s, %u; shr.u32 %%w2, %s, %u;", row, (1u << by) - 1, row, by);
        random_line(k, "mad.lo.u32 %%w0, %%w2, %u, %%w1;", side);
        break;
    case 4: /* a swizzled row */
        random_line(k, "shr.u32 %%w1, %s, %u; and.b32 %%w1, %%w1, 7; xor.b32 %%w0, %s, %%w1;", row,
                    by, row);
        break;
    default:
        random_line(k, "mad.lo.u32 %%w0, %%y, %u, %%x;", random_pick(k, 40));
    }
    if (random_pick(k, 3) == 0)
        random_line(k, "add.u32 %%w0, %%w0, %s;", random_pick(k, 2) ? "%n" : "%s0");
}

/* %w0: where the thread's first or second cell is. Neighbours' cells are apart, or in another
 * order. */
void
random_cell(struct random_kernel *k, unsigned which)
{
    if (which)
        random_line(k, "and.b32 %%w0, %%l, 1; shl.b32 %%w0, %%w0, 6; shr.u32 %%w1, %%l, 1; "
                       "or.b32 %%w0, %%w0, %%w1; mad.lo.u32 %%w0, %%w0, 16, %%cells; "
                       "add.u32 %%w0, %%w0, 2048;");
    else
        random_line(k, "xor.b32 %%w0, %%l, %u; mad.lo.u32 %%w0, %%w0, 16, %%cells;", k->turn);
}

void
random_registers_shared(struct random_kernel *k)
{
    random_line(k, "%s", registers);
    for (unsigned i = 0; i < 8; i++)
        random_line(k, "ld.global.u32 %%v%u, [%%a1+%u];", i, i * 4);
    for (unsigned i = 0; i < 4; i++) {
        random_line(k, "mov.u32 %%e%u, %s;", i, i & 1 ? "%n" : number(k, 32).text);
        random_line(k, "ld.global.u64 %%b%u, [%%a1+%u]; mov.u32 %%w%u, 0;", i, i * 8, i);
    }
    k->turn = random_pick(k, 128);
    k->mark = random_pick(k, 10);
    for (unsigned which = 0; which < 2; which++) {
        random_cell(k, which);
        random_line(k, "st.shared.v4.u32 [%%w0], {%%o, %%v0, %%v1, %%i};");
    }
    random_line(k, "mov.u32 %%cn, 0; mov.u32 %%cm, 0; mov.pred %%kt, %%k2;");
}
