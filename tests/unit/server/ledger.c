/* The ledger of leases: what is granted never exceeds the total, whichever worker dies at whatever
 * point. */
#include "harness/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/ledger.h"

#define MIB (UINT64_C(1) << 20)

static int
setup(void **state)
{
    *state = hed_ledger_create();
    return *state ? 0 : -1;
}

static int
teardown(void **state)
{
    hed_ledger_free(*state);
    return 0;
}

static void
ledger_lines_are_entered_and_cleared(void **state)
{
    struct hed_ledger *l = *state;
    struct hed_worker_status *w[HED_LEDGER_WORKERS];

    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        w[i] = hed_ledger_enter(l);
        assert_non_null(w[i]);
        assert_int_equal(w[i]->used, 1);
    }
    assert_null(hed_ledger_enter(l));
    w[7]->messages = 3;
    (void)snprintf(w[7]->program, sizeof w[7]->program, "saxpy");
    assert_int_equal(hed_ledger_take(l, w[7], 2, 5, 5, 0), 5);
    hed_ledger_clear(l, w[7]);
    assert_int_equal(hed_ledger_leased(l, 2), 0);
    assert_ptr_equal(hed_ledger_enter(l), w[7]);
    assert_int_equal(w[7]->messages, 0);
    assert_string_equal(w[7]->program, "");
}

static void
ledger_grants_what_there_is(void **state)
{
    struct hed_ledger *l = *state;
    struct hed_worker_status *a = hed_ledger_enter(l);
    struct hed_worker_status *b = hed_ledger_enter(l);

    /* The total is not known yet. */
    assert_int_equal(hed_ledger_take(l, a, 0, 100 * MIB, 1, 0), 100 * MIB);
    hed_ledger_give(l, a, 0, 100 * MIB);

    l->total[0] = 10 * MIB;
    assert_int_equal(hed_ledger_take(l, a, 0, 6 * MIB, MIB, 0), 6 * MIB);
    assert_int_equal(hed_ledger_take(l, b, 0, 6 * MIB, MIB, 0), 4 * MIB);
    assert_int_equal(hed_ledger_take(l, b, 0, 6 * MIB, 1, 0), 0);
    hed_ledger_give(l, a, 0, MIB);
    assert_int_equal(hed_ledger_take(l, b, 0, 6 * MIB, 2 * MIB, 0), 0);
    assert_int_equal(hed_ledger_take(l, b, 0, 6 * MIB, MIB, 0), MIB);
    assert_int_equal(hed_ledger_leased(l, 0), 10 * MIB);
    assert_int_equal(hed_ledger_leased(l, 1), 0);
    assert_int_equal(l->gate, 0);
}

static void
ledger_keeps_a_workers_limit(void **state)
{
    struct hed_ledger *l = *state;
    struct hed_worker_status *a = hed_ledger_enter(l);

    l->total[1] = 100;
    assert_int_equal(hed_ledger_take(l, a, 1, 50, 1, 30), 30);
    assert_int_equal(hed_ledger_take(l, a, 1, 1, 1, 30), 0);
    assert_int_equal(hed_ledger_take(l, a, 1, 1, 1, 10), 0);
    assert_int_equal(hed_ledger_take(l, a, 1, 50, 50, 60), 0);
    assert_int_equal(hed_ledger_take(l, a, 1, 50, 30, 60), 30);
    hed_ledger_give(l, a, 1, 1000);
    assert_int_equal(hed_ledger_leased(l, 1), 0);
}

static void
ledger_survives_nonsense(void **state)
{
    struct hed_ledger *l = *state;
    struct hed_worker_status *a = hed_ledger_enter(l);
    struct hed_worker_status *b = hed_ledger_enter(l);

    l->total[0] = 100;
    assert_int_equal(hed_ledger_take(l, a, -1, 1, 1, 0), 0);
    assert_int_equal(hed_ledger_take(l, a, HED_LEDGER_DEVICES, 1, 1, 0), 0);
    assert_int_equal(hed_ledger_take(l, a, 0, 0, 0, 0), 0);
    assert_int_equal(hed_ledger_take(l, a, 0, 1, 2, 0), 0);
    assert_int_equal(hed_ledger_take(l, a, 0, UINT64_MAX, UINT64_MAX, 0), 0);
    assert_int_equal(hed_ledger_take(l, a, 0, UINT64_MAX, 1, 0), 100);
    assert_int_equal(hed_ledger_take(l, b, 0, UINT64_MAX, 1, 0), 0);
    hed_ledger_give(l, a, 99, 1);
    /* A line into which a worker has written nonsense makes sums large, not wrong. */
    b->leased[0] = UINT64_MAX;
    l->lines = UINT32_MAX;
    assert_int_equal(hed_ledger_leased(l, 0), UINT64_MAX);
    assert_int_equal(hed_ledger_take(l, a, 0, 1, 1, 0), 0);
    hed_ledger_clear(l, b);
    assert_int_equal(hed_ledger_leased(l, 0), 100);
}

/* A worker that was stopped, or killed and not yet reaped, while it had the gate delays others but
 * does not block them. */
static void
ledger_does_not_wait_for_the_dead(void **state)
{
    struct hed_ledger *l = *state;
    struct hed_worker_status *a = hed_ledger_enter(l);
    struct hed_worker_status *b = hed_ledger_enter(l);

    l->total[0] = 100;
    l->gate = 1; /* worker a's */
    assert_int_equal(hed_ledger_take(l, b, 0, 60, 60, 0), 60);
    assert_int_equal(l->gate, 1);
    hed_ledger_clear(l, a);
    assert_int_equal(l->gate, 0);
}

/* ---- many processes -------------------------------------------------------------------------- */

#define WORKERS 6
#define ROUNDS 60

/* Takes and gives back until it is killed. The test can see how much it believes to have. */
static void
churn(struct hed_ledger *l, struct hed_worker_status *w, _Atomic uint64_t *granted)
{
    uint64_t seed = (uint64_t)getpid() * 2654435761u;

    for (;;) {
        uint64_t mine = 0;

        for (int i = 0; i < 8; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;

            const uint64_t got = hed_ledger_take(l, w, 0, (seed >> 33) % (40 * MIB) + 1, 1, 0);

            mine += got;
            /* Written after it was granted and until before it is given back: never more than the
             * grant. */
            atomic_store(granted, mine);
        }
        atomic_store(granted, 0);
        hed_ledger_give(l, w, 0, mine);
    }
}

static void
ledger_sum_holds_when_workers_are_killed(void **state)
{
    struct hed_ledger *l = *state;
    _Atomic uint64_t *granted =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct hed_worker_status *w[WORKERS];
    pid_t pids[WORKERS] = {0};

    assert_ptr_not_equal(granted, MAP_FAILED);
    l->total[0] = 100 * MIB;
    for (int round = 0; round < ROUNDS; round++) {
        const int i = round % WORKERS;

        for (int k = 0; k < WORKERS; k++) {
            if (pids[k])
                continue;
            w[k] = hed_ledger_enter(l);
            assert_non_null(w[k]);
            pids[k] = fork();
            if (pids[k] == 0)
                churn(l, w[k], &granted[k]);
            assert_true(pids[k] > 0);
        }
        give_a_moment(2); /* so that they are stopped at arbitrary points */
        /* With all workers stopped, what they were granted can be added up. */
        for (int k = 0; k < WORKERS; k++) {
            int how;

            assert_int_equal(kill(pids[k], SIGSTOP), 0);
            assert_int_equal(waitpid(pids[k], &how, WUNTRACED), pids[k]);
        }

        uint64_t held = 0;

        for (int k = 0; k < WORKERS; k++)
            held += atomic_load(&granted[k]);
        assert_true(held <= l->total[0]);
        assert_true(held <= hed_ledger_leased(l, 0));
        assert_int_equal(kill(pids[i], SIGKILL), 0);
        assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        hed_ledger_clear(l, w[i]);
        atomic_store(&granted[i], 0);
        pids[i] = 0;
        for (int k = 0; k < WORKERS; k++) {
            if (pids[k])
                assert_int_equal(kill(pids[k], SIGCONT), 0);
        }
    }
    for (int k = 0; k < WORKERS; k++) {
        if (!pids[k])
            continue;
        assert_int_equal(kill(pids[k], SIGKILL), 0);
        assert_int_equal(waitpid(pids[k], NULL, 0), pids[k]);
        hed_ledger_clear(l, w[k]);
    }
    assert_int_equal(hed_ledger_leased(l, 0), 0);
    assert_int_equal(l->gate, 0);

    /* The next worker can have all of it. */
    struct hed_worker_status *last = hed_ledger_enter(l);

    assert_int_equal(hed_ledger_take(l, last, 0, 100 * MIB, 100 * MIB, 0), 100 * MIB);
    (void)munmap((void *)granted, 4096);
}

/* Two workers ask for the last bytes at the same time: one gets them, and they do not both give
 * way. */
struct asker {
    struct hed_ledger *ledger;
    struct hed_worker_status *line;
    pthread_barrier_t *start;
    uint64_t got;
};

static void *
ask(void *arg)
{
    struct asker *a = arg;

    (void)pthread_barrier_wait(a->start);
    a->got = hed_ledger_take(a->ledger, a->line, 0, 100, 100, 0);
    return NULL;
}

static void
ledger_last_bytes_go_to_one(void **state)
{
    struct hed_ledger *l = *state;
    pthread_barrier_t start;
    struct asker askers[2];
    pthread_t threads[2];

    l->total[0] = 100;
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    for (int i = 0; i < 2; i++)
        askers[i] = (struct asker){l, hed_ledger_enter(l), &start, 0};
    for (int round = 0; round < 500; round++) {
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
        for (int i = 0; i < 2; i++)
            (void)pthread_join(threads[i], NULL);
        assert_int_equal(askers[0].got + askers[1].got, 100);
        for (int i = 0; i < 2; i++)
            hed_ledger_give(l, askers[i].line, 0, askers[i].got);
    }
    (void)pthread_barrier_destroy(&start);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(ledger_lines_are_entered_and_cleared, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_grants_what_there_is, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_keeps_a_workers_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_survives_nonsense, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_does_not_wait_for_the_dead, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_sum_holds_when_workers_are_killed, setup, teardown),
    cmocka_unit_test_setup_teardown(ledger_last_bytes_go_to_one, setup, teardown),
};

HED_UNIT_MAIN(tests)
