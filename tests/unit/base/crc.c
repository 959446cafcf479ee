/* Tests of base/crc: known values, and that it does not matter how the bytes are cut. */
#include "harness/unit.h"

#include "base/crc.h"

static void
known_values(void **state)
{
    /* The check value of the CRC catalogues, and zlib's answers. */
    assert_int_equal(hed_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(hed_crc32(0, "", 0), 0);
    assert_int_equal(hed_crc32(0, "a", 1), 0xe8b7be43);
    assert_int_equal(hed_crc32(0, "The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
}

static void
nothing_changes_nothing(void **state)
{
    assert_int_equal(hed_crc32(0x12345678, NULL, 0), 0x12345678);
}

/* The definition, a bit at a time. */
static uint32_t
plain(const unsigned char *p, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

static void
any_length_and_alignment(void **state)
{
    unsigned char bytes[96];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 167 + 13);
    for (size_t from = 0; from < 16; from++) {
        for (size_t n = 0; n <= sizeof(bytes) - from; n++)
            assert_int_equal(hed_crc32(0, bytes + from, n), plain(bytes + from, n));
    }
}

static void
pieces_equal_the_whole(void **state)
{
    unsigned char bytes[61];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * i);

    const uint32_t whole = hed_crc32(0, bytes, sizeof(bytes));

    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        const uint32_t head = hed_crc32(0, bytes, cut);

        assert_int_equal(hed_crc32(head, bytes + cut, sizeof(bytes) - cut), whole);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_values),
    cmocka_unit_test(nothing_changes_nothing),
    cmocka_unit_test(any_length_and_alignment),
    cmocka_unit_test(pieces_equal_the_whole),
};

HED_UNIT_MAIN(tests)
