/* Arrays, mipmapped arrays, texture and surface objects of the soft driver. The expected errors are
 * those of NVIDIA's driver 580 on an H200, except for destroyed handles, which make it crash. */
#include "driver/memory/array.h"
#include "unit/driver/memory_make.h"

static CUarray
made(struct fake *f, size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
     unsigned flags)
{
    CUarray a = NULL;

    ok(fake_call(f, cuArray3DCreate_v2, &a,
                 &(CUDA_ARRAY3D_DESCRIPTOR_v2){w, h, d, format, channels, flags}));
    return a;
}

static CUresult
try(struct fake *f, size_t w, size_t h, size_t d, CUarray_format format, unsigned channels,
    unsigned flags)
{
    CUarray a = NULL;

    return fake_call(f, cuArray3DCreate_v2, &a,
                     &(CUDA_ARRAY3D_DESCRIPTOR_v2){w, h, d, format, channels, flags});
}

static const void *
descriptor(const struct fake *f, unsigned long long object)
{
    return (const void *)(uintptr_t)hed_near_object_key(
        (void *)(uintptr_t)&f->near, f->driver->devices[0].primary, false, object);
}

static void
arrays_have_shapes(void **state)
{
    struct fake *f = ready(1);

    ok(try(f, 16, 0, 0, CU_AD_FORMAT_HALF, 4, 0));
    ok(try(f, 16, 16, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP));
    ok(try(f, 16, 16, 12, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED));
    ok(try(f, 16, 0, 4, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED));
    ok(try(f, 16, 16, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_TEXTURE_GATHER));
    ok(try(f, 16, 16, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0));
    bad(try(f, 16, 16, 0, CU_AD_FORMAT_UNORM_INT8X4, 2, 0));
    bad(try(f, 0, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0));
    bad(try(f, 16, 0, 4, CU_AD_FORMAT_FLOAT, 1, 0));
    bad(try(f, 16, 16, 0, CU_AD_FORMAT_FLOAT, 3, 0));
    bad(try(f, 16, 16, 0, CU_AD_FORMAT_FLOAT, 0, 0));
    bad(try(f, 16, 16, 0, 77, 1, 0));
    bad(try(f, 16, 16, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_LAYERED));
    bad(try(f, 16, 8, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP));
    bad(try(f, 16, 16, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP));
    bad(try(f, 16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0x1000));
    bad(try(f, 16, 16, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEPTH_TEXTURE));
    assert_int_equal(try(f, 16, 16, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE),
                     CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(try(f, 16, 16, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0), CUDA_ERROR_NOT_SUPPORTED);
    bad(fake_call(f, cuArrayCreate_v2, NULL,
                  &(CUDA_ARRAY_DESCRIPTOR_v2){16, 16, CU_AD_FORMAT_FLOAT, 1}));
    fake_free(f);
}

static void
an_array_is_too_large_for_the_device(void **state)
{
    struct hed_profile_device d;
    struct fake *f;

    fake_profile(&d, 0);
    d.profile.attributes[CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH] = 1000;
    d.profile.has_attribute[0] |= 1ull << CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH;
    f = fake_create_with(&d, 1);
    (void)fake_use_primary(f, 0);
    ok(try(f, 1000, 10, 0, CU_AD_FORMAT_FLOAT, 1, 0));
    bad(try(f, 1001, 10, 0, CU_AD_FORMAT_FLOAT, 1, 0));
    fake_free(f);
}

static void
arrays_tell_what_they_are(void **state)
{
    struct fake *f = ready(1);
    CUarray a = made(f, 64, 32, 0, CU_AD_FORMAT_FLOAT, 2, CUDA_ARRAY3D_SURFACE_LDST), plane = NULL;
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {0};
    CUDA_ARRAY_DESCRIPTOR_v2 d2 = {0};
    CUDA_ARRAY_MEMORY_REQUIREMENTS_v1 m;

    ok(fake_call(f, cuArray3DGetDescriptor_v2, &d, a));
    assert_int_equal(d.Width, 64);
    assert_int_equal(d.Height, 32);
    assert_int_equal(d.Depth, 0);
    assert_int_equal(d.NumChannels, 2);
    assert_int_equal(d.Flags, CUDA_ARRAY3D_SURFACE_LDST);
    ok(fake_call(f, cuArrayGetDescriptor_v2, &d2, a));
    assert_int_equal(d2.Width, 64);
    bad(fake_call(f, cuArrayGetMemoryRequirements, &m, a, 0));
    bad(fake_call(f, cuArrayGetPlane, &plane, a, 0));
    ok(fake_call(f, cuArrayDestroy, a));
    assert_int_equal(used(f), 0);
    assert_int_equal(fake_call(f, cuArrayDestroy, a), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuArrayDestroy, NULL), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuArray3DGetDescriptor_v2, &d, a), CUDA_ERROR_INVALID_HANDLE);
    fake_free(f);
}

static void
arrays_are_copied(void **state)
{
    struct fake *f = ready(1);
    CUarray a = made(f, 60, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    CUarray b = made(f, 60, 32, 3, CU_AD_FORMAT_FLOAT, 1, 0);
    float from[32][60], to[32][60];
    CUDA_MEMCPY2D_v2 d = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = from,
                          .srcPitch = sizeof from[0],
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = a,
                          .WidthInBytes = sizeof from[0],
                          .Height = 32};
    CUDA_MEMCPY3D_v2 box = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                            .srcArray = a,
                            .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                            .dstArray = b,
                            .dstZ = 2,
                            .WidthInBytes = sizeof from[0],
                            .Height = 32,
                            .Depth = 1};

    for (int i = 0; i < 32 * 60; i++)
        from[i / 60][i % 60] = (float)i;
    ok(fake_call(f, cuMemcpy2D_v2, &d));
    ok(fake_call(f, cuMemcpy3D_v2, &box));
    box.dstZ = 3;
    bad(fake_call(f, cuMemcpy3D_v2, &box));
    box = (CUDA_MEMCPY3D_v2){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                             .srcArray = b,
                             .srcZ = 2,
                             .dstMemoryType = CU_MEMORYTYPE_HOST,
                             .dstHost = to,
                             .dstPitch = sizeof to[0],
                             .WidthInBytes = sizeof to[0],
                             .Height = 32,
                             .Depth = 1};
    ok(fake_call(f, cuMemcpy3D_v2, &box));
    assert_memory_equal(from, to, sizeof from);
    d.Height = 33;
    bad(fake_call(f, cuMemcpy2D_v2, &d));
    d.Height = 1;
    d.dstXInBytes = 4;
    bad(fake_call(f, cuMemcpy2D_v2, &d));
    /* One row, never more. */
    ok(fake_call(f, cuMemcpyHtoA_v2, a, 4, from, 236));
    ok(fake_call(f, cuMemcpyAtoH_v2, to, a, 4, 236));
    assert_memory_equal(from, to, 236);
    bad(fake_call(f, cuMemcpyHtoA_v2, a, 4, from, 240));
    bad(fake_call(f, cuMemcpyHtoA_v2, a, 0, from, 480));
    bad(fake_call(f, cuMemcpyHtoA_v2, NULL, 0, from, 4));
    ok(fake_call(f, cuMemcpyHtoA_v2, a, 0, from, 0));
    ok(fake_call(f, cuMemcpyAtoA_v2, b, 0, a, 4, 236));
    fake_free(f);
}

static void
mipmaps_have_levels(void **state)
{
    struct fake *f = ready(1);
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUmipmappedArray m = NULL;
    CUarray level = NULL, again = NULL;

    ok(fake_call(f, cuMipmappedArrayCreate, &m, &d, 0));
    ok(fake_call(f, cuMipmappedArrayGetLevel, &level, m, 0));
    bad(fake_call(f, cuMipmappedArrayGetLevel, &level, m, 1));
    ok(fake_call(f, cuMipmappedArrayDestroy, m));
    ok(fake_call(f, cuMipmappedArrayCreate, &m, &d, 100));
    for (unsigned i = 0; i < 7; i++) {
        ok(fake_call(f, cuMipmappedArrayGetLevel, &level, m, i));
        ok(fake_call(f, cuArray3DGetDescriptor_v2, &d, level));
        assert_int_equal(d.Width, 64 >> i);
        assert_int_equal(d.Height, i < 5 ? 32 >> i : 1);
    }
    bad(fake_call(f, cuMipmappedArrayGetLevel, &again, m, 7));
    ok(fake_call(f, cuMipmappedArrayGetLevel, &again, m, 6));
    assert_ptr_equal(again, level);
    ok(fake_call(f, cuArrayDestroy, level));
    ok(fake_call(f, cuMipmappedArrayDestroy, m));
    assert_int_equal(used(f), 0);
    assert_int_equal(fake_call(f, cuArray3DGetDescriptor_v2, &d, level), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(fake_call(f, cuMipmappedArrayDestroy, m), CUDA_ERROR_INVALID_HANDLE);
    fake_free(f);
}

/* ---- textures and surfaces ------------------------------------------------------------------- */

static void
a_texture_is_a_descriptor(void **state)
{
    struct fake *f = ready(1);
    CUarray a = made(f, 64, 32, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0);
    CUDA_RESOURCE_DESC_v1 r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a}, back;
    CUDA_TEXTURE_DESC_v1 t = {.addressMode = {CU_TR_ADDRESS_MODE_MIRROR, CU_TR_ADDRESS_MODE_BORDER},
                              .filterMode = CU_TR_FILTER_MODE_LINEAR,
                              .flags = 2,
                              .borderColor = {1, 2, 3, 4}};
    CUDA_RESOURCE_VIEW_DESC_v1 v;
    CUtexObject x = 0;
    const struct hed_texture *d;

    ok(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    d = descriptor(f, x);
    assert_int_equal(d->magic, HED_TEXTURE_MAGIC);
    assert_int_equal(d->shape, HED_SHAPE_2D);
    assert_int_equal(d->levels, 1);
    assert_int_equal(d->level[0].width, 64);
    assert_int_equal(d->level[0].height, 32);
    assert_int_equal(d->level[0].pitch, 256);
    assert_int_equal(d->format.bytes, 4);
    assert_true(d->normalized);
    assert_false(d->as_integer);
    assert_int_equal(d->address[0], CU_TR_ADDRESS_MODE_MIRROR);
    assert_int_equal(d->address[1], CU_TR_ADDRESS_MODE_BORDER);
    assert_int_equal(d->filter, CU_TR_FILTER_MODE_LINEAR);
    assert_true(d->border[3] == 4.0f);
    ok(fake_call(f, cuTexObjectGetResourceDesc, &back, x));
    assert_ptr_equal(back.res.array.hArray, a);
    ok(fake_call(f, cuTexObjectGetResourceViewDesc, &v, x));
    ok(fake_call(f, cuTexObjectDestroy, x));
    ok(fake_call(f, cuTexObjectDestroy, x));
    bad(fake_call(f, cuTexObjectGetResourceDesc, &back, x));
    bad(fake_call(f, cuTexObjectGetTextureDesc, &t, 0x777));
    fake_free(f);
}

static void
bad_textures_are_refused(void **state)
{
    struct fake *f = ready(1);
    CUarray a = made(f, 64, 32, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    CUDA_RESOURCE_DESC_v1 r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
    CUDA_TEXTURE_DESC_v1 t = {0};
    CUdeviceptr p = 0;
    CUtexObject x = 0;
    CUsurfObject s = 0;

    ok(fake_call(f, cuMemAlloc_v2, &p, MIB));
    bad(fake_call(f, cuTexObjectCreate, &x, &r, NULL, NULL));
    bad(fake_call(f, cuTexObjectCreate, &x, NULL, &t, NULL));
    t.addressMode[0] = 7;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    t.addressMode[0] = 0;
    t.filterMode = 9;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    t.filterMode = 0;
    t.flags = 0x1000;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    t.flags = 0;
    r.flags = 1;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    r = (CUDA_RESOURCE_DESC_v1){.resType = CU_RESOURCE_TYPE_LINEAR,
                                .res.linear = {p, CU_AD_FORMAT_FLOAT, 1, 4096}};
    ok(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    assert_int_equal(((const struct hed_texture *)descriptor(f, x))->level[0].width, 1024);
    bad(fake_call(f, cuSurfObjectCreate, &s, &r));
    r.res.linear.devPtr = p + 4;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    r.res.linear.devPtr = 0x10000;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    r.res.linear.devPtr = p;
    r.res.linear.numChannels = 3;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    r = (CUDA_RESOURCE_DESC_v1){.resType = CU_RESOURCE_TYPE_PITCH2D,
                                .res.pitch2D = {p, CU_AD_FORMAT_UNSIGNED_INT8, 4, 64, 10, 512}};
    ok(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    r.res.pitch2D.pitchInBytes = 260;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    r.resType = 9;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, NULL));
    fake_free(f);
}

static void
views_and_mipmaps_are_described(void **state)
{
    struct fake *f = ready(1);
    CUDA_ARRAY3D_DESCRIPTOR_v2 d = {64, 32, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0};
    CUDA_RESOURCE_DESC_v1 r = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY};
    CUDA_RESOURCE_VIEW_DESC_v1 v = {.format = CU_RES_VIEW_FORMAT_FLOAT_1X32,
                                    .width = 64,
                                    .height = 32,
                                    .firstMipmapLevel = 2,
                                    .lastMipmapLevel = 4};
    CUDA_TEXTURE_DESC_v1 t = {0};
    CUmipmappedArray m = NULL;
    CUtexObject x = 0;
    const struct hed_texture *h;

    ok(fake_call(f, cuMipmappedArrayCreate, &m, &d, 100));
    r.res.mipmap.hMipmappedArray = m;
    ok(fake_call(f, cuTexObjectCreate, &x, &r, &t, &v));
    h = descriptor(f, x);
    assert_int_equal(h->levels, 3);
    assert_int_equal(h->level[0].width, 16);
    assert_int_equal(h->level[2].width, 4);
    assert_int_equal(h->format.texel, HED_TEXEL_FLOAT);
    v.lastMipmapLevel = 7;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, &v));
    v.lastMipmapLevel = 4;
    v.format = CU_RES_VIEW_FORMAT_FLOAT_4X32;
    bad(fake_call(f, cuTexObjectCreate, &x, &r, &t, &v));
    v.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
    assert_int_equal(fake_call(f, cuTexObjectCreate, &x, &r, &t, &v), CUDA_ERROR_NOT_SUPPORTED);
    fake_free(f);
}

static void
surfaces_are_of_arrays(void **state)
{
    struct fake *f = ready(1);
    CUarray a =
        made(f, 64, 0, 5, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_LAYERED);
    CUDA_RESOURCE_DESC_v1 r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a}, back;
    CUsurfObject s = 0;
    const struct hed_surface *d;

    ok(fake_call(f, cuSurfObjectCreate, &s, &r));
    d = descriptor(f, s);
    assert_int_equal(d->magic, HED_SURFACE_MAGIC);
    assert_int_equal(d->shape, HED_SHAPE_1D_LAYERED);
    assert_int_equal(d->image.depth, 5);
    ok(fake_call(f, cuSurfObjectGetResourceDesc, &back, s));
    bad(fake_call(f, cuTexObjectGetResourceDesc, &back, s));
    ok(fake_call(f, cuSurfObjectDestroy, s));
    bad(fake_call(f, cuSurfObjectGetResourceDesc, &back, s));
    fake_free(f);
}

/* As on a GPU: textures and surfaces have the lowest numbers that are free. */
static void
objects_are_small_numbers(void **state)
{
    struct fake *f = ready(1);
    CUarray a = made(f, 64, 0, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
    CUDA_RESOURCE_DESC_v1 r = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = a};
    CUDA_TEXTURE_DESC_v1 t = {.flags = 0};
    unsigned long long values[2000];
    CUcontext c;

    for (unsigned i = 0; i < 2000; i++) {
        if (i % 2)
            ok(fake_call(f, cuTexObjectCreate, &values[i], &r, &t, NULL));
        else
            ok(fake_call(f, cuSurfObjectCreate, &values[i], &r));
        assert_int_equal(values[i], i + 1);
    }
    ok(fake_call(f, cuTexObjectDestroy, 1200));
    ok(fake_call(f, cuSurfObjectDestroy, 7));
    assert_null(descriptor(f, 7));
    ok(fake_call(f, cuTexObjectCreate, &values[0], &r, &t, NULL));
    assert_int_equal(values[0], 7);
    ok(fake_call(f, cuTexObjectCreate, &values[0], &r, &t, NULL));
    assert_int_equal(values[0], 1200);
    ok(fake_call(f, cuTexObjectCreate, &values[0], &r, &t, NULL));
    assert_int_equal(values[0], 2001);

    /* They end with their context, and each context has its own. */
    ok(fake_call(f, cuDevicePrimaryCtxReset_v2, 0));
    ok(fake_call(f, cuDevicePrimaryCtxRetain, &c, 0));
    ok(fake_call(f, cuCtxSetCurrent, c));
    assert_null(descriptor(f, 1));
    bad(fake_call(f, cuTexObjectGetResourceDesc, &r, 1));
    ok(fake_call(f, cuTexObjectDestroy, 1));
    for (int i = 0; i < 2; i++) {
        r.res.array.hArray = made(f, 64, 0, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
        ok(fake_call(f, cuTexObjectCreate, &values[0], &r, &t, NULL));
        assert_int_equal(values[0], 1);
        ok(fake_call(f, cuCtxCreate_v2, &c, 0, 0));
    }
    fake_free(f);
}

/* Kernels ask for anything. */
static void
numbers_that_were_not_given_have_nothing(void **state)
{
    static const uint64_t odd[] = {
        0, 2, 1023, 1024, 1 << 20, (1 << 20) - 1, UINT32_MAX, UINT64_C(0x100000001), UINT64_MAX};
    struct hed_numbers *t = calloc(1, sizeof *t);
    int thing;

    assert_non_null(t);
    assert_null(hed_numbers_find(t, 1));
    assert_int_equal(hed_numbers_add_locked(t, &thing), 1);
    assert_ptr_equal(hed_numbers_find(t, 1), &thing);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        assert_null(hed_numbers_find(t, odd[i]));
    for (unsigned i = 2; i < 1 << 20; i++)
        assert_int_equal(hed_numbers_add_locked(t, &thing), i);
    assert_int_equal(hed_numbers_add_locked(t, &thing), 0);
    hed_numbers_remove_locked(t, 77777);
    assert_int_equal(hed_numbers_add_locked(t, &thing), 77777);
    hed_numbers_fini(t);
    free(t);
}

struct array_asker {
    struct fake *f;
    CUarray array;
    CUmipmappedArray mipmap;
    CUresult descriptor, level;
};

static void
ask_about_arrays(void *arg)
{
    struct array_asker *a = arg;

    a->descriptor =
        fake_call(a->f, cuArray3DGetDescriptor_v2, &(CUDA_ARRAY3D_DESCRIPTOR_v2){0}, a->array);
    a->level = fake_call(a->f, cuMipmappedArrayGetLevel, &(CUarray){0}, a->mipmap, 0);
}

/* They belong to themselves, so a thread without a context may ask; but not a callback. */
static void
questions_about_arrays_need_no_context(void **state)
{
    struct fake *f = ready(1);
    struct array_asker a = {.f = f, .array = made(f, 16, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0)};
    const CUDA_ARRAY3D_DESCRIPTOR_v2 like = {16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    CUcontext c;

    ok(fake_call(f, cuMipmappedArrayCreate, &a.mipmap, &like, 2));
    ok(fake_call(f, cuLaunchHostFunc, NULL, ask_about_arrays, &a));
    ok(fake_call(f, cuCtxSynchronize));
    assert_int_equal(a.descriptor, CUDA_ERROR_NOT_PERMITTED);
    assert_int_equal(a.level, CUDA_ERROR_NOT_PERMITTED);
    ok(fake_call(f, cuCtxPopCurrent_v2, &c));
    ask_about_arrays(&a);
    ok(a.descriptor);
    ok(a.level);
    fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(objects_are_small_numbers),
    cmocka_unit_test(numbers_that_were_not_given_have_nothing),
    cmocka_unit_test(arrays_have_shapes),
    cmocka_unit_test(an_array_is_too_large_for_the_device),
    cmocka_unit_test(arrays_tell_what_they_are),
    cmocka_unit_test(arrays_are_copied),
    cmocka_unit_test(mipmaps_have_levels),
    cmocka_unit_test(a_texture_is_a_descriptor),
    cmocka_unit_test(bad_textures_are_refused),
    cmocka_unit_test(views_and_mipmaps_are_described),
    cmocka_unit_test(surfaces_are_of_arrays),
    cmocka_unit_test(questions_about_arrays_need_no_context),
};

HED_UNIT_MAIN(tests)
