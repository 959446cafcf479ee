/* Tests of base/str: tables of inputs and expected results. */
#include "harness/unit.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define UNTOUCHED UINT64_C(0xdeadbeef)

struct row {
    const char *text;
    int err;
    uint64_t value;
};

static void
check_rows(const struct row *rows, size_t n, int (*parse)(const char *, uint64_t *))
{
    for (size_t i = 0; i < n; i++) {
        uint64_t value = UNTOUCHED;
        const int err = parse(rows[i].text, &value);

        if (err != rows[i].err || value != (err ? UNTOUCHED : rows[i].value))
            fail_msg("\"%s\": err %d, value %#llx", rows[i].text, err, (unsigned long long)value);
    }
}

static void
u64_reads_decimal_and_hexadecimal(void **state)
{
    static const struct row rows[] = {
        {"0", 0, 0},
        {"7717", 0, 7717},
        {"010", 0, 10},
        {"0x10", 0, 16},
        {"0XdeadBEEF", 0, 0xdeadbeef},
        {"18446744073709551615", 0, UINT64_MAX},
        {"0xffffffffffffffff", 0, UINT64_MAX},
        {"18446744073709551616", HED_ERANGE, 0},
        {"0x10000000000000000", HED_ERANGE, 0},
        {"99999999999999999999999", HED_ERANGE, 0},
        {"99999999999999999999999x", HED_EINVAL, 0},
        {"", HED_EINVAL, 0},
        {"0x", HED_EINVAL, 0},
        {"-1", HED_EINVAL, 0},
        {"+1", HED_EINVAL, 0},
        {" 1", HED_EINVAL, 0},
        {"1 ", HED_EINVAL, 0},
        {"1f", HED_EINVAL, 0},
        {"1.5", HED_EINVAL, 0},
    };

    check_rows(rows, COUNT(rows), hed_parse_u64);
}

static void
size_reads_units_and_fractions(void **state)
{
    static const struct row rows[] = {
        {"0", 0, 0},
        {"4096", 0, 4096},
        {"4096B", 0, 4096},
        {"512k", 0, 512 * 1024},
        {"20G", 0, UINT64_C(20) << 30},
        {"20GiB", 0, UINT64_C(20) << 30},
        {"20gb", 0, UINT64_C(20) << 30},
        {"1.5M", 0, 3 << 19},
        {"0.1k", 0, 102},
        {"2T", 0, UINT64_C(2) << 40},
        {"1.000000000000000001E", 0, (UINT64_C(1) << 60) + 1},
        {"15.999E", 0, 18445591152204944769u},
        {"16E", HED_ERANGE, 0},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", HED_ERANGE, 0},
        {"18014398509481984k", HED_ERANGE, 0},
        {"", HED_EINVAL, 0},
        {"G", HED_EINVAL, 0},
        {"1.5", HED_EINVAL, 0},
        {"1.5B", HED_EINVAL, 0},
        {".5G", HED_EINVAL, 0},
        {"1.G", HED_EINVAL, 0},
        {"1.0000000000000000001G", HED_EINVAL, 0},
        {"1X", HED_EINVAL, 0},
        {"1Gi", HED_EINVAL, 0},
        {"1GG", HED_EINVAL, 0},
        {"1 G", HED_EINVAL, 0},
        {"-1G", HED_EINVAL, 0},
        {"0x10k", HED_EINVAL, 0},
    };

    check_rows(rows, COUNT(rows), hed_parse_size);
}

static void
bool_reads_eight_words(void **state)
{
    static const char *const yes[] = {"on", "true", "yes", "1", "ON", "True"};
    static const char *const no[] = {"off", "false", "no", "0", "Off", "NO"};
    static const char *const bad[] = {"", "o", "onn", "2", "ye", " on", "y"};
    bool value;

    for (size_t i = 0; i < COUNT(yes); i++) {
        value = false;
        assert_int_equal(hed_parse_bool(yes[i], &value), 0);
        assert_true(value);
    }
    for (size_t i = 0; i < COUNT(no); i++) {
        value = true;
        assert_int_equal(hed_parse_bool(no[i], &value), 0);
        assert_false(value);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(hed_parse_bool(bad[i], &value), HED_EINVAL);
}

static void
copy_truncates_terminates_and_says_so(void **state)
{
    char dst[4] = "zzz";

    assert_true(hed_str_copy(dst, sizeof(dst), "abc"));
    assert_string_equal(dst, "abc");
    assert_false(hed_str_copy(dst, sizeof(dst), "wxyz"));
    assert_string_equal(dst, "wxy");
    assert_true(hed_str_copy(dst, sizeof(dst), ""));
    assert_string_equal(dst, "");
    assert_false(hed_str_copy(dst, 0, ""));
}

static void
base_names(void **state)
{
    (void)state;
    assert_string_equal(hed_str_base_name("/usr/lib/libcuda.so.1"), "libcuda.so.1");
    assert_string_equal(hed_str_base_name("libcuda.so.1"), "libcuda.so.1");
    assert_string_equal(hed_str_base_name("folder/"), "");
}

static void
trim_removes_blanks_at_both_ends(void **state)
{
    static const char *const rows[][2] = {
        {"", ""}, {"  ", ""}, {"a", "a"}, {" \ta b\r\n", "a b"}, {"\va", "a"}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[16];

        assert_true(hed_str_copy(text, sizeof(text), rows[i][0]));
        assert_string_equal(hed_str_trim(text), rows[i][1]);
    }
}

#define BAD "\xef\xbf\xbd"

static void
escape_makes_valid_json_of_any_bytes(void **state)
{
    static const char *const rows[][2] = {
        {"plain", "plain"},
        {"\"\\/", "\\\"\\\\/"},
        {"\b\f\n\r\t\x01\x7f", "\\b\\f\\n\\r\\t\\u0001\\u007f"},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\xc2\x9b[2J", "\\u009b[2J"}, /* an escape sequence in another way */
        {"a\xe2\x80\xae\xe2\x80\xa8z\xe2\x81\xa6", "a\\u202e\\u2028z\\u2066"},
        {"\xc2\xa0 \xe2\x80\xaf", "\xc2\xa0 \xe2\x80\xaf"},
        {"a\x80z", "a" BAD "z"},
        {"\xc3", BAD},
        {"\xc3(", BAD "("},
        {"\xc0\xaf", BAD BAD},                 /* overlong slash */
        {"\xe0\x80\xaf", BAD BAD BAD},         /* overlong, three bytes */
        {"\xed\xa0\x80", BAD BAD BAD},         /* surrogate */
        {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* over U+10FFFF */
        {"\xf0\x9f\x98", BAD BAD BAD},         /* ends too early */
        {"\xff\"", BAD "\\\""},
    };
    struct hed_buf b;

    hed_buf_init(&b, 1000);
    for (size_t i = 0; i < COUNT(rows); i++) {
        hed_buf_reset(&b);
        hed_str_escape(&b, rows[i][0], strlen(rows[i][0]));
        assert_int_equal(b.err, 0);
        assert_string_equal(hed_buf_cstr(&b), rows[i][1]);
    }
    hed_buf_reset(&b);
    hed_str_escape(&b, "a\0b", 3);
    assert_string_equal(hed_buf_cstr(&b), "a\\u0000b");
    hed_buf_fini(&b);
}

static void
fields_are_quoted_and_escaped(void **state)
{
    struct hed_buf b;

    hed_buf_init(&b, 1000);
    hed_str_field(&b, "name", "a\"b", 3);
    assert_int_equal(b.size, strlen("\"name\":\"a\\\"b\""));
    assert_memory_equal(b.data, "\"name\":\"a\\\"b\"", b.size);
    hed_buf_fini(&b);
}

static void
secrets_are_compared(void **state)
{
    assert_true(hed_same_secret("0123", "0123", 4));
    assert_true(hed_same_secret("0123", "9999", 0));
    assert_false(hed_same_secret("0123", "0124", 4));
    assert_false(hed_same_secret("0123", "1123", 4));
    assert_true(hed_same_secret("0123", "0124", 3));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fields_are_quoted_and_escaped),
    cmocka_unit_test(secrets_are_compared),
    cmocka_unit_test(u64_reads_decimal_and_hexadecimal),
    cmocka_unit_test(size_reads_units_and_fractions),
    cmocka_unit_test(bool_reads_eight_words),
    cmocka_unit_test(copy_truncates_terminates_and_says_so),
    cmocka_unit_test(base_names),
    cmocka_unit_test(trim_removes_blanks_at_both_ends),
    cmocka_unit_test(escape_makes_valid_json_of_any_bytes),
};

HED_UNIT_MAIN(tests)
