/* What instructions ask for: kernel/ptx/meaning. What is refused is in refusals.c. */
#include "make.h"

#include "base/device_calls.h"
#include "kernel/ptx/meaning/meaning.h"

/* The meaning of the first instruction of a kernel. */
static void
find_meaning(struct hed_ptx_module *m, const char *before, const char *code,
             struct hed_ptx_meaning *out)
{
    const struct hed_ptx_func *k;
    struct hed_why why;
    char text[2048];

    snprintf(text, sizeof(text), "%s%s\n.visible .entry k() {\n%s%s\n}\n", HEAD, before, REGS,
             code);
    make_module(m, text);
    k = func(m, "k");
    if (hed_ptx_get_meaning(k, inst(k, 0), out, &why) != 0)
        fail_msg("%s: %s", code, why.text);
}

static bool
is_register(const struct hed_ptx_operand *o, const char *name)
{
    return o->kind == HED_PTX_OPERAND_REG && strcmp(o->reg->name, name) == 0;
}

/* Where coordinates, level, gradients and offset go is the runtime's order: hed_rt_texture(). */
static void
a_texture_has_its_coordinates_in_the_order_of_the_runtime(void **state)
{
    struct hed_ptx_module m;
    struct hed_ptx_meaning x;
    const struct hed_ptx_texture *t = &x.texture;

    (void)state;
    find_meaning(&m, "",
                 "tex.level.a2d.v4.f32.f32 {%f1, _, %f3, %f4}|%p1, [%rd1, {%r1, %f5, %f6, %f7}], "
                 "%f8, {%r2, %r3};",
                 &x);
    assert_true(is_register(&t->object, "%rd1"));
    assert_true(is_register(&t->in[0], "%r1"));
    assert_true(is_register(&t->in[1], "%f5"));
    assert_true(is_register(&t->in[2], "%f6"));
    assert_int_equal(t->in[3].kind, HED_PTX_OPERAND_SINK);
    assert_true(is_register(&t->in[4], "%f8"));
    for (unsigned i = 5; i < 11; i++)
        assert_int_equal(t->in[i].kind, HED_PTX_OPERAND_SINK);
    assert_true(is_register(&t->in[11], "%r2"));
    assert_true(is_register(&t->in[12], "%r3"));
    assert_int_equal(t->in[13].kind, HED_PTX_OPERAND_SINK);
    assert_int_equal(t->count, 4);
    assert_true(is_register(&t->data[0], "%f1"));
    assert_int_equal(t->data[1].kind, HED_PTX_OPERAND_SINK);
    assert_true(is_register(t->resident, "%p1"));
    assert_false(t->access.is_store);
    hed_ptx_module_fini(&m);
}

static void
a_matrix_has_words_of_all_its_operands(void **state)
{
    struct hed_ptx_module m;
    struct hed_ptx_meaning x;

    (void)state;
    find_meaning(&m, "",
                 "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, "
                 "{%fd5, %fd6};",
                 &x);
    assert_string_equal(x.matrix.name, "hed_ptx_mma");
    assert_null(x.matrix.address);
    assert_int_equal(x.matrix.nin, 3);
    assert_true(x.matrix.in[2].is_wide);
    assert_int_equal(x.matrix.words_in, 8);
    assert_int_equal(x.matrix.words_out, 4);
    hed_ptx_module_fini(&m);

    /* The address, and the distance of rows that is not given. */
    find_meaning(&m, "",
                 "wmma.store.d.sync.aligned.row.m16n16k16.f32 [%rd1], "
                 "{%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8};",
                 &x);
    assert_string_equal(x.matrix.name, "hed_ptx_wmma_store");
    assert_ptr_equal(x.matrix.address, &inst(func(&m, "k"), 0)->operands[0]);
    assert_int_equal(x.matrix.in[0].operand.bits, 16);
    assert_int_equal(x.matrix.words_in, 2 + 1 + 8);
    assert_int_equal(x.matrix.words_out, 0);
    hed_ptx_module_fini(&m);
}

static void
a_call_says_whom_it_calls(void **state)
{
    static const struct {
        const char *before, *code;
        int kind;
        unsigned number;
    } rows[] = {
        {".func f { ret; }", "call f;", HED_PTX_CALLS_FUNCTION, 0},
        {"", "call %rd1, p; p: .callprototype _ ();", HED_PTX_CALLS_POINTER, 0},
        {".func free(.param .b64 a);", "call free, (%rd1);", HED_PTX_CALLS_BUILTIN, HED_PTX_FREE},
        {".func (.param .b32 r) cudaGetLastError;", "call (%r1), cudaGetLastError;",
         HED_PTX_CALLS_DEVICE, HED_DEVICE_GET_LAST_ERROR},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hed_ptx_module m;
        struct hed_ptx_meaning x;

        find_meaning(&m, rows[i].before, rows[i].code, &x);
        assert_int_equal(x.callee.kind, rows[i].kind);
        assert_int_equal(x.callee.number, rows[i].number);
        assert_int_equal(x.callee.sig != NULL, x.callee.kind <= HED_PTX_CALLS_POINTER);
        hed_ptx_module_fini(&m);
    }
}

/* Where the compiler asks, it has already refused the kernel because of the pointer. */
static void
a_call_through_a_pointer_needs_a_prototype(void **state)
{
    struct hed_ptx_module m;
    struct hed_ptx_meaning x;
    struct hed_why why;

    (void)state;
    make_module(&m, KERNEL("call %rd1, t; t: .calltargets;"));
    assert_int_equal(hed_ptx_get_meaning(func(&m, "k"), inst(func(&m, "k"), 0), &x, &why),
                     HED_ENOTSUP);
    assert_string_equal(why.text, "an indirect call needs a prototype");
    hed_ptx_module_fini(&m);
}

static void
a_copy_takes_all_bytes_unless_it_says_otherwise(void **state)
{
    static const struct {
        const char *code;
        bool takes, is_predicate;
    } rows[] = {
        {"cp.async.ca.shared.global [%rd1], [%rd2], 8;", false, false},
        {"cp.async.ca.shared.global [%rd1], [%rd2], 8, 8;", false, false},
        {"cp.async.ca.shared.global [%rd1], [%rd2], 8, 4;", true, false},
        {"cp.async.ca.shared.global [%rd1], [%rd2], 8, %r1;", true, false},
        {"cp.async.ca.shared.global [%rd1], [%rd2], 8, %p1;", true, true},
        {"cp.async.cg.shared.global.L2::cache_hint [%rd1], [%rd2], 16, %rd3;", false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hed_ptx_module m;
        struct hed_ptx_meaning x;

        find_meaning(&m, "", rows[i].code, &x);
        assert_int_equal(x.copy.take != NULL, rows[i].takes);
        assert_int_equal(x.copy.take_is_predicate, rows[i].is_predicate);
        hed_ptx_module_fini(&m);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_texture_has_its_coordinates_in_the_order_of_the_runtime),
    cmocka_unit_test(a_matrix_has_words_of_all_its_operands),
    cmocka_unit_test(a_call_says_whom_it_calls),
    cmocka_unit_test(a_call_through_a_pointer_needs_a_prototype),
    cmocka_unit_test(a_copy_takes_all_bytes_unless_it_says_otherwise),
};

HED_UNIT_MAIN(tests)
