/* An old program with texture and surface references: linear memory, rows, arrays, integers as
 * fractions, filters, and what changes between binding and launch. */
#include <string.h>

#include "old.h"

struct textureReference {
    int normalized, filterMode, addressMode[3];
    struct cudaChannelFormatDesc channelDesc;
    int sRGB;
    unsigned maxAnisotropy;
    int mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int reserved[15];
};

struct surfaceReference {
    struct cudaChannelFormatDesc channelDesc;
};

enum { cudaFilterModePoint, cudaFilterModeLinear };
enum { cudaAddressModeWrap, cudaAddressModeClamp };
enum { cudaErrorInvalidChannelDescriptor = 20, cudaErrorInvalidFilterSetting = 26 };

void __cudaRegisterTexture(void **handle, const struct textureReference *host, const void **address,
                           const char *name, int dim, int norm, int ext);
void __cudaRegisterSurface(void **handle, const struct surfaceReference *host, const void **address,
                           const char *name, int dim, int ext);
int cudaBindTexture(size_t *offset, const struct textureReference *texref, const void *p,
                    const struct cudaChannelFormatDesc *desc, size_t size);
int cudaBindTexture2D(size_t *offset, const struct textureReference *texref, const void *p,
                      const struct cudaChannelFormatDesc *desc, size_t width, size_t height,
                      size_t pitch);
int cudaBindTextureToArray(const struct textureReference *texref, cudaArray_t array,
                           const struct cudaChannelFormatDesc *desc);
int cudaUnbindTexture(const struct textureReference *texref);
int cudaGetTextureAlignmentOffset(size_t *offset, const struct textureReference *texref);
int cudaGetTextureReference(const struct textureReference **texref, const void *symbol);
int cudaBindSurfaceToArray(const struct surfaceReference *surfref, cudaArray_t array,
                           const struct cudaChannelFormatDesc *desc);
int cudaGetSurfaceReference(const struct surfaceReference **surfref, const void *symbol);
int cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width,
                    size_t height, unsigned flags);
int cudaFreeArray(cudaArray_t array);
int cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t size, int kind);

/* fetch, fractions: out[i] = texel i. sample: out[i] = the texture at (i * step + first, row).
 * put: surface[0][i] = first + i. */
static const char ptx[] = ".version 4.2\n"
                          ".target sm_20\n"
                          ".address_size 64\n"
                          ".global .texref line;\n"
                          ".global .texref bytes;\n"
                          ".global .texref plane;\n"
                          ".global .surfref surface;\n"
                          ".visible .entry fetch(.param .u64 out)\n"
                          "{\n"
                          ".reg .b32 %r1;\n"
                          ".reg .f32 %f<5>;\n"
                          ".reg .b64 %rd<3>;\n"
                          "ld.param.u64 %rd1, [out];\n"
                          "mov.u32 %r1, %tid.x;\n"
                          "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [line, {%r1}];\n"
                          "mul.wide.u32 %rd2, %r1, 4;\n"
                          "add.u64 %rd1, %rd1, %rd2;\n"
                          "st.global.f32 [%rd1], %f1;\n"
                          "ret;\n"
                          "}\n"
                          ".visible .entry fractions(.param .u64 out)\n"
                          "{\n"
                          ".reg .b32 %r1;\n"
                          ".reg .f32 %f<5>;\n"
                          ".reg .b64 %rd<3>;\n"
                          "ld.param.u64 %rd1, [out];\n"
                          "mov.u32 %r1, %tid.x;\n"
                          /* as older compilers wrote it: four coordinates for one */
                          "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [bytes, {%r1, %r1, %r1, %r1}];\n"
                          "mul.wide.u32 %rd2, %r1, 4;\n"
                          "add.u64 %rd1, %rd1, %rd2;\n"
                          "st.global.f32 [%rd1], %f1;\n"
                          "ret;\n"
                          "}\n"
                          ".visible .entry sample(.param .u64 out, .param .f32 first,\n"
                          "    .param .f32 step, .param .f32 row)\n"
                          "{\n"
                          ".reg .b32 %r1;\n"
                          ".reg .f32 %f<9>;\n"
                          ".reg .b64 %rd<3>;\n"
                          "ld.param.u64 %rd1, [out];\n"
                          "ld.param.f32 %f5, [first];\n"
                          "ld.param.f32 %f6, [step];\n"
                          "ld.param.f32 %f7, [row];\n"
                          "mov.u32 %r1, %tid.x;\n"
                          "cvt.rn.f32.u32 %f8, %r1;\n"
                          "fma.rn.f32 %f8, %f8, %f6, %f5;\n"
                          "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [plane, {%f8, %f7}];\n"
                          "mul.wide.u32 %rd2, %r1, 4;\n"
                          "add.u64 %rd1, %rd1, %rd2;\n"
                          "st.global.f32 [%rd1], %f1;\n"
                          "ret;\n"
                          "}\n"
                          ".visible .entry put(.param .f32 first)\n"
                          "{\n"
                          ".reg .b32 %r<4>;\n"
                          ".reg .f32 %f<3>;\n"
                          "ld.param.f32 %f1, [first];\n"
                          "mov.u32 %r1, %tid.x;\n"
                          "cvt.rn.f32.u32 %f2, %r1;\n"
                          "add.f32 %f2, %f2, %f1;\n"
                          "mov.b32 %r3, %f2;\n"
                          "shl.b32 %r2, %r1, 2;\n"
                          "mov.u32 %r1, 0;\n"
                          "sust.b.2d.b32.trap [surface, {%r2, %r1}], {%r3};\n"
                          "ret;\n"
                          "}\n";

static const struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
static const struct cudaChannelFormatDesc uchars = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
static const struct cudaChannelFormatDesc pairs = {32, 32, 0, 0, cudaChannelFormatKindFloat};
static const struct cudaChannelFormatDesc odd = {7, 0, 0, 0, cudaChannelFormatKindSigned};

static struct textureReference line, bytes, plane, missing;
static struct surfaceReference surface;

/* ---- stubs ----------------------------------------------------------------------------------- */

static void
fetch(float *out)
{
    (void)OLD_ARGUMENT(out, 0);
    (void)cudaLaunch((const void *)(uintptr_t)fetch);
}

static void
fractions(float *out)
{
    (void)OLD_ARGUMENT(out, 0);
    (void)cudaLaunch((const void *)(uintptr_t)fractions);
}

static void
sample(float *out, float first, float step, float row)
{
    (void)OLD_ARGUMENT(out, 0);
    (void)OLD_ARGUMENT(first, 8);
    (void)OLD_ARGUMENT(step, 12);
    (void)OLD_ARGUMENT(row, 16);
    (void)cudaLaunch((const void *)(uintptr_t)sample);
}

static void
put(float first)
{
    (void)OLD_ARGUMENT(first, 0);
    (void)cudaLaunch((const void *)(uintptr_t)put);
}

static void
register_texture(void **handle, struct textureReference *t, const char *name, int dim, int norm,
                 const struct cudaChannelFormatDesc *desc)
{
    t->channelDesc = *desc;
    __cudaRegisterTexture(handle, t, (const void **)(uintptr_t)name, name, dim, norm, 0);
}

__attribute__((constructor)) static void
register_all(void)
{
    void **handle = old_register(ptx);

    OLD_KERNEL(handle, fetch, "fetch");
    OLD_KERNEL(handle, fractions, "fractions");
    OLD_KERNEL(handle, sample, "sample");
    OLD_KERNEL(handle, put, "put");
    register_texture(handle, &line, "line", 1, 0, &floats);
    register_texture(handle, &bytes, "bytes", 1, 1, &uchars);
    register_texture(handle, &plane, "plane", 2, 0, &floats);
    register_texture(handle, &missing, "missing", 1, 0, &floats);
    surface.channelDesc = floats;
    __cudaRegisterSurface(handle, &surface, (const void **)(uintptr_t) "surface", "surface", 2, 0);
}

/* ---- the program ----------------------------------------------------------------------------- */

enum { WIDTH = 16, ROWS = 4, RUN = 4 };

static float image[ROWS][WIDTH]; /* 1, 2, 3, ... */
static float *device_image, *device_out;

static void
expect_run(const float *wanted, int line_number)
{
    float got[RUN];

    OK(cudaGetLastError());
    OK(cudaMemcpy(got, device_out, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < RUN; i++)
        if (got[i] != wanted[i]) {
            fprintf(stderr, "%s:%d: [%d] is %g, not %g\n", __FILE__, line_number, i, (double)got[i],
                    (double)wanted[i]);
            exit(1);
        }
}

#define EXPECT_RUN(...) expect_run((const float[RUN]){__VA_ARGS__}, __LINE__)

static void
linear_memory(void)
{
    size_t offset = 77;

    /* Bound to nothing, it reads as 0. */
    OLD_CONFIGURE(1, RUN) ? (void)0 : fetch(device_out);
    EXPECT_RUN(0, 0, 0, 0);
    EXPECT_ERROR(cudaErrorInvalidTextureBinding, cudaGetTextureAlignmentOffset(&offset, &line));
    (void)cudaGetLastError();
    OK(cudaBindTexture(&offset, &line, device_image, &floats, sizeof image));
    EXPECT(offset == 0);
    OLD_CONFIGURE(1, RUN) ? (void)0 : fetch(device_out);
    EXPECT_RUN(1, 2, 3, 4);
    /* Memory that is not aligned is bound from before it, and the program adds the offset. */
    OK(cudaBindTexture(&offset, &line, device_image + 4, &floats, 64));
    EXPECT(offset == 16);
    offset = 0;
    OK(cudaGetTextureAlignmentOffset(&offset, &line));
    EXPECT(offset == 16);
    EXPECT_ERROR(cudaErrorInvalidValue,
                 cudaBindTexture(NULL, &line, device_image + 4, &floats, 64));
    OK(cudaUnbindTexture(&line));
    (void)cudaGetLastError();
    OLD_CONFIGURE(1, RUN) ? (void)0 : fetch(device_out);
    EXPECT_RUN(0, 0, 0, 0);
}

static void
integers_as_fractions(void)
{
    const unsigned char in[RUN] = {0, 51, 102, 255};

    OK(cudaMemcpy(device_image, in, sizeof in, cudaMemcpyHostToDevice));
    OK(cudaBindTexture(NULL, &bytes, device_image, &uchars, sizeof in));
    OLD_CONFIGURE(1, RUN) ? (void)0 : fractions(device_out);
    EXPECT_RUN(0, 51 / 255.0f, 102 / 255.0f, 1);
    OK(cudaUnbindTexture(&bytes));
    OK(cudaMemcpy(device_image, image, sizeof image, cudaMemcpyHostToDevice));
}

static void
rows_of_memory(void)
{
    size_t offset;

    plane.addressMode[0] = plane.addressMode[1] = cudaAddressModeClamp;
    OK(cudaBindTexture2D(&offset, &plane, device_image, &floats, WIDTH, ROWS, sizeof image[0]));
    OLD_CONFIGURE(1, RUN) ? (void)0 : sample(device_out, 0.5f, 1, 1.5f);
    EXPECT_RUN(17, 18, 19, 20);
    OLD_CONFIGURE(1, RUN) ? (void)0 : sample(device_out, 13.5f, 1, 0.5f);
    EXPECT_RUN(14, 15, 16, 16);
}

/* What the variable of the host says counts when a kernel is launched, even if that is after the
 * texture was bound. */
static void
arrays_and_settings(void)
{
    cudaArray_t array;

    OK(cudaMallocArray(&array, &floats, WIDTH, ROWS, 0));
    OK(cudaMemcpyToArray(array, 0, 0, image, sizeof image, cudaMemcpyHostToDevice));
    OK(cudaBindTextureToArray(&plane, array, &floats));
    OLD_CONFIGURE(1, RUN) ? (void)0 : sample(device_out, 0.5f, 1, 0.5f);
    EXPECT_RUN(1, 2, 3, 4);
    plane.filterMode = cudaFilterModeLinear;
    OLD_CONFIGURE(1, RUN) ? (void)0 : sample(device_out, 1, 1, 0.5f);
    EXPECT_RUN(1.5f, 2.5f, 3.5f, 4.5f);
    plane.normalized = 1;
    plane.addressMode[0] = cudaAddressModeWrap;
    plane.filterMode = cudaFilterModePoint;
    OLD_CONFIGURE(1, RUN) ? (void)0 : sample(device_out, 14.5f / WIDTH, 1.0f / WIDTH, 0.125f);
    EXPECT_RUN(15, 16, 1, 2);
    /* A setting that no device has is told by the launch, each time. */
    plane.addressMode[0] = 99;
    EXPECT_ERROR(0, OLD_CONFIGURE(1, 1));
    sample(device_out, 0, 0, 0);
    EXPECT_ERROR(cudaErrorInvalidValue, cudaGetLastError());
    EXPECT_ERROR(0, OLD_CONFIGURE(1, 1));
    sample(device_out, 0, 0, 0);
    EXPECT_ERROR(cudaErrorInvalidValue, cudaGetLastError());
    plane.addressMode[0] = cudaAddressModeClamp;
    plane.normalized = 0;
    /* An array that is gone hinders only kernels that use it. */
    OK(cudaFreeArray(array));
    OK(cudaBindTexture(NULL, &line, device_image, &floats, sizeof image));
    OLD_CONFIGURE(1, RUN) ? (void)0 : fetch(device_out);
    EXPECT_RUN(1, 2, 3, 4);
    OK(cudaUnbindTexture(&plane));
}

static void
surfaces(void)
{
    cudaArray_t array;

    OK(cudaMallocArray(&array, &floats, WIDTH, ROWS, 2)); /* cudaArraySurfaceLoadStore */
    OK(cudaBindSurfaceToArray(&surface, array, &floats));
    OLD_CONFIGURE(1, RUN) ? (void)0 : put(100);
    OK(cudaGetLastError());
    OK(cudaBindTextureToArray(&plane, array, &floats));
    OLD_CONFIGURE(1, RUN) ? (void)0 : sample(device_out, 0.5f, 1, 0.5f);
    EXPECT_RUN(100, 101, 102, 103);
    OK(cudaUnbindTexture(&plane));
    OK(cudaFreeArray(array));
}

static void
mistakes_are_told(void)
{
    const struct textureReference *t = NULL;
    const struct surfaceReference *s = NULL;
    struct textureReference unknown = line;

    OK(cudaGetTextureReference(&t, &plane));
    EXPECT(t == &plane);
    OK(cudaGetSurfaceReference(&s, &surface));
    EXPECT(s == &surface);
    EXPECT_ERROR(cudaErrorInvalidTexture, cudaGetTextureReference(&t, &missing));
    EXPECT_ERROR(cudaErrorInvalidTexture, cudaGetTextureReference(&t, &surface));
    EXPECT_ERROR(cudaErrorInvalidSurface, cudaGetSurfaceReference(&s, &plane));
    OK(cudaGetLastError()); /* these questions are no failures */
    EXPECT_ERROR(cudaErrorInvalidTexture, cudaBindTexture(NULL, NULL, device_image, &floats, 64));
    EXPECT_ERROR(cudaErrorInvalidTexture,
                 cudaBindTexture(NULL, &unknown, device_image, &floats, 64));
    EXPECT_ERROR(cudaErrorInvalidTexture,
                 cudaBindTexture(NULL, &missing, device_image, &floats, 64));
    EXPECT_ERROR(cudaErrorInvalidTexture, cudaUnbindTexture(&unknown));
    EXPECT_ERROR(cudaErrorInvalidValue, cudaBindTexture(NULL, &line, device_image, &pairs, 64));
    EXPECT_ERROR(cudaErrorInvalidChannelDescriptor,
                 cudaBindTexture(NULL, &line, device_image, &odd, 64));
    EXPECT_ERROR(cudaErrorInvalidValue,
                 cudaBindTexture2D(NULL, &plane, device_image, &floats, 0, ROWS, 64));
    bytes.filterMode = cudaFilterModeLinear;
    (void)cudaGetLastError();
    EXPECT(cudaBindTexture(NULL, &bytes, image, &uchars, 4) != 0); /* memory of the host */
    bytes.filterMode = cudaFilterModePoint;
    (void)cudaGetLastError();
}

int
main(void)
{
    for (int y = 0; y < ROWS; y++)
        for (int x = 0; x < WIDTH; x++)
            image[y][x] = (float)(y * WIDTH + x + 1);
    OK(cudaMalloc((void **)&device_image, sizeof image));
    OK(cudaMalloc((void **)&device_out, RUN * sizeof *device_out));
    OK(cudaMemcpy(device_image, image, sizeof image, cudaMemcpyHostToDevice));
    linear_memory();
    integers_as_fractions();
    rows_of_memory();
    arrays_and_settings();
    surfaces();
    mistakes_are_told();
    return 0;
}
