/* Tests of kernel/sass/lift with cubins that nobody would make who means well: their names,
 * parameters and variables. What takes too long runs into the limit of the test.
 */
#include <stdlib.h>

#include "unit/sass/lift_case.h"

static void
names_cannot_become_statements(void **state)
{
    make_exit(&code);
    (void)make_kernel(&cubin, "k() { trap; }\n.visible .entry other", &code, &info);
    assert_int_equal(lift_cubin(), 0);
    assert_null(strstr((const char *)text.data, "trap;"));
    assert_null(strstr((const char *)text.data, ".entry other"));
    text_can_be_parsed();
}

/* MOV R5, c[0x4][0x0], which is the address of a variable of this name; half of it may be another
 * one's. */
static int
lift_variable(const char *name, const char *second, uint64_t second_at)
{
    const uint64_t words[1] = {0};
    Elf64_Rela rel = {0};
    uint32_t text_section, bank, global;

    make_inst(&code, 0xff057624 | (uint64_t)4 << 54, 0x000fe200078e00ff);
    make_exit(&code);
    text_section = make_kernel(&cubin, "k", &code, &info);
    bank = make_section(&cubin, ".nv.constant4.k", SHT_PROGBITS, text_section, words, sizeof words);
    global = make_section(&cubin, ".nv.global", SHT_NOBITS, 0, NULL, 16);
    rel.r_info = ELF64_R_INFO(
        (uint64_t)make_symbol(
            &cubin, name,
            (Elf64_Sym){.st_info = STT_OBJECT, .st_shndx = (uint16_t)global, .st_size = 8}),
        2);
    (void)make_section(&cubin, ".rela.nv.constant4.k", SHT_RELA, bank, &rel, sizeof rel);
    if (second)
        (void)make_symbol(&cubin, second,
                          (Elf64_Sym){.st_info = STT_OBJECT,
                                      .st_shndx = (uint16_t)global,
                                      .st_value = second_at,
                                      .st_size = 8});
    return lift_cubin_for_gpu();
}

static void
names_of_the_text_are_not_for_variables(void **state)
{
    assert_int_equal(lift_variable("heddle_", NULL, 0), HED_ENOTSUP);
    begin_again(state);
    assert_int_equal(lift_variable("heddl; trap", NULL, 0), 0);
    assert_non_null(strstr((const char *)text.data, "heddl__trap+0"));
    text_can_be_parsed();
    begin_again(state);
    assert_int_equal(lift_variable("L0", NULL, 0), 0);
    assert_non_null(strstr((const char *)text.data, "L0+0"));
    assert_null(strstr((const char *)text.data, "\nL0:"));
}

/* As variables of their own they would not be the same bytes any more. */
static void
variables_that_overlap_are_refused_for_a_gpu(void **state)
{
    assert_int_equal(lift_variable("a", "b", 4), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "shares its bytes"));
}

static void
variables_of_one_name_are_told_apart(void **state)
{
    assert_int_equal(lift_variable("$str", "$str", 8), 0);
    assert_non_null(strstr((const char *)text.data, "$str$heddle0+0"));
    assert_non_null(strstr((const char *)text.data, "$str$heddle1["));
}

/* A kernel that is refused late is not in the module at all. */
static void
refused_kernels_leave_no_text(void **state)
{
    struct hed_sass_program *p;

    make_exit(&code);
    (void)make_kernel(&cubin, "good", &code, NULL);
    make_param(&info, 0, 0, 4);
    make_param(&info, 1, 1000, 4);
    (void)make_kernel(&cubin, "gaps", &code, &info);
    p = open_cubin();
    assert_int_equal(hed_sass_lift_module(p, NULL, NULL, &text, &why), 0);
    assert_null(strstr((const char *)text.data, "gaps"));
    assert_non_null(strstr((const char *)text.data, "good"));
    text_can_be_parsed();
    hed_buf_reset(&text);
    assert_int_equal(hed_sass_lift(p, 1, HED_SASS_FOR_CPU, &text, &why), 0);
    assert_non_null(strstr((const char *)text.data, "heddle_gap1[996]"));
    text_can_be_parsed();
}

static void
parameters_must_not_overlap(void **state)
{
    make_exit(&code);
    make_param(&info, 0, 0, 8);
    make_param(&info, 1, 4, 8);
    assert_int_equal(lift_code(), HED_ENOTSUP);
}

/* MOV R5, c[0x4][0x8]; the bank has one word of eight bytes. */
static void
relocations_behind_the_end_are_refused(void **state)
{
    const uint64_t words[1] = {0};
    Elf64_Rela rel = {.r_offset = 8, .r_addend = INT64_MAX};
    uint32_t text_section, bank, global;

    make_inst(&code, 0xff057624 | (uint64_t)8 << 38 | (uint64_t)4 << 54, 0x000fe200078e00ff);
    make_exit(&code);
    text_section = make_kernel(&cubin, "k", &code, &info);
    bank = make_section(&cubin, ".nv.constant4.k", SHT_PROGBITS, text_section, words, sizeof words);
    global = make_section(&cubin, ".nv.global", SHT_NOBITS, 0, NULL, 16);
    rel.r_info = ELF64_R_INFO((uint64_t)make_symbol(&cubin, "v",
                                                    (Elf64_Sym){.st_info = STT_OBJECT,
                                                                .st_shndx = (uint16_t)global,
                                                                .st_value = 8,
                                                                .st_size = 8}),
                              2);
    (void)make_section(&cubin, ".rela.nv.constant4.k", SHT_RELA, bank, &rel, sizeof rel);
    assert_int_equal(lift_cubin(), HED_ENOTSUP);
}

/* Symbols that share one name of eight megabytes. */
static void
endless_names_are_cut(void **state)
{
    const Elf64_Sym s = {.st_name = 1, .st_info = STT_FUNC, .st_shndx = 1};
    char part[1024];

    memset(part, 'a', sizeof part);
    for (uint32_t i = 0; i < 8192; i++)
        hed_buf_add(&cubin.strings, part, sizeof part);
    for (uint32_t i = 0; i < 100000; i++)
        hed_buf_add(&cubin.symbols, &s, sizeof s);
    make_exit(&code);
    assert_int_equal(lift_code(), 0);
}

/* Many managed variables, and as many addresses of them. */
static void
addresses_of_managed_variables_are_found_at_once(void **state)
{
    const uint32_t count = 150000;
    Elf64_Rela *rel = calloc(count, sizeof *rel);
    const uint32_t global = make_section(&cubin, ".nv.global", SHT_NOBITS, 0, NULL, count * 8ull);
    const uint32_t bank = make_section(&cubin, ".nv.constant3", SHT_NOBITS, 0, NULL, count * 8ull);

    assert_non_null(rel);
    for (uint32_t i = 0; i < count; i++) {
        const Elf64_Sym s = {.st_info = STT_OBJECT,
                             .st_other = 4,
                             .st_shndx = (uint16_t)global,
                             .st_value = i * 8,
                             .st_size = 8};
        const uint32_t symbol = make_symbol(&cubin, "managed", s);

        rel[count - 1 - i] = (Elf64_Rela){.r_offset = (count - 1 - i) * 8ull,
                                          .r_info = ELF64_R_INFO((uint64_t)symbol, 2)};
    }
    make_exit(&code);
    (void)make_kernel(&cubin, "k", &code, &info);
    (void)make_section(&cubin, ".rela.nv.constant3", SHT_RELA, bank, rel, count * sizeof *rel);
    free(rel);

    const struct hed_sass_program *p = open_cubin();

    assert_int_equal(p->pointer_count, count);
    assert_int_equal(p->pointers[count - 1].at, (count - 1) * 8);
    assert_int_equal(p->pointers[0].to - p->pointers[count - 1].to, count - 1);
    assert_int_equal(hed_sass_lift(p, 0, HED_SASS_FOR_GPU, &text, &why), 0);
}

/* A variable without bytes in the file that is larger than any memory, and an address in it. */
static void
huge_variables_end_at_the_ceiling(void **state)
{
    const uint64_t size = UINT64_C(1) << 60;
    const uint32_t global = make_section(&cubin, ".nv.global", SHT_NOBITS, 0, NULL, size);
    const uint32_t symbol = make_symbol(
        &cubin, "v",
        (Elf64_Sym){.st_info = STT_OBJECT, .st_shndx = (uint16_t)global, .st_size = size});
    const Elf64_Rela rel = {.r_info = ELF64_R_INFO((uint64_t)symbol, 2)};

    (void)make_section(&cubin, ".rela.nv.global", SHT_RELA, global, &rel, sizeof rel);
    make_exit(&code);
    (void)make_kernel(&cubin, "k", &code, &info);
    hed_buf_init(&text, 1 << 20);
    assert_int_equal(lift_cubin_for_gpu(), HED_ELIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(names_cannot_become_statements, setup, teardown),
    cmocka_unit_test_setup_teardown(names_of_the_text_are_not_for_variables, setup, teardown),
    cmocka_unit_test_setup_teardown(variables_that_overlap_are_refused_for_a_gpu, setup, teardown),
    cmocka_unit_test_setup_teardown(variables_of_one_name_are_told_apart, setup, teardown),
    cmocka_unit_test_setup_teardown(refused_kernels_leave_no_text, setup, teardown),
    cmocka_unit_test_setup_teardown(parameters_must_not_overlap, setup, teardown),
    cmocka_unit_test_setup_teardown(relocations_behind_the_end_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(endless_names_are_cut, setup, teardown),
    cmocka_unit_test_setup_teardown(addresses_of_managed_variables_are_found_at_once, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(huge_variables_end_at_the_ceiling, setup, teardown),
};

HED_UNIT_MAIN(tests)
