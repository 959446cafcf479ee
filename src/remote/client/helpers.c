/* Threads that help with large copies between the program's memory and a channel's: one core copies
 * more slowly than a device does.
 *
 *   copier: job, jobs ──> helpers take blocks of it ──> `left` is 0: done
 *
 * They are started with the first large copy, if there are cores for them, and then wait for the
 * next one. While they wait they use no processor time. If another thread copies meanwhile, it does
 * so without them.
 *
 * Invariant: `next` and `left` belong to the job whose copier holds `busy`; a helper that comes
 * late finds no block left and touches nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/number.h"
#include "base/relax.h"
#include "base/thread.h"
#include "remote/client/memory.h"

#define HELPERS 3
#define CORES_LEAST 3
#define BLOCK ((size_t)128 << 10) /* bytes that one thread copies at a time */
#define LEAST (4 * BLOCK)         /* smaller copies are done sooner than helpers wake up */
#define SPINS 20000               /* how often a helper looks for the next job before it sleeps */

struct hed_remote_helpers {
    _Atomic bool busy;
    _Atomic uint32_t jobs; /* changes with every job */
    _Atomic uint32_t sleeping;
    _Atomic uint64_t next; /* number of the job << 32 | the next block */
    _Atomic uint32_t left; /* blocks that are not done yet */
    _Atomic uint32_t blocks;
    char *to;
    const char *from;
    size_t size;
};

/* Takes blocks of a job and copies them, until there are none left. */
static void
do_pieces(struct hed_remote_helpers *h, uint32_t job)
{
    for (;;) {
        uint64_t at = atomic_load_explicit(&h->next, memory_order_acquire);

        /* Acquire: pairs with the release in start_helpers(), which has written the job before
         * that. */
        do {
            if ((uint32_t)(at >> 32) != job ||
                (uint32_t)at >= atomic_load_explicit(&h->blocks, memory_order_relaxed))
                return;
        } while (!atomic_compare_exchange_weak_explicit(&h->next, &at, at + 1, memory_order_acquire,
                                                        memory_order_acquire));

        const size_t begin = (size_t)(uint32_t)at * BLOCK;
        const size_t n = h->size - begin < BLOCK ? h->size - begin : BLOCK;

        memcpy(h->to + begin, h->from + begin, n);
        /* Release: pairs with the copier's acquire, which makes the bytes visible. */
        atomic_fetch_sub_explicit(&h->left, 1, memory_order_release);
    }
}

static void *
helper_thread(void *arg)
{
    struct hed_remote_helpers *h = arg;
    uint32_t seen = 0;

    for (;;) {
        uint32_t jobs;
        unsigned spins = 0;

        /* Acquire: pairs with start_helpers(). */
        while ((jobs = atomic_load_explicit(&h->jobs, memory_order_acquire)) == seen) {
            if (++spins < SPINS) {
                hed_relax();
                continue;
            }
            /* start_helpers() uses `sleeping` and `jobs` in the opposite order, so one of the two
             * sees the other. */
            atomic_fetch_add(&h->sleeping, 1);
            if (atomic_load(&h->jobs) == seen)
                (void)hed_futex_wait_private(&h->jobs, seen, -1);
            atomic_fetch_sub(&h->sleeping, 1);
        }
        seen = jobs;
        do_pieces(h, jobs);
    }
    return NULL;
}

static struct hed_remote_helpers *
make_helpers(void)
{
    struct hed_remote_helpers *h = calloc(1, sizeof *h);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int made = 0;

    if (!h)
        return NULL;
    for (int i = 0; i < HELPERS && i < cores - 2; i++)
        made += hed_thread_detached(NULL, helper_thread, h) == 0;
    if (made == 0) {
        free(h);
        return NULL;
    }
    return h;
}

static struct hed_remote_helpers *
find_helpers(struct hed_remote *r)
{
    struct hed_remote_copies *c = r->copies;

    hed_lock(&c->lock);
    if (!c->helpers && !c->alone) {
        if (sysconf(_SC_NPROCESSORS_ONLN) >= CORES_LEAST)
            c->helpers = make_helpers();
        c->alone = !c->helpers;
    }

    struct hed_remote_helpers *h = c->helpers;

    hed_unlock(&c->lock);
    return h;
}

static uint32_t
start_helpers(struct hed_remote_helpers *h, void *to, const void *from, size_t n)
{
    const uint32_t job = atomic_load_explicit(&h->jobs, memory_order_relaxed) + 1;

    const uint32_t blocks = (uint32_t)hed_divide_up(n, BLOCK);

    /* A helper that is still at the previous job must not take blocks of this one: clearing `next`
     * makes its next exchange fail. */
    atomic_store(&h->next, 0);
    h->to = to;
    h->from = from;
    h->size = n;
    atomic_store_explicit(&h->blocks, blocks, memory_order_relaxed);
    atomic_store_explicit(&h->left, blocks, memory_order_relaxed);
    /* Release: pairs with do_pieces(). */
    atomic_store_explicit(&h->next, (uint64_t)job << 32, memory_order_release);
    atomic_store(&h->jobs, job);
    if (atomic_load(&h->sleeping))
        (void)hed_futex_wake_private(&h->jobs, HELPERS);
    return job;
}

void
hed_remote_memcpy(struct hed_remote *r, void *to, const void *from, size_t n, bool large)
{
    struct hed_remote_helpers *h = large && n >= LEAST ? find_helpers(r) : NULL;

    /* Acquire: pairs with the release below; the previous job is over. */
    if (!h || atomic_exchange_explicit(&h->busy, true, memory_order_acquire)) {
        memcpy(to, from, n);
        return;
    }
    do_pieces(h, start_helpers(h, to, from, n));
    /* Acquire: pairs with do_pieces(). */
    while (atomic_load_explicit(&h->left, memory_order_acquire) > 0)
        hed_relax();
    atomic_store_explicit(&h->busy, false, memory_order_release);
}
