/* Tests of sass/lift with cubins that nobody would make who means well. What takes too long runs
 * into the limit of the test.
 */
#include "sass/lift.h"

#include <stdlib.h>

#include "base/arena.h"
#include "ptx/ptx.h"
#include "ptx/text/parse.h"
#include "unit/sass/cubin_make.h"

#define TEXT_CEILING ((size_t)256 << 20)

static struct make_cubin cubin;
static struct hed_arena arena;
static struct hed_buf code, info, text;
static struct hed_why why;

static int
setup(void **state)
{
    make_cubin_begin(&cubin);
    hed_arena_init(&arena, 256 << 20);
    hed_buf_init(&code, MAKE_CEILING);
    hed_buf_init(&info, MAKE_CEILING);
    hed_buf_init(&text, TEXT_CEILING);
    why.text[0] = '\0';
    return 0;
}

static int
teardown(void **state)
{
    make_cubin_fini(&cubin);
    hed_arena_fini(&arena);
    hed_buf_fini(&code);
    hed_buf_fini(&info);
    hed_buf_fini(&text);
    return 0;
}

static struct hed_sass_program *
open_cubin(void)
{
    struct hed_sass_program *p = NULL;

    if (hed_sass_open(make_cubin_end(&cubin), &arena, &p, &why) != 0)
        fail_msg("%s", why.text);
    return p;
}

/* One kernel of the code and the records so far. */
static int
lift_code(void)
{
    (void)make_kernel(&cubin, "k", &code, &info);
    return hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_CPU, &text, &why);
}

/* What is lifted must be PTX for our parser. */
static void
text_can_be_parsed(void)
{
    struct hed_ptx_module m;

    hed_ptx_module_init(&m, HED_PTX_CEILING);
    assert_int_equal(hed_ptx_parse(&m, (const char *)text.data, text.size), 0);
    hed_ptx_module_fini(&m);
}

/* ---- flow ------------------------------------------------------------------------------------ */

static void
branches_must_stay_inside(void **state)
{
    static const uint32_t places[] = {2, 1000, 0x10000000, UINT32_MAX - 1};

    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        teardown(state);
        setup(state);
        make_bra(&code, GUARD_P0, places[i]);
        make_exit(&code);
        assert_int_equal(lift_code(), HED_EFORMAT);
        assert_non_null(strstr(why.text, "leaves the kernel"));
    }
}

/* Every return of a recursion may go behind every call. */
static void
recursion_with_many_returns_is_refused(void **state)
{
    const uint32_t calls = 4000, first = calls + 1;

    for (uint32_t i = 0; i < calls; i++)
        make_call(&code, first);
    make_exit(&code);
    for (uint32_t i = 0; i < calls; i++) {
        make_bra(&code, GUARD_P0, first + 2 * i + 2);
        make_ret(&code);
    }
    make_call(&code, first);
    make_exit(&code);
    assert_int_equal(lift_code(), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many branches"));
}

/* A call as the last instruction has nothing behind it that a return could go to. */
static void
recursion_may_end_with_a_call(void **state)
{
    make_call(&code, 2);
    make_exit(&code);
    make_bra(&code, GUARD_P0, 4);
    make_ret(&code);
    make_call(&code, 2);
    assert_int_equal(lift_code(), 0);
    text_can_be_parsed();
}

/* Calls of a chain that branches double with each step: they are not copied then. */
static void
chains_of_calls_do_not_grow(void **state)
{
    const uint32_t steps = 1000;

    make_call(&code, 2);
    make_exit(&code);
    for (uint32_t i = 0; i < steps; i++) {
        make_call(&code, 2 + 3 * (i + 1));
        make_call(&code, 2 + 3 * (i + 1));
        make_ret(&code);
    }
    make_ret(&code);
    (void)lift_code();
    assert_true(text.size < (size_t)128 << 20);
}

/* Parts of a kernel that call each other and never return: there is nothing to copy, and no return
 * that would have to compare anything. */
static void
calls_that_nothing_returns_from_are_jumps(void **state)
{
    make_bra(&code, GUARD_P0, 3);
    make_call(&code, 4);
    make_exit(&code);
    make_call(&code, 4);
    make_nop(&code); /* 4 */
    make_call(&code, 6);
    make_bra(&code, GUARD_P0, 8); /* 6 */
    make_call(&code, 4);
    make_exit(&code);
    make_ret(&code); /* not reached */
    assert_int_equal(lift_code(), 0);
    text_can_be_parsed();
    assert_null(strstr(hed_buf_cstr(&text), "trap"));
    assert_null(strstr(hed_buf_cstr(&text), "heddle_L7:")); /* seven blocks, each once */
}

/* CALL.REL.NOINC R2 may go to each function that the symbols name. */
static void
calls_through_registers_are_limited(void **state)
{
    const uint32_t count = 3000;
    uint32_t section;

    for (uint32_t i = 0; i < count; i++)
        make_inst(&code, 0x7344 | 2 << 24, 0x000fc00003c00000);
    for (uint32_t i = 0; i < count; i++)
        make_ret(&code);
    section = make_kernel(&cubin, "k", &code, &info);
    for (uint32_t i = 0; i < count; i++)
        (void)make_symbol(&cubin, "f",
                          (Elf64_Sym){.st_info = STT_FUNC,
                                      .st_shndx = (uint16_t)section,
                                      .st_value = (count + i) * 16});
    assert_int_equal(hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_CPU, &text, &why), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many branches"));
}

static void
loops_inside_of_loops_are_limited(void **state)
{
    const uint32_t loops = 30000;

    for (uint32_t i = 0; i < loops; i++)
        make_bra(&code, GUARD_P0, i);
    for (uint32_t i = 0; i < loops; i++)
        make_bra(&code, GUARD_P0, loops - 1 - i);
    make_exit(&code);
    assert_int_equal(lift_code(), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many loops"));
}

/* Branches forward and back between all parts: no loop has a header. */
static void
loops_with_many_entries_are_limited(void **state)
{
    const uint32_t parts = 20000;
    uint32_t x = 1;

    for (uint32_t i = 0; i < parts; i++) {
        x = x * 1664525 + 1013904223;
        make_bra(&code, GUARD_P0, (x >> 8) % parts);
    }
    make_exit(&code);
    (void)lift_code();
    assert_true(text.size < (size_t)128 << 20);
}

/* A loop that the kernel itself begins with needs no copies of its beginning. */
static void
first_block_is_the_header_of_its_loop(void **state)
{
    make_bra(&code, GUARD_P0, 2);
    make_nop(&code);
    make_bra(&code, GUARD_P0, 1);
    make_bra(&code, GUARD_P0, 1);
    make_bra(&code, GUARD_P0, 0);
    make_exit(&code);
    assert_int_equal(lift_code(), 0);
    assert_true(text.size < 4096);
    text_can_be_parsed();
}

static void
many_blocks_without_loops_are_fast(void **state)
{
    const uint32_t blocks = 60000;

    for (uint32_t i = 0; i < blocks; i++)
        make_bra(&code, GUARD_P0, blocks);
    make_exit(&code);
    assert_int_equal(lift_code(), 0);
    text_can_be_parsed();
}

/* ---- tables of branches ---------------------------------------------------------------------- */

/* Tables for all of many branches, with targets again and again. */
static void
tables_are_read_once(void **state)
{
    const uint32_t branches = 40000;
    static uint32_t table[3 + 16000];

    for (uint32_t i = 0; i < branches; i++)
        make_brx(&code);
    make_exit(&code);
    for (uint32_t i = 0; i < 16000; i++)
        table[3 + i] = (i * 2 % branches) * 16;
    table[2] = 16000;
    for (uint32_t i = 0; i < 200; i++) {
        table[0] = i * 16;
        make_record(&info, 0x34, table, sizeof table);
    }
    assert_int_equal(lift_code(), HED_ELIMIT);
    assert_non_null(strstr(why.text, "too many branches"));
}

static void
tables_longer_than_their_record_do_not_count(void **state)
{
    const uint32_t table[] = {0, 0, 0x3fffffff, 16, 0x10};

    make_brx(&code);
    make_exit(&code);
    make_record(&info, 0x34, table, sizeof table);
    assert_int_equal(lift_code(), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "without a table"));
}

/* ---- registers ------------------------------------------------------------------------------- */

/* LDG.E of size 32 << i bits to a register, from the pair at R2. */
static void
make_load(unsigned to, unsigned from, unsigned size)
{
    make_inst(&code, 0x7981 | (uint64_t)to << 16 | (uint64_t)from << 24,
              0x000ea2000c1e1100 | (uint64_t)size << 9);
}

static void
groups_end_at_the_last_register(void **state)
{
    static const struct {
        unsigned to, from, size;
        bool exists;
    } loads[] = {
        {0, 2, 6, true},   {250, 2, 6, true},  {251, 2, 6, true},  {252, 2, 6, false},
        {253, 2, 5, true}, {254, 2, 5, false}, {254, 2, 4, true},  {255, 2, 6, true},
        {0, 252, 4, true}, {0, 253, 4, true},  {0, 254, 4, false},
    };

    for (unsigned i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        teardown(state);
        setup(state);
        make_load(loads[i].to, loads[i].from, loads[i].size);
        make_exit(&code);
        assert_int_equal(lift_code(), loads[i].exists ? 0 : HED_ENOTSUP);
        if (loads[i].exists)
            text_can_be_parsed();
    }
}

/* @P0 R2P PR, R2, 0x7f: its guard is among what it writes. */
static void
guard_that_a_mask_changes_is_copied(void **state)
{
    make_inst(&code, 0x0804 | 2 << 24 | (uint64_t)0x7f << 32, 0x000fe20000000000);
    make_bra(&code, GUARD_P0, 3);
    make_transfer(&code, 0x947, 1, 3);
    make_exit(&code);
    assert_int_equal(lift_code(), 0);
    assert_non_null(strstr((const char *)text.data, "mov.pred %x0, %p0"));
    assert_null(strstr((const char *)text.data, "@%p0 setp"));
}

/* ISETP.GE with a fourth way to combine its result. */
static void
values_that_mean_nothing_are_refused(void **state)
{
    make_inst(&code, 0x000000010000780c, 0x000fe20003f06e70);
    make_exit(&code);
    assert_int_equal(lift_code(), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "ISETP"));
}

/* ---- names, parameters, variables ------------------------------------------------------------ */

static void
names_cannot_become_statements(void **state)
{
    make_exit(&code);
    (void)make_kernel(&cubin, "k() { trap; }\n.visible .entry other", &code, &info);
    assert_int_equal(hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_CPU, &text, &why), 0);
    assert_null(strstr((const char *)text.data, "trap;"));
    assert_null(strstr((const char *)text.data, ".entry other"));
    text_can_be_parsed();
}

/* MOV R5, c[0x4][0x0], which is the address of a variable of this name; half of it may be another
 * one's. */
static int
lift_variable(const char *name, const char *other, uint64_t other_at)
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
    if (other)
        (void)make_symbol(&cubin, other,
                          (Elf64_Sym){.st_info = STT_OBJECT,
                                      .st_shndx = (uint16_t)global,
                                      .st_value = other_at,
                                      .st_size = 8});
    return hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_GPU, &text, &why);
}

static void
names_of_the_text_are_not_for_variables(void **state)
{
    assert_int_equal(lift_variable("heddle_", NULL, 0), HED_ENOTSUP);
    teardown(state);
    setup(state);
    assert_int_equal(lift_variable("heddl; trap", NULL, 0), 0);
    assert_non_null(strstr((const char *)text.data, "heddl__trap+0"));
    text_can_be_parsed();
    teardown(state);
    setup(state);
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
    assert_int_equal(hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_CPU, &text, &why), HED_ENOTSUP);
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
    assert_int_equal(hed_sass_lift(open_cubin(), 0, HED_SASS_FOR_GPU, &text, &why), HED_ELIMIT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(branches_must_stay_inside, setup, teardown),
    cmocka_unit_test_setup_teardown(recursion_with_many_returns_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(recursion_may_end_with_a_call, setup, teardown),
    cmocka_unit_test_setup_teardown(chains_of_calls_do_not_grow, setup, teardown),
    cmocka_unit_test_setup_teardown(calls_that_nothing_returns_from_are_jumps, setup, teardown),
    cmocka_unit_test_setup_teardown(calls_through_registers_are_limited, setup, teardown),
    cmocka_unit_test_setup_teardown(loops_inside_of_loops_are_limited, setup, teardown),
    cmocka_unit_test_setup_teardown(loops_with_many_entries_are_limited, setup, teardown),
    cmocka_unit_test_setup_teardown(first_block_is_the_header_of_its_loop, setup, teardown),
    cmocka_unit_test_setup_teardown(many_blocks_without_loops_are_fast, setup, teardown),
    cmocka_unit_test_setup_teardown(tables_are_read_once, setup, teardown),
    cmocka_unit_test_setup_teardown(tables_longer_than_their_record_do_not_count, setup, teardown),
    cmocka_unit_test_setup_teardown(groups_end_at_the_last_register, setup, teardown),
    cmocka_unit_test_setup_teardown(guard_that_a_mask_changes_is_copied, setup, teardown),
    cmocka_unit_test_setup_teardown(values_that_mean_nothing_are_refused, setup, teardown),
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
