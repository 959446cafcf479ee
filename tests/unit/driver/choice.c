/* Tests of which code of an image runs, on a machine that takes machine code for sm_80 to sm_90. */
#include "driver/module/image.h"
#include "unit/driver/captured.h"
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

/* The device is an sm_90. `newer` says whether its profile accepts PTX for newer ones. */
struct choice {
    const char *words, *chosen;
};

static void
assert_choices(enum hed_near_prefers prefers, bool newer, const struct choice *c, size_t count)
{
    struct fake *f = started(prefers);

    f->driver->devices[0].info.profile.accepts_newer_ptx = newer;
    for (size_t i = 0; i < count; i++)
        if (strcmp(chosen(f, c[i].words), c[i].chosen) != 0)
            fail_msg("%s: %s, not %s", c[i].words, chosen(f, c[i].words), c[i].chosen);
    fake_free(f);
}

#define ASSERT_CHOICES(prefers, newer, ...)                                             \
    do {                                                                                \
        static const struct choice these[] = {__VA_ARGS__};                             \
                                                                                        \
        assert_choices(HED_NEAR_##prefers, newer, these, sizeof these / sizeof *these); \
    } while (0)

static void
ptx_that_fits_comes_before_machine_code(void **state)
{
    ASSERT_CHOICES(AUTO, false, {"sm_90 compute_80", "compute_80"},
                   {"sm_90 compute_75 compute_80 compute_120", "compute_80"},
                   {"sm_86 compute_90", "compute_90"});
}

static void
ptx_for_newer_devices_runs_in_place_of_machine_code_that_fits(void **state)
{
    ASSERT_CHOICES(AUTO, false, {"sm_90 compute_100 compute_120", "compute_100"},
                   {"sm_80 compute_120", "sm_80"}, {"compute_120", "error 209"});
}

static void
a_profile_can_accept_ptx_for_newer_devices(void **state)
{
    ASSERT_CHOICES(AUTO, true, {"sm_80 compute_120", "compute_120"},
                   {"compute_100 compute_120", "compute_100"}, {"sm_80", "sm_80"});
}

static void
exact_machine_code_comes_before_what_is_compatible(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);

    assert_string_equal(chosen(f, "sm_80 sm_90"), "sm_90");
    f->driver->devices[0].info.profile.major = 8;
    f->driver->devices[0].info.profile.minor = 6;
    assert_string_equal(chosen(f, "sm_80 sm_86 sm_89 sm_90"), "sm_86");
    f->driver->devices[0].info.profile.minor = 8;
    assert_string_equal(chosen(f, "sm_80 sm_86 sm_89 sm_90"), "sm_86");
    fake_free(f);
}

static void
any_machine_code_that_is_taken_is_the_last_resort(void **state)
{
    ASSERT_CHOICES(AUTO, false, {"sm_80 sm_86 sm_75", "sm_86"}, {"sm_86 compute_120", "sm_86"},
                   {"sm_75", "error 209"});
}

static void
machine_code_for_another_device_is_warned_of_once(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    struct captured log;
    char text[1024];

    captured_begin(&log);
    (void)chosen(f, "sm_90");
    for (int i = 0; i < 3; i++)
        assert_string_equal(chosen(f, "sm_80"), "sm_80");
    captured_end(&log, text, sizeof text);
    assert_one_line(text, "nothing for sm_90 that runs here, so its machine code for sm_80 runs");
    fake_free(f);
}

static void
the_user_can_prefer_ptx(void **state)
{
    ASSERT_CHOICES(PTX, false, {"sm_90 compute_80", "compute_80"},
                   {"sm_90 compute_120", "compute_120"}, {"sm_86", "sm_86"});
}

static void
the_user_can_prefer_machine_code(void **state)
{
    ASSERT_CHOICES(SASS, false, {"sm_90 compute_80", "sm_90"}, {"sm_80 compute_90", "sm_80"},
                   {"sm_75 compute_80", "compute_80"}, {"sm_75", "error 209"});
}

static void
code_that_cannot_be_read_is_passed_over(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    struct make image;
    CUmodule m = NULL;

    make_begin(&image);
    make_ptx(&image, 80, PTX_HEAD "BAD\n");
    make_entry(&image, HED_FATBIN_CUBIN, 80, HED_FATBIN_64BIT);
    ok(fake_call(f, cuModuleLoadData, &m, image.data));
    assert_int_equal(text_kind, HED_CODE_CUBIN);
    fake_free(f);
}

/* Loads an image that is refused, and returns what the log of errors says. */
static const char *
log_of_refused(struct fake *f, const struct make *image, CUresult expected)
{
    static char log[256];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUmodule m = NULL;

    log[0] = '\0';
    assert_int_equal(fake_call(f, cuModuleLoadDataEx, &m, image->data, 2, options, values),
                     expected);
    return log;
}

/* The reason is that of the PTX, although machine code was looked for afterwards. */
static void
the_reason_is_that_of_the_code_that_was_wanted_most(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    struct make image;

    make_begin(&image);
    make_ptx(&image, 80, PTX_HEAD "BAD\n");
    make_entry(&image, HED_FATBIN_CUBIN, 75, HED_FATBIN_64BIT);
    assert_non_null(
        strstr(log_of_refused(f, &image, CUDA_ERROR_INVALID_PTX), "BAD is no instruction"));
    fake_free(f);
}

static void
an_image_without_usable_code_is_refused_with_what_it_has(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    struct make image;

    make_begin(&image);
    make_entry(&image, HED_FATBIN_CUBIN, 75, HED_FATBIN_64BIT);
    make_ptx(&image, 120, text_ptx);
    assert_string_equal(log_of_refused(f, &image, CUDA_ERROR_NO_BINARY_FOR_GPU),
                        "no image for sm_90 among: sm_75 compute_120\n");
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

/* Libraries try their code for other architectures, too. Only a program that has nothing else is
 * told, when it ends. */
static void
code_tied_to_other_architectures_is_no_news(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    struct captured log;
    struct make image;
    CUmodule m = NULL;
    char text[512];

    make_begin(&image);
    make_entry(&image, HED_FATBIN_CUBIN, 100, HED_FATBIN_64BIT | HED_FATBIN_ARCH_FAMILY);
    captured_begin(&log);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, image.data), CUDA_ERROR_NO_BINARY_FOR_GPU);
    captured_end(&log, text, sizeof text);
    assert_string_equal(text, "");
    captured_begin(&log);
    hed_driver_fini(f->driver);
    captured_end(&log, text, sizeof text);
    assert_one_line(text, "no image could be loaded: no image for sm_90 among: sm_100f");
    fake_free(f);

    f = started(HED_NEAR_AUTO);
    captured_begin(&log);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, image.data), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_string_equal(chosen(f, "compute_80"), "compute_80");
    hed_driver_fini(f->driver);
    captured_end(&log, text, sizeof text);
    assert_string_equal(text, "");
    fake_free(f);

    /* Other code is news at once. */
    f = started(HED_NEAR_AUTO);
    make_entry(&image, HED_FATBIN_CUBIN, 100, HED_FATBIN_64BIT);
    captured_begin(&log);
    assert_int_equal(fake_call(f, cuModuleLoadData, &m, image.data), CUDA_ERROR_NO_BINARY_FOR_GPU);
    captured_end(&log, text, sizeof text);
    assert_one_line(text, "sm_100f sm_100");
    fake_free(f);
}

/* Joins two parts that have machine code for the device, and PTX for the given ones. */
static CUresult
join_parts(const struct fake *f, uint32_t first, uint32_t second)
{
    static struct make parts[2];
    const void *const images[] = {parts[0].data, parts[1].data, NULL};
    struct hed_why why = {""};
    struct hed_arena arena;
    struct hed_buf text;
    size_t missing;
    uint32_t arch;

    for (unsigned i = 0; i < 2; i++) {
        make_begin(&parts[i]);
        make_entry(&parts[i], HED_FATBIN_CUBIN, 90, HED_FATBIN_64BIT);
    }
    make_ptx(&parts[0], first, PTX_HEAD ".visible .global .b32 one;\n");
    make_ptx(&parts[1], second, PTX_HEAD ".visible .global .b32 two;\n");
    hed_arena_init(&arena, 1 << 20);
    hed_buf_init(&text, 1 << 20);

    const CUresult r = hed_image_join(&f->driver->devices[0].info.profile, images, &arena, &text,
                                      &arch, &missing, &why);

    if (r == CUDA_SUCCESS)
        assert_int_equal(missing, 0);
    hed_buf_fini(&text);
    hed_arena_fini(&arena);
    return r;
}

/* NVIDIA's device runtime has PTX for newer devices only, and so has NCCL, all of it. */
static void
parts_for_newer_devices_come_along_but_not_alone(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);

    assert_int_equal(join_parts(f, 80, 80), CUDA_SUCCESS);
    assert_int_equal(join_parts(f, 80, 120), CUDA_SUCCESS);
    assert_int_equal(join_parts(f, 120, 120), CUDA_ERROR_NOT_FOUND);
    fake_free(f);
}

/* Links inputs that have machine code (m) or PTX (p), one for each letter. */
static CUresult
link_inputs(struct fake *f, const char *kinds, size_t *size, char *log, size_t log_size)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)log_size};
    static struct make input;
    CUlinkState s = NULL;
    void *out = NULL;

    ok(fake_call(f, cuLinkCreate_v2, 2, options, values, &s));
    for (const char *k = kinds; *k; k++) {
        make_begin(&input);
        if (*k == 'm')
            make_entry(&input, HED_FATBIN_CUBIN, 90, HED_FATBIN_64BIT);
        else
            make_ptx(&input, 80, PTX_HEAD ".visible .global .b32 one;\n");
        ok(fake_call(f, cuLinkAddData_v2, s, CU_JIT_INPUT_FATBINARY, input.data, input.size,
                     "input", 0, NULL, NULL));
    }

    const CUresult r = fake_call(f, cuLinkComplete, s, &out, size);

    ok(fake_call(f, cuLinkDestroy, s));
    return r;
}

/* Not one of them in place of all. */
static void
several_inputs_of_machine_code_are_not_linked(void **state)
{
    struct fake *f = started(HED_NEAR_AUTO);
    char log[256];
    size_t size = 0;

    ok(link_inputs(f, "m", &size, log, sizeof log));
    assert_true(size > 0);
    ok(link_inputs(f, "pp", &size, log, sizeof log));
    for (unsigned i = 0; i < 3; i++) {
        const char *const mixed[] = {"mm", "mp", "pm"};

        assert_int_equal(link_inputs(f, mixed[i], &size, log, sizeof log),
                         CUDA_ERROR_NOT_SUPPORTED);
        assert_non_null(strstr(log, i == 0 ? "2 of 2 inputs have no PTX" : "1 of 2 inputs"));
    }
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(several_inputs_of_machine_code_are_not_linked),
    cmocka_unit_test(parts_for_newer_devices_come_along_but_not_alone),
    cmocka_unit_test(code_tied_to_other_architectures_is_no_news),
    cmocka_unit_test(ptx_that_fits_comes_before_machine_code),
    cmocka_unit_test(ptx_for_newer_devices_runs_in_place_of_machine_code_that_fits),
    cmocka_unit_test(a_profile_can_accept_ptx_for_newer_devices),
    cmocka_unit_test(exact_machine_code_comes_before_what_is_compatible),
    cmocka_unit_test(any_machine_code_that_is_taken_is_the_last_resort),
    cmocka_unit_test(machine_code_for_another_device_is_warned_of_once),
    cmocka_unit_test(the_user_can_prefer_ptx),
    cmocka_unit_test(the_user_can_prefer_machine_code),
    cmocka_unit_test(code_that_cannot_be_read_is_passed_over),
    cmocka_unit_test(the_reason_is_that_of_the_code_that_was_wanted_most),
    cmocka_unit_test(an_image_without_usable_code_is_refused_with_what_it_has),
    cmocka_unit_test(a_bare_cubin_runs_if_the_device_would_run_it),
    cmocka_unit_test(a_variable_can_be_a_part_of_another),
};

HED_UNIT_MAIN(tests)
