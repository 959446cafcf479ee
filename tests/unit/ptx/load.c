/* Tests of loading object files: they are relocated and protected, and bad ones are refused. */
#include "kernel/ptx/run/load.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "harness/unit.h"
#include "kernel/ptx/run/reloc.h"

static uint32_t
outside(uint32_t x)
{
    return x + 100;
}

static uint32_t
other(uint32_t x)
{
    return x + 1000;
}

static const struct hed_ptx_symbol first[] = {{"load_outside", (const void *)outside}, {0}};
static const struct hed_ptx_symbol second[] = {
    {"load_outside", NULL}, {"load_other", (const void *)other}, {0}};
static const struct hed_ptx_symbol *const tables[] = {first, second};

static unsigned char *object;
static size_t object_size;

static int
setup(void **state)
{
    FILE *f = fopen(HED_OBJECT, "rb");

    if (!f)
        return -1;
    object = malloc(1 << 20);
    object_size = fread(object, 1, 1 << 20, f);
    fclose(f);
    return 0;
}

static int
teardown(void **state)
{
    free(object);
    return 0;
}

static void
objects_run(void **state)
{
    struct hed_ptx_loaded l;
    struct hed_why why = {""};
    struct hed_ptx_warp s = {0};

    if (hed_ptx_load(object, object_size, tables, 2, &l, &why) != 0)
        print_error("%s\n", why.text);
    assert_non_null(l.entry);
    assert_int_equal(l.info.stack, 100);
    s.line = 3;
    l.entry(&s);
    assert_int_equal(s.line, 9 + 103 + 9 + 14 + 1 + 9 + 5);
    s.line = 7;
    l.entry(&s);
    assert_int_equal(s.line, 21 + 107 + 107 + 24 + 1 + 9 + 5);
    hed_ptx_unload(&l);
}

static void
an_unknown_symbol_is_named(void **state)
{
    struct hed_ptx_loaded l;
    struct hed_why why = {""};

    assert_int_equal(hed_ptx_load(object, object_size, tables, 1, &l, &why), HED_ENOTFOUND);
    assert_non_null(strstr(why.text, "load_other"));
}

static void
every_truncation_is_refused(void **state)
{
    for (size_t n = 0; n < object_size; n += 7) {
        unsigned char *cut = malloc(n + 1);
        struct hed_ptx_loaded l;
        struct hed_why why;

        memcpy(cut, object, n);
        if (hed_ptx_load(cut, n, tables, 2, &l, &why) == 0)
            hed_ptx_unload(&l);
        free(cut);
    }
}

static void
damage_does_no_harm(void **state)
{
    uint32_t random = 1;

    for (int i = 0; i < 20000; i++) {
        unsigned char *copy = malloc(object_size);
        struct hed_ptx_loaded l;
        struct hed_why why;

        memcpy(copy, object, object_size);
        for (int n = 0; n < 1 + i % 4; n++) {
            random = random * 1664525 + 1013904223;
            copy[(random >> 8) % object_size] ^= (unsigned char)(1u << (random & 7));
        }
        if (hed_ptx_load(copy, object_size, tables, 2, &l, &why) == 0)
            hed_ptx_unload(&l);
        free(copy);
    }
}

static uint32_t
word(const unsigned char *at)
{
    uint32_t w;

    memcpy(&w, at, sizeof w);
    return w;
}

static void
aarch64_instructions_are_relocated(void **state)
{
    static const struct {
        uint32_t type, before, after;
        uint64_t place, value;
        int err;
    } rows[] = {
        {R_AARCH64_CALL26, 0x94000000, 0x94000400, 0x10000, 0x11000, 0},
        {R_AARCH64_JUMP26, 0x14000000, 0x17fffc00, 0x11000, 0x10000, 0},
        {R_AARCH64_CALL26, 0x94000000, 0x95ffffff, 0, 0x7fffffc, 0},
        {R_AARCH64_CALL26, 0x94000000, 0, 0, 0x8000000, HED_ERANGE},
        {R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0xb0000000, 0x10fff, 0x11000, 0},
        {R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0x90000020, 0x10000, 0x14fff, 0},
        {R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0, 0, 0x100000000, HED_ERANGE},
        {R_AARCH64_ADD_ABS_LO12_NC, 0x91000000, 0x9148d000 & ~0x400000u, 0, 0x10234, 0},
        {R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400000, 0xf9400000 | 0x46 << 10, 0, 0x10230, 0},
        {R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400000, 0, 0, 0x10234, HED_ERANGE},
        {R_AARCH64_LDST8_ABS_LO12_NC, 0x39400000, 0x39400000 | 0x235 << 10, 0, 0x10235, 0},
        {R_AARCH64_PREL32, 0, 0xfffff000, 0x2000, 0x1000, 0},
        {R_AARCH64_TLSLE_ADD_TPREL_HI12, 0, 0, 0, 0, HED_ENOTSUP},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char at[8] = {0};

        memcpy(at, &rows[i].before, 4);
        assert_int_equal(
            hed_reloc_apply(EM_AARCH64, rows[i].type, at, rows[i].place, rows[i].value, 0),
            rows[i].err);
        if (!rows[i].err)
            assert_int_equal(word(at), rows[i].after);
    }
}

static void
x86_64_instructions_are_relocated(void **state)
{
    static const struct {
        uint32_t type, after;
        uint64_t place, value;
        int64_t addend;
        int err;
    } rows[] = {
        {R_X86_64_PC32, 0xffc, 0x10000, 0x11000, -4, 0},
        {R_X86_64_PLT32, 0xffffeffc, 0x11000, 0x10000, -4, 0},
        {R_X86_64_PLT32, 0, 0, 0x80000000, 0, HED_ERANGE},
        {R_X86_64_32, 0x80000000, 0, 0x80000000, 0, 0},
        {R_X86_64_32, 0, 0, 0x100000000, 0, HED_ERANGE},
        {R_X86_64_32S, 0x80000000, 0, 0xffffffff80000000, 0, 0},
        {R_X86_64_32S, 0, 0, 0x80000000, 0, HED_ERANGE},
        {R_X86_64_64, 0x12345678, 0, 0x12345670, 8, 0},
        {R_X86_64_PC64, 0x1008, 0x1000, 0x2000, 8, 0},
        {R_X86_64_GOTPCREL, 0xffc, 0x1000, 0x2000, -4, 0},
        {R_X86_64_TPOFF32, 0, 0, 0, 0, HED_ENOTSUP},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned char at[8] = {0};

        assert_int_equal(hed_reloc_apply(EM_X86_64, rows[i].type, at, rows[i].place, rows[i].value,
                                         rows[i].addend),
                         rows[i].err);
        if (!rows[i].err)
            assert_int_equal(word(at), rows[i].after);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(objects_run, setup, teardown),
    cmocka_unit_test_setup_teardown(an_unknown_symbol_is_named, setup, teardown),
    cmocka_unit_test_setup_teardown(every_truncation_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(damage_does_no_harm, setup, teardown),
    cmocka_unit_test(aarch64_instructions_are_relocated),
    cmocka_unit_test(x86_64_instructions_are_relocated),
};

HED_UNIT_MAIN(tests)
