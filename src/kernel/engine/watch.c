/* The thread that enforces limits of time. See watch.h. */
#include "kernel/engine/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/demangle.h"
#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/thread.h"
#include "kernel/engine/engine_parts.h"

/* An interrupted thread may have been in a function of ours, where it cannot be stopped: it is
 * interrupted again after this time. */
#define AGAIN_NS (2 * HED_NS_PER_MS)

struct hed_watch {
    uint64_t kernel_ns, compile_ns; /* constant */
    hed_give_up_fn give_up;         /* constant; may be NULL */
    struct hed_lock lock;           /* guards what follows */
    pthread_cond_t changed;
    struct hed_watched *first;
    bool started, stopping;
    pthread_t thread;
};

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec t = {0};

    /* The thread of a compilation exists as long as it is watched. */
    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * HED_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* The grid has failed: workers that are in its compiled code leave it now. */
static void
end_launch_locked(const struct hed_watch *w, const struct hed_watched *it)
{
    hed_grid_fail(it->grid, CUDA_ERROR_LAUNCH_TIMEOUT, NULL,
                  "it ran for longer than %.3g s (kernel_time)",
                  (double)w->kernel_ns / (double)HED_NS_PER_S);
    hed_engine_interrupt(it->grid->engine, it->thread);
}

/* Leaves the lock: whoever is asked may do anything. */
static void
report_compilation_locked(struct hed_watch *w, struct hed_watched *it)
{
    char room[HED_DEMANGLED_MAX];
    struct hed_why why;

    it->told = true;
    hed_why_set(&why, "compiling %.200s took more than %.3g s of processor time (compile_time)",
                hed_demangle(it->name, room, sizeof room),
                (double)w->compile_ns / (double)HED_NS_PER_S);
    hed_unlock(&w->lock);
    if (!w->give_up || !w->give_up(why.text))
        hed_warn(CPU, "%s; nothing can stop it", why.text);
    hed_lock(&w->lock);
}

/* Returns when to look again: a time of hed_now_ns(). */
static uint64_t
look_at_all_locked(struct hed_watch *w)
{
    const uint64_t now = hed_now_ns();
    uint64_t next = UINT64_MAX;

    for (struct hed_watched *it = w->first; it; it = it->next) {
        const uint64_t spent = it->grid ? now : clock_ns(it->clock);

        if (spent < it->end) {
            /* A thread uses at most as much processor time as passes. */
            next = hed_min(next, now + (it->end - spent));
        } else if (it->grid) {
            end_launch_locked(w, it);
            next = hed_min(next, now + AGAIN_NS);
        } else if (!it->told) {
            report_compilation_locked(w, it);
            return now; /* the list may have changed meanwhile */
        }
    }
    return next;
}

static void *
watch_main(void *arg)
{
    struct hed_watch *w = arg;

    hed_lock(&w->lock);
    while (!w->stopping)
        (void)hed_lock_wait(&w->lock, &w->changed, look_at_all_locked(w));
    hed_unlock(&w->lock);
    return NULL;
}

static void
add_watched(struct hed_watch *w, struct hed_watched *it)
{
    static const struct hed_thread_how how = {.name = "heddle-watch"};

    hed_lock(&w->lock);
    if (!w->started) {
        w->started = hed_thread_start(&how, watch_main, w, &w->thread) == 0;
        if (!w->started)
            hed_warn(
                CPU,
                "cannot start a thread for kernel_time and compile_time, so they have no effect");
    }
    it->next = w->first;
    it->at = &w->first;
    if (w->first)
        w->first->at = &it->next;
    w->first = it;
    pthread_cond_signal(&w->changed);
    hed_unlock(&w->lock);
}

uint64_t
hed_watch_deadline(const struct hed_watch *w)
{
    return w && w->kernel_ns ? hed_now_ns() + w->kernel_ns : 0;
}

void
hed_watch_launch(struct hed_watch *w, struct hed_watched *out, struct hed_grid *g,
                 uint64_t deadline)
{
    *out = (struct hed_watched){.grid = g, .thread = pthread_self(), .end = deadline};
    if (!w || !deadline)
        return;
    hed_fault_take_interrupts();
    add_watched(w, out);
}

void
hed_watch_compilation(struct hed_watch *w, struct hed_watched *out, const char *name)
{
    *out = (struct hed_watched){.thread = pthread_self(), .name = name};
    if (!w || !w->compile_ns || pthread_getcpuclockid(out->thread, &out->clock) != 0)
        return;
    out->end = clock_ns(out->clock) + w->compile_ns;
    add_watched(w, out);
}

void
hed_watch_end(struct hed_watch *w, struct hed_watched *it)
{
    if (!it->at)
        return;
    hed_lock(&w->lock);
    *it->at = it->next;
    if (it->next)
        it->next->at = it->at;
    hed_unlock(&w->lock);
}

static void
watch_init(struct hed_watch *w)
{
    hed_lock_init(&w->lock, HED_RANK_WATCH);
    pthread_cond_init(&w->changed, NULL);
    w->first = NULL;
    w->started = false;
}

struct hed_watch *
hed_watch_create(uint64_t kernel_ns, uint64_t compile_ns, hed_give_up_fn give_up)
{
    struct hed_watch *w = kernel_ns || compile_ns ? calloc(1, sizeof *w) : NULL;

    if (!w)
        return NULL;
    w->kernel_ns = kernel_ns;
    w->compile_ns = compile_ns;
    w->give_up = give_up;
    watch_init(w);
    return w;
}

void
hed_watch_free(struct hed_watch *w)
{
    if (!w)
        return;
    hed_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->changed);
    hed_unlock(&w->lock);
    if (w->started)
        (void)pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    hed_lock_fini(&w->lock);
    free(w);
}

void
hed_watch_forked(struct hed_watch *w)
{
    if (w)
        watch_init(w);
}
