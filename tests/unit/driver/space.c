/* Device addresses, compared with a plain model: an array with the owner of every unit. */
#include "driver/space.h"

#include <string.h>

#include "base/err.h"
#include "harness/unit.h"

#define UNITS 2048
#define SIZE ((uint64_t)UNITS * HED_SPACE_ALIGN)

static void
blocks_do_not_overlap_and_come_back(void **state)
{
    struct hed_space *s = hed_space_create(HED_SPACE_BASE, SIZE);
    uint64_t a = 0;
    uint64_t b = 0;
    uint64_t c = 0;

    assert_int_equal(hed_space_take(s, 1, 1, &a), 0);
    assert_int_equal(a, HED_SPACE_BASE);
    assert_int_equal(hed_space_take(s, 1000, 1, &b), 0);
    assert_int_equal(b, a + HED_SPACE_ALIGN);
    assert_int_equal(hed_space_used(s), 3 * HED_SPACE_ALIGN);
    assert_int_equal(hed_space_give(s, a), 0);
    assert_int_equal(hed_space_take(s, 1, 1, &c), 0);
    assert_int_equal(c, a); /* the smallest hole that fits */
    assert_int_equal(hed_space_give(s, b), 0);
    assert_int_equal(hed_space_give(s, c), 0);
    assert_int_equal(hed_space_used(s), 0);
    assert_int_equal(hed_space_take(s, SIZE, 1, &a), 0); /* everything is one block again */
    hed_space_free(s);
}

static void
nonsense_is_refused(void **state)
{
    struct hed_space *s = hed_space_create(HED_SPACE_BASE, SIZE);
    uint64_t a = 0;
    uint64_t at;
    uint64_t size;

    assert_int_equal(hed_space_take(s, 0, 1, &a), HED_EINVAL);
    assert_int_equal(hed_space_take(s, 1, 3, &a), HED_EINVAL);
    assert_int_equal(hed_space_take(s, SIZE + 1, 1, &a), HED_ELIMIT);
    assert_int_equal(hed_space_take(s, UINT64_MAX, 1, &a), HED_ELIMIT);
    assert_int_equal(hed_space_take(s, 1, 1ull << 63, &a), HED_ELIMIT);
    assert_int_equal(hed_space_give(s, HED_SPACE_BASE), HED_ENOTFOUND);
    assert_int_equal(hed_space_take_at(s, HED_SPACE_BASE + 1, HED_SPACE_ALIGN), HED_EINVAL);
    assert_int_equal(hed_space_take_at(s, HED_SPACE_BASE - HED_SPACE_ALIGN, HED_SPACE_ALIGN),
                     HED_EEXIST);
    assert_int_equal(hed_space_take_at(s, HED_SPACE_BASE, SIZE + HED_SPACE_ALIGN), HED_EEXIST);
    assert_int_equal(hed_space_take(s, 4096, 1, &a), 0);
    assert_int_equal(hed_space_give(s, a + HED_SPACE_ALIGN), HED_ENOTFOUND);
    assert_true(hed_space_find(s, a + 4095, &at, &size));
    assert_int_equal(at, a);
    assert_int_equal(size, 4096);
    assert_false(hed_space_find(s, a + 4096, &at, &size));
    assert_false(hed_space_find(s, 0, &at, &size));
    hed_space_free(s);
}

static void
alignment_is_kept(void **state)
{
    struct hed_space *s = hed_space_create(HED_SPACE_BASE + HED_SPACE_ALIGN, 64ull << 20);
    uint64_t a = 0;

    for (uint64_t align = 1; align <= 8u << 20; align *= 2) {
        assert_int_equal(hed_space_take(s, 100, align, &a), 0);
        assert_int_equal(a % align, 0);
    }
    hed_space_free(s);
}

/* The model: the owner of every unit, 0 for none. */
static uint16_t owner[UNITS];

static void
check(struct hed_space *s)
{
    uint64_t used = 0;

    for (int i = 0; i < UNITS; i++) {
        uint64_t at = 0;
        uint64_t size = 0;
        const uint64_t address = HED_SPACE_BASE + (uint64_t)i * HED_SPACE_ALIGN;

        used += owner[i] ? HED_SPACE_ALIGN : 0;
        assert_int_equal(hed_space_find(s, address, &at, &size), owner[i] != 0);
        if (owner[i])
            assert_int_equal(owner[(at - HED_SPACE_BASE) / HED_SPACE_ALIGN], owner[i]);
    }
    assert_int_equal(hed_space_used(s), used);
}

static void
random_use_matches_the_model(void **state)
{
    struct hed_space *s = hed_space_create(HED_SPACE_BASE, SIZE);
    uint64_t live[256];
    uint64_t random = 12345;
    size_t count = 0;
    uint16_t name = 0;

    memset(owner, 0, sizeof owner);
    for (int step = 0; step < 4000; step++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;

        const unsigned r = (unsigned)(random >> 33);
        uint64_t at = HED_SPACE_BASE + (uint64_t)(r % UNITS) * HED_SPACE_ALIGN;
        const uint64_t units = 1 + r % 40;
        const bool fixed = r % 5 == 0;

        if (count < 256 && r % 3 != 0 &&
            (fixed ? hed_space_take_at(s, at, units * HED_SPACE_ALIGN)
                   : hed_space_take(s, units * HED_SPACE_ALIGN, 1, &at)) == 0) {
            const uint64_t first = (at - HED_SPACE_BASE) / HED_SPACE_ALIGN;

            name++;
            for (uint64_t i = first; i < first + units; i++) {
                assert_int_equal(owner[i], 0);
                owner[i] = name;
            }
            live[count++] = at;
        } else if (count) {
            const size_t victim = r % count;
            const uint64_t first = (live[victim] - HED_SPACE_BASE) / HED_SPACE_ALIGN;
            const uint16_t whose = owner[first];

            assert_int_equal(hed_space_give(s, live[victim]), 0);
            for (uint64_t i = first; i < UNITS && owner[i] == whose; i++)
                owner[i] = 0;
            live[victim] = live[--count];
        }
        if (step % 64 == 0)
            check(s);
    }
    while (count)
        assert_int_equal(hed_space_give(s, live[--count]), 0);
    assert_int_equal(hed_space_take(s, SIZE, 1, &live[0]), 0);
    hed_space_free(s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(blocks_do_not_overlap_and_come_back),
    cmocka_unit_test(nonsense_is_refused),
    cmocka_unit_test(alignment_is_kept),
    cmocka_unit_test(random_use_matches_the_model),
};

HED_UNIT_MAIN(tests)
