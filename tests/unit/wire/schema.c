/* Tests that the schema in a trace describes what the encoder does: every call of both APIs is
 * written to a file and decoded by the reader, which knows nothing but the file.
 */
#include "harness/unit.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "core/call.h"
#include "gen/cuda_names.h"
#include "gen/cuda_wire.h"
#include "gen/nvml_names.h"
#include "gen/nvml_wire.h"
#include "harness/fill.h"
#include "see/trace/print.h"
#include "see/trace/read.h"
#include "see/trace/write.h"

#define ROUNDS 6

static union {
    union hed_cuda_args cuda;
    union hed_nvml_args nvml;
} args;

static void
put_call(struct hed_trace_writer *w, enum hed_api api, uint32_t id, uint64_t seed)
{
    const struct hed_trace_head head = {HED_TRACE_CALL, (uint8_t)api, (uint16_t)id, 1, 1, 0, 0, 0};
    struct hed_arena arena;
    struct fill f = {seed * 977 + id, &arena, seed % 2};
    struct hed_trace_put put;
    struct hed_enc *e;

    hed_arena_init(&arena, 1 << 20);
    memset(&args, 0, sizeof args);
    if (api == HED_API_CUDA)
        fill_cuda_args(&f, (enum hed_cuda_call)id, &args);
    else
        fill_nvml_args(&f, (enum hed_nvml_call)id, &args);
    e = hed_trace_begin(w, &put);
    assert_non_null(e);
    if (api == HED_API_CUDA) {
        hed_cuda_put_request(e, (enum hed_cuda_call)id, &args);
        hed_cuda_put_reply(e, (enum hed_cuda_call)id, &args, 0);
    } else {
        hed_nvml_put_request(e, (enum hed_nvml_call)id, &args);
        hed_nvml_put_reply(e, (enum hed_nvml_call)id, &args, 0);
    }
    hed_trace_end(w, &put, &head);
    hed_arena_fini(&arena);
}

/* Decodes a record; a reader that goes wrong reports "cut" or leaves bytes over. */
static void
check_record(const struct hed_trace *t, const struct hed_trace_record *r)
{
    const char *name = hed_call_info((enum hed_api)r->api, r->call)->name;
    struct hed_trace_record shorter = *r;
    struct hed_buf b;

    hed_buf_init(&b, 1 << 20);
    hed_trace_json_args(t, r, &b);
    if (b.err || strstr(hed_buf_cstr(&b), "\"cut\":true"))
        fail_msg("%s cannot be read: %.200s", name, hed_buf_cstr(&b));
    hed_buf_reset(&b);

    /* All of it was needed: with one byte less, it is cut. */
    if (shorter.body_size) {
        shorter.body_size--;
        hed_trace_json_args(t, &shorter, &b);
        if (!strstr(hed_buf_cstr(&b), "\"cut\":true"))
            fail_msg("%s: the reader leaves bytes over", name);
        hed_buf_reset(&b);
    }
    hed_trace_print_name(t, r, &b);
    assert_memory_equal(hed_buf_cstr(&b), name, strlen(name));
    hed_buf_fini(&b);
}

static void
every_call_is_read_by_its_schema(void **state)
{
    static const char *const schemas[] = {hed_cuda_schema, hed_nvml_schema, NULL};
    char path[1024];
    const struct hed_trace_options o = {
        .path = path, .ring_size = 1 << 20, .data_bytes = 4096, .schemas = schemas};
    struct hed_trace_writer *w;
    struct hed_trace *t;
    struct hed_trace_cursor c;
    struct hed_trace_record r;
    unsigned n = 0;

    snprintf(path, sizeof path, "%s/t.hed", getenv("HED_SCRATCH"));
    assert_int_equal(hed_trace_writer_open(&o, &w, NULL), 0);
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        for (uint32_t id = 1; id < HED_CUDA_CALLS; id++)
            put_call(w, HED_API_CUDA, id, seed);
        for (uint32_t id = 1; id < HED_NVML_CALLS; id++)
            put_call(w, HED_API_NVML, id, seed);
    }
    hed_trace_writer_free(w);
    assert_int_equal(hed_trace_open(path, &t, NULL), 0);
    c = hed_trace_cursor_over(t);
    for (; hed_trace_next(&c, &r); n++)
        if (!(r.flags & HED_TRACE_CUT)) /* a few are longer than a record may be */
            check_record(t, &r);
    assert_int_equal(n, ROUNDS * (HED_CUDA_CALLS - 1 + HED_NVML_CALLS - 1));
    hed_trace_close(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_call_is_read_by_its_schema),
};

HED_UNIT_MAIN(tests)
