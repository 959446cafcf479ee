/* The areas of the soft driver together: each call is in at most one of them. */
#include "core/call.h"
#include "driver/driver.h"
#include "harness/unit.h"

#define AREA(name)               \
    {                            \
#name, &hed_calls_##name \
    }

static const struct {
    const char *name;
    const struct hed_cuda_ops *calls;
} cuda[] = {
    AREA(device),       AREA(device_info), AREA(context),   AREA(primary),        AREA(stream),
    AREA(event),        AREA(memop),       AREA(memory),    AREA(copy),           AREA(pool),
    AREA(virtual),      AREA(array),       AREA(module),    AREA(library),        AREA(function),
    AREA(launch),       AREA(link),        AREA(graph),     AREA(node),           AREA(exec),
    AREA(capture),      AREA(table),       AREA(graph_dot), AREA(node_attribute), AREA(user_object),
    AREA(graph_update),
};

static const struct {
    const char *name;
    const struct hed_nvml_ops *calls;
} nvml[] = {AREA(nvml_device), AREA(nvml_system), AREA(nvml_sensor), AREA(nvml_process)};

typedef void (*entry)(void);

/* Operation tables are arrays of pointers in all but name; entry i is call i + 1. */
static bool
has(const void *calls, unsigned call)
{
    entry e;

    memcpy(&e, (const char *)calls + (call - 1) * sizeof e, sizeof e);
    return e != NULL;
}

static void
no_call_is_in_two_areas(void **state)
{
    const char *owner[HED_CUDA_CALLS + HED_NVML_CALLS] = {NULL};
    unsigned doubles = 0;

    for (size_t a = 0; a < sizeof cuda / sizeof cuda[0]; a++)
        for (unsigned call = 1; call < HED_CUDA_CALLS; call++) {
            if (!has(cuda[a].calls, call))
                continue;
            if (owner[call]) {
                print_error("%s is in %s and in %s\n", hed_call_info(HED_API_CUDA, call)->name,
                            owner[call], cuda[a].name);
                doubles++;
            }
            owner[call] = cuda[a].name;
        }
    memset(owner, 0, sizeof owner);
    for (size_t a = 0; a < sizeof nvml / sizeof nvml[0]; a++)
        for (unsigned call = 1; call < HED_NVML_CALLS; call++) {
            if (!has(nvml[a].calls, call))
                continue;
            if (owner[call]) {
                print_error("%s is in %s and in %s\n", hed_call_info(HED_API_NVML, call)->name,
                            owner[call], nvml[a].name);
                doubles++;
            }
            owner[call] = nvml[a].name;
        }
    assert_int_equal(doubles, 0);
}

/* The driver's own list of areas is complete. */
static void
the_merged_tables_have_every_call_of_every_area(void **state)
{
    unsigned lost = 0;

    for (size_t a = 0; a < sizeof cuda / sizeof cuda[0]; a++)
        for (unsigned call = 1; call < HED_CUDA_CALLS; call++)
            lost += has(cuda[a].calls, call) && !has(hed_driver_calls(), call);
    for (size_t a = 0; a < sizeof nvml / sizeof nvml[0]; a++)
        for (unsigned call = 1; call < HED_NVML_CALLS; call++)
            lost += has(nvml[a].calls, call) && !has(hed_driver_nvml_calls(), call);
    assert_int_equal(lost, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_call_is_in_two_areas),
    cmocka_unit_test(the_merged_tables_have_every_call_of_every_area),
};

HED_UNIT_MAIN(tests)
