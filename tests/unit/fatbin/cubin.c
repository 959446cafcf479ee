/* Tests of fatbin/cubin: kernels have the parameters that the source declares. */
#include "unit/fatbin/make.h"

#include "kernel/fatbin/cubin.h"

static struct hed_arena arena;
static struct hed_cubin c;

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
load_cubin(const char *name)
{
    struct hed_why why = {""};

    hed_arena_reset(&arena);
    if (hed_cubin_read(fixture(name), &arena, &c, &why) != 0)
        fail_msg("%s: %s", name, why.text);
}

static const struct hed_cubin_kernel *
kernel(const char *name)
{
    for (uint32_t i = 0; i < c.kernel_count; i++) {
        if (says(c.kernels[i].name, name))
            return &c.kernels[i];
    }
    fail_msg("no kernel %s", name);
    return NULL;
}

static void
check_params(const struct hed_cubin_kernel *k, const struct hed_cubin_param *expect, uint32_t n)
{
    assert_int_equal(k->param_count, n);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(k->params[i].offset, expect[i].offset);
        assert_int_equal(k->params[i].size, expect[i].size);
    }
}

/* add(const float *, float *, int, char, double); shared({char, double[3]}, short, float *) */
static void
parameters_lie_where_c_puts_them(void **state)
{
    static const char *const files[] = {"cubin/sm_75", "cubin/sm_90", "cubin/parts"};
    static const struct hed_cubin_param add[] = {{0, 8}, {8, 8}, {16, 4}, {20, 1}, {24, 8}};
    static const struct hed_cubin_param shared[] = {{0, 32}, {32, 2}, {40, 8}};

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        load_cubin(files[i]);
        assert_int_equal(c.kernel_count, 3);
        check_params(kernel("add"), add, 5);
        assert_int_equal(kernel("add")->param_bytes, 32);
        check_params(kernel("shared"), shared, 3);
        assert_int_equal(kernel("shared")->param_bytes, 48);
        check_params(kernel("empty"), NULL, 0);
    }
}

/* Kernels with more than 4 KiB of parameters have entries of another form. */
static void
large_parameters_are_read(void **state)
{
    static const struct hed_cubin_param large[] = {{0, 1}, {4, 4400}, {4408, 8}};

    load_cubin("cubin/sm_90a");
    assert_int_equal(c.kernel_count, 1);
    check_params(kernel("large"), large, 3);
    assert_int_equal(kernel("large")->param_bytes, 4416);
}

static void
parameters_begin_where_the_architecture_says(void **state)
{
    load_cubin("cubin/sm_75");
    assert_int_equal(kernel("add")->param_bank, 0x160);
    load_cubin("cubin/sm_90");
    assert_int_equal(kernel("add")->param_bank, 0x210);
    assert_int_equal(kernel("add")->constant, 0x210 + 32);
}

/* float t[64]. What sm_90 reserves for the system is separate, and only in linked code. */
static void
shared_memory_is_as_declared(void **state)
{
    static const struct {
        const char *file;
        bool linked;
        uint64_t reserved;
    } rows[] = {{"cubin/sm_75", true, 0}, {"cubin/sm_90", true, 1024}, {"cubin/parts", false, 0}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        load_cubin(rows[i].file);
        assert_int_equal(c.linked, rows[i].linked);
        assert_int_equal(kernel("shared")->shared, 256);
        assert_int_equal(kernel("shared")->reserved, rows[i].reserved);
        assert_int_equal(kernel("add")->shared, 0);
    }
}

/* The numbers come from cuobjdump -res-usage. */
static void
registers_bounds_and_barriers_are_read(void **state)
{
    load_cubin("cubin/sm_90");
    assert_int_equal(kernel("add")->registers, 12);
    assert_int_equal(kernel("shared")->registers, 12);
    assert_int_equal(kernel("empty")->registers, 4);
    assert_int_equal(kernel("shared")->max_threads[0], 128);
    assert_int_equal(kernel("shared")->max_threads[1], 1);
    assert_int_equal(kernel("shared")->barriers, 1);
    assert_int_equal(kernel("add")->max_threads[0], 0);
    assert_int_equal(c.api, 130);
}

static void
architecture_and_suffix_are_read(void **state)
{
    static const struct {
        const char *file;
        uint32_t number;
        char suffix;
    } rows[] = {{"cubin/sm_75", 75, 0}, {"cubin/sm_90", 90, 0}, {"cubin/sm_90a", 90, 'a'}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hed_arch a;

        assert_int_equal(hed_cubin_arch(fixture(rows[i].file), &a, NULL), 0);
        assert_int_equal(a.number, rows[i].number);
        assert_int_equal(a.suffix, rows[i].suffix);
    }
}

static void
other_files_are_refused(void **state)
{
    struct hed_why why;

    assert_int_equal(hed_cubin_read(fixture("cubin/cut"), &arena, &c, &why), HED_ETRUNC);
    assert_int_equal(hed_cubin_read(fixture("cubin/host"), &arena, &c, &why), HED_ENOTSUP);
    assert_int_equal(hed_cubin_read(fixture("fatbin/many"), &arena, &c, &why), HED_EFORMAT);
    assert_false(hed_cubin_begins(fixture("cubin/host")));
    assert_true(hed_cubin_begins(fixture("cubin/sm_75")));
}

static void
memory_is_bounded(void **state)
{
    struct hed_arena small;
    struct hed_why why;

    hed_arena_init(&small, 200);
    assert_int_equal(hed_cubin_read(fixture("cubin/sm_90"), &small, &c, &why), HED_ELIMIT);
    assert_non_null(strstr(why.text, "limit"));
    hed_arena_fini(&small);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(parameters_lie_where_c_puts_them, setup, teardown),
    cmocka_unit_test_setup_teardown(large_parameters_are_read, setup, teardown),
    cmocka_unit_test_setup_teardown(parameters_begin_where_the_architecture_says, setup, teardown),
    cmocka_unit_test_setup_teardown(shared_memory_is_as_declared, setup, teardown),
    cmocka_unit_test_setup_teardown(registers_bounds_and_barriers_are_read, setup, teardown),
    cmocka_unit_test(architecture_and_suffix_are_read),
    cmocka_unit_test_setup_teardown(other_files_are_refused, setup, teardown),
    cmocka_unit_test(memory_is_bounded),
};

HED_UNIT_MAIN(tests)
