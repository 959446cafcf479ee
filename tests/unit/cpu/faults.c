/* Tests of kernels that fail: the error, kernel, block and thread are right, and the engine still
 * works afterwards. */
#include "unit/cpu/make.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void
nothing(struct hed_ptx_warp *s)
{
}

static void
expect_fault(hed_ptx_entry entry, uint32_t flags, CUresult want, const char *text)
{
    struct hed_job job = make_job(entry, flags, 20, 64);
    struct hed_why why = {""};

    assert_int_equal(run_badly(&job, NULL, &why), want);
    assert_non_null(strstr(why.text, "kernel test"));
    if (!strstr(why.text, text))
        print_error("%s\n", why.text);
    assert_non_null(strstr(why.text, text));

    job = make_job(nothing, flags, 20, 64);
    assert_int_equal(run_badly(&job, NULL, &why), CUDA_SUCCESS);
}

static volatile int *volatile nowhere = (volatile int *)0x128;

static void
bad_address(struct hed_ptx_warp *s)
{
    if (s->block->ctaid[0] == 7 && s->warp == 1)
        *nowhere = 1;
}

static void
a_bad_address_fails_the_launch(void **state)
{
    expect_fault(bad_address, 0, CUDA_ERROR_ILLEGAL_ADDRESS, "0x128: kernel test, block (7, 0, 0)");
    expect_fault(bad_address, HED_PTX_WAITS, CUDA_ERROR_ILLEGAL_ADDRESS,
                 "0x128: kernel test, block (7, 0, 0)");
}

static void
over_the_end(struct hed_ptx_warp *s)
{
    volatile unsigned char *shared = s->block->shared;

    for (uint32_t i = 0; i < 100; i++)
        shared[i] = (unsigned char)i;
    if (s->block->ctaid[0] == 9)
        shared[1024] = 1;
}

static void
shared_memory_has_an_end(void **state)
{
    for (uint32_t flags = 0; flags <= HED_PTX_WAITS; flags++) {
        struct hed_job job = make_job(over_the_end, flags, 20, 64);
        struct hed_why why = {""};

        job.info.shared = 100;
        assert_int_equal(run_badly(&job, NULL, &why), CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_non_null(strstr(why.text, "block (9, 0, 0)"));
    }
}

static uint32_t window_end; /* bytes that can be used */

static void
over_the_end_of_a_window(struct hed_ptx_warp *s)
{
    volatile unsigned char *shared = s->block->shared;

    if ((uintptr_t)shared % HED_WINDOW != 0)
        *nowhere = 1;
    for (uint32_t i = 0; i < window_end; i++)
        shared[i] = (unsigned char)i;
    if (s->block->ctaid[0] == 9)
        shared[window_end] = 1;
}

/* Windows are used again for grids that need more or less. */
static void
shared_memory_in_windows_ends_with_a_page(void **state)
{
    static const uint32_t pages[] = {1, 3, 2, 0, 1};

    for (uint32_t flags = 0; flags <= HED_PTX_WAITS; flags++) {
        for (int i = 0; i < 5; i++) {
            struct hed_job job = make_job(over_the_end_of_a_window, flags, 20, 64);
            struct hed_why why = {""};
            char address[32];

            window_end = pages[i] * (uint32_t)engine->page;
            job.info.shared = window_end;
            job.in_windows = true;
            assert_int_equal(run_badly(&job, NULL, &why), CUDA_ERROR_ILLEGAL_ADDRESS);
            assert_non_null(strstr(why.text, "block (9, 0, 0)"));
            snprintf(address, sizeof address, "%06x: kernel", (unsigned)window_end);
            assert_non_null(strstr(why.text, address));
        }
    }
}

static void
traps(struct hed_ptx_warp *s)
{
    if (s->block->ctaid[0] == 3)
        hed_rt_trap(s, HED_PTX_TRAP, 42);
}

static void
misaligned(struct hed_ptx_warp *s)
{
    hed_rt_trap(s, HED_PTX_TRAP_ALIGN, 1);
}

static void
no_function(struct hed_ptx_warp *s)
{
    hed_rt_trap(s, HED_PTX_TRAP_CALL, 1);
}

static void
traps_fail_the_launch(void **state)
{
    expect_fault(traps, 0, CUDA_ERROR_LAUNCH_FAILED, "PTX line 42");
    expect_fault(traps, HED_PTX_WAITS, CUDA_ERROR_LAUNCH_FAILED,
                 "trap: kernel test, block (3, 0, 0)");
    expect_fault(misaligned, 0, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned");
    expect_fault(no_function, HED_PTX_WAITS, CUDA_ERROR_INVALID_PC, "no function");
}

static int
deeper(struct hed_ptx_warp *s, volatile char *above)
{
    volatile char here[256];

    memset((char *)here, above[0], sizeof here);
    if (s->fuel == INT32_MIN)
        return here[5];
    return deeper(s, here) + here[7];
}

static void
endless(struct hed_ptx_warp *s)
{
    volatile char first = 1;

    s->line = (uint32_t)deeper(s, &first);
}

static void
endless_recursion_is_noticed(void **state)
{
    expect_fault(endless, HED_PTX_RECURSES, CUDA_ERROR_ILLEGAL_ADDRESS, "stack overflow");
    expect_fault(endless, HED_PTX_RECURSES | HED_PTX_WAITS, CUDA_ERROR_ILLEGAL_ADDRESS,
                 "stack overflow");
}

static void
at_two_barriers(struct hed_ptx_warp *s)
{
    hed_rt_barrier(s, s->warp == 0 ? 1 : 2, 64, s->grid->ntid[0] / 2);
    hed_rt_barrier(s, s->warp == 0 ? 1 : 2, 64, 1);
}

static void
threads_that_wait_for_each_other_do_not_hang(void **state)
{
    expect_fault(at_two_barriers, HED_PTX_WAITS, CUDA_ERROR_LAUNCH_TIMEOUT, "wait for each other");
}

static void
asserts(struct hed_ptx_warp *s)
{
    if (s->block->ctaid[0] == 2)
        hed_rt_assertfail(s, (uintptr_t) "x > 0", (uintptr_t) "a.cu", 12, (uintptr_t) "f(int)", 1);
}

static void
assertions_fail_the_launch(void **state)
{
    expect_fault(asserts, 0, CUDA_ERROR_ASSERT, "assertion failed: kernel test, block (2, 0, 0)");
}

static volatile sig_atomic_t handled;
static sigjmp_buf back;

static void
program_handler(int signo)
{
    handled = signo;
    siglongjmp(back, 1);
}

static void
faults_outside_of_kernels_are_the_programs(void **state)
{
    struct sigaction mine = {.sa_handler = program_handler}, old;
    struct hed_job job = make_job(nothing, 0, 4, 32);
    struct hed_why why;

    sigaction(SIGSEGV, &mine, &old);
    assert_int_equal(run_badly(&job, NULL, &why), CUDA_SUCCESS);
    /* Again and again: a handler that jumps never returns to ours. */
    for (volatile int i = 0; i < 3; i++) {
        handled = 0;
        if (sigsetjmp(back, 1) == 0)
            *nowhere = 1;
        assert_int_equal(handled, SIGSEGV);
    }
    job = make_job(bad_address, 0, 20, 64);
    assert_int_equal(run_badly(&job, NULL, &why), CUDA_ERROR_ILLEGAL_ADDRESS);
    sigaction(SIGSEGV, &old, NULL);
}

static struct sigaction replaced;

static void
handler_that_passes_on(int signo, siginfo_t *info, void *context)
{
    replaced.sa_sigaction(signo, info, context);
}

/* Ours calls the program's, which calls ours: nobody wants the signal. */
static void
a_signal_that_goes_in_circles_ends_the_program(void **state)
{
    struct sigaction mine = {.sa_sigaction = handler_that_passes_on, .sa_flags = SA_SIGINFO};
    struct hed_job job = make_job(nothing, 0, 1, 32);
    struct rlimit none = {0, 0};
    struct hed_why why;
    int how = 0;
    pid_t child;

    assert_int_equal(run_badly(&job, NULL, &why), CUDA_SUCCESS);
    child = fork();
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &none);
        sigaction(SIGSEGV, &mine, &replaced);
        (void)run_badly(&job, NULL, &why); /* installs our handler again */
        *nowhere = 1;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGSEGV);
}

static void
launches_that_need_too_much_are_refused(void **state)
{
    struct hed_job job = make_job(nothing, 0, 1, 1025);
    struct hed_why why;

    assert_int_equal(run_badly(&job, NULL, &why), CUDA_ERROR_INVALID_VALUE);
    job = make_job(nothing, 0, 0, 32);
    assert_int_equal(run_badly(&job, NULL, &why), CUDA_ERROR_INVALID_VALUE);
    job = make_job(nothing, 0, 1, 32);
    job.dynamic_shared = 300000;
    assert_int_equal(run_badly(&job, NULL, &why), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_bad_address_fails_the_launch, setup, teardown),
    cmocka_unit_test_setup_teardown(shared_memory_has_an_end, setup, teardown),
    cmocka_unit_test_setup_teardown(shared_memory_in_windows_ends_with_a_page, setup, teardown),
    cmocka_unit_test_setup_teardown(traps_fail_the_launch, setup, teardown),
    cmocka_unit_test_setup_teardown(endless_recursion_is_noticed, setup, teardown),
    cmocka_unit_test_setup_teardown(threads_that_wait_for_each_other_do_not_hang, setup, teardown),
    cmocka_unit_test_setup_teardown(assertions_fail_the_launch, setup, teardown),
    cmocka_unit_test_setup_teardown(faults_outside_of_kernels_are_the_programs, setup, teardown),
    cmocka_unit_test_setup_teardown(a_signal_that_goes_in_circles_ends_the_program, setup_alone,
                                    teardown),
    cmocka_unit_test_setup_teardown(launches_that_need_too_much_are_refused, setup_alone, teardown),
};

HED_UNIT_MAIN(tests)
