/* Tests of kernel/sass/lift with calls of functions in other sections: what a linker has left to
 * the driver, as it should be and as nobody would write it who means well.
 */
#include <stdlib.h>

#include "unit/sass/lift_case.h"

#define R_CUDA_64 2
#define R_CUDA_ABS32_LO_32 56
#define R_CUDA_ABS32_HI_32 57
#define R_CUDA_ABS47_34 58

/* ---- instructions ---------------------------------------------------------------------------- */

/* CALL.ABS.NOINC: of a function that a relocation names, or of R2. */
static void
make_call_abs(struct hed_buf *to)
{
    make_inst(to, 0x7943, 0x000fea0003c00000);
}

static void
make_call_r2(struct hed_buf *to)
{
    make_inst(to, 0x7343 | 2 << 24, 0x000fea0003c00000);
}

/* RET.ABS.NODEC R20 0x0 */
static void
make_ret_abs(struct hed_buf *to)
{
    make_inst(to, 0x7950 | 20 << 24, 0x000fea0003e00000);
}

/* MOV R20, 0x0, and the same to R21: halves of an address. */
static void
make_mov(struct hed_buf *to, unsigned reg)
{
    make_inst(to, 0x7802 | (uint64_t)reg << 16, 0x000fe20000000f00);
}

/* ---- sections -------------------------------------------------------------------------------- */

struct function {
    uint32_t section, symbol;
};

static struct function
make_function(const char *name, const struct hed_buf *bytes)
{
    char section[64];
    struct function f;

    (void)snprintf(section, sizeof section, ".text.%s", name);
    f.section = make_section(&cubin, section, SHT_PROGBITS, 0, bytes->data, bytes->size);
    f.symbol = make_symbol(&cubin, name,
                           (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                       .st_shndx = (uint16_t)f.section,
                                       .st_size = bytes->size});
    return f;
}

static struct function
make_kernel_k(void)
{
    const uint32_t section = make_kernel(&cubin, "k", &code, NULL);

    return (struct function){section, (uint32_t)(cubin.symbols.size / sizeof(Elf64_Sym)) - 1};
}

static Elf64_Rela
relocation(uint64_t at, uint32_t type, uint32_t symbol, int64_t addend)
{
    return (Elf64_Rela){
        .r_offset = at, .r_info = ELF64_R_INFO((uint64_t)symbol, type), .r_addend = addend};
}

static void
make_relocations(uint32_t section, const Elf64_Rela *all, size_t count)
{
    (void)make_section(&cubin, ".rela", SHT_RELA, section, all, count * sizeof *all);
}

/* A kernel that calls f, with a return address that is right. */
static struct function
make_calling_kernel(void)
{
    make_mov(&code, 20);
    make_mov(&code, 21);
    make_call_abs(&code);
    make_exit(&code);
    return make_kernel_k();
}

static void
relocate_calling_kernel(struct function k, uint32_t callee)
{
    const Elf64_Rela all[] = {
        relocation(0x00, R_CUDA_ABS32_LO_32, k.symbol, 0x30),
        relocation(0x10, R_CUDA_ABS32_HI_32, k.symbol, 0x30),
        relocation(0x20, R_CUDA_ABS47_34, callee, 0),
    };

    make_relocations(k.section, all, 3);
}

/* ---- calls by name --------------------------------------------------------------------------- */

static void
function_of_another_section_is_called(void **state)
{
    const struct function k = make_calling_kernel();

    make_nop(&other);
    make_ret_abs(&other);
    relocate_calling_kernel(k, make_function("f", &other).symbol);
    assert_int_equal(lift_cubin(), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("trap"), 0); /* the return knows where to go */
}

static void
function_that_is_missing_is_named(void **state)
{
    const struct function k = make_calling_kernel();

    relocate_calling_kernel(
        k, make_symbol(&cubin, "missing",
                       (Elf64_Sym){.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)}));
    assert_int_equal(lift_cubin(), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "'missing'"));
}

/* f calls g, which calls f: the returns compare addresses. */
static void
cycles_of_calls_are_found(void **state)
{
    const struct function k = make_calling_kernel();
    struct function f, g;

    make_bra(&other, GUARD_P0, 2);
    make_call_abs(&other);
    make_ret_abs(&other);
    f = make_function("f", &other);
    g = make_function("g", &other);
    relocate_calling_kernel(k, f.symbol);
    make_relocations(f.section, &(Elf64_Rela){0x10, ELF64_R_INFO((uint64_t)g.symbol, 58), 0}, 1);
    make_relocations(g.section, &(Elf64_Rela){0x10, ELF64_R_INFO((uint64_t)f.symbol, 58), 0}, 1);
    assert_int_equal(lift_cubin(), 0);
    text_can_be_parsed();
    assert_true(count_in_text("trap") > 0);
}

/* f begins behind the kernel, which ends with the call. */
static void
functions_must_not_run_into_each_other(void **state)
{
    Elf64_Rela call;
    struct function k;

    make_call_abs(&code);
    k = make_kernel_k();
    make_ret_abs(&other);
    call = relocation(0, R_CUDA_ABS47_34, make_function("f", &other).symbol, 0);
    make_relocations(k.section, &call, 1);
    assert_int_equal(lift_cubin(), HED_EFORMAT);
    assert_non_null(strstr(why.text, "leaves the kernel"));
}

static void
calls_into_the_middle_of_nowhere_are_refused(void **state)
{
    static const int64_t places[] = {8, 16, 1 << 20, INT64_MAX, -16, INT64_MIN};

    for (unsigned i = 0; i < sizeof places / sizeof places[0]; i++) {
        Elf64_Rela call;
        struct function k;

        begin_again(state);
        k = make_calling_kernel();
        make_ret_abs(&other);
        call = relocation(0x20, R_CUDA_ABS47_34, make_function("f", &other).symbol, places[i]);
        make_relocations(k.section, &call, 1);
        assert_int_not_equal(lift_cubin(), 0);
    }
}

static void
relocations_must_fit_their_instructions(void **state)
{
    static const struct {
        uint64_t at;
        uint32_t type, symbol;
    } bad[] = {
        {0x20, R_CUDA_ABS32_LO_32, 1}, /* half an address in a call */
        {0x00, R_CUDA_ABS47_34, 1},    /* a target in a move */
        {0x28, R_CUDA_ABS47_34, 1},    /* between two instructions */
        {0x40, R_CUDA_ABS47_34, 1},    /* behind the code */
        {UINT64_MAX - 15, R_CUDA_ABS47_34, 1},
        {0x20, R_CUDA_64, 1},             /* eight bytes of code */
        {0x20, 64, 1},                    /* of another kind */
        {0x20, R_CUDA_ABS47_34, 0xfffff}, /* of a symbol that is not there */
    };

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        Elf64_Rela r;
        struct function k;

        begin_again(state);
        k = make_calling_kernel();
        assert_int_equal(k.symbol, 1);
        r = relocation(bad[i].at, bad[i].type, bad[i].symbol, 0);
        make_relocations(k.section, &r, 1);
        assert_int_equal(lift_cubin(), HED_ENOTSUP);
        assert_non_null(strstr(why.text, "has to be linked"));
    }
}

/* Sections of relocations that share their bytes would be as many as sections times bytes. */
static void
relocations_that_overlap_are_refused(void **state)
{
    const struct function k = make_calling_kernel();
    const size_t count = 4096;
    Elf64_Rela *all = calloc(count, sizeof *all);
    struct hed_sass_program *p = NULL;

    assert_non_null(all);
    make_relocations(k.section, all, count);
    free(all);
    for (unsigned i = 0; i < 4; i++) {
        cubin.sections[cubin.section_count] = cubin.sections[cubin.section_count - 1];
        cubin.section_count++;
    }
    assert_int_equal(hed_sass_open(make_cubin_end(&cubin), &arena, &p, &why), HED_EFORMAT);
    assert_non_null(strstr(why.text, "overlap"));
}

/* ---- addresses among constants --------------------------------------------------------------- */

#define POOL 100 /* addresses */

/* LDC.64 R2, c[0x4][R5] from addresses of vprintf, and a call of it. */
static void
make_pooled_call(uint32_t type)
{
    static const uint64_t words[POOL];
    Elf64_Rela all[POOL];
    const uint32_t f = make_symbol(&cubin, "vprintf", (Elf64_Sym){.st_info = STT_FUNC});

    make_inst(&code, 0x0100000005027b82, 0x000e620000000a00);
    make_call_r2(&code);
    make_exit(&code);
    (void)make_kernel_k();
    for (unsigned i = 0; i < POOL; i++)
        all[i] = relocation(i * 8, i ? R_CUDA_64 : type, f, 0);
    make_relocations(make_section(&cubin, ".nv.constant4", SHT_PROGBITS, 0, words, sizeof words),
                     all, POOL);
}

static void
registers_choose_among_many_addresses(void **state)
{
    make_pooled_call(R_CUDA_64);
    assert_int_equal(lift_cubin(), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("ld.const.b64"), 1);
}

/* Whoever loads the program fills in the number that the call compares. */
static void
addresses_of_functions_are_the_numbers_that_calls_compare(void **state)
{
    const struct hed_sass_program *p;
    char number[64];

    make_pooled_call(R_CUDA_64);
    p = open_cubin();
    assert_int_equal(hed_sass_lift(p, 0, HED_SASS_FOR_CPU, &text, &why), 0);
    assert_int_equal(p->pointer_count, POOL);
    assert_int_equal(p->pointers[POOL - 1].to, HED_SASS_NUMBER);
    assert_int_equal(p->pointers[POOL - 1].at, (POOL - 1) * 8);
    (void)snprintf(number, sizeof number, ", %u, ", (unsigned)p->pointers[POOL - 1].addend);
    assert_true(count_in_text(number) > 0);
}

static void
addresses_that_are_not_known_are_not_loaded(void **state)
{
    make_pooled_call(R_CUDA_ABS47_34);
    assert_int_equal(lift_cubin(), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "an address that is not known"));
}

/* ---- calls by address ------------------------------------------------------------------------ */

/* A variable that holds addresses, and a kernel that calls one. */
static uint32_t
make_table(const Elf64_Rela *all, size_t count)
{
    const uint64_t words[4] = {0};
    const uint32_t table =
        make_section(&cubin, ".nv.global.init", SHT_PROGBITS, 0, words, sizeof words);

    make_relocations(table, all, count);
    return table;
}

static void
functions_in_a_table_are_called(void **state)
{
    Elf64_Rela all[2];

    make_call_r2(&code);
    make_exit(&code);
    (void)make_kernel_k();
    make_ret_abs(&other);
    all[0] = relocation(0, R_CUDA_64, make_function("f", &other).symbol, 0);
    all[1] = relocation(8, R_CUDA_64, make_function("g", &other).symbol, 0);
    (void)make_table(all, 2);
    assert_int_equal(lift_cubin(), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("setp.eq.u32"), 2);
    assert_int_equal(count_in_text("trap"), 1); /* for anything else */
}

/* Nothing in it is a function: a call can reach none. */
static void
tables_that_point_nowhere_have_no_functions(void **state)
{
    static const int64_t addends[] = {8, 4096, INT64_MAX, -1};
    Elf64_Rela all[4];
    uint32_t f;

    make_call_r2(&code);
    make_exit(&code);
    (void)make_kernel_k();
    make_ret_abs(&other);
    f = make_function("f", &other).symbol;
    for (unsigned i = 0; i < 4; i++)
        all[i] = relocation(i * 8, R_CUDA_64, f, addends[i]);
    (void)make_table(all, 4);
    assert_int_equal(lift_cubin(), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "not known"));
}

/* A function that is in the table calls another one by its address, and so on without an end. */
static void
functions_of_a_table_may_call_each_other(void **state)
{
    Elf64_Rela all[2];

    make_call_r2(&code);
    make_exit(&code);
    (void)make_kernel_k();
    make_call_r2(&other);
    make_ret_abs(&other);
    all[0] = relocation(0, R_CUDA_64, make_function("f", &other).symbol, 0);
    all[1] = relocation(8, R_CUDA_64, make_function("g", &other).symbol, 0);
    (void)make_table(all, 2);
    assert_int_equal(lift_cubin(), 0);
    text_can_be_parsed();
}

/* ---- functions that are lifted when they are called ------------------------------------------ */

/* A kernel that calls R2, and a function that is too large to be part of it: what `other` holds,
 * and instructions behind it that nothing reaches. */
static struct hed_sass_program *
open_far(void)
{
    Elf64_Rela r;

    make_call_r2(&code);
    make_exit(&code);
    (void)make_kernel_k();
    while (other.size <= 1 << 20)
        make_nop(&other);
    r = relocation(0, R_CUDA_64, make_function("f", &other).symbol, 0);
    (void)make_table(&r, 1);
    return open_cubin();
}

/* The number that stands for a function: the table has it. */
static uint64_t
far_address(const struct hed_sass_program *p)
{
    assert_int_equal(p->pointer_count, 1);
    assert_int_equal(p->pointers[0].to, HED_SASS_NUMBER);
    return (uint64_t)p->pointers[0].addend;
}

static void
large_functions_are_lifted_when_they_are_called(void **state)
{
    struct hed_sass_program *p;

    make_ret_abs(&other);
    p = open_far();
    assert_int_equal(hed_sass_lift(p, 0, HED_SASS_FOR_CPU, &text, &why), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("heddle_call;"), 1);
    text.size = 0;
    assert_int_equal(hed_sass_lift_function(p, 0, far_address(p), &text, &why), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("\tret;"), 1);
    assert_int_equal(count_in_text(".entry"), 0);
}

static void
other_addresses_are_no_functions(void **state)
{
    struct hed_sass_program *p;
    uint64_t f;

    make_ret_abs(&other);
    p = open_far();
    f = far_address(p);
    const uint64_t bad[] = {0, 16, f - 16, f + 8, f + 16, f + (UINT64_C(1) << 32), UINT64_MAX};

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(hed_sass_lift_function(p, 0, bad[i], &text, &why), HED_ENOTFOUND);
    assert_int_equal(hed_sass_lift_function(p, 1, f, &text, &why), HED_EINVAL);
    assert_int_equal(text.size, 0);
}

/* A GPU's driver would have to compile all of them. */
static void
large_functions_are_refused_for_a_gpu(void **state)
{
    make_ret_abs(&other);
    assert_int_equal(hed_sass_lift(open_far(), 0, HED_SASS_FOR_GPU, &text, &why), HED_ENOTSUP);
    assert_non_null(strstr(why.text, "one of many functions"));
}

/* MOV R5, c[0x0][0x160] */
static void
large_functions_have_no_parameters_of_kernels(void **state)
{
    struct hed_sass_program *p;

    make_inst(&other, 0xff057624 | (uint64_t)0x160 << 38, 0x000fe200078e00ff);
    make_ret_abs(&other);
    p = open_far();
    assert_int_equal(hed_sass_lift_function(p, 0, far_address(p), &text, &why), HED_ENOTSUP);
}

/* It calls itself: its return may go to itself or to the kernel. */
static void
large_functions_may_recurse(void **state)
{
    struct hed_sass_program *p;

    make_bra(&other, GUARD_P0, 2);
    make_call(&other, 0);
    make_ret_abs(&other);
    p = open_far();
    assert_int_equal(hed_sass_lift_function(p, 0, far_address(p), &text, &why), 0);
    text_can_be_parsed();
    assert_int_equal(count_in_text("trap"), 1);
    assert_int_equal(count_in_text("\tret;"), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(function_of_another_section_is_called, setup, teardown),
    cmocka_unit_test_setup_teardown(function_that_is_missing_is_named, setup, teardown),
    cmocka_unit_test_setup_teardown(cycles_of_calls_are_found, setup, teardown),
    cmocka_unit_test_setup_teardown(functions_must_not_run_into_each_other, setup, teardown),
    cmocka_unit_test_setup_teardown(calls_into_the_middle_of_nowhere_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(relocations_must_fit_their_instructions, setup, teardown),
    cmocka_unit_test_setup_teardown(relocations_that_overlap_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(registers_choose_among_many_addresses, setup, teardown),
    cmocka_unit_test_setup_teardown(addresses_of_functions_are_the_numbers_that_calls_compare,
                                    setup, teardown),
    cmocka_unit_test_setup_teardown(addresses_that_are_not_known_are_not_loaded, setup, teardown),
    cmocka_unit_test_setup_teardown(functions_in_a_table_are_called, setup, teardown),
    cmocka_unit_test_setup_teardown(tables_that_point_nowhere_have_no_functions, setup, teardown),
    cmocka_unit_test_setup_teardown(functions_of_a_table_may_call_each_other, setup, teardown),
    cmocka_unit_test_setup_teardown(large_functions_are_lifted_when_they_are_called, setup,
                                    teardown),
    cmocka_unit_test_setup_teardown(other_addresses_are_no_functions, setup, teardown),
    cmocka_unit_test_setup_teardown(large_functions_are_refused_for_a_gpu, setup, teardown),
    cmocka_unit_test_setup_teardown(large_functions_have_no_parameters_of_kernels, setup, teardown),
    cmocka_unit_test_setup_teardown(large_functions_may_recurse, setup, teardown),
};

HED_UNIT_MAIN(tests)
