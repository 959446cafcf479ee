/* What comes out of textures and surfaces: every shape, address mode, filter and format, levels,
 * cubes, gathers, and accesses beyond the end.
 *
 * Positions are chosen so that rounding does not matter: sizes are powers of two, and the nearest
 * texel is never a tie. Exact answers are printed as a hash; filtered values are compared with the
 * programming guide's formulas, to one part in 128.
 */
#include "images.h"

static CUtexObject object;

static CUDA_TEXTURE_DESC
sampler(CUaddress_mode mode, CUfilter_mode filter, unsigned flags)
{
    return (CUDA_TEXTURE_DESC){.addressMode = {mode, mode, mode},
                               .filterMode = filter,
                               .flags = flags,
                               .maxMipmapLevelClamp = 100,
                               .borderColor = {300, 301, 302, 303}};
}

/* ---- the formulas of the guide --------------------------------------------------------------- */

/* The position of a texel after the address mode was applied; -1: the border. */
static int
settle(const CUDA_TEXTURE_DESC *t, int i, int n)
{
    switch (t->addressMode[0]) {
    case CU_TR_ADDRESS_MODE_BORDER:
        return i < 0 || i >= n ? -1 : i;
    case CU_TR_ADDRESS_MODE_WRAP:
        if (t->flags & CU_TRSF_NORMALIZED_COORDINATES)
            return ((i % n) + n) % n;
        break;
    case CU_TR_ADDRESS_MODE_MIRROR:
        if (t->flags & CU_TRSF_NORMALIZED_COORDINATES) {
            i = ((i % (2 * n)) + 2 * n) % (2 * n);
            return i < n ? i : 2 * n - 1 - i;
        }
        break;
    default:
        break;
    }
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static double
texel(const struct image *g, const CUDA_TEXTURE_DESC *t, const int *i, unsigned layer, unsigned c)
{
    const int x = settle(t, i[0], (int)g->width);
    const int y = settle(t, i[1], (int)g->height);
    const int z = g->shape == D3 ? settle(t, i[2], (int)g->depth)
                                 : (int)(layer < g->depth ? layer : g->depth - 1);

    if (x < 0 || y < 0 || z < 0)
        return (double)t->borderColor[c];
    return (double)g->values[((z * g->height + y) * g->width + x) * g->channels + c];
}

static double
expected(const struct image *g, const CUDA_TEXTURE_DESC *t, const unsigned *place, unsigned c)
{
    const unsigned sizes[3] = {g->width, g->height, g->depth};
    const unsigned used = g->shape == D1 || g->shape == A1D ? 1 : g->shape == D3 ? 3 : 2;
    const bool linear = t->filterMode == CU_TR_FILTER_MODE_LINEAR;
    int low[3] = {0, 0, 0};
    double weight[3] = {0, 0, 0};
    double sum = 0;

    for (unsigned d = 0; d < used; d++) {
        double v = (double)float_of(place[1 + d]);

        if (t->flags & CU_TRSF_NORMALIZED_COORDINATES)
            v *= sizes[d];
        v -= linear ? 0.5 : 0;
        low[d] = (int)v - (v < (int)v);
        weight[d] = linear ? v - low[d] : 0;
    }
    for (unsigned corner = 0; corner < 8; corner++) {
        int at[3];
        double w = 1;

        for (unsigned d = 0; d < 3; d++) {
            at[d] = low[d] + (int)(corner >> d & 1);
            w *= corner >> d & 1 ? weight[d] : 1 - weight[d];
        }
        if (w > 0)
            sum += w * texel(g, t, at, place[0], c);
    }
    return sum;
}

/* ---- shapes, address modes, filters ---------------------------------------------------------- */

/* Positions from one and a half sizes below to one and a half above, on 256ths (8ths of three). */
static void
spread(const struct image *g, bool normalized, unsigned parts)
{
    const unsigned sizes[3] = {g->width, g->height, g->depth};

    for (unsigned i = 0; i < COUNT; i++) {
        places[i][0] = random_word(i * 8) % (g->depth + 2);
        for (unsigned d = 0; d < 3; d++) {
            const unsigned range = sizes[d] * 4 * parts;
            const float v = ((float)(random_word(i * 8 + d + 1) % range) + 0.5f) / (float)parts -
                            1.5f * (float)sizes[d];

            places[i][1 + d] = bits_of(normalized ? v / (float)sizes[d] : v);
        }
        places[i][4] = bits_of((float)(random_word(i * 8 + 5) % 600) / 100 - 1);
    }
}

static const char *const instructions[] = {
    [LINEAR] = "tex.1d.v4.f32.s32 " ALL ", [%t, {%c1}];",
    [D1] = "tex.1d.v4.f32.f32 " ALL ", [%t, {%c1}];",
    [D2] = "tex.2d.v4.f32.f32 " ALL ", [%t, {%c1,%c2}];",
    [D3] = "tex.3d.v4.f32.f32 " ALL ", [%t, {%c1,%c2,%c3,%c3}];",
    [A1D] = "tex.a1d.v4.f32.f32 " ALL ", [%t, {%c0,%c1}];",
    [A2D] = "tex.a2d.v4.f32.f32 " ALL ", [%t, {%c0,%c1,%c2,%c2}];",
    [CUBES] = "tex.cube.v4.f32.f32 " ALL ", [%t, {%c1,%c2,%c3,%c3}];",
    [ACUBES] = "tex.acube.v4.f32.f32 " ALL ", [%t, {%c0,%c1,%c2,%c3}];",
    [PITCH] = "tex.2d.v4.f32.f32 " ALL ", [%t, {%c1,%c2}];",
};
static const char *const names[] = {
    "memory", "1d", "2d", "3d", "1d layers", "2d layers", "cube", "cubes", "pitched memory"};

static void
sample(struct image *g, const CUDA_RESOURCE_DESC *from, const CUDA_TEXTURE_DESC *t)
{
    static const char *const modes[] = {"wrap", "clamp", "mirror", "border"};
    const bool linear = t->filterMode == CU_TR_FILTER_MODE_LINEAR;
    const bool normalized = t->flags & CU_TRSF_NORMALIZED_COORDINATES;
    double worst = 0;
    CUresult r;

    spread(g, normalized, linear && g->shape != D3 ? 128 : 4);
    MUST(cuTexObjectCreate, &object, from, t, NULL);
    r = run(object, instructions[g->shape], COUNT);
    for (unsigned i = 0; r == CUDA_SUCCESS && i < COUNT; i++)
        for (unsigned c = 0; c < 2; c++) {
            const double off = (double)float_of(results[i][c]) - expected(g, t, places[i], c);

            worst = off > worst ? off : -off > worst ? -off : worst;
        }
    printf("%s, %s, %s, %s: %s, %s", names[g->shape], modes[t->addressMode[0]],
           linear ? "linear" : "nearest", normalized ? "normalized" : "in texels", ask_result(r),
           worst <= (linear ? 300.0 / 128 : 0) ? "as the guide says" : "something else");
    if (linear)
        printf("\n");
    else
        printf(", hash %08x\n", hash(COUNT, 2));
    MUST(cuTexObjectDestroy, object);
}

static void
shapes(void)
{
    static const enum shape all[] = {D1, D2, D3, A1D, A2D, PITCH};

    ask_context();
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct image g = floats(all[i]);
        const CUDA_RESOURCE_DESC from = make_image(&g);

        for (unsigned k = 0; k < 16; k++) {
            const CUDA_TEXTURE_DESC t =
                sampler((CUaddress_mode)(k % 4), k & 4 ? CU_TR_FILTER_MODE_LINEAR : 0,
                        k & 8 ? CU_TRSF_NORMALIZED_COORDINATES : 0);

            sample(&g, &from, &t);
        }
    }
}

static void
cubes(void)
{
    ask_context();
    for (unsigned k = 0; k < 4; k++) {
        struct image g = floats(k & 1 ? ACUBES : CUBES);
        const CUDA_RESOURCE_DESC from = make_image(&g);
        const CUDA_TEXTURE_DESC t =
            sampler(CU_TR_ADDRESS_MODE_CLAMP, k & 2 ? CU_TR_FILTER_MODE_LINEAR : 0,
                    CU_TRSF_NORMALIZED_COORDINATES);

        /* In the middle of faces: on a texel for the nearest, between four texels for the
         * others. */
        for (unsigned i = 0; i < COUNT; i++) {
            const unsigned axis = i % 3;
            const float side = i % 6 < 3 ? 2.0f : -2.0f;

            places[i][0] = random_word(i) % 4;
            places[i][1 + axis] = bits_of(side);
            for (unsigned d = 1; d < 3; d++)
                places[i][1 + (axis + d) % 3] =
                    bits_of(side * ((float)(random_word(9 * i + d) % 6) - (k & 2 ? 2 : 2.5f)) / 4);
        }
        MUST(cuTexObjectCreate, &object, &from, &t, NULL);
        printf("%s, %s: %s", names[g.shape], k & 2 ? "linear" : "nearest",
               ask_result(run(object, instructions[g.shape], COUNT)));
        printf(", hash %08x\n", hash(COUNT, 4));
    }
}

/* ---- formats --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    CUarray_format format;
    unsigned bytes;
} formats[] = {
    {"u8", CU_AD_FORMAT_UNSIGNED_INT8, 1},   {"s8", CU_AD_FORMAT_SIGNED_INT8, 1},
    {"u16", CU_AD_FORMAT_UNSIGNED_INT16, 2}, {"s16", CU_AD_FORMAT_SIGNED_INT16, 2},
    {"u32", CU_AD_FORMAT_UNSIGNED_INT32, 4}, {"s32", CU_AD_FORMAT_SIGNED_INT32, 4},
    {"f16", CU_AD_FORMAT_HALF, 2},           {"f32", CU_AD_FORMAT_FLOAT, 4},
};

static void
elements(void)
{
    ask_context();
    for (unsigned k = 0; k < 8 * 3 * 2; k++) {
        struct image g = floats(D2);
        CUDA_TEXTURE_DESC t =
            sampler(CU_TR_ADDRESS_MODE_CLAMP, 0, k % 2 ? CU_TRSF_READ_AS_INTEGER : 0);

        g.format = formats[k / 6].format;
        g.bytes = formats[k / 6].bytes;
        g.channels = 1u << k / 2 % 3;
        spread(&g, false, 4);

        const CUDA_RESOURCE_DESC from = make_image(&g);

        MUST(cuTexObjectCreate, &object, &from, &t, NULL);
        printf("%s, %u channels, %s: %s", formats[k / 6].name, g.channels,
               k % 2 ? "as integers" : "as floats",
               ask_result(run(object, instructions[D2], COUNT)));
        printf(", hash %08x, first %08x %08x %08x %08x\n", hash(COUNT, 4), results[0][0],
               results[0][1], results[0][2], results[0][3]);
    }
}

static void
memory(void)
{
    ask_context();
    for (unsigned k = 0; k < 8 * 3; k++) {
        struct image g = floats(LINEAR);
        const CUDA_TEXTURE_DESC t = sampler(CU_TR_ADDRESS_MODE_CLAMP, 0, CU_TRSF_READ_AS_INTEGER);

        g.format = formats[k / 3].format;
        g.bytes = formats[k / 3].bytes;
        g.channels = 1u << k % 3;
        g.width = 32;
        for (unsigned i = 0; i < 40; i++)
            places[i][1] = i - 4;

        const CUDA_RESOURCE_DESC from = make_image(&g);

        MUST(cuTexObjectCreate, &object, &from, &t, NULL);
        printf("memory of %s, %u channels: %s", formats[k / 3].name, g.channels,
               ask_result(run(object, instructions[LINEAR], 40)));
        printf(", hash %08x, before %08x %08x, behind %08x %08x\n", hash(40, 4), results[3][0],
               results[3][3], results[36][0], results[36][3]);
    }
}

/* ---- gathers, levels ------------------------------------------------------------------------- */

static void
gathers(void)
{
    struct image g = floats(D2);
    const CUDA_TEXTURE_DESC t = sampler(CU_TR_ADDRESS_MODE_CLAMP, 0, 0);
    char text[100];

    ask_context();
    g.channels = 4;
    g.flags = GATHER;

    const CUDA_RESOURCE_DESC from = make_image(&g);

    MUST(cuTexObjectCreate, &object, &from, &t, NULL);
    spread(&g, false, 4);
    for (unsigned k = 0; k < 4; k++) {
        snprintf(text, sizeof text, "tld4.%c.2d.v4.f32.f32 %s, [%%t, {%%c1,%%c2}];", "rgba"[k],
                 ALL);
        printf("gather %c: %s", "rgba"[k], ask_result(run(object, text, COUNT)));
        printf(", hash %08x\n", hash(COUNT, 4));
    }
    printf("with an offset: %s",
           ask_result(run(object, "tex.2d.v4.f32.f32 " ALL ", [%t, {%c1,%c2}], {-3, 2};", COUNT)));
    printf(", hash %08x\n", hash(COUNT, 4));
    printf("at integers: %s", ask_result(run(object,
                                             "cvt.rzi.s32.f32 %c1, %c1; cvt.rzi.s32.f32 %c2, %c2;\n"
                                             "tex.2d.v4.f32.s32 " ALL ", [%t, {%c1,%c2}];",
                                             COUNT)));
    printf(", hash %08x\n", hash(COUNT, 4));
}

static void
levels(void)
{
    struct image g = floats(D2);
    CUDA_TEXTURE_DESC t = sampler(CU_TR_ADDRESS_MODE_CLAMP, 0, CU_TRSF_NORMALIZED_COORDINATES);

    ask_context();
    g.width = g.height = 16;
    g.levels = 5;
    spread(&g, true, 4);
    for (unsigned i = 0; i < COUNT; i++) {
        const float size = (float)(1 << i % 7) / 32; /* of the image */

        places[i][4] = bits_of((float)(random_word(i) % 7) - 1 + 0.25f);
        places[i][5] = places[i][9] = bits_of(1.125f * size);
        places[i][6] = places[i][8] = 0;
    }

    const CUDA_RESOURCE_DESC from = make_image(&g);

    for (unsigned k = 0; k < 3; k++) {
        t.mipmapLevelBias = k == 1 ? 1.0f : 0;
        t.minMipmapLevelClamp = k == 2 ? 1.0f : 0;
        t.maxMipmapLevelClamp = k == 2 ? 3.0f : 100;
        MUST(cuTexObjectCreate, &object, &from, &t, NULL);
        printf("levels %u: %s", k,
               ask_result(
                   run(object, "tex.level.2d.v4.f32.f32 " ALL ", [%t, {%c1,%c2}], %c4;", COUNT)));
        printf(", hash %08x\n", hash(COUNT, 4));
        printf("gradients %u: %s", k,
               ask_result(run(
                   object, "tex.grad.2d.v4.f32.f32 " ALL ", [%t, {%c1,%c2}], {%c5,%c6}, {%c8,%c9};",
                   COUNT)));
        printf(", hash %08x\n", hash(COUNT, 4));
    }
}

/* A number that is no object. */
static void
nothing(void)
{
    ask_context();
    printf("texture 0: %s\n", ask_result(run(0, instructions[D2], 1)));
}

ASK_MAIN({"shapes", shapes}, {"cubes", cubes}, {"elements", elements}, {"memory", memory},
         {"gathers", gathers}, {"levels", levels}, {"nothing", nothing})
