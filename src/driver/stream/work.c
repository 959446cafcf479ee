/* Work: made, copied, freed, and done on the thread that asks. See work.h. */
#include "driver/stream/work.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "driver/context/context.h"
#include "driver/driver.h"
#include "driver/graph/graph.h"
#include "driver/memory/memory.h"
#include "driver/module/module.h"
#include "driver/near/near.h"
#include "driver/shared.h"
#include "driver/stream/stream.h"

#define POLLS_QUICK 64                   /* looks at a value before sleeping between them */
#define POLL_SLEEP_MOST UINT64_C(200000) /* ns */

static _Thread_local unsigned callbacks; /* functions of the program that this thread is in */

/* ---- life ------------------------------------------------------------------------------------ */

struct hed_work *
hed_work_create(struct hed_context *ctx, enum hed_work_kind kind)
{
    struct hed_work *w = calloc(1, sizeof *w);

    if (!w)
        return NULL;
    w->kind = kind;
    w->ctx = ctx;
    hed_context_ref(ctx);
    return w;
}

/* A copy of n bytes in *p, which is replaced; NULL stays NULL. */
static bool
duplicate(void **p, size_t n)
{
    void *copy;

    if (!*p)
        return true;
    copy = malloc(n ? n : 1);
    if (copy && n)
        memcpy(copy, *p, n);
    *p = copy;
    return copy != NULL;
}

static bool
copy_kernel(struct hed_kernel_work *k)
{
    void *params = (void *)(uintptr_t)k->launch.params;
    void *attributes = k->attributes;
    const bool has_params = duplicate(&params, k->launch.param_bytes);
    const bool has_attributes = duplicate(&attributes, k->attribute_count * sizeof *k->attributes);

    k->launch.params = params;
    k->attributes = attributes;
    if (k->function)
        hed_object_ref(&k->function->object);
    return has_params && has_attributes;
}

static bool
copy_staged(struct hed_copy *c)
{
    if (!c->staged)
        return true;
    if (!duplicate(&c->staged, c->staged_size))
        return false;
    c->from.at = (uint64_t)(uintptr_t)c->staged;
    return true;
}

/* Makes the copied pointers the copy's own. False: no memory, but it can be freed. */
static bool
own(struct hed_work *w)
{
    switch (w->kind) {
    case HED_WORK_KERNEL:
        return copy_kernel(&w->kernel);
    case HED_WORK_COPY:
        return copy_staged(&w->copy);
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
        hed_object_ref(&w->event.event->object);
        return true;
    case HED_WORK_ALLOC:
    case HED_WORK_FREE:
        hed_pool_ref(w->memory.pool);
        return true;
    case HED_WORK_MEMOP: {
        void *ops = w->memops.ops;
        const bool good = duplicate(&ops, w->memops.count * sizeof w->memops.ops[0]);

        w->memops.ops = ops;
        return good;
    }
    case HED_WORK_GRAPH:
        hed_graph_exec_ref(w->graph);
        return true;
    default:
        return true;
    }
}

struct hed_work *
hed_work_copy(const struct hed_work *from)
{
    struct hed_work *w = malloc(sizeof *w);

    if (!w)
        return NULL;
    *w = *from;
    w->next = NULL;
    w->number = 0;
    w->after = (struct hed_points){0};
    w->result = NULL;
    hed_context_ref(w->ctx);
    if (!own(w)) {
        hed_work_free(w);
        return NULL;
    }
    return w;
}

void
hed_work_free(struct hed_work *w)
{
    if (!w)
        return;
    switch (w->kind) {
    case HED_WORK_KERNEL:
        free((void *)(uintptr_t)w->kernel.launch.params);
        free(w->kernel.attributes);
        if (w->kernel.function)
            hed_object_put(&w->kernel.function->object);
        break;
    case HED_WORK_COPY:
        free(w->copy.staged);
        break;
    case HED_WORK_EVENT_RECORD:
    case HED_WORK_EVENT_WAIT:
        if (w->event.event)
            hed_object_put(&w->event.event->object);
        break;
    case HED_WORK_ALLOC:
    case HED_WORK_FREE:
        hed_pool_unref(w->memory.pool);
        break;
    case HED_WORK_MEMOP:
        free(w->memops.ops);
        break;
    case HED_WORK_GRAPH:
        if (w->graph)
            hed_graph_exec_unref(w->graph);
        break;
    default:
        break;
    }
    hed_points_clear(&w->after);
    hed_context_unref(w->ctx);
    free(w);
}

/* ---- copies and fills ------------------------------------------------------------------------ */

/* Rows side by side are one long row, planes side by side one tall plane. */
static void
flatten(struct hed_copy *c)
{
    if (c->height == 1 || (c->from.pitch == c->width && c->to.pitch == c->width)) {
        const size_t plane = c->width * c->height;

        if (c->depth == 1 || (c->from.slice == plane && c->to.slice == plane)) {
            c->width = plane * c->depth;
            c->height = 1;
            c->depth = 1;
        } else {
            c->width = plane;
            c->height = c->depth;
            c->depth = 1;
            c->from.pitch = c->from.slice;
            c->to.pitch = c->to.slice;
        }
    }
}

static void
run_copy(const struct hed_driver *d, const struct hed_copy *given)
{
    struct hed_copy c = *given;

    flatten(&c);
    for (size_t z = 0; z < c.depth; z++)
        for (size_t y = 0; y < c.height; y++)
            d->machine->memory.copy(d->machine_state, c.to.at + z * c.to.slice + y * c.to.pitch,
                                    c.from.at + z * c.from.slice + y * c.from.pitch, c.width);
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

/* Acquire: pairs with whoever wrote the value, a kernel, the program, or write_value. */
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

/* Whoever writes the value tells nobody, so there is nothing to sleep on: looks again and again,
 * less often with time. A failed or dying context ends it. */
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

/* Release: what the stream did before is seen by whoever sees the value (load_value, kernels, the
 * program). */
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
            /* A barrier: between what comes before and after it, for every observer. */
            atomic_thread_fence(memory_order_seq_cst);
        }
    }
    return r;
}

/* ---- all kinds ------------------------------------------------------------------------------- */

bool
hed_in_callback(void)
{
    return callbacks > 0;
}

static void
run_program(struct hed_work *w)
{
    callbacks++;
    if (w->kind == HED_WORK_HOST)
        w->host.fn(w->host.data);
    else
        w->callback.fn(w->callback.stream, hed_context_error(w->ctx), w->callback.data);
    callbacks--;
}

/* How long it took is what NVML calls use of the device. */
static CUresult
run_kernel(const struct hed_device *dev, const struct hed_launch *l, struct hed_why *why)
{
    struct hed_driver *d = dev->driver;
    const uint64_t begin = hed_now_ns();
    const CUresult r = d->machine->executor->launch(d->machine_state, l, why);

    hed_shared_busy(d, dev->ordinal, hed_now_ns() - begin);
    return r;
}

CUresult
hed_work_run(struct hed_work *w, struct hed_why *why)
{
    const struct hed_driver *d = w->ctx->device->driver;

    switch (w->kind) {
    case HED_WORK_KERNEL:
        return run_kernel(w->ctx->device, &w->kernel.launch, why);
    case HED_WORK_COPY:
        run_copy(d, &w->copy);
        return CUDA_SUCCESS;
    case HED_WORK_FILL:
        run_fill(d, &w->fill);
        return CUDA_SUCCESS;
    case HED_WORK_HOST:
    case HED_WORK_CALLBACK:
        run_program(w);
        return CUDA_SUCCESS;
    case HED_WORK_EVENT_RECORD:
        hed_event_reached(w->event.event, w->event.record);
        return CUDA_SUCCESS;
    case HED_WORK_ALLOC:
        return hed_pool_work_alloc(w);
    case HED_WORK_FREE:
        return hed_pool_work_free(w);
    case HED_WORK_MEMOP:
        return run_memops(w->ctx, &w->memops);
    case HED_WORK_GRAPH:
        return hed_graph_exec_run(w->graph, why);
    default:
        return CUDA_SUCCESS; /* nothing, or a wait, which is over */
    }
}
