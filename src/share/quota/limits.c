/* Memory that a context has for its kernels (share/quota/engine.h): heap, stacks, print buffer.
 *
 * What every context has of them is not charged, like the rest of a context. What the program asks
 * for above that is charged when it asks, whenever the driver takes it, until the context ends.
 * Stacks are charged for all threads that the device can run at once.
 */
#include "share/quota/engine.h"

#define STACK_FIRST 1024ull
#define PRINT_FIRST (1ull << 20)
#define HEAP_FIRST (8ull << 20)

/* A key like that of a limit: the heap has been seen among what a module took. */
#define HEAP_SEEN 4

/* The handles of contexts are far enough apart for a few numbers after each. */
static uint64_t
limit_key(CUcontext context, unsigned limit)
{
    return (uint64_t)(uintptr_t)context + limit;
}

/* An attribute of a device; 0 if the layer below does not say. */
static uint64_t
ask_attribute(struct hed_layer *self, CUdevice dev, CUdevice_attribute attribute)
{
    int value = 0;

    return hed_call(self->next, cuDeviceGetAttribute, .pi = &value, .attrib = attribute,
                    .dev = dev) == CUDA_SUCCESS &&
                   value > 0
               ? (uint64_t)value
               : 0;
}

/* The number of threads that the current device can run at once. */
static uint64_t
count_threads(struct hed_layer *self)
{
    CUdevice dev = 0;

    if (hed_call(self->next, cuCtxGetDevice, .device = &dev) != CUDA_SUCCESS)
        return 0;
    return ask_attribute(self, dev, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) *
           ask_attribute(self, dev, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

/* How many bytes more than every context has a limit of n means; UINT64_MAX if too many. */
static uint64_t
limit_bytes(struct hed_layer *self, CUlimit limit, uint64_t n)
{
    const uint64_t first = limit == CU_LIMIT_STACK_SIZE         ? STACK_FIRST
                           : limit == CU_LIMIT_PRINTF_FIFO_SIZE ? PRINT_FIRST
                                                                : HEAP_FIRST;
    const uint64_t more = n > first ? n - first : 0;
    const uint64_t times = limit == CU_LIMIT_STACK_SIZE && more ? count_threads(self) : 1;

    return times != 0 && more > UINT64_MAX / times ? UINT64_MAX : more * times;
}

/* The driver may have rounded the limit up or down, and has taken the memory already. */
static uint64_t
settle_limit(struct hed_layer *self, struct quota_device *d, CUlimit limit, uint64_t charged)
{
    size_t now = 0;

    if (hed_call(self->next, cuCtxGetLimit, .pvalue = &now, .limit = limit) != CUDA_SUCCESS ||
        now == 0)
        return charged;

    const uint64_t is = limit_bytes(self, limit, now);

    if (is > charged)
        hed_quota_force(d, is - charged);
    else if (is < charged)
        hed_quota_give(d, charged - is);
    return is;
}

static CUresult
quota_do_context_limit(struct hed_layer *self, const struct quota_call *c)
{
    const bool counts = c->limit == CU_LIMIT_STACK_SIZE || c->limit == CU_LIMIT_PRINTF_FIFO_SIZE ||
                        c->limit == CU_LIMIT_MALLOC_HEAP_SIZE;
    struct quota_device *d = counts ? hed_quota_current(self) : NULL;

    if (!d)
        return quota_next(self, c);

    const CUcontext context = hed_quota_context(self);
    const uint64_t key = limit_key(context, (unsigned)c->limit);
    struct quota_charge now = {.key = key, .device = d, .context = context, .kind = QUOTA_LIMIT};
    struct quota_charge old = {0};
    const uint64_t want = limit_bytes(self, c->limit, c->bytes);
    const bool found = hed_quota_take(self->state, QUOTA_LIMIT, key, &old);
    const uint64_t more = want > old.bytes ? want - old.bytes : 0;
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

    if (more == 0 || hed_quota_claim(self, d, more)) {
        r = quota_next(self, c);
        if (r != CUDA_SUCCESS && more != 0)
            hed_quota_give(d, more);
    }
    if (r != CUDA_SUCCESS) {
        if (found)
            (void)hed_quota_put(self->state, &old);
        return r;
    }
    if (want < old.bytes)
        hed_quota_give(d, old.bytes - want);
    now.bytes = settle_limit(self, d, c->limit, want);
    /* If there is no memory to remember it, it stays charged: too much, never too little. */
    (void)hed_quota_put(self->state, &now);
    return r;
}

HED_CUDA_MEMORY_CONTEXT_LIMIT(QUOTA_CALL)

uint64_t
hed_quota_without_heap(struct hed_layer *self, uint64_t took)
{
    struct hed_quota *q = self->state;
    const CUcontext context = took ? hed_quota_context(self) : NULL;
    struct quota_charge heap;
    struct quota_charge seen;

    if (took == 0 ||
        !hed_quota_peek(q, QUOTA_LIMIT, limit_key(context, CU_LIMIT_MALLOC_HEAP_SIZE), &heap) ||
        heap.bytes == 0 || took < heap.bytes ||
        hed_quota_peek(q, QUOTA_LIMIT, limit_key(context, HEAP_SEEN), &seen))
        return took;
    seen = (struct quota_charge){.key = limit_key(context, HEAP_SEEN),
                                 .device = heap.device,
                                 .context = context,
                                 .kind = QUOTA_LIMIT};
    return hed_quota_put(q, &seen) == 0 ? took - heap.bytes : took;
}
