/* The array example (examples/array.cu) as nvcc compiles it, but by hand, so that neither nvcc nor
 * NVIDIA's headers are needed: the kernel is PTX in a fat binary, registered with the CUDA runtime
 * before main, and has a stub that launches it. It is linked with any libcudart.so.N since 10.2.
 *
 * With -DARRAY=main it is the program. Without, it is a program that opens a library, which is this
 * file again (-shared -DARRAY=array), and calls it. So Python loads its modules.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#ifdef ARRAY
#define HOST_TO_DEVICE 1
#define DEVICE_TO_HOST 2

struct dim3 {
    unsigned x, y, z;
};

/* Of the runtime; its headers are NVIDIA's. */
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *stub, char *name, const char *device_name,
                            int threads, void *tid, void *bid, void *block, void *grid, int *warp);
int cudaMalloc(void **p, size_t size);
int cudaFree(void *p);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaLaunchKernel(const void *stub, struct dim3 grid, struct dim3 block, void **args,
                     size_t shared, void *stream);

#define PTX                                     \
    ".version 6.0\n"                            \
    ".target sm_30\n"                           \
    ".address_size 64\n"                        \
    ".visible .entry sum(.param .u64 array)\n"  \
    "{\n"                                       \
    "    .reg .u64 %a, %offset;\n"              \
    "    .reg .u32 %t;\n"                       \
    "    .reg .f64 %x;\n"                       \
    "    ld.param.u64 %a, [array];\n"           \
    "    mov.u32 %t, %tid.x;\n"                 \
    "    mul.wide.u32 %offset, %t, 8;\n"        \
    "    add.u64 %a, %a, %offset;\n"            \
    "    ld.global.f64 %x, [%a];\n"             \
    "    add.f64 %x, %x, 0d3FF0000000000000;\n" \
    "    st.global.f64 [%a], %x;\n"             \
    "    ret;\n"                                \
    "}\n"

/* A fat binary with one entry, as docs/internals/fatbin.md describes it. */
static const struct {
    uint32_t magic;
    uint16_t version, header_size;
    uint64_t size; /* of what follows */
    struct {
        uint16_t kind, version;
        uint32_t header_size;
        uint64_t stored; /* bytes of the text */
        uint32_t packed, options;
        uint16_t minor, major;
        uint32_t arch, name, name_size;
        uint64_t flags, zero, unpacked;
    } entry;
    char text[(sizeof PTX + 7) / 8 * 8];
} fatbin = {.magic = 0xBA55ED50,
            .version = 1,
            .header_size = 16,
            .size = sizeof fatbin - 16,
            .entry = {.kind = 1,
                      .version = 0x0101,
                      .header_size = 64,
                      .stored = sizeof fatbin.text,
                      .major = 6,
                      .arch = 30,
                      .flags = 0x11},
            .text = PTX};

static const struct {
    uint32_t magic, version;
    const void *data;
    void *file;
} wrapper = {0x466243B1, 1, &fatbin, NULL};

static void **module;

/* Its address is the kernel's name in the program. */
static int
sum(double *array)
{
    void *args[] = {&array};

    return cudaLaunchKernel((const void *)(uintptr_t)sum, (struct dim3){1, 1, 1},
                            (struct dim3){32, 1, 1}, args, 0, NULL);
}

__attribute__((constructor)) static void
register_kernels(void)
{
    module = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);
    __cudaRegisterFunction(module, (const char *)(uintptr_t)sum, (char *)(uintptr_t) "sum", "sum",
                           -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(module);
}

__attribute__((destructor)) static void
unregister_kernels(void)
{
    __cudaUnregisterFatBinary(module);
}

int ARRAY(void);

int
ARRAY(void)
{
    double host[32];
    void *device;

    for (int i = 0; i < 32; i++)
        host[i] = i;

    int r = cudaMalloc(&device, sizeof host);

    r = r ? r : cudaMemcpy(device, host, sizeof host, HOST_TO_DEVICE);
    r = r ? r : sum(device);
    r = r ? r : cudaMemcpy(host, device, sizeof host, DEVICE_TO_HOST);
    r = r ? r : cudaFree(device);
    if (r) {
        fprintf(stderr, "error %d of the CUDA runtime\n", r);
        return 1;
    }
    for (int i = 0; i < 32; i++)
        printf("%g%c", host[i], i < 31 ? ' ' : '\n');
    return 0;
}
#else
int
main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    int (*array)(void) = library ? (int (*)(void))dlsym(library, "array") : NULL;

    if (array)
        return array();
    fprintf(stderr, "%s\n", dlerror());
    return 1;
}
#endif
