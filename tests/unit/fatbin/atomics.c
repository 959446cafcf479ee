/* Tests of fatbin/atomics: system-wide atomics are found in PTX and in machine code. */
#include "kernel/fatbin/atomics.h"
#include "kernel/fatbin/elf.h"
#include "unit/fatbin/make.h"

static bool
in_ptx(const char *text)
{
    return hed_ptx_has_system_atomics((struct hed_bytes){(const uint8_t *)text, strlen(text)});
}

static void
ptx_with_sys_is_found(void **state)
{
    assert_true(in_ptx("{ atom.global.sys.add.u32 %r1, [%rd2], 1; }"));
    assert_true(in_ptx("red.sys.global.add.u32 [a], 1;"));
    assert_true(in_ptx("red.relaxed.sys"));
    assert_true(in_ptx("@%p atom.sys.cas.b32 %r3, [%rd4], 0, 5;"));
    assert_false(in_ptx("atom.global.gpu.add.u32 %r1, [%rd2], 1;"));
    assert_false(in_ptx("ld.relaxed.sys.global.u32 %r1, [%rd2];"));
    assert_false(in_ptx("membar.sys;"));
    assert_false(in_ptx("atom.system_of_mine"));
    assert_false(in_ptx(".func atomic(); fence.acq_rel.sys;"));
    assert_false(in_ptx(".sys"));
    assert_false(in_ptx(""));
}

static void
images_in_a_fat_binary_are_searched(void **state)
{
    struct make m;

    make_begin(&m);
    make_ptx(&m, 80, "atom.add");
    assert_false(hed_image_has_system_atomics(made(&m)));
    make_ptx(&m, 90, "atom.sys.add");
    assert_true(hed_image_has_system_atomics(made(&m)));
}

/* Real machine code without such operations, and the same code with one inserted. */
static void
machine_code_with_system_scope_is_found(void **state)
{
    static const struct {
        const char *file;
        uint64_t gpu, system; /* in bits 64 and up */
    } rows[] = {{"cubin/sm_75", UINT64_C(2) << 13, UINT64_C(3) << 13},
                {"cubin/sm_90", UINT64_C(7) << 13, UINT64_C(10) << 13}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct hed_bytes b = fixture(rows[i].file);
        struct hed_elf_file o;
        struct hed_elf_section s;
        uint8_t *copy = malloc(b.size), *code = NULL;
        const uint64_t add = 0x9a8;

        assert_false(hed_image_has_system_atomics(b));
        memcpy(copy, b.data, b.size);

        const struct hed_bytes changed = {copy, b.size};

        assert_int_equal(hed_elf_file_read(changed, &o, NULL), 0);
        for (uint32_t k = 0; k < o.count && !code; k++)
            if (hed_elf_file_section(&o, k, &s) && s.bytes.size >= 16 && s.name.size > 6 &&
                memcmp(s.name.data, ".text.", 6) == 0)
                code = copy + (s.bytes.data - changed.data);
        assert_non_null(code);
        memcpy(code, &add, sizeof add);
        memcpy(code + 8, &rows[i].gpu, 8);
        assert_false(hed_image_has_system_atomics(changed));
        memcpy(code + 8, &rows[i].system, 8);
        assert_true(hed_image_has_system_atomics(changed));
        free(copy);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ptx_with_sys_is_found),
    cmocka_unit_test(images_in_a_fat_binary_are_searched),
    cmocka_unit_test(machine_code_with_system_scope_is_found),
};

HED_UNIT_MAIN(tests)
