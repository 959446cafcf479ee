/* Lanes that meet at different steps. See join.h. */
#include "kernel/ptx/interp/join.h"

#include "kernel/ptx/interp/lanes.h"

/* Where a lane is parked. */
struct parked {
    struct interp_frame *frame;
    const struct interp_step *step;
    const struct interp_joint *joint; /* NULL if it is not parked, or alone */
};

/* The operands of all lanes, laid out like registers. */
struct joint_registers {
    _Alignas(64) unsigned char sources[3][8 * HED_PTX_LANES];
    uint32_t masks[HED_PTX_LANES];
    uint32_t result[HED_PTX_LANES]; /* or a predicate, in the first word */
    uint32_t predicate;
};

static void
find_parked(const struct interp_warp *w, struct parked parked[HED_PTX_LANES])
{
    memset(parked, 0, HED_PTX_LANES * sizeof(*parked));
    for (struct interp_block *b = w->top; b; b = b->below) {
        struct interp_frame *f = (struct interp_frame *)b;

        if (!b->is_frame || b->ended)
            continue;
        for (unsigned i = 0; i < HED_PTX_LANES; i++) {
            if (f->pc[i] < INTERP_PARKED || f->pc[i] == INTERP_NONE)
                continue;
            parked[i].frame = f;
            parked[i].step = &f->func->steps[f->pc[i] & ~INTERP_PARKED];
            parked[i].joint = hed_interp_joint(parked[i].step);
        }
    }
}

static unsigned char *
place_of(const struct parked *p, uint32_t place)
{
    unsigned char *base = place & 1 ? p->frame->func->program->constants : p->frame->registers;

    return base + (place & ~UINT32_C(1));
}

static uint32_t
parked_word(const struct parked *p, uint32_t place, unsigned lane)
{
    uint32_t v;

    memcpy(&v, place_of(p, place) + 4 * (size_t)lane, sizeof(v));
    return v;
}

/* The lanes that a lane waits for. */
static uint32_t
lanes_awaited(const struct parked *p, unsigned lane)
{
    return p->joint->is_barrier ? UINT32_MAX : parked_word(p, (uint32_t)p->step->imm, lane);
}

/* Do two lanes wait for each other? */
static bool
is_same_meeting(const struct parked *a, unsigned lane_a, const struct parked *b, unsigned lane_b)
{
    if (a->joint != b->joint || a->step->e != b->step->e ||
        lanes_awaited(a, lane_a) != lanes_awaited(b, lane_b))
        return false;
    return !a->joint->is_barrier ||
           (parked_word(a, a->step->a, lane_a) == parked_word(b, b->step->a, lane_b) &&
            parked_word(a, a->step->b, lane_a) == parked_word(b, b->step->b, lane_b));
}

static void
gather_source(struct joint_registers *r, unsigned k, const struct parked *p, unsigned lane)
{
    const uint32_t place = k == 0 ? p->step->a : k == 1 ? p->step->b : p->step->c;
    const size_t bytes = p->joint->bytes[k];
    uint32_t bits;

    if (bytes != INTERP_BIT) {
        memcpy(r->sources[k] + lane * bytes, place_of(p, place) + lane * bytes, bytes);
        return;
    }
    memcpy(&bits, r->sources[k], sizeof(bits));
    bits |= parked_word(p, place, 0) & hed_interp_bits[lane];
    memcpy(r->sources[k], &bits, sizeof(bits));
}

static void
scatter_bit(const struct parked *p, uint32_t place, unsigned lane, uint32_t bits)
{
    uint32_t *to = (uint32_t *)(void *)place_of(p, place);

    *to = (*to & ~hed_interp_bits[lane]) | (bits & hed_interp_bits[lane]);
}

static void
scatter_result(const struct joint_registers *r, const struct parked *p, unsigned lane)
{
    const struct interp_step *s = p->step;
    const bool is_pair = p->joint->result == INTERP_WORD_AND_BIT;

    if (p->joint->result == INTERP_NO_RESULT)
        return;
    if (!is_pair && s->more)
        scatter_bit(p, s->d, lane, r->result[0]);
    else
        memcpy(place_of(p, s->d) + 4 * (size_t)lane, &r->result[lane], 4);
    if (is_pair)
        scatter_bit(p, (uint32_t)(uintptr_t)s->more, lane, r->predicate);
}

/* The lane goes on behind the operation when its turn comes. */
static void
put_behind(const struct parked *p, unsigned lane)
{
    struct interp_frame *f = p->frame;
    const uint32_t pc = (uint32_t)(p->step - f->func->steps) + 1;

    f->pc[lane] = pc;
    if (pc < f->next)
        f->next = pc;
}

#define PLACE(member) ((uint32_t)offsetof(struct joint_registers, member))

static void
act_together(struct interp_warp *w, const struct parked *parked, uint32_t lanes)
{
    const struct parked *first = &parked[__builtin_ctz(lanes)];
    const struct interp_joint *joint = first->joint;
    struct joint_registers r = {0};
    struct interp_step s = *first->step;

    MASKED_LANES(lanes, lane)
    {
        for (unsigned k = 0; k < 3; k++)
            if (joint->bytes[k])
                gather_source(&r, k, &parked[lane], lane);
        r.masks[lane] = lanes_awaited(&parked[lane], lane);
    }
    s.a = PLACE(sources[0]);
    s.b = PLACE(sources[1]);
    s.c = PLACE(sources[2]);
    s.d = PLACE(result);
    if (!joint->is_barrier)
        s.imm = PLACE(masks);
    if (joint->result == INTERP_WORD_AND_BIT)
        s.more = (const void *)(uintptr_t)PLACE(predicate);
    w->base[0] = (uintptr_t)&r;
    w->active = w->mask = w->write = lanes;
    joint->act(w, &s);
    MASKED_LANES(lanes, lane)
    {
        scatter_result(&r, &parked[lane], lane);
        put_behind(&parked[lane], lane);
    }
}

bool
hed_interp_join(struct interp_warp *w)
{
    const struct hed_interp *program = w->warp->grid->program;
    struct parked parked[HED_PTX_LANES];
    uint32_t left = 0;

    if (!program->joins)
        return false;
    find_parked(w, parked);
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        left |= parked[i].joint ? hed_interp_bits[i] : 0;
    while (left) {
        const unsigned first = (unsigned)__builtin_ctz(left);
        uint32_t lanes = 0;

        MASKED_LANES(left, lane)
        if (is_same_meeting(&parked[first], first, &parked[lane], lane))
            lanes |= hed_interp_bits[lane];
        if ((lanes_awaited(&parked[first], first) & w->live & ~lanes) == 0) {
            act_together(w, parked, lanes);
            return true;
        }
        left &= ~lanes;
    }
    return false;
}
