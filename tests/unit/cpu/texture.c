/* Tests of textures and surfaces as kernels see them, with descriptors made by hand. */
#include "unit/cpu/make.h"

#include <math.h>

#include "driver/memory/array.h"
#include "kernel/ptx/words.h"

static const struct hed_ptx_grid grid;
static struct hed_grid running; /* has not failed */
static struct hed_block block = {.grid = &running};
/* Operations that cannot fail only look at both grids: kernels are not confined. */
static struct hed_engine_warp warp = {.abi = {.grid = &grid}, .block = &block};

static float
as_float(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t
as_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static uint64_t
pack_access(struct hed_rt_access a)
{
    uint64_t v;

    memcpy(&v, &a, sizeof v);
    return v;
}

/* One channel of floats, clamped, nearest texel, coordinates in texels. */
static struct hed_texture
make_texture(enum hed_shape shape, const void *data, uint32_t w, uint32_t h, uint32_t d)
{
    struct hed_texture t = {.magic = HED_TEXTURE_MAGIC,
                            .shape = (uint8_t)shape,
                            .format = {HED_TEXEL_FLOAT, 32, 1, 4},
                            .levels = 1,
                            .layers = shape >= HED_SHAPE_1D_LAYERED ? d : 1,
                            .level_max = 100,
                            .border = {-1, -2, -3, -4}};

    memset(t.address, CU_TR_ADDRESS_MODE_CLAMP, sizeof t.address);
    t.level[0] = (struct hed_texels){(uint64_t)(uintptr_t)data, 4ull * w, 4ull * w * h, w, h, d};
    return t;
}

static struct hed_surface
make_surface(struct hed_format format, void *data, uint32_t w, uint32_t h)
{
    const uint64_t row = (uint64_t)w * format.bytes;

    return (struct hed_surface){.magic = HED_SURFACE_MAGIC,
                                .shape = HED_SHAPE_2D,
                                .format = format,
                                .image = {(uint64_t)(uintptr_t)data, row, row * h, w, h, 1}};
}

static void
sample_as(const struct hed_texture *t, struct hed_rt_access how, const float *at, uint32_t layer,
          uint32_t out[4])
{
    uint32_t in[HED_RT_COORDINATES] = {layer};

    if (!how.type)
        how.type = HED_PTX_TYPE_F32;
    memcpy(in + 1, at, 3 * sizeof *at);
    hed_rt_texture(&warp.abi, (uint64_t)(uintptr_t)t, pack_access(how), in, out, 1);
}

static float
sample(const struct hed_texture *t, unsigned geom, float x, float y, float z)
{
    const float at[3] = {x, y, z};
    uint32_t out[4];

    sample_as(t, (struct hed_rt_access){.geom = (uint8_t)geom}, at, 0, out);
    return as_float(out[0]);
}

/* ---- filters and addresses ------------------------------------------------------------------- */

static void
the_nearest_texel_is_the_one_below(void **state)
{
    const float row[4] = {10, 11, 12, 13};
    const struct hed_texture t = make_texture(HED_SHAPE_1D, row, 4, 1, 1);

    assert_true(sample(&t, HED_PTX_GEOM_1D, 0, 0, 0) == 10);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 0.999f, 0, 0) == 10);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 1, 0, 0) == 11);
    assert_true(sample(&t, HED_PTX_GEOM_1D, -1e30f, 0, 0) == 10);
    assert_true(sample(&t, HED_PTX_GEOM_1D, INFINITY, 0, 0) == 13);
    assert_true(sample(&t, HED_PTX_GEOM_1D, NAN, 0, 0) == 10);
}

static void
weights_have_eight_bits(void **state)
{
    const float row[4] = {0, 1, 0, 0};
    struct hed_texture t = make_texture(HED_SHAPE_1D, row, 4, 1, 1);

    t.filter = CU_TR_FILTER_MODE_LINEAR;
    assert_true(sample(&t, HED_PTX_GEOM_1D, 0.5f, 0, 0) == 0);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 1, 0, 0) == 0.5f);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 1.5f, 0, 0) == 1);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 0.5f + 1.0f / 1024, 0, 0) == 0);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 0.5f + 3.0f / 1024, 0, 0) == 1.0f / 256);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 1.5f - 1.0f / 1024, 0, 0) == 1);
}

/* What the programming guide says about x in each mode. */
static float
guide(const float *row, int n, unsigned mode, float x)
{
    const double whole = floor((double)x);
    const double part = (double)x - whole;
    int i;

    switch (mode) {
    case CU_TR_ADDRESS_MODE_WRAP:
        x = (float)part;
        break;
    case CU_TR_ADDRESS_MODE_MIRROR:
        x = (float)(fmod(whole, 2) == 0 ? part : 1 - part);
        break;
    case CU_TR_ADDRESS_MODE_BORDER:
        if (x < 0 || x >= 1)
            return -1;
        break;
    default:
        break;
    }
    i = (int)floor((double)x * n);
    return row[i < 0 ? 0 : i >= n ? n - 1 : i];
}

static void
coordinates_wrap_clamp_mirror_and_have_borders(void **state)
{
    const float row[5] = {10, 11, 12, 13, 14};
    struct hed_texture t = make_texture(HED_SHAPE_1D, row, 5, 1, 1);

    t.normalized = true;
    for (unsigned mode = 0; mode < 4; mode++) {
        t.address[0] = (uint8_t)mode;
        for (int i = -640; i < 640; i++) {
            const float x = ((float)i + 0.5f) / 128;
            const float want = guide(row, 5, mode, x);

            if (sample(&t, HED_PTX_GEOM_1D, x, 0, 0) != want)
                fail_msg("mode %u, x %g", mode, (double)x);
        }
    }
}

static void
coordinates_in_texels_do_not_wrap(void **state)
{
    const float row[2] = {10, 11};
    struct hed_texture t = make_texture(HED_SHAPE_1D, row, 2, 1, 1);

    t.address[0] = CU_TR_ADDRESS_MODE_WRAP;
    assert_true(sample(&t, HED_PTX_GEOM_1D, 2.5f, 0, 0) == 11);
    t.address[0] = CU_TR_ADDRESS_MODE_BORDER;
    assert_true(sample(&t, HED_PTX_GEOM_1D, 2.5f, 0, 0) == -1);
}

static void
filters_mix_four_and_eight_texels(void **state)
{
    static float cube[2][2][2];
    struct hed_texture t = make_texture(HED_SHAPE_3D, cube, 2, 2, 2);

    t.filter = CU_TR_FILTER_MODE_LINEAR;
    for (int i = 0; i < 8; i++)
        cube[i / 4][i / 2 % 2][i % 2] = (float)(1 << i);
    assert_true(sample(&t, HED_PTX_GEOM_3D, 1, 1, 1) == 255.0f / 8);
    assert_true(sample(&t, HED_PTX_GEOM_3D, 1, 1, 0) == 15.0f / 4);
    assert_true(sample(&t, HED_PTX_GEOM_2D, 1, 1, 0) == 15.0f / 4);
    /* 3/4 of the way in x, 1/4 in y. */
    assert_true(sample(&t, HED_PTX_GEOM_2D, 1.25f, 0.75f, 0) ==
                (3 * (1.0f + 3 * 2) + 1 * (4.0f + 3 * 8)) / 16);
}

/* ---- layers, cubes, levels ------------------------------------------------------------------- */

static void
layers_beyond_the_last_are_the_last(void **state)
{
    const float rows[3][2] = {{10, 11}, {20, 21}, {30, 31}};
    struct hed_texture t = make_texture(HED_SHAPE_1D_LAYERED, rows, 2, 1, 3);
    const struct hed_rt_access how = {.geom = HED_PTX_GEOM_A1D};
    const float at[3] = {1.5f};
    uint32_t out[4];

    sample_as(&t, how, at, 1, out);
    assert_true(as_float(out[0]) == 21);
    sample_as(&t, how, at, 3, out);
    assert_true(as_float(out[0]) == 31);
    sample_as(&t, how, at, UINT32_MAX, out);
    assert_true(as_float(out[0]) == 31);
    t.first_layer = 1; /* a view of the middle */
    t.layers = 1;
    sample_as(&t, how, at, 2, out);
    assert_true(as_float(out[0]) == 21);
}

static void
directions_find_their_face(void **state)
{
    const float faces[6] = {0, 1, 2, 3, 4, 5};
    const struct hed_texture t = make_texture(HED_SHAPE_CUBE, faces, 1, 1, 6);

    for (int i = 0; i < 6; i++) {
        float at[3] = {0.1f, -0.2f, 0.3f};

        at[i / 2] = i % 2 ? -2 : 2;
        assert_true(sample(&t, HED_PTX_GEOM_CUBE, at[0], at[1], at[2]) == (float)i);
    }
    (void)sample(&t, HED_PTX_GEOM_CUBE, 0, 0, 0);
}

/* If edges are seamless, a step over an edge changes the value only a little. */
static void
seamless_cubes_continue_over_edges(void **state)
{
    static float faces[6][4][4];
    struct hed_texture t = make_texture(HED_SHAPE_CUBE, faces, 4, 4, 6);

    t.filter = CU_TR_FILTER_MODE_LINEAR;
    t.seamless = true;
    for (int i = 0; i < 96; i++)
        faces[i / 16][i / 4 % 4][i % 4] = (float)((i * 37 + i * i * 11) % 101);
    for (int i = -20; i <= 20; i++) {
        const float p = (float)i / 20;

        for (unsigned k = 0; k < 12; k++) {
            const unsigned a = k % 3;
            float in[3], out[3];

            in[a] = out[a] = k & 4 ? -1 : 1;
            in[(a + 1) % 3] = out[(a + 1) % 3] = k >= 8 ? -1 : 1;
            in[(a + 2) % 3] = out[(a + 2) % 3] = p;
            in[a] *= 1.0001f;
            out[(a + 1) % 3] *= 1.0001f;
            /* Because weights have 8 bits, a step of two parts in 256 remains. */
            assert_true(fabsf(sample(&t, HED_PTX_GEOM_CUBE, in[0], in[1], in[2]) -
                              sample(&t, HED_PTX_GEOM_CUBE, out[0], out[1], out[2])) < 2);
        }
    }
}

static void
levels_are_chosen_and_mixed(void **state)
{
    const float zero[16] = {0};
    const float one[4] = {100, 100, 100, 100};
    const float two[1] = {300};
    struct hed_texture t = make_texture(HED_SHAPE_2D, zero, 4, 4, 1);
    uint32_t in[HED_RT_COORDINATES] = {0, as_bits(0.5f), as_bits(0.5f)};
    const struct hed_rt_access level = {
        .geom = HED_PTX_GEOM_2D, .fetch = HED_PTX_FETCH_LEVEL, .type = HED_PTX_TYPE_F32};
    const struct hed_rt_access grad = {
        .geom = HED_PTX_GEOM_2D, .fetch = HED_PTX_FETCH_GRAD, .type = HED_PTX_TYPE_F32};
    const struct {
        float level, want;
        bool mixed;
    } rows[] = {{0, 0, 0},     {0.4f, 0, 0}, {0.6f, 100, 0},  {9, 300, 0}, {-9, 0, 0},
                {0.5f, 50, 1}, {1, 100, 1},  {1.25f, 150, 1}, {NAN, 0, 1}, {100, 300, 1}};
    uint32_t out[4];

    t.normalized = true;
    t.levels = 3;
    t.level[1] = (struct hed_texels){(uint64_t)(uintptr_t)one, 8, 16, 2, 2, 1};
    t.level[2] = (struct hed_texels){(uint64_t)(uintptr_t)two, 4, 4, 1, 1, 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        t.mipmap_filter = rows[i].mixed ? CU_TR_FILTER_MODE_LINEAR : CU_TR_FILTER_MODE_POINT;
        in[4] = as_bits(rows[i].level);
        hed_rt_texture(&warp.abi, (uint64_t)(uintptr_t)&t, pack_access(level), in, out, 1);
        assert_true(as_float(out[0]) == rows[i].want);
    }
    in[5] = as_bits(0.5f); /* two texels of the largest level: level 1 */
    hed_rt_texture(&warp.abi, (uint64_t)(uintptr_t)&t, pack_access(grad), in, out, 1);
    assert_true(as_float(out[0]) == 100);
    t.level_max = 0;
    hed_rt_texture(&warp.abi, (uint64_t)(uintptr_t)&t, pack_access(grad), in, out, 1);
    assert_true(as_float(out[0]) == 0);
}

/* ---- elements and forms ---------------------------------------------------------------------- */

static void
integers_are_normalised_or_stay(void **state)
{
    const uint8_t bytes[4] = {0, 255, 128, 51};
    struct hed_texture t = make_texture(HED_SHAPE_1D, bytes, 4, 1, 1);
    const struct hed_rt_access how = {.geom = HED_PTX_GEOM_1D};
    const float at[3] = {2.5f};
    uint32_t out[4];

    t.format = (struct hed_format){HED_TEXEL_UINT, 8, 1, 1};
    assert_true(sample(&t, HED_PTX_GEOM_1D, 1.5f, 0, 0) == 1);
    assert_true(sample(&t, HED_PTX_GEOM_1D, 3.5f, 0, 0) == 0.2f);
    t.srgb = true;
    assert_true(fabsf(sample(&t, HED_PTX_GEOM_1D, 3.5f, 0, 0) - 0.0331f) < 0.0001f);
    t.srgb = false;
    t.format.texel = HED_TEXEL_SINT;
    assert_true(sample(&t, HED_PTX_GEOM_1D, 2.5f, 0, 0) == -1);
    t.as_integer = true;
    sample_as(&t, how, at, 0, out);
    assert_int_equal(out[0], (uint32_t)-128);
    assert_int_equal(out[1], 0);
    assert_int_equal(out[3], 0); /* a channel that does not exist */
}

static void
halves_come_alone_or_in_pairs(void **state)
{
    const float values[4] = {1, -2, 0.5f, 65504};
    struct hed_texture t = make_texture(HED_SHAPE_2D, values, 1, 1, 1);
    const float at[3] = {0};
    uint32_t out[4];

    t.format = (struct hed_format){HED_TEXEL_FLOAT, 32, 4, 16};
    sample_as(&t, (struct hed_rt_access){.geom = HED_PTX_GEOM_2D, .type = HED_PTX_TYPE_F16X2}, at,
              0, out);
    assert_int_equal(out[0], 0xc0003c00);
    assert_int_equal(out[1], 0x7bff3800);
    sample_as(&t, (struct hed_rt_access){.geom = HED_PTX_GEOM_2D, .type = HED_PTX_TYPE_F16}, at, 0,
              out);
    assert_int_equal(out[1], 0xc000);
}

static void
gathers_and_offsets_take_neighbours(void **state)
{
    const float rows[2][2] = {{1, 2}, {3, 4}};
    const struct hed_texture t = make_texture(HED_SHAPE_2D, rows, 2, 2, 1);
    const struct hed_rt_access gather = {.geom = HED_PTX_GEOM_2D, .channel = HED_PTX_CHANNEL_R};
    const struct hed_rt_access plain = {.geom = HED_PTX_GEOM_2D, .type = HED_PTX_TYPE_F32};
    uint32_t in[HED_RT_COORDINATES] = {0, as_bits(0.5f), as_bits(0.5f)};
    const float at[3] = {1, 1};
    uint32_t out[4];

    sample_as(&t, gather, at, 0, out);
    assert_true(as_float(out[0]) == 3 && as_float(out[1]) == 4 && as_float(out[2]) == 2 &&
                as_float(out[3]) == 1);
    in[11] = 1;
    hed_rt_texture(&warp.abi, (uint64_t)(uintptr_t)&t, pack_access(plain), in, out, 1);
    assert_true(as_float(out[0]) == 2);
    in[11] = (uint32_t)-7;
    in[12] = 7;
    hed_rt_texture(&warp.abi, (uint64_t)(uintptr_t)&t, pack_access(plain), in, out, 1);
    assert_true(as_float(out[0]) == 3);
}

static void
memory_beyond_its_end_reads_as_zero(void **state)
{
    const float row[4] = {10, 11, 12, 13};
    struct hed_texture t = make_texture(HED_SHAPE_LINEAR, row, 4, 1, 1);
    const struct hed_rt_access how = {
        .geom = HED_PTX_GEOM_1D, .type = HED_PTX_TYPE_F32, .is_integer = true};
    uint32_t in[HED_RT_COORDINATES] = {0};
    uint32_t out[4];

    for (int i = -2; i < 6; i++) {
        in[1] = (uint32_t)i;
        hed_rt_texture(&warp.abi, (uint64_t)(uintptr_t)&t, pack_access(how), in, out, 1);
        assert_true(as_float(out[0]) == (i < 0 || i > 3 ? 0 : row[i]));
    }
    t.level[0].width = 0;
    assert_true(sample(&t, HED_PTX_GEOM_1D, 0, 0, 0) == 0);
    hed_rt_texture(&warp.abi, 0, pack_access(how), in, out, 1);
    assert_int_equal(out[0], 0);
}

/* ---- surfaces -------------------------------------------------------------------------------- */

static void
formatted_stores_keep_to_the_format(void **state)
{
    unsigned char bytes[8] = {0};
    struct hed_surface f = make_surface((struct hed_format){HED_TEXEL_SINT, 8, 4, 4}, bytes, 2, 1);
    const struct hed_rt_access how = {.geom = HED_PTX_GEOM_2D,
                                      .fetch = HED_PTX_FETCH_P,
                                      .type = HED_PTX_TYPE_B32,
                                      .count = 4,
                                      .clamp = HED_PTX_CLAMP_ZERO,
                                      .is_store = true};
    uint32_t in[HED_RT_COORDINATES] = {0, 1};
    uint32_t data[4] = {5, (uint32_t)-5, 1000, (uint32_t)-1000};

    hed_rt_surface(&warp.abi, (uint64_t)(uintptr_t)&f, pack_access(how), in, data, 1);
    assert_memory_equal(bytes, "\0\0\0\0\x05\xfb\x7f\x80", 8);
    in[1] = 2; /* beyond the end: writes nothing */
    hed_rt_surface(&warp.abi, (uint64_t)(uintptr_t)&f, pack_access(how), in, data, 1);
    f.format = (struct hed_format){HED_TEXEL_FLOAT, 16, 2, 4};
    in[1] = 0;
    data[0] = as_bits(1);
    data[1] = as_bits(1e9f);
    hed_rt_surface(&warp.abi, (uint64_t)(uintptr_t)&f, pack_access(how), in, data, 1);
    assert_memory_equal(bytes, "\x00\x3c\x00\x7c\x05\xfb\x7f\x80", 8);
}

static void
add_one(struct hed_ptx_warp *s)
{
    const struct hed_rt_access how = {.geom = HED_PTX_GEOM_2D,
                                      .type = HED_PTX_TYPE_U32,
                                      .count = 1,
                                      .clamp = HED_PTX_CLAMP_TRAP,
                                      .channel = HED_PTX_OPER_ADD,
                                      .is_store = true};
    const uint32_t in[HED_RT_COORDINATES] = {0, 4};
    const uint32_t one = 1;

    for (int i = 0; i < 100; i++)
        hed_rt_surface_reduce(s, (uint64_t)(uintptr_t)param(s, 0), pack_access(how), in, &one, 1);
}

static void
reductions_lose_nothing(void **state)
{
    uint32_t words[2] = {7, 7};
    struct hed_surface f = make_surface((struct hed_format){HED_TEXEL_UINT, 32, 1, 4}, words, 2, 1);
    struct hed_job job = make_job(add_one, 0, 20, 64);
    void *const params[] = {&f};

    run_well(&job, params, 1);
    assert_int_equal(words[0], 7);
    assert_int_equal(words[1], 7 + 20 * 2 * 100);
}

/* ---- numbers that are no object -------------------------------------------------------------- */

static void
sample_it(struct hed_ptx_warp *s)
{
    const struct hed_rt_access how = {.geom = HED_PTX_GEOM_2D, .type = HED_PTX_TYPE_F32};
    const uint32_t in[HED_RT_COORDINATES] = {0};
    uint32_t out[4];

    hed_rt_texture(s, (uint64_t)(uintptr_t)param(s, 0), pack_access(how), in, out, 17);
}

static void
load_it(struct hed_ptx_warp *s)
{
    const struct hed_rt_access how = {
        .geom = HED_PTX_GEOM_2D, .type = HED_PTX_TYPE_B32, .count = 1, .clamp = HED_PTX_CLAMP_TRAP};
    const uint32_t in[HED_RT_COORDINATES] = {0, 8};
    uint32_t out[4];

    hed_rt_surface(s, (uint64_t)(uintptr_t)param(s, 0), pack_access(how), in, out, 17);
}

static void
ask_it(struct hed_ptx_warp *s)
{
    (void)hed_rt_texture_query(s, (uint64_t)(uintptr_t)param(s, 0), HED_PTX_QUERY_WIDTH, 0, 17);
}

static void
expect_bad(hed_ptx_entry entry, const void *object)
{
    struct hed_job job = make_job(entry, 0, 2, 32);
    struct hed_why why = {""};
    void *const params[] = {(void *)(uintptr_t)object};

    job.params = params;
    job.param_bytes = sizeof params;
    assert_int_equal(hed_engine_run(engine, &job, &why), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void
a_number_that_is_no_object_fails_the_launch(void **state)
{
    static const uint64_t zeros[200];
    uint32_t words[2] = {0};
    const struct hed_texture t = make_texture(HED_SHAPE_2D, words, 1, 1, 1);
    const struct hed_surface f =
        make_surface((struct hed_format){HED_TEXEL_UINT, 32, 1, 4}, words, 2, 1);
    const void *const bad[] = {zeros, (const char *)&t + 1, (const void *)(uintptr_t)0x5000,
                               (const void *)(uintptr_t)0x123456789abcdef0};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        expect_bad(sample_it, bad[i]);
        expect_bad(load_it, bad[i]);
        expect_bad(ask_it, bad[i]);
    }
    expect_bad(sample_it, &f);
    expect_bad(load_it, &t);
    expect_bad(load_it, NULL);
    expect_bad(load_it, &f); /* it is an object, but 8 is beyond its end */
}

static void
objects_answer_questions(void **state)
{
    uint32_t words[24] = {0};
    struct hed_texture t = make_texture(HED_SHAPE_2D_LAYERED, words, 4, 3, 2);
    const struct hed_surface f =
        make_surface((struct hed_format){HED_TEXEL_UINT, 8, 4, 4}, words, 6, 4);
    const struct {
        const void *object;
        uint32_t query, level, want;
    } rows[] = {
        {&t, HED_PTX_QUERY_WIDTH, 0, 4},
        {&t, HED_PTX_QUERY_HEIGHT, 0, 3},
        {&t, HED_PTX_QUERY_DEPTH, 0, 1},
        {&t, HED_PTX_QUERY_ARRAY_SIZE, 0, 2},
        {&t, HED_PTX_QUERY_WIDTH, 1, 0},
        {&t, HED_PTX_QUERY_NUM_MIPMAP_LEVELS, 0, 1},
        {&t, HED_PTX_QUERY_CHANNEL_DATA_TYPE, 0, 0x10de},
        {&t, HED_PTX_QUERY_CHANNEL_ORDER, 0, 0x10b0},
        {&f, HED_PTX_QUERY_WIDTH, 0, 6},
        {&f, HED_PTX_QUERY_HEIGHT, 0, 4},
        {&f, HED_PTX_QUERY_CHANNEL_DATA_TYPE, 0, 0x10da},
        {&f, HED_PTX_QUERY_CHANNEL_ORDER, 0, 0x10b5},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(hed_rt_texture_query(&warp.abi, (uint64_t)(uintptr_t)rows[i].object,
                                              rows[i].query, rows[i].level, 1),
                         rows[i].want);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_nearest_texel_is_the_one_below),
    cmocka_unit_test(weights_have_eight_bits),
    cmocka_unit_test(coordinates_wrap_clamp_mirror_and_have_borders),
    cmocka_unit_test(coordinates_in_texels_do_not_wrap),
    cmocka_unit_test(filters_mix_four_and_eight_texels),
    cmocka_unit_test(layers_beyond_the_last_are_the_last),
    cmocka_unit_test(directions_find_their_face),
    cmocka_unit_test(seamless_cubes_continue_over_edges),
    cmocka_unit_test(levels_are_chosen_and_mixed),
    cmocka_unit_test(integers_are_normalised_or_stay),
    cmocka_unit_test(halves_come_alone_or_in_pairs),
    cmocka_unit_test(gathers_and_offsets_take_neighbours),
    cmocka_unit_test(memory_beyond_its_end_reads_as_zero),
    cmocka_unit_test(formatted_stores_keep_to_the_format),
    cmocka_unit_test_setup_teardown(reductions_lose_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(a_number_that_is_no_object_fails_the_launch, setup, teardown),
    cmocka_unit_test(objects_answer_questions),
};

HED_UNIT_MAIN(tests)
