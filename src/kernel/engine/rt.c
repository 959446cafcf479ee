/* The functions of rt.h that are not about barriers, output or memory, and the table of all. */
#include "kernel/engine/rt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/device_calls.h"
#include "kernel/engine/engine_parts.h"
#include "kernel/engine/numbers.h"
#include "kernel/ptx/run/group.h"
#include "kernel/ptx/run/warp.h"

#define SLEEP_MOST_NS 1000000    /* PTX: "the maximum sleep duration is 1 millisecond" */
#define DEVICE_NOT_SUPPORTED 801 /* cudaErrorNotSupported */
#define ASSERT_TEXT_MOST 1024    /* bytes of the line about a failed assertion */

/* Code that waits may wait for what the host does for it. */
static void
tell_host(struct hed_engine_warp *s)
{
    const struct hed_job *job = s->block->grid->job;

    if (s->spun >= HED_WAITING_AFTER && job->host && job->host->waiting)
        job->host->waiting(job->owner, s->block->grid);
}

void
hed_rt_yield(struct hed_ptx_warp *a)
{
    struct hed_engine_warp *s = hed_engine_warp_of(a);

    a->fuel = s->spun < HED_SPINS ? HED_FUEL : HED_FUEL_SPINNING;
    s->spun++;
    tell_host(s);
    if (s->block->grid->direct) {
        hed_engine_warp_look(a);
        return;
    }
    hed_engine_warp_ready(s);
    hed_engine_warp_leave(s);
}

void
hed_rt_trap(struct hed_ptx_warp *a, uint32_t trap, uint32_t line)
{
    static const struct {
        CUresult result;
        const char *text;
    } traps[] = {
        [0] = {CUDA_ERROR_LAUNCH_FAILED, "unspecified failure"},
        [HED_PTX_TRAP] = {CUDA_ERROR_LAUNCH_FAILED, "trap"},
        [HED_PTX_TRAP_ALIGN] = {CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address"},
        [HED_PTX_TRAP_ADDRESS] = {CUDA_ERROR_ILLEGAL_ADDRESS, "illegal address"},
        [HED_PTX_TRAP_CALL] = {CUDA_ERROR_INVALID_PC, "call through a pointer to no function"},
        [HED_PTX_TRAP_INSTRUCTION] = {CUDA_ERROR_ILLEGAL_INSTRUCTION, "illegal instruction"},
    };
    struct hed_engine_warp *s = hed_engine_warp_of(a);

    if (trap >= sizeof traps / sizeof *traps)
        trap = 0;
    if (line)
        a->line = line;
    hed_grid_fail(s->block->grid, traps[trap].result, s, "%s", traps[trap].text);
    hed_engine_warp_abandon(s);
}

/* As a GPU that does not have the instruction. */
void
hed_rt_refuse(struct hed_ptx_warp *a, const char *text, uint32_t line)
{
    struct hed_engine_warp *s = hed_engine_warp_of(a);
    struct hed_grid *g = s->block->grid;

    a->line = line;
    if (hed_grid_fail(g, CUDA_ERROR_ILLEGAL_INSTRUCTION, s, "%s", text) && g->job->host &&
        g->job->host->refused)
        g->job->host->refused(g->job->owner, text, g->job->name);
    hed_engine_warp_abandon(s);
}

void
hed_rt_nanosleep(struct hed_ptx_warp *a, uint32_t ns)
{
    struct hed_engine_warp *s = hed_engine_warp_of(a);
    const uint64_t most = ns < SLEEP_MOST_NS ? ns : SLEEP_MOST_NS;

    if (s->block->grid->direct) {
        hed_engine_warp_look(a);
        s->spun++;
        tell_host(s);
        hed_sleep_ns(most);
        return;
    }

    const uint64_t end = hed_now_ns() + most;

    do
        hed_rt_yield(a);
    while (hed_now_ns() < end);
}

uint64_t
hed_rt_clock(struct hed_ptx_warp *a)
{
    const struct hed_grid *g = hed_engine_warp_of(a)->block->grid;
    const uint64_t ns = hed_now_ns();

    hed_engine_warp_look(a);
    return ns / 1000000 * g->job->clock_khz + ns % 1000000 * g->job->clock_khz / 1000000;
}

uint64_t
hed_rt_globaltimer(struct hed_ptx_warp *a)
{
    hed_engine_warp_look(a);
    return hed_wall_ns();
}

static const char *
text_of(const struct hed_ptx_warp *a, uint64_t address)
{
    return (const char *)(uintptr_t)hed_ptx_in_sandbox(a->grid, address);
}

/* Writes the line that CUDA writes, to stderr as CUDA does. */
void
hed_rt_assertfail(struct hed_ptx_warp *a, uint64_t message, uint64_t file, uint32_t line,
                  uint64_t function, uint64_t char_size)
{
    struct hed_engine_warp *s = hed_engine_warp_of(a);
    struct hed_grid *g = s->block->grid;
    const uint32_t lane = a->lane % HED_PTX_LANES;
    const uint32_t *c = s->block->abi.ctaid;
    char text[ASSERT_TEXT_MOST];
    const int n =
        snprintf(text, sizeof text,
                 "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                 text_of(a, file), line, text_of(a, function), c[0], c[1], c[2], a->tid[0][lane],
                 a->tid[1][lane], a->tid[2][lane], text_of(a, message));

    if (n > 0) {
        const size_t size = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

        if (write(STDERR_FILENO, text, size) < 0)
            text[0] = 0; /* nothing can be done if it fails */
    }
    hed_grid_fail(g, CUDA_ERROR_ASSERT, s, "assertion failed");
}

void
hed_rt_set_condition(struct hed_ptx_warp *a, uint64_t handle, uint32_t value)
{
    struct hed_engine_warp *s = hed_engine_warp_of(a);
    const struct hed_job *job = s->block->grid->job;

    hed_engine_warp_look(a);
    if (!job->host || !job->host->set_condition ||
        !job->host->set_condition(job->owner, handle, value))
        hed_grid_fail(s->block->grid, CUDA_ERROR_ILLEGAL_ADDRESS, s, "no condition of a graph");
}

uint64_t
hed_rt_device_call(struct hed_ptx_warp *a, uint32_t which, uint64_t a0, uint64_t a1, uint64_t a2,
                   uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7)
{
    const uint64_t args[HED_DEVICE_WORDS] = {a0, a1, a2, a3, a4, a5, a6, a7};
    struct hed_engine_warp *s = hed_engine_warp_of(a);
    const struct hed_job *job = s->block->grid->job;

    hed_engine_warp_look(a);
    s->spun = 0;
    if (job->host && job->host->device_call)
        return job->host->device_call(job->owner, a, which, args);
    return which == HED_DEVICE_GET_PARAMETER_BUFFER ? 0 : DEVICE_NOT_SUPPORTED;
}

uint64_t
hed_engine_object(struct hed_ptx_warp *a, uint64_t object)
{
    const struct hed_numbers *objects;
    uint64_t at;

    if (object == 0 || object >= HED_NUMBERS_END)
        return object;
    objects = hed_engine_warp_of(a)->block->grid->job->objects;
    at = objects ? (uintptr_t)hed_numbers_find(objects, object) : 0;
    return at ? at : object;
}

/* ---- for hosts ------------------------------------------------------------------------------- */

struct hed_grid *
hed_grid_of(const struct hed_ptx_warp *s)
{
    return ((const struct hed_engine_warp *)s)->block->grid;
}

const struct hed_job *
hed_grid_job(const struct hed_grid *g)
{
    return g->job;
}

bool
hed_grid_has_failed(const struct hed_grid *g)
{
    return atomic_load_explicit(&g->failed, memory_order_relaxed) != 0;
}

void
hed_engine_warp_leave_failed(struct hed_ptx_warp *s)
{
    hed_engine_warp_look(s);
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define SYMBOL(name)                                  \
    {                                                 \
        "hed_rt_" #name, (const void *)&hed_rt_##name \
    }

const struct hed_ptx_symbol hed_engine_runtime[] = {
    SYMBOL(yield),          SYMBOL(trap),          SYMBOL(nanosleep),      SYMBOL(clock),
    SYMBOL(globaltimer),    SYMBOL(barrier),       SYMBOL(barrier_arrive), SYMBOL(barrier_reduce),
    SYMBOL(vprintf),        SYMBOL(assertfail),    SYMBOL(malloc),         SYMBOL(free),
    SYMBOL(set_condition),  SYMBOL(device_call),   SYMBOL(texture),        SYMBOL(surface),
    SYMBOL(surface_reduce), SYMBOL(texture_query), {NULL, NULL},
};

const struct hed_ptx_host hed_engine_ptx_host = {
    .yield = hed_rt_yield,
    .trap = hed_rt_trap,
    .refuse = hed_rt_refuse,
    .nanosleep = hed_rt_nanosleep,
    .clock = hed_rt_clock,
    .globaltimer = hed_rt_globaltimer,
    .barrier = hed_rt_barrier,
    .barrier_arrive = hed_rt_barrier_arrive,
    .barrier_reduce = hed_rt_barrier_reduce,
    .vprintf = hed_rt_vprintf,
    .assertfail = hed_rt_assertfail,
    .malloc = hed_rt_malloc,
    .free = hed_rt_free,
    .set_condition = hed_rt_set_condition,
    .device_call = hed_rt_device_call,
    .texture = hed_rt_texture,
    .surface = hed_rt_surface,
    .surface_reduce = hed_rt_surface_reduce,
    .texture_query = hed_rt_texture_query,
};

const struct hed_ptx_symbol *const hed_engine_symbols[HED_ENGINE_TABLES] = {
    hed_engine_runtime,  hed_ptx_helpers,       hed_ptx_warp_helpers,
    hed_engine_together, hed_ptx_group_helpers,
};
