/* Makes random kernels: control flow and memory. See random_kernel.h; random_code.c has the
 * instructions that only compute. */
#include "ptx/exec/random_kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/exec/random_code.h"

static const char head[] =
    ".version 8.6\n.target sm_90\n.address_size 64\n"
    ".func (.param .b32 r) mix(.param .b32 a) { .reg .b32 %r<4>; .reg .pred %p;\n"
    "ld.param.u32 %r1, [a]; and.b32 %r2, %r1, 3; setp.eq.u32 %p, %r2, 0;\n"
    "@%p bra ZERO; mul.lo.u32 %r1, %r1, 2654435761; st.param.b32 [r], %r1; ret;\n"
    "ZERO: shr.u32 %r1, %r1, 2; st.param.b32 [r], %r1; ret; }\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {\n"
    ".reg .pred %p<4>, %q<4>; .reg .b16 %h<4>; .reg .b32 %r<8>, %s<8>, %c<4>, %m<4>;\n"
    ".reg .b32 %t, %l, %x, %y, %n, %z, %mine; .reg .b64 %d<4>, %a<8>, %in, %out, %own, %depot;\n"
    ".reg .f32 %f<4>; .reg .f64 %g<4>; .shared .align 16 .b8 sh[2048], own[1024];\n"
    ".local .align 8 .b8 stack[64]; .param .b32 x; .param .b32 y;\n"
    "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [n];\n"
    "mov.u32 %s0, %ctaid.x; mov.u32 %s1, %ntid.x; mov.u32 %x, %tid.x; mov.u32 %y, %tid.y;\n"
    "mov.u32 %s2, %ntid.y; mul.lo.u32 %s3, %s1, %s2; mad.lo.u32 %l, %y, %s1, %x;\n"
    "mad.lo.u32 %t, %s0, %s3, %l; mul.wide.u32 %a0, %t, 256; add.u64 %own, %out, %a0;\n";

/* Only for kernels with forms: memory of each thread's own. */
static const char memory[] =
    "mov.u32 %mine, own; mad.lo.u32 %mine, %l, 8, %mine; mov.u64 %depot, stack;\n"
    "st.shared.v2.u32 [%mine], {%t, %x}; st.local.v2.u64 [stack], {%d0, %d1};\n"
    "st.local.v2.u64 [stack+16], {%d2, %d3}; st.local.v2.u64 [stack+32], {%a0, %a0};\n"
    "st.local.v2.u64 [stack+48], {%d3, %a0};\n";

uint64_t
random_next(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

unsigned
random_below(uint64_t *state, unsigned n)
{
    return (unsigned)(random_next(state) >> 33) % n;
}

unsigned
random_pick(struct random_kernel *k, unsigned n)
{
    return random_below(&k->state, n);
}

void
random_line(struct random_kernel *k, const char *form, ...)
{
    va_list args;

    if (k->nlines == RANDOM_LINES)
        abort();
    va_start(args, form);
    if (vasprintf(&k->lines[k->nlines++], form, args) < 0)
        abort();
    va_end(args);
}

void
random_piece_from(struct random_kernel *k, unsigned first)
{
    if (k->npieces < RANDOM_PIECES && k->nlines > first)
        k->pieces[k->npieces++] = (struct random_piece){first, k->nlines - 1};
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const struct {
    const char *type, *reg; /* reg: the letter of registers for it */
    unsigned bytes, count;
} accesses[] = {
    {"u8", "r", 1, 1},     {"s8", "r", 1, 1},     {"u16", "h", 2, 1},    {"s16", "r", 2, 1},
    {"u32", "r", 4, 1},    {"u32", "r", 4, 1},    {"u32", "r", 4, 1},    {"f32", "f", 4, 1},
    {"u64", "d", 8, 1},    {"s32", "d", 4, 1},    {"v2.u32", "r", 4, 2}, {"v4.u32", "r", 4, 4},
    {"v2.f32", "f", 4, 2}, {"v2.u16", "h", 2, 2}, {"v4.u8", "r", 1, 4},  {"v2.u64", "d", 8, 2},
};
#define ACCESSES (sizeof(accesses) / sizeof(accesses[0]))

static void
name_registers(struct random_kernel *k, unsigned access, char out[48])
{
    const unsigned n = accesses[access].count, first = random_pick(k, 4);
    int at = snprintf(out, 48, n > 1 ? "{" : "");

    for (unsigned i = 0; i < n; i++)
        at += snprintf(out + at, (size_t)(48 - at), "%s%%%s%u", i ? ", " : "", accesses[access].reg,
                       (first + i) & 3);
    snprintf(out + at, (size_t)(48 - at), n > 1 ? "}" : "");
}

/* %a1: an address around `in` for `size` bytes. Returns an offset that may be added to it. */
static unsigned
make_address(struct random_kernel *k, unsigned size)
{
    static const char *const signs[] = {"u", "s"};
    static const char *const own[] = {"%t", "%x", "%y", "%l", "%c0", "%m1"};
    const unsigned far = 1 + random_pick(k, 100);
    const uint32_t big = random_pick(k, 2) ? 0x7ffffff0u + random_pick(k, 32) : 0xfffff000u;

    if (k->shares && random_pick(k, 2)) {
        random_distance(k);
        random_line(k, "and.b32 %%w0, %%w0, %u; mul.wide.u32 %%a0, %%w0, %u;", 4096 / size - 1,
                    size);
        random_line(k, "add.u64 %%a1, %%in, %%a0;");
        return random_pick(k, 8) * size;
    }
    switch (random_pick(k, 8)) {
    case 0: /* near a position, on either side */
    case 1:
        random_line(k, "add.u32 %%s4, %s, %d;", own[random_pick(k, 4)],
                    (int)random_pick(k, 128) - 64);
        random_line(k, "mul.wide.s32 %%a0, %%s4, %u; add.u64 %%a1, %%in, %%a0;", size);
        break;
    case 2: /* reversed */
        random_line(k, "sub.u32 %%s4, %u, %s;", random_pick(k, 200), own[random_pick(k, 4)]);
        random_line(k, "cvt.s64.s32 %%a0, %%s4; mad.lo.s64 %%a1, %%a0, %u, %%in;", size);
        break;
    case 3: /* through a large number */
        random_line(k, "add.u32 %%s4, %s, %u;", own[random_pick(k, 4)], big);
        random_line(k, "mul.wide.u32 %%a0, %%s4, %u; add.u64 %%a1, %%in, %%a0;", size);
        random_line(k, "sub.u64 %%a1, %%a1, %llu;", (unsigned long long)big * size);
        break;
    case 4: /* a position that is masked, and masked after it wrapped around */
        random_line(k, "sub.u32 %%s4, %s, %u; mul.wide.%s32 %%a0, %%s4, %u;",
                    own[random_pick(k, 4)], far, signs[random_pick(k, 2)], size);
        random_line(k, "shr.u64 %%a2, %%a0, 29; add.u64 %%a0, %%a0, %%a2;");
        random_line(k, "and.b64 %%a0, %%a0, %u; add.u64 %%a1, %%in, %%a0;", 4095 & ~(size - 1));
        break;
    case 5: /* in 32 bits first */
        random_line(k, "mad.lo.u32 %%s4, %s, %u, %u; and.b32 %%s4, %%s4, %u;",
                    own[random_pick(k, 6)], random_pick(k, 40), random_pick(k, 9000),
                    4095 & ~(size - 1));
        random_line(k, "cvt.u64.u32 %%a0, %%s4; add.u64 %%a1, %%in, %%a0;");
        break;
    default: /* anywhere */
        random_line(k, "and.b32 %%s4, %%r%u, %u; mul.wide.u32 %%a0, %%s4, %u;", random_pick(k, 8),
                    (1u << random_pick(k, 8)) - 1, size);
        random_line(k, "add.u64 %%a1, %%in, %%a0;");
    }
    return random_pick(k, 8) * size;
}

static void
make_load(struct random_kernel *k)
{
    const unsigned a = random_pick(k, ACCESSES), size = accesses[a].bytes * accesses[a].count;
    const unsigned far = random_pick(k, 40);
    char guard[16], regs[48];

    random_guard(k, guard);
    name_registers(k, a, regs);
    if (random_pick(k, 5) == 0) { /* only lanes that do not wrap around may load */
        random_line(k, "setp.ge.u32 %%q0, %%t, %u; sub.u32 %%s4, %%t, %u;", far, far);
        random_line(k, "mul.wide.u32 %%a0, %%s4, %u; add.u64 %%a1, %%in, %%a0;", size);
        random_line(k, "@%%q0 ld.global.%s %s, [%%a1];", accesses[a].type, regs);
    } else if (random_pick(k, 5) == 0) {
        random_line(k, "%sld.global.%s %s, [%%own+%u];", guard, accesses[a].type, regs,
                    random_pick(k, RANDOM_OWN / 16) * 16);
    } else {
        const unsigned offset = make_address(k, size);

        random_line(k, "%sld.global%s.%s %s, [%%a1+%u];", guard, random_pick(k, 4) ? "" : ".nc",
                    accesses[a].type, regs, offset);
    }
}

static void
make_store(struct random_kernel *k)
{
    static const char *const places[] = {"%t", "%s5", "%s5"};
    const unsigned a = random_pick(k, ACCESSES), size = accesses[a].bytes * accesses[a].count;
    const unsigned slot = random_pick(k, 6), place = random_pick(k, 3);
    char guard[16], regs[48];

    random_guard(k, guard);
    name_registers(k, a, regs);
    if (random_pick(k, 6) == 0) {
        random_line(k, "%sst.global.u32 [%%out+%u], %u;", guard, RANDOM_FLAGS + slot * 4, slot + 5);
        return;
    }
    if (random_pick(k, 3) == 0) {
        random_line(k, "%sst.global.%s [%%own+%u], %s;", guard, accesses[a].type,
                    random_pick(k, RANDOM_OWN / 16) * 16, regs);
        return;
    }
    if (random_pick(k, 2)) { /* beside the neighbours', one slot for each size */
        random_line(k, "mul.lo.u32 %%s6, %%t, %u; cvt.u64.u32 %%a3, %%s6;", size);
        random_line(
            k, "add.u64 %%a3, %%a3, %%out; %sst.global.%s [%%a3+%u], %s;", guard, accesses[a].type,
            RANDOM_THREADS * (RANDOM_OWN + (18 + (unsigned)__builtin_ctz(size)) * 16), regs);
        return;
    }
    /* 16 bytes for each thread, in an order that belongs to the slot. */
    random_line(k, "xor.b32 %%s5, %%t, %u;", slot * 11);
    if (place == 2)
        random_line(k, "sub.u32 %%s5, 511, %%t;");
    random_line(k, "mul.wide.u32 %%a3, %s, 16; add.u64 %%a3, %%a3, %%out;", places[place]);
    random_line(k, "%sst.global.%s [%%a3+%u], %s;", guard, accesses[a].type,
                RANDOM_THREADS * (RANDOM_OWN + (slot + place * 6) * 16), regs);
}

/* Shared memory that no other thread uses: one of the thread's two cells. */
static void
make_cell(struct random_kernel *k)
{
    const unsigned which = random_pick(k, 2);

    for (unsigned n = random_pick(k, 2); n < 2; n++) {
        const unsigned a = random_pick(k, ACCESSES);
        char guard[16], regs[48];

        random_guard(k, guard);
        name_registers(k, a, regs);
        random_cell(k, which);
        random_line(k, "%s%s.shared.%s %s, %s;", guard, n ? "ld" : "st", accesses[a].type,
                    n ? regs : "[%w0]", n ? "[%w0]" : regs);
    }
}

/* A barrier of all threads, at which they may also count predicates. */
static void
make_barrier(struct random_kernel *k)
{
    char p[24];

    switch (random_pick(k, 6)) {
    case 0:
        random_condition(k, p);
        random_line(k, "bar.red.popc.u32 %%r%u, 0, %s;", random_pick(k, 8), p);
        break;
    case 1:
        random_condition(k, p);
        random_line(k, "bar.red.%s.pred %%p%u, 0, %s;", random_pick(k, 2) ? "and" : "or",
                    random_pick(k, 4), p);
        break;
    default:
        random_line(k, "bar.sync 0;");
    }
}

/* All threads write their words, and read each other's. */
static void
make_meeting(struct random_kernel *k)
{
    static const char *const types[] = {"u32", "u16", "u8", "v2.u32", "v4.u32"};
    static const char *const regs[] = {"%r0", "%h1", "%r2", "{%r3, %r1}", "{%r4, %r2, %r0, %r6}"};
    const unsigned t = random_pick(k, 5), u = random_pick(k, 5);
    const bool is_near = k->shares && random_pick(k, 2);

    random_line(k, "mov.u32 %%s6, sh; mad.lo.u32 %%s7, %%l, 16, %%s6;");
    random_line(k, "st.shared.%s [%%s7+%u], %s;", types[t], t < 3 ? random_pick(k, 4) * 4 : 0,
                regs[t]);
    make_barrier(k);
    if (is_near) {
        random_distance(k);
        random_line(k, "and.b32 %%s5, %%w0, 127;");
    } else if (random_pick(k, 2))
        random_line(k, "add.u32 %%s5, %%l, %u; and.b32 %%s5, %%s5, 127;", random_pick(k, 128));
    else
        random_line(k, "and.b32 %%s5, %%r%u, 127;", random_pick(k, 8));
    random_line(k, "mad.lo.u32 %%s7, %%s5, 16, %%s6; ld.shared.%s %s, [%%s7];", types[u], regs[u]);
    make_barrier(k);
}

/* ---- control flow ---------------------------------------------------------------------------- */

static void make_list(struct random_kernel *k, unsigned count);

static void
make_if(struct random_kernel *k)
{
    const unsigned end = k->labels++, other = k->labels++;
    const bool could = k->may_meet, has_else = random_pick(k, 2), skips = random_pick(k, 6) == 0;
    char p[24];

    k->may_meet = false;
    k->ends[k->nends++] = end;
    random_condition(k, p);
    random_line(k, "@%s%s bra L%u;", random_pick(k, 2) ? "!" : "", p, has_else ? other : end);
    make_list(k, 1 + random_pick(k, 4));
    if (skips && has_else) { /* falls into the other side: a || b */
        random_condition(k, p);
        random_line(k, "@%s bra L%u;", p, other);
        make_list(k, 1 + random_pick(k, 2));
    }
    if (has_else) {
        random_line(k, "bra L%u; L%u:", end, other);
        make_list(k, 1 + random_pick(k, 4));
    }
    random_line(k, "L%u:", end);
    k->nends--;
    k->may_meet = could;
}

/* %m: how often the loop at this depth runs: the same for all threads where they may meet. */
static void
make_limit(struct random_kernel *k)
{
    const unsigned d = k->depth;

    switch (random_pick(k, k->may_meet ? 2 : 5)) {
    case 0:
        random_line(k, "mov.u32 %%m%u, %u;", d, random_pick(k, 5));
        break;
    case 1:
        random_line(k, "and.b32 %%m%u, %%n, 3;", d);
        break;
    case 2:
        random_line(k, "and.b32 %%m%u, %s, 3;", d, random_pick(k, 2) ? "%t" : "%y");
        break;
    default:
        random_line(k, "and.b32 %%m%u, %%r%u, %u;", d, random_pick(k, 8),
                    random_pick(k, 3) ? 3 : 7);
        break;
    }
}

static void
make_loop(struct random_kernel *k)
{
    const unsigned end = k->labels++, top = k->labels++, latch = k->labels++, d = k->depth;
    const bool tests_first = random_pick(k, 2);

    make_limit(k);
    random_line(k, "mov.u32 %%c%u, 0;", d);
    random_line(k, "L%u:", top);
    if (tests_first)
        random_line(k, "setp.ge.u32 %%q1, %%c%u, %%m%u; @%%q1 bra L%u;", d, d, end);
    k->ends[k->nends++] = end;
    k->latches[k->depth++] = latch;
    make_list(k, 1 + random_pick(k, 5));
    k->depth--;
    k->nends--;
    random_line(k, "L%u: add.u32 %%c%u, %%c%u, 1;", latch, d, d);
    if (tests_first)
        random_line(k, "bra L%u; L%u:", top, end);
    else
        random_line(k, "setp.lt.u32 %%q1, %%c%u, %%m%u; @%%q1 bra L%u; L%u:", d, d, top, end);
}

/* Leaves constructs, or the kernel. */
static void
make_jump(struct random_kernel *k)
{
    const bool stays = k->meets; /* threads that others wait for may not leave */
    char p[24];

    if (k->may_meet)
        return;
    random_condition(k, p);
    if (!stays && random_pick(k, 3) == 0)
        random_line(k, "@%s ret;", p);
    else if (!stays && random_pick(k, 4) == 0)
        random_line(k, "@%s bra DONE;", p);
    else if (!stays && random_pick(k, 4) == 0)
        random_line(k, "@%s bra LEAVE;", p);
    else if (k->depth && !stays && random_pick(k, 2))
        random_line(k, "@%s bra L%u;", p, k->latches[random_pick(k, k->depth)]);
    else if (k->nends)
        random_line(k, "@%s bra L%u;", p, k->ends[stays ? k->nends - 1 : random_pick(k, k->nends)]);
}

/* Around what lanes share. */
static void
make_sharing(struct random_kernel *k)
{
    const unsigned what = random_pick(k, 100);

    if (what < 25) {
        random_ways(k);
    } else if (what < 30) {
        make_load(k);
    } else if (what < 37) {
        make_cell(k);
    } else if (what < 40 && !k->sums) {
        k->sums = true;
        random_sums(k);
    } else {
        random_shared(k);
    }
}

static void
make_statement(struct random_kernel *k)
{
    const unsigned what = random_pick(k, 100);

    if (k->budget)
        k->budget--;
    if (k->shares && random_pick(k, 5) < 3)
        make_sharing(k);
    else if (what < 10 && k->budget && k->nends < 6)
        make_if(k);
    else if (what < 17 && k->budget && k->depth < 3 && k->nends < 6)
        make_loop(k);
    else if (what < 22)
        make_jump(k);
    else if (what < 34)
        make_load(k);
    else if (what < 44)
        make_store(k);
    else if (what < 60 && k->meets && k->may_meet)
        make_meeting(k);
    else if (what < 66 && k->forms)
        random_access(k);
    else if (what < 85 && k->forms)
        random_form(k);
    else if (what < 95 && k->shuffles && k->may_meet)
        random_meeting(k);
    else
        random_instruction(k);
}

static void
make_list(struct random_kernel *k, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const unsigned first = k->nlines;

        make_statement(k);
        random_piece_from(k, first);
    }
}

/* Stores a register beside the neighbours'. */
static void
make_dump(struct random_kernel *k, unsigned index, const char *type, char reg, unsigned number)
{
    random_line(k, "st.global.%s [%%a3+%u], %%%c%u;", type,
                RANDOM_THREADS * (RANDOM_OWN + 24 * 16 + index * 4), reg, number);
    random_piece_from(k, k->nlines - 1);
}

static void
dump_shared(struct random_kernel *k)
{
    for (unsigned i = 0; i < 8; i++)
        make_dump(k, 32 + i, "u32", 'v', i);
    for (unsigned i = 0; i < 4; i++) {
        make_dump(k, 40 + i, "u32", 'e', i);
        random_line(k, "mov.b64 {%%w0, %%w1}, %%b%u;", i);
        make_dump(k, 44 + i, "u32", 'w', 0);
        make_dump(k, 48 + i, "u32", 'w', 1);
    }
}

static void
make_end(struct random_kernel *k)
{
    random_line(k, "DONE: mul.wide.u32 %%a3, %%t, 4; add.u64 %%a3, %%a3, %%out;");
    for (unsigned i = 0; i < 8; i++)
        make_dump(k, i, "u32", 'r', i);
    for (unsigned i = 0; i < 4 && k->forms; i++) {
        random_line(k, "st.global.f64 [%%own+%u], %%g%u;", 8 * i, i);
        random_piece_from(k, k->nlines - 1);
    }
    for (unsigned i = 0; i < 4; i++) {
        random_line(k, "cvt.u32.u64 %%s4, %%d%u; shr.u64 %%d%u, %%d%u, 32;", i, i, i);
        make_dump(k, 8 + i, "u32", 's', 4);
        make_dump(k, 12 + i, "u32", 'd', i);
        make_dump(k, 16 + i, "f32", 'f', i);
        make_dump(k, 20 + i, "u16", 'h', i);
        random_line(k, "selp.u32 %%s4, 1, 0, %%p%u;", i);
        make_dump(k, 24 + i, "u32", 's', 4);
        make_dump(k, 28 + i, "u32", 'c', i);
    }
    if (k->shares)
        dump_shared(k);
    random_line(k, "LEAVE: ret; }");
}

void
random_kernel_make(struct random_kernel *k, uint64_t seed)
{
    memset(k, 0, sizeof(*k));
    k->state = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    k->meets = random_pick(k, 4) == 0;
    k->linear = random_pick(k, 2);
    k->forms = random_pick(k, 2);
    k->shuffles = k->meets && random_pick(k, 2);
    k->may_meet = k->meets;
    k->shares = seed % 4 != 0;
    k->budget = 5 + random_pick(k, 25);
    random_line(k, "%s", head);
    random_registers(k);
    if (k->shares)
        random_registers_shared(k);
    if (k->forms)
        random_line(k, "%s", memory);
    make_list(k, 5 + random_pick(k, 10));
    make_end(k);
}

void
random_kernel_free(struct random_kernel *k)
{
    for (unsigned i = 0; i < k->nlines; i++)
        free(k->lines[i]);
    k->nlines = 0;
}

char *
random_kernel_text(const struct random_kernel *k)
{
    size_t size = 1, at = 0;
    char *text;

    for (unsigned i = 0; i < k->nlines; i++)
        size += k->dropped[i] ? 0 : strlen(k->lines[i]) + 1;
    text = malloc(size);
    if (!text)
        abort();
    for (unsigned i = 0; i < k->nlines; i++)
        if (!k->dropped[i])
            at += (size_t)snprintf(text + at, size - at, "%s\n", k->lines[i]);
    return text;
}

/* ---- launches -------------------------------------------------------------------------------- */

static const struct {
    unsigned threads, width;
} shapes[] = {{64, 0}, {64, 32},  {100, 0}, {64, 16},  {64, 8},   {60, 12},
              {7, 0},  {128, 16}, {1, 0},   {128, 64}, {128, 32}, {96, 0}};
#define SHAPES 9 /* for kernels that share nothing */
/* More often warps that are one row, for kernels around what lanes share. */
static const unsigned char sharing[] = {0, 0, 0, 1, 1, 2, 3, 4, 5, 9, 10, 11};

void
random_shape(const struct random_kernel *k, uint64_t seed, struct random_shape *out)
{
    uint64_t state = seed ^ 0x5bd1e995;
    unsigned s = random_below(&state, SHAPES);

    if (k->shares)
        s = sharing[random_below(&state, sizeof(sharing))];
    /* What a lane that does not exist gives to others is not defined. */
    if (k->shuffles && shapes[s].threads % 32 != 0)
        s = 0;
    out->threads = shapes[s].threads;
    out->width = shapes[s].width;
    out->blocks = 1 + random_below(&state, 3);
    out->n = random_below(&state, 100);
}

void
random_fill(unsigned char *in)
{
    static const uint32_t odd[] = {0x7fc00001, 0xffc12345, 0x7f800000, 0x3f800000, 0xff800000,
                                   0x7f800001, 0,          0x80000000, 0x40490fdb, 0xffffffff};
    uint64_t state = 5;

    for (unsigned i = 0; i < 2 * RANDOM_IN; i += 4) {
        const unsigned what = random_below(&state, 4);
        const uint32_t word = what == 0   ? odd[random_below(&state, 10)]
                              : what == 1 ? random_below(&state, 100)
                              : what == 2 ? 0x3f000000 + random_below(&state, 0x1000000)
                                          : random_below(&state, UINT32_MAX);

        memcpy(in + i, &word, 4);
    }
}
