/* What the GPU of a backend of ours has done, told to whoever watches: the layer that writes a
 * trace, for one.
 *
 *     layer: hed_activity_begin_cause() ──> call goes down ──> driver puts work on a stream, with
 *                                                              the cause
 *     layer <── watcher->ran() ── a thread of the machine, when the work has run
 *
 * Nothing is counted, timed or allocated while nobody watches.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/export.h"

enum hed_activity_kind {
    HED_ACTIVITY_KERNEL,
    HED_ACTIVITY_COPY,
    HED_ACTIVITY_FILL,
    HED_ACTIVITY_HOST, /* a function of the program, in its stream */
};

/* Where the bytes of a copy or fill are. */
enum hed_activity_place {
    HED_PLACE_DEVICE,
    HED_PLACE_PINNED, /* memory of the host that the driver knows */
    HED_PLACE_PAGEABLE,
    HED_PLACE_ARRAY,
};

struct hed_activity {
    enum hed_activity_kind kind;
    const char *name;    /* of a kernel: its symbol */
    uint64_t begin, end; /* ns of CLOCK_MONOTONIC */
    uint64_t cause;      /* of the call that it comes from; 0: not known */
    uint32_t device;     /* as CUDA counts them in this process */
    uint64_t context, stream;

    /* Kernels. */
    uint32_t grid[3], block[3];
    uint32_t static_shared, dynamic_shared; /* bytes per block */
    uint32_t registers;                     /* per thread */

    /* Copies and fills. */
    uint64_t bytes;
    enum hed_activity_place from, to; /* fills: only `to` */
};

struct hed_watcher {
    /* On any thread, several at once. Nothing of *a stays valid. */
    void (*ran)(struct hed_watcher *self, const struct hed_activity *a);
};

/* At most one; NULL: none from now on. One that was set stays valid, since a thread may have found
 * it before. */
void hed_activity_watch(struct hed_watcher *w);

HED_EXPORT extern _Atomic(struct hed_watcher *) hed_activity_watcher;

/* NULL: nobody watches. */
static inline struct hed_watcher *
hed_watcher_get(void)
{
    /* Acquire: pairs with the release in hed_activity_watch(). */
    return atomic_load_explicit(&hed_activity_watcher, memory_order_acquire);
}

/* A backend that tells what it does says so once, before work is put on a stream. Without one,
 * nobody has to think of causes. */
HED_EXPORT void hed_activity_offer(void);
bool hed_activity_is_offered(void);

/* A number for the call that this thread makes now, and what it was before: a call may make
 * others. Work that it puts on a stream has the number as its cause. */
uint64_t hed_activity_begin_cause(uint64_t *before);
void hed_activity_end_cause(uint64_t before);

/* 0: none. */
HED_EXPORT uint64_t hed_activity_cause(void);
