/* Textures and surfaces. Each lane stores its coordinates, calls the runtime and loads the results.
 * Textures and surfaces are objects, whose value the program passes, or references by name.
 */
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"

static const char *
runtime_function(enum hed_ptx_op op)
{
    switch (op) {
    case HED_PTX_OP_TEX:
    case HED_PTX_OP_TLD4:
        return "hed_rt_texture";
    case HED_PTX_OP_SURED:
        return "hed_rt_surface_reduce";
    default:
        return "hed_rt_surface";
    }
}

/* args are the object, the coordinates and, for stores and reductions, the elements. */
static void
sample_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct hed_ptx_texture *t = arg;
    LLVMTypeRef type = hed_lower_int_type(l, t->access.type);
    LLVMValueRef in = hed_lower_alloca(l, l->i32, HED_RT_COORDINATES, 8);
    LLVMValueRef data = hed_lower_alloca(l, l->i64, HED_PTX_TEXTURE_DATA, 16);
    LLVMValueRef all[] = {l->function->warp,
                          args[0],
                          LLVMConstInt(l->i64, hed_ptx_pack_access(&t->access), false),
                          in,
                          data,
                          LLVMConstInt(l->i32, l->inst->stmt.line, false)};

    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        LLVMBuildStore(l->b, args[1 + i], hed_lower_at(l, in, 4 * (int64_t)i));
    for (unsigned i = 0; t->access.is_store && i < t->count; i++)
        LLVMBuildStore(l->b, args[1 + HED_RT_COORDINATES + i],
                       hed_lower_at(l, data, (int64_t)t->step * i));
    hed_lower_runtime(l, runtime_function(l->inst->form->op), l->nothing, all, 6);
    for (unsigned i = 0; !t->access.is_store && i < t->count; i++)
        results[i] = LLVMBuildLoad2(l->b, type, hed_lower_at(l, data, (int64_t)t->step * i), "");
}

void
hed_op_texture(struct hed_lower *l)
{
    const struct hed_ptx_texture *t = &l->meaning->texture;
    const enum hed_ptx_type type = t->access.type;
    const bool is_store = t->access.is_store;
    LLVMTypeRef one = hed_lower_int_type(l, type);
    LLVMTypeRef types[HED_PTX_TEXTURE_DATA] = {one, one, one, one};
    LLVMValueRef args[1 + HED_RT_COORDINATES + HED_PTX_TEXTURE_DATA], out[HED_PTX_TEXTURE_DATA];
    unsigned n = 0;

    args[n++] = hed_lower_get(l, &t->object, HED_PTX_TYPE_B64);
    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        args[n++] = hed_lower_get(l, &t->in[i], HED_PTX_TYPE_B32);
    for (unsigned i = 0; is_store && i < t->count; i++)
        args[n++] = hed_lower_get(l, &t->data[i], type);
    if (l->err)
        return;
    l->shape->each(l, sample_for_lane, (void *)t, args, n, types, out, is_store ? 0 : t->count);
    /* The predicate says that all of the texture's memory is there, which it is. */
    if (t->resident)
        hed_lower_set(l, t->resident, HED_PTX_TYPE_PRED, hed_lower_int(l, l->i1, 1));
    for (unsigned i = 0; !is_store && i < t->count; i++)
        hed_lower_set(l, &t->data[i], type, out[i]);
}

/* args are the object and the level. */
static void
query_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef all[] = {l->function->warp, args[0],
                          LLVMConstInt(l->i32, *(const unsigned *)arg, false), args[1],
                          LLVMConstInt(l->i32, l->inst->stmt.line, false)};

    results[0] = hed_lower_runtime(l, "hed_rt_texture_query", l->i32, all, 5);
}

void
hed_op_texture_query(struct hed_lower *l)
{
    const struct hed_ptx_texture *t = &l->meaning->texture;
    unsigned what = l->inst->form->query;
    LLVMValueRef args[] = {hed_lower_get(l, &t->object, HED_PTX_TYPE_B64),
                           hed_lower_get(l, &t->in[0], HED_PTX_TYPE_B32)};
    LLVMValueRef v;

    if (l->err)
        return;
    l->shape->each(l, query_for_lane, &what, args, 2, &l->i32, &v, 1);
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32, v);
}
