/* Textures and surfaces: each lane's coordinates go to the runtime, and its results come back. They
 * are objects, whose value the program passes, or references by name.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

#define DATA_MAX 4

enum texture_call_kind { CALL_TEXTURE, CALL_SURFACE, CALL_REDUCE };

struct texture_call {
    enum texture_call_kind kind;
    struct hed_rt_access access;
    uint32_t object;
    uint32_t in[HED_RT_COORDINATES]; /* places */
    uint32_t data[DATA_MAX];
    unsigned count; /* of results or elements */
    unsigned bytes; /* of a register that holds one */
    unsigned step;  /* bytes from one to the next */
};

static uint64_t
access_word(const struct hed_rt_access *a)
{
    uint64_t v;

    _Static_assert(sizeof(*a) == sizeof(v), "an access goes as one number");
    memcpy(&v, a, sizeof(v));
    return v;
}

static void
call_runtime(struct interp_warp *w, const struct interp_step *s, const struct texture_call *c,
             const uint32_t *in, void *data, uint32_t lane)
{
    const uint64_t object = interp_get_lane(w, c->object, 8, lane);
    const uint64_t access = access_word(&c->access);

    w->warp->lane = lane;
    switch (c->kind) {
    case CALL_TEXTURE:
        w->warp->grid->host->texture(w->warp, object, access, in, data, s->line);
        break;
    case CALL_SURFACE:
        w->warp->grid->host->surface(w->warp, object, access, in, data, s->line);
        break;
    default:
        w->warp->grid->host->surface_reduce(w->warp, object, access, in, data, s->line);
        break;
    }
}

static INTERP_STEP(texture_lanes)
{
    const struct texture_call *c = s->more;

    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        uint32_t in[HED_RT_COORDINATES];
        _Alignas(16) unsigned char data[DATA_MAX * 16] = {0};

        for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
            in[i] = (uint32_t)interp_get_lane(w, c->in[i], 4, lane);
        for (unsigned i = 0; c->access.is_store && i < c->count; i++) {
            const uint64_t v = interp_get_lane(w, c->data[i], c->bytes, lane);

            memcpy(data + (size_t)i * c->step, &v, c->bytes);
        }
        call_runtime(w, s, c, in, data, lane);
        for (unsigned i = 0; !c->access.is_store && i < c->count; i++) {
            uint64_t v = 0;

            memcpy(&v, data + (size_t)i * c->step, c->bytes);
            interp_set_lane(w, c->data[i], c->bytes, lane, v);
        }
    }
    w->warp->lane = 0;
    return s + 1;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* Element i of a vector in braces or of a vector register; element 0 of anything else is the
 * operand itself. False if there is no such element. */
static bool
element_of(const struct hed_ptx_operand *o, unsigned i, struct hed_ptx_operand *out)
{
    *out = hed_interp_element(o, i);
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
static uint32_t
object_operand(struct interp_decoder *d, const struct hed_ptx_operand *tuple)
{
    const bool is_tuple = tuple->kind == HED_PTX_OPERAND_TUPLE;
    struct hed_ptx_operand o = is_tuple ? tuple->elems[0] : *tuple;

    if (is_tuple && tuple->count > 2)
        hed_interp_refuse(d, "samplers apart from textures are not supported");
    if (o.kind == HED_PTX_OPERAND_MEM)
        o.kind = o.base;
    if (o.kind != HED_PTX_OPERAND_REG && !is_named_texture(&o)) {
        hed_interp_refuse(d, "this is no texture or surface");
        return 1;
    }
    return hed_interp_source(d, &o, HED_PTX_TYPE_B64);
}

static bool
is_layered(unsigned geom)
{
    return geom == HED_PTX_GEOM_A1D || geom == HED_PTX_GEOM_A2D || geom == HED_PTX_GEOM_ACUBE;
}

static void
set_coordinates(struct interp_decoder *d, const struct hed_ptx_operand *from, uint32_t *in,
                unsigned skip, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct hed_ptx_operand e;

        if (!element_of(from, i + skip, &e))
            hed_interp_refuse(d, "too few coordinates");
        else
            in[i] = hed_interp_source(d, &e, HED_PTX_TYPE_B32);
    }
}

static void
set_place(struct interp_decoder *d, const struct hed_ptx_operand *tuple, struct texture_call *c)
{
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned layered = is_layered(f->geom);
    const unsigned count = hed_ptx_geom_coordinates(f->geom);
    const uint32_t zero = hed_interp_constant(d, 0, 4);

    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        c->in[i] = zero;
    c->object = object_operand(d, tuple);
    if (count == 0 || tuple->kind != HED_PTX_OPERAND_TUPLE) {
        hed_interp_refuse(d, "this geometry is not supported");
        return;
    }

    const struct hed_ptx_operand *from = &tuple->elems[tuple->count - 1];

    if (layered)
        set_coordinates(d, from, &c->in[0], 0, 1);
    set_coordinates(d, from, &c->in[1], layered, count);
}

/* The destinations of results of type t. */
static void
set_results(struct interp_decoder *d, const struct hed_ptx_operand *to, enum hed_ptx_type t,
            struct texture_call *c)
{
    const struct hed_ptx_operand *values = to->kind == HED_PTX_OPERAND_PAIR ? &to->elems[0] : to;

    for (unsigned i = 0; i < c->count; i++) {
        struct hed_ptx_operand e;

        c->data[i] = element_of(values, i, &e) ? hed_interp_dest(d, &e, t)
                                               : hed_interp_temp(d, interp_bytes(t));
    }
}

static void
emit_texture(struct interp_decoder *d, const struct texture_call *c)
{
    const struct hed_ptx_operand *to = &d->inst->operands[0];
    struct texture_call *own = hed_interp_alloc(d, sizeof(*own));

    if (!own || d->err)
        return;
    *own = *c;
    hed_interp_emit(d, texture_lanes)->more = own;
    /* The predicate says that all of the texture's memory is there, which it is. */
    if (!c->access.is_store && to->kind == HED_PTX_OPERAND_PAIR)
        hed_interp_move(d, hed_interp_dest(d, &to->elems[1], HED_PTX_TYPE_PRED),
                        hed_interp_constant(d, 1, 0), 0);
}

/* ---- textures -------------------------------------------------------------------------------- */

/* The operand after the level or the gradients is an offset in texels: a vector, or an integer if
 * there is one coordinate. A float would be a value to compare with. */
static void
set_offset(struct interp_decoder *d, unsigned first, uint32_t *in)
{
    const struct hed_ptx_operand *o = &d->inst->operands[first];
    const unsigned dimensions = hed_ptx_geom_coordinates(d->inst->form->geom);

    if (d->inst->noperands == first)
        return;

    const bool is_float = o->kind == HED_PTX_OPERAND_REG && !o->reg->vec &&
                          hed_ptx_types[o->reg->type].kind == HED_PTX_KIND_F;

    if (d->inst->noperands > first + 1 || is_float ||
        (o->kind != HED_PTX_OPERAND_VEC && dimensions != 1 &&
         !(o->kind == HED_PTX_OPERAND_REG && o->reg->vec)))
        hed_interp_refuse(d, "comparisons of textures are not supported");
    else
        set_coordinates(d, o, in, 0, dimensions);
}

static bool
is_texel_type(enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_F16 || t == HED_PTX_TYPE_F16X2 || t == HED_PTX_TYPE_F32 ||
           t == HED_PTX_TYPE_S32 || t == HED_PTX_TYPE_U32 || t == HED_PTX_TYPE_B32;
}

void
hed_interp_op_sample(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const struct hed_ptx_operand *o = d->inst->operands;
    const unsigned extra = f->fetch == HED_PTX_FETCH_LEVEL  ? 1
                           : f->fetch == HED_PTX_FETCH_GRAD ? 2
                                                            : 0;
    const enum hed_ptx_type t = f->types[0];
    struct texture_call c = {
        .kind = CALL_TEXTURE,
        .access = {.geom = f->geom,
                   .fetch = f->fetch,
                   .type = t,
                   .channel = f->op == HED_PTX_OP_TLD4 ? f->channel : 0,
                   .is_integer = f->types[1] == HED_PTX_TYPE_S32},
        .count = t == HED_PTX_TYPE_F16X2 ? 2 : 4,
        .bytes = interp_bytes(t),
        .step = 4,
    };

    if (!is_texel_type(t) || d->inst->noperands < 2 + extra) {
        hed_interp_refuse(d, "textures of this type are not supported");
        return;
    }
    set_place(d, &o[1], &c);
    if (f->fetch == HED_PTX_FETCH_LEVEL)
        set_coordinates(d, &o[2], &c.in[4], 0, 1);
    for (unsigned i = 0; f->fetch == HED_PTX_FETCH_GRAD && i < 2; i++)
        set_coordinates(d, &o[2 + i], &c.in[5 + 3 * i], 0, hed_ptx_geom_coordinates(f->geom));
    set_offset(d, 2 + extra, &c.in[11]);
    set_results(d, &o[0], t, &c);
    emit_texture(d, &c);
}

/* e is the query; a the object, b the level. */
static INTERP_STEP(query_lanes)
{
    w->warp->line = s->line;
    MASKED_LANES(w->mask, lane)
    {
        w->warp->lane = lane;
        interp_set_lane(w, s->d, 4, lane,
                        w->warp->grid->host->texture_query(
                            w->warp, interp_get_lane(w, s->a, 8, lane), s->e,
                            (uint32_t)interp_get_lane(w, s->b, 4, lane), s->line));
    }
    w->warp->lane = 0;
    return s + 1;
}

void
hed_interp_op_texture_query(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const uint32_t object = object_operand(d, &i->operands[1]);
    const uint32_t level = i->noperands > 2 ? hed_interp_operand(d, 2, HED_PTX_TYPE_B32)
                                            : hed_interp_constant(d, 0, 4);

    hed_interp_emit3(d, query_lanes, hed_interp_dest(d, &i->operands[0], HED_PTX_TYPE_B32), object,
                     level, 0)
        ->e = i->form->query;
}

/* ---- surfaces -------------------------------------------------------------------------------- */

void
hed_interp_op_surface(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const struct hed_ptx_operand *o = d->inst->operands;
    const bool is_load = f->op == HED_PTX_OP_SULD;
    const enum hed_ptx_type t = f->types[0];
    const unsigned count = f->vec ? f->vec : 1;
    struct texture_call c = {
        .kind = f->op == HED_PTX_OP_SURED ? CALL_REDUCE : CALL_SURFACE,
        .access = {.geom = f->geom,
                   .fetch = f->fetch,
                   .type = t,
                   .count = (uint8_t)count,
                   .clamp = f->clamp,
                   .channel = f->op == HED_PTX_OP_SURED ? f->oper : 0,
                   .is_store = !is_load},
        .count = count,
        .bytes = interp_bytes(t),
        .step = interp_bytes(t),
    };

    if (count > DATA_MAX || (f->fetch == HED_PTX_FETCH_P && (is_load || c.step != 4))) {
        hed_interp_refuse(d, "this access to a surface is not supported");
        return;
    }
    set_place(d, &o[is_load ? 1 : 0], &c);
    for (unsigned i = 0; !is_load && i < count; i++) {
        struct hed_ptx_operand e;

        c.data[i] = element_of(&o[1], i, &e) ? hed_interp_source(d, &e, t)
                                             : hed_interp_constant(d, 0, interp_bytes(t));
    }
    if (is_load)
        set_results(d, &o[0], t, &c);
    emit_texture(d, &c);
}

void
hed_interp_op_sured(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned bytes = interp_bytes(f->types[0]);

    switch (f->oper) {
    case HED_PTX_OPER_ADD:
    case HED_PTX_OPER_MIN:
    case HED_PTX_OPER_MAX:
    case HED_PTX_OPER_AND:
    case HED_PTX_OPER_OR:
        if (bytes == 4 || bytes == 8) {
            hed_interp_op_surface(d);
            return;
        }
        break;
    default:
        break;
    }
    hed_interp_refuse(d, "this operation does not exist for this type");
}
