/* Compiled kernels that go from warp to warp and from block to block by themselves
 * (HED_PTX_BLOCKS): positions, barriers, faults. Needs the compiler, which HED_COMPILER names. */
#include "unit/cpu/compiled.h"

#define HEAD                                                                                  \
    ".version 7.0\n.target sm_75\n.address_size 64\n"                                         \
    ".visible .entry k(.param .u64 out)\n{\n"                                                 \
    ".reg .pred %p, %q; .reg .b32 %x, %y, %z, %t, %w, %r<8>; .reg .b64 %o, %a;\n"             \
    "ld.param.u64 %o, [out];\n"                                                               \
    "mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %z, %ctaid.z; mov.u32 %t, %tid.x;\n" \
    "mov.u32 %r0, %nctaid.x; mov.u32 %r1, %nctaid.y; mov.u32 %r2, %ntid.x;\n"                 \
    "mad.lo.u32 %r3, %z, %r1, %y; mad.lo.u32 %r3, %r3, %r0, %x;\n"                            \
    "mad.lo.u32 %r3, %r3, %r2, %t; mad.wide.u32 %a, %r3, 4, %o; shr.u32 %w, %t, 5;\n"

enum { X = 5, Y = 3, Z = 2, THREADS = 64 };

static uint32_t out[X * Y * Z * THREADS];

static int
setup(void **state)
{
    memset(out, 0, sizeof out);
    return setup_cpu(state);
}

/* Runs the kernel with X x Y x Z blocks; checks that it runs whole blocks. */
static CUresult
run_text(const char *text, struct hed_why *why)
{
    const struct hed_code_source source = {
        .data = text, .size = strlen(text), .device = 86, .arch = 75};
    const void *const params[] = {out};
    struct hed_code *code = NULL;
    struct hed_launch l = {.grid = {X, Y, Z},
                           .block = {THREADS, 1, 1},
                           .params = (void *)params,
                           .param_bytes = sizeof params};

    if (hed_cpu_open(&cpu, &source, &code, NULL, why) != 0)
        fail_msg("%s", why->text);
    l.code = code;
    if (hed_cpu_prepare(&cpu, code, 0, l.block, why) != CUDA_SUCCESS)
        fail_msg("%s", why->text);
    assert_true(hed_tier_loaded(hed_cpu_kernel_of(&cpu, code, 0, l.block))->info.flags &
                HED_PTX_BLOCKS);

    const CUresult r = hed_cpu_launch(&cpu, &l, why);

    hed_cpu_close(&cpu, code);
    return r;
}

static void
blocks_know_their_position(void **state)
{
    static const char text[] =
        HEAD "shl.b32 %x, %x, 24; shl.b32 %y, %y, 16; shl.b32 %z, %z, 8;\n"
             "or.b32 %r4, %x, %y; or.b32 %r4, %r4, %z; or.b32 %r4, %r4, %t;\n"
             "st.global.u32 [%a], %r4; ret;\n}\n";
    struct hed_why why = {""};

    assert_int_equal(run_text(text, &why), CUDA_SUCCESS);
    for (uint32_t i = 0; i < X * Y * Z * THREADS; i++) {
        const uint32_t b = i / THREADS;

        assert_int_equal(out[i], b % X << 24 | b / X % Y << 16 | b / X / Y << 8 | i % THREADS);
    }
}

/* In every other block the second warp ends before the barrier; the first goes on behind it. */
static void
warps_may_end_before_a_barrier(void **state)
{
    static const char text[] =
        HEAD ".shared .u32 word;\n"
             "and.b32 %r4, %x, 1; setp.ne.u32 %p, %r4, 0; setp.ne.u32 %q, %w, 0;\n"
             "and.pred %p, %p, %q; @%p bra END;\n"
             "setp.eq.u32 %q, %t, 32; @%q st.shared.u32 [word], %x;\n"
             "setp.eq.u32 %q, %t, 0; selp.b32 %r5, 77, 0, %q; and.b32 %r4, %x, 1;\n"
             "setp.ne.and.u32 %q, %r4, 0, %q; @%q st.shared.u32 [word], %r5;\n"
             "bar.sync 0;\n"
             "ld.shared.u32 %r4, [word]; add.u32 %r4, %r4, 1; st.global.u32 [%a], %r4;\n"
             "END: ret;\n}\n";
    struct hed_why why = {""};

    assert_int_equal(run_text(text, &why), CUDA_SUCCESS);
    for (uint32_t i = 0; i < X * Y * Z * THREADS; i++) {
        const uint32_t x = i / THREADS % X;
        const uint32_t want = x % 2 == 0 ? x + 1 : i % THREADS < 32 ? 78 : 0;

        assert_int_equal(out[i], want);
    }
}

static void
a_fault_names_its_block_and_warp(void **state)
{
    static const char text[] = HEAD "setp.eq.u32 %p, %x, 3; setp.eq.and.u32 %p, %y, 1, %p;\n"
                                    "setp.eq.and.u32 %p, %z, 1, %p;\n"
                                    "setp.eq.and.u32 %p, %w, 1, %p; @%p mov.b64 %a, 4096;\n"
                                    "st.global.u32 [%a], %t; ret;\n}\n";
    struct hed_why why = {""};

    assert_int_equal(run_text(text, &why), CUDA_ERROR_ILLEGAL_ADDRESS);
    if (!strstr(why.text, "block (3, 1, 1), warp of thread (32, 0, 0)"))
        fail_msg("%s", why.text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(blocks_know_their_position, setup, teardown_cpu),
    cmocka_unit_test_setup_teardown(warps_may_end_before_a_barrier, setup, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_fault_names_its_block_and_warp, setup, teardown_cpu),
};

HED_UNIT_MAIN(tests)
