/* What libraries ask about streams and errors through private tables. */
#include "driver/table/tables.h"
#include "unit/driver/busy.h"
#include "unit/driver/captured.h"

static const CUuuid tools_id = {"\x21\x31\x8c\x60\x97\x14\x32\x48"
                                "\x8c\xa6\x41\xff\x73\x24\xc8\xf2"};
static const CUuuid log_id = {"\xf8\xcf\xf9\x51\x21\x46\x8b\x4e"
                              "\xb9\xe2\xfb\x46\x9e\x7c\x0d\xd9"};

typedef CUresult (*stream_fn)(CUcontext, CUstream, CUstream *, uint32_t);
typedef CUresult (*id_fn)(CUcontext, CUstream, uint64_t *);

static const hed_slot *
table_of(struct fake *f, const CUuuid *id)
{
    const void *table = NULL;

    OK(fake_call(f, cuGetExportTable, &table, id));
    return table;
}

/* The number of a stream, asked for as cuBLAS does. */
static uint64_t
number_of(struct fake *f, CUstream given)
{
    const hed_slot *t = table_of(f, &tools_id);
    CUstream s = NULL;
    uint64_t id = 0;

    OK(((stream_fn)t[51])(NULL, given, &s, given == CU_STREAM_PER_THREAD));
    assert_non_null(s);
    OK(((id_fn)t[39])(NULL, s, &id));
    return id;
}

static void
each_stream_has_a_number(void **state)
{
    CUstream s[3];
    struct fake *f = busy_fake_create(&s[0]);
    const CUstream all[] = {NULL, CU_STREAM_PER_THREAD, s[0]};
    unsigned long long want;
    CUstream out;
    uint64_t id;

    for (int i = 0; i < 3; i++) {
        OK(fake_call(f, cuStreamGetId, all[i], &want));
        assert_int_equal(number_of(f, all[i]), want);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(number_of(f, all[i]), number_of(f, all[k]));
    }
    assert_int_equal(number_of(f, NULL), number_of(f, CU_STREAM_LEGACY));

    const hed_slot *t = table_of(f, &tools_id);

    assert_int_equal(((stream_fn)t[51])(NULL, (CUstream)0x1234, &out, 0),
                     CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(((id_fn)t[39])(NULL, (CUstream)0x1234, &id), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(((id_fn)t[39])(NULL, s[0], NULL), CUDA_ERROR_INVALID_VALUE);
    busy_fake_free(f);
}

static void
runtimes_start_without_a_line(void **state)
{
    CUstream s;
    struct fake *f = busy_fake_create(&s);
    struct captured log;
    char text[512];

    captured_begin(&log);
    ((void (*)(void))table_of(f, &log_id)[2])();
    captured_end(&log, text, sizeof text);
    assert_string_equal(text, "");
    busy_fake_free(f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_stream_has_a_number),
    cmocka_unit_test(runtimes_start_without_a_line),
};

HED_UNIT_MAIN(tests)
