/* Moving elements between memory and registers, for lanes whose addresses may be anything.
 *
 * Addresses differ between lanes but are mostly consecutive. So there are functions in the module,
 * one for each kind of access, which are made on first use. Such a function tests whether all lanes
 * run and their addresses are consecutive. If so, it moves one long vector; else it gathers
 * (gather.c) or goes lane by lane. (Without gathers, LLVM's own are one branch per lane at every
 * use.)
 */
#include <stdio.h>

#include "base/number.h"
#include "kernel/ptx/lower/warp/rows.h"
#include "kernel/ptx/lower/warp/warp.h"

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
            hed_lower_warp_store_element(l, at, m->how, i,
                                         LLVMBuildLoad2(l->b, m->how->type, mine, ""));
        else
            LLVMBuildStore(l->b, hed_lower_warp_load_element(l, at, m->how, i), mine);
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

/* All addresses: pointers and, without what is the same for all of them, numbers. */
static LLVMValueRef
all_addresses(struct hed_lower *l, const struct mover *m, LLVMValueRef *numbers)
{
    LLVMTypeRef wide = LLVMVectorType(l->i64, HED_PTX_LANES);
    LLVMTypeRef pointers = LLVMVectorType(l->ptr, HED_PTX_LANES);
    LLVMValueRef a;

    if (m->shared) {
        a = LLVMBuildLoad2(l->b, LLVMVectorType(l->i32, HED_PTX_LANES), m->addresses, "");
        LLVMSetAlignment(a, 4);
        *numbers = a;
        a = LLVMBuildZExt(l->b, a, wide, "");
        return LLVMBuildGEP2(l->b, l->i8, m->shared, &a, 1, "");
    }
    a = LLVMBuildLoad2(l->b, wide, m->addresses, "");
    LLVMSetAlignment(a, 8);
    *numbers = a;
    return LLVMBuildIntToPtr(l->b, a, pointers, "");
}

/* By the processor's gather or scatter; a misaligned lane is found one by one. Returns from the
 * function. */
static void
gather_lanes(struct hed_lower *l, const struct mover *m)
{
    LLVMTypeRef t = LLVMVectorType(m->how->type, HED_PTX_LANES);
    LLVMBasicBlockRef bad = hed_lower_block(l, ""), good = hed_lower_block(l, "");
    LLVMValueRef numbers, pointers = all_addresses(l, m, &numbers), low;
    LLVMValueRef mask = hed_lower_warp_unpack(l, m->bits), values[HED_LOWER_ELEMENTS_MAX];
    const unsigned bytes = hed_lower_warp_bytes(m->how->type);

    low = LLVMBuildAnd(
        l->b, numbers,
        hed_lower_int(l, m->shared ? l->i32 : l->i64,
                      l->options->check_alignment && m->how->align ? m->how->align - 1 : 0),
        "");
    low = LLVMBuildICmp(l->b, LLVMIntNE, low, LLVMConstNull(LLVMTypeOf(low)), "");
    low = hed_lower_warp_pack(l, LLVMBuildAnd(l->b, low, mask, ""));
    hed_lower_unlikely(l, LLVMBuildIsNotNull(l->b, low, ""), bad, good);
    LLVMPositionBuilderAtEnd(l->b, bad);
    move_lane_by_lane(l, m);
    LLVMBuildRetVoid(l->b);
    LLVMPositionBuilderAtEnd(l->b, good);
    for (unsigned e = 0; m->is_store && e < m->how->count; e++) {
        values[e] = LLVMBuildLoad2(l->b, t, mover_data(l, m, e, NULL), "");
        LLVMSetAlignment(values[e], bytes);
    }
    hed_lower_gather(l, m->how, pointers, mask, m->is_store, values);
    for (unsigned e = 0; !m->is_store && e < m->how->count; e++)
        LLVMSetAlignment(LLVMBuildStore(l->b, values[e], mover_data(l, m, e, NULL)), bytes);
    LLVMBuildRetVoid(l->b);
}

/* May this be done by a gather, or a scatter? Not with pointers into the address sandbox. */
static bool
is_gathered(struct hed_lower *l, const struct mover *m)
{
    return !m->first && !l->options->confined && hed_lower_has_gather(l, m->how);
}

/* The body for steps and for shared memory: all lanes one after the other, or those that run. */
static void
make_plain_body(struct hed_lower *l, struct mover m)
{
    LLVMBasicBlockRef full = hed_lower_block(l, "");
    LLVMBasicBlockRef part = hed_lower_block(l, "");
    const unsigned align = m.how->align ? m.how->align : 1;

    if (is_gathered(l, &m)) {
        LLVMBuildBr(l->b, full);
        LLVMPositionBuilderAtEnd(l->b, full);
        gather_lanes(l, &m);
        LLVMDeleteBasicBlock(part);
        return;
    }
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
        if (is_gathered(l, m)) {
            LLVMBuildBr(l->b, slow);
        } else {
            move_all_lanes(l, m);
            LLVMBuildRetVoid(l->b);
        }
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
    if (is_gathered(l, m)) {
        gather_lanes(l, m);
        return;
    }
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

LLVMValueRef
hed_lower_warp_scratch(struct hed_lower *l, LLVMValueRef *slot)
{
    if (!*slot)
        *slot = hed_lower_alloca(l, l->i64, HED_PTX_LANES * HED_LOWER_ELEMENTS_MAX, HED_LOWER_LINE);
    return *slot;
}

void
hed_lower_warp_move(struct hed_lower *l, const struct hed_lower_place *at,
                    const struct hed_lower_access *how, bool is_store, LLVMValueRef data)
{
    struct warp *w = hed_lower_warp_state(l);
    LLVMTypeRef type;
    LLVMValueRef f = find_mover(l, at, how, is_store, &type);
    LLVMValueRef args[] = {at->first ? at->first : hed_lower_warp_scratch(l, &w->addresses),
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
