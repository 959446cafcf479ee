/* Tests of base/crc, both polynomials: known values, and the same result however the bytes are
 * split. */
#include "harness/unit.h"

#include "base/crc.h"

static void
the_known_values_come_out(void **state)
{
    /* The check value of the CRC catalogues, and zlib's answers. */
    assert_int_equal(hed_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(hed_crc32(0, "", 0), 0);
    assert_int_equal(hed_crc32(0, "a", 1), 0xe8b7be43);
    assert_int_equal(hed_crc32(0, "The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
}

static void
no_bytes_change_nothing(void **state)
{
    assert_int_equal(hed_crc32(0x12345678, NULL, 0), 0x12345678);
}

/* The definition of CRC-32, one bit at a time. */
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
every_length_and_alignment_is_right(void **state)
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
pieces_give_the_result_of_the_whole(void **state)
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

/* Longer than three lanes of the fast way, and the rest of it. */
static void
the_castagnoli_crc_is_the_same_by_table_and_instruction(void **state)
{
    static unsigned char bytes[40000];

    assert_int_equal(hed_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(hed_crc32c(0, "", 0), 0);
    assert_int_equal(hed_crc32c_by_table(0, "123456789", 9), 0xe3069283);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)(i * 167 + (i >> 7));
    for (size_t n = 0; n < sizeof(bytes); n = n * 5 / 4 + 1)
        assert_int_equal(hed_crc32c(7, bytes + n % 16, n - n % 16 * (n >= 16)),
                         hed_crc32c_by_table(7, bytes + n % 16, n - n % 16 * (n >= 16)));

    const uint32_t head = hed_crc32c(0, bytes, 20001);

    assert_int_equal(hed_crc32c(head, bytes + 20001, sizeof(bytes) - 20001),
                     hed_crc32c(0, bytes, sizeof(bytes)));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_known_values_come_out),
    cmocka_unit_test(no_bytes_change_nothing),
    cmocka_unit_test(every_length_and_alignment_is_right),
    cmocka_unit_test(pieces_give_the_result_of_the_whole),
    cmocka_unit_test(the_castagnoli_crc_is_the_same_by_table_and_instruction),
};

HED_UNIT_MAIN(tests)
