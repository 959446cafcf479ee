/* Tests of channels with one thread at a time: sizes, wraps, spans, misuse, ends. */
#include "unit/wire/channel_make.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "base/clock.h"

static void
every_size_passes(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct hed_msg *m;
        uint64_t number = 0;

        for (uint32_t size = sizeof *m; size <= HED_MSG_MAX;
             size += size < 700 ? 1 : size % 977 + 1000) {
            struct hed_channel *from = number % 2 ? p.worker : p.client;

            assert_int_equal(send_one(from, ++number, size, 0, true), 0);
            assert_int_equal(hed_channel_next(from == p.client ? p.worker : p.client, -1, &m), 0);
            assert_true(is_right(m, number, size));
        }
        assert_int_equal(send_one(p.client, 1, HED_MSG_MAX, 0, true), 0);
        assert_int_equal(hed_channel_next(p.worker, -1, &m), 0);
        assert_true(is_right(m, 1, HED_MSG_MAX));
        free_pair(&p);
    }
}

/* The end of the ring is met at every distance, with messages waiting before and after it. */
static void
messages_wrap_in_order(void **state)
{
    struct pair p = make_pair(OVER_SHM);
    uint64_t in = 0, out = 0, seed = 1;
    uint32_t sizes[64];
    struct hed_msg *m;

    for (int round = 0; round < 20000; round++) {
        const uint32_t many = 1 + next_random(&seed) % 4;

        for (uint32_t i = 0; i < many && in - out < 8; i++, in++) {
            sizes[in % 64] = 64 + next_random(&seed) % 12000;
            assert_int_equal(send_one(p.worker, in, sizes[in % 64], 0, false), 0);
        }
        for (uint32_t i = 0; i < 1 + next_random(&seed) % 4 && out < in; i++, out++) {
            assert_int_equal(hed_channel_next(p.client, 0, &m), 0);
            assert_true(is_right(m, out, sizes[out % 64]));
        }
    }
    assert_true(hed_shm_of(p.worker)->out.mine > 100 * HED_SHM_ANSWER_SIZE);
    free_pair(&p);
}

static void
less_may_be_sent_than_was_begun(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct hed_msg *m = hed_channel_begin(p.client, 5000);

        *m = (struct hed_msg){.number = 1};
        assert_int_equal(hed_channel_end(p.client, 5017, true), HED_EINVAL);
        assert_int_equal(hed_channel_end(p.client, 63, true), HED_EINVAL);
        assert_int_equal(hed_channel_end(p.client, 70, true), 0);
        assert_int_equal(hed_channel_end(p.client, 70, true), HED_ESTATE);
        assert_null(hed_channel_begin(p.client, HED_MSG_MAX + 1));
        m = hed_channel_begin(p.client, 100); /* abandoned */
        m = hed_channel_begin(p.client, 1);   /* there is always room for a head */
        *m = (struct hed_msg){.number = 2};
        assert_int_equal(hed_channel_end(p.client, sizeof *m, true), 0);
        for (uint64_t i = 1; i <= 2; i++) {
            assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);
            assert_true(m->number == i && m->size == (i == 1 ? 70 : 64));
        }
        free_pair(&p);
    }
}

static void
time_runs_out_and_nothing_is_lost(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        const uint64_t start = hed_now_ns();
        struct hed_msg *m;

        assert_int_equal(hed_channel_next(p.worker, 0, &m), HED_ETIME);
        assert_int_equal(hed_channel_next(p.worker, 30, &m), HED_ETIME);
        assert_true(hed_now_ns() - start >= 29000000); /* not earlier */
        if (!in_memory(over)) {                        /* a part of a message */
            const struct hed_msg whole = {.size = 64, .number = 9, .kind = HED_MSG_PING};

            assert_int_equal(hed_conn_write(hed_channel_conn(p.client), &whole, 30), 0);
            assert_int_equal(hed_channel_next(p.worker, 10, &m), HED_ETIME);
            assert_int_equal(
                hed_conn_write(hed_channel_conn(p.client), (const char *)&whole + 30, 34), 0);
            assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);
            assert_true(is_right(m, 9, 64));
        }
        assert_int_equal(send_one(p.client, 1, 64, 0, true), 0);
        assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);
        free_pair(&p);
    }
}

/* What was sent before comes first; then the channel has ended, and the reason is printable. */
static void
last_words_are_heard(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct hed_end end = {.head = {.size = sizeof end, .kind = HED_MSG_END}}, heard;
        struct hed_msg *m;

        memset(end.text, 'x', sizeof end.text); /* without an end */
        memcpy(end.text, "why\033[2J", 7);
        assert_false(hed_channel_last_words(p.client, &heard));
        assert_int_equal(send_one(p.worker, 1, 64, 0, true), 0);
        hed_channel_last(p.worker, &end);
        hed_channel_free(p.worker);
        assert_int_equal(hed_channel_next(p.client, PATIENCE_MS, &m), 0);
        assert_true(is_right(m, 1, 64));
        assert_int_equal(hed_channel_next(p.client, PATIENCE_MS, &m), HED_EIO);
        assert_true(hed_channel_last_words(p.client, &heard));
        assert_memory_equal(heard.text, "why?[2Jx", 8);
        assert_int_equal(strlen(heard.text), sizeof heard.text - 1);
        hed_channel_free(p.client);
    }
}

/* Signs of life come between messages: not before what is buffered, not into bulk, but also while a
 * message is being filled. */
static void
beats_disturb_nothing(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        char two[2];
        struct hed_msg *m;

        hed_channel_beat(p.worker);
        if (in_memory(over)) {
            assert_int_equal(hed_channel_next(p.client, 5, &m), HED_ETIME);
            free_pair(&p);
            continue;
        }
        assert_int_equal(hed_channel_next(p.client, PATIENCE_MS, &m), 0);
        assert_true(m->kind == HED_MSG_PING && m->size == sizeof *m);

        assert_int_equal(send_one(p.worker, 1, 64, 0, false), 0);
        hed_channel_beat(p.worker); /* something is buffered, so there is no beat */
        assert_int_equal(send_one(p.worker, 2, 64, 2, true), 0);
        hed_channel_beat(p.worker); /* bulk is yet to come */
        assert_int_equal(hed_channel_bulk_write(p.worker, "a", 1), 0);
        hed_channel_beat(p.worker);
        assert_int_equal(hed_channel_bulk_write(p.worker, "b", 1), 0);
        for (uint64_t i = 1; i <= 2; i++) {
            assert_int_equal(hed_channel_next(p.client, PATIENCE_MS, &m), 0);
            assert_true(is_right(m, i, 64));
        }
        assert_int_equal(hed_channel_bulk_read(p.client, two, 2), 0);
        assert_memory_equal(two, "ab", 2);

        m = hed_channel_begin(p.worker, 64);
        *m = (struct hed_msg){.number = 3};
        hed_channel_beat(p.worker);
        assert_int_equal(hed_channel_end(p.worker, 64, true), 0);
        assert_int_equal(hed_channel_next(p.client, PATIENCE_MS, &m), 0);
        assert_int_equal(m->kind, HED_MSG_PING);
        assert_int_equal(hed_channel_next(p.client, PATIENCE_MS, &m), 0);
        assert_int_equal(m->number, 3);
        free_pair(&p);
    }
}

/* A peer that is connected but silent ends a wait without a timeout, and one that beats does not. A
 * write that it does not take ends, too. */
static void
patience_has_an_end(void **state)
{
    static const char much[1 << 20];

    for (enum over over = OVER_UNIX; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct hed_msg *m;
        int err = 0;

        assert_int_equal(hed_conn_patience(hed_channel_conn(p.client), 1000), 0);
        hed_channel_beat(p.worker);
        assert_int_equal(hed_channel_next(p.client, -1, &m), 0);
        for (int i = 0; i < 32 && !err; i++)
            err = hed_conn_write(hed_channel_conn(p.client), much, sizeof much);
        assert_int_equal(err, HED_EIO);
        assert_int_equal(hed_channel_next(p.client, -1, &m), HED_EIO);
        free_pair(&p);
    }
}

/* A worker that is stopped keeps its connection open. */
static void
a_worker_without_signs_of_life_is_left(void **state)
{
    struct pair p = make_pair(OVER_SHM);
    struct hed_msg *m;

    assert_int_equal(hed_channel_patience(p.client, 50), 0);
    hed_channel_beat(p.worker);
    assert_int_equal(hed_channel_next(p.client, -1, &m), HED_EIO);
    free_pair(&p);

    /* Also one that takes nothing. */
    p = make_pair(OVER_SHM);
    assert_int_equal(hed_channel_patience(p.client, 50), 0);
    for (int i = 0; i < 100 && send_one(p.client, 1, 60000, 0, true) == 0; i++)
        continue;
    assert_int_equal(send_one(p.client, 1, 64, 0, true), HED_EIO);
    free_pair(&p);
}

struct beating {
    struct hed_channel *worker;
    _Atomic bool stop;
};

static void *
keep_beating(void *arg)
{
    struct beating *b = arg;

    while (!atomic_load(&b->stop)) {
        hed_channel_beat(b->worker);
        (void)sched_yield();
    }
    return NULL;
}

/* Its time is up again and again while it waits for a worker that lives. */
static void
a_worker_with_signs_of_life_is_waited_for(void **state)
{
    struct pair p = make_pair(OVER_SHM);
    struct beating b = {.worker = p.worker};
    pthread_t thread;
    struct hed_msg *m;

    assert_int_equal(hed_channel_patience(p.client, 1000), 0);
    assert_int_equal(pthread_create(&thread, NULL, keep_beating, &b), 0);
    assert_int_equal(hed_channel_next(p.client, 1500, &m), HED_ETIME);
    atomic_store(&b.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    free_pair(&p);
}

static void
what_is_not_urgent_waits_for_a_flush(void **state)
{
    for (enum over over = OVER_UNIX; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct hed_msg *m;

        assert_int_equal(hed_channel_first(p.client), 0);
        assert_int_equal(send_one(p.client, 1, 64, 0, false), 0);
        assert_int_not_equal(hed_channel_first(p.client), 0);
        assert_int_equal(hed_channel_next(p.worker, 5, &m), HED_ETIME);
        assert_int_equal(hed_channel_flush(p.client), 0);
        assert_int_equal(hed_channel_first(p.client), 0);
        assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);

        /* Urgent messages, bulk and a full buffer send it along. */
        assert_int_equal(send_one(p.client, 1, 64, 0, false), 0);
        assert_int_equal(send_one(p.client, 2, 64, 0, true), 0);
        for (uint64_t i = 1; i <= 2; i++) {
            assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);
            assert_true(is_right(m, i, 64));
        }
        assert_int_equal(send_one(p.client, 3, 64, 2, false), 0);
        assert_int_equal(hed_channel_bulk_write(p.client, "ab", 2), 0);
        assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);

        char two[2];

        assert_int_equal(hed_channel_bulk_read(p.worker, two, 2), 0);
        assert_memory_equal(two, "ab", 2);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(send_one(p.client, i, 40000, 0, false), 0);
        for (uint64_t i = 0; i < 2; i++) {
            assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);
            assert_true(is_right(m, i, 40000));
        }
        free_pair(&p);
    }
}

/* Spans are filled later and out of order, and put in order. */
static void
spans_out_are_filled_while_others_are_out(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        static uint8_t got[300000];

        for (uint64_t round = 0; round < 60; round++) {
            const size_t want = 30000;
            void *at[3];
            size_t n[3];

            for (int i = 0; i < 3; i++) {
                assert_int_equal(hed_channel_bulk_space(p.worker, want, &at[i], &n[i]), 0);
                assert_in_range(n[i], 1, want);
            }

            void *area;
            size_t size;

            assert_true(hed_channel_bulk_area(p.worker, 1, &area, &size));
            for (int i = 2; i >= 0; i--) {
                assert_true((uint8_t *)at[i] >= (uint8_t *)area &&
                            (uint8_t *)at[i] + n[i] <= (uint8_t *)area + size);
                fill_pattern(at[i], n[i], round * 3 + (uint64_t)i);
            }
            assert_int_equal(hed_channel_bulk_put(p.worker, n[0] - 1), HED_EINVAL);
            assert_int_equal(hed_channel_bulk_write(p.worker, "x", 1), HED_ESTATE);
            for (int i = 0; i < 2; i++)
                assert_int_equal(hed_channel_bulk_put(p.worker, n[i]), 0);
            /* Fewer bytes of the last one may count. */
            n[2] = n[2] > 10 ? n[2] - 10 : n[2];
            assert_int_equal(hed_channel_bulk_put(p.worker, n[2]), 0);
            assert_int_equal(hed_channel_bulk_put(p.worker, 1), HED_ESTATE);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(hed_channel_bulk_read(p.client, got, n[i]), 0);
                assert_true(has_pattern(got, n[i], round * 3 + (uint64_t)i, 0));
            }
        }
        free_pair(&p);
    }
}

static void
all_of_the_ring_can_be_out_and_no_more(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        size_t all = 0, n;
        void *at;

        while (all < HED_CHANNEL_STAGED) {
            assert_int_equal(hed_channel_bulk_space(p.client, 1 << 20, &at, &n), 0);
            all += n;
        }
        assert_int_equal(all, HED_CHANNEL_STAGED);
        assert_int_equal(hed_channel_bulk_space(p.client, 1, &at, &n), HED_ESTATE);
        free_pair(&p);
    }
}

/* What the caller uses stays as it is, whatever is read meanwhile. */
static void
spans_in_stay_until_given_back(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        static uint8_t data[50000], got[50000];
        size_t n[2];
        void *at[2];

        for (uint64_t i = 0; i < 400; i++) {
            fill_pattern(data, sizeof data, i);
            assert_int_equal(hed_channel_bulk_write(p.client, data, sizeof data), 0);
            assert_int_equal(hed_channel_bulk_peek(p.worker, 20000, &at[0], &n[0]), 0);
            assert_int_equal(hed_channel_bulk_peek(p.worker, 10000, &at[1], &n[1]), 0);

            const size_t rest = sizeof data - n[0] - n[1];

            assert_int_equal(hed_channel_bulk_read(p.worker, got, rest), 0);
            assert_true(has_pattern(got, rest, i, n[0] + n[1]));
            if (in_memory(over)) /* read, but after spans in use: not to be overwritten */
                assert_int_equal(hed_shm_of(p.worker)->bulk_in.mine -
                                     hed_shm_of(p.worker)->bulk_in.shown,
                                 sizeof data);
            assert_true(has_pattern(at[0], n[0], i, 0));
            hed_channel_bulk_done(p.worker, n[0]);
            assert_true(has_pattern(at[1], n[1], i, n[0]));
            hed_channel_bulk_done(p.worker, n[1] / 2);
            hed_channel_bulk_done(p.worker, n[1] - n[1] / 2);
            if (in_memory(over))
                assert_int_equal(hed_shm_of(p.worker)->bulk_in.mine,
                                 hed_shm_of(p.worker)->bulk_in.shown);
        }
        free_pair(&p);
    }
}

static void
child_of_a_fork_says_nothing(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct hed_msg *m;
        int status;
        const pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            hed_channel_forked(p.client);
            hed_channel_forked(p.worker);

            const bool dead = send_one(p.client, 1, 64, 0, true) == HED_EIO &&
                              hed_channel_next(p.worker, -1, &m) == HED_EIO;

            hed_channel_free(p.client);
            hed_channel_free(p.worker);
            _exit(dead ? 5 : 6);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
        assert_int_equal(send_one(p.client, 7, 64, 0, true), 0);
        assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), 0);
        assert_true(is_right(m, 7, 64));
        free_pair(&p);
    }
}

static void
what_was_said_before_the_end_is_heard(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct hed_msg *m;

        assert_int_equal(send_one(p.client, 7, 64, 0, true), 0);
        hed_channel_free(p.client);
        assert_int_equal(hed_channel_next(p.worker, -1, &m), 0);
        assert_true(is_right(m, 7, 64));
        sleep_until_woken(p.worker); /* the end is noticed at once, not when a sleep is over */
        assert_int_equal(hed_channel_next(p.worker, -1, &m), HED_EIO);
        assert_int_equal(hed_channel_next(p.worker, -1, &m), HED_EIO);
        hed_channel_free(p.worker);
    }
    hed_channel_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_size_passes),
    cmocka_unit_test(messages_wrap_in_order),
    cmocka_unit_test(less_may_be_sent_than_was_begun),
    cmocka_unit_test(time_runs_out_and_nothing_is_lost),
    cmocka_unit_test(beats_disturb_nothing),
    cmocka_unit_test(last_words_are_heard),
    cmocka_unit_test(patience_has_an_end),
    cmocka_unit_test(a_worker_without_signs_of_life_is_left),
    cmocka_unit_test(a_worker_with_signs_of_life_is_waited_for),
    cmocka_unit_test(what_is_not_urgent_waits_for_a_flush),
    cmocka_unit_test(spans_out_are_filled_while_others_are_out),
    cmocka_unit_test(all_of_the_ring_can_be_out_and_no_more),
    cmocka_unit_test(spans_in_stay_until_given_back),
    cmocka_unit_test(child_of_a_fork_says_nothing),
    cmocka_unit_test(what_was_said_before_the_end_is_heard),
};

HED_UNIT_MAIN(tests)
