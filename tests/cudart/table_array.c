/* Arrays, copies to and from them, textures and surfaces. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

static const struct table_channel floats = {32, 0, 0, 0, 2};
static const struct table_channel gap = {32, 0, 16, 0, 2}; /* a channel is left out */
static const struct table_channel odd_bits = {7, 0, 0, 0, 0};
static const struct table_channel bytes4 = {8, 8, 8, 8, 1};
static const struct table_channel mixed = {8, 16, 0, 0, 1};
static const struct table_channel three = {8, 8, 8, 0, 1};
static const struct table_channel kindless = {32, 0, 0, 0, 3};
static const struct table_channel wild = {32, 0, 0, 0, 99};

static char *array_host;

#define MALLOC_ARRAY (void **, const struct table_channel *, size_t, size_t, unsigned)
#define MALLOC_3D (void **, const struct table_channel *, struct table_extent, unsigned)

static void
try_channels(const char *label, const struct table_channel *channels)
{
    void *array = (void *)77;

    TRY(label, cudaMallocArray, MALLOC_ARRAY, (&array, channels, 64, 16, 0));
    table_show("untouched %d, NULL %d", array == (void *)77, array == NULL);
    if (array != (void *)77 && array)
        QUIET(cudaFreeArray, (void *), (array));
}

static void
making_arrays(void)
{
    void *array = NULL;

    try_channels("floats", &floats);
    try_channels("a gap", &gap);
    try_channels("7 bits", &odd_bits);
    try_channels("4 bytes", &bytes4);
    try_channels("mixed sizes", &mixed);
    try_channels("3 bytes", &three);
    try_channels("without a kind", &kindless);
    try_channels("a bad kind", &wild);
    try_channels("no channels", NULL);
    TRY("no place", cudaMallocArray, MALLOC_ARRAY, (NULL, &floats, 64, 16, 0));
    TRY("no width", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 0, 16, 0));
    TRY("nothing", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 0, 0, 0));
    TRY("one dimension", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 64, 0, 0));
    QUIET(cudaFreeArray, (void *), (array));
    TRY("too wide", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, (size_t)1 << 40, 1, 0));
    TRY("surface", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 64, 16, 2));
    QUIET(cudaFreeArray, (void *), (array));
    TRY("gather", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 64, 16, 8));
    TRY("layered in two", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 64, 16, 1));
    TRY("bad flags", cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 64, 16, 0x10000));
    TRY("plain", cudaMalloc3DArray, MALLOC_3D,
        (&array, &floats, (struct table_extent){16, 8, 4}, 0));
    QUIET(cudaFreeArray, (void *), (array));
    TRY("layered", cudaMalloc3DArray, MALLOC_3D,
        (&array, &floats, (struct table_extent){16, 0, 4}, 1));
    TRY("cube", cudaMalloc3DArray, MALLOC_3D,
        (&array, &floats, (struct table_extent){16, 16, 6}, 4));
    TRY("no cube", cudaMalloc3DArray, MALLOC_3D,
        (&array, &floats, (struct table_extent){16, 8, 6}, 4));
    TRY("no height", cudaMalloc3DArray, MALLOC_3D,
        (&array, &floats, (struct table_extent){16, 0, 4}, 0));
    TRY("no place", cudaMalloc3DArray, MALLOC_3D,
        (NULL, &floats, (struct table_extent){16, 8, 4}, 0));
    TRY("no channels", cudaMalloc3DArray, MALLOC_3D,
        (&array, NULL, (struct table_extent){16, 8, 4}, 0));
    TRY("no array", cudaFreeArray, (void *), (NULL));
}

static void
asking_arrays(void *array)
{
    struct table_channel channel = {77, 77, 77, 77, 77};
    struct table_extent extent = {77, 77, 77};
    char room[128];
    unsigned flags = 77;

    TRY("all", cudaArrayGetInfo,
        (struct table_channel *, struct table_extent *, unsigned *, void *),
        (&channel, &extent, &flags, array));
    table_show("%d %d %d %d kind %d, %zu x %zu x %zu, flags %u", channel.x, channel.y, channel.z,
               channel.w, channel.kind, extent.width, extent.height, extent.depth, flags);
    TRY("nothing", cudaArrayGetInfo,
        (struct table_channel *, struct table_extent *, unsigned *, void *),
        (NULL, NULL, NULL, array));
    TRY("no array", cudaArrayGetInfo,
        (struct table_channel *, struct table_extent *, unsigned *, void *),
        (&channel, &extent, &flags, NULL));
    table_show("%d %d %d %d kind %d, %zu x %zu x %zu, flags %u", channel.x, channel.y, channel.z,
               channel.w, channel.kind, extent.width, extent.height, extent.depth, flags);
    TRY("plain", cudaGetChannelDesc, (struct table_channel *, const void *), (&channel, array));
    table_show("%d %d %d %d kind %d", channel.x, channel.y, channel.z, channel.w, channel.kind);
    TRY("no place", cudaGetChannelDesc, (struct table_channel *, const void *), (NULL, array));
    TRY("no array", cudaGetChannelDesc, (struct table_channel *, const void *), (&channel, NULL));
    table_show("%d %d %d %d kind %d", channel.x, channel.y, channel.z, channel.w, channel.kind);
    TRY("not sparse", cudaArrayGetSparseProperties, (void *, void *), (room, array));
    TRY("no array", cudaArrayGetSparseProperties, (void *, void *), (room, NULL));
    TRY("not deferred", cudaArrayGetMemoryRequirements, (void *, void *, int), (room, array, 0));
    TRY("one plane", cudaArrayGetPlane, (void **, void *, unsigned), ((void **)room, array, 0));
}

#define TO_ARRAY (void *, size_t, size_t, const void *, size_t, int)
#define TO_ARRAY_2D (void *, size_t, size_t, const void *, size_t, size_t, size_t, int)
#define FROM_ARRAY (void *, const void *, size_t, size_t, size_t, int)
#define FROM_ARRAY_2D (void *, size_t, const void *, size_t, size_t, size_t, size_t, int)

/* The array has 64 x 16 floats. */
static void
copies_to_arrays(void *array)
{
    char *host = array_host;

    TRY("all", cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 0, 0, host, 256, 256, 16, TO_DEVICE));
    TRY("a part", cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 16, 2, host, 64, 64, 4, TO_DEVICE));
    TRY("default", cudaMemcpy2DToArray, TO_ARRAY_2D,
        (array, 0, 0, host, 256, 256, 16, DEFAULT_KIND));
    TRY("wrong kind", cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 0, 0, host, 256, 256, 16, TO_HOST));
    TRY("kind 9", cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 0, 0, host, 256, 256, 16, BAD_KIND));
    TRY("small pitch", cudaMemcpy2DToArray, TO_ARRAY_2D,
        (array, 0, 0, host, 128, 256, 16, TO_DEVICE));
    TRY("too wide", cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 0, 0, host, 512, 260, 16, TO_DEVICE));
    TRY("too high", cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 0, 0, host, 256, 256, 17, TO_DEVICE));
    TRY("an odd place", cudaMemcpy2DToArray, TO_ARRAY_2D,
        (array, 2, 0, host, 64, 64, 4, TO_DEVICE));
    TRY("no array", cudaMemcpy2DToArray, TO_ARRAY_2D, (NULL, 0, 0, host, 256, 256, 16, TO_DEVICE));
    TRY("from nothing", cudaMemcpy2DToArray, TO_ARRAY_2D,
        (array, 0, 0, NULL, 256, 256, 16, TO_DEVICE));
    TRY("no width", cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 0, 0, host, 256, 0, 16, TO_DEVICE));
    TRY("no width, no array", cudaMemcpy2DToArray, TO_ARRAY_2D,
        (NULL, 0, 0, host, 256, 0, 16, TO_DEVICE));
    TRY("rows", cudaMemcpyToArray, TO_ARRAY, (array, 0, 0, host, 1024, TO_DEVICE));
    TRY("across rows", cudaMemcpyToArray, TO_ARRAY, (array, 4, 0, host, 1024, TO_DEVICE));
    TRY("too much", cudaMemcpyToArray, TO_ARRAY, (array, 0, 0, host, 1 << 20, TO_DEVICE));
    TRY("nothing", cudaMemcpyToArray, TO_ARRAY, (array, 0, 0, host, 0, TO_DEVICE));
    TRY("kind 9", cudaMemcpyToArray, TO_ARRAY, (array, 0, 0, host, 64, BAD_KIND));
    TRY("wrong kind", cudaMemcpyToArray, TO_ARRAY, (array, 0, 0, host, 64, TO_HOST));
    TRY("no array", cudaMemcpyToArray, TO_ARRAY, (NULL, 0, 0, host, 64, TO_DEVICE));
    TRY("all", cudaMemcpy2DToArrayAsync,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, int, void *),
        (array, 0, 0, host, 256, 256, 16, TO_DEVICE, NULL));
    TRY("rows", cudaMemcpyToArrayAsync, (void *, size_t, size_t, const void *, size_t, int, void *),
        (array, 4, 0, host, 1024, TO_DEVICE, NULL));
    QUIET(cudaDeviceSynchronize, (void), ());
}

static void
copies_from_arrays(void *array)
{
    char *host = array_host, *back = calloc(1, 65536);

    QUIET(cudaMemcpy2DToArray, TO_ARRAY_2D, (array, 0, 0, host, 256, 256, 16, TO_DEVICE));
    TRY("all", cudaMemcpy2DFromArray, FROM_ARRAY_2D, (back, 256, array, 0, 0, 256, 16, TO_HOST));
    table_show("same %d", memcmp(host, back, 4096) == 0);
    TRY("default", cudaMemcpy2DFromArray, FROM_ARRAY_2D,
        (back, 256, array, 0, 0, 256, 16, DEFAULT_KIND));
    TRY("wrong kind", cudaMemcpy2DFromArray, FROM_ARRAY_2D,
        (back, 256, array, 0, 0, 256, 16, TO_DEVICE));
    TRY("kind 9", cudaMemcpy2DFromArray, FROM_ARRAY_2D,
        (back, 256, array, 0, 0, 256, 16, BAD_KIND));
    TRY("small pitch", cudaMemcpy2DFromArray, FROM_ARRAY_2D,
        (back, 128, array, 0, 0, 256, 16, TO_HOST));
    TRY("too high", cudaMemcpy2DFromArray, FROM_ARRAY_2D,
        (back, 256, array, 0, 0, 256, 17, TO_HOST));
    TRY("no array", cudaMemcpy2DFromArray, FROM_ARRAY_2D,
        (back, 256, NULL, 0, 0, 256, 16, TO_HOST));
    memset(back, 0, 4096);
    TRY("across rows", cudaMemcpyFromArray, FROM_ARRAY, (back, array, 4, 0, 1024, TO_HOST));
    table_show("same %d", memcmp(host + 4, back, 1024) == 0);
    TRY("rows", cudaMemcpyFromArray, FROM_ARRAY, (back, array, 0, 0, 1024, TO_HOST));
    TRY("wrong kind", cudaMemcpyFromArray, FROM_ARRAY, (back, array, 0, 0, 64, TO_DEVICE));
    TRY("too much", cudaMemcpyFromArray, FROM_ARRAY, (back, array, 0, 0, 1 << 20, TO_HOST));
    TRY("all", cudaMemcpy2DFromArrayAsync,
        (void *, size_t, const void *, size_t, size_t, size_t, size_t, int, void *),
        (back, 256, array, 0, 0, 256, 16, TO_HOST, NULL));
    TRY("rows", cudaMemcpyFromArrayAsync,
        (void *, const void *, size_t, size_t, size_t, int, void *),
        (back, array, 4, 0, 1024, TO_HOST, NULL));
    TRY("down", cudaMemcpy2DArrayToArray,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, size_t, int),
        (array, 0, 8, array, 0, 0, 256, 8, ON_DEVICE));
    TRY("default", cudaMemcpy2DArrayToArray,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, size_t, int),
        (array, 0, 8, array, 0, 0, 256, 8, DEFAULT_KIND));
    TRY("wrong kind", cudaMemcpy2DArrayToArray,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, size_t, int),
        (array, 0, 8, array, 0, 0, 256, 8, TO_DEVICE));
    TRY("too high", cudaMemcpy2DArrayToArray,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, size_t, int),
        (array, 0, 8, array, 0, 0, 256, 9, ON_DEVICE));
    TRY("across rows", cudaMemcpyArrayToArray,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, int),
        (array, 4, 0, array, 4, 8, 512, ON_DEVICE));
    TRY("nothing", cudaMemcpyArrayToArray,
        (void *, size_t, size_t, const void *, size_t, size_t, size_t, int),
        (array, 4, 0, array, 4, 8, 0, ON_DEVICE));
    QUIET(cudaDeviceSynchronize, (void), ());
    free(back);
}

static void
boxes_and_arrays(void *array, void *deep)
{
    struct table_copy3d box = {
        .src = {array_host, 64, 16, 8},
        .dst_array = deep,
        .extent = {16, 8, 4},
        .kind = TO_DEVICE,
    };

    TRY("to an array", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.extent.width = 17;
    TRY("too wide for an array", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.extent.width = 16;
    box.dst_pos.x = 4;
    TRY("behind an array", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.dst_pos.x = 0;
    box.dst.ptr = array_host;
    TRY("two destinations", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.dst.ptr = NULL;
    box.src_array = array;
    TRY("two sources", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.src.ptr = NULL;
    box.extent = (struct table_extent){16, 8, 1};
    TRY("array to array, as from the host", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.kind = ON_DEVICE;
    TRY("array to array", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.dst_array = NULL;
    box.dst = (struct table_pitched){array_host, 64, 16, 8};
    box.kind = TO_HOST;
    TRY("from an array", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.kind = DEFAULT_KIND;
    TRY("from an array, default", cudaMemcpy3D, (const struct table_copy3d *), (&box));
    box.kind = TO_DEVICE;
    TRY("from an array, wrong kind", cudaMemcpy3D, (const struct table_copy3d *), (&box));
}

static void
mipmaps(void)
{
    void *mipmap = NULL, *level = NULL;

    TRY("plain", cudaMallocMipmappedArray,
        (void **, const struct table_channel *, struct table_extent, unsigned, unsigned),
        (&mipmap, &floats, (struct table_extent){64, 64, 0}, 4, 0));
    TRY("no place", cudaMallocMipmappedArray,
        (void **, const struct table_channel *, struct table_extent, unsigned, unsigned),
        (NULL, &floats, (struct table_extent){64, 64, 0}, 4, 0));
    TRY("level 1", cudaGetMipmappedArrayLevel, (void **, const void *, unsigned),
        (&level, mipmap, 1));
    TRY("level 9", cudaGetMipmappedArrayLevel, (void **, const void *, unsigned),
        (&level, mipmap, 9));
    TRY("no place", cudaGetMipmappedArrayLevel, (void **, const void *, unsigned),
        (NULL, mipmap, 1));
    TRY("plain", cudaFreeMipmappedArray, (void *), (mipmap));
    TRY("no mipmap", cudaFreeMipmappedArray, (void *), (NULL));
    TRY("a gap", cudaMallocMipmappedArray,
        (void **, const struct table_channel *, struct table_extent, unsigned, unsigned),
        (&mipmap, &gap, (struct table_extent){64, 64, 0}, 4, 0));
    TRY("many levels", cudaMallocMipmappedArray,
        (void **, const struct table_channel *, struct table_extent, unsigned, unsigned),
        (&mipmap, &floats, (struct table_extent){64, 64, 0}, 40, 0));
}

void
table_arrays(void)
{
    void *array = NULL, *deep = NULL;

    array_host = calloc(1, 1 << 20);
    for (int i = 0; i < 65536; i++)
        array_host[i] = (char)(i * 7);
    making_arrays();
    QUIET(cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 64, 16, 0));
    QUIET(cudaMalloc3DArray, MALLOC_3D, (&deep, &floats, (struct table_extent){16, 8, 4}, 0));
    asking_arrays(array);
    copies_to_arrays(array);
    copies_from_arrays(array);
    boxes_and_arrays(array, deep);
    mipmaps();
    TRY("plain", cudaFreeArray, (void *), (array));
}

#define CREATE_TEXTURE \
    (uint64_t *, const struct table_resource *, const struct table_texture *, const void *)

static void
try_texture(const char *label, const struct table_resource *resource,
            const struct table_texture *texture)
{
    uint64_t object = 77;

    TRY(label, cudaCreateTextureObject, CREATE_TEXTURE, (&object, resource, texture, NULL));
    if (object != 77 && object)
        QUIET(cudaDestroyTextureObject, (uint64_t), (object));
}

static void
textures_of_memory(void *memory)
{
    struct table_resource linear = {.type = 2};
    struct table_resource rows = {.type = 3};
    struct table_texture plain = {.address = {1, 1, 1}};

    linear.u.linear.ptr = memory;
    linear.u.linear.channel = floats;
    linear.u.linear.bytes = 1024;
    try_texture("linear", &linear, &plain);
    plain.normalized = 1;
    try_texture("linear, normalized", &linear, &plain);
    plain.filter = 1;
    try_texture("linear, filtered", &linear, &plain);
    plain = (struct table_texture){.address = {1, 1, 1}, .read = 1};
    try_texture("linear, floats read as normalized", &linear, &plain);
    linear.u.linear.channel = bytes4;
    try_texture("linear, bytes read as normalized", &linear, &plain);
    plain.read = 0;
    try_texture("linear, bytes", &linear, &plain);
    plain.filter = 1;
    try_texture("linear, bytes filtered", &linear, &plain);
    plain.filter = 0;
    plain.srgb = 1;
    try_texture("linear, sRGB", &linear, &plain);
    plain.srgb = 0;
    linear.u.linear.channel = gap;
    try_texture("linear, a gap", &linear, &plain);
    linear.u.linear.channel = floats;
    linear.u.linear.bytes = 0;
    try_texture("linear, nothing", &linear, &plain);
    linear.u.linear.bytes = 1024;
    linear.u.linear.ptr = NULL;
    try_texture("linear, NULL", &linear, &plain);
    rows.u.pitch2d.ptr = memory;
    rows.u.pitch2d.channel = floats;
    rows.u.pitch2d.width = 16;
    rows.u.pitch2d.height = 8;
    rows.u.pitch2d.pitch = 512;
    try_texture("rows", &rows, &plain);
    rows.u.pitch2d.pitch = 30;
    try_texture("rows, small pitch", &rows, &plain);
}

static void
textures_of_arrays(void *array)
{
    struct table_resource resource = {.type = 0};
    struct table_texture texture = {.address = {1, 1, 1}}, what;
    struct table_resource which;
    uint64_t object = 77;
    char view[128];

    resource.u.array = array;
    TRY("of an array", cudaCreateTextureObject, CREATE_TEXTURE,
        (&object, &resource, &texture, NULL));
    TRY("plain", cudaGetTextureObjectResourceDesc, (struct table_resource *, uint64_t),
        (&which, object));
    table_show("type %d, same array %d", which.type, which.u.array == array);
    TRY("no place", cudaGetTextureObjectResourceDesc, (struct table_resource *, uint64_t),
        (NULL, object));
    memset(&what, 0x77, sizeof what);
    TRY("plain", cudaGetTextureObjectTextureDesc, (struct table_texture *, uint64_t),
        (&what, object));
    table_show("address %d, filter %d, read %d, normalized %d", what.address[0], what.filter,
               what.read, what.normalized);
    TRY("no view", cudaGetTextureObjectResourceViewDesc, (void *, uint64_t), (view, object));
    TRY("plain", cudaDestroyTextureObject, (uint64_t), (object));
    TRY("none", cudaDestroyTextureObject, (uint64_t), (0));
    TRY("no place", cudaCreateTextureObject, CREATE_TEXTURE, (NULL, &resource, &texture, NULL));
    TRY("no resource", cudaCreateTextureObject, CREATE_TEXTURE, (&object, NULL, &texture, NULL));
    TRY("no description", cudaCreateTextureObject, CREATE_TEXTURE,
        (&object, &resource, NULL, NULL));
    texture.address[0] = 99;
    try_texture("bad address mode", &resource, &texture);
    texture.address[0] = 0;
    texture.filter = 99;
    try_texture("bad filter", &resource, &texture);
    texture.filter = 0;
    texture.read = 99;
    try_texture("bad read mode", &resource, &texture);
    texture.read = 0;
    resource.type = 99;
    try_texture("bad resource", &resource, &texture);
    resource.type = 0;
    resource.u.array = NULL;
    try_texture("no array", &resource, &texture);
    resource.type = 1;
    try_texture("no mipmap", &resource, &texture);
}

static void
surfaces(void *array, void *writable)
{
    struct table_resource resource = {.type = 0}, which;
    uint64_t object = 77;

    resource.u.array = writable;
    TRY("plain", cudaCreateSurfaceObject, (uint64_t *, const struct table_resource *),
        (&object, &resource));
    TRY("plain", cudaGetSurfaceObjectResourceDesc, (struct table_resource *, uint64_t),
        (&which, object));
    table_show("type %d, same array %d", which.type, which.u.array == writable);
    TRY("plain", cudaDestroySurfaceObject, (uint64_t), (object));
    TRY("none", cudaDestroySurfaceObject, (uint64_t), (0));
    TRY("no place", cudaCreateSurfaceObject, (uint64_t *, const struct table_resource *),
        (NULL, &resource));
    TRY("no resource", cudaCreateSurfaceObject, (uint64_t *, const struct table_resource *),
        (&object, NULL));
    resource.u.array = array;
    TRY("a plain array", cudaCreateSurfaceObject, (uint64_t *, const struct table_resource *),
        (&object, &resource));
    resource.u.array = NULL;
    TRY("no array", cudaCreateSurfaceObject, (uint64_t *, const struct table_resource *),
        (&object, &resource));
    resource.type = 2;
    TRY("memory", cudaCreateSurfaceObject, (uint64_t *, const struct table_resource *),
        (&object, &resource));
}

static void
references(void)
{
    struct table_channel channel = {0, 0, 0, 0, 0};
    const void *reference = NULL;
    size_t offset = 77;

    if (table_find("cudaCreateChannelDesc")) {
        channel =
            ((struct table_channel(*)(int, int, int, int, int))table_function())(8, 8, 0, 0, 1);
        table_show("%d %d %d %d kind %d", channel.x, channel.y, channel.z, channel.w, channel.kind);
    }
    TRY("not a texture", cudaGetTextureReference, (const void **, const void *),
        (&reference, &offset));
    TRY("no texture", cudaGetTextureReference, (const void **, const void *), (&reference, NULL));
    TRY("not a surface", cudaGetSurfaceReference, (const void **, const void *),
        (&reference, &offset));
    TRY("no texture", cudaUnbindTexture, (const void *), (NULL));
    TRY("no texture", cudaGetTextureAlignmentOffset, (size_t *, const void *), (&offset, NULL));
    TRY("no texture", cudaBindTexture,
        (size_t *, const void *, const void *, const struct table_channel *, size_t),
        (&offset, NULL, NULL, &channel, 64));
}

void
table_textures(void)
{
    void *memory = NULL, *array = NULL, *writable = NULL;

    QUIET(cudaMalloc, (void **, size_t), (&memory, 65536));
    QUIET(cudaMallocArray, MALLOC_ARRAY, (&array, &floats, 64, 16, 0));
    QUIET(cudaMallocArray, MALLOC_ARRAY, (&writable, &floats, 64, 16, 2));
    textures_of_memory(memory);
    textures_of_arrays(array);
    surfaces(array, writable);
    references();
}
