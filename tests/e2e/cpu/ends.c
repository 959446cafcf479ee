/* How processes end, fork and unload the library while the CPU GPU is at work.
 *
 * Every case runs in a process of its own, which must end by itself, in time, with the status that
 * the case expects. `cpu_ends NAME` runs one case.
 */
#include "conformance/conf.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>

#define STATUS 7 /* the status of a case that passes, unlike that of a crash or a failed check */

extern char **environ;

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry fill(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<6>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.u32 %r5, %r2, %r3, %r4;\nmul.wide.u32 %d2, %r5, 4;\nadd.u64 %d3, %d1, %d2;\n"
    "st.global.u32 [%d3], %r1;\nret;\n}\n"
    /* Writes to p[1], and runs until p[0] is written to. */
    ".visible .entry forever(.param .u64 p)\n{\n"
    ".reg .b32 %r<3>; .reg .b64 %d<2>; .reg .pred %q;\n"
    "ld.param.u64 %d1, [p];\nmov.u32 %r2, 1;\nst.volatile.global.u32 [%d1+4], %r2;\n"
    "AGAIN: ld.volatile.global.u32 %r1, [%d1];\nsetp.eq.u32 %q, %r1, 0;\n@%q bra AGAIN;\n"
    "ret;\n}\n";

static CUcontext context;
static CUmodule module;
static CUdeviceptr memory;

static void
start_driver(void)
{
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
    CHECK_IS(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
    CHECK_IS(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
    CHECK_IS(CU(cuModuleLoadData)(&module, ptx), CUDA_SUCCESS);
    CHECK_IS(CU(cuMemAlloc_v2)(&memory, 4096), CUDA_SUCCESS);
    CHECK_IS(CU(cuMemsetD8_v2)(memory, 0, 4096), CUDA_SUCCESS);
}

static void
launch_kernel(const char *name, CUstream s)
{
    uint32_t value = 5;
    CUfunction f;
    void *params[] = {&memory, &value};

    CHECK_IS(CU(cuModuleGetFunction)(&f, module, name), CUDA_SUCCESS);
    CHECK_IS(CU(cuLaunchKernel)(f, 8, 1, 1, 64, 1, 1, 0, s, params, NULL), CUDA_SUCCESS);
}

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

static void
works(void)
{
    uint32_t words[512];

    launch_kernel("fill", NULL);
    CHECK_IS(CU(cuMemcpyDtoH_v2)(words, memory, sizeof words), CUDA_SUCCESS);
    for (int i = 0; i < 512; i++)
        CHECK_IS(words[i], 5);
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

static int
status_of(pid_t child)
{
    int status;

    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    CHECK(WIFEXITED(status), "the child died of %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int
is_refused(void)
{
    CUdeviceptr p;
    CUcontext c;
    int n;

    return CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuMemAlloc_v2)(&p, 16) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuCtxGetCurrent)(&c) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuDeviceGetCount)(&n) == CUDA_ERROR_NOT_INITIALIZED &&
           CU(cuCtxSynchronize)() == CUDA_ERROR_NOT_INITIALIZED;
}

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

/* ---- while a kernel is compiled -------------------------------------------------------------- */

/* Reads the first line of a file of a thread. */
static bool
read_task(const char *task, const char *file, char *line, int size)
{
    char path[320];
    FILE *f;
    bool there;

    snprintf(path, sizeof path, "/proc/self/task/%s/%s", task, file);
    f = fopen(path, "re");
    there = f && fgets(line, size, f);
    if (f)
        fclose(f);
    return there;
}

/* Is there a thread that compiles, and has been at it for some milliseconds? */
static bool
is_compiling(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *e;
    bool found = false;

    while (tasks && !found && (e = readdir(tasks)) != NULL) {
        char name[32], ran[64];

        found =
            read_task(e->d_name, "comm", name, sizeof name) && strcmp(name, "heddle-llvm\n") == 0 &&
            read_task(e->d_name, "schedstat", ran, sizeof ran) && strtoull(ran, NULL, 10) > 5000000;
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* Lines of a kernel that LLVM takes seconds for. Under ThreadSanitizer the end waits for it. */
#if defined(__SANITIZE_THREAD__)
#define LINES 400
#else
#define LINES 4000
#endif

/* Launches that kernel again and again. */
static void *
launches_long_kernel(void *arg)
{
    enum { ROOM = 64 };
    char *text = malloc(LINES * ROOM);
    const double one = 1.5;
    void *params[] = {&memory, (void *)&one};
    size_t n = 0;
    CUmodule m;
    CUfunction f;

    (void)arg;
    n += (size_t)snprintf(text, ROOM * 8,
                          ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry long(.param .u64 p, .param .f64 x)\n{\n"
                          ".reg .f64 %%f<8>; .reg .b64 %%d;\nld.param.u64 %%d, [p];\n");
    for (int i = 0; i < 8; i++)
        n += (size_t)snprintf(text + n, ROOM, "ld.param.f64 %%f%d, [x];\n", i);
    for (int i = 0; i < LINES - 100; i++)
        n += (size_t)snprintf(text + n, ROOM, "fma.rn.f64 %%f%d, %%f%d, %%f%d, %%f%d;\n", i * 5 % 8,
                              i * 3 % 8, (i + 1) % 8, i * 7 % 8);
    (void)snprintf(text + n, ROOM, "st.global.f64 [%%d], %%f1;\nret;\n}\n");
    (void)CU(cuCtxSetCurrent)(context);
    CHECK_IS(CU(cuModuleLoadData)(&m, text), CUDA_SUCCESS);
    CHECK_IS(CU(cuModuleGetFunction)(&f, m, "long"), CUDA_SUCCESS);
    for (CUresult r = CUDA_SUCCESS; r == CUDA_SUCCESS;) {
        r = CU(cuLaunchKernel)(f, 8, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
        if (r == CUDA_SUCCESS)
            r = CU(cuCtxSynchronize)();
    }
    for (;;)
        pause();
    return NULL;
}

static void
start_compiling(void)
{
    const char *codegen = getenv("HEDDLE_CPU_CODEGEN");
    pthread_t thread;

    if (codegen && strcmp(codegen, "baseline") == 0)
        _exit(STATUS); /* nothing is ever compiled */
    start_driver();
    CHECK_IS(pthread_create(&thread, NULL, launches_long_kernel, NULL), 0);
    WAIT_UNTIL(is_compiling());
}

/* Runs after heddle's own exit handlers. */
static void
still_compiles(void)
{
#if !defined(__SANITIZE_THREAD__)
    if (!is_compiling())
        _exit(1);
#endif
}

static void
exit_does_not_wait_for_the_compiler(void)
{
    CHECK_IS(atexit(still_compiles), 0);
    start_compiling();
    exit(STATUS);
}

static void
children_are_refused_while_a_kernel_is_compiled(void)
{
    start_compiling();
    for (int i = 0; i < 4; i++) {
        const pid_t child = fork();

        CHECK(child >= 0, "no child");
        if (child == 0)
            exit(is_refused() ? 0 : 1);
        CHECK_IS(status_of(child), 0);
    }
    exit(STATUS);
}

/* Is LLVM mapped? Its own initialisation begins some milliseconds later. */
static bool
is_compiler_mapped(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;

    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "libLLVM") != NULL;
    if (maps)
        fclose(maps);
    return found;
}

/* LLVM's library must not be taken down by exit() while another thread still sets it up. That takes
 * some tens of milliseconds: exits at several moments of it. */
static void
exit_while_the_compiler_is_loaded(void)
{
    CHECK_IS(setenv("HEDDLE_CACHE_SIZE", "0", 1), 0); /* so that something is compiled */
    for (int ms = 0; ms < 40; ms += 2) {
        const pid_t child = fork();

        CHECK(child >= 0, "no child");
        if (child) {
            CHECK_IS(status_of(child), STATUS);
            continue;
        }
        start_driver();
        for (int i = 0; i < 4000 && !is_compiler_mapped(); i++)
            works();
        usleep((useconds_t)ms * 1000);
        exit(STATUS);
    }
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

/* ---- cases ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
/* clang-format off */
#define CASE(name) {#name, name}
    /* clang-format on */
    CASE(exit_while_a_kernel_runs),
    CASE(immediate_exit_while_a_kernel_runs),
    CASE(quick_exit_while_a_kernel_runs),
    CASE(thread_exits_while_others_wait),
    CASE(exit_while_threads_work),
    CASE(main_thread_ends_first),
    CASE(calls_are_answered_at_exit),
    CASE(exit_while_the_compiler_is_loaded),
    CASE(exit_does_not_wait_for_the_compiler),
    CASE(children_are_refused_while_a_kernel_is_compiled),
    CASE(children_are_refused),
    CASE(children_of_a_busy_process_are_refused),
    CASE(both_work_when_forked_before),
    CASE(new_programs_work),
    CASE(program),
    CASE(cancelled_threads_leave_no_lock),
    CASE(closing_the_library_changes_nothing),
};

static int
run_case(const char *name)
{
    const pid_t child = fork();
    int status;

    CHECK(child >= 0, "no child");
    if (child == 0) {
        alarm(PATIENCE_S);
        execl("/proc/self/exe", "cpu_ends", name, (char *)NULL);
        _exit(126);
    }
    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS)
        return 0;
    fprintf(stderr, "%s: %s %d\n", name, WIFEXITED(status) ? "status" : "signal",
            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    return 1;
}

int
main(int argc, char **argv)
{
    int failures = 0;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) == 0)
            cases[i].run();
        if (argc == 1)
            failures += run_case(cases[i].name);
    }
    return argc > 1 ? 1 : failures > 0;
}
