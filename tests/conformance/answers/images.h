/* Shared by the programs about textures and surfaces: images of every shape, and a kernel of one
 * instruction that runs for many positions.
 */
#pragma once

#include <spawn.h>
#include <sys/wait.h>

#include "answers.h"

#define COUNT 192
#define WORDS 16 /* of a position: layer, x, y, z, level, gradients in x and in y */
#define LAYERED 1u
#define SURFACE 2u
#define CUBE 4u
#define GATHER 8u

enum shape { LINEAR, D1, D2, D3, A1D, A2D, CUBES, ACUBES, PITCH };

struct image {
    enum shape shape;
    CUarray_format format;
    unsigned channels, bytes; /* of a channel */
    unsigned width, height, depth, levels;
    unsigned flags;
    float values[6 * 16 * 16 * 4 *
                 2]; /* the channels of the texels of level 0, as the texture returns them */
};

static unsigned places[COUNT][WORDS];
static unsigned results[COUNT][4];

/* ---- kernels --------------------------------------------------------------------------------- */

static const char kernel[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .entry k(.param .u64 t, .param .u64 in, .param .u64 out)\n{\n"
    ".reg .b64 %%t, %%i, %%o, %%l0; .reg .b32 %%r, %%c<16>, %%v<4>; .reg .b16 %%h<4>;\n"
    "ld.param.u64 %%t, [t]; ld.param.u64 %%i, [in]; ld.param.u64 %%o, [out];\n"
    "mov.u32 %%r, %%tid.x; mad.wide.u32 %%i, %%r, 64, %%i; mad.wide.u32 %%o, %%r, 16, %%o;\n"
    "ld.global.v4.u32 {%%c0, %%c1, %%c2, %%c3}, [%%i];\n"
    "ld.global.v4.u32 {%%c4, %%c5, %%c6, %%c7}, [%%i+16];\n"
    "ld.global.v4.u32 {%%c8, %%c9, %%c10, %%c11}, [%%i+32];\n"
    "ld.global.v4.u32 {%%v0, %%v1, %%v2, %%v3}, [%%o];\n"
    "%s\n"
    "st.global.v4.u32 [%%o], {%%v0, %%v1, %%v2, %%v3};\nret;\n}\n";

#define ALL "{%v0,%v1,%v2,%v3}"

extern char **environ;

/* The kernel by way of the machine code that a ptxas makes of it; without one, of the text. */
static inline CUfunction
image_kernel(const char *text)
{
    const char *ptxas = getenv("HED_PTXAS"), *folder = getenv("HED_SCRATCH");
    char from[4096], to[4096];
    const char *words[] = {ptxas, "-arch=sm_80", "-o", to, from, NULL};
    CUfunction function;
    CUmodule module;
    pid_t child;
    int status = 1;
    FILE *f;

    if (!ptxas || !folder)
        return ask_kernel(text, "k");
    snprintf(from, sizeof from, "%s/k.ptx", folder);
    snprintf(to, sizeof to, "%s/k.cubin", folder);
    f = fopen(from, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 ||
        posix_spawn(&child, ptxas, NULL, NULL, (char **)words, environ) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
        printf("%s failed: %d\n", ptxas, status);
        exit(1);
    }
    MUST(cuModuleLoad, &module, to);
    MUST(cuModuleGetFunction, &function, module, "k");
    return function;
}

/* Runs an instruction for every position. */
static inline CUresult
run(CUtexObject of, const char *instruction, unsigned count)
{
    char text[4000];
    CUdeviceptr in, out;
    void *parameters[] = {&of, &in, &out};
    CUfunction f;
    CUresult r;

    snprintf(text, sizeof text, kernel, instruction);
    f = image_kernel(text);
    MUST(cuMemAlloc_v2, &in, sizeof places);
    MUST(cuMemAlloc_v2, &out, sizeof results);
    MUST(cuMemcpyHtoD_v2, in, places, sizeof places);
    MUST(cuMemcpyHtoD_v2, out, results, sizeof results);
    r = CU(cuLaunchKernel)(f, 1, 1, 1, count, 1, 1, 0, NULL, parameters, NULL);
    if (r == CUDA_SUCCESS)
        r = CU(cuCtxSynchronize)();
    if (r == CUDA_SUCCESS) {
        MUST(cuMemcpyDtoH_v2, results, out, sizeof results);
        MUST(cuMemFree_v2, in);
        MUST(cuMemFree_v2, out);
    }
    return r;
}

static inline unsigned
random_word(unsigned x)
{
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* A hash of the first words of every result. */
static inline unsigned
hash(unsigned count, unsigned words)
{
    unsigned h = 1;

    for (unsigned i = 0; i < count; i++)
        for (unsigned c = 0; c < words; c++)
            h = random_word(h * 31 ^ results[i][c]);
    return h;
}

/* ---- images ---------------------------------------------------------------------------------- */

static inline unsigned
bits_of(float f)
{
    unsigned u;

    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float
float_of(unsigned u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

static inline bool
has_layers(const struct image *g)
{
    return g->shape == A1D || g->shape == A2D || g->shape == CUBES || g->shape == ACUBES;
}

static inline CUDA_ARRAY3D_DESCRIPTOR
describe(const struct image *g)
{
    return (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = g->width,
        .Height = g->shape == D1 || g->shape == A1D ? 0 : g->height,
        .Depth = g->shape == D1 || g->shape == D2 ? 0 : g->depth,
        .Format = g->format,
        .NumChannels = g->channels,
        .Flags = g->flags |
                 (g->shape == A1D || g->shape == A2D || g->shape == ACUBES ? LAYERED : 0) |
                 (g->shape == CUBES || g->shape == ACUBES ? CUBE : 0),
    };
}

/* One channel: small integers if the texels are floats, otherwise any bits. */
static inline void
put_value(struct image *g, unsigned i, unsigned char *to)
{
    unsigned word = random_word(i + 1);
    const float small = (float)(word % 256);

    if (g->format == CU_AD_FORMAT_HALF)
        word &= 0xbfff; /* numbers */
    if (g->format == CU_AD_FORMAT_FLOAT)
        memcpy(to, &small, 4);
    else
        memcpy(to, &word, g->bytes);
    if (i < sizeof g->values / sizeof g->values[0])
        g->values[i] = small;
}

static inline void
fill_array(struct image *g, CUarray array, unsigned level)
{
    const size_t w = g->width >> level ? g->width >> level : 1;
    const size_t h = g->height >> level ? g->height >> level : 1;
    const size_t d = has_layers(g) ? g->depth : g->depth >> level ? g->depth >> level : 1;
    const size_t row = w * g->channels * g->bytes;
    unsigned char *data = malloc(row * h * d);

    CHECK(data, "no memory");
    for (unsigned i = 0; i < w * h * d * g->channels; i++)
        put_value(g, i + 100000 * level, data + (size_t)i * g->bytes);

    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                .srcHost = data,
                                .srcPitch = row,
                                .srcHeight = h,
                                .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                                .dstArray = array,
                                .WidthInBytes = row,
                                .Height = h,
                                .Depth = d};

    MUST(cuMemcpy3D_v2, &copy);
    free(data);
}

static inline CUDA_RESOURCE_DESC
fill_memory(struct image *g)
{
    const size_t row = (size_t)g->width * g->channels * g->bytes;
    const size_t pitch = g->shape == LINEAR ? row : 512;
    unsigned char *data = calloc(g->height, pitch);
    CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_LINEAR};
    CUdeviceptr at;

    CHECK(data, "no memory");
    for (unsigned i = 0; i < g->width * g->height * g->channels; i++)
        put_value(g, i,
                  data + i / (g->width * g->channels) * pitch +
                      (size_t)(i % (g->width * g->channels)) * g->bytes);
    MUST(cuMemAlloc_v2, &at, g->height * pitch);
    MUST(cuMemcpyHtoD_v2, at, data, g->height * pitch);
    free(data);
    r.res.linear.devPtr = at;
    r.res.linear.format = g->format;
    r.res.linear.numChannels = g->channels;
    r.res.linear.sizeInBytes = row;
    if (g->shape == PITCH) {
        r.resType = CU_RESOURCE_TYPE_PITCH2D;
        r.res.pitch2D.devPtr = at;
        r.res.pitch2D.format = g->format;
        r.res.pitch2D.numChannels = g->channels;
        r.res.pitch2D.width = g->width;
        r.res.pitch2D.height = g->height;
        r.res.pitch2D.pitchInBytes = pitch;
    }
    return r;
}

static inline CUDA_RESOURCE_DESC
make_image(struct image *g)
{
    CUDA_RESOURCE_DESC r = {.resType = CU_RESOURCE_TYPE_ARRAY};
    const CUDA_ARRAY3D_DESCRIPTOR d = describe(g);
    CUarray array;

    if (g->shape == LINEAR || g->shape == PITCH)
        return fill_memory(g);
    if (g->levels < 2) {
        MUST(cuArray3DCreate_v2, &r.res.array.hArray, &d);
        fill_array(g, r.res.array.hArray, 0);
        return r;
    }
    r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    MUST(cuMipmappedArrayCreate, &r.res.mipmap.hMipmappedArray, &d, g->levels);
    for (unsigned i = g->levels; i-- > 0;) {
        MUST(cuMipmappedArrayGetLevel, &array, r.res.mipmap.hMipmappedArray, i);
        fill_array(g, array, i);
    }
    return r;
}

static inline struct image
floats(enum shape shape)
{
    struct image g = {.shape = shape,
                      .format = CU_AD_FORMAT_FLOAT,
                      .channels = 2,
                      .bytes = 4,
                      .width = 8,
                      .height = shape == D1 || shape == A1D || shape == LINEAR ? 1 : 4,
                      .depth = shape == D3 || shape == A1D || shape == A2D ? 4 : 1};

    if (shape == CUBES || shape == ACUBES) {
        g.height = 8;
        g.depth = shape == CUBES ? 6 : 12;
    }
    return g;
}
