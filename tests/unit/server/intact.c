/* Tests of server/whole: what a driver would follow out of an image is found. */
#include "server/worker/intact.h"
#include "unit/fatbin/make.h"

static bool
whole(const struct make *m, bool strict)
{
    return hed_image_is_intact(m->data, m->size, strict);
}

#define ENTRY HED_FATBIN_HEADER_SIZE

static void
put(struct make *m, size_t at, uint32_t value)
{
    memcpy(m->data + at, &value, sizeof value);
}

static void
what_compilers_make_is_intact(void **state)
{
    struct make m;

    make_begin(&m);
    assert_true(whole(&m, true));
    make_ptx(&m, 90, ".version 8.0");
    make_ptx(&m, 80, "x");
    assert_true(whole(&m, true));
    assert_true(hed_image_is_intact("text", 4, true));
}

/* Without an offset NVIDIA's driver takes the entry's own first bytes for it. */
static void
options_are_where_they_are_looked_for(void **state)
{
    struct make m;

    make_begin(&m);
    make_ptx(&m, 90, "x");
    put(&m, ENTRY + 0x14, 0);
    assert_false(whole(&m, true));
    assert_true(whole(&m, false));
    put(&m, ENTRY + 0x14, 76); /* over the header's end */
    assert_false(whole(&m, true));
    put(&m, ENTRY + 0x14, HED_FATBIN_ENTRY_SIZE);
    put(&m, ENTRY + HED_FATBIN_ENTRY_SIZE, 0x01010001);
    assert_false(whole(&m, true));
    put(&m, ENTRY + HED_FATBIN_ENTRY_SIZE, HED_FATBIN_ENTRY_SIZE + 8);
    put(&m, ENTRY + HED_FATBIN_ENTRY_SIZE + 4, 9); /* longer than there is room */
    assert_false(whole(&m, true));
    put(&m, ENTRY + HED_FATBIN_ENTRY_SIZE + 4, 0);
    assert_true(whole(&m, true));
    memset(m.data + ENTRY + HED_FATBIN_ENTRY_SIZE + 8, 'x', 8); /* no end */
    assert_false(whole(&m, true));
}

static void
text_has_an_end(void **state)
{
    struct make m;

    make_begin(&m);
    make_ptx(&m, 90, "seven..");
    assert_true(whole(&m, true));
    m.data[m.size - 1] = '.';
    assert_false(whole(&m, true));
    assert_false(whole(&m, false));
    make_begin(&m);
    make_ptx(&m, 90, "x");
    m.data[8]++; /* the fat binary says that it is longer */
    assert_false(whole(&m, true));
}

/* However machine code is cut, it is not whole; and nothing is read behind its end. */
static void
machine_code_is_intact_as_a_whole(void **state)
{
    static const char *const names[] = {"cubin/sm_75", "cubin/sm_90", "cubin/sm_90a",
                                        "cubin/parts"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct hed_bytes b = fixture(names[i]);

        assert_true(hed_image_is_intact(b.data, b.size, true));
        for (size_t n = 64; n < b.size; n += 37) {
            uint8_t *copy = malloc(n);

            memcpy(copy, b.data, n);
            assert_false(hed_image_is_intact(copy, n, true));
            free(copy);
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_compilers_make_is_intact),
    cmocka_unit_test(options_are_where_they_are_looked_for),
    cmocka_unit_test(text_has_an_end),
    cmocka_unit_test(machine_code_is_intact_as_a_whole),
};

HED_UNIT_MAIN(tests)
