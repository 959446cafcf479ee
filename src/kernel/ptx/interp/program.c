/* Makes a program of a kernel and the functions that it can reach. */
#include <stdlib.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/interp/inside.h"
#include "kernel/ptx/interp/interp.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/pass/apart.h"

#define PROGRAM_MAX ((size_t)1 << 30) /* bytes of steps and what belongs to them */
#define FOUND_BYTES (8u << 20)        /* of a warp's memory, for functions of other programs */

static void
note_global(void *arg, uint32_t index, const struct hed_ptx_var *v)
{
    struct interp_decoder *d = arg;

    if (hed_interp_map_put(d->places, (uintptr_t)v, index) != 0)
        d->err = HED_ENOMEM;
}

static int
make_functions(struct interp_decoder *d)
{
    struct hed_interp *p = d->program;
    const struct hed_ptx_unit *u = d->unit;

    p->nmodule = d->module->nfuncs;
    p->nfuncs = u->nfuncs;
    p->funcs = hed_interp_alloc(d, (u->nfuncs + 1) * sizeof(*p->funcs));
    p->by_index = hed_interp_alloc(d, ((size_t)p->nmodule + 1) * sizeof(struct interp_func *));
    for (uint32_t i = 0; !d->err && i < u->nfuncs; i++) {
        const uint32_t index = hed_ptx_func_index(d->module, u->funcs[i]);

        p->funcs[i].program = p;
        p->funcs[i].ptx = u->funcs[i];
        if (index < p->nmodule)
            p->by_index[index] = &p->funcs[i];
    }
    return d->err;
}

/* Bytes of memory that a warp needs if no function is called recursively. */
static uint32_t
memory_estimate(const struct hed_interp *p)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < p->nfuncs; i++)
        bytes += sizeof(struct interp_frame) + p->funcs[i].registers +
                 (uint64_t)p->funcs[i].local * HED_PTX_LANES + 512;
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

/* The same of local memory, if it lies apart. Arrays of unknown size are copies of others. */
static uint32_t
local_estimate(const struct hed_interp *p)
{
    uint64_t bytes = p->info.local;

    for (uint32_t i = 0; i < p->nfuncs; i++)
        bytes += 2 * ((uint64_t)p->funcs[i].local * HED_PTX_LANES + 64);
    return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
}

/* Finds out whether lanes that are parked at different steps may be joined. They are only where
 * they must be, in kernels that are not compiled (pass/apart.h): programs whose loops run out lane
 * by lane often give shuffles in them the mask of the whole warp, and those are not to meet one
 * behind the loop. */
static void
find_joins(struct interp_decoder *d)
{
    for (uint32_t i = 1; i < d->unit->nfuncs; i++)
        d->program->joins |= hed_apart_awaits(d->unit->funcs[i]);
    if (!d->program->joins)
        d->program->joins = hed_apart_in(d->unit->funcs[0]);
}

static void
fill_info(struct interp_decoder *d)
{
    struct hed_ptx_info *info = &d->program->info;

    info->abi = HED_PTX_ABI;
    info->flags |= d->unit->recurses ? HED_PTX_RECURSES : 0;
    info->shared = d->unit->shared_size;
    info->shared_align = d->unit->shared_align;
    info->stack = memory_estimate(d->program);
    info->local = local_estimate(d->program);
}

static void
decode_unit(struct interp_decoder *d)
{
    struct hed_interp *p = d->program;

    d->places = hed_interp_map_new();
    d->locals = hed_interp_map_new();
    d->constants = hed_interp_map_new();
    if (!d->places || !d->locals || !d->constants) {
        d->err = HED_ENOMEM;
        return;
    }
    hed_ptx_each_var(d->module, note_global, d);
    for (uint32_t i = 0; i < d->unit->nshared; i++) {
        if (hed_interp_map_put(d->places, (uintptr_t)d->unit->shared[i].var,
                               d->unit->shared[i].offset) != 0)
            d->err = HED_ENOMEM;
    }
    if (!d->err)
        (void)make_functions(d);
    for (uint32_t i = 0; i < d->unit->nfuncs && !d->err; i++)
        hed_interp_decode(d, &p->funcs[i], i < d->unit->ncalled);
    if (d->err)
        return;
    p->constants = hed_arena_alloc(&p->arena, d->pooled + 64, 64);
    if (!p->constants)
        d->err = HED_ENOMEM;
    else if (d->pooled)
        memcpy(p->constants, d->pool, d->pooled);
    fill_info(d);
    find_joins(d);
}

int
hed_interp_create(const struct hed_ptx_module *m, const struct hed_ptx_func *kernel,
                  struct hed_interp **out, struct hed_why *why)
{
    struct hed_interp *p = calloc(1, sizeof(*p));
    struct hed_ptx_unit unit;
    struct interp_decoder d = {.program = p, .module = m, .unit = &unit, .why = why};

    if (!p)
        return HED_ENOMEM;
    p->module = m;
    hed_arena_init(&p->arena, PROGRAM_MAX);
    d.err = hed_ptx_unit_init(&unit, m, kernel);
    if (d.err == 0) {
        decode_unit(&d);
        hed_ptx_unit_fini(&unit);
    }
    hed_interp_map_free(d.places);
    hed_interp_map_free(d.locals);
    hed_interp_map_free(d.constants);
    free(d.steps);
    free(d.pool);
    if (d.err) {
        hed_interp_free(p);
        return d.err;
    }
    *out = p;
    return 0;
}

void
hed_interp_free(struct hed_interp *p)
{
    if (!p)
        return;
    hed_arena_fini(&p->arena);
    free(p);
}

void
hed_interp_set_finder(struct hed_interp *p, hed_interp_find_fn find, void *arg)
{
    p->find = find;
    p->find_arg = arg;
    p->info.flags |= HED_PTX_WAITS | HED_PTX_GRID | HED_PTX_RECURSES;
    p->info.stack += FOUND_BYTES;
    p->joins = true;
}

const struct hed_ptx_info *
hed_interp_info(const struct hed_interp *p)
{
    return &p->info;
}
