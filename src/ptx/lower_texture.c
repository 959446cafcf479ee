/* Textures and surfaces: coordinates into memory, a call of the runtime for each lane, results out
 * of memory. Only objects, whose value the program passes; references by name are refused.
 */
#include <string.h>

#include "ptx/lower.h"

#define DATA_MAX 4

struct sample {
    struct hed_rt_access access;
    unsigned bytes; /* of surfaces: of an element */
    bool is_surface;
};

static uint64_t
pack(const struct hed_rt_access *a)
{
    uint64_t v;

    _Static_assert(sizeof(*a) == sizeof(v), "an access goes as one number");
    memcpy(&v, a, sizeof(v));
    return v;
}

/* args: object, coordinates; of stores then the elements. */
static void
sample_one(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct sample *s = arg;
    const unsigned count = s->is_surface ? s->access.count : 4;
    const unsigned step = s->is_surface ? s->bytes : 4;
    LLVMValueRef in = hed_lower_alloca(l, l->i32, HED_RT_COORDINATES, 8);
    LLVMValueRef data = hed_lower_alloca(l, l->i64, DATA_MAX, 16);
    LLVMValueRef all[] = {l->function->strand,
                          args[0],
                          LLVMConstInt(l->i64, pack(&s->access), false),
                          in,
                          data,
                          LLVMConstInt(l->i32, l->inst->stmt.line, false)};
    LLVMTypeRef type = LLVMIntTypeInContext(l->context, 8 * step);

    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        LLVMBuildStore(l->b, args[1 + i], hed_lower_at(l, in, 4 * (int64_t)i));
    for (unsigned i = 0; s->access.is_store && i < count; i++)
        LLVMBuildStore(l->b, args[1 + HED_RT_COORDINATES + i],
                       hed_lower_at(l, data, (int64_t)step * i));
    hed_lower_runtime(l, s->is_surface ? "hed_rt_surface" : "hed_rt_texture", l->nothing, all, 6);
    for (unsigned i = 0; !s->access.is_store && i < count; i++)
        results[i] = LLVMBuildLoad2(l->b, type, hed_lower_at(l, data, (int64_t)step * i), "");
}

/* ---- operands -------------------------------------------------------------------------------- */

static const struct hed_ptx_operand *
element(const struct hed_ptx_operand *o, unsigned i)
{
    return o->kind == HED_PTX_OPERAND_VEC ? (i < o->count ? &o->elems[i] : NULL) : i ? NULL : o;
}

/* The object: the first in brackets. */
static LLVMValueRef
object_of(struct hed_lower *l, const struct hed_ptx_operand *tuple)
{
    struct hed_ptx_operand o = tuple->kind == HED_PTX_OPERAND_TUPLE ? tuple->elems[0] : *tuple;

    if (o.kind == HED_PTX_OPERAND_MEM && o.base == HED_PTX_OPERAND_REG)
        o.kind = HED_PTX_OPERAND_REG;
    if (o.kind != HED_PTX_OPERAND_REG) {
        hed_lower_refuse(l, "references to textures by name are not supported");
        return hed_lower_int(l, l->i64, 0);
    }
    return hed_lower_get(l, &o, HED_PTX_TYPE_B64);
}

static bool
is_layered(unsigned geom)
{
    return geom == HED_PTX_GEOM_A1D || geom == HED_PTX_GEOM_A2D || geom == HED_PTX_GEOM_ACUBE;
}

static unsigned
coordinates_of(unsigned geom)
{
    switch (geom) {
    case HED_PTX_GEOM_1D:
    case HED_PTX_GEOM_A1D:
        return 1;
    case HED_PTX_GEOM_2D:
    case HED_PTX_GEOM_A2D:
        return 2;
    case HED_PTX_GEOM_3D:
    case HED_PTX_GEOM_CUBE:
    case HED_PTX_GEOM_ACUBE:
        return 3;
    default:
        return 0;
    }
}

static void
add_coordinates(struct hed_lower *l, const struct hed_ptx_operand *from, LLVMValueRef *args,
                unsigned skip, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct hed_ptx_operand *e = element(from, i + skip);

        if (!e)
            hed_lower_refuse(l, "too few coordinates");
        else
            args[i] = hed_lower_get(l, e, HED_PTX_TYPE_B32);
    }
}

/* args[0]: the object, args[1] ...: the words of hed_rt_texture's in. */
static void
add_place(struct hed_lower *l, const struct hed_ptx_operand *tuple, LLVMValueRef *args)
{
    const struct hed_ptx_form *f = l->inst->form;
    const unsigned layered = is_layered(f->geom);
    const unsigned count = coordinates_of(f->geom);

    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        args[1 + i] = hed_lower_int(l, l->i32, 0);
    args[0] = object_of(l, tuple);
    if (count == 0 || tuple->kind != HED_PTX_OPERAND_TUPLE) {
        hed_lower_refuse(l, "this geometry is not supported");
        return;
    }

    const struct hed_ptx_operand *from = &tuple->elems[tuple->count - 1];

    if (layered)
        add_coordinates(l, from, &args[1], 0, 1);
    add_coordinates(l, from, &args[2], layered, count);
}

/* ---- textures -------------------------------------------------------------------------------- */

static void
set_results(struct hed_lower *l, const struct hed_ptx_operand *to, enum hed_ptx_type t,
            LLVMValueRef *v, unsigned count)
{
    if (to->kind == HED_PTX_OPERAND_PAIR) {
        /* All of a texture's memory is there. */
        hed_lower_set(l, &to->elems[1], HED_PTX_TYPE_PRED, hed_lower_int(l, l->i1, 1));
        to = &to->elems[0];
    }
    for (unsigned i = 0; i < count; i++) {
        const struct hed_ptx_operand *e = element(to, i);

        if (e)
            hed_lower_set(l, e, t, v[i]);
    }
}

static void
sample(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *o = l->inst->operands;
    const unsigned extra = f->fetch == HED_PTX_FETCH_LEVEL  ? 1
                           : f->fetch == HED_PTX_FETCH_GRAD ? 2
                                                            : 0;
    struct sample s = {
        .access = {.geom = f->geom,
                   .fetch = f->fetch,
                   .type = f->types[0],
                   .channel = f->op == HED_PTX_OP_TLD4 ? f->channel : 0,
                   .is_integer = f->types[1] == HED_PTX_TYPE_S32},
    };
    LLVMTypeRef types[4] = {l->i32, l->i32, l->i32, l->i32};
    LLVMValueRef args[1 + HED_RT_COORDINATES], out[4];

    if (hed_ptx_types[f->types[0]].bits != 32 || f->types[0] == HED_PTX_TYPE_F16X2) {
        hed_lower_refuse(l, "textures of this type are not supported");
        return;
    }
    if (l->inst->noperands != 2 + extra) {
        hed_lower_refuse(l, "offsets and comparisons of textures are not supported");
        return;
    }
    add_place(l, &o[1], args);
    if (f->fetch == HED_PTX_FETCH_LEVEL)
        add_coordinates(l, &o[2], &args[5], 0, 1);
    for (unsigned i = 0; f->fetch == HED_PTX_FETCH_GRAD && i < 2; i++)
        add_coordinates(l, &o[2 + i], &args[6 + 3 * i], 0, coordinates_of(f->geom));
    if (l->err)
        return;
    l->shape->each(l, sample_one, &s, args, 1 + HED_RT_COORDINATES, types, out, 4);
    set_results(l, &o[0], f->types[0], out, 4);
}

static void
query_one(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    LLVMValueRef all[] = {l->function->strand, args[0],
                          LLVMConstInt(l->i32, *(const unsigned *)arg, false),
                          LLVMConstInt(l->i32, l->inst->stmt.line, false)};

    results[0] = hed_lower_runtime(l, "hed_rt_texture_query", l->i32, all, 4);
}

static void
query(struct hed_lower *l)
{
    unsigned what = l->inst->form->query;
    LLVMValueRef object = object_of(l, &l->inst->operands[1]);
    LLVMValueRef v;

    if (l->err)
        return;
    l->shape->each(l, query_one, &what, &object, 1, &l->i32, &v, 1);
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_B32, v);
}

/* ---- surfaces -------------------------------------------------------------------------------- */

static void
access_surface(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *o = l->inst->operands;
    const bool is_store = f->op == HED_PTX_OP_SUST;
    const enum hed_ptx_type t = f->types[0];
    LLVMTypeRef type = hed_lower_int_type(l, t);
    LLVMTypeRef types[4] = {type, type, type, type};
    struct sample s = {
        .access = {.geom = f->geom,
                   .fetch = f->fetch,
                   .type = t,
                   .count = f->vec ? f->vec : 1,
                   .clamp = f->clamp,
                   .is_store = is_store},
        .bytes = hed_ptx_types[t].bits / 8,
        .is_surface = true,
    };
    LLVMValueRef args[1 + HED_RT_COORDINATES + 4], out[4];
    unsigned n = 1 + HED_RT_COORDINATES;

    if (s.access.count > 4) {
        hed_lower_refuse(l, "more than four elements");
        return;
    }
    add_place(l, &o[is_store ? 0 : 1], args);
    for (unsigned i = 0; is_store && i < s.access.count; i++) {
        const struct hed_ptx_operand *e = element(&o[1], i);

        args[n++] = e ? hed_lower_get(l, e, t) : hed_lower_int(l, type, 0);
    }
    if (l->err)
        return;
    l->shape->each(l, sample_one, &s, args, n, types, out, is_store ? 0 : s.access.count);
    if (!is_store)
        set_results(l, &o[0], t, out, s.access.count);
}

bool
hed_lower_texture(struct hed_lower *l)
{
    switch (l->inst->form->op) {
    case HED_PTX_OP_TEX:
    case HED_PTX_OP_TLD4:
        sample(l);
        return true;
    case HED_PTX_OP_TXQ:
    case HED_PTX_OP_SUQ:
        query(l);
        return true;
    case HED_PTX_OP_SULD:
    case HED_PTX_OP_SUST:
        access_surface(l);
        return true;
    case HED_PTX_OP_SURED:
    case HED_PTX_OP_ISTYPEP:
        hed_lower_refuse(l, "reductions on surfaces and types of references are not supported");
        return true;
    default:
        return false;
    }
}
