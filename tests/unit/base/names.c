/* Tests of base/names, and of the order that its searches need in the generated tables. */
#include "harness/unit.h"

#include "base/names.h"
#include "gen/cuda_abi.h"
#include "gen/cuda_names.h"
#include "gen/nvml_names.h"

static const struct hed_enum_value colours[] = {
    {-7, "INFRARED", NULL},
    {0, "RED", "hot"},
    {5, "BLUE", NULL},
};
static const struct hed_enum_value one[] = {{3, "ONLY", NULL}};
static const struct hed_enum table[] = {
    {"colours", colours, 3},
    {"none", NULL, 0},
    {"one", one, 1},
};

static void
values_are_found_by_number(void **state)
{
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(hed_enum_find(&table[0], colours[i].value), &colours[i]);
    assert_null(hed_enum_find(&table[0], 1));
    assert_null(hed_enum_find(&table[0], INT32_MIN));
    assert_null(hed_enum_find(&table[0], INT32_MAX));
    assert_null(hed_enum_find(&table[1], 0));
    assert_ptr_equal(hed_enum_find(&table[2], 3), one);
}

static void
values_are_found_by_name(void **state)
{
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(hed_enum_find_name(&table[0], colours[i].name), &colours[i]);
    assert_null(hed_enum_find_name(&table[0], "red"));
    assert_null(hed_enum_find_name(&table[0], ""));
    assert_null(hed_enum_find_name(&table[1], "RED"));
}

static void
enums_are_found_by_name(void **state)
{
    for (size_t i = 0; i < 3; i++)
        assert_ptr_equal(hed_enums_find(table, 3, table[i].name), &table[i]);
    assert_null(hed_enums_find(table, 3, "a"));
    assert_null(hed_enums_find(table, 3, "ones"));
    assert_null(hed_enums_find(table, 3, "zzz"));
    assert_null(hed_enums_find(table, 0, "one"));
}

static void
check_tables(const struct hed_enum *enums, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct hed_enum *e = &enums[i];

        assert_ptr_equal(hed_enums_find(enums, count, e->name), e);
        assert_true(e->count > 0);
        for (size_t j = 0; j < e->count; j++) {
            assert_ptr_equal(hed_enum_find(e, e->values[j].value), &e->values[j]);
            assert_ptr_equal(hed_enum_find_name(e, e->values[j].name), &e->values[j]);
        }
    }
}

static void
generated_tables_are_sorted(void **state)
{
    assert_true(hed_cuda_enum_count > 100);
    assert_true(hed_nvml_enum_count >= 50);
    check_tables(hed_cuda_enums, hed_cuda_enum_count);
    check_tables(hed_nvml_enums, hed_nvml_enum_count);
}

static void
cuda_results_have_texts(void **state)
{
    const struct hed_enum *e = hed_enums_find(hed_cuda_enums, hed_cuda_enum_count, "CUresult");

    assert_non_null(e);
    assert_string_equal(hed_enum_find(e, CUDA_SUCCESS)->text, "no error");
    assert_string_equal(hed_enum_find(e, CUDA_ERROR_OUT_OF_MEMORY)->name,
                        "CUDA_ERROR_OUT_OF_MEMORY");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_are_found_by_number), cmocka_unit_test(values_are_found_by_name),
    cmocka_unit_test(enums_are_found_by_name),    cmocka_unit_test(generated_tables_are_sorted),
    cmocka_unit_test(cuda_results_have_texts),
};

HED_UNIT_MAIN(tests)
