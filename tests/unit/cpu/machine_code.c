/* Machine code through all of the CPU GPU: a cubin is described, its kernels are lifted, compiled,
 * cached and run. Needs the compiler, which HED_COMPILER names. */
#include <elf.h>

#include "kernel/fatbin/elf.h"
#include "unit/cpu/compiled.h"
#include "unit/fatbin/make.h"

static struct hed_code *
open_bytes(struct hed_bytes b)
{
    const struct hed_code_source source = {
        .kind = HED_CODE_CUBIN, .data = b.data, .size = b.size, .device = 80, .arch = 80};

    return open_source(&source);
}

static struct hed_code *
open_cubin(void)
{
    return open_bytes(fixture("cubin/sm_80"));
}

static uint32_t
kernel_named(const struct hed_code *code, const char *name)
{
    uint32_t i = 0;

    while (i < code->kernel_count && strcmp(code->kernels[i].name, name) != 0)
        i++;
    assert_true(i < code->kernel_count);
    return i;
}

static const struct hed_code_var *
var_named(const struct hed_code *code, const char *name)
{
    uint32_t i = 0;

    while (i < code->var_count && strcmp(code->vars[i].name, name) != 0)
        i++;
    assert_true(i < code->var_count);
    return &code->vars[i];
}

#define VARS_MAX 16
static unsigned char memory[VARS_MAX][256];

/* The variables in memory of the test, with their initial values. */
static void
load_vars(struct hed_code *code, uint64_t addresses[VARS_MAX])
{
    assert_true(code->var_count <= VARS_MAX);
    memset(memory, 0xee, sizeof memory);
    for (uint32_t i = 0; i < code->var_count; i++) {
        const struct hed_code_var *v = &code->vars[i];

        addresses[i] =
            v->part_of ? addresses[v->part_of - 1] + v->at : (uint64_t)(uintptr_t)memory[i];
    }
    hed_cpu_fill_vars(&cpu, code, addresses, addresses);
}

static void *
var_at(const struct hed_code *code, const uint64_t *addresses, const char *name)
{
    return (void *)(uintptr_t)addresses[var_named(code, name) - code->vars];
}

static void
a_cubin_is_described(void **state)
{
    struct hed_code *code = open_cubin();
    const struct hed_code_kernel *k = &code->kernels[kernel_named(code, "sum")];

    assert_int_equal(code->kernel_count, 4);
    assert_true(k->has_code);
    assert_int_equal(k->param_count, 2);
    assert_int_equal(k->param_bytes, 12);
    assert_int_equal(k->binary_version, 80);
    assert_int_equal(k->constant, 32);
    k = &code->kernels[kernel_named(code, "turn")];
    assert_int_equal(k->shared, 256);
    assert_int_equal(k->max_threads, 64);
    assert_true(var_named(code, "scale")->constant);
    assert_int_equal(var_named(code, "second")->size, 16);
    assert_true(var_named(code, "second")->part_of != 0);
    assert_true(var_named(code, "counted")->managed);
    assert_int_equal(var_named(code, "counted")->part_of, 0);
    hed_cpu_close(&cpu, code);
}

static void
variables_get_their_values_and_addresses(void **state)
{
    struct hed_code *code = open_cubin();
    uint64_t addresses[VARS_MAX];
    int *second;

    load_vars(code, addresses);
    second = var_at(code, addresses, "second");
    assert_int_equal(second[3], 40);
    assert_int_equal(*(int *)var_at(code, addresses, "first"), 3);
    assert_int_equal(*(int *)var_at(code, addresses, "counted"), 5);
    assert_int_equal(*(int *)var_at(code, addresses, "zero"), 0);
    assert_ptr_equal(*(int **)var_at(code, addresses, "where"), &second[2]);
    hed_cpu_close(&cpu, code);
}

struct sum_params {
    int *out;
    int n;
};

static CUresult
run_sum(struct hed_code *code, const uint64_t *addresses, int *out, int n)
{
    const struct sum_params params = {out, n};
    struct hed_why why = {""};
    const struct hed_launch l = {
        .code = code,
        .kernel = kernel_named(code, "sum"),
        .variables = addresses,
        .grid = {3, 1, 1},
        .block = {32, 1, 1},
        .param_bytes = 12,
        .params = (const unsigned char *)&params,
    };
    const CUresult r = prepare_and_launch(&l, &why);

    if (r != CUDA_SUCCESS)
        print_error("%s\n", why.text);
    return r;
}

static void
check_sum(struct hed_code *code)
{
    uint64_t addresses[VARS_MAX];
    int out[96] = {0};

    load_vars(code, addresses);
    *(int *)var_at(code, addresses, "counted") = 6;
    assert_int_equal(run_sum(code, addresses, out, 90), CUDA_SUCCESS);
    for (int i = 0; i < 96; i++)
        assert_int_equal(out[i], i < 90 ? 10 * (i % 4 + 1) * 4 + 30 + 3 + 6 : 0);
}

static void
kernels_run_in_both_tiers(void **state)
{
    struct hed_code *code = open_cubin();

    check_sum(code);
    hed_cpu_close(&cpu, code);
    cpu.baseline = true;
    code = open_cubin();
    check_sum(code);
    hed_cpu_close(&cpu, code);
    cpu.baseline = false;
}

static void
a_kernel_without_parameters_runs(void **state)
{
    struct hed_code *code = open_cubin();
    uint64_t addresses[VARS_MAX];
    struct hed_why why = {""};
    const struct hed_launch l = {
        .code = code,
        .kernel = kernel_named(code, "count"),
        .variables = addresses,
        .grid = {1, 1, 1},
        .block = {32, 1, 1},
    };

    load_vars(code, addresses);
    assert_int_equal(prepare_and_launch(&l, &why), CUDA_SUCCESS);
    assert_int_equal(*(int *)var_at(code, addresses, "zero"), 7);
    hed_cpu_close(&cpu, code);
}

static void
threads_share_memory(void **state)
{
    struct hed_code *code = open_cubin();
    uint64_t addresses[VARS_MAX];
    uint32_t out[64] = {0}, *param = out;
    struct hed_why why = {""};
    const struct hed_launch l = {
        .code = code,
        .kernel = kernel_named(code, "turn"),
        .variables = addresses,
        .grid = {1, 1, 1},
        .block = {64, 1, 1},
        .param_bytes = sizeof param,
        .params = (const unsigned char *)&param,
    };

    load_vars(code, addresses);
    assert_int_equal(prepare_and_launch(&l, &why), CUDA_SUCCESS);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], 63 - i);
    hed_cpu_close(&cpu, code);
}

/* What is in the cache runs without being lifted. */
static void
compiled_code_is_found_again(void **state)
{
    struct hed_code *code = open_cubin();
    const struct hed_cpu_kernel *k;
    const uint32_t block[3] = {32, 1, 1};

    check_sum(code);
    hed_cpu_close(&cpu, code);
    code = open_cubin();
    check_sum(code);
    k = hed_cpu_kernel_of(&cpu, code, kernel_named(code, "sum"), block);
    assert_true(k->compiled.is_cached);
    assert_null(k->func);
    hed_cpu_close(&cpu, code);
}

static void *
prepare_all_layouts(void *arg)
{
    static const uint32_t blocks[][3] = {{32, 1, 1}, {16, 16, 1}, {8, 8, 1}, {5, 1, 1}};
    struct hed_code *code = arg;
    struct hed_why why;
    bool fine = true;

    for (int i = 0; i < 4; i++)
        fine &=
            hed_cpu_prepare(&cpu, code, kernel_named(code, "sum"), blocks[i], &why) == CUDA_SUCCESS;
    return fine ? code : NULL;
}

/* All layouts of a kernel share the PTX, whichever thread needs it first. */
static void
a_kernel_is_lifted_once(void **state)
{
    struct hed_code *code;
    const struct hed_cpu_lifted *l;
    const struct hed_cpu_kernel *k;
    pthread_t threads[4];
    void *fine;

    cpu.baseline = cpu.tiered = true;
    hed_cache_free(cpu.cache);
    cpu.cache = NULL;
    code = open_cubin();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, prepare_all_layouts, code), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &fine), 0);
        assert_ptr_equal(fine, code);
    }
    k = &((struct hed_cpu_code *)code)->states[kernel_named(code, "sum") * HED_ROWS_COUNT];
    l = hed_code_lifted((struct hed_cpu_code *)code, k);
    for (int i = 0; i < HED_ROWS_COUNT; i++)
        assert_true(!k[i].func || k[i].func == l->func);
    assert_non_null(l->func);
    hed_cpu_close(&cpu, code);
    cpu.baseline = cpu.tiered = false;
}

/* Makes the module's constants (bank 3) those of kernels alone (bank 2). */
static void
change_bank(unsigned char *bytes, size_t size)
{
    unsigned char *name = memmem(bytes, size, ".nv.constant3", 13);
    unsigned char *own = memmem(bytes, size, ".nv.constant2.pick", 18);
    struct hed_elf_file o;
    struct hed_elf_section s;

    assert_true(name && own);
    name[12] = '2';
    own[12] = '9';
    assert_int_equal(hed_elf_file_read((struct hed_bytes){bytes, size}, &o, NULL), 0);
    for (uint32_t i = 0; i < o.count; i++) {
        if (!hed_elf_file_section(&o, i, &s) || !hed_elf_section_is(&s, ".text.pick"))
            continue;
        for (size_t at = 0; at + 16 <= s.bytes.size; at += 16) {
            unsigned char *inst = bytes + (s.bytes.data - bytes) + at;

            if ((inst[0] | (inst[1] & 0xf) << 8) == 0xb82) /* LDC; bits 54 to 58 have the bank */
                inst[6] &= 0xbf;
        }
    }
}

static void
constants_of_a_kernel_alone_can_be_indexed(void **state)
{
    static const int listed[] = {3, 1, 4, 1, 5, 9, 2};
    const struct hed_bytes b = fixture("cubin/sm_80");
    unsigned char *bytes = malloc(b.size);
    uint64_t addresses[VARS_MAX];
    int32_t out[32] = {0}, *param = out;
    struct hed_why why = {""};
    struct hed_launch l = {
        .variables = addresses,
        .grid = {1, 1, 1},
        .block = {32, 1, 1},
        .param_bytes = sizeof param,
        .params = (const unsigned char *)&param,
    };

    assert_non_null(bytes);
    memcpy(bytes, b.data, b.size);
    change_bank(bytes, b.size);
    /* The second time, the compiled code is in the cache. */
    for (int i = 0; i < 2; i++) {
        l.code = open_bytes((struct hed_bytes){bytes, b.size});
        l.kernel = kernel_named(l.code, "pick");
        load_vars(l.code, addresses);
        memset(out, 0, sizeof out);
        if (prepare_and_launch(&l, &why) != CUDA_SUCCESS)
            fail_msg("%s", why.text);
        for (int lane = 0; lane < 32; lane++)
            assert_int_equal(out[lane], listed[lane % 7]);
        hed_cpu_close(&cpu, l.code);
    }
    free(bytes);
}

/* Libraries have cubins that were not linked, but need not be. */
static void
what_needs_no_linker_runs_without(void **state)
{
    const struct hed_bytes b = fixture("cubin/sm_80"), parts = fixture("cubin/sm_80_parts");
    unsigned char *bytes = malloc(b.size);
    uint64_t addresses[VARS_MAX];
    struct hed_code *code;
    int out[96];

    assert_non_null(bytes);
    memcpy(bytes, b.data, b.size);
    ((Elf64_Ehdr *)(void *)bytes)->e_type = ET_REL;
    code = open_bytes((struct hed_bytes){bytes, b.size});
    check_sum(code);
    hed_cpu_close(&cpu, code);
    free(bytes);
    code = open_bytes(parts);
    load_vars(code, addresses);
    assert_int_equal(run_sum(code, addresses, out, 90), CUDA_ERROR_NO_BINARY_FOR_GPU);
    hed_cpu_close(&cpu, code);
}

/* Instructions that do not exist. */
static void
damage_code(unsigned char *bytes, size_t size, const char *section)
{
    struct hed_elf_file o;
    struct hed_elf_section s;
    bool found = false;

    assert_int_equal(hed_elf_file_read((struct hed_bytes){bytes, size}, &o, NULL), 0);
    for (uint32_t i = 0; i < o.count; i++) {
        if (!hed_elf_file_section(&o, i, &s) || !hed_elf_section_is(&s, section))
            continue;
        memset(bytes + (s.bytes.data - bytes), 0xff, s.bytes.size / 2);
        found = true;
    }
    assert_true(found);
}

static void
damaged_machine_code_is_refused_at_the_launch(void **state)
{
    const struct hed_bytes b = fixture("cubin/sm_80");
    unsigned char *bytes = malloc(b.size);
    uint64_t addresses[VARS_MAX];
    struct hed_code *code;
    int out[96];

    assert_non_null(bytes);
    memcpy(bytes, b.data, b.size);
    damage_code(bytes, b.size, ".text.sum");
    code = open_bytes((struct hed_bytes){bytes, b.size});
    load_vars(code, addresses);
    assert_int_equal(run_sum(code, addresses, out, 90), CUDA_ERROR_NO_BINARY_FOR_GPU);
    hed_cpu_close(&cpu, code);
    free(bytes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_cubin_is_described, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(variables_get_their_values_and_addresses, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(kernels_run_in_both_tiers, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_kernel_without_parameters_runs, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(threads_share_memory, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(compiled_code_is_found_again, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(a_kernel_is_lifted_once, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(constants_of_a_kernel_alone_can_be_indexed, setup_cpu,
                                    teardown_cpu),
    cmocka_unit_test_setup_teardown(what_needs_no_linker_runs_without, setup_cpu, teardown_cpu),
    cmocka_unit_test_setup_teardown(damaged_machine_code_is_refused_at_the_launch, setup_cpu,
                                    teardown_cpu),
};

HED_UNIT_MAIN(tests)
