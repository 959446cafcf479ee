/* Tests of fatbin/imports: functions that code calls and does not contain. */
#include "kernel/fatbin/imports.h"
#include "unit/fatbin/make.h"

static bool
in_text(const char *text)
{
    return hed_ptx_imports((struct hed_bytes){(const uint8_t *)text, strlen(text)}, "malloc");
}

static void
a_name_in_ptx_is_found_as_a_word(void **state)
{
    assert_true(in_text(".extern .func (.param .b64 func_retval0) malloc\n("));
    assert_true(in_text("call.uni (retval0),\n\tmalloc,\n\t(param0);"));
    assert_true(in_text("malloc"));
    assert_false(in_text(".func my_malloc;"));
    assert_false(in_text(".param .b64 malloc_param_0"));
    assert_false(in_text(""));
}

static void
entries_of_a_fat_binary_are_searched(void **state)
{
    struct make m;

    make_begin(&m);
    make_ptx(&m, 80, ".entry k() {}");
    assert_false(hed_image_imports(made(&m), "malloc"));
    make_ptx(&m, 90, ".extern .func malloc;");
    assert_true(hed_image_imports(made(&m), "malloc"));
}

/* Symbols of machine code: those that it has are not imports. */
static void
machine_code_has_undefined_symbols(void **state)
{
    const struct hed_bytes b = fixture("cubin/sm_90");

    assert_false(hed_image_imports(b, "malloc"));
    assert_true(hed_image_imports(b, ".nv.reservedSmem.offset0"));
    for (size_t n = 0; n < b.size; n += 97) /* cut short: nothing is read behind the end */
        (void)hed_image_imports((struct hed_bytes){b.data, n}, "malloc");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_name_in_ptx_is_found_as_a_word),
    cmocka_unit_test(entries_of_a_fat_binary_are_searched),
    cmocka_unit_test(machine_code_has_undefined_symbols),
};

HED_UNIT_MAIN(tests)
