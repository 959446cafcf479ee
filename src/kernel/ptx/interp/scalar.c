/* Steps that call a function for each lane: for instructions and forms that are rare. */
#include "kernel/ptx/interp/lanes.h"

#define SOURCES_MAX 4

struct scalar_call {
    interp_scalar_fn fn;
    const struct hed_ptx_form *form;
    unsigned n;
    uint32_t from[SOURCES_MAX];
    uint8_t bytes[SOURCES_MAX + 1]; /* of the destination first */
};

static INTERP_STEP(scalar_lanes)
{
    const struct scalar_call *c = s->more;

    MASKED_LANES(w->write, lane)
    {
        uint64_t in[SOURCES_MAX] = {0};

        for (unsigned i = 0; i < c->n; i++)
            in[i] = interp_get_lane(w, c->from[i], c->bytes[i + 1], lane);
        interp_set_lane(w, s->d, c->bytes[0], lane, c->fn(c->form, in));
    }
    return s + 1;
}

void
hed_interp_scalar_at(struct interp_decoder *d, interp_scalar_fn fn, uint32_t to,
                     const uint32_t *from, const uint8_t *bytes, unsigned n)
{
    struct scalar_call *c = hed_interp_alloc(d, sizeof(*c));
    struct interp_step *s;

    if (!c || n > SOURCES_MAX)
        return;
    c->fn = fn;
    c->form = d->inst->form;
    c->n = n;
    for (unsigned i = 0; i < n; i++)
        c->from[i] = from[i];
    for (unsigned i = 0; i <= n; i++)
        c->bytes[i] = bytes[i];
    s = hed_interp_emit(d, scalar_lanes);
    s->d = to;
    s->more = c;
}

void
hed_interp_scalar(struct interp_decoder *d, interp_scalar_fn fn, const uint8_t *types, unsigned n)
{
    uint32_t from[SOURCES_MAX];
    uint8_t bytes[SOURCES_MAX + 1];

    for (unsigned i = 0; i < n && i < SOURCES_MAX; i++) {
        from[i] = hed_interp_operand(d, i + 1, types[i + 1]);
        bytes[i + 1] = (uint8_t)interp_bytes(types[i + 1]);
    }
    bytes[0] = (uint8_t)interp_bytes(types[0]);
    hed_interp_scalar_at(d, fn, hed_interp_dest(d, &d->inst->operands[0], types[0]), from, bytes,
                         n);
}
