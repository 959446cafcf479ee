/* Creating and freeing the engine, and running a grid. */
#include "kernel/engine/engine_parts.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "kernel/engine/rt.h"
#include "kernel/engine/sandbox.h"
#include "kernel/engine/watch.h"

#define STACKS_RANGE ((size_t)256 << 30) /* bytes of addresses */
#define SHARED_RANGE ((size_t)256 << 30) /* room for as many windows as a device has blocks */
#define STACK_WARP ((size_t)1 << 20)     /* of a warp, besides its variables, at most */
#define STACK_LEAST ((size_t)64 << 10)   /* sizes are powers of two, so that stacks can be reused */
#define STACK_MOST ((size_t)256 << 20)   /* per warp */
#define GUARD ((size_t)64 << 10)         /* bytes under a stack; large frames may skip a page */
/* The same for confined kernels: no frame of a function in C that they call is larger. */
#define GUARD_CONFINED ((size_t)256 << 10)
#define GUARDED_MOST 64     /* stacks have guards if a block has at most so many warps */
#define RECURSION_FACTOR 16 /* our frames are larger than a GPU's */
#define CHUNK_MOST 64       /* blocks; compiled ones stop between blocks by themselves */
#define WORTH_NS 20000      /* a grid that takes less is not worth waking another thread */
#define OPEN_LEAST 2
/* In the address sandbox: what cooperative groups use, then the parameters. */
#define WORKSPACE_SIZE 64
#define PARAMS_MOST (HED_REGION_LEAST - WORKSPACE_SIZE)

static unsigned
count_cores(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);

    const long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (unsigned)n : 1;
}

static size_t
page_size(void)
{
    const long n = sysconf(_SC_PAGESIZE);

    return n > 0 ? (size_t)n : HED_REGION_LEAST;
}

int
hed_engine_create(unsigned threads, struct hed_engine **out, struct hed_why *why)
{
    return hed_engine_create_confined(threads, NULL, out, why);
}

int
hed_engine_create_confined(unsigned threads, struct hed_address_sandbox *sandbox,
                           struct hed_engine **out, struct hed_why *why)
{
    struct hed_engine *e = calloc(1, sizeof *e);

    if (!e) {
        hed_why_set(why, "not enough memory for the CPU GPU");
        return HED_ENOMEM;
    }
    e->threads = threads ? threads : count_cores();
    if (e->threads > HED_ENGINE_THREADS_MAX)
        e->threads = HED_ENGINE_THREADS_MAX;
    hed_lock_init(&e->lock, HED_RANK_WORKERS);
    pthread_cond_init(&e->work, NULL);
    e->page = page_size();
    e->workers = calloc(e->threads, sizeof(struct hed_engine_worker *));
    if (!e->workers || hed_regions_init(&e->stacks, STACKS_RANGE) != 0) {
        hed_why_set(why, "no addresses for the stacks of kernels");
        free(e->workers);
        free(e);
        return HED_ENOMEM;
    }
    e->sandbox = sandbox;
    e->shared = sandbox ? &sandbox->shared : &e->own_shared;
    if (!sandbox && hed_regions_init(e->shared, SHARED_RANGE) != 0) {
        hed_why_set(why, "no addresses for shared memory");
        hed_regions_fini(&e->stacks);
        free(e->workers);
        free(e);
        return HED_ENOMEM;
    }
    *out = e;
    return 0;
}

void
hed_engine_set_watch(struct hed_engine *e, struct hed_watch *w)
{
    e->watch = w;
}

void
hed_engine_free(struct hed_engine *e)
{
    if (!e)
        return;
    hed_engine_workers_stop(e);
    hed_regions_fini(&e->stacks);
    if (!e->sandbox)
        hed_regions_fini(&e->own_shared);
    pthread_cond_destroy(&e->work);
    hed_lock_fini(&e->lock);
    free(e->workers);
    free(e);
}

void
hed_engine_forked(struct hed_engine *e)
{
    /* The threads that held the lock or waited for it do not exist in the child. */
    hed_lock_init(&e->lock, HED_RANK_WORKERS);
    pthread_cond_init(&e->work, NULL);
    e->started = 0;
    e->grids = NULL;
    e->idle = NULL;
    e->hot = NULL;
}

/* Chooses the size of a stack and whether it has a guard. The compiler knows the size of a kernel's
 * variables, but not how much it spills. Address space is cheap, and memory is used only where it
 * is touched. */
static void
choose_stack(struct hed_grid *g)
{
    const struct hed_job *job = g->job;
    const size_t guard = g->engine->sandbox ? GUARD_CONFINED : GUARD;
    size_t size = (size_t)job->info.stack + STACK_WARP;

    if (job->info.flags & HED_PTX_RECURSES)
        size += job->stack_limit * RECURSION_FACTOR * HED_PTX_LANES;
    if (size > STACK_MOST)
        size = STACK_MOST;
    g->guard = g->stacks <= GUARDED_MOST || (job->info.flags & HED_PTX_RECURSES) ? guard : 0;
    g->stack_size = STACK_LEAST;
    while (g->stack_size < size + g->guard)
        g->stack_size *= 2;
}

/* Chooses how blocks are handed out. */
static void
choose_blocks(struct hed_grid *g)
{
    const struct hed_job *job = g->job;
    const uint32_t workers = g->engine->threads;

    g->chunk = job->info.flags & HED_PTX_BLOCKS ? UINT64_MAX : g->direct ? CHUNK_MOST : 1;
    if (job->chunk_most)
        g->chunk = hed_min(g->chunk, job->chunk_most);
    if (job->cooperative) {
        g->open_most = UINT32_MAX;
        g->open_share = (uint32_t)hed_divide_up(g->blocks, workers);
    } else {
        g->open_most = job->resident ? job->resident : OPEN_LEAST * workers;
        if (g->open_most < OPEN_LEAST)
            g->open_most = OPEN_LEAST;
        g->open_share = job->info.flags & HED_PTX_GRID ? hed_divide_up(g->open_most, workers) : 1;
        if (g->open_share < OPEN_LEAST && (job->info.flags & HED_PTX_GRID))
            g->open_share = OPEN_LEAST;
    }
}

static CUresult
check_job(const struct hed_engine *e, const struct hed_job *job, struct hed_why *why)
{
    const bool is_confined = (job->info.flags & HED_PTX_CONFINED) != 0;
    uint64_t threads = 1;

    /* The cache keeps the two kinds of code apart; this makes sure. */
    if (!job->program && is_confined != (e->sandbox != NULL)) {
        hed_why_set(why, "kernel %.120s: its code was %scompiled for an address sandbox", job->name,
                    e->sandbox ? "not " : "");
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (job->param_bytes > PARAMS_MOST && e->sandbox) {
        hed_why_set(why, "kernel %.120s: %zu bytes of parameters are too many", job->name,
                    job->param_bytes);
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }

    for (int d = 0; d < 3; d++) {
        if (job->grid[d] == 0 || job->block[d] == 0 || job->block[d] > HED_BLOCK_THREADS_MAX)
            threads = HED_BLOCK_THREADS_MAX + 1;
        else
            threads *= job->block[d];
    }
    if (threads > HED_BLOCK_THREADS_MAX) {
        hed_why_set(why, "kernel %.120s: blocks cannot have %u x %u x %u threads", job->name,
                    job->block[0], job->block[1], job->block[2]);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if ((uint64_t)job->info.shared + job->info.shared_align + job->dynamic_shared >
        HED_SHARED_MAX) {
        hed_why_set(why, "kernel %.120s: %u + %u bytes of shared memory are too many", job->name,
                    job->info.shared, job->dynamic_shared);
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    return CUDA_SUCCESS;
}

/* Moves what the kernel may reach into its address sandbox. The worker has the room:
 * hed_engine_worker_take. */
static void
confine_grid(struct hed_grid *g, const struct hed_engine_worker *w)
{
    const struct hed_job *job = g->job;
    struct hed_ptx_grid *a = &g->abi;
    unsigned char *given = w->given.at;

    a->sandbox_base = g->engine->sandbox->base;
    a->sandbox_outer = ~(HED_PTX_SANDBOX_SIZE - 1);
    memset(given, 0, WORKSPACE_SIZE);
    if (job->param_bytes)
        memcpy(given + WORKSPACE_SIZE, job->params, job->param_bytes);
    a->params = given + WORKSPACE_SIZE;
    if (job->cooperative)
        a->workspace = (uint64_t)(uintptr_t)given;
    /* The baseline tier runs functions that call themselves. */
    g->local = job->program && job->info.flags & HED_PTX_RECURSES
                   ? g->stack_size
                   : hed_round_up(job->info.local, 64);
    g->locals = g->direct && !(job->info.flags & HED_PTX_CUT) ? 1 : g->warps;
}

static void
grid_init(struct hed_grid *g, struct hed_engine *e, const struct hed_engine_worker *w,
          const struct hed_job *job)
{
    const struct hed_regions *local = e->sandbox ? &e->sandbox->local : &e->stacks;
    const uint32_t align = job->info.shared_align ? job->info.shared_align : 1;
    const uint32_t fixed = hed_round_up(job->info.shared, align);
    struct hed_ptx_grid *a = &g->abi;

    g->job = job;
    g->engine = e;
    g->threads = 1;
    g->blocks = 1;
    for (int d = 0; d < 3; d++) {
        a->ntid[d] = job->block[d];
        a->nctaid[d] = job->grid[d];
        a->ncluster[d] = job->cluster[d] ? job->cluster[d] : 1;
        g->threads *= job->block[d];
        g->blocks *= job->grid[d];
    }
    a->dynamic_shared = job->dynamic_shared;
    a->total_shared = fixed + job->dynamic_shared;
    a->nsm = job->sm_count ? job->sm_count : 1;
    a->id = job->id;
    a->params = job->params;
    a->vars = job->vars;
    a->program = job->program;
    a->host = &hed_engine_ptx_host;
    a->stop = (const uint32_t *)&g->failed;
    a->shared_first = (uint64_t)(uintptr_t)e->shared->base;
    a->shared_last = a->shared_first + e->shared->size;
    a->local_first = (uint64_t)(uintptr_t)local->base;
    a->local_last = a->local_first + local->size;
    if (job->cooperative)
        a->workspace = (uint64_t)(uintptr_t)g->workspace;
    g->next = job->first;
    g->warps = hed_divide_up(g->threads, HED_PTX_LANES);
    g->direct = !(job->info.flags & HED_PTX_WAITS);
    g->stacks = g->direct ? 1 : g->warps;
    g->frame = job->info.flags & HED_PTX_CUT ? hed_round_up(job->info.frame, 64) : 0;
    choose_stack(g);
    if (e->sandbox)
        confine_grid(g, w);
    /* Cooperative groups expect the size here, then the word of the barrier. */
    if (job->cooperative)
        memcpy((void *)(uintptr_t)a->workspace, &(const uint32_t){WORKSPACE_SIZE},
               sizeof(uint32_t));
    choose_blocks(g);
}

/* Is it worth waking other threads for the grid? Blocks that wait for each other want all of them.
 * Otherwise the kernel's last grid tells how long this one takes. */
static bool
is_for_many(const struct hed_grid *g)
{
    const struct hed_job *job = g->job;

    if (g->blocks - job->first < 2 || g->engine->threads < 2)
        return false;
    if (!g->direct || !job->pace)
        return true;

    /* Relaxed: any grid's figure will do. */
    const uint32_t ns = atomic_load_explicit(job->pace, memory_order_relaxed);

    return ns == 0 || ns * (g->blocks - job->first) >= WORTH_NS;
}

/* Runs a grid of two or more blocks, and notes how long a block took. */
static void
run_and_note(struct hed_engine_worker *w, struct hed_grid *g)
{
    const bool many = is_for_many(g);

    g->shared = many;
    if (many)
        hed_engine_workers_join(g->engine, g);
    hed_engine_worker_run(w, g);
    if (many)
        hed_engine_workers_leave(g->engine, g);
    if (g->job->pace)
        atomic_store_explicit(
            g->job->pace,
            (uint32_t)hed_clamp((hed_now_ns() - g->job->begin) / (g->blocks - g->job->first), 1,
                                UINT32_MAX),
            memory_order_relaxed);
}

CUresult
hed_engine_run(struct hed_engine *e, const struct hed_job *job, struct hed_why *why)
{
    CUresult r = check_job(e, job, why);

    if (r != CUDA_SUCCESS)
        return r;

    struct hed_engine_worker *w = hed_engine_worker_take(e);

    if (!w) {
        hed_why_set(why, "kernel %.120s: not enough memory for a launch", job->name);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }

    struct hed_grid *g = &w->own;
    struct hed_watched watched;

    memset(g, 0, offsetof(struct hed_grid, why));
    grid_init(g, e, w, job);
    hed_watch_launch(e->watch, &watched, g, job->deadline);
    if (g->blocks - job->first < 2)
        hed_engine_worker_run(w, g);
    else
        run_and_note(w, g);
    hed_watch_end(e->watch, &watched);
    hed_output_write(g);
    r = (CUresult)atomic_load_explicit(&g->failed, memory_order_relaxed);
    if (job->ran)
        *job->ran = hed_min(atomic_load_explicit(&g->next, memory_order_relaxed), g->blocks);
    if (r != CUDA_SUCCESS)
        hed_why_set(why, "%s", g->why.text);
    hed_engine_worker_give(w);
    return r;
}
