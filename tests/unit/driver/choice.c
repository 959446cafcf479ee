/* Tests of which code of an image runs, on a machine that takes machine code for sm_80 to sm_90. */
#include "unit/driver/module_machine.h"
#include "unit/fatbin/make.h"

static bool
takes_some(struct hed_arch arch)
{
    return arch.number >= 80 && arch.number <= 90;
}

/* The machine of module_machine.h with a preference. */
static struct fake *
started(enum hed_near_prefers prefers)
{
    static struct hed_executor executor;
    struct fake *f = text_started(1);

    executor = *f->near.executor;
    executor.takes_cubin = takes_some;
    f->near.executor = &executor;
    f->near.prefers = prefers;
    (void)fake_use_primary(f, 0);
    return f;
}

/* Loads an image of the words ("sm_80 compute_75"), and says what was opened. */
static const char *
chosen(struct fake *f, const char *words)
{
    static char text[64];
    struct make image;
    CUmodule m = NULL;

    make_begin(&image);
    for (const char *at = words; at; at = strchr(at, ' ') ? strchr(at, ' ') + 1 : NULL) {
        const struct hed_arch arch = {.number = (uint32_t)strtoul(strchr(at, '_') + 1, NULL, 10)};

        if (at[0] == 'c')
            make_ptx(&image, arch.number, text_ptx);
        else
            make_entry(&image, HED_FATBIN_CUBIN, arch.number, HED_FATBIN_64BIT);
    }

    const CUresult r = fake_call(f, cuModuleLoadData, &m, image.data);

    if (r != CUDA_SUCCESS)
        (void)snprintf(text, sizeof text, "error %d", (int)r);
    else
        (void)snprintf(text, sizeof text, "%s_%u", text_kind == HED_CODE_CUBIN ? "sm" : "compute",
                       text_arch);
    return text;
}

static void
ptx_comes_first_unless_the_user_says_otherwise(void **state)
{
    static const enum hed_near_prefers those[] = {HED_NEAR_AUTO, HED_NEAR_PTX};

    for (int i = 0; i < 2; i++) {
        struct fake *f = started(those[i]);

        assert_string_equal(chosen(f, "sm_90 compute_80"), "compute_80");
        assert_string_equal(chosen(f, "sm_90 compute_120"), "compute_120");
        fake_free(f);
    }
}

static void
machine_code_comes_first_on_request(void **state)
{
    struct fake *f = started(HED_NEAR_SASS);

    assert_string_equal(chosen(f, "sm_90 compute_80"), "sm_90");
    assert_string_equal(chosen(f, "sm_80 compute_90"), "sm_80");
    assert_string_equal(chosen(f, "sm_75 compute_80"), "compute_80");
    fake_free(f);
}

static void
machine_code_runs_if_there_is_no_ptx(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);

    assert_string_equal(chosen(f, "sm_80 sm_90"), "sm_90");
    assert_string_equal(chosen(f, "sm_80 sm_86 sm_75"), "sm_86");
    assert_string_equal(chosen(f, "sm_86 compute_120"), "sm_86");
    assert_string_equal(chosen(f, "sm_75"), "error 209");
    fake_free(f);
}

static void
a_bare_cubin_runs_if_the_device_would_run_it(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    CUmodule m = NULL;

    ok(fake_call(f, cuModuleLoadData, &m, fixture("cubin/sm_90").data));
    assert_int_equal(text_kind, HED_CODE_CUBIN);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, fixture("cubin/sm_80").data),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    f->near.prefers = HED_NEAR_SASS;
    ok(fake_call(f, cuModuleLoadData, &m, fixture("cubin/sm_80").data));
    assert_int_equal(text_arch, 80);
    fake_free(f);
}

static void
a_variable_can_be_a_part_of_another(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    CUdeviceptr global = 0, part = 0;
    size_t size = 0;
    CUmodule m = NULL;

    ok(fake_call(f, cuModuleLoadData, &m, PTX_HEAD "// global_var part_var\n"));
    ok(fake_call(f, cuModuleGetGlobal_v2, &part, &size, m, "part_var"));
    assert_int_equal(size, 4);
    assert_int_equal(part % 256, 8);
    assert_int_equal(*(uint32_t *)(uintptr_t)part, 3);
    ok(fake_call(f, cuModuleGetGlobal_v2, &global, &size, m, "global_var"));
    assert_true(part >= global + size || part + 64 <= global);
    assert_int_equal(fake_call(f, cuModuleGetGlobal_v2, &part, &size, m, ""), CUDA_ERROR_NOT_FOUND);
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ptx_comes_first_unless_the_user_says_otherwise),
    cmocka_unit_test(machine_code_comes_first_on_request),
    cmocka_unit_test(machine_code_runs_if_there_is_no_ptx),
    cmocka_unit_test(a_bare_cubin_runs_if_the_device_would_run_it),
    cmocka_unit_test(a_variable_can_be_a_part_of_another),
};

HED_UNIT_MAIN(tests)
