/* Tests of what kernels print, and of the memory that they allocate. */
#include <stdio.h>
#include <unistd.h>

#include "unit/cpu/make.h"

/* Runs a grid with stdout redirected to a file, and returns what it printed. */
static char *
capture(struct hed_job *job, void *const *params)
{
    static char text[65536];
    FILE *file = tmpfile();
    const int saved = dup(STDOUT_FILENO);

    assert_non_null(file);
    fflush(stdout);
    dup2(fileno(file), STDOUT_FILENO);

    struct hed_why why;

    job->params = params;

    const CUresult r = hed_engine_run(engine, job, &why);

    fflush(stdout);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_int_equal(r, CUDA_SUCCESS);
    return text;
}

static void
print_all(struct hed_ptx_warp *s)
{
    struct {
        int32_t a;
        int32_t pad;
        double d;
        int64_t big;
        const char *text;
        int32_t c, width, precision, pad2;
        double e;
        uint32_t h;
    } args = {-5, 0, 1.5, -1234567890123, "str", 'z', 8, 2, 0, 3.14159, 0x12345};
    uint32_t *out = param(s, 0);

    out[0] = hed_rt_vprintf(s, (uintptr_t) "%d|%5.1f|%lld|%s|%c|%*.*f|%hx|%%|\n", (uintptr_t)&args);
}

static void
printf_formats_as_c_does(void **state)
{
    uint32_t out[1];
    void *params[] = {out};
    struct hed_job job = make_job(print_all, 0, 1, 1);

    assert_string_equal(capture(&job, params), "-5|  1.5|-1234567890123|str|z|    3.14|2345|%|\n");
    assert_int_equal(out[0], 9);
}

static void
print_block(struct hed_ptx_warp *s)
{
    const uint32_t block = s->block->ctaid[0];

    hed_rt_vprintf(s, (uintptr_t) "%u\n", (uintptr_t)&block);
}

static void
output_is_in_the_order_of_the_blocks(void **state)
{
    for (uint32_t flags = 0; flags <= HED_PTX_WAITS; flags++) {
        struct hed_job job = make_job(print_block, flags, 1000, 1);
        const char *p = capture(&job, NULL);

        for (uint32_t i = 0; i < 1000; i++) {
            char *end;

            assert_int_equal(strtoul(p, &end, 10), i);
            p = end + 1;
        }
    }
}

static void
odd_formats(struct hed_ptx_warp *s)
{
    const uint64_t args[4] = {0};

    hed_rt_vprintf(s, (uintptr_t) "a%", (uintptr_t)args);
    hed_rt_vprintf(s, (uintptr_t) "b%y", (uintptr_t)args);
    hed_rt_vprintf(s, (uintptr_t) "c%s", (uintptr_t)args);
    hed_rt_vprintf(s, (uintptr_t) "d%-+ #0-+ #0-+ #0-+ #0-+ #0-+ #0-+ #0-+ #0-+ #0-+ #0-+ #0d",
                   (uintptr_t)args);
    hed_rt_vprintf(s, 0, 0);
}

static void
odd_formats_do_no_harm(void **state)
{
    struct hed_job job = make_job(odd_formats, 0, 1, 1);

    assert_non_null(strstr(capture(&job, NULL), "c(null)d"));
}

static void
allocate(struct hed_ptx_warp *s)
{
    uint32_t *out = param(s, 0);
    char *p = (char *)(uintptr_t)hed_rt_malloc(s, 1000);

    if (!p)
        return;
    memset(p, 1, 1000);
    __atomic_fetch_add(out, 1, __ATOMIC_RELAXED);
    if (s->warp % 2)
        hed_rt_free(s, (uintptr_t)p);
}

static void
kernels_have_a_heap_with_a_limit(void **state)
{
    struct hed_heap heap;
    uint32_t out = 0;
    void *params[] = {&out};
    struct hed_job job = make_job(allocate, HED_PTX_WAITS, 160, 1024);

    hed_heap_init(&heap, NULL);
    job.heap = &heap;
    run_well(&job, params, 1);
    assert_true(out >= 1000 && out < 160 * 32);
    assert_true(heap.used <= job.heap_limit);
    hed_heap_fini(&heap);
}

static void
free_twice(struct hed_ptx_warp *s)
{
    const uint64_t p = hed_rt_malloc(s, 16);

    hed_rt_free(s, p);
    hed_rt_free(s, 0);
    hed_rt_free(s, p);
}

static void
freeing_twice_does_no_harm(void **state)
{
    struct hed_heap heap;
    struct hed_job job = make_job(free_twice, 0, 1, 1);
    struct hed_why why;

    hed_heap_init(&heap, NULL);
    job.heap = &heap;
    assert_int_equal(run_badly(&job, NULL, &why), CUDA_SUCCESS);
    assert_int_equal(heap.used, 0);
    hed_heap_fini(&heap);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(printf_formats_as_c_does, setup, teardown),
    cmocka_unit_test_setup_teardown(output_is_in_the_order_of_the_blocks, setup, teardown),
    cmocka_unit_test_setup_teardown(odd_formats_do_no_harm, setup, teardown),
    cmocka_unit_test_setup_teardown(kernels_have_a_heap_with_a_limit, setup, teardown),
    cmocka_unit_test_setup_teardown(freeing_twice_does_no_harm, setup, teardown),
};

HED_UNIT_MAIN(tests)
