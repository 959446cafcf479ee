/* Tests of instructions on textures and surfaces through the compiler: what the sampler is asked,
 * which values arrive, what is refused. Needs the compiler (HED_COMPILER).
 */
#include "driver/memory/array.h"
#include "unit/cpu/compiled.h"

#define LANES 40

static const char text[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n%s\n"
    ".visible .entry k(.param .u64 t, .param .u64 f, .param .u64 out)\n{\n"
    ".reg .pred %%p; .reg .b64 %%t, %%f, %%o, %%l0; .reg .b32 %%lane, %%r<4>; .reg .f32 %%x, %%g;\n"
    ".reg .b16 %%h<4>; .reg .v4 .f32 %%q; .reg .v2 .f32 %%at;\n"
    "ld.param.u64 %%t, [t]; ld.param.u64 %%f, [f]; ld.param.u64 %%o, [out];\n"
    "mov.u32 %%lane, %%tid.x; mad.wide.u32 %%o, %%lane, 16, %%o;\n"
    "cvt.rn.f32.u32 %%x, %%lane; add.f32 %%x, %%x, 0f3f000000; mov.f32 %%g, 0f3f000000;\n"
    "mov.b32 %%r0, 0; mov.b32 %%r1, 0; mov.b32 %%r2, 0; mov.b32 %%r3, 0;\n"
    "%s\n"
    "st.global.v4.b32 [%%o], {%%r0,%%r1,%%r2,%%r3};\nret;\n}\n";

static float image[2][LANES][2]; /* two rows */
static uint32_t words[LANES];    /* of the surface */
static _Alignas(16) uint32_t out[LANES][4];
static struct hed_texture texture = {
    .magic = HED_TEXTURE_MAGIC,
    .shape = HED_SHAPE_2D,
    .address = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_CLAMP},
    .format = {HED_TEXEL_FLOAT, 32, 2, 8},
    .levels = 1,
    .layers = 1,
};
static struct hed_surface surface = {
    .magic = HED_SURFACE_MAGIC, .shape = HED_SHAPE_2D, .format = {HED_TEXEL_UINT, 32, 1, 4}};

static int
setup(void **state)
{
    for (int i = 0; i < LANES; i++) {
        image[0][i][0] = (float)i;
        image[0][i][1] = -1;
        image[1][i][0] = (float)(100 + i);
        image[1][i][1] = -2;
        words[i] = 1000 + (uint32_t)i;
    }
    texture.level[0] =
        (struct hed_texels){(uint64_t)(uintptr_t)image, sizeof image[0], sizeof image, LANES, 2, 1};
    surface.image =
        (struct hed_texels){(uint64_t)(uintptr_t)words, sizeof words, sizeof words, LANES, 1, 1};
    return setup_cpu(state);
}

static CUresult
run_code(const char *before, const char *code, struct hed_why *why)
{
    const uint64_t params[] = {(uintptr_t)&texture, (uintptr_t)&surface, (uintptr_t)out};
    char all[4000];
    struct hed_code_source source = {.data = all, .device = 86, .arch = 75};
    struct hed_code *module = NULL;
    struct hed_launch l = {
        .variables = NULL,
        .grid = {1, 1, 1},
        .block = {LANES, 1, 1},
        .param_bytes = sizeof params,
        .params = (const unsigned char *)params,
    };
    uint64_t variables[4] = {0};

    snprintf(all, sizeof all, text, before, code);
    source.size = strlen(all);
    if (hed_cpu_open(&cpu, &source, &module, NULL, why) != 0)
        fail_msg("%s: %s", code, why->text);
    l.code = module;
    l.variables = variables;

    const CUresult r = prepare_and_launch(&l, why);

    hed_cpu_close(&cpu, module);
    return r;
}

static uint32_t
bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

/* The values of lane 35, which is in the second, partial warp. */
#define LANE 35

static void
expect_texels(const char *code, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    struct hed_why why = {""};

    memset(out, 0xee, sizeof out);
    if (run_code("", code, &why) != CUDA_SUCCESS)
        fail_msg("%s: %s", code, why.text);
    assert_int_equal(out[LANE][0], a);
    assert_int_equal(out[LANE][1], b);
    assert_int_equal(out[LANE][2], c);
    assert_int_equal(out[LANE][3], d);
}

static void
textures_are_sampled(void **state)
{
    const uint32_t x = bits(35), missing = 0, minus = bits(-1);

    expect_texels("tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%t, {%x,%g}];", x, minus, 0, missing);
    expect_texels("tex.2d.v4.u32.s32 {%r0,%r1,%r2,%r3}, [%t, {%lane,1}];", bits(135), bits(-2), 0,
                  missing);
    expect_texels("tex.base.2d.v4.f32.f32 {_,%r1,_,%r3}, [%t, {%x,%g}];", 0, minus, 0, missing);
    expect_texels("tex.level.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%t, {%x,%g}], %g;", x, minus, 0,
                  missing);
    expect_texels("tex.grad.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%t, {%x,%g}], {%g,%g}, {%g,%g};", x,
                  minus, 0, missing);
    expect_texels("tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%t, {%x,%g}], {-3, 1};", bits(132),
                  bits(-2), 0, missing);
    expect_texels("tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}|%p, [%t, {%x,%g}]; selp.b32 %r2, 7, 8, %p;",
                  x, minus, 7, missing);
    expect_texels("setp.eq.u32 %p, %lane, 35;\n"
                  "@%p tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%t, {%x,%g}];",
                  x, minus, 0, missing);
    expect_texels("tex.2d.v4.f32.f32 %q, [%t, {%x,%g}]; mov.b32 %r0, %q.x; mov.b32 %r1, %q.y;", x,
                  minus, 0, 0);
}

static void
halves_and_gathers_arrive(void **state)
{
    expect_texels("tex.2d.v2.f16x2.f32 {%r0,%r1}, [%t, {%x,%g}];", 0xbc005060, 0, 0, 0);
    expect_texels("tex.2d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%t, {%x,%g}]; cvt.u32.u16 %r0, %h0;\n"
                  "cvt.u32.u16 %r3, %h3;",
                  0x5060, 0, 0, 0);
    expect_texels("add.f32 %x, %x, %g; mov.f32 %g, 0f3f800000;\n"
                  "tld4.r.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%t, {%x,%g}];",
                  bits(135), bits(136), bits(36), bits(35));
}

static void
surfaces_are_read_written_and_reduced(void **state)
{
    expect_texels("shl.b32 %r3, %lane, 2; suld.b.2d.b32.trap %r0, [%f, {%r3, 0}]; mov.b32 %r3, 0;",
                  1035, 0, 0, 0);
    expect_texels("suld.b.2d.v2.b32.clamp {%r0,%r1}, [%f, {9999, -3}];", 1038, 1039, 0, 0);
    expect_texels("suld.b.2d.v2.b32.zero {%r0,%r1}, [%f, {9999, 0}];", 0, 0, 0, 0);
    expect_texels("suld.b.2d.b8.clamp %h0, [%f, {-9, 0}]; cvt.u32.u16 %r0, %h0;", 1000 & 255, 0, 0,
                  0);
    expect_texels("suld.b.2d.b64.clamp %l0, [%f, {8, 0}]; mov.b64 {%r0,%r1}, %l0;", 1002, 1003, 0,
                  0);
    words[1] = 0;
    expect_texels("sured.b.add.2d.u32.trap [%f, {4, 0}], 2;", 0, 0, 0, 0);
    assert_int_equal(words[1], 2 * LANES);
    expect_texels(
        "sured.p.max.2d.s32.clamp [%f, {-1, 5}], %lane; sured.b.and.2d.b32.zero [%f, {-4, 0}], 0;",
        0, 0, 0, 0);
    assert_int_equal(words[0], 1000);
    expect_texels(
        "mul.lo.u32 %r3, %lane, 4; sust.b.2d.b32.trap [%f, {%r3, 0}], %lane; mov.b32 %r3, 0;", 0, 0,
        0, 0);
    assert_int_equal(words[39], 39);
    expect_texels("sust.p.2d.v2.b32.zero [%f, {3, 0}], {77, 88};", 0, 0, 0, 0);
    assert_int_equal(words[3], 77);
    assert_int_equal(words[4], 4);
}

static void
objects_answer_questions(void **state)
{
    expect_texels(
        "txq.width.b32 %r0, [%t]; txq.height.b32 %r1, [%t]; txq.level.width.b32 %r2, [%t], 1;\n"
        "suq.width.b32 %r3, [%f];",
        LANES, 2, 0, LANES);
}

static void
unknown_forms_are_refused_by_name(void **state)
{
    static const struct {
        const char *before, *code, *why;
    } rows[] = {
        {".global .b64 name;", "tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [name, {%x,%g}];",
         "no texture"},
        {".global .b64 name;", "suld.b.2d.b32.trap %r0, [name, {%r1,%r2}];", "no texture"},
        {"", "tex.2d.v4.f32.f32 {%r0,%r1,%r2,%r3}, [%t, {%x,%g}], {1, 1}, %g;", "comparisons"},
        {"", "tex.2dms.v4.f32.s32 {%r0,%r1,%r2,%r3}, [%t, {%r0,%r1,%r2,%r2}];", "geometry"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct hed_why why = {""};

        assert_int_not_equal(run_code(rows[i].before, rows[i].code, &why), CUDA_SUCCESS);
        if (!strstr(why.text, rows[i].why))
            fail_msg("%s: %s", rows[i].code, why.text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(textures_are_sampled, setup, teardown_cpu),
    cmocka_unit_test_setup_teardown(halves_and_gathers_arrive, setup, teardown_cpu),
    cmocka_unit_test_setup_teardown(surfaces_are_read_written_and_reduced, setup, teardown_cpu),
    cmocka_unit_test_setup_teardown(objects_answer_questions, setup, teardown_cpu),
    cmocka_unit_test_setup_teardown(unknown_forms_are_refused_by_name, setup, teardown_cpu),
};

HED_UNIT_MAIN(tests)
