/* The functions of rt.h that are not about barriers, output or memory, and the table of all. */
#include "backends/cpu/rt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "backends/cpu/children.h"
#include "backends/cpu/engine.h"
#include "base/clock.h"
#include "core/refusal.h"
#include "driver/near/near.h"

#define SLEEP_MOST_NS 1000000 /* PTX: "the maximum sleep duration is 1 millisecond" */
#define ASSERT_TEXT_MOST 1024 /* bytes of the line about a failed assertion */

void
hed_rt_yield(struct hed_ptx_strand *a)
{
    struct hed_strand *s = hed_strand_of(a);

    a->fuel = s->spun < HED_SPINS ? HED_FUEL : HED_FUEL_SPINNING;
    s->spun++;
    hed_children_hurry(s);
    if (s->block->grid->direct) {
        hed_strand_look(a);
        return;
    }
    hed_strand_ready(s);
    hed_strand_leave(s);
}

void
hed_rt_trap(struct hed_ptx_strand *a, uint32_t trap, uint32_t line)
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
    struct hed_strand *s = hed_strand_of(a);

    if (trap >= sizeof traps / sizeof *traps)
        trap = 0;
    if (line)
        a->line = line;
    hed_grid_fail(s->block->grid, traps[trap].result, s, "%s", traps[trap].text);
    hed_strand_abandon(s);
}

/* As a GPU that does not have the instruction. */
void
hed_rt_refuse(struct hed_ptx_strand *a, const char *text, uint32_t line)
{
    struct hed_strand *s = hed_strand_of(a);
    struct hed_grid *g = s->block->grid;

    a->line = line;
    if (hed_grid_fail(g, CUDA_ERROR_ILLEGAL_INSTRUCTION, s, "%s", text))
        hed_refused_in_kernel("%s: kernel %s", text, g->job->name);
    hed_strand_abandon(s);
}

void
hed_rt_nanosleep(struct hed_ptx_strand *a, uint32_t ns)
{
    struct hed_strand *s = hed_strand_of(a);
    const uint64_t most = ns < SLEEP_MOST_NS ? ns : SLEEP_MOST_NS;

    if (s->block->grid->direct) {
        hed_strand_look(a);
        s->spun++;
        hed_children_hurry(s);
        hed_sleep_ns(most);
        return;
    }

    const uint64_t end = hed_now_ns() + most;

    do
        hed_rt_yield(a);
    while (hed_now_ns() < end);
}

uint64_t
hed_rt_clock(struct hed_ptx_strand *a)
{
    const struct hed_grid *g = hed_strand_of(a)->block->grid;
    const uint64_t ns = hed_now_ns();

    hed_strand_look(a);
    return ns / 1000000 * g->job->clock_khz + ns % 1000000 * g->job->clock_khz / 1000000;
}

uint64_t
hed_rt_globaltimer(struct hed_ptx_strand *a)
{
    hed_strand_look(a);
    return hed_wall_ns();
}

static const char *
text_of(const struct hed_ptx_strand *a, uint64_t address)
{
    return (const char *)(uintptr_t)hed_ptx_in_pen(a->grid, address);
}

/* Writes the line that CUDA writes, to stderr as CUDA does. */
void
hed_rt_assertfail(struct hed_ptx_strand *a, uint64_t message, uint64_t file, uint32_t line,
                  uint64_t function, uint64_t char_size)
{
    struct hed_strand *s = hed_strand_of(a);
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
hed_rt_set_condition(struct hed_ptx_strand *a, uint64_t handle, uint32_t value)
{
    struct hed_strand *s = hed_strand_of(a);
    const struct hed_near *n = s->block->grid->job->near;

    hed_strand_look(a);
    if (!n || !hed_near_condition_set(n, handle, value))
        hed_grid_fail(s->block->grid, CUDA_ERROR_ILLEGAL_ADDRESS, s, "no condition of a graph");
}

uint64_t
hed_cpu_object(struct hed_ptx_strand *a, uint64_t object)
{
    const struct hed_numbers *objects;
    uint64_t at;

    if (object == 0 || object >= HED_NUMBERS_END)
        return object;
    objects = hed_strand_of(a)->block->grid->job->objects;
    at = objects ? (uintptr_t)hed_numbers_find(objects, object) : 0;
    return at ? at : object;
}

#define SYMBOL(name)                                  \
    {                                                 \
        "hed_rt_" #name, (const void *)&hed_rt_##name \
    }

const struct hed_ptx_symbol hed_cpu_runtime[] = {
    SYMBOL(yield),          SYMBOL(trap),          SYMBOL(nanosleep),      SYMBOL(clock),
    SYMBOL(globaltimer),    SYMBOL(barrier),       SYMBOL(barrier_arrive), SYMBOL(barrier_reduce),
    SYMBOL(vprintf),        SYMBOL(assertfail),    SYMBOL(malloc),         SYMBOL(free),
    SYMBOL(set_condition),  SYMBOL(device_call),   SYMBOL(texture),        SYMBOL(surface),
    SYMBOL(surface_reduce), SYMBOL(texture_query), {NULL, NULL},
};

const struct hed_ptx_host hed_cpu_host = {
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
