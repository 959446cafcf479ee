/* Tests of server/worker/required: the block sizes that PTX requires of kernels. */
#include "remote/server/worker/required.h"

#include "harness/unit.h"

static const char text[] = ".version 8.0\n.target sm_80\n"
                           ".visible .entry any(.param .u64 a) { ret; }\n"
                           ".visible .entry exact() .reqntid 64, 2, 1 { ret; }\n"
                           ".entry $one_1 (.param .u32 x)\n.maxnreg 20 .reqntid  32\n{ ret; }\n"
                           ".visible .entry cut() .reqntid 1";

static void
sizes_are_found_by_name(void **state)
{
    struct hed_required *r = hed_required_read(text, sizeof text);
    uint32_t t[3] = {7, 7, 7};

    assert_false(hed_required_find(r, "any", t));
    assert_false(hed_required_find(r, "cut", t));
    assert_int_equal(t[0], 7);
    assert_true(hed_required_find(r, "exact", t));
    assert_true(t[0] == 64 && t[1] == 2 && t[2] == 1);
    assert_true(hed_required_find(r, "$one_1", t));
    assert_true(t[0] == 32 && t[1] == 0 && t[2] == 0);
    hed_required_free(r);
}

static void
whatever_is_there_is_read(void **state)
{
    static const char *const odd[] = {"",
                                      ".entry",
                                      ".entry a",
                                      ".entry {.reqntid",
                                      "\x50\xed\x55\xba",
                                      "\177ELF",
                                      ".entry a .reqntid,,,,{"};
    uint32_t t[3];

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct hed_required *r = hed_required_read(odd[i], strlen(odd[i]));

        assert_false(hed_required_find(r, "b", t));
        hed_required_free(r);
    }
    assert_false(hed_required_find(NULL, "b", t));
    hed_required_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sizes_are_found_by_name),
    cmocka_unit_test(whatever_is_there_is_read),
};

HED_UNIT_MAIN(tests)
