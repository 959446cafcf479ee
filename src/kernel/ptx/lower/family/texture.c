/* Textures and surfaces. Each lane stores its coordinates, calls the runtime and loads the results.
 * Textures and surfaces are objects, whose value the program passes, or references by name.
 */
#include <string.h>

#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/lower.h"

#define DATA_MAX 4

struct texture_call {
    struct hed_rt_access access;
    LLVMTypeRef type; /* of a result, or of an element of a surface */
    unsigned count;   /* of results or elements */
    unsigned step;    /* bytes from one to the next */
    const char *call;
};

static uint64_t
pack_access(const struct hed_rt_access *a)
{
    uint64_t v;

    _Static_assert(sizeof(*a) == sizeof(v), "an access goes as one number");
    memcpy(&v, a, sizeof(v));
    return v;
}

/* args are the object, the coordinates and, for stores and reductions, the elements. */
static void
sample_for_lane(struct hed_lower *l, void *arg, LLVMValueRef *args, LLVMValueRef *results)
{
    const struct texture_call *s = arg;
    LLVMValueRef in = hed_lower_alloca(l, l->i32, HED_RT_COORDINATES, 8);
    LLVMValueRef data = hed_lower_alloca(l, l->i64, DATA_MAX, 16);
    LLVMValueRef all[] = {l->function->warp,
                          args[0],
                          LLVMConstInt(l->i64, pack_access(&s->access), false),
                          in,
                          data,
                          LLVMConstInt(l->i32, l->inst->stmt.line, false)};

    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        LLVMBuildStore(l->b, args[1 + i], hed_lower_at(l, in, 4 * (int64_t)i));
    for (unsigned i = 0; s->access.is_store && i < s->count; i++)
        LLVMBuildStore(l->b, args[1 + HED_RT_COORDINATES + i],
                       hed_lower_at(l, data, (int64_t)s->step * i));
    hed_lower_runtime(l, s->call, l->nothing, all, 6);
    for (unsigned i = 0; !s->access.is_store && i < s->count; i++)
        results[i] = LLVMBuildLoad2(l->b, s->type, hed_lower_at(l, data, (int64_t)s->step * i), "");
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Element i of a vector in braces or of a vector register; element 0 of anything else is the
 * operand itself. False if there is no such element. */
static bool
coordinate_element(const struct hed_ptx_operand *o, unsigned i, struct hed_ptx_operand *out)
{
    *out = *o;
    if (o->kind == HED_PTX_OPERAND_VEC) {
        if (i < o->count)
            *out = o->elems[i];
        return i < o->count;
    }
    if (o->kind == HED_PTX_OPERAND_REG && o->reg->vec && !o->sel) {
        out->sel = (uint16_t)(i + 1);
        return i < o->reg->vec;
    }
    return i == 0;
}

/* A reference by name is a variable with the descriptor: its address is the object. */
static bool
is_texture_name(const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_VAR &&
           (o->var->type == HED_PTX_TYPE_TEXREF || o->var->type == HED_PTX_TYPE_SURFREF);
}

/* The object is the first operand in brackets, and the only one before the coordinates. */
static LLVMValueRef
texture_object(struct hed_lower *l, const struct hed_ptx_operand *tuple)
{
    const bool is_tuple = tuple->kind == HED_PTX_OPERAND_TUPLE;
    struct hed_ptx_operand o = is_tuple ? tuple->elems[0] : *tuple;

    if (is_tuple && tuple->count > 2)
        hed_lower_refuse(l, "samplers apart from textures are not supported");
    if (o.kind == HED_PTX_OPERAND_MEM)
        o.kind = o.base;
    if (o.kind != HED_PTX_OPERAND_REG && !is_texture_name(&o)) {
        hed_lower_refuse(l, "this is no texture or surface");
        return hed_lower_int(l, l->i64, 0);
    }
    return hed_lower_get(l, &o, HED_PTX_TYPE_B64);
}

static bool
is_layered_geometry(unsigned geom)
{
    return geom == HED_PTX_GEOM_A1D || geom == HED_PTX_GEOM_A2D || geom == HED_PTX_GEOM_ACUBE;
}

static void
add_coordinates(struct hed_lower *l, const struct hed_ptx_operand *from, LLVMValueRef *args,
                unsigned skip, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct hed_ptx_operand e;

        if (!coordinate_element(from, i + skip, &e))
            hed_lower_refuse(l, "too few coordinates");
        else
            args[i] = hed_lower_get(l, &e, HED_PTX_TYPE_B32);
    }
}

/* Sets args[0] to the object and the others to the words that hed_rt_texture() takes in `in`. */
static void
add_texture_place(struct hed_lower *l, const struct hed_ptx_operand *tuple, LLVMValueRef *args)
{
    const struct hed_ptx_form *f = l->inst->form;
    const unsigned layered = is_layered_geometry(f->geom);
    const unsigned count = hed_ptx_geom_coordinates(f->geom);

    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        args[1 + i] = hed_lower_int(l, l->i32, 0);
    args[0] = texture_object(l, tuple);
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
set_sample(struct hed_lower *l, const struct hed_ptx_operand *to, enum hed_ptx_type t,
           LLVMValueRef *v, unsigned count)
{
    if (to->kind == HED_PTX_OPERAND_PAIR) {
        /* The predicate says that all of the texture's memory is there, which it is. */
        hed_lower_set(l, &to->elems[1], HED_PTX_TYPE_PRED, hed_lower_int(l, l->i1, 1));
        to = &to->elems[0];
    }
    for (unsigned i = 0; i < count; i++) {
        struct hed_ptx_operand e;

        if (coordinate_element(to, i, &e))
            hed_lower_set(l, &e, t, v[i]);
    }
}

/* The operand after the level or the gradients is an offset in texels: a vector, or an integer if
 * there is one coordinate. A float would be a value to compare with. */
static void
add_texel_offset(struct hed_lower *l, unsigned first, LLVMValueRef *args)
{
    const struct hed_ptx_operand *o = &l->inst->operands[first];
    const unsigned dimensions = hed_ptx_geom_coordinates(l->inst->form->geom);
    const bool is_float = o->kind == HED_PTX_OPERAND_REG && !o->reg->vec &&
                          hed_ptx_types[o->reg->type].kind == HED_PTX_KIND_F;

    if (l->inst->noperands == first)
        return;
    if (l->inst->noperands > first + 1 || is_float ||
        (o->kind != HED_PTX_OPERAND_VEC && dimensions != 1 &&
         !(o->kind == HED_PTX_OPERAND_REG && o->reg->vec)))
        hed_lower_refuse(l, "comparisons of textures are not supported");
    else
        add_coordinates(l, o, args, 0, dimensions);
}

static bool
is_sample_type(enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_F16 || t == HED_PTX_TYPE_F16X2 || t == HED_PTX_TYPE_F32 ||
           t == HED_PTX_TYPE_S32 || t == HED_PTX_TYPE_U32 || t == HED_PTX_TYPE_B32;
}

void
hed_op_sample(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *o = l->inst->operands;
    const unsigned extra = f->fetch == HED_PTX_FETCH_LEVEL  ? 1
                           : f->fetch == HED_PTX_FETCH_GRAD ? 2
                                                            : 0;
    const enum hed_ptx_type t = f->types[0];
    struct texture_call s = {
        .access = {.geom = f->geom,
                   .fetch = f->fetch,
                   .type = t,
                   .channel = f->op == HED_PTX_OP_TLD4 ? f->channel : 0,
                   .is_integer = f->types[1] == HED_PTX_TYPE_S32},
        .type = hed_lower_int_type(l, t),
        .count = t == HED_PTX_TYPE_F16X2 ? 2 : 4,
        .step = 4,
        .call = "hed_rt_texture",
    };
    LLVMTypeRef types[4] = {s.type, s.type, s.type, s.type};
    LLVMValueRef args[1 + HED_RT_COORDINATES], out[4];

    if (!is_sample_type(t) || l->inst->noperands < 2 + extra) {
        hed_lower_refuse(l, "textures of this type are not supported");
        return;
    }
    add_texture_place(l, &o[1], args);
    if (f->fetch == HED_PTX_FETCH_LEVEL)
        add_coordinates(l, &o[2], &args[5], 0, 1);
    for (unsigned i = 0; f->fetch == HED_PTX_FETCH_GRAD && i < 2; i++)
        add_coordinates(l, &o[2 + i], &args[6 + 3 * i], 0, hed_ptx_geom_coordinates(f->geom));
    add_texel_offset(l, 2 + extra, &args[12]);
    if (l->err)
        return;
    l->shape->each(l, sample_for_lane, &s, args, 1 + HED_RT_COORDINATES, types, out, s.count);
    set_sample(l, &o[0], t, out, s.count);
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
    const struct hed_ptx_inst *i = l->inst;
    unsigned what = i->form->query;
    LLVMValueRef args[2] = {texture_object(l, &i->operands[1])};
    LLVMValueRef v;

    args[1] = i->noperands > 2 ? hed_lower_get(l, &i->operands[2], HED_PTX_TYPE_B32)
                               : hed_lower_int(l, l->i32, 0);
    if (l->err)
        return;
    l->shape->each(l, query_for_lane, &what, args, 2, &l->i32, &v, 1);
    hed_lower_set(l, &i->operands[0], HED_PTX_TYPE_B32, v);
}

/* ---- surfaces -------------------------------------------------------------------------------- */

void
hed_op_surface(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const struct hed_ptx_operand *o = l->inst->operands;
    const bool is_load = f->op == HED_PTX_OP_SULD;
    const enum hed_ptx_type t = f->types[0];
    const unsigned count = f->vec ? f->vec : 1;
    struct texture_call s = {
        .access = {.geom = f->geom,
                   .fetch = f->fetch,
                   .type = t,
                   .count = (uint8_t)count,
                   .clamp = f->clamp,
                   .channel = f->op == HED_PTX_OP_SURED ? f->oper : 0,
                   .is_store = !is_load},
        .type = hed_lower_int_type(l, t),
        .count = count,
        .step = hed_ptx_types[t].bits / 8,
        .call = f->op == HED_PTX_OP_SURED ? "hed_rt_surface_reduce" : "hed_rt_surface",
    };
    LLVMTypeRef types[4] = {s.type, s.type, s.type, s.type};
    LLVMValueRef args[1 + HED_RT_COORDINATES + DATA_MAX], out[DATA_MAX];
    unsigned n = 1 + HED_RT_COORDINATES;

    if (count > DATA_MAX || (f->fetch == HED_PTX_FETCH_P && (is_load || s.step != 4))) {
        hed_lower_refuse(l, "this access to a surface is not supported");
        return;
    }
    add_texture_place(l, &o[is_load ? 1 : 0], args);
    for (unsigned i = 0; !is_load && i < count; i++) {
        struct hed_ptx_operand e;

        args[n++] = coordinate_element(&o[1], i, &e) ? hed_lower_get(l, &e, t)
                                                     : hed_lower_int(l, s.type, 0);
    }
    if (l->err)
        return;
    l->shape->each(l, sample_for_lane, &s, args, n, types, out, is_load ? count : 0);
    if (is_load)
        set_sample(l, &o[0], t, out, count);
}

static bool
surface_can_reduce(const struct hed_ptx_form *f)
{
    const unsigned bits = hed_ptx_types[f->types[0]].bits;

    switch (f->oper) {
    case HED_PTX_OPER_ADD:
    case HED_PTX_OPER_MIN:
    case HED_PTX_OPER_MAX:
    case HED_PTX_OPER_AND:
    case HED_PTX_OPER_OR:
        return bits == 32 || bits == 64;
    default:
        return false;
    }
}

void
hed_op_sured(struct hed_lower *l)
{
    if (surface_can_reduce(l->inst->form))
        hed_op_surface(l);
    else
        hed_lower_refuse(l, "this operation does not exist for this type");
}
