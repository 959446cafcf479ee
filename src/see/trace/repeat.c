/* Counting questions that are asked again (see/trace/repeat.h): what happens less often. */
#include "see/trace/repeat.h"

#include <string.h>

#include "base/log.h"
#include "gen/cuda_wire.h"
#include "see/trace/call.h"

/* The place for an open record of that call: the one it has, else a free one, else the next. */
static uint32_t
choose_open(struct hed_trace_own *own, uint32_t id)
{
    uint32_t chosen = HED_TRACE_OPEN_MAX;

    for (uint32_t i = 0; i < HED_TRACE_OPEN_MAX; i++) {
        if (own->open_ids[i] == id)
            return i;
        if (own->open_ids[i] == 0)
            chosen = i < chosen ? i : chosen;
    }
    return chosen < HED_TRACE_OPEN_MAX ? chosen : own->next_open++ % HED_TRACE_OPEN_MAX;
}

void
hed_trace_put_first(struct hed_trace_writer *w, const struct hed_trace_call *call,
                    const uint64_t *words)
{
    struct hed_trace_put put;

    if (!hed_trace_put_begin(w, &put))
        return; /* counted as dropped */
    hed_cuda_put_call(&put.enc, (enum hed_cuda_call)call->id, call->args);

    const size_t size =
        hed_trace_make_long(&put, &(struct hed_trace_head){.kind = HED_TRACE_CALL,
                                                           .api = HED_TRACE_API_CUDA,
                                                           .call = (uint16_t)call->id,
                                                           .start = call->start,
                                                           .duration = call->duration,
                                                           .flags = HED_TRACE_REPEATS});
    const uint32_t i = choose_open(put.own, call->id);
    struct hed_trace_open *o = &put.own->open[i];

    /* A signal handler that asks something finds either nothing or all of it. */
    put.own->open_ids[i] = 0;
    atomic_signal_fence(memory_order_seq_cst);
    memcpy(o->words, words, sizeof o->words);
    o->count = (_Atomic uint32_t *)(void *)(put.record + size - sizeof *o->count);
    atomic_signal_fence(memory_order_seq_cst);
    put.own->open_ids[i] = (uint16_t)call->id;
    hed_trace_commit(w, put.own, size);
}

uint64_t
hed_trace_close_counts(uint8_t *p, size_t n)
{
    struct hed_trace_long head;
    uint64_t count = 0;
    size_t size;

    for (size_t at = 0; at < n; at += size, count++) {
        size = hed_trace_record_size(p + at, n - at);
        if (size == 0) {
            hed_bug("a trace record that makes no sense");
            break;
        }
        if (hed_trace_is_short(p + at))
            continue;
        memcpy(&head, p + at, sizeof head);
        if (head.flags & HED_TRACE_REPEATS)
            atomic_fetch_or_explicit((_Atomic uint32_t *)(void *)(p + at + size - sizeof(uint32_t)),
                                     HED_TRACE_COUNT_CLOSED, memory_order_acquire);
    }
    return count;
}
