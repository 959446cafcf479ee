/* Tests of the PTX parser: the kernel model that it makes. */
#include "unit/ptx/make.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
the_head_is_read(void **state)
{
    struct hed_ptx_module m;

    make_module(
        &m, ".version 8.7\r\n.target sm_90a, texmode_independent, debug\r\n.address_size 64\r\n");
    assert_int_equal(m.version_major, 8);
    assert_int_equal(m.version_minor, 7);
    assert_int_equal(m.sm, 90);
    assert_int_equal(m.suffix, 'a');
    assert_int_equal(m.options, HED_PTX_OPTION_TEXMODE_INDEPENDENT | HED_PTX_OPTION_DEBUG);
    assert_int_equal(m.address_size, 64);
    hed_ptx_module_fini(&m);
}

static void
variables_become_bytes_and_addresses(void **state)
{
    static const unsigned char halves[] = {1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0};
    struct hed_ptx_module m;

    make_module(&m, HEAD ".global .align 16 .b8 bytes[8] = {1, 0x2, 3U};\n"
                         ".visible .global .u16 two[2][4] = {{1, 2}, {3}};\n"
                         ".const .f32 pi = 3.5;\n"
                         ".extern .shared .align 16 .b8 dyn[];\n"
                         ".global .v4 .f32 vec = {0f3F800000, 1.0};\n"
                         ".global .attribute(.managed) .s32 man = -1;\n"
                         ".func f;\n"
                         ".global .u64 ptrs[4] = {generic(bytes)+4, two+6, f, 0};\n"
                         ".global .u8 part[2] = {0xff(bytes), 0xff00(bytes)};\n"
                         ".weak .global .u32 count[] = {1, 2, (1 << 4) | 3};\n"
                         ".common .global .u32 com;\n");

    assert_int_equal(var(&m, "bytes")->size, 8);
    assert_int_equal(var(&m, "bytes")->init_size, 3);
    assert_int_equal(var(&m, "bytes")->align, 16);
    assert_int_equal(var(&m, "two")->init_size, 10);
    assert_memory_equal(var(&m, "two")->init, halves, 10);
    assert_int_equal(var(&m, "two")->linkage, HED_PTX_LINKAGE_VISIBLE);
    assert_memory_equal(var(&m, "pi")->init, "\0\0\x60\x40", 4);
    assert_true(var(&m, "dyn")->unsized);
    assert_int_equal(var(&m, "dyn")->size, 0);
    assert_int_equal(var(&m, "vec")->size, 16);
    assert_memory_equal(var(&m, "vec")->init, "\0\0\x80\x3f\0\0\x80\x3f", 8);
    assert_true(var(&m, "man")->managed);
    assert_memory_equal(var(&m, "man")->init, "\xff\xff\xff\xff", 4);

    const struct hed_ptx_reloc *r = var(&m, "ptrs")->relocs;

    assert_ptr_equal(r->var, var(&m, "bytes"));
    assert_true(r->generic);
    assert_int_equal(r->addend, 4);
    r = r->next;
    assert_int_equal(r->at, 8);
    assert_int_equal(r->addend, 6);
    r = r->next;
    assert_ptr_equal(r->func, func(&m, "f"));
    assert_true(r->func->address_taken);
    assert_int_equal(var(&m, "part")->relocs->next->mask, 0xff00);
    assert_int_equal(var(&m, "count")->dims[0], 3);
    assert_int_equal(var(&m, "count")->init[8], 19);
    assert_int_equal(var(&m, "com")->linkage, HED_PTX_LINKAGE_COMMON);
    hed_ptx_module_fini(&m);
}

static void
functions_have_signatures_and_directives(void **state)
{
    struct hed_ptx_module m;

    make_module(&m, HEAD
                ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
                ".func die() .noreturn;\n"
                ".visible .entry k(.param .u64 .ptr .global .align 8 p, .param .align 4 .b8 s[12])"
                " .maxntid 128, 2 .minnctapersm 3 .reqnctapercluster 2 .maxnreg 64 {ret;}\n"
                ".func (.reg .u32 o) reg(.reg .u32 i) {mov.u32 o, i; ret;}\n"
                ".func other() {ret;}\n.alias die, other;\n");

    const struct hed_ptx_func *k = func(&m, "k");

    assert_true(k->is_entry);
    assert_int_equal(k->directives.maxntid[1], 2);
    assert_int_equal(k->directives.maxntid[2], 1);
    assert_int_equal(k->directives.reqnctapercluster[0], 2);
    assert_int_equal(k->directives.maxnreg, 64);
    assert_int_equal(k->sig.nparams, 2);
    assert_int_equal(k->sig.params->ptr_space, HED_PTX_SPACE_GLOBAL);
    assert_int_equal(k->sig.params->next->size, 12);
    assert_int_equal(k->sig.params->next->offset, 8);
    assert_int_equal(k->sig.params_size, 20);
    assert_int_equal(func(&m, "vprintf")->sig.nrets, 1);
    assert_false(func(&m, "vprintf")->has_body);
    assert_true(func(&m, "die")->sig.noreturn);
    assert_ptr_equal(func(&m, "die")->alias, func(&m, "other"));
    assert_ptr_equal(inst(func(&m, "reg"), 0)->operands[0].reg, func(&m, "reg")->sig.rets->reg);
    assert_int_equal(m.nentries, 1);
    hed_ptx_module_fini(&m);
}

static void
modifiers_are_a_set(void **state)
{
    static const char *const same[][2] = {
        {"ex2.approx.ftz.f32 %f1, %f2;", "ex2.approx.f32.ftz %f1, %f2;"},
        {"vote.sync.ballot.b32 %r1, %p1, -1;", "vote.ballot.sync.b32 %r1, %p1, -1;"},
        {"atom.add.release.gpu.u32 %r1, [%rd1], 1;", "atom.release.gpu.add.u32 %r1, [%rd1], 1;"},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r3];",
         "ldmatrix.sync.aligned.shared.x2.m8n8.b16 {%r1, %r2}, [%r3];"},
        {"ld.global.f32 %f1, [%rd1];", "ld .global\n.f32 %f1, [%rd1];"},
    };

    for (size_t i = 0; i < COUNT(same); i++) {
        struct hed_ptx_module m;
        char text[2048];

        snprintf(text, sizeof(text), "%s%s %s}\n", HEAD ".entry k() {" REGS, same[i][0],
                 same[i][1]);
        make_module(&m, text);

        struct hed_ptx_form a = *inst(func(&m, "k"), 0)->form;
        struct hed_ptx_form b = *inst(func(&m, "k"), 1)->form;

        assert_null(a.refused);
        a.text = b.text = NULL;
        assert_memory_equal(&a, &b, sizeof(a));
        hed_ptx_module_fini(&m);
    }
}

static void
forms_have_typed_fields(void **state)
{
    struct hed_ptx_module m;

    make_module(
        &m,
        KERNEL("ld.relaxed.gpu.global.L1::no_allocate.L2::128B.v4.f32 {%f1,%f2,%f3,_}, [%rd1+-16];"
               "setp.lt.and.ftz.f32 %p1|%p2, %f1, 0f00000000, !%p3;"
               "cvt.rzi.ftz.s32.f32 %r1, %f1; mad.wide.s32 %rd1, %r1, %r2, %rd2;"
               "bar.sync 0; setp.lo.u32 %p1, %r1, %r2;"
               "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4},"
               " {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f1,%f2,%f3,%f4};"
               "atom.shared::cta.cas.b32 %r1, [%r2], %r3, %r4;"
               "vadd4.u32.u32.u32.add %r1.b31, %r2.b7610, %r3, %r4; mov.u32 %r1, %ctaid.y;"));

    const struct hed_ptx_func *k = func(&m, "k");
    const struct hed_ptx_form *f = inst(k, 0)->form;

    assert_int_equal(f->op, HED_PTX_OP_LD);
    assert_int_equal(f->sem, HED_PTX_SEM_RELAXED);
    assert_int_equal(f->scope, HED_PTX_SCOPE_GPU);
    assert_int_equal(f->spaces[0], HED_PTX_SPACE_GLOBAL);
    assert_int_equal(f->vec, 4);
    assert_int_equal(f->nhints, 2);
    assert_int_equal(inst(k, 0)->operands[1].offset, -16);
    assert_int_equal(inst(k, 0)->operands[0].elems[3].kind, HED_PTX_OPERAND_SINK);
    f = inst(k, 1)->form;
    assert_int_equal(f->cmp, HED_PTX_CMP_LT);
    assert_int_equal(f->oper, HED_PTX_OPER_AND);
    assert_true(f->flags == HED_PTX_FLAG(FTZ));
    assert_true(inst(k, 1)->operands[3].negated);
    f = inst(k, 2)->form;
    assert_int_equal(f->types[0], HED_PTX_TYPE_S32);
    assert_int_equal(f->types[1], HED_PTX_TYPE_F32);
    assert_int_equal(f->round, HED_PTX_ROUND_RZI);
    assert_int_equal(inst(k, 3)->form->part, HED_PTX_PART_WIDE);
    assert_int_equal(inst(k, 4)->form->op, HED_PTX_OP_BARRIER_SYNC);
    assert_true(inst(k, 4)->form->flags == HED_PTX_FLAG(ALIGNED));
    assert_int_equal(inst(k, 5)->form->cmp, HED_PTX_CMP_LO);
    f = inst(k, 6)->form;
    assert_int_equal(f->m * 10000 + f->n * 100 + f->k, 160816);
    assert_int_equal(f->layouts[1], HED_PTX_LAYOUT_COL);
    assert_int_equal(inst(k, 7)->form->spaces[0], HED_PTX_SPACE_SHARED_CTA);
    assert_int_equal(inst(k, 8)->operands[1].sel, HED_PTX_SEL_VIDEO | 3 << 12 | 07610);
    assert_int_equal(inst(k, 9)->operands[1].sreg, HED_PTX_SREG_CTAID);
    assert_int_equal(inst(k, 9)->operands[1].sel, 2);
    hed_ptx_module_fini(&m);
}

static void
inner_names_hide_outer_ones_until_their_scope_ends(void **state)
{
    struct hed_ptx_module m;

    make_module(&m,
                KERNEL("mov.u32 %r5, 1;\n"
                       "{ .reg .f32 %r<9>; .reg .b64 x; mov.f32 %r5, 0f00000000; mov.u64 x, 2;\n"
                       "  { .reg .b32 x; mov.u32 x, 3; } mov.u64 x, 4; bra L; L: }\n"
                       "{ bra L; L: mov.u32 %r5, 5; bra M; } M: mov.u32 %r98, 6;\n"));

    const struct hed_ptx_func *k = func(&m, "k");

    assert_int_equal(inst(k, 1)->operands[0].reg->type, HED_PTX_TYPE_F32);
    assert_ptr_equal(inst(k, 2)->operands[0].reg, inst(k, 4)->operands[0].reg);
    assert_ptr_not_equal(inst(k, 2)->operands[0].reg, inst(k, 3)->operands[0].reg);
    assert_ptr_equal(inst(k, 0)->operands[0].reg, inst(k, 7)->operands[0].reg);
    assert_ptr_not_equal(inst(k, 5)->operands[0].label, inst(k, 6)->operands[0].label);
    assert_string_equal(inst(k, 8)->operands[0].label->name, "M");
    assert_int_equal(k->nlabels, 3);
    hed_ptx_module_fini(&m);
}

static void
calls_have_a_fixed_shape(void **state)
{
    struct hed_ptx_module m;

    make_module(&m, HEAD
                ".func (.param .b32 r) f(.param .b64 a) {ret;}\n.func g() {ret;}\n"
                ".entry k() {.reg .b64 %rd<3>; .reg .b32 %r<3>; .param .b32 q; .param .b64 p;\n"
                "call.uni (q), f, (p); call g; call g, ();\n"
                "proto : .callprototype (.param .b32 _) _ (.param .b64 _);\n"
                "mov.u64 %rd1, f; call (q), %rd1, (p), proto;\n"
                "T: .branchtargets A, B; brx.idx %r1, T; A: B: ret;}\n");

    const struct hed_ptx_func *k = func(&m, "k");
    const struct hed_ptx_inst *i = inst(k, 0);

    assert_int_equal(i->noperands, 3);
    assert_ptr_equal(i->operands[1].func, func(&m, "f"));
    assert_int_equal(i->operands[0].count, 1);
    assert_int_equal(inst(k, 1)->operands[2].count, 0);
    i = inst(k, 4);
    assert_int_equal(i->noperands, 4);
    assert_int_equal(i->operands[3].kind, HED_PTX_OPERAND_TABLE);
    assert_int_equal(i->operands[3].table->sig.nparams, 1);
    assert_true(k->calls_indirectly);
    assert_true(func(&m, "f")->address_taken);
    assert_false(func(&m, "g")->address_taken);
    i = inst(k, 5);
    assert_int_equal(i->operands[1].table->count, 2);
    assert_string_equal(i->operands[1].table->targets[1].label->name, "B");
    hed_ptx_module_fini(&m);
}

static void
huge_ranges_cost_nothing(void **state)
{
    struct hed_ptx_module m;

    make_module(&m,
                HEAD ".entry k() {.reg .b32 %r<1000000000>; .reg .b32 %r1<5>; .reg .b32 %s1<3>;\n"
                     "mov.u32 %r999999999, %r7; mov.u32 %s12, 0;}\n");
    assert_int_equal(func(&m, "k")->nregs, 3);
    assert_true(m.arena.used < 100000);
    hed_ptx_module_fini(&m);
}

static void
unknown_instructions_refuse_kernels_only(void **state)
{
    struct hed_ptx_module m;

    make_module(&m,
                HEAD ".func bad() {\n frobnicate.b32 %x, {1, [y]};\n}\n.func mid() {call bad;}\n"
                     ".entry one() {call mid; ret;}\n.entry two() {ret;}\n"
                     ".entry three() {.reg .b32 %r<3>; add.foo.s32 %r1, %r2, 3; ret;}\n"
                     ".entry four() {.reg .b32 %r<3>; mul.s32 %r1, %r2, 3; ret;}\n");
    assert_non_null(func(&m, "one")->refused);
    assert_ptr_equal(func(&m, "one")->refused->func, func(&m, "bad"));
    assert_int_equal(func(&m, "one")->refused->line, 5);
    assert_string_equal(func(&m, "one")->refused->text, "frobnicate.b32 %x, {1, [y]}");
    assert_null(func(&m, "two")->refused);
    assert_string_equal(func(&m, "three")->refused->why, "Unknown modifier '.foo'");
    assert_non_null(func(&m, "four")->refused);
    assert_int_equal(m.nrefused, 5);
    hed_ptx_module_fini(&m);
}

static void
pointers_to_functions_do_not_spread_refusals(void **state)
{
    struct hed_ptx_module m;

    make_module(&m, HEAD ".func bad() {frobnicate;}\n.func mid() {call bad;}\n"
                         ".global .u64 fns[2] = {bad, mid};\n"
                         ".entry one() {.reg .b64 %d; ld.global.u64 %d, [fns];\n"
                         "proto: .callprototype _ (); call %d, proto; ret;}\n"
                         ".entry two() {.reg .b64 %d; ld.global.u64 %d, [fns];\n"
                         "proto: .callprototype _ (); call %d, proto; call mid; ret;}\n");
    assert_true(func(&m, "bad")->address_taken);
    assert_non_null(func(&m, "mid")->refused);
    assert_null(func(&m, "one")->refused);
    assert_ptr_equal(func(&m, "two")->refused->func, func(&m, "bad"));
    assert_int_equal(m.nrefused, 3);
    hed_ptx_module_fini(&m);
}

static void
source_lines_stay_with_instructions(void **state)
{
    struct hed_ptx_module m;

    make_module(&m, HEAD ".file 1 \"a.cu\"\n.entry k() {\n.loc 1 10 5\nret;\n"
                         ".loc 1 20 3, function_name $L__i0, inlined_at 1 10 5\nexit;}\n"
                         ".section .debug_str { $L__i0: .b8 1,2,3\n.b8 0 }\n");
    assert_int_equal(inst(func(&m, "k"), 0)->loc->line, 10);
    assert_int_equal(inst(func(&m, "k"), 1)->loc->line, 20);
    assert_int_equal(inst(func(&m, "k"), 1)->stmt.line, 9);
    hed_ptx_module_fini(&m);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_head_is_read),
    cmocka_unit_test(variables_become_bytes_and_addresses),
    cmocka_unit_test(functions_have_signatures_and_directives),
    cmocka_unit_test(modifiers_are_a_set),
    cmocka_unit_test(forms_have_typed_fields),
    cmocka_unit_test(inner_names_hide_outer_ones_until_their_scope_ends),
    cmocka_unit_test(calls_have_a_fixed_shape),
    cmocka_unit_test(huge_ranges_cost_nothing),
    cmocka_unit_test(unknown_instructions_refuse_kernels_only),
    cmocka_unit_test(pointers_to_functions_do_not_spread_refusals),
    cmocka_unit_test(source_lines_stay_with_instructions),
};

HED_UNIT_MAIN(tests)
