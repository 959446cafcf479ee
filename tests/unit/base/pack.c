/* Tests of base/pack: values that are put are got back, and input of any length does no harm. */
#include "harness/unit.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/pack.h"

#define NAN32 0x7fc12345u /* a bit pattern that arithmetic might change */

struct values {
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d;
    float e;
    double f;
    char raw[3];
    const char *text;
    const char *no_text;
    const void *bulk;
    uint16_t items[3];
};

static const struct values sample = {
    .a = 0xa1,
    .b = 0xb2b1,
    .c = 0xc4c3c2c1,
    .d = 0xd8d7d6d5d4d3d2d1,
    .e = -0.0f,
    .f = 1e300,
    .raw = {'r', 'a', 'w'},
    .text = "text",
    .bulk = "\0bulk",
    .items = {1, 0x0203, 0xffff},
};

static void
put_sample(struct hed_enc *e)
{
    hed_put_u8(e, sample.a);
    hed_put_u16(e, sample.b);
    hed_put_u32(e, sample.c);
    hed_put_u64(e, sample.d);
    hed_put_f32(e, sample.e);
    hed_put_f64(e, sample.f);
    hed_put_raw(e, sample.raw, 3);
    hed_put_text(e, sample.text);
    hed_put_text(e, NULL);
    hed_put_bulk(e, sample.bulk, 5);
    hed_put_bulk(e, NULL, 17);
    for (uint32_t i = 0, n = hed_put_items(e, sample.items, 3); i < n; i++)
        hed_put_u16(e, sample.items[i]);
    hed_put_items(e, NULL, 9);
}

/* Returns the decoded values; all are initialised, whatever the bytes were. */
static struct values
get_sample(struct hed_dec *d)
{
    struct values v = {0};
    uint32_t n = 77;

    v.a = hed_get_u8(d);
    v.b = hed_get_u16(d);
    v.c = hed_get_u32(d);
    v.d = hed_get_u64(d);
    v.e = hed_get_f32(d);
    v.f = hed_get_f64(d);
    hed_get_raw(d, v.raw, 3);
    v.text = hed_get_text(d);
    v.no_text = hed_get_text(d);
    v.bulk = hed_get_bulk(d, &n);
    assert_int_equal(n, v.bulk ? 5 : 0);
    assert_null(hed_get_bulk(d, &n));

    const uint16_t *items = hed_get_items(d, sizeof *items, &n);

    assert_true(n == 0 || (items && n == 3));
    for (uint32_t i = 0; i < n; i++)
        v.items[i] = hed_get_u16(d);
    assert_null(hed_get_items(d, 8, &n));
    assert_int_equal(n, 0);
    return v;
}

static size_t
encode_sample(uint8_t *p, size_t size)
{
    struct hed_enc e = hed_enc_over(p, size);

    put_sample(&e);
    assert_int_equal(e.err, 0);
    return (size_t)(e.at - p);
}

static void
values_that_are_put_are_got_back(void **state)
{
    uint8_t bytes[256];
    const size_t n = encode_sample(bytes, sizeof bytes);
    struct hed_arena arena;

    hed_arena_init(&arena, 1 << 16);

    struct hed_dec d = hed_dec_over(bytes, n, &arena);
    const struct values v = get_sample(&d);

    assert_int_equal(d.err, 0);
    assert_ptr_equal(d.at, d.end);
    assert_int_equal(v.a, sample.a);
    assert_int_equal(v.b, sample.b);
    assert_int_equal(v.c, sample.c);
    assert_true(v.d == sample.d);
    assert_memory_equal(&v.e, &sample.e, sizeof v.e);
    assert_memory_equal(&v.f, &sample.f, sizeof v.f);
    assert_memory_equal(v.raw, "raw", 3);
    assert_string_equal(v.text, "text");
    assert_null(v.no_text);
    assert_memory_equal(v.bulk, "\0bulk", 5);
    assert_memory_equal(v.items, sample.items, sizeof v.items);
    hed_arena_fini(&arena);
}

static void
bytes_are_little_endian(void **state)
{
    uint8_t bytes[14];
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    hed_put_u16(&e, 0x0102);
    hed_put_u32(&e, 0x03040506);
    hed_put_u64(&e, 0x0708090a0b0c0d0e);
    assert_int_equal(e.err, 0);
    assert_memory_equal(bytes, "\2\1\6\5\4\3\x0e\x0d\x0c\x0b\x0a\x09\x08\x07", 14);
}

static void
numbers_keep_their_bits(void **state)
{
    uint8_t bytes[4];
    struct hed_enc e = hed_enc_over(bytes, 4);
    struct hed_dec d = hed_dec_over(bytes, 4, NULL);
    const uint32_t bits = NAN32;
    float f;

    memcpy(&f, &bits, 4);
    hed_put_f32(&e, f);
    f = hed_get_f32(&d);
    assert_memory_equal(&f, &bits, 4);
}

static void
space_is_filled_by_stores(void **state)
{
    uint8_t bytes[7];
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);
    uint8_t *p = hed_put_space(&e, 7);

    assert_ptr_equal(p, bytes);
    hed_store_u8(p, 1);
    hed_store_u16(p + 1, 0x0302);
    hed_store_u32(p + 3, 0x07060504);
    assert_memory_equal(bytes, "\1\2\3\4\5\6\7", 7);
    assert_null(hed_put_space(&e, 1));
    assert_int_equal(e.err, HED_ELIMIT);
    assert_ptr_equal(e.at, bytes + 7);
}

static void
encoder_stops_at_every_size(void **state)
{
    uint8_t whole[256];
    const size_t n = encode_sample(whole, sizeof whole);

    for (size_t size = 0; size < n; size++) {
        uint8_t *p = test_malloc(size + 1);
        struct hed_enc e = hed_enc_over(p, size);

        p[size] = 0x5a;
        put_sample(&e);
        assert_int_equal(e.err, HED_ELIMIT);
        assert_true(e.at <= p + size);
        assert_memory_equal(p, whole, (size_t)(e.at - p));
        assert_int_equal(p[size], 0x5a);

        /* After an overflow, the encoder refuses even what would fit. */
        const uint8_t *at = e.at;

        hed_put_u8(&e, 1);
        assert_null(hed_put_space(&e, 1));
        assert_ptr_equal(e.at, at);
        test_free(p);
    }
}

static void
decoder_stops_at_every_size(void **state)
{
    uint8_t whole[256];
    const size_t n = encode_sample(whole, sizeof whole);

    for (size_t size = 0; size < n; size++) {
        uint8_t *p = test_malloc(size ? size : 1);
        struct hed_arena arena;

        memcpy(p, whole, size);
        hed_arena_init(&arena, 1 << 16);

        struct hed_dec d = hed_dec_over(p, size, &arena);

        (void)get_sample(&d);
        assert_true(d.err == HED_ETRUNC || d.err == HED_EFORMAT);
        assert_ptr_equal(d.at, d.end);
        /* After an error all values are zero, and no memory is handed out. */
        assert_int_equal(hed_get_u64(&d), 0);
        assert_null(hed_get_span(&d, 1));
        assert_null(hed_get_room(&d, 1, 1));
        hed_arena_fini(&arena);
        test_free(p);
    }
}

static void
first_error_sticks(void **state)
{
    uint8_t bytes[16] = {0};
    struct hed_dec d = hed_dec_over(bytes, sizeof bytes, NULL);

    assert_null(hed_get_room(&d, 1, 1)); /* there is no arena */
    assert_int_equal(d.err, HED_ELIMIT);
    (void)hed_get_u64(&d);
    assert_null(hed_get_span(&d, 100));
    assert_int_equal(d.err, HED_ELIMIT);
}

static void
encoder_truncates_long_data(void **state)
{
    static const uint8_t data[100] = "0123456789";
    uint8_t bytes[128];
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    e.max_items = 2;
    e.max_bytes = 3;
    e.max_text = 4;
    assert_int_equal(hed_put_items(&e, data, 100), 2);
    hed_put_raw(&e, data, 2);
    hed_put_bulk(&e, data, 100);
    hed_put_text(&e, "0123456789");
    assert_int_equal(e.err, 0);
    assert_int_equal(e.at - bytes, (8 + 2) + (12 + 3) + (8 + 4));

    struct hed_dec d = hed_dec_over(bytes, sizeof bytes, NULL);

    assert_int_equal(hed_get_u32(&d), 100);
    assert_int_equal(hed_get_u32(&d), 2);
    (void)hed_get_span(&d, 2);
    assert_true(hed_get_u64(&d) == 100);
    assert_int_equal(hed_get_u32(&d), 3);
    (void)hed_get_span(&d, 3);
    assert_int_equal(hed_get_u32(&d), 10);
    assert_int_equal(hed_get_u32(&d), 4);
}

/* One array, one bulk, one text. */
static int
get_cut(char what, uint64_t count, uint32_t stored)
{
    uint8_t bytes[64] = {0};
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);
    struct hed_arena arena;
    uint32_t n;

    if (what == 'b')
        hed_put_u64(&e, count);
    else
        hed_put_u32(&e, (uint32_t)count);
    hed_put_u32(&e, stored);
    hed_arena_init(&arena, 4096);

    struct hed_dec d = hed_dec_over(bytes, sizeof bytes, &arena);
    const void *p = what == 'i'   ? hed_get_items(&d, 1, &n)
                    : what == 'b' ? hed_get_bulk(&d, &n)
                                  : hed_get_text(&d);
    const int err = d.err;

    assert_true(err == 0 || p == NULL);
    hed_arena_fini(&arena);
    return err;
}

static void
decoder_refuses_truncated_data(void **state)
{
    for (const char *what = "ibt"; *what; what++) {
        assert_int_equal(get_cut(*what, 4, 4), 0);
        assert_int_equal(get_cut(*what, 0, 0), 0);
        assert_int_equal(get_cut(*what, 5, 4), HED_EFORMAT);
        assert_int_equal(get_cut(*what, 4, 5), HED_EFORMAT);
        assert_int_equal(get_cut(*what, UINT32_MAX - 1, 0), HED_EFORMAT);
        assert_int_equal(get_cut(*what, UINT32_MAX, 1), HED_EFORMAT);
        assert_int_not_equal(get_cut(*what, 1000, 1000), 0); /* more than there are bytes */
    }
    assert_int_equal(get_cut('b', UINT64_MAX, 0), 0);
    assert_int_equal(get_cut('b', UINT64_MAX, 4), HED_EFORMAT);
}

static void
huge_counts_are_refused(void **state)
{
    uint8_t bytes[64];
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    /* A pointer with more items than a count can express. */
    assert_int_equal(hed_put_items(&e, "x", UINT64_MAX), 0);
    assert_int_equal(hed_put_items(&e, "x", UINT32_MAX), 0);
    assert_int_equal(e.err, 0);

    struct hed_dec d = hed_dec_over(bytes, (size_t)(e.at - bytes), NULL);
    uint32_t n;

    assert_null(hed_get_items(&d, 1, &n));
    assert_int_equal(d.err, HED_EFORMAT);
}

static void
space_is_bounded_and_zeroed(void **state)
{
    struct hed_arena arena;

    hed_arena_init(&arena, 1 << 12);

    struct hed_dec d = hed_dec_over("", 0, &arena);
    const uint8_t *p = hed_get_room(&d, 10, 10);

    assert_non_null(p);
    assert_int_equal((uintptr_t)p % 128, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(p[i], 0);
    assert_null(hed_get_room(&d, UINT64_MAX / 2, 4)); /* the product overflows */
    assert_int_equal(d.err, HED_ELIMIT);

    d = hed_dec_over("", 0, &arena);
    assert_null(hed_get_room(&d, 1 << 12, 1)); /* above the ceiling, together with what is used */
    assert_int_equal(d.err, HED_ELIMIT);
    hed_arena_fini(&arena);
}

static void
get_into_takes_only_what_fits(void **state)
{
    uint8_t bytes[64];
    char out[8] = "-------";
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);

    hed_put_text(&e, "four");
    hed_put_bulk(&e, "four", 4);
    (void)hed_put_items(&e, "four", 4);

    for (uint64_t room = 0; room < 8; room++) {
        struct hed_dec d = hed_dec_over(bytes, sizeof bytes, NULL);

        memset(out, '-', sizeof out);
        hed_get_text_into(&d, out, room);
        assert_int_equal(d.err, room > 4 ? 0 : HED_EFORMAT);
        assert_string_equal(room > 4 ? out : "four", "four");
        assert_true(room > 4 || out[0] == '-');

        d = hed_dec_over(bytes + 12, sizeof bytes - 12, NULL);
        memset(out, '-', sizeof out);
        assert_int_equal(hed_get_bulk_into(&d, out, room), room >= 4 ? 4 : 0);
        assert_int_equal(d.err, room >= 4 ? 0 : HED_EFORMAT);
        assert_memory_equal(out, room >= 4 ? "four-" : "-----", 5);

        d = hed_dec_over(bytes + 28, sizeof bytes - 28, NULL);
        assert_int_equal(hed_get_count_into(&d, room), room >= 4 ? 4 : 0);
        assert_int_equal(d.err, room >= 4 ? 0 : HED_EFORMAT);
    }
}

static void
textbuf_ends_at_its_count(void **state)
{
    const char full[4] = {'a', 'b', 'c', 'd'}; /* without a terminating 0 */
    uint8_t bytes[64];
    struct hed_enc e = hed_enc_over(bytes, sizeof bytes);
    struct hed_arena arena;

    hed_put_textbuf(&e, full, 4);
    hed_put_textbuf(&e, full, 0);
    hed_put_textbuf(&e, NULL, 4);
    hed_arena_init(&arena, 4096);

    struct hed_dec d = hed_dec_over(bytes, (size_t)(e.at - bytes), &arena);

    assert_string_equal(hed_get_text(&d), "abcd");
    assert_string_equal(hed_get_text(&d), "");
    assert_null(hed_get_text(&d));
    assert_int_equal(d.err, 0);
    hed_arena_fini(&arena);
}

static void
cases_and_counts_must_agree(void **state)
{
    const uint8_t bytes[] = {3, 0, 1, 2, 3, 4};
    struct hed_dec d = hed_dec_over(bytes, sizeof bytes, NULL);

    assert_int_equal(hed_get_peek(&d, 2), 0x04030201);
    assert_int_equal(hed_get_peek(&d, 3), 0); /* some of it is missing */
    assert_int_equal(hed_get_peek(&d, 300), 0);
    assert_int_equal(d.err, 0);
    hed_get_case(&d, 3);
    assert_int_equal(d.err, 0);
    hed_get_case(&d, 3);
    assert_int_equal(d.err, HED_EFORMAT);

    d = hed_dec_over(bytes, sizeof bytes, NULL);
    hed_get_same(&d, bytes, 5, 5);
    hed_get_same(&d, NULL, 0, 5);
    assert_int_equal(d.err, 0);
    hed_get_same(&d, bytes, 5, (uint64_t)5 << 32 | 5);
    assert_int_equal(d.err, HED_EFORMAT);
    assert_int_equal(hed_get_u8(&d), 0);

    d = hed_dec_over(bytes, 1, NULL);
    (void)hed_get_u16(&d);
    hed_get_bad(&d);
    assert_int_equal(d.err, HED_ETRUNC); /* the first one */
}

/* So many cannot fit, so the decoder does not even try. */
static void
items_beyond_the_end_are_refused(void **state)
{
    uint8_t room[16] = {0};
    struct hed_enc e = hed_enc_over(room, sizeof room);

    assert_int_equal(hed_put_items(&e, room, 9), 0);
    assert_int_equal(e.err, HED_ELIMIT);
    e = hed_enc_over(room, sizeof room);
    assert_int_equal(hed_put_items(&e, room, 8), 8);
    assert_int_equal(e.err, 0);
    e = hed_enc_over(NULL, 0);
    assert_int_equal(hed_put_items(&e, room, 1), 0);
    assert_int_equal(e.err, HED_ELIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(values_that_are_put_are_got_back),
    cmocka_unit_test(bytes_are_little_endian),
    cmocka_unit_test(numbers_keep_their_bits),
    cmocka_unit_test(space_is_filled_by_stores),
    cmocka_unit_test(encoder_stops_at_every_size),
    cmocka_unit_test(decoder_stops_at_every_size),
    cmocka_unit_test(first_error_sticks),
    cmocka_unit_test(encoder_truncates_long_data),
    cmocka_unit_test(decoder_refuses_truncated_data),
    cmocka_unit_test(huge_counts_are_refused),
    cmocka_unit_test(space_is_bounded_and_zeroed),
    cmocka_unit_test(get_into_takes_only_what_fits),
    cmocka_unit_test(textbuf_ends_at_its_count),
    cmocka_unit_test(cases_and_counts_must_agree),
    cmocka_unit_test(items_beyond_the_end_are_refused),
};

HED_UNIT_MAIN(tests)
