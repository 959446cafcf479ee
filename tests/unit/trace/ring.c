/* Tests of trace/ring: records come out complete and in order, wherever the ring wraps around. */
#include "harness/unit.h"

#include <pthread.h>
#include <sched.h>

#include "see/trace/ring.h"

/* A record holds its size, its number, and bytes that follow from both. */
#define RECORD_MIN 8

static uint8_t
pattern(uint32_t number, uint32_t i)
{
    return (uint8_t)(number * 31 + i * 7);
}

static bool
produce(struct hed_trace_ring *r, uint32_t number, uint32_t size)
{
    uint8_t *p = hed_trace_ring_reserve(r);

    if (!p)
        return false;
    memcpy(p, &size, 4);
    memcpy(p + 4, &number, 4);
    for (uint32_t i = RECORD_MIN; i < size; i++)
        p[i] = pattern(number, i);
    hed_trace_ring_commit(r, size);
    return true;
}

/* Takes one run of records. *number is the number of the next record. */
static bool
consume(struct hed_trace_ring *r, uint32_t *number)
{
    size_t n;
    const uint8_t *p = hed_trace_ring_peek(r, &n);

    if (!p)
        return false;
    for (size_t at = 0; at < n;) {
        uint32_t head[2];

        assert_true(n - at >= RECORD_MIN);
        memcpy(head, p + at, sizeof head);
        assert_int_equal(head[1], *number);
        assert_true(head[0] >= RECORD_MIN && head[0] <= n - at);
        for (uint32_t i = RECORD_MIN; i < head[0]; i++)
            assert_int_equal(p[at + i], pattern(head[1], i));
        at += head[0];
        (*number)++;
    }
    hed_trace_ring_take(r, n);
    return true;
}

static void
every_size_wraps_around(void **state)
{
    for (uint32_t size = RECORD_MIN; size <= 64; size++) {
        struct hed_trace_ring *r = hed_trace_ring_create(257, 64, 1);
        uint32_t in = 0;
        uint32_t out = 0;

        /* The amounts differ, so that the ring wraps around at every distance. */
        for (uint32_t round = 0; round < 300; round++) {
            for (uint32_t i = 0; i <= round % 4; i++)
                in += produce(r, in, size);
            while (consume(r, &out))
                continue;
            assert_int_equal(in, out);
        }
        assert_true(atomic_load(&r->records) == in);
        hed_trace_ring_free(r);
    }
}

static void
a_full_ring_refuses_and_recovers(void **state)
{
    for (uint32_t size = RECORD_MIN; size <= 64; size++) {
        struct hed_trace_ring *r = hed_trace_ring_create(256, 64, 1);
        uint32_t in = 0;
        uint32_t out = 0;

        for (int lap = 0; lap < 20; lap++) {
            while (produce(r, in, size))
                in++;
            assert_null(hed_trace_ring_reserve(r));
            /* All is used but the space that is kept for the longest record. */
            assert_true((in - out) * size + 64 > 256 - 64);
            assert_true(atomic_load(&r->head) - atomic_load(&r->tail) <= r->size);
            assert_true(consume(r, &out));
            in += produce(r, in, 64);
        }
        while (consume(r, &out))
            continue;
        assert_int_equal(in, out);
        hed_trace_ring_free(r);
    }
}

static void
a_ring_that_fills_asks_once_for_the_consumer(void **state)
{
    struct hed_trace_ring *r = hed_trace_ring_create(4096, 64, 1);
    uint32_t in = 0;
    uint32_t out = 0;

    for (int lap = 0; lap < 10; lap++) {
        uint32_t asked = 0;

        while (produce(r, in, 32)) {
            in++;
            if (hed_trace_ring_should_wake(r)) {
                asked++;
                assert_true((in - out) * 32 > 2048);
            }
        }
        assert_int_equal(asked, 1);
        while (consume(r, &out))
            continue;
    }
    hed_trace_ring_free(r);
}

/* If the consumer empties the ring as soon as it is asked, the producer never finds it full. */
static void
a_consumer_that_is_quick_is_asked_in_time(void **state)
{
    struct hed_trace_ring *r = hed_trace_ring_create(4096, 64, 1);
    uint32_t out = 0;

    for (uint32_t in = 0; in < 10000; in++) {
        assert_true(produce(r, in, 33));
        if (hed_trace_ring_should_wake(r))
            while (consume(r, &out))
                continue;
    }
    hed_trace_ring_free(r);
}

static void
sizes_may_differ(void **state)
{
    struct hed_trace_ring *r = hed_trace_ring_create(1000, 100, 1);
    uint32_t in = 0;
    uint32_t out = 0;

    for (uint32_t i = 0; i < 100000; i++) {
        in += produce(r, in, RECORD_MIN + (i * 2654435761u >> 7) % 93);
        if ((i * 40503u >> 4) % 5 == 0)
            (void)consume(r, &out);
    }
    while (consume(r, &out))
        continue;
    assert_int_equal(in, out);
    hed_trace_ring_free(r);
    hed_trace_ring_free(NULL);
}

static void
an_empty_ring_gives_nothing(void **state)
{
    struct hed_trace_ring *r = hed_trace_ring_create(4096, 512, 42);
    size_t n;

    assert_non_null(r);
    assert_true(r->thread == 42);
    assert_null(hed_trace_ring_peek(r, &n));
    /* A reservation that is not committed does not become a record. */
    assert_non_null(hed_trace_ring_reserve(r));
    assert_null(hed_trace_ring_peek(r, &n));
    hed_trace_ring_free(r);
}

#define RECORDS 200000

static void *
produce_all(void *p)
{
    uint32_t random = 1;

    for (uint32_t i = 0; i < RECORDS;) {
        random = random * 1664525 + 1013904223;
        if (produce(p, i, RECORD_MIN + (random >> 16) % 121))
            i++;
        else
            sched_yield();
    }
    return NULL;
}

static void
threads_pass_everything_in_order(void **state)
{
    struct hed_trace_ring *r = hed_trace_ring_create(1024, 128, 1);
    uint32_t out = 0;
    pthread_t producer;

    assert_int_equal(pthread_create(&producer, NULL, produce_all, r), 0);
    while (out < RECORDS)
        if (!consume(r, &out))
            sched_yield();
    pthread_join(producer, NULL);
    assert_false(consume(r, &out));
    assert_int_equal(out, RECORDS);
    hed_trace_ring_free(r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_size_wraps_around),
    cmocka_unit_test(a_full_ring_refuses_and_recovers),
    cmocka_unit_test(a_ring_that_fills_asks_once_for_the_consumer),
    cmocka_unit_test(a_consumer_that_is_quick_is_asked_in_time),
    cmocka_unit_test(sizes_may_differ),
    cmocka_unit_test(an_empty_ring_gives_nothing),
    cmocka_unit_test(threads_pass_everything_in_order),
};

HED_UNIT_MAIN(tests)
