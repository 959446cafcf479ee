/* Loads and stores by the class of their address.
 *
 *      one address        one scalar load; of a store, the last lane's value stays
 *      a row of elements  one vector load or store for each row of lanes, if all lanes run; a load
 *                         also if only some do, but the row lies in one page of memory; a store
 *                         also if it lies in shared memory
 *      steps              lane by lane, but without a vector of addresses
 *      known offsets      a few vectors, if all lanes run (offsets.c)
 *      anything else      lane by lane (warp/memory.c)
 */
#include <stddef.h>

#include "base/number.h"
#include "kernel/ptx/lower/mask/mask.h"

#define PAGE 4096 /* bytes; memory that may be read begins and ends with a page, or a larger one */

static const struct hed_uniform *
address_class(const struct hed_lower *l, const struct hed_lower_place *at)
{
    return at->reg ? &hed_mask_state(l)->uniforms.values[at->reg->id] : NULL;
}

/* The block's shared memory begins at a multiple of whatever its variables need. */
bool
hed_mask_is_aligned(const struct hed_lower *l, const struct hed_lower_place *at,
                    const struct hed_lower_access *how)
{
    const struct hed_uniform *c = address_class(l, at);

    if (how->align < 2 || !l->options->check_alignment)
        return true;
    return c && at->is_shared && c->kind != HED_VARIES &&
           (UINT64_C(1) << hed_min(c->align, 32)) % how->align == 0 &&
           at->reg_offset % (int64_t)how->align == 0;
}

/* The address of the first lane of a row: i64. An offset into shared memory may be below 0 in lanes
 * that do not run, so it is signed. */
LLVMValueRef
hed_mask_row_address(struct hed_lower *l, const struct hed_lower_place *at, unsigned row)
{
    LLVMValueRef v = hed_mask_number(l, at->reg, row);
    LLVMValueRef offset;

    if (at->is_shared)
        v = hed_lower_resize(l, v, l->i32, false);
    offset = LLVMConstInt(LLVMTypeOf(v), (uint64_t)at->reg_offset, false);
    v = hed_lower_resize(l, LLVMBuildAdd(l->b, v, offset, ""), l->i64, at->is_shared);
    if (at->is_shared)
        v = LLVMBuildAdd(l->b, v, LLVMBuildPtrToInt(l->b, l->function->shared, l->i64, ""), "");
    return v;
}

/* ---- one lane -------------------------------------------------------------------------------- */

static void
qualify(LLVMValueRef v, const struct hed_lower_access *how, unsigned align)
{
    LLVMSetAlignment(v, align ? align : 1);
    LLVMSetVolatile(v, how->is_volatile);
    if (how->order != LLVMAtomicOrderingNotAtomic)
        LLVMSetOrdering(v, how->order);
}

/* The alignment of element i: the claim is for the first. */
static unsigned
element_align(const struct hed_lower_access *how, unsigned i)
{
    const unsigned own = hed_lower_warp_bytes(how->type);

    return i == 0 || how->align < own ? how->align : own;
}

static LLVMValueRef
place_pointer(struct hed_lower *l, const struct hed_lower_place *at)
{
    if (at->base)
        return hed_lower_at(l, at->base, at->offset);
    return hed_lower_pointer(l, at->address);
}

void
hed_mask_trap_if(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap)
{
    LLVMValueRef warp = l->function->warp;
    LLVMValueRef args[] = {warp, hed_lower_word(l, trap), hed_lower_word(l, l->inst->stmt.line)};
    LLVMBasicBlockRef hit = hed_lower_block(l, ""), after = hed_lower_block(l, "");

    LLVMBuildCondBr(l->b, condition, hit, after);
    LLVMPositionBuilderAtEnd(l->b, hit);
    LLVMBuildStore(l->b, hed_lower_warp_lowest(l, hed_lower_warp_running(l)),
                   hed_lower_at(l, warp, offsetof(struct hed_ptx_warp, lane)));
    hed_lower_trap(l, args);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* Traps if the address, i64, is misaligned. */
static void
trap_if_misaligned(struct hed_lower *l, LLVMValueRef address, const struct hed_lower_access *how)
{
    LLVMValueRef low;

    if (how->align < 2 || !l->options->check_alignment)
        return;
    low = LLVMBuildAnd(l->b, address, LLVMConstInt(l->i64, how->align - 1, false), "");
    hed_mask_trap_if(l, LLVMBuildIsNotNull(l->b, low, ""), HED_PTX_TRAP_ALIGN);
}

/* Loads for one lane; where a row has no running lane, nothing is loaded. */
static void
load_once(struct hed_lower *l, const struct hed_lower_place *at, const struct hed_lower_access *how,
          LLVMValueRef *out)
{
    const struct mask *m = hed_mask_state(l);
    const unsigned width = m->uniforms.width;
    const bool is_row = m->way == HED_PER_ROW && width < HED_PTX_LANES;
    LLVMValueRef slots[HED_LOWER_ELEMENTS_MAX], p;
    LLVMBasicBlockRef after = NULL;

    if (is_row) {
        const uint64_t bits = ((UINT64_C(1) << width) - 1) << (m->row * width);
        LLVMValueRef runs =
            LLVMBuildAnd(l->b, hed_lower_warp_running(l), hed_lower_word(l, bits), "");
        LLVMBasicBlockRef some = hed_lower_block(l, "");

        for (unsigned i = 0; i < how->count; i++) {
            slots[i] = hed_lower_alloca(l, how->type, 1, 0);
            LLVMBuildStore(l->b, LLVMConstNull(how->type), slots[i]);
        }
        after = hed_lower_block(l, "");
        LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, runs, ""), after, some);
        LLVMPositionBuilderAtEnd(l->b, some);
    }
    if (at->address)
        trap_if_misaligned(l, at->address, how);
    p = place_pointer(l, at);
    for (unsigned k = 0; k < how->count; k++) {
        const unsigned i = hed_lower_nth_load(how, k);

        out[i] = LLVMBuildLoad2(
            l->b, how->type, hed_lower_at(l, p, (int64_t)i * hed_lower_warp_bytes(how->type)), "");
        qualify(out[i], how, element_align(how, i));
        if (how->is_constant)
            LLVMSetMetadata(
                out[i], LLVMGetMDKindIDInContext(l->context, "invariant.load", 14),
                LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, NULL, 0)));
        if (is_row)
            LLVMBuildStore(l->b, out[i], slots[i]);
    }
    if (!is_row)
        return;
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    for (unsigned i = 0; i < how->count; i++)
        out[i] = LLVMBuildLoad2(l->b, how->type, slots[i], "");
}

static void
store_once(struct hed_lower *l, const struct hed_lower_place *at,
           const struct hed_lower_access *how, LLVMValueRef *in)
{
    LLVMValueRef p;

    if (at->address)
        trap_if_misaligned(l, at->address, how);
    p = place_pointer(l, at);
    for (unsigned i = 0; i < how->count; i++)
        qualify(LLVMBuildStore(l->b, in[i],
                               hed_lower_at(l, p, (int64_t)i * hed_lower_warp_bytes(how->type))),
                how, element_align(how, i));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Does the address step from lane to lane, in an access that may be taken apart? */
static bool
is_step_access(const struct hed_lower *l, const struct hed_lower_place *at,
               const struct hed_lower_access *how)
{
    const struct hed_uniform *c = address_class(l, at);

    return c && c->kind == HED_ROWS && !how->is_volatile && how->count <= 4 && how->count != 3 &&
           how->order == LLVMAtomicOrderingNotAtomic;
}

/* Do the lanes of each row access elements that lie next to each other? */
static bool
is_row_access(const struct hed_lower *l, const struct hed_lower_place *at,
              const struct hed_lower_access *how)
{
    return address_class(l, at)->step ==
           (int64_t)how->count * (int64_t)hed_lower_warp_bytes(how->type);
}

/* Sets the rows' addresses. Returns an i32 that is not 0 if one is misaligned, or NULL. */
static LLVMValueRef
find_rows(struct hed_lower *l, const struct hed_lower_place *at, const struct hed_lower_access *how,
          LLVMValueRef *rows)
{
    const unsigned n = HED_PTX_LANES / hed_mask_state(l)->uniforms.width;
    LLVMValueRef low = LLVMConstInt(l->i64, 0, false);

    for (unsigned i = 0; i < n; i++) {
        rows[i] = hed_mask_row_address(l, at, i);
        low = LLVMBuildOr(l->b, low, rows[i], "");
    }
    if (hed_mask_is_aligned(l, at, how))
        return NULL;
    low = LLVMBuildAnd(l->b, low, LLVMConstInt(l->i64, how->align - 1, false), "");
    return LLVMBuildTrunc(l->b, low, l->i32, "");
}

/* i1: may whole rows be loaded though only some lanes run? Where one lane may read, all of the page
 * can be read, and what lanes get that do not run does not matter. */
static LLVMValueRef
are_rows_in_pages(struct hed_lower *l, const struct hed_lower_access *how, LLVMValueRef *rows)
{
    const unsigned width = hed_mask_state(l)->uniforms.width, n = HED_PTX_LANES / width;
    const uint64_t bytes = (uint64_t)width * how->count * hed_lower_warp_bytes(how->type);
    LLVMValueRef bits = hed_lower_warp_bits(l), all = LLVMConstInt(l->i1, bytes <= PAGE, false);

    for (unsigned i = 0; i < n && bytes <= PAGE; i++) {
        const uint64_t own = (UINT64_MAX >> (64 - width)) << (i * width);
        LLVMValueRef at = LLVMBuildAnd(l->b, rows[i], LLVMConstInt(l->i64, PAGE - 1, false), "");

        all = LLVMBuildAnd(
            l->b, all,
            LLVMBuildICmp(l->b, LLVMIntULE, at, LLVMConstInt(l->i64, PAGE - bytes, false), ""), "");
        all = LLVMBuildAnd(
            l->b, all,
            LLVMBuildIsNotNull(l->b, LLVMBuildAnd(l->b, bits, hed_lower_word(l, own), ""), ""), "");
    }
    return all;
}

/* i32: the running lanes that wrapped around; NULL if none can have. */
static LLVMValueRef
wrapped_lanes(struct hed_lower *l, const struct hed_lower_place *at)
{
    const struct mask *m = hed_mask_state(l);
    const uint32_t id = address_class(l, at)->wraps;

    if (id == HED_FLOW_NONE || !m->values[id].wrapped)
        return NULL;
    return LLVMBuildAnd(l->b, hed_lower_warp_bits(l),
                        LLVMBuildLoad2(l->b, l->i32, m->values[id].wrapped, ""), "");
}

/* i1: does the row lie in the block's shared memory? */
static LLVMValueRef
is_row_shared(struct hed_lower *l, const struct hed_lower_access *how, LLVMValueRef row)
{
    const uint64_t bytes = (uint64_t)HED_PTX_LANES * how->count * hed_lower_warp_bytes(how->type);
    LLVMValueRef first = LLVMBuildPtrToInt(l->b, l->function->shared, l->i64, "");
    LLVMValueRef total =
        hed_lower_field(l, l->i32, l->function->grid, offsetof(struct hed_ptx_grid, total_shared));
    LLVMValueRef room = LLVMBuildSub(l->b, hed_lower_resize(l, total, l->i64, false),
                                     LLVMConstInt(l->i64, bytes, false), "");

    /* Both are below 2^32, unless the row begins before the memory, or that is smaller. */
    return LLVMBuildAnd(
        l->b, LLVMBuildICmp(l->b, LLVMIntULE, LLVMBuildSub(l->b, row, first, ""), room, ""),
        LLVMBuildICmp(l->b, LLVMIntSGE, room, LLVMConstInt(l->i64, 0, false), ""), "");
}

/* Goes to `fast` with the rows' addresses if they can be moved as rows, else to `slow`. Where only
 * some lanes run, a store may go to `blend` if that is not NULL. */
static void
choose_way(struct hed_lower *l, const struct hed_lower_place *at,
           const struct hed_lower_access *how, bool is_store, LLVMValueRef *rows,
           LLVMBasicBlockRef fast, LLVMBasicBlockRef blend, LLVMBasicBlockRef slow)
{
    LLVMBasicBlockRef some = is_store && !blend ? slow : hed_lower_block(l, "");
    LLVMValueRef bad = find_rows(l, at, how, rows), wrapped = wrapped_lanes(l, at);
    LLVMValueRef off = LLVMBuildNot(l->b, hed_lower_warp_bits(l), ""), good;

    bad = bad ? bad : hed_lower_word(l, 0);
    if (wrapped)
        bad = LLVMBuildOr(l->b, bad, wrapped, "");
    off = LLVMBuildOr(l->b, off, bad, "");
    hed_lower_unlikely(l, LLVMBuildIsNotNull(l->b, off, ""), some, fast);
    if (some == slow)
        return;
    LLVMPositionBuilderAtEnd(l->b, some);
    good = is_store ? is_row_shared(l, how, rows[0]) : are_rows_in_pages(l, how, rows);
    good = LLVMBuildAnd(l->b, LLVMBuildIsNull(l->b, bad, ""), good, "");
    LLVMBuildCondBr(l->b, good, is_store ? blend : fast, slow);
}

LLVMValueRef
hed_mask_join(struct hed_lower *l, LLVMValueRef *parts, unsigned n)
{
    for (unsigned count = n; count > 1; count /= 2) {
        for (unsigned i = 0; i < count / 2; i++) {
            const unsigned half = LLVMGetVectorSize(LLVMTypeOf(parts[2 * i]));
            LLVMValueRef picks[HED_PTX_LANES * HED_LOWER_ELEMENTS_MAX];

            for (unsigned k = 0; k < 2 * half; k++)
                picks[k] = hed_lower_word(l, k);
            parts[i] = LLVMBuildShuffleVector(l->b, parts[2 * i], parts[2 * i + 1],
                                              LLVMConstVector(picks, 2 * half), "");
        }
    }
    return parts[0];
}

static void
load_rows(struct hed_lower *l, LLVMValueRef *rows, const struct hed_lower_access *how,
          LLVMValueRef *out)
{
    const unsigned width = hed_mask_state(l)->uniforms.width, n = HED_PTX_LANES / width;
    LLVMTypeRef t = LLVMVectorType(how->type, width * how->count);
    LLVMValueRef parts[HED_MASK_ROWS_MAX] = {NULL}, all;

    for (unsigned i = 0; i < n; i++) {
        parts[i] = LLVMBuildLoad2(l->b, t, hed_lower_pointer(l, rows[i]), "");
        LLVMSetAlignment(parts[i], how->align ? how->align : 1);
    }
    all = hed_mask_join(l, parts, n);
    for (unsigned i = 0; i < how->count; i++)
        out[i] = how->count == 1 ? all : hed_lower_elements(l, all, i, how->count, HED_PTX_LANES);
}

static void
store_rows(struct hed_lower *l, LLVMValueRef *rows, const struct hed_lower_access *how,
           LLVMValueRef *in)
{
    const unsigned width = hed_mask_state(l)->uniforms.width, n = HED_PTX_LANES / width;
    const unsigned count = how->count, total = HED_PTX_LANES * count;
    LLVMValueRef parts[HED_LOWER_ELEMENTS_MAX] = {NULL},
                 picks[HED_PTX_LANES * HED_LOWER_ELEMENTS_MAX], all;

    for (unsigned i = 0; i < count; i++)
        parts[i] = in[i];
    all = hed_mask_join(l, parts, count);
    for (unsigned k = 0; k < total; k++)
        picks[k] = hed_lower_word(l, k % count * HED_PTX_LANES + k / count);
    if (count > 1)
        all = LLVMBuildShuffleVector(l->b, all, LLVMGetPoison(LLVMTypeOf(all)),
                                     LLVMConstVector(picks, total), "");
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef part =
            n == 1 ? all : hed_lower_elements(l, all, i * width * count, 1, width * count);

        LLVMSetAlignment(LLVMBuildStore(l->b, part, hed_lower_pointer(l, rows[i])),
                         how->align ? how->align : 1);
    }
}

/* Stores a row of shared memory of which some lanes run. No other thread of the machine touches the
 * memory of the block at the same time. */
static void
blend_row(struct hed_lower *l, LLVMValueRef *rows, const struct hed_lower_access *how,
          LLVMValueRef *in)
{
    LLVMValueRef both[HED_LOWER_ELEMENTS_MAX] = {NULL}, mask = hed_lower_warp_mask(l);

    load_rows(l, rows, how, both);
    for (unsigned i = 0; i < how->count; i++)
        both[i] = LLVMBuildSelect(l->b, mask, in[i], both[i], "");
    store_rows(l, rows, how, both);
}

/* ---- the shape's part ------------------------------------------------------------------------ */

/* One address, though it is in a register: it becomes a base. */
static bool
has_one_address(struct hed_lower *l, const struct hed_lower_place *at,
                const struct hed_lower_access *how, struct hed_lower_place *one)
{
    const struct hed_uniform *c = address_class(l, at);
    LLVMValueRef address;

    if (!c || c->kind != HED_UNIFORM)
        return false;
    address = hed_mask_row_address(l, at, 0);
    if (!hed_mask_is_aligned(l, at, how))
        trap_if_misaligned(l, address, how);
    *one = (struct hed_lower_place){.base = hed_lower_pointer(l, address)};
    return true;
}

/* Moves by steps, or lane by lane where steps do not say it because lanes wrapped around. */
static void
move_steps(struct hed_lower *l, const struct hed_lower_place *at,
           const struct hed_lower_access *how, bool is_store, LLVMValueRef *values)
{
    const struct hed_uniform *c = address_class(l, at);
    LLVMValueRef wrapped = wrapped_lanes(l, at);
    LLVMBasicBlockRef steps = hed_lower_block(l, ""), lanes = NULL, after = hed_lower_block(l, "");
    LLVMValueRef slots[HED_LOWER_ELEMENTS_MAX] = {NULL}, got[HED_LOWER_ELEMENTS_MAX];
    LLVMTypeRef t = LLVMVectorType(how->type, HED_PTX_LANES);
    const struct hed_lower_place by_steps = {.first = hed_mask_row_address(l, at, 0),
                                             .step = c->step};

    for (unsigned i = 0; !is_store && i < how->count; i++)
        slots[i] = hed_lower_alloca(l, t, 1, 0);
    if (wrapped) {
        lanes = hed_lower_block(l, "");
        LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, wrapped, ""), steps, lanes);
    } else {
        LLVMBuildBr(l->b, steps);
    }
    for (int way = 0; way < (wrapped ? 2 : 1); way++) {
        const struct hed_lower_place *p = way == 0 ? &by_steps : at;

        LLVMPositionBuilderAtEnd(l->b, way == 0 ? steps : lanes);
        if (is_store)
            hed_lower_warp_store(l, p, how, values);
        else
            hed_lower_warp_load(l, p, how, got);
        for (unsigned i = 0; !is_store && i < how->count; i++)
            LLVMBuildStore(l->b, got[i], slots[i]);
        LLVMBuildBr(l->b, after);
    }
    LLVMPositionBuilderAtEnd(l->b, after);
    for (unsigned i = 0; !is_store && i < how->count; i++)
        values[i] = LLVMBuildLoad2(l->b, t, slots[i], "");
}

static void
move_slowly(struct hed_lower *l, const struct hed_lower_place *at,
            const struct hed_lower_access *how, bool is_store, LLVMValueRef *values)
{
    if (hed_mask_state(l)->uniforms.width == HED_PTX_LANES)
        move_steps(l, at, how, is_store, values);
    else if (is_store)
        hed_lower_warp_store(l, at, how, values);
    else
        hed_lower_warp_load(l, at, how, values);
}

/* An access whose address steps: as rows if all lanes run, else slowly. */
static void
move_by_class(struct hed_lower *l, const struct hed_lower_place *at,
              const struct hed_lower_access *how, bool is_store, LLVMValueRef *values)
{
    LLVMValueRef rows[HED_MASK_ROWS_MAX] = {NULL}, slots[HED_LOWER_ELEMENTS_MAX] = {NULL},
                 got[HED_LOWER_ELEMENTS_MAX];
    LLVMTypeRef t = LLVMVectorType(how->type, HED_PTX_LANES);
    LLVMBasicBlockRef fast, slow, after, blend = NULL;

    if (!is_row_access(l, at, how)) {
        move_slowly(l, at, how, is_store, values);
        return;
    }
    fast = hed_lower_block(l, "");
    slow = hed_lower_block(l, "");
    after = hed_lower_block(l, "");
    for (unsigned i = 0; !is_store && i < how->count; i++)
        slots[i] = hed_lower_alloca(l, t, 1, 0);
    if (is_store && at->is_shared && hed_mask_state(l)->uniforms.width == HED_PTX_LANES)
        blend = hed_lower_block(l, "");
    choose_way(l, at, how, is_store, rows, fast, blend, slow);
    if (blend) {
        LLVMPositionBuilderAtEnd(l->b, blend);
        blend_row(l, rows, how, values);
        LLVMBuildBr(l->b, after);
    }
    LLVMPositionBuilderAtEnd(l->b, fast);
    if (is_store)
        store_rows(l, rows, how, values);
    else
        load_rows(l, rows, how, got);
    for (unsigned i = 0; !is_store && i < how->count; i++)
        LLVMBuildStore(l->b, got[i], slots[i]);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, slow);
    for (unsigned i = 0; is_store && i < how->count; i++)
        got[i] = values[i];
    move_slowly(l, at, how, is_store, got);
    for (unsigned i = 0; !is_store && i < how->count; i++)
        LLVMBuildStore(l->b, got[i], slots[i]);
    LLVMBuildBr(l->b, after);
    LLVMPositionBuilderAtEnd(l->b, after);
    for (unsigned i = 0; !is_store && i < how->count; i++)
        values[i] = LLVMBuildLoad2(l->b, t, slots[i], "");
}

void
hed_mask_load(struct hed_lower *l, const struct hed_lower_place *at,
              const struct hed_lower_access *how, LLVMValueRef *out)
{
    struct hed_lower_place one;

    if (hed_mask_move_local(l, at, how, false, out))
        return;
    if (l->lanes == 1)
        load_once(l, at, how, out);
    else if (has_one_address(l, at, how, &one))
        hed_lower_warp_load(l, &one, how, out);
    else if (is_step_access(l, at, how))
        move_by_class(l, at, how, false, out);
    else if (!hed_mask_move_offsets(l, at, how, false, out))
        hed_lower_warp_load(l, at, how, out);
}

void
hed_mask_store(struct hed_lower *l, const struct hed_lower_place *at,
               const struct hed_lower_access *how, LLVMValueRef *in)
{
    struct hed_lower_place one;

    if (hed_mask_move_local(l, at, how, true, in))
        return;
    if (l->lanes == 1)
        store_once(l, at, how, in);
    else if (has_one_address(l, at, how, &one))
        hed_lower_warp_store(l, &one, how, in);
    else if (is_step_access(l, at, how))
        move_by_class(l, at, how, true, in);
    else if (!hed_mask_move_offsets(l, at, how, true, in))
        hed_lower_warp_store(l, at, how, in);
}

void
hed_mask_trap(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap)
{
    if (l->lanes == 1)
        hed_mask_trap_if(l, condition ? condition : LLVMConstInt(l->i1, 1, false), trap);
    else
        hed_lower_warp_trap(l, condition, trap);
}
