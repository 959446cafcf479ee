/* Tests of swapping: which program is sent out of device memory, and what the shared memory says
 * about it. Clients of one process stand for processes: the tests change their numbers. */
#include "unit/sched/make.h"

#include "share/sched/swap.h"

#define OWN 1000 /* the process that needs memory */

static struct client *
process(int32_t pid, const char *settings)
{
    struct client *c = client(settings);

    atomic_store(&gate_of(c)->slot->pid, pid);
    return c;
}

static int32_t
pick(struct client *c, int32_t except)
{
    struct hed_sched_tried tried = {.count = 0};

    if (except)
        hed_sched_tried_add(&tried, except);
    return hed_sched_pick_victim(gate_of(c)->meet, &tried);
}

static struct hed_sched_slot *
slot_of(struct client *c)
{
    return gate_of(c)->slot;
}

static void
only_strictly_lower_ones_that_agree(void **state)
{
    struct client *own = process(OWN, "prio=normal,swap=on");
    struct client *equal = process(1, "prio=normal,swap=on");
    struct client *higher = process(2, "prio=high,swap=on");
    struct client *unwilling = process(3, "prio=low");

    assert_int_equal(pick(own, 0), 0);

    struct client *lower = process(4, "prio=low,swap=on");

    assert_int_equal(pick(own, 0), 4);
    assert_int_equal(pick(own, 4), 0);
    assert_int_equal(pick(lower, 0), 0);
    atomic_store(&slot_of(unwilling)->swap, 1);
    assert_int_equal(pick(own, 4), 3);
    discard(lower);
    assert_int_equal(pick(own, 3), 0); /* the dead are not asked */
    discard(own);
    discard(equal);
    discard(higher);
    discard(unwilling);
}

static void
the_lowest_then_the_paused_then_the_idle(void **state)
{
    struct client *own = process(OWN, "prio=high,swap=on");
    struct client *normal = process(1, "prio=normal,swap=on");
    struct client *working = process(2, "prio=low,swap=on");
    struct client *idle = process(3, "prio=low,swap=on");
    struct client *paused = process(4, "prio=low,swap=on");
    const int32_t order[] = {4, 3, 2, 1};
    struct hed_sched_tried tried = {.count = 0};

    atomic_store(&slot_of(normal)->paused, 1);
    atomic_store(&slot_of(working)->working, 1);
    atomic_store(&slot_of(paused)->paused, 1);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        assert_int_equal(hed_sched_pick_victim(gate_of(own)->meet, &tried), order[i]);
        hed_sched_tried_add(&tried, order[i]);
    }
    assert_int_equal(hed_sched_pick_victim(gate_of(own)->meet, &tried), 0);
    atomic_store(&slot_of(paused)->out, 1);
    atomic_store(&slot_of(idle)->out, 1);
    assert_int_equal(pick(own, 0), 2);
    assert_int_equal(pick(own, 2), 1); /* those that are out come last */
    discard(own);
    discard(normal);
    discard(working);
    discard(idle);
    discard(paused);
}

static void
all_clients_of_a_process_count(void **state)
{
    struct client *own = process(OWN, "prio=high,swap=on");
    struct client *other = process(OWN, "prio=low,swap=on"); /* of the same process */
    struct client *one = process(1, "prio=low,swap=on");
    struct client *two = process(1, "prio=normal,swap=on");
    struct client *single = process(2, "prio=low,swap=on");

    assert_int_equal(pick(own, 0), 2);
    assert_int_equal(pick(own, 2), 1);
    atomic_store(&slot_of(two)->swap, 0);
    assert_int_equal(pick(own, 2), 0);
    discard(own);
    discard(other);
    discard(one);
    discard(two);
    discard(single);
}

static void
nonsense_in_shared_memory_picks_nobody(void **state)
{
    struct client *own = process(OWN, "prio=high,swap=on");
    struct client *bad = process(-1, "prio=low,swap=on");
    struct hed_sched_tried tried = {.count = 0};

    assert_int_equal(pick(own, 0), 0);
    atomic_store(&slot_of(bad)->pid, 0);
    assert_int_equal(pick(own, 0), 0);
    atomic_store(&slot_of(bad)->pid, 5);
    atomic_store(&slot_of(bad)->priority, UINT32_MAX);
    assert_int_equal(pick(own, 0), 0);
    /* A process that changes its number all the time is not asked for ever. */
    atomic_store(&slot_of(bad)->priority, HED_PRIORITY_LOW);
    for (int32_t i = 1; hed_sched_pick_victim(gate_of(own)->meet, &tried) != 0; i++) {
        assert_true(i <= HED_SCHED_SLOTS);
        hed_sched_tried_add(&tried, atomic_load(&slot_of(bad)->pid));
        atomic_fetch_add(&slot_of(bad)->pid, 1);
    }
    discard(own);
    discard(bad);
}

static void
who_is_out_has_no_work_and_is_counted(void **state)
{
    struct client *a = client("swap=on");
    struct hed_sched_slot *p = slot_of(a);

    launch_kernel(a);
    assert_int_equal(atomic_load(&p->working), 1);
    atomic_store(&p->syncing, 1); /* a thread that waits for the GPU all the while */
    hed_sched_layer.away(a->top, true, 5);
    assert_int_equal(atomic_load(&p->out), 1);
    assert_int_equal(atomic_load(&p->working), 0);
    assert_int_equal(atomic_load(&p->outs), 1);
    assert_int_equal(atomic_load(&p->copy_ns), 5);
    WAIT_UNTIL(hed_sched_out_ns(p, hed_now_ns()) > 0);
    hed_sched_layer.away(a->top, false, 7);
    assert_int_equal(atomic_load(&p->out), 0);
    assert_int_equal(atomic_load(&p->copy_ns), 12);

    const uint64_t out = hed_sched_out_ns(p, hed_now_ns());

    assert_true(out > 0);
    assert_true(out == hed_sched_out_ns(p, hed_now_ns() + HED_NS_PER_S));
    hed_sched_layer.away(a->top, false, 0); /* it was not out */
    assert_int_equal(atomic_load(&p->outs), 1);
    atomic_store(&p->syncing, 0);
    launch_kernel(a);
    discard(a);
}

static void
without_a_victim_there_is_no_memory(void **state)
{
    struct client *a = client("prio=high,swap=on");
    struct client *b = client("prio=low,swap=off");
    CUdeviceptr p = 0;
    struct hed_cuMemAlloc_v2 alloc = {.dptr = &p, .bytesize = 1};

    a->fake.no_memory = true;
    assert_int_equal(a->top->cuda->cuMemAlloc_v2(a->top, &alloc), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(a->fake.allocations, 1); /* it was not tried again */
    a->fake.no_memory = false;
    assert_int_equal(a->top->cuda->cuMemAlloc_v2(a->top, &alloc), CUDA_SUCCESS);
    discard(a);
    discard(b);
}

static void
the_setting(void **state)
{
    struct hed_sched_settings w;
    struct hed_why why;

    assert_int_equal(hed_sched_parse("on", &w, &why), 0);
    assert_false(w.swap);
    assert_int_equal(hed_sched_parse("prio=low,swap=on", &w, &why), 0);
    assert_true(w.swap);
    assert_int_equal(hed_sched_parse("swap=off", &w, &why), 0);
    assert_false(w.swap);
    assert_int_equal(w.given, HED_SCHED_GIVEN_SWAP);
    assert_int_equal(hed_sched_parse_change("swap=on", &w, &why), 0);
    assert_true(w.swap);
    assert_int_equal(hed_sched_parse("swap=yes", &w, &why), HED_EINVAL);
    assert_string_equal(why.text, "sched: swap=yes: there is no such swap; use off or on");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(only_strictly_lower_ones_that_agree, setup, teardown),
    cmocka_unit_test_setup_teardown(the_lowest_then_the_paused_then_the_idle, setup, teardown),
    cmocka_unit_test_setup_teardown(all_clients_of_a_process_count, setup, teardown),
    cmocka_unit_test_setup_teardown(nonsense_in_shared_memory_picks_nobody, setup, teardown),
    cmocka_unit_test_setup_teardown(who_is_out_has_no_work_and_is_counted, setup, teardown),
    cmocka_unit_test_setup_teardown(without_a_victim_there_is_no_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(the_setting, setup, teardown),
};

HED_UNIT_MAIN(tests)
