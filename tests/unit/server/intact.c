/* Tests of server/worker/intact: everything is found that would lead a driver out of an image. */
#include "remote/server/worker/intact.h"
#include "unit/fatbin/make.h"

static bool
is_intact(const struct make *m, bool strict)
{
    return hed_image_is_intact(m->data, m->size, strict);
}

#define ENTRY HED_FATBIN_HEADER_SIZE

static void
put_word(struct make *m, size_t at, uint32_t value)
{
    memcpy(m->data + at, &value, sizeof value);
}

static void
what_compilers_make_is_intact(void **state)
{
    struct make m;

    make_begin(&m);
    assert_true(is_intact(&m, true));
    make_ptx(&m, 90, ".version 8.0");
    make_ptx(&m, 80, "x");
    assert_true(is_intact(&m, true));
    assert_true(hed_image_is_intact("text", 4, true));
}

/* Without an offset, NVIDIA's driver takes the first bytes of the entry for it. */
static void
options_are_where_they_are_looked_for(void **state)
{
    struct make m;

    make_begin(&m);
    make_ptx(&m, 90, "x");
    put_word(&m, ENTRY + 0x14, 0);
    assert_false(is_intact(&m, true));
    assert_true(is_intact(&m, false));
    put_word(&m, ENTRY + 0x14, 76); /* beyond the end of the header */
    assert_false(is_intact(&m, true));
    put_word(&m, ENTRY + 0x14, HED_FATBIN_ENTRY_SIZE);
    put_word(&m, ENTRY + HED_FATBIN_ENTRY_SIZE, 0x01010001);
    assert_false(is_intact(&m, true));
    put_word(&m, ENTRY + HED_FATBIN_ENTRY_SIZE, HED_FATBIN_ENTRY_SIZE + 8);
    put_word(&m, ENTRY + HED_FATBIN_ENTRY_SIZE + 4, 9); /* longer than the room for it */
    assert_false(is_intact(&m, true));
    put_word(&m, ENTRY + HED_FATBIN_ENTRY_SIZE + 4, 0);
    assert_true(is_intact(&m, true));
    memset(m.data + ENTRY + HED_FATBIN_ENTRY_SIZE + 8, 'x', 8); /* without an end */
    assert_false(is_intact(&m, true));
}

static void
text_has_an_end(void **state)
{
    struct make m;

    make_begin(&m);
    make_ptx(&m, 90, "seven..");
    assert_true(is_intact(&m, true));
    m.data[m.size - 1] = '.';
    assert_false(is_intact(&m, true));
    assert_false(is_intact(&m, false));
    make_begin(&m);
    make_ptx(&m, 90, "x");
    m.data[8]++; /* the fat binary claims to be longer */
    assert_false(is_intact(&m, true));
}

/* However machine code is truncated, it is not intact, and nothing is read beyond its end. */
static void
truncated_machine_code_is_not_intact(void **state)
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
    cmocka_unit_test(truncated_machine_code_is_not_intact),
};

HED_UNIT_MAIN(tests)
