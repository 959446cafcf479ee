/* References to textures and surfaces in the driver API, beneath what old runtimes make of them:
 * what is set is what is asked, mistakes are told, and a module takes its references with it. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/cuda_abi.h"

CUresult cuInit(unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *size, CUmodule module, const char *name);
CUresult cuModuleGetTexRef(CUtexref *reference, CUmodule module, const char *name);
CUresult cuModuleGetSurfRef(CUsurfref *reference, CUmodule module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t size);
CUresult cuMemFree_v2(CUdeviceptr at);
CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc);
CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR_v2 *desc,
                                unsigned levels);
CUresult cuTexRefSetFormat(CUtexref reference, CUarray_format format, int channels);
CUresult cuTexRefGetFormat(CUarray_format *format, int *channels, CUtexref reference);
CUresult cuTexRefSetAddressMode(CUtexref reference, int dim, CUaddress_mode mode);
CUresult cuTexRefGetAddressMode(CUaddress_mode *mode, CUtexref reference, int dim);
CUresult cuTexRefSetFilterMode(CUtexref reference, CUfilter_mode mode);
CUresult cuTexRefGetFilterMode(CUfilter_mode *mode, CUtexref reference);
CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float low, float high);
CUresult cuTexRefGetMipmapLevelClamp(float *low, float *high, CUtexref reference);
CUresult cuTexRefSetMaxAnisotropy(CUtexref reference, unsigned most);
CUresult cuTexRefGetMaxAnisotropy(int *most, CUtexref reference);
CUresult cuTexRefSetBorderColor(CUtexref reference, float *color);
CUresult cuTexRefGetBorderColor(float *color, CUtexref reference);
CUresult cuTexRefSetFlags(CUtexref reference, unsigned flags);
CUresult cuTexRefGetFlags(unsigned *flags, CUtexref reference);
CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref reference, CUdeviceptr at, size_t size);
CUresult cuTexRefGetAddress_v2(CUdeviceptr *at, CUtexref reference);
CUresult cuTexRefSetAddress2D_v3(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR_v2 *desc,
                                 CUdeviceptr at, size_t pitch);
CUresult cuTexRefSetArray(CUtexref reference, CUarray array, unsigned flags);
CUresult cuTexRefGetArray(CUarray *array, CUtexref reference);
CUresult cuTexRefSetMipmappedArray(CUtexref reference, CUmipmappedArray array, unsigned flags);
CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *array, CUtexref reference);
CUresult cuSurfRefSetArray(CUsurfref reference, CUarray array, unsigned flags);
CUresult cuSurfRefGetArray(CUarray *array, CUsurfref reference);

static const char ptx[] = ".version 4.2\n"
                          ".target sm_20\n"
                          ".address_size 64\n"
                          ".global .texref t;\n"
                          ".global .surfref s;\n"
                          ".visible .global .align 4 .u32 plain;\n";

#define EXPECT(what)                                                                       \
    do {                                                                                   \
        if (!(what)) {                                                                     \
            fprintf(stderr, "%s:%d: this does not hold: %s\n", __FILE__, __LINE__, #what); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

#define GIVES(wanted, call) EXPECT((call) == (wanted))
#define OK(call) GIVES(CUDA_SUCCESS, call)
#define BAD(call) GIVES(CUDA_ERROR_INVALID_VALUE, call)

static CUmodule module;
static CUtexref t;
static CUsurfref s;

static void
names_are_found(void)
{
    CUtexref again = NULL;
    CUdeviceptr at;
    size_t size;

    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleGetTexRef(&t, module, "t"));
    OK(cuModuleGetTexRef(&again, module, "t"));
    EXPECT(t == again);
    OK(cuModuleGetSurfRef(&s, module, "s"));
    GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "s"));
    GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetSurfRef(&s, module, "t"));
    GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "plain"));
    GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&again, module, "missing"));
    BAD(cuModuleGetTexRef(&again, module, NULL));
    BAD(cuModuleGetTexRef(NULL, module, "t"));
    /* They are no variables to programs. */
    GIVES(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&at, &size, module, "t"));
    OK(cuModuleGetGlobal_v2(&at, &size, module, "plain"));
    EXPECT(size == 4);
}

static void
settings_are_kept(void)
{
    float color[4] = {1, 2, 3, 4}, got[4], low, high;
    CUarray_format format;
    CUaddress_mode address;
    CUfilter_mode filter;
    unsigned flags;
    int n;

    OK(cuTexRefSetFormat(t, CU_AD_FORMAT_UNSIGNED_INT8, 4));
    OK(cuTexRefGetFormat(&format, &n, t));
    EXPECT(format == CU_AD_FORMAT_UNSIGNED_INT8 && n == 4);
    BAD(cuTexRefSetFormat(t, CU_AD_FORMAT_FLOAT, 3));
    BAD(cuTexRefSetFormat(t, (CUarray_format)77, 1));
    OK(cuTexRefSetAddressMode(t, 2, CU_TR_ADDRESS_MODE_MIRROR));
    OK(cuTexRefGetAddressMode(&address, t, 2));
    EXPECT(address == CU_TR_ADDRESS_MODE_MIRROR);
    BAD(cuTexRefSetAddressMode(t, 3, CU_TR_ADDRESS_MODE_WRAP));
    BAD(cuTexRefSetAddressMode(t, 0, (CUaddress_mode)9));
    BAD(cuTexRefGetAddressMode(&address, t, -1));
    OK(cuTexRefSetFilterMode(t, CU_TR_FILTER_MODE_LINEAR));
    OK(cuTexRefGetFilterMode(&filter, t));
    EXPECT(filter == CU_TR_FILTER_MODE_LINEAR);
    BAD(cuTexRefGetFilterMode(NULL, t));
    OK(cuTexRefSetFilterMode(t, CU_TR_FILTER_MODE_POINT));
    OK(cuTexRefSetMipmapLevelClamp(t, 0.5f, 2));
    OK(cuTexRefGetMipmapLevelClamp(&low, &high, t));
    EXPECT(low == 0.5f && high == 2);
    OK(cuTexRefSetMaxAnisotropy(t, 4));
    OK(cuTexRefGetMaxAnisotropy(&n, t));
    EXPECT(n == 4);
    OK(cuTexRefSetBorderColor(t, color));
    OK(cuTexRefGetBorderColor(got, t));
    EXPECT(memcmp(got, color, sizeof got) == 0);
    OK(cuTexRefSetFlags(t, CU_TRSF_NORMALIZED_COORDINATES));
    OK(cuTexRefGetFlags(&flags, t));
    EXPECT(flags == CU_TRSF_NORMALIZED_COORDINATES);
    BAD(cuTexRefSetFlags(t, 0x8000));
}

static void
bindings_are_kept(void)
{
    const CUDA_ARRAY3D_DESCRIPTOR_v2 form = {.Width = 16,
                                             .Height = 16,
                                             .Format = CU_AD_FORMAT_FLOAT,
                                             .NumChannels = 1,
                                             .Flags = CUDA_ARRAY3D_SURFACE_LDST};
    const CUDA_ARRAY_DESCRIPTOR_v2 rows = {
        .Width = 16, .Height = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUmipmappedArray mipmap, which_mipmap;
    CUarray array, which;
    CUdeviceptr memory, at;
    size_t offset = 77;

    OK(cuMemAlloc_v2(&memory, 4096));
    BAD(cuTexRefGetAddress_v2(&at, t));
    OK(cuTexRefSetAddress_v2(&offset, t, memory + 16, 64));
    EXPECT(offset == 16);
    OK(cuTexRefGetAddress_v2(&at, t));
    EXPECT(at == memory);
    BAD(cuTexRefSetAddress_v2(NULL, t, memory + 16, 64));
    BAD(cuTexRefSetAddress_v2(NULL, t, (CUdeviceptr)1 << 60, 64));
    OK(cuTexRefGetAddress_v2(&at, t)); /* what was refused has changed nothing */
    OK(cuTexRefSetAddress2D_v3(t, &rows, memory, 64));
    BAD(cuTexRefSetAddress2D_v3(t, &rows, memory, 60));
    BAD(cuTexRefSetAddress2D_v3(t, NULL, memory, 64));
    OK(cuArray3DCreate_v2(&array, &form));
    OK(cuTexRefSetArray(t, array, 1));
    OK(cuTexRefGetArray(&which, t));
    EXPECT(which == array);
    BAD(cuTexRefGetAddress_v2(&at, t));
    BAD(cuTexRefSetArray(t, array, 8));
    OK(cuMipmappedArrayCreate(&mipmap, &form, 3));
    OK(cuTexRefSetMipmappedArray(t, mipmap, 1));
    OK(cuTexRefGetMipmappedArray(&which_mipmap, t));
    EXPECT(which_mipmap == mipmap);
    OK(cuSurfRefSetArray(s, array, 0));
    OK(cuSurfRefGetArray(&which, s));
    EXPECT(which == array);
    /* A setting changes while the reference is bound to memory that is gone. */
    OK(cuTexRefSetAddress_v2(NULL, t, memory, 64));
    OK(cuMemFree_v2(memory));
    OK(cuTexRefSetFlags(t, 0));
    OK(cuTexRefSetAddress_v2(NULL, t, 0, 0));
    BAD(cuTexRefGetAddress_v2(&at, t));
}

static void
modules_take_them_along(void)
{
    CUarray array;
    unsigned flags;

    GIVES(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&flags, (CUtexref)s)); /* a surface */
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&flags, NULL));
    OK(cuModuleUnload(module));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&flags, t));
    GIVES(CUDA_ERROR_INVALID_HANDLE, cuSurfRefGetArray(&array, s));
}

int
main(void)
{
    CUcontext context;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    names_are_found();
    settings_are_kept();
    bindings_are_kept();
    modules_take_them_along();
    return 0;
}
