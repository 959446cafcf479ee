/* Tests of trace/schema: what is understood, and what becomes BAD without affecting the rest. */
#include "harness/unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/names.h"
#include "gen/cuda_names.h"
#include "gen/nvml_names.h"
#include "see/trace/schema.h"

static struct hed_arena arena;

static int
setup(void **state)
{
    hed_arena_init(&arena, 16 << 20);
    return 0;
}

static int
teardown(void **state)
{
    hed_arena_fini(&arena);
    return 0;
}

static const struct hed_schema *
parse_schema(const char *text)
{
    const struct hed_schema *s = NULL;

    assert_int_equal(hed_schema_parse(text, strlen(text), &arena, &s, NULL), 0);
    return s;
}

static void
calls_and_arguments_are_read(void **state)
{
    const struct hed_schema *s =
        parse_schema("api cuda CUresult\n"
                     "call 7 cuX o:dptr:x64 i:n:u64 b:m:e.CUresult i:_ptsz:u8\n");
    const struct hed_schema_call *c = hed_schema_call(s, 7);

    assert_string_equal(s->api, "cuda");
    assert_non_null(s->result);
    assert_string_equal(hed_enum_find(s->result, 0)->name, "CUDA_SUCCESS");
    assert_non_null(c);
    assert_string_equal(c->name, "cuX");
    assert_string_equal(c->suffix, "_ptsz");
    assert_int_equal(c->arg_count, 4);
    assert_int_equal(c->args[0].dir, 'o');
    assert_int_equal(c->args[0].type.code, HED_CODE_X64);
    assert_int_equal(c->args[2].type.code, HED_CODE_ENUM);
    assert_non_null(c->args[2].type.values);
    assert_null(hed_schema_call(s, 6));
    assert_null(hed_schema_call(s, 8));
    assert_null(hed_schema_call(NULL, 7));
}

/* Lines may come in any order, even before the call. Lines that make no sense have no effect. */
static void
outputs_that_failures_set_are_read(void **state)
{
    const struct hed_schema *s = parse_schema("api cuda CUresult\n"
                                              "fails 7 500 status\n"
                                              "call 7 cuX o:dptr:x64 i:n:u64 o:status:u32 b:m:u32\n"
                                              "fails 7 * m n nothing\n"
                                              "fails 7 no dptr\n"
                                              "fails 9 1 dptr\n"
                                              "fails\n"
                                              "call 8 cuY o:dptr:x64\n");
    const struct hed_schema_call *c = hed_schema_call(s, 7);

    assert_int_equal(hed_schema_set(c, 0), UINT64_MAX);
    assert_int_equal(hed_schema_set(c, 500), 1 << 2 | 1 << 3);
    assert_int_equal(hed_schema_set(c, 1), 1 << 3);
    assert_int_equal(hed_schema_set(c, -1), 1 << 3);
    /* As in every file of version 1.0. */
    assert_int_equal(hed_schema_set(hed_schema_call(s, 8), 500), 0);
}

static void
types_may_come_in_any_order(void **state)
{
    const struct hed_schema *s = parse_schema("api cuda CUresult\n"
                                              "call 1 c i:a:*s.outer\n"
                                              "struct outer x:[3]n.inner :s.last\n"
                                              "union inner 8 a:u32 b:-\n"
                                              "struct last self:*s.last\n");
    const struct hed_schema_type *t = &hed_schema_call(s, 1)->args[0].type;

    assert_int_equal(t->code, HED_CODE_REF);
    assert_int_equal(t->inner->code, HED_CODE_RECORD);

    const struct hed_schema_record *outer = t->inner->record;

    assert_int_equal(outer->field_count, 2);
    assert_int_equal(outer->fields[0].type.code, HED_CODE_ARRAY);
    assert_int_equal(outer->fields[0].type.count, 3);
    assert_int_equal(outer->fields[0].type.inner->record->size, 8);
    assert_int_equal(outer->fields[0].type.inner->record->fields[1].type.code, HED_CODE_BAD);
    assert_string_equal(outer->fields[1].name, "");
    assert_ptr_equal(outer->fields[1].type.record->fields[0].type.inner->record,
                     outer->fields[1].type.record);
}

static void
unknown_codes_are_bad_and_alone(void **state)
{
    const struct hed_schema *s = parse_schema("api cuda CUresult\n"
                                              "call 1 a i:x:u128 i:y:s.nowhere i:z:[x]u8 i:w:h.\n"
                                              "call 2 b i:x:u32\n"
                                              "call 3 c x:x:u32 i:bad-name:u32 i:n:\n"
                                              "call 4 d i:x:**********u8\n"
                                              "future line of some kind\n"
                                              "call x e i:x:u32\ncall 99999 f\ncall 2 again\n");

    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(hed_schema_call(s, 1)->args[i].type.code, HED_CODE_BAD);
    assert_int_equal(hed_schema_call(s, 2)->args[0].type.code, HED_CODE_U32);
    assert_string_equal(hed_schema_call(s, 2)->name, "b");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(hed_schema_call(s, 3)->args[i].type.code, HED_CODE_BAD);
    assert_int_equal(s->call_count, 5);
}

static void
first_line_must_be_the_api(void **state)
{
    const struct hed_schema *s = NULL;
    struct hed_why why;

    assert_int_equal(hed_schema_parse("call 1 a\n", 9, &arena, &s, &why), HED_EFORMAT);
    assert_int_equal(hed_schema_parse("", 0, &arena, &s, &why), HED_EFORMAT);
    assert_int_equal(hed_schema_parse("api a/b c\n", 10, &arena, &s, &why), HED_EFORMAT);
    assert_null(s);
}

static void
arena_ceiling_is_respected(void **state)
{
    struct hed_arena small;
    const struct hed_schema *s = NULL;
    struct hed_why why;

    hed_arena_init(&small, 2000);
    assert_int_equal(hed_schema_parse(hed_cuda_schema, hed_cuda_schema_size, &small, &s, &why),
                     HED_ELIMIT);
    hed_arena_fini(&small);
}

/* In the real schemas, only union members that are never encoded may have a BAD code. */
static void
check_types(const struct hed_schema_type *t)
{
    if (t->inner)
        check_types(t->inner);
    else
        assert_int_not_equal(t->code, HED_CODE_BAD);
}

static void
check_whole(const char *text, size_t size, unsigned least)
{
    const struct hed_schema *s = NULL;
    unsigned calls = 0;

    assert_int_equal(hed_schema_parse(text, size, &arena, &s, NULL), 0);
    assert_non_null(s->result);
    for (unsigned n = 0; n < s->call_count; n++) {
        const struct hed_schema_call *c = hed_schema_call(s, n);

        calls += c != NULL;
        for (uint32_t i = 0; c && i < c->arg_count; i++) {
            check_types(&c->args[i].type);
            if (c->args[i].type.code == HED_CODE_ENUM)
                assert_non_null(c->args[i].type.values);
        }
    }
    for (size_t i = 0; i < s->record_count; i++) {
        const struct hed_schema_record *r = &s->records[i];

        for (uint32_t f = 0; f < r->field_count && r->keyword == 's'; f++)
            check_types(&r->fields[f].type);
    }
    assert_true(calls >= least);
}

static void
real_schemas_are_understood(void **state)
{
    check_whole(hed_cuda_schema, hed_cuda_schema_size, 400);
    check_whole(hed_nvml_schema, hed_nvml_schema_size, 100);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(calls_and_arguments_are_read, setup, teardown),
    cmocka_unit_test_setup_teardown(outputs_that_failures_set_are_read, setup, teardown),
    cmocka_unit_test_setup_teardown(types_may_come_in_any_order, setup, teardown),
    cmocka_unit_test_setup_teardown(unknown_codes_are_bad_and_alone, setup, teardown),
    cmocka_unit_test_setup_teardown(first_line_must_be_the_api, setup, teardown),
    cmocka_unit_test_setup_teardown(arena_ceiling_is_respected, setup, teardown),
    cmocka_unit_test_setup_teardown(real_schemas_are_understood, setup, teardown),
};

HED_UNIT_MAIN(tests)
