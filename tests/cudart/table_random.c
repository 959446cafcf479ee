/* Calls with arguments at random, the same in every run: HED_TABLE_SEED chooses other ones.
 * The sum of all bytes that copies can reach is printed after each call. */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANDOM_CALLS = 400,
    RANDOM_HOST = 8 << 20, /* bytes: more than any copy reaches */
    RANDOM_DEVICE = 64 << 10,
};

static const struct table_channel random_floats = {32, 0, 0, 0, 2};

static struct {
    uint64_t state; /* the seed */
    uint64_t call;  /* which one is made */
    char *host, *pinned, *device, *second;
    void *array, *deep; /* 64 x 16 and 16 x 8 x 4 floats */
    void *stream;
    char name[32];
} any;

/* Number `key` of the present call: not a sequence, because C does not say in which order arguments
 * and fields are computed. */
static uint32_t
draw(unsigned key, uint32_t below)
{
    uint64_t x = any.state * 1000003 + any.call * 8191 + key;

    for (int i = 0; i < 3; i++)
        x = (x ^ x >> 31) * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(x >> 33) % below;
}

#define PICK(key, ...) \
    ((const size_t[]){__VA_ARGS__})[draw(key, sizeof(const size_t[]){__VA_ARGS__} / sizeof(size_t))]

#define SOME_SIZE(key) PICK(key, 0, 1, 4, 16, 63, 64, 65, 100, 256, 257, 512, 1024, 4096, 8192)
#define SOME_PITCH(key) PICK(key, 0, 16, 64, 64, 100, 256, 256, 512, 512, 4096)
#define SOME_ROWS(key) PICK(key, 0, 1, 1, 2, 4, 8, 8, 16, 17)
#define SOME_KIND(key) (int)PICK(key, 0, 1, 1, 2, 2, 3, 4, 4, 5, (size_t)-1)

/* Mostly what suits the kind. */
static char *
draw_pointer(int kind, bool source)
{
    char *const all[] = {any.host, any.pinned, any.device, any.second, any.device + 64, NULL};
    const bool on_host = source ? kind == TO_DEVICE || kind == TO_HOST_FROM_HOST
                                : kind == TO_HOST || kind == TO_HOST_FROM_HOST;

    if (draw(100 + source, 8) == 0)
        return all[draw(102 + source, 6)];
    return all[on_host ? draw(104 + source, 2) : 2 + draw(106 + source, 3)] + (source ? 4096 : 0);
}

static void
show_bytes(void)
{
    static char back[RANDOM_DEVICE];
    uint64_t sum = 0;

    QUIET(cudaDeviceSynchronize, (void), ());
    for (int i = 0; i < 2; i++) {
        QUIET(cudaMemcpy, (void *, const void *, size_t, int),
              (back, i ? any.second : any.device, RANDOM_DEVICE, TO_HOST));
        for (int j = 0; j < RANDOM_DEVICE; j++)
            sum = sum * 31 + (unsigned char)back[j];
    }
    QUIET(cudaMemcpy2DFromArray,
          (void *, size_t, const void *, size_t, size_t, size_t, size_t, int),
          (back, 256, any.array, 0, 0, 256, 16, TO_HOST));
    for (int j = 0; j < 4096; j++)
        sum = sum * 31 + (unsigned char)back[j];
    for (int j = 0; j < 65536; j++)
        sum = sum * 31 + (unsigned char)any.host[j] + 7 * (unsigned char)any.pinned[j];
    table_show("%016llx", (unsigned long long)sum);
}

static void
random_copy(void)
{
    const int kind = SOME_KIND(1);
    char *to = draw_pointer(kind, false), *from = draw_pointer(kind, true);
    const size_t pitch = SOME_PITCH(2), other = SOME_PITCH(3), width = SOME_SIZE(4);
    const size_t rows = SOME_ROWS(5);

    switch (draw(6, 4)) {
    case 0:
        TRY(any.name, cudaMemcpy, (void *, const void *, size_t, int), (to, from, width, kind));
        break;
    case 1:
        TRY(any.name, cudaMemcpyAsync, (void *, const void *, size_t, int, void *),
            (to, from, width, kind, any.stream));
        break;
    case 2:
        TRY(any.name, cudaMemcpy2D, (void *, size_t, const void *, size_t, size_t, size_t, int),
            (to, pitch, from, other, width, rows, kind));
        break;
    default:
        TRY(any.name, cudaMemcpy2DAsync,
            (void *, size_t, const void *, size_t, size_t, size_t, int, void *),
            (to, pitch, from, other, width, rows, kind, any.stream));
        break;
    }
}

static struct table_position
draw_position(unsigned key)
{
    return (struct table_position){PICK(key, 0, 0, 0, 4, 15, 16), PICK(key + 1, 0, 0, 1, 7, 8),
                                   PICK(key + 2, 0, 0, 1, 3)};
}

static void
random_box(void)
{
    const int kind = SOME_KIND(1);
    struct table_copy3d box = {
        .src_pos = draw_position(110),
        .dst_pos = draw_position(120),
        .extent = {PICK(2, 0, 1, 4, 8, 16, 16, 17, 64), PICK(3, 0, 1, 1, 4, 8, 9),
                   PICK(4, 0, 1, 1, 2, 4)},
        .kind = kind,
    };
    const size_t from = draw(5, 8), to = draw(6, 8);

    if (from < 3)
        box.src_array = draw(7, 2) ? any.array : any.deep;
    if (from != 0)
        box.src = (struct table_pitched){from < 2 ? NULL : draw_pointer(kind, true), SOME_PITCH(8),
                                         SOME_SIZE(9), PICK(10, 0, 1, 4, 8, 16)};
    if (from < 3 && draw(11, 4))
        box.src.ptr = NULL;
    if (to < 3)
        box.dst_array = draw(12, 2) ? any.array : any.deep;
    if (to != 0)
        box.dst = (struct table_pitched){to < 2 ? NULL : draw_pointer(kind, false), SOME_PITCH(13),
                                         SOME_SIZE(14), PICK(15, 0, 1, 4, 8, 16)};
    if (to < 3 && draw(16, 4))
        box.dst.ptr = NULL;
    if (draw(17, 2))
        TRY(any.name, cudaMemcpy3D, (const struct table_copy3d *), (&box));
    else
        TRY(any.name, cudaMemcpy3DAsync, (const struct table_copy3d *, void *), (&box, any.stream));
}

static void
random_array_copy(void)
{
    const int kind = (int)PICK(1, 0, 1, 1, 1, 2, 2, 2, 3, 4, 4, 9);
    void *array = draw(2, 16) ? any.array : NULL;
    const size_t x = PICK(3, 0, 0, 4, 2, 128, 252, 256), y = PICK(4, 0, 0, 1, 8, 15, 16);
    const size_t width = PICK(5, 0, 4, 64, 128, 256, 260), rows = SOME_ROWS(6);
    const size_t pitch = PICK(7, 16, 64, 256, 256, 260, 512); /* NVIDIA's runtime divides by it */
    const size_t count = PICK(8, 0, 4, 256, 300, 1024, 4096, 5000);
    char *to = draw_pointer(kind, false), *from = draw_pointer(kind, true);

    switch (draw(9, 6)) {
    case 0:
        TRY(any.name, cudaMemcpy2DToArray,
            (void *, size_t, size_t, const void *, size_t, size_t, size_t, int),
            (array, x, y, from, pitch, width, rows, kind));
        break;
    case 1:
        TRY(any.name, cudaMemcpy2DFromArray,
            (void *, size_t, const void *, size_t, size_t, size_t, size_t, int),
            (to, pitch, array, x, y, width, rows, kind));
        break;
    case 2:
        TRY(any.name, cudaMemcpyToArray, (void *, size_t, size_t, const void *, size_t, int),
            (array, x, y, from, count, kind));
        break;
    case 3:
        TRY(any.name, cudaMemcpyFromArray, (void *, const void *, size_t, size_t, size_t, int),
            (to, array, x, y, count, kind));
        break;
    case 4:
        TRY(any.name, cudaMemcpyArrayToArray,
            (void *, size_t, size_t, const void *, size_t, size_t, size_t, int),
            (array, x, y, any.array, 0, PICK(10, 0, 1, 8), count, kind));
        break;
    default:
        TRY(any.name, cudaMemcpy2DArrayToArray,
            (void *, size_t, size_t, const void *, size_t, size_t, size_t, size_t, int),
            (array, x, y, any.array, 0, PICK(11, 0, 1, 8), width, rows, kind));
        break;
    }
}

static void
random_fill(void)
{
    char *to = draw(1, 12) ? any.device + PICK(2, 0, 64, 4096) : draw_pointer(SOME_KIND(3), false);
    const struct table_pitched box = {to, SOME_PITCH(4), SOME_SIZE(5), PICK(6, 0, 1, 4, 8)};
    const int value = (int)draw(7, 1000);

    switch (draw(8, 3)) {
    case 0:
        TRY(any.name, cudaMemset, (void *, int, size_t), (to, value, SOME_SIZE(9)));
        break;
    case 1:
        TRY(any.name, cudaMemset2D, (void *, size_t, int, size_t, size_t),
            (to, SOME_PITCH(10), value, SOME_SIZE(11), SOME_ROWS(12)));
        break;
    default:
        TRY(any.name, cudaMemset3D, (struct table_pitched, int, struct table_extent),
            (box, value,
             (struct table_extent){SOME_SIZE(13), SOME_ROWS(14), PICK(15, 0, 1, 2, 4)}));
        break;
    }
}

static void
random_symbol(void)
{
    const int kind = SOME_KIND(1);
    const char *symbol = draw(2, 12) ? table_dev : NULL;
    const size_t count = PICK(3, 0, 4, 16, 60, 64, 65), offset = PICK(4, 0, 0, 4, 48, 64, 65);

    if (draw(5, 2))
        TRY(any.name, cudaMemcpyToSymbol, (const void *, const void *, size_t, size_t, int),
            (symbol, draw_pointer(kind, true), count, offset, kind));
    else
        TRY(any.name, cudaMemcpyFromSymbol, (void *, const void *, size_t, size_t, int),
            (draw_pointer(kind, false), symbol, count, offset, kind));
}

static void
random_array(void)
{
    const struct table_channel channel = {
        (int)PICK(1, 8, 16, 32, 32, 0, 7), (int)PICK(2, 0, 0, 8, 16, 32),
        (int)PICK(3, 0, 0, 0, 32),         (int)PICK(4, 0, 0, 32),
        (int)PICK(5, 0, 1, 2, 2, 3),
    };
    const struct table_extent extent = {PICK(6, 0, 1, 16, 64), PICK(7, 0, 0, 16, 16),
                                        PICK(8, 0, 0, 1, 6)};
    const unsigned flags = (unsigned)PICK(9, 0, 0, 0, 1, 2, 4, 5, 8, 3);
    void *array = NULL;

    TRY(any.name, cudaMalloc3DArray,
        (void **, const struct table_channel *, struct table_extent, unsigned),
        (&array, &channel, extent, flags));
    if (array)
        QUIET(cudaFreeArray, (void *), (array));
}

static void
random_texture(void)
{
    struct table_resource resource = {.type = (int)PICK(1, 0, 0, 2, 2, 3)};
    struct table_texture texture = {
        .address = {(int)draw(2, 4), (int)draw(3, 4), (int)draw(4, 4)},
        .filter = (int)draw(5, 2),
        .read = (int)draw(6, 2),
        .srgb = draw(7, 8) == 0,
        .normalized = (int)draw(8, 2),
    };
    const struct table_channel channel = {
        (int)PICK(9, 8, 16, 32, 32), (int)PICK(10, 0, 0, 8, 16, 32), 0, 0, (int)PICK(11, 0, 1, 2)};
    uint64_t object = 0;

    if (resource.type == 0) {
        resource.u.array = draw(12, 2) ? any.array : any.deep;
    } else if (resource.type == 2) {
        resource.u.linear.ptr = any.device + PICK(13, 0, 0, 512, 4);
        resource.u.linear.channel = channel;
        resource.u.linear.bytes = SOME_SIZE(14);
    } else {
        resource.u.pitch2d.ptr = any.device + PICK(15, 0, 0, 512, 4);
        resource.u.pitch2d.channel = channel;
        resource.u.pitch2d.width = PICK(16, 0, 16, 64);
        resource.u.pitch2d.height = PICK(17, 0, 1, 8);
        resource.u.pitch2d.pitch = SOME_PITCH(18);
    }
    TRY(any.name, cudaCreateTextureObject,
        (uint64_t *, const struct table_resource *, const struct table_texture *, const void *),
        (&object, &resource, &texture, NULL));
    if (object)
        QUIET(cudaDestroyTextureObject, (uint64_t), (object));
}

static void
make_random_places(void)
{
    struct table_copy3d fill = {.extent = {16, 8, 4}, .kind = TO_DEVICE};

    any.host = malloc(RANDOM_HOST);
    QUIET(cudaMallocHost, (void **, size_t), ((void **)&any.pinned, RANDOM_HOST));
    QUIET(cudaMalloc, (void **, size_t), ((void **)&any.device, RANDOM_DEVICE));
    QUIET(cudaMalloc, (void **, size_t), ((void **)&any.second, RANDOM_DEVICE));
    QUIET(cudaMallocArray, (void **, const struct table_channel *, size_t, size_t, unsigned),
          (&any.array, &random_floats, 64, 16, 0));
    QUIET(cudaMalloc3DArray, (void **, const struct table_channel *, struct table_extent, unsigned),
          (&any.deep, &random_floats, (struct table_extent){16, 8, 4}, 0));
    QUIET(cudaStreamCreate, (void **), (&any.stream));
    if (!any.host || !any.pinned)
        exit(2);
    for (int i = 0; i < RANDOM_HOST; i++) {
        any.host[i] = (char)(i * 13);
        any.pinned[i] = (char)(i * 7);
    }
    QUIET(cudaMemcpy, (void *, const void *, size_t, int),
          (any.device, any.host, RANDOM_DEVICE, TO_DEVICE));
    QUIET(cudaMemcpy, (void *, const void *, size_t, int),
          (any.second, any.pinned, RANDOM_DEVICE, TO_DEVICE));
    QUIET(cudaMemcpy2DToArray, (void *, size_t, size_t, const void *, size_t, size_t, size_t, int),
          (any.array, 0, 0, any.host, 256, 256, 16, TO_DEVICE));
    fill.src = (struct table_pitched){any.host, 64, 16, 8};
    fill.dst_array = any.deep;
    QUIET(cudaMemcpy3D, (const struct table_copy3d *), (&fill));
}

void
table_random(void)
{
    const char *seed = getenv("HED_TABLE_SEED");
    void (*const calls[])(void) = {random_copy,   random_box,       random_array_copy, random_fill,
                                   random_symbol, random_array,     random_texture,    random_copy,
                                   random_box,    random_array_copy};

    any.state = seed ? strtoull(seed, NULL, 10) : 1;
    table_register();
    make_random_places();
    for (int i = 0; i < RANDOM_CALLS; i++) {
        any.call = (uint64_t)i;
        (void)snprintf(any.name, sizeof any.name, "number %d", i);
        calls[draw(0, sizeof calls / sizeof *calls)]();
        show_bytes();
    }
}
