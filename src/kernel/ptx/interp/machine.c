/* Runs steps, and decides which lanes run next.
 *
 *   running --branch: some lanes go elsewhere--> those further ahead wait, the others go on
 *   running --at a label where others wait, or after it--> wait, next
 *   running --at an operation for several lanes--> meet: go on, or be parked until they come
 *   all are parked--> join.c: those at the same operation at different steps go on; or else the
 *                     first go on without those that they wait for
 *   running --too long in a loop that may wait for another lane--> rotate
 *   running --call--> a new frame, in which they run alone
 *   running --return--> wait after the call, in the frame of the caller
 *
 * Of the lanes that wait, those in the latest frame run first, and among these the lanes at the
 * lowest pc. So lanes on a shorter path wait where the paths meet, and lanes that return early wait
 * for the others after the call.
 */
#include "base/number.h"
#include "kernel/ptx/interp/inside.h"
#include "kernel/ptx/interp/interp.h"
#include "kernel/ptx/interp/join.h"
#include "kernel/ptx/interp/lanes.h"

#define ALIGN 64u

#define BIT4(n) \
    (UINT32_C(1) << (n)), (UINT32_C(2) << (n)), (UINT32_C(4) << (n)), (UINT32_C(8) << (n))

const uint32_t hed_interp_bits[HED_PTX_LANES] = {BIT4(0),  BIT4(4),  BIT4(8),  BIT4(12),
                                                 BIT4(16), BIT4(20), BIT4(24), BIT4(28)};
const uint64_t hed_interp_bits64[HED_PTX_LANES] = {BIT4(0),  BIT4(4),  BIT4(8),  BIT4(12),
                                                   BIT4(16), BIT4(20), BIT4(24), BIT4(28)};

/* ---- memory ---------------------------------------------------------------------------------- */

void *
hed_interp_take(struct interp_warp *w, size_t bytes)
{
    unsigned char *at = w->free;

    bytes = hed_round_up(bytes, ALIGN);
    if (bytes > (size_t)(w->end - w->free))
        w->warp->grid->host->trap(w->warp, HED_PTX_TRAP_ADDRESS, w->warp->line);
    w->free += bytes;
    return at;
}

void *
hed_interp_take_local(struct interp_warp *w, size_t bytes)
{
    unsigned char *at = w->local;

    if (w->sandbox_outer == 0)
        return hed_interp_take(w, bytes);
    bytes = hed_round_up(bytes, ALIGN);
    if (bytes > (size_t)(w->local_end - at))
        w->warp->grid->host->trap(w->warp, HED_PTX_TRAP_ADDRESS, w->warp->line);
    w->local += bytes;
    return at;
}

static void
release_blocks(struct interp_warp *w)
{
    while (w->top && w->top->ended) {
        w->free = (unsigned char *)w->top;
        w->local = w->top->local;
        w->top = w->top->below;
    }
}

struct interp_frame *
hed_interp_push(struct interp_warp *w, const struct interp_func *f, uint32_t lanes, uint64_t extra)
{
    const uint64_t head = hed_round_up(sizeof(struct interp_frame), ALIGN);
    const uint64_t registers = hed_round_up((uint64_t)f->registers, ALIGN);
    const uint64_t stride = hed_round_up(f->local + extra, ALIGN);
    struct interp_frame *n = hed_interp_take(w, head + registers);

    n->block.below = w->top;
    n->block.local = w->local;
    n->block.ended = false;
    n->block.is_frame = true;
    w->top = &n->block;
    n->func = f;
    n->parent = NULL;
    n->site = NULL;
    n->registers = (unsigned char *)n + head;
    n->local = hed_interp_take_local(w, stride * HED_PTX_LANES);
    n->stride = stride;
    n->extra = NULL;
    n->lanes = lanes;
    n->next = INTERP_NONE;
    memset(n->pc, 0xff, sizeof(n->pc));
    memset(n->registers, 0, f->zeroed);
    return n;
}

void
hed_interp_enter(struct interp_warp *w, struct interp_frame *f)
{
    w->frame = f;
    w->base[0] = (uintptr_t)f->registers;
    w->base[1] = (uintptr_t)f->func->program->constants - 1;
}

void
hed_interp_leave(struct interp_warp *w, struct interp_frame *f, uint32_t lanes)
{
    f->lanes &= ~lanes;
    if (f->lanes) {
        MASKED_LANES(lanes, lane)
        f->pc[lane] = INTERP_NONE;
        return;
    }
    f->block.ended = true;
    for (struct interp_block *b = f->extra; b; b = b->previous)
        b->ended = true;
    release_blocks(w);
}

_Noreturn void
hed_interp_trap(struct interp_warp *w, const struct interp_step *s, uint32_t lanes,
                enum hed_ptx_trap trap)
{
    w->warp->lane = lanes ? (uint32_t)__builtin_ctz(lanes) : 0;
    w->warp->grid->host->trap(w->warp, trap, s->line);
}

/* ---- who runs next --------------------------------------------------------------------------- */

static uint32_t
lowest_waiting(const struct interp_frame *f)
{
    uint32_t low = INTERP_NONE;

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        low = f->pc[i] < low ? f->pc[i] : low;
    return low < INTERP_CALLED ? low : INTERP_NONE;
}

static uint32_t
take_waiting(struct interp_frame *f, uint32_t pc)
{
    uint32_t lanes = 0;

    for (unsigned i = 0; i < HED_PTX_LANES; i++) {
        lanes |= (uint32_t)(f->pc[i] == pc) << i;
        f->pc[i] = f->pc[i] == pc ? INTERP_NONE : f->pc[i];
    }
    return lanes;
}

void
hed_interp_wait(struct interp_warp *w, uint32_t lanes, uint32_t pc)
{
    struct interp_frame *f = w->frame;

    MASKED_LANES(lanes, lane)
    f->pc[lane] = pc;
    if (pc < f->next)
        f->next = pc;
}

/* The lanes that wait in a frame at a pc, parked or not, run. */
static const struct interp_step *
resume_lanes(struct interp_warp *w, struct interp_frame *f, uint32_t pc)
{
    hed_interp_enter(w, f);
    interp_set_active(w, take_waiting(f, pc));
    f->next = lowest_waiting(f);
    w->forced = (pc & INTERP_PARKED) != 0;
    return &f->func->steps[pc & ~INTERP_PARKED];
}

static uint32_t
lowest_parked(const struct interp_frame *f)
{
    uint32_t low = INTERP_NONE;

    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        if (f->pc[i] >= INTERP_PARKED && f->pc[i] < low)
            low = f->pc[i];
    return low;
}

/* The lanes at the lowest pc of the latest frame that has any run. */
static const struct interp_step *
resume_first(struct interp_warp *w, uint32_t (*lowest)(const struct interp_frame *f))
{
    for (struct interp_block *b = w->top; b; b = b->below) {
        struct interp_frame *f = (struct interp_frame *)b;

        if (!b->is_frame || b->ended)
            continue;

        const uint32_t pc = lowest(f);

        if (pc != INTERP_NONE)
            return resume_lanes(w, f, pc);
    }
    return NULL;
}

const struct interp_step *
hed_interp_next(struct interp_warp *w)
{
    const struct interp_step *s = resume_first(w, lowest_waiting);

    if (!s && hed_interp_join(w))
        s = resume_first(w, lowest_waiting);
    /* Those that the parked lanes wait for cannot come. */
    return s ? s : resume_first(w, lowest_parked);
}

const struct interp_step *
hed_interp_go(struct interp_warp *w, const struct interp_step *to)
{
    if (to->e < w->frame->next)
        return to + 1; /* after the label's step, which does the same */
    hed_interp_wait(w, w->active, to->e);
    return hed_interp_next(w);
}

INTERP_SHARED_STEP(hed_interp_label)
{
    if (s->e < w->frame->next)
        INTERP_NEXT(w, s);
    hed_interp_wait(w, w->active, s->e);
    return hed_interp_next(w);
}

/* Lanes of the frame that wait further down than pc; those of other frames if there are none. */
static struct interp_frame *
find_other_lanes(struct interp_warp *w, uint32_t pc, uint32_t *behind)
{
    struct interp_frame *own = w->frame;

    *behind = INTERP_NONE;
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        if (own->pc[i] > pc && own->pc[i] < *behind)
            *behind = own->pc[i];
    if (*behind < INTERP_CALLED)
        return own;
    for (struct interp_block *b = w->top; b; b = b->below) {
        struct interp_frame *f = (struct interp_frame *)b;

        if (!b->is_frame || b->ended || f == own)
            continue;
        *behind = lowest_waiting(f);
        if (*behind != INTERP_NONE)
            return f;
    }
    return NULL;
}

const struct interp_step *
hed_interp_rotate(struct interp_warp *w, uint32_t pc)
{
    struct interp_frame *f;
    const struct interp_step *s;
    uint32_t behind;

    hed_interp_wait(w, w->active, pc);
    f = find_other_lanes(w, pc, &behind);
    if (!f && hed_interp_join(w))
        f = find_other_lanes(w, pc, &behind);
    if (!f)
        return hed_interp_next(w);
    s = resume_lanes(w, f, behind);
    /* They run until they stop, whatever lanes wait further up in the text. */
    f->next = INTERP_FAR;
    return s;
}

bool
hed_interp_meet(struct interp_warp *w, const struct interp_step *s, uint32_t required)
{
    struct interp_frame *f = w->frame;
    uint32_t pc, lanes;

    if (w->active == w->live)
        return true;
    pc = interp_pc(w, s) | INTERP_PARKED;
    lanes = w->active | take_waiting(f, pc);
    if ((required & w->live & ~lanes) && !w->forced) {
        MASKED_LANES(lanes, lane)
        f->pc[lane] = pc;
        return false;
    }
    w->forced = false;
    f->next = lowest_waiting(f);
    interp_set_active(w, lanes);
    return true;
}

/* ---- a warp ---------------------------------------------------------------------------------- */

void
hed_interp_entry(struct hed_ptx_warp *warp)
{
    static const uint32_t never = 0;
    const struct hed_interp *p = warp->grid->program;
    struct interp_warp w = {
        .live = warp->lanes,
        .warp = warp,
        .stop = warp->grid->stop ? warp->grid->stop : &never,
        .free = warp->memory,
        .end = warp->memory + warp->memory_size,
        .local = warp->local,
        .local_end = warp->local ? warp->local + warp->local_size : NULL,
        .sandbox_base = warp->grid->sandbox_base,
        .sandbox_outer = warp->grid->sandbox_outer,
    };
    const struct interp_step *s = p->funcs[0].steps;

    hed_interp_enter(&w, hed_interp_push(&w, &p->funcs[0], w.live, 0));
    interp_set_active(&w, w.live);
    while (s)
        s = s->run(&w, s);
}
