/* Tests of fatbin/fatbin and fatbin/unpack, with files that nvcc made and with damaged ones. */
#include "unit/fatbin/make.h"

static struct hed_arena arena;

static int
setup(void **state)
{
    hed_arena_init(&arena, 1 << 20);
    return 0;
}

static int
teardown(void **state)
{
    hed_arena_fini(&arena);
    return 0;
}

static void
entries_are_those_of_nvcc(void **state)
{
    static const struct {
        uint16_t kind;
        const char *arch;
        uint64_t size;
    } rows[] = {{HED_FATBIN_CUBIN, "sm_75", 6048},    {HED_FATBIN_PTX, "compute_75", 1907},
                {HED_FATBIN_CUBIN, "sm_90", 7384},    {HED_FATBIN_CUBIN, "sm_90a", 7384},
                {HED_FATBIN_CUBIN, "sm_100f", 11440}, {HED_FATBIN_PTX, "compute_100f", 1939}};
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    char arch[HED_ARCH_TEXT];

    assert_int_equal(hed_fatbin_walk(fixture("fatbin/many"), &w, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(hed_fatbin_next(&w, &e, NULL), 1);
        assert_int_equal(e.kind, rows[i].kind);
        assert_string_equal(hed_fatbin_arch_text(&e, arch), rows[i].arch);
        assert_int_equal(e.size, rows[i].size);
        assert_int_equal(e.packing, HED_PACKING_ZSTD);
        assert_int_equal(e.flags & (HED_FATBIN_64BIT | HED_FATBIN_LINUX | HED_FATBIN_WINDOWS),
                         HED_FATBIN_64BIT | HED_FATBIN_LINUX);
    }
    assert_int_equal(hed_fatbin_next(&w, &e, NULL), 0);
    assert_int_equal(hed_fatbin_next(&w, &e, NULL), 0);
}

static void
options_and_source_are_read(void **state)
{
    const struct hed_bytes b = fixture("fatbin/parts");
    const struct hed_fatbin_entry cubin = entry_of(b, 0);
    const struct hed_fatbin_entry ptx = entry_of(b, 1);

    assert_true(says(cubin.name, "k.cu"));
    assert_int_equal(cubin.options.size, 0);
    assert_true(says(ptx.name, "k.cu"));
    assert_true(says(ptx.options, "--compile-only  --generate-line-info "));
    assert_int_equal(ptx.major, 9);
    assert_int_equal(ptx.minor, 0);
}

static void
compat_records_follow_the_options(void **state)
{
    const struct hed_fatbin_entry e = entry_of(fixture("fatbin/many"), 4);

    assert_true(e.flags & HED_FATBIN_COMPAT);
    assert_int_equal(e.options.size, 0);
    assert_true(e.compat.size >= 4);
    assert_int_equal(e.compat.data[1], 9);
}

/* The same kernels with every kind of compression. */
static void
all_packings_unpack_to_the_same(void **state)
{
    const struct hed_fatbin_entry plain = entry_of(fixture("fatbin/plain"), 0);
    const struct hed_fatbin_entry lz4 = entry_of(fixture("fatbin/lz4"), 1);
    const struct hed_fatbin_entry cubin = entry_of(fixture("fatbin/lz4"), 0);
    const struct hed_fatbin_entry zstd = entry_of(fixture("fatbin/many"), 2);
    struct hed_bytes a, b;

    if (!hed_fatbin_can_unpack(HED_PACKING_LZ4) || !hed_fatbin_can_unpack(HED_PACKING_ZSTD))
        skip();
    assert_int_equal(plain.packing, HED_PACKING_NONE);
    assert_int_equal(lz4.packing, HED_PACKING_LZ4);
    assert_int_equal(hed_fatbin_image(&plain, &arena, &a, NULL), 0);
    assert_int_equal(hed_fatbin_image(&lz4, &arena, &b, NULL), 0);
    /* Without the NUL that is stored behind it. */
    assert_int_equal(a.size, 1906);
    assert_int_equal(b.size, 1906);
    assert_memory_equal(a.data, b.data, a.size);
    assert_int_equal(a.data[a.size - 1], '\n');
    assert_ptr_equal(a.data, plain.stored.data);

    assert_int_equal(hed_fatbin_image(&cubin, &arena, &a, NULL), 0);
    assert_int_equal(hed_fatbin_image(&zstd, &arena, &b, NULL), 0);
    assert_int_equal(a.size, 7384);
    assert_int_equal(b.size, 7384);
    assert_memory_equal(a.data, b.data, a.size);
    b = fixture("cubin/sm_90");
    assert_int_equal(b.size, 7384);
    assert_memory_equal(a.data, b.data, a.size);
}

static void
a_buffer_that_is_too_small_is_refused(void **state)
{
    static const struct {
        const char *file;
        int entry;
    } rows[] = {{"fatbin/plain", 0}, {"fatbin/lz4", 0}, {"fatbin/many", 0}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hed_fatbin_entry e = entry_of(fixture(rows[i].file), rows[i].entry);
        uint8_t out[1000];
        size_t size = 77;
        struct hed_why why;
        const int err = hed_fatbin_unpack(&e, out, sizeof out, &size, &why);

        if (!hed_fatbin_can_unpack(e.packing)) {
            assert_int_equal(err, HED_ENOTSUP);
            assert_non_null(strstr(why.text, hed_fatbin_packing_name(e.packing)));
            continue;
        }
        assert_int_equal(err, HED_ELIMIT);
        assert_int_equal(size, 77);
    }
}

static void
a_claimed_size_above_the_ceiling_is_refused(void **state)
{
    const struct hed_fatbin_entry e = entry_of(fixture("fatbin/bomb"), 0);
    struct hed_bytes b;
    struct hed_why why;

    if (!hed_fatbin_can_unpack(HED_PACKING_ZSTD))
        skip();
    assert_int_equal(hed_fatbin_image(&e, &arena, &b, &why), HED_ELIMIT);
    assert_non_null(strstr(why.text, "over the limit"));
    assert_int_equal(arena.used, 0);
}

static void
a_claimed_size_that_is_too_small_is_corrected(void **state)
{
    const struct hed_fatbin_entry e = entry_of(fixture("fatbin/modest"), 0);
    struct hed_bytes b;

    if (!hed_fatbin_can_unpack(HED_PACKING_LZ4))
        skip();
    assert_int_equal(e.size, 13);
    assert_int_equal(hed_fatbin_image(&e, &arena, &b, NULL), 0);
    assert_true(says(b, "aaaaaaaaaaaaaaaaaaaaabcdef"));
}

static void
images_that_cannot_be_unpacked_say_why(void **state)
{
    static const struct {
        int err;
        const char *text;
    } rows[] = {{HED_EFORMAT, "not LZ4"},
                {HED_EFORMAT, "not zstd"},
                {HED_ENOTSUP, "in an unknown way"},
                {HED_ENOTSUP, "only NVIDIA's"}};
    struct hed_bytes b;
    struct hed_why why;

    for (int i = 0; i < 4; i++) {
        const struct hed_fatbin_entry e = entry_of(fixture("fatbin/noise"), i);
        const bool packing = i < 2 && !hed_fatbin_can_unpack(e.packing);

        assert_int_equal(hed_fatbin_image(&e, &arena, &b, &why),
                         packing ? HED_ENOTSUP : rows[i].err);
        assert_non_null(strstr(why.text, packing ? "built without" : rows[i].text));
    }
}

static void
damage_ends_the_walk(void **state)
{
    static const struct {
        const char *file;
        int entries;
        int err;
    } rows[] = {
        {"fatbin/empty", 0, 0},
        {"fatbin/cut", 0, HED_ETRUNC},
        {"fatbin/longer", 1, HED_ETRUNC},
        {"fatbin/unknown", 2, 0},
        {"fatbin/packed_over", 0, HED_EFORMAT},
        {"fatbin/header_over", 0, HED_ETRUNC},
        {"fatbin/header_under", 0, HED_EFORMAT},
        {"fatbin/stored_over", 0, HED_ETRUNC},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hed_fatbin_walk w;
        struct hed_fatbin_entry e;
        struct hed_why why = {""};
        int n = 0, r;

        assert_int_equal(hed_fatbin_walk(fixture(rows[i].file), &w, NULL), 0);
        while ((r = hed_fatbin_next(&w, &e, &why)) > 0)
            n++;
        assert_int_equal(n, rows[i].entries);
        assert_int_equal(r, rows[i].err);
        assert_true(r == 0 || why.text[0]);
        assert_int_equal(hed_fatbin_next(&w, &e, NULL), rows[i].err);
    }
}

static void
only_fat_binaries_are_walked(void **state)
{
    struct hed_fatbin_walk w;

    assert_int_equal(hed_fatbin_walk(fixture("fatbin/version"), &w, NULL), HED_EVERSION);
    assert_int_equal(hed_fatbin_walk(fixture("cubin/sm_90"), &w, NULL), HED_EFORMAT);
    assert_int_equal(hed_fatbin_walk((struct hed_bytes){NULL, 0}, &w, NULL), HED_ETRUNC);
}

static void
kinds_without_a_name_have_a_number(void **state)
{
    const struct hed_fatbin_entry e = entry_of(fixture("fatbin/unknown"), 0);

    assert_int_equal(e.kind, 64);
    assert_null(hed_fatbin_kind_name(e.kind));
    assert_string_equal(hed_fatbin_kind_name(HED_FATBIN_LTO), "lto");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(entries_are_those_of_nvcc),
    cmocka_unit_test(options_and_source_are_read),
    cmocka_unit_test(compat_records_follow_the_options),
    cmocka_unit_test_setup_teardown(all_packings_unpack_to_the_same, setup, teardown),
    cmocka_unit_test(a_buffer_that_is_too_small_is_refused),
    cmocka_unit_test_setup_teardown(a_claimed_size_above_the_ceiling_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(a_claimed_size_that_is_too_small_is_corrected, setup, teardown),
    cmocka_unit_test_setup_teardown(images_that_cannot_be_unpacked_say_why, setup, teardown),
    cmocka_unit_test(damage_ends_the_walk),
    cmocka_unit_test(only_fat_binaries_are_walked),
    cmocka_unit_test(kinds_without_a_name_have_a_number),
};

HED_UNIT_MAIN(tests)
