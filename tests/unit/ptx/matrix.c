/* Tests of matrix instructions and barrier objects. Fragments are as the PTX manual draws them, and
 * products are compared with plain loops. Only the warp shape runs, which has all lanes at hand. */
#include "harness/unit.h"

#include <stdlib.h>

#include "kernel/ptx/run/group.h"
#include "kernel/ptx/run/small_float.h"
#include "kernel/ptx/text/parse.h"
#include "kernel/ptx/words.h"
#include "ptx/exec/harness.h"

#define LANES 32
/* Vectors of 16 bytes are read from and written to what the tests pass. */
#define ALIGNED __attribute__((aligned(16)))

/* One warp runs the code; %in and %out as in exec_code, %r0 is the lane, %d0 64 times the lane. */
static void
run_warp(const char *before, const char *code, const void *in, void *out)
{
    static const char form[] =
        ".version 9.0\n.target sm_90a\n.address_size 64\n%s\n"
        ".visible .entry kernel(.param .u64 pin, .param .u64 pout) {\n"
        ".reg .b64 %%in, %%out; .reg .pred %%p<10>; .reg .b32 %%r<60>; .reg .b64 %%d<20>;\n"
        ".reg .f32 %%f<40>; .reg .f64 %%g<20>;\n"
        "ld.param.u64 %%in, [pin]; ld.param.u64 %%out, [pout]; mov.u32 %%r0, %%laneid;\n"
        "mul.wide.u32 %%d0, %%r0, 64;\n%s\nret;\n}\n";
    const void *params[2] = {in, out};
    const struct exec_launch launch = {.threads = LANES, .params = params, .size = sizeof(params)};
    char *text = NULL;
    struct exec e;

    if (asprintf(&text, form, before, code) < 0)
        fail();
    exec_open(&e, text, EXEC_COMPILED);
    if (exec_run(&e, "kernel", &launch) != 0)
        fail_msg("%s, trap %u at line %u", e.why.text, e.trap, e.trap_line);
    exec_close(&e);
    free(text);
}

/* Small numbers that halves hold exactly. */
static float
value(unsigned row, unsigned column)
{
    return (float)((int)((row * 7 + column * 3) % 11) - 5) * 0.5f;
}

static void
mma_multiplies_halves(void **state)
{
    uint32_t in[LANES][16] ALIGNED = {{0}};
    float out[LANES][16] ALIGNED;

    (void)state;
    for (unsigned lane = 0; lane < LANES; lane++) {
        uint16_t *a = (uint16_t *)&in[lane][0];
        uint16_t *b = (uint16_t *)&in[lane][4];
        const unsigned group = lane >> 2;
        const unsigned place = lane % 4;

        for (unsigned i = 0; i < 8; i++) {
            const unsigned row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
            const unsigned column = place * 2 + (i & 1) + (i >= 4 ? 8 : 0);

            a[i] = hed_to_f16(value(row, column));
        }
        for (unsigned i = 0; i < 4; i++)
            b[i] = hed_to_f16(value(place * 2 + (i & 1) + (i >= 2 ? 8 : 0), group + 100));
    }
    run_warp("",
             "add.s64 %d1, %in, %d0; add.s64 %d2, %out, %d0;\n"
             "ld.v4.b32 {%r1, %r2, %r3, %r4}, [%d1]; ld.v2.b32 {%r5, %r6}, [%d1+16];\n"
             "mov.f32 %f1, 0f3F800000;\n"
             "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8},\n"
             "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f1, %f1, %f1};\n"
             "st.v4.f32 [%d2], {%f5, %f6, %f7, %f8};",
             in, out);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            const unsigned row = (lane >> 2) + (i < 2 ? 0 : 8);
            const unsigned column = lane % 4 * 2 + (i & 1);
            float sum = 1;

            for (unsigned k = 0; k < 16; k++)
                sum += value(row, k) * value(k, column + 100);
            assert_true(out[lane][i] == sum);
        }
    }
}

static void
mma_multiplies_bytes_and_saturates(void **state)
{
    int8_t in[LANES][64] ALIGNED = {{0}};
    int32_t out[LANES][16] ALIGNED;

    (void)state;
    memset(in, 127, sizeof(in));
    run_warp("",
             "add.s64 %d1, %in, %d0; add.s64 %d2, %out, %d0;\n"
             "ld.v4.b32 {%r1, %r2, %r3, %r4}, [%d1]; mov.b32 %r10, 0x7fffffff; mov.b32 %r11, 5;\n"
             "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%r20, %r21, %r22, %r23},\n"
             "{%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r10, %r10, %r11, %r11};\n"
             "st.v4.b32 [%d2], {%r20, %r21, %r22, %r23};\n"
             "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%r20, %r21, %r22, %r23},\n"
             "{%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r11, %r11, %r11, %r11};\n"
             "st.b32 [%d2+16], %r20;",
             in, out);
    for (unsigned lane = 0; lane < LANES; lane++) {
        assert_int_equal(out[lane][0], INT32_MAX);
        assert_int_equal(out[lane][3], 127 * 127 * 32 + 5);
        assert_int_equal(out[lane][4], 127 * 127 * 32 + 5);
    }
}

/* 32 bits of a row of a, or of a column of b. */
static uint32_t
bits_at(unsigned row, unsigned word, bool is_b)
{
    return (row * 8 + word + 1) * (is_b ? 2654435761u : 2246822519u);
}

static void
mma_counts_bits(void **state)
{
    uint32_t in[LANES][16] ALIGNED = {{0}}, out[LANES][16] ALIGNED;

    (void)state;
    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned group = lane / 4, place = lane % 4;

        for (unsigned r = 0; r < 4; r++)
            in[lane][r] = bits_at(group + 8 * (r & 1), place + 4 * (r >> 1), false);
        for (unsigned r = 0; r < 2; r++)
            in[lane][4 + r] = bits_at(group, place + 4 * r, true);
    }
    run_warp("",
             "add.s64 %d1, %in, %d0; add.s64 %d2, %out, %d0;\n"
             "ld.v4.b32 {%r1, %r2, %r3, %r4}, [%d1]; ld.v2.b32 {%r5, %r6}, [%d1+16];\n"
             "mov.b32 %r10, 7;\n"
             "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%r20, %r21, %r22, %r23},\n"
             "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r10, %r10, %r10, %r10};\n"
             "st.v4.b32 [%d2], {%r20, %r21, %r22, %r23};\n"
             "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r20, %r21, %r22, %r23},\n"
             "{%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r10, %r10, %r10, %r10};\n"
             "st.v4.b32 [%d2+16], {%r20, %r21, %r22, %r23};",
             in, out);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            const unsigned row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
            unsigned differ = 7, both = 7;

            for (unsigned w = 0; w < 8; w++) {
                const uint32_t a = bits_at(row, w, false), b = bits_at(column, w, true);

                differ += (unsigned)__builtin_popcount(a ^ b);
                both += (unsigned)__builtin_popcount(a & b);
            }
            assert_int_equal(out[lane][i], differ);
            assert_int_equal(out[lane][4 + i], both);
        }
    }
}

/* What takes the place of the product is said for bits, and for nothing else. */
static void
mma_of_bits_is_said_in_full(void **state)
{
    static const char *const wrong[] = {
        "m8n8k128.row.col.s32.b1.b1.s32", "m8n8k128.row.col.s32.b1.b1.s32.xor",
        "m8n8k128.row.col.s32.b1.b1.s32.popc", "m8n8k128.row.col.s32.b1.b1.s32.or.popc",
        "m8n8k16.row.col.s32.s8.s8.s32.xor.popc"};

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct hed_ptx_module m;
        char text[512];
        const int n = snprintf(text, sizeof(text),
                               ".version 9.0\n.target sm_90a\n.address_size 64\n"
                               ".visible .entry k() {\n.reg .b32 %%r<3>;\n"
                               "mma.sync.aligned.%s {%%r0, %%r1}, {%%r2}, {%%r2}, {%%r0, %%r1};\n"
                               "ret;\n}\n",
                               wrong[i]);

        hed_ptx_module_init(&m, HED_PTX_CEILING);
        assert_int_equal(hed_ptx_parse(&m, text, (size_t)n), 0);
        assert_non_null(m.funcs->refused);
        hed_ptx_module_fini(&m);
    }
}

/* With another shape, a lane's numbers would not lie where the functions expect them. */
static void
shapes_that_no_gpu_has_are_refused(void **state)
{
    static const struct {
        uint16_t m, n, k;
        uint8_t op, type, sum;
        bool works;
    } shapes[] = {
        {16, 8, 16, HED_PTX_OP_MMA, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, true},
        {16, 8, 8, HED_PTX_OP_MMA, HED_PTX_TYPE_TF32, HED_PTX_TYPE_F32, true},
        {16, 8, 4, HED_PTX_OP_MMA, HED_PTX_TYPE_TF32, HED_PTX_TYPE_F32, true},
        {8, 8, 4, HED_PTX_OP_MMA, HED_PTX_TYPE_F64, HED_PTX_TYPE_F64, true},
        {8, 8, 16, HED_PTX_OP_MMA, HED_PTX_TYPE_S8, HED_PTX_TYPE_S32, true},
        {16, 8, 64, HED_PTX_OP_MMA, HED_PTX_TYPE_S4, HED_PTX_TYPE_S32, true},
        {16, 8, 256, HED_PTX_OP_MMA, HED_PTX_TYPE_B1, HED_PTX_TYPE_S32, true},
        {16, 16, 16, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, true},
        {32, 8, 16, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, true},
        {8, 32, 16, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, true},
        {8, 8, 4, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_F64, HED_PTX_TYPE_F64, true},
        {8, 8, 128, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_B1, HED_PTX_TYPE_S32, true},
        {8, 32, 8, HED_PTX_OP_MMA, HED_PTX_TYPE_TF32, HED_PTX_TYPE_F32, false},
        {16, 16, 8, HED_PTX_OP_MMA, HED_PTX_TYPE_TF32, HED_PTX_TYPE_F32, false},
        {32, 8, 8, HED_PTX_OP_MMA, HED_PTX_TYPE_TF32, HED_PTX_TYPE_F32, false},
        {1, 8, 256, HED_PTX_OP_MMA, HED_PTX_TYPE_TF32, HED_PTX_TYPE_F32, false},
        {16, 8, 8, HED_PTX_OP_MMA, HED_PTX_TYPE_S8, HED_PTX_TYPE_S32, false},
        {16, 8, 6, HED_PTX_OP_MMA, HED_PTX_TYPE_TF32, HED_PTX_TYPE_F32, false},
        {16, 8, 0, HED_PTX_OP_MMA, HED_PTX_TYPE_F64, HED_PTX_TYPE_F64, false},
        {0, 0, 0, HED_PTX_OP_MMA, HED_PTX_TYPE_F64, HED_PTX_TYPE_F64, false},
        {1, 1, 16, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, false},
        {5, 7, 16, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, false},
        {32, 32, 16, HED_PTX_OP_WMMA_MMA, HED_PTX_TYPE_F16, HED_PTX_TYPE_F32, false},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct hed_ptx_form f = {
            .op = shapes[i].op,
            .m = shapes[i].m,
            .n = shapes[i].n,
            .k = shapes[i].k,
            .ntypes = 4,
            .types = {shapes[i].sum, shapes[i].type, shapes[i].type, shapes[i].sum},
        };
        struct hed_ptx_mma m;

        if ((hed_ptx_mma_describe(&f, &m) == NULL) != shapes[i].works)
            print_error("m%un%uk%u\n", f.m, f.n, f.k);
        assert_int_equal(hed_ptx_mma_describe(&f, &m) == NULL, shapes[i].works);
    }
    assert_true(hed_ptx_is_fragment_shape(16, 16));
    assert_false(hed_ptx_is_fragment_shape(1, 16));
    assert_false(hed_ptx_is_fragment_shape(0, 16));
    assert_false(hed_ptx_is_fragment_shape(5, 7));
}

static void
expect_refusal(const char *instruction)
{
    for (int tier = EXEC_BASELINE; tier <= EXEC_COMPILED; tier++) {
        const struct exec_launch launch = {.threads = 32};
        struct exec e;
        char text[4096];

        snprintf(text, sizeof(text),
                 ".version 8.7\n.target sm_120a\n.address_size 64\n.visible .entry k() {\n"
                 ".reg .b32 %%r<16>; .reg .f32 %%f<16>; .reg .f64 %%d<129>; .reg .b64 %%a;\n"
                 "mov.u64 %%a, 0;\n%s\nret;\n}\n",
                 instruction);
        exec_open(&e, text, (enum exec_tier)tier);
        assert_int_equal(exec_run(&e, "k", &launch), HED_ENOTSUP);
        exec_close(&e);
    }
}

/* Functions in C move as many words as the shape says, whatever the instruction has. */
static void
registers_that_do_not_fit_the_shape_are_refused(void **state)
{
    char load[2048] = "wmma.load.a.sync.aligned.row.m32n8k128.f64 {%d0";

    (void)state;
    expect_refusal("mma.sync.aligned.m16n8k16.row.col.kind::f8f6f4.f32.f16.f16.f32 "
                   "{%f0, %f1, %f2, %f3}, {%r0, %r1}, {%r2}, {%f4, %f5, %f6, %f7};");
    for (unsigned i = 1; i < 128; i++)
        snprintf(load + strlen(load), sizeof(load) - strlen(load), ", %%d%u", i);
    snprintf(load + strlen(load), sizeof(load) - strlen(load), "}, [%%a];");
    expect_refusal(load);
}

static void
mma_multiplies_doubles(void **state)
{
    double in[LANES][8] ALIGNED = {{0}}, out[LANES][8] ALIGNED;

    (void)state;
    for (unsigned lane = 0; lane < LANES; lane++) {
        in[lane][0] = (double)value(lane >> 2, lane % 4);
        in[lane][1] = (double)value(lane % 4, (lane >> 2) + 50);
    }
    run_warp(
        "",
        "add.s64 %d1, %in, %d0; add.s64 %d2, %out, %d0; ld.v2.f64 {%g1, %g2}, [%d1];\n"
        "mov.f64 %g3, 0d3FF0000000000000;\n"
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g4, %g5}, {%g1}, {%g2}, {%g3, %g3};\n"
        "st.v2.f64 [%d2], {%g4, %g5};",
        in, out);
    for (unsigned lane = 0; lane < LANES; lane++) {
        for (unsigned i = 0; i < 2; i++) {
            double sum = 1;

            for (unsigned k = 0; k < 4; k++)
                sum += (double)value(lane >> 2, k) * (double)value(k, lane % 4 * 2 + i + 50);
            assert_true(out[lane][i] == sum);
        }
    }
}

static void
ldmatrix_and_stmatrix_move_rows(void **state)
{
    uint16_t in[32][8] ALIGNED;
    uint32_t out[LANES][16] ALIGNED;

    (void)state;
    for (unsigned i = 0; i < 32 * 8; i++)
        in[i / 8][i % 8] = (uint16_t)(100 * (i / 64) + i % 64);
    run_warp(
        ".shared .align 16 .b8 s[1024];",
        "mul.wide.u32 %d1, %r0, 16; add.s64 %d2, %in, %d1; add.s64 %d3, %out, %d0;\n"
        "mov.u32 %r1, s; mad.lo.u32 %r1, %r0, 16, %r1;\n"
        "ld.v4.b32 {%r2, %r3, %r4, %r5}, [%d2]; st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5};\n"
        "bar.warp.sync 0xffffffff;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r1];\n"
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r1];\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 %r16, %r10;\n"
        "st.v4.b32 [%d3], {%r10, %r11, %r12, %r13}; st.v2.b32 [%d3+16], {%r14, %r15};\n"
        "st.b32 [%d3+24], %r16;\n"
        "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r1], {%r10};\n"
        "bar.warp.sync 0xffffffff; ld.shared.b32 %r17, [%r1]; st.b32 [%d3+28], %r17;",
        in, out);
    for (unsigned lane = 0; lane < LANES; lane++) {
        const unsigned row = lane / 4;
        const unsigned column = 2 * (lane % 4);

        for (unsigned m = 0; m < 4; m++)
            assert_int_equal(out[lane][m],
                             in[8 * m + row][column] | in[8 * m + row][column + 1] << 16);
        assert_int_equal(out[lane][4], in[column][row] | in[column + 1][row] << 16);
        assert_int_equal(out[lane][5], in[8 + column][row] | in[8 + column + 1][row] << 16);
        assert_int_equal(out[lane][6], out[lane][4]);
        if (lane < 8)
            assert_int_equal(out[lane][7], in[0][lane] | in[1][lane] << 16);
    }
}

static void
wmma_multiplies_what_it_loads(void **state)
{
    struct {
        uint16_t a[16][16], b[16][16]; /* b by columns */
        float c[16][16];
    } in ALIGNED;
    float out[16][24] ALIGNED;

    (void)state;
    for (unsigned i = 0; i < 256; i++) {
        in.a[i / 16][i % 16] = hed_to_f16(value(i / 16, i % 16));
        in.b[i / 16][i % 16] = hed_to_f16(value(i % 16, i / 16 + 30));
        in.c[i / 16][i % 16] = (float)i;
    }
    run_warp("",
             "mov.b32 %r1, 16; mov.b32 %r2, 24;\n"
             "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r10, %r11, %r12, %r13, %r14, %r15, %r16,"
             "%r17}, [%in], %r1;\n"
             "wmma.load.b.sync.aligned.col.m16n16k16.f16 {%r20, %r21, %r22, %r23, %r24, %r25, %r26,"
             "%r27}, [%in+512], %r1;\n"
             "wmma.load.c.sync.aligned.row.m16n16k16.f32 {%f10, %f11, %f12, %f13, %f14, %f15, %f16,"
             "%f17}, [%in+1024];\n"
             "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f20, %f21, %f22, %f23, %f24, %f25,"
             "%f26, %f27}, {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, {%r20, %r21, %r22,"
             "%r23, %r24, %r25, %r26, %r27}, {%f10, %f11, %f12, %f13, %f14, %f15, %f16, %f17};\n"
             "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%out], {%f20, %f21, %f22, %f23, %f24,"
             "%f25, %f26, %f27}, %r2;",
             &in, out);
    for (unsigned row = 0; row < 16; row++) {
        for (unsigned column = 0; column < 16; column++) {
            float sum = (float)(16 * row + column);

            for (unsigned k = 0; k < 16; k++)
                sum += value(row, k) * value(k, column + 30);
            assert_true(out[row][column] == sum);
        }
    }
}

static void
barrier_objects_count_arrivals_and_bytes(void **state)
{
    uint64_t b;

    (void)state;
    hed_ptx_mbarrier_init(&b, 2);

    const uint64_t first = hed_ptx_mbarrier_arrive(&b, 1, 0, 0);

    assert_int_equal(hed_ptx_mbarrier_pending(first), 2);
    assert_int_equal(hed_ptx_mbarrier_test(&b, first), 0);
    assert_int_equal(hed_ptx_mbarrier_test(&b, UINT64_C(1) << 63), 1);
    hed_ptx_mbarrier_arrive(&b, 1, 1000, 0);
    assert_int_equal(hed_ptx_mbarrier_test(&b, first), 0);
    hed_ptx_mbarrier_arrive(&b, 0, -400, 0);
    assert_int_equal(hed_ptx_mbarrier_test(&b, first), 0);
    hed_ptx_mbarrier_arrive(&b, 0, -600, 0);
    assert_int_equal(hed_ptx_mbarrier_test(&b, first), 1);

    const uint64_t second = hed_ptx_mbarrier_arrive(&b, 1, -8, 1); /* bytes may come early */

    assert_int_equal(hed_ptx_mbarrier_test(&b, second), 0);
    hed_ptx_mbarrier_arrive(&b, 1, 8, 0);
    assert_int_equal(hed_ptx_mbarrier_test(&b, second), 1);
    hed_ptx_mbarrier_arrive(&b, 1, 0, 0); /* one thread has left for ever */
    assert_int_equal(hed_ptx_mbarrier_test(&b, 0), 1);
}

static void
barrier_objects_are_made_and_tested_by_kernels(void **state)
{
    static const char code[] =
        "mbarrier.init.shared.b64 [s], 3; mbarrier.arrive.shared.b64 %d1, [s];\n"
        "mbarrier.test_wait.shared.b64 %p1, [s], %d1; selp.b32 %r1, 1, 0, %p1;\n"
        "st.b32 [%out], %r1;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [s], 16;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [t], [%in], 16, [s];\n"
        "cp.async.mbarrier.arrive.noinc.shared.b64 [s];\n"
        "mbarrier.try_wait.parity.shared.b64 %p1, [s], 0; selp.b32 %r1, 1, 0, %p1;\n"
        "st.b32 [%out+4], %r1; ld.shared.b32 %r1, [t+12]; st.b32 [%out+8], %r1;\n"
        "mbarrier.pending_count.b64 %r1, %d1; st.b32 [%out+12], %r1;";
    static const uint32_t in[4] ALIGNED = {1, 2, 3, 4};
    uint32_t out[4] = {9, 9, 9, 9};
    static const uint32_t expected[4] = {0, 1, 4, 3};

    (void)state;
    exec_code(".shared .align 8 .b64 s; .shared .align 16 .b8 t[16];", code, in, out);
    assert_memory_equal(out, expected, sizeof(out));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(mma_multiplies_halves),
    cmocka_unit_test(mma_multiplies_bytes_and_saturates),
    cmocka_unit_test(mma_counts_bits),
    cmocka_unit_test(mma_of_bits_is_said_in_full),
    cmocka_unit_test(shapes_that_no_gpu_has_are_refused),
    cmocka_unit_test(registers_that_do_not_fit_the_shape_are_refused),
    cmocka_unit_test(mma_multiplies_doubles),
    cmocka_unit_test(ldmatrix_and_stmatrix_move_rows),
    cmocka_unit_test(wmma_multiplies_what_it_loads),
    cmocka_unit_test(barrier_objects_count_arrivals_and_bytes),
    cmocka_unit_test(barrier_objects_are_made_and_tested_by_kernels),
};

HED_UNIT_MAIN(tests)
