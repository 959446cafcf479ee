/* The table of what memory a worker has. */
#include "remote/client/memory.h"

#include <stdlib.h>

#include "base/err.h"
#include "harness/unit.h"

#define UNIT ((uint64_t)2 << 20)

static struct hed_remote remote;

static int
setup(void **state)
{
    (void)state;
    remote = (struct hed_remote){.memory = calloc(1, sizeof *remote.memory)};
    if (!remote.memory)
        return -1;
    hed_lock_init(&remote.memory->lock, HED_RANK_LEASE);
    return 0;
}

static int
forget(void *arg, const struct hed_remote_mapping *m)
{
    (void)hed_remote_mapping_remove(arg, m->kind,
                                    m->kind == HED_MAP_PHYSICAL ? m->physical : m->at);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    (void)hed_remote_mappings_each(&remote, HED_MAP_DEVICE, forget, &remote);
    (void)hed_remote_mappings_each(&remote, HED_MAP_PHYSICAL, forget, &remote);
    free(remote.memory);
    return 0;
}

static void
enter(enum hed_map_kind kind, uint64_t key, uint64_t size)
{
    const struct hed_remote_mapping m = {.kind = kind,
                                         .at = kind == HED_MAP_PHYSICAL ? 0 : key,
                                         .physical = kind == HED_MAP_PHYSICAL ? key : 0,
                                         .size = size};

    assert_int_equal(hed_remote_mapping_add(&remote, &m), 0);
}

static void
has_says_whether_it_is_there_with_that_size(void **state)
{
    (void)state;
    enter(HED_MAP_DEVICE, 8 * UNIT, 2 * UNIT);
    assert_true(hed_remote_mapping_has(&remote, HED_MAP_DEVICE, 8 * UNIT, 2 * UNIT));
    assert_false(hed_remote_mapping_has(&remote, HED_MAP_DEVICE, 8 * UNIT, UNIT));
    assert_false(hed_remote_mapping_has(&remote, HED_MAP_DEVICE, 9 * UNIT, UNIT));
    assert_false(hed_remote_mapping_has(&remote, HED_MAP_HOST, 8 * UNIT, 2 * UNIT));
    assert_true(hed_remote_mapping_remove(&remote, HED_MAP_DEVICE, 8 * UNIT));
    assert_false(hed_remote_mapping_has(&remote, HED_MAP_DEVICE, 8 * UNIT, 2 * UNIT));
}

static void
has_finds_physical_memory_by_its_number(void **state)
{
    (void)state;
    enter(HED_MAP_PHYSICAL, 3, UNIT);
    assert_true(hed_remote_mapping_has(&remote, HED_MAP_PHYSICAL, 3, UNIT));
    assert_false(hed_remote_mapping_has(&remote, HED_MAP_PHYSICAL, 4, UNIT));
}

static void
has_finds_one_of_many(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3 * HED_MAPPING_BUCKETS; i++) /* several in each place */
        enter(HED_MAP_DEVICE, i * UNIT, UNIT);
    for (uint64_t i = 0; i < 3 * HED_MAPPING_BUCKETS; i++)
        assert_true(hed_remote_mapping_has(&remote, HED_MAP_DEVICE, i * UNIT, UNIT));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(has_says_whether_it_is_there_with_that_size, setup, teardown),
    cmocka_unit_test_setup_teardown(has_finds_physical_memory_by_its_number, setup, teardown),
    cmocka_unit_test_setup_teardown(has_finds_one_of_many, setup, teardown),
};

HED_UNIT_MAIN(tests)
