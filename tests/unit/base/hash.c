/* Tests of base/hash: known answers, however the bytes are split. */
#include "base/hash.h"
#include "harness/unit.h"

static const char *
hash(const unsigned char *p, size_t n, size_t piece)
{
    static char text[HED_HASH_TEXT];
    uint8_t out[HED_HASH_SIZE];
    struct hed_hash h;

    hed_hash_init(&h);
    for (size_t at = 0; at < n; at += piece)
        hed_hash_add(&h, p + at, piece < n - at ? piece : n - at);
    hed_hash_end(&h, out);
    return hed_hash_text(out, text);
}

/* BLAKE2b-256 from Python's hashlib, of nothing, of "abc", and of n bytes 0, 7, 14, ... */
static void
the_known_answers_come_out(void **state)
{
    static const struct {
        size_t n;
        const char *hash;
    } rows[] = {
        {127, "4ff62e7c4c43fe101a078479c48836be4907d9d498dcc577ca89d694b2c11f9b"},
        {128, "14696d2a98d9f8a280da8b132b1045b345e1033759c6b02fcc4ee885c8ae7c37"},
        {129, "3934215260b1039be9d9d2b073b059bcd50120c327a22af93eb4d98cf821c14c"},
        {256, "3d0cb2693dfbac42af5a6cc960953fea8714aa39c4bcd054ef61d6b5e98ade4a"},
        {1000, "6ac4bea923678eb024090384d6e767b5870f849057dc19b172d8d9f2df30bf8e"},
    };
    unsigned char bytes[1000];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(7 * i);
    assert_string_equal(hash(NULL, 0, 1),
                        "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    assert_string_equal(hash((const unsigned char *)"abc", 3, 3),
                        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(hash(bytes, rows[i].n, rows[i].n), rows[i].hash);
}

static void
pieces_give_the_hash_of_the_whole(void **state)
{
    unsigned char bytes[1000];
    char whole[HED_HASH_TEXT];

    memset(bytes, 'x', sizeof bytes);
    for (size_t n = 1; n <= sizeof bytes; n += 37) {
        memcpy(whole, hash(bytes, n, n), sizeof whole);
        for (size_t piece = 1; piece < 300; piece += 21)
            assert_string_equal(hash(bytes, n, piece), whole);
    }
}

static void
the_ends_of_texts_count(void **state)
{
    unsigned char ab_c[HED_HASH_SIZE], a_bc[HED_HASH_SIZE];
    struct hed_hash h;

    hed_hash_init(&h);
    hed_hash_add_text(&h, "ab");
    hed_hash_add_text(&h, "c");
    hed_hash_end(&h, ab_c);
    hed_hash_init(&h);
    hed_hash_add_text(&h, "a");
    hed_hash_add_text(&h, "bc");
    hed_hash_end(&h, a_bc);
    assert_memory_not_equal(ab_c, a_bc, HED_HASH_SIZE);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_known_answers_come_out),
    cmocka_unit_test(pieces_give_the_hash_of_the_whole),
    cmocka_unit_test(the_ends_of_texts_count),
};

HED_UNIT_MAIN(tests)
