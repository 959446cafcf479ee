/* Open blocks: their warps, stacks and shared memory, which are reused. */
#include "kernel/engine/engine_parts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/number.h"
#include "kernel/engine/sandbox.h"

#define OUT_MAX ((size_t)8 << 20) /* bytes of one printf; printf.c passes the text on earlier */
/* Stacks begin at different offsets in a page; otherwise they would compete for few cache lines. */
#define SHIFT 1088
#define SHIFTS 15
/* The baseline tier keeps registers and variables at the lower end of the stack, and leaves this
 * much of it to its own functions. The memory of neighbours begins at different offsets too, spread
 * over more than a near cache. */
#define STACK_OF_BASELINE ((size_t)256 << 10)
#define MEMORY_SHIFT 4160
#define MEMORY_SHIFTS 32
#define SHARED_ALIGN 1024 /* kernel/ptx/run/abi.h */
#define GUARDS_MAX 20000  /* stacks with guards: the system allows some 65000 mappings */

static void
warp_main(void *arg)
{
    struct hed_engine_warp *s = arg;

    hed_side_first(&s->block->worker->side);
    s->block->grid->job->entry(&s->abi);
    hed_engine_warp_end(s);
}

static bool
take_guards(struct hed_engine *e, uint32_t count)
{
    hed_lock(&e->lock);

    const bool may = e->guards + count <= GUARDS_MAX;

    if (may)
        e->guards += count;
    hed_unlock(&e->lock);
    return may;
}

static void
give_guards(struct hed_engine *e, uint32_t count)
{
    hed_lock(&e->lock);
    e->guards -= count;
    hed_unlock(&e->lock);
}

/* Makes the lowest part of each stack inaccessible, so that a stack that grows too large does not
 * run into its neighbour. Confined kernels do not run without: false. */
static bool
protect_stacks(struct hed_block *b)
{
    struct hed_engine *e = b->worker->engine;

    if (b->guard == 0)
        return !e->sandbox;
    if (!take_guards(e, b->stack_room)) {
        b->guard = 0;
        return !e->sandbox;
    }
    for (uint32_t i = 0; i < b->stack_room; i++)
        if (mprotect(b->stacks.at + i * b->stack_size, b->guard, PROT_NONE) != 0 && e->sandbox)
            return false;
    return true;
}

static size_t
shared_size(const struct hed_grid *g)
{
    return hed_round_up(g->abi.total_shared, SHARED_ALIGN);
}

/* Makes so much of the window usable as the grid needs, so that an access beyond the end of its
 * last page fails. */
static int
fit_window(struct hed_block *b, const struct hed_grid *g)
{
    const size_t room = hed_round_up(shared_size(g), b->worker->engine->page);

    if (room > b->shared_room &&
        mprotect(b->shared.at + b->shared_room, room - b->shared_room, PROT_READ | PROT_WRITE) != 0)
        return HED_ENOMEM;
    if (room < b->shared_room)
        (void)mprotect(b->shared.at + room, b->shared_room - room, PROT_NONE);
    b->shared_room = room;
    return 0;
}

/* Shared memory ends at the end of a page, and the next page is inaccessible, so an access beyond
 * its end fails, as on a GPU. */
static int
take_block_shared(struct hed_block *b, const struct hed_grid *g)
{
    struct hed_regions *from = b->worker->engine->shared;
    const size_t page = b->worker->engine->page;

    b->in_window = g->job->in_windows;
    if (b->in_window)
        return hed_window_take(from, &b->shared) == 0 ? fit_window(b, g) : HED_ENOMEM;
    if (hed_region_take(from, shared_size(g) + page, &b->shared) != 0)
        return HED_ENOMEM;
    b->shared_room = b->shared.size - page;
    (void)mprotect(b->shared.at + b->shared_room, page, PROT_NONE);
    return 0;
}

static void
give_shared(struct hed_block *b)
{
    struct hed_regions *to = b->worker->engine->shared;

    if (!b->shared.at)
        return;
    if (b->in_window) {
        (void)mprotect(b->shared.at, b->shared.size, PROT_NONE);
        hed_window_give(to, &b->shared);
        return;
    }
    (void)mprotect(b->shared.at, b->shared.size, PROT_READ | PROT_WRITE);
    hed_region_give(to, &b->shared);
}

static void
block_free(struct hed_block *b)
{
    struct hed_engine *e = b->worker->engine;

    if (b->stacks.at) {
        if (b->guard) {
            (void)mprotect(b->stacks.at, b->stacks.size, PROT_READ | PROT_WRITE);
            give_guards(e, b->stack_room);
        }
        hed_region_give(&e->stacks, &b->stacks);
    }
    give_shared(b);
    hed_buf_fini(&b->out);
    hed_buf_fini(&b->format);
    if (b->frames.at)
        hed_region_give(&e->stacks, &b->frames);
    if (b->locals.at)
        hed_region_give(&e->sandbox->local, &b->locals);
    free(b->warps);
    free(b);
}

static struct hed_block *
block_create(struct hed_engine_worker *w, const struct hed_grid *g)
{
    struct hed_block *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->worker = w;
    b->stack_size = g->stack_size;
    b->stack_room = g->stacks;
    b->guard = g->guard;
    hed_buf_init(&b->out, OUT_MAX);
    hed_buf_init(&b->format, OUT_MAX);
    b->warps = calloc(g->warps, sizeof *b->warps);
    if (b->warps)
        b->warp_room = g->warps;
    /* Frames hold variables in local memory, so they lie where the stacks do; those of confined
     * kernels are in the address sandbox instead. */
    if (!b->warps ||
        (g->frame && hed_region_take(&w->engine->stacks, g->frame * g->warps, &b->frames) != 0) ||
        (g->local &&
         hed_region_take(&w->engine->sandbox->local, g->local * g->locals, &b->locals)) ||
        hed_region_take(&w->engine->stacks, g->stacks * g->stack_size, &b->stacks) != 0 ||
        take_block_shared(b, g) != 0) {
        b->guard = 0;
        block_free(b);
        return NULL;
    }
    if (protect_stacks(b))
        return b;
    block_free(b);
    return NULL;
}

/* Can a block of an earlier grid be reused for this one? A window can be made to fit. */
static bool
block_fits(struct hed_block *b, const struct hed_grid *g)
{
    return b->stack_size >= g->stack_size && (b->guard == g->guard || b->guard == 0) &&
           b->stack_room >= g->stacks && b->warp_room >= g->warps &&
           b->frames.size >= g->frame * g->warps && b->locals.size >= g->local * g->locals &&
           b->in_window == g->job->in_windows &&
           (b->in_window ? fit_window(b, g) == 0 : b->shared_room >= shared_size(g));
}

static void
place_warp(struct hed_engine_warp *s, const struct hed_grid *g, uint32_t warp)
{
    const uint32_t first = warp * HED_PTX_LANES;
    const uint32_t *ntid = g->abi.ntid;
    struct hed_ptx_warp *a = &s->abi;
    uint32_t tid[3] = {first % ntid[0], first / ntid[0] % ntid[1], first / ntid[0] / ntid[1]};

    a->warp = warp;
    a->lane = 0;
    s->threads = (uint32_t)hed_min(g->threads - first, HED_PTX_LANES);
    a->lanes = UINT32_MAX >> (HED_PTX_LANES - s->threads);
    for (uint32_t lane = 0; lane < HED_PTX_LANES; lane++) {
        for (int d = 0; d < 3; d++)
            a->tid[d][lane] = tid[d];
        if (++tid[0] == ntid[0]) {
            tid[0] = 0;
            if (++tid[1] == ntid[1]) {
                tid[1] = 0;
                tid[2]++;
            }
        }
    }
}

static void
place_warp_memory(struct hed_engine_warp *s, const struct hed_block *b, uint32_t index)
{
    const size_t shift = index % MEMORY_SHIFTS * MEMORY_SHIFT;

    s->abi.memory = s->stack + b->guard + shift;
    s->abi.memory_size = b->stack_size - b->guard - shift - STACK_OF_BASELINE;
}

/* Warps that were made for grids like this one stay as they are. */
static bool
warps_are_made(const struct hed_block *b, const struct hed_grid *g)
{
    return memcmp(b->made.ntid, g->abi.ntid, sizeof b->made.ntid) == 0 &&
           b->made.direct == g->direct && b->made.in_baseline == (g->job->program != NULL) &&
           b->made.frame == g->frame && b->made.local == g->local && b->made.locals == g->locals;
}

static void
make_warps(struct hed_block *b, const struct hed_grid *g)
{
    for (uint32_t i = 0; i < g->warps; i++) {
        struct hed_engine_warp *s = &b->warps[i];

        s->abi.block = &b->abi;
        s->block = b;
        s->stack = b->stacks.at + (g->direct ? 0 : i * b->stack_size);
        if (g->job->program)
            place_warp_memory(s, b, g->direct ? 0 : i);
        s->abi.frame = g->frame ? b->frames.at + i * g->frame : NULL;
        s->abi.local = g->local ? b->locals.at + (g->locals > 1 ? i * g->local : 0) : NULL;
        s->abi.local_size = g->local;
        place_warp(s, g, i);
        hed_side_init(&s->side, s->stack + b->guard, b->stack_size - b->guard);
    }
    memcpy(b->made.ntid, g->abi.ntid, sizeof b->made.ntid);
    b->made.direct = g->direct;
    b->made.in_baseline = g->job->program != NULL;
    b->made.frame = g->frame;
    b->made.local = g->local;
    b->made.locals = g->locals;
}

struct hed_block *
hed_block_open(struct hed_engine_worker *w, struct hed_grid *g)
{
    struct hed_block *b;

    for (struct hed_block **at = &w->spare; (b = *at) != NULL; at = &b->next) {
        if (block_fits(b, g)) {
            *at = b->next;
            w->spare_count--;
            break;
        }
    }
    if (!b)
        b = block_create(w, g);
    if (!b)
        return NULL;
    b->next = NULL;
    b->grid = g;
    b->abi.grid = &g->abi;
    b->abi.shared = b->shared.at + (b->in_window ? 0 : b->shared_room - shared_size(g));
    b->abi.smid = w->index % g->abi.nsm;
    b->steps = 0;
    if (!warps_are_made(b, g))
        make_warps(b, g);
    for (uint32_t i = 0; i < g->warps; i++) {
        struct hed_engine_warp *s = &b->warps[i];

        s->abi.grid = &g->abi;
        s->abi.lane = 0;
        s->abi.line = 0;
        s->abi.resume = 0;
        s->barrier = 0;
    }
    return b;
}

void
hed_block_place(struct hed_block *b, uint64_t index)
{
    const uint32_t *n = b->grid->abi.nctaid;

    b->abi.ctaid[0] = (uint32_t)(index % n[0]);
    b->abi.ctaid[1] = (uint32_t)(index / n[0] % n[1]);
    b->abi.ctaid[2] = (uint32_t)(index / n[0] / n[1]);
}

void
hed_block_begin(struct hed_block *b, uint64_t index)
{
    struct hed_grid *g = b->grid;

    hed_block_place(b, index);
    b->live = g->warps;
    b->ended_threads = 0;
    b->first = b->last = NULL;
    b->queued = 0;
    b->steps = 0;
    memset(b->barriers, 0, sizeof b->barriers);
    for (uint32_t i = 0; i < g->warps; i++) {
        struct hed_engine_warp *s = &b->warps[i];

        s->abi.fuel = HED_FUEL;
        s->spun = 0;
        s->abi.line = 0;
        s->abi.lane = 0;
        s->abi.lanes = UINT32_MAX >> (HED_PTX_LANES - s->threads);
        s->barrier = 0;
        hed_side_init(&s->side, s->stack + b->guard, b->stack_size - b->guard);
        s->side.sp = hed_fiber_make(s->stack + b->stack_size - i % SHIFTS * SHIFT, warp_main, s);
        s->state = HED_ENGINE_WARP_WAITING;
        hed_engine_warp_ready(s);
    }
}

void
hed_block_close(struct hed_block *b)
{
    struct hed_engine_worker *w = b->worker;

    hed_output_add(b);
    b->next = w->spare;
    w->spare = b;
    w->spare_count++;
}

void
hed_block_trim(struct hed_engine_worker *w, uint32_t keep)
{
    struct hed_block **at = &w->spare;

    /* The latest are in front; those at the end have been of no use for longest. */
    for (uint32_t n = 0; n < keep && *at; n++)
        at = &(*at)->next;
    while (*at) {
        struct hed_block *b = *at;

        *at = b->next;
        w->spare_count--;
        block_free(b);
    }
}
