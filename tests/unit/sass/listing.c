/* Tests of sass/text: the sections of a cubin and their listing. The cubins are those of the fuzz
 * corpus.
 */
#include "kernel/sass/text.h"

#include "unit/fatbin/make.h"

static struct hed_arena arena;
static uint32_t functions, instructions;

static int
setup(void **state)
{
    hed_arena_init(&arena, 16 << 20);
    functions = instructions = 0;
    return 0;
}

static int
teardown(void **state)
{
    hed_arena_fini(&arena);
    return 0;
}

static void
count_line(void *arg, const char *line)
{
    instructions += strncmp(line, "        /*", 10) == 0;
    functions += line[0] != ' ' && line[0] != '.' && line[strlen(line) - 1] == ':';
}

static uint32_t
find_sections(const char *name, struct hed_sass_code **out)
{
    struct hed_why why = {""};
    uint32_t count = 0;

    if (hed_sass_sections(fixture(name), &arena, out, &count, &why) != 0)
        fail_msg("%s: %s", name, why.text);
    return count;
}

static void
every_instruction_has_a_line(void **state)
{
    struct hed_sass_code *all;
    const uint32_t count = find_sections("cubin/sm_75", &all);
    uint64_t bytes = 0;

    assert_true(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(all[i].function_count > 0);
        assert_true(hed_sass_list(&all[i], &arena, count_line, NULL) >= 0);
        bytes += all[i].bytes.size;
    }
    assert_int_equal(instructions, bytes / 16);
    assert_true(functions >= count);
}

static void
names_belong_to_their_section(void **state)
{
    struct hed_sass_code *all;
    const uint32_t count = find_sections("cubin/parts", &all);

    assert_true(count > 1);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < all[i].function_count; j++) {
            assert_true(all[i].functions[j].at < all[i].bytes.size);
            if (j)
                assert_true(all[i].functions[j - 1].at <= all[i].functions[j].at);
        }
    }
}

static void
other_files_are_refused(void **state)
{
    struct hed_sass_code *all;
    struct hed_why why = {""};
    uint32_t count;

    assert_int_equal(hed_sass_sections(fixture("cubin/host"), &arena, &all, &count, &why),
                     HED_ENOTSUP);
    assert_string_not_equal(why.text, "");
}

static void
a_small_arena_is_refused(void **state)
{
    struct hed_sass_code *all;
    struct hed_why why = {""};
    uint32_t count;

    hed_arena_fini(&arena);
    hed_arena_init(&arena, 64);
    assert_int_equal(hed_sass_sections(fixture("cubin/sm_75"), &arena, &all, &count, &why),
                     HED_ELIMIT);
}

/* A line that cannot be made is an error, not a line that is missing. */
static void
a_name_that_is_too_long_is_refused(void **state)
{
    static uint8_t name[1 << 17], nop[16] = {0x18, 0x79};
    struct hed_sass_name function = {.name = {name, sizeof name}};
    const struct hed_sass_code code = {
        .bytes = {nop, sizeof nop}, .functions = &function, .function_count = 1};

    memset(name, 'f', sizeof name);
    assert_int_equal(hed_sass_list(&code, &arena, count_line, NULL), HED_ELIMIT);
    function.name.size = 9;
    assert_int_equal(hed_sass_list(&code, &arena, count_line, NULL), 0);
    assert_int_equal(functions, 1);
    assert_int_equal(instructions, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(every_instruction_has_a_line, setup, teardown),
    cmocka_unit_test_setup_teardown(names_belong_to_their_section, setup, teardown),
    cmocka_unit_test_setup_teardown(other_files_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(a_small_arena_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(a_name_that_is_too_long_is_refused, setup, teardown),
};

HED_UNIT_MAIN(tests)
