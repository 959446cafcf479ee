/* Plain, host and managed memory of the soft driver, and pointer attributes. The expected errors
 * are those of NVIDIA's driver 580 on an H200. */
#include <pthread.h>

#include "unit/driver/memory_make.h"

/* ---- plain ----------------------------------------------------------------------------------- */

static void
memory_is_given_and_taken_back(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0, q = 0, base = 0;
    size_t size = 0;

    ok(fake_call(f, cuMemAlloc_v2, &p, 100));
    ok(fake_call(f, cuMemAlloc_v2, &q, 5 * MIB));
    assert_int_equal(p % 512, 0);
    memset(host(p), 1, 100);
    memset(host(q), 2, 5 * MIB);
    ok(fake_call(f, cuMemGetAddressRange_v2, &base, &size, p + 50));
    assert_int_equal(base, p);
    assert_int_equal(size, 100);
    assert_int_equal(fake_call(f, cuMemGetAddressRange_v2, &base, &size, p + 100),
                     CUDA_ERROR_NOT_FOUND);
    ok(fake_call(f, cuMemGetAddressRange_v2, NULL, NULL, q));
    ok(fake_call(f, cuMemFree_v2, p));
    ok(fake_call(f, cuMemFree_v2, q));
    assert_int_equal(used(f), 0);
    assert_int_equal(f->mapped, 0);
    fake_free(f);
}

static void
bad_allocations_and_frees_are_refused(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0;
    void *h = NULL;
    size_t pitch = 0;

    bad(fake_call(f, cuMemAlloc_v2, &p, 0));
    bad(fake_call(f, cuMemAlloc_v2, NULL, 4));
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    bad(fake_call(f, cuMemAllocPitch_v2, &p, &pitch, 100, 10, 3));
    bad(fake_call(f, cuMemAllocPitch_v2, &p, &pitch, 0, 10, 4));
    bad(fake_call(f, cuMemAllocPitch_v2, &p, &pitch, 100, 0, 4));
    assert_int_equal(fake_call(f, cuMemAllocPitch_v2, &p, &pitch, SIZE_MAX / 4, 10, 4),
                     CUDA_ERROR_OUT_OF_MEMORY);
    ok(fake_call(f, cuMemFree_v2, 0));
    bad(fake_call(f, cuMemFree_v2, 0x1234));
    ok(fake_call(f, cuMemAlloc_v2, &p, 100));
    bad(fake_call(f, cuMemFree_v2, p + 4));
    ok(fake_call(f, cuMemFree_v2, p));
    bad(fake_call(f, cuMemFree_v2, p));
    ok(fake_call(f, cuMemAllocHost_v2, &h, 100));
    bad(fake_call(f, cuMemFree_v2, (CUdeviceptr)(uintptr_t)h));
    fake_free(f);
}

static void
without_a_context_there_is_no_memory(void **state)
{
    struct fake *f = fake_create(1);
    CUdeviceptr p = 0;

    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 4), CUDA_ERROR_NOT_INITIALIZED);
    ok(fake_call(f, cuInit, 0));
    ok(fake_call(f, cuCtxSetCurrent, NULL));
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 4), CUDA_ERROR_INVALID_CONTEXT);
    ok(fake_call(f, cuMemFree_v2, 0));
    fake_free(f);
}

static void
small_allocations_share_a_block(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p[1000];

    for (int i = 0; i < 1000; i++)
        ok(fake_call(f, cuMemAlloc_v2, &p[i], 512));
    assert_int_equal(f->maps, 1);
    assert_int_equal(used(f), 2 * MIB);
    for (int i = 0; i < 1000; i++)
        ok(fake_call(f, cuMemFree_v2, p[(i * 7) % 1000]));
    assert_int_equal(f->unmaps, 1);
    assert_int_equal(used(f), 0);
    fake_free(f);
}

static void
pitched_rows_are_aligned(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0;
    size_t pitch = 0, size = 0;

    ok(fake_call(f, cuMemAllocPitch_v2, &p, &pitch, 513, 10, 4));
    assert_int_equal(pitch, 1024);
    ok(fake_call(f, cuMemGetAddressRange_v2, NULL, &size, p));
    assert_int_equal(size, 10240);
    fake_free(f);
}

static void
memory_ends_at_the_profile(void **state)
{
    struct hed_profile_device profile;
    struct fake *f;
    CUdeviceptr p = 0, q = 0;
    size_t left = 0, total = 0;

    fake_profile(&profile, 0);
    profile.profile.memory = 512 * MIB;
    f = fake_create_with(&profile, 1);
    (void)fake_use_primary(f, 0);
    ok(fake_call(f, cuMemAlloc_v2, &p, 448 * MIB));
    ok(fake_call(f, cuMemGetInfo_v2, &left, &total));
    assert_int_equal(left, 64 * MIB);
    assert_int_equal(total, 512 * MIB);
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &q, 65 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fake_call(f, cuMemAllocManaged, &q, 65 * MIB, CU_MEM_ATTACH_GLOBAL),
                     CUDA_ERROR_OUT_OF_MEMORY);
    ok(fake_call(f, cuMemAlloc_v2, &q, 64 * MIB));
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 1), CUDA_ERROR_OUT_OF_MEMORY);
    ok(fake_call(f, cuMemFree_v2, q));
    ok(fake_call(f, cuMemAlloc_v2, &q, 1));
    fake_free(f);
}

static void
a_machine_without_memory_leaves_nothing_behind(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0;

    f->fail_map = 4; /* each is tried again after the pools have given back unused memory */
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 100), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 9 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(used(f), 0);
    ok(fake_call(f, cuMemAlloc_v2, &p, 100));
    fake_free(f);
}

static void
memory_goes_with_its_context(void **state)
{
    struct fake *f = ready(1);
    CUcontext c = NULL;
    CUdeviceptr p = 0, m = 0;
    CUarray array = NULL;
    CUDA_ARRAY3D_DESCRIPTOR_v2 d;
    void *h = NULL;

    ok(fake_call(f, cuCtxCreate_v2, &c, 0, 0));
    ok(fake_call(f, cuMemAlloc_v2, &p, 3 * MIB));
    ok(fake_call(f, cuMemAllocManaged, &m, 100, CU_MEM_ATTACH_GLOBAL));
    ok(fake_call(f, cuMemAllocHost_v2, &h, 100));
    ok(fake_call(f, cuArrayCreate_v2, &array,
                 &(CUDA_ARRAY_DESCRIPTOR_v2){64, 32, CU_AD_FORMAT_FLOAT, 1}));
    ok(fake_call(f, cuCtxDestroy_v2, c));
    assert_int_equal(used(f), 0);
    assert_int_equal(f->mapped, 0);
    (void)fake_use_primary(f, 0);
    bad(fake_call(f, cuMemFree_v2, p));
    assert_int_equal(fake_call(f, cuArray3DGetDescriptor_v2, &d, array), CUDA_ERROR_INVALID_HANDLE);
    fake_free(f);
}

/* ---- host ------------------------------------------------------------------------------------ */

static void
host_memory_is_mapped(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr p = 0;
    unsigned flags = 0;
    void *h = NULL;

    bad(fake_call(f, cuMemHostAlloc, &h, 100, 8));
    ok(fake_call(f, cuMemHostAlloc, &h, 0, 0));
    assert_null(h);
    ok(fake_call(f, cuMemFreeHost, NULL));
    ok(fake_call(f, cuMemHostAlloc, &h, 100, 5));
    memset(h, 1, 100);
    ok(fake_call(f, cuMemHostGetFlags, &flags, h));
    assert_int_equal(flags, 7);
    ok(fake_call(f, cuMemHostGetDevicePointer_v2, &p, (char *)h + 4, 0));
    assert_ptr_equal(host(p), (char *)h + 4);
    bad(fake_call(f, cuMemHostGetDevicePointer_v2, &p, h, 1));
    bad(fake_call(f, cuMemFreeHost, (char *)h + 4));
    ok(fake_call(f, cuMemFreeHost, h));
    bad(fake_call(f, cuMemFreeHost, h));
    bad(fake_call(f, cuMemFreeHost, &flags));
    assert_int_equal(used(f), 0);
    fake_free(f);
}

static void
own_memory_is_registered_once(void **state)
{
    struct fake *f = ready(1);
    char *own = malloc(16384);
    CUdeviceptr p = 0;
    unsigned flags = 0;
    void *h = NULL;

    bad(fake_call(f, cuMemHostRegister_v2, own, 0, 0));
    bad(fake_call(f, cuMemHostRegister_v2, NULL, 100, 0));
    bad(fake_call(f, cuMemHostRegister_v2, own, 100, 16));
    assert_int_equal(fake_call(f, cuMemHostRegister_v2, own, 100, 4), CUDA_ERROR_NOT_SUPPORTED);
    ok(fake_call(f, cuMemHostAlloc, &h, 4096, 0));
    bad(fake_call(f, cuMemHostRegister_v2, h, 4096, 0));
    ok(fake_call(f, cuMemHostRegister_v2, own, 8192, 0));
    assert_int_equal(fake_call(f, cuMemHostRegister_v2, own, 8192, 0),
                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_int_equal(fake_call(f, cuMemHostRegister_v2, own + 4096, 8192, 0),
                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    ok(fake_call(f, cuMemHostGetDevicePointer_v2, &p, own + 4, 0));
    assert_ptr_equal(host(p), own + 4);
    ok(fake_call(f, cuMemHostGetFlags, &flags, own));
    assert_int_equal(flags, 2);
    bad(fake_call(f, cuMemHostUnregister, own + 4096));
    bad(fake_call(f, cuMemHostUnregister, h));
    bad(fake_call(f, cuMemHostUnregister, NULL));
    assert_int_equal(fake_call(f, cuMemHostUnregister, own + 12000),
                     CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    ok(fake_call(f, cuMemHostUnregister, own));
    assert_int_equal(fake_call(f, cuMemHostUnregister, own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    bad(fake_call(f, cuMemHostRegister_v2, (void *)(uintptr_t)0x10000, 4096, 0));
    fake_free(f);
    free(own);
}

/* ---- managed --------------------------------------------------------------------------------- */

static int
range_attribute(struct fake *f, CUmem_range_attribute what, CUdeviceptr p, size_t size)
{
    int v = 77;

    ok(fake_call(f, cuMemRangeGetAttribute, &v, sizeof v, what, p, size));
    return v;
}

static void
advice_is_remembered_for_each_byte(void **state)
{
    struct fake *f = ready(2);
    CUdeviceptr m = 0, p = 0;
    int by[4];

    ok(fake_call(f, cuMemAllocManaged, &m, 4096, CU_MEM_ATTACH_GLOBAL));
    ok(fake_call(f, cuMemAlloc_v2, &p, 4096));
    memset(host(m), 1, 4096);
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, 4096), -2);
    ok(fake_call(f, cuMemAdvise, m + 1024, 1024, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 4096), 0);
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 1024, 1024), 1);
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 1500, 100), 1);
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 1023, 2), 0);
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 2047, 2), 0);
    ok(fake_call(f, cuMemAdvise, m, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, -1));
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, m, 4096), -1);
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, m, 1), 2);
    ok(fake_call(f, cuMemAdvise, m, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, 1));
    ok(fake_call(f, cuMemRangeGetAttribute, by, sizeof by, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, m,
                 4096));
    assert_int_equal(by[0], 1);
    assert_int_equal(by[1], -2);
    ok(fake_call(f, cuMemAdvise, m, 4096, CU_MEM_ADVISE_UNSET_READ_MOSTLY, 0));
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m + 1024, 1024), 0);
    ok(fake_call(f, cuMemPrefetchAsync, m, 4096, 1, NULL));
    assert_int_equal(range_attribute(f, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, m, 4096), 1);
    assert_int_equal(((char *)host(m))[4095], 1);
    fake_free(f);
}

static void
bad_advice_is_refused(void **state)
{
    struct fake *f = ready(1);
    CUdeviceptr m = 0, p = 0;
    int v[2];

    bad(fake_call(f, cuMemAllocManaged, &m, 0, 1));
    bad(fake_call(f, cuMemAllocManaged, &m, 100, 0));
    bad(fake_call(f, cuMemAllocManaged, &m, 100, 3));
    bad(fake_call(f, cuMemAllocManaged, &m, 100, 4));
    ok(fake_call(f, cuMemAllocManaged, &m, 100, 1));
    ok(fake_call(f, cuMemAlloc_v2, &p, 100));
    bad(fake_call(f, cuMemAdvise, p, 100, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    bad(fake_call(f, cuMemAdvise, m, 100, 9, 0));
    bad(fake_call(f, cuMemAdvise, m, 101, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    bad(fake_call(f, cuMemAdvise, m, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
    assert_int_equal(fake_call(f, cuMemAdvise, m, 100, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 7),
                     CUDA_ERROR_INVALID_DEVICE);
    bad(fake_call(f, cuMemPrefetchAsync, p, 100, 0, NULL));
    bad(fake_call(f, cuMemPrefetchAsync, m, 101, 0, NULL));
    assert_int_equal(fake_call(f, cuMemPrefetchAsync, m, 100, 7, NULL), CUDA_ERROR_INVALID_DEVICE);
    bad(fake_call(f, cuMemRangeGetAttribute, v, 8, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, m, 100));
    bad(fake_call(f, cuMemRangeGetAttribute, v, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, 100));
    bad(fake_call(f, cuMemRangeGetAttribute, v, 4, 99, m, 100));
    fake_free(f);
}

/* ---- pointers -------------------------------------------------------------------------------- */

static uint64_t
attribute(struct fake *f, CUpointer_attribute what, CUdeviceptr p)
{
    uint64_t v = 0;

    ok(fake_call(f, cuPointerGetAttribute, &v, what, p));
    return v;
}

static void
pointers_say_what_they_are(void **state)
{
    struct fake *f = ready(2);
    CUcontext c = NULL;
    CUdeviceptr p = 0, m = 0;
    void *h = NULL;
    uint64_t v = 0;

    ok(fake_call(f, cuCtxGetCurrent, &c));
    ok(fake_call(f, cuMemAlloc_v2, &p, 100));
    ok(fake_call(f, cuMemAllocManaged, &m, 100, 1));
    ok(fake_call(f, cuMemAllocHost_v2, &h, 100));

    const CUdeviceptr hp = (CUdeviceptr)(uintptr_t)h;

    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p), CU_MEMORYTYPE_DEVICE);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m), CU_MEMORYTYPE_DEVICE);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, hp), CU_MEMORYTYPE_HOST);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_CONTEXT, p), (uint64_t)(uintptr_t)c);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p + 8), p + 8);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_HOST_POINTER, hp + 8), hp + 8);
    bad(fake_call(f, cuPointerGetAttribute, &v, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_IS_MANAGED, m), 1);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_IS_MANAGED, p), 0);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p), 1);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, m), 0);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 99), p);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 99), 100);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_MAPPED, p), 1);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p), 3);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p), 0);
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p), 2 * MIB);
    assert_int_not_equal(attribute(f, CU_POINTER_ATTRIBUTE_BUFFER_ID, p),
                         attribute(f, CU_POINTER_ATTRIBUTE_BUFFER_ID, m));
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, hp), 0);
    ok(fake_call(f, cuPointerSetAttribute, &(int){1}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, hp));
    assert_int_equal(attribute(f, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, hp), 1);
    bad(fake_call(f, cuPointerSetAttribute, &(int){1}, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    for (CUpointer_attribute i = 0; i < 24; i++)
        bad(fake_call(f, cuPointerGetAttribute, &v, i, (CUdeviceptr)(uintptr_t)&v));
    fake_free(f);
}

static void
unknown_pointers_have_type_zero(void **state)
{
    struct fake *f = ready(1);
    CUpointer_attribute what[] = {
        CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    uint64_t v[6];
    void *data[6];

    memset(v, 0xab, sizeof v);
    for (int i = 0; i < 6; i++)
        data[i] = &v[i];
    ok(fake_call(f, cuPointerGetAttributes, 6, what, data, (CUdeviceptr)(uintptr_t)v));
    assert_int_equal(v[0], 0);
    assert_int_equal((uint32_t)v[1], 0);
    assert_int_equal(v[2], 0);
    assert_ptr_equal(host(v[3]), v);
    assert_int_equal((uint32_t)v[4], 0);
    assert_int_equal((int32_t)v[5], -2);
    bad(fake_call(f, cuPointerGetAttributes, 0, what, data, 0));
    what[0] = 99;
    bad(fake_call(f, cuPointerGetAttributes, 6, what, data, 0));
    fake_free(f);
}

/* ---- many threads ---------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 1500
#define LIVE 32

struct worker {
    struct fake *f;
    CUcontext ctx;
    unsigned seed;
};

static unsigned
roll(struct worker *w)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return w->seed >> 8;
}

static CUresult
take_any(struct worker *w, unsigned kind, size_t size, CUdeviceptr *out)
{
    void *h = NULL;
    CUresult r;

    switch (kind) {
    case 0:
        return fake_call(w->f, cuMemAlloc_v2, out, size);
    case 1:
        return fake_call(w->f, cuMemAllocManaged, out, size, CU_MEM_ATTACH_GLOBAL);
    case 2:
        r = fake_call(w->f, cuMemAllocHost_v2, &h, size);
        *out = (CUdeviceptr)(uintptr_t)h;
        return r;
    default:
        return fake_call(w->f, cuMemAllocAsync, out, size, NULL, true);
    }
}

static CUresult
give_any(struct worker *w, unsigned kind, CUdeviceptr p)
{
    if (kind == 2)
        return fake_call(w->f, cuMemFreeHost, host(p));
    if (kind == 3)
        return fake_call(w->f, cuMemFreeAsync, p, NULL, true);
    return fake_call(w->f, cuMemFree_v2, p);
}

static void *
work(void *arg)
{
    struct worker *w = arg;
    struct {
        CUdeviceptr p;
        size_t size;
        unsigned kind;
    } live[LIVE] = {0};
    unsigned failures = 0;

    failures += fake_call(w->f, cuCtxSetCurrent, w->ctx) != CUDA_SUCCESS;
    for (int i = 0; i < ROUNDS; i++) {
        const unsigned k = roll(w) % LIVE;
        const unsigned char mark = (unsigned char)(w->seed & 0xff);
        size_t size = 0;

        if (live[k].p) {
            failures += fake_call(w->f, cuMemGetAddressRange_v2, NULL, &size, live[k].p) != 0;
            failures += size != live[k].size;
            failures += give_any(w, live[k].kind, live[k].p) != CUDA_SUCCESS;
            live[k].p = 0;
            continue;
        }
        live[k].kind = roll(w) % 4;
        live[k].size = 1 + roll(w) % (roll(w) % 8 ? 5000 : 3 * MIB);
        failures += take_any(w, live[k].kind, live[k].size, &live[k].p) != CUDA_SUCCESS;
        failures += fake_call(w->f, cuMemsetD8_v2, live[k].p, mark, live[k].size, true) != 0;
        failures += fake_call(w->f, cuMemcpyDtoH_v2, &size, live[k].p, 1, true) != CUDA_SUCCESS;
        failures += (unsigned char)size != mark;
    }
    for (int k = 0; k < LIVE; k++)
        if (live[k].p)
            failures += give_any(w, live[k].kind, live[k].p) != CUDA_SUCCESS;
    return (void *)(uintptr_t)failures;
}

static void
threads_allocate_and_free_at_random(void **state)
{
    struct fake *f = ready(1);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    CUcontext ctx = NULL;

    ok(fake_call(f, cuCtxGetCurrent, &ctx));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.f = f, .ctx = ctx, .seed = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failures = NULL;

        assert_int_equal(pthread_join(threads[i], &failures), 0);
        assert_int_equal((uintptr_t)failures, 0);
    }
    ok(fake_call(f, cuCtxSynchronize));
    assert_int_equal(used(f), 0);
    assert_int_equal(f->mapped, 0);
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_given_and_taken_back),
    cmocka_unit_test(bad_allocations_and_frees_are_refused),
    cmocka_unit_test(without_a_context_there_is_no_memory),
    cmocka_unit_test(small_allocations_share_a_block),
    cmocka_unit_test(pitched_rows_are_aligned),
    cmocka_unit_test(memory_ends_at_the_profile),
    cmocka_unit_test(a_machine_without_memory_leaves_nothing_behind),
    cmocka_unit_test(memory_goes_with_its_context),
    cmocka_unit_test(host_memory_is_mapped),
    cmocka_unit_test(own_memory_is_registered_once),
    cmocka_unit_test(advice_is_remembered_for_each_byte),
    cmocka_unit_test(bad_advice_is_refused),
    cmocka_unit_test(pointers_say_what_they_are),
    cmocka_unit_test(unknown_pointers_have_type_zero),
    cmocka_unit_test(threads_allocate_and_free_at_random),
};

HED_UNIT_MAIN(tests)
