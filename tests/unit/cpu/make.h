/* Shared by the tests of the engine: a job with everything set, and the numbers of threads. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "harness/unit.h"
#include "kernel/engine/engine_parts.h"
#include "kernel/engine/heap.h"
#include "kernel/engine/rt.h"

static struct hed_engine *engine;

static inline int
make_engine(unsigned threads)
{
    struct hed_why why;

    if (hed_engine_create(threads, &engine, &why) == 0)
        return 0;
    print_error("%s\n", why.text);
    return -1;
}

static inline int
setup(void **state)
{
    return make_engine(3);
}

static inline int
setup_alone(void **state)
{
    return make_engine(1);
}

static inline int
teardown(void **state)
{
    hed_engine_free(engine);
    return 0;
}

static inline struct hed_job
make_job(hed_ptx_entry entry, uint32_t flags, uint32_t blocks, uint32_t threads)
{
    return (struct hed_job){
        .entry = entry,
        .info = {.abi = HED_PTX_ABI, .flags = flags, .stack = 4096},
        .name = "test",
        .grid = {blocks, 1, 1},
        .block = {threads, 1, 1},
        .sm_count = 4,
        .resident = 16,
        .clock_khz = 1000000,
        .stack_limit = 1024,
        .printf_limit = 1 << 20,
        .heap_limit = 1 << 20,
    };
}

static inline void *
param(const struct hed_ptx_warp *s, unsigned i)
{
    void *p;

    memcpy(&p, s->grid->params + i * sizeof p, sizeof p);
    return p;
}

/* The number of a lane's thread in a one-dimensional grid. */
static inline uint32_t
thread_of(const struct hed_ptx_warp *s, uint32_t lane)
{
    return s->block->ctaid[0] * s->grid->ntid[0] + s->tid[0][lane];
}

static inline void
run_well(struct hed_job *job, void *const *params, size_t count)
{
    struct hed_why why = {""};

    job->params = params;
    job->param_bytes = count * sizeof *params;

    const CUresult r = hed_engine_run(engine, job, &why);

    if (r != CUDA_SUCCESS)
        print_error("%s\n", why.text);
    assert_int_equal(r, CUDA_SUCCESS);
}

static inline CUresult
run_badly(struct hed_job *job, void *const *params, struct hed_why *why)
{
    job->params = params;
    return hed_engine_run(engine, job, why);
}
