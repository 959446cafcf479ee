/* PTX through all of the CPU GPU: it is read, described, compiled, cached and run. Needs the
 * compiler, which HED_COMPILER names. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "unit/cpu/compiled.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char add_ptx[] =
    HEAD ".visible .global .align 4 .u32 bias = 7;\n"
         ".visible .const .align 8 .u64 where = generic(bias);\n"
         ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
         "{\n"
         "  .reg .pred %p<2>; .reg .b32 %r<10>; .reg .b64 %rd<12>;\n"
         "  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];\n"
         "  ld.param.u32 %r1, [n];\n"
         "  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
         "  mad.lo.s32 %r5, %r2, %r3, %r4;\n"
         "  setp.ge.s32 %p1, %r5, %r1;\n"
         "  @%p1 bra DONE;\n"
         "  cvta.to.global.u64 %rd4, %rd1; cvta.to.global.u64 %rd5, %rd2;\n"
         "  cvta.to.global.u64 %rd6, %rd3;\n"
         "  mul.wide.s32 %rd7, %r5, 4;\n"
         "  add.s64 %rd8, %rd4, %rd7; add.s64 %rd9, %rd5, %rd7; add.s64 %rd10, %rd6, %rd7;\n"
         "  ld.global.u32 %r6, [%rd8]; ld.global.u32 %r7, [%rd9];\n"
         "  ld.global.u32 %r8, [bias];\n"
         "  add.s32 %r9, %r6, %r7; add.s32 %r9, %r9, %r8;\n"
         "  st.global.u32 [%rd10], %r9;\n"
         "DONE:\n"
         "  ret;\n"
         "}\n"
         ".visible .entry odd(.param .u32 x)\n"
         "{\n"
         "  .reg .b32 %r<2>;\n"
         "  frobnicate.b32 %r1, %r1;\n"
         "  ret;\n"
         "}\n";

static struct hed_code *
open_text(const char *text)
{
    const struct hed_code_source source = {
        .data = text, .size = strlen(text), .device = 86, .arch = 75};

    return open_source(&source);
}

struct add_params {
    uint32_t *a, *b, *c;
    uint32_t n;
};

static void
run_add(struct hed_code *code)
{
    enum { N = 1000 };
    static uint32_t a[N], b[N], c[N];
    uint32_t bias = 0;
    uint64_t where = 0;
    const uint64_t addresses[] = {(uintptr_t)&bias, (uintptr_t)&where};
    const struct add_params params = {a, b, c, N};
    struct hed_why why = {""};
    const struct hed_launch l = {
        .code = code,
        .variables = addresses,
        .grid = {8, 1, 1},
        .block = {128, 1, 1},
        .param_bytes = sizeof params,
        .params = (const unsigned char *)&params,
    };

    for (uint32_t i = 0; i < N; i++) {
        a[i] = i;
        b[i] = 2 * i;
        c[i] = 0;
    }
    hed_cpu_fill_vars(&cpu, code, addresses, addresses);
    assert_int_equal(bias, 7);
    assert_int_equal(where, addresses[0]);

    const CUresult r = prepare_and_launch(&l, &why);

    if (r != CUDA_SUCCESS)
        print_error("%s\n", why.text);
    assert_int_equal(r, CUDA_SUCCESS);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(c[i], 3 * i + 7);
}

static void
modules_are_described(void **state)
{
    struct hed_code *code = open_text(add_ptx);

    assert_int_equal(code->kernel_count, 2);
    assert_string_equal(code->kernels[0].name, "add");
    assert_int_equal(code->kernels[0].param_count, 4);
    assert_int_equal(code->kernels[0].params[3].offset, 24);
    assert_int_equal(code->kernels[0].param_bytes, 28);
    assert_int_equal(code->kernels[0].ptx_version, 75);
    assert_int_equal(code->kernels[0].binary_version, 86);
    assert_true(code->kernels[0].registers >= 16);
    assert_int_equal(code->var_count, 2);
    assert_string_equal(code->vars[0].name, "bias");
    assert_true(code->vars[1].constant);
    hed_cpu_close(&cpu, code);
}

/* However many registers its text has. */
static void
a_block_of_a_kernel_fits_on_a_multiprocessor(void **state)
{
    static char text[65536];

    for (uint32_t threads = 1; threads <= 1024; threads += threads < 32 ? 31 : 32) {
        struct hed_code *code;
        int n = snprintf(text, sizeof text, HEAD ".entry f() .maxntid %u {\n.reg .b32 %%r<2000>;\n",
                         threads);

        for (int i = 0; i < 2000; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "mov.b32 %%r%d, %d;\n", i, i);
        snprintf(text + n, sizeof text - (size_t)n, "ret;\n}\n");
        code = open_text(text);

        const uint32_t warps = (threads + 127) / 128 * 4;
        const uint32_t registers = (code->kernels[0].registers + 7) / 8 * 8;

        assert_in_range(registers, threads > 512 ? 64 : 80, 256);
        assert_in_range(32 * warps * registers, 1, 65536);
        hed_cpu_close(&cpu, code);
    }
}

static void
bad_ptx_is_refused_with_a_log(void **state)
{
    const struct hed_code_source source = {
        .data = HEAD ".entry f() { add.s32 ; }", .size = 68, .device = 86};
    struct hed_code *code = NULL;
    struct hed_buf log;
    struct hed_why why;

    hed_buf_init(&log, 4096);
    assert_int_equal(hed_cpu_open(&cpu, &source, &code, &log, &why), HED_EFORMAT);
    assert_non_null(strstr(hed_buf_cstr(&log), "line 4"));
    hed_buf_fini(&log);
}

static void
a_kernel_is_compiled_and_run(void **state)
{
    struct hed_code *code = open_text(add_ptx);

    run_add(code);
    run_add(code);
    hed_cpu_close(&cpu, code);
}

static void
the_second_time_needs_no_compiler(void **state)
{
    struct hed_code *code = open_text(add_ptx);

    run_add(code);
    hed_cpu_close(&cpu, code);
    (void)hed_str_copy(cpu.compilers.path, sizeof cpu.compilers.path, "/nowhere.so");
    code = open_text(add_ptx);
    run_add(code);
    hed_cpu_close(&cpu, code);
}

/* The blocks that run_add() launches. */
static const uint32_t tier_block[3] = {128, 1, 1};

/* Text that no cache knows yet. */
static struct hed_code *
open_new_text(char *text, size_t size)
{
    static int number;

    snprintf(text, size, "%s// %d.%d\n", add_ptx, (int)getpid(), number++);
    /* Not again: threads that compile may be reading it. */
    if (!cpu.tiered)
        cpu.baseline = cpu.tiered = true;
    return open_text(text);
}

static void
a_hot_kernel_is_compiled_while_it_runs(void **state)
{
    char text[4096];
    struct hed_code *code = open_new_text(text, sizeof text);
    struct hed_cpu_kernel *k = hed_cpu_kernel_of(&cpu, code, 0, tier_block);

    run_add(code);
    assert_ptr_equal(hed_tier_loaded(k), &k->loaded);
    assert_non_null(k->program);
    hed_tier_note(&cpu, k, UINT64_C(1000000000));
    while (k->tier == HED_TIER_QUEUED)
        sched_yield();
    assert_int_equal(k->tier, HED_TIER_COMPILED);
    assert_ptr_equal(hed_tier_loaded(k), &k->compiled.loaded);
    run_add(code);
    hed_cpu_close(&cpu, code);

    /* The next time, it starts with compiled code. */
    code = open_text(text);
    run_add(code);
    k = hed_cpu_kernel_of(&cpu, code, 0, tier_block);
    assert_int_equal(k->tier, HED_TIER_COMPILED);
    assert_null(k->program);
    hed_cpu_close(&cpu, code);
}

static void
code_can_be_closed_while_its_kernels_are_compiled(void **state)
{
    char text[4096];

    for (int i = 0; i < 3; i++) {
        struct hed_code *code = open_new_text(text, sizeof text);

        run_add(code);
        hed_tier_note(&cpu, hed_cpu_kernel_of(&cpu, code, 0, tier_block), UINT64_C(1000000000));
        hed_cpu_close(&cpu, code);
    }
}

static void
a_kernel_that_cannot_be_compiled_stays_in_the_baseline_tier(void **state)
{
    char text[4096];
    struct hed_code *code = open_new_text(text, sizeof text);
    struct hed_cpu_kernel *k = hed_cpu_kernel_of(&cpu, code, 0, tier_block);

    (void)hed_str_copy(cpu.compilers.path, sizeof cpu.compilers.path, "/nowhere.so");
    run_add(code);
    hed_tier_note(&cpu, k, UINT64_C(1000000000));
    while (k->tier == HED_TIER_QUEUED)
        sched_yield();
    assert_int_equal(k->tier, HED_TIER_STAYS);
    assert_true(cpu.no_compiler); /* so it is not looked for again */
    run_add(code);
    hed_cpu_close(&cpu, code);
}

static void
damaged_cache_files_are_replaced(void **state)
{
    char path[2048];
    struct hed_code *code = open_text(add_ptx);

    run_add(code);
    hed_cpu_close(&cpu, code);
    cache_folder(path, sizeof path);

    DIR *d = opendir(path);
    const struct dirent *e;
    int damaged = 0;

    assert_non_null(d);
    while ((e = readdir(d)) != NULL) {
        char file[4096];

        if (!strstr(e->d_name, ".kernel"))
            continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);

        FILE *f = fopen(file, "r+");

        assert_non_null(f);
        fseek(f, 200, SEEK_SET);
        fputs("damage", f);
        fclose(f);
        damaged++;
    }
    closedir(d);
    assert_true(damaged > 0);
    code = open_text(add_ptx);
    run_add(code);
    hed_cpu_close(&cpu, code);
}

static void
kernels_that_cannot_be_compiled_are_named(void **state)
{
    struct hed_code *code = open_text(add_ptx);
    struct hed_why why = {""};

    assert_int_equal(hed_cpu_prepare(&cpu, code, 1, NULL, &why), CUDA_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(why.text, "odd"));
    assert_non_null(strstr(why.text, "frobnicate"));
    hed_cpu_close(&cpu, code);
}

/* Each lane writes its own word and immediately reads another lane's. */
static const char neighbours_head[] =
    HEAD ".visible .entry swap(.param .u64 out)\n"
         "{\n"
         "  .reg .b32 %r<8>; .reg .b64 %rd<3>;\n"
         "  .shared .align 4 .b8 slots[128];\n"
         "  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, slots;\n"
         "  mad.lo.u32 %r3, %r1, 4, %r2; mov.u32 %r4, %r1;\n";
static const char neighbours_tail[] =
    "  st.shared.u32 [%r3], %r4;\n"
    "  sub.u32 %r5, 31, %r1; mad.lo.u32 %r6, %r5, 4, %r2; ld.shared.u32 %r7, [%r6];\n"
    "  mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r7;\n"
    "  ret;\n"
    "}\n";

static void
long_kernels_that_rely_on_lockstep_get_it(void **state)
{
    uint32_t out[32] = {0};
    const void *params = out;
    struct hed_why why = {""};
    struct hed_buf text;

    hed_buf_init(&text, 1 << 20);
    hed_buf_addf(&text, "%s", neighbours_head);
    for (int i = 0; i < 700; i++)
        hed_buf_addf(&text, "  add.u32 %%r4, %%r4, 1;\n");
    hed_buf_addf(&text, "%s", neighbours_tail);

    struct hed_code *code = open_text(hed_buf_cstr(&text));
    const struct hed_launch l = {
        .code = code,
        .grid = {1, 1, 1},
        .block = {32, 1, 1},
        .param_bytes = sizeof params,
        .params = (const unsigned char *)&params,
    };

    assert_int_equal(prepare_and_launch(&l, &why), CUDA_SUCCESS);
    for (uint32_t i = 0; i < 32; i++)
        assert_int_equal(out[i], 31 - i + 700);
    hed_cpu_close(&cpu, code);
    hed_buf_fini(&text);
}

static const char assert_ptx[] =
    HEAD ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,\n"
         "  .param .b64 e);\n"
         ".visible .global .align 8 .b8 text[8] = {120, 62, 48, 0};\n"
         ".visible .entry check()\n"
         "{\n"
         "  .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<3>;\n"
         "  mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 28; @%p1 bra DONE;\n"
         "  mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 1; mov.u32 %r2, 12;\n"
         "  call __assertfail, (%rd1, %rd1, %r2, %rd1, %rd2);\n"
         "DONE:\n"
         "  ret;\n"
         "}\n";

static void
each_thread_that_fails_an_assertion_is_named(void **state)
{
    struct hed_code *code = open_text(assert_ptx);
    unsigned char storage[8];
    const uint64_t addresses[] = {(uintptr_t)storage};
    const struct hed_launch l = {
        .code = code, .variables = addresses, .grid = {1, 1, 1}, .block = {32, 1, 1}};
    struct hed_why why = {""};
    FILE *kept = tmpfile();
    const int before = dup(STDERR_FILENO);
    char line[200];
    int told = 0;

    assert_non_null(kept);
    hed_cpu_fill_vars(&cpu, code, addresses, addresses);
    dup2(fileno(kept), STDERR_FILENO);

    const CUresult r = prepare_and_launch(&l, &why);

    dup2(before, STDERR_FILENO);
    close(before);
    assert_int_equal(r, CUDA_ERROR_ASSERT);
    rewind(kept);
    while (fgets(line, sizeof line, kept))
        told += strstr(line, "Assertion `x>0` failed") != NULL;
    fclose(kept);
    assert_int_equal(told, 4);
    hed_cpu_close(&cpu, code);
}

static void *
prepare_it(void *arg)
{
    struct hed_why why;

    return hed_cpu_prepare(&cpu, arg, 0, NULL, &why) == CUDA_SUCCESS ? NULL : arg;
}

static void
a_kernel_is_compiled_once(void **state)
{
    struct hed_code *code = open_text(add_ptx);
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, prepare_it, code);
    for (int i = 0; i < 4; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    run_add(code);
    hed_cpu_close(&cpu, code);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(modules_are_described, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_block_of_a_kernel_fits_on_a_multiprocessor, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(bad_ptx_is_refused_with_a_log, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_kernel_is_compiled_and_run, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(the_second_time_needs_no_compiler, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_hot_kernel_is_compiled_while_it_runs, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(code_can_be_closed_while_its_kernels_are_compiled, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(a_kernel_that_cannot_be_compiled_stays_in_the_baseline_tier,
                                    setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(damaged_cache_files_are_replaced, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(kernels_that_cannot_be_compiled_are_named, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(long_kernels_that_rely_on_lockstep_get_it, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(each_thread_that_fails_an_assertion_is_named, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(a_kernel_is_compiled_once, setup_cpu, teardown_cpu),
};

HED_UNIT_MAIN(tests)
