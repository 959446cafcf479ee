/* Tests of the PTX printer: printed text parses to the same model, and single instructions. */
#include "unit/ptx/make.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Prints, parses and prints again: both texts are the same. Returns the text. */
static void
round_trip(const char *text, struct hed_buf *out)
{
    struct hed_ptx_module m;
    struct hed_ptx_module again;
    struct hed_buf second;

    make_module(&m, text);
    hed_buf_init(out, 1 << 20);
    hed_buf_init(&second, 1 << 20);
    hed_ptx_print(&m, out);
    make_module(&again, hed_buf_cstr(out));
    hed_ptx_print(&again, &second);
    assert_string_equal(hed_buf_cstr(out), hed_buf_cstr(&second));
    assert_int_equal(m.ninsts, again.ninsts);
    assert_int_equal(m.nrefused, again.nrefused);
    hed_buf_fini(&second);
    hed_ptx_module_fini(&again);
    hed_ptx_module_fini(&m);
}

/* What ptxas accepts beyond the manual becomes plain instructions, which are printed. */
static void
sums_and_vectors_come_out_plain(void **state)
{
    static const char *const lines[] = {
        ".reg .b64 %__new",    "add.s64 %__new",
        ", %rd2, 8;",          "mov.b64 %rd3, {v.x, v.y, v.z, v.w};",
        "mov.u16 v.x, %rs1;",  "@%p1 mov.u16 v.w, 4;",
        "mov.u32 %r1, %__new",
    };
    struct hed_buf out;

    (void)state;
    round_trip(KERNEL(".reg .v4 .u16 v; st.u64 [%rd1], %rd2+8; mov.b64 %rd3, v;\n"
                      "@%p1 mov.v4.u16 v, {%rs1, 2, 3, 4}; mov.v4.u16 v, {%rs1, 2, 3, 4};\n"
                      "mov.v2.u32 {%r1, %r2}, {%r2, %r1};"),
               &out);
    for (size_t i = 0; i < COUNT(lines); i++) {
        if (!strstr(hed_buf_cstr(&out), lines[i]))
            fail_msg("no %s in\n%s", lines[i], hed_buf_cstr(&out));
    }
    hed_buf_fini(&out);
}

/* Instructions that are printed as they were written. */
static void
instructions_come_out_as_they_went_in(void **state)
{
    static const char *const rows[] = {
        "@!%p1 add.sat.s32 %r1, %r2, -5;",
        "mov.b64 {%r1, _}, %rd1;",
        "mov.u32 %r1, %tid.x;",
        "mov.f32 %f1, 0f3F800000;",
        "mov.f64 %fd1, 0d3FF0000000000000;",
        "mov.b128 %q1, {%rd1, %rd2};",
        "mov.pred %p1, 0;",
        "ld.param.u64 %rd1, [a];",
        "ld.global.nc.L1::no_allocate.v2.b64 {%rd1, %rd2}, [%rd3+-8];",
        "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
        "st.shared.v4.u8 [%r1+4], {%rs1, %rs2, %rs3, %rs4};",
        "st.volatile.global.u32 [16], 1;",
        "setp.lt.or.f32 %p1|%p2, %f1, %f2, !%p3;",
        "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;",
        "vote.sync.any.pred %p1, !%p2, %r1;",
        "match.all.sync.b64 %r1|%p1, %rd1, -1;",
        "bar.red.popc.u32 %r1, 0, %p1;",
        "barrier.red.or.pred %p1, 0, 64, !%p2;",
        "lop3.b32 %r1, %r2, %r3, %r4, 128;",
        "prmt.b32.f4e %r1, %r2, %r3, 5;",
        "atom.global.cas.b64 %rd1, [%rd2], %rd3, %rd4;",
        "red.shared.add.f32 [%r1], %f1;",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];",
        "tex.level.1d.v4.s32.f32 {%r1, %r2, %r3, %r4}, [%rd1, {%f1}], %f2;",
        "sust.b.2d.v2.b32.trap [%rd1, {%r1, %r2}], {%r3, %r4};",
        "cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16, %r2;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, "
        "[%r3];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], "
        "[%rd1, {%r2, %r3}], [%r4];",
        "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2, 100;",
        "mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%r1], 64;",
        "multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];",
        "wgmma.fence.sync.aligned;",
        "tcgen05.wait::ld.sync.aligned;",
        "elect.sync %r1|%p1, -1;",
        "fence.proxy.async.shared::cta;",
        "fence.acq_rel.gpu;",
        "vabsdiff4.u32.u32.u32.add %r1, %r2, %r3, %r4;",
        "vadd.s32.u32.s32.sat %r1, %r2.b0, %r3.h1;",
        "vmad.s32.s32.u32.shr7 %r1, %r2.h0, -%r3.b3, %r4;",
        "cvt.rn.satfinite.e4m3x2.f32 %rs1, %f1, %f2;",
        "cvt.pack.sat.s8.s32.b32 %r1, %r2, %r3, %r4;",
        "isspacep.shared %p1, %rd1;",
        "mapa.shared::cluster.u32 %r1, %r2, 1;",
        "createpolicy.fractional.L2::evict_last.b64 %rd1, 0f3F800000;",
        "griddepcontrol.launch_dependents;",
        "nanosleep.u32 20;",
        "exit;",
    };
    struct hed_buf line;

    hed_buf_init(&line, 4096);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hed_ptx_module m;
        char text[2048];

        snprintf(text, sizeof(text), "%s%s}\n", HEAD ".entry k(.param .u64 a) {" REGS, rows[i]);
        make_module(&m, text);
        if (func(&m, "k")->refused)
            fail_msg("%s: %s", rows[i], func(&m, "k")->refused->why);
        hed_buf_reset(&line);
        hed_ptx_print_inst(inst(func(&m, "k"), 0), &line);
        assert_string_equal(hed_buf_cstr(&line), rows[i]);
        hed_ptx_module_fini(&m);
    }
    hed_buf_fini(&line);
}

static void
modules_survive_printing_and_parsing(void **state)
{
    static const char text[] =
        ".version 8.3\n.target sm_90a, texmode_independent\n.address_size 64\n"
        ".file 1 \"a.cu\"\n.pragma \"nounroll\";\n"
        ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
        ".global .align 8 .u64 t[2][2] = {{1}, {generic(t)+8, 3}};\n"
        ".visible .const .v2 .f32 c[2] = {{1.0, 2.0}, {3.0}};\n"
        ".global .attribute(.managed, .unified(1, 2)) .s32 man = -1;\n"
        ".extern .shared .align 16 .b8 dyn[];\n"
        ".func (.param .align 8 .b8 r[16]) f(.param .b64 a) {.reg .b64 %rd<2>;\n"
        "ld.param.b64 %rd1, [a]; st.param.b64 [r+8], %rd1; ret; }\n"
        ".visible .entry k(.param .u64 .ptr .global .align 16 a) .reqntid 32 .explicitcluster\n"
        "{ .reg .pred %p<2>; .reg .b64 %rd<4>, x; .reg .v4 .f32 v; .reg .f32 %f<2>;\n"
        ".local .align 4 .b8 depot[16]; .shared .u32 s; .pragma \"nounroll\";\n.loc 1 2 3\n"
        "{ .param .align 8 .b8 q[16]; .param .b64 p; st.param.b64 [p], 1; call.uni (q), f, (p); }\n"
        "L: @%p1 bra L; mov.f32 %f1, v.x; ld.global.v4.f32 v, [%rd1];\n"
        "P: .callprototype _ (.param .b64 _) .noreturn; call %rd1, (a), P;\n"
        "unknown.thing %rd1, [%rd2] ; cvta.local.u64 %rd1, depot+4; ret; }\n";
    struct hed_buf out;

    round_trip(text, &out);
    assert_non_null(strstr(hed_buf_cstr(&out), "unknown.thing %rd1, [%rd2] ;"));
    assert_non_null(strstr(hed_buf_cstr(&out), "= {{1, 0}, {generic(t)+8, 3}};"));
    hed_buf_fini(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_and_vectors_come_out_plain),
    cmocka_unit_test(instructions_come_out_as_they_went_in),
    cmocka_unit_test(modules_survive_printing_and_parsing),
};

HED_UNIT_MAIN(tests)
