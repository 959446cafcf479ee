/* Tests of record mode above the layer sched: held calls are in queues and are released by number,
 * and the clients of one process have slots of their own. */
#include "harness/meeting.h"
#include "unit/record/make.h"

static int
setup(void **state)
{
    static int n;

    snprintf(scope, sizeof scope, "unit%ld.%d", (long)getpid(), n++);
    return 0;
}

static int
teardown(void **state)
{
    char name[HED_SCHED_MEET_MAX];
    const unsigned char uuid[16] = {0};

    hed_sched_meet_name(scope, uuid, name);
    forget_meetings(name);
    return 0;
}

/* The gate of the process's own client or of a named one. */
static struct hed_gate *
gate_of(struct chain *c, const char *name)
{
    struct hed_sched *s = c->sched->state;

    for (uint32_t i = 0; i < atomic_load(&s->count); i++) {
        const struct hed_sched_named *client = s->gates[i]->client;

        if (strcmp(client ? client->name : "", name) == 0)
            return s->gates[i];
    }
    fail_msg("there is no client '%s'", name);
    return NULL;
}

/* Waits until so many launches have been made. False: there are more. */
static bool
reaches(struct chain *c, unsigned launches)
{
    WAIT_UNTIL(made(c, HED_cuLaunchKernel) >= launches);
    return made(c, HED_cuLaunchKernel) == launches;
}

/* The same, and no more launches come within a moment. */
static bool
stays(struct chain *c, unsigned launches)
{
    const bool there = reaches(c, launches);

    give_a_moment(20);
    return there && made(c, HED_cuLaunchKernel) == launches;
}

/* Waits until so many calls are queued, which is so when the issuing thread has run. */
static void
until_queued(struct chain *c, uint32_t count)
{
    WAIT_UNTIL(atomic_load(&gate_of(c, "")->slot->queued) == count);
}

#define LONG_WAIT "policy=batch,batch_wait_us=10000000"

/* One thread that launches on so many streams. */
static void
hold_and_release(unsigned streams)
{
    struct chain *c = chain(LONG_WAIT ",batch=8", true);
    unsigned n = 0;

    for (; n < streams; n++) /* becomes known; the thread is not held */
        assert_int_equal(launch(c, STREAM(n), n), CUDA_SUCCESS);
    assert_true(stays(c, streams));
    for (unsigned batch = 1; batch <= 5; batch++) {
        for (unsigned i = 0; i < 7; i++, n++)
            assert_int_equal(launch(c, STREAM(n % streams), n), CUDA_SUCCESS);
        assert_true(stays(c, streams + (batch - 1) * 8));
        until_queued(c, 6); /* and one call is at the gate */
        assert_int_equal(launch(c, STREAM(n % streams), n), CUDA_SUCCESS);
        n++;
        assert_true(stays(c, streams + batch * 8));
    }
    discard(c);
}

static void
batch_releases_exactly_what_was_held(void **state)
{
    hold_and_release(1);
    hold_and_release(4);
}

static void
a_wait_for_the_gpu_releases_what_is_held(void **state)
{
    struct chain *c = chain(LONG_WAIT ",batch=100", true);

    assert_int_equal(launch(c, STREAM(0), 0), CUDA_SUCCESS);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
        if (round == 0)
            assert_true(stays(c, 1));
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_int_equal(made(c, HED_cuLaunchKernel), 1 + 5 * (round + 1));
    }
    discard(c);
}

static void
time_releases_what_is_held(void **state)
{
    struct chain *c = chain("policy=batch,batch_wait_us=3000,batch=100", true);

    assert_int_equal(launch(c, STREAM(0), 0), CUDA_SUCCESS);
    for (unsigned round = 0; round < 5; round++) {
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
        assert_true(stays(c, 1 + 3 * (round + 1)));
    }
    discard(c);
}

/* Does what the command `heddle sched` does. */
static void
change(struct chain *c, int paused, int release)
{
    struct hed_gate *g = gate_of(c, "");
    const struct hed_sched_change what = {.paused = paused, .release = release};

    assert_int_equal(hed_meet_lock(g->meet), 0);
    hed_sched_change_locked(g->slot, &what);
    hed_sched_decide_locked(g->meet, hed_now_ns());
    hed_meet_unlock(g->meet);
}

static void
a_held_client_holds_no_thread(void **state)
{
    struct chain *c = chain("", true);

    assert_int_equal(launch(c, STREAM(0), 0), CUDA_SUCCESS);
    change(c, 1, -1);
    for (unsigned i = 1; i < 1000; i++)
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
    assert_true(stays(c, 1));
    until_queued(c, 998);
    change(c, 0, -1);
    assert_int_equal(CALL(c, cuCtxSynchronize, 0), CUDA_SUCCESS);
    assert_int_equal(made(c, HED_cuLaunchKernel), 1000);
    assert_int_equal(atomic_load(&gate_of(c, "")->slot->queued), 0);
    discard(c);
}

/* A call on its way from the queue to the gate is not held yet, and a release does not count it. */
static void
until_at_the_gate(struct chain *c)
{
    WAIT_UNTIL(atomic_load(&gate_of(c, "")->slot->waiting) == 1);
}

/* A release by hand lets exactly those calls go that are queued at that moment, once. */
static void
release_by_hand(const char *settings, bool paused)
{
    struct chain *c = chain(settings, true);
    unsigned n = 1;

    assert_int_equal(launch(c, STREAM(0), 0), CUDA_SUCCESS);
    if (paused)
        change(c, 1, -1);
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
        assert_true(stays(c, n));
        until_queued(c, 9);
        until_at_the_gate(c);
        change(c, -1, 1);
        n += 10;
        assert_true(reaches(c, n));
        assert_int_equal(launch(c, STREAM(0), 7), CUDA_SUCCESS); /* comes later and is held */
        assert_true(stays(c, n));
        until_at_the_gate(c);
        change(c, -1, 1);
        assert_true(stays(c, ++n));
        change(c, -1, 1); /* nothing is held: a later call gets no ticket */
    }
    if (paused) {
        change(c, 0, -1);
        assert_int_equal(launch(c, STREAM(0), 7), CUDA_SUCCESS);
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(0)), CUDA_SUCCESS);
        assert_true(reaches(c, n + 1));
        /* A release while the gate was open leaves no ticket. */
        change(c, -1, 1);
        change(c, 1, -1);
        assert_int_equal(launch(c, STREAM(0), 7), CUDA_SUCCESS);
        assert_true(stays(c, n + 1));
    }
    discard(c);
}

static void
a_release_lets_queued_calls_go(void **state)
{
    release_by_hand("", true);
    release_by_hand("policy=fair", true);
    release_by_hand(LONG_WAIT ",batch=1000", true);
    release_by_hand(LONG_WAIT ",batch=1000", false);
}

/* When the process ends, held calls are made: nobody would release them later. */
static void
held_calls_are_made_when_the_process_ends(void **state)
{
    struct chain *c = chain("", true);

    assert_int_equal(launch(c, STREAM(0), 0), CUDA_SUCCESS);
    change(c, 1, -1);
    for (unsigned i = 1; i < 10; i++)
        assert_int_equal(launch(c, STREAM(0), i), CUDA_SUCCESS);
    hed_record_layer.fini(c->top);
    assert_int_equal(made(c, HED_cuLaunchKernel), 10);
    discard(c);
}

struct named {
    struct chain *c;
    const char *name;
    CUstream stream;
};

static void *
named_main(void *arg)
{
    struct named *n = arg;

    current_context = CONTEXT;
    hed_recorder_set_client(n->c->engine, n->name, true);
    for (uint64_t i = 0; i < 50; i++)
        assert_int_equal(launch(n->c, n->stream, i), CUDA_SUCCESS);
    assert_int_equal(CALL(n->c, cuStreamSynchronize, .hStream = n->stream), CUDA_SUCCESS);
    return NULL;
}

static void
clients_of_a_process_have_slots_of_their_own(void **state)
{
    struct chain *c = chain("", true);
    struct named names[] = {{c, "web:prio=high,share=300", STREAM(0)}, {c, "bulk", STREAM(1)}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, named_main, &names[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(made(c, HED_cuLaunchKernel), 100);
    assert_int_equal(hed_sched_calls(gate_of(c, "web")->slot), 50);
    assert_int_equal(hed_sched_calls(gate_of(c, "bulk")->slot), 50);
    assert_int_equal(atomic_load(&gate_of(c, "web")->slot->priority), HED_PRIORITY_HIGH);
    assert_int_equal(atomic_load(&gate_of(c, "web")->slot->weight), 300);
    assert_int_equal(atomic_load(&gate_of(c, "bulk")->slot->weight), 100);
    assert_non_null(strstr(gate_of(c, "web")->slot->name, "/web"));
    discard(c);
}

static void *
held_main(void *arg)
{
    struct named *n = arg;

    current_context = CONTEXT;
    hed_recorder_set_client(n->c->engine, n->name, true);
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(launch(n->c, n->stream, i), CUDA_SUCCESS);
    return NULL;
}

/* A client that waits for another client's work releases it, because that work may be held in
 * favour of the client that waits. */
static void
clients_that_wait_for_each_other(void **state)
{
    struct chain *c = chain(LONG_WAIT ",batch=100", true);
    struct named other = {c, "other", STREAM(1)};
    pthread_t thread;

    for (unsigned round = 1; round <= 50; round++) { /* too many to be released by patience alone */
        assert_int_equal(pthread_create(&thread, NULL, held_main, &other), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = STREAM(1)), CUDA_SUCCESS);
        assert_int_equal(made(c, HED_cuLaunchKernel), 8 * round);
        assert_int_equal(hed_sched_calls(gate_of(c, "other")->slot), 8 * round);
    }
    discard(c);
}

/* The same without a queue: threads of one process that take turns at the gate. */
static void *
gate_main(void *arg)
{
    struct named *n = arg;
    struct hed_layer *l = n->c->sched;
    struct hed_cuLaunchKernel a = {.f = FUNCTION, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};

    current_context = CONTEXT;
    l->type->note(l, HED_NOTE_CLIENT, n->name);
    for (int i = 0; i < 50; i++)
        assert_int_equal(l->cuda->cuLaunchKernel(l, &a), CUDA_SUCCESS);
    l->type->note(l, HED_NOTE_CLIENT, "");
    assert_int_equal(l->cuda->cuLaunchKernel(l, &a), CUDA_SUCCESS);
    return NULL;
}

static void
clients_in_gate_mode(void **state)
{
    struct chain *c = chain("policy=slice,slice_us=100", true);
    struct named names[] = {{c, "one", 0}, {c, "two:share=7", 0}, {c, "one", 0}};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, gate_main, &names[i]), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(hed_sched_calls(gate_of(c, "one")->slot), 100);
    assert_int_equal(hed_sched_calls(gate_of(c, "two")->slot), 50);
    assert_int_equal(hed_sched_calls(gate_of(c, "")->slot), 3);
    discard(c);
}

static void
settings_of_record_mode(void **state)
{
    struct hed_sched_settings w;
    struct hed_why why;
    char name[HED_SCHED_NAME];
    static const char *const bad[] = {"mode=queue",
                                      "stream=own",
                                      "queue=7",
                                      "mode=record,stream=mine",
                                      "mode=record,queue=0",
                                      "queues=2",
                                      "mode=record,queues=0",
                                      "mode=record,queues=17"};
    static const char *const bad_clients[] = {
        "", ":share=3", "a b", "web:policy=fair", "web:mode=record", "web:share=0"};

    assert_int_equal(hed_sched_parse("on", &w, &why), 0);
    assert_true(!w.record && !w.own_stream && w.queue == HED_SCHED_QUEUE &&
                w.queues == HED_SCHED_QUEUES);
    assert_int_equal(hed_sched_parse("mode=record,stream=own,queue=9,queues=3", &w, &why), 0);
    assert_true(w.record && w.own_stream && w.queue == 9 && w.queues == 3);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(hed_sched_parse(bad[i], &w, &why), HED_EINVAL);
    assert_int_equal(hed_sched_parse_client("web:prio=low,group=g", name, &w, &why), 0);
    assert_string_equal(name, "web");
    assert_true(w.priority == HED_PRIORITY_LOW && w.record && strcmp(w.group, "g") == 0);
    for (size_t i = 0; i < sizeof bad_clients / sizeof *bad_clients; i++)
        assert_int_not_equal(hed_sched_parse_client(bad_clients[i], name, &w, &why), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(batch_releases_exactly_what_was_held, setup, teardown),
    cmocka_unit_test_setup_teardown(a_wait_for_the_gpu_releases_what_is_held, setup, teardown),
    cmocka_unit_test_setup_teardown(time_releases_what_is_held, setup, teardown),
    cmocka_unit_test_setup_teardown(a_held_client_holds_no_thread, setup, teardown),
    cmocka_unit_test_setup_teardown(a_release_lets_queued_calls_go, setup, teardown),
    cmocka_unit_test_setup_teardown(held_calls_are_made_when_the_process_ends, setup, teardown),
    cmocka_unit_test_setup_teardown(clients_of_a_process_have_slots_of_their_own, setup, teardown),
    cmocka_unit_test_setup_teardown(clients_that_wait_for_each_other, setup, teardown),
    cmocka_unit_test_setup_teardown(clients_in_gate_mode, setup, teardown),
    cmocka_unit_test(settings_of_record_mode),
};

HED_UNIT_MAIN(tests)
