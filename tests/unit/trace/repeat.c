/* Tests of trace/repeat: questions that are asked again are counted, and none is lost. */
#include "harness/unit.h"

#include <pthread.h>
#include <stdatomic.h>

#include "gen/cuda_calls.h"
#include "trace/call.h"
#include "trace/record.h"
#include "trace/repeat.h"
#include "trace/writer.h"
#include "unit/trace/written.h"

static void
ask(struct hed_trace_writer *w, uint32_t id, const void *args, uint64_t answer)
{
    const uint64_t words[HED_TRACE_QUESTION_WORDS] = {answer};
    const struct hed_trace_open *o = hed_trace_find_open(id);

    if (!o || !hed_trace_count(o, words))
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

static void
equal_answers_share_a_record(void **state)
{
    struct hed_trace_writer *w = open_writer("equal_answers.hed", false, 65536);

    for (int i = 0; i < 5; i++) {
        ask_device(w, 3);
        ask_flags(w, 8);
    }
    ask_device(w, 4);
    ask_device(w, 3);

    const struct seen s = finish_and_read(w);

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
    return hed_trace_find_open(HED_cuCtxGetDevice) != NULL;
}

static void
counting_goes_on_beside_other_records_until_it_is_ended(void **state)
{
    struct hed_trace_writer *w = open_writer("counting_goes_on.hed", false, 65536);

    ask_device(w, 3);
    put_call(w, 0, 0, 0);
    ask_device(w, 3);
    assert_true(expects_device());
    hed_trace_end_counting();
    assert_false(expects_device());
    ask_device(w, 3);

    const struct seen s = finish_and_read(w);

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
    struct hed_trace_writer *w = open_writer("written_record.hed", false, 65536);

    ask_device(w, 3);
    ask_device(w, 3);
    hed_trace_drain(w);
    ask_device(w, 3);
    ask_device(w, 3);
    ask_device(w, 3);

    const struct seen s = finish_and_read(w);

    assert_int_equal(s.records, 2);
    assert_int_equal(s.counts[0], 2);
    assert_int_equal(s.counts[1], 3);
}

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
    cmocka_unit_test(late_questions_are_written),
    cmocka_unit_test(no_question_is_lost_or_counted_twice),
    cmocka_unit_test(bad_counts_are_one),
};

HED_UNIT_MAIN(tests)
