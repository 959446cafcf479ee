/* How processes end and fork while the compiler is loaded or kernels are compiled. */
#include "e2e/cpu/ends.h"

#include <dirent.h>
#include <pthread.h>

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
    pthread_t thread;

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

static void
launch_until_the_end(void)
{
    uint32_t value = 5;
    void *params[] = {&memory, &value};
    CUfunction f;

    CHECK_IS(CU(cuModuleGetFunction)(&f, module, "fill"), CUDA_SUCCESS);
    while (CU(cuLaunchKernel)(f, 8, 1, 1, 64, 1, 1, 0, NULL, params, NULL) == CUDA_SUCCESS &&
           CU(cuCtxSynchronize)() == CUDA_SUCCESS)
        continue;
    for (;;)
        pause();
}

static void *
exits_when_the_compiler_is_mapped(void *arg)
{
    WAIT_UNTIL(is_compiler_mapped());
    usleep((useconds_t)(uintptr_t)arg * 1000);
    exit(STATUS);
}

/* The same by a thread that has made no call. */
static void
any_thread_exits_while_the_compiler_is_loaded(void)
{
    CHECK_IS(setenv("HEDDLE_CACHE_SIZE", "0", 1), 0); /* so that something is compiled */
    for (uintptr_t ms = 0; ms < 40; ms += 2) {
        const pid_t child = fork();
        pthread_t thread;

        CHECK(child >= 0, "no child");
        if (child) {
            CHECK_IS(status_of(child), STATUS);
            continue;
        }
        CHECK_IS(pthread_create(&thread, NULL, exits_when_the_compiler_is_mapped, (void *)ms), 0);
        start_driver();
        launch_until_the_end();
    }
    exit(STATUS);
}

static const struct ends_case cases[] = {
    CASE(exit_while_the_compiler_is_loaded),
    CASE(any_thread_exits_while_the_compiler_is_loaded),
    CASE(exit_does_not_wait_for_the_compiler),
    CASE(children_are_refused_while_a_kernel_is_compiled),
};

int
main(int argc, char **argv)
{
    return ends_main(cases, sizeof cases / sizeof *cases, argc, argv);
}
