/* Tests of looking at who shares a GPU: what is shown, what is not believed, and that somebody who
 * looks has GPU time measured. */
#include "unit/sched/make.h"

#include "base/meeting.h"
#include "core/usage.h"
#include "share/share.h"

static const struct hed_sched_program *
look_at_own(struct hed_sched_scene *s)
{
    struct hed_meeting_folders folders;
    struct hed_why why;
    const struct hed_sched_program *p = NULL;

    hed_sched_scene_free(s);
    assert_int_equal(hed_meeting_open(false, &folders, &why), 0);
    assert_int_equal(hed_sched_look(&folders, s), 0);
    hed_meeting_close(&folders);
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->gpus[i]->scope, scope) == 0)
            p = &s->gpus[i]->programs[0];
    return p;
}

static const struct hed_sched_gpu *
own_gpu(const struct hed_sched_scene *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->gpus[i]->scope, scope) == 0)
            return s->gpus[i];
    fail_msg("the GPU is not there");
    return NULL;
}

static void
a_program_is_shown_with_its_memory(void **state)
{
    struct client *c = client("prio=high,group=g");
    struct hed_sched_scene s = {0};
    const struct hed_sched_program *p = look_at_own(&s);

    assert_non_null(p);
    assert_int_equal(own_gpu(&s)->user, geteuid());
    assert_int_equal(p->pid, getpid());
    assert_int_equal(p->priority, HED_PRIORITY_HIGH);
    assert_string_equal(p->group, "g");
    assert_false(p->memory_known);
    hed_usage_set(0, HED_USAGE_BY_DRIVER, 1000, 0);
    p = look_at_own(&s);
    assert_true(p->memory_known && p->memory_used == 1000 && p->memory_limit == 0);
    hed_usage_set(0, HED_USAGE_BY_LIMIT, 900, 5000); /* it counts what it compares */
    hed_usage_set(0, HED_USAGE_BY_DRIVER, 1100, 0);
    p = look_at_own(&s);
    assert_true(p->memory_used == 900 && p->memory_limit == 5000);
    hed_sched_scene_free(&s);
    discard(c);
}

static void
a_program_that_has_left_is_not_shown(void **state)
{
    struct client *c = client("");
    struct hed_sched_scene s = {0};

    assert_non_null(look_at_own(&s));
    discard(c);
    assert_null(look_at_own(&s));
    hed_sched_scene_free(&s);
}

/* Alone, its gate word is 0 and nobody measures. */
static void
a_look_has_a_lone_program_measured(void **state)
{
    struct client *c = client("");
    struct hed_sched_scene s = {0};
    const struct hed_gate *g = gate_of(c);

    launch_kernel(c);
    WAIT_UNTIL((launch_kernel(c), gate_word(c) == 0));
    assert_false(look_at_own(&s)->measured);

    const uint64_t before = atomic_load(&g->slot->used);

    launch_kernel(c);
    assert_int_equal(atomic_load(&g->slot->used), before);
    assert_int_equal(hed_sched_watch(g->meet, hed_now_ns()), 0);
    WAIT_UNTIL((launch_kernel(c), atomic_load(&g->slot->used) > before));
    assert_true(look_at_own(&s)->measured);
    /* Nobody looks any more. */
    atomic_store(&g->common->watch_until, 0);
    WAIT_UNTIL((launch_kernel(c), gate_word(c) == 0));
    hed_sched_scene_free(&s);
    discard(c);
}

static void
a_look_that_lasts_for_ever_is_nonsense(void **state)
{
    struct client *c = client("");
    const struct hed_gate *g = gate_of(c);

    atomic_store(&g->common->watch_until, UINT64_MAX);
    launch_kernel(c);
    WAIT_UNTIL((launch_kernel(c), gate_word(c) == 0));
    discard(c);
}

static void
waits_are_counted_by_their_length(void **state)
{
    struct client *c = client("");
    struct hed_sched_scene s = {0};
    struct held h;
    uint64_t waits = 0;

    pause_or_release(c, 1, -1);
    start_held(&h, c, 0);
    until_it_waits(c);
    /* A wait that lasts is a part of the time already. */
    WAIT_UNTIL(look_at_own(&s)->waited > 0);
    pause_or_release(c, 0, -1);
    pthread_join(h.thread, NULL);
    for (int i = 0; i < HED_SCHED_WAITS; i++)
        waits += look_at_own(&s)->waits[i];
    assert_int_equal(waits, 1);
    hed_sched_scene_free(&s);
    discard(c);
}

/* Every byte of the common part and of the slot is nonsense, but for the word that says that the
 * slot is filled in. */
static void
nothing_in_the_file_is_believed(void **state)
{
    struct client *c = client("");
    struct hed_gate *g = gate_of(c);
    struct hed_sched_scene s = {0};

    for (int byte = 1; byte < 256; byte += 127) {
        memset((void *)g->common, byte, sizeof *g->common);
        memset((void *)g->slot, byte, sizeof *g->slot);

        const struct hed_sched_program *p = look_at_own(&s);
        const struct hed_sched_gpu *gpu = own_gpu(&s);
        char plain[HED_SCHED_NAME];

        assert_non_null(p);
        assert_true(gpu->policy < HED_POLICY_COUNT);
        assert_true(p->priority <= HED_PRIORITY_HIGH);
        assert_true(strlen(p->name) < HED_SCHED_NAME && strlen(p->group) < HED_SCHED_NAME);
        assert_true(p->in_flight <= HED_SCHED_PATIENCE_NS);
        assert_int_equal(hed_sched_plain(p->name, plain, sizeof plain), HED_SCHED_NAME - 1);
        for (const char *at = plain; *at; at++)
            assert_true(*at >= ' ' && *at <= '~');
        assert_non_null(hed_sched_state_name(hed_sched_state_of(gpu, p, 0)));
    }
    memset((void *)g->common, 0, sizeof *g->common);
    memset((void *)g->slot, 0, sizeof *g->slot);
    hed_sched_scene_free(&s);
    discard(c);
}

static void
only_the_program_that_was_seen_is_changed(void **state)
{
    struct client *c = client("prio=low");
    struct hed_sched_scene s = {0};
    struct hed_sched_program p = *look_at_own(&s);
    const struct hed_sched_gpu *g = own_gpu(&s);
    const struct hed_sched_change high = {
        .settings = {.given = HED_SCHED_GIVEN_PRIORITY, .priority = HED_PRIORITY_HIGH},
        .paused = -1,
        .release = -1,
    };
    struct hed_why why;

    p.pid++;
    assert_int_equal(hed_sched_change_program(g, &p, &high, &why), HED_ENOTFOUND);
    assert_int_equal(atomic_load(&gate_of(c)->slot->priority), HED_PRIORITY_LOW);
    p.pid--;
    assert_int_equal(hed_sched_change_program(g, &p, &high, &why), 0);
    assert_int_equal(atomic_load(&gate_of(c)->slot->priority), HED_PRIORITY_HIGH);
    discard(c);
    assert_int_equal(hed_sched_change_program(g, &p, &high, &why), HED_ENOTFOUND);
    hed_sched_scene_free(&s);
}

static void
names_of_files_are_taken_apart(void **state)
{
    static const char uuid_text[] = "0123456789abcdef0123456789abcdef";
    char file[HED_SCHED_MEET_MAX + 64];
    char uuid[HED_SCHED_UUID_DIGITS + 1];
    char name[HED_SCHED_NAME];

    snprintf(file, sizeof file, "sched-%s", uuid_text);
    assert_true(hed_sched_read_name(file, uuid, name));
    assert_string_equal(uuid, uuid_text);
    assert_string_equal(name, "");
    snprintf(file, sizeof file, "sched-a-b-%s", uuid_text);
    assert_true(hed_sched_read_name(file, uuid, name));
    assert_string_equal(name, "a-b");
    assert_false(hed_sched_read_name("sched-", uuid, name));
    snprintf(file, sizeof file, "sched-x%s", uuid_text);
    assert_false(hed_sched_read_name(file, uuid, name));
    snprintf(file, sizeof file, "sched-%.*s-%s", HED_SCHED_NAME,
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", uuid_text);
    assert_false(hed_sched_read_name(file, uuid, name));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_program_is_shown_with_its_memory, setup, teardown),
    cmocka_unit_test_setup_teardown(a_program_that_has_left_is_not_shown, setup, teardown),
    cmocka_unit_test_setup_teardown(a_look_has_a_lone_program_measured, setup, teardown),
    cmocka_unit_test_setup_teardown(a_look_that_lasts_for_ever_is_nonsense, setup, teardown),
    cmocka_unit_test_setup_teardown(waits_are_counted_by_their_length, setup, teardown),
    cmocka_unit_test_setup_teardown(nothing_in_the_file_is_believed, setup, teardown),
    cmocka_unit_test_setup_teardown(only_the_program_that_was_seen_is_changed, setup, teardown),
    cmocka_unit_test(names_of_files_are_taken_apart),
};

HED_UNIT_MAIN(tests)
