/* Tests of trace/print: calls as text and as JSON, truncated records, and values that are too
 * long. */
#include "harness/unit.h"

#include "base/buf.h"
#include "see/trace/print.h"
#include "see/trace/read.h"
#include "unit/trace/make.h"

static struct make m;
static struct hed_buf text;
static struct hed_buf json;
static struct hed_trace *trace; /* the record that was printed last */

static const char schema[] = "api cuda CUresult\n"
                             "struct deep reserved:[2]u32 n:u32 pad:[4]i8 :n.one\n"
                             "union one 4 a:i32 b:-\n"
                             "struct uuid bytes:[16]i8\n"
                             "struct config grid:u32 hStream:h.stream\n"
                             "call 1 alloc o:dptr:x64 i:bytesize:u64\n"
                             "call 2 copy i:dst:x64 i:src:b i:n:u64 i:s:h.stream i:_ptsz:u8\n"
                             "call 3 numbers i:a:u8 i:b:i16 i:c:i64 i:d:f32 i:e:f64 i:f:x32\n"
                             "call 4 named i:e:e.CUresult i:f:e.CUresult i:h:h.event i:p:p i:t:z\n"
                             "call 5 deep i:d:*s.deep\n"
                             "call 6 lists i:a:@u32 i:b:[3]i16 i:c:[6]i8 i:d:s.uuid\n"
                             "call 7 both b:m:u32 o:n:u32\n"
                             "call 8 launch i:c:*s.config i:_ptsz:u8\n"
                             "call 9 find i:name:z o:where:x64 o:status:u32\n"
                             "fails 9 500 status\n";

/* Prints the one record that was made, as text and as JSON. */
static void
print_record(uint16_t call, int32_t result, uint32_t flags, struct hed_trace_facts *facts)
{
    struct hed_trace_record r;

    make_record(&m, HED_TRACE_CALL, call, 1, 1, result, flags);
    make_records(&m, 1);
    hed_trace_close(trace);
    assert_int_equal(hed_trace_open_memory(m.file, m.size, &trace, NULL), 0);

    struct hed_trace_cursor c = hed_trace_cursor_over(trace);

    assert_true(hed_trace_next(&c, &r));
    hed_buf_reset(&text);
    hed_buf_reset(&json);
    hed_trace_print_args(trace, &r, &text);
    hed_trace_json_args(trace, &r, &json);
    if (facts)
        hed_trace_facts(trace, &r, facts);
    make_begin(&m, 1);
    make_text(&m, HED_TRACE_SCHEMA, 0, schema);
}

static int
setup(void **state)
{
    hed_buf_init(&text, 1 << 16);
    hed_buf_init(&json, 1 << 16);
    make_begin(&m, 1);
    make_text(&m, HED_TRACE_SCHEMA, 0, schema);
    return 0;
}

static int
teardown(void **state)
{
    hed_buf_fini(&text);
    hed_buf_fini(&json);
    hed_trace_close(trace);
    trace = NULL;
    return 0;
}

#define check(t, j)                                  \
    do {                                             \
        assert_string_equal(hed_buf_cstr(&text), t); \
        assert_string_equal(hed_buf_cstr(&json), j); \
    } while (0)

static void
outputs_follow_an_arrow(void **state)
{
    put_number(&m, 1, 1);
    put_number(&m, 1048576, 8);
    put_number(&m, 0x302000000, 8);
    print_record(1, 0, 0, NULL);
    check("alloc(bytesize=1048576) -> dptr=0x302000000",
          "{\"in\":{\"bytesize\":1048576},\"out\":{\"dptr\":\"0x302000000\"}}");
}

static void
failed_calls_have_no_outputs(void **state)
{
    put_number(&m, 1, 1);
    put_number(&m, 64, 8);
    print_record(1, 2, 0, NULL);
    check("alloc(bytesize=64)", "{\"in\":{\"bytesize\":64}}");
}

static void
failed_calls_have_the_outputs_that_failures_set(void **state)
{
    static const int32_t results[] = {500, 1};

    for (int i = 0; i < 2; i++) {
        put_number(&m, 1, 4);
        put_number(&m, 1, 4);
        put_number(&m, 'x', 1);
        put_number(&m, 1, 1);
        put_number(&m, 1, 1);
        put_number(&m, 2, 4);
        print_record(9, results[i], 0, NULL);
        if (i == 0)
            check("find(name=\"x\") -> status=2",
                  "{\"in\":{\"name\":\"x\"},\"out\":{\"status\":2}}");
        else
            check("find(name=\"x\")", "{\"in\":{\"name\":\"x\"}}");
    }
}

static void
unknown_flags_change_nothing(void **state)
{
    put_number(&m, 1, 1);
    put_number(&m, 64, 8);
    put_number(&m, 0x302000000, 8);
    print_record(1, 0, ~(uint32_t)(HED_TRACE_CUT | HED_TRACE_LINKED | HED_TRACE_REPEATS), NULL);
    check("alloc(bytesize=64) -> dptr=0x302000000",
          "{\"in\":{\"bytesize\":64},\"out\":{\"dptr\":\"0x302000000\"}}");
}

/* The id at the end is not part of the call, even if the call is truncated. */
static void
ids_are_not_printed(void **state)
{
    put_number(&m, 1, 1);
    put_number(&m, 64, 8);
    put_number(&m, 0x302000000, 8);
    put_number(&m, 17, 8);
    print_record(1, 0, HED_TRACE_LINKED, NULL);
    check("alloc(bytesize=64) -> dptr=0x302000000",
          "{\"in\":{\"bytesize\":64},\"out\":{\"dptr\":\"0x302000000\"}}");
    put_number(&m, 1, 1);
    put_number(&m, 17, 8);
    print_record(1, 0, HED_TRACE_LINKED | HED_TRACE_CUT, NULL);
    check("alloc(bytesize=<cut>)", "{\"in\":{\"bytesize\":\"<cut>\"},\"cut\":true}");
}

static void
absent_outputs_are_null(void **state)
{
    put_number(&m, 0, 1);
    put_number(&m, 64, 8);
    print_record(1, 0, 0, NULL);
    check("alloc(dptr=NULL, bytesize=64)", "{\"in\":{\"dptr\":null,\"bytesize\":64}}");
}

static void
in_out_arguments_are_printed_twice(void **state)
{
    put_number(&m, 1, 1);
    put_number(&m, 5, 4);
    put_number(&m, 1, 1);
    put_number(&m, 6, 4);
    put_number(&m, 7, 4);
    print_record(7, 0, 0, NULL);
    check("both(m=5) -> m=6, n=7", "{\"in\":{\"m\":5},\"out\":{\"m\":6,\"n\":7}}");
    put_number(&m, 0, 1);
    put_number(&m, 0, 1);
    print_record(7, 0, 0, NULL);
    check("both(m=NULL, n=NULL)", "{\"in\":{\"m\":null,\"n\":null}}");
}

static void
bulk_streams_and_suffixes_are_printed(void **state)
{
    struct hed_trace_facts facts;

    put_number(&m, 16, 8);
    put_number(&m, 4096, 8);
    put_number(&m, 2, 4);
    put_bytes(&m, "\x01\xff", 2);
    put_number(&m, 4096, 8);
    put_number(&m, 0x5500, 8);
    put_number(&m, 1, 1);
    print_record(2, 0, 0, &facts);
    check("copy_ptsz(dst=0x10, src=4096 bytes: 01ff..., n=4096, s=stream#0x5500)",
          "{\"in\":{\"dst\":\"0x10\",\"src\":{\"bytes\":4096,\"data\":\"01ff\"},\"n\":4096,"
          "\"s\":\"0x5500\"}}");
    assert_true(facts.has_stream);
    assert_int_equal(facts.stream, 0x5500);
    assert_string_equal(facts.name, "copy");
    assert_string_equal(facts.suffix, "_ptsz");
}

static void
streams_in_structs_are_found(void **state)
{
    struct hed_trace_facts facts;

    put_number(&m, 1, 1);
    put_number(&m, 3, 4);
    put_number(&m, 0, 8);
    put_number(&m, 0, 1);
    print_record(8, 0, 0, &facts);
    check("launch(c={grid=3, hStream=stream#default})",
          "{\"in\":{\"c\":{\"grid\":3,\"hStream\":\"0x0\"}}}");
    assert_true(facts.has_stream);
    assert_int_equal(facts.stream, 0);
    assert_string_equal(facts.suffix, "");
}

static void
numbers_are_printed_by_kind(void **state)
{
    const float f = 0.1f;
    const double d = -1.5e300;

    put_number(&m, 255, 1);
    put_number(&m, (uint64_t)-2, 2);
    put_number(&m, (uint64_t)-3, 8);
    put_bytes(&m, &f, 4);
    put_bytes(&m, &d, 8);
    put_number(&m, 0xabc, 4);
    print_record(3, 0, 0, NULL);
    check("numbers(a=255, b=-2, c=-3, d=0.1, e=-1.5e+300, f=0xabc)",
          "{\"in\":{\"a\":255,\"b\":-2,\"c\":-3,\"d\":0.1,\"e\":-1.5e+300,\"f\":\"0xabc\"}}");
}

static void
names_and_strings_are_printed(void **state)
{
    put_number(&m, 2, 4);
    put_number(&m, 123456, 4);
    put_number(&m, 0xe0, 8);
    put_number(&m, 0, 8);
    put_number(&m, 5, 4);
    put_number(&m, 3, 4);
    put_bytes(&m, "a\"\n", 3);
    print_record(4, 0, 0, NULL);
    check("named(e=CUDA_ERROR_OUT_OF_MEMORY, f=123456, h=event#0xe0, p=NULL, t=\"a\\\"\\n\"...)",
          "{\"in\":{\"e\":\"CUDA_ERROR_OUT_OF_MEMORY\",\"f\":123456,\"h\":\"0xe0\",\"p\":null,"
          "\"t\":\"a\\\"\\n...\"}}");
}

static void
structs_hide_zero_fillers(void **state)
{
    put_number(&m, 1, 1);
    put_number(&m, 0, 8);
    put_number(&m, 7, 4);
    put_number(&m, 0, 4);
    put_number(&m, 1, 2);
    put_number(&m, (uint64_t)-9, 4);
    print_record(5, 0, 0, NULL);
    check("deep(d={n=7, a=-9})", "{\"in\":{\"d\":{\"n\":7,\"a\":-9}}}");
    put_number(&m, 1, 1);
    put_number(&m, 1, 8);
    put_number(&m, 7, 4);
    put_number(&m, 0, 4);
    put_number(&m, 0, 2);
    put_number(&m, 0x0102, 4);
    print_record(5, 0, 0, NULL);
    check("deep(d={reserved=[1, 0], n=7, raw=0x02010000})",
          "{\"in\":{\"d\":{\"reserved\":[1,0],\"n\":7,\"raw\":\"02010000\"}}}");
}

static void
long_lists_are_shortened(void **state)
{
    put_number(&m, 100, 4);
    put_number(&m, 2, 4);
    put_number(&m, 1, 4);
    put_number(&m, 2, 4);
    put_number(&m, 0x000300020001, 6);
    put_bytes(&m, "abc\0\0\0", 6);
    put_number(&m, 0x61, 8);
    put_number(&m, 0x0100000000000000, 8);
    print_record(6, 0, 0, NULL);
    check("lists(a=[1, 2, ... 100 in all], b=[1, 2, 3], c=\"abc\", "
          "d={bytes=0x61000000000000000000000000000001})",
          "{\"in\":{\"a\":{\"count\":100,\"items\":[1,2]},\"b\":[1,2,3],\"c\":\"abc\","
          "\"d\":{\"bytes\":\"61000000000000000000000000000001\"}}}");
}

static void
truncated_bodies_say_so(void **state)
{
    put_number(&m, 1, 1);
    put_number(&m, 64, 8);
    print_record(1, 0, HED_TRACE_CUT, NULL);
    check("alloc(bytesize=64) -> dptr=<cut>",
          "{\"in\":{\"bytesize\":64},\"out\":{\"dptr\":\"<cut>\"},\"cut\":true}");
    print_record(1, 0, HED_TRACE_CUT, NULL);
    check("alloc(dptr=<cut>)", "{\"in\":{\"dptr\":\"<cut>\"},\"cut\":true}");
    put_number(&m, 9, 4);
    put_number(&m, 9, 4);
    put_number(&m, 1, 4);
    print_record(6, 0, 0, NULL);
    check("lists(a=[1, <cut>, ... 9 in all])", "{\"in\":{\"a\":[1,\"<cut>\"]},\"cut\":true}");
}

static void
unknown_calls_are_printed_as_such(void **state)
{
    print_record(99, 0, 0, NULL);
    check("cuda#99(<no schema>)", "{\"cut\":true}");
}

static void
values_that_are_too_long_are_replaced(void **state)
{
    hed_buf_fini(&text);
    hed_buf_init(&text, 24);
    put_number(&m, 1, 1);
    put_number(&m, 1048576, 8);
    put_number(&m, 0x302000000, 8);
    print_record(1, 0, 0, NULL);
    assert_int_equal(text.err, 0);
    assert_string_equal(hed_buf_cstr(&text), "alloc(<too long>)");
}

static void
results_and_errors_are_named(void **state)
{
    static const struct {
        int32_t result;
        uint32_t flags;
        const char *text;
        bool error;
    } rows[] = {
        {0, 0, "CUDA_SUCCESS", false},
        {2, 0, "CUDA_ERROR_OUT_OF_MEMORY", true},
        {600, 0, "CUDA_ERROR_NOT_READY", false},
        {123456, 0, "123456", true},
        {0, ~(uint32_t)HED_TRACE_CUT, "CUDA_SUCCESS", false},
        {2, ~(uint32_t)HED_TRACE_CUT, "CUDA_ERROR_OUT_OF_MEMORY", true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct hed_trace_record r = {
            .kind = HED_TRACE_CALL, .result = rows[i].result, .flags = rows[i].flags};
        struct hed_trace *t = NULL;

        assert_int_equal(hed_trace_open_memory(m.file, m.size, &t, NULL), 0);
        hed_buf_reset(&text);
        hed_trace_print_result(t, &r, &text);
        assert_string_equal(hed_buf_cstr(&text), rows[i].text);
        assert_int_equal(hed_trace_is_error(t, &r), rows[i].error);
        hed_trace_close(t);
    }
}

static void
records_of_other_kinds_are_printed(void **state)
{
    static const struct {
        uint8_t kind;
        const char *body;
        const char *text;
    } rows[] = {
        {HED_TRACE_MARK, "a\"b", "mark: \"a\\\"b\""},
        {HED_TRACE_RANGE_BEGIN, "r", "range begins: \"r\""},
        {HED_TRACE_RANGE_END, "", "range ends"},
        {HED_TRACE_CLIENT, "c", "client: \"c\""},
        {HED_TRACE_DROPPED, "\5\0\0\0\0\0\0\0", "5 records were dropped here"},
        {99, "", "record of unknown kind 99"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct hed_trace_record r = {
            .kind = rows[i].kind,
            .body = (const uint8_t *)rows[i].body,
            .body_size = rows[i].kind == HED_TRACE_DROPPED ? 8 : (uint32_t)strlen(rows[i].body)};

        hed_buf_reset(&text);
        hed_trace_print_other(&r, &text);
        assert_string_equal(hed_buf_cstr(&text), rows[i].text);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(outputs_follow_an_arrow, setup, teardown),
    cmocka_unit_test_setup_teardown(failed_calls_have_no_outputs, setup, teardown),
    cmocka_unit_test_setup_teardown(failed_calls_have_the_outputs_that_failures_set, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(unknown_flags_change_nothing, setup, teardown),
    cmocka_unit_test_setup_teardown(ids_are_not_printed, setup, teardown),
    cmocka_unit_test_setup_teardown(absent_outputs_are_null, setup, teardown),
    cmocka_unit_test_setup_teardown(in_out_arguments_are_printed_twice, setup, teardown),
    cmocka_unit_test_setup_teardown(bulk_streams_and_suffixes_are_printed, setup, teardown),
    cmocka_unit_test_setup_teardown(streams_in_structs_are_found, setup, teardown),
    cmocka_unit_test_setup_teardown(numbers_are_printed_by_kind, setup, teardown),
    cmocka_unit_test_setup_teardown(names_and_strings_are_printed, setup, teardown),
    cmocka_unit_test_setup_teardown(structs_hide_zero_fillers, setup, teardown),
    cmocka_unit_test_setup_teardown(long_lists_are_shortened, setup, teardown),
    cmocka_unit_test_setup_teardown(truncated_bodies_say_so, setup, teardown),
    cmocka_unit_test_setup_teardown(unknown_calls_are_printed_as_such, setup, teardown),
    cmocka_unit_test_setup_teardown(values_that_are_too_long_are_replaced, setup, teardown),
    cmocka_unit_test_setup_teardown(results_and_errors_are_named, setup, teardown),
    cmocka_unit_test_setup_teardown(records_of_other_kinds_are_printed, setup, teardown),
};

HED_UNIT_MAIN(tests)
