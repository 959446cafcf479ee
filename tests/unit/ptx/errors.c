/* Tests of the PTX parser: what it reports as wrong, where, and how it continues. */
#include "unit/ptx/make.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct row {
    const char *text;
    uint32_t line, column; /* of the first error */
    const char *reason;
};

#define BODY(text) KERNEL(text "\n")
#define MISMATCH(op) "Arguments mismatch for instruction '" op "'"

static void
check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hed_ptx_module m;

        hed_ptx_module_init(&m, HED_PTX_CEILING);
        if (hed_ptx_parse(&m, rows[i].text, strlen(rows[i].text)) != HED_EFORMAT)
            fail_msg("no error in:\n%s", rows[i].text);
        if (m.errors->line != rows[i].line || m.errors->column != rows[i].column ||
            strcmp(m.errors->text, rows[i].reason) != 0)
            fail_msg("line %u, column %u: %s\nin:\n%s", m.errors->line, m.errors->column,
                     m.errors->text, rows[i].text);
        hed_ptx_module_fini(&m);
    }
}

static void
operands_are_checked(void **state)
{
    static const struct row rows[] = {
        {BODY("add.f32 %f1, %f2, 1;"), 6, 1, MISMATCH("add")},
        {BODY("add.s32 %r1, %f1, %r2;"), 6, 1, MISMATCH("add")},
        {BODY("add.s32 %r1, %rd1, %r2;"), 6, 1, MISMATCH("add")},
        {BODY("add.s32 %r1, %r2, 1.5;"), 6, 1, MISMATCH("add")},
        {BODY("add.s32 %r1, %r2;"), 6, 1, MISMATCH("add")},
        {BODY("add.s32 %r1, %r2, %r3, %r4;"), 6, 1, MISMATCH("add")},
        {BODY("add.s32 1, %r2, %r3;"), 6, 1, MISMATCH("add")},
        {BODY("add.s32 %r1, %r2, [%r3];"), 6, 1, MISMATCH("add")},
        {BODY("mad.lo.u32 %r1, %r2, %r3, %tid.x;"), 6, 1,
         "Special register argument not allowed for instruction 'mad'"},
        {BODY("ld.global.v4.f32 {%f1, %f2}, [%rd1];"), 6, 1, MISMATCH("ld")},
        {BODY("ld.global.f32 %f1, [%f2];"), 6, 1, "Illegal address operand of instruction 'ld'"},
        {BODY("ld.global.u64 %rd1, [a];"), 6, 1,
         "State space mismatch between instruction and address in instruction 'ld'"},
        {BODY("st.global.u64 [%rd1], %r1;"), 6, 1, MISMATCH("st")},
        {BODY("mov.b64 %rd1, {%r1, %r2, %r3};"), 6, 1, "Illegal vector size in instruction 'mov'"},
        {BODY("mov.b64 %rd1, {%r1, %rs2};"), 6, 1, MISMATCH("mov")},
        {BODY(".reg .v2 .b32 v; mov.u64 %rd1, v;"), 6, 18, MISMATCH("mov")},
        {BODY(".reg .v2 .b32 v; mov.v4.b32 v, v;"), 6, 33, MISMATCH("mov")},
        {BODY("st.f32 [%rd1], %f1+1;"), 6, 19, MISMATCH("st")},
        {BODY("mov.u32 %r1+1, %r2;"), 6, 12, "Parsing error near '+': syntax error"},
        {BODY("st.u64 [%rd1], %rd2-1;"), 6, 20, "Parsing error near '-': syntax error"},
        {BODY("setp.eq.s32 %p1|%r2, %r1, %r3;"), 6, 1,
         "Predicate output expected for instruction 'setp'"},
        {BODY("setp.eq.s32 %p1, %r1, %r3, %p2;"), 6, 1,
         "Boolean operation is required for instruction 'setp'"},
        {BODY("and.b32 %r1, 1, %p1;"), 6, 1, MISMATCH("and")},
        {BODY("shl.b32 %r1, %r2, %rd1;"), 6, 1, MISMATCH("shl")},
        {BODY("  @%r1 bra X; X:"), 6, 4, "Predicate expression expected"},
        {BODY("shfl.sync.up.b32 %r1, %r2, 1, 2;"), 6, 1, MISMATCH("shfl")},
        {BODY("atom.global.cas.b32 %r1, [%rd1], 3;"), 6, 1, MISMATCH("atom")},
        {BODY("atom.global.add.u32 %r1, [%rd1], 3, 4;"), 6, 1, MISMATCH("atom")},
        {BODY("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2}, "
              "{%r3,%r4}, {%f1,%f2,%f3,%f4};"),
         6, 1, MISMATCH("mma")},
    };

    check_rows(rows, COUNT(rows));
}

static void
names_are_checked(void **state)
{
    static const struct row rows[] = {
        {BODY("add.s32 %r1, %r99, %r1;"), 6, 14, "Unknown symbol '%r99'"},
        {BODY("bra NOWHERE;"), 6, 5, "Unknown symbol 'NOWHERE'"},
        {BODY("{ L: } bra L;"), 6, 12, "Unknown symbol 'L'"},
        {BODY("L: L: ret;"), 6, 4, "Duplicate definition of 'L'"},
        {BODY(".reg .b32 x; .reg .f32 x;"), 6, 24, "Duplicate definition of 'x'"},
        {BODY(".reg .b32 %r<3>;"), 6, 11, "Duplicate definition of '%r<3>'"},
        {BODY("call nobody;"), 6, 6, "Unknown symbol 'nobody'"},
        {HEAD ".global .u32 x;\n.global .u64 x;\n", 5, 14, "Duplicate definition of 'x'"},
        {HEAD ".entry k() {ret;}\n.entry k() {ret;}\n", 5, 8, "Duplicate definition of 'k'"},
        {HEAD ".global .u64 p = nothing;\n", 4, 18, "Unknown symbol 'nothing'"},
    };

    check_rows(rows, COUNT(rows));
}

static void
syntax_is_checked(void **state)
{
    static const struct row rows[] = {
        {"", 1, 1, "Missing .version directive"},
        {".version 8.0\n", 1, 1, "Missing .target directive"},
        {HEAD "entry k() {}", 4, 1, "Parsing error near 'entry': syntax error"},
        {HEAD ".entry k( {}", 4, 11, "Parsing error near '{': syntax error"},
        {HEAD ".global .u32 x", 4, 15, "Parsing error near end of file: syntax error"},
        {HEAD ".global x;", 4, 9, "Parsing error near 'x': syntax error"},
        {HEAD ".global .u32 x[2] = {1, 2, 3};", 4, 28, "Too many initializers for 'x'"},
        {HEAD ".global .align 3 .u32 x;", 4, 18, "Illegal alignment: 3"},
        {HEAD ".global .u32 x = 1 / 0;", 4, 23, "Division by zero in a constant expression"},
        {HEAD ".target sm_banana", 4, 9, "Unknown target 'sm_banana'"},
        {HEAD ".entry k() { ret; ", 4, 19, "Parsing error near end of file: syntax error"},
        {BODY("add.s32 %r1 %r2, 3;"), 6, 13, "Parsing error near '%r2': syntax error"},
        {BODY("ret"), 7, 1, "Parsing error near '}': syntax error"},
        {BODY("mov.u32 %r1, 0x;"), 6, 14, "Parsing error near '0x': syntax error"},
        {BODY("mov.u32 %r1, \"a\";"), 6, 14, "Parsing error near 'a': syntax error"},
    };

    check_rows(rows, COUNT(rows));
}

static void
parsing_continues_after_an_error(void **state)
{
    static const uint32_t lines[] = {6, 7, 9, 9, 9, 10, 11, 15};
    static const char text[] =
        KERNEL("add.s32 %r1, %r2;\n"
               "mov.b64 %rd1, {%r1 %r2};\n"
               "add.s32 %r1, %r2, %r3;\n"
               "mov.u32 %r1 %r2, {; bra; bar.sync 0 }\n") ".func g( {\n"
                                                          "ret; }\n.func h() {\nret;\nbra X;\n}\n";
    struct hed_ptx_module m;
    struct hed_buf log;
    size_t n = 0;

    hed_ptx_module_init(&m, HED_PTX_CEILING);
    assert_int_equal(hed_ptx_parse(&m, text, sizeof(text) - 1), HED_EFORMAT);
    for (const struct hed_ptx_error *e = m.errors; e; e = e->next, n++) {
        if (n < COUNT(lines) && e->line != lines[n])
            fail_msg("error %zu is in line %u: %s", n, e->line, e->text);
    }
    assert_int_equal(n, COUNT(lines));
    hed_buf_init(&log, 4096);
    hed_ptx_log(&m, &log);
    assert_non_null(strstr(hed_buf_cstr(&log), "line 6, column 1; error   : Arguments mismatch"));
    hed_buf_fini(&log);
    hed_ptx_module_fini(&m);
}

static void
errors_are_bounded(void **state)
{
    struct hed_ptx_module m;
    struct hed_buf text;

    hed_buf_init(&text, 1 << 20);
    for (int i = 0; i < 1000; i++)
        hed_buf_addf(&text, "bad;\n");
    hed_ptx_module_init(&m, HED_PTX_CEILING);
    assert_int_equal(hed_ptx_parse(&m, hed_buf_cstr(&text), text.size), HED_EFORMAT);
    assert_int_equal(m.nerrors, 64);
    hed_ptx_module_fini(&m);
    hed_buf_fini(&text);
}

/* Repeats a text n times and adds an end. */
static int
parse_repeated(const char *head, const char *text, int n, const char *tail, size_t ceiling)
{
    struct hed_ptx_module m;
    struct hed_buf b;

    hed_buf_init(&b, 1 << 24);
    hed_buf_addf(&b, "%s", head);
    for (int i = 0; i < n; i++)
        hed_buf_add(&b, text, strlen(text));
    hed_buf_addf(&b, "%s", tail);
    hed_ptx_module_init(&m, ceiling);

    const int err = hed_ptx_parse(&m, hed_buf_cstr(&b), b.size);

    hed_ptx_module_fini(&m);
    hed_buf_fini(&b);
    return err;
}

static void
nesting_is_bounded(void **state)
{
    static const char head[] = HEAD ".entry k() {";

    assert_int_equal(parse_repeated(head, "{", 200, "", HED_PTX_CEILING), HED_EFORMAT);
    assert_int_equal(parse_repeated(head, "{", 100000, "", HED_PTX_CEILING), HED_ELIMIT);
    assert_int_equal(parse_repeated(HEAD ".global .u32 x = ", "(", 100000, "", HED_PTX_CEILING),
                     HED_EFORMAT);
    assert_int_equal(parse_repeated(HEAD ".global .u32 x = ", "-", 100000, "1;", HED_PTX_CEILING),
                     HED_EFORMAT);
    assert_int_equal(parse_repeated(HEAD ".global .u32 x[] = ", "{", 100000, "", HED_PTX_CEILING),
                     HED_EFORMAT);
    assert_int_equal(
        parse_repeated(HEAD ".entry k() {mov.b32 x, ", "{", 100000, "", HED_PTX_CEILING),
        HED_EFORMAT);
}

static void
memory_is_bounded(void **state)
{
    static const char head[] = HEAD ".entry k() {";

    assert_int_equal(parse_repeated(head, "ret;\n", 10000, "}", HED_PTX_CEILING), 0);
    assert_int_equal(parse_repeated(head, "ret;\n", 10000, "}", 65536), HED_ELIMIT);
    assert_int_equal(parse_repeated(HEAD ".global .b8 x[1000000000000] = {1", "", 0, "};", 1 << 20),
                     0);
    assert_int_equal(parse_repeated(HEAD ".global .b8 x[9999999999][9999999999][99999];", "", 0, "",
                                    HED_PTX_CEILING),
                     HED_EFORMAT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(operands_are_checked), cmocka_unit_test(names_are_checked),
    cmocka_unit_test(syntax_is_checked),    cmocka_unit_test(parsing_continues_after_an_error),
    cmocka_unit_test(errors_are_bounded),   cmocka_unit_test(nesting_is_bounded),
    cmocka_unit_test(memory_is_bounded),
};

HED_UNIT_MAIN(tests)
