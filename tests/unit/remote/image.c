/* Which parts of an image are sent to a worker. */
#include "remote/client/code.h"
#include "unit/fatbin/make.h"

#define BIT HED_FATBIN_64BIT

static struct hed_profile
profile(int major, int minor)
{
    return (struct hed_profile){.major = major, .minor = minor};
}

/* The entries that are sent, as "sm_80 compute_90". */
static void
check(const struct make *m, int cc, bool real, const char *expect)
{
    const struct hed_image image = {HED_IMAGE_FATBIN, made(m), NULL, false};
    const struct hed_profile p = profile(cc / 10, cc % 10);
    struct hed_buf buf;
    struct hed_bytes out;
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    char text[256] = "", arch[HED_ARCH_TEXT];
    size_t used = 0;
    uint64_t size;
    int r;

    hed_buf_init(&buf, 1 << 20);
    assert_int_equal(hed_remote_pack(&image, &p, real, &buf, &out), 0);
    assert_true(hed_fatbin_begins(out, &size));
    assert_int_equal(size, out.size);
    assert_int_equal(hed_fatbin_walk(out, &w, NULL), 0);
    while ((r = hed_fatbin_next(&w, &e, NULL)) > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "",
                                 hed_fatbin_arch_text(&e, arch));
    assert_int_equal(r, 0);
    assert_string_equal(text, expect);
    hed_buf_fini(&buf);
}

static void
a_gpu_gets_its_machine_code(void **state)
{
    struct make m;

    make_begin(&m);
    make_entry(&m, HED_FATBIN_CUBIN, 80, BIT);
    make_entry(&m, HED_FATBIN_CUBIN, 90, BIT);
    make_entry(&m, HED_FATBIN_PTX, 90, BIT);
    check(&m, 90, true, "sm_90");
    check(&m, 86, true, "sm_80");
}

static void
else_it_gets_the_best_ptx(void **state)
{
    struct make m;

    make_begin(&m);
    make_ptx(&m, 75, "old");
    make_entry(&m, HED_FATBIN_CUBIN, 80, BIT);
    make_ptx(&m, 80, "text");
    make_ptx(&m, 100, "new");
    check(&m, 90, true, "compute_80");
}

/* NVIDIA's driver looks for options without asking whether there are any. */
static void
an_entry_without_options_goes_as_text(void **state)
{
    const struct hed_profile p = profile(9, 0);
    struct hed_image image = {.kind = HED_IMAGE_FATBIN};
    struct hed_buf buf;
    struct hed_bytes out;
    struct make m;

    make_begin(&m);
    make_entry(&m, HED_FATBIN_PTX, 80, BIT);
    memcpy(m.data + m.size - 8, "ptx", 3);
    image.bytes = made(&m);
    hed_buf_init(&buf, 1 << 20);
    assert_int_equal(hed_remote_pack(&image, &p, true, &buf, &out), 0);
    assert_int_equal(out.size, 3);
    assert_memory_equal(out.data, "ptx", 3);
    hed_buf_fini(&buf);
}

static void
what_fits_nothing_goes_as_a_whole(void **state)
{
    struct make m;

    make_begin(&m);
    make_entry(&m, HED_FATBIN_CUBIN, 75, BIT);
    make_entry(&m, HED_FATBIN_CUBIN, 80, BIT);
    check(&m, 90, true, "sm_75 sm_80");
    check(&m, 90, false, "sm_75 sm_80");
}

static void
a_cpu_gets_all_ptx(void **state)
{
    struct make m;

    make_begin(&m);
    make_entry(&m, HED_FATBIN_CUBIN, 90, BIT);
    make_entry(&m, HED_FATBIN_PTX, 75, BIT);
    make_entry(&m, HED_FATBIN_PTX, 90, 0);
    make_entry(&m, HED_FATBIN_PTX, 90, BIT);
    check(&m, 90, false, "compute_75 compute_90");
}

static void
a_cpu_without_ptx_gets_machine_code(void **state)
{
    struct make m;

    make_begin(&m);
    make_entry(&m, HED_FATBIN_CUBIN, 80, BIT);
    make_entry(&m, HED_FATBIN_CUBIN, 90, BIT);
    check(&m, 90, false, "sm_90");
}

/* As in NVIDIA's libraries. */
static void
a_cpu_gets_machine_code_with_ptx_that_is_too_new(void **state)
{
    struct make m;

    make_begin(&m);
    make_entry(&m, HED_FATBIN_CUBIN, 80, BIT);
    make_entry(&m, HED_FATBIN_CUBIN, 90, BIT);
    make_entry(&m, HED_FATBIN_CUBIN, 120, BIT);
    make_entry(&m, HED_FATBIN_PTX, 120, BIT);
    check(&m, 90, false, "sm_90 compute_120");
    check(&m, 86, false, "sm_80 compute_120");
    check(&m, 75, false, "sm_80 sm_90 sm_120 compute_120");
}

static void
text_and_cubins_go_as_they_are(void **state)
{
    static const uint8_t text[] = ".version 8.0";
    const struct hed_image image = {HED_IMAGE_PTX, {text, sizeof text - 1}, NULL, false};
    const struct hed_profile p = profile(9, 0);
    struct hed_buf buf;
    struct hed_bytes out;

    hed_buf_init(&buf, 1 << 20);
    assert_int_equal(hed_remote_pack(&image, &p, true, &buf, &out), 0);
    assert_ptr_equal(out.data, text);
    assert_int_equal(out.size, sizeof text - 1);
    hed_buf_fini(&buf);
}

/* Entries that are cut off are not sent; an image that is damaged at its beginning is sent
 * unchanged. */
static void
damage_is_the_workers(void **state)
{
    struct make m;

    make_begin(&m);
    make_entry(&m, HED_FATBIN_CUBIN, 90, BIT);
    make_entry(&m, HED_FATBIN_PTX, 90, BIT);
    m.data[16 + 4] = 1; /* an impossible size in the first entry's header */

    const struct hed_image image = {HED_IMAGE_FATBIN, made(&m), NULL, false};
    const struct hed_profile p = profile(9, 0);
    struct hed_buf buf;
    struct hed_bytes out;

    hed_buf_init(&buf, 1 << 20);
    assert_int_equal(hed_remote_pack(&image, &p, true, &buf, &out), 0);
    assert_ptr_equal(out.data, m.data);
    hed_buf_fini(&buf);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_gpu_gets_its_machine_code),
    cmocka_unit_test(else_it_gets_the_best_ptx),
    cmocka_unit_test(an_entry_without_options_goes_as_text),
    cmocka_unit_test(what_fits_nothing_goes_as_a_whole),
    cmocka_unit_test(a_cpu_gets_all_ptx),
    cmocka_unit_test(a_cpu_without_ptx_gets_machine_code),
    cmocka_unit_test(a_cpu_gets_machine_code_with_ptx_that_is_too_new),
    cmocka_unit_test(text_and_cubins_go_as_they_are),
    cmocka_unit_test(damage_is_the_workers),
};

HED_UNIT_MAIN(tests)
