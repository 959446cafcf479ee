/* Loads and stores of the warp shape.
 *
 * Addresses differ between lanes but are mostly consecutive. So loads and stores call functions in
 * the module, one for each kind of access, which are made on first use. Such a function tests
 * whether all lanes run and their addresses are consecutive. If so, it moves one long vector; else
 * it goes lane by lane. (LLVM's own gathers are one branch per lane at every use.)
 */
#include <stdio.h>

#include "base/number.h"
#include "kernel/ptx/lower/warp/rows.h"
#include "kernel/ptx/lower/warp/warp.h"

unsigned
hed_lower_warp_bytes(LLVMTypeRef t)
{
    return LLVMGetIntTypeWidth(t) / 8;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static LLVMValueRef
warp_variable(struct hed_lower *l, const struct hed_lower_place *at)
{
    LLVMValueRef base = hed_lower_map_get(l->function->vars, at->var);

    if (!base) {
        hed_lower_refuse(l, "variable %s does not belong to this function", at->var->name);
        return LLVMGetPoison(l->ptr);
    }
    return hed_lower_at(l, base, hed_lower_reaches(l, at->offset) ? at->offset : 0);
}

static uint64_t
variable_stride(struct hed_lower *l, const struct hed_ptx_var *v)
{
    const struct warp *w = hed_lower_warp_state(l);

    return (uintptr_t)hed_lower_map_get(w->strides, v);
}

LLVMValueRef
hed_lower_warp_address(struct hed_lower *l, const struct hed_lower_place *at)
{
    LLVMValueRef base;

    if (at->address)
        return at->address;
    if (at->first)
        return LLVMBuildAdd(l->b, hed_lower_splat(l, at->first),
                            hed_lower_warp_iota(l, l->i64, (uint64_t)at->step), "");
    if (at->reg)
        return hed_lower_place_address(l, at);
    base = at->base ? hed_lower_at(l, at->base, at->offset) : warp_variable(l, at);
    base = hed_lower_splat(l, LLVMBuildPtrToInt(l->b, base, l->i64, ""));
    if (at->base)
        return base;
    return LLVMBuildAdd(l->b, base, hed_lower_warp_iota(l, l->i64, variable_stride(l, at->var)),
                        "");
}

/* ---- an access of one lane ------------------------------------------------------------------- */

/* The claim about the alignment is for element 0. */
static void
warp_qualify(LLVMValueRef v, const struct hed_lower_access *how, unsigned i)
{
    unsigned own = hed_lower_warp_bytes(how->type);

    LLVMSetVolatile(v, how->is_volatile);
    if (how->order != LLVMAtomicOrderingNotAtomic)
        LLVMSetOrdering(v, how->order);
    else if (i > 0)
        own = 1;
    LLVMSetAlignment(v, i > 0 && own < how->align ? own : how->align ? how->align : 1);
}

static LLVMValueRef
load_element(struct hed_lower *l, LLVMValueRef at, const struct hed_lower_access *how, unsigned i)
{
    LLVMValueRef v = LLVMBuildLoad2(
        l->b, how->type, hed_lower_at(l, at, (int64_t)i * hed_lower_warp_bytes(how->type)), "");

    warp_qualify(v, how, i);
    return v;
}

static void
store_element(struct hed_lower *l, LLVMValueRef at, const struct hed_lower_access *how, unsigned i,
              LLVMValueRef v)
{
    LLVMValueRef s =
        LLVMBuildStore(l->b, v, hed_lower_at(l, at, (int64_t)i * hed_lower_warp_bytes(how->type)));

    warp_qualify(s, how, i);
}

/* ---- the functions for a kind of access ------------------------------------------------------ */

/* void f(addresses, bits, data, warp, line, base): data is `count` arrays of 32 elements.
 * Instead of addresses there may be the first one, and a step that the function knows; or offsets
 * of 32 bits into shared memory, whose base is passed then. Else the base is the sandbox. */
struct mover {
    LLVMValueRef addresses, bits, data, warp, line;
    LLVMValueRef first;  /* i64, or NULL */
    LLVMValueRef shared; /* ptr, or NULL */
    int64_t step;
    const struct hed_lower_access *how;
    bool is_store;
    bool checked; /* the addresses are known to be aligned */
};

static LLVMValueRef
mover_data(struct hed_lower *l, const struct mover *m, unsigned element, LLVMValueRef lane)
{
    LLVMValueRef array = hed_lower_at(
        l, m->data, (int64_t)element * HED_PTX_LANES * hed_lower_warp_bytes(m->how->type));

    return lane ? LLVMBuildGEP2(l->b, m->how->type, array, &lane, 1, "") : array;
}

/* Calls hed_rt_trap if an address is misaligned. lane is i32. */
static void
check_aligned(struct hed_lower *l, const struct mover *m, LLVMValueRef address, LLVMValueRef lane)
{
    LLVMValueRef args[] = {m->warp, hed_lower_word(l, HED_PTX_TRAP_ALIGN), m->line};
    LLVMBasicBlockRef bad, good;
    LLVMValueRef low;

    if (m->how->align < 2 || m->checked || !l->options->check_alignment)
        return;
    bad = hed_lower_block(l, "");
    good = hed_lower_block(l, "");
    low = LLVMBuildAnd(l->b, address, LLVMConstInt(l->i64, m->how->align - 1, false), "");
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, low, ""), good, bad);
    LLVMPositionBuilderAtEnd(l->b, bad);
    LLVMBuildStore(l->b, lane, hed_lower_at(l, m->warp, offsetof(struct hed_ptx_warp, lane)));
    hed_lower_trap(l, args);
    LLVMPositionBuilderAtEnd(l->b, good);
}

static LLVMValueRef
lane_address(struct hed_lower *l, const struct mover *m, LLVMValueRef lane)
{
    LLVMValueRef wide;

    if (m->shared) {
        wide = LLVMBuildGEP2(l->b, l->i32, m->addresses, &lane, 1, "");
        wide = LLVMBuildZExt(l->b, LLVMBuildLoad2(l->b, l->i32, wide, ""), l->i64, "");
        return LLVMBuildAdd(l->b, LLVMBuildPtrToInt(l->b, m->shared, l->i64, ""), wide, "");
    }
    if (!m->first)
        return LLVMBuildLoad2(l->b, l->i64, LLVMBuildGEP2(l->b, l->i64, m->addresses, &lane, 1, ""),
                              "");
    wide = LLVMBuildZExt(l->b, lane, l->i64, "");
    return LLVMBuildAdd(l->b, m->first,
                        LLVMBuildMul(l->b, wide, LLVMConstInt(l->i64, (uint64_t)m->step, true), ""),
                        "");
}

/* Moves the elements of one lane. lane is i32. */
static void
move_lane(struct hed_lower *l, const struct mover *m, LLVMValueRef lane)
{
    LLVMValueRef address = lane_address(l, m, lane);
    LLVMValueRef at = hed_lower_pointer(l, address);

    check_aligned(l, m, address, lane);
    for (unsigned k = 0; k < m->how->count; k++) {
        const unsigned i = m->is_store ? k : hed_lower_nth_load(m->how, k);
        LLVMValueRef mine = mover_data(l, m, i, lane);

        if (m->is_store)
            store_element(l, at, m->how, i, LLVMBuildLoad2(l->b, m->how->type, mine, ""));
        else
            LLVMBuildStore(l->b, load_element(l, at, m->how, i), mine);
    }
}

/* Loads with an order begin with the last lane, as in hed_lower_nth_load(): a flag at the end of
 * what a warp stores is read first. */
static void
move_lane_by_lane(struct hed_lower *l, const struct mover *m)
{
    const bool down = !m->is_store && m->how->order != LLVMAtomicOrderingNotAtomic;
    LLVMValueRef bits = m->bits;
    struct warp_loop loop;

    if (down)
        bits = hed_lower_intrinsic(l, "llvm.bitreverse", l->i32, &bits, 1);
    hed_lower_warp_loop_begin(l, bits, &loop);
    move_lane(l, m, down ? LLVMBuildXor(l->b, hed_lower_word(l, 31), loop.lane, "") : loop.lane);
    hed_lower_warp_loop_end(l, &loop);
}

/* Are the elements of a lane moved by one access each? See rows.c. */
static bool
moves_whole_rows(const struct mover *m)
{
    const struct hed_lower_access *how = m->how;

    return hed_lower_has_rows(how->type, how->count) && !how->is_volatile &&
           how->order == LLVMAtomicOrderingNotAtomic;
}

/* The addresses are known to be aligned. */
static void
move_rows(struct hed_lower *l, const struct mover *m, unsigned first)
{
    LLVMTypeRef some = LLVMVectorType(m->how->type, HED_LOWER_ROWS);
    LLVMValueRef at[HED_LOWER_ROWS], v[HED_LOWER_ROWS_ELEMENTS];
    LLVMValueRef lane = hed_lower_word(l, first);
    const unsigned align = HED_LOWER_ROWS * hed_lower_warp_bytes(m->how->type);

    for (unsigned i = 0; i < HED_LOWER_ROWS; i++)
        at[i] = hed_lower_pointer(l, lane_address(l, m, hed_lower_word(l, first + i)));
    for (unsigned e = 0; m->is_store && e < m->how->count; e++) {
        v[e] = LLVMBuildLoad2(l->b, some, mover_data(l, m, e, lane), "");
        LLVMSetAlignment(v[e], hed_min(align, 16));
    }
    if (m->is_store)
        hed_lower_store_rows(l, at, m->how, v);
    else
        hed_lower_load_rows(l, at, m->how, v);
    for (unsigned e = 0; !m->is_store && e < m->how->count; e++)
        LLVMSetAlignment(LLVMBuildStore(l->b, v[e], mover_data(l, m, e, lane)), hed_min(align, 16));
}

/* All lanes run, but their addresses are not consecutive: no need to search for the next lane. */
static void
move_all_lanes(struct hed_lower *l, const struct mover *m)
{
    LLVMTypeRef each = m->shared ? l->i32 : l->i64, vector = LLVMVectorType(each, HED_PTX_LANES);
    struct mover unchecked = *m;
    const unsigned align = m->how->align;

    if (align > 1 && l->options->check_alignment) {
        LLVMValueRef a = LLVMBuildLoad2(l->b, vector, m->addresses, "");
        LLVMValueRef any;
        LLVMBasicBlockRef bad = hed_lower_block(l, "");
        LLVMBasicBlockRef good = hed_lower_block(l, "");

        LLVMSetAlignment(a, hed_lower_warp_bytes(each));
        any = hed_lower_intrinsic(l, "llvm.vector.reduce.or", vector, &a, 1);
        any = LLVMBuildAnd(l->b, any, LLVMConstInt(each, align - 1, false), "");
        LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, any, ""), good, bad);
        LLVMPositionBuilderAtEnd(l->b, bad);
        move_lane_by_lane(l, m); /* finds the misaligned lane and traps */
        LLVMBuildRetVoid(l->b);
        LLVMPositionBuilderAtEnd(l->b, good);
    }
    unchecked.checked = true;
    if (moves_whole_rows(m)) {
        for (unsigned i = 0; i < HED_PTX_LANES; i += HED_LOWER_ROWS)
            move_rows(l, &unchecked, i);
        return;
    }
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        move_lane(l, &unchecked, hed_lower_word(l, i));
}

/* The addresses are consecutive: moves one vector, which a shuffle takes apart or puts together if
 * there are several elements per lane. */
static void
move_consecutive(struct hed_lower *l, const struct mover *m, LLVMValueRef first)
{
    const unsigned n = m->how->count;
    const unsigned total = n * HED_PTX_LANES;
    LLVMTypeRef all = LLVMVectorType(m->how->type, total);
    LLVMValueRef at = hed_lower_pointer(l, first);
    LLVMValueRef picks[HED_PTX_LANES * HED_LOWER_ELEMENTS_MAX];
    LLVMValueRef v;

    if (!m->is_store) {
        v = LLVMBuildLoad2(l->b, all, at, "");
        LLVMSetAlignment(v, m->how->align ? m->how->align : 1);
        for (unsigned i = 0; i < n; i++) {
            LLVMValueRef one = hed_lower_elements(l, v, i, n, HED_PTX_LANES);

            LLVMSetAlignment(LLVMBuildStore(l->b, one, mover_data(l, m, i, NULL)),
                             hed_lower_warp_bytes(m->how->type));
        }
        return;
    }
    /* In data, element 0 of all lanes comes first: one load gets everything, one shuffle sorts
     * it. */
    v = LLVMBuildLoad2(l->b, all, m->data, "");
    LLVMSetAlignment(v, hed_lower_warp_bytes(m->how->type));
    for (unsigned k = 0; k < total; k++)
        picks[k] = hed_lower_word(l, k % n * HED_PTX_LANES + k / n);
    if (n > 1)
        v = LLVMBuildShuffleVector(l->b, v, LLVMGetPoison(all), LLVMConstVector(picks, total), "");
    LLVMSetAlignment(LLVMBuildStore(l->b, v, at), m->how->align ? m->how->align : 1);
}

/* The body for steps and for shared memory: all lanes one after the other, or those that run. */
static void
make_plain_body(struct hed_lower *l, struct mover m)
{
    LLVMBasicBlockRef full = hed_lower_block(l, "");
    LLVMBasicBlockRef part = hed_lower_block(l, "");
    const unsigned align = m.how->align ? m.how->align : 1;

    /* If the steps keep the alignment, the first address says it for all. */
    if (m.first && m.step % (int64_t)align == 0) {
        check_aligned(l, &m, m.first, hed_lower_warp_lowest(l, m.bits));
        m.checked = true;
    }
    LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, m.bits, hed_lower_word(l, UINT32_MAX), ""),
                    full, part);
    LLVMPositionBuilderAtEnd(l->b, full);
    if (m.shared)
        move_all_lanes(l, &m);
    for (unsigned i = 0; i < HED_PTX_LANES && !m.shared; i++)
        move_lane(l, &m, hed_lower_word(l, i));
    LLVMBuildRetVoid(l->b);
    LLVMPositionBuilderAtEnd(l->b, part);
    move_lane_by_lane(l, &m);
    LLVMBuildRetVoid(l->b);
}

static void
make_mover_body(struct hed_lower *l, const struct mover *m)
{
    LLVMBasicBlockRef full = hed_lower_block(l, "");
    LLVMBasicBlockRef row = hed_lower_block(l, "");
    LLVMBasicBlockRef scattered = hed_lower_block(l, "");
    LLVMBasicBlockRef slow = hed_lower_block(l, "");
    LLVMTypeRef vector = LLVMVectorType(l->i64, HED_PTX_LANES);
    const uint64_t step = (uint64_t)m->how->count * hed_lower_warp_bytes(m->how->type);
    const bool plain =
        m->how->order == LLVMAtomicOrderingNotAtomic && !m->how->is_volatile && m->how->count <= 4;

    if (plain) {
        LLVMBuildCondBr(l->b,
                        LLVMBuildICmp(l->b, LLVMIntEQ, m->bits, hed_lower_word(l, UINT32_MAX), ""),
                        full, slow);
        LLVMPositionBuilderAtEnd(l->b, full);

        LLVMValueRef a = LLVMBuildLoad2(l->b, vector, m->addresses, "");

        LLVMSetAlignment(a, 8);

        LLVMValueRef first = LLVMBuildExtractElement(l->b, a, hed_lower_word(l, 0), "");
        LLVMValueRef want =
            LLVMBuildAdd(l->b, hed_lower_splat(l, first), hed_lower_warp_iota(l, l->i64, step), "");
        LLVMValueRef off = LLVMBuildXor(l->b, a, want, "");
        LLVMValueRef any = hed_lower_intrinsic(l, "llvm.vector.reduce.or", vector, &off, 1);

        LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, any, ""), row, scattered);
        LLVMPositionBuilderAtEnd(l->b, scattered);
        move_all_lanes(l, m);
        LLVMBuildRetVoid(l->b);
        LLVMPositionBuilderAtEnd(l->b, row);
        check_aligned(l, m, first, hed_lower_word(l, 0));
        move_consecutive(l, m, first);
        LLVMBuildRetVoid(l->b);
    } else {
        LLVMBuildBr(l->b, slow);
        LLVMDeleteBasicBlock(full);
        LLVMDeleteBasicBlock(row);
        LLVMDeleteBasicBlock(scattered);
    }
    LLVMPositionBuilderAtEnd(l->b, slow);
    move_lane_by_lane(l, m);
    LLVMBuildRetVoid(l->b);
}

/* Are the addresses passed as offsets into shared memory? */
static bool
has_shared_offsets(const struct hed_lower_place *at)
{
    return at->is_shared && at->reg && !at->address && !at->first;
}

/* i32, lanes. */
static LLVMValueRef
shared_offsets(struct hed_lower *l, const struct hed_lower_place *at)
{
    const struct hed_ptx_operand reg = {.kind = HED_PTX_OPERAND_REG, .reg = at->reg};

    return LLVMBuildAdd(l->b, hed_lower_get(l, &reg, HED_PTX_TYPE_U32),
                        hed_lower_int(l, l->i32, (uint64_t)at->reg_offset), "");
}

/* The function for a kind of access, made on first use. */
static LLVMValueRef
find_mover(struct hed_lower *l, const struct hed_lower_place *at,
           const struct hed_lower_access *how, bool is_store, LLVMTypeRef *type)
{
    LLVMTypeRef types[] = {at->first ? l->i64 : l->ptr, l->i32, l->ptr, l->ptr, l->i32, l->ptr};
    struct hed_lower_function *caller = l->function;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
    char name[64];
    LLVMValueRef f;

    *type = LLVMFunctionType(l->nothing, types, 6, false);
    snprintf(name, sizeof(name), "%s%s.%ux%u.%u.%u.%u.%lld", is_store ? "scatter" : "gather",
             has_shared_offsets(at) ? ".shared" : "", how->count, LLVMGetIntTypeWidth(how->type),
             how->align, (unsigned)how->order, (unsigned)how->is_volatile,
             at->first ? (long long)at->step : 0);
    f = LLVMGetNamedFunction(l->module, name);
    if (f)
        return f;
    f = LLVMAddFunction(l->module, name, *type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMSetFunctionCallConv(f, HED_LOWER_RARE);
    hed_lower_attribute(l, f, "noinline", 0);
    hed_lower_attribute(l, f, "nounwind", 0);

    struct hed_lower_function own = {.value = f};

    if (has_shared_offsets(at))
        own.shared = LLVMGetParam(f, 5);
    else
        own.sandbox = LLVMGetParam(f, 5);

    const struct mover m = {.addresses = LLVMGetParam(f, 0),
                            .first = at->first ? LLVMGetParam(f, 0) : NULL,
                            .step = at->step,
                            .bits = LLVMGetParam(f, 1),
                            .data = LLVMGetParam(f, 2),
                            .warp = LLVMGetParam(f, 3),
                            .line = LLVMGetParam(f, 4),
                            .shared = has_shared_offsets(at) ? LLVMGetParam(f, 5) : NULL,
                            .how = how,
                            .is_store = is_store};

    own.entry = LLVMAppendBasicBlockInContext(l->context, f, "entry");
    l->function = &own;
    LLVMPositionBuilderAtEnd(l->b, own.entry);
    if (m.first || m.shared)
        make_plain_body(l, m);
    else
        make_mover_body(l, &m);
    l->function = caller;
    LLVMPositionBuilderAtEnd(l->b, here);
    return f;
}

/* Memory shared by all accesses of the function: it is written right before a call and read right
 * after it. */
static LLVMValueRef
mover_scratch(struct hed_lower *l, LLVMValueRef *slot)
{
    if (!*slot)
        *slot = hed_lower_alloca(l, l->i64, HED_PTX_LANES * HED_LOWER_ELEMENTS_MAX, 16);
    return *slot;
}

void
hed_lower_warp_move(struct hed_lower *l, const struct hed_lower_place *at,
                    const struct hed_lower_access *how, bool is_store, LLVMValueRef data)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMTypeRef type;
    LLVMValueRef f = find_mover(l, at, how, is_store, &type);
    LLVMValueRef args[] = {at->first ? at->first : mover_scratch(l, &w->addresses),
                           hed_lower_warp_bits(l),
                           data,
                           l->function->warp,
                           hed_lower_word(l, l->inst ? l->inst->stmt.line : 0),
                           l->function->sandbox && !has_shared_offsets(at) ? l->function->sandbox
                                                                           : l->function->shared};

    if (has_shared_offsets(at))
        LLVMSetAlignment(LLVMBuildStore(l->b, shared_offsets(l, at), args[0]), 16);
    else if (!at->first)
        LLVMSetAlignment(LLVMBuildStore(l->b, hed_lower_warp_address(l, at), args[0]), 16);
    LLVMSetInstructionCallConv(LLVMBuildCall2(l->b, type, f, args, 6, ""), HED_LOWER_RARE);
}

/* ---- loads and stores ------------------------------------------------------------------------ */

/* A variable of the function whose lanes are consecutive: memory that LLVM can turn into a
 * value. */
static bool
is_consecutive_variable(struct hed_lower *l, const struct hed_lower_place *at,
                        const struct hed_lower_access *how)
{
    return at->var && at->offset == 0 && how->count == 1 &&
           variable_stride(l, at->var) == hed_lower_warp_bytes(how->type);
}

void
hed_lower_warp_load(struct hed_lower *l, const struct hed_lower_place *at,
                    const struct hed_lower_access *how, LLVMValueRef *out)
{
    LLVMTypeRef lanes = LLVMVectorType(how->type, HED_PTX_LANES);

    if (at->base) {
        for (unsigned k = 0, i; k < how->count; k++) {
            i = hed_lower_nth_load(how, k);
            out[i] = load_element(l, hed_lower_at(l, at->base, at->offset), how, i);
            out[i] = hed_lower_splat(l, out[i]);
        }
        return;
    }
    if (is_consecutive_variable(l, at, how)) {
        *out = LLVMBuildLoad2(l->b, lanes, warp_variable(l, at), "");
        LLVMSetAlignment(*out, hed_min(hed_lower_warp_bytes(how->type), 16));
        return;
    }

    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef data = mover_scratch(l, &w->data);

    hed_lower_warp_move(l, at, how, false, data);
    for (unsigned i = 0; i < how->count; i++) {
        out[i] = LLVMBuildLoad2(
            l->b, lanes,
            hed_lower_at(l, data, (int64_t)i * HED_PTX_LANES * hed_lower_warp_bytes(how->type)),
            "");
        LLVMSetAlignment(out[i], 16);
    }
}

/* All lanes write to the same address; the value of the last lane stays. */
static void
store_last_lane(struct hed_lower *l, const struct hed_lower_place *at,
                const struct hed_lower_access *how, LLVMValueRef *in)
{
    LLVMValueRef bits = hed_lower_warp_bits(l);
    LLVMValueRef count[] = {bits, LLVMConstInt(l->i1, 0, false)};
    LLVMBasicBlockRef some = hed_lower_block(l, "");
    LLVMBasicBlockRef after = hed_lower_block(l, "");
    LLVMValueRef last;

    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, bits, ""), after, some);
    LLVMPositionBuilderAtEnd(l->b, some);
    last = LLVMBuildSub(l->b, hed_lower_word(l, 31),
                        hed_lower_intrinsic(l, "llvm.ctlz", l->i32, count, 2), "");
    for (unsigned i = 0; i < how->count; i++)
        store_element(l, hed_lower_at(l, at->base, at->offset), how, i,
                      LLVMBuildExtractElement(l->b, in[i], last, ""));
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
}

void
hed_lower_warp_store(struct hed_lower *l, const struct hed_lower_place *at,
                     const struct hed_lower_access *how, LLVMValueRef *in)
{
    if (at->base) {
        store_last_lane(l, at, how, in);
        return;
    }
    if (is_consecutive_variable(l, at, how)) {
        LLVMValueRef p = warp_variable(l, at);
        LLVMValueRef old = LLVMBuildLoad2(l->b, LLVMTypeOf(in[0]), p, "");
        const unsigned align = hed_min(hed_lower_warp_bytes(how->type), 16);

        LLVMSetAlignment(old, align);
        LLVMSetAlignment(
            LLVMBuildStore(l->b, LLVMBuildSelect(l->b, hed_lower_warp_mask(l), in[0], old, ""), p),
            align);
        return;
    }

    struct warp *w = hed_lower_warp_state(l);
    LLVMValueRef data = mover_scratch(l, &w->data);

    for (unsigned i = 0; i < how->count; i++)
        LLVMSetAlignment(LLVMBuildStore(l->b, in[i],
                                        hed_lower_at(l, data,
                                                     (int64_t)i * HED_PTX_LANES *
                                                         hed_lower_warp_bytes(how->type))),
                         16);
    hed_lower_warp_move(l, at, how, true, data);
}
