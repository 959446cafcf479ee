/* Tests of fastlibs/arguments: what cuBLAS's arguments mean, and which are left to it. */
#include "harness/unit.h"

#include <math.h>

#include "fastlibs/arguments.h"
#include "fastlibs/cublas.h"

static void
scalars(void **state)
{
    const uint16_t halves[] = {0x0001, 0x03ff, 0x0400, 0x3c00, 0xc000, 0x7bff, 0x7c00, 0x8000};
    const double values[] = {0x1p-24, 1023 * 0x1p-24, 0x1p-14, 1, -2, 65504, INFINITY, 0};
    const float complex_one[] = {1, 2};
    const uint16_t nan = 0x7e00;
    struct hed_product_scalar s;

    (void)state;
    for (unsigned i = 0; i < sizeof halves / sizeof halves[0]; i++) {
        assert_true(hed_argument_scalar(&halves[i], CUDA_R_16F, &s));
        assert_true(s.re == values[i] && s.im == 0);
    }
    assert_true(hed_argument_scalar(&nan, CUDA_R_16F, &s) && isnan(s.re));
    assert_true(hed_argument_scalar(complex_one, CUDA_C_32F, &s) && s.re == 1 && s.im == 2);
    assert_false(hed_argument_scalar(NULL, CUDA_R_32F, &s));
    assert_false(hed_argument_scalar(&nan, CUDA_R_16BF, &s));
}

static void
ways(void **state)
{
    static const int fast[] = {CUBLAS_COMPUTE_32F_FAST_16F, CUBLAS_COMPUTE_32F_FAST_16BF,
                               CUBLAS_COMPUTE_32F_FAST_TF32};
    int scalar = -1;

    (void)state;
    assert_true(
        hed_argument_compute(CUBLAS_COMPUTE_16F, HED_PRODUCT_F16, HED_PRODUCT_F16, &scalar));
    assert_int_equal(scalar, CUDA_R_16F);
    assert_false(
        hed_argument_compute(CUBLAS_COMPUTE_16F, HED_PRODUCT_F16, HED_PRODUCT_F32, &scalar));
    assert_true(
        hed_argument_compute(CUBLAS_COMPUTE_32F, HED_PRODUCT_C32, HED_PRODUCT_C32, &scalar));
    assert_int_equal(scalar, CUDA_C_32F);
    assert_false(
        hed_argument_compute(CUBLAS_COMPUTE_32F, HED_PRODUCT_F64, HED_PRODUCT_F64, &scalar));
    /* Floats may be rounded before they are multiplied; cuBLAS has that for no other type. */
    for (unsigned i = 0; i < sizeof fast / sizeof fast[0]; i++) {
        assert_true(hed_argument_compute(fast[i], HED_PRODUCT_F32, HED_PRODUCT_F32, &scalar));
        assert_int_equal(scalar, CUDA_R_32F);
        assert_true(hed_argument_compute(fast[i], HED_PRODUCT_C32, HED_PRODUCT_C32, &scalar));
        assert_int_equal(scalar, CUDA_C_32F);
        assert_false(hed_argument_compute(fast[i], HED_PRODUCT_F16, HED_PRODUCT_F16, &scalar));
        assert_false(hed_argument_compute(fast[i], HED_PRODUCT_F16, HED_PRODUCT_F32, &scalar));
        assert_false(hed_argument_compute(fast[i], HED_PRODUCT_BF16, HED_PRODUCT_BF16, &scalar));
        assert_false(hed_argument_compute(fast[i], HED_PRODUCT_F64, HED_PRODUCT_F64, &scalar));
    }
    /* One that promises an order of sums. */
    assert_false(
        hed_argument_compute(CUBLAS_COMPUTE_32F + 1, HED_PRODUCT_F32, HED_PRODUCT_F32, &scalar));
    assert_true(hed_argument_algorithm(CUBLAS_GEMM_DEFAULT));
    assert_true(hed_argument_algorithm(CUBLAS_GEMM_DEFAULT_TENSOR_OP));
    assert_false(hed_argument_algorithm(24));
    assert_false(hed_argument_algorithm(9999));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars),
        cmocka_unit_test(ways),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
