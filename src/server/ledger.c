/* The ledger in shared memory. See ledger.h.
 *
 * A worker may be killed or stopped between any two instructions here. What it has written by then
 * is in its own line or in the gate, and hed_ledger_clear() clears both.
 */
#include "server/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

#define GATE_PAUSE_NS UINT64_C(20000)

struct hed_ledger *
hed_ledger_create(void)
{
    void *p = mmap(NULL, sizeof(struct hed_ledger), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void
hed_ledger_free(struct hed_ledger *l)
{
    if (l)
        (void)munmap(l, sizeof *l);
}

/* The number of lines to look at. Other processes write it, so it is never trusted. */
static uint32_t
count_lines(const struct hed_ledger *l)
{
    /* Acquire: pairs with the release in hed_ledger_enter(). */
    const uint32_t n = atomic_load_explicit(&l->lines, memory_order_acquire);

    return n < HED_LEDGER_WORKERS ? n : HED_LEDGER_WORKERS;
}

static bool
is_ledger_device(int device)
{
    return device >= 0 && device < HED_LEDGER_DEVICES;
}

/* a + b, but UINT64_MAX instead of an overflow. */
static uint64_t
saturating_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t
hed_ledger_leased(const struct hed_ledger *l, int device)
{
    const uint32_t n = count_lines(l);
    uint64_t sum = 0;

    if (!is_ledger_device(device))
        return 0;
    /* Sequentially consistent, like the additions to the lines: of two workers that ask at the same
     * time, the later one in that order sees what the earlier one wrote. */
    for (uint32_t i = 0; i < n; i++)
        sum = saturating_add(sum, atomic_load(&l->workers[i].leased[device]));
    return sum;
}

/* ---- for workers ----------------------------------------------------------------------------- */

static bool
gate_close(struct hed_ledger *l, uint32_t me)
{
    const uint64_t end = hed_now_ns() + HED_LEDGER_GATE_MS * UINT64_C(1000000);

    for (;;) {
        uint32_t free = 0;

        /* The gate orders no other accesses; the lines do that, see hed_ledger_leased(). */
        if (atomic_compare_exchange_strong_explicit(&l->gate, &free, me, memory_order_acquire,
                                                    memory_order_relaxed))
            return true;
        if (hed_now_ns() >= end)
            return false;
        hed_sleep_ns(GATE_PAUSE_NS);
    }
}

static void
gate_open(struct hed_ledger *l, uint32_t me)
{
    /* Does nothing if the listener has opened the gate meanwhile and another worker has closed
     * it. */
    (void)atomic_compare_exchange_strong_explicit(&l->gate, &me, 0, memory_order_release,
                                                  memory_order_relaxed);
}

/* How much of the `asked` bytes, which the line has just grown by, the worker may keep. */
static uint64_t
bytes_to_keep(const struct hed_ledger *l, int device, uint64_t asked, uint64_t least)
{
    const uint64_t total = atomic_load(&l->total[device]);
    const uint64_t sum = hed_ledger_leased(l, device);

    if (total == 0 || sum <= total)
        return asked;
    if (sum == UINT64_MAX) /* the sum overflowed */
        return 0;

    const uint64_t over = sum - total;
    const uint64_t left = over < asked ? asked - over : 0;

    return left >= least ? left : 0;
}

uint64_t
hed_ledger_take(struct hed_ledger *l, struct hed_worker_status *w, int device, uint64_t want,
                uint64_t least, uint64_t limit)
{
    if (!is_ledger_device(device) || want == 0 || least > want)
        return 0;

    const uint32_t me = (uint32_t)(w - l->workers) + 1;
    const bool alone = gate_close(l, me);
    _Atomic uint64_t *line = &w->leased[device];
    const uint64_t total = atomic_load(&l->total[device]);
    uint64_t had = atomic_load(line);
    uint64_t asked;

    /* Other threads of this worker may take and give at the same time. */
    do {
        uint64_t most = limit == 0 ? UINT64_MAX - had : limit > had ? limit - had : 0;

        /* Never more than the device has, so that sums stay exact. */
        if (total && total < most)
            most = total;
        asked = want < most ? want : most;
        if (asked == 0 || asked < least)
            asked = 0;
    } while (asked && !atomic_compare_exchange_weak(line, &had, had + asked));

    const uint64_t kept = asked ? bytes_to_keep(l, device, asked, least) : 0;

    if (kept < asked)
        atomic_fetch_sub(line, asked - kept);
    if (alone)
        gate_open(l, me);
    return kept;
}

void
hed_ledger_give(struct hed_ledger *l, struct hed_worker_status *w, int device, uint64_t bytes)
{
    if (!is_ledger_device(device))
        return;

    _Atomic uint64_t *line = &w->leased[device];
    uint64_t had = atomic_load(line);

    /* Never below zero, even if the caller gives back more than it has. */
    while (!atomic_compare_exchange_weak(line, &had, had > bytes ? had - bytes : 0))
        ;
}

/* ---- for the listener ------------------------------------------------------------------------ */

struct hed_worker_status *
hed_ledger_enter(struct hed_ledger *l)
{
    for (uint32_t i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_worker_status *w = &l->workers[i];

        /* Relaxed: only the listener writes it. */
        if (atomic_load_explicit(&w->used, memory_order_relaxed))
            continue;
        atomic_store_explicit(&w->used, 1, memory_order_relaxed);
        if (i >= count_lines(l))
            /* Release: pairs with the acquire in count_lines(). */
            atomic_store_explicit(&l->lines, i + 1, memory_order_release);
        return w;
    }
    return NULL;
}

void
hed_ledger_clear(struct hed_ledger *l, struct hed_worker_status *w)
{
    uint32_t gate = (uint32_t)(w - l->workers) + 1;

    /* The worker is dead. A worker that adds up the lines meanwhile sees each lease either complete
     * or gone. The line becomes free last. */
    for (int i = 0; i < HED_LEDGER_DEVICES; i++)
        atomic_store(&w->leased[i], 0);
    atomic_store(&w->host, 0);
    atomic_store(&w->messages, 0);
    atomic_store(&w->bytes_in, 0);
    atomic_store(&w->bytes_out, 0);
    atomic_store(&w->launches, 0);
    atomic_store(&w->started_ns, 0);
    atomic_store(&w->last_ns, 0);
    atomic_store(&w->channels, 0);
    atomic_store(&w->failed, 0);
    atomic_store(&w->pid, 0);
    w->client_pid = w->client_uid = 0;
    memset(w->peer, 0, sizeof w->peer);
    memset(w->program, 0, sizeof w->program);
    (void)atomic_compare_exchange_strong(&l->gate, &gate, 0);
    atomic_store(&w->used, 0);
}
