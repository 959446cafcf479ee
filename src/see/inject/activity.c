/* Writes what the GPU did into the trace, from CUPTI's activity records. CUPTI hands buffers over
 * in a thread of its own, or in the thread that flushes. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "see/inject/inject.h"
#include "see/trace/activity.h"

#define BUFFER_SIZE ((size_t)1 << 20)
#define CLOCK_LOOKS 32
#define FLUSH_MS 1000 /* so that a program that is killed leaves most of its trace */

/* Added to CUPTI's times if it cannot take them from our clock. */
static uint64_t skew;

/* A held launch is made by a call of ours, and the record of its kernel names that call. This table
 * finds the program's own call by the lowest bits of ours: ours << 32 | the program's. A kernel's
 * record must arrive before so many more calls have been made. */
#define LINKS (1u << 18)
static _Atomic uint64_t links[LINKS];

void
hed_inject_link(uint32_t ours, uint64_t programs)
{
    /* Relaxed: one word; the kernel's record comes much later, by ways that order it. */
    atomic_store_explicit(&links[ours % LINKS], (uint64_t)ours << 32 | (uint32_t)programs,
                          memory_order_relaxed);
}

static uint64_t
find_program_call(uint32_t correlation)
{
    const uint64_t link = atomic_load_explicit(&links[correlation % LINKS], memory_order_relaxed);

    return link >> 32 == correlation ? (uint32_t)link : correlation;
}

static uint64_t
activity_time(void)
{
    return hed_now_ns();
}

static void
give_buffer_to_cupti(uint8_t **buffer, size_t *size, size_t *records_max)
{
    *buffer = aligned_alloc(8, BUFFER_SIZE);
    *size = *buffer ? BUFFER_SIZE : 0; /* 0: CUPTI drops records, and counts them */
    *records_max = 0;
}

/* By CUpti_ActivityMemoryKind. */
static uint8_t
trace_memory_kind(uint8_t kind)
{
    static const uint8_t known[] = {
        [1] = HED_TRACE_MEMORY_HOST,    [2] = HED_TRACE_MEMORY_PINNED,
        [3] = HED_TRACE_MEMORY_DEVICE,  [4] = HED_TRACE_MEMORY_ARRAY,
        [5] = HED_TRACE_MEMORY_MANAGED, [6] = HED_TRACE_MEMORY_DEVICE,
        [7] = HED_TRACE_MEMORY_MANAGED,
    };

    return kind < sizeof known ? known[kind] : HED_TRACE_MEMORY_UNKNOWN;
}

/* A record without an end is of something that never ran or was not measured. */
static void
put_kernel(const struct hed_cupti_kernel *k)
{
    if (!k->end)
        return;

    struct hed_trace_activity a = {
        .kind = HED_TRACE_KERNEL,
        .name = k->name,
        .start = k->start + skew,
        .end = k->end + skew,
        .device = k->device,
        .context = k->context,
        .stream = k->stream,
        .correlation = find_program_call(k->correlation),
        .static_shared = (uint32_t)k->static_shared,
        .dynamic_shared = (uint32_t)k->dynamic_shared,
        .registers = k->registers,
    };

    for (int i = 0; i < 3; i++) {
        a.grid[i] = (uint32_t)k->grid[i];
        a.block[i] = (uint32_t)k->block[i];
    }
    hed_trace_put_activity(hed_inject.writer, &a);
}

static void
put_copy(const struct hed_cupti_copy *c)
{
    const bool peer = c->kind == HED_CUPTI_PEER_COPY;
    const bool from_here = !peer || c->peer.from_device == c->device;
    const bool to_here = !peer || c->peer.to_device == c->device;

    if (!c->end)
        return;
    hed_trace_put_activity(
        hed_inject.writer,
        &(struct hed_trace_activity){
            .kind = HED_TRACE_COPY,
            .start = c->start + skew,
            .end = c->end + skew,
            .device = c->device,
            .context = c->context,
            .stream = c->stream,
            .correlation = find_program_call(peer ? c->peer.correlation : c->correlation),
            .bytes = c->bytes,
            .from = from_here ? trace_memory_kind(c->from) : HED_TRACE_MEMORY_PEER,
            .to = to_here ? trace_memory_kind(c->to) : HED_TRACE_MEMORY_PEER,
        });
}

static void
put_fill(const struct hed_cupti_fill *f)
{
    if (!f->end)
        return;
    hed_trace_put_activity(hed_inject.writer, &(struct hed_trace_activity){
                                                  .kind = HED_TRACE_FILL,
                                                  .start = f->start + skew,
                                                  .end = f->end + skew,
                                                  .device = f->device,
                                                  .context = f->context,
                                                  .stream = f->stream,
                                                  .correlation = find_program_call(f->correlation),
                                                  .bytes = f->bytes,
                                                  .to = HED_TRACE_MEMORY_DEVICE,
                                              });
}

static void
take_buffer_from_cupti(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t used)
{
    void *record = NULL;
    size_t dropped = 0;

    while (buffer && used && hed_cupti.cuptiActivityGetNextRecord(buffer, used, &record) == 0) {
        switch (*(const uint32_t *)record) {
        case HED_CUPTI_KERNEL:
            put_kernel(record);
            break;
        case HED_CUPTI_COPY:
        case HED_CUPTI_PEER_COPY:
            put_copy(record);
            break;
        case HED_CUPTI_FILL:
            put_fill(record);
            break;
        default:
            break;
        }
    }
    free(buffer);
    if (hed_cupti.cuptiActivityGetNumDroppedRecords &&
        hed_cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == 0 && dropped)
        hed_warn(INJECT, "CUPTI dropped %zu records of kernels and copies", dropped);
}

/* The GPU's times must be on the clock of the calls. */
static void
align_clocks(void)
{
    uint64_t best = UINT64_MAX;
    uint64_t theirs;

    if (hed_cupti.cuptiActivityRegisterTimestampCallback &&
        hed_cupti.cuptiActivityRegisterTimestampCallback(activity_time) == 0)
        return;
    /* Of several readings of both clocks, the shortest is the most exact. */
    for (int i = 0; hed_cupti.cuptiGetTimestamp && i < CLOCK_LOOKS; i++) {
        const uint64_t before = hed_now_ns();

        if (hed_cupti.cuptiGetTimestamp(&theirs) != 0)
            return;

        const uint64_t took = hed_now_ns() - before;

        if (took < best) {
            best = took;
            skew = before + took / 2 - theirs;
        }
    }
}

int
hed_inject_watch(void)
{
    static const int kinds[] = {HED_CUPTI_KERNEL, HED_CUPTI_COPY, HED_CUPTI_PEER_COPY,
                                HED_CUPTI_FILL};
    int err;

    if (!hed_cupti.cuptiActivityRegisterCallbacks || !hed_cupti.cuptiActivityEnable ||
        !hed_cupti.cuptiActivityGetNextRecord || !hed_cupti.cuptiActivityFlushAll)
        return HED_CUPTI_NOT_SUPPORTED;
    align_clocks();
    err = hed_cupti.cuptiActivityRegisterCallbacks(give_buffer_to_cupti, take_buffer_from_cupti);
    for (size_t i = 0; !err && i < sizeof kinds / sizeof *kinds; i++)
        err = hed_cupti.cuptiActivityEnable(kinds[i]);
    if (!err && hed_cupti.cuptiActivityFlushPeriod)
        (void)hed_cupti.cuptiActivityFlushPeriod(FLUSH_MS);
    return err;
}

void
hed_inject_flush(void)
{
    if (hed_inject.writer && hed_cupti.cuptiActivityFlushAll)
        (void)hed_cupti.cuptiActivityFlushAll(HED_CUPTI_FLUSH_FORCED);
}
