/* Tests of core/errors: names and texts of API results. */
#include "harness/unit.h"

#include "base/err.h"
#include "core/errors.h"

static void
cuda_names_and_texts(void **state)
{
    const char *s = NULL;

    assert_int_equal(hed_cuda_error_name(CUDA_SUCCESS, &s), CUDA_SUCCESS);
    assert_string_equal(s, "CUDA_SUCCESS");
    assert_int_equal(hed_cuda_error_text(CUDA_SUCCESS, &s), CUDA_SUCCESS);
    assert_string_equal(s, "no error");
    assert_int_equal(hed_cuda_error_name(CUDA_ERROR_UNKNOWN, &s), CUDA_SUCCESS);
    assert_string_equal(s, "CUDA_ERROR_UNKNOWN");
}

/* "If the error code is not recognized, CUDA_ERROR_INVALID_VALUE will be returned and *pStr will be
 * set to the NULL address." (CUDA Driver API, Error Handling) */
static void
unknown_cuda_errors_give_null(void **state)
{
    const int unknown[] = {-1, 12345, INT32_MAX, INT32_MIN};

    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        const char *s = "x";
        CUresult error;

        /* Not a constant of the enum: the application's bits. */
        memcpy(&error, &unknown[i], sizeof error);
        assert_int_equal(hed_cuda_error_name(error, &s), CUDA_ERROR_INVALID_VALUE);
        assert_null(s);
        s = "x";
        assert_int_equal(hed_cuda_error_text(error, &s), CUDA_ERROR_INVALID_VALUE);
        assert_null(s);
    }
}

static void
a_null_pointer_for_the_text_is_refused(void **state)
{
    assert_int_equal(hed_cuda_error_name(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(hed_cuda_error_text(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void
nvml_text_is_never_null(void **state)
{
    for (int i = -3; i < 1100; i++) {
        nvmlReturn_t error;

        memcpy(&error, &i, sizeof error);
        assert_non_null(hed_nvml_error_text(error));
        assert_true(*hed_nvml_error_text(error) != 0);
    }
}

static void
errors_are_parsed(void **state)
{
    CUresult cuda = CUDA_SUCCESS;
    nvmlReturn_t nvml = NVML_SUCCESS;

    assert_int_equal(hed_cuda_error_parse("CUDA_ERROR_OUT_OF_MEMORY", &cuda), 0);
    assert_int_equal(cuda, 2);
    assert_int_equal(hed_cuda_error_parse("700", &cuda), 0);
    assert_int_equal(cuda, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(hed_nvml_error_parse("NVML_ERROR_UNKNOWN", &nvml), 0);
    assert_int_equal(nvml, 999);
    assert_int_equal(hed_nvml_error_parse("2", &nvml), 0);
    assert_int_equal(nvml, NVML_ERROR_INVALID_ARGUMENT);
}

static void
words_that_are_no_error_are_not_found(void **state)
{
    static const char *const bad[] = {
        "", "cuda_error_unknown", "CUDA_ERROR", "-1", "12345", "99999999999", "4294967296", "2 ",
    };
    CUresult cuda = CUDA_ERROR_ASSERT;
    nvmlReturn_t nvml = NVML_ERROR_UNKNOWN;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(hed_cuda_error_parse(bad[i], &cuda), HED_ENOTFOUND);
        assert_int_equal(hed_nvml_error_parse(bad[i], &nvml), HED_ENOTFOUND);
    }
    assert_int_equal(hed_nvml_error_parse("CUDA_ERROR_ASSERT", &nvml), HED_ENOTFOUND);
    assert_int_equal(cuda, CUDA_ERROR_ASSERT);
    assert_int_equal(nvml, NVML_ERROR_UNKNOWN);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cuda_names_and_texts),
    cmocka_unit_test(unknown_cuda_errors_give_null),
    cmocka_unit_test(a_null_pointer_for_the_text_is_refused),
    cmocka_unit_test(nvml_text_is_never_null),
    cmocka_unit_test(errors_are_parsed),
    cmocka_unit_test(words_that_are_no_error_are_not_found),
};

HED_UNIT_MAIN(tests)
