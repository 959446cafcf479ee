/* Tests of ptx/lex: texts and the tokens that they consist of. */
#include "harness/unit.h"

#include "kernel/ptx/text/lex.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct row {
    const char *text;
    int kind;
    uint64_t bits; /* the value of a number; the character of punctuation */
    uint32_t len;
};

static struct hed_ptx_token
first(const char *text, size_t size)
{
    struct hed_ptx_lexer l;
    struct hed_ptx_token t;

    hed_ptx_lex_init(&l, text, size);
    hed_ptx_lex(&l, &t);
    return t;
}

static void
check_rows(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct hed_ptx_token t = first(rows[i].text, strlen(rows[i].text));
        const uint64_t bits = t.kind == HED_PTX_TOKEN_PUNCT ? t.punct : t.bits;

        if (t.kind != rows[i].kind || t.len != rows[i].len)
            fail_msg("\"%s\": kind %d, length %u", rows[i].text, t.kind, t.len);
        if (t.kind != HED_PTX_TOKEN_BAD && bits != rows[i].bits)
            fail_msg("\"%s\": bits %#llx", rows[i].text, (unsigned long long)bits);
    }
}

static void
numbers_have_all_their_forms(void **state)
{
    static const struct row rows[] = {
        {"0", HED_PTX_TOKEN_INT, 0, 1},
        {"42", HED_PTX_TOKEN_INT, 42, 2},
        {"42U", HED_PTX_TOKEN_INT, 42, 3},
        {"0x1F", HED_PTX_TOKEN_INT, 31, 4},
        {"0X1fU", HED_PTX_TOKEN_INT, 31, 5},
        {"017", HED_PTX_TOKEN_INT, 15, 3},
        {"0b101", HED_PTX_TOKEN_INT, 5, 5},
        {"18446744073709551615", HED_PTX_TOKEN_INT, UINT64_MAX, 20},
        {"18446744073709551616", HED_PTX_TOKEN_BAD, 0, 20},
        {"0x", HED_PTX_TOKEN_BAD, 0, 2},
        {"089", HED_PTX_TOKEN_BAD, 0, 3},
        {"12ab", HED_PTX_TOKEN_BAD, 0, 4},
        {"0f3F800000", HED_PTX_TOKEN_F32, 0x3f800000, 10},
        {"0F3f8", HED_PTX_TOKEN_BAD, 0, 5},
        {"0d3FF0000000000000", HED_PTX_TOKEN_F64, UINT64_C(0x3ff0000000000000), 18},
        {"1.5", HED_PTX_TOKEN_F64, UINT64_C(0x3ff8000000000000), 3},
        {"2e3", HED_PTX_TOKEN_F64, UINT64_C(0x409f400000000000), 3},
        {"1.e", HED_PTX_TOKEN_BAD, 0, 3},
    };

    check_rows(rows, COUNT(rows));
}

static void
words_and_punctuation_are_told_apart(void **state)
{
    static const struct row rows[] = {
        {"%r12,", HED_PTX_TOKEN_IDENT, 0, 4},
        {"$L__BB0_2:", HED_PTX_TOKEN_IDENT, 0, 9},
        {"_", HED_PTX_TOKEN_IDENT, 0, 1},
        {"_ZN3fooE$x ", HED_PTX_TOKEN_IDENT, 0, 10},
        {"% 3", HED_PTX_TOKEN_PUNCT, '%', 1},
        {".global", HED_PTX_TOKEN_DOT, 0, 6},
        {".shared::cta.b32", HED_PTX_TOKEN_DOT, 0, 11},
        {".L2::128B", HED_PTX_TOKEN_DOT, 0, 8},
        {".2d", HED_PTX_TOKEN_DOT, 0, 2},
        {".", HED_PTX_TOKEN_BAD, 0, 0},
        {"\"a \\\" b\"", HED_PTX_TOKEN_STRING, 0, 6},
        {"\"open", HED_PTX_TOKEN_BAD, 0, 4},
        {"<<", HED_PTX_TOKEN_PUNCT, HED_PTX_PUNCT_SHL, 2},
        {"!=", HED_PTX_TOKEN_PUNCT, HED_PTX_PUNCT_NE, 2},
        {"!%p", HED_PTX_TOKEN_PUNCT, '!', 1},
        {"`", HED_PTX_TOKEN_BAD, 0, 1},
        {"/* no end", HED_PTX_TOKEN_BAD, 0, 2},
        {"", HED_PTX_TOKEN_END, 0, 0},
        {"// only a comment", HED_PTX_TOKEN_END, 0, 0},
    };

    check_rows(rows, COUNT(rows));
}

static void
lines_and_columns_are_counted(void **state)
{
    static const char text[] = "a\r\n  b /* x\n y */ c\n// d\n#line\n\te";
    static const struct {
        char c;
        uint32_t line, column;
    } rows[] = {{'a', 1, 1}, {'b', 2, 3}, {'c', 3, 7}, {'e', 6, 2}};
    struct hed_ptx_lexer l;
    struct hed_ptx_token t;

    hed_ptx_lex_init(&l, text, sizeof(text) - 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        hed_ptx_lex(&l, &t);
        assert_int_equal(t.text[0], rows[i].c);
        assert_int_equal(t.line, rows[i].line);
        assert_int_equal(t.column, rows[i].column);
    }
    hed_ptx_lex(&l, &t);
    assert_int_equal(t.kind, HED_PTX_TOKEN_END);
    hed_ptx_lex(&l, &t);
    assert_int_equal(t.kind, HED_PTX_TOKEN_END);
}

static void
reading_stops_at_the_size_and_at_zero(void **state)
{
    assert_int_equal(first("abcdef", 3).len, 3);
    assert_int_equal(first("12345", 2).bits, 12);
    assert_int_equal(first("ab\0cd", 5).len, 2);
    assert_int_equal(first("\0ab", 3).kind, HED_PTX_TOKEN_END);
}

static void
an_opcode_with_its_modifiers_is_one_token(void **state)
{
    static const char text[] = "ld.global.nc.L2::128B.v4.f32 {";
    struct hed_ptx_lexer l;
    struct hed_ptx_token t;

    hed_ptx_lex_init(&l, text, sizeof(text) - 1);
    hed_ptx_lex(&l, &t);
    assert_int_equal(t.len, 2);
    hed_ptx_lex_opcode(&l, &t);
    assert_int_equal(t.len, 28);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(numbers_have_all_their_forms),
    cmocka_unit_test(words_and_punctuation_are_told_apart),
    cmocka_unit_test(lines_and_columns_are_counted),
    cmocka_unit_test(reading_stops_at_the_size_and_at_zero),
    cmocka_unit_test(an_opcode_with_its_modifiers_is_one_token),
};

HED_UNIT_MAIN(tests)
