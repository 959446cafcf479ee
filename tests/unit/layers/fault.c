/* Tests of the fault layer: which calls it fails, and which rules it refuses. */
#include "harness/unit.h"

#include <stdlib.h>

#include "backends/null/null.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/stats.h"
#include "layers/layers.h"

static struct hed_config config; /* large */
static struct hed_why why;

/* Makes the fault layer above null. Returns NULL and sets the reason if the rules are refused. */
static struct hed_layer *
chain(const char *rules, int *err)
{
    static struct hed_layer_room bottom;
    struct hed_layer *top = NULL;

    hed_config_init(&config);
    assert_int_equal(hed_config_set(&config, "fault", rules, NULL), 0);
    memset(&why, 0, sizeof why);
    hed_layer_place(&bottom, &hed_null_backend, NULL);
    *err = hed_layer_create(&hed_fault_layer, &bottom.layer, &config, &top, &why);
    return top;
}

static void
discard(struct hed_layer *l)
{
    free(l->state); /* the layer has no fini: its state lives as long as the process */
    hed_layer_free(l);
}

static CUresult
call_init(struct hed_layer *l)
{
    struct hed_cuInit a = {0};

    return l->cuda->cuInit(l, &a);
}

static void
the_nth_call_fails_and_does_not_go_down(void **state)
{
    int err;
    struct hed_layer *l = chain("cuMemAlloc_v2:2:CUDA_ERROR_OUT_OF_MEMORY", &err);
    const uint64_t before = atomic_load(&hed_stats.faults_injected);
    CUdeviceptr p = 0;
    struct hed_cuMemAlloc_v2 a = {&p, 16};

    assert_int_equal(err, 0);
    assert_int_equal(l->cuda->cuMemAlloc_v2(l, &a), CUDA_SUCCESS);
    assert_true(p != 0);
    p = 0;
    assert_int_equal(l->cuda->cuMemAlloc_v2(l, &a), CUDA_ERROR_OUT_OF_MEMORY);
    assert_true(p == 0);
    assert_int_equal(l->cuda->cuMemAlloc_v2(l, &a), CUDA_SUCCESS);
    assert_int_equal(call_init(l), CUDA_SUCCESS);
    assert_true(atomic_load(&hed_stats.faults_injected) == before + 1);
    discard(l);
}

static void
rules_are_independent(void **state)
{
    int err;
    struct hed_layer *l = chain(" cuInit:*:700 ,cuCtxSynchronize:1:719, cuCtxSynchronize:3:2,"
                                "nvmlInit_v2:1:NVML_ERROR_DRIVER_NOT_LOADED",
                                &err);
    struct hed_cuCtxSynchronize sync = {0};
    struct hed_nvmlInit_v2 nvml = {0};

    assert_int_equal(err, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(call_init(l), CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(l->cuda->cuCtxSynchronize(l, &sync), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(l->cuda->cuCtxSynchronize(l, &sync), CUDA_SUCCESS);
    assert_int_equal(l->cuda->cuCtxSynchronize(l, &sync), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(l->nvml->nvmlInit_v2(l, &nvml), NVML_ERROR_DRIVER_NOT_LOADED);
    assert_int_equal(l->nvml->nvmlInit_v2(l, &nvml), NVML_SUCCESS);
    discard(l);
}

static void
no_rules_fail_nothing(void **state)
{
    int err;
    struct hed_layer *l = chain("", &err);

    assert_int_equal(err, 0);
    assert_int_equal(call_init(l), CUDA_SUCCESS);
    discard(l);
}

static void
bad_rules_are_refused(void **state)
{
    static const struct {
        const char *rules;
        int err;
        const char *message;
    } rows[] = {
        {"cuInit", HED_EFORMAT,
         "fault: 'cuInit' is not NAME:N:ERROR, such as cuInit:1:CUDA_ERROR_UNKNOWN"},
        {"cuInit:1", HED_EFORMAT,
         "fault: 'cuInit' is not NAME:N:ERROR, such as cuInit:1:CUDA_ERROR_UNKNOWN"},
        {"cuInit:1:2,", HED_EFORMAT,
         "fault: '' is not NAME:N:ERROR, such as cuInit:1:CUDA_ERROR_UNKNOWN"},
        {",cuInit:1:2", HED_EFORMAT,
         "fault: '' is not NAME:N:ERROR, such as cuInit:1:CUDA_ERROR_UNKNOWN"},
        {"cuNothing:1:2", HED_ENOTFOUND,
         "fault: there is no call 'cuNothing'; use its full name, such as cuMemAlloc"},
        {":1:2", HED_ENOTFOUND,
         "fault: there is no call ''; use its full name, such as cuMemAlloc"},
        {"nvmlNothing:1:2", HED_ENOTFOUND,
         "fault: there is no call 'nvmlNothing'; use its full name, such as cuMemAlloc"},
        {"cuInit:0:2", HED_EINVAL,
         "fault: '0' is neither * nor a number from 1 on; nor a range, such as 2-4 "
         "or 3-"},
        {"cuInit::2", HED_EINVAL,
         "fault: '' is neither * nor a number from 1 on; nor a range, such as 2-4 "
         "or 3-"},
        {"cuInit:-1:2", HED_EINVAL,
         "fault: '-1' is neither * nor a number from 1 on; nor a range, such as 2-4 "
         "or 3-"},
        {"cuInit:1:0", HED_EINVAL, "fault: '0' is not the name or number of an error"},
        {"cuInit:1:CUDA_SUCCESS", HED_EINVAL,
         "fault: 'CUDA_SUCCESS' is not the name or number of an error"},
        {"cuInit:1:12345", HED_EINVAL, "fault: '12345' is not the name or number of an error"},
        {"cuInit:1:", HED_EINVAL, "fault: '' is not the name or number of an error"},
        {"cuInit:1:2:3", HED_EINVAL, "fault: '2:3' is not the name or number of an error"},
        {"cuInit:4-2:2", HED_EINVAL,
         "fault: '4-2' is neither * nor a number from 1 on; nor a range, such as 2-4 or 3-"},
        {"cuInit:2-x:2", HED_EINVAL,
         "fault: '2-x' is neither * nor a number from 1 on; nor a range, such as 2-4 or 3-"},
        {"cuNo*:1:2", HED_ENOTFOUND,
         "fault: there is no call 'cuNo*'; use its full name, such as cuMemAlloc"},
        {"cudaMalloc:1:2", HED_ENOTFOUND,
         "fault: 'cudaMalloc' is of the CUDA runtime; name the driver's call that it makes, which "
         "a trace shows"},
        {"nvmlInit_v2:1:CUDA_ERROR_UNKNOWN", HED_EINVAL,
         "fault: 'CUDA_ERROR_UNKNOWN' is not the name or number of an error"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int err;

        assert_null(chain(rows[i].rules, &err));
        assert_int_equal(err, rows[i].err);
        assert_string_equal(why.text, rows[i].message);
    }
}

static void
the_number_of_rules_is_limited(void **state)
{
    char rules[HED_CONFIG_TEXT_MAX] = "cuInit:1:2";
    int err;

    for (int i = 1; i < 64; i++)
        strncat(rules, ",cuInit:1:2", sizeof rules - strlen(rules) - 1);

    struct hed_layer *l = chain(rules, &err);

    assert_int_equal(err, 0);
    assert_int_equal(call_init(l), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(call_init(l), CUDA_SUCCESS);
    discard(l);
    strncat(rules, ",cuInit:1:2", sizeof rules - strlen(rules) - 1);
    assert_null(chain(rules, &err));
    assert_int_equal(err, HED_ELIMIT);
    assert_string_equal(why.text, "fault: more than 64 rules");
}

static CUresult
call_alloc(struct hed_layer *l)
{
    CUdeviceptr p = 0;

    return l->cuda->cuMemAlloc_v2(l, &(struct hed_cuMemAlloc_v2){&p, 16});
}

static void
a_name_means_all_versions_of_a_call(void **state)
{
    int err;
    struct hed_layer *l = chain("cuMemAlloc:1:2", &err);
    CUdeviceptr_v1 old = 0;
    CUdeviceptr p = 0;
    size_t pitch = 0;
    struct hed_cuMemAllocPitch_v2 other = {&p, &pitch, 16, 1, 4};

    assert_int_equal(err, 0);
    assert_int_equal(l->cuda->cuMemAllocPitch_v2(l, &other), CUDA_SUCCESS);
    assert_int_equal(call_alloc(l), CUDA_ERROR_OUT_OF_MEMORY);
    discard(l);
    l = chain("cuMemAlloc:2:2", &err);
    assert_int_equal(l->cuda->cuMemAlloc(l, &(struct hed_cuMemAlloc){&old, 16}), CUDA_SUCCESS);
    assert_int_equal(call_alloc(l), CUDA_ERROR_OUT_OF_MEMORY);
    discard(l);
}

static void
a_star_means_any_letters(void **state)
{
    int err;
    struct hed_layer *l = chain("cuMem*:2-3:2", &err);
    CUdeviceptr p = 0;
    size_t pitch = 0;
    struct hed_cuMemAllocPitch_v2 other = {&p, &pitch, 16, 1, 4};

    assert_int_equal(err, 0);
    assert_int_equal(call_alloc(l), CUDA_SUCCESS);
    assert_int_equal(l->cuda->cuMemAllocPitch_v2(l, &other), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(call_init(l), CUDA_SUCCESS);
    assert_int_equal(call_alloc(l), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(call_alloc(l), CUDA_SUCCESS);
    discard(l);
}

static void
a_range_without_an_end_goes_on(void **state)
{
    int err;
    struct hed_layer *l = chain("cuMemAlloc_v2:3-:2", &err);

    assert_int_equal(err, 0);
    for (int i = 1; i <= 8; i++)
        assert_int_equal(call_alloc(l), i < 3 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
    discard(l);
}

static int
control_faults(struct hed_layer *l, enum hed_control_what what, const char *rules, int *id)
{
    struct hed_control c = {.what = what, .text = rules, .id = *id};
    const int err = l->type->control(l, &c, &why);

    *id = c.id;
    return err ? err : (int)c.count;
}

static void
rules_come_and_go_while_the_program_runs(void **state)
{
    int err;
    struct hed_layer *l = chain("cuInit:*:700", &err);
    int first = 0;
    int second = 0;
    int none = 4711;

    assert_int_equal(call_alloc(l), CUDA_SUCCESS);
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_ADD, "cuMemAlloc:2:2", &first), 0);
    assert_int_equal(
        control_faults(l, HED_CONTROL_FAULT_ADD, "cuMemAlloc:3-:1,cuCtx*:*:1", &second), 0);
    assert_true(first > 0 && second > 0 && first != second);
    assert_int_equal(call_alloc(l), CUDA_SUCCESS); /* rules count from their own beginning */
    assert_int_equal(call_alloc(l), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(call_alloc(l), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_COUNT, NULL, &first), 1);
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_COUNT, NULL, &second), 1);
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_REMOVE, NULL, &second), 1);
    assert_int_equal(call_alloc(l), CUDA_SUCCESS);
    assert_int_equal(call_init(l), CUDA_ERROR_ILLEGAL_ADDRESS); /* the setting's rule stays */

    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_REMOVE, NULL, &second), HED_ENOTFOUND);
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_COUNT, NULL, &none), HED_ENOTFOUND);
    assert_string_equal(why.text, "fault: there are no rules with the number 4711 any more");
    none = 0; /* the number that the setting's rules have inside */
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_REMOVE, NULL, &none), HED_ENOTFOUND);
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_ADD, "", &none), HED_EINVAL);
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_ADD, "cuInit", &none), HED_EFORMAT);
    for (int i = 0; i < 62; i++) {
        none = 0;
        assert_int_equal(control_faults(l, HED_CONTROL_FAULT_ADD, "cuCtxGetId:1:1", &none), 0);
    }
    assert_int_equal(control_faults(l, HED_CONTROL_FAULT_ADD, "cuInit:1:1", &none), HED_ELIMIT);
    discard(l);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_nth_call_fails_and_does_not_go_down),
    cmocka_unit_test(rules_are_independent),
    cmocka_unit_test(no_rules_fail_nothing),
    cmocka_unit_test(bad_rules_are_refused),
    cmocka_unit_test(the_number_of_rules_is_limited),
    cmocka_unit_test(a_name_means_all_versions_of_a_call),
    cmocka_unit_test(a_star_means_any_letters),
    cmocka_unit_test(a_range_without_an_end_goes_on),
    cmocka_unit_test(rules_come_and_go_while_the_program_runs),
};

HED_UNIT_MAIN(tests)
