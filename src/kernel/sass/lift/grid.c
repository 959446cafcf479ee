/* The system functions behind the grid groups of the device runtime: cudaCGSynchronize and others.
 * See inside.h for the rules, and call.c for who calls this.
 *
 * The handle of a grid is the address of its workspace, which %envreg1 and %envreg2 hold in a
 * cooperative launch: the one that cooperative_groups.h takes, so that both kinds of barrier are
 * one. Its second word counts the blocks that have come:
 *
 *   every block adds 1, and the first one what makes bit 31 change when all are there
 */
#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

#define SCOPE_GRID 1 /* cudaCGScopeGrid */
#define BARRIER 4    /* bytes from the beginning of the workspace */

static const char *
read_special(struct lift *l, const char *name)
{
    const char *t = hed_lift_temp(l, 't');

    hed_lift_calc(l, "mov.u32 %s, %%%s", t, name);
    return t;
}

/* OP of two words. */
static const char *
combine_words(struct lift *l, const char *op, const char *a, const char *b)
{
    const char *t = hed_lift_temp(l, 't');

    hed_lift_calc(l, "%s %s, %s, %s", op, t, a, b);
    return t;
}

static const char *
combine_dims(struct lift *l, const char *op, const char *name)
{
    const char *x = read_special(l, hed_lift_text(l, "%s.x", name));
    const char *y = read_special(l, hed_lift_text(l, "%s.y", name));
    const char *z = read_special(l, hed_lift_text(l, "%s.z", name));

    return combine_words(l, op, combine_words(l, op, x, y), z);
}

/* The position in a block or a grid: (z * size.y + y) * size.x + x. */
static const char *
linear_position(struct lift *l, const char *at, const char *size)
{
    const char *t = read_special(l, hed_lift_text(l, "%s.z", at));

    for (const char *dim = "yx"; *dim; dim++) {
        const char *n = read_special(l, hed_lift_text(l, "%s.%c", size, *dim));
        const char *i = read_special(l, hed_lift_text(l, "%s.%c", at, *dim));

        t = combine_words(l, "add.s32", combine_words(l, "mul.lo.s32", t, n), i);
    }
    return t;
}

/* Is it no grid? Then a function fails. */
static const char *
is_no_handle(struct lift *l, const char *handle)
{
    const char *x = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "setp.eq.u64 %s, %s, 0", x, handle);
    return x;
}

void
hed_lift_grid_handle(struct lift *l, const char *const *arguments, const char *result)
{
    const char *low = read_special(l, "envreg2"), *high = read_special(l, "envreg1");
    const char *q = hed_lift_temp(l, 'q'), *x = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, low, high);
    hed_lift_calc(l, "setp.eq.u32 %s, %s, %d", x, arguments[0], SCOPE_GRID);
    hed_lift_calc(l, "selp.b64 %s, %s, 0, %s", result, q, x);
}

/* The first thread of each block adds its share, and waits until bit 31 has changed. */
static void
meet_other_blocks(struct lift *l, const char *barrier)
{
    const char *blocks = combine_dims(l, "mul.lo.s32", "nctaid");
    const char *rest = combine_words(l, "sub.s32", "-2147483647", blocks);
    const char *position = combine_dims(l, "or.b32", "ctaid");
    const char *is_first = hed_lift_temp(l, 'x'), *waits = hed_lift_temp(l, 'x');
    const char *share = hed_lift_temp(l, 't'), *old = hed_lift_temp(l, 't');
    const char *now = hed_lift_temp(l, 't'), *loop = hed_lift_label(l), *changed;

    hed_lift_calc(l, "setp.eq.u32 %s, %s, 0", is_first, position);
    hed_lift_calc(l, "selp.b32 %s, %s, 1, %s", share, rest, is_first);
    hed_lift_calc(l, "atom.add.release.gpu.u32 %s, [%s], %s", old, barrier, share);
    hed_buf_addf(&l->statements, "%s:\n", loop);
    hed_lift_calc(l, "ld.acquire.gpu.u32 %s, [%s]", now, barrier);
    changed = combine_words(l, "xor.b32", now, old);
    hed_lift_calc(l, "setp.gt.s32 %s, %s, -1", waits, changed);
    hed_lift_calc(l, "@%s bra %s", waits, loop);
}

void
hed_lift_grid_sync(struct lift *l, const char *const *arguments, const char *result)
{
    const char *none = is_no_handle(l, arguments[0]), *end = hed_lift_label(l);
    const char *waited = hed_lift_label(l), *barrier = hed_lift_temp(l, 'q'), *thread;
    const char *is_other = hed_lift_temp(l, 'x');

    hed_lift_calc(l, "@%s bra %s", none, end);
    hed_lift_calc(l, "add.s64 %s, %s, %d", barrier, arguments[0], BARRIER);
    hed_lift_calc(l, "barrier.sync 0");
    thread = combine_dims(l, "or.b32", "tid");
    hed_lift_calc(l, "setp.ne.u32 %s, %s, 0", is_other, thread);
    hed_lift_calc(l, "@%s bra %s", is_other, waited);
    meet_other_blocks(l, barrier);
    hed_buf_addf(&l->statements, "%s:\n", waited);
    hed_lift_calc(l, "barrier.sync 0");
    hed_buf_addf(&l->statements, "%s:\n", end);
    hed_lift_calc(l, "selp.b32 %s, 1, 0, %s", result, none);
}

/* Stores two numbers, each where its pointer is not 0. */
static void
store_numbers(struct lift *l, const char *const *arguments, const char *const values[2],
              const char *result)
{
    const char *none = is_no_handle(l, arguments[2]), *end = hed_lift_label(l);

    hed_lift_calc(l, "@%s bra %s", none, end);
    for (unsigned i = 0; i < 2; i++) {
        const char *x = hed_lift_temp(l, 'x');

        hed_lift_calc(l, "setp.ne.u64 %s, %s, 0", x, arguments[i]);
        hed_lift_calc(l, "@%s st.u32 [%s], %s", x, arguments[i], values[i]);
    }
    hed_buf_addf(&l->statements, "%s:\n", end);
    hed_lift_calc(l, "selp.b32 %s, 1, 0, %s", result, none);
}

/* Threads of the grid, and grids that work together: one. */
void
hed_lift_grid_size(struct lift *l, const char *const *arguments, const char *result)
{
    const char *blocks = combine_dims(l, "mul.lo.s32", "nctaid");
    const char *threads = combine_dims(l, "mul.lo.s32", "ntid");
    const char *const values[2] = {combine_words(l, "mul.lo.s32", blocks, threads), "1"};

    store_numbers(l, arguments, values, result);
}

/* The position of the thread in the grid, and that of the grid: the first. */
void
hed_lift_grid_rank(struct lift *l, const char *const *arguments, const char *result)
{
    const char *block = linear_position(l, "ctaid", "nctaid");
    const char *threads = combine_dims(l, "mul.lo.s32", "ntid");
    const char *before = combine_words(l, "mul.lo.s32", block, threads);
    const char *thread = linear_position(l, "tid", "ntid");
    const char *const values[2] = {combine_words(l, "add.s32", before, thread), "0"};

    store_numbers(l, arguments, values, result);
}
