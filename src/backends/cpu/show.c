/* Shows other processes what kernels do, and counts for this one. See kernel/ptx/run/board.h. */
#include "backends/cpu/code.h"
#include "core/stats.h"

/* All stores are relaxed: readers only want recent numbers. */

void
hed_show_launch(const struct hed_cpu_kernel *k, uint64_t baseline_ns)
{
    struct hed_board_kernel *s = k->shown;

    if (!s)
        return;
    atomic_fetch_add_explicit(&s->launches, 1, memory_order_relaxed);
    if (baseline_ns)
        atomic_fetch_add_explicit(&s->baseline_ns, baseline_ns, memory_order_relaxed);
}

void
hed_show_tier(const struct hed_cpu_kernel *k)
{
    static const uint32_t tiers[] = {
        [HED_TIER_COLD] = HED_BOARD_BASELINE,
        [HED_TIER_QUEUED] = HED_BOARD_QUEUED,
        [HED_TIER_COMPILED] = HED_BOARD_COMPILED,
        [HED_TIER_STAYS] = HED_BOARD_STAYS,
    };
    const struct hed_cpu_compiled *c = &k->compiled;
    /* Acquire: pairs with the release in tier.c, behind which `compiled` is complete. */
    const int tier = atomic_load_explicit(&k->tier, memory_order_acquire);
    struct hed_board_kernel *s = k->shown;

    if (tier == HED_TIER_COMPILED)
        hed_stats_add(c->is_cached ? &hed_stats.kernels_cached : &hed_stats.kernels_compiled, 1);
    if (!s)
        return;
    if (tier == HED_TIER_COMPILED) {
        atomic_store_explicit(&s->shape, c->loaded.info.made, memory_order_relaxed);
        atomic_store_explicit(&s->flags, c->loaded.info.flags, memory_order_relaxed);
        atomic_store_explicit(&s->frame, c->loaded.info.frame, memory_order_relaxed);
        atomic_store_explicit(&s->compile_us, c->compile_us, memory_order_relaxed);
        atomic_store_explicit(&s->is_cached, c->is_cached, memory_order_relaxed);
    }
    atomic_store_explicit(&s->tier, tiers[tier], memory_order_relaxed);
}
