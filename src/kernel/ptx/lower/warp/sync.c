/* Operations among the lanes of a warp, barriers of the block, and calls. All lanes' values are at
 * hand, so a warp operation is plain code or one call of a function without state
 * (kernel/ptx/run/warp.h).
 */
#include <stddef.h>

#include "base/number.h"
#include "kernel/ptx/lower/warp/warp.h"

static LLVMValueRef
count_bits(struct hed_lower *l, LLVMValueRef bits)
{
    return hed_lower_intrinsic(l, "llvm.ctpop", l->i32, &bits, 1);
}

/* Waits for the lanes of the mask; the old forms without a mask wait for none. Returns the mask
 * after the meeting: i32, with lanes. */
static LLVMValueRef
meet_lanes(struct hed_lower *l, LLVMValueRef mask)
{
    struct warp_kept kept;

    if (!mask)
        return hed_lower_splat(l, hed_lower_warp_running(l));
    kept = hed_lower_warp_keep(l, mask);
    hed_lower_warp_meet(l, &kept);
    return hed_lower_warp_kept(l, &kept);
}

/* ---- barriers -------------------------------------------------------------------------------- */

/* Waits for all lanes of the warp that have not ended and do not wait at another barrier. */
static void
meet_at_barrier(struct hed_lower *l, LLVMValueRef *id, LLVMValueRef *threads)
{
    struct warp_kept kept[] = {hed_lower_warp_keep(l, *id), hed_lower_warp_keep(l, *threads)};

    hed_lower_warp_meet(l, NULL);
    *id = hed_lower_warp_first(l, hed_lower_warp_kept(l, &kept[0]));
    *threads = hed_lower_warp_first(l, hed_lower_warp_kept(l, &kept[1]));
    l->info.flags |= HED_PTX_WAITS;
}

void
hed_lower_warp_barrier(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads)
{
    meet_at_barrier(l, &id, &threads);

    LLVMValueRef args[] = {l->function->warp, id, threads,
                           count_bits(l, hed_lower_warp_running(l))};

    hed_lower_runtime(l, "hed_rt_barrier", l->nothing, args, 4);
}

void
hed_lower_warp_barrier_arrive(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads)
{
    meet_at_barrier(l, &id, &threads);

    LLVMValueRef args[] = {l->function->warp, id, threads,
                           count_bits(l, hed_lower_warp_running(l))};

    hed_lower_runtime(l, "hed_rt_barrier_arrive", l->nothing, args, 4);
}

LLVMValueRef
hed_lower_warp_barrier_reduce(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads,
                              LLVMValueRef predicate, enum hed_rt_reduce op)
{
    struct warp_kept kept = hed_lower_warp_keep(l, predicate);
    LLVMValueRef running, trues;

    meet_at_barrier(l, &id, &threads);
    running = hed_lower_warp_running(l);
    trues = LLVMBuildAnd(l->b, running, hed_lower_warp_pack(l, hed_lower_warp_kept(l, &kept)), "");

    LLVMValueRef args[] = {
        l->function->warp,    id, threads, count_bits(l, running), count_bits(l, trues),
        hed_lower_word(l, op)};

    return hed_lower_splat(l, hed_lower_runtime(l, "hed_rt_barrier_reduce", l->i32, args, 6));
}

/* ---- shuffles -------------------------------------------------------------------------------- */

static bool
is_same_constant(LLVMValueRef v, uint64_t *value)
{
    LLVMValueRef first;

    if (!LLVMIsConstant(v))
        return false;
    first = LLVMGetAggregateElement(v, 0);
    for (unsigned i = 1; i < HED_PTX_LANES; i++)
        if (LLVMGetAggregateElement(v, i) != first)
            return false;
    if (!first || !LLVMIsAConstantInt(first))
        return false;
    *value = LLVMConstIntGetZExtValue(first);
    return true;
}

/* Both operands are constants, and so is the whole pattern. */
static LLVMValueRef
shuffle_fixed(struct hed_lower *l, enum hed_rt_shfl mode, LLVMValueRef value, uint64_t b,
              uint64_t c, LLVMValueRef *inside)
{
    uint32_t bs[HED_PTX_LANES], cs[HED_PTX_LANES], iota[HED_PTX_LANES], from[HED_PTX_LANES];
    LLVMValueRef picks[HED_PTX_LANES], flags[HED_PTX_LANES];
    uint32_t bits;

    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        bs[i] = (uint32_t)b;
        cs[i] = (uint32_t)c;
        iota[i] = i;
    }
    bits = hed_warp_shfl(mode, iota, bs, cs, from);
    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        picks[i] = hed_lower_word(l, from[i]);
        flags[i] = LLVMConstInt(l->i1, bits >> i & 1, false);
    }
    *inside = LLVMConstVector(flags, HED_PTX_LANES);
    return LLVMBuildShuffleVector(l->b, value, LLVMGetPoison(LLVMTypeOf(value)),
                                  LLVMConstVector(picks, HED_PTX_LANES), "");
}

/* Loads the vector that a function stored in an array. */
static LLVMValueRef
load_lane_words(struct hed_lower *l, LLVMValueRef array)
{
    LLVMValueRef v = LLVMBuildLoad2(l->b, LLVMVectorType(l->i32, HED_PTX_LANES), array, "");

    LLVMSetAlignment(v, 16); /* like hed_lower_warp_array; a vector's default would be 128 */
    return v;
}

LLVMValueRef
hed_lower_warp_shfl(struct hed_lower *l, enum hed_rt_shfl mode, LLVMValueRef value, LLVMValueRef b,
                    LLVMValueRef c, LLVMValueRef mask, LLVMValueRef *inside)
{
    struct warp_kept kept[] = {hed_lower_warp_keep(l, value), hed_lower_warp_keep(l, b),
                               hed_lower_warp_keep(l, c)};
    uint64_t by, within;
    LLVMValueRef out, bits;

    (void)meet_lanes(l, mask);
    value = hed_lower_warp_kept(l, &kept[0]);
    if (is_same_constant(b, &by) && is_same_constant(c, &within))
        return shuffle_fixed(l, mode, value, by, within, inside);
    out = hed_lower_warp_array(l, l->i32, NULL);

    LLVMValueRef args[] = {hed_lower_word(l, mode), hed_lower_warp_array(l, l->i32, value),
                           hed_lower_warp_array(l, l->i32, hed_lower_warp_kept(l, &kept[1])),
                           hed_lower_warp_array(l, l->i32, hed_lower_warp_kept(l, &kept[2])), out};

    bits = hed_lower_runtime(l, "hed_warp_shfl", l->i32, args, 5);
    *inside = hed_lower_warp_unpack(l, bits);
    return load_lane_words(l, out);
}

/* ---- votes and reductions -------------------------------------------------------------------- */

LLVMValueRef
hed_lower_warp_vote(struct hed_lower *l, enum hed_rt_vote mode, LLVMValueRef predicate,
                    LLVMValueRef mask)
{
    struct warp_kept kept = hed_lower_warp_keep(l, predicate);
    LLVMValueRef members = meet_lanes(l, mask);
    LLVMValueRef running = hed_lower_warp_running(l);
    LLVMValueRef yes =
        LLVMBuildAnd(l->b, running, hed_lower_warp_pack(l, hed_lower_warp_kept(l, &kept)), "");
    LLVMValueRef here = LLVMBuildAnd(l->b, members, hed_lower_splat(l, running), "");
    LLVMValueRef said = LLVMBuildAnd(l->b, members, hed_lower_splat(l, yes), "");
    LLVMValueRef all = LLVMBuildICmp(l->b, LLVMIntEQ, said, here, "");
    LLVMValueRef none = LLVMBuildICmp(l->b, LLVMIntEQ, said, hed_lower_int(l, l->i32, 0), "");
    LLVMValueRef answer;

    switch (mode) {
    case HED_RT_VOTE_BALLOT:
        return said;
    case HED_RT_VOTE_ALL:
        answer = all;
        break;
    case HED_RT_VOTE_ANY:
        answer = LLVMBuildNot(l->b, none, "");
        break;
    default:
        answer = LLVMBuildOr(l->b, all, none, "");
        break;
    }
    return hed_lower_resize(l, answer, l->i32, false);
}

LLVMValueRef
hed_lower_warp_match(struct hed_lower *l, LLVMValueRef value64, LLVMValueRef mask,
                     LLVMValueRef *same)
{
    struct warp_kept kept = hed_lower_warp_keep(l, value64);
    LLVMValueRef members = meet_lanes(l, mask);
    LLVMValueRef out = hed_lower_warp_array(l, l->i32, NULL);
    LLVMValueRef args[] = {hed_lower_warp_array(l, l->i64, hed_lower_warp_kept(l, &kept)),
                           hed_lower_warp_array(l, l->i32, members), hed_lower_warp_running(l),
                           out};

    if (same)
        *same =
            hed_lower_warp_unpack(l, hed_lower_runtime(l, "hed_warp_match_all", l->i32, args, 4));
    else
        hed_lower_runtime(l, "hed_warp_match_any", l->nothing, args, 4);
    return load_lane_words(l, out);
}

LLVMValueRef
hed_lower_warp_redux(struct hed_lower *l, enum hed_rt_redux op, LLVMValueRef value,
                     LLVMValueRef mask)
{
    struct warp_kept kept = hed_lower_warp_keep(l, value);
    LLVMValueRef members = meet_lanes(l, mask);
    LLVMValueRef out = hed_lower_warp_array(l, l->i32, NULL);
    LLVMValueRef args[] = {
        hed_lower_word(l, op), hed_lower_warp_array(l, l->i32, hed_lower_warp_kept(l, &kept)),
        hed_lower_warp_array(l, l->i32, members), hed_lower_warp_running(l), out};

    hed_lower_runtime(l, "hed_warp_redux", l->nothing, args, 5);
    return load_lane_words(l, out);
}

LLVMValueRef
hed_lower_warp_activemask(struct hed_lower *l)
{
    return hed_lower_splat(l, hed_lower_warp_bits(l));
}

LLVMValueRef
hed_lower_warp_elect(struct hed_lower *l, LLVMValueRef mask, LLVMValueRef *elected)
{
    LLVMValueRef members = meet_lanes(l, mask);
    LLVMValueRef here =
        LLVMBuildAnd(l->b, members, hed_lower_splat(l, hed_lower_warp_running(l)), "");
    LLVMValueRef args[] = {here, LLVMConstInt(l->i1, 0, false)};
    LLVMValueRef leader =
        hed_lower_intrinsic(l, "llvm.cttz", LLVMVectorType(l->i32, HED_PTX_LANES), args, 2);

    *elected = LLVMBuildICmp(l->b, LLVMIntEQ, leader, hed_lower_warp_iota(l, l->i32, 1), "");
    return leader;
}

void
hed_lower_warp_sync(struct hed_lower *l, LLVMValueRef mask)
{
    (void)meet_lanes(l, mask);
}

/* ---- helpers that get the data of all lanes -------------------------------------------------- */

#define WORDS_MAX 64

/* Pointers to the words of each running lane; NULL for the others. */
static LLVMValueRef
point_to_words(struct hed_lower *l, LLVMValueRef data, LLVMValueRef bits)
{
    LLVMTypeRef wide = LLVMVectorType(l->i64, HED_PTX_LANES);
    LLVMValueRef pointers = hed_lower_alloca(l, wide, 1, HED_LOWER_LINE);
    LLVMValueRef base = hed_lower_splat(l, LLVMBuildPtrToInt(l->b, data, l->i64, ""));
    LLVMValueRef own =
        LLVMBuildLShr(l->b, hed_lower_splat(l, bits), hed_lower_warp_iota(l, l->i32, 1), "");
    LLVMValueRef runs = LLVMBuildTrunc(l->b, own, LLVMVectorType(l->i1, HED_PTX_LANES), "");
    LLVMValueRef all = LLVMBuildAdd(l->b, base, hed_lower_warp_iota(l, l->i64, 4), "");
    LLVMValueRef store =
        LLVMBuildStore(l->b, LLVMBuildSelect(l->b, runs, all, LLVMConstNull(wide), ""), pointers);

    LLVMSetAlignment(store, 16);
    return pointers;
}

void
hed_lower_warp_together(struct hed_lower *l, const char *helper, LLVMValueRef mask, uint64_t arg,
                        LLVMValueRef *in, unsigned nin, LLVMValueRef *out, unsigned nout)
{
    LLVMTypeRef types[] = {l->ptr, l->i32, l->i64};
    LLVMTypeRef type = LLVMFunctionType(l->nothing, types, 3, false);
    LLVMTypeRef lanes = LLVMVectorType(l->i32, HED_PTX_LANES);
    const int64_t step = 4 * HED_PTX_LANES;
    struct warp_kept kept[WORDS_MAX];
    LLVMValueRef data, bits;

    if (nin > WORDS_MAX) {
        hed_lower_refuse(l, "warp shape: too many operands");
        return;
    }
    for (unsigned i = 0; i < nin; i++)
        kept[i] = hed_lower_warp_keep(l, in[i]);
    (void)meet_lanes(l, mask);
    bits = hed_lower_warp_running(l);
    /* The words lie as registers do, the first words of all lanes first: HED_RT_STRIDED. */
    data = hed_lower_alloca(l, lanes, (uint64_t)nin + nout + 1, HED_LOWER_LINE);
    for (unsigned i = 0; i < nin; i++)
        LLVMSetAlignment(
            LLVMBuildStore(l->b, hed_lower_warp_kept(l, &kept[i]), hed_lower_at(l, data, step * i)),
            16);

    LLVMValueRef args[] = {point_to_words(l, data, bits), bits,
                           LLVMConstInt(l->i64, arg | HED_RT_STRIDED, false)};

    LLVMBuildCall2(l->b, type, hed_lower_external(l, helper, type), args, 3, "");
    for (unsigned i = 0; i < nout; i++) {
        out[i] = LLVMBuildLoad2(l->b, lanes, hed_lower_at(l, data, step * (nin + i)), "");
        LLVMSetAlignment(out[i], 16);
    }
}

void
hed_lower_warp_nanosleep(struct hed_lower *l, LLVMValueRef ns)
{
    LLVMValueRef args[] = {l->function->warp, hed_lower_warp_first(l, ns)};

    l->info.flags |= HED_PTX_WAITS | HED_PTX_GRID;
    hed_lower_runtime(l, "hed_rt_nanosleep", l->nothing, args, 2);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The size in bytes of a lane's parameters or results; 0 if it is not fixed. */
static uint64_t
block_size(const struct hed_ptx_var *v)
{
    uint64_t size = 1;

    for (; v; v = v->next) {
        if (v->unsized)
            return 0;
        size = v->offset + v->size;
    }
    return hed_round_up(size, 16);
}

/* Copies each lane's copy of a variable to its block of parameters, or back. */
static void
copy_variable(struct hed_lower *l, const struct hed_ptx_operand *o, uint64_t size,
              LLVMValueRef block, uint64_t stride, bool is_in)
{
    const uint64_t own = (uintptr_t)hed_lower_map_get(hed_lower_warp_state(l)->strides, o->var);
    LLVMValueRef base = hed_lower_map_get(l->function->vars, o->var);
    LLVMValueRef bytes = LLVMConstInt(l->i64, size, false);
    struct warp_loop loop;

    if (!base) {
        hed_lower_refuse(l, "variable %s does not belong to this function", o->var->name);
        return;
    }
    if (!hed_lower_reaches(l, o->offset))
        return;
    hed_lower_warp_loop_begin(l, hed_lower_warp_bits(l), &loop);

    LLVMValueRef there = LLVMBuildMul(l->b, loop.lane, hed_lower_word(l, stride), "");
    LLVMValueRef here = LLVMBuildMul(l->b, loop.lane, hed_lower_word(l, own), "");
    LLVMValueRef to = LLVMBuildGEP2(l->b, l->i8, block, &there, 1, "");
    LLVMValueRef from = LLVMBuildGEP2(l->b, l->i8, hed_lower_at(l, base, o->offset), &here, 1, "");

    if (is_in)
        LLVMBuildMemCpy(l->b, to, 1, from, 1, bytes);
    else
        LLVMBuildMemCpy(l->b, from, 1, to, 1, bytes);
    hed_lower_warp_loop_end(l, &loop);
}

/* The place of each lane's value in its block. */
static struct hed_lower_place
place_in_block(struct hed_lower *l, LLVMValueRef block, uint64_t stride)
{
    LLVMValueRef base = hed_lower_splat(l, LLVMBuildPtrToInt(l->b, block, l->i64, ""));

    return (struct hed_lower_place){
        .address = LLVMBuildAdd(l->b, base, hed_lower_warp_iota(l, l->i64, stride), "")};
}

static void
move_call_values(struct hed_lower *l, const struct hed_ptx_var *formal,
                 const struct hed_ptx_operand *list, LLVMValueRef block, uint64_t stride,
                 bool is_in)
{
    for (uint32_t i = 0; formal && i < list->count && !l->err; i++, formal = formal->next) {
        const struct hed_ptx_operand *o = &list->elems[i];
        LLVMValueRef at = hed_lower_at(l, block, (int64_t)formal->offset);
        LLVMTypeRef t = hed_lower_int_type(l, formal->type);
        const bool is_vector = formal->space == HED_PTX_SPACE_REG && formal->vec;
        const struct hed_lower_access how = {
            .type = t == l->i1 ? l->i8 : t, .count = is_vector ? formal->vec : 1, .align = 1};
        const struct hed_lower_place place = place_in_block(l, at, stride);
        LLVMValueRef v[HED_LOWER_ELEMENTS_MAX];

        if (o->kind == HED_PTX_OPERAND_VAR && o->var->space == HED_PTX_SPACE_PARAM) {
            copy_variable(l, o, formal->size, at, stride, is_in);
            continue;
        }
        if (!is_in)
            hed_lower_warp_load(l, &place, &how, v);
        for (unsigned k = 0; k < how.count; k++) {
            const struct hed_ptx_operand e = hed_ptx_nth_element(o, k);

            if (is_in)
                v[k] = hed_lower_resize(l, hed_lower_get(l, &e, formal->type), how.type, false);
            else
                hed_lower_set(l, &e, formal->type, hed_lower_resize(l, v[k], t, false));
        }
        if (is_in)
            hed_lower_warp_store(l, &place, &how, v);
    }
}

void
hed_lower_warp_do_call(struct hed_lower *l, const struct hed_ptx_func *callee, LLVMValueRef pointer,
                       const struct hed_ptx_sig *sig, const struct hed_ptx_operand *rets,
                       const struct hed_ptx_operand *args)
{
    const uint64_t in = block_size(sig->params);
    const uint64_t out = block_size(sig->rets);
    LLVMValueRef values[] = {l->function->warp, NULL, NULL, NULL};
    LLVMValueRef f;

    if (!callee || pointer || !in || !out) {
        hed_lower_refuse(l,
                         "warp shape: a call through a pointer or with arguments of unknown size");
        return;
    }
    values[2] = hed_lower_local(l, out * HED_PTX_LANES, 16);
    values[3] = hed_lower_local(l, in * HED_PTX_LANES, 16);
    move_call_values(l, sig->params, args, values[3], in, true);
    f = hed_lower_map_get(l->functions, callee);
    if (l->err || !f)
        return;
    values[1] = hed_lower_warp_bits(l);
    LLVMBuildCall2(l->b, hed_lower_warp_type(l, false), f, values, 4, "");
    move_call_values(l, sig->rets, rets, values[2], out, false);
}
