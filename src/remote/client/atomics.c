/* Kernels with system-wide atomics on managed memory.
 *
 * On a local GPU the program and a kernel may change the same managed memory at the same time with
 * atomic operations. Here managed memory is host memory, for which GPUs do not have all atomic
 * operations; over sockets, each side even has memory of its own. So such a kernel runs alone: its
 * launch returns when it has run (queue.c). A kernel that does not end may be waiting for the
 * program, so after a while the program continues, and the log says why. The next time it is waited
 * for an eighth as long, and soon not at all: all of this costs a kernel about two seconds.
 *
 * This costs nothing if there is no managed memory. Other kernels that use it cost one question per
 * library and a look at their parameters.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/stats.h"
#include "driver/driver.h"
#include "remote/client/code.h"
#include "remote/client/queue.h"
#include "remote/client/remote.h"

#define PATIENCE_NS (2 * HED_NS_PER_S) /* how long a kernel that must run alone may take */
#define LATE_MOST 4                    /* after so many times it is not waited for any more */

enum { ATOMICS_UNKNOWN, ATOMICS_NONE, ATOMICS_SYSTEM };

/* Are the program's and the device's atomic operations on the same memory atomic for each other? */
static bool
are_coherent(const struct hed_remote *r, const struct hed_device *dev)
{
    if (!r->shares_heap) /* host memory is not shared */
        return false;
    return !r->devices[dev->ordinal].real ||
           dev->info.profile.attributes[CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED] != 0;
}

/* Does a parameter, or part of one, hold an address in managed memory? */
static bool
has_managed_param(struct hed_driver *d, const struct hed_launch *l)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= l->param_bytes; at += sizeof(uint64_t)) {
        struct hed_allocation a;
        uint64_t word;

        memcpy(&word, (const char *)l->params + at, sizeof word);
        if (word && hed_memory_find(d, word, &a) && a.kind == HED_MEMORY_MANAGED)
            return true;
    }
    return false;
}

/* Asks the worker, which has the code. */
static int
ask_atomics(struct hed_remote_library *c)
{
    struct hed_remote_channel *channel;
    struct hed_open_body *b = hed_remote_begin_open(c, HED_OPEN_ATOMICS, 0, 0, &channel);
    const struct hed_atomics_answer *a;

    if (!b || hed_remote_end(channel, &b->head, sizeof *b) != 0)
        return ATOMICS_NONE;
    a = (const struct hed_atomics_answer *)hed_remote_answer(channel);
    return a && a->head.result == CUDA_SUCCESS && a->head.head.size >= sizeof *a && a->system
               ? ATOMICS_SYSTEM
               : ATOMICS_NONE;
}

static bool
has_system_atomics(struct hed_remote_library *c)
{
    /* Relaxed: nothing else depends on the value, and two threads may ask at the same time. */
    int known = atomic_load_explicit(&c->atomics, memory_order_relaxed);

    if (known == ATOMICS_UNKNOWN) {
        known = ask_atomics(c);
        atomic_store_explicit(&c->atomics, known, memory_order_relaxed);
    }
    return known == ATOMICS_SYSTEM;
}

bool
hed_remote_must_run_alone(void *m, const struct hed_stream *s, const struct hed_launch *l)
{
    const struct hed_remote *r = hed_remote_of(m);
    const struct hed_device *dev = s->ctx->device;

    return r->backend != HED_BACKEND_NULL && !are_coherent(r, dev) &&
           has_managed_param(dev->driver, l) &&
           has_system_atomics(hed_remote_library(l->function->module->code));
}

uint64_t
hed_remote_patience_alone(const struct hed_launch *l)
{
    /* Relaxed, here and below: it is only a measure. */
    const uint8_t late = atomic_load_explicit(&l->function->late, memory_order_relaxed);

    return late < LATE_MOST ? PATIENCE_NS >> 3 * late : 0;
}

/* Threads that count at the same time may count one too few. */
void
hed_remote_not_alone(const struct hed_launch *l)
{
    const char *name = hed_function_kernel(l->function)->name;
    const uint8_t late = atomic_load_explicit(&l->function->late, memory_order_relaxed);

    if (late >= LATE_MOST)
        return;
    atomic_store_explicit(&l->function->late, late + 1, memory_order_relaxed);
    if (late == 0) {
        hed_warn(REMOTE,
                 "kernel %s uses system-wide atomics on managed memory and has not ended. They are "
                 "not atomic for the program on this remote GPU",
                 name);
        hed_stats_unsupported(HED_API_CUDA, HED_cuLaunchKernel,
                              "a remote GPU (system-wide atomics on managed memory that the "
                              "program uses at the same time)");
    } else if (late + 1 == LATE_MOST) {
        hed_warn(REMOTE, "kernel %s has not ended %u times: its launches wait for it no more", name,
                 LATE_MOST);
    }
}
