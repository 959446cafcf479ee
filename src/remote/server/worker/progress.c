/* --kernel-time with NVIDIA's driver, which has no limit of its own: the device itself counts what
 * was put on a stream and is done, and the control thread looks whether the count moves.
 *
 *   work on a stream ── and behind it, its number, which the device writes into a word of a page
 *   control thread: the word has not changed for --kernel-time, and work is left ── the end
 *
 * The driver cannot stop a kernel, so the session ends. Time in which a stream waits for another
 * one counts, and a graph counts as one piece of work. Time in which it waits for an event of
 * another program does not: an odd number comes before such a wait, and all others are even. The
 * CPU GPU ends kernels itself (kernel/engine/watch.h).
 *
 * Invariants:
 * 1. A word is written by the device only. It belongs to one stream at a time.
 * 2. The control thread reads memory and makes no call, so it never meets an object that another
 *    thread destroys.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "remote/server/worker/worker.h"

#define PAGE 4096
#define STREAMS_MAX (PAGE / sizeof(uint64_t)) /* that are watched at a time */

struct watched_stream {
    uint64_t name, context; /* the client's; name 0 is a stream, too */
    uint64_t launched;      /* the number of the last piece of work; 0: free */
    uint64_t seen;          /* the word, when the control thread last saw it change */
    uint64_t since_ns;      /* when that was, or when the stream got work */
};

struct hed_worker_progress {
    struct hed_words words;                     /* one per stream */
    bool broken;                                /* the device cannot write them */
    struct watched_stream streams[STREAMS_MAX]; /* guarded by the worker's lock */
};

/* For tests, in debug builds only: as if the CPU GPU had no limit of its own. */
static bool is_for_all;

void
hed_progress_prepare(void)
{
#ifdef HED_DEBUG
    is_for_all = secure_getenv("HED_TEST_PROGRESS") != NULL;
#endif
}

bool
hed_progress_is_used(const struct hed_worker_start *start, bool driver)
{
    return start->kernel_ms && (driver || is_for_all);
}

int
hed_worker_progress_init(struct hed_worker *w)
{
    if (!hed_progress_is_used(w->start, w->backend == HED_BACKEND_GPU))
        return 0;

    struct hed_worker_progress *p = calloc(1, sizeof *p);
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (!p || page == MAP_FAILED) /* the session does not begin */
        return HED_ENOMEM;
    p->words = (struct hed_words){.first = page, .count = STREAMS_MAX};
    w->progress = p;
    return 0;
}

static uint64_t
word_of(const struct hed_worker_progress *p, size_t i)
{
    /* Acquire: the device's write; nothing else is read for it. */
    return atomic_load_explicit(&p->words.first[i], memory_order_acquire);
}

static bool
is_idle_stream(const struct hed_worker_progress *p, size_t i)
{
    return word_of(p, i) >= p->streams[i].launched;
}

/* The place of a stream: its own, or one whose stream has nothing to do. STREAMS_MAX if there is
 * none: then as many others are watched. */
static size_t
place_of_stream(const struct hed_worker_progress *p, uint64_t name, uint64_t context)
{
    size_t idle = STREAMS_MAX;

    for (size_t i = 0; i < STREAMS_MAX; i++) {
        const struct watched_stream *s = &p->streams[i];

        if (s->launched && s->name == name && s->context == context)
            return i;
        if (idle == STREAMS_MAX && is_idle_stream(p, i))
            idle = i;
    }
    return idle;
}

static bool
is_before_wait(uint64_t number)
{
    return number & 1;
}

/* Puts the next number on the stream, behind its work so far. */
static void
put_stream_number(struct hed_worker_channel *ch, const struct hed_msg *m, bool waits)
{
    struct hed_worker *w = ch->worker;
    struct hed_worker_progress *p = w->progress;
    uint64_t number = 0;
    CUstream stream;
    size_t i;

    if (!p || p->broken || hed_worker_stream(ch, m, &stream) != 0)
        return;
    hed_lock(&w->lock);
    i = place_of_stream(p, m->stream, m->context);
    if (i < STREAMS_MAX) {
        struct watched_stream *s = &p->streams[i];
        const bool idle = is_idle_stream(p, i);

        number = ((idle ? word_of(p, i) : s->launched) | 1) + 1 + waits;
        if (idle)
            *s = (struct watched_stream){.name = m->stream,
                                         .context = m->context,
                                         .seen = word_of(p, i),
                                         .since_ns = hed_now_ns()};
        s->launched = number;
    }
    hed_unlock(&w->lock);

    const CUresult r = number ? hed_words_write(w, &p->words, stream, i, number) : CUDA_SUCCESS;

    if (r == CUDA_SUCCESS)
        return;
    hed_lock(&w->lock);
    p->streams[i].launched = 0;
    hed_unlock(&w->lock);
    /* Others are failures of the context, which the client will notice. */
    if (r == CUDA_ERROR_NOT_SUPPORTED || r == CUDA_ERROR_INVALID_VALUE) {
        p->broken = true;
        hed_warn(SERVER, "--kernel-time has no effect: the device cannot count its work (error %d)",
                 (int)r);
    }
}

void
hed_progress_put(struct hed_worker_channel *ch, const struct hed_msg *m)
{
    put_stream_number(ch, m, false);
}

void
hed_progress_put_wait(struct hed_worker_channel *ch, const struct hed_msg *m)
{
    put_stream_number(ch, m, true);
}

void
hed_progress_context_ended(struct hed_worker *w, uint64_t context)
{
    struct hed_worker_progress *p = w->progress;

    if (!p)
        return;
    hed_lock(&w->lock);
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        if (p->streams[i].context == context)
            p->streams[i].launched = 0;
    }
    hed_unlock(&w->lock);
}

bool
hed_progress_is_overdue(struct hed_worker *w, uint64_t now_ns)
{
    /* Acquire: pairs with the release in accept_base() of arena.c; w->progress is set. */
    struct hed_worker_progress *p =
        atomic_load_explicit(&w->settled, memory_order_acquire) ? w->progress : NULL;
    const uint64_t most = w->start->kernel_ms * (uint64_t)HED_NS_PER_MS;
    bool overdue = false;

    if (!p)
        return false;
    hed_lock(&w->lock);
    for (size_t i = 0; i < STREAMS_MAX && !overdue; i++) {
        struct watched_stream *s = &p->streams[i];
        const uint64_t word = word_of(p, i);

        /* In a failed context nothing is counted any more. */
        if (word >= s->launched || (w->failed && s->context == w->failed_context))
            continue;
        if (word != s->seen || is_before_wait(word)) {
            s->seen = word;
            s->since_ns = now_ns;
        }
        overdue = now_ns - s->since_ns > most;
    }
    hed_unlock(&w->lock);
    return overdue;
}
