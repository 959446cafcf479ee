/* Random ways that meet: values of which each way makes another kind, loops over what comes from
 * them, and many sums with the same factors. See random_share.c for the registers.
 *
 *      @c1 bra A; @c2 bra B;                 c1, c2: the same for all lanes, or not
 *      v = row; at = in + 4 row; bra END;
 *      A: v = row + n; at = ...; bra END;
 *      B: v = 0; at = ...;
 *      END: e = v & 32;  loop: load [at]; ... at += 4
 */
#include <stdio.h>

#include "ptx/exec/random_code.h"

#define PICK(k, list) ((list)[random_pick(k, sizeof(list) / sizeof((list)[0]))])

#define WAYS_MOST 4
#define TARGETS_MOST 3

/* What meets: registers, and of which kind most ways make them. */
struct meeting {
    char targets[TARGETS_MOST][8];
    unsigned families[TARGETS_MOST], ntargets;
    const char *row; /* of addresses */
    bool has_address;
    bool is_even;  /* all lanes go the same way */
    bool is_alike; /* lanes part, but their addresses are as if they had not: see pass/guess.h */
};

/* %at0: an address in or around `in`. Most ways make the same one, which is not to be seen. */
static void
make_place(struct random_kernel *k, const struct meeting *m)
{
    static const char *const others[] = {"%t", "%x", "%l", "%i", "%w3", "%n", "%o"};
    const char *row = random_pick(k, 5) ? m->row : PICK(k, others);
    const unsigned first = k->nlines;

    if (m->is_alike || random_pick(k, 3) == 0)
        random_line(k, "add.u64 %%at0, %%at1, %s;", random_pick(k, 2) ? "%oo" : "0");
    else
        random_line(k, "mul.wide.u32 %%a0, %s, %u; add.u64 %%at0, %%in, %%a0;%s%s", row,
                    random_pick(k, 8) ? 4 : 8, random_pick(k, 2) ? " add.u64 %at0, %at0, %oo;" : "",
                    random_pick(k, 5) ? "" : " add.u64 %at0, %at0, 64;");
    random_piece_from(k, first);
}

static void
make_way(struct random_kernel *k, const struct meeting *m, unsigned way)
{
    for (unsigned i = 0; i < m->ntargets; i++) {
        const unsigned first = k->nlines;

        if (random_pick(k, 8) == 0)
            continue; /* it stays what it was */
        /* Where all go the same way, small rows are joined with others, and with what is none. */
        if (m->is_even && way == 0 && i == 0)
            random_line(k, "mov.u32 %s, %%i;", m->targets[i]);
        else
            random_value(k, m->targets[i],
                         random_pick(k, m->is_even && way > 1 ? 2 : 4)
                             ? m->families[i]
                             : random_pick(k, RANDOM_FAMILIES));
        random_piece_from(k, first);
    }
    if (m->has_address)
        make_place(k, m);
}

static void
choose_meeting(struct random_kernel *k, struct meeting *m)
{
    static const char *const rows[] = {"%t", "%t", "%x", "%l", "%i"};

    k->mark = random_pick(k, 10);
    m->ntargets = 1 + random_pick(k, TARGETS_MOST);
    for (unsigned i = 0; i < m->ntargets; i++) {
        m->families[i] = random_pick(k, RANDOM_FAMILIES);
        snprintf(m->targets[i], sizeof(m->targets[i]), random_pick(k, 4) ? "%%v%u" : "%%e%u",
                 random_pick(k, 4));
    }
    m->row = PICK(k, rows);
    m->has_address = random_pick(k, 2);
    switch (random_pick(k, 3)) {
    case 0:
        m->is_even = true;
        m->families[0] = RANDOM_ROW;
        k->mark = 3 + random_pick(k, 5); /* rows of 32 differ below it, or do they? */
        break;
    case 1:
        m->is_alike = m->has_address = true;
        m->families[0] = RANDOM_BITS;
        break;
    default:
        break;
    }
}

/* One to three branches away, and back. */
static void
make_ways(struct random_kernel *k, const struct meeting *m)
{
    const unsigned end = k->labels++, n = 2 + random_pick(k, WAYS_MOST - 1), ways = k->labels;

    k->labels += n;
    for (unsigned i = 1; i < n; i++) {
        const char *condition = random_even_condition(k, m->is_even);
        const bool is_inverted = condition[0] == '!';

        random_line(k, "@%s%s bra L%u;", is_inverted ? "!" : "", condition + is_inverted, ways + i);
    }
    /* Ways come in the order of the branches or backwards. */
    make_way(k, m, 0);
    for (unsigned i = 1; i < n; i++) {
        random_line(k, "bra L%u; L%u:", end, ways + (ways & 1 ? i : n - i));
        make_way(k, m, i);
    }
    random_line(k, "L%u:", end);
}

/* Masks of what has met. */
static void
use_meeting(struct random_kernel *k, const struct meeting *m)
{
    for (unsigned i = 0; i < m->ntargets; i++) {
        const unsigned first = k->nlines;

        if (m->is_even && i == 0)
            random_line(k, "and.b32 %%e%u, %s, %u;", random_pick(k, 4), m->targets[i],
                        1023 & -(1u << k->mark));
        else if (random_pick(k, 2))
            random_line(k, "and.b32 %%e%u, %s, %u;", random_pick(k, 4), m->targets[i],
                        1u << (random_pick(k, 2) ? k->mark : random_pick(k, 10)));
        else
            random_line(k, "shr.u32 %%v%u, %s, %u;", random_pick(k, 8), m->targets[i],
                        1 + random_pick(k, 6));
        random_piece_from(k, first);
    }
}

/* What a loop does in a round, beside counting. */
static void
make_round(struct random_kernel *k, const struct meeting *m)
{
    const unsigned sum = random_pick(k, 4);

    for (unsigned n = random_pick(k, 3); n > 0; n--) {
        const unsigned first = k->nlines;

        random_shared(k);
        random_piece_from(k, first);
    }
    if (m->has_address)
        random_line(k, "ld.global.u32 %%w2, [%%at0]; add.u64 %%at0, %%at0, %u;",
                    4u << random_pick(k, 6));
    if (random_pick(k, 3))
        random_line(k, "and.b32 %%w1, %s, %u; mad.lo.u32 %%v%u, %%v%u, 3, %%w1;", m->targets[0],
                    1u << (random_pick(k, 2) ? k->mark : random_pick(k, 10)), 4 + sum, 4 + sum);
    random_line(k, "xor.b32 %%v%u, %%v%u, %%w2;", 4 + sum, 4 + sum);
    if (random_pick(k, 4) == 0)
        random_line(k, "add.u32 %s, %s, %u;", m->targets[0], m->targets[0],
                    1u << random_pick(k, 6));
}

/* Rounds over what has met. Of two loops that begin at one place, the inner one ends first. */
static void
make_rounds(struct random_kernel *k, const struct meeting *m)
{
    const unsigned top = k->labels++, first = k->nlines;
    const bool is_double = random_pick(k, 5) == 0;

    switch (random_pick(k, 4)) {
    case 0:
        random_line(k, "and.b32 %%cm, %%v%u, 3;", random_pick(k, 8));
        break;
    case 1:
        random_line(k, "and.b32 %%cm, %%n, 3;");
        break;
    default:
        random_line(k, "mov.u32 %%cm, %u;", 1 + random_pick(k, 4));
    }
    random_line(k, "mov.u32 %%cn, 0; mov.u32 %%w2, 0;");
    random_line(k, "L%u: add.u32 %%cn, %%cn, 1;", top);
    make_round(k, m);
    if (is_double) {
        random_line(k,
                    "and.b32 %%w1, %%cn, %%r%u; and.b32 %%w1, %%w1, 3; setp.lt.u32 %%kt, "
                    "%%cn, 6; setp.ne.and.u32 %%kt, %%w1, 0, %%kt; @%%kt bra L%u;",
                    random_pick(k, 8), top);
        make_round(k, m);
    }
    random_line(k, "setp.lt.u32 %%kt, %%cn, %%cm; @%%kt bra L%u;", top);
    random_piece_from(k, first);
}

void
random_ways(struct random_kernel *k)
{
    struct meeting m = {.ntargets = 0};

    choose_meeting(k, &m);
    random_line(k, "and.b32 %%w3, %%r%u, 255; mov.u64 %%at0, %%in;", random_pick(k, 8));
    random_line(k, "mul.wide.u32 %%a0, %s, 4; add.u64 %%at1, %%in, %%a0;", m.row);
    make_ways(k, &m);
    if (random_pick(k, 4))
        use_meeting(k, &m);
    if (m.has_address || random_pick(k, 4) == 0)
        make_rounds(k, &m);
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Factors for a step: whole numbers, so that no sum is lost in a NaN. */
static void
make_factors(struct random_kernel *k, char side, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        random_line(k, "ld.global.u32 %%w0, [%s+%u]; and.b32 %%w0, %%w0, 15;",
                    side == 'a' ? "%at0" : "%at1", 4 * random_pick(k, 64));
        random_line(k, "cvt.rn.f32.u32 %%f%c%u, %%w0;", side, i);
    }
}

/* Something between two steps that minds the order of sums. */
static void
make_odd(struct random_kernel *k, unsigned sums)
{
    const unsigned a = random_pick(k, sums), b = random_pick(k, sums), first = k->nlines;

    switch (random_pick(k, 6)) {
    case 0:
        random_line(k, "mov.b32 %%w0, %%sum%u; xor.b32 %%v0, %%v0, %%w0;", a);
        break;
    case 1:
        random_line(k, "@%%k%u fma.rn.f32 %%sum%u, %%fa0, %%fb0, %%sum%u;", random_pick(k, 4), a,
                    b);
        break;
    case 2:
        random_line(k, "mov.f32 %%sum%u, %%sum%u;", a, b);
        break;
    case 3:
        random_line(k, "fma.rn.f32 %%fa0, %%sum%u, %%fb0, %%fa1;", a);
        break;
    default:
        break;
    }
    random_piece_from(k, first);
}

void
random_sums(struct random_kernel *k)
{
    const unsigned rows = 4 + random_pick(k, 4), columns = 5 + random_pick(k, 4);
    const unsigned steps = 2 + random_pick(k, 3), sums = rows * columns;
    const unsigned shared = 1 + (random_pick(k, 3) == 0), across = 1 + (random_pick(k, 3) == 0);

    random_line(k, "mul.wide.u32 %%a0, %%t, 4; add.u64 %%at0, %%in, %%a0; mov.u64 %%at1, %%in;");
    for (unsigned s = 0; s < sums; s++)
        random_line(k, "mov.f32 %%sum%u, 0f%08X;", s, random_pick(k, 2) ? 0x3f800000 : 0);
    for (unsigned step = 0; step < steps; step++) {
        make_factors(k, 'a', rows);
        make_factors(k, 'b', columns);
        for (unsigned s = 0; s < sums; s++) {
            const unsigned first = k->nlines;

            random_line(k, "fma.rn.f32 %%sum%u, %%fa%u, %%fb%u, %%sum%u;", s, s / columns / shared,
                        s % columns / across, s);
            random_piece_from(k, first);
        }
        make_odd(k, sums);
    }
    for (unsigned s = 0; s < sums; s++)
        random_line(k, "mov.b32 %%w0, %%sum%u; mad.lo.u32 %%v%u, %%v%u, 31, %%w0;", s, s & 7,
                    s & 7);
}
