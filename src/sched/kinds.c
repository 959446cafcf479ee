/* Kinds of work, and how long each takes: a moving average over samples. A sample is a pair of
 * events around one call; the first calls of a kind are sampled often, later ones rarely.
 *
 * Work that ran beside another process's work seems to take longer, sometimes much longer. So one
 * sample raises the average by a part of the average at most.
 */
#include "sched/engine.h"

#define SAMPLE_FIRST 2 /* one call in so many is timed, until STEADY samples in a row were alike */
#define SAMPLE_EVERY 32
#define STEADY 3
#define SHORTEST_NS 500 /* no work takes less */
#define LONGEST_NS UINT32_MAX
#define PROBES 8

struct hed_sched_kind *
hed_sched_kind_find_locked(struct hed_sched *s, uint64_t key)
{
    struct hed_sched_kind *worst = NULL;

    for (unsigned i = 0; i < PROBES; i++) {
        struct hed_sched_kind *k = &s->kinds[(key + i) % HED_PACE_KINDS];

        if (k->key == key)
            return k;
        if (!worst || k->key == 0 || (worst->key != 0 && k->samples < worst->samples))
            worst = k;
    }
    *worst = (struct hed_sched_kind){.key = key};
    return worst;
}

/* A sample that is far too long was probably taken beside another process's work, and is soon
 * forgotten. But work of one kind may really be short and long by turns: then the average lies
 * between. */
void
hed_sched_kind_learn_locked(struct hed_sched *s, uint64_t key, double ms)
{
    struct hed_sched_kind *k = hed_sched_kind_find_locked(s, key);
    uint64_t ns = !(ms > 0) ? 0 : ms >= 4000 ? LONGEST_NS : (uint64_t)(ms * 1e6);

    ns = ns < SHORTEST_NS ? SHORTEST_NS : ns;

    const uint64_t off = ns > k->ns ? ns - k->ns : k->ns - ns;

    k->steady = off <= k->ns / 4 ? k->steady + (k->steady < STEADY) : 0;
    if (k->samples == 0)
        k->ns = (uint32_t)ns;
    else if (ns < k->ns)
        k->ns -= (uint32_t)(off / (ns < k->ns / 2 ? 2 : 4));
    else
        k->ns += (uint32_t)((off < k->ns / 2 ? off : k->ns / 2) / 4);
    if (k->samples < UINT32_MAX)
        k->samples++;
}

uint64_t
hed_sched_kind_takes(struct hed_sched *s, const struct hed_gpu_work *work)
{
    hed_lock_brief(&s->lock);

    const struct hed_sched_kind *k = hed_sched_kind_find_locked(s, work->kind);
    const uint64_t ns = k->samples ? k->ns : work->guess;

    hed_unlock_brief(&s->lock);
    return ns;
}

bool
hed_sched_kind_wants_sample(struct hed_sched *s, const struct hed_gpu_work *work)
{
    hed_lock_brief(&s->lock);

    struct hed_sched_kind *k = hed_sched_kind_find_locked(s, work->kind);
    const bool sample = k->calls % (k->steady < STEADY ? SAMPLE_FIRST : SAMPLE_EVERY) == 0;

    k->calls++;
    hed_unlock_brief(&s->lock);
    return sample;
}
