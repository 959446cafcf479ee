/* Tests of trace/clock: ticks become nanoseconds, in order and with little error. */
#include "harness/unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "see/trace/clock.h"
#include "see/trace/format.h"
#include "unit/trace/written.h"

#define MS HED_NS_PER_MS

/* An instant of a clock of 2.5 ticks per nanosecond whose counter is 0 at 1000 ns. */
static struct hed_trace_instant
at_ns(uint64_t ns)
{
    return (struct hed_trace_instant){(ns - 1000) * 5 / 2, ns};
}

static struct hed_trace_clock *
new_clock(struct hed_trace_instant start)
{
    struct hed_trace_clock *c = calloc(1, sizeof *c);

    assert_non_null(c);
    c->counter = true;
    hed_trace_clock_begin(c, start);
    return c;
}

static void
times_lie_on_a_line(void **state)
{
    struct hed_trace_clock *c = new_clock(at_ns(3000));

    hed_trace_clock_compare(c, at_ns(1000 + 200 * MS));
    for (uint64_t ns = 1000; ns < 1000 * MS; ns += 1234567)
        assert_in_range(hed_trace_clock_ns(c, at_ns(ns).ticks), ns - 1, ns + 1);
    /* Also before the first instant. */
    assert_in_range(hed_trace_clock_ns(c, at_ns(2000).ticks), 1999, 2001);
    /* If the line fits, no bends are added. */
    for (uint64_t ns = 1000 * MS; ns < 10000 * MS; ns += 10 * MS)
        hed_trace_clock_compare(c, at_ns(ns));
    assert_int_equal(c->count, 2);
    free(c);
}

static void
a_first_comparison_that_is_too_early_is_corrected(void **state)
{
    struct hed_trace_clock *c = new_clock(at_ns(1000));

    /* After 10 ns with an error of 1 ns, the rate is wrong by a tenth. */
    hed_trace_clock_compare(c, (struct hed_trace_instant){25, 1011});
    assert_in_range(hed_trace_clock_ns(c, 0), 1000, 1000);
    hed_trace_clock_compare(c, at_ns(1000 + 200 * MS));
    assert_in_range(hed_trace_clock_ns(c, at_ns(100 * MS).ticks), 100 * MS - 20, 100 * MS + 20);
    assert_in_range(hed_trace_clock_ns(c, at_ns(400 * MS).ticks), 400 * MS - 20, 400 * MS + 20);
    free(c);
}

static void
a_rate_that_changes_is_followed(void **state)
{
    struct hed_trace_clock *c = new_clock((struct hed_trace_instant){0, 0});
    const uint64_t step = 100 * MS;
    uint64_t ns = 0;
    uint64_t last = 0;

    for (uint64_t i = 1; i < 100; i++) {
        /* Between half and three halves of a nanosecond per tick. */
        ns += step / 2 + (i * 37 % 11) * (step / 10);
        hed_trace_clock_compare(c, (struct hed_trace_instant){i * step, ns});
        for (uint64_t t = (i - 1) * step; t <= i * step; t += step / 10) {
            const uint64_t got = hed_trace_clock_ns(c, t);

            assert_true(got >= last);
            last = got;
        }
        /* No time after this instant was used, so the line goes through it. */
        assert_in_range(last, ns - 1, ns + 1);
    }
    free(c);
}

/* Threads make records while the writer converts, so times after the last comparison are used. The
 * next comparison must not give an earlier time for a later tick. */
static void
times_that_were_used_stay_in_order(void **state)
{
    struct hed_trace_clock *c = new_clock((struct hed_trace_instant){0, 0});
    uint32_t random = 1;
    uint64_t ns = 0;
    uint64_t ticks = 0;
    uint64_t last_ticks = 0;
    uint64_t last = 0;

    for (int i = 0; i < 20000; i++) {
        random = random * 1664525 + 1013904223;

        const uint64_t step = 1 + (random >> 8) % (i % 2 ? 100 : 10 * MS);

        ticks += step;
        ns += step + (random >> 4) % 400;
        hed_trace_clock_compare(c, (struct hed_trace_instant){ticks, ns});
        for (uint64_t t = ticks; t < ticks + step; t += step / 3 + 1) {
            const uint64_t got = hed_trace_clock_ns(c, t);

            assert_true(t >= last_ticks ? got >= last : got <= last);
            last = got;
            last_ticks = t;
        }
    }
    free(c);
}

static void
instants_out_of_order_are_left_out(void **state)
{
    struct hed_trace_clock *c = new_clock((struct hed_trace_instant){1000, 1000});

    hed_trace_clock_compare(c, (struct hed_trace_instant){1000, 2000});
    hed_trace_clock_compare(c, (struct hed_trace_instant){500, 2000});
    hed_trace_clock_compare(c, (struct hed_trace_instant){2000, 900});
    assert_int_equal(c->count, 1);
    assert_int_equal(hed_trace_clock_ns(c, 5000), 1000); /* the rate is not known yet */
    free(c);
}

static void
old_bends_are_thinned_out_but_not_all_forgotten(void **state)
{
    struct hed_trace_clock *c = new_clock(at_ns(1000));

    for (uint64_t i = 1; i < 5000; i++) {
        struct hed_trace_instant now = at_ns(1000 + i * MS);

        now.ns += i % 2 * 1000;
        hed_trace_clock_compare(c, now);
        assert_true(c->count <= HED_TRACE_BENDS_MAX);
    }
    assert_true(c->count > HED_TRACE_BENDS_MAX / 4);
    assert_int_equal(c->bends[0].ns, 1000);
    for (uint64_t i = 0; i < 4000; i += 7) {
        const uint64_t ns = 1500 + i * MS;

        assert_in_range(hed_trace_clock_ns(c, at_ns(ns).ticks), ns - 10, ns + 1010);
    }
    free(c);
}

static void
records_are_converted_in_place(void **state)
{
    struct hed_trace_clock *c = new_clock(at_ns(1000));
    const struct hed_trace_short brief = {.size = 20, .call = 1, .duration = 250, .start = 2500};
    const struct hed_trace_long mark = {
        .size = 32, .kind = HED_TRACE_MARK, .start = 5000, .duration = 25};
    const struct hed_trace_long gpu = {
        .size = 32, .kind = HED_TRACE_ACTIVITY, .start = 5000, .duration = 25};
    struct hed_trace_short s;
    struct hed_trace_long l;
    uint8_t bytes[20 + 32 + 32];

    memset(bytes, 0xaa, sizeof bytes);
    memcpy(bytes, &brief, sizeof brief);
    memcpy(bytes + 20, &mark, sizeof mark);
    memcpy(bytes + 52, &gpu, sizeof gpu);
    hed_trace_clock_compare(c, at_ns(1000 + 100 * MS));
    hed_trace_clock_convert(c, bytes, sizeof bytes);
    memcpy(&s, bytes, sizeof s);
    assert_true(s.size == 20 && s.call == 1 && s.start == 2000 && s.duration == 100);
    assert_int_equal(bytes[16], 0xaa);
    memcpy(&l, bytes + 20, sizeof l);
    assert_true(l.kind == HED_TRACE_MARK && l.start == 3000 && l.duration == 10);
    assert_memory_equal(bytes + 52, &gpu, sizeof gpu);

    c->counter = false;
    hed_trace_clock_convert(c, bytes, sizeof bytes);
    memcpy(&s, bytes, sizeof s);
    assert_int_equal(s.start, 2000);
    free(c);
}

/* If the counter is used, records still have the times of CLOCK_MONOTONIC, in order. */
static void
a_writer_with_the_counter_writes_nanoseconds(void **state)
{
    enum { CALLS = 50000 };
    const uint64_t second = HED_NS_PER_S; /* far more than the error, far less than an uptime */
    const uint64_t before = hed_now_ns();
    struct hed_trace_writer *w;
    struct hed_trace_record r;
    uint64_t last = 0;
    uint64_t n = 0;
    char file[1100];
    struct hed_why why;

    snprintf(file, sizeof file, "%s/counter.hed", getenv("HED_SCRATCH"));

    const struct hed_trace_options o = {
        .path = file, .ring_size = 65536, .counter = true, .schemas = schemas};

    assert_int_equal(hed_trace_writer_open(&o, &w, &why), 0);
    for (uint64_t i = 0; i < CALLS; i++) {
        const uint64_t start = hed_trace_ticks(w);
        struct hed_trace_put put;
        struct hed_enc *e = hed_trace_begin(w, &put);

        assert_non_null(e);
        hed_put_u64(e, i);
        hed_trace_end(w, &put,
                      &(struct hed_trace_head){.kind = HED_TRACE_CALL,
                                               .call = 1,
                                               .start = start,
                                               .duration = hed_trace_ticks(w) - start,
                                               .result = i % 5 == 0});
    }

    struct hed_trace *t;

    hed_trace_writer_free(w);
    t = read_back(file);

    struct hed_trace_cursor c = hed_trace_cursor_over(t);

    for (; hed_trace_next(&c, &r); n++) {
        assert_true(r.start >= before - second && r.start <= hed_now_ns() + second);
        assert_true(r.start >= last && r.duration < 60 * second);
        last = r.start;
    }
    assert_int_equal(n, CALLS);
    hed_trace_close(t);
    unlink(file);
}

static void
the_counter_does_not_go_back(void **state)
{
    uint64_t last = hed_counter_read();

    if (!hed_counter_usable())
        skip();
    for (int i = 0; i < 10000; i++) {
        const uint64_t now = hed_counter_read();

        assert_true(now >= last);
        last = now;
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(times_lie_on_a_line),
    cmocka_unit_test(a_first_comparison_that_is_too_early_is_corrected),
    cmocka_unit_test(a_rate_that_changes_is_followed),
    cmocka_unit_test(times_that_were_used_stay_in_order),
    cmocka_unit_test(instants_out_of_order_are_left_out),
    cmocka_unit_test(old_bends_are_thinned_out_but_not_all_forgotten),
    cmocka_unit_test(records_are_converted_in_place),
    cmocka_unit_test(a_writer_with_the_counter_writes_nanoseconds),
    cmocka_unit_test(the_counter_does_not_go_back),
};

HED_UNIT_MAIN(tests)
