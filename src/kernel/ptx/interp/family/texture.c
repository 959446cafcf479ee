/* Textures and surfaces: each lane's coordinates go to the runtime, and its results come back. They
 * are objects, whose value the program passes, or references by name.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

struct texture_call {
    enum hed_ptx_op op;
    bool is_store;
    uint64_t access; /* hed_ptx_pack_access() */
    uint32_t object; /* a place, as are these */
    uint32_t in[HED_RT_COORDINATES];
    uint32_t data[HED_PTX_TEXTURE_DATA];
    unsigned count; /* of results or elements */
    unsigned bytes; /* of a register that holds one */
    unsigned step;  /* bytes from one to the next */
};

static void
call_runtime(struct interp_warp *w, const struct interp_step *s, const struct texture_call *c,
             const uint32_t *in, void *data, uint32_t lane)
{
    const uint64_t object = interp_get_lane(w, c->object, 8, lane);

    w->warp->lane = lane;
    switch (c->op) {
    case HED_PTX_OP_TEX:
    case HED_PTX_OP_TLD4:
        w->warp->grid->host->texture(w->warp, object, c->access, in, data, s->line);
        break;
    case HED_PTX_OP_SURED:
        w->warp->grid->host->surface_reduce(w->warp, object, c->access, in, data, s->line);
        break;
    default:
        w->warp->grid->host->surface(w->warp, object, c->access, in, data, s->line);
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
        _Alignas(16) unsigned char data[HED_PTX_TEXTURE_DATA * 16] = {0};

        for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
            in[i] = (uint32_t)interp_get_lane(w, c->in[i], 4, lane);
        for (unsigned i = 0; c->is_store && i < c->count; i++) {
            const uint64_t v = interp_get_lane(w, c->data[i], c->bytes, lane);

            memcpy(data + (size_t)i * c->step, &v, c->bytes);
        }
        call_runtime(w, s, c, in, data, lane);
        for (unsigned i = 0; !c->is_store && i < c->count; i++) {
            uint64_t v = 0;

            memcpy(&v, data + (size_t)i * c->step, c->bytes);
            interp_set_lane(w, c->data[i], c->bytes, lane, v);
        }
    }
    w->warp->lane = 0;
    return s + 1;
}

/* ---- decoding -------------------------------------------------------------------------------- */

void
hed_interp_op_texture(struct interp_decoder *d)
{
    const struct hed_ptx_texture *t = &d->meaning->texture;
    struct texture_call *c = hed_interp_alloc(d, sizeof(*c));

    if (!c)
        return;
    *c = (struct texture_call){
        .op = d->inst->form->op,
        .is_store = t->access.is_store,
        .access = hed_ptx_pack_access(&t->access),
        .object = hed_interp_source(d, &t->object, HED_PTX_TYPE_B64),
        .count = t->count,
        .bytes = interp_bytes(t->access.type),
        .step = t->step,
    };
    for (unsigned i = 0; i < HED_RT_COORDINATES; i++)
        c->in[i] = hed_interp_source(d, &t->in[i], HED_PTX_TYPE_B32);
    for (unsigned i = 0; i < t->count; i++)
        c->data[i] = t->access.is_store ? hed_interp_source(d, &t->data[i], t->access.type)
                                        : hed_interp_dest(d, &t->data[i], t->access.type);
    hed_interp_emit(d, texture_lanes)->more = c;
    /* The predicate says that all of the texture's memory is there, which it is. */
    if (t->resident)
        hed_interp_move(d, hed_interp_dest(d, t->resident, HED_PTX_TYPE_PRED),
                        hed_interp_constant(d, 1, 0), 0);
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
    const struct hed_ptx_texture *t = &d->meaning->texture;
    const uint32_t object = hed_interp_source(d, &t->object, HED_PTX_TYPE_B64);
    const uint32_t level = hed_interp_source(d, &t->in[0], HED_PTX_TYPE_B32);

    hed_interp_emit3(d, query_lanes, hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_B32),
                     object, level, 0)
        ->e = d->inst->form->query;
}
