/* The instruction of AVX-512 that LLVM gets wrong: it is found in machine code, and kernels that
 * would have it are compiled without. */
#include "kernel/ptx/lower/ternary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "harness/unit.h"
#include "ptx/exec/harness.h"

static bool
finds(const char *bytes, size_t size)
{
    /* A copy that ends where the memory ends: ASan sees what is read behind it. */
    unsigned char *code = malloc(size ? size : 1);
    bool found;

    assert_non_null(code);
    memcpy(code, bytes, size);
    found = hed_lower_may_be_wrong_ternary(code, size);
    free(code);
    return found;
}

#define FINDS(text) finds(text, sizeof(text) - 1)

/* vpternlogd $228, X, %zmm2, %zmm1 and its forms, as an assembler encodes them. */
static void
only_the_merging_form_with_memory_is_found(void **state)
{
    (void)state;
    assert_true(FINDS("\x62\xf3\x6d\x4a\x25\x4c\x24\x1f\xe4"));  /* 1984(%rsp), {%k2} */
    assert_true(FINDS("\x62\xf3\xed\x4a\x25\x08\xe4"));          /* vpternlogq (%rax), {%k2} */
    assert_true(FINDS("\x62\xf3\x6d\x59\x25\x08\xe4"));          /* (%rax){1to16}, {%k1} */
    assert_true(FINDS("\x62\x53\x6d\x29\x25\x0c\x24\xe4"));      /* (%r12), %ymm2, %ymm9 {%k1} */
    assert_true(FINDS("\x90\x62\x62\xf3\x6d\x4a\x25\x08\xe4"));  /* behind other bytes */
    assert_false(FINDS("\x62\xf3\x6d\x48\x25\x4c\x24\x1f\xe4")); /* without a mask */
    assert_false(FINDS("\x62\xf3\x6d\xca\x25\x08\xe4"));         /* {%k2}{z}: not merged */
    assert_false(FINDS("\x62\xf3\x6d\x4a\x25\xcb\xe4"));         /* %zmm3, {%k2} */
    assert_false(FINDS("\x62\xf3\x6d\x4a\x26\x08\xe4"));         /* another instruction */
    assert_false(FINDS("\x62\xf2\x6d\x4a\x25\x08"));             /* of another map */
    assert_false(FINDS(""));
    assert_false(FINDS("\x62\xf3\x6d\x4a\x25")); /* cut off */
}

static void
features_of_avx512_are_left_out(void **state)
{
    char out[64];

    (void)state;
    assert_true(hed_lower_without_avx512("+avx512f,+avx2,+avx512vl,+bmi", out, sizeof(out)));
    assert_string_equal(out, "+avx2,+bmi");
    assert_true(hed_lower_without_avx512("+avx512f", out, sizeof(out)));
    assert_string_equal(out, "");
    assert_false(hed_lower_without_avx512("+avx2", out, sizeof(out)));
    assert_string_equal(out, "+avx2");
    assert_false(hed_lower_without_avx512("", out, sizeof(out)));
}

/* The sign of b, and the rest of a; a as it is if it is NaN. */
static const char sign[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry sign(.param .u64 a, .param .u64 b, .param .u64 to) {\n"
    ".reg .pred %p1; .reg .b32 %r<9>; .reg .b64 %d<5>;\n"
    "mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4;\n"
    "ld.param.u64 %d2, [a]; ld.param.u64 %d3, [b]; ld.param.u64 %d4, [to];\n"
    "add.u64 %d2, %d2, %d1; add.u64 %d3, %d3, %d1; add.u64 %d4, %d4, %d1;\n"
    "ld.global.u32 %r2, [%d2]; ld.global.u32 %r3, [%d3];\n"
    "and.b32 %r4, %r3, 0x80000000; and.b32 %r5, %r2, 0x7fffffff; or.b32 %r6, %r4, %r5;\n"
    "setp.gt.u32 %p1, %r5, 0x7f800000; selp.b32 %r7, %r2, %r6, %p1;\n"
    "st.global.u32 [%d4], %r7; ret; }\n";

/* Whatever processor this is: LLVM may be told of any. */
static void
no_kernel_has_one(void **state)
{
    struct hed_buf object;
    struct exec e;

    (void)state;
#if !defined(__x86_64__)
    skip();
#endif
    hed_buf_init(&object, 16 << 20);
    exec_open(&e, sign, EXEC_COMPILED);
    e.options.rows = HED_ROWS_32;
    e.options.features = "+avx2,+avx512f,+avx512dq,+avx512cd,+avx512bw,+avx512vl";
    assert_int_equal(hed_ptx_compile(&e.module, e.module.funcs, &e.options, &object, &e.why), 0);
    assert_false(hed_lower_may_be_wrong_ternary(object.data, object.size));
    exec_close(&e);
    hed_buf_fini(&object);
}

static void
signs_are_right(void **state)
{
    static const uint32_t values[8] = {0,          0x80000000, 0x3f800000, 0xbf800000,
                                       0x7fc00001, 0xffc00001, 0x7f800000, 0xff7fffff};
    uint32_t a[64], b[64], to[64];
    uint32_t *params[] = {a, b, to};
    const struct exec_launch launch = {.threads = 64, .params = params, .size = sizeof(params)};
    struct exec e;

    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        a[i] = values[i % 8];
        b[i] = values[i / 8];
    }
    exec_open(&e, sign, EXEC_COMPILED);
    if (exec_run(&e, "sign", &launch) != 0)
        fail_msg("%s", e.why.text);
    exec_close(&e);
    for (unsigned i = 0; i < 64; i++) {
        const bool is_nan = (a[i] & 0x7fffffff) > 0x7f800000;

        assert_int_equal(to[i], is_nan ? a[i] : (a[i] & 0x7fffffff) | (b[i] & 0x80000000));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_the_merging_form_with_memory_is_found),
    cmocka_unit_test(features_of_avx512_are_left_out),
    cmocka_unit_test(no_kernel_has_one),
    cmocka_unit_test(signs_are_right),
};

HED_UNIT_MAIN(tests)
