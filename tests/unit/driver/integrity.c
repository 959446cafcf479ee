/* The answer to NVIDIA's runtime: MD2 is checked with its own vectors, the rest by what must and
 * must not change it. NVIDIA's runtime itself is the other test (tests/cu). */
#include "driver/table/integrity.h"

#include "harness/unit.h"

static void
expect_md2(const char *text, const char *hex)
{
    uint8_t digest[16];
    char out[33];

    hed_md2(text, strlen(text), digest);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(out, hex);
}

/* RFC 1319, appendix A.5. */
static void
md2_matches_its_vectors(void **state)
{
    expect_md2("", "8350e5a3e24c153df2275c9f80692773");
    expect_md2("a", "32ec01ec4a6dac72c0ab96fb34c0b5d1");
    expect_md2("abc", "da853b0d3f88d99b30283a69e6ded6bb");
    expect_md2("message digest", "ab4f496bfb2a530b219ff33031fe06b0");
    expect_md2("abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b");
    expect_md2("12345678901234567890123456789012345678901234567890123456789012345678901234567890",
               "d5976f79d83d3a0dc9806c3c66f3efd8");
}

static const struct hed_integrity_device devices[2] = {
    {{1, 2, 3}, 0, 1, 0},
    {{4, 5, 6}, 0, 2, 0},
};

static struct hed_integrity
sample(void)
{
    return (struct hed_integrity){
        .driver_version = 13000,
        .version = 13002,
        .process = 77,
        .thread = 0x1234,
        .interface_table = 0x10000,
        .integrity_table = 0x20000,
        .function = 0x30000,
        .seconds = 1700000000,
        .devices = devices,
        .device_count = 2,
    };
}

static void
first_two_versions_are_constant(void **state)
{
    struct hed_integrity in = sample();
    uint8_t a[16];
    uint8_t b[16];

    in.version = 13000;
    hed_integrity_answer(&in, a);
    in.process = 78;
    hed_integrity_answer(&in, b);
    assert_memory_equal(a, b, 16);
    assert_int_equal(a[7], 0x33);
    in.version = 13001;
    hed_integrity_answer(&in, b);
    assert_int_equal(b[7], 0x18);
    b[7] = a[7];
    assert_memory_equal(a, b, 16);
}

static void
every_fact_changes_the_answer(void **state)
{
    const struct hed_integrity in = sample();
    struct hed_integrity changed[10];
    uint8_t answers[11][16];

    for (int i = 0; i < 10; i++)
        changed[i] = in;
    changed[0].driver_version++;
    changed[1].version++;
    changed[2].process++;
    changed[3].thread++;
    changed[4].interface_table++;
    changed[5].integrity_table++;
    changed[6].function++;
    changed[7].seconds++;
    changed[8].device_count = 1;
    changed[9].devices = devices + 1;
    changed[9].device_count = 1;
    hed_integrity_answer(&in, answers[10]);
    for (int i = 0; i < 10; i++)
        hed_integrity_answer(&changed[i], answers[i]);
    for (int i = 0; i < 11; i++)
        for (int j = 0; j < i; j++)
            assert_memory_not_equal(answers[i], answers[j], 16);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(md2_matches_its_vectors),
    cmocka_unit_test(first_two_versions_are_constant),
    cmocka_unit_test(every_fact_changes_the_answer),
};

HED_UNIT_MAIN(tests)
