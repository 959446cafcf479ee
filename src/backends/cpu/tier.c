/* Tiers: a kernel starts in the baseline tier, and threads have those compiled that turn out hot,
 * by processes of lower priority (compiler.h).
 *
 *   COLD --its launches took long enough--> QUEUED --a thread--> COMPILED | STAYS
 *                                              ^_______|  another process compiles it
 *
 * What is QUEUED when the program ends is compiled after it (kernel/forkserver/after.c).
 *
 * A launch uses the compiled code from the moment it is there, and a grid that runs in the baseline
 * tier then hands its remaining blocks over; both give the same bits.
 *
 * Invariants:
 * 1. A kernel is in the queue or being compiled if and only if it is QUEUED.
 * 2. `compiled` is written before the kernel becomes COMPILED, and never changes after that.
 * 3. A code with `compiling` != 0 is not freed; the thread that brings it to 0 frees a closed one.
 * 4. At most `most` threads compile kernels that are not huge, and at most one more compiles a huge
 *    one. So a kernel for which LLVM takes minutes delays only others of its kind.
 */
#include <string.h>
#include <unistd.h>

#include "backends/cpu/code.h"
#include "backends/cpu/cpu.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/thread.h"

/* A kernel is hot when its launches have taken about a tenth of the time that LLVM will take. */
#define HOT_LEAST_NS (5 * HED_NS_PER_MS)
#define HOT_MOST_NS (100 * HED_NS_PER_MS)
#define HOT_NS_PER_INSTRUCTION UINT64_C(100000)
/* Instructions from which on a kernel is huge: LLVM takes 10 seconds or more. */
#define HUGE_LEAST 10000
/* What compiling a kernel takes even if it is empty, in instructions. */
#define BASE_COST 10
/* Another process compiles a kernel: how often to look whether it is done, and how long. */
#define OTHERS_LOOK_NS (100 * HED_NS_PER_MS)
#define OTHERS_PATIENCE_NS (120 * HED_NS_PER_S)

void
hed_tier_init(struct hed_tiers *t)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);

    hed_lock_init(&t->lock, HED_RANK_CODE);
    pthread_cond_init(&t->work, NULL);
    t->most = (unsigned)hed_clamp(cores > 0 ? (uint64_t)cores / 2 : 1, 1, HED_TIER_THREADS_MAX);
}

bool
hed_tier_compile(struct hed_cpu *c, struct hed_cpu_kernel *k, enum hed_cpu_others others)
{
    const struct hed_cpu_source from = hed_code_source_of(k->code, k);
    struct hed_why why;
    int state = HED_TIER_STAYS, err;

    why.text[0] = 0;
    err = hed_cpu_compile(c, &from, k->name, k->rows, others, &k->compiled, &why);
    if (err == HED_ESTATE)
        return false;
    if (err)
        hed_info(CPU, "%s: kernel %s stays in the baseline tier", why.text, k->name);
    else
        state = HED_TIER_COMPILED;
    hed_debug(CPU, "kernel %s: %s", k->name,
              state == HED_TIER_COMPILED ? "launches use compiled code from now on"
                                         : "stays in the baseline tier");
    /* Release: pairs with the acquire in hed_tier_loaded(), which uses `compiled`. */
    atomic_store_explicit(&k->tier, state, memory_order_release);
    hed_show_tier(k);
    return true;
}

static bool
is_huge(const struct hed_cpu_kernel *k)
{
    return k->func->ninsts >= HUGE_LEAST;
}

/* Is it better to compile a before b? Huge kernels come last. Of the others, those come first whose
 * launches have taken most for what it costs to compile them. */
static bool
comes_before(const struct hed_cpu_kernel *a, const struct hed_cpu_kernel *b)
{
    /* Relaxed: any recent sum will do. */
    const double spent_a = (double)atomic_load_explicit(&a->spent_ns, memory_order_relaxed);
    const double spent_b = (double)atomic_load_explicit(&b->spent_ns, memory_order_relaxed);

    if (is_huge(a) != is_huge(b))
        return is_huge(b);
    return spent_a * (BASE_COST + (double)b->func->ninsts) >
           spent_b * (BASE_COST + (double)a->func->ninsts);
}

struct hed_cpu_kernel *
hed_tier_take(struct hed_tiers *t)
{
    struct hed_cpu_kernel **best = NULL;

    for (struct hed_cpu_kernel **at = &t->first; *at; at = &(*at)->next_hot) {
        const bool has_thread = is_huge(*at) ? !t->busy_huge : t->busy < t->most;
        const bool is_due = (*at)->look_at == 0 || hed_now_ns() >= (*at)->look_at;

        if (has_thread && is_due && (!best || comes_before(*at, *best)))
            best = at;
    }
    if (!best)
        return NULL;

    struct hed_cpu_kernel *k = *best;

    *best = k->next_hot;
    if (is_huge(k))
        t->busy_huge = true;
    else
        t->busy++;
    return k;
}

void
hed_tier_done(struct hed_tiers *t, const struct hed_cpu_kernel *k)
{
    if (is_huge(k))
        t->busy_huge = false;
    else
        t->busy--;
}

/* When a kernel in the queue is due that another process compiles. */
static uint64_t
next_look_locked(const struct hed_tiers *t)
{
    uint64_t next = UINT64_MAX;

    for (const struct hed_cpu_kernel *k = t->first; k; k = k->next_hot)
        if (k->look_at > hed_now_ns())
            next = hed_min(next, k->look_at);
    return next;
}

/* Another process compiles the kernel, which waits in the queue meanwhile. */
static void
put_back_locked(struct hed_tiers *t, struct hed_cpu_kernel *k)
{
    const uint64_t now = hed_now_ns();

    if (k->patience_end == 0) {
        k->patience_end = now + OTHERS_PATIENCE_NS;
        hed_debug(CPU, "kernel %s: another process compiles it", k->name);
    }
    k->look_at = now + OTHERS_LOOK_NS;
    k->next_hot = t->first;
    t->first = k;
}

static void *
tier_main(void *arg)
{
    struct hed_cpu *c = arg;
    struct hed_tiers *t = &c->tiers;

    hed_lock(&t->lock);
    while (!t->stopping) {
        struct hed_cpu_kernel *k = hed_tier_take(t);

        if (!k) {
            t->idle++;
            (void)hed_lock_wait(&t->lock, &t->work, next_look_locked(t));
            t->idle--;
            continue;
        }

        struct hed_cpu_code *code = k->code;

        const bool is_patient = k->patience_end == 0 || hed_now_ns() < k->patience_end;

        code->compiling++;
        hed_unlock(&t->lock);

        const bool is_done =
            hed_tier_compile(c, k, is_patient ? HED_CPU_OTHERS_FIRST : HED_CPU_OTHERS_IGNORED);

        hed_lock(&t->lock);
        hed_tier_done(t, k);
        if (!is_done && !code->closed && !t->stopping)
            put_back_locked(t, k);
        if (--code->compiling == 0 && code->closed) {
            hed_unlock(&t->lock);
            hed_code_free(code);
            hed_lock(&t->lock);
        }
    }
    hed_unlock(&t->lock);
    return NULL;
}

/* One more thread if all are busy. The one beyond `most` starts when a huge kernel is being
 * compiled. */
static void
start_thread_locked(struct hed_cpu *c)
{
    struct hed_tiers *t = &c->tiers;
    const struct hed_thread_how how = {.name = "heddle-compile"};

    if (t->idle || t->started >= t->most + (t->busy_huge ? 1 : 0))
        return;
    if (hed_thread_start(&how, tier_main, c, &t->threads[t->started]) == 0)
        t->started++;
}

/* Puts a kernel that is COLD into the queue if it is hot. */
static void
consider_kernel(struct hed_cpu *c, struct hed_cpu_kernel *k, uint64_t spent)
{
    struct hed_tiers *t = &c->tiers;
    bool is_queued = false;

    if (spent < hed_clamp(k->func->ninsts * HOT_NS_PER_INSTRUCTION, HOT_LEAST_NS, HOT_MOST_NS))
        return;
    hed_lock(&t->lock);
    if (k->tier == HED_TIER_COLD && !t->stopping) {
        start_thread_locked(c);
        if (t->started) {
            k->next_hot = t->first;
            t->first = k;
            k->tier = HED_TIER_QUEUED;
            is_queued = true;
            hed_show_tier(k);
            pthread_cond_signal(&t->work);
        }
    }
    hed_unlock(&t->lock);
    if (is_queued) {
        hed_debug(CPU, "kernel %s is hot", k->name);

        const struct hed_cpu_source from = hed_code_source_of(k->code, k);

        hed_cpu_want(c, &from, k->name, k->rows);
    }
}

void
hed_tier_note(struct hed_cpu *c, struct hed_cpu_kernel *k, uint64_t ns)
{
    /* Relaxed: only the sum matters. */
    const uint64_t spent = atomic_fetch_add_explicit(&k->spent_ns, ns, memory_order_relaxed) + ns;

    if (c->tiered && atomic_load_explicit(&k->tier, memory_order_relaxed) == HED_TIER_COLD)
        consider_kernel(c, k, spent);
}

bool
hed_tier_between(void *arg, uint64_t began)
{
    const struct hed_tier_launch *l = arg;

    if (l->forced)
        return began >= l->change_at;

    /* Relaxed: hed_tier_loaded() looks again. */
    const int state = atomic_load_explicit(&l->kernel->tier, memory_order_relaxed);

    if (state == HED_TIER_COLD)
        consider_kernel(l->cpu, l->kernel,
                        hed_now_ns() - l->begin +
                            atomic_load_explicit(&l->kernel->spent_ns, memory_order_relaxed));
    return state == HED_TIER_COMPILED;
}

const struct hed_ptx_loaded *
hed_tier_loaded(const struct hed_cpu_kernel *k)
{
    /* Acquire: pairs with the release in hed_tier_compile(). */
    return atomic_load_explicit(&k->tier, memory_order_acquire) == HED_TIER_COMPILED
               ? &k->compiled.loaded
               : &k->loaded;
}

bool
hed_tier_forget(struct hed_cpu *c, struct hed_cpu_code *code)
{
    struct hed_tiers *t = &c->tiers;

    hed_lock(&t->lock);
    for (struct hed_cpu_kernel **at = &t->first; *at;) {
        if ((*at)->code == code)
            *at = (*at)->next_hot;
        else
            at = &(*at)->next_hot;
    }
    code->closed = true;

    const bool is_free = code->compiling == 0;

    hed_unlock(&t->lock);
    return is_free;
}

void
hed_tier_stop(struct hed_cpu *c)
{
    struct hed_tiers *t = &c->tiers;

    hed_lock(&t->lock);
    t->stopping = true;
    t->first = NULL;
    pthread_cond_broadcast(&t->work);

    const unsigned started = t->started;

    t->started = 0;
    hed_unlock(&t->lock);
    for (unsigned i = 0; i < started; i++)
        pthread_join(t->threads[i], NULL);
}

void
hed_tier_forked(struct hed_cpu *c)
{
    struct hed_tiers *t = &c->tiers;

    /* The threads do not exist in the child. What waited for them can become hot again; what they
     * were compiling stays QUEUED. */
    for (struct hed_cpu_kernel *k = t->first; k; k = k->next_hot)
        k->tier = HED_TIER_COLD;
    memset(t, 0, sizeof *t);
    hed_tier_init(t);
    hed_compilers_forked(&c->compilers);
}
