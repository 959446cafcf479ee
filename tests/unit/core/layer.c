/* Tests of core/layer and core/call: which layer gets a call. The tests use an operation table as
 * an array of pointers, in which entry i is call i + 1.
 */
#include "harness/unit.h"

#include <stdlib.h>

#include "backends/null/null.h"
#include "base/err.h"
#include "core/config.h"
#include "core/dead.h"
#include "core/layer.h"
#include "core/registry.h"
#include "gen/cuda_real.h"
#include "gen/nvml_real.h"
#include "gen/storeys.h"

typedef void (*entry)(void);

#define CUDA_COUNT (HED_CUDA_CALLS - 1)
#define NVML_COUNT (HED_NVML_CALLS - 1)

_Static_assert(sizeof(struct hed_cuda_ops) == CUDA_COUNT * sizeof(entry), "one entry a call");
_Static_assert(sizeof(struct hed_nvml_ops) == NVML_COUNT * sizeof(entry), "one entry a call");

/* ---- a double that remembers the last call --------------------------------------------------- */

struct recorder {
    enum hed_api api;
    uint32_t id;
    void *args;
    unsigned calls;
};

static CUresult
record_cuda_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct recorder *r = self->state;

    *r = (struct recorder){HED_API_CUDA, id, args, r->calls + 1};
    return CUDA_ERROR_ASSERT;
}

static nvmlReturn_t
record_nvml_any(struct hed_layer *self, enum hed_nvml_call id, void *args)
{
    struct recorder *r = self->state;

    *r = (struct recorder){HED_API_NVML, id, args, r->calls + 1};
    return NVML_ERROR_TIMEOUT;
}

static const struct hed_layer_type record = {
    .name = "record",
    .cuda_any = record_cuda_any,
    .nvml_any = record_nvml_any,
};

static void
invoke_reaches_exactly_that_call(struct hed_layer *top, struct recorder *r)
{
    uint64_t args[4];

    for (uint32_t id = 1; id < HED_CUDA_CALLS; id++) {
        assert_int_equal(hed_cuda_invoke(top, (enum hed_cuda_call)id, args), CUDA_ERROR_ASSERT);
        assert_int_equal(r->api, HED_API_CUDA);
        assert_int_equal(r->id, id);
        assert_ptr_equal(r->args, args);
    }
    for (uint32_t id = 1; id < HED_NVML_CALLS; id++) {
        assert_int_equal(hed_nvml_invoke(top, (enum hed_nvml_call)id, args), NVML_ERROR_TIMEOUT);
        assert_int_equal(r->api, HED_API_NVML);
        assert_int_equal(r->id, id);
        assert_ptr_equal(r->args, args);
    }
    assert_int_equal(r->calls, CUDA_COUNT + NVML_COUNT);
}

static void
every_number_reaches_its_call(void **state)
{
    struct hed_layer_room room;
    struct recorder r = {0};

    hed_layer_place(&room, &record, NULL);
    room.layer.state = &r;
    invoke_reaches_exactly_that_call(&room.layer, &r);
}

static void
an_empty_layer_forwards_every_call(void **state)
{
    static const struct hed_layer_type empty = {.name = "empty"};
    struct hed_layer_room below;
    struct hed_layer_room above;
    struct recorder r = {0};

    hed_layer_place(&below, &record, NULL);
    below.layer.state = &r;
    hed_layer_place(&above, &empty, &below.layer);
    assert_ptr_equal(above.layer.next, &below.layer);
    assert_ptr_equal(above.layer.type, &empty);
    invoke_reaches_exactly_that_call(&above.layer, &r);
}

static void
entries_of_tables_make_the_call_of_their_name(void **state)
{
    struct hed_layer_room room;
    struct recorder r = {0};
    struct hed_cuMemAlloc_v2 alloc = {0};
    struct hed_nvmlDeviceGetName name = {0};
    struct hed_layer top = {0};

    hed_layer_place(&room, &record, NULL);
    room.layer.state = &r;
    top.next = &room.layer;
    assert_int_equal(hed_next(&top, cuMemAlloc_v2, &alloc), CUDA_ERROR_ASSERT);
    assert_int_equal(r.id, HED_cuMemAlloc_v2);
    assert_int_equal(hed_next_nvml(&top, nvmlDeviceGetName, &name), NVML_ERROR_TIMEOUT);
    assert_int_equal(r.id, HED_nvmlDeviceGetName);
}

/* ---- override, any, rest --------------------------------------------------------------------- */

static CUresult
own_cuInit(struct hed_layer *self, struct hed_cuInit *a)
{
    return CUDA_ERROR_UNKNOWN;
}

static nvmlReturn_t
own_nvmlInit_v2(struct hed_layer *self, struct hed_nvmlInit_v2 *a)
{
    return NVML_ERROR_UNKNOWN;
}

static const struct hed_cuda_ops own_cuda = {.cuInit = own_cuInit};
static const struct hed_nvml_ops own_nvml = {.nvmlInit_v2 = own_nvmlInit_v2};

static void
a_call_is_found_in_own_then_any_then_rest_then_next(void **state)
{
    const struct hed_layer_type with_any = {
        .name = "a",
        .cuda = &own_cuda,
        .nvml = &own_nvml,
        .cuda_rest = &hed_cuda_null,
        .nvml_rest = &hed_nvml_null,
        .cuda_any = record_cuda_any,
        .nvml_any = record_nvml_any,
    };
    const struct hed_layer_type with_rest = {
        .name = "b", .cuda = &own_cuda, .cuda_rest = &hed_cuda_null, .nvml_rest = &hed_nvml_null};
    const struct hed_layer_type with_own = {.name = "c", .cuda = &own_cuda, .nvml = &own_nvml};
    struct hed_layer_room room;
    struct hed_cuInit init = {0};
    struct hed_nvmlInit_v2 nvml = {0};
    struct hed_cuCtxSynchronize sync = {0};

    hed_layer_place(&room, &with_any, NULL);
    room.layer.state = &(struct recorder){0};
    assert_int_equal(room.cuda.cuInit(&room.layer, &init), CUDA_ERROR_UNKNOWN);
    assert_int_equal(room.nvml.nvmlInit_v2(&room.layer, &nvml), NVML_ERROR_UNKNOWN);
    assert_int_equal(room.cuda.cuCtxSynchronize(&room.layer, &sync), CUDA_ERROR_ASSERT);

    hed_layer_place(&room, &with_rest, NULL);
    assert_int_equal(room.cuda.cuInit(&room.layer, &init), CUDA_ERROR_UNKNOWN);
    assert_int_equal(room.nvml.nvmlInit_v2(&room.layer, &nvml), NVML_SUCCESS);
    assert_int_equal(room.cuda.cuCtxSynchronize(&room.layer, &sync), CUDA_SUCCESS);

    hed_layer_place(&room, &with_own, NULL);
    assert_ptr_equal((void *)room.cuda.cuInit, (void *)own_cuInit);
    assert_ptr_equal((void *)room.cuda.cuCtxSynchronize, (void *)hed_cuda_forward.cuCtxSynchronize);
}

static void
check_complete(const void *table, size_t count)
{
    const entry *e = table;

    for (size_t i = 0; i < count; i++)
        assert_true(e[i] != NULL);
}

static void
generated_tables_are_complete(void **state)
{
    check_complete(&hed_cuda_forward, CUDA_COUNT);
    check_complete(&hed_cuda_any, CUDA_COUNT);
    check_complete(&hed_cuda_null, CUDA_COUNT);
    check_complete(&hed_cuda_real_ops, CUDA_COUNT);
    check_complete(&hed_nvml_forward, NVML_COUNT);
    check_complete(&hed_nvml_any, NVML_COUNT);
    check_complete(&hed_nvml_null, NVML_COUNT);
    check_complete(&hed_nvml_real_ops, NVML_COUNT);
    assert_int_equal(hed_cuda_real_count, sizeof(struct hed_cuda_real) / sizeof(entry));
    assert_int_equal(hed_nvml_real_count, sizeof(struct hed_nvml_real) / sizeof(entry));
}

/* ---- descriptions ---------------------------------------------------------------------------- */

static void
check_info(enum hed_api api, uint32_t count, size_t *with_ptds)
{
    for (uint32_t id = 1; id < count; id++) {
        const struct hed_call_info *info = hed_call_info(api, id);

        assert_non_null(info);
        assert_int_equal(hed_call_find(api, info->name), id);
        assert_true(info->size > 0);
        assert_true(info->stream >= -1 && info->stream < (int)info->size);
        assert_true(info->ptds >= -1 && info->ptds < (int)info->size);
        /* The bool and the suffix go together. */
        assert_int_equal(info->ptds >= 0, *info->suffix != 0);
        *with_ptds += info->ptds >= 0;
    }
    assert_null(hed_call_info(api, 0));
    assert_null(hed_call_info(api, count));
    assert_null(hed_call_info(api, UINT32_MAX));
    assert_int_equal(hed_call_find(api, ""), 0);
    assert_int_equal(hed_call_find(api, "cuMemAlloc_v2x"), 0);
}

static void
every_call_is_described(void **state)
{
    size_t with_ptds = 0;

    check_info(HED_API_CUDA, HED_CUDA_CALLS, &with_ptds);
    assert_true(with_ptds > 80);
    check_info(HED_API_NVML, HED_NVML_CALLS, &with_ptds);
    assert_null(hed_call_info(HED_API_COUNT, 1));
    assert_int_equal(hed_call_find(HED_API_COUNT, "cuInit"), 0);
    assert_int_equal(hed_call_find(HED_API_CUDA, "nvmlInit_v2"), 0);
    assert_string_equal(hed_cuda_info[HED_cuLaunchKernel].suffix, "_ptsz");
    assert_int_equal(hed_cuda_info[HED_cuLaunchKernel].stream,
                     offsetof(struct hed_cuLaunchKernel, hStream));
    assert_string_equal(hed_cuda_info[HED_cuMemcpyHtoD_v2].suffix, "_ptds");
}

static void
streams_inside_structs_are_found(void **state)
{
    CUstream stream = (CUstream)(uintptr_t)0x77;
    const CUlaunchConfig config = {.hStream = stream};
    const struct hed_cuLaunchKernel plain = {.hStream = stream};
    struct hed_cuLaunchKernelEx hidden = {.config = &config};
    const struct hed_cuMemAlloc_v2 none = {0};
    uint64_t found = 1;

    assert_true(hed_call_stream(&hed_cuda_info[HED_cuLaunchKernel], &plain, &found));
    assert_true(found == 0x77);
    found = 1;
    assert_true(hed_call_stream(&hed_cuda_info[HED_cuLaunchKernelEx], &hidden, &found));
    assert_true(found == 0x77);
    hidden.config = NULL;
    assert_false(hed_call_stream(&hed_cuda_info[HED_cuLaunchKernelEx], &hidden, &found));
    assert_false(hed_call_stream(&hed_cuda_info[HED_cuMemAlloc_v2], &none, &found));
    assert_true(found == 0x77);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int inits;
static int finis;

static int
count_init(struct hed_layer *self, const struct hed_config *config, struct hed_why *why)
{
    inits++;
    if (*config->log) {
        hed_why_set(why, "told to fail");
        return HED_ESTATE;
    }
    self->state = &inits;
    return 0;
}

static void
count_fini(struct hed_layer *self)
{
    assert_ptr_equal(self->state, &inits);
    finis++;
}

static const struct hed_layer_type counted = {
    .name = "counted",
    .init = count_init,
    .fini = count_fini,
};

static void
create_and_free_run_init_and_fini(void **state)
{
    static struct hed_config config;
    struct hed_layer *layer = NULL;
    struct hed_why why;

    inits = finis = 0;
    assert_int_equal(hed_layer_create(&counted, NULL, &config, &layer, &why), 0);
    assert_non_null(layer);
    assert_int_equal(inits, 1);
    hed_layer_free(layer);
    assert_int_equal(finis, 1);
    hed_layer_free(NULL);

    /* On failure, out-parameters are untouched, and fini is not called after a failed init. */
    layer = (struct hed_layer *)&config;
    config.log[0] = 'x';
    assert_int_equal(hed_layer_create(&counted, NULL, &config, &layer, &why), HED_ESTATE);
    assert_ptr_equal(layer, &config);
    assert_string_equal(why.text, "told to fail");
    assert_int_equal(inits, 2);
    assert_int_equal(finis, 1);
}

static void
a_dead_layer_gives_every_call_the_same_answer(void **state)
{
    struct hed_layer *dead = hed_dead_layer(CUDA_ERROR_NO_DEVICE, NVML_ERROR_LIBRARY_NOT_FOUND);
    const char *s = NULL;
    uint64_t args[4] = {0};

    assert_null(dead->next);
    for (uint32_t id = 1; id < HED_CUDA_CALLS; id++)
        if (id != HED_cuGetErrorName && id != HED_cuGetErrorString)
            assert_int_equal(hed_cuda_invoke(dead, (enum hed_cuda_call)id, args),
                             CUDA_ERROR_NO_DEVICE);
    for (uint32_t id = 1; id < HED_NVML_CALLS; id++)
        assert_int_equal(hed_nvml_invoke(dead, (enum hed_nvml_call)id, args),
                         NVML_ERROR_LIBRARY_NOT_FOUND);

    struct hed_cuGetErrorName name = {CUDA_ERROR_NO_DEVICE, &s};

    assert_int_equal(dead->cuda->cuGetErrorName(dead, &name), CUDA_SUCCESS);
    assert_string_equal(s, "CUDA_ERROR_NO_DEVICE");
}

/* The settings know all layers. One is a plug-in, others may not be built. */
static bool
is_built_in(const char *name)
{
    if (strcmp(name, "trace") == 0)
        return HED_HAVE_SEE;
    if (strcmp(name, "quota") == 0 || strcmp(name, "record") == 0 || strcmp(name, "sched") == 0)
        return HED_HAVE_SHARE;
    return strcmp(name, "lift") != 0;
}

static void
check_names(const struct hed_layer_type *const *types, const char *const *names)
{
    for (; *names; names++)
        if (is_built_in(*names)) {
            assert_non_null(*types);
            assert_string_equal((*types++)->name, *names);
        }
    assert_null(*types);
}

static void
settings_know_the_registry(void **state)
{
    check_names(hed_layer_types, hed_config_layers);
    for (const struct hed_layer_type *const *t = hed_backend_types; *t; t++) {
        const char *const *name = hed_config_gpus;

        while (*name && strcmp(*name, (*t)->name) != 0)
            name++;
        assert_non_null(*name);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_number_reaches_its_call),
    cmocka_unit_test(an_empty_layer_forwards_every_call),
    cmocka_unit_test(entries_of_tables_make_the_call_of_their_name),
    cmocka_unit_test(a_call_is_found_in_own_then_any_then_rest_then_next),
    cmocka_unit_test(generated_tables_are_complete),
    cmocka_unit_test(every_call_is_described),
    cmocka_unit_test(streams_inside_structs_are_found),
    cmocka_unit_test(create_and_free_run_init_and_fini),
    cmocka_unit_test(a_dead_layer_gives_every_call_the_same_answer),
    cmocka_unit_test(settings_know_the_registry),
};

HED_UNIT_MAIN(tests)
