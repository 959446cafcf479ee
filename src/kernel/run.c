/* Runs grids: memory, the engine that all images share, arguments. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "kernel/engine/engine.h"
#include "kernel/engine/watch.h"
#include "kernel/inside.h"

#define MEMORY_ALIGN ((size_t)256)
#define CLOCK_KHZ 1000000              /* %clock counts nanoseconds */
#define STACK_LIMIT ((size_t)16 << 10) /* bytes per thread of a kernel that recurses */
#define PRINTF_LIMIT ((size_t)1 << 20)
#define HEAP_LIMIT ((size_t)8 << 20) /* as CUDA has it */
#define ANY_TIME 1 /* grids bring their own limits; without one there would be no watch */

const char *
heddle_kernel_version(void)
{
    return HED_VERSION;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *
heddle_memory_alloc(size_t size)
{
    void *p;

    if (size > SIZE_MAX - MEMORY_ALIGN)
        return NULL;
    size = hed_round_up(size ? size : 1, MEMORY_ALIGN);
    p = aligned_alloc(MEMORY_ALIGN, size);
    if (p)
        memset(p, 0, size);
    return p;
}

void
heddle_memory_free(void *p)
{
    free(p);
}

/* ---- the engine ------------------------------------------------------------------------------ */

/* All images run in one engine, so that a program with several does not have threads for each. */
static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hed_engine *engine; /* guarded by engine_lock, like the others */
static struct hed_watch *watch;
static unsigned engine_users;

int
hed_image_engine_take(struct hed_engine **out, struct hed_why *why)
{
    int err = 0;

    pthread_mutex_lock(&engine_lock);
    if (!engine) {
        err = hed_engine_create(0, &engine, why);
        watch = err ? NULL : hed_watch_create(ANY_TIME, 0, NULL);
        if (watch)
            hed_engine_set_watch(engine, watch);
    }
    engine_users += !err;
    *out = err ? NULL : engine;
    pthread_mutex_unlock(&engine_lock);
    return err;
}

void
hed_image_engine_give(void)
{
    pthread_mutex_lock(&engine_lock);
    if (--engine_users == 0) {
        hed_engine_free(engine);
        hed_watch_free(watch);
        engine = NULL;
        watch = NULL;
    }
    pthread_mutex_unlock(&engine_lock);
}

/* ---- grids ----------------------------------------------------------------------------------- */

/* Returns what is wrong with a grid, or NULL. */
static const char *
check_grid(const struct hed_image_kernel *k, const struct heddle_grid *g)
{
    const struct hed_ptx_directives *d = &k->func->directives;
    const uint32_t most = hed_image_threads(d->maxntid);
    uint64_t threads = 1;

    for (int i = 0; i < 3; i++) {
        const uint32_t required = d->reqntid[i] ? d->reqntid[i] : 1;

        if (g->blocks[i] == 0 || g->threads[i] == 0 || g->threads[i] > HED_BLOCK_THREADS_MAX)
            return "a grid needs at least one block and thread in each dimension, and a block has "
                   "at most 1024 threads";
        if (d->reqntid[0] && g->threads[i] != required)
            return "the kernel runs only with blocks as its .reqntid says";
        threads *= g->threads[i];
    }
    if (threads > HED_BLOCK_THREADS_MAX)
        return "a block has at most 1024 threads";
    return most && threads > most ? "the kernel's .maxntid allows fewer threads in a block" : NULL;
}

/* The parameters as the kernel reads them; NULL if there is no memory. */
static unsigned char *
put_params(const struct hed_ptx_func *f, void *const *args)
{
    unsigned char *params = heddle_memory_alloc(f->sig.params_size);
    size_t n = 0;

    for (const struct hed_ptx_var *v = f->sig.params; params && v; v = v->next, n++)
        memcpy(params + v->offset, args[n], v->size);
    return params;
}

static bool
has_arguments(const struct hed_ptx_func *f, void *const *args)
{
    for (uint32_t i = 0; i < f->sig.nparams; i++)
        if (!args || !args[i])
            return false;
    return true;
}

static int
report_result(CUresult r, const struct hed_why *because, struct heddle_why *why)
{
    switch (r) {
    case CUDA_SUCCESS:
        return 0;
    case CUDA_ERROR_LAUNCH_TIMEOUT:
        return hed_image_fail(why, HEDDLE_TIME, (int)r, because->text);
    case CUDA_ERROR_OUT_OF_MEMORY:
        return hed_image_fail(why, HEDDLE_NO_MEMORY, (int)r, because->text);
    case CUDA_ERROR_INVALID_VALUE:
        return hed_image_fail(why, HEDDLE_INVALID, (int)r, because->text);
    default:
        return hed_image_fail(why, HEDDLE_FAILED, (int)r, because->text);
    }
}

static int
run_job_of(struct heddle_image *image, const struct hed_image_kernel *k,
           const struct hed_interp *program, const struct heddle_grid *g,
           const unsigned char *params, struct heddle_why *why)
{
    static _Atomic uint64_t ids = 1;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const uint64_t now = hed_now_ns();
    struct hed_why because = {.text = ""};
    struct hed_job job = {
        .entry = hed_interp_entry,
        .info = *hed_interp_info(program),
        .program = program,
        .deadline = g->time_limit_ns ? now + hed_min(g->time_limit_ns, UINT64_MAX - now) : 0,
        .name = k->name,
        .cluster = {1, 1, 1},
        .dynamic_shared = g->dynamic_shared,
        .params = params,
        .param_bytes = k->func->sig.params_size,
        .vars = image->vars,
        .cooperative = g->is_cooperative != 0,
        .in_windows = image->is_lifted,
        /* Relaxed: the ids only have to differ. */
        .id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed),
        .begin = now,
        .sm_count = cores > 0 ? (uint32_t)cores : 1,
        .clock_khz = CLOCK_KHZ,
        .stack_limit = STACK_LIMIT,
        .printf_limit = PRINTF_LIMIT,
        .heap_limit = g->heap_limit ? g->heap_limit : HEAP_LIMIT,
        .heap = &image->heap,
    };

    memcpy(job.grid, g->blocks, sizeof job.grid);
    memcpy(job.block, g->threads, sizeof job.block);
    return report_result(hed_engine_run(image->engine, &job, &because), &because, why);
}

int
heddle_image_run(struct heddle_image *image, int kernel, const struct heddle_grid *grid,
                 void *const *args, struct heddle_why *why)
{
    struct hed_image_kernel *k = hed_image_kernel_of(image, kernel);
    struct heddle_grid g = {.size = 0};
    const struct hed_interp *program;
    unsigned char *params;
    const char *wrong;
    int err;

    if (!k || !grid || grid->size < offsetof(struct heddle_grid, dynamic_shared))
        return hed_image_fail(why, HEDDLE_INVALID, 0, "no such kernel, or no grid with its size");
    memcpy(&g, grid, hed_min(grid->size, sizeof g));
    program = hed_image_program(image, k, &err);
    if (!program)
        return heddle_image_check(image, kernel, why);
    wrong = check_grid(k, &g);
    if (!wrong && !has_arguments(k->func, args))
        wrong = "args must have a pointer to each argument";
    if (wrong)
        return hed_image_fail(why, HEDDLE_INVALID, CUDA_ERROR_INVALID_VALUE, wrong);
    params = put_params(k->func, args);
    if (!params)
        return hed_image_fail(why, HEDDLE_NO_MEMORY, 0, "not enough memory for the parameters");
    err = run_job_of(image, k, program, &g, params, why);
    heddle_memory_free(params);
    return err;
}
