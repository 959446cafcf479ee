/* Loads and stores of surfaces: every shape and size of an access, inside and beyond the end. */
#include "images.h"

static const struct {
    const char *type;     /* of the instruction */
    const char *operands; /* what it reads or writes */
    const char *before;   /* a store */
    const char *after;    /* a load */
    CUarray_format format;
    unsigned channels, bytes;
} accesses[] = {
    {"b8", "%h0", "cvt.u16.u32 %h0, %v0;", "cvt.u32.u16 %v0, %h0;", CU_AD_FORMAT_UNSIGNED_INT8, 1,
     1},
    {"b16", "%h0", "cvt.u16.u32 %h0, %v0;", "cvt.u32.u16 %v0, %h0;", CU_AD_FORMAT_UNSIGNED_INT16, 1,
     2},
    {"b32", "%v0", "", "", CU_AD_FORMAT_UNSIGNED_INT32, 1, 4},
    {"b64", "%l0", "mov.b64 %l0, {%v0,%v1};", "mov.b64 {%v0,%v1}, %l0;",
     CU_AD_FORMAT_UNSIGNED_INT32, 2, 4},
    {"v2.b32", "{%v0,%v1}", "", "", CU_AD_FORMAT_UNSIGNED_INT32, 2, 4},
    {"v4.b32", "{%v0,%v1,%v2,%v3}", "", "", CU_AD_FORMAT_UNSIGNED_INT32, 4, 4},
    {"v4.b8", "{%h0,%h1,%h2,%h3}",
     "cvt.u16.u32 %h0, %v0; cvt.u16.u32 %h1, %v1; cvt.u16.u32 %h2, %v2; cvt.u16.u32 %h3, %v3;",
     "cvt.u32.u16 %v0, %h0; cvt.u32.u16 %v1, %h1; cvt.u32.u16 %v2, %h2; cvt.u32.u16 %v3, %h3;",
     CU_AD_FORMAT_UNSIGNED_INT8, 4, 1},
};
#define ACCESSES (sizeof accesses / sizeof accesses[0])

static const struct {
    enum shape shape;
    const char *word;
    const char *coordinates;
} shapes[] = {
    {D1, "1d", "{%c1}"},       {D2, "2d", "{%c1,%c2}"},           {D3, "3d", "{%c1,%c2,%c3,%c3}"},
    {A1D, "a1d", "{%c0,%c1}"}, {A2D, "a2d", "{%c0,%c1,%c2,%c2}"},
};

static struct image
make(unsigned shape, unsigned access)
{
    struct image g = floats(shapes[shape].shape);

    g.format = accesses[access].format;
    g.channels = accesses[access].channels;
    g.bytes = accesses[access].bytes;
    g.flags = SURFACE;
    return g;
}

static void
write_text(char *text, size_t size, unsigned shape, unsigned access, bool store, const char *clamp)
{
    if (store)
        snprintf(text, size, "%s sust.b.%s.%s.%s [%%t, %s], %s;", accesses[access].before,
                 shapes[shape].word, accesses[access].type, clamp, shapes[shape].coordinates,
                 accesses[access].operands);
    else
        snprintf(text, size, "suld.b.%s.%s.%s %s, [%%t, %s]; %s", shapes[shape].word,
                 accesses[access].type, clamp, accesses[access].operands, shapes[shape].coordinates,
                 accesses[access].after);
}

/* Every position at most once, in the middle and `beyond` the ends. */
static unsigned
spread(const struct image *g, int beyond)
{
    const int element = (int)(g->channels * g->bytes);
    unsigned n = 0;

    for (int x = -beyond; x < (int)g->width + beyond; x++)
        for (int i = g->shape == D1 ? 3 : -beyond; i < 4 + (g->shape == D1 ? 0 : beyond); i++) {
            places[n][0] = (unsigned)i;
            places[n][1] = (unsigned)(x * element);
            places[n][2] = (unsigned)i;
            places[n][3] = (unsigned)(3 - i);
            n++;
        }
    return n;
}

static unsigned
hash_array(const struct image *g, CUarray array)
{
    const size_t row = (size_t)g->width * g->channels * g->bytes;
    unsigned char *data = malloc(row * g->height * g->depth);
    unsigned h = 2166136261u;

    CHECK(data, "no memory");

    const CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
                                .srcArray = array,
                                .dstMemoryType = CU_MEMORYTYPE_HOST,
                                .dstHost = data,
                                .dstPitch = row,
                                .dstHeight = g->height,
                                .WidthInBytes = row,
                                .Height = g->height,
                                .Depth = g->depth};

    MUST(cuMemcpy3D_v2, &copy);
    for (size_t i = 0; i < row * g->height * g->depth; i++)
        h = (h ^ data[i]) * 16777619u;
    free(data);
    return h;
}

static void
access_all(unsigned shape, unsigned access)
{
    static const char *const clamps[] = {"zero", "clamp", "trap"};
    struct image g = make(shape, access);
    const CUDA_RESOURCE_DESC from = make_image(&g);
    CUsurfObject surface;
    char text[600];

    MUST(cuSurfObjectCreate, &surface, &from);
    for (unsigned k = 0; k < 3; k++) {
        const unsigned n = spread(&g, k == 2 ? 0 : 2);

        memset(results, 0xee, sizeof results);
        write_text(text, sizeof text, shape, access, false, clamps[k]);
        printf("load %s %s %s: %s", shapes[shape].word, accesses[access].type, clamps[k],
               ask_result(run(surface, text, n)));
        printf(", hash %08x\n", hash(n, 4));
    }
    for (unsigned k = 0; k < 3; k++) {
        unsigned n = spread(&g, k == 0 ? 2 : 0);

        /* All clamped positions are the same, so one far outside is enough. */
        if (k == 1) {
            n = 1;
            places[0][0] = places[0][2] = places[0][3] = 77;
            places[0][1] = 16000;
        }
        for (unsigned i = 0; i < n; i++)
            for (unsigned c = 0; c < 4; c++)
                results[i][c] = random_word(100 * k + 7 * i + c);
        write_text(text, sizeof text, shape, access, true, clamps[k]);
        printf("store %s %s %s: %s", shapes[shape].word, accesses[access].type, clamps[k],
               ask_result(run(surface, text, n)));
        printf(", hash %08x\n", hash_array(&g, from.res.array.hArray));
    }
    MUST(cuSurfObjectDestroy, surface);
    MUST(cuArrayDestroy, from.res.array.hArray);
}

static void
inside_and_beyond(void)
{
    ask_context();
    for (unsigned s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
        for (unsigned a = 0; a < ACCESSES; a++)
            access_all(s, a);
}

static void
trap_at(bool store, unsigned x, unsigned y)
{
    struct image g = make(1, 2);
    const CUDA_RESOURCE_DESC from = make_image(&g);
    CUsurfObject surface;
    char text[600];

    MUST(cuSurfObjectCreate, &surface, &from);
    places[0][1] = x;
    places[0][2] = y;
    write_text(text, sizeof text, 1, 2, store, "trap");
    printf("%s at (%u, %u): %s\n", store ? "store" : "load", x, y,
           ask_result(run(surface, text, 1)));
}

static void
load_behind(void)
{
    ask_context();
    trap_at(false, 32, 0);
}

static void
load_below(void)
{
    ask_context();
    trap_at(false, 0, 4);
}

static void
store_behind(void)
{
    ask_context();
    trap_at(true, 32, 0);
}

ASK_MAIN({"accesses", inside_and_beyond}, {"load_behind", load_behind}, {"load_below", load_below},
         {"store_behind", store_behind})
