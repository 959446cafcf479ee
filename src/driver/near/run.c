/* Runs work on the calling thread. See near.h.
 *
 * Running work never blocks on other work: the queue (queue.c) waits, and handles failures.
 */
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "core/activity.h"
#include "driver/graph/node.h"
#include "driver/ipc/event.h"
#include "driver/memory/memory.h"
#include "driver/near/near.h"
#include "driver/parts.h"
#include "driver/shared.h"
#include "driver/stream/stream.h"

#define POLLS_QUICK 64                   /* looks at a value without sleeping in between */
#define POLL_SLEEP_MOST UINT64_C(200000) /* ns */

/* ---- copies and fills ------------------------------------------------------------------------ */

static void
run_copy(const struct hed_driver *d, const struct hed_copy *given)
{
    struct hed_copy c = *given;

    hed_copy_flatten(&c);
    for (uint64_t z = 0; z < c.box.depth; z++)
        for (uint64_t y = 0; y < c.box.height; y++)
            d->machine->memory.copy(d->machine_state, hed_side_at(&c.to, 0, y, z),
                                    hed_side_at(&c.from, 0, y, z), c.box.width);
}

static void
run_fill(const struct hed_driver *d, const struct hed_fill *f)
{
    if (f->height == 1 || f->pitch == f->width * f->size) {
        d->machine->memory.fill(d->machine_state, f->to, f->value, f->size, f->width * f->height);
        return;
    }
    for (size_t y = 0; y < f->height; y++)
        d->machine->memory.fill(d->machine_state, f->to + y * f->pitch, f->value, f->size,
                                f->width);
}

/* ---- values in memory ------------------------------------------------------------------------ */

/* Acquire: pairs with the write of the value by a kernel, by the program, or by write_value(). */
static uint64_t
load_value(uint64_t at, bool wide)
{
    if (wide)
        return atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)at, memory_order_acquire);
    return atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)at, memory_order_acquire);
}

/* cuda.h, CUstreamWaitValue_flags: "Wait until (int32_t)(*addr - value) >= 0", "*addr == value",
 * "(*addr & value) != 0", "~(*addr | value) != 0", each with its 64-bit form. */
static bool
value_fits(const CUstreamBatchMemOpParams_v1 *op, bool wide)
{
    const uint64_t now = load_value(op->waitValue.address, wide);
    const uint64_t value = wide ? op->waitValue.value64 : op->waitValue.value;
    const uint64_t all = wide ? UINT64_MAX : UINT32_MAX;

    switch (op->waitValue.flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR:
        return (~(now | value) & all) != 0;
    default:
        return wide ? (int64_t)(now - value) >= 0 : (int32_t)((uint32_t)now - (uint32_t)value) >= 0;
    }
}

/* Nothing announces that a value has been written, so there is nothing to sleep on: looks at it
 * repeatedly, less often with time. Ends when the context fails or is destroyed. */
static CUresult
wait_value(const struct hed_context *c, const CUstreamBatchMemOpParams_v1 *op, bool wide)
{
    uint64_t sleep = 1000; /* ns */

    for (unsigned i = 0; !value_fits(op, wide); i++) {
        /* Acquire: pairs with the store that ends the context. */
        if (hed_context_error(c) != CUDA_SUCCESS ||
            !atomic_load_explicit(&c->alive, memory_order_acquire))
            return hed_context_error(c);
        if (i < POLLS_QUICK) {
            (void)sched_yield();
            continue;
        }
        hed_sleep_ns(sleep);
        sleep = sleep < POLL_SLEEP_MOST / 2 ? sleep * 2 : POLL_SLEEP_MOST;
    }
    return CUDA_SUCCESS;
}

/* Release: a thread that sees the value (load_value(), kernels, the program) sees what the stream
 * did before. */
static void
write_value(const CUstreamBatchMemOpParams_v1 *op, bool wide)
{
    const uint64_t at = op->writeValue.address;

    if (wide)
        atomic_store_explicit((_Atomic uint64_t *)(uintptr_t)at, op->writeValue.value64,
                              memory_order_release);
    else
        atomic_store_explicit((_Atomic uint32_t *)(uintptr_t)at, op->writeValue.value,
                              memory_order_release);
}

static CUresult
run_memops(const struct hed_context *c, const struct hed_memops *m)
{
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; i < m->count && r == CUDA_SUCCESS; i++) {
        const CUstreamBatchMemOpParams_v1 *op = &m->ops[i];

        switch (op->operation) {
        case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        case CU_STREAM_MEM_OP_WAIT_VALUE_64:
            r = wait_value(c, op, op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64);
            break;
        case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        case CU_STREAM_MEM_OP_WRITE_VALUE_64:
            write_value(op, op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64);
            break;
        default:
            /* A barrier orders what comes before and after it for every observer. */
            atomic_thread_fence(memory_order_seq_cst);
        }
    }
    return r;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Measures how long the kernel took, which NVML reports as load of the device. */
static CUresult
run_kernel(const struct hed_context *c, struct hed_launch *l, struct hed_why *why)
{
    const struct hed_device *dev = c->device;
    struct hed_driver *d = dev->driver;
    const struct hed_near *n = d->machine_state;

    l->objects = &hed_near_context(c)->objects;
    l->begin = hed_now_ns();
    /* Relaxed: the ids only have to differ. */
    l->grid_id = 1 + atomic_fetch_add_explicit(&d->grid_ids, 1, memory_order_relaxed);

    const CUresult r = n->executor->launch(d->machine_state, l, why);

    const uint64_t end = hed_now_ns();

    hed_shared_busy(d, dev->ordinal, end - l->begin, end);
    return r;
}

/* ---- all kinds ------------------------------------------------------------------------------- */

static CUresult run_graph(const struct hed_work *of, struct hed_graph_exec *g, struct hed_why *why);

/* A loop ends with its context, as a kernel in its body would have to. */
static CUresult
run_choice(const struct hed_work *of, const struct hed_exec_node *n, struct hed_why *why)
{
    const struct hed_context *c = of->ctx;
    const bool repeats = n->condition.type == CU_GRAPH_COND_TYPE_WHILE;
    CUresult r = CUDA_SUCCESS;

    do {
        const uint32_t which = hed_near_branch(c->device->driver->machine_state, &n->condition);

        if (which >= n->condition.count)
            break;
        r = run_graph(of, n->branches[which], why);
        if (r == CUDA_SUCCESS)
            r = hed_context_error(c);
        /* Acquire: pairs with the store that ends the context. */
    } while (repeats && r == CUDA_SUCCESS && atomic_load_explicit(&c->alive, memory_order_acquire));
    return r;
}

static CUresult
run_graph(const struct hed_work *of, struct hed_graph_exec *g, struct hed_why *why)
{
    for (size_t i = 0; i < g->count; i++) {
        struct hed_exec_node *n = &g->nodes[i];
        CUresult r = CUDA_SUCCESS;

        if (n->disabled)
            continue;
        if (n->child)
            r = run_graph(of, n->child, why);
        else if (n->condition.count)
            r = run_choice(of, n, why);
        else if (n->work)
            r = hed_near_run(n->work, of, why);
        if (r != CUDA_SUCCESS)
            return r;
    }
    return CUDA_SUCCESS;
}

static CUresult
run_work(struct hed_work *w, const struct hed_work *of, struct hed_why *why)
{
    const struct hed_driver *d = w->ctx->device->driver;
    struct hed_near *n = d->machine_state;

    switch (w->kind) {
    case HED_WORK_KERNEL:
        return run_kernel(w->ctx, &w->kernel, why);
    case HED_WORK_COPY:
        run_copy(d, &w->copy);
        return CUDA_SUCCESS;
    case HED_WORK_FILL:
        run_fill(d, &w->fill);
        return CUDA_SUCCESS;
    case HED_WORK_HOST:
    case HED_WORK_CALLBACK:
        hed_work_call(w);
        if (n->executor->runner_begins)
            n->executor->runner_begins(d->machine_state, true);
        return CUDA_SUCCESS;
    case HED_WORK_EVENT_RECORD:
        hed_near_event_reached(w->event.event, w->event.record);
        return CUDA_SUCCESS;
    case HED_WORK_EVENT_WAIT:
        return w->event.shared
                   ? hed_shared_event_wait(w->event.event->shared, w->event.shared, w->ctx)
                   : CUDA_SUCCESS;
    case HED_WORK_ALLOC:
        return hed_pool_work_alloc(w);
    case HED_WORK_FREE:
        return hed_pool_work_free(w);
    case HED_WORK_MEMOP:
        return run_memops(w->ctx, &w->memops);
    case HED_WORK_GRAPH:
        if (w->graph->root)
            hed_near_conditions_begin(n, w->graph->root);
        return run_graph(of, w->graph, why);
    default:
        return CUDA_SUCCESS; /* nothing to do; a wait is over by now */
    }
}

CUresult
hed_near_run(struct hed_work *w, const struct hed_work *of, struct hed_why *why)
{
    struct hed_watcher *watcher = hed_watcher_get();
    uint64_t begin;
    CUresult r;

    if (__builtin_expect(!watcher || !hed_near_is_told(w), 1))
        return run_work(w, of, why);
    begin = hed_now_ns();
    r = run_work(w, of, why);
    hed_near_tell(watcher, w, of, begin, hed_now_ns());
    return r;
}
