/* Doorbells: waking a thread of the peer by a byte over the connection.
 *
 * A futex does not reach into another machine. So where guest and host share a window, a side that
 * sleeps listens to its connection, and the other side rings: it writes one byte. Bytes carry
 * nothing; whoever hears one looks at the memory again.
 *
 *   first sleeper of a side: listens to the connection, takes the bytes, wakes the others
 *   further sleepers:        wait until it has heard something
 *
 * Words in a window are written by plain stores with fences, never by an atomic exchange: the
 * guest's mapping is not ordinary memory on every machine, and some do not have exchanges there.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hed_conn;

#define HED_DOORBELL_BYTE 'W'

struct hed_doorbell { /* one side of one channel; all rings of the channel use it */
    struct hed_conn *conn;
    _Atomic uint32_t listening; /* a thread listens to the connection */
    _Atomic uint32_t heard;     /* how often something was heard; others sleep on it */
    _Atomic bool broken;        /* the peer is gone, or sent something else than a ring */
};

void hed_doorbell_init(struct hed_doorbell *b, struct hed_conn *conn);

/* Wakes whoever sleeps on the other side. If there is no room for the byte, others are on their
 * way. */
void hed_doorbell_ring(struct hed_doorbell *b);

/* Sleeps until the peer rings or is gone, or for so long. False if the time ran out. */
bool hed_doorbell_wait(struct hed_doorbell *b, int64_t ns);

/* Stores a value after everything before it and before everything after it, also where this side's
 * mapping is write-combined, which x86 does not keep in order by itself. */
#if defined(__x86_64__)
#define hed_doorbell_store(p, value)                               \
    do {                                                           \
        __builtin_ia32_sfence();                                   \
        atomic_store_explicit((p), (value), memory_order_release); \
        __builtin_ia32_mfence();                                   \
    } while (0)
#else
#define hed_doorbell_store(p, value) atomic_store_explicit((p), (value), memory_order_seq_cst)
#endif

/* Between a load of a position and the loads of what it covers. */
static inline void
hed_doorbell_loaded(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#endif
}
