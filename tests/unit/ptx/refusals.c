/* What both tiers refuse: by the same words, since they ask kernel/ptx/meaning. */
#include "harness/unit.h"

#include "base/buf.h"
#include "kernel/ptx/interp/interp.h"
#include "ptx/exec/harness.h"

/* `before` comes before the kernel; NULL is nothing. */
struct row {
    const char *why, *code, *before;
};

static const struct row rows[] = {
    /* values */
    {"the address of a label is not supported", "mov.u64 %d1, DONE;", NULL},
    {"an operand of this kind has no value", "cvta.to.global.u64 %d1, DONE;", NULL},
    {"an operand of this kind has no value", "mbarrier.test_wait.shared.b64 %p1, [bar], [bar];",
     NULL},
    {"this type has no constants", "mov.b16 %h1, 0f3f800000;", NULL},
    {"the table of lop3 must be a constant", "lop3.b32 %r1, %r2, %r3, %r4, %r5;", NULL},
    {"this conversion is not supported", "cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;", NULL},
    {"this conversion is not supported", "cvt.rn.f16x2.f32 %r1, %f1;", NULL},
    {"this conversion is not supported", "cvt.rn.f32.e4m3x2 %f1, %h1;", NULL},
    {"only integers of 32 bits can be packed, into 8 or 16 bits",
     "cvt.pack.sat.s32.s32 %r1, %r2, %r3;", NULL},
    {"this comparison does not exist for integers", "setp.num.s32 %p1, %r1, %r2;", NULL},
    {"this comparison does not exist for floats", "setp.lo.f32 %p1, %f1, %f2;", NULL},
    {"this comparison does not exist for floats", "set.hs.u32.f16x2 %r1, %r2, %r3;", NULL},
    {"comparisons cannot be combined with this operation", "setp.eq.popc.s32 %p1, %r1, %r2, %p2;",
     NULL},
    /* memory */
    {"variable far lies in the space .local, which is not supported", "ld.local.u32 %r1, [far];",
     ".local .u32 far;"},
    {"variable far lies in the space .local, which is not supported",
     "st.local.u32 [near], 0; mov.u64 %d1, far;", ".local .u32 far;"},
    {"this operation does not exist for this type", "atom.add.u8 %c1, [%d1], %c2;", NULL},
    {"this operation does not exist for this type", "atom.min.f32 %f1, [%d1], %f2;", NULL},
    {"this operation does not exist for this type", "atom.and.b128 %q1, [%d1], %q2;", NULL},
    {"this operation does not exist for this type", "red.xor.f64 [%d1], %g1;", NULL},
    {"red has no cas", "red.cas.b32 [%d1], %r1;", NULL},
    {"a copy of 12 bytes is not supported", "cp.async.ca.shared.global [bar], [%d1], 12;", NULL},
    {"this kind of copy is not supported",
     "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d1], [bar], 16, %h1;", NULL},
    {"an alignment of 24 bytes is not supported", "alloca.u64 %d1, %d2, 24;", NULL},
    {"function k: the variables of a thread take more than 512 KiB", ".local .b8 large[524289];",
     NULL},
    /* threads together */
    {"this mode is not supported", "shfl.sync.all.b32 %r1, %r2, 1, 31, -1;", NULL},
    {"this mode is not supported", "vote.sync.up.b32 %r1, %p1, -1;", NULL},
    {"this reduction is not supported", "redux.sync.inc.u32 %r1, %r2, -1;", NULL},
    {"this reduction is not supported", "barrier.red.xor.pred %p1, 0, %p2;", NULL},
    /* matrices */
    {"matrices of this type are not supported",
     "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m3.f32 "
     "{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};",
     NULL},
    {"only 8 by 8 matrices of 16 bits are supported",
     "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [bar];", NULL},
    {"fragments of this type or shape are not supported",
     "wmma.load.a.sync.aligned.row.m64n8k16.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];",
     NULL},
    {"the destination is not a register", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {7}, [bar];",
     NULL},
    /* textures and surfaces */
    {"samplers apart from textures are not supported",
     "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, %d2, {%r1, %r2}];", NULL},
    {"this is no texture or surface",
     "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [counter, {%r1, %r2}];", NULL},
    {"this geometry is not supported",
     "tex.4d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1, %r2, %r3, %r4}];", NULL},
    {"too few coordinates", "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1}];", NULL},
    {"too few coordinates",
     "tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%d1, {%f1, %f2}], "
     "{%f1, %f2}, {%f3};",
     NULL},
    {"comparisons of textures are not supported",
     "tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1, %r2}], %f5;", NULL},
    {"textures of this type are not supported",
     "tex.2d.v4.s16.s32 {%h1, %h2, %h3, %h4}, [%d1, {%r1, %r2}];", NULL},
    {"this access to a surface is not supported", "suld.p.2d.b32.trap %r1, [%d1, {%r1, %r2}];",
     NULL},
    {"this operation does not exist for this type",
     "sured.p.xor.2d.b32.trap [%d1, {%r1, %r2}], %r3;", NULL},
    /* calls */
    {"function gone is declared but not defined", "call gone;", ".func gone;"},
    {"argument pout is not a variable of this function", "call takes, (pout);",
     ".func takes(.param .u64 a) { ret; }"},
    {"malloc does not take these arguments", "call malloc, (%d1, %d2);",
     ".func malloc(.param .b64 a, .param .b64 b);"},
    {"cudaMalloc of the device does not take these arguments", "call cudaMalloc;",
     ".func cudaMalloc;"},
    /* what is never done, and what is no instruction */
    {"this instruction cannot be run", "multimem.ld_reduce.sys.global.min.u64 %d2, [%d1];", NULL},
};

/* The reason of both tiers. */
static void
refuse(const struct row *r, struct hed_why *baseline, struct hed_why *compiled)
{
    static const char form[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".global .u32 counter; .shared .b64 bar;\n%s\n"
        ".visible .entry k(.param .u64 pout) {\n"
        ".reg .pred %%p<10>; .reg .b16 %%h<20>; .reg .b32 %%r<40>; .reg .b64 %%d<40>;\n"
        ".reg .b8 %%c<4>; .reg .b128 %%q<4>; .reg .f32 %%f<20>; .reg .f64 %%g<20>;\n"
        ".local .u32 near;\n"
        "%s\nDONE: ret; }\n";
    struct hed_interp *program;
    struct hed_buf object;
    char text[4096];
    struct exec e;
    int err;

    snprintf(text, sizeof(text), form, r->before ? r->before : "", r->code);
    exec_open(&e, text, EXEC_COMPILED);

    const struct hed_ptx_func *k = e.module.funcs;

    while (!k->is_entry)
        k = k->next;
    err = hed_interp_create(&e.module, k, &program, baseline);
    if (err != HED_ENOTSUP)
        fail_msg("the baseline tier gives %d: %s", err, r->code);
    hed_buf_init(&object, 64 << 20);
    err = hed_ptx_compile(&e.module, k, &e.options, &object, compiled);
    if (err != HED_ENOTSUP)
        fail_msg("the compiler gives %d: %s", err, r->code);
    hed_buf_fini(&object);
    exec_close(&e);
}

static void
both_tiers_refuse_the_same_by_the_same_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hed_why baseline, compiled;

        refuse(&rows[i], &baseline, &compiled);
        assert_string_equal(compiled.text, baseline.text);
        if (strncmp(baseline.text, rows[i].why, strlen(rows[i].why)) != 0)
            fail_msg("expected %s, got %s", rows[i].why, baseline.text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(both_tiers_refuse_the_same_by_the_same_words),
};

HED_UNIT_MAIN(tests)
