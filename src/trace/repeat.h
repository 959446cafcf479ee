/* Questions that a thread asks again, with the same answer: they are counted in the record of the
 * first one.
 *
 * A framework asks which device and context are current before almost everything it does; most
 * calls of a program are such questions (HED_CUDA_QUESTIONS). What tracing costs such a program is
 * decided by how many cache lines these calls touch, so all of their path is inline:
 *
 *     thread    hed_trace_find_open()     does a record of this call stand open?
 *               hed_trace_count()         the same question and answer as in it: adds 1
 *               hed_trace_put_first()     else: a new record, with a count, which stands open
 *               hed_trace_end_counting()  before a call that may change answers: closes them all
 *     drainer   hed_trace_close_counts()  closes the counts of the records it is about to write
 *
 * Invariants:
 * 1. A record's count lies in the ring, in the record's last 4 bytes, aligned. The thread adds to
 *    it only while HED_TRACE_COUNT_CLOSED is not set; the drainer sets that before it copies
 *    the record. So each call is in one count that is written, or has a record of its own.
 * 2. Open records are in the ring's present lap, so nothing has overwritten them.
 * 3. Between the calls that share a record the thread has only asked questions and put work on
 *    streams.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/format.h"
#include "trace/put.h"

struct hed_trace_call;

/* The calling thread's open record of that call; NULL if there is none. If there is one, the next
 * call will probably be counted, and need not be timed. */
static inline const struct hed_trace_open *
hed_trace_find_open(uint32_t id)
{
    const struct hed_trace_own *own = hed_trace_self();

    for (uint32_t i = 0; i < own->open_count; i++) {
        if (own->open[i].id == id)
            return &own->open[i];
    }
    return NULL;
}

/* Counts a call that succeeded, if question and answer are those of the record. False if the
 * call has to be put. */
static inline bool
hed_trace_count(const struct hed_trace_open *o, const uint64_t *words)
{
    uint32_t n = atomic_load_explicit(o->count, memory_order_relaxed);
    uint64_t differ = 0;

    for (int i = 0; i < HED_TRACE_QUESTION_WORDS; i++)
        differ |= o->words[i] ^ words[i];
    /* Release: pairs with the drainer's acquire in hed_trace_close_counts, which then reads the
     * count with the rest of the record. A count that is closed or full is left alone. */
    while (!differ && n < HED_TRACE_COUNT_CLOSED - 1) {
        if (atomic_compare_exchange_weak_explicit(o->count, &n, n + 1, memory_order_release,
                                                  memory_order_relaxed))
            return true;
    }
    return false;
}

/* Puts the record of a question to CUDA, and leaves it open. */
void hed_trace_put_first(struct hed_trace_writer *w, const struct hed_trace_call *call,
                         const uint64_t *words);

/* The calling thread's next questions have records of their own. */
static inline void
hed_trace_end_counting(void)
{
    hed_trace_self()->open_count = 0;
}

/* Closes the counts in n bytes of records. Caller is the drainer. */
void hed_trace_close_counts(uint8_t *p, size_t n);
