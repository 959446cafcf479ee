/* Tests of kernels that are compiled and run: memory, calls, control flow. */
#include "harness/unit.h"

#include <stdlib.h>

#include "ptx/exec/harness.h"

static void
kernel_adds_vectors(void **state)
{
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n"
        ".visible .entry vadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {\n"
        ".reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<11>; .reg .f32 %f<4>;\n"
        "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];\n"
        "ld.param.u32 %r2, [n];\n"
        "mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
        "mad.lo.s32 %r1, %r3, %r4, %r5;\n"
        "setp.ge.s32 %p1, %r1, %r2; @%p1 bra END;\n"
        "cvta.to.global.u64 %d4, %d1; mul.wide.s32 %d5, %r1, 4; add.s64 %d6, %d4, %d5;\n"
        "cvta.to.global.u64 %d7, %d2; add.s64 %d8, %d7, %d5;\n"
        "ld.global.f32 %f1, [%d8]; ld.global.f32 %f2, [%d6]; add.f32 %f3, %f2, %f1;\n"
        "cvta.to.global.u64 %d9, %d3; add.s64 %d10, %d9, %d5; st.global.f32 [%d10], %f3;\n"
        "END: ret; }\n";
    float a[100], b[100], c[101];
    struct {
        float *a, *b, *c;
        int n;
    } params = {a, b, c, 100};
    const struct exec_launch launch = {.blocks = 4, .threads = 32, .params = &params};
    struct exec e;

    (void)state;
    for (int i = 0; i < 100; i++) {
        a[i] = (float)i;
        b[i] = (float)(1000 * i);
    }
    c[100] = -1;
    exec_open(&e, text, EXEC_COMPILED);
    if (exec_run(&e, "vadd", &launch) != 0)
        fail_msg("%s", e.why.text);
    for (int i = 0; i < 100; i++)
        assert_true(c[i] == (float)(1001 * i));
    assert_true(c[100] == -1);
    assert_int_equal(e.info.flags, HED_PTX_BLOCKS);
    exec_close(&e);
}

static void
loads_extend_and_stores_truncate(void **state)
{
    static const _Alignas(8) uint8_t in[] = {0xfe, 0xff, 0x80, 0x01, 1, 2, 3, 4};
    uint32_t out[8] = {0};

    (void)state;
    exec_code(NULL,
              "ld.global.s8 %r1, [%in]; ld.u8 %r2, [%in]; ld.s16 %r3, [%in]; ld.b16 %r4, [%in+2];\n"
              "ld.global.nc.L1::no_allocate.s8 %h1, [%in+2];\n"
              "st.b32 [%out], %r1; st.b32 [%out+4], %r2; st.b32 [%out+8], %r3;\n"
              "st.b32 [%out+12], %r4; st.b16 [%out+16], %h1; mov.b32 %r5, -1;\n"
              "st.u8 [%out+20], %r5; st.b16 [%out+24], %r5;",
              in, out);
    assert_int_equal(out[0], 0xfffffffe);
    assert_int_equal(out[1], 0xfe);
    assert_int_equal(out[2], 0xfffffffe);
    assert_int_equal(out[3], 0x0180);
    assert_int_equal(out[4], 0xff80);
    assert_int_equal(out[5], 0xff);
    assert_int_equal(out[6], 0xffff);
}

static void
vectors_and_wide_values_move(void **state)
{
    uint32_t in[12] __attribute__((aligned(16))), out[24] __attribute__((aligned(16))) = {0};

    (void)state;
    for (uint32_t i = 0; i < 12; i++)
        in[i] = 100 + i;
    exec_code(NULL,
              ".reg .v4 .b32 %v;\n"
              "ld.v4.b32 {%r1, _, %r3, %r4}, [%in]; ld.v2.u64 {%d1, %d2}, [%in+16];\n"
              "ld.v4.u8 {%h1, %h2, %h3, %h4}, [%in];\n"
              "st.v4.b32 [%out], {%r4, %r3, %r1, 7}; st.v2.u64 [%out+16], {%d2, %d1};\n"
              "st.v4.u8 [%out+32], {%h4, %h3, %h2, %h1};\n"
              "ld.v4.b32 %v, [%in+32]; st.v4.b32 [%out+48], %v; st.b32 [%out+64], %v.z;\n",
              in, out);
    assert_int_equal(out[0], 103);
    assert_int_equal(out[1], 102);
    assert_int_equal(out[2], 100);
    assert_int_equal(out[3], 7);
    assert_memory_equal(&out[4], &in[6], 8);
    assert_memory_equal(&out[6], &in[4], 8);
    assert_int_equal(out[8], 0x64000000);
    assert_memory_equal(&out[12], &in[8], 16);
    assert_int_equal(out[16], 110);
}

static void
values_of_128_bits_move(void **state)
{
    static const uint64_t in[2] = {0x1122334455667788, 0x99aabbccddeeff00};
    uint64_t out[4] __attribute__((aligned(16))) = {0};

    (void)state;
    exec_code(NULL,
              "ld.v2.u64 {%d1, %d2}, [%in]; mov.b128 %q1, {%d2, %d1}; st.b128 [%out], %q1;\n"
              "mov.b128 {%d3, %d4}, %q1; st.v2.u64 [%out+16], {%d4, %d3};",
              in, out);
    assert_true(out[0] == in[1] && out[1] == in[0] && out[2] == in[0] && out[3] == in[1]);
}

static void
mov_packs_and_unpacks(void **state)
{
    static const uint32_t in[2] = {0x04030201, 0x40302010};
    uint32_t out[6] = {0};

    (void)state;
    exec_code(NULL,
              "ld.b32 %r1, [%in]; ld.b32 %r2, [%in+4]; mov.b64 %d1, {%r1, %r2};\n"
              "mov.b32 {%h1, %h2}, %r1; mov.b32 %r3, {%h2, %h1};\n"
              "mov.b64 {%h3, %h4, %h5, %h6}, %d1; mov.b32 %r4, {%h6, %h3};\n"
              "mov.b64 {%r5, _}, %d1; mov.f32 %f1, 0f3F800000; mov.b32 %r6, %f1;\n"
              "st.b32 [%out], %r3; st.b32 [%out+4], %r4; st.b32 [%out+8], %r5;\n"
              "st.b32 [%out+12], %r6; mov.b16 %h7, 0xC000; st.b16 [%out+16], %h7;\n"
              "mov.f64 %g1, 1.0; mov.b64 {_, %r7}, %g1; st.b32 [%out+20], %r7;",
              in, out);
    assert_int_equal(out[0], 0x02010403);
    assert_int_equal(out[1], 0x02014030);
    assert_int_equal(out[2], 0x04030201);
    assert_int_equal(out[3], 0x3f800000);
    assert_int_equal(out[4], 0xc000);
    assert_int_equal(out[5], 0x3ff00000);
}

static void
vector_registers_move_as_a_whole(void **state)
{
    static const uint64_t in[2] = {0x0004000300020001, 0x4433221144332211};
    uint64_t out[8] __attribute__((aligned(16))) = {0};

    (void)state;
    exec_code(NULL,
              ".reg .v4 .u16 %v; .reg .v4 .u16 %w; .reg .v2 .b32 %u; .reg .v4 .b8 %b;\n"
              "ld.b64 %d1, [%in]; ld.b32 %r9, [%in+8];\n"
              "mov.b64 %v, %d1; mov.v4.u16 %w, %v; mov.b64 %d2, %w; st.b64 [%out], %d2;\n"
              "mov.v4.u16 {%h1, %h2, %h3, %h4}, %w; mov.v4.u16 %w, {%h4, %h3, %h2, 9};\n"
              "st.v4.u16 [%out+8], %w;\n"
              "mov.b32 %b, %r9; mov.b32 %r1, %b; mov.b64 %u, %d1; mov.b64 %d3, %u;\n"
              "st.b32 [%out+16], %r1; st.b64 [%out+24], %d3;\n"
              "mov.u32 %r1, 1; mov.u32 %r2, 2; mov.v2.u32 {%r1, %r2}, {%r2, %r1};\n"
              "st.v2.u32 [%out+32], {%r1, %r2}; setp.eq.u32 %p1, %r1, 1;\n"
              "@%p1 mov.v2.u32 {%r1, %r2}, {5, 6}; @!%p1 mov.v2.u32 {%r3, %r4}, {7, 8};\n"
              "st.v4.u32 [%out+48], {%r1, %r2, %r3, %r4};",
              in, out);
    assert_true(out[0] == in[0]);
    assert_true(out[1] == 0x0009000200030004);
    assert_true(out[2] == 0x44332211);
    assert_true(out[3] == in[0]);
    assert_true(out[4] == 0x0000000100000002);
    assert_true(out[6] == 0x0000000100000002);
    assert_true(out[7] == 0x0000000800000007);
}

static void
constants_are_added_to_registers(void **state)
{
    static const uint64_t in[1] = {0xffffffff};
    uint64_t out[6] = {0};

    (void)state;
    exec_code(NULL,
              "ld.b64 %d1, [%in]; ld.b32 %r1, [%in]; ld.b16 %h1, [%in];\n"
              "st.u64 [%out], %d1 + 1; st.u32 [%out+8], %r1+3*4; st.u16 [%out+16], %h1+-1;\n"
              "add.u32 %r2, %r1+5, %r1+6; st.u32 [%out+24], %r2; st.u64 [%out+32], %d1;\n"
              "mov.u64 %d2, %d1+2; st.u64 [%out+40], %d2;",
              in, out);
    assert_true(out[0] == 0x100000000);
    assert_true(out[1] == 11);
    assert_true(out[2] == 0xfffe);
    assert_true(out[3] == 9);
    assert_true(out[4] == 0xffffffff);
    assert_true(out[5] == 0x100000001);
}

static void
every_space_has_its_memory(void **state)
{
    uint32_t out[12] = {0};

    (void)state;
    exec_code(".global .u32 g[4] = {1, 2, 3, 4}; .const .u32 c[2] = {50, 60};\n"
              ".global .u64 pointer = generic(g) + 8; .shared .u32 s0[3];\n"
              ".extern .shared .align 32 .b8 dynamic[];",
              ".local .align 8 .b8 depot[64]; .shared .align 8 .u32 s1[2];\n"
              "ld.global.u32 %r1, [g+4]; st.u32 [%out], %r1; ld.const.u32 %r1, [c+4];\n"
              "st.u32 [%out+4], %r1; ld.global.u64 %d1, [pointer]; ld.u32 %r1, [%d1];\n"
              "st.u32 [%out+8], %r1;\n"
              "mov.u64 %d2, depot; add.u64 %d2, %d2, 16; st.local.u32 [%d2], 77;\n"
              "cvta.local.u64 %d3, %d2; ld.u32 %r1, [%d3]; st.u32 [%out+12], %r1;\n"
              "ld.local.u32 %r1, [depot+16]; st.u32 [%out+16], %r1;\n"
              "mov.u32 %r2, s1; st.shared.u32 [%r2+4], 99; ld.shared.u32 %r1, [s1+4];\n"
              "st.u32 [%out+20], %r1; cvta.shared.u64 %d4, s1; ld.u32 %r1, [%d4+4];\n"
              "st.u32 [%out+24], %r1; isspacep.shared %p1, %d4; isspacep.global %p2, %d4;\n"
              "isspacep.global %p3, %out; isspacep.local %p4, %d3;\n"
              "@%p1 st.u8 [%out+28], 1; @!%p2 st.u8 [%out+29], 1; @%p3 st.u8 [%out+30], 1;\n"
              "@%p4 st.u8 [%out+31], 1; mov.u32 %r3, s0; mov.u32 %r4, dynamic;\n"
              "st.u32 [%out+32], %r3; st.u32 [%out+36], %r4; st.shared.u8 [dynamic], 5;\n"
              "cvta.to.shared.u64 %d5, %d4; st.u32 [%out+40], %d5; st.u32 [%out+44], %r2;",
              out, out);
    assert_int_equal(out[0], 2);
    assert_int_equal(out[1], 60);
    assert_int_equal(out[2], 3);
    assert_int_equal(out[3], 77);
    assert_int_equal(out[4], 77);
    assert_int_equal(out[5], 99);
    assert_int_equal(out[6], 99);
    assert_int_equal(out[7], 0x01010101);
    assert_int_equal(out[8] % 4, 0);
    assert_int_equal(out[9], 32);
    assert_int_equal(out[10], out[11]);
}

static void
ordered_accesses_read_and_write(void **state)
{
    static const uint64_t in[2] = {0x1122334455667788, 5};
    uint64_t out[6] = {0};

    (void)state;
    exec_code(NULL,
              "ld.volatile.global.u64 %d1, [%in]; ld.acquire.gpu.u32 %r1, [%in];\n"
              "ld.relaxed.sys.global.u16 %h1, [%in]; ld.volatile.v2.u32 {%r2, %r3}, [%in];\n"
              "fence.acq_rel.gpu; membar.gl; fence.sc.sys; fence.proxy.async;\n"
              "st.volatile.u64 [%out], %d1; st.release.gpu.u32 [%out+8], %r1;\n"
              "st.relaxed.cta.u16 [%out+16], %h1; st.volatile.v2.u32 [%out+24], {%r3, %r2};\n"
              "ld.mmio.relaxed.sys.global.u32 %r4, [%in+8]; st.u32 [%out+32], %r4;",
              in, out);
    assert_true(out[0] == in[0]);
    assert_true(out[1] == 0x55667788);
    assert_true(out[2] == 0x7788);
    assert_true(out[3] == 0x5566778811223344);
    assert_true(out[4] == 5);
}

static const char functions[] =
    ".func (.param .b32 r) twice(.param .b32 a) {\n"
    ".reg .b32 %r<3>; ld.param.u32 %r1, [a]; add.s32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }\n"
    ".func (.reg .b32 %x) plus(.reg .b32 %a, .reg .b32 %b) { add.s32 %x, %a, %b; ret; }\n"
    ".func (.param .b32 r) fib(.param .b32 a) {\n"
    ".reg .b32 %r<8>; .reg .pred %p; ld.param.u32 %r1, [a]; setp.lt.s32 %p, %r1, 2;\n"
    "@%p bra DONE; { .param .b32 x; .param .b32 y; sub.s32 %r2, %r1, 1; st.param.b32 [x], %r2;\n"
    "call.uni (y), fib, (x); ld.param.b32 %r3, [y]; }\n"
    "{ .param .b32 x; .param .b32 y; sub.s32 %r2, %r1, 2; st.param.b32 [x], %r2;\n"
    "call.uni (y), fib, (x); ld.param.b32 %r4, [y]; } add.s32 %r1, %r3, %r4;\n"
    "DONE: st.param.b32 [r], %r1; ret; }\n"
    ".func (.param .align 8 .b8 r[16]) swap(.param .align 8 .b8 a[16]) {\n"
    ".reg .b64 %d<3>; ld.param.b64 %d1, [a]; ld.param.b64 %d2, [a+8];\n"
    "st.param.b64 [r], %d2; st.param.b64 [r+8], %d1; ret; }\n"
    ".func leave() { exit; }\n"
    ".global .u64 table[2] = {twice, fib};\n";

static void
calls_pass_arguments_and_results(void **state)
{
    uint32_t out[8] = {0};

    (void)state;
    exec_code(functions,
              "{ .param .b32 x; .param .b32 y; st.param.b32 [x], 21; call (y), twice, (x);\n"
              "ld.param.b32 %r1, [y]; st.u32 [%out], %r1; }\n"
              "mov.b32 %r2, 5; call (%r3), plus, (%r2, 8); st.u32 [%out+4], %r3;\n"
              "{ .param .b32 x; .param .b32 y; st.param.b32 [x], 15; call (y), fib, (x);\n"
              "ld.param.b32 %r1, [y]; st.u32 [%out+8], %r1; }\n"
              "{ .param .align 8 .b8 x[16]; .param .align 8 .b8 y[16]; mov.b64 %d1, 3;\n"
              "st.param.b64 [x], %d1; st.param.b64 [x+8], %in; call (y), swap, (x);\n"
              "ld.param.v2.b64 {%d2, %d3}, [y]; st.b64 [%out+16], %d2; st.b64 [%out+24], %d3; }\n",
              out, out);
    assert_int_equal(out[0], 42);
    assert_int_equal(out[1], 13);
    assert_int_equal(out[2], 610);
    assert_memory_equal(&out[4], &(uint32_t *){out}, 8);
    assert_int_equal(out[6], 3);
}

static void
calls_go_through_pointers(void **state)
{
    uint32_t out[3] = {0};

    (void)state;
    exec_code(functions,
              "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
              "ld.global.u64 %d1, [table+8]; mov.u64 %d2, twice;\n"
              "{ .param .b32 x; .param .b32 y; st.param.b32 [x], 10; call (y), %d1, (x), proto;\n"
              "ld.param.b32 %r1, [y]; st.u32 [%out], %r1; }\n"
              "{ .param .b32 x; .param .b32 y; st.param.b32 [x], 10; call (y), %d2, (x), proto;\n"
              "ld.param.b32 %r1, [y]; st.u32 [%out+4], %r1; }\n",
              out, out);
    assert_int_equal(out[0], 55);
    assert_int_equal(out[1], 20);
}

static void
calls_follow_aliases_and_pass_as_many_arguments_as_there_are(void **state)
{
    uint32_t out[3] = {0};

    (void)state;
    exec_code(".func (.param .b32 r) sum(.param .b32 n, .param .align 8 .b8 v[]) {\n"
              ".reg .b32 %r<9>; .reg .b64 %d<3>; .reg .pred %p; ld.param.u32 %r1, [n];\n"
              "mov.b64 %d1, v; mov.b32 %r2, 0;\n"
              "MORE: ld.param.u32 %r3, [%d1]; add.s32 %r2, %r2, %r3; add.s64 %d1, %d1, 4;\n"
              "sub.s32 %r1, %r1, 1; setp.ne.s32 %p, %r1, 0; @%p bra MORE;\n"
              "st.param.b32 [r], %r2; ret; }\n"
              ".func (.param .b32 r) other(.param .b32 n, .param .align 8 .b8 v[]);\n"
              ".alias other, sum;",
              "{ .param .b32 n; .param .align 8 .b8 v[12]; .param .b32 r; st.param.b32 [n], 3;\n"
              "st.param.b32 [v], 10; st.param.b32 [v+4], 20; st.param.b32 [v+8], 30;\n"
              "call (r), sum, (n, v); ld.param.b32 %r1, [r]; st.u32 [%out], %r1; }\n"
              "{ .param .b32 n; .param .align 8 .b8 v[4]; .param .b32 r; st.param.b32 [n], 1;\n"
              "st.param.b32 [v], 7; call (r), other, (n, v); ld.param.b32 %r1, [r];\n"
              "st.u32 [%out+4], %r1; }",
              out, out);
    assert_int_equal(out[0], 60);
    assert_int_equal(out[1], 7);
}

static void
exit_in_a_function_ends_the_thread(void **state)
{
    uint32_t out[1] = {0};

    (void)state;
    exec_code(functions, "st.u32 [%out], 1; call leave; st.u32 [%out], 2;", out, out);
    assert_int_equal(out[0], 1);
}

/* A module with a kernel k(.param .u64 p), whose code comes from the test. */
static void
open_kernel(struct exec *e, const char *code)
{
    char text[2000];

    snprintf(
        text, sizeof(text),
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
        ".extern .func unknown(.param .b64 a);\n"
        ".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,"
        ".param .b64 e);\n.global .b8 text[8] = {104, 105, 32, 37, 100, 0};\n"
        ".entry k(.param .u64 p) { .reg .b64 %%d<9>; .reg .b32 %%r<9>; .reg .pred %%p<3>;\n"
        ".local .align 8 .b8 frame[16]; ld.param.u64 %%d0, [p];\n%s\nret; }\n",
        code);
    exec_open(e, text, EXEC_COMPILED);
}

static int
run_kernel(struct exec *e, const char *code, void *p)
{
    const struct exec_launch launch = {.params = &p, .size = sizeof(p)};

    open_kernel(e, code);
    return exec_run(e, "k", &launch);
}

static void
bad_pointers_and_addresses_trap(void **state)
{
    uint32_t memory[4] = {0};
    struct exec e;

    (void)state;
    assert_int_equal(run_kernel(&e, "proto: .callprototype _ ();\n call %d0, (), proto;", NULL),
                     HED_ESTATE);
    assert_int_equal(e.trap, HED_PTX_TRAP_CALL);
    exec_close(&e);
    assert_int_equal(run_kernel(&e, "ld.u32 %r1,\n [%d0+2];", memory), HED_ESTATE);
    assert_int_equal(e.trap, HED_PTX_TRAP_ALIGN);
    assert_int_equal(e.trap_line, 10);
    exec_close(&e);
    assert_int_equal(run_kernel(&e, "trap;", memory), HED_ESTATE);
    assert_int_equal(e.trap, HED_PTX_TRAP);
    exec_close(&e);
    assert_int_equal(run_kernel(&e, "mov.pred %p1, 0; @%p1 trap; st.u32 [%d0], 3;", memory), 0);
    assert_int_equal(memory[0], 3);
    exec_close(&e);
}

static void
functions_of_the_system_are_called(void **state)
{
    uint32_t memory[4] = {0};
    struct exec e;

    (void)state;
    assert_int_equal(
        run_kernel(&e,
                   "{ .param .b64 f; .param .b64 a; .param .b32 r; mov.u64 %d1, text;\n"
                   "cvta.global.u64 %d1, %d1; st.param.b64 [f], %d1; mov.u64 %d2, frame;\n"
                   "st.local.u32 [frame], 66; cvta.local.u64 %d2, %d2; st.param.b64 [a], %d2;\n"
                   "call.uni (r), vprintf, (f, a); ld.param.b32 %r1, [r]; st.u32 [%d0], %r1; }",
                   memory),
        0);
    assert_string_equal(e.printed, "hi %d");
    assert_int_equal((uint32_t)e.printed_args, 66);
    assert_int_equal(memory[0], 1);
    exec_close(&e);
    assert_int_equal(run_kernel(&e, "{ .param .b64 a; call unknown, (a); }", NULL), HED_ENOTSUP);
    assert_non_null(strstr(e.why.text, "unknown"));
    exec_close(&e);
}

static void
loops_that_wait_yield(void **state)
{
    uint32_t memory[4] = {0};
    struct exec e;

    (void)state;
    assert_int_equal(run_kernel(&e,
                                "AGAIN: atom.add.u32 %r1, [%d0], 1; setp.lt.s32 %p1, %r1, 999;\n"
                                "@%p1 bra AGAIN;",
                                memory),
                     0);
    assert_int_equal(memory[0], 1000);
    assert_true(e.yields >= 9);
    assert_int_equal(e.info.flags, HED_PTX_WAITS | HED_PTX_GRID);
    exec_close(&e);
    assert_int_equal(run_kernel(&e,
                                "mov.b32 %r2, 0; AGAIN: red.add.u32 [%d0], 1;\n"
                                "add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 1000; @%p1 bra AGAIN;",
                                memory),
                     0);
    assert_int_equal(memory[0], 2000);
    assert_int_equal(e.yields, 0);
    assert_int_equal(e.info.flags, HED_PTX_BLOCKS);
    exec_close(&e);
    /* As unoptimised code does. */
    assert_int_equal(run_kernel(&e,
                                "mov.u64 %d2, frame; cvta.local.u64 %d2, %d2;\n"
                                "AGAIN: atom.add.u32 %r1, [%d0], 1; st.u32 [%d2], %r1;\n"
                                "ld.u32 %r2, [%d2]; setp.lt.s32 %p1, %r2, 2999; @%p1 bra AGAIN;",
                                memory),
                     0);
    assert_int_equal(memory[0], 3000);
    assert_true(e.yields >= 9);
    exec_close(&e);
    /* A loop that counts does not wait, though it always loads the same place. */
    assert_int_equal(run_kernel(&e,
                                "mov.b32 %r2, 0; AGAIN: ld.u32 %r1, [%d0];\n"
                                "add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 1000; @%p1 bra AGAIN;",
                                memory),
                     0);
    assert_int_equal(e.yields, 0);
    exec_close(&e);
    /* Nor does one whose end was known before it began, even if that was somebody else's value. */
    memory[0] = 1000;
    assert_int_equal(run_kernel(&e,
                                "ld.volatile.u32 %r3, [%d0]; mov.b32 %r2, 0;\n"
                                "AGAIN: add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %r3;\n"
                                "@%p1 bra AGAIN; st.u32 [%d0+4], %r2;",
                                memory),
                     0);
    assert_int_equal(memory[1], 1000);
    assert_int_equal(e.yields, 0);
    exec_close(&e);
}

static void
branches_go_by_table(void **state)
{
    uint32_t in[1], out[4] = {0};

    (void)state;
    for (in[0] = 0; in[0] < 3; in[0]++)
        exec_code(NULL,
                  "T: .branchtargets A, B, C;\n ld.u32 %r1, [%in]; brx.idx %r1, T;\n"
                  "A: st.u32 [%out], 1; bra END;\n B: st.u32 [%out+4], 2; bra END;\n"
                  "C: st.u32 [%out+8], 3;\nEND:",
                  in, out);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
    assert_int_equal(out[2], 3);
}

static void
special_registers_have_the_right_values(void **state)
{
    static const char code[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".entry k(.param .u64 p) { .reg .b64 %d<5>; .reg .b32 %r<20>; .reg .pred %p0;\n"
        "ld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x; setp.ne.s32 %p0, %r0, 35; @%p0 bra END;\n"
        "mov.u32 %r1, %ctaid.x; st.u32 [%d0], %r1; mov.u32 %r1, %nctaid.x; st.u32 [%d0+4], %r1;\n"
        "mov.u32 %r1, %laneid; st.u32 [%d0+8], %r1; mov.u32 %r1, %warpid; st.u32 [%d0+12], %r1;\n"
        "mov.u32 %r1, %lanemask_le; st.u32 [%d0+16], %r1; mov.u32 %r1, %lanemask_gt;\n"
        "st.u32 [%d0+20], %r1; mov.u32 %r1, %ntid.x; st.u32 [%d0+24], %r1;\n"
        "mov.u32 %r1, %envreg1; st.u32 [%d0+28], %r1; mov.u32 %r1, %envreg2;\n"
        "st.u32 [%d0+32], %r1; mov.u32 %r1, %nclusterid.x; st.u32 [%d0+36], %r1;\n"
        "mov.u32 %r1, %dynamic_smem_size; st.u32 [%d0+40], %r1; mov.u64 %d1, %clock64;\n"
        "mov.u64 %d2, %clock64; sub.s64 %d1, %d2, %d1; st.u32 [%d0+44], %d1;\n"
        "mov.u64 %d1, %gridid; st.u32 [%d0+48], %d1; END: ret; }\n";
    uint32_t out[16] = {0};
    void *p = out;
    const struct exec_launch launch = {
        .blocks = 3, .threads = 50, .params = &p, .dynamic_shared = 256};
    struct exec e;

    (void)state;
    exec_open(&e, code, EXEC_COMPILED);
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%s", e.why.text);
    exec_close(&e);
    static const uint32_t expected[] = {2,          3,          3, 1,   0xf, 0xfffffff0, 50,
                                        0x11223344, 0x55667788, 3, 256, 1,   77};

    assert_memory_equal(out, expected, sizeof(expected));
}

static void
asynchronous_copies_are_done_at_once(void **state)
{
    static const uint32_t in[8] __attribute__((aligned(16))) = {1, 2, 3, 4, 5, 6, 7, 8};
    uint32_t out[8] __attribute__((aligned(16))) = {0};

    (void)state;
    exec_code(".shared .align 16 .b8 s[32];",
              "mov.b32 %r1, 4; cp.async.cg.shared.global [s], [%in], 16;\n"
              "cp.async.ca.shared.global [s+16], [%in+16], 8, %r1;\n"
              "cp.async.ca.shared.global [s+24], [%in+24], 8; cp.async.commit_group;\n"
              "cp.async.wait_group 0; ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [s];\n"
              "st.v4.b32 [%out], {%r1, %r2, %r3, %r4};\n"
              "ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [s+16];\n"
              "st.v4.b32 [%out+16], {%r1, %r2, %r3, %r4};",
              in, out);
    static const uint32_t expected[8] = {1, 2, 3, 4, 5, 0, 7, 8};

    assert_memory_equal(out, expected, sizeof(expected));
}

static void
refusals_name_the_instruction(void **state)
{
    struct exec e;

    (void)state;
    assert_int_equal(run_kernel(&e, "wgmma.fence.sync.aligned;", NULL), HED_ENOTSUP);
    assert_non_null(strstr(e.why.text, "wgmma.fence"));
    assert_non_null(strstr(e.why.text, "line 10"));
    exec_close(&e);
    assert_int_equal(run_kernel(&e, ".local .b8 big[1000000000000]; st.local.u8 [big], 1;", NULL),
                     HED_ENOTSUP);
    assert_non_null(strstr(e.why.text, "512 KiB"));
    exec_close(&e);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(kernel_adds_vectors),
    cmocka_unit_test(loads_extend_and_stores_truncate),
    cmocka_unit_test(vectors_and_wide_values_move),
    cmocka_unit_test(values_of_128_bits_move),
    cmocka_unit_test(mov_packs_and_unpacks),
    cmocka_unit_test(vector_registers_move_as_a_whole),
    cmocka_unit_test(constants_are_added_to_registers),
    cmocka_unit_test(every_space_has_its_memory),
    cmocka_unit_test(ordered_accesses_read_and_write),
    cmocka_unit_test(calls_pass_arguments_and_results),
    cmocka_unit_test(calls_go_through_pointers),
    cmocka_unit_test(calls_follow_aliases_and_pass_as_many_arguments_as_there_are),
    cmocka_unit_test(exit_in_a_function_ends_the_thread),
    cmocka_unit_test(bad_pointers_and_addresses_trap),
    cmocka_unit_test(functions_of_the_system_are_called),
    cmocka_unit_test(loops_that_wait_yield),
    cmocka_unit_test(branches_go_by_table),
    cmocka_unit_test(special_registers_have_the_right_values),
    cmocka_unit_test(asynchronous_copies_are_done_at_once),
    cmocka_unit_test(refusals_name_the_instruction),
};

HED_UNIT_MAIN(tests)
