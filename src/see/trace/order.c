/* The records of a trace in the order of time: an index with 24 bytes per record. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "see/trace/read.h"
#include "see/trace/record.h"

struct entry {
    uint64_t start;
    const uint8_t *at; /* the record, in the mapping */
    uint32_t size;     /* bytes of it */
    uint32_t thread;   /* as in hed_trace_thread */
};

struct hed_trace_index {
    const struct hed_trace *trace;
    size_t count;
    struct entry entries[];
};

static int
by_start(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* The index of a thread among the trace's threads. */
static uint32_t
thread_index(const struct hed_trace *t, uint64_t thread)
{
    uint32_t low = 0;
    uint32_t high = (uint32_t)hed_trace_state(t)->threads;
    uint64_t id;

    while (low < high) {
        const uint32_t mid = low + (high - low) / 2;

        if (hed_trace_thread(t, mid, &id) && id < thread)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

int
hed_trace_sort(const struct hed_trace *t, struct hed_trace_index **out, struct hed_why *why)
{
    const uint64_t records = hed_trace_state(t)->records;
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_index *index;
    struct hed_trace_record r;
    uint64_t before = 0;
    bool sorted = true;

    if (records > HED_TRACE_INDEX_MAX) {
        hed_why_set(why, "%" PRIu64 " records are too many to be put in order of time", records);
        return HED_ELIMIT;
    }
    index = malloc(sizeof(*index) + (size_t)records * sizeof(index->entries[0]));
    if (!index) {
        hed_why_set(why, "%s", hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    index->trace = t;
    index->count = 0;
    while (index->count < records && hed_trace_next(&c, &r)) {
        struct entry *e = &index->entries[index->count];

        e->start = r.start;
        e->at = r.at;
        e->size = r.size;
        e->thread = index->count && r.thread == before ? e[-1].thread : thread_index(t, r.thread);
        sorted = sorted && (index->count == 0 || e[-1].start <= e->start);
        before = r.thread;
        index->count++;
    }
    if (!sorted)
        qsort(index->entries, index->count, sizeof(index->entries[0]), by_start);
    *out = index;
    return 0;
}

void
hed_trace_index_free(struct hed_trace_index *index)
{
    free(index);
}

bool
hed_trace_at(const struct hed_trace_index *index, size_t i, struct hed_trace_record *r)
{
    if (i >= index->count)
        return false;

    const struct entry *e = &index->entries[i];
    uint64_t thread = 0;

    hed_trace_thread(index->trace, e->thread, &thread);
    return hed_trace_get_record(e->at, e->size, hed_trace_major(index->trace), thread, r) != 0;
}
