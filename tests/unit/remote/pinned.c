/* Pinned memory at a standby: what it is told, and when. */
#include "remote/client/memory.h"

#include <stdlib.h>

#include "base/err.h"
#include "harness/unit.h"
#include "move/session/standby.h"

#define UNIT ((uint64_t)2 << 20)

static struct hed_remote program;
static struct hed_remote_standby standby;
static unsigned mapped, unmapped;
static unsigned pending; /* what the standby was told, without an answer */
static bool refuses;

/* ---- stand-ins for memory.c ------------------------------------------------------------------ */

int
hed_remote_map_at_standby(struct hed_remote *r, const struct hed_remote_mapping *m)
{
    if (refuses)
        return HED_ENOMEM;
    mapped++;
    return hed_remote_mapping_add(r, m);
}

void
hed_remote_unmap_at_standby(struct hed_remote *r, uint64_t at, uint64_t size)
{
    (void)size;
    unmapped++;
    pending++;
    assert_true(hed_remote_mapping_remove(r, HED_MAP_HOST, at));
}

void
hed_remote_look(struct hed_remote *r)
{
    (void)r;
    pending = 0;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static int
make_memory(struct hed_remote *r)
{
    r->memory = calloc(1, sizeof *r->memory);
    if (!r->memory)
        return -1;
    hed_lock_init(&r->memory->lock, HED_RANK_LEASE);
    return 0;
}

static int
setup(void **state)
{
    (void)state;
    program = (struct hed_remote){.heap = 3};
    standby =
        (struct hed_remote_standby){.of = &program, .offered = 100 * UNIT, .offered_size = UNIT};
    mapped = unmapped = pending = 0;
    refuses = false;
    return make_memory(&program) || make_memory(&standby.remote) ? -1 : 0;
}

static int
forget(void *arg, const struct hed_remote_mapping *m)
{
    (void)hed_remote_mapping_remove(arg, m->kind, m->at);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    (void)hed_remote_mappings_each(&program, HED_MAP_HOST, forget, &program);
    (void)hed_remote_mappings_each(&standby.remote, HED_MAP_HOST, forget, &standby.remote);
    free(program.memory);
    free(standby.remote.memory);
    return 0;
}

static void
pin(uint64_t at, uint64_t size)
{
    const struct hed_remote_mapping m = {
        .kind = HED_MAP_HOST, .device = -1, .at = at, .size = size};

    assert_int_equal(hed_remote_mapping_add(&program, &m), 0);
}

static void
unpin(uint64_t at)
{
    assert_true(hed_remote_mapping_remove(&program, HED_MAP_HOST, at));
}

static void
standby_gets_pinned_memory_once(void **state)
{
    (void)state;
    pin(8 * UNIT, UNIT);
    pin(100 * UNIT, UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    assert_int_equal(mapped, 2);
    assert_true(standby.shared);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, true), 0);
    assert_int_equal(mapped, 2);
    assert_int_equal(unmapped, 0);
}

static void
nothing_is_unmapped_while_the_program_runs(void **state)
{
    (void)state;
    pin(8 * UNIT, UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    unpin(8 * UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    assert_int_equal(unmapped, 0);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, true), 0);
    assert_int_equal(unmapped, 1);
    assert_int_equal(pending, 0);
}

/* A device has the pages of the memory that was there before. */
static void
memory_made_again_makes_the_standby_useless(void **state)
{
    (void)state;
    pin(8 * UNIT, UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    unpin(8 * UNIT);
    pin(8 * UNIT, UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    assert_int_equal(mapped, 1);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, true), HED_EEXIST);
    assert_int_equal(unmapped, 0);
}

static void
larger_memory_over_old_memory_makes_the_standby_useless(void **state)
{
    (void)state;
    pin(9 * UNIT, UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    unpin(9 * UNIT);
    pin(8 * UNIT, 4 * UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, true), HED_EEXIST);
    assert_int_equal(unmapped, 0);
}

static void
without_pinned_only_the_offered_memory_goes_early(void **state)
{
    (void)state;
    standby.without_pinned = true;
    pin(8 * UNIT, UNIT);
    pin(100 * UNIT, UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    assert_int_equal(mapped, 1);
    assert_true(standby.shared);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, true), 0);
    assert_int_equal(mapped, 2);
}

static void
refused_memory_is_left_for_later(void **state)
{
    (void)state;
    refuses = true;
    pin(100 * UNIT, UNIT);
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, false), 0);
    assert_false(standby.shared);
    refuses = false;
    assert_int_equal(hed_remote_standby_adjust_pinned(&standby, true), 0);
    assert_int_equal(mapped, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(standby_gets_pinned_memory_once, setup, teardown),
    cmocka_unit_test_setup_teardown(nothing_is_unmapped_while_the_program_runs, setup, teardown),
    cmocka_unit_test_setup_teardown(memory_made_again_makes_the_standby_useless, setup, teardown),
    cmocka_unit_test_setup_teardown(larger_memory_over_old_memory_makes_the_standby_useless, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(without_pinned_only_the_offered_memory_goes_early, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(refused_memory_is_left_for_later, setup, teardown),
};

HED_UNIT_MAIN(tests)
