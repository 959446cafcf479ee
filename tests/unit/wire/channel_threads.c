/* Tests of channels between threads and processes: millions of messages, sleeping and waking, full
 * rings, flushes by other threads, peers that die. */
#include "unit/wire/channel_make.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"

#define MESSAGES (1000000 / SLOWER)
#define SOCKET_MESSAGES (100000 / SLOWER)
#define TRIPS (1000000 / SLOWER)

/* ---- many messages --------------------------------------------------------------------------- */

struct job {
    struct hed_channel *channel;
    uint64_t seed;
    uint64_t count;
    bool ok; /* cmocka's checks are for its own thread only */
};

/* Mostly small, some of any size. */
static uint32_t
size_of(uint64_t *seed)
{
    const uint32_t r = next_random(seed);

    return 64 + (r % 256 == 0 ? next_random(seed) % (HED_MSG_MAX - 63) : r % 200);
}

static uint64_t
bulk_of(uint64_t *seed)
{
    return next_random(seed) % 64 ? 0 : 1 + next_random(seed) % 5000;
}

static void *
write_many(void *arg)
{
    static uint8_t data[2][5000];
    struct job *j = arg;
    uint8_t *bulk = data[j->seed % 2];

    for (uint64_t i = 0; i < j->count; i++) {
        const uint32_t size = size_of(&j->seed);
        const uint64_t n = bulk_of(&j->seed);

        if (send_one(j->channel, i, size, n, i + 1 == j->count || i % 100 == 0))
            return NULL;
        fill_pattern(bulk, n, i);
        if (n && hed_channel_bulk_write(j->channel, bulk, n))
            return NULL;
    }
    j->ok = true;
    return NULL;
}

static bool
bulk_is_right(struct hed_channel *ch, uint64_t number, uint64_t n)
{
    for (uint64_t at = 0; at < n;) {
        size_t span;
        void *p;

        if (hed_channel_bulk_peek(ch, n - at, &p, &span) || !has_pattern(p, span, number, at))
            return false;
        hed_channel_bulk_done(ch, span);
        at += span;
    }
    return true;
}

static void *
read_many(void *arg)
{
    struct job *j = arg;

    for (uint64_t i = 0; i < j->count; i++) {
        const uint32_t size = size_of(&j->seed);
        const uint64_t n = bulk_of(&j->seed);
        struct hed_msg *m;

        if (hed_channel_next(j->channel, -1, &m) || !is_right(m, i, size) || m->bulk != n ||
            !bulk_is_right(j->channel, i, n))
            return NULL;
    }
    j->ok = true;
    return NULL;
}

static void
many_both_ways(enum over over, uint64_t count)
{
    struct pair p = make_pair(over);
    struct job jobs[4] = {
        {.channel = p.client, .seed = 1, .count = count},
        {.channel = p.worker, .seed = 1, .count = count},
        {.channel = p.worker, .seed = 2, .count = count},
        {.channel = p.client, .seed = 2, .count = count},
    };
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i % 2 ? read_many : write_many, &jobs[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++)
        assert_true(jobs[i].ok);
    free_pair(&p);
}

static void
random_messages_both_ways_over_shared_memory(void **state)
{
    many_both_ways(OVER_SHM, MESSAGES);
}

static void
random_messages_both_ways_in_a_window(void **state)
{
    many_both_ways(OVER_WINDOW, MESSAGES);
}

static void
random_messages_both_ways_over_unix_sockets(void **state)
{
    many_both_ways(OVER_UNIX, SOCKET_MESSAGES);
}

static void
random_messages_both_ways_over_tcp(void **state)
{
    many_both_ways(OVER_TCP, SOCKET_MESSAGES);
}

/* ---- sleeping and waking --------------------------------------------------------------------- */

static void
pause_a_little(uint64_t *seed)
{
    const uint32_t r = next_random(seed) % 1024;

    if (r == 0)
        hed_sleep_ns(20000);
    else if (r < 8)
        sched_yield();
    else if (r < 64)
        for (uint32_t i = 0; i < r * 8; i++)
            __asm__ __volatile__("" ::: "memory");
}

static void *
echo(void *arg)
{
    struct job *j = arg;
    struct hed_msg *m;

    while (hed_channel_next(j->channel, -1, &m) == 0) {
        pause_a_little(&j->seed);
        if (send_one(j->channel, m->number, 64, 0, true))
            break;
    }
    return NULL;
}

static void
never_spin(struct hed_channel *ch)
{
    hed_shm_of(ch)->in.waiter.spin = hed_shm_of(ch)->in.waiter.spin_most = 0;
    hed_shm_of(ch)->out.waiter.spin = hed_shm_of(ch)->out.waiter.spin_most = 0;
}

/* Not one wake-up in a million may be lost. */
static void
ping_pong(enum over over, bool sleeps, uint64_t trips)
{
    struct pair p = make_pair(over);
    struct job j = {.channel = p.worker, .seed = 3};
    uint64_t seed = 4;
    struct hed_msg *m;
    pthread_t thread;

    if (sleeps) {
        never_spin(p.client);
        never_spin(p.worker);
    }
    sleep_until_woken(p.client);
    sleep_until_woken(p.worker);
    assert_int_equal(pthread_create(&thread, NULL, echo, &j), 0);
    for (uint64_t i = 0; i < trips; i++) {
        if (i % 1000 == 0)
            alarm(PATIENCE_S);
        pause_a_little(&seed);
        assert_int_equal(send_one(p.client, i, 64, 0, true), 0);
        assert_int_equal(hed_channel_next(p.client, -1, &m), 0);
        assert_true(m->number == i);
    }
    assert_int_equal(hed_shm_of(p.client)->in.waiter.missed, 0);
    hed_channel_free(p.client);
    pthread_join(thread, NULL);
    assert_int_equal(hed_shm_of(p.worker)->in.waiter.missed, 0);
    hed_channel_free(p.worker);
}

static void
no_wake_up_is_lost_when_both_spin(void **state)
{
    ping_pong(OVER_SHM, false, TRIPS);
    ping_pong(OVER_WINDOW, false, TRIPS / 8);
}

static void
no_wake_up_is_lost_when_both_sleep(void **state)
{
    ping_pong(OVER_SHM, true, TRIPS);
    ping_pong(OVER_WINDOW, true, TRIPS / 8);
}

static _Atomic bool reading;

/* Reads only when the writer, the main thread, sleeps. */
static void *
read_late(void *arg)
{
    struct job *j = arg;
    struct hed_msg *m;

    WAIT_UNTIL(thread_state(getpid()) == 'S');
    atomic_store(&reading, true);
    for (uint64_t i = 0; i < j->count; i++)
        if (hed_channel_next(j->channel, -1, &m) || !is_right(m, i, 1024))
            return NULL;
    j->ok = true;
    return NULL;
}

static void
full_ring_waits_for_its_reader(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct job j = {.channel = p.worker, .count = 20000 / SLOWER + 8000};
        pthread_t thread;

        atomic_store(&reading, false);
        assert_int_equal(pthread_create(&thread, NULL, read_late, &j), 0);
        for (uint64_t i = 0; i < j.count; i++)
            assert_int_equal(send_one(p.client, i, 1024, 0, false), 0);
        assert_int_equal(hed_channel_flush(p.client), 0);
        assert_true(atomic_load(&reading));
        pthread_join(thread, NULL);
        assert_true(j.ok);
        free_pair(&p);
    }
}

/* ---- flushes from elsewhere ------------------------------------------------------------------ */

static _Atomic bool enough;

static void *
flush_all_the_time(void *arg)
{
    /* Relaxed: it only ends the loop. */
    while (!atomic_load_explicit(&enough, memory_order_relaxed)) {
        if (hed_channel_first(arg) != 0)
            hed_channel_flush(arg);
        sched_yield();
    }
    return NULL;
}

static void
other_threads_flush(void **state)
{
    for (enum over over = OVER_UNIX; over < OVERS; over++) {
        struct pair p = make_pair(over);
        struct job writer = {.channel = p.client, .seed = 1, .count = SOCKET_MESSAGES};
        struct job reader = {.channel = p.worker, .seed = 1, .count = SOCKET_MESSAGES};
        pthread_t threads[3];

        atomic_store(&enough, false);
        assert_int_equal(pthread_create(&threads[0], NULL, write_many, &writer), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, flush_all_the_time, p.client), 0);
        assert_int_equal(pthread_create(&threads[2], NULL, read_many, &reader), 0);
        pthread_join(threads[0], NULL);
        pthread_join(threads[2], NULL);
        atomic_store(&enough, true);
        pthread_join(threads[1], NULL);
        assert_true(writer.ok && reader.ok);
        free_pair(&p);
    }
}

/* ---- peers that die -------------------------------------------------------------------------- */

static int
wait_for_message(struct hed_channel *ch)
{
    struct hed_msg *m;

    return hed_channel_next(ch, -1, &m);
}

static int
wait_for_room(struct hed_channel *ch)
{
    int e = 0;

    for (uint64_t i = 0; !e; i++)
        e = send_one(ch, i, 8000, 0, true);
    return e;
}

static int
wait_for_bulk(struct hed_channel *ch)
{
    size_t n;
    void *p;

    return hed_channel_bulk_peek(ch, 100, &p, &n);
}

static int
wait_for_bulk_room(struct hed_channel *ch)
{
    static uint8_t data[1 << 20];
    int e = 0;

    while (!e)
        e = hed_channel_bulk_write(ch, data, sizeof data);
    return e;
}

static int (*const waits[])(struct hed_channel *) = {wait_for_message, wait_for_room, wait_for_bulk,
                                                     wait_for_bulk_room};
#define WAITS 4

/* The peer is another process, which is killed while it does nothing. */
static void
death_is_noticed(enum over over, bool worker_dies)
{
    for (int w = 0; w < WAITS; w++) {
        struct pair p = make_pair(over);
        struct hed_channel *left = worker_dies ? p.client : p.worker;
        struct hed_channel *dies = worker_dies ? p.worker : p.client;
        const pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            hed_channel_forked(left);
            WAIT_UNTIL(process_state(getppid()) == 'S');
            kill(getpid(), SIGKILL);
        }
        hed_channel_forked(dies);
        hed_channel_free(dies);
        assert_int_equal(waits[w](left), HED_EIO);
        assert_null(waits[w] == wait_for_room ? hed_channel_begin(left, 64) : NULL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        hed_channel_free(left);
    }
}

static void
death_of_the_worker_is_noticed(void **state)
{
    for (enum over over = 0; over < OVERS; over++)
        death_is_noticed(over, true);
}

static void
death_of_the_client_is_noticed(void **state)
{
    for (enum over over = 0; over < OVERS; over++)
        death_is_noticed(over, false);
}

/* Leaves when the main thread sleeps. */
static void *
leave_late(void *arg)
{
    WAIT_UNTIL(thread_state(getpid()) == 'S');
    hed_channel_free(arg);
    return NULL;
}

/* A side that leaves wakes the other one; that is not left to the clock. */
static void
leaving_is_noticed_at_once(void **state)
{
    for (enum over over = 0; over < OVERS; over++) {
        for (int w = 0; w < WAITS; w++) {
            struct pair p = make_pair(over);
            pthread_t thread;

            sleep_until_woken(p.worker);
            assert_int_equal(pthread_create(&thread, NULL, leave_late, p.client), 0);
            assert_int_equal(waits[w](p.worker), HED_EIO);
            pthread_join(thread, NULL);
            hed_channel_free(p.worker);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_messages_both_ways_over_shared_memory),
    cmocka_unit_test(random_messages_both_ways_in_a_window),
    cmocka_unit_test(random_messages_both_ways_over_unix_sockets),
    cmocka_unit_test(random_messages_both_ways_over_tcp),
    cmocka_unit_test(no_wake_up_is_lost_when_both_spin),
    cmocka_unit_test(no_wake_up_is_lost_when_both_sleep),
    cmocka_unit_test(full_ring_waits_for_its_reader),
    cmocka_unit_test(other_threads_flush),
    cmocka_unit_test(death_of_the_worker_is_noticed),
    cmocka_unit_test(death_of_the_client_is_noticed),
    cmocka_unit_test(leaving_is_noticed_at_once),
};

HED_UNIT_MAIN(tests)
