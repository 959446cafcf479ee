/* The kernel library as programs see it: kernel.h alone. */
#include "harness/unit.h"

#include <stdlib.h>

#include "kernel/kernel.h"
#include "unit/fatbin/make.h"

#define HEAD ".version 7.8\n.target sm_80\n.address_size 64\n"

static const char count_text[] = HEAD
    ".visible .global .align 4 .u32 total = 40;\n"
    ".visible .global .align 8 .u64 where = total;\n"
    ".visible .entry count(.param .u64 out, .param .u16 step)\n"
    "{\n"
    "    .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .b16 %h;\n"
    "    ld.param.u64 %d1, [out];\n"
    "    ld.param.u16 %h, [step];\n"
    "    cvt.u32.u16 %r1, %h;\n"
    "    ld.global.u64 %d2, [where];\n"
    "    atom.global.add.u32 %r2, [%d2], %r1;\n"
    "    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;\n"
    "    mad.lo.u32 %r3, %r3, %r4, %r5;\n"
    "    mul.wide.u32 %d3, %r3, 4;\n"
    "    add.u64 %d4, %d1, %d3;\n"
    "    st.global.u32 [%d4], %r3;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry shares() .reqntid 32, 1, 1\n"
    "{\n"
    "    .shared .align 4 .b8 room[48];\n"
    "    .reg .b32 %r<2>;\n"
    "    mov.u32 %r1, room;\n"
    "    st.shared.u32 [%r1], %r1;\n"
    "    bar.sync 0;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry traps() { trap; ret; }\n"
    ".visible .entry reads(.param .u64 at)\n"
    "{ .reg .b64 %d<3>; ld.param.u64 %d1, [at]; ld.global.u64 %d2, [%d1]; st.global.u64 [%d1], %d2;"
    " ret; }\n"
    ".visible .entry spins() { again: bra again; }\n";

static struct heddle_image *
open_text(const char *text)
{
    struct heddle_image *image = NULL;
    struct heddle_why why;

    if (heddle_image_open(text, strlen(text), &image, &why) != 0)
        fail_msg("%s", why.text);
    return image;
}

static const struct heddle_grid one = {
    .size = sizeof one, .blocks = {1, 1, 1}, .threads = {32, 1, 1}};

static int
run_named(struct heddle_image *image, const char *name, const struct heddle_grid *grid,
          void *const *args, struct heddle_why *why)
{
    const int kernel = heddle_image_find(image, name);

    assert_true(kernel >= 0);
    return heddle_image_run(image, kernel, grid, args, why);
}

static void
a_grid_leaves_its_results_in_memory(void **state)
{
    struct heddle_image *image = open_text(count_text);
    const struct heddle_grid grid = {
        .size = sizeof grid, .blocks = {5, 1, 1}, .threads = {64, 1, 1}};
    uint32_t *out = heddle_memory_alloc(320 * sizeof *out);
    uint16_t step = 2;
    void *args[] = {&out, &step};
    struct heddle_why why;
    void *total;
    size_t size;

    (void)state;
    assert_non_null(out);
    assert_int_equal((uintptr_t)out % 256, 0);
    assert_int_equal(run_named(image, "count", &grid, args, &why), 0);
    for (uint32_t i = 0; i < 320; i++)
        assert_int_equal(out[i], i);
    assert_int_equal(heddle_image_variable(image, "total", &total, &size), 0);
    assert_int_equal(size, 4);
    assert_int_equal(*(uint32_t *)total, 40 + 320 * 2);
    assert_int_equal(heddle_image_variable(image, "nothing", &total, &size), HEDDLE_NOT_FOUND);
    heddle_memory_free(out);
    heddle_image_close(image);
}

static void
kernels_are_listed_with_their_parameters(void **state)
{
    struct heddle_image *image = open_text(count_text);
    struct heddle_kernel k = {.size = sizeof k};
    struct heddle_param p;

    (void)state;
    assert_int_equal(heddle_image_count(image), 5);
    assert_int_equal(heddle_image_find(image, "count"), 0);
    assert_int_equal(heddle_image_find(image, "nobody"), HEDDLE_NOT_FOUND);
    assert_int_equal(heddle_image_kernel(image, 0, &k), 0);
    assert_string_equal(k.name, "count");
    assert_int_equal(k.params, 2);
    assert_int_equal(k.param_bytes, 10);
    assert_int_equal(heddle_image_param(image, 0, 1, &p), 0);
    assert_int_equal(p.offset, 8);
    assert_int_equal(p.size, 2);
    assert_int_equal(heddle_image_param(image, 0, 2, &p), HEDDLE_INVALID);
    assert_int_equal(heddle_image_kernel(image, 1, &k), 0);
    assert_int_equal(k.shared, 48);
    assert_int_equal(k.required[0], 32);
    assert_int_equal(heddle_image_kernel(image, 5, &k), HEDDLE_INVALID);
    heddle_image_close(image);
}

/* A program that was built with an older header has a smaller structure. */
static void
no_more_is_filled_than_the_program_has(void **state)
{
    struct heddle_image *image = open_text(count_text);
    struct heddle_kernel k = {.size = offsetof(struct heddle_kernel, param_bytes),
                              .param_bytes = 12345};

    (void)state;
    assert_int_equal(heddle_image_kernel(image, 0, &k), 0);
    assert_int_equal(k.params, 2);
    assert_int_equal(k.param_bytes, 12345);
    k.size = 0;
    assert_int_equal(heddle_image_kernel(image, 0, &k), HEDDLE_INVALID);
    heddle_image_close(image);
}

static void
what_is_no_image_is_refused(void **state)
{
    static const char *const bad[] = {"", "hello", HEAD ".visible .entry a( { }", "\177ELF"};
    static const int numbers[] = {200, 200, 218, 200}; /* CUDA_ERROR_INVALID_IMAGE, _PTX */
    struct heddle_image *image = NULL;
    struct heddle_why why;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why.text[0] = '\0';
        assert_true(heddle_image_open(bad[i], strlen(bad[i]), &image, &why) < 0);
        assert_null(image);
        assert_true(why.text[0] != '\0');
        assert_int_equal(why.cuda, numbers[i]);
    }
    assert_int_equal(heddle_image_open(NULL, 0, &image, NULL), HEDDLE_INVALID);
    heddle_image_close(NULL);
}

static void
a_failing_grid_says_why_and_the_next_one_runs(void **state)
{
    struct heddle_image *image = open_text(count_text);
    uint64_t *bad = (uint64_t *)(uintptr_t)16, good = 7;
    uint64_t *at = &good;
    void *bad_args[] = {&bad}, *good_args[] = {&at};
    struct heddle_why why;

    (void)state;
    assert_int_equal(run_named(image, "traps", &one, NULL, &why), HEDDLE_FAILED);
    assert_non_null(strstr(why.text, "trap"));
    assert_int_equal(why.cuda, 719); /* CUDA_ERROR_LAUNCH_FAILED */
    assert_int_equal(run_named(image, "reads", &one, bad_args, &why), HEDDLE_FAILED);
    assert_int_equal(why.cuda, 700); /* CUDA_ERROR_ILLEGAL_ADDRESS */
    assert_int_equal(run_named(image, "reads", &one, good_args, &why), 0);
    heddle_image_close(image);
}

static void
a_grid_that_takes_too_long_is_ended(void **state)
{
    struct heddle_image *image = open_text(count_text);
    struct heddle_grid grid = one;
    struct heddle_why why;

    (void)state;
    grid.time_limit_ns = 1000000;
    assert_int_equal(run_named(image, "spins", &grid, NULL, &why), HEDDLE_TIME);
    heddle_image_close(image);
}

static void
launches_that_make_no_sense_are_refused(void **state)
{
    struct heddle_image *image = open_text(count_text);
    struct heddle_grid grid = one;
    struct heddle_why why;

    (void)state;
    assert_int_equal(heddle_image_run(image, 99, &one, NULL, &why), HEDDLE_INVALID);
    assert_int_equal(run_named(image, "count", &one, NULL, &why), HEDDLE_INVALID);
    grid.threads[0] = 64;
    assert_int_equal(run_named(image, "shares", &grid, NULL, &why), HEDDLE_INVALID);
    assert_non_null(strstr(why.text, ".reqntid"));
    grid.threads[1] = 32;
    assert_int_equal(run_named(image, "traps", &grid, NULL, &why), HEDDLE_INVALID);
    grid.blocks[2] = 0;
    assert_int_equal(run_named(image, "traps", &grid, NULL, &why), HEDDLE_INVALID);
    grid.size = 1;
    assert_int_equal(run_named(image, "traps", &grid, NULL, &why), HEDDLE_INVALID);
    assert_int_equal(run_named(image, "shares", &one, NULL, &why), 0);
    heddle_image_close(image);
}

static void
a_kernel_is_refused_by_the_instruction_it_cannot_have(void **state)
{
    struct heddle_image *image =
        open_text(".version 8.0\n.target sm_90a\n.address_size 64\n"
                  ".visible .entry multiplies() { wgmma.fence.sync.aligned; ret; }\n"
                  ".visible .entry plain() { ret; }\n");
    struct heddle_why why = {.text = ""};
    char text[512];

    (void)state;
    assert_int_equal(heddle_image_check(image, 0, &why), HEDDLE_REFUSED);
    assert_non_null(strstr(why.text, "wgmma"));
    assert_int_equal(heddle_image_run(image, 0, &one, NULL, &why), HEDDLE_REFUSED);
    assert_true(heddle_image_explain(image, 0, NULL, text, sizeof text) > 0);
    assert_non_null(strstr(text, "refused"));
    assert_int_equal(heddle_image_check(image, 1, &why), 0);
    heddle_image_close(image);
}

static void
a_kernel_is_explained(void **state)
{
    struct heddle_image *image = open_text(count_text);
    char text[2048], part[8];
    const int size = heddle_image_explain(image, 0, NULL, text, sizeof text);

    (void)state;
    assert_int_equal(size, strlen(text));
    assert_non_null(strstr(text, "consecutive elements"));
    assert_int_equal(heddle_image_explain(image, 0, NULL, part, sizeof part), size);
    assert_int_equal(strlen(part), sizeof part - 1);
    assert_int_equal(heddle_image_explain(image, 77, NULL, text, sizeof text), HEDDLE_INVALID);
    heddle_image_close(image);
}

static void
machine_code_runs_with_its_variables(void **state)
{
    const struct hed_bytes cubin = fixture("cubin/sm_80");
    struct heddle_image *image = NULL;
    int32_t out[32] = {0}, n = 20;
    int32_t *at = out;
    void *args[] = {&at, &n};
    struct heddle_why why = {.text = ""};

    (void)state;
    if (heddle_image_open(cubin.data, cubin.size, &image, &why) != 0)
        fail_msg("%s", why.text);
    if (run_named(image, "sum", &one, args, &why) != 0)
        fail_msg("%s", why.text);
    for (int i = 0; i < 32; i++)
        assert_int_equal(out[i], i < n ? (10 + 10 * (i & 3)) * 4 + 30 + 3 + 5 : 0);
    heddle_image_close(image);
}

static void
several_images_are_open_at_once(void **state)
{
    struct heddle_image *a = open_text(count_text), *b = open_text(count_text);
    struct heddle_why why;

    (void)state;
    heddle_image_close(a);
    assert_int_equal(run_named(b, "shares", &one, NULL, &why), 0);
    heddle_image_close(b);
    a = open_text(count_text);
    assert_int_equal(run_named(a, "shares", &one, NULL, &why), 0);
    heddle_image_close(a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_grid_leaves_its_results_in_memory),
    cmocka_unit_test(kernels_are_listed_with_their_parameters),
    cmocka_unit_test(no_more_is_filled_than_the_program_has),
    cmocka_unit_test(what_is_no_image_is_refused),
    cmocka_unit_test(a_failing_grid_says_why_and_the_next_one_runs),
    cmocka_unit_test(a_grid_that_takes_too_long_is_ended),
    cmocka_unit_test(launches_that_make_no_sense_are_refused),
    cmocka_unit_test(a_kernel_is_refused_by_the_instruction_it_cannot_have),
    cmocka_unit_test(a_kernel_is_explained),
    cmocka_unit_test(machine_code_runs_with_its_variables),
    cmocka_unit_test(several_images_are_open_at_once),
};

HED_UNIT_MAIN(tests)
