/* Tests of the policies with a simulated clock: which client may run when, and how shares work
 * out. */
#include "unit/sched/world.h"

/* ---- priority -------------------------------------------------------------------------------- */

static void
priority_holds_the_low_while_the_high_works_and_a_moment_longer(void **state)
{
    static const struct {
        uint64_t at; /* ms / 10 from the beginning */
        enum hed_verdict low;
    } rows[] = {
        {5, HED_VERDICT_CLOSED},  /* the high one has 2 ms of work, from 0 on */
        {19, HED_VERDICT_CLOSED}, /* until here */
        {24, HED_VERDICT_CLOSED}, /* and for 0.5 ms longer */
        {26, HED_VERDICT_LIMIT},
        {99, HED_VERDICT_LIMIT},
        {101, HED_VERDICT_CLOSED}, /* it begins again after 10 ms */
        {124, HED_VERDICT_CLOSED},
        {136, HED_VERDICT_LIMIT}, /* it had to wait for the work in flight */
    };
    struct world w;

    make_world(&w, "priority", 2);
    w.clients[0].priority = HED_PRIORITY_LOW;
    w.clients[1].priority = HED_PRIORITY_HIGH;
    w.actors[1].period = 10 * MS;
    w.actors[1].burst = 20;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_for(&w, BEGIN + rows[i].at * 100 * US - w.scene.now + STEP);
        if (w.clients[0].verdict != rows[i].low)
            fail_msg("at %u: %d, not %d", (unsigned)rows[i].at, w.clients[0].verdict, rows[i].low);
        assert_int_equal(w.clients[1].verdict, HED_VERDICT_OPEN);
    }
}

static void
priority_leaves_equals_alone(void **state)
{
    struct world w;

    make_world(&w, "priority", 3);
    run_for(&w, 50 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(w.clients[i].verdict, HED_VERDICT_OPEN);
}

/* The high one waits for the work that the low one has in flight: the cap and one piece. */
static void
priority_bounds_the_wait_of_the_high(void **state)
{
    static const uint64_t pieces[] = {50 * US, 500 * US, 5 * MS};

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct world w;
        uint64_t worst = 0;

        make_world(&w, "priority", 2);
        w.clients[0].priority = HED_PRIORITY_LOW;
        w.clients[1].priority = HED_PRIORITY_HIGH;
        w.actors[0].piece = pieces[i];
        w.actors[1].period = 7 * MS + 130 * US;
        w.actors[1].burst = 5;
        w.actors[1].next = BEGIN + MS;
        for (int k = 0; k < 200000; k++) {
            const bool before = w.clients[1].working;

            if (!before && w.actors[1].next <= w.scene.now && w.gpu_free > w.scene.now &&
                w.gpu_free - w.scene.now > worst)
                worst = w.gpu_free - w.scene.now;
            step(&w);
        }
        assert_true(worst > 0);
        assert_true(worst <= hed_sched_defaults.cap + pieces[i]);
        /* The low one gets the time that is left. */
        assert_true(w.actors[0].done * pieces[i] > 200000 * STEP / 2);
    }
}

/* Two clients: one of low priority with endless work, and one of high priority that begins every
 * 20 ms, up to `jitter` later, and works for 2 ms. Runs for `ns` and returns the longest time that
 * the high one had to wait for the GPU when it began. */
static uint64_t
come_and_go(struct world *w, uint64_t ns, uint64_t jitter)
{
    uint64_t random = 1;
    uint64_t worst = 0;

    for (const uint64_t end = w->scene.now + ns; w->scene.now < end; step(w)) {
        if (w->clients[1].working || w->actors[1].next > w->scene.now)
            continue;
        if (w->gpu_free > w->scene.now && w->gpu_free - w->scene.now > worst)
            worst = w->gpu_free - w->scene.now;
        random = random * UINT64_C(6364136223846793005) + 1;
        if (jitter)
            w->actors[1].next += random % jitter; /* the next ones come later, too */
    }
    return worst;
}

static void
make_low_and_high(struct world *w, uint64_t piece)
{
    make_world(w, "priority", 2);
    w->clients[0].priority = HED_PRIORITY_LOW;
    w->clients[1].priority = HED_PRIORITY_HIGH;
    w->actors[0].piece = piece;
    w->actors[1].period = 20 * MS;
    w->actors[1].burst = 20;
}

static void
a_periodic_client_finds_the_gpu_free(void **state)
{
    static const uint64_t pieces[] = {50 * US, 500 * US, 1700 * US, 2500 * US};

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct world w;

        make_low_and_high(&w, pieces[i]);
        (void)come_and_go(&w, 200 * MS, 0); /* time to learn the period */

        const uint64_t before = w.actors[0].done;

        assert_int_equal(come_and_go(&w, 2 * S, 0), 0);
        /* 2.5 of 20 ms belong to the other one; a piece and a moment stay unused. */
        assert_true((w.actors[0].done - before) * pieces[i] + 100 * (pieces[i] + 200 * US) >
                    2 * S * 17 / 20);
    }
}

static void
a_client_without_a_period_is_not_waited_for(void **state)
{
    struct world w;

    make_low_and_high(&w, 500 * US);
    assert_true(come_and_go(&w, 2 * S, 15 * MS) > 0);
    assert_int_equal(w.clients[0].until, 0);

    make_low_and_high(&w, 500 * US);
    (void)come_and_go(&w, 200 * MS, 0);
    w.actors[1].next =
        UINT64_MAX; /* it does not begin any more, which is noticed after three periods */
    run_for(&w, 65 * MS);

    const uint64_t before = w.actors[0].done;

    run_for(&w, S);
    assert_true((w.actors[0].done - before) * 500 * US >= S - MS);
}

/* A client that is late, or misses a period, is predicted again at its old times. */
static void
a_period_outlasts_a_late_client(void **state)
{
    struct world w;
    uint64_t worst = 0;

    make_low_and_high(&w, 500 * US);
    for (uint64_t n = 1; n < 100; n++) {
        const uint64_t late = n > 10 && n % 5 == 0 ? 4 * MS : 0;
        const uint64_t skipped = n > 10 && n % 7 == 0 ? 20 * MS : 0;

        w.actors[1].next = BEGIN + 20 * n * MS + late + skipped;
        run_for(&w, w.actors[1].next - w.scene.now);
        if (n > 10 && !late && w.gpu_free > w.scene.now && w.gpu_free - w.scene.now > worst)
            worst = w.gpu_free - w.scene.now;
        run_for(&w, 5 * MS);
        n += skipped != 0;
    }
    assert_int_equal(worst, 0);
}

/* A kernel that takes longer than the time that may stay unused is not kept off the GPU. */
static void
long_work_runs_beside_a_frequent_client(void **state)
{
    struct world w;

    make_low_and_high(&w, 8 * MS);
    run_for(&w, 4 * S);
    assert_true(w.actors[0].done * 8 * MS > 2 * S);
}

/* ---- fair ------------------------------------------------------------------------------------ */

static void
fair_gives_the_shares_that_were_asked_for(void **state)
{
    static const struct {
        uint32_t weight[3];
        uint64_t piece[3];
    } rows[] = {
        {{50, 50, 0}, {100 * US, 100 * US, 0}},
        {{75, 25, 0}, {100 * US, 100 * US, 0}},
        {{90, 10, 0}, {100 * US, 100 * US, 0}},
        {{50, 50, 0}, {20 * US, 2 * MS, 0}},
        {{75, 25, 0}, {3 * MS, 50 * US, 0}},
        {{1, 1, 1}, {100 * US, 700 * US, 30 * US}},
        {{100, 200, 700}, {500 * US, 90 * US, 250 * US}},
    };

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const size_t count = rows[r].weight[2] ? 3 : 2;
        struct world w;
        double total = 0;
        double weights = 0;

        make_world(&w, "fair", count);
        for (size_t i = 0; i < count; i++) {
            w.clients[i].weight = rows[r].weight[i] * 1000;
            w.actors[i].piece = rows[r].piece[i];
        }
        run_for(&w, 5 * S);
        for (size_t i = 0; i < count; i++) {
            total += (double)w.clients[i].used;
            weights += rows[r].weight[i];
        }
        assert_true(total > 0.99 * 5 * S); /* the GPU had no idle time */
        for (size_t i = 0; i < count; i++) {
            const double got = (double)w.clients[i].used / total;
            const double asked = rows[r].weight[i] / weights;

            if (got < asked - 0.01 || got > asked + 0.01)
                fail_msg("row %zu, client %zu: %.4f, not %.4f", r, i, got, asked);
        }
    }
}

static void
fair_does_not_save_up_idle_time(void **state)
{
    struct world w;

    make_world(&w, "fair", 2);
    w.actors[1].next = BEGIN + S;
    run_for(&w, S);
    assert_int_equal(w.clients[1].used, 0);

    const uint64_t before = w.clients[0].used;

    run_for(&w, S);

    const double ratio = (double)w.clients[1].used / (double)(w.clients[0].used - before);

    assert_true(ratio > 0.97 && ratio < 1.03);
}

static void
fair_leaves_the_gpu_to_clients_with_work(void **state)
{
    struct world w;

    make_world(&w, "fair", 2);
    w.actors[1].period = 20 * MS;
    w.actors[1].burst = 20; /* 2 ms of 20 */
    run_for(&w, 2 * S);
    assert_true(w.clients[0].used + w.clients[1].used > 199 * S / 100);
    assert_true(w.clients[1].used > 195 * MS);
}

/* Programs that launch 100 us kernels and wait for them now and then: between a wait and the next
 * launch the GPU has none of their work for a moment. That costs them time, but not their share. */
static void
fair_shares_survive_short_gaps(void **state)
{
    static const struct {
        uint64_t burst;  /* pieces */
        uint64_t gap[2]; /* of either client */
    } rows[] = {
        {64, {100 * US, 0}},        {64, {200 * US, 0}},        {64, {300 * US, 0}},
        {64, {400 * US, 0}},        {64, {300 * US, 300 * US}}, {64, {400 * US, 100 * US}},
        {64, {150 * US, 350 * US}}, {160, {300 * US, 0}},       {30, {250 * US, 0}},
    };

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world w;

        make_world(&w, "fair", 2);
        for (int i = 0; i < 2; i++) {
            w.actors[i].burst = rows[r].burst;
            w.actors[i].gap = rows[r].gap[i];
        }
        run_for(&w, 5 * S);

        const double got =
            (double)w.clients[0].used / (double)(w.clients[0].used + w.clients[1].used);

        if (got < 0.48 || got > 0.52)
            fail_msg("row %zu: %.3f of the GPU, not half of it", r, got);
    }
}

/* A client that has worked alone for long does not wait for another one that begins in the meantime
 * to catch up. */
static void
fair_does_not_punish_a_client_for_working_alone(void **state)
{
    struct world w;

    make_world(&w, "fair", 2);
    w.actors[0].period = 3 * S;
    w.actors[0].burst = 20000;            /* 2 of 3 s */
    w.actors[1].next = BEGIN + 2500 * MS; /* endless work, when the other one has rested for long */
    run_for(&w, 3 * S);
    assert_true(w.clients[0].used == 2 * S);

    const uint64_t before = w.clients[1].used;

    run_for(&w, 200 * MS);

    const double other = (double)(w.clients[1].used - before);
    const double got =
        (double)(w.clients[0].used - 2 * S) / ((double)(w.clients[0].used - 2 * S) + other);

    assert_true(got > 0.4 && got < 0.6);
}

/* ---- one at a time --------------------------------------------------------------------------- */

static void
slice_rotates(void **state)
{
    static const int turns[] = {0, 1, 2, 0, 1, 2};
    struct world w;

    make_world(&w, "slice", 3);
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        run_for(&w, w.scene.params.slice / 2);
        for (int k = 0; k < 3; k++)
            assert_int_equal(w.clients[k].verdict,
                             k == turns[i] ? HED_VERDICT_LIMIT : HED_VERDICT_CLOSED);
        run_for(&w, w.scene.params.slice / 2);
    }
    run_for(&w, 3 * S);
    for (int k = 1; k < 3; k++) {
        const double ratio = (double)w.clients[k].used / (double)w.clients[0].used;

        assert_true(ratio > 0.99 && ratio < 1.01);
    }
}

static void
fifo_serves_in_the_order_of_arrival(void **state)
{
    struct world w;

    make_world(&w, "fifo", 3);
    for (int i = 0; i < 3; i++) {
        w.actors[i].period = 100 * S;
        w.actors[i].burst = 100; /* 10 ms */
    }
    w.actors[2].next = BEGIN;
    w.actors[0].next = BEGIN + MS;
    w.actors[1].next = BEGIN + 2 * MS;
    run_for(&w, 5 * MS);
    assert_int_equal(w.clients[2].verdict, HED_VERDICT_LIMIT);
    assert_int_equal(w.clients[0].verdict, HED_VERDICT_CLOSED);
    assert_int_equal(w.clients[1].verdict, HED_VERDICT_CLOSED);
    run_for(&w, 10 * MS);
    assert_int_equal(w.clients[0].verdict, HED_VERDICT_LIMIT);
    assert_int_equal(w.clients[1].verdict, HED_VERDICT_CLOSED);
    run_for(&w, 10 * MS);
    assert_int_equal(w.clients[1].verdict, HED_VERDICT_OPEN); /* alone by now */
    run_for(&w, 10 * MS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(w.actors[i].done, 100);
}

static void
deadline_serves_the_earliest_first(void **state)
{
    struct world w;

    make_world(&w, "deadline", 3);
    for (int i = 0; i < 3; i++) {
        w.actors[i].period = 100 * S;
        w.actors[i].burst = 20;
    }
    w.clients[0].deadline = 90 * MS;
    w.clients[1].deadline = 10 * MS; /* 2 has no deadline: it comes last */
    run_for(&w, MS);
    assert_int_equal(w.clients[1].verdict, HED_VERDICT_LIMIT);
    run_for(&w, 2 * MS);
    assert_int_equal(w.clients[0].verdict, HED_VERDICT_LIMIT);
    assert_int_equal(w.clients[2].verdict, HED_VERDICT_CLOSED);
    run_for(&w, 4 * MS);
    assert_int_equal(w.actors[2].done, 20);
}

static void
deadlines_are_met_if_there_is_time(void **state)
{
    struct world w;

    make_world(&w, "deadline", 3);
    w.clients[0].deadline = 5 * MS;
    w.actors[0].period = 10 * MS;
    w.actors[0].burst = 20; /* 2 ms in every 10, until 5 */
    w.clients[1].deadline = 20 * MS;
    w.actors[1].period = 40 * MS;
    w.actors[1].burst = 80;
    for (int i = 0; i < 200000; i++) {
        step(&w);
        for (int k = 0; k < 2; k++)
            if (w.clients[k].working &&
                w.scene.now > w.clients[k].since + w.clients[k].deadline + 2 * MS)
                fail_msg("client %d is late", k);
    }
    assert_true(w.actors[2].done > 1000); /* and the one without a deadline runs in between */
}

/* ---- batch ----------------------------------------------------------------------------------- */

/* Asks batch while `waiting` threads wait, the first for `since` ns, and `syncing` threads wait for
 * the GPU. */
static enum hed_verdict
ask_batch(struct world *w, uint32_t waiting, uint64_t since, uint32_t syncing)
{
    w->clients[0].working = w->clients[1].working = true;
    w->clients[0].waiting = waiting / 2;
    w->clients[1].waiting = waiting - waiting / 2;
    w->clients[0].waits_since = w->clients[1].waits_since = w->scene.now - since;
    w->clients[0].syncing = syncing;
    ask_policy(w);
    assert_int_equal(w->clients[0].verdict, w->clients[1].verdict);
    return w->clients[0].verdict;
}

static void
batch_releases_by_number_time_or_sync(void **state)
{
    struct world w;

    make_world(&w, "batch", 2);
    assert_int_equal(ask_batch(&w, 1, 0, 0), HED_VERDICT_CLOSED);
    assert_int_equal(ask_batch(&w, 7, MS, 0), HED_VERDICT_CLOSED);
    assert_true(w.next_decision == w.scene.now + MS);
    assert_int_equal(ask_batch(&w, 8, MS, 0), HED_VERDICT_OPEN);
    w.scene.now += MS;
    assert_int_equal(ask_batch(&w, 0, 0, 0), HED_VERDICT_CLOSED);
    assert_int_equal(ask_batch(&w, 1, 2 * MS, 0), HED_VERDICT_OPEN);
    w.scene.now += MS;
    assert_int_equal(ask_batch(&w, 0, 0, 0), HED_VERDICT_CLOSED);
    assert_int_equal(ask_batch(&w, 1, 10 * US, 1), HED_VERDICT_OPEN);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* With eight clients that have endless work, no client waits for ever. There is one intended
 * exception: a client of lower priority waits as long as one of higher priority has work. */
static void
no_client_starves(void **state)
{
    const uint64_t slice = hed_sched_defaults.slice;
    const struct {
        const char *policy;
        uint64_t longest;
    } rows[] = {
        /* fair: two slices each time, since the first to be behind is one slice behind already */
        {"priority", 100 * MS}, {"fair", 2 * CLIENTS_MAX * slice},    {"fifo", 1600 * slice},
        {"deadline", 2 * S},    {"slice", (CLIENTS_MAX + 1) * slice}, {"batch", 100 * MS},
    };

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        struct world w;

        make_world(&w, rows[r].policy, CLIENTS_MAX);
        w.clients[3].deadline = 10 * MS;
        run_for(&w, 20 * S);
        for (int i = 0; i < CLIENTS_MAX; i++) {
            const struct actor *a = &w.actors[i];
            const uint64_t now = w.scene.now;

            if (a->done == 0 || a->longest > rows[r].longest || now - a->served > rows[r].longest)
                fail_msg("%s: client %d waited %.1f ms, %.1f at the end", rows[r].policy, i,
                         (double)a->longest / MS, (double)(now - a->served) / MS);
        }
    }
}

/* Other processes can write to the memory of a policy. */
static void
policies_recover_from_nonsense(void **state)
{
    static const char *const names[] = {"fair", "slice", "fifo", "priority"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct world w;

        make_world(&w, names[i], 3);
        run_for(&w, 100 * MS);
        w.scene.memory[0] = 77;
        w.scene.memory[1] = w.scene.memory[2] = UINT64_MAX / 2;
        for (int k = 0; k < HED_POLICY_CLIENT_MEMORY; k++)
            w.clients[0].memory[k] = UINT64_MAX / 3;
        for (int k = 0; k < 3; k++)
            w.actors[k].done = 0;
        run_for(&w, 20 * S);
        for (int k = 0; k < 3; k++)
            if (w.actors[k].done * w.actors[k].piece < 4 * S)
                fail_msg("%s: client %d has had %.1f of 20 s", names[i], k,
                         (double)(w.actors[k].done * w.actors[k].piece) / S);
    }
}

static void
the_same_scene_gives_the_same_verdicts(void **state)
{
    for (int p = 0; p < HED_POLICY_COUNT; p++) {
        struct world a;
        struct world b;

        make_world(&a, hed_policies[p].name, 4);
        make_world(&b, hed_policies[p].name, 4);
        for (int i = 0; i < 4; i++) {
            a.actors[i].period = b.actors[i].period = (uint64_t)(i + 3) * MS;
            a.actors[i].burst = b.actors[i].burst = (uint64_t)(5 * i + 2);
        }
        for (int i = 0; i < 20000; i++) {
            step(&a);
            step(&b);
            for (int k = 0; k < 4; k++)
                assert_int_equal(a.clients[k].verdict, b.clients[k].verdict);
        }
        assert_true(a.decisions == b.decisions);
    }
}

static void
an_empty_scene_does_no_harm(void **state)
{
    for (int p = 0; p < HED_POLICY_COUNT; p++) {
        struct world w;

        make_world(&w, hed_policies[p].name, 0);
        ask_policy(&w);
        make_world(&w, hed_policies[p].name, 2);
        w.scene.working = 0;
        hed_policies[p].policy->decide(&w.scene);
    }
    assert_int_equal(hed_policy_find("nothing"), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(priority_holds_the_low_while_the_high_works_and_a_moment_longer),
    cmocka_unit_test(priority_leaves_equals_alone),
    cmocka_unit_test(priority_bounds_the_wait_of_the_high),
    cmocka_unit_test(a_periodic_client_finds_the_gpu_free),
    cmocka_unit_test(a_client_without_a_period_is_not_waited_for),
    cmocka_unit_test(a_period_outlasts_a_late_client),
    cmocka_unit_test(long_work_runs_beside_a_frequent_client),
    cmocka_unit_test(fair_gives_the_shares_that_were_asked_for),
    cmocka_unit_test(fair_does_not_save_up_idle_time),
    cmocka_unit_test(fair_leaves_the_gpu_to_clients_with_work),
    cmocka_unit_test(fair_shares_survive_short_gaps),
    cmocka_unit_test(fair_does_not_punish_a_client_for_working_alone),
    cmocka_unit_test(slice_rotates),
    cmocka_unit_test(fifo_serves_in_the_order_of_arrival),
    cmocka_unit_test(deadline_serves_the_earliest_first),
    cmocka_unit_test(deadlines_are_met_if_there_is_time),
    cmocka_unit_test(batch_releases_by_number_time_or_sync),
    cmocka_unit_test(no_client_starves),
    cmocka_unit_test(policies_recover_from_nonsense),
    cmocka_unit_test(the_same_scene_gives_the_same_verdicts),
    cmocka_unit_test(an_empty_scene_does_no_harm),
};

HED_UNIT_MAIN(tests)
