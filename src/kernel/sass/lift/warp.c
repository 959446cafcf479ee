/* Special registers, and what the lanes of a warp do together. See inside.h for the rules.
 *
 * No instruction has a mask: each acts on the lanes that run it together. On our CPU the old forms
 * of PTX, which have no mask either, mean the same; elsewhere the mask is asked for.
 */
#include <stdio.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/memory.h"

/* ---- special registers ----------------------------------------------------------------------- */

enum {
    SR_VIRTCFG = 2,
    SR_VIRTID = 3,
    SR_CLOCKLO = 80,
    SR_GLOBALTIMERLO = 82,
    SR_CLUSTER_RANK = 136,
    SR_ZERO = 255
};

/* The PTX name of a special register of 32 bits; NULL if there is none. */
static const char *
special_name(unsigned number)
{
    static const struct {
        unsigned number;
        const char *name;
    } specials[] = {
        {0, "%laneid"},          {1, "%clock"},          {33, "%tid.x"},
        {34, "%tid.y"},          {35, "%tid.z"},         {37, "%ctaid.x"},
        {38, "%ctaid.y"},        {39, "%ctaid.z"},       {50, "%total_smem_size"},
        {56, "%lanemask_eq"},    {57, "%lanemask_lt"},   {58, "%lanemask_le"},
        {59, "%lanemask_gt"},    {60, "%lanemask_ge"},   {67, "%smid"},
        {80, "%clock"},          {81, "%clock_hi"},      {82, "%globaltimer_lo"},
        {83, "%globaltimer_hi"}, {SR_CLUSTER_RANK, "0"}, {SR_ZERO, "0"},
    };

    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
        if (specials[i].number == number)
            return specials[i].name;
    return NULL;
}

void
hed_lift_special(struct lift *l)
{
    const unsigned number = (unsigned)hed_sass_bits(l->inst, 72, 8);
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const char *name = special_name(number);
    uint32_t high;

    if (number == SR_VIRTID || number == SR_VIRTCFG) { /* in bits 8 to 14 */
        const char *w = hed_lift_temp(l, 't'), *t = hed_lift_temp(l, 't');

        hed_lift_calc(l, "mov.u32 %s, %s", w, number == SR_VIRTID ? "%warpid" : "%nwarpid");
        hed_lift_calc(l, "shl.b32 %s, %s, 8", t, w);
        name = t;
    }
    if (hed_lift_window_high(l, number, &high))
        name = hed_lift_text(l, "0x%x", high);
    if (name)
        hed_lift_put(l, "mov.u32 %s, %s", hed_lift_def(l, d), name);
    else
        hed_lift_refuse(l, "a special register that has no equal in PTX");
}

/* CS2R: 32 bits, or a pair. */
void
hed_lift_special_wide(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);

    if (!hed_sass_bits(l->inst, 80, 1)) {
        hed_lift_special(l);
        return;
    }
    switch (hed_sass_bits(l->inst, 72, 8)) {
    case SR_ZERO: /* what is cleared are sums, mostly of floats: in halves */
        hed_lift_put(l, "mov.b32 %s, 0", hed_lift_def_nth(l, d, 0));
        hed_lift_put(l, "mov.b32 %s, 0", hed_lift_def_nth(l, d, 1));
        break;
    case SR_CLOCKLO:
    case SR_GLOBALTIMERLO:
        hed_lift_put(l, "mov.u64 %s, %s", hed_lift_def64(l, d),
                     hed_sass_bits(l->inst, 72, 8) == SR_CLOCKLO ? "%clock64" : "%globaltimer");
        hed_lift_end64(l, d);
        break;
    default:
        hed_lift_refuse(l, "a special register that has no equal in PTX");
        break;
    }
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* The lanes of a mask for which a predicate holds. */
static const char *
lanes_with(struct lift *l, const char *pred, const char *mask)
{
    const char *t = hed_lift_temp(l, 't');

    hed_lift_calc(l, "vote.sync.ballot.b32 %s, %s, %s", t, pred, mask);
    return t;
}

/* A mask for this instruction: the lanes that run it, and maybe some that have ended. */
static const char *
running_mask(struct lift *l)
{
    const char *all = l->met ? "%members" : hed_lift_temp(l, 't');

    if (!l->met)
        hed_lift_calc(l, "activemask.b32 %s", all);
    return l->guarded ? lanes_with(l, hed_lift_guard(l), all) : all;
}

/* The lanes that run this instruction. */
static const char *
running_lanes(struct lift *l)
{
    const char *mask = running_mask(l), *yes;

    if (!l->met || l->guarded)
        return mask;
    yes = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "setp.eq.b32 %s, 0, 0", yes);
    return lanes_with(l, yes, mask);
}

/* For instructions whose mask may be left out: the word ".sync" and the last operand. */
struct members {
    const char *sync, *mask;
};

static struct members
find_members(struct lift *l)
{
    if (l->use == HED_SASS_FOR_CPU && !l->guarded && !l->met)
        return (struct members){"", ""};
    return (struct members){".sync", hed_lift_text(l, ", %s", running_mask(l))};
}

/* ---- votes, shuffles, reductions ------------------------------------------------------------- */

void
hed_lift_vote(struct lift *l)
{
    static const char *const modes[] = {"all", "any", "uni", NULL};
    const char *mode = modes[hed_sass_bits(l->inst, 72, 2)];
    const bool has_reg = l->inst->operand_count && (l->inst->operands[0].kind == HED_SASS_REG ||
                                                    l->inst->operands[0].kind == HED_SASS_UREG);
    bool constant;
    const char *p = hed_lift_pred(l, 87, &constant), *ballot = NULL, *x = NULL;

    if (!mode) {
        hed_lift_refuse(l, "a vote that is not known");
        return;
    }
    if (has_reg && !p && constant && !l->guarded)
        ballot = running_lanes(l);
    if (!p) {
        p = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.%s.b32 %s, 0, 0", constant ? "eq" : "ne", p);
    }

    const struct members m = find_members(l);

    if (has_reg && !ballot) {
        ballot = hed_lift_temp(l, 't');
        hed_lift_put(l, "vote%s.ballot.b32 %s, %s%s", m.sync, ballot, p, m.mask);
    }
    if (hed_sass_bits(l->inst, 81, 3) != HED_SASS_PT) {
        x = hed_lift_temp(l, 'x');
        hed_lift_put(l, "vote%s.%s.pred %s, %s%s", m.sync, mode, x, p, m.mask);
        hed_lift_set_pred(l, 81, x);
    }
    if (has_reg)
        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, &l->inst->operands[0]), ballot);
}

void
hed_lift_shuffle(struct lift *l)
{
    static const char *const modes[] = {"idx", "up", "down", "bfly"};
    const char *mode = modes[hed_sass_bits(l->inst, 58, 2)];
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1));
    const char *b = hed_lift_word(l, hed_lift_operand(l, 2));
    const char *c = hed_lift_word(l, hed_lift_operand(l, 3));
    const struct members m = find_members(l);
    const char *t = hed_lift_temp(l, 't'), *p = hed_lift_def_pred(l, 81);

    hed_lift_put(l, "shfl%s.%s.b32 %s%s%s, %s, %s, %s%s", m.sync, mode, t, p ? "|" : "", p ? p : "",
                 a, b, c, m.mask);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), t);
}

void
hed_lift_match(struct lift *l)
{
    const struct hed_sass_operand *s = hed_lift_operand(l, 1);
    const bool is_wide = hed_lift_has(l, "U64"), is_any = hed_sass_bits(l->inst, 79, 1);
    const char *a = is_wide ? hed_lift_u64(l, s) : hed_lift_word(l, s);
    const char *mask = running_mask(l), *t = hed_lift_temp(l, 't');
    const char *p = is_any ? NULL : hed_lift_def_pred(l, 81);

    hed_lift_put(l, "match.%s.sync.b%d %s%s%s, %s, %s", is_any ? "any" : "all", is_wide ? 64 : 32,
                 t, p ? "|" : "", p ? p : "", a, mask);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), t);
}

void
hed_lift_reduce(struct lift *l)
{
    static const char *const ops[] = {"and", "or", "xor", "add", "min", "max", NULL, NULL};
    const unsigned code = (unsigned)hed_sass_bits(l->inst, 78, 3);
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1)), *mask = running_mask(l), *type;

    if (!ops[code]) {
        hed_lift_refuse(l, "a reduction that is not known");
        return;
    }
    type = code < 3 ? "b32" : hed_lift_has(l, "S32") ? "s32" : "u32";
    hed_lift_put(l, "redux.sync.%s.%s %s, %s, %s", ops[code], type,
                 hed_lift_def(l, hed_lift_operand(l, 0)), a, mask);
}

/* ATOMS.POPC.INC: lanes with the same address add their number to it at once, and each of them gets
 * what was there before. Here the lowest of them does so. */
void
hed_lift_count_lanes(struct lift *l, const char *at, const char *index)
{
    const char *mask = running_lanes(l), *guard = hed_lift_guard(l), *same = mask;
    const char *count = hed_lift_temp(l, 't'), *reverse = hed_lift_temp(l, 't');
    const char *first = hed_lift_temp(l, 't'), *lane = hed_lift_temp(l, 't');
    const char *is_first = hed_lift_temp(l, 'x'), *old = hed_lift_temp(l, 't');
    const char *t = hed_lift_temp(l, 't');

    if (index) {
        same = hed_lift_temp(l, 't');
        hed_lift_put(l, "match.any.sync.b32 %s, %s, %s", same, index, mask);
    }
    hed_lift_calc(l, "popc.b32 %s, %s", count, same);
    hed_lift_calc(l, "brev.b32 %s, %s", reverse, same);
    hed_lift_calc(l, "clz.b32 %s, %s", first, reverse);
    hed_lift_calc(l, "mov.u32 %s, %%laneid", lane);
    if (guard)
        hed_lift_calc(l, "setp.eq.and.u32 %s, %s, %s, %s", is_first, lane, first, guard);
    else
        hed_lift_calc(l, "setp.eq.u32 %s, %s, %s", is_first, lane, first);
    hed_lift_calc(l, "@%s atom.shared.add.u32 %s, [%s], %s", is_first, old, at, count);
    hed_lift_put(l, "shfl.sync.idx.b32 %s, %s, %s, 0x1f, %s", t, old, first, mask);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), t);
}

/* R2UR: the value of the lowest lane. The predicate says where a lane's own differs; with .OR, also
 * where it was true before, so that both halves of a value are compared. */
void
hed_lift_to_uniform(struct lift *l)
{
    const char *a = hed_lift_word(l, hed_lift_operand(l, 1)), *mask, *lane, *reverse, *t, *p;
    const unsigned reg = (unsigned)hed_sass_bits(l->inst, 81, 3);
    const bool adds = hed_lift_has(l, "OR") && reg != HED_SASS_PT;
    struct members m;

    if (adds)
        l->pred_uses[l->index] |= (uint16_t)(1u << lift_pred_bit(reg, false));
    mask = running_lanes(l);
    m = find_members(l);
    reverse = hed_lift_temp(l, 't');
    lane = hed_lift_temp(l, 't');
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "brev.b32 %s, %s", reverse, mask);
    hed_lift_calc(l, "clz.b32 %s, %s", lane, reverse);
    hed_lift_put(l, "shfl%s.idx.b32 %s, %s, %s, 0x1f%s", m.sync, t, a, lane, m.mask);
    p = hed_lift_def_pred(l, 81);
    if (p && adds)
        hed_lift_put(l, "setp.ne.or.b32 %s, %s, %s, %s", p, a, t, p);
    else if (p)
        hed_lift_put(l, "setp.ne.b32 %s, %s, %s", p, a, t);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), t);
}

/* ELECT: the lowest of the lanes that run it. */
void
hed_lift_elect(struct lift *l)
{
    const char *mask = running_lanes(l), *lane = hed_lift_temp(l, 't'), *p;
    const char *x = hed_lift_temp(l, 'x'), *low = hed_lift_temp(l, 't');
    bool constant;

    if (hed_lift_pred(l, 87, &constant) || !constant || hed_lift_has(l, "IGNOREKILL")) {
        hed_lift_refuse(l, "an election with a predicate");
        return;
    }
    hed_lift_calc(l, "mov.u32 %s, %%lanemask_lt", lane);
    hed_lift_calc(l, "and.b32 %s, %s, %s", low, lane, mask);
    hed_lift_calc(l, "setp.eq.u32 %s, %s, 0", x, low);

    const char *reverse = hed_lift_temp(l, 't'), *leader = hed_lift_temp(l, 't');

    hed_lift_calc(l, "brev.b32 %s, %s", reverse, mask);
    hed_lift_calc(l, "clz.b32 %s, %s", leader, reverse);
    p = hed_lift_def_pred(l, 81);
    if (p)
        hed_lift_put(l, "mov.pred %s, %s", p, x);
    hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def(l, hed_lift_operand(l, 0)), leader);
}

/* WARPSYNC. Since sm_90 .COLLECTIVE and .EXCLUSIVE begin code that the lanes of one mask run
 * together while others, with other masks, do not; ENDCOLLECTIVE or BSYNC ends it.
 *
 * Compilers make functions of WARPSYNC R, an instruction on lanes or two, and RET, for lanes that
 * may come from several places. Such a function is copied to all of them, so these instructions
 * must meet again, with the same mask. */
void
hed_lift_meet(struct lift *l)
{
    const bool groups = hed_lift_arch(l) >= LIFT_HOPPER &&
                        (hed_lift_has(l, "COLLECTIVE") || hed_lift_has(l, "EXCLUSIVE"));
    const char *mask;
    bool constant;

    l->in_group = l->met = false;
    if (hed_lift_has(l, "ALL")) {
        hed_lift_put(l, "bar.warp.sync 0xffffffff");
        return;
    }
    if (hed_lift_pred(l, 87, &constant) || !constant)
        hed_lift_refuse(l, "a meeting with a predicate");
    mask = hed_lift_word(l, hed_lift_operand(l, 0));
    hed_lift_put(l, "bar.warp.sync %s", mask);
    if (!groups && (l->guarded || hed_lift_operand(l, 0)->kind != HED_SASS_REG))
        return;
    if (l->guarded)
        hed_lift_refuse(l, "a meeting with a predicate");
    hed_lift_put(l, "mov.b32 %%members, %s", mask);
    l->in_group = groups;
    l->met = true;
}

void
hed_lift_end_group(struct lift *l)
{
    l->in_group = l->met = false;
}

/* ---- barriers -------------------------------------------------------------------------------- */

struct barrier {
    const char *id;
    const char *count; /* ", 64", or "" for all threads of the block */
};

/* The number and the count; a register can hold both: 0 to 3 and 16 to 27. */
static struct barrier
find_barrier(struct lift *l)
{
    const struct hed_sass_operand *id = hed_lift_operand(l, 0), *count = hed_lift_operand(l, 1);
    struct barrier b = {.count = ""};
    const char *w, *n;

    if (id->kind != HED_SASS_REG) {
        b.id = id->kind == HED_SASS_HEX ? hed_lift_word(l, id) : "0";
        if (count->kind != HED_SASS_REG || count->reg != HED_SASS_RZ)
            b.count = hed_lift_text(l, ", %s", hed_lift_word(l, count));
        return b;
    }
    w = hed_lift_word(l, id);
    b.id = hed_lift_temp(l, 't');
    hed_lift_calc(l, "and.b32 %s, %s, 15", b.id, w);
    if (count->kind == HED_SASS_REG && count->reg == id->reg) {
        n = hed_lift_temp(l, 't');
        hed_lift_calc(l, "bfe.u32 %s, %s, 16, 12", n, w);
        b.count = hed_lift_text(l, ", %s", n);
    } else if (count->kind == HED_SASS_HEX) {
        b.count = hed_lift_text(l, ", %s", hed_lift_word(l, count));
    }
    return b;
}

static void
put_barrier_red(struct lift *l, const struct barrier *b)
{
    static const char *const ops[] = {"popc", "and", "or", NULL};
    const char *op = ops[hed_sass_bits(l->inst, 74, 2)], *x;
    bool constant;
    const char *p = hed_lift_pred(l, 87, &constant);

    if (!op) {
        hed_lift_refuse(l, "a barrier that is not known");
        return;
    }
    if (!p) {
        p = hed_lift_temp(l, 'x');
        hed_lift_calc(l, "setp.%s.b32 %s, 0, 0", constant ? "eq" : "ne", p);
    }
    if (op[0] == 'p') {
        hed_lift_put(l, "bar.red.popc.u32 %%result, %s%s, %s", b->id, b->count, p);
        return;
    }
    x = hed_lift_temp(l, 'x');
    hed_lift_put(l, "bar.red.%s.pred %s, %s%s, %s", op, x, b->id, b->count, p);
    hed_lift_put(l, "selp.b32 %%result, -1, 0, %s", x);
}

void
hed_lift_barrier(struct lift *l)
{
    const struct barrier b = find_barrier(l);

    switch (hed_sass_bits(l->inst, 77, 3)) {
    case 0: /* SYNC */
    case 4: /* SYNCALL */
        hed_lift_put(l, "bar.sync %s%s", b.id, b.count);
        break;
    case 1:
        if (b.count[0])
            hed_lift_put(l, "bar.arrive %s%s", b.id, b.count);
        else
            hed_lift_refuse(l, "an arrival without a count");
        break;
    case 2:
        put_barrier_red(l, &b);
        break;
    default:
        hed_lift_refuse(l, "a barrier that is not known");
        break;
    }
}

void
hed_lift_cluster_arrive(struct lift *l)
{
    hed_lift_put(l, "barrier.cluster.arrive");
}

void
hed_lift_cluster_wait(struct lift *l)
{
    hed_lift_put(l, "barrier.cluster.wait");
}

/* What the last barrier with a question answered. */
void
hed_lift_barrier_result(struct lift *l)
{
    const char *p = hed_lift_def_pred(l, 81);

    if (p)
        hed_lift_put(l, "setp.ne.b32 %s, %%result, 0", p);
    hed_lift_put(l, "mov.b32 %s, %%result", hed_lift_def(l, hed_lift_operand(l, 0)));
}

/* ---- the rest -------------------------------------------------------------------------------- */

void
hed_lift_sleep(struct lift *l)
{
    const struct hed_sass_operand *o = hed_lift_operand(l, 0);
    bool constant;

    if (hed_lift_pred(l, 87, &constant) || !constant)
        return; /* it is a hint */
    if (!hed_lift_has(l, "CLEAR"))
        hed_lift_put(l, "nanosleep.u32 %s", hed_lift_word(l, o));
}

void
hed_lift_trap(struct lift *l)
{
    if (hed_lift_has(l, "TRAP"))
        hed_lift_put(l, "trap");
    else if (hed_lift_has(l, "INT"))
        hed_lift_put(l, "brkpt");
}

void
hed_lift_wait_for_grid(struct lift *l)
{
    hed_lift_put(l, "griddepcontrol.wait");
}

void
hed_lift_launch_dependents(struct lift *l)
{
    hed_lift_put(l, "griddepcontrol.launch_dependents");
}

/* The place of the instruction or, since sm_90, of another one. Only returns are computed from it,
 * and most of those know where to go. */
void
hed_lift_own_place(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    uint32_t place = l->index;
    uint64_t target;

    if (hed_sass_target(l->inst, 0, &target))
        place = hed_lift_target(l, l->inst, l->index);
    if (place == LIFT_NONE) {
        hed_lift_refuse(l, "a place outside of the code");
        return;
    }
    hed_lift_put(l, "mov.b32 %s, 0x%x", hed_lift_def_nth(l, d, 0),
                 hed_lift_place_number(&l->code, place));
    hed_lift_put(l, "mov.b32 %s, 0", hed_lift_def_nth(l, d, 1));
}
