/* Tiers: a kernel starts in the baseline tier, and one thread compiles those that turn out hot.
 *
 *   COLD --its launches took HOT_NS--> QUEUED --the thread--> COMPILED | STAYS
 *
 * A launch uses the compiled code from the moment it is there; both give the same bits. Code of the
 * scalar shape is not used: its threads do not run in lockstep.
 *
 * Invariants:
 * 1. A kernel is in the queue or is `current` if and only if it is QUEUED, so its module is there
 *    until hed_tier_forget() returns.
 * 2. `compiled` is written before the kernel becomes COMPILED, and never changes after that.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/code.h"
#include "backends/cpu/cpu.h"
#include "base/log.h"
#include "base/number.h"

#define HOT_NS (50 * UINT64_C(1000000))
/* The engine's threads keep all cores busy while kernels run, so a thread that ran on idle cores
 * only would never finish. This one gets about a quarter of a core then. */
#define NICENESS 5

void
hed_tier_init(struct hed_tiers *t)
{
    hed_lock_init(&t->lock, HED_RANK_CODE);
    pthread_cond_init(&t->work, NULL);
    pthread_cond_init(&t->done, NULL);
}

/* The process's CPU GPU, for the end of the process. */
static struct hed_cpu *guarded;

static void
stop_at_exit(void)
{
    hed_tier_stop(guarded);
}

void
hed_tier_guard_exit(struct hed_cpu *c)
{
    if (!c->tiered || guarded)
        return;
    guarded = c;
    if (atexit(stop_at_exit) != 0)
        hed_warn(CPU,
                 "no memory for the end of the process: it may fail while a kernel is compiled");
}

static void
compile_hot_kernel(struct hed_cpu *c, struct hed_cpu_kernel *k)
{
    struct hed_cpu_code *code = k->code;
    struct hed_why why;
    int state = HED_TIER_STAYS;

    why.text[0] = 0;
    if (hed_cpu_compile(c, &code->module, k->func, &code->text, k->rows, &k->compiled, &why) != 0)
        hed_info(CPU, "%s: kernel %s stays in the baseline tier", why.text, k->func->name);
    else if (k->compiled.info.lanes == HED_PTX_LANES)
        state = HED_TIER_COMPILED;
    hed_debug(CPU, "kernel %s: %s", k->func->name,
              state == HED_TIER_COMPILED ? "launches use compiled code from now on"
                                         : "stays in the baseline tier");
    /* Release: pairs with the acquire in hed_tier_loaded(), which uses `compiled`. */
    atomic_store_explicit(&k->tier, state, memory_order_release);
}

static void *
tier_main(void *arg)
{
    struct hed_cpu *c = arg;
    struct hed_tiers *t = &c->tiers;

    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    hed_lock(&t->lock);
    while (!t->stopping) {
        struct hed_cpu_kernel *k = t->first;

        if (!k) {
            (void)hed_lock_wait(&t->lock, &t->work, NULL);
            continue;
        }
        t->first = k->next_hot;
        t->current = k;
        hed_unlock(&t->lock);
        compile_hot_kernel(c, k);
        hed_lock(&t->lock);
        t->current = NULL;
        pthread_cond_broadcast(&t->done);
    }
    hed_unlock(&t->lock);
    return NULL;
}

/* The thread gets no signals that are meant for the program. */
static bool
start_thread_locked(struct hed_cpu *c)
{
    sigset_t all, old;

    if (c->tiers.started)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    c->tiers.started = pthread_create(&c->tiers.thread, NULL, tier_main, c) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (c->tiers.started)
        (void)pthread_setname_np(c->tiers.thread, "heddle-compile");
    return c->tiers.started;
}

void
hed_tier_note(struct hed_cpu *c, struct hed_cpu_kernel *k, uint64_t ns)
{
    struct hed_tiers *t = &c->tiers;
    /* Relaxed: only the sum matters. */
    const uint64_t spent = atomic_fetch_add_explicit(&k->spent_ns, ns, memory_order_relaxed) + ns;

    if (!c->tiered || spent < HOT_NS ||
        atomic_load_explicit(&k->tier, memory_order_relaxed) != HED_TIER_COLD)
        return;
    hed_lock(&t->lock);
    if (k->tier == HED_TIER_COLD && !t->stopping && start_thread_locked(c)) {
        struct hed_cpu_kernel **last = &t->first;

        while (*last)
            last = &(*last)->next_hot;
        k->next_hot = NULL;
        *last = k;
        k->tier = HED_TIER_QUEUED;
        pthread_cond_signal(&t->work);
    }
    hed_unlock(&t->lock);
}

const struct hed_ptx_loaded *
hed_tier_loaded(const struct hed_cpu_kernel *k)
{
    /* Acquire: pairs with the release in compile_hot_kernel(). */
    return atomic_load_explicit(&k->tier, memory_order_acquire) == HED_TIER_COMPILED ? &k->compiled
                                                                                     : &k->loaded;
}

void
hed_tier_forget(struct hed_cpu *c, const struct hed_cpu_code *code)
{
    struct hed_tiers *t = &c->tiers;

    hed_lock(&t->lock);
    for (struct hed_cpu_kernel **at = &t->first; *at;) {
        if ((*at)->code == code)
            *at = (*at)->next_hot;
        else
            at = &(*at)->next_hot;
    }
    while (t->current && t->current->code == code)
        (void)hed_lock_wait(&t->lock, &t->done, NULL);
    hed_unlock(&t->lock);
}

void
hed_tier_stop(struct hed_cpu *c)
{
    struct hed_tiers *t = &c->tiers;

    hed_lock(&t->lock);
    t->stopping = true;
    t->first = NULL;
    pthread_cond_signal(&t->work);

    const bool started = t->started;

    t->started = false;
    hed_unlock(&t->lock);
    if (started)
        pthread_join(t->thread, NULL);
}

void
hed_tier_forked(struct hed_cpu *c)
{
    struct hed_tiers *t = &c->tiers;

    /* The thread does not exist in the child. What it was to compile can become hot again. */
    hed_tier_init(t);
    for (struct hed_cpu_kernel *k = t->first; k; k = k->next_hot)
        k->tier = HED_TIER_COLD;
    if (t->current)
        t->current->tier = HED_TIER_STAYS;
    t->first = t->current = NULL;
    t->started = false;
}
