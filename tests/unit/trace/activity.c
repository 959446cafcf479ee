/* Tests of trace/activity and trace/call: what the GPU did, and the ids that connect it with
 * calls. */
#include "harness/unit.h"

#include <pthread.h>
#include <unistd.h>

#include "base/buf.h"
#include "see/trace/activity.h"
#include "see/trace/call.h"
#include "see/trace/print.h"
#include "unit/trace/make.h"
#include "unit/trace/written.h"

static const struct hed_trace_activity kernel = {
    .kind = HED_TRACE_KERNEL,
    .name = "_Z5saxpyifPfS_",
    .start = 1000,
    .end = 3500,
    .device = 1,
    .context = 2,
    .stream = 13,
    .correlation = UINT64_C(0x123456789abcdef0),
    .grid = {256, 2, 3},
    .block = {128, 4, 5},
    .static_shared = 64,
    .dynamic_shared = 1024,
    .registers = 32,
};

static const struct hed_trace_activity copy = {
    .kind = HED_TRACE_COPY,
    .start = 10,
    .end = 20,
    .stream = 7,
    .bytes = UINT64_C(1) << 40,
    .from = HED_TRACE_MEMORY_PINNED,
    .to = HED_TRACE_MEMORY_DEVICE,
};

/* The i-th record of the file that was written last. It lives until the next call. */
static struct hed_trace_record
record_at(unsigned i)
{
    static struct hed_trace *trace;
    struct hed_trace_record r = {0};

    hed_trace_close(trace);
    trace = read_back(path);

    struct hed_trace_cursor c = hed_trace_cursor_over(trace);

    for (unsigned n = 0; n <= i; n++)
        assert_true(hed_trace_next(&c, &r));
    return r;
}

static void
activities_that_are_put_are_read(void **state)
{
    struct hed_trace_writer *w = open_writer("what_is_put_is_read.hed", false, 65536);
    struct hed_trace_activity a;
    struct hed_trace_record r;

    hed_trace_put_activity(w, &kernel);
    hed_trace_put_activity(w, &copy);
    hed_trace_writer_free(w);

    r = record_at(0);
    assert_int_equal(r.kind, HED_TRACE_ACTIVITY);
    assert_true(r.start == 1000 && r.duration == 2500 && r.flags == 0);
    assert_true(hed_trace_get_activity(&r, &a));
    assert_int_equal(a.name_size, strlen(kernel.name));
    assert_memory_equal(a.name, kernel.name, a.name_size);
    assert_true(a.kind == kernel.kind && a.start == 1000 && a.end == 3500);
    assert_true(a.device == 1 && a.context == 2 && a.stream == 13);
    assert_true(a.correlation == kernel.correlation);
    assert_memory_equal(a.grid, kernel.grid, sizeof a.grid);
    assert_memory_equal(a.block, kernel.block, sizeof a.block);
    assert_true(a.static_shared == 64 && a.dynamic_shared == 1024 && a.registers == 32);

    r = record_at(1);
    assert_true(hed_trace_get_activity(&r, &a));
    assert_true(a.kind == HED_TRACE_COPY && a.bytes == copy.bytes && !a.name && !a.correlation);
    assert_true(a.from == HED_TRACE_MEMORY_PINNED && a.to == HED_TRACE_MEMORY_DEVICE);
}

static void
strange_values_are_kept_in_bounds(void **state)
{
    static char name[3 * HED_TRACE_NAME_MAX];
    struct hed_trace_writer *w = open_writer("strange_values.hed", false, 65536);
    struct hed_trace_activity a = kernel;
    struct hed_trace_record r;

    /* An activity that ends before it begins and whose name is far too long; a name without an
     * end. */
    memset(name, 'k', sizeof name - 1);
    a.end = a.start - 1;
    a.name = name;
    hed_trace_put_activity(w, &a);
    a.name = "kernel_and_more";
    a.name_size = 6;
    a.kind = 999;
    hed_trace_put_activity(w, &a);
    hed_trace_writer_free(w);

    r = record_at(0);
    assert_true(hed_trace_get_activity(&r, &a));
    assert_int_equal(r.duration, 0);
    assert_int_equal(a.name_size, HED_TRACE_NAME_MAX);
    assert_int_equal(a.registers, 32);
    r = record_at(1);
    assert_true(hed_trace_get_activity(&r, &a));
    assert_int_equal(a.name_size, 6);
    assert_true(a.kind == 999 && a.stream == 13);
    assert_string_equal(hed_trace_activity_name(999), "unknown");
    assert_string_equal(hed_trace_activity_name(0), "unknown");
    assert_string_equal(hed_trace_memory_name(250), "memory");
}

/* ---- ids of calls ---------------------------------------------------------------------------- */

static void
calls_carry_their_id(void **state)
{
    static const uint8_t bytes[HED_TRACE_BODY_MAX + 4096];
    struct hed_trace_writer *w = open_writer("calls_carry_their_id.hed", false, 65536);
    struct hed_trace_head head = {.kind = HED_TRACE_CALL, .call = 1, .correlation = 42};

    /* A complete record, one without an id, and a truncated one, which still has its id. */
    for (int i = 0; i < 3; i++) {
        struct hed_trace_put put;
        struct hed_enc *e = hed_trace_begin(w, &put);

        assert_non_null(e);
        hed_put_u64(e, 7);
        if (i == 2)
            hed_put_raw(e, bytes, sizeof bytes);
        head.correlation = i == 1 ? 0 : 42 + (unsigned)i;
        hed_trace_end(w, &put, &head);
    }
    hed_trace_writer_free(w);
    for (unsigned i = 0; i < 3; i++) {
        const struct hed_trace_record r = record_at(i);

        assert_int_equal(r.body_size, 8);
        assert_int_equal(r.body[0], 7);
        assert_true(r.correlation == (i == 1 ? 0 : 42 + i));
        assert_int_equal(r.flags, i == 0 ? HED_TRACE_LINKED : i == 1 ? 0 : 5);
    }
}

static void
ids_survive_sorting(void **state)
{
    struct hed_trace_writer *w = open_writer("ids_survive_sorting.hed", false, 65536);
    struct hed_trace_index *index = NULL;
    struct hed_trace_record r;

    for (unsigned i = 0; i < 10; i++) {
        struct hed_trace_put put;
        struct hed_enc *e = hed_trace_begin(w, &put);

        assert_non_null(e);
        hed_trace_end(w, &put,
                      &(struct hed_trace_head){
                          .kind = HED_TRACE_CALL, .start = 100 - i, .correlation = i + 1});
    }
    hed_trace_writer_free(w);

    struct hed_trace *t = read_back(path);

    assert_int_equal(hed_trace_sort(t, &index, NULL), 0);
    for (unsigned i = 0; i < 10; i++) {
        assert_true(hed_trace_at(index, i, &r));
        assert_int_equal(r.correlation, 10 - i);
    }
    hed_trace_index_free(index);
    hed_trace_close(t);
}

/* A record that says it has an id but is too short for one is not read past its end. */
static void
a_record_too_short_for_an_id_has_none(void **state)
{
    static struct make m;
    struct hed_trace *t = NULL;
    struct hed_trace_record r;

    make_begin(&m, 1);
    put_bytes(&m, "1234567", 7);
    make_record(&m, HED_TRACE_CALL, 1, 1, 1, 0, HED_TRACE_LINKED);
    put_bytes(&m, "12345678", 8);
    make_record(&m, HED_TRACE_CALL, 1, 2, 1, 0, HED_TRACE_LINKED);
    make_records(&m, 1);
    assert_int_equal(hed_trace_open_memory(m.file, m.size, &t, NULL), 0);

    struct hed_trace_cursor c = hed_trace_cursor_over(t);

    assert_true(hed_trace_next(&c, &r));
    assert_true(r.correlation == 0 && r.body_size == 7);
    assert_true(hed_trace_next(&c, &r));
    assert_true(r.correlation != 0 && r.body_size == 0);
    hed_trace_close(t);
}

/* ---- incomplete records ---------------------------------------------------------------------- */

static void
truncated_bodies_are_refused_and_printed(void **state)
{
    struct hed_trace_writer *w = open_writer("cut_bodies.hed", false, 65536);
    struct hed_trace_activity a;
    struct hed_buf b;

    hed_trace_put_activity(w, &kernel);
    hed_trace_writer_free(w);

    struct hed_trace_record r = record_at(0);
    const uint32_t whole = r.body_size;

    hed_buf_init(&b, 4096);
    for (r.body_size = 0; r.body_size < whole; r.body_size++) {
        assert_false(hed_trace_get_activity(&r, &a));
        hed_buf_reset(&b);
        hed_trace_print_other(&r, &b);
        assert_string_equal(hed_buf_cstr(&b), "kernel <cut>");
        hed_buf_reset(&b);
        hed_trace_json_activity(&r, &b);
        assert_int_equal(b.size, 0);
    }
    assert_true(hed_trace_get_activity(&r, &a));
    r.flags = HED_TRACE_CUT;
    assert_false(hed_trace_get_activity(&r, &a));
    r.flags = 0;
    r.kind = HED_TRACE_CALL;
    assert_false(hed_trace_get_activity(&r, &a));
    hed_buf_fini(&b);
}

/* A file may say that there is no name and store one nevertheless. */
static void
a_null_name_has_no_bytes(void **state)
{
    uint8_t body[20 + 8 + 1] = {0};
    const struct hed_trace_record r = {.kind = HED_TRACE_ACTIVITY,
                                       .call = HED_TRACE_OTHER,
                                       .body = body,
                                       .body_size = sizeof body};
    struct hed_trace_activity a;
    struct hed_buf b;

    memset(body + 20, 0xff, 4);
    body[24] = 1;
    assert_true(hed_trace_get_activity(&r, &a));
    assert_true(a.name == NULL && a.name_size == 0);
    hed_buf_init(&b, 4096);
    hed_trace_print_activity(&r, &b);
    assert_string_equal(hed_buf_cstr(&b), "other");
    hed_buf_fini(&b);
}

static void
activities_are_printed_for_people(void **state)
{
    struct hed_trace_writer *w = open_writer("text_is_for_people.hed", false, 65536);
    const struct hed_trace_activity fill = {.kind = HED_TRACE_FILL, .bytes = 64, .to = 3};
    const struct hed_trace_activity other = {.kind = HED_TRACE_OTHER, .name = "a \"b\"\n"};
    static const char *const expected[] = {
        "kernel saxpy grid 256x2x3 block 128x4x5 shared 64+1024 registers 32",
        "copy pinned to device, 1099511627776 bytes",
        "fill of device, 64 bytes",
        "other a \\\"b\\\"\\n",
    };
    struct hed_buf b;

    hed_trace_put_activity(w, &kernel);
    hed_trace_put_activity(w, &copy);
    hed_trace_put_activity(w, &fill);
    hed_trace_put_activity(w, &other);
    hed_trace_writer_free(w);
    hed_buf_init(&b, 4096);
    for (unsigned i = 0; i < 4; i++) {
        const struct hed_trace_record r = record_at(i);

        hed_buf_reset(&b);
        hed_trace_print_other(&r, &b);
        assert_string_equal(hed_buf_cstr(&b), expected[i]);
        assert_string_equal(hed_trace_kind_name(r.kind), "activity");
    }
    hed_buf_fini(&b);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define EACH 5000

static void *
put_many(void *p)
{
    struct hed_trace_activity a = kernel;

    for (uint64_t i = 0; i < EACH; i++) {
        a.correlation = i + 1;
        a.start = i;
        a.end = i + 1;
        hed_trace_put_activity(p, &a);
    }
    return NULL;
}

/* As CUPTI does: whole buffers from a thread of its own, beside the threads that make calls. */
static void
any_thread_may_put(void **state)
{
    struct hed_trace_writer *w = open_writer("any_thread_may_put.hed", false, 65536);
    struct hed_trace_activity a;
    struct hed_trace_record r;
    pthread_t threads[3];
    uint64_t sum = 0;

    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_many, w), 0);
    for (uint32_t i = 0; i < EACH; i++)
        assert_true(put_call(w, 0, i, 0));
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    hed_trace_writer_free(w);

    struct hed_trace *t = read_back(path);
    struct hed_trace_cursor c = hed_trace_cursor_over(t);

    assert_int_equal(hed_trace_state(t)->records, 4 * EACH);
    assert_int_equal(hed_trace_state(t)->activities, 3 * EACH);
    while (hed_trace_next(&c, &r)) {
        if (hed_trace_get_activity(&r, &a))
            sum += a.correlation;
    }
    assert_true(sum == UINT64_C(3) * EACH * (EACH + 1) / 2);
    hed_trace_close(t);
}

static void
notes_are_records(void **state)
{
    struct hed_trace_writer *w = open_writer("notes_are_records.hed", false, 65536);
    static char longest[3000];
    struct hed_trace_record r;

    memset(longest, 'n', sizeof longest - 1);
    hed_trace_put_note(w, HED_TRACE_RANGE_BEGIN, "waits for its turn");
    hed_trace_put_note(w, HED_TRACE_RANGE_END, NULL);
    hed_trace_put_note(w, HED_TRACE_MARK, longest);
    hed_trace_writer_free(w);
    r = record_at(0);
    assert_true(r.kind == HED_TRACE_RANGE_BEGIN && r.body_size == 18 && r.start > 0);
    r = record_at(1);
    assert_true(r.kind == HED_TRACE_RANGE_END && r.body_size == 0);
    r = record_at(2);
    assert_true(r.kind == HED_TRACE_MARK && r.body_size == 1024);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(activities_that_are_put_are_read),
    cmocka_unit_test(strange_values_are_kept_in_bounds),
    cmocka_unit_test(calls_carry_their_id),
    cmocka_unit_test(ids_survive_sorting),
    cmocka_unit_test(a_record_too_short_for_an_id_has_none),
    cmocka_unit_test(truncated_bodies_are_refused_and_printed),
    cmocka_unit_test(a_null_name_has_no_bytes),
    cmocka_unit_test(activities_are_printed_for_people),
    cmocka_unit_test(any_thread_may_put),
    cmocka_unit_test(notes_are_records),
};

HED_UNIT_MAIN(tests)
