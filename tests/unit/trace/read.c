/* Tests of trace/read: complete, truncated and damaged files, and the order of time. */
#include "harness/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "see/trace/read.h"
#include "see/trace/schema.h"
#include "unit/trace/make.h"

static struct make m;
static uint16_t major = 1; /* version of the samples */

/* Makes three blocks of records of two threads, and says where the second and third begin. */
static size_t second;
static size_t third;

static void
make_sample(void)
{
    make_begin(&m, major);
    make_text(&m, HED_TRACE_INFO, 0, "pid=77\nexe=/bin/app\nclock_mono=100\nodd\nexe=/bin/new\n");
    make_text(&m, HED_TRACE_SCHEMA, 0, "api cuda CUresult\ncall 1 a\n");
    make_text(&m, HED_TRACE_SCHEMA, 0, "api nvml nvmlReturn_t\ncall 2 b\n");
    make_text(&m, HED_TRACE_THREAD, 5, "old");
    make_text(&m, HED_TRACE_THREAD, 5, "main");
    make_record(&m, HED_TRACE_CALL, 1, 110, 10, 0, 0);
    make_record(&m, HED_TRACE_CALL, 1, 130, 10, 0, 0);
    make_records(&m, 5);
    make_record(&m, HED_TRACE_CALL, 1, 120, 500, 3, 0);
    make_record(&m, HED_TRACE_CALL, 1, 130, 1, 0, 0);
    second = make_records(&m, 6);
    put_bytes(&m, "hi", 2);
    make_record(&m, HED_TRACE_MARK, 0, 140, 0, 0, 0);
    put_number(&m, 4, 8);
    make_record(&m, HED_TRACE_DROPPED, 0, 141, 0, 0, 0);
    third = make_records(&m, 5);
    make_block(&m, HED_TRACE_END, 0, (uint64_t[]){6, 9}, 16);
}

static struct hed_trace *
open_sample(size_t size)
{
    struct hed_trace *t = NULL;
    struct hed_why why;

    assert_int_equal(hed_trace_open_memory(m.file, size, &t, &why), 0);
    return t;
}

static size_t
count_records(const struct hed_trace *t)
{
    struct hed_trace_cursor c = hed_trace_cursor_over(t);
    struct hed_trace_record r;
    size_t n = 0;

    while (hed_trace_next(&c, &r))
        n++;
    assert_int_equal(n, hed_trace_state(t)->records);
    return n;
}

static void
a_complete_file_is_read(void **state)
{
    make_sample();

    struct hed_trace *t = open_sample(m.size);
    const struct hed_trace_state *s = hed_trace_state(t);
    uint64_t id = 0;

    assert_int_equal(s->blocks, 9);
    assert_int_equal(s->blocks_bad, 0);
    assert_int_equal(s->bytes_lost, 0);
    assert_int_equal(s->bytes_cut, 0);
    assert_int_equal(s->dropped, 9);
    assert_int_equal(s->first, 110);
    assert_int_equal(s->last, 620);
    assert_int_equal(s->zero, 100);
    assert_true(s->ended);
    assert_int_equal(s->end_records, 6);
    assert_int_equal(count_records(t), 6);
    assert_int_equal(hed_trace_info_u64(t, "pid"), 77);
    assert_string_equal(hed_trace_info(t, "exe"), "/bin/new");
    assert_int_equal(hed_trace_info_u64(t, "exe"), 0);
    assert_null(hed_trace_info(t, "odd"));
    assert_int_equal(s->threads, 2);
    assert_string_equal(hed_trace_thread_name(t, 5), "main");
    assert_null(hed_trace_thread_name(t, 6));
    assert_true(hed_trace_thread(t, 1, &id));
    assert_int_equal(id, 6);
    assert_false(hed_trace_thread(t, 2, &id));
    assert_string_equal(hed_trace_schema(t, 1)->api, "nvml");
    assert_null(hed_trace_schema(t, 2));
    hed_trace_close(t);
}

static void
records_come_in_the_order_of_time(void **state)
{
    static const uint64_t starts[] = {110, 120, 130, 130, 140, 141};
    static const uint64_t threads[] = {5, 6, 5, 6, 5, 5};
    struct hed_trace_index *index = NULL;
    struct hed_trace_record r;

    make_sample();

    struct hed_trace *t = open_sample(m.size);

    assert_int_equal(hed_trace_sort(t, &index, NULL), 0);
    for (size_t i = 0; i < 6; i++) {
        assert_true(hed_trace_at(index, i, &r));
        assert_int_equal(r.start, starts[i]);
        assert_int_equal(r.thread, threads[i]);
    }
    assert_false(hed_trace_at(index, 6, &r));
    hed_trace_index_free(index);
    hed_trace_close(t);
}

/* Wherever a file is truncated, all complete blocks are read, and nothing counts as damage. */
static void
a_truncated_file_is_read_up_to_its_last_complete_block(void **state)
{
    make_sample();
    for (size_t size = 16; size < m.size; size++) {
        struct hed_trace *t = open_sample(size);
        const struct hed_trace_state *s = hed_trace_state(t);

        assert_int_equal(s->blocks_bad, 0);
        assert_int_equal(s->bytes_lost, 0);
        assert_false(s->ended);
        if (size >= third)
            assert_true(count_records(t) >= 4);
        else if (size >= second)
            assert_true(count_records(t) >= 2);
        hed_trace_close(t);
    }
}

/* One wrong byte anywhere in a block costs at most that block. */
static void
any_damage_costs_one_block(void **state)
{
    make_sample();
    for (size_t at = second; at < third; at++) {
        m.file[at] ^= 0x55;

        struct hed_trace *t = open_sample(m.size);
        const struct hed_trace_state *s = hed_trace_state(t);
        const size_t n = count_records(t);

        assert_true(s->ended);
        /* What is not covered by the CRC: type, thread and number may be wrong unseen. */
        if (n == 4 && s->blocks == 8) {
            assert_int_equal(s->blocks_bad, 1);
            assert_int_equal(s->bytes_lost, third - second);
            assert_int_equal(s->bytes_cut, 0);
        } else {
            assert_true(at - second >= 4 && at - second < HED_TRACE_BLOCK_HEADER);
        }
        hed_trace_close(t);
        m.file[at] ^= 0x55;
    }
}

static void
blocks_of_other_traces_inside_damage_are_not_taken(void **state)
{
    struct make *inner = calloc(1, sizeof(*inner));

    make_begin(inner, 1);
    inner->number = 500;
    make_record(inner, HED_TRACE_CALL, 1, 1, 1, 0, 0);
    make_records(inner, 99);

    make_begin(&m, 1);
    make_text(&m, HED_TRACE_SCHEMA, 0, "api cuda CUresult\ncall 1 a\n");
    put_bytes(&m, inner->file + 16, inner->size - 16);
    make_record(&m, HED_TRACE_CALL, 1, 10, 1, 0, 0);

    const size_t at = make_records(&m, 5);

    make_record(&m, HED_TRACE_CALL, 1, 20, 1, 0, 0);
    make_records(&m, 5);
    m.file[at + 40] ^= 1;

    struct hed_trace *t = open_sample(m.size);

    assert_int_equal(count_records(t), 1);
    assert_int_equal(hed_trace_state(t)->first, 20);
    assert_int_equal(hed_trace_state(t)->threads, 1);
    hed_trace_close(t);
    free(inner);
}

static void
lost_schema_keeps_the_numbers_of_the_others(void **state)
{
    make_begin(&m, 1);

    const size_t at = make_text(&m, HED_TRACE_SCHEMA, 0, "api cuda CUresult\ncall 1 a\n");

    make_text(&m, HED_TRACE_SCHEMA, 0, "api nvml nvmlReturn_t\ncall 2 b\n");
    m.file[at + 40] ^= 1;

    struct hed_trace *t = open_sample(m.size);

    assert_null(hed_trace_schema(t, 0));
    assert_string_equal(hed_trace_schema(t, 1)->api, "nvml");
    hed_trace_close(t);

    /* If the header is damaged, too, no schema can be numbered: no names are better than wrong
     * ones. */
    m.file[at] ^= 1;
    t = open_sample(m.size);
    assert_null(hed_trace_schema(t, 0));
    assert_null(hed_trace_schema(t, 1));
    hed_trace_close(t);
}

static void
bad_record_ends_its_block_only(void **state)
{
    make_begin(&m, 1);
    make_record(&m, HED_TRACE_CALL, 1, 10, 1, 0, 0);
    make_record(&m, HED_TRACE_CALL, 1, 11, 1, 0, 0);
    memset(m.records + 32, 0, 4); /* a record of size 0 would be read for ever */
    make_records(&m, 5);
    make_record(&m, HED_TRACE_CALL, 1, 12, 1, 0, 0);
    make_records(&m, 5);

    struct hed_trace *t = open_sample(m.size);

    assert_int_equal(count_records(t), 2);
    assert_int_equal(hed_trace_state(t)->blocks_bad, 1);
    assert_int_equal(hed_trace_state(t)->bytes_lost, 32);
    hed_trace_close(t);
}

static void
version_2_is_read_like_version_1(void **state)
{
    major = 2;
    a_complete_file_is_read(state);
    records_come_in_the_order_of_time(state);
    a_truncated_file_is_read_up_to_its_last_complete_block(state);
    any_damage_costs_one_block(state);
    major = 1;
}

static void
short_records_have_what_long_ones_have(void **state)
{
    struct hed_trace_record r;

    make_begin(&m, 2);
    put_number(&m, 7, 8);
    make_short(&m, 2 << 12 | 4095, 10, UINT32_MAX, false);
    put_number(&m, 8, 1);
    put_number(&m, 99, 8);
    make_short(&m, 1, 11, 0, true);
    put_number(&m, 9, 4); /* too short for a correlation id */
    make_short(&m, 1, 12, 0, true);
    make_short(&m, 0, 13, 0, false);
    make_records(&m, 5);

    struct hed_trace *t = open_sample(m.size);
    struct hed_trace_cursor c = hed_trace_cursor_over(t);

    assert_true(hed_trace_next(&c, &r));
    assert_true(r.kind == HED_TRACE_CALL && r.api == 2 && r.call == 4095 && r.flags == 0);
    assert_true(r.start == 10 && r.duration == UINT32_MAX && r.result == 0);
    assert_true(r.size == 24 && r.body_size == 8 && r.body[0] == 7 && r.correlation == 0);
    assert_true(hed_trace_next(&c, &r));
    assert_true(r.size == 25 && r.body_size == 1 && r.body[0] == 8 && r.correlation == 99);
    assert_int_equal(r.flags, HED_TRACE_LINKED);
    assert_true(hed_trace_next(&c, &r));
    assert_true(r.body_size == 4 && r.correlation == 0);
    assert_true(hed_trace_next(&c, &r));
    assert_true(r.size == 16 && r.body_size == 0 && r.api == 0 && r.call == 0);
    assert_false(hed_trace_next(&c, &r));
    hed_trace_close(t);
}

/* Headers that damage could produce and that are no record. Each ends its block, and only that. */
static void
bad_headers_end_their_block_only(void **state)
{
    static const uint8_t heads[][8] = {
        {15, 0},              /* a short record that is shorter than its header */
        {15, 0x80},           /* the same, with a correlation id */
        {200, 0},             /* longer than the block */
        {0, 0, 1, 0, 31},     /* a long record that is shorter than its header */
        {0, 0, 1, 0, 0},      /* of size 0 */
        {0, 0, 1, 0, 33},     /* one byte longer than the block */
        {0, 0, 1, 0, 0, 255}, /* much longer */
    };

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        make_begin(&m, 2);
        make_record(&m, HED_TRACE_CALL, 1, 10, 1, 0, 0);
        make_record(&m, HED_TRACE_CALL, 1, 11, 1, 1, 0);
        memcpy(m.records + 16, heads[i], sizeof heads[i]);
        make_records(&m, 5);
        make_record(&m, HED_TRACE_CALL, 1, 12, 1, 0, 0);
        make_records(&m, 5);

        struct hed_trace *t = open_sample(m.size);

        assert_int_equal(count_records(t), 2);
        assert_int_equal(hed_trace_state(t)->blocks_bad, 1);
        assert_int_equal(hed_trace_state(t)->bytes_lost, 32);
        hed_trace_close(t);
    }
}

static void
files_that_are_no_trace_are_refused(void **state)
{
    struct hed_trace *t = NULL;
    struct hed_why why;

    assert_int_equal(hed_trace_open_memory("", 0, &t, &why), HED_EFORMAT);
    assert_int_equal(hed_trace_open_memory("HEDTRACE", 8, &t, &why), HED_EFORMAT);
    assert_int_equal(hed_trace_open_memory("#!/bin/sh\nexit 1 ", 17, &t, &why), HED_EFORMAT);
    make_begin(&m, 3);
    assert_int_equal(hed_trace_open_memory(m.file, m.size, &t, &why), HED_EVERSION);
    assert_non_null(strstr(why.text, "version 3"));
    assert_int_equal(hed_trace_open("/nonexistent/file", &t, &why), HED_ENOTFOUND);
    assert_int_equal(hed_trace_open("/", &t, &why), HED_EINVAL);
    assert_null(t);
}

static void
files_are_mapped(void **state)
{
    const char *scratch = getenv("HED_SCRATCH");
    struct hed_trace *t = NULL;
    struct hed_why why;
    char path[4096];

    snprintf(path, sizeof(path), "%s/a.trace", scratch ? scratch : ".");

    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    fclose(f);
    assert_int_equal(hed_trace_open(path, &t, &why), HED_EFORMAT);
    assert_string_equal(why.text, "the file is empty");

    make_sample();
    f = fopen(path, "wb");
    assert_int_equal(fwrite(m.file, 1, m.size, f), m.size);
    fclose(f);
    assert_int_equal(hed_trace_open(path, &t, &why), 0);
    assert_int_equal(count_records(t), 6);
    hed_trace_close(t);
    unlink(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_complete_file_is_read),
    cmocka_unit_test(records_come_in_the_order_of_time),
    cmocka_unit_test(a_truncated_file_is_read_up_to_its_last_complete_block),
    cmocka_unit_test(any_damage_costs_one_block),
    cmocka_unit_test(blocks_of_other_traces_inside_damage_are_not_taken),
    cmocka_unit_test(lost_schema_keeps_the_numbers_of_the_others),
    cmocka_unit_test(bad_record_ends_its_block_only),
    cmocka_unit_test(version_2_is_read_like_version_1),
    cmocka_unit_test(short_records_have_what_long_ones_have),
    cmocka_unit_test(bad_headers_end_their_block_only),
    cmocka_unit_test(files_that_are_no_trace_are_refused),
    cmocka_unit_test(files_are_mapped),
};

HED_UNIT_MAIN(tests)
