/* Questions that a thread asks again, with the same answer: they are counted in the record of the
 * first one.
 *
 * A framework asks which device and context are current before almost everything it does; most
 * calls of a program are such questions (HED_CUDA_QUESTIONS). What tracing costs such a program is
 * decided by how many cache lines these calls touch, so all of their path is inline:
 *
 *     thread    hed_trace_find_open()     before the call: does a record of it stand open?
 *               hed_trace_count()         after it: the same question and answer: adds 1
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
 * 4. A signal handler may make calls, and so may a tool in the middle of a question. So a record is
 *    open only when all of it is there, and a question makes sure that its record still is.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "see/trace/format.h"
#include "see/trace/put.h"

struct hed_trace_call;

/* The thread's open record of that call, or NULL. If there is one, and it is about the same
 * question, the call will probably be counted, and need not be timed. */
static inline const struct hed_trace_open *
hed_trace_find_open(const struct hed_trace_own *own, uint32_t id)
{
    for (int i = 0; i < HED_TRACE_OPEN_MAX; i++) {
        if (own->open_ids[i] == id) {
            const struct hed_trace_open *o = &own->open[i];
            const uint32_t n = atomic_load_explicit(o->count, memory_order_relaxed);

            return n < HED_TRACE_COUNT_CLOSED - 1 ? o : NULL;
        }
    }
    return NULL;
}

/* Counts a call that succeeded, if o, which was found before it, is still open and has this
 * question and answer. False if the call has to be put. */
static inline bool
hed_trace_count(const struct hed_trace_own *own, const struct hed_trace_open *o, uint32_t id,
                const uint64_t *words)
{
    uint32_t n = atomic_load_explicit(o->count, memory_order_relaxed);
    uint64_t differ = own->open_ids[o - own->open] ^ id;

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
    hed_trace_close_open(hed_trace_self());
}

/* Closes the counts in n bytes of records, and returns how many records these are. Caller is the
 * drainer. */
uint64_t hed_trace_close_counts(uint8_t *p, size_t n);
