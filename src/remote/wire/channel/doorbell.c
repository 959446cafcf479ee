/* Doorbells: see doorbell.h. */
#include "remote/wire/channel/doorbell.h"

#include <limits.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "remote/wire/conn.h"

#define TAKE 64 /* rings that are taken at once */

void
hed_doorbell_init(struct hed_doorbell *b, struct hed_conn *conn)
{
    *b = (struct hed_doorbell){.conn = conn};
}

void
hed_doorbell_ring(struct hed_doorbell *b)
{
    const char byte = HED_DOORBELL_BYTE;

    (void)hed_conn_write_now(b->conn, &byte, 1);
}

/* Takes the rings that have come. What is no ring stays where it is: these may be the last words of
 * the peer, which rings no more. */
static void
take_rings(struct hed_doorbell *b)
{
    char bytes[TAKE];
    ssize_t n;

    do {
        ssize_t rings = 0;

        n = hed_conn_peek(b->conn, bytes, sizeof bytes);
        while (rings < n && bytes[rings] == HED_DOORBELL_BYTE)
            rings++;
        /* Relaxed, both: whoever is woken looks at the connection itself. */
        if (n < 0 || rings < n)
            atomic_store_explicit(&b->broken, true, memory_order_relaxed);
        if (rings > 0 && hed_conn_read(b->conn, bytes, (size_t)rings, 0) != 0)
            atomic_store_explicit(&b->broken, true, memory_order_relaxed);
    } while (n == (ssize_t)sizeof bytes && !atomic_load_explicit(&b->broken, memory_order_relaxed));
}

static bool
listen_for_ring(struct hed_doorbell *b, int64_t ns)
{
    struct pollfd p = {.fd = hed_conn_fd(b->conn), .events = POLLIN | POLLRDHUP};
    const struct timespec t = {.tv_sec = ns / (int64_t)HED_NS_PER_S,
                               .tv_nsec = ns % (int64_t)HED_NS_PER_S};
    const bool came = ppoll(&p, 1, &t, NULL) > 0;

    if (came)
        take_rings(b);
    return came;
}

bool
hed_doorbell_wait(struct hed_doorbell *b, int64_t ns)
{
    /* Acquire: pairs with the release below; what is heard from now on is counted later. */
    const uint32_t heard = atomic_load_explicit(&b->heard, memory_order_acquire);
    bool came;

    /* Acquire: the thread that listened before has taken its rings. */
    if (atomic_exchange_explicit(&b->listening, 1, memory_order_acquire) != 0)
        return hed_futex_wait_private(&b->heard, heard, ns);
    came = listen_for_ring(b, ns);
    /* Release: pairs with the acquires above. Threads that wait for this one try to listen
     * themselves. */
    atomic_store_explicit(&b->listening, 0, memory_order_release);
    atomic_fetch_add_explicit(&b->heard, 1, memory_order_release);
    (void)hed_futex_wake_private(&b->heard, INT_MAX);
    return came;
}
