/* Tests of cudart/copy: what the driver is told about copies of boxes. */
#include "harness/unit.h"

#include <stdint.h>
#include <string.h>

#include "cudart/copy.h"
#include "cudart/front.h"

const int hed_rt_version = 13000;

static struct hed_rt_driver *const cu = &hed_rt_legacy;

/* Arrays of the driver that the tests play. */
static struct {
    CUarray_format format;
    unsigned channels;
} arrays[] = {
    {CU_AD_FORMAT_FLOAT, 1},     {CU_AD_FORMAT_FLOAT, 2},     {CU_AD_FORMAT_BC1_UNORM, 4},
    {CU_AD_FORMAT_BC7_UNORM, 4}, {(CUarray_format)0x7777, 1},
};

#define FLOATS ((cudaArray_t)&arrays[0])
#define PAIRS ((cudaArray_t)&arrays[1])
#define BC1 ((cudaArray_t)&arrays[2])
#define BC7 ((cudaArray_t)&arrays[3])
#define UNKNOWN ((cudaArray_t)&arrays[4])

static CUresult
play_descriptor(CUDA_ARRAY3D_DESCRIPTOR_v2 *d, CUarray a)
{
    const size_t i = (size_t)((char *)a - (char *)arrays) / sizeof arrays[0];

    if (i >= sizeof arrays / sizeof arrays[0])
        return CUDA_ERROR_INVALID_HANDLE;
    *d = (CUDA_ARRAY3D_DESCRIPTOR_v2){
        .Width = 64, .Height = 64, .Format = arrays[i].format, .NumChannels = arrays[i].channels};
    return CUDA_SUCCESS;
}

static int
play_driver(void **state)
{
    cu->cuArray3DGetDescriptor_v2 = play_descriptor;
    return 0;
}

static char host[16];

/* A copy of 8 x 4 from the host. */
static cudaMemcpy3DParms
copy_to(cudaArray_t array)
{
    return (cudaMemcpy3DParms){
        .srcPtr = {host, 1024, 64, 64},
        .dstArray = array,
        .extent = {8, 4, 1},
        .kind = cudaMemcpyHostToDevice,
    };
}

static void
elements_become_bytes(void **state)
{
    cudaMemcpy3DParms p = copy_to(PAIRS);
    CUDA_MEMCPY3D_v2 c;

    p.srcPos = (cudaPos){1, 2, 3};
    p.dstPos = (cudaPos){4, 5, 6};
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaSuccess);
    assert_int_equal(c.srcMemoryType, CU_MEMORYTYPE_HOST);
    assert_ptr_equal(c.srcHost, host);
    assert_int_equal(c.srcXInBytes, 8);
    assert_int_equal(c.srcY, 2);
    assert_int_equal(c.dstMemoryType, CU_MEMORYTYPE_ARRAY);
    assert_int_equal(c.dstXInBytes, 32);
    assert_int_equal(c.dstY, 5);
    assert_int_equal(c.dstZ, 6);
    assert_int_equal(c.WidthInBytes, 64);
    assert_int_equal(c.Height, 4);
}

static void
texels_become_blocks(void **state)
{
    static const struct {
        cudaArray_t array;
        size_t block, width, height, bytes, rows;
    } rows[] = {
        {BC1, 8, 8, 4, 16, 1},
        {BC1, 8, 5, 5, 16, 2},
        {BC1, 8, 1, 1, 8, 1},
        {BC7, 16, 8, 8, 32, 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cudaMemcpy3DParms p = copy_to(rows[i].array);
        CUDA_MEMCPY3D_v2 c;

        p.extent.width = rows[i].width;
        p.extent.height = rows[i].height;
        p.srcPos = (cudaPos){3, 2, 0};
        p.dstPos = (cudaPos){4, 9, 0};
        assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaSuccess);
        assert_int_equal(c.WidthInBytes, rows[i].bytes);
        assert_int_equal(c.Height, rows[i].rows);
        /* Pointers are at blocks already. */
        assert_int_equal(c.srcXInBytes, 3 * rows[i].block);
        assert_int_equal(c.srcY, 2);
        assert_int_equal(c.dstXInBytes, rows[i].block);
        assert_int_equal(c.dstY, 2);
    }
}

static void
arrays_must_fit_each_other(void **state)
{
    cudaMemcpy3DParms p = {
        .dstArray = FLOATS, .extent = {8, 4, 1}, .kind = cudaMemcpyDeviceToDevice};
    CUDA_MEMCPY3D_v2 c;

    p.srcArray = PAIRS;
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaErrorInvalidValue);
    p.srcArray = UNKNOWN;
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaErrorInvalidChannelDescriptor);
    p.srcArray = (cudaArray_t)host;
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaErrorInvalidResourceHandle);
    p.srcArray = FLOATS;
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaSuccess);
    p.kind = cudaMemcpyHostToDevice;
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaErrorInvalidValue);
    /* The extent counts what the source consists of. */
    p = (cudaMemcpy3DParms){
        .srcArray = BC1, .dstArray = PAIRS, .extent = {8, 4, 1}, .kind = cudaMemcpyDefault};
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaSuccess);
    assert_int_equal(c.WidthInBytes, 16);
    assert_int_equal(c.Height, 1);
    p.srcArray = PAIRS;
    p.dstArray = BC1;
    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaSuccess);
    assert_int_equal(c.WidthInBytes, 64);
    assert_int_equal(c.Height, 4);
}

static void
nothing_is_always_right(void **state)
{
    cudaMemcpy3DParms p = {.kind = (cudaMemcpyKind)9, .extent = {0, 1, 1}};
    CUDA_MEMCPY3D_v2 c;

    assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaSuccess);
    assert_int_equal(c.WidthInBytes, 0);
    assert_int_equal(c.Height, 1);
    assert_int_equal(hed_rt_copy_1d(NULL, NULL, 0, (cudaMemcpyKind)9, &c), cudaSuccess);
    assert_int_equal(c.WidthInBytes, 0);
    assert_int_equal(hed_rt_copy_1d(host, host, 4, (cudaMemcpyKind)9, &c),
                     cudaErrorInvalidMemcpyDirection);
}

/* Nobody looks at what is between two members. */
static void
clear_padding(CUDA_MEMCPY3D_v2 *c)
{
    memset((char *)&c->srcMemoryType + sizeof c->srcMemoryType, 0,
           offsetof(CUDA_MEMCPY3D_v2, srcHost) - offsetof(CUDA_MEMCPY3D_v2, srcMemoryType) -
               sizeof c->srcMemoryType);
    memset((char *)&c->dstMemoryType + sizeof c->dstMemoryType, 0,
           offsetof(CUDA_MEMCPY3D_v2, dstHost) - offsetof(CUDA_MEMCPY3D_v2, dstMemoryType) -
               sizeof c->dstMemoryType);
}

static void
there_is_a_way_back(void **state)
{
    static const cudaArray_t ends[] = {NULL, FLOATS, PAIRS, BC1, BC7};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        for (int kind = cudaMemcpyHostToHost; kind <= cudaMemcpyDefault; kind++) {
            cudaMemcpy3DParms p = copy_to(ends[i]), back;
            CUDA_MEMCPY3D_v2 c, again;

            p.kind = kind;
            p.srcPos = (cudaPos){5, 6, 7};
            p.dstPos = (cudaPos){8, 12, 1};
            if (!ends[i])
                p.dstPtr = (cudaPitchedPtr){host, 512, 0, 32};
            assert_int_equal(hed_rt_copy_3d(cu, &p, &c), cudaSuccess);
            assert_int_equal(hed_rt_copy_3d_back(cu, &c, &back), cudaSuccess);
            assert_int_equal(back.extent.width, 8);
            assert_int_equal(back.dstPos.y, 12);
            assert_int_equal(hed_rt_copy_3d(cu, &back, &again), cudaSuccess);
            clear_padding(&c);
            clear_padding(&again);
            assert_memory_equal(&again, &c, sizeof c);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(elements_become_bytes, play_driver),
    cmocka_unit_test_setup(texels_become_blocks, play_driver),
    cmocka_unit_test_setup(arrays_must_fit_each_other, play_driver),
    cmocka_unit_test_setup(nothing_is_always_right, play_driver),
    cmocka_unit_test_setup(there_is_a_way_back, play_driver),
};

HED_UNIT_MAIN(tests)
