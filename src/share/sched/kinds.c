/* Kinds of work, and how long each takes: a moving average over samples. A sample is a pair of
 * events around one call; the first calls of a kind are sampled often, later ones rarely.
 *
 * Work that ran beside another process's work seems to take longer, sometimes much longer. So one
 * sample raises the average by a part of the average at most.
 */
#include "share/sched/engine.h"

#define SAMPLE_FIRST 2 /* one call in so many is timed, until STEADY samples in a row were alike */
#define SAMPLE_EVERY 32
#define STEADY 3
#define FEW 3                /* with fewer samples, a kind is hardly known */
#define SAMPLE_GAP_NS 200000 /* between samples of kinds that are: a sample is four driver calls */
#define SHORTEST_NS 500      /* no work takes less */
#define LONGEST_NS UINT32_MAX
#define PROBES 8
#define REMEMBERED 64

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

/* ---- estimates ------------------------------------------------------------------------------- */

/* What a thread remembers about kinds, so that it asks the table, under its lock, only where a call
 * may be timed. Direct-mapped: a kind that takes another's entry costs a look at the table. */
static _Thread_local struct {
    uint64_t engine; /* hed_sched.id; 0: none */
    uint64_t key;
    uint32_t ns;
    uint32_t left; /* calls before the next that may be timed */
} remembered[REMEMBERED];

/* Whether to time this call of a kind that the calling thread has looked up. */
static bool
wants_sample_locked(struct hed_gate *g, struct hed_sched_kind *k, uint64_t now)
{
    const uint32_t every = k->steady < STEADY ? SAMPLE_FIRST : SAMPLE_EVERY;

    if (k->samples >= FEW) {
        /* Relaxed: written under the lock, which is held. */
        if (now < atomic_load_explicit(&g->pace.next_sample, memory_order_relaxed))
            return false;
        atomic_store_explicit(&g->pace.next_sample, now + SAMPLE_GAP_NS, memory_order_relaxed);
        return true;
    }
    return k->calls++ % every == 0;
}

bool
hed_sched_kind_estimate(struct hed_gate_pass *pass, uint64_t now)
{
    struct hed_gate *g = pass->gate;
    struct hed_sched *s = g->sched;
    const uint64_t key = pass->work.kind;
    __typeof__(&remembered[0]) r = &remembered[key % REMEMBERED];

    pass->known = true;
    if (r->engine == s->id && r->key == key) {
        pass->takes = r->ns;
        if (r->left) {
            r->left--;
            return false;
        }
        /* Relaxed: if another thread moves it just now, the table says so under the lock. */
        if (now < atomic_load_explicit(&g->pace.next_sample, memory_order_relaxed))
            return false;
    }
    hed_lock_brief(&s->lock);

    struct hed_sched_kind *k = hed_sched_kind_find_locked(s, key);
    const bool sample = wants_sample_locked(g, k, now);
    const uint32_t every = k->steady < STEADY ? SAMPLE_FIRST : SAMPLE_EVERY;

    pass->known = k->samples;
    pass->takes = pass->known ? k->ns : pass->work.guess;
    r->engine = k->samples >= FEW ? s->id : 0;
    r->key = key;
    r->ns = k->ns;
    r->left = every - 1;
    hed_unlock_brief(&s->lock);
    return sample;
}
