/* How a client of a server may live and end: forks, threads, exits. See lives.py.
 *
 *     remote_lives WHAT
 *
 * Each of them begins in the same way. If all is as on CUDA, it prints "ok" and exits with 0.
 */
#include "conformance/conf.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#define SHORT_THREADS 1000
#define OK(call) CHECK_IS(call, CUDA_SUCCESS)

static CUcontext ctx;
static CUdeviceptr p;

static void
begin_client(void)
{
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&ctx, 0));
    OK(CU(cuCtxSetCurrent)(ctx));
    OK(CU(cuMemAlloc_v2)(&p, 4096));
}

static void
use_memory(uint32_t value)
{
    uint32_t got[4] = {0};

    OK(CU(cuMemsetD32_v2)(p, value, 1024));
    OK(CU(cuMemcpyDtoH_v2)(got, p, sizeof got));
    CHECK_IS(got[0], value);
    CHECK_IS(got[3], value);
}

static void
say_ok(void)
{
    printf("ok\n");
    (void)fflush(stdout);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static void
wait_for_child(pid_t child)
{
    int status;

    CHECK(child > 0, "no child");
    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child: %x", (unsigned)status);
}

/* What CUDA returns in the child of a process that has used it. */
static void
in_child(void)
{
    CUdeviceptr q;
    uint32_t word;
    int n;

    CHECK_IS(CU(cuInit)(0), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_IS(CU(cuDeviceGetCount)(&n), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_IS(CU(cuMemAlloc_v2)(&q, 4096), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_IS(CU(cuMemcpyDtoH_v2)(&word, p, 4), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_IS(CU(cuCtxSynchronize)(), CUDA_ERROR_NOT_INITIALIZED);
}

static void
lives_fork(void)
{
    begin_client();
    use_memory(1);
    for (int i = 0; i < 3; i++) {
        const pid_t child = fork();

        if (child == 0) {
            in_child();
            if (i == 0)
                _exit(0);
            if (i == 1)
                exit(0);
            execl("/proc/self/exe", "lives", "plain", (char *)NULL);
            _exit(9);
        }
        use_memory((uint32_t)i + 10); /* while the child lives */
        wait_for_child(child);
        use_memory((uint32_t)i + 2);
    }
}

/* A child that outlives its parent, and whose process id is printed. The session belongs to the
 * parent, and ends with it. */
static void
lives_orphan(void)
{
    begin_client();
    use_memory(1);

    const pid_t child = fork();

    if (child == 0) {
        close(STDOUT_FILENO); /* the reader must not wait for this process */
        close(STDERR_FILENO);
        close(STDIN_FILENO);
        for (;;)
            pause();
    }
    printf("%d\n", (int)child);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *
short_thread(void *arg)
{
    uint32_t word = 0;

    OK(CU(cuCtxSetCurrent)(ctx));
    OK(CU(cuMemsetD32Async)(p, (uint32_t)(uintptr_t)arg, 4, NULL));
    OK(CU(cuMemcpyDtoH_v2)(&word, p, 4));
    CHECK_IS(word, (uintptr_t)arg);
    return NULL;
}

static void
lives_threads(void)
{
    pthread_t t;

    begin_client();
    for (uintptr_t i = 0; i < SHORT_THREADS; i++) {
        CHECK_IS(pthread_create(&t, NULL, short_thread, (void *)i), 0);
        CHECK_IS(pthread_join(t, NULL), 0);
    }
    use_memory(5);
    say_ok();
    (void)getchar(); /* the channels are counted meanwhile */
}

static void *
after_main(void *arg)
{
    const pthread_t *main_thread = arg;

    CHECK_IS(pthread_join(*main_thread, NULL), 0);
    OK(CU(cuCtxSetCurrent)(ctx));
    use_memory(6);
    say_ok();
    exit(0);
}

static void
lives_main_ends(void)
{
    static pthread_t me;
    pthread_t t;

    me = pthread_self();
    begin_client();
    use_memory(1);
    CHECK_IS(pthread_create(&t, NULL, after_main, &me), 0);
    pthread_exit(NULL);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void *
busy(void *arg)
{
    (void)arg;
    if (CU(cuCtxSetCurrent)(ctx) != CUDA_SUCCESS)
        return NULL;
    for (;;) {
        (void)CU(cuMemsetD8Async)(p, 1, 4096, NULL);
        (void)CU(cuCtxSynchronize)();
    }
}

/* exit() while other threads make calls and work is in flight. */
static void
lives_exit_busy(void)
{
    pthread_t t;

    begin_client();
    for (int i = 0; i < 3; i++)
        CHECK_IS(pthread_create(&t, NULL, busy, NULL), 0);
    for (int i = 0; i < 1000; i++)
        OK(CU(cuMemsetD8Async)(p, 1, 4096, NULL));
}

static void
nothing(void *arg)
{
    (void)arg;
    give_a_moment(300);
}

/* exit() with pending work that has not even begun. */
static void
lives_exit_pending(void)
{
    CUstream s;

    begin_client();
    OK(CU(cuStreamCreate)(&s, 0));
    OK(CU(cuLaunchHostFunc)(s, nothing, NULL));
    for (int i = 0; i < 100; i++)
        OK(CU(cuMemsetD8Async)(p, 1, 4096, s));
}

static void
lives_reset(void)
{
    for (int i = 0; i < 3; i++) {
        begin_client();
        use_memory((uint32_t)i);
        OK(CU(cuDevicePrimaryCtxReset_v2)(0));
        CHECK(CU(cuMemsetD8_v2)(p, 0, 16) != CUDA_SUCCESS, "memory is there after a reset");
        OK(CU(cuDevicePrimaryCtxRelease_v2)(0));
    }
    begin_client();
    use_memory(9);
}

static void
lives_unload(void)
{
    void *library = conf_open();

    begin_client();
    use_memory(1);
    CHECK_IS(dlclose(library), 0);
    CHECK_IS(dlclose(conf_open()), 0);
    use_memory(2);
}

static void
lives_plain(void)
{
    begin_client();
    use_memory(3);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*live)(void);
    } lives[] = {
        {"fork", lives_fork},           {"orphan", lives_orphan},
        {"threads", lives_threads},     {"main_ends", lives_main_ends},
        {"exit_busy", lives_exit_busy}, {"exit_pending", lives_exit_pending},
        {"reset", lives_reset},         {"unload", lives_unload},
        {"plain", lives_plain},
    };

    for (size_t i = 0; argc > 1 && i < sizeof lives / sizeof *lives; i++) {
        if (strcmp(argv[1], lives[i].name) != 0)
            continue;
        lives[i].live();
        if (strcmp(argv[1], "threads") != 0)
            say_ok();
        return 0;
    }
    return 2;
}
