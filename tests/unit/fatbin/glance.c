/* Tests of fatbin/ptx_text: kernels and their parameters, without parsing all of the PTX. */
#include "kernel/fatbin/ptx_text.h"

#include <stdlib.h>

#include "harness/unit.h"

#define ROOM 8

static struct hed_ptx_place params[ROOM];

/* The first kernel of a text. */
static struct hed_ptx_glance
first(const char *text)
{
    struct hed_ptx_glance k = {.param_count = 0};
    size_t at = 0;

    memset(params, 0, sizeof params);
    (void)hed_ptx_next_kernel((struct hed_bytes){(const uint8_t *)text, strlen(text)}, &at, &k,
                              params, ROOM);
    return k;
}

static void
is_param(uint32_t i, uint32_t offset, uint32_t size)
{
    assert_int_equal(params[i].offset, offset);
    assert_int_equal(params[i].size, size);
}

static void
parameters_lie_as_declared(void **state)
{
    const struct hed_ptx_glance k =
        first(".visible .entry k(\n .param .u8 a, // one\n .param .u64 .ptr .global .align 256 b,\n"
              " .param .align 4 .b8 c[12], .param .align 16 .b8 d[2][3], .param .f32 e,\n"
              " .param .u64 .ptr f, .param .texref t /* , */ )\n.maxntid 64, 2 { ret; }");

    assert_int_equal(k.name.size, 1);
    assert_int_equal(k.param_count, 7);
    is_param(0, 0, 1);
    is_param(1, 8, 8);
    is_param(2, 16, 12);
    is_param(3, 32, 6);
    is_param(4, 40, 4);
    is_param(5, 48, 8);
    is_param(6, 56, 8);
    assert_int_equal(k.param_bytes, 64);
    assert_int_equal(k.max_threads, 128);
    assert_int_equal(k.required[0], 0);
}

static void
kernels_follow_each_other(void **state)
{
    static const char text[] = ".version 8.0\n.func (.param .b32 r) f(.param .b32 a) { .entry }\n"
                               "// .entry no()\n.weak .entry _Z1av { ret; }\n"
                               ".entry $b() .reqntid 8, 4, 2 .minnctapersm 2 { ret; }\n"
                               ".entry many(.param .b8 x[32764]) { ret; }";
    const struct hed_bytes t = {(const uint8_t *)text, sizeof text - 1};
    struct hed_ptx_glance k;
    size_t at = 0;

    /* the word in the function's body is mistaken for a kernel, but no compiler writes that */
    assert_true(hed_ptx_next_kernel(t, &at, &k, NULL, 0));
    assert_int_equal(k.name.size, 5);
    assert_int_equal(k.param_count, 0);
    assert_true(hed_ptx_next_kernel(t, &at, &k, NULL, 0));
    assert_int_equal(k.name.size, 2);
    assert_true(k.required[0] == 8 && k.required[1] == 4 && k.required[2] == 2);
    assert_true(hed_ptx_next_kernel(t, &at, &k, NULL, 0));
    assert_int_equal(k.param_bytes, 32764);
    assert_false(hed_ptx_next_kernel(t, &at, &k, NULL, 0));
}

static void
nonsense_is_not_a_kernel(void **state)
{
    static const char *const odd[] = {
        "",
        ".entry",
        ".entry k",
        ".entry k(",
        ".entry k(.param",
        ".entry k(.param .u32",
        ".entry k(.param .u32 a",
        ".entry k(.param .u32 a,)",
        ".entry k(.param .u32 a) .maxntid",
        ".entry k(.param a) { }",
        ".entry k(.param .u7 a) { }",
        ".entry k(.param .b8 a[) { }",
        ".entry k(.param .b8 a[99999999999999999999]) { }",
        ".entry k(.param .b8 a[999999999][999999999]) { }",
        ".entry k(.param .b8 a[32765]) { }",
        ".entry k(.param .align 0 .b8 a[8]) { }",
        ".entry k(.param .align 4294967296 .b8 a[8]) { }",
        ".entry k(.param .b8 a[32764], .param .b8 b) { }",
        ".entry (.param .u32 a) { }",
        ".entry \"k\"() { }",
        "/* .entry k() { }",
    };

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        if (first(odd[i]).name.size != 0)
            fail_msg("%s", odd[i]);
    /* parameters beyond the array are only counted */
    assert_int_equal(
        first(".entry k(.param .b8 a,.param .b8 a,.param .b8 a,.param .b8 a,.param .b8 "
              "a,.param .b8 a,.param .b8 a,.param .b8 a,.param .b8 a,.param .b8 a){")
            .param_count,
        10);
}

/* A text that is truncated anywhere is read up to its end and no further. */
static void
truncated_text_is_read_to_its_end(void **state)
{
    static const char text[] = ".entry k(.param .align 8 .b8 a[8], .param .u64 .ptr b) "
                               ".reqntid 1, 2, 3 /* x */ { \"s\" }";

    for (size_t n = 0; n < sizeof text; n++) {
        char *copy = malloc(n + !n);
        struct hed_ptx_glance k;
        size_t at = 0;

        memcpy(copy, text, n);
        while (hed_ptx_next_kernel((struct hed_bytes){(const uint8_t *)copy, n}, &at, &k, params,
                                   ROOM))
            assert_true(at <= n);
        free(copy);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parameters_lie_as_declared),
    cmocka_unit_test(kernels_follow_each_other),
    cmocka_unit_test(nonsense_is_not_a_kernel),
    cmocka_unit_test(truncated_text_is_read_to_its_end),
};

HED_UNIT_MAIN(tests)
