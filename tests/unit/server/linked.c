/* Tests of programs that were linked from parts (-rdc=true), from the client's image to what the
 * worker's driver gets. */
#include "remote/server/worker/linked.h"

#include "kernel/fatbin/image.h"
#include "remote/client/code.h"
#include "remote/server/worker/intact.h"
#include "unit/fatbin/make.h"

#define BIT HED_FATBIN_64BIT

static struct make linked, first, second;

/* A program for sm_80 in two parts, and a library that has machine code and newer PTX. */
static struct hed_image
make_program(void)
{
    static const void *parts[] = {first.data, second.data, NULL};

    make_begin(&linked);
    make_entry(&linked, HED_FATBIN_CUBIN, 80, BIT);
    make_begin(&first);
    make_entry(&first, HED_FATBIN_CUBIN, 80, BIT);
    make_ptx(&first, 80, "first");
    make_begin(&second);
    make_entry(&second, HED_FATBIN_CUBIN, 80, BIT);
    make_entry(&second, HED_FATBIN_CUBIN, 90, BIT);
    make_entry(&second, HED_FATBIN_LTO, 90, BIT);
    make_entry(&second, HED_FATBIN_CUBIN, 90, 0); /* 32-bit */
    make_ptx(&second, 120, "second");
    return (struct hed_image){HED_IMAGE_FATBIN, made(&linked), parts, false};
}

/* The entries of a fat binary, as "sm_80 compute_90". */
static const char *
entries_of(struct hed_bytes b)
{
    static char text[256];
    char arch[HED_ARCH_TEXT];
    struct hed_fatbin_walk w;
    struct hed_fatbin_entry e;
    size_t used = 0;

    text[0] = '\0';
    assert_int_equal(hed_fatbin_walk(b, &w, NULL), 0);
    while (hed_fatbin_next(&w, &e, NULL) > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? " " : "",
                                 hed_fatbin_arch_text(&e, arch));
    return text;
}

static struct hed_bytes
pack(const struct hed_image *image, int cc, bool real, struct hed_buf *buf)
{
    const struct hed_profile profile = {.major = cc / 10, .minor = cc % 10};
    struct hed_bytes out;

    hed_buf_init(buf, 1 << 20);
    assert_int_equal(hed_remote_pack(image, &profile, real, buf, &out), 0);
    return out;
}

static void
machine_code_that_runs_goes_alone(void **state)
{
    const struct hed_image image = make_program();
    struct hed_buf buf;
    const struct hed_bytes out = pack(&image, 86, true, &buf);

    assert_false(hed_linked_begins(out.data, out.size));
    assert_string_equal(entries_of(out), "sm_80");
    hed_buf_fini(&buf);
}

static void
else_a_gpu_gets_all_that_can_be_linked_for_it(void **state)
{
    const struct hed_image image = make_program();
    struct hed_buf buf;
    const struct hed_bytes out = pack(&image, 90, true, &buf);
    struct hed_bytes part;

    assert_true(hed_linked_begins(out.data, out.size));
    assert_true(hed_linked_at(out.data, out.size, 0, &part));
    assert_string_equal(entries_of(part), "sm_80");
    assert_true(hed_linked_at(out.data, out.size, 1, &part));
    assert_string_equal(entries_of(part), "compute_80");
    assert_true(hed_linked_at(out.data, out.size, 2, &part));
    assert_string_equal(entries_of(part), "sm_90 lto_90 compute_120");
    assert_false(hed_linked_at(out.data, out.size, 3, &part));
    hed_buf_fini(&buf);
}

static void
a_cpu_gets_the_ptx_of_the_parts(void **state)
{
    const struct hed_image image = make_program();
    struct hed_buf buf;
    const struct hed_bytes out = pack(&image, 80, false, &buf);
    struct hed_bytes part;

    assert_true(hed_linked_at(out.data, out.size, 0, &part));
    assert_string_equal(entries_of(part), "");
    assert_true(hed_linked_at(out.data, out.size, 1, &part));
    assert_string_equal(entries_of(part), "compute_80");
    assert_true(hed_linked_at(out.data, out.size, 2, &part));
    assert_string_equal(entries_of(part), "compute_120");
    hed_buf_fini(&buf);
}

static void
a_part_with_nothing_that_fits_goes_as_it_is(void **state)
{
    struct hed_image image = make_program();
    const void *parts[] = {first.data, linked.data, NULL};
    struct hed_buf buf;
    struct hed_bytes out, part;

    image.parts = parts;
    out = pack(&image, 90, true, &buf);
    assert_true(hed_linked_at(out.data, out.size, 2, &part));
    assert_string_equal(entries_of(part), "sm_80");
    hed_buf_fini(&buf);
    /* and if no part fits, the linked one */
    parts[0] = linked.data;
    out = pack(&image, 90, true, &buf);
    assert_ptr_equal(out.data, linked.data);
    hed_buf_fini(&buf);
}

/* The driver gets what it would get from the program itself. */
static void
the_driver_gets_a_wrapper(void **state)
{
    const struct hed_image image = make_program();
    struct hed_buf buf;
    const struct hed_bytes out = pack(&image, 90, true, &buf);
    void *wrapper = hed_linked_wrap(out.data, out.size);
    struct hed_image there, part;

    assert_non_null(wrapper);
    assert_int_equal(hed_image_at(wrapper, &there, NULL), 0);
    assert_int_equal(there.kind, HED_IMAGE_FATBIN);
    assert_string_equal(entries_of(there.bytes), "sm_80");
    assert_non_null(there.parts);
    assert_int_equal(hed_image_at(there.parts[0], &part, NULL), 0);
    assert_string_equal(entries_of(part.bytes), "compute_80");
    assert_int_equal(hed_image_at(there.parts[1], &part, NULL), 0);
    assert_string_equal(entries_of(part.bytes), "sm_90 lto_90 compute_120");
    assert_null(there.parts[2]);
    free(wrapper);
    hed_buf_fini(&buf);
}

/* A program whose parts contain only PTX is intact; machine code of 8 bytes is not. */
static struct hed_bytes
pack_ptx(struct hed_buf *buf)
{
    static const void *parts[] = {first.data, second.data, NULL};

    make_begin(&linked);
    make_begin(&first);
    make_ptx(&first, 80, "first");
    make_begin(&second);
    make_ptx(&second, 80, "second");

    const struct hed_image image = {HED_IMAGE_FATBIN, made(&linked), parts, false};

    return pack(&image, 90, true, buf);
}

static void
damage_is_found(void **state)
{
    struct hed_buf buf;
    const struct hed_bytes out = pack_ptx(&buf);
    static uint8_t copy[4096];
    const uint32_t counts[] = {0, 4, HED_WIRE_LINKED_MAX + 1, UINT32_MAX};
    struct hed_bytes part;

    assert_true(out.size <= sizeof copy);
    assert_true(hed_linked_is_intact(out.data, out.size, true));
    /* It is not an image of another kind: a linker does not get it. */
    assert_false(hed_image_is_intact(out.data, out.size, true));
    for (size_t n = 0; n < out.size; n++) {
        uint8_t *cut = malloc(n ? n : 1); /* so that reading beyond the end is found */

        memcpy(cut, out.data, n);
        assert_false(hed_linked_is_intact(cut, n, true));
        free(cut);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        memcpy(copy, out.data, out.size);
        memcpy(copy + 4, &counts[i], sizeof counts[i]);
        assert_false(hed_linked_is_intact(copy, out.size, true));
    }
    for (uint32_t i = 0; i < 3; i++) { /* a size that leads out of the image */
        memcpy(copy, out.data, out.size);
        memset(copy + 8 + 8 * i, 0xff, 8);
        assert_false(hed_linked_is_intact(copy, out.size, true));
        assert_false(hed_linked_at(copy, out.size, 2, &part));
    }
    memcpy(copy, out.data, out.size); /* a part that leads out of itself */
    assert_true(hed_linked_at(copy, out.size, 1, &part));
    copy[part.data - copy + 8] ^= 0x80;
    assert_false(hed_linked_is_intact(copy, out.size, true));
    hed_buf_fini(&buf);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(machine_code_that_runs_goes_alone),
    cmocka_unit_test(else_a_gpu_gets_all_that_can_be_linked_for_it),
    cmocka_unit_test(a_cpu_gets_the_ptx_of_the_parts),
    cmocka_unit_test(a_part_with_nothing_that_fits_goes_as_it_is),
    cmocka_unit_test(the_driver_gets_a_wrapper),
    cmocka_unit_test(damage_is_found),
};

HED_UNIT_MAIN(tests)
