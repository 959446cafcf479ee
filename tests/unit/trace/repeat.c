/* Tests of trace/repeat: questions that are asked again are counted, and none is lost. */
#include "harness/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "gen/cuda_calls.h"
#include "see/trace/call.h"
#include "see/trace/record.h"
#include "see/trace/repeat.h"
#include "see/trace/writer.h"
#include "unit/trace/written.h"

static void
ask(struct hed_trace_writer *w, uint32_t id, const void *args, uint64_t answer)
{
    const uint64_t words[HED_TRACE_QUESTION_WORDS] = {answer};

    const struct hed_trace_own *own = hed_trace_self();
    const struct hed_trace_open *o = hed_trace_find_open(own, id);

    if (!o || !hed_trace_count(own, o, id, words))
        hed_trace_put_first(w, &(struct hed_trace_call){.id = id, .args = args, .duration = 1},
                            words);
}

/* Makes and records the call cuCtxGetDevice, which answers `device`, as the trace layer does. */
static void
ask_device(struct hed_trace_writer *w, CUdevice device)
{
    ask(w, HED_cuCtxGetDevice, &(struct hed_cuCtxGetDevice){.device = &device}, (uint64_t)device);
}

static void
ask_flags(struct hed_trace_writer *w, unsigned flags)
{
    ask(w, HED_cuCtxGetFlags, &(struct hed_cuCtxGetFlags){.flags = &flags}, flags);
}

struct seen {
    uint32_t records;
    uint64_t calls;     /* of all records */
    uint32_t counts[8]; /* of the first records */
    uint16_t ids[8];
};

static struct seen
finish_and_read(struct hed_trace_writer *w)
{
    struct seen s = {0};
    struct hed_trace_record r;

    hed_trace_writer_close(w);

    struct hed_trace *t = read_back(hed_trace_writer_path(w));
    struct hed_trace_cursor c = hed_trace_cursor_over(t);

    for (; hed_trace_next(&c, &r); s.records++) {
        if (s.records < 8) {
            s.counts[s.records] = r.calls;
            s.ids[s.records] = r.call;
        }
        s.calls += r.calls;
    }
    assert_true(hed_trace_state(t)->end_records == s.records);
    hed_trace_close(t);
    hed_trace_writer_free(w);
    return s;
}

/* While a test holds this lock, no record is written, however long the test takes. */
static struct hed_trace_writer *
open_quiet_writer(const char *name)
{
    struct hed_trace_writer *w = open_writer(name, false, 65536);

    hed_lock(&w->file_lock);
    return w;
}

static struct seen
finish_quiet_writer(struct hed_trace_writer *w)
{
    hed_unlock(&w->file_lock);
    return finish_and_read(w);
}

static void
equal_answers_share_a_record(void **state)
{
    struct hed_trace_writer *w = open_quiet_writer("equal_answers.hed");

    for (int i = 0; i < 5; i++) {
        ask_device(w, 3);
        ask_flags(w, 8);
    }
    ask_device(w, 4);
    ask_device(w, 3);

    const struct seen s = finish_quiet_writer(w);

    assert_int_equal(s.records, 4);
    assert_int_equal(s.ids[0], HED_cuCtxGetDevice);
    assert_int_equal(s.counts[0], 5);
    assert_int_equal(s.ids[1], HED_cuCtxGetFlags);
    assert_int_equal(s.counts[1], 5);
    assert_int_equal(s.counts[2], 1);
    assert_int_equal(s.counts[3], 1);
}

static bool
expects_device(void)
{
    return hed_trace_find_open(hed_trace_self(), HED_cuCtxGetDevice) != NULL;
}

static void
counting_goes_on_beside_other_records_until_it_is_ended(void **state)
{
    struct hed_trace_writer *w = open_quiet_writer("counting_goes_on.hed");

    ask_device(w, 3);
    put_call(w, 0, 0, 0);
    ask_device(w, 3);
    assert_true(expects_device());
    hed_trace_end_counting();
    assert_false(expects_device());
    ask_device(w, 3);

    const struct seen s = finish_quiet_writer(w);

    assert_int_equal(s.records, 3);
    assert_int_equal(s.counts[0], 2);
    assert_int_equal(s.counts[1], 1);
    assert_int_equal(s.counts[2], 1);
}

/* The record of the first question has been written long ago, and others lie in its place. */
static void
a_ring_that_came_round_is_not_touched(void **state)
{
    struct hed_trace_writer *w = open_writer("came_round.hed", false, 65536);
    uint32_t others = 0;

    ask_device(w, 3);
    for (; others < 20000; others++)
        assert_true(put_call(w, 0, others, others % 50));
    ask_device(w, 3);

    const struct seen s = finish_and_read(w);

    assert_int_equal(s.records, others + 2);
    assert_true(s.calls == others + 2);
}

static void
a_written_record_counts_no_more(void **state)
{
    struct hed_trace_writer *w = open_quiet_writer("written_record.hed");

    ask_device(w, 3);
    ask_device(w, 3);
    hed_unlock(&w->file_lock);
    hed_trace_drain(w);
    hed_lock(&w->file_lock);
    assert_false(expects_device()); /* so the next one is timed */
    ask_device(w, 3);
    ask_device(w, 3);
    ask_device(w, 3);

    const struct seen s = finish_quiet_writer(w);

    assert_int_equal(s.records, 2);
    assert_int_equal(s.counts[0], 2);
    assert_int_equal(s.counts[1], 3);
}

/* Puts records until the next one begins `at` bytes into the ring. The number of records. */
static uint32_t
fill_ring_to(struct hed_trace_writer *w, uint64_t at)
{
    static const uint8_t zeros[4096];
    const struct hed_trace_head head = {.kind = HED_TRACE_CALL, .call = 1};
    const struct hed_trace_ring *r = hed_trace_self()->ring;
    uint32_t records = 0;

    for (; r->at < at; records++) {
        const uint64_t left = at - r->at;
        const uint64_t size = left < 2048 ? left : 1024;
        struct hed_trace_put put;
        struct hed_enc *e = hed_trace_begin(w, &put);

        assert_non_null(e);
        hed_put_raw(e, zeros, size - sizeof(struct hed_trace_short));
        hed_trace_end(w, &put, &head);
    }
    return records;
}

/* The record that says how many were dropped ends a lap, so the ring comes round to open records.
 */
static void
a_lap_may_end_with_dropped_records(void **state)
{
    struct hed_trace_writer *w = open_writer("lap_may_end.hed", true, 65536);
    uint64_t others = 1;

    hed_lock(&w->file_lock); /* so the writer thread leaves the rings alone */
    put_call(w, 0, 0, 0);
    others += fill_ring_to(w, w->slack - 20);
    hed_unlock(&w->file_lock);
    hed_trace_drain(w);

    hed_lock(&w->file_lock);
    ask_device(w, 3);

    const uint64_t counted = hed_trace_self()->ring->at;

    others += fill_ring_to(w, w->ring_size - 10);
    put_call(w, 0, 1, 0); /* there is no room */
    assert_int_equal(hed_trace_self()->ring->dropped, 1);
    hed_unlock(&w->file_lock);
    hed_trace_drain(w);

    put_call(w, 0, 2, 0);
    others += 2; /* with the record about the dropped one, which ended the lap */
    assert_true(hed_trace_self()->ring->at < 200);
    others += fill_ring_to(w, counted + 1024);
    ask_device(w, 3);
    assert_true(finish_and_read(w).calls == others + 2);
}

/* A tool may make calls in the middle of a question, which is then not counted in their records. */
static void
a_question_whose_record_was_closed_meanwhile_is_put(void **state)
{
    struct hed_trace_writer *w = open_quiet_writer("closed_meanwhile.hed");
    const uint64_t words[HED_TRACE_QUESTION_WORDS] = {0};
    const struct hed_trace_own *own = hed_trace_self();

    ask_device(w, 0);

    const struct hed_trace_open *o = hed_trace_find_open(own, HED_cuCtxGetDevice);

    hed_trace_end_counting();
    assert_false(hed_trace_count(own, o, HED_cuCtxGetDevice, words));
    ask_flags(w, 0); /* takes its place */
    assert_false(hed_trace_count(own, o, HED_cuCtxGetDevice, words));

    const struct seen s = finish_quiet_writer(w);

    assert_int_equal(s.records, 2);
    assert_int_equal(s.counts[1], 1);
}

/* ---- signal handlers ------------------------------------------------------------------------- */

/* One that is counted needs no record; another one is dropped. */
static void
questions_in_the_middle_of_a_record(void **state)
{
    struct hed_trace_writer *w = open_quiet_writer("middle_of_a_record.hed");
    struct hed_trace_put put;
    uint64_t records;
    uint64_t dropped;

    ask_device(w, 3);
    assert_non_null(hed_trace_begin(w, &put));
    ask_device(w, 3);
    ask_device(w, 4);
    hed_trace_end(w, &put, &(struct hed_trace_head){.kind = HED_TRACE_CALL, .call = 1});
    ask_device(w, 3);
    hed_trace_writer_count(w, &records, &dropped);
    assert_int_equal(dropped, 1);

    const struct seen s = finish_quiet_writer(w);

    assert_int_equal(s.records, 2);
    assert_int_equal(s.counts[0], 3);
}

#define INTERRUPTED_QUESTIONS 400000

static struct hed_trace_writer *interrupted_writer;
static pthread_t interrupted_thread;
static _Atomic uint32_t handler_calls;
static _Atomic bool interrupting_over;

static void
ask_in_handler(int number)
{
    (void)number;

    const uint32_t n = atomic_fetch_add(&handler_calls, 1);

    if (n % 5 == 0)
        hed_trace_end_counting();
    ask_flags(interrupted_writer, n / 2 % 2);
    ask_device(interrupted_writer, (CUdevice)(n / 2 % 2));
}

static void *
interrupt_often(void *p)
{
    (void)p;
    while (!atomic_load(&interrupting_over))
        pthread_kill(interrupted_thread, SIGUSR1);
    return NULL;
}

static void
handlers_that_ask_lose_nothing(void **state)
{
    struct hed_trace_writer *w = open_writer("handlers_that_ask.hed", false, 65536);
    const struct sigaction ask_again = {.sa_handler = ask_in_handler, .sa_flags = SA_RESTART};
    struct sigaction before;
    pthread_t interrupter;
    uint64_t records;
    uint64_t dropped;

    interrupted_writer = w;
    interrupted_thread = pthread_self();
    ask_device(w, 0); /* a thread's first record takes locks */
    assert_int_equal(sigaction(SIGUSR1, &ask_again, &before), 0);
    assert_int_equal(pthread_create(&interrupter, NULL, interrupt_often, NULL), 0);
    for (uint32_t i = 0; i < INTERRUPTED_QUESTIONS; i++) {
        ask_device(w, (CUdevice)(i / 2 % 2));
        if (i % 3 == 0)
            hed_trace_end_counting();
    }
    atomic_store(&interrupting_over, true);
    pthread_join(interrupter, NULL);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    hed_trace_writer_count(w, &records, &dropped);

    const uint64_t asked = 1 + INTERRUPTED_QUESTIONS + 2 * (uint64_t)atomic_load(&handler_calls);

    assert_true(finish_and_read(w).calls + dropped == asked);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* After the writer has closed the file, threads write their records themselves. */
static void
late_questions_are_written(void **state)
{
    struct hed_trace_writer *w = open_writer("late_questions.hed", false, 65536);

    ask_device(w, 3);
    hed_trace_writer_close(w);
    ask_device(w, 3);
    ask_device(w, 3);

    struct hed_trace *t = read_back(hed_trace_writer_path(w));

    assert_true(hed_trace_state(t)->records == 3);
    hed_trace_close(t);
    hed_trace_writer_free(w);
}

#define ASKERS 4
#define QUESTIONS 50000

static _Atomic bool asking_over;

static void *
ask_often(void *p)
{
    for (uint32_t i = 0; i < QUESTIONS; i++) {
        ask_device(p, (CUdevice)(i / 1000));
        ask_flags(p, i / 3);
        if (i % 7 == 0)
            put_call(p, 0, i, i % 97);
    }
    return NULL;
}

static void *
drain_often(void *p)
{
    while (!atomic_load(&asking_over))
        hed_trace_drain(p);
    return NULL;
}

static void
no_question_is_lost_or_counted_twice(void **state)
{
    struct hed_trace_writer *w = open_writer("no_question_is_lost.hed", false, 65536);
    pthread_t askers[ASKERS];
    pthread_t drainer;

    assert_int_equal(pthread_create(&drainer, NULL, drain_often, w), 0);
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&askers[i], NULL, ask_often, w), 0);
    for (int i = 0; i < ASKERS; i++)
        pthread_join(askers[i], NULL);
    atomic_store(&asking_over, true);
    pthread_join(drainer, NULL);

    const uint64_t others = (uint64_t)ASKERS * ((QUESTIONS + 6) / 7);

    assert_true(finish_and_read(w).calls == 2 * (uint64_t)ASKERS * QUESTIONS + others);
}

/* A duration of 0 is a time like others where the clock is coarse, so a flag says that there is
 * none. */
static void
calls_that_were_not_timed_say_so(void **state)
{
    static const uint64_t words[HED_TRACE_QUESTION_WORDS];
    const uint64_t durations[] = {0, HED_TRACE_NOT_TIMED};
    struct hed_trace_writer *w = open_writer("not_timed.hed", false, 65536);
    CUdevice device = 0;
    struct hed_trace_record r;

    for (int i = 0; i < 4; i++) {
        const struct hed_trace_call call = {
            .id = HED_cuCtxGetDevice,
            .result = i / 2,
            .args = &(struct hed_cuCtxGetDevice){.device = &device},
            .start = 1,
            .duration = durations[i % 2],
        };

        if (call.result)
            hed_trace_put_cuda(w, &call);
        else
            hed_trace_put_first(w, &call, words);
    }
    hed_trace_writer_close(w);

    struct hed_trace *t = read_back(hed_trace_writer_path(w));
    struct hed_trace_cursor c = hed_trace_cursor_over(t);

    for (int i = 0; i < 4; i++) {
        assert_true(hed_trace_next(&c, &r));
        assert_true(r.duration == 0);
        assert_int_equal(r.flags & HED_TRACE_UNTIMED, i % 2 ? HED_TRACE_UNTIMED : 0);
    }
    hed_trace_close(t);
    hed_trace_writer_free(w);
}

/* What a file says is not believed: a count of 0, and a record too short for a count. */
static void
bad_counts_are_one(void **state)
{
    struct {
        struct hed_trace_long head;
        uint32_t count;
    } record = {.head = {.size = sizeof record.head + sizeof record.count,
                         .kind = HED_TRACE_CALL,
                         .flags = HED_TRACE_REPEATS},
                .count = HED_TRACE_COUNT_CLOSED};
    struct hed_trace_record r;

    assert_int_equal(hed_trace_get_record((uint8_t *)&record, sizeof record, 2, 1, &r),
                     record.head.size);
    assert_int_equal(r.calls, 1);
    assert_int_equal(r.body_size, 0);
    record.head.size = sizeof record.head + 2;
    assert_int_equal(hed_trace_get_record((uint8_t *)&record, sizeof record, 2, 1, &r),
                     record.head.size);
    assert_int_equal(r.calls, 1);
    assert_int_equal(r.body_size, 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(equal_answers_share_a_record),
    cmocka_unit_test(counting_goes_on_beside_other_records_until_it_is_ended),
    cmocka_unit_test(a_ring_that_came_round_is_not_touched),
    cmocka_unit_test(a_written_record_counts_no_more),
    cmocka_unit_test(a_lap_may_end_with_dropped_records),
    cmocka_unit_test(a_question_whose_record_was_closed_meanwhile_is_put),
    cmocka_unit_test(questions_in_the_middle_of_a_record),
    cmocka_unit_test(handlers_that_ask_lose_nothing),
    cmocka_unit_test(late_questions_are_written),
    cmocka_unit_test(no_question_is_lost_or_counted_twice),
    cmocka_unit_test(calls_that_were_not_timed_say_so),
    cmocka_unit_test(bad_counts_are_one),
};

HED_UNIT_MAIN(tests)
