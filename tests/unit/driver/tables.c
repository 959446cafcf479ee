/* Devices and export tables of the soft driver, as NVIDIA's runtime uses them, and the areas'
 * tables. The expected errors are those of NVIDIA's driver 580 on an H200. */
#include <pthread.h>
#include <unistd.h>

#include "driver/context/context.h"
#include "driver/table/integrity.h"
#include "driver/table/tables.h"
#include "harness/unit.h"
#include "unit/driver/fake.h"

#define ok(call) assert_int_equal((call), CUDA_SUCCESS)

static const CUuuid storage_id = {{(char)0xc6, (char)0x93, 0x33, 0x6e, 0x11, 0x21, (char)0xdf, 0x11,
                                   (char)0xa8, (char)0xc3, 0x68, (char)0xf3, 0x55, (char)0xd8,
                                   (char)0x95, (char)0x93}};
static const CUuuid interface_id = {{0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4,
                                     (char)0xe7, 0x4a, (char)0x89, (char)0x87, (char)0xd9, 0x39,
                                     0x12, (char)0xfd, (char)0x9d, (char)0xf9}};
static const CUuuid integrity_id = {{(char)0xd4, 0x08, 0x20, 0x55, (char)0xbd, (char)0xe6, 0x70,
                                     0x4b, (char)0x8d, 0x34, (char)0xba, 0x12, 0x3c, 0x66,
                                     (char)0xe1, (char)0xf2}};
static const CUuuid tools_id = {{0x21, 0x31, (char)0x8c, 0x60, (char)0x97, 0x14, 0x32, 0x48,
                                 (char)0x8c, (char)0xa6, 0x41, (char)0xff, 0x73, 0x24, (char)0xc8,
                                 (char)0xf2}};
static const CUuuid modules_id = {{0x6e, 0x16, 0x3f, (char)0xbe, (char)0xb9, 0x58, 0x44, 0x4d,
                                   (char)0x83, 0x5c, (char)0xe1, (char)0x82, (char)0xaf, (char)0xf1,
                                   (char)0x99, 0x1e}};

static const hed_slot *
table_of(struct fake *f, const CUuuid *id)
{
    const void *table = NULL;

    ok(fake_call(f, cuGetExportTable, &table, id));
    return table;
}

/* ---- areas ----------------------------------------------------------------------------------- */

static void
an_area_s_call_is_found_in_the_merged_table(void **state)
{
    const struct hed_cuda_ops *calls = hed_driver_calls();

    assert_ptr_equal(calls, hed_driver_calls());
    assert_true(calls->cuInit == hed_calls_device.cuInit);
    assert_true(calls->cuCtxCreate_v2 == hed_calls_context.cuCtxCreate_v2);
    assert_true(calls->cuDevicePrimaryCtxRetain == hed_calls_primary.cuDevicePrimaryCtxRetain);
    assert_true(calls->cuGetExportTable == hed_calls_table.cuGetExportTable);
}

static void
what_no_area_has_is_not_supported(void **state)
{
    struct fake *f = fake_create(1);

    assert_int_equal(fake_call(f, cuGLInit, 0), CUDA_ERROR_NOT_SUPPORTED);
    fake_free(f);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void
devices_are_described_by_their_profile(void **state)
{
    struct fake *f = fake_create(2);
    char name[64] = "xxxxxxxxxx";
    CUuuid uuid;
    size_t bytes = 0;
    unsigned small = 0;
    int n = -1;
    int minor = -1;

    assert_int_equal(fake_call(f, cuDeviceGetCount, &n), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuDeviceGetCount, NULL), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(fake_call(f, cuDriverGetVersion, NULL), CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuDriverGetVersion, &n));
    assert_int_equal(n, HED_DRIVER_VERSION);
    ok(fake_call(f, cuInit, 0));
    ok(fake_call(f, cuDeviceGetCount, &n));
    assert_int_equal(n, 2);
    assert_int_equal(fake_call(f, cuDeviceGet, &n, -1), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(fake_call(f, cuDeviceGet, &n, 2), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(fake_call(f, cuDeviceGet, NULL, 99), CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuDeviceGet, &n, 1));
    assert_int_equal(n, 1);
    ok(fake_call(f, cuDeviceGetName, name, 5, 0));
    assert_string_equal(name, "Fake");
    assert_int_equal(fake_call(f, cuDeviceGetName, name, 0, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDeviceGetName, NULL, 5, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDeviceGetName, name, 64, 9), CUDA_ERROR_INVALID_DEVICE);
    ok(fake_call(f, cuDeviceTotalMem_v2, &bytes, 0));
    assert_int_equal(bytes, FAKE_MEMORY);
    ok(fake_call(f, cuDeviceTotalMem, &small, 0));
    assert_int_equal(small, UINT32_MAX);
    ok(fake_call(f, cuDeviceGetUuid, &uuid, 1));
    assert_memory_equal(&uuid, f->driver->devices[1].info.uuid, 16);
    ok(fake_call(f, cuDeviceComputeCapability, &n, &minor, 0));
    assert_int_equal(n * 10 + minor, FAKE_ARCH);
    assert_int_equal(fake_call(f, cuDeviceGetLuid, name, &small, 0), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(fake_call(f, cuDeviceGetLuid, NULL, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

static void
attributes_come_from_profile_and_place(void **state)
{
    struct fake *f = fake_create(2);
    int n = -1;

    ok(fake_call(f, cuInit, 0));
    ok(fake_call(f, cuDeviceGetAttribute, &n, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1));
    assert_int_equal(n, 32);
    ok(fake_call(f, cuDeviceGetAttribute, &n, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1));
    assert_int_equal(n, 2);
    assert_int_equal(fake_call(f, cuDeviceGetAttribute, &n, (CUdevice_attribute)-1, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDeviceGetAttribute, &n, (CUdevice_attribute)0, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDeviceGetAttribute, &n, (CUdevice_attribute)5000, 0),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDeviceGetAttribute, &n, (CUdevice_attribute)5000, 9),
                     CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(fake_call(f, cuDeviceGetAttribute, NULL, (CUdevice_attribute)1, 0),
                     CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

struct pci_row {
    const char *text;
    CUresult result;
};

static const struct pci_row pci_rows[] = {
    {"0000:02:00.0", CUDA_SUCCESS},
    {"02:00.0", CUDA_SUCCESS},
    {"0000:02:00", CUDA_SUCCESS},
    {"00000000:2:0.0", CUDA_SUCCESS},
    {"02:00", CUDA_ERROR_INVALID_VALUE},
    {"0000:02:00.1", CUDA_ERROR_INVALID_DEVICE},
    {"ffff:ff:1f.0", CUDA_ERROR_INVALID_DEVICE},
    {"0000:02:00.0junk", CUDA_ERROR_INVALID_VALUE},
    {"0000:02:00.0.0", CUDA_ERROR_INVALID_VALUE},
    {"0:0:0:2:0.0", CUDA_ERROR_INVALID_VALUE},
    {"zz", CUDA_ERROR_INVALID_VALUE},
    {"-1:2:0.0", CUDA_ERROR_INVALID_VALUE},
    {"0000:02:", CUDA_ERROR_INVALID_VALUE},
    {"", CUDA_ERROR_INVALID_VALUE},
    {NULL, CUDA_ERROR_INVALID_VALUE},
};

static void
multiprocessors_are_a_resource(void **state)
{
    struct fake *f = fake_create(1);
    CUdevResource_v1 of_device, of_context;
    int count = 0;

    ok(fake_call(f, cuInit, 0));
    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuDeviceGetAttribute, &count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    ok(fake_call(f, cuDeviceGetDevResource, 0, &of_device, CU_DEV_RESOURCE_TYPE_SM));
    ok(fake_call(f, cuCtxGetDevResource, NULL, &of_context, CU_DEV_RESOURCE_TYPE_SM));
    assert_memory_equal(&of_device, &of_context, sizeof of_device);
    assert_int_equal(of_device.sm.smCount, count);
    assert_int_equal(of_device.sm.minSmPartitionSize, 8);
    assert_int_equal(fake_call(f, cuDeviceGetDevResource, 0, &of_device, 0),
                     CUDA_ERROR_INVALID_RESOURCE_TYPE);
    assert_int_equal(fake_call(f, cuDeviceGetDevResource, 0, NULL, CU_DEV_RESOURCE_TYPE_SM),
                     CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

static void
devices_are_found_by_their_pci_id(void **state)
{
    struct fake *f = fake_create(2);
    char id[32];
    int n = -1;

    ok(fake_call(f, cuInit, 0));
    ok(fake_call(f, cuDeviceGetPCIBusId, id, 13, 1));
    assert_string_equal(id, "0000:02:00.0");
    assert_int_equal(fake_call(f, cuDeviceGetPCIBusId, id, 12, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuDeviceGetPCIBusId, id, -1, 1), CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < sizeof pci_rows / sizeof pci_rows[0]; i++)
        assert_int_equal(fake_call(f, cuDeviceGetByPCIBusId, &n, pci_rows[i].text),
                         pci_rows[i].result);
    assert_int_equal(n, 1);
    fake_free(f);
}

static void
devices_see_each_other(void **state)
{
    struct fake *f = fake_create(2);
    int n = -1;

    ok(fake_call(f, cuInit, 0));
    ok(fake_call(f, cuDeviceCanAccessPeer, &n, 0, 1));
    assert_int_equal(n, 1);
    ok(fake_call(f, cuDeviceCanAccessPeer, &n, 0, 0));
    assert_int_equal(n, 0);
    assert_int_equal(fake_call(f, cuDeviceCanAccessPeer, &n, 0, 9), CUDA_ERROR_INVALID_DEVICE);
    ok(fake_call(f, cuDeviceGetP2PAttribute, &n, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
    assert_int_equal(n, 1);
    assert_int_equal(fake_call(f, cuDeviceGetP2PAttribute, &n, (CUdevice_P2PAttribute)1, 0, 0),
                     CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(fake_call(f, cuDeviceGetP2PAttribute, &n, (CUdevice_P2PAttribute)77, 0, 1),
                     CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

static void
linear_textures_are_as_wide_as_their_elements_are_narrow(void **state)
{
    struct fake *f = fake_create(1);
    const struct {
        CUarray_format format;
        unsigned channels;
        size_t width;
    } rows[] = {{CU_AD_FORMAT_FLOAT, 1, 1073741824},
                {CU_AD_FORMAT_FLOAT, 2, 536870912},
                {CU_AD_FORMAT_FLOAT, 4, 268435456},
                {CU_AD_FORMAT_UNSIGNED_INT8, 1, 1073741824}};
    size_t width = 0;

    ok(fake_call(f, cuInit, 0));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ok(fake_call(f, cuDeviceGetTexture1DLinearMaxWidth, &width, rows[i].format,
                     rows[i].channels, 0));
        assert_int_equal(width, rows[i].width);
    }
    for (unsigned n = 0; n < 6; n++)
        assert_int_equal(
            fake_call(f, cuDeviceGetTexture1DLinearMaxWidth, &width, CU_AD_FORMAT_FLOAT, n, 0),
            n == 1 || n == 2 || n == 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        fake_call(f, cuDeviceGetTexture1DLinearMaxWidth, &width, (CUarray_format)0x99, 1, 0),
        CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

static void
memory_of_graphs_is_counted_and_its_peak_can_be_forgotten(void **state)
{
    struct fake *f = fake_create(1);
    struct hed_device *dev = &f->driver->devices[0];
    cuuint64_t value = 77;

    ok(fake_call(f, cuInit, 0));
    hed_lock(&f->driver->memory_lock);
    hed_device_graph_memory_locked(dev, 4096, 0);
    hed_device_graph_memory_locked(dev, 0, 1024);
    hed_unlock(&f->driver->memory_lock);
    for (int attr = 0; attr < 5; attr++) {
        const CUresult r =
            fake_call(f, cuDeviceGetGraphMemAttribute, 0, (CUgraphMem_attribute)attr, &value);

        assert_int_equal(r, attr < 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
        if (attr < 4)
            assert_int_equal(value, attr % 2 ? 4096 : 3072);
        value = 0;
        assert_int_equal(
            fake_call(f, cuDeviceSetGraphMemAttribute, 0, (CUgraphMem_attribute)attr, &value),
            attr == 1 || attr == 3 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    }
    ok(fake_call(f, cuDeviceGetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    assert_int_equal(value, 3072);
    assert_int_equal(
        fake_call(f, cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value),
        CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(
        fake_call(f, cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, NULL),
        CUDA_ERROR_INVALID_VALUE);
    ok(fake_call(f, cuDeviceGraphMemTrim, 0));
    assert_int_equal(fake_call(f, cuDeviceGraphMemTrim, 9), CUDA_ERROR_INVALID_DEVICE);
    fake_free(f);
}

static void
a_driver_without_devices_does_not_start(void **state)
{
    struct fake *f = fake_create(0);

    assert_int_equal(fake_call(f, cuInit, 0), CUDA_ERROR_NO_DEVICE);
    fake_free(f);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void
unknown_tables_are_refused(void **state)
{
    struct fake *f = fake_create(1);
    const CUuuid id = {"aaaaaaaaaaaaaaa"};
    const void *table = NULL;

    assert_int_equal(fake_call(f, cuGetExportTable, &table, &id), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(fake_call(f, cuGetExportTable, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    fake_free(f);
}

/* Every entry can be called; unknown slots return 0. */
static void
tables_say_their_size_and_are_full(void **state)
{
    struct fake *f = fake_create(1);
    const CUuuid *const ids[] = {&interface_id, &integrity_id, &tools_id, &modules_id};
    const size_t words[] = {13, 3, 95, 100};

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        const hed_slot *t = table_of(f, ids[i]);

        assert_int_equal((uintptr_t)t[0], words[i] * sizeof(void *));
        for (size_t k = 1; k < words[i]; k++)
            assert_true(t[k] != NULL || (i == 0 && k == 10));
    }

    const hed_slot *tools = table_of(f, &tools_id);
    CUresult (*slot)(void *, void *, void *) = (CUresult(*)(void *, void *, void *))tools[94];

    ok(slot(NULL, NULL, NULL));
    fake_free(f);
}

/* cuBLASLt calls slot 4 of the one without looking whether it got the table; CUPTI needs the other
 * to start, and must not see slots that driver 580 does not have. */
static void
tables_of_libraries_are_there_and_refuse(void **state)
{
    static const CUuuid layout_id = {"\x17\x34\xdc\x26\x80\x0d\x47\x45"
                                     "\x87\x26\xc0\xf1\xe7\xdd\x8b\xca"};
    static const CUuuid profiler_id = {"\x7c\xb6\x3f\x9b\x9c\xa4\x8e\x42"
                                       "\xa4\x84\xbe\xb6\x6e\x6a\xed\x7f"};
    const CUuuid *const ids[] = {&layout_id, &profiler_id};
    const size_t sizes[] = {40, 67};
    struct fake *f = fake_create(1);

    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        const hed_slot *t = table_of(f, ids[i]);
        const size_t words = (uintptr_t)t[0] / sizeof(void *);

        assert_int_equal(words, sizes[i]);
        for (size_t k = 1; k < words; k++) {
            void *out = NULL;
            CUresult (*slot)(void **, void **, void *) =
                (CUresult(*)(void **, void **, void *))t[k];

            assert_int_equal(slot(&out, &out, NULL), CUDA_ERROR_NOT_SUPPORTED);
            assert_null(out);
        }
    }
    fake_free(f);
}

static void
the_primary_s_handle_is_given_without_retaining_it(void **state)
{
    struct fake *f = fake_create(1);
    const hed_slot *t = table_of(f, &interface_id);
    CUresult (*primary)(CUcontext *, CUdevice) = (CUresult(*)(CUcontext *, CUdevice))t[2];
    CUcontext c = NULL;
    CUcontext retained = NULL;
    unsigned flags = 9;
    int active = 9;

    assert_int_equal(primary(&c, 0), CUDA_ERROR_NOT_INITIALIZED);
    ok(fake_call(f, cuInit, 0));
    ok(primary(&c, 0));
    assert_int_equal(primary(&c, 9), CUDA_ERROR_INVALID_DEVICE);
    ok(fake_call(f, cuDevicePrimaryCtxGetState, 0, &flags, &active));
    assert_int_equal(active, 0);
    ok(fake_call(f, cuCtxSetCurrent, c));
    ok(fake_call(f, cuDevicePrimaryCtxRetain, &retained, 0));
    assert_ptr_equal(retained, c);
    fake_free(f);
}

static void
the_integrity_answer_is_that_of_the_visible_devices(void **state)
{
    struct fake *f = fake_create(2);
    const hed_slot *t = table_of(f, &integrity_id);
    CUresult (*check)(uint32_t, uint64_t, uint8_t *) =
        (CUresult(*)(uint32_t, uint64_t, uint8_t *))t[1];
    struct hed_integrity_device devices[2] = {{.pci_bus = 1}, {.pci_bus = 2}};
    const struct hed_integrity in = {
        .driver_version = HED_DRIVER_VERSION,
        .version = 13002,
        .process = (uint32_t)getpid(),
        .thread = (uint32_t)(uintptr_t)pthread_self(),
        .interface_table = (uintptr_t)table_of(f, &interface_id),
        .integrity_table = (uintptr_t)t,
        .function = (uintptr_t)t[1],
        .seconds = 1700000000,
        .devices = devices,
        .device_count = 2,
    };
    uint8_t expected[16];
    uint8_t got[16];

    for (int i = 0; i < 2; i++)
        memcpy(devices[i].uuid, f->driver->devices[i].info.uuid, 16);
    hed_integrity_answer(&in, expected);
    ok(fake_call(f, cuInit, 0));
    ok(check(13002, 1700000000, got));
    assert_memory_equal(got, expected, 16);
    fake_free(f);
}

/* ---- context-local storage ------------------------------------------------------------------- */

static struct {
    int count;
    void *keys[8];
    CUcontext ctx;
} gone;

static void
note_gone(CUcontext ctx, void *key, void *value)
{
    assert_ptr_equal((char *)key + 1, value);
    gone.ctx = ctx;
    gone.keys[gone.count++] = key;
}

struct storage_calls {
    CUresult (*put)(CUcontext, void *, void *, hed_storage_dtor);
    CUresult (*del)(CUcontext, void *);
    CUresult (*get)(void **, CUcontext, void *);
};

static struct storage_calls
storage_of(struct fake *f)
{
    const hed_slot *t = table_of(f, &storage_id);

    assert_null(t[3]);
    memset(&gone, 0, sizeof gone);
    return (struct storage_calls){(CUresult(*)(CUcontext, void *, void *, hed_storage_dtor))t[0],
                                  (CUresult(*)(CUcontext, void *))t[1],
                                  (CUresult(*)(void **, CUcontext, void *))t[2]};
}

#define KEY(n) ((void *)(uintptr_t)(n))

static void
storage_is_per_context_and_key(void **state)
{
    struct fake *f = fake_create(2);
    const struct storage_calls s = storage_of(f);
    void *v = NULL;

    assert_int_equal(s.get(&v, NULL, KEY(8)), CUDA_ERROR_NOT_INITIALIZED);
    ok(fake_call(f, cuInit, 0));
    assert_int_equal(s.get(&v, NULL, KEY(8)), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(s.put(NULL, KEY(8), KEY(9), note_gone), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(s.del(NULL, KEY(8)), CUDA_ERROR_INVALID_CONTEXT);

    const CUcontext a = fake_use_primary(f, 0);

    assert_int_equal(s.get(&v, NULL, KEY(8)), CUDA_ERROR_INVALID_HANDLE);
    ok(s.put(NULL, KEY(8), KEY(9), note_gone));
    assert_int_equal(s.put(NULL, KEY(8), KEY(77), note_gone), CUDA_ERROR_INVALID_HANDLE);
    ok(s.get(&v, NULL, KEY(8)));
    assert_ptr_equal(v, KEY(9));
    ok(s.get(&v, a, KEY(8)));
    assert_int_equal(s.get(NULL, a, KEY(8)), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(s.get(&v, (CUcontext)KEY(0x1234), KEY(8)), CUDA_ERROR_INVALID_HANDLE);

    const CUcontext b = fake_use_primary(f, 1);

    assert_int_equal(s.get(&v, NULL, KEY(8)), CUDA_ERROR_INVALID_HANDLE);
    ok(s.put(b, KEY(8), KEY(9), NULL));
    ok(s.del(NULL, KEY(8)));
    assert_int_equal(s.get(&v, NULL, KEY(8)), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(s.del(NULL, KEY(8)), CUDA_ERROR_INVALID_HANDLE);
    ok(s.get(&v, a, KEY(8)));
    assert_int_equal(gone.count, 0);
    fake_free(f);
    assert_int_equal(gone.count, 1);
}

static void
storage_s_destructors_run_when_the_context_dies(void **state)
{
    struct fake *f = fake_create(1);
    const struct storage_calls s = storage_of(f);
    const CUcontext c = fake_use_primary(f, 0);
    CUcontext again = NULL;
    CUcontext own = NULL;
    void *v = NULL;

    ok(s.put(NULL, KEY(8), KEY(9), note_gone));
    ok(s.put(NULL, KEY(24), KEY(25), note_gone));
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    assert_int_equal(gone.count, 2);
    assert_ptr_equal(gone.keys[0], KEY(24));
    assert_ptr_equal(gone.ctx, c);
    assert_int_equal(s.get(&v, NULL, KEY(8)), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(s.get(&v, c, KEY(8)), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(s.put(NULL, KEY(8), KEY(9), note_gone), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    ok(s.put(c, KEY(8), KEY(9), note_gone));
    ok(fake_call(f, cuDevicePrimaryCtxRetain, &again, 0));
    ok(s.get(&v, NULL, KEY(8)));
    ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0));
    assert_int_equal(gone.count, 2);
    ok(fake_call(f, cuDevicePrimaryCtxRelease_v2, 0));
    assert_int_equal(gone.count, 3);
    ok(fake_call(f, cuCtxCreate_v2, &own, 0, 0));
    ok(s.put(NULL, KEY(8), KEY(9), note_gone));
    ok(fake_call(f, cuCtxDestroy_v2, own));
    assert_int_equal(gone.count, 4);
    assert_ptr_equal(gone.ctx, own);
    assert_int_equal(s.get(&v, own, KEY(8)), CUDA_ERROR_INVALID_HANDLE);
    hed_driver_fini(f->driver);
    assert_int_equal(s.del(NULL, KEY(8)), CUDA_ERROR_DEINITIALIZED);
    fake_free(f);
}

static void *
storage_worker(void *arg)
{
    const struct storage_calls *s = arg;
    char keys[8][16];
    void *v = NULL;

    for (int round = 0; round < 200; round++)
        for (int i = 0; i < 8; i++) {
            ok(s->put(NULL, keys[i], keys[i] + 1, NULL));
            for (int k = 0; k < 10; k++) {
                ok(s->get(&v, NULL, keys[i]));
                assert_ptr_equal(v, keys[i] + 1);
            }
            ok(s->del(NULL, keys[i]));
            assert_int_equal(s->get(&v, NULL, keys[i]), CUDA_ERROR_INVALID_HANDLE);
        }
    return NULL;
}

struct storage_thread {
    struct fake *f;
    struct storage_calls calls;
};

static void *
storage_thread(void *arg)
{
    struct storage_thread *t = arg;

    (void)fake_use_primary(t->f, 0);
    return storage_worker(&t->calls);
}

static void
storage_is_right_while_threads_change_it(void **state)
{
    struct fake *f = fake_create(1);
    struct storage_thread t = {f, storage_of(f)};
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, storage_thread, &t), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_area_s_call_is_found_in_the_merged_table),
    cmocka_unit_test(what_no_area_has_is_not_supported),
    cmocka_unit_test(devices_are_described_by_their_profile),
    cmocka_unit_test(attributes_come_from_profile_and_place),
    cmocka_unit_test(multiprocessors_are_a_resource),
    cmocka_unit_test(devices_are_found_by_their_pci_id),
    cmocka_unit_test(devices_see_each_other),
    cmocka_unit_test(linear_textures_are_as_wide_as_their_elements_are_narrow),
    cmocka_unit_test(memory_of_graphs_is_counted_and_its_peak_can_be_forgotten),
    cmocka_unit_test(a_driver_without_devices_does_not_start),
    cmocka_unit_test(unknown_tables_are_refused),
    cmocka_unit_test(tables_say_their_size_and_are_full),
    cmocka_unit_test(tables_of_libraries_are_there_and_refuse),
    cmocka_unit_test(the_primary_s_handle_is_given_without_retaining_it),
    cmocka_unit_test(the_integrity_answer_is_that_of_the_visible_devices),
    cmocka_unit_test(storage_is_per_context_and_key),
    cmocka_unit_test(storage_s_destructors_run_when_the_context_dies),
    cmocka_unit_test(storage_is_right_while_threads_change_it),
};

HED_UNIT_MAIN(tests)
