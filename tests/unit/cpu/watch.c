/* Limits of time: kernels that never end are ended, wherever they are, and the CPU GPU works
 * afterwards. Needs the compiler, which HED_COMPILER names. No test depends on how long something
 * takes: what is limited would take for ever, or longer than a nanosecond. */
#include "kernel/engine/watch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/sanitize.h"
#include "unit/cpu/compiled.h"

#define HEAD ".version 7.1\n.target sm_80\n.address_size 64\n"

/* ThreadSanitizer delivers signals only when the thread calls a function of libc. */
#define HOLDS_SIGNALS_BACK HED_TSAN

/* Each loops for ever in its own way: does nothing; computes; waits for memory that nobody writes;
 * sleeps; prints; waits at barriers; jumps by a table. The first ones are nearly always in a
 * function in C: they print much, multiply matrices, load them, allocate, and read textures and
 * clocks. */
static const char loops[] = HEAD
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".extern .func free(.param .b64 p);\n"
    ".global .align 4 .u32 word;\n"
    ".global .align 1 .b8 text[2] = {46, 0};\n"
    ".global .align 1 .b8 wide[12] = {37,54,53,53,51,54,100,37,42,100,46,0};\n" /* %65536d%*d. */
    ".global .align 8 .b8 args[16];\n"
    ".visible .entry prints_much() {\n .reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
    " mov.u64 %rd1, wide; cvta.global.u64 %rd1, %rd1;\n"
    " mov.u64 %rd2, args; cvta.global.u64 %rd2, %rd2;\n"
    "L: { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd1;\n"
    " st.param.b64 [a], %rd2; call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }\n"
    " bra L;\n}\n"
    ".visible .entry multiplies() {\n .reg .b32 %r<10>;\n"
    " mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 1;\n"
    " mov.b32 %r5, 2; mov.b32 %r6, 3; mov.b32 %r7, 4; mov.b32 %r8, 5; mov.b32 %r9, 6;\n"
    "L: mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%r0,%r1,%r2,%r3},\n"
    " {%r4,%r5,%r6,%r7}, {%r8,%r9}, {%r0,%r1,%r2,%r3};\n"
    " mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%r0,%r1,%r2,%r3},\n"
    " {%r0,%r5,%r6,%r7}, {%r8,%r1}, {%r0,%r1,%r2,%r3};\n"
    " st.global.u32 [word], %r0; bra L;\n}\n"
    ".visible .entry loads() {\n .reg .b32 %r<8>; .shared .align 16 .b8 tile[1024];\n"
    " mov.u32 %r1, tile;\n"
    "L: ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2,%r3,%r4,%r5}, [%r1];\n"
    " st.shared.u32 [tile], %r2; bra L;\n}\n"
    ".visible .entry allocates() {\n .reg .b64 %rd<3>;\n"
    "L: { .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call (r), malloc, (n);\n"
    " ld.param.b64 %rd1, [r]; }\n"
    " { .param .b64 p; st.param.b64 [p], 0; call free, (p); }\n"
    " bra L;\n}\n"
    ".visible .entry looks_up() {\n .reg .b64 %rd<2>; .reg .f32 %f<6>;\n"
    " mov.u64 %rd1, 0; mov.f32 %f1, 0f00000000;\n"
    "L: tex.1d.v4.f32.f32 {%f2,%f3,%f4,%f5}, [%rd1, {%f1}]; add.f32 %f1, %f1, %f2;\n"
    " bra L;\n}\n"
    ".visible .entry reads_clocks() {\n .reg .b64 %rd<3>;\n"
    "L: mov.u64 %rd1, %clock64; mov.u64 %rd2, %globaltimer; bra L;\n}\n"
    ".visible .entry nothing() {\nL: bra L;\n}\n"
    ".visible .entry computes() {\n .reg .b32 %r<4>; .reg .pred %p<2>;\n"
    " mov.u32 %r1, %tid.x;\nL: mad.lo.u32 %r1, %r1, 1664525, 1013904223;\n"
    " st.global.u32 [word], %r1; bra L;\n}\n"
    ".visible .entry waits() {\n .reg .b32 %r<4>; .reg .pred %p<2>;\n"
    "L: ld.volatile.global.u32 %r1, [word]; setp.ne.u32 %p1, %r1, 77; @%p1 bra L; ret;\n}\n"
    ".visible .entry sleeps() {\nL: nanosleep.u32 1000000; bra L;\n}\n"
    ".visible .entry prints() {\n .reg .b32 %r<2>; .reg .b64 %rd<3>;\n"
    " mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0;\n"
    "L: { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %rd1;\n"
    " st.param.b64 [a], %rd2; call (r), vprintf, (f, a); ld.param.b32 %r1, [r]; }\n"
    " bra L;\n}\n"
    ".visible .entry meets() {\nL: bar.sync 0; bra L;\n}\n"
    ".visible .entry jumps() {\n .reg .b32 %r<2>; mov.u32 %r1, 0;\n"
    "T: .branchtargets A, B;\nA: brx.idx %r1, T;\nB: ret;\n}\n"
    ".func (.reg .b32 r) f0(.reg .b32 x) {\n add.u32 r, x, 1; ret;\n}\n";

static struct hed_watch *watch;

static int
teardown_watch(void **state)
{
    const int err = teardown_cpu(state);

    hed_watch_free(watch);
    watch = NULL;
    return err;
}

static void
limit_time(uint64_t kernel_ns, uint64_t compile_ns, hed_give_up_fn give_up)
{
    watch = hed_watch_create(kernel_ns, compile_ns, give_up);
    assert_non_null(watch);
    cpu.watch = watch;
    hed_engine_set_watch(cpu.engine, watch);
}

/* Two more kernels: `calls` has no loop, but a tree of 2^48 calls; `brief`, the last, ends. */
static struct hed_code *
open_loops(void)
{
    enum { DEPTH = 48 };
    struct hed_buf text;

    hed_buf_init(&text, 1 << 20);
    hed_buf_addf(&text, "%s", loops);
    for (int i = 1; i <= DEPTH; i++)
        hed_buf_addf(&text,
                     ".func (.reg .b32 r) f%d(.reg .b32 x) {\n .reg .b32 y;\n"
                     " call (y), f%d, (x); call (r), f%d, (y); ret;\n}\n",
                     i, i - 1, i - 1);
    hed_buf_addf(&text,
                 ".visible .entry calls() {\n .reg .b32 x; mov.u32 x, 1;\n"
                 " call (x), f%d, (x); ret;\n}\n.visible .entry brief() {\n ret;\n}\n",
                 DEPTH);
    assert_int_equal(text.err, 0);

    const struct hed_code_source source = {
        .data = text.data, .size = text.size, .device = 86, .arch = 80};
    struct hed_code *code = open_source(&source);

    hed_buf_fini(&text);
    return code;
}

static CUresult
launch_kernel(struct hed_code *code, uint32_t kernel, uint32_t blocks, struct hed_why *why)
{
    static uint32_t word;
    static char text[2] = ".";
    static char wide[12] = "%65536d%*d.";
    static uint64_t args[2];
    const uint64_t addresses[] = {(uintptr_t)&word, (uintptr_t)text, (uintptr_t)wide,
                                  (uintptr_t)args};
    const struct hed_launch l = {.code = code,
                                 .kernel = kernel,
                                 .variables = addresses,
                                 .grid = {blocks, 1, 1},
                                 .block = {64, 1, 1},
                                 .printf_limit = 1 << 16};

    return prepare_and_launch(&l, why);
}

static void
expect_all_end(void)
{
    struct hed_code *code = open_loops();
    const uint32_t brief = code->kernel_count - 1;

    for (uint32_t i = 0; i < brief; i++) {
        for (uint32_t blocks = 1; blocks <= 5; blocks += 4) {
            struct hed_why why = {""};
            const CUresult r = launch_kernel(code, i, blocks, &why);

            if (r != CUDA_ERROR_LAUNCH_TIMEOUT)
                print_error("%s: %d %s\n", code->kernels[i].name, (int)r, why.text);
            assert_int_equal(r, CUDA_ERROR_LAUNCH_TIMEOUT);
            assert_non_null(strstr(why.text, "kernel_time"));
            assert_non_null(strstr(why.text, code->kernels[i].name));
            assert_int_equal(launch_kernel(code, brief, 1, &why), CUDA_SUCCESS);
        }
    }
    hed_cpu_close(&cpu, code);
}

static void
compiled_kernels_without_an_end_are_ended(void **state)
{
    if (HOLDS_SIGNALS_BACK)
        skip();
    limit_time(10 * HED_NS_PER_MS, 0, NULL);
    expect_all_end();
}

static void
kernels_of_the_baseline_tier_without_an_end_are_ended(void **state)
{
    cpu.baseline = true;
    limit_time(10 * HED_NS_PER_MS, 0, NULL);
    expect_all_end();
}

static bool asked;
static struct hed_why asked_why;

static bool
note_give_up(const char *why)
{
    asked = true;
    hed_why_set(&asked_why, "%s", why);
    return false;
}

/* The thread that compiles waits until somebody was asked, so that the test does not depend on who
 * is faster. */
static void
a_compilation_that_takes_long_asks_for_the_end(void **state)
{
    struct hed_watched it;

    limit_time(0, 1, note_give_up);
    hed_watch_compilation(watch, &it, "slow");
    for (bool told = false; !told;) {
        hed_sleep_ns(HED_NS_PER_MS);
        hed_watch_end(watch, &it);
        told = it.told;
        if (!told)
            hed_watch_compilation(watch, &it, "slow");
    }
    hed_watch_free(watch); /* the thread has returned from note_give_up() */
    watch = cpu.watch = NULL;
    hed_engine_set_watch(cpu.engine, NULL);
    assert_true(asked);
    assert_non_null(strstr(asked_why.text, "compiling slow"));
    assert_non_null(strstr(asked_why.text, "compile_time"));
}

static void
compilations_in_time_are_left_alone(void **state)
{
    struct hed_why why = {""};
    struct hed_code *code;

    asked = false;
    limit_time(0, UINT64_MAX / 4, note_give_up);
    code = open_loops();
    assert_int_equal(launch_kernel(code, code->kernel_count - 1, 3, &why), CUDA_SUCCESS);
    hed_cpu_close(&cpu, code);
    assert_false(asked);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(compiled_kernels_without_an_end_are_ended, setup_cpu,
                                    teardown_watch),
    cmocka_unit_test_setup_teardown(kernels_of_the_baseline_tier_without_an_end_are_ended,
                                    setup_cpu, teardown_watch),
    cmocka_unit_test_setup_teardown(a_compilation_that_takes_long_asks_for_the_end, setup_cpu,
                                    teardown_watch),
    cmocka_unit_test_setup_teardown(compilations_in_time_are_left_alone, setup_cpu, teardown_watch),
};

HED_UNIT_MAIN(tests)
