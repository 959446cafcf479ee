/* Tests of the sched layer beside a process that writes nonsense into the shared memory, or that
 * ends in the middle of something. Whatever the memory contains, every call returns. */
#include "unit/sched/make.h"

#define HOUR (3600 * HED_NS_PER_S)

/* ---- one impossible value -------------------------------------------------------------------- */

/* A client of low priority that waits at its gate, because one of high priority waits for the GPU
 * all the time. */
struct pair {
    char scope[sizeof scope];
    struct client *low, *high;
    struct held held;
};

static void
begin_pair(struct pair *p, int number)
{
    snprintf(scope, sizeof scope, "unit%ld.h%d", (long)getpid(), number);
    memcpy(p->scope, scope, sizeof scope);
    p->low = client("prio=low,hold_us=0");
    p->high = client("prio=high");
    launch_kernel(p->low);
    sync_all(p->low);
    launch_kernel(p->high);
    atomic_fetch_add(&gate_of(p->high)->slot->syncing, 1);
    start_held(&p->held, p->low, 0);
    until_it_waits(p->low);
}

static void
end_pair(struct pair *p)
{
    pthread_join(p->held.thread, NULL);
    discard(p->low);
    discard(p->high);
    memcpy(scope, p->scope, sizeof scope);
    teardown(NULL);
}

/* What the test writes again and again, more often than any process decides. */
enum nonsense {
    NEXT_LOOK, /* no process would decide any more */
    WAITS_SINCE,
    NO_SLOTS,
    NOT_PRESENT,
    ENDS,
    LAST_CALL,
    RESTED,
    KINDS
};

static void
write_nonsense(struct pair *p, enum nonsense what)
{
    struct hed_gate *low = gate_of(p->low);
    struct hed_gate *high = gate_of(p->high);
    const uint64_t later = hed_now_ns() + HOUR;

    switch (what) {
    case NEXT_LOOK:
        atomic_store(&low->common->next_look, later);
        break;
    case WAITS_SINCE:
        atomic_store(&low->slot->waits_since, later);
        break;
    case NO_SLOTS:
        atomic_store(&low->common->high, 0);
        break;
    case NOT_PRESENT:
        atomic_store(&low->slot->present, 0);
        break;
    case ENDS:
        atomic_store(&high->slot->ends, later);
        break;
    case LAST_CALL:
        atomic_store(&high->slot->last_call, later);
        break;
    default:
        atomic_store(&high->slot->rested, later);
        break;
    }
}

static void
an_impossible_word_holds_no_call_for_ever(void **state)
{
    static struct pair pairs[KINDS];
    int waiting = KINDS;

    for (int i = 0; i < KINDS; i++)
        begin_pair(&pairs[i], i);
    for (int i = 0; i < KINDS; i++)
        if (i != WAITS_SINCE) /* which matters only if the other has endless work */
            atomic_fetch_sub(&gate_of(pairs[i].high)->slot->syncing, 1);
    while (waiting) {
        waiting = 0;
        for (int i = 0; i < KINDS; i++) {
            if (atomic_load(&pairs[i].held.done))
                continue;
            write_nonsense(&pairs[i], (enum nonsense)i);
            waiting++;
        }
        /* A process decides although the next decision is due much later: without that, this call
         * would wait longer than the one with the wrong end. */
        assert_true(!atomic_load(&pairs[ENDS].held.done) ||
                    atomic_load(&pairs[NEXT_LOOK].held.done));
        hed_sleep_ns(HED_NS_PER_MS);
    }
    for (int i = 0; i < KINDS; i++) {
        assert_int_equal(atomic_load(&gate_of(pairs[i].low)->slot->waiting), 0);
        end_pair(&pairs[i]);
    }
}

/* The time is written once. It is believed for no longer than a call is ever held. */
static void
an_impossible_time_is_soon_forgotten(void **state)
{
    for (int what = ENDS; what <= RESTED; what++) {
        struct pair p = {.low = client("prio=low,hold_us=0"), .high = client("prio=high")};
        struct hed_meet *m = gate_of(p.low)->meet;
        const uint64_t now = hed_now_ns();
        const uint64_t then = now + HED_SCHED_PATIENCE_NS + HED_NS_PER_S;

        assert_int_equal(hed_sched_announce(gate_of(p.low)->meet, now), 0);
        if (what != RESTED)
            assert_int_equal(hed_sched_announce(gate_of(p.high)->meet, now), 0);
        write_nonsense(&p, (enum nonsense)what);
        assert_int_equal(hed_sched_decide(m, now), 0);
        atomic_store(&gate_of(p.low)->slot->last_call, then);
        assert_int_equal(hed_sched_decide(m, then - HED_SCHED_PATIENCE_NS), 0);
        assert_true(gate_word(p.low) & HED_GATE_CLOSED);
        assert_int_equal(hed_sched_decide(m, then), 0);
        assert_int_equal(gate_word(p.low) & HED_GATE_CLOSED, 0);
        discard(p.low);
        discard(p.high);
    }
}

/* Neither a wrong end of its own work, nor a wrong cap, makes a call wait for ever. */
static void
an_impossible_end_or_cap_holds_no_call_for_ever(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");

    launch_kernel(low);
    assert_true(gate_word(low) & HED_GATE_LIMIT);
    atomic_store(&gate_of(low)->slot->ends, hed_now_ns() + HOUR);
    launch_kernel(low);
    low->fake.free_at = hed_now_ns() + HED_NS_PER_S / 2; /* so that no mark corrects the time */
    atomic_store(&gate_of(low)->common->cap, UINT64_MAX / 4);
    for (int i = 0; i < 3; i++) {
        struct hed_cuMemsetD8Async fill = {.uc = 0};

        fill.hStream = (CUstream)(uintptr_t)0x100;
        assert_int_equal(low->top->cuda->cuMemsetD8Async(low->top, &fill), CUDA_SUCCESS);
    }
    assert_true(gate_of(low)->pace.ends < hed_now_ns() + HOUR);
    atomic_store(&gate_of(low)->common->cap, hed_sched_defaults.cap);
    launch_kernel(low);
    assert_int_equal(atomic_load(&gate_of(low)->slot->waiting), 0);
    assert_true(atomic_load(&gate_of(low)->slot->ends) < hed_now_ns() + HED_NS_PER_S);
    discard(low);
    discard(high);
}

/* ---- nonsense everywhere --------------------------------------------------------------------- */

#define WORKERS 4
#define ROUNDS 400

static _Atomic bool scribbled;

static uint64_t
next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Numbers that are likely to hurt: zero, small ones, all bits, times around now, anything. */
static uint64_t
any_number(uint64_t *seed)
{
    const uint64_t r = next_random(seed);

    switch (r % 6) {
    case 0:
        return 0;
    case 1:
        return r >> 8 & 7;
    case 2:
        return UINT64_MAX - (r >> 8 & 7);
    case 3:
        return hed_now_ns() + (r >> 8) % (10 * HED_NS_PER_S) - 5 * HED_NS_PER_S;
    case 4:
        return hed_now_ns() + (r >> 8) % HOUR;
    default:
        return next_random(seed);
    }
}

static void
scribble(void *memory, size_t size, uint64_t *seed)
{
    _Atomic uint64_t *words = memory;

    for (size_t i = 0; i < size / sizeof *words; i++)
        if (next_random(seed) % 4 == 0)
            atomic_store_explicit(&words[i], any_number(seed), memory_order_relaxed);
}

static void *
scribble_main(void *arg)
{
    struct hed_meet *m = gate_of(arg)->meet;
    struct hed_sched_common *c = hed_meet_common(m);
    uint64_t seed = 0x5eed;

    for (int round = 0; round < ROUNDS; round++) {
        scribble(c, sizeof *c, &seed);
        atomic_store(&c->paused, 0);
        for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++) {
            struct hed_sched_slot *p = hed_meet_slot(m, i);

            if (i >= 4 && next_random(&seed) % 16)
                continue;
            scribble(p, offsetof(struct hed_sched_slot, name), &seed);
            scribble(&p->working, sizeof *p - offsetof(struct hed_sched_slot, working), &seed);
            atomic_store(&p->paused, 0);
        }
        hed_sleep_ns(next_random(&seed) % (5 * HED_NS_PER_MS));
    }
    atomic_store(&scribbled, true);
    /* Only a user ends a pause, so the test must do it. */
    for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++)
        atomic_store(&((struct hed_sched_slot *)hed_meet_slot(m, i))->paused, 0);
    atomic_store(&c->paused, 0);
    return NULL;
}

static void *
launch_many(void *arg)
{
    for (int i = 0; i < 100 || !atomic_load(&scribbled); i++) {
        launch_on(arg, 0x100 * (uintptr_t)(i % 3), 0);
        if (i % 20 == 0)
            sync_all(arg);
        if (i % 100 == 0)
            hed_sleep_ns(HED_NS_PER_MS); /* so that it can become idle */
    }
    return NULL;
}

static void
nonsense_everywhere_holds_no_call_for_ever(void **state)
{
    struct client *both[] = {client("prio=low"), client("prio=high,policy=fair")};
    pthread_t scribbler, workers[WORKERS];

    /* Names that do not end. They are written before threads read them, because that is not
     * atomic. */
    for (uint32_t i = 0; i < HED_SCHED_SLOTS; i++) {
        struct hed_sched_slot *p = hed_meet_slot(gate_of(both[0])->meet, i);

        memset(p->name, 0xff, sizeof p->name);
        memset(p->group, i % 3 ? 0xff : 0, sizeof p->group);
    }
    both[0]->fake.kernel_ns = both[1]->fake.kernel_ns = 20000;
    assert_int_equal(pthread_create(&scribbler, NULL, scribble_main, both[0]), 0);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, launch_many, both[i % 2]), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    pthread_join(scribbler, NULL);
    for (int i = 0; i < 2; i++) {
        launch_kernel(both[i]); /* on whatever the memory contains now */
        assert_true(both[i]->fake.launches > 200);
        assert_int_equal(both[i]->fake.bad, 0);
    }
    discard(both[0]);
    discard(both[1]);
}

/* ---- ending in the middle of something ------------------------------------------------------- */

/* If a client has many threads, some thread always waits. It counts as held for long only if none
 * of them goes on. */
static void
a_client_is_held_for_long_only_if_no_thread_goes_on(void **state)
{
    struct client *low = client("prio=low,hold_us=0");
    struct client *high = client("prio=high");
    struct hed_sched_slot *p = gate_of(low)->slot;
    struct held held[2];

    launch_kernel(low);
    sync_all(low);
    launch_kernel(high);
    atomic_fetch_add(&gate_of(high)->slot->syncing, 1);
    for (int i = 0; i < 2; i++)
        start_held(&held[i], low, 0);
    WAIT_UNTIL(atomic_load(&p->waiting) == 2);

    const uint64_t before = hed_now_ns() - HED_SCHED_PATIENCE_NS / 2;

    atomic_store(&p->waits_since, before);
    atomic_store(&p->tickets, 1); /* lets one of them go on */
    WAIT_UNTIL(atomic_load(&p->waiting) == 1);
    assert_true(atomic_load(&p->waits_since) > before + HED_NS_PER_S);
    atomic_fetch_sub(&gate_of(high)->slot->syncing, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(held[i].thread, NULL);
    discard(low);
    discard(high);
}

/* A thread that is about to sleep until the old time of the next decision must not: its gate word
 * changes, so that it notices the new time. */
static void
a_sleeper_notices_an_earlier_decision(void **state)
{
    struct client *low = client("prio=low,hold_us=0");
    struct client *high = client("prio=high");
    struct hed_sched_common *c = gate_of(low)->common;
    struct held h;

    launch_kernel(low);
    sync_all(low);
    launch_kernel(high);
    atomic_fetch_add(&gate_of(high)->slot->syncing, 1);
    start_held(&h, low, 0);
    until_it_waits(low);

    struct hed_meet *m = gate_of(high)->meet;
    const uint64_t now = hed_now_ns();
    uint32_t before;

    /* Repeat until no other thread has decided in between. */
    do {
        assert_int_equal(hed_sched_decide(m, hed_now_ns()), 0);
        before = gate_word(low);
        atomic_store(&c->next_look, now + HED_NS_PER_S / 20);
        hed_sched_rest(m, now);
    } while (atomic_load(&c->next_look) != now + HED_SCHED_MARGIN_NS);
    assert_true(before & HED_GATE_CLOSED);
    assert_int_equal(gate_word(low), before ^ HED_GATE_NEWS);
    atomic_fetch_sub(&gate_of(high)->slot->syncing, 1);
    pthread_join(h.thread, NULL);
    discard(low);
    discard(high);
}

static void
captures_end_with_their_context(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");
    struct hed_cuStreamBeginCapture_v2 begin = {.hStream = (CUstream)0x100};
    struct hed_cuCtxDestroy_v2 other = {.ctx = (CUcontext)77};
    struct hed_cuCtxDestroy_v2 end = {.ctx = (CUcontext)1};
    struct hed_sched *s = low->top->state;

    assert_int_equal(low->top->cuda->cuStreamBeginCapture_v2(low->top, &begin), CUDA_SUCCESS);
    assert_int_equal(low->top->cuda->cuCtxDestroy_v2(low->top, &other), CUDA_SUCCESS);
    assert_int_equal(atomic_load(&s->forbidden), 1);
    low->fake.capturing = false;
    assert_int_equal(low->top->cuda->cuCtxDestroy_v2(low->top, &end), CUDA_SUCCESS);
    assert_int_equal(atomic_load(&s->forbidden), 0);
    discard(low);
    discard(high);
}

/* Events of contexts that are no longer used must not take the place of those of others. */
static void
events_are_not_lost(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");
    struct hed_sched *s = low->top->state;

    for (s->spares = 0; s->spares < HED_PACE_SPARE; s->spares++)
        s->spare[s->spares] = (struct hed_mark){.end = EVENTS - 1, .context = 99};
    for (int i = 0; i < 2000; i++) {
        launch_kernel(low);
        if (i % 10 == 0)
            hed_sleep_ns(100000);
    }
    assert_true(low->fake.own > 200);
    assert_true(low->fake.next_event <= 2 * HED_PACE_MARKS + 2);
    discard(low);
    discard(high);
}

/* If a context ends during a call, nothing of it is kept. */
static void
an_event_of_an_ended_context_is_not_used_again(void **state)
{
    struct client *low = client("prio=low");
    struct client *high = client("prio=high");
    struct hed_sched *s = low->top->state;
    struct hed_cuCtxDestroy_v2 end = {.ctx = (CUcontext)1};
    struct hed_cuLaunchKernel a = {.f = (CUfunction)0x1000, .gridDimX = 1, .gridDimY = 1};
    const struct hed_layer_type *type = low->top->type;
    struct hed_gate_pass pass;

    for (int i = 0; i < 2; i++) {
        type->before(low->top, HED_cuLaunchKernel, &a, &pass);

        const uint64_t start = pass.mark.start;

        assert_true(start != 0);
        assert_int_equal(low->top->cuda->cuCtxDestroy_v2(low->top, &end), CUDA_SUCCESS);
        low->fake.context = 1; /* the next context has the same address */
        if (i)
            hed_sched_forbid_calls(s); /* as if that context were ending, too */
        type->after(low->top, HED_cuLaunchKernel, &a, &pass, CUDA_SUCCESS);
        if (i)
            hed_sched_allow_calls(s);
        for (unsigned k = 0; k < s->spares; k++)
            assert_true(s->spare[k].end != start);
        assert_true(gate_of(low)->pace.marks[0].start != start);
        (void)low->top->cuda->cuLaunchKernel(low->top, &a); /* every second launch is timed */
    }
    discard(low);
    discard(high);
}

static _Atomic int holding; /* 1: the thread holds the lock, 2: it shall release it */

static void *
hold_lock(void *arg)
{
    struct hed_sched *s = arg;

    hed_lock(&s->lock);
    atomic_store(&holding, 1);
    WAIT_UNTIL(atomic_load(&holding) == 2);
    hed_unlock(&s->lock);
    return NULL;
}

/* Other threads of the parent were in the middle of something when it forked. */
static void
a_child_waits_for_no_thread_of_its_parent(void **state)
{
    struct client *a = client("");
    struct hed_sched *s = a->top->state;

    pthread_t holder;

    launch_kernel(a);
    assert_true(hed_sched_begin_own_calls(s));
    assert_int_equal(pthread_create(&holder, NULL, hold_lock, s), 0);
    WAIT_UNTIL(atomic_load(&holding) == 1);

    const pid_t pid = fork();

    if (pid == 0) {
        struct hed_cuCtxDestroy_v2 end = {.ctx = (CUcontext)1};
        struct hed_cuCtxCreate_v2 create = {.dev = 1};

        hed_sched_layer.forked(a->top);
        alarm(PATIENCE_S);
        (void)a->top->cuda->cuCtxDestroy_v2(a->top, &end);
        (void)a->top->cuda->cuCtxCreate_v2(a->top, &create);
        _exit(0);
    }
    atomic_store(&holding, 2);
    pthread_join(holder, NULL);
    hed_sched_end_own_calls(s);

    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    discard(a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(an_impossible_word_holds_no_call_for_ever, setup, teardown),
    cmocka_unit_test_setup_teardown(an_impossible_time_is_soon_forgotten, setup, teardown),
    cmocka_unit_test_setup_teardown(an_impossible_end_or_cap_holds_no_call_for_ever, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(nonsense_everywhere_holds_no_call_for_ever, setup, teardown),
    cmocka_unit_test_setup_teardown(a_client_is_held_for_long_only_if_no_thread_goes_on, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_sleeper_notices_an_earlier_decision, setup, teardown),
    cmocka_unit_test_setup_teardown(captures_end_with_their_context, setup, teardown),
    cmocka_unit_test_setup_teardown(events_are_not_lost, setup, teardown),
    cmocka_unit_test_setup_teardown(an_event_of_an_ended_context_is_not_used_again, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(a_child_waits_for_no_thread_of_its_parent, setup, teardown),
};

HED_UNIT_MAIN(tests)
