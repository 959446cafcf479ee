/* Variables in local memory: where they lie, and accesses to those that lie element by element
 * (pass/local.h).
 *
 *      units: 0 of lanes 0..31 | 1 of lanes 0..31 | ...      an address is an offset in bytes
 *
 *      same offset     a vector load, whichever lanes run; of a store, lanes that wait elsewhere
 *                      keep what they have
 *      other offsets   lane by lane, at 32 * offset + lane * unit
 *      in a loop that runs lane by lane (solo.c), the lane's own unit
 *
 * In a kernel that is cut at barriers they lie in the frame (region.c), else on the stack; in a
 * confined kernel they lie in the address sandbox.
 */
#include <stddef.h>

#include "base/number.h"
#include "kernel/ptx/lower/mask/mask.h"

#define ROW_ALIGN 64 /* bytes: a line of the cache */

/* ---- where they lie -------------------------------------------------------------------------- */

/* The memory of 32 lanes' copies. */
static LLVMValueRef
place_copies(struct hed_lower *l, uint64_t bytes)
{
    struct mask *m = hed_mask_state(l);
    LLVMValueRef frame;

    if (!m->is_cut || l->options->confined)
        return hed_lower_local(l, bytes, ROW_ALIGN);
    frame = hed_lower_field(l, l->ptr, l->function->warp, offsetof(struct hed_ptx_warp, frame));
    frame = hed_lower_at(l, frame, m->variables);
    m->variables += (uint32_t)hed_round_up(bytes, ROW_ALIGN);
    return frame;
}

void
hed_mask_place_variables(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    const struct mask *m = hed_mask_state(l);

    for (const struct hed_ptx_var *v = f->ptx->vars; v; v = v->next) {
        const bool by_elements = hed_locals_find(&m->uniforms.locals, v) != NULL;
        const uint64_t stride = hed_lower_warp_stride(v);

        if (v->space == HED_PTX_SPACE_PARAM ||
            (v->space == HED_PTX_SPACE_LOCAL && !by_elements && !m->is_cut)) {
            hed_lower_warp_place_variable(l, v);
        } else if (v->space == HED_PTX_SPACE_LOCAL) {
            hed_lower_map_add(l, f->vars, v, place_copies(l, stride * HED_PTX_LANES));
            hed_lower_map_add(l, hed_lower_warp_state(l)->strides, v, (void *)(uintptr_t)stride);
        }
    }
}

LLVMValueRef
hed_mask_address(struct hed_lower *l, const struct hed_lower_place *at)
{
    if (at->var && hed_locals_find(&hed_mask_state(l)->uniforms.locals, at->var))
        return hed_lower_int(l, l->i64, (uint64_t)at->offset);
    return hed_lower_warp_address(l, at);
}

/* ---- accesses -------------------------------------------------------------------------------- */

struct local_access {
    const struct hed_lower_access *how;
    LLVMValueRef base;   /* ptr */
    LLVMValueRef offset; /* i64: of all lanes, or <32 x i64> */
    LLVMTypeRef unit;    /* integer */
    unsigned bytes;      /* of a unit */
    unsigned parts;      /* units in an element */
    bool is_store;
};

/* The offset of all lanes if it is the same, else of each lane. */
static LLVMValueRef
access_offset(struct hed_lower *l, const struct hed_lower_place *at)
{
    LLVMValueRef v;

    if (at->var)
        return LLVMConstInt(l->i64, (uint64_t)at->offset, false);
    if (l->lanes == 1)
        return at->address;
    if (hed_mask_state(l)->uniforms.values[at->reg->id].kind != HED_UNIFORM)
        return hed_lower_place_address(l, at);
    v = hed_mask_number(l, at->reg, 0);
    return LLVMBuildAdd(l->b, v, LLVMConstInt(l->i64, (uint64_t)at->reg_offset, false), "");
}

static void
check_local_alignment(struct hed_lower *l, const struct local_access *a)
{
    const bool is_same = LLVMTypeOf(a->offset) == l->i64;
    const uint64_t low = a->how->align - 1;
    LLVMValueRef bits;

    if (a->how->align < 2 || !l->options->check_alignment)
        return;
    bits = LLVMBuildAnd(l->b, a->offset,
                        is_same ? LLVMConstInt(l->i64, low, false) : hed_lower_int(l, l->i64, low),
                        "");
    bits = LLVMBuildICmp(l->b, LLVMIntNE, bits, LLVMConstNull(LLVMTypeOf(bits)), "");
    if (is_same)
        hed_mask_trap_if(l, bits, HED_PTX_TRAP_ALIGN);
    else
        hed_lower_warp_trap(l, bits, HED_PTX_TRAP_ALIGN);
}

/* `bytes` from the beginning of the variable: i64. */
static LLVMValueRef
unit_place(struct hed_lower *l, const struct local_access *a, LLVMValueRef bytes)
{
    if (!l->options->confined)
        return LLVMBuildGEP2(l->b, l->i8, a->base, &bytes, 1, "");
    return hed_lower_pointer(
        l, LLVMBuildAdd(l->b, LLVMBuildPtrToInt(l->b, a->base, l->i64, ""), bytes, ""));
}

/* Unit n of the access in all lanes, all at the same offset. */
static LLVMValueRef
move_row(struct hed_lower *l, const struct local_access *a, unsigned n, LLVMValueRef v)
{
    const struct warp *w = hed_lower_warp_state(l);
    const bool keeps = w->mask->uniforms.partial[w->mask->block] || w->holds || w->inside;
    const unsigned align = (unsigned)hed_min(ROW_ALIGN, a->bytes * HED_PTX_LANES);
    LLVMValueRef at = LLVMBuildShl(l->b, a->offset, LLVMConstInt(l->i64, 5, false), ""), old = NULL;

    at = hed_lower_at(l, unit_place(l, a, at), (int64_t)n * a->bytes * HED_PTX_LANES);
    if (!a->is_store || keeps) {
        old = LLVMBuildLoad2(l->b, LLVMVectorType(a->unit, HED_PTX_LANES), at, "");
        LLVMSetAlignment(old, align);
    }
    if (!a->is_store)
        return old;
    /* Lanes that have ended may get anything. */
    if (keeps)
        v = LLVMBuildSelect(l->b, hed_lower_warp_mask(l), v, old, "");
    LLVMSetAlignment(LLVMBuildStore(l->b, v, at), align);
    return v;
}

/* Unit n of the access, in each lane at its own offset. */
static LLVMValueRef
move_apart(struct hed_lower *l, const struct local_access *a, unsigned n, LLVMValueRef v)
{
    const struct hed_lower_access one = {.type = a->unit, .count = 1, .align = 1};
    LLVMValueRef at = LLVMBuildShl(l->b, a->offset, hed_lower_int(l, l->i64, 5), "");
    LLVMValueRef base = LLVMBuildPtrToInt(
        l->b, hed_lower_at(l, a->base, (int64_t)n * a->bytes * HED_PTX_LANES), l->i64, "");

    at = LLVMBuildAdd(l->b, at, hed_lower_warp_iota(l, l->i64, a->bytes), "");
    at = LLVMBuildAdd(l->b, at, hed_lower_splat(l, base), "");

    const struct hed_lower_place place = {.address = at};

    if (a->is_store)
        hed_lower_warp_store(l, &place, &one, &v);
    else
        hed_lower_warp_load(l, &place, &one, &v);
    return v;
}

/* Unit n of the access in the one lane that runs. */
static LLVMValueRef
move_one(struct hed_lower *l, const struct local_access *a, unsigned n, LLVMValueRef v)
{
    LLVMValueRef at = LLVMBuildShl(l->b, a->offset, LLVMConstInt(l->i64, 5, false), "");
    LLVMValueRef lane = hed_lower_resize(l, hed_mask_lane(l), l->i64, false);

    lane = LLVMBuildMul(l->b, lane, LLVMConstInt(l->i64, a->bytes, false), "");
    at = LLVMBuildAdd(l->b, at, lane, "");
    at = hed_lower_at(l, unit_place(l, a, at), (int64_t)n * a->bytes * HED_PTX_LANES);
    v = a->is_store ? LLVMBuildStore(l->b, v, at) : LLVMBuildLoad2(l->b, a->unit, at, "");
    LLVMSetAlignment(v, a->bytes);
    return v;
}

static LLVMValueRef
move_unit(struct hed_lower *l, const struct local_access *a, unsigned n, LLVMValueRef v)
{
    if (l->lanes == 1)
        return move_one(l, a, n, v);
    return LLVMTypeOf(a->offset) == l->i64 ? move_row(l, a, n, v) : move_apart(l, a, n, v);
}

static void
move_element(struct hed_lower *l, const struct local_access *a, unsigned i, LLVMValueRef *value)
{
    LLVMTypeRef whole = hed_lower_lanes(l, a->how->type), part = hed_lower_lanes(l, a->unit);
    LLVMValueRef got = LLVMConstNull(whole), shift, v;

    if (a->parts == 1) {
        v = move_unit(l, a, i, *value);
        *value = a->is_store ? *value : v;
        return;
    }
    for (unsigned p = 0; p < a->parts; p++) {
        shift = hed_lower_int(l, a->how->type, (uint64_t)p * a->bytes * 8);
        v = a->is_store ? LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, *value, shift, ""), part, "")
                        : NULL;
        v = move_unit(l, a, i * a->parts + p, v);
        if (!a->is_store)
            got = LLVMBuildOr(l->b, got,
                              LLVMBuildShl(l->b, LLVMBuildZExt(l->b, v, whole, ""), shift, ""), "");
    }
    if (!a->is_store)
        *value = got;
}

bool
hed_mask_move_local(struct hed_lower *l, const struct hed_lower_place *at,
                    const struct hed_lower_access *how, bool is_store, LLVMValueRef *values)
{
    const struct hed_locals *locals = &hed_mask_state(l)->uniforms.locals;
    const struct hed_local *v = at->var   ? hed_locals_find(locals, at->var)
                                : at->reg ? locals->of[at->reg->id]
                                          : NULL;
    struct local_access a = {.how = how, .is_store = is_store};

    if (!v)
        return false;
    a.base = hed_lower_map_get(l->function->vars, v->var);
    a.offset = access_offset(l, at);
    a.bytes = v->unit;
    a.unit = LLVMIntTypeInContext(l->context, v->unit * 8);
    a.parts = hed_lower_warp_bytes(how->type) / v->unit;
    check_local_alignment(l, &a);
    for (unsigned i = 0; i < how->count; i++)
        move_element(l, &a, i, &values[i]);
    return true;
}
