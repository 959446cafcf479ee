/* Textures and surfaces: which object, where, and what goes there or comes back. */
#include <string.h>

#include "kernel/ptx/meaning/family.h"

uint64_t
hed_ptx_pack_access(const struct hed_rt_access *a)
{
    uint64_t v;

    _Static_assert(sizeof(*a) == sizeof(v), "an access goes as one number");
    memcpy(&v, a, sizeof(v));
    return v;
}

/* Is there an element i of a vector in braces or of a vector register? Anything else is its own
 * element 0. */
static bool
has_element(const struct hed_ptx_operand *o, unsigned i)
{
    if (o->kind == HED_PTX_OPERAND_VEC)
        return i < o->count;
    if (o->kind == HED_PTX_OPERAND_REG && o->reg->vec && !o->sel)
        return i < o->reg->vec;
    return i == 0;
}

/* A reference by name is a variable with the descriptor: its address is the object. */
static bool
is_named_texture(const struct hed_ptx_operand *o)
{
    return o->kind == HED_PTX_OPERAND_VAR &&
           (o->var->type == HED_PTX_TYPE_TEXREF || o->var->type == HED_PTX_TYPE_SURFREF);
}

/* The object is the first operand in brackets, and the only one before the coordinates. */
static int
set_object(struct hed_ptx_texture *t, const struct hed_ptx_operand *tuple, struct hed_why *why)
{
    const bool is_tuple = tuple->kind == HED_PTX_OPERAND_TUPLE;

    if (is_tuple && tuple->count > 2)
        return hed_meaning_refuse(why, "samplers apart from textures are not supported");
    t->object = is_tuple ? tuple->elems[0] : *tuple;
    if (t->object.kind == HED_PTX_OPERAND_MEM)
        t->object.kind = t->object.base;
    if (t->object.kind != HED_PTX_OPERAND_REG && !is_named_texture(&t->object))
        return hed_meaning_refuse(why, "this is no texture or surface");
    return 0;
}

static int
set_coordinates(struct hed_ptx_texture *t, unsigned at, const struct hed_ptx_operand *from,
                unsigned skip, unsigned count, struct hed_why *why)
{
    const unsigned room = sizeof t->in / sizeof t->in[0];

    for (unsigned i = 0; i < count; i++) {
        if (at + i >= room || !has_element(from, i + skip))
            return hed_meaning_refuse(why, "too few coordinates");
        t->in[at + i] = hed_ptx_nth_element(from, i + skip);
    }
    return 0;
}

/* Begins a texture: nothing is given. */
static void
begin_texture(struct hed_ptx_texture *t)
{
    *t = (struct hed_ptx_texture){.count = 0};
    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        t->in[i].kind = HED_PTX_OPERAND_SINK;
}

/* [object, {coordinates}]; the layer is the first of these. */
static int
set_place(struct hed_ptx_texture *t, unsigned geom, const struct hed_ptx_operand *tuple,
          struct hed_why *why)
{
    const bool is_layered =
        geom == HED_PTX_GEOM_A1D || geom == HED_PTX_GEOM_A2D || geom == HED_PTX_GEOM_ACUBE;
    const unsigned count = hed_ptx_geom_coordinates(geom);
    int err = set_object(t, tuple, why);

    if (err)
        return err;
    if (count == 0 || tuple->kind != HED_PTX_OPERAND_TUPLE)
        return hed_meaning_refuse(why, "this geometry is not supported");

    const struct hed_ptx_operand *from = &tuple->elems[tuple->count - 1];

    err = set_coordinates(t, 0, from, 0, is_layered, why);
    return err ? err : set_coordinates(t, 1, from, is_layered, count, why);
}

/* The registers of a vector, with a sink for each that is not there. */
static void
set_data(struct hed_ptx_texture *t, const struct hed_ptx_operand *o)
{
    if (o->kind == HED_PTX_OPERAND_PAIR) {
        t->resident = &o->elems[1];
        o = &o->elems[0];
    }
    for (unsigned i = 0; i < t->count; i++)
        t->data[i] = has_element(o, i) ? hed_ptx_nth_element(o, i)
                                       : (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_SINK};
}

/* ---- textures -------------------------------------------------------------------------------- */

/* The operand after the level or the gradients is an offset in texels: a vector, or an integer if
 * there is one coordinate. A float would be a value to compare with. */
static bool
is_offset(const struct hed_ptx_operand *o, unsigned dimensions)
{
    const bool is_vector =
        o->kind == HED_PTX_OPERAND_VEC || (o->kind == HED_PTX_OPERAND_REG && o->reg->vec);

    if (!is_vector && o->kind == HED_PTX_OPERAND_REG &&
        hed_ptx_types[o->reg->type].kind == HED_PTX_KIND_F)
        return false;
    return is_vector || dimensions == 1;
}

static bool
is_texel_type(enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_F16 || t == HED_PTX_TYPE_F16X2 || t == HED_PTX_TYPE_F32 ||
           t == HED_PTX_TYPE_S32 || t == HED_PTX_TYPE_U32 || t == HED_PTX_TYPE_B32;
}

/* The level, the gradients and the offset: operands 2 and on. */
static int
set_more(struct hed_ptx_texture *t, const struct hed_ptx_inst *i, unsigned extra,
         struct hed_why *why)
{
    const unsigned dimensions = hed_ptx_geom_coordinates(i->form->geom);
    const struct hed_ptx_operand *o = &i->operands[2];
    const unsigned more = i->noperands - 2u - extra;
    int err = 0;

    if (i->form->fetch == HED_PTX_FETCH_LEVEL)
        err = set_coordinates(t, 4, &o[0], 0, 1, why);
    for (unsigned k = 0; i->form->fetch == HED_PTX_FETCH_GRAD && k < 2 && !err; k++)
        err = set_coordinates(t, 5 + 3 * k, &o[k], 0, dimensions, why);
    if (err || more == 0)
        return err;
    if (more > 1 || !is_offset(&o[extra], dimensions))
        return hed_meaning_refuse(why, "comparisons of textures are not supported");
    return set_coordinates(t, 11, &o[extra], 0, dimensions, why);
}

HED_MEANING(sample)
{
    const struct hed_ptx_form *f = i->form;
    struct hed_ptx_texture *t = &m->texture;
    const unsigned extra = f->fetch == HED_PTX_FETCH_LEVEL  ? 1
                           : f->fetch == HED_PTX_FETCH_GRAD ? 2
                                                            : 0;
    int err;

    if (!is_texel_type(f->types[0]) || i->noperands < 2 + extra)
        return hed_meaning_refuse(why, "textures of this type are not supported");
    begin_texture(t);
    t->access = (struct hed_rt_access){.geom = f->geom,
                                       .fetch = f->fetch,
                                       .type = f->types[0],
                                       .channel = f->op == HED_PTX_OP_TLD4 ? f->channel : 0,
                                       .is_integer = f->types[1] == HED_PTX_TYPE_S32};
    t->count = f->types[0] == HED_PTX_TYPE_F16X2 ? 2 : 4;
    t->step = 4;
    set_data(t, &i->operands[0]);
    err = set_place(t, f->geom, &i->operands[1], why);
    return err ? err : set_more(t, i, extra, why);
}

HED_MEANING(texture_query)
{
    begin_texture(&m->texture);
    if (i->noperands > 2)
        m->texture.in[0] = i->operands[2];
    return set_object(&m->texture, &i->operands[1], why);
}

/* ---- surfaces -------------------------------------------------------------------------------- */

static bool
can_reduce(const struct hed_ptx_form *f)
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

HED_MEANING(surface)
{
    const struct hed_ptx_form *f = i->form;
    struct hed_ptx_texture *t = &m->texture;
    const bool is_load = f->op == HED_PTX_OP_SULD;
    const bool is_reduction = f->op == HED_PTX_OP_SURED;
    const unsigned count = f->vec ? f->vec : 1;

    if (is_reduction && !can_reduce(f))
        return hed_meaning_refuse(why, "this operation does not exist for this type");
    begin_texture(t);
    t->access = (struct hed_rt_access){.geom = f->geom,
                                       .fetch = f->fetch,
                                       .type = f->types[0],
                                       .count = (uint8_t)count,
                                       .clamp = f->clamp,
                                       .channel = is_reduction ? f->oper : 0,
                                       .is_store = !is_load};
    t->count = count;
    t->step = hed_ptx_types[f->types[0]].bits / 8;
    if (count > HED_PTX_TEXTURE_DATA || (f->fetch == HED_PTX_FETCH_P && (is_load || t->step != 4)))
        return hed_meaning_refuse(why, "this access to a surface is not supported");
    set_data(t, &i->operands[is_load ? 0 : 1]);
    return set_place(t, f->geom, &i->operands[is_load ? 1 : 0], why);
}
