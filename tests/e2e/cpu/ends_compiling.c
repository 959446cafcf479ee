/* How processes end and fork while compilers start or kernels are compiled. The compilers of a
 * process are processes of their own, which have its number in their command line. */
#include "e2e/cpu/ends.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>

/* Reads the beginning of a file of a process; NULs become spaces. */
static bool
read_process(const char *process, const char *file, char *text, size_t size)
{
    char path[320];
    int fd;
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%s/%s", process, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return false;
    text[n] = 0;
    for (ssize_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' ';
    return true;
}

/* How many compilers of this process have run for at least so many nanoseconds? */
static int
count_compilers(pid_t program, unsigned long long least)
{
    DIR *all = opendir("/proc");
    char own[32];
    const struct dirent *e;
    int count = 0;

    snprintf(own, sizeof own, " %d ", (int)program);
    while (all && (e = readdir(all)) != NULL) {
        char line[128], ran[64];

        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
            read_process(e->d_name, "cmdline", line, sizeof line) &&
            strncmp(line, "heddle-compiler ", 16) == 0 && strstr(line + 16, own) &&
            read_process(e->d_name, "schedstat", ran, sizeof ran))
            count += strtoull(ran, NULL, 10) >= least;
    }
    if (all)
        closedir(all);
    return count;
}

/* Is a kernel being compiled? There is a fork server, which hardly runs, and a compiler. */
static bool
is_compiling(void)
{
    return count_compilers(getpid(), 0) >= 2;
}

/* Lines of a kernel that LLVM takes seconds for. */
#define LINES 4000

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

/* Is LLVM mapped? Libraries of the program may have its names. */
static bool
is_llvm_here(void)
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

static void
compilers_end_with_their_program(void)
{
    const pid_t child = fork();

    CHECK(child >= 0, "no child");
    if (child == 0) {
        start_compiling();
        CHECK(!is_llvm_here(), "LLVM is in the program");
        exit(STATUS);
    }
    CHECK_IS(status_of(child), STATUS);
    WAIT_UNTIL(count_compilers(child, 0) == 0);
    exit(STATUS);
}

/* The same if it cannot do anything about it. */
static void
compilers_end_with_a_program_that_is_killed(void)
{
    const pid_t child = fork();
    int status;

    CHECK(child >= 0, "no child");
    if (child == 0) {
        start_compiling();
        kill(getpid(), SIGKILL);
    }
    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the child has status %d", status);
    WAIT_UNTIL(count_compilers(child, 0) == 0);
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

/* Exits at several moments while the first compiler starts. */
static void
exit_while_the_compiler_starts(void)
{
    CHECK_IS(setenv("HEDDLE_CACHE_SIZE", "0", 1), 0); /* so that something is compiled */
    for (int ms = 0; ms < 40; ms += 8) {
        const pid_t child = fork();

        CHECK(child >= 0, "no child");
        if (child) {
            CHECK_IS(status_of(child), STATUS);
            continue;
        }
        start_driver();
        for (int i = 0; i < 4000 && !count_compilers(getpid(), 0); i++)
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
exits_when_the_compiler_starts(void *arg)
{
    WAIT_UNTIL(count_compilers(getpid(), 0) > 0);
    usleep((useconds_t)(uintptr_t)arg * 1000);
    exit(STATUS);
}

/* The same by a thread that has made no call. */
static void
any_thread_exits_while_the_compiler_starts(void)
{
    CHECK_IS(setenv("HEDDLE_CACHE_SIZE", "0", 1), 0); /* so that something is compiled */
    for (uintptr_t ms = 0; ms < 40; ms += 8) {
        const pid_t child = fork();
        pthread_t thread;

        CHECK(child >= 0, "no child");
        if (child) {
            CHECK_IS(status_of(child), STATUS);
            continue;
        }
        CHECK_IS(pthread_create(&thread, NULL, exits_when_the_compiler_starts, (void *)ms), 0);
        start_driver();
        launch_until_the_end();
    }
    exit(STATUS);
}

static const struct ends_case cases[] = {
    CASE(exit_while_the_compiler_starts),
    CASE(any_thread_exits_while_the_compiler_starts),
    CASE(compilers_end_with_their_program),
    CASE(compilers_end_with_a_program_that_is_killed),
    CASE(children_are_refused_while_a_kernel_is_compiled),
};

int
main(int argc, char **argv)
{
    return ends_main(cases, sizeof cases / sizeof *cases, argc, argv);
}
