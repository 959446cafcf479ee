/* Passes a launch to the engine. */
#include "backends/cpu/children.h"
#include "backends/cpu/code.h"
#include "backends/cpu/cpu.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/refusal.h"
#include "core/stats.h"
#include "driver/driver.h"
#include "kernel/engine.h"

/* The number of blocks that the device would run at once; 0 if it is not known. Registers do not
 * count: those of PTX are an estimate, and blocks that wait for each other on a real device must
 * not wait for ever here. */
static uint32_t
resident_blocks(const struct hed_launch *l, const struct hed_job *job)
{
    const struct hed_need need = {
        .threads = l->block[0] * l->block[1] * l->block[2],
        .static_shared = job->info.shared,
        .dynamic_shared = l->dynamic_shared,
    };
    const uint32_t blocks = l->profile ? hed_occupancy_blocks(l->profile, &need) : 0;

    return l->profile ? (blocks ? blocks : 1) * job->sm_count : 0;
}

static uint32_t
launch_number(const struct hed_launch *l, unsigned attribute, uint32_t otherwise)
{
    const uint32_t n =
        l->profile ? hed_profile_number(l->profile, attribute, otherwise) : otherwise;

    return n ? n : otherwise;
}

static uint64_t
blocks_in(const uint32_t *grid)
{
    return (uint64_t)grid[0] * grid[1] * grid[2];
}

static CUresult
run_job(struct hed_cpu *c, const struct hed_job *job, struct hed_why *why)
{
    const CUresult r = hed_engine_run(c->engine, job, why);

    hed_children_grid_ended(job->owner);
    return r;
}

/* Runs a grid in the baseline tier. If the kernel is compiled meanwhile, the remaining blocks run
 * compiled; those of a cooperative grid need each other, so they stay. */
static CUresult
run_baseline(struct hed_cpu *c, struct hed_cpu_kernel *k, struct hed_job *job, uint64_t change_at,
             struct hed_why *why)
{
    struct hed_tier_launch launch = {.cpu = c, .kernel = k, .begin = job->begin};
    uint64_t ran = 0;

    if (hed_tier_trial() && hed_tier_loaded(k) != &k->loaded) {
        launch.forced = true;
        launch.change_at = change_at;
        job->chunk_most = 1;
    }
    if (c->tiered && !job->cooperative) {
        job->hands_over = hed_tier_between;
        job->hands_over_arg = &launch;
        job->ran = &ran;
    }

    hed_stats_add(&hed_stats.grids_interpreted, 1);

    const CUresult r = run_job(c, job, why);

    const uint64_t ns = hed_now_ns() - launch.begin;

    hed_show_launch(k, ns);
    hed_tier_note(c, k, ns);
    if (r != CUDA_SUCCESS || !job->ran || ran == blocks_in(job->grid))
        return r;

    const struct hed_ptx_loaded *loaded = hed_tier_loaded(k);

    hed_debug(CPU, "kernel %s: %llu of %llu blocks began in the baseline tier", k->name,
              (unsigned long long)ran, (unsigned long long)blocks_in(job->grid));
    job->entry = loaded->entry;
    job->info = loaded->info;
    job->program = NULL;
    job->code = loaded->base;
    job->code_size = loaded->size;
    job->first = ran;
    job->hands_over = NULL;
    job->ran = NULL;
    job->chunk_most = 0;
    return run_job(c, job, why);
}

static bool
set_condition(void *parent, uint64_t handle, uint32_t value)
{
    const struct hed_parent *p = parent;

    return hed_near_condition_set(&p->cpu->near, handle, value);
}

static void
log_refusal(void *parent, const char *text, const char *kernel)
{
    (void)parent;
    hed_refused_in_kernel("%s: kernel %s", text, kernel);
}

static const struct hed_engine_host launch_host = {
    .waiting = hed_children_hurry,
    .device_call = hed_cpu_device_call,
    .set_condition = set_condition,
    .refused = log_refusal,
};

CUresult
hed_cpu_run_grid(struct hed_parent *p, struct hed_why *why)
{
    struct hed_cpu *c = p->cpu;
    const struct hed_launch *l = p->launch;
    const CUresult ready = hed_cpu_prepare(c, l->code, l->kernel, l->block, why);
    struct hed_cpu_kernel *k = hed_cpu_kernel_of(c, l->code, l->kernel, l->block);
    const uint64_t change_at = hed_tier_trial() ? hed_tier_trial_moment(blocks_in(l->grid)) : 0;
    const struct hed_ptx_loaded *loaded = change_at && k->program ? &k->loaded : hed_tier_loaded(k);
    const bool in_baseline = k->program && loaded == &k->loaded;
    struct hed_job job = {
        .entry = loaded->entry,
        .info = loaded->info,
        .program = in_baseline ? k->program : NULL,
        .code = loaded->base,
        .code_size = loaded->size,
        .deadline = p->deadline,
        .pace = in_baseline ? NULL : &k->pace,
        .name = l->code->kernels[l->kernel].name,
        .dynamic_shared = l->dynamic_shared,
        .params = l->params,
        .param_bytes = l->param_bytes,
        .vars = l->variables,
        .cooperative = l->cooperative,
        .in_windows = ((const struct hed_cpu_code *)l->code)->sass != NULL,
        .id = l->grid_id,
        .begin = l->begin,
        .sm_count = launch_number(l, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1),
        .clock_khz = launch_number(l, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000),
        .stack_limit = l->stack_limit,
        .heap_limit = l->heap_limit,
        .printf_limit = l->printf_limit,
        .objects = l->objects,
        .host = &launch_host,
        .owner = p,
    };

    if (ready != CUDA_SUCCESS) {
        /* The driver has asked before a launch of its own; a kernel cannot. */
        if (p->depth)
            hed_refused_in_kernel("kernel %s, launched by a kernel: %s",
                                  l->code->kernels[l->kernel].name, why->text);
        return ready;
    }
    for (int d = 0; d < 3; d++) {
        job.grid[d] = l->grid[d];
        job.block[d] = l->block[d];
        job.cluster[d] = l->cluster[d];
    }
    job.resident = resident_blocks(l, &job);
    if (l->device >= 0 && l->device < HED_PROFILE_DEVICES_MAX)
        job.heap = &c->heaps[l->device];
    if (in_baseline)
        return run_baseline(c, k, &job, change_at, why);
    hed_show_launch(k, 0);
    hed_stats_add(&hed_stats.grids_compiled, 1);
    return run_job(c, &job, why);
}

CUresult
hed_cpu_launch(void *m, const struct hed_launch *l, struct hed_why *why)
{
    struct hed_cpu *c = m;
    struct hed_parent p = {.cpu = c, .launch = l, .deadline = hed_watch_deadline(c->watch)};
    const CUresult r = hed_cpu_run_grid(&p, why);

    return hed_children_run(&p, r, why);
}
