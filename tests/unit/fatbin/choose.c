/* Tests of fatbin/choose and fatbin/arch: which image a device gets. */
#include "unit/fatbin/make.h"

/* Images are given as words, "sm_75 sm_90a compute_80". A '!' in front of a word makes it an image
 * for 32-bit programs. */
static struct hed_bytes
images(struct make *m, const char *words)
{
    char word[32];
    int n;

    make_begin(m);
    for (; sscanf(words, " %31s%n", word, &n) == 1; words += n) {
        const char *name = word + (word[0] == '!');
        uint64_t flags = word[0] == '!' ? 0 : HED_FATBIN_64BIT;
        struct hed_arch arch;
        const char *prefix;

        assert_int_equal(hed_arch_parse(name, &arch, &prefix), 0);
        flags |= arch.suffix == 'a' ? HED_FATBIN_ARCH_EXACT : 0;
        flags |= arch.suffix == 'f' ? HED_FATBIN_ARCH_FAMILY : 0;
        make_entry(m,
                   prefix[0] == 's'   ? HED_FATBIN_CUBIN
                   : prefix[0] == 'c' ? HED_FATBIN_PTX
                                      : HED_FATBIN_LTO,
                   arch.number, flags);
    }
    return made(m);
}

static void
check_choice(const char *words, uint32_t device, unsigned flags, uint32_t below, const char *expect)
{
    const struct hed_choose how = {.device = device, .flags = flags, .ptx_below = below};
    struct hed_fatbin_entry e;
    struct hed_why why = {""};
    struct make m;
    char arch[HED_ARCH_TEXT];
    const int err = hed_fatbin_choose(images(&m, words), &how, &e, &why);

    if (!expect) {
        assert_int_equal(err, HED_ENOTFOUND);
        assert_true(why.text[0]);
        return;
    }
    assert_int_equal(err, 0);
    assert_string_equal(hed_fatbin_arch_text(&e, arch), expect);
}

static void
machine_code_of_the_same_major_is_chosen(void **state)
{
    check_choice("sm_75 sm_80 sm_86 sm_89", 86, 0, 0, "sm_86");
    check_choice("sm_75 sm_86 sm_80", 89, 0, 0, "sm_86");
    check_choice("sm_75 sm_86", 80, 0, 0, NULL);
    check_choice("sm_80 sm_86", 90, 0, 0, NULL);
    check_choice("sm_100 sm_103", 103, 0, 0, "sm_103");
}

static void
machine_code_is_preferred_to_ptx(void **state)
{
    check_choice("compute_86 sm_80", 86, 0, 0, "sm_80");
    check_choice("sm_75 compute_75 compute_80", 86, 0, 0, "compute_80");
}

static void
a_suffix_a_is_exact(void **state)
{
    check_choice("sm_90a", 90, 0, 0, "sm_90a");
    check_choice("sm_100a", 103, 0, 0, NULL);
    check_choice("sm_90 sm_90a", 90, 0, 0, "sm_90a");
    check_choice("compute_90a", 100, 0, 0, NULL);
    check_choice("compute_90a compute_80", 100, 0, 0, "compute_80");
    check_choice("compute_90a compute_90", 90, 0, 0, "compute_90a");
}

static void
a_suffix_f_is_for_the_family(void **state)
{
    check_choice("sm_100f", 103, 0, 0, "sm_100f");
    check_choice("sm_103f", 100, 0, 0, NULL);
    check_choice("sm_100f compute_90", 110, 0, 0, "compute_90");
    check_choice("sm_100 sm_100f", 100, 0, 0, "sm_100f");
    check_choice("sm_100f sm_103", 103, 0, 0, "sm_103");
    check_choice("compute_100f", 103, 0, 0, "compute_100f");
    check_choice("compute_100f", 120, 0, 0, NULL);
}

static void
the_newest_ptx_that_is_not_too_new_is_chosen(void **state)
{
    check_choice("compute_52 compute_80 compute_120", 90, 0, 0, "compute_80");
    check_choice("compute_120", 90, 0, 0, NULL);
}

static void
ptx_can_be_required_or_excluded(void **state)
{
    check_choice("sm_90 compute_80", 90, HED_CHOOSE_PTX_ONLY, 0, "compute_80");
    check_choice("sm_80 compute_90", 90, HED_CHOOSE_CUBIN_ONLY, 0, NULL);
}

static void
ptx_that_is_too_new_is_chosen_on_request(void **state)
{
    const unsigned flags = HED_CHOOSE_PTX_ONLY | HED_CHOOSE_NEWER_PTX;

    check_choice("compute_121 compute_120 compute_120a", 90, flags, 0, "compute_120");
    check_choice("compute_120 compute_52", 90, flags, 0, "compute_52");
    /* It is older and tied to its architecture, so it may not compile. */
    check_choice("compute_80a", 90, flags, 0, NULL);
}

static void
ptx_below_a_limit_is_chosen_on_request(void **state)
{
    check_choice("compute_90 compute_80 compute_75", 90, 0, 90, "compute_80");
    check_choice("compute_90 compute_80 compute_75", 90, 0, 80, "compute_75");
    check_choice("compute_90 compute_80 compute_75", 90, 0, 75, NULL);
}

static bool
is_ampere_or_ada(struct hed_arch arch)
{
    return arch.number >= 80 && arch.number < 90;
}

static void
check_translated(const char *words, uint32_t device, const char *expect)
{
    const struct hed_choose how = {.device = device, .takes_cubin = is_ampere_or_ada};
    struct hed_fatbin_entry e;
    struct make m;
    char arch[HED_ARCH_TEXT];
    const int err = hed_fatbin_choose(images(&m, words), &how, &e, NULL);

    assert_int_equal(err, expect ? 0 : HED_ENOTFOUND);
    if (expect)
        assert_string_equal(hed_fatbin_arch_text(&e, arch), expect);
}

static void
machine_code_for_other_devices_is_the_last_resort(void **state)
{
    check_translated("sm_75 sm_80 sm_86 sm_90 compute_90", 86, "sm_86");
    check_translated("sm_90 sm_80 compute_80", 90, "compute_80");
    check_translated("sm_75 sm_80 sm_86 sm_90 compute_100", 90, "sm_86");
    check_translated("sm_75 sm_90 sm_100", 90, NULL);
}

static void
of_equal_images_the_first_is_chosen(void **state)
{
    const struct hed_choose how = {.device = 90};
    struct hed_fatbin_entry e;
    struct make m;

    assert_int_equal(hed_fatbin_choose(images(&m, "lto_90 sm_90 sm_90"), &how, &e, NULL), 0);
    assert_int_equal(e.offset, 16 + 72);
}

static void
images_for_32_bits_are_ignored(void **state)
{
    check_choice("!sm_90 sm_90", 90, HED_CHOOSE_64BIT_ONLY, 0, "sm_90");
    check_choice("!sm_90", 90, HED_CHOOSE_64BIT_ONLY, 0, NULL);
    check_choice("!sm_90", 90, 0, 0, "sm_90");
}

static void
images_before_damage_are_used(void **state)
{
    const struct hed_choose how = {.device = 90};
    struct hed_fatbin_entry e;

    assert_int_equal(hed_fatbin_choose(fixture("fatbin/longer"), &how, &e, NULL), 0);
    assert_int_equal(hed_fatbin_choose(fixture("fatbin/cut"), &how, &e, NULL), HED_ETRUNC);
}

static void
if_nothing_fits_the_reason_lists_the_images(void **state)
{
    const struct hed_choose how = {.device = 80};
    struct hed_fatbin_entry e;
    struct hed_why why;
    struct make m;

    assert_int_equal(hed_fatbin_choose(images(&m, "sm_90 compute_90"), &how, &e, &why),
                     HED_ENOTFOUND);
    assert_string_equal(why.text, "no image for sm_80 among: sm_90 compute_90");
}

static void
architectures_are_read(void **state)
{
    static const char *const bad[] = {"", "sm_", "sm_x", "90b", "sm_90aa", "099", "sm_99999", "-1"};
    struct hed_arch a = {1, 'x'};
    const char *prefix;
    char text[HED_ARCH_TEXT];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(hed_arch_parse(bad[i], &a, &prefix), HED_EINVAL);
    assert_int_equal(a.number, 1);
    assert_int_equal(hed_arch_parse("compute_100f", &a, &prefix), 0);
    assert_string_equal(prefix, "compute_");
    assert_string_equal(hed_arch_text(a, "sm_", text), "sm_100f");
    assert_int_equal(hed_arch_parse("90", &a, NULL), 0);
    assert_int_equal(a.number, 90);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(machine_code_of_the_same_major_is_chosen),
    cmocka_unit_test(machine_code_is_preferred_to_ptx),
    cmocka_unit_test(a_suffix_a_is_exact),
    cmocka_unit_test(a_suffix_f_is_for_the_family),
    cmocka_unit_test(the_newest_ptx_that_is_not_too_new_is_chosen),
    cmocka_unit_test(ptx_can_be_required_or_excluded),
    cmocka_unit_test(ptx_that_is_too_new_is_chosen_on_request),
    cmocka_unit_test(ptx_below_a_limit_is_chosen_on_request),
    cmocka_unit_test(machine_code_for_other_devices_is_the_last_resort),
    cmocka_unit_test(of_equal_images_the_first_is_chosen),
    cmocka_unit_test(images_for_32_bits_are_ignored),
    cmocka_unit_test(images_before_damage_are_used),
    cmocka_unit_test(if_nothing_fits_the_reason_lists_the_images),
    cmocka_unit_test(architectures_are_read),
};

HED_UNIT_MAIN(tests)
