/* How processes end, fork and unload the library while the CPU GPU is at work. */
#include "e2e/cpu/ends.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>

extern char **environ;

/* Starts a kernel that does not end. */
static CUstream
start_forever(void)
{
    CUstream s;

    start_driver();
    CHECK_IS(CU(cuStreamCreate)(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    launch_kernel("forever", s);
    WAIT_UNTIL(((volatile uint32_t *)(uintptr_t)memory)[1]);
    return s;
}

/* The ids of the threads that are about to wait for a kernel. */
static _Atomic pid_t waiting[4];

static void
until_all_wait(int n)
{
    for (int i = 0; i < n; i++)
        WAIT_UNTIL(waiting[i] && thread_state(waiting[i]) == 'S');
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void
exit_while_a_kernel_runs(void)
{
    (void)start_forever();
    exit(STATUS);
}

static void
immediate_exit_while_a_kernel_runs(void)
{
    (void)start_forever();
    _exit(STATUS);
}

static void
quick_exit_while_a_kernel_runs(void)
{
    (void)start_forever();
    quick_exit(STATUS);
}

static void *
waits_forever(void *arg)
{
    (void)CU(cuCtxSetCurrent)(context);
    waiting[(uintptr_t)arg] = gettid();
    (void)CU(cuCtxSynchronize)();
    return NULL;
}

static void *
exits(void *arg)
{
    (void)arg;
    exit(STATUS);
}

static void
thread_exits_while_others_wait(void)
{
    pthread_t thread;

    (void)start_forever();
    for (uintptr_t i = 0; i < 3; i++)
        CHECK_IS(pthread_create(&thread, NULL, waits_forever, (void *)i), 0);
    until_all_wait(3);
    CHECK_IS(pthread_create(&thread, NULL, exits, NULL), 0);
    (void)CU(cuCtxSynchronize)();
    exit(1); /* the kernel does not end */
}

static void *
works_until_the_end(void *arg)
{
    CUdeviceptr p;

    (void)arg;
    (void)CU(cuCtxSetCurrent)(context);
    for (CUresult r = CUDA_SUCCESS; r == CUDA_SUCCESS;) {
        r = CU(cuMemAlloc_v2)(&p, 1 << 16);
        if (r == CUDA_SUCCESS)
            r = CU(cuMemsetD32_v2)(p, 1, 1 << 14);
        if (r == CUDA_SUCCESS)
            r = CU(cuMemFree_v2)(p);
    }
    pause();
    return NULL;
}

static void
exit_while_threads_work(void)
{
    pthread_t thread;

    start_driver();
    for (int i = 0; i < 4; i++)
        CHECK_IS(pthread_create(&thread, NULL, works_until_the_end, NULL), 0);
    for (int i = 0; i < 200; i++)
        launch_kernel("fill", NULL);
    exit(STATUS);
}

static void *
outlives_main(void *arg)
{
    (void)arg;
    WAIT_UNTIL(thread_state(getpid()) == 'Z');
    CHECK_IS(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    works();
    exit(STATUS);
}

static void
main_thread_ends_first(void)
{
    pthread_t thread;

    start_driver();
    CHECK_IS(pthread_create(&thread, NULL, outlives_main, NULL), 0);
    pthread_exit(NULL);
}

static void
calls_at_exit(void)
{
    static int before;
    CUdeviceptr p;
    const CUresult r = CU(cuMemAlloc_v2)(&p, 16);

    /* The second time, the context no longer exists, or all of heddle. */
    if (before++ == 0 ? r != CUDA_SUCCESS : r == CUDA_SUCCESS)
        _exit(1);
    (void)CU(cuCtxSynchronize)();
    (void)CU(cuMemFree_v2)(memory);
    (void)CU(cuModuleUnload)(module);
    (void)CU(cuDevicePrimaryCtxRelease_v2)(0);
}

static void
calls_are_answered_at_exit(void)
{
    CHECK_IS(atexit(calls_at_exit), 0); /* runs after the functions that are registered later */
    start_driver();
    CHECK_IS(atexit(calls_at_exit), 0);
    launch_kernel("fill", NULL);
    exit(STATUS);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void
children_are_refused(void)
{
    start_driver();
    works();
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();

        CHECK(child >= 0, "no child");
        if (child == 0 && i % 2)
            exit(is_refused() ? 0 : 1);
        if (child == 0)
            _exit(is_refused() ? 0 : 1);
        launch_kernel("fill", NULL);
        CHECK_IS(status_of(child), 0);
        works();
    }
    exit(STATUS);
}

static void
children_of_a_busy_process_are_refused(void)
{
    pthread_t thread;

    start_driver();
    for (int i = 0; i < 3; i++)
        CHECK_IS(pthread_create(&thread, NULL, works_until_the_end, NULL), 0);
    for (int i = 0; i < 50; i++) {
        for (int k = 0; k < 5; k++)
            launch_kernel("fill", NULL);

        const pid_t child = fork();

        CHECK(child >= 0, "no child");
        if (child == 0)
            exit(is_refused() ? 0 : 1);
        CHECK_IS(status_of(child), 0);
    }
    works();
    exit(STATUS);
}

static void
both_work_when_forked_before(void)
{
    const pid_t child = fork();

    CHECK(child >= 0, "no child");
    start_driver();
    works();
    if (child == 0)
        exit(0);
    CHECK_IS(status_of(child), 0);
    works();
    exit(STATUS);
}

static void
new_programs_work(void)
{
    char name[] = "cpu_ends", argument[] = "program";
    char *argv[] = {name, argument, NULL};
    pid_t child;

    (void)start_forever();
    CHECK_IS(posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ), 0);
    CHECK_IS(status_of(child), STATUS);
    child = fork();
    CHECK(child >= 0, "no child");
    if (child == 0) {
        execv("/proc/self/exe", argv);
        _exit(126);
    }
    CHECK_IS(status_of(child), STATUS);
    exit(STATUS);
}

static void
program(void)
{
    start_driver();
    works();
    exit(STATUS);
}

/* ---- threads and the library ----------------------------------------------------------------- */

static CUstream cancelled_stream;

static void *
is_cancelled(void *arg)
{
    (void)CU(cuCtxSetCurrent)(context);
    waiting[(uintptr_t)arg] = gettid();
    (void)CU(cuStreamSynchronize)(cancelled_stream);
    for (;;)
        pause();
    return NULL;
}

/* A thread can be cancelled while it waits for a stream, without effect on others. */
static void
cancelled_threads_leave_no_lock(void)
{
    const uint32_t one = 1;
    const CUstream s = cancelled_stream = start_forever();
    pthread_t threads[4];

    for (uintptr_t i = 0; i < 4; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, is_cancelled, (void *)i), 0);
    until_all_wait(4);
    for (int i = 0; i < 4; i++)
        CHECK_IS(pthread_cancel(threads[i]), 0);
    memcpy((void *)(uintptr_t)memory, &one, sizeof one); /* the kernel ends */
    for (int i = 0; i < 4; i++) {
        void *result;

        CHECK_IS(pthread_join(threads[i], &result), 0);
        CHECK(result == PTHREAD_CANCELED, "thread %d was not cancelled", i);
    }
    CHECK_IS(CU(cuStreamSynchronize)(s), CUDA_SUCCESS);
    works();
    exit(STATUS);
}

static void
closing_the_library_changes_nothing(void)
{
    start_driver();
    for (int i = 0; i < 10; i++) {
        void *library = conf_open();

        CHECK_IS(dlclose(library), 0);
        CHECK_IS(dlclose(conf_open()), 0);
        works();
    }
    exit(STATUS);
}

/* ---- plug-ins -------------------------------------------------------------------------------- */

static CUlibrary plugin_library;
static _Atomic bool is_ready, has_loader_lock, is_opened;

static void *
opens_the_library(void *arg)
{
    /* dlsym() needs the loader's lock. */
    CUresult (*count_kernels)(unsigned int *, CUlibrary) = CU(cuLibraryGetKernelCount);
    unsigned int n;

    (void)arg;
    is_ready = true;
    WAIT_UNTIL(has_loader_lock);
    CHECK_IS(count_kernels(&n, plugin_library), CUDA_SUCCESS);
    is_opened = true;
    return NULL;
}

/* As the destructor of a plug-in with device code: dlclose() has the loader's lock. */
static void
unload_the_library(void)
{
    has_loader_lock = true;
    WAIT_UNTIL(is_opened);
    CHECK_IS(CU(cuLibraryUnload)(plugin_library), CUDA_SUCCESS);
}

/* The first call of a thread does not need the loader's lock: whoever has it may wait for that call
 * to end, in the driver or for a lock of a CUDA runtime. */
static void
a_plugin_is_closed_while_its_code_is_opened(void)
{
    void *plugin = dlopen(HED_ENDS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    void (**at_unload)(void) = plugin ? dlsym(plugin, "plugin_at_unload") : NULL;
    pthread_t thread;

    CHECK(at_unload, "%s", dlerror());
    start_driver();
    CHECK_IS(CU(cuLibraryLoadData)(&plugin_library, ptx, NULL, NULL, 0, NULL, NULL, 0),
             CUDA_SUCCESS);
    CHECK_IS(pthread_create(&thread, NULL, opens_the_library, NULL), 0);
    WAIT_UNTIL(is_ready);
    *at_unload = unload_the_library;
    CHECK_IS(dlclose(plugin), 0);
    CHECK_IS(pthread_join(thread, NULL), 0);
    works();
    exit(STATUS);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static const struct ends_case cases[] = {
    CASE(exit_while_a_kernel_runs),
    CASE(immediate_exit_while_a_kernel_runs),
    CASE(quick_exit_while_a_kernel_runs),
    CASE(thread_exits_while_others_wait),
    CASE(exit_while_threads_work),
    CASE(main_thread_ends_first),
    CASE(calls_are_answered_at_exit),
    CASE(children_are_refused),
    CASE(children_of_a_busy_process_are_refused),
    CASE(both_work_when_forked_before),
    CASE(new_programs_work),
    CASE(program),
    CASE(cancelled_threads_leave_no_lock),
    CASE(closing_the_library_changes_nothing),
    CASE(a_plugin_is_closed_while_its_code_is_opened),
};

int
main(int argc, char **argv)
{
    return ends_main(cases, sizeof cases / sizeof *cases, argc, argv);
}
