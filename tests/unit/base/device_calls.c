/* Tests of base/device_calls: names of the device runtime's functions, and what they take. */
#include "base/device_calls.h"

#include <stdio.h>
#include <string.h>

#include "harness/unit.h"

static int
find_named(const char *name, bool has_body)
{
    return hed_device_call_find(name, strlen(name), has_body);
}

static void
functions_are_found_by_all_their_names(void **state)
{
    assert_int_equal(find_named("__cudaCDP2LaunchDeviceV2", false), HED_DEVICE_LAUNCH);
    assert_int_equal(find_named("__cudaCDP2LaunchDeviceV2_ptsz", true), HED_DEVICE_LAUNCH);
    assert_int_equal(find_named("cudaLaunchDeviceV2", false), HED_DEVICE_LAUNCH);
    assert_int_equal(find_named("__cuda_syscall_cnpv2LaunchDeviceV2", false), HED_DEVICE_LAUNCH);
    assert_int_equal(find_named("__cuda_syscall_cnpv2SetLastError", false),
                     HED_DEVICE_SET_LAST_ERROR);
    for (int i = 0; i < HED_DEVICE_CALLS; i++) {
        char name[128];

        snprintf(name, sizeof name, "__cudaCDP2%s", hed_device_calls[i].name);
        assert_int_equal(find_named(name, true), i == HED_DEVICE_SET_LAST_ERROR ? -1 : i);
    }
}

static void
other_names_are_none(void **state)
{
    static const char *const names[] = {
        "",
        "__cudaCDP2",
        "__cudaCDP2Launch",
        "__cudaCDP2LaunchDeviceV22",
        "_ptsz",
        "__cudaCDP2_ptsz",
        "__cudaCDP2DeviceSynchronize",
        "__cuda_syscall_cnpv2EventCreate",
        "LaunchDeviceV2",
        "cudaGraphSetConditional",
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(find_named(names[i], false), -1);
    /* A program may define a function of this name. */
    assert_int_equal(find_named("cudaMalloc", true), -1);
}

/* The tiers have room for so many words, and the lifter takes them from R4 to R15. */
static void
arguments_fit(void **state)
{
    for (int i = 0; i < HED_DEVICE_CALLS; i++) {
        const struct hed_device_call *c = &hed_device_calls[i];
        unsigned words = 0, reg = 4;

        for (const char *a = c->args; *a; a++) {
            assert_non_null(strchr("wlpd", *a));
            words += *a == 'd' ? 3 : 1;
            reg = *a == 'l' || *a == 'p' ? (reg + 1) / 2 * 2 + 2 : reg + (*a == 'd' ? 3 : 1);
        }
        assert_true(words <= HED_DEVICE_WORDS);
        assert_int_equal(c->on_stack, reg > 16);
        assert_true(c->result == 'w' || c->result == 'l');
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(functions_are_found_by_all_their_names),
    cmocka_unit_test(other_names_are_none),
    cmocka_unit_test(arguments_fit),
};

HED_UNIT_MAIN(tests)
