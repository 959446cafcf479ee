/* Tests of sass: instructions of every family print as nvdisasm prints them. rows.inc has code that
 * ptxas made from kernels written for this test, and the text of nvdisasm.
 */
#include "kernel/sass/sass.h"

#include "base/buf.h"
#include "base/err.h"
#include "harness/unit.h"

#define ADDRESS 0x10000 /* branches go to addresses from here */

struct row {
    uint64_t low, high;
    const char *text;
};

static const struct row rows_80[] = {
#include "unit/sass/rows.inc"
};

static const struct row rows_75[] = {
#include "unit/sass/rows_75.inc"
};

static const struct row rows_86[] = {
#include "unit/sass/rows_86.inc"
};

static const struct row rows_89[] = {
#include "unit/sass/rows_89.inc"
};

static const struct row rows_90[] = {
#include "unit/sass/rows_90.inc"
};

static const struct {
    unsigned number;
    const struct row *rows;
    size_t count;
} archs[] = {
    {80, rows_80, sizeof rows_80 / sizeof rows_80[0]},
    {75, rows_75, sizeof rows_75 / sizeof rows_75[0]},
    {86, rows_86, sizeof rows_86 / sizeof rows_86[0]},
    {89, rows_89, sizeof rows_89 / sizeof rows_89[0]},
    {90, rows_90, sizeof rows_90 / sizeof rows_90[0]},
};

static struct hed_buf buf;

static int
setup(void **state)
{
    hed_buf_init(&buf, 4096);
    return 0;
}

static int
teardown(void **state)
{
    hed_buf_fini(&buf);
    return 0;
}

static int
decode_words(unsigned arch, uint64_t low, uint64_t high, struct hed_sass_inst *out)
{
    uint8_t bytes[HED_SASS_BYTES];

    for (unsigned i = 0; i < HED_SASS_BYTES; i++)
        bytes[i] = (uint8_t)((i < 8 ? low : high) >> 8 * (i % 8));
    return hed_sass_decode(arch, bytes, out);
}

static const char *
print_words(unsigned arch, uint64_t low, uint64_t high, const struct hed_sass_naming *naming)
{
    struct hed_sass_inst inst;

    hed_buf_reset(&buf);
    assert_int_equal(decode_words(arch, low, high, &inst), 0);
    hed_sass_print(&inst, ADDRESS, naming, &buf);
    assert_int_equal(buf.err, 0);
    return hed_buf_cstr(&buf);
}

static void
every_family_prints_as_nvdisasm_does(void **state)
{
    for (size_t k = 0; k < sizeof archs / sizeof archs[0]; k++)
        for (const struct row *r = archs[k].rows; r < archs[k].rows + archs[k].count; r++)
            assert_string_equal(print_words(archs[k].number, r->low, r->high, NULL), r->text);
}

/* @!P1 IADD3.X R4, ~R8.reuse, c[0x0][0x164], RZ, P0, !PT and what each part becomes. */
static void
operands_are_decoded(void **state)
{
    struct hed_sass_inst inst;

    assert_int_equal(decode_words(80, 0x0000590008049a10, 0x040fe400007fe5ff, &inst), 0);
    assert_string_equal(inst.name, "IADD3");
    assert_int_equal(inst.opcode, 0xa10);
    assert_int_equal(inst.guard, 1);
    assert_true(inst.guard_not);
    assert_false(inst.uniform);
    assert_int_equal(inst.modifier_count, 1);
    assert_string_equal(inst.modifiers[0].word, "X");
    assert_int_equal(inst.operand_count, 6);
    assert_int_equal(inst.operands[0].kind, HED_SASS_REG);
    assert_int_equal(inst.operands[0].reg, 4);
    assert_int_equal(inst.operands[1].reg, 8);
    assert_true(inst.operands[1].invert && inst.operands[1].reuse);
    assert_int_equal(inst.operands[2].kind, HED_SASS_CONST);
    assert_int_equal(inst.operands[2].bank, 0);
    assert_int_equal(inst.operands[2].value, 0x164);
    assert_int_equal(inst.operands[3].reg, HED_SASS_RZ);
    assert_int_equal(inst.operands[4].kind, HED_SASS_PRED);
    assert_int_equal(inst.operands[4].reg, 0);
    assert_true(inst.operands[5].negate);
    assert_int_equal(inst.stall, 2);
    assert_true(inst.yield);
    assert_int_equal(inst.write_barrier, 7);
    assert_int_equal(inst.read_barrier, 7);
    assert_int_equal(inst.wait, 0);
}

static bool
put_name(void *arg, uint64_t address, struct hed_buf *out)
{
    hed_buf_addf(out, "`(%s%d)", (const char *)arg, (int)(address - ADDRESS));
    return true;
}

static void
names_replace_numbers(void **state)
{
    char prefix[] = "L";
    const struct hed_sass_naming labels = {.label = put_name, .arg = prefix};
    const struct hed_sass_naming symbol = {.symbol = "32@lo(table)"};

    assert_string_equal(print_words(80, 0x000001b000007945, 0x000fe60003800000, &labels),
                        "BSSY B0, `(L448)");
    assert_string_equal(print_words(80, 0x0000000000027802, 0x000fe20000000f00, &symbol),
                        "MOV R2, 32@lo(table)");
}

static void
unknown_opcodes_are_refused(void **state)
{
    struct hed_sass_inst inst;

    assert_int_equal(decode_words(80, 0x0, 0x0, &inst), HED_ENOTSUP);
    assert_int_equal(decode_words(80, 0xfff, 0x0, &inst), HED_ENOTSUP);
}

/* A value without a spelling is written with its number, so that nothing is lost. */
static void
reserved_values_are_shown(void **state)
{
    assert_non_null(
        strstr(print_words(80, 0x000000020202720c, 0x000fe20003f02c70, NULL), "INVALID3"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_family_prints_as_nvdisasm_does, setup, teardown),
    cmocka_unit_test(operands_are_decoded),
    cmocka_unit_test_setup_teardown(names_replace_numbers, setup, teardown),
    cmocka_unit_test(unknown_opcodes_are_refused),
    cmocka_unit_test_setup_teardown(reserved_values_are_shown, setup, teardown),
};

HED_UNIT_MAIN(tests)
