/* Structs that an edition fills are no larger than its headers had them: what follows them in
 * memory stays as it was, and what is in them is right. */
#include <string.h>

#include "old.h"

/* Bytes, on 64-bit systems. */
#if OLD_EDITION < 100
enum { PROP = 648, GLOBAL_MEMORY = 256, MAJOR = 328, FUNCTION = 48, POINTER = 32, TEXTURE = 64 };
#elif OLD_EDITION < 110
enum { PROP = 712, GLOBAL_MEMORY = 288, MAJOR = 360, FUNCTION = 56, POINTER = 40, TEXTURE = 64 };
#else
enum { PROP = 728, GLOBAL_MEMORY = 288, MAJOR = 360, FUNCTION = 56, POINTER = 24, TEXTURE = 68 };
#endif
enum { RESOURCE = 64, VIEW = 48, MARK = 0x5a, ROOM = 2048 };

int cudaGetDeviceProperties(void *prop, int device);
int cudaChooseDevice(int *device, const void *prop);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaMemGetInfo(size_t *left, size_t *all);
int cudaFuncGetAttributes(void *attributes, const void *function);
int cudaPointerGetAttributes(void *attributes, const void *p);
int cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc, size_t width,
                    size_t height, unsigned flags);
int cudaCreateTextureObject(uint64_t *texture, const void *resource, const void *desc,
                            const void *view);
int cudaGetTextureObjectResourceDesc(void *resource, uint64_t texture);
int cudaGetTextureObjectTextureDesc(void *desc, uint64_t texture);
int cudaGetTextureObjectResourceViewDesc(void *view, uint64_t texture);
int cudaDestroyTextureObject(uint64_t texture);

static const char ptx[] = ".version 4.2\n"
                          ".target sm_20\n"
                          ".address_size 64\n"
                          ".visible .entry nothing()\n"
                          "{\n"
                          "ret;\n"
                          "}\n";

static char nothing;
static _Alignas(16) unsigned char room[ROOM];

static void *
marked_room(void)
{
    memset(room, MARK, sizeof room);
    return room;
}

static int
int_at(size_t offset)
{
    int v;

    memcpy(&v, room + offset, sizeof v);
    return v;
}

/* Everything from `size` on is untouched, and the last bytes before it are not. */
static void
expect_size(size_t size, size_t last, int line)
{
    for (size_t i = size; i < sizeof room; i++)
        if (room[i] != MARK) {
            fprintf(stderr, "%s:%d: byte %zu was written, of %zu\n", __FILE__, line, i, size);
            exit(1);
        }
    for (size_t i = size - last; i < size; i++)
        if (room[i] != MARK)
            return;
    fprintf(stderr, "%s:%d: the last of %zu bytes were not written\n", __FILE__, line, size);
    exit(1);
}

#define EXPECT_SIZE(size, last) expect_size(size, last, __LINE__)

static void
devices(void)
{
    size_t left, all, memory;
    int device = 7, major;

    OK(cudaGetDeviceProperties(marked_room(), 0));
    EXPECT_SIZE(PROP, 8);
    OK(cudaDeviceGetAttribute(&major, 75, 0)); /* the major compute capability */
    EXPECT(int_at(MAJOR) == major);
    OK(cudaMemGetInfo(&left, &all));
    memcpy(&memory, room + GLOBAL_MEMORY, sizeof memory);
    EXPECT(memory == all);
    OK(cudaChooseDevice(&device, room));
    EXPECT(device == 0);
}

static void
kernels_and_pointers(void)
{
    void *p;

    OK(cudaFuncGetAttributes(marked_room(), &nothing));
    EXPECT(int_at(24) > 0); /* maxThreadsPerBlock */
    EXPECT_SIZE(FUNCTION, 12);
    OK(cudaMalloc(&p, 16));
    OK(cudaPointerGetAttributes(marked_room(), p));
    EXPECT_SIZE(POINTER, 16);
    EXPECT(int_at(0) == 2); /* cudaMemoryTypeDevice */
    OK(cudaFree(p));
}

static void
textures(void)
{
    static const struct cudaChannelFormatDesc floats = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    struct {
        int type;
        cudaArray_t array;
        char more[RESOURCE - 16];
    } resource = {.type = 0};
    struct {
        int address[3], filter, read, srgb;
        float border[4];
        int normalized;
        char more[64];
    } desc = {.address = {1, 1, 1}, .border = {0.5f}, .normalized = 1};
    uint64_t texture;

    OK(cudaMallocArray(&resource.array, &floats, 16, 4, 0));
    /* What follows the description of that time is not looked at. */
    memset((char *)&desc + TEXTURE, MARK, sizeof desc - TEXTURE);
    OK(cudaCreateTextureObject(&texture, &resource, &desc, NULL));
    OK(cudaGetTextureObjectTextureDesc(marked_room(), texture));
    EXPECT_SIZE(TEXTURE, 4);
    EXPECT(memcmp(room, &desc, TEXTURE) == 0);
    OK(cudaGetTextureObjectResourceDesc(marked_room(), texture));
    EXPECT_SIZE(RESOURCE, 8);
    EXPECT(memcmp(room + 8, &resource.array, sizeof resource.array) == 0);
    OK(cudaGetTextureObjectResourceViewDesc(marked_room(), texture));
    EXPECT_SIZE(VIEW, 8);
    OK(cudaDestroyTextureObject(texture));
}

int
main(void)
{
    void **handle = old_register(ptx);

    OLD_KERNEL(handle, &nothing, "nothing");
    devices();
    kernels_and_pointers();
    textures();
    return 0;
}
