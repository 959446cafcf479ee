/* Tests of the sched layer above a fake driver, whose GPU runs one kernel after the other by the
 * real clock. Two chains in one process are two clients, as two processes would be. */
#include "unit/sched/make.h"

#define THREADS 4
#define CALLS 400

/* ---- tests ----------------------------------------------------------------------------------- */

static void
alone_nothing_is_measured(void **state)
{
    struct client *a = client("");

    assert_int_equal(gate_word(a), HED_GATE_IDLE | HED_GATE_WATCH);
    for (int i = 0; i < 1000; i++)
        launch_kernel(a);
    assert_int_equal(gate_word(a), 0);
    assert_int_equal(a->fake.launches, 1000);
    assert_int_equal(hed_sched_calls(gate_of(a)->slot), 1000);
    assert_true(a->fake.own == 0);
    sync_all(a);
    discard(a);
}

static void
an_idle_neighbour_costs_nothing(void **state)
{
    struct client *b = client("");
    struct client *a = client("");

    launch_kernel(b);
    sync_all(b);
    /* Soon b has had no work for a while, and then a is alone. */
    WAIT_UNTIL((launch_kernel(a), gate_word(a) == 0));
    assert_true(gate_word(b) & HED_GATE_IDLE);
    discard(a);
    discard(b);
}

static void
the_low_is_held_while_the_high_has_work(void **state)
{
    struct client *low = client("prio=low,hold_us=1000");
    struct client *high = client("prio=high");
    struct held h;

    high->fake.kernel_ns = PATIENCE_S * HED_NS_PER_S; /* until the test ends it */
    launch_kernel(low);
    assert_true(gate_word(low) & HED_GATE_LIMIT);
    sync_all(low);
    launch_kernel(high);

    struct held sync;

    start_held(&sync, high, SYNC); /* the layer only sees that a thread waits */
    WAIT_UNTIL(atomic_load(&gate_of(high)->slot->syncing));
    start_held(&h, low, 0);
    until_it_waits(low);
    assert_true(gate_word(low) & HED_GATE_CLOSED);
    give_a_moment(20);
    assert_false(atomic_load(&h.done));
    fake_end(&high->fake);
    pthread_join(h.thread, NULL);
    pthread_join(sync.thread, NULL);
    assert_true(atomic_load(&gate_of(low)->slot->waited) != 0);
    assert_int_equal(atomic_load(&gate_of(low)->slot->waiting), 0);
    discard(low);
    discard(high);
}

/* In flight are at most the cap, one kernel, and what passes before the first sample is known. */
static void
limited_clients_stay_below_the_cap(void **state)
{
    struct client *low = client("prio=low,cap_us=4000");
    struct client *high = client("prio=high");

    low->fake.kernel_ns = HED_NS_PER_MS;
    for (int i = 0; i < 30; i++)
        launch_kernel(low); /* learning */
    low->fake.in_flight = 0;
    for (int i = 0; i < 60; i++)
        launch_kernel(low);
    /* The GPU is kept busy. On a busy machine a kernel can seem longer for a while, and then fewer
     * of them are in flight. */
    WAIT_UNTIL((launch_kernel(low), low->fake.in_flight >= 2 * HED_NS_PER_MS));
    assert_true(low->fake.in_flight <= 6 * HED_NS_PER_MS);
    assert_true(atomic_load(&gate_of(low)->slot->used) > 60 * HED_NS_PER_MS);
    assert_int_equal(low->fake.bad, 0);
    discard(low);
    discard(high);
}

/* Runs one more kernel, and returns how long the layer now thinks that one takes. */
static uint32_t
time_one_more(struct client *c)
{
    const struct hed_sched *s = c->top->state;
    uint32_t ns = 0;

    launch_kernel(c);
    sync_all(c);
    for (int i = 0; i < HED_PACE_KINDS; i++)
        ns = s->kinds[i].key ? s->kinds[i].ns : ns;
    return ns;
}

/* A program that starts beside many others measures long times, which must not count for long. */
static void
times_taken_beside_others_are_forgotten(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");

    low->fake.kernel_ns = HED_NS_PER_MS;
    WAIT_UNTIL(time_one_more(low) > 500000);
    low->fake.kernel_ns = 20000;
    WAIT_UNTIL(time_one_more(low) < 40000);
    discard(low);
    discard(high);
}

/* A client that is kept off the GPU for a predicted one has work, although none is in flight. */
static void
a_client_held_for_a_predicted_one_still_has_work(void **state)
{
    struct client *low = client("prio=low,hold_us=0");
    struct client *high = client("prio=high");
    struct hed_sched *s = low->top->state;
    struct hed_sched_slot *p = gate_of(high)->slot;
    struct held h;

    launch_kernel(low);
    sync_all(low);
    launch_kernel(low);
    sync_all(low);
    for (int i = 0; i < HED_PACE_KINDS; i++)
        if (s->kinds[i].key)
            s->kinds[i].ns = UINT32_MAX; /* 4.3 s */
    /* The high one began every minute, and is due in 3 s, before a kernel would end. */
    atomic_store(&p->memory[0], hed_now_ns() - 57 * HED_NS_PER_S);
    atomic_store(&p->memory[1], 60 * HED_NS_PER_S);
    atomic_store(&p->memory[3], 9);
    assert_int_equal(hed_sched_decide(gate_of(high)->meet, hed_now_ns()), 0);
    assert_true(atomic_load(&gate_of(low)->slot->until) != 0);
    start_held(&h, low, 0);
    /* On a slow machine the 3 s may be over already, and the call has gone on. */
    WAIT_UNTIL(atomic_load(&gate_of(low)->slot->waiting) || atomic_load(&h.done));
    for (int i = 0; i < 5; i++) {
        assert_true(atomic_load(&gate_of(low)->slot->working) || atomic_load(&h.done));
        hed_sleep_ns(HED_SCHED_MARGIN_NS / 2);
        assert_int_equal(hed_sched_decide(gate_of(high)->meet, hed_now_ns()), 0);
    }
    atomic_store(&p->memory[3], 0); /* it is no longer predicted */
    assert_int_equal(hed_sched_decide(gate_of(high)->meet, hed_now_ns()), 0);
    pthread_join(h.thread, NULL);
    assert_int_equal(atomic_load(&gate_of(low)->slot->waiting), 0);
    discard(low);
    discard(high);
}

static void
captures_are_left_alone(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");
    struct hed_cuStreamBeginCapture_v2 begin = {.hStream = (CUstream)0x100};
    struct hed_cuStreamEndCapture end = {.hStream = (CUstream)0x100};
    struct held h;

    launch_kernel(low);
    pause_or_release(low, 1, -1);
    assert_int_equal(low->top->cuda->cuStreamBeginCapture_v2(low->top, &begin), CUDA_SUCCESS);

    const unsigned own = low->fake.own;

    for (int i = 0; i < 100; i++)
        launch_on(low, 0x100, 0); /* not held, because the stream captures */
    start_held(&h, low, 0x200);   /* this stream does not capture */
    until_it_waits(low);
    assert_int_equal(low->fake.own, own);
    pause_or_release(low, 0, -1);
    pthread_join(h.thread, NULL);
    assert_int_equal(low->fake.own, own);
    assert_int_equal(low->fake.bad, 0);
    assert_int_equal(low->top->cuda->cuStreamEndCapture(low->top, &end), CUDA_SUCCESS);
    for (int i = 0; i < 100; i++)
        launch_on(low, 0x100, 0);
    assert_true(low->fake.own > own);
    assert_int_equal(low->fake.bad, 0);
    discard(low);
    discard(high);
}

static void
pause_holds_release_lets_go_resume_ends_it(void **state)
{
    struct client *a = client("");
    struct held h;

    launch_kernel(a);
    pause_or_release(a, 1, -1);
    for (int i = 0; i < 3; i++) {
        start_held(&h, a, 0);
        until_it_waits(a);
        give_a_moment(5);
        assert_false(atomic_load(&h.done));
        pause_or_release(a, -1, 1);
        pthread_join(h.thread, NULL);
        assert_true(gate_word(a) & HED_GATE_CLOSED);
    }
    start_held(&h, a, 0);
    until_it_waits(a);
    pause_or_release(a, 0, -1);
    pthread_join(h.thread, NULL);
    assert_int_equal(gate_word(a) & HED_GATE_CLOSED, 0);
    assert_int_equal(a->fake.launches, 5);
    discard(a);
}

static void
events_do_not_outlive_their_context(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");

    for (int i = 0; i < 50; i++) {
        struct hed_cuCtxDestroy_v2 end = {0};

        for (int k = 0; k < 20; k++)
            launch_on(low, 0x100 * (uintptr_t)(k % 3 + 1), 0);
        assert_int_equal(low->top->cuda->cuCtxDestroy_v2(low->top, &end), CUDA_SUCCESS);
    }
    assert_true(low->fake.own > 50);
    assert_int_equal(low->fake.bad, 0);
    discard(low);
    discard(high);
}

static void
a_killed_client_holds_no_other(void **state)
{
    struct client *low = client("prio=low");
    int ends[2];
    char byte;
    struct held h;

    assert_int_equal(pipe(ends), 0);

    const pid_t pid = fork();

    if (pid == 0) {
        struct client *high = client("prio=high");

        launch_kernel(high);
        atomic_fetch_add(&gate_of(high)->slot->syncing, 1); /* as if a thread waited for the GPU */
        (void)!write(ends[1], "", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    start_held(&h, low, 0);
    until_it_waits(low);
    give_a_moment(50);
    assert_false(atomic_load(&h.done));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    pthread_join(h.thread, NULL);
    discard(low);
    close(ends[0]);
    close(ends[1]);
}

static void
a_stopped_client_holds_no_other(void **state)
{
    struct client *low = client("prio=low");
    int ends[2];
    char byte;
    struct held h;

    assert_int_equal(pipe(ends), 0);

    const pid_t pid = fork();

    if (pid == 0) {
        struct client *high = client("prio=high");

        launch_kernel(high);
        atomic_fetch_add(&gate_of(high)->slot->syncing, 1);
        (void)!write(ends[1], "", 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], &byte, 1), 1);
    kill(pid, SIGSTOP);
    start_held(&h, low, 0);
    pthread_join(h.thread, NULL);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    discard(low);
    close(ends[0]);
    close(ends[1]);
}

static void
a_process_stopped_with_the_lock_holds_no_other(void **state)
{
    struct client *a = client("");
    struct held h;
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        struct client *b = client("");

        launch_kernel(b);
        if (hed_meet_lock(gate_of(b)->meet) == 0)
            (void)raise(SIGSTOP);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    start_held(&h, a, 0);
    pthread_join(h.thread, NULL);
    assert_int_equal(a->fake.launches, 1);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    discard(a);
}

static void
a_child_starts_afresh(void **state)
{
    struct client *a = client("");

    launch_kernel(a);

    const pid_t pid = fork();

    if (pid == 0) {
        hed_sched_layer.forked(a->top);

        struct client *b = client("");

        launch_kernel(b);
        _exit(hed_meet_index(gate_of(b)->meet) == 1 ? 0 : 1);
    }

    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    launch_kernel(a);
    assert_int_equal(a->fake.launches, 2);
    discard(a);
}

static void
bad_settings_are_refused(void **state)
{
    static const char *const rows[] = {
        "prio=higher",  "prio",      "share=0",     "share=-1", "share=99999999999999999999",
        "policy=none",  "group=a b", "scope=../x",  "cap_us=0", "batch=0",
        "nothing=1",    "=1",        "prio=high,,", "group=",   "slice_us=1",
        "deadline_us=", "share=1x",
    };
    struct hed_sched_settings w;
    struct hed_why why;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (hed_sched_parse(rows[i], &w, &why) == 0)
            fail_msg("%s is taken", rows[i]);
    assert_int_equal(hed_sched_parse("prio=high, share=3,policy=fair,group=g.1,scope=r,cap_us=7,"
                                     "hold_us=0,slice_us=20,batch=3,batch_wait_us=9,deadline_us=5",
                                     &w, &why),
                     0);
    assert_int_equal(w.priority, HED_PRIORITY_HIGH);
    assert_int_equal(w.weight, 3);
    assert_string_equal(hed_policies[w.policy].name, "fair");
    assert_true(w.params.cap == 7000 && w.params.hold == 0 && w.params.slice == 20000);
    assert_true(w.params.batch == 3 && w.params.batch_wait == 9000 && w.deadline == 5000);
    assert_int_equal(hed_sched_parse("on", &w, &why), 0);
    assert_int_equal(w.given, 0);
}

/* ---- deciding, by a clock of the test's own -------------------------------------------------- */

/* All clients have work. Decides every `step` ns; each client that may run uses the GPU
 * meanwhile. */
static void
decide_often(struct client **clients, int count, uint64_t *now, uint64_t step, int times)
{
    for (int i = 0; i < times; i++) {
        *now += step;
        for (int k = 0; k < count; k++)
            atomic_store(&gate_of(clients[k])->slot->last_call, *now);
        assert_int_equal(hed_sched_decide(gate_of(clients[0])->meet, *now), 0);
        for (int k = 0; k < count; k++)
            if (!(gate_word(clients[k]) & HED_GATE_CLOSED))
                atomic_fetch_add(&gate_of(clients[k])->slot->used, step);
    }
}

static void
a_group_has_one_share(void **state)
{
    struct client *all[] = {client("policy=fair,group=g"), client("group=g"), client("")};
    uint64_t now = hed_now_ns() + HED_NS_PER_S;

    for (int i = 0; i < 3; i++)
        assert_int_equal(hed_sched_announce(gate_of(all[i])->meet, now), 0);
    decide_often(all, 3, &now, HED_NS_PER_MS, 4000);

    const uint64_t whole = atomic_load(&gate_of(all[2])->slot->used);

    assert_in_range(whole, 1950 * HED_NS_PER_MS, 2050 * HED_NS_PER_MS);
    for (int i = 0; i < 2; i++)
        assert_in_range(atomic_load(&gate_of(all[i])->slot->used), 950 * HED_NS_PER_MS,
                        1050 * HED_NS_PER_MS);
    for (int i = 0; i < 3; i++)
        discard(all[i]);
}

/* A program does not get more of the GPU by forking. */
static void
the_processes_of_a_program_have_one_share(void **state)
{
    struct client *all[] = {client("policy=fair"), client(""), client(""), client("")};
    uint64_t now = hed_now_ns() + HED_NS_PER_S;

    /* These are of one process, and so of one family. */
    assert_int_not_equal(atomic_load(&gate_of(all[0])->slot->family), 0);
    assert_int_equal(atomic_load(&gate_of(all[0])->slot->family),
                     atomic_load(&gate_of(all[1])->slot->family));
    atomic_store(&gate_of(all[3])->slot->family, 1);
    for (int i = 0; i < 4; i++)
        assert_int_equal(hed_sched_announce(gate_of(all[i])->meet, now), 0);
    decide_often(all, 4, &now, HED_NS_PER_MS, 6000);
    assert_in_range(atomic_load(&gate_of(all[3])->slot->used), 2900 * HED_NS_PER_MS,
                    3100 * HED_NS_PER_MS);
    for (int i = 0; i < 3; i++)
        assert_in_range(atomic_load(&gate_of(all[i])->slot->used), 950 * HED_NS_PER_MS,
                        1050 * HED_NS_PER_MS);
    for (int i = 0; i < 4; i++)
        discard(all[i]);
}

static void
a_client_that_has_waited_for_long_goes_on(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");
    struct client *both[] = {low, high};
    uint64_t now = hed_now_ns() + 100 * HED_NS_PER_S;

    assert_int_equal(hed_sched_announce(gate_of(high)->meet, now), 0);
    assert_int_equal(hed_sched_announce(gate_of(low)->meet, now), 0);
    atomic_store(&gate_of(low)->slot->waiting, 1);
    atomic_store(&gate_of(low)->slot->waits_since, now);
    decide_often(both, 2, &now, HED_NS_PER_S, 9);
    assert_true(gate_word(low) & HED_GATE_CLOSED);
    decide_often(both, 2, &now, HED_NS_PER_S, 1);
    assert_int_equal(gate_word(low), HED_GATE_LIMIT | HED_GATE_WATCH);
    atomic_store(&gate_of(low)->slot->waiting, 0);
    decide_often(both, 2, &now, HED_NS_PER_S, 1);
    assert_true(gate_word(low) & HED_GATE_CLOSED);
    discard(low);
    discard(high);
}

static void
gpus_have_gates_of_their_own(void **state)
{
    struct client *a = client("");
    struct hed_cuCtxCreate_v2 create = {.dev = 1};
    struct hed_sched *s = a->top->state;
    struct hed_sched_change pause_it = {.paused = 1, .release = -1};
    struct held h;

    launch_kernel(a);
    assert_int_equal(a->top->cuda->cuCtxCreate_v2(a->top, &create), CUDA_SUCCESS);
    assert_int_equal(atomic_load(&s->count), 2);
    a->fake.device = 1;
    launch_kernel(a);
    assert_int_equal(atomic_load(&s->gates[1]->slot->gate), 0);
    assert_int_equal(hed_meet_lock(s->gates[1]->meet), 0);
    hed_sched_change_locked(s->gates[1]->slot, &pause_it);
    hed_sched_decide_locked(s->gates[1]->meet, hed_now_ns());
    hed_meet_unlock(s->gates[1]->meet);
    a->fake.device = 0;
    for (int i = 0; i < 100; i++)
        launch_kernel(a);
    a->fake.device = 1;
    start_held(&h, a, 0);
    WAIT_UNTIL(atomic_load(&s->gates[1]->slot->waiting) == 1);
    assert_int_equal(hed_meet_lock(s->gates[1]->meet), 0);
    pause_it.paused = 0;
    hed_sched_change_locked(s->gates[1]->slot, &pause_it);
    hed_sched_decide_locked(s->gates[1]->meet, hed_now_ns());
    hed_meet_unlock(s->gates[1]->meet);
    pthread_join(h.thread, NULL);
    assert_int_equal(a->fake.launches, 103);
    discard(a);
}

/* ---- order ----------------------------------------------------------------------------------- */

struct worker {
    pthread_t thread;
    struct client *c;
    unsigned seed;
    unsigned index;
};

static _Atomic bool toggling;

static void *
toggle(void *arg)
{
    struct client *c = arg;
    unsigned seed = 7;

    while (atomic_load(&toggling)) {
        pause_or_release(c, (int)(rand_r(&seed) % 2), rand_r(&seed) % 4 ? -1 : 1);
        hed_sleep_ns(rand_r(&seed) % 300000);
    }
    pause_or_release(c, 0, -1);
    return NULL;
}

/* A thread has streams of its own, so it knows the order of calls on them. */
static void *
launch_in_order(void *arg)
{
    struct worker *w = arg;
    uint64_t numbers[STREAMS] = {0};

    for (int i = 0; i < CALLS; i++) {
        const unsigned stream = w->index % 2 ? 1 + rand_r(&w->seed) % 2 : 3 + rand_r(&w->seed) % 2;

        if (w->index < 2)
            launch_on(w->c, (uintptr_t)stream << 8, ++numbers[stream]);
        else
            launch_kernel(w->c);
        if (rand_r(&w->seed) % 50 == 0)
            sync_all(w->c);
    }
    return NULL;
}

static void
the_order_of_calls_on_a_stream_is_kept(void **state)
{
    static const char *const settings[] = {"policy=fair,slice_us=100", "policy=batch,batch=3",
                                           "policy=slice,slice_us=50", "prio=low"};

    for (size_t r = 0; r < sizeof settings / sizeof *settings; r++) {
        struct client *a = client(settings[r]);
        struct client *b = client("");
        struct worker workers[THREADS];
        pthread_t toggler;

        a->fake.kernel_ns = 2000;
        atomic_store(&toggling, true);
        assert_int_equal(pthread_create(&toggler, NULL, toggle, a), 0);
        for (unsigned i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){.c = i == 3 ? b : a, .seed = i + 1, .index = i};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, launch_in_order, &workers[i]),
                             0);
        }
        for (unsigned i = 0; i < THREADS; i++)
            pthread_join(workers[i].thread, NULL);
        atomic_store(&toggling, false);
        pthread_join(toggler, NULL);
        assert_int_equal(a->fake.disorder, 0);
        assert_int_equal(a->fake.bad, 0);
        assert_int_equal(a->fake.launches, 3 * CALLS);
        assert_int_equal(b->fake.launches, CALLS);
        assert_int_equal(atomic_load(&gate_of(a)->slot->waiting), 0);
        assert_int_equal(atomic_load(&gate_of(a)->slot->syncing), 0);
        discard(a);
        discard(b);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(alone_nothing_is_measured, setup, teardown),
    cmocka_unit_test_setup_teardown(an_idle_neighbour_costs_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(the_low_is_held_while_the_high_has_work, setup, teardown),
    cmocka_unit_test_setup_teardown(limited_clients_stay_below_the_cap, setup, teardown),
    cmocka_unit_test_setup_teardown(times_taken_beside_others_are_forgotten, setup, teardown),
    cmocka_unit_test_setup_teardown(a_client_held_for_a_predicted_one_still_has_work, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(captures_are_left_alone, setup, teardown),
    cmocka_unit_test_setup_teardown(pause_holds_release_lets_go_resume_ends_it, setup, teardown),
    cmocka_unit_test_setup_teardown(events_do_not_outlive_their_context, setup, teardown),
    cmocka_unit_test_setup_teardown(a_killed_client_holds_no_other, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stopped_client_holds_no_other, setup, teardown),
    cmocka_unit_test_setup_teardown(a_process_stopped_with_the_lock_holds_no_other, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_child_starts_afresh, setup, teardown),
    cmocka_unit_test_setup_teardown(a_group_has_one_share, setup, teardown),
    cmocka_unit_test_setup_teardown(the_processes_of_a_program_have_one_share, setup, teardown),
    cmocka_unit_test_setup_teardown(a_client_that_has_waited_for_long_goes_on, setup, teardown),
    cmocka_unit_test_setup_teardown(gpus_have_gates_of_their_own, setup, teardown),
    cmocka_unit_test(bad_settings_are_refused),
    cmocka_unit_test_setup_teardown(the_order_of_calls_on_a_stream_is_kept, setup, teardown),
};

HED_UNIT_MAIN(tests)
