/* A program that treats heddle roughly while it is traced: it closes descriptors that it does not
 * know, is cancelled in its first call, makes calls in signal handlers, and forks without libc. The
 * trace is never written into the program's files, and nothing hangs. Each case runs in a child.
 */
#include "conf.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

typedef CUresult (*version_fn)(int *);

static version_fn
driver_version(void)
{
    void *f = dlsym(conf_open(), "cuDriverGetVersion");

    CHECK(f, "no cuDriverGetVersion");
    return (version_fn)f;
}

/* Closes all descriptors that the program does not know; the next file gets a free number. */
static void
closed_descriptors(void)
{
    const version_fn version = driver_version();
    struct stat st;
    int v;

    CHECK_IS(version(&v), CUDA_SUCCESS);
    for (int fd = 3; fd < 2048; fd++)
        close(fd);
    for (int i = 0; i < 1024; i++) /* one of these gets the number that the trace had */
        CHECK(open("mine", O_RDWR | O_CREAT, 0600) >= 0 || i > 500, "cannot open");
    CHECK_IS(version(&v), CUDA_SUCCESS);
    give_a_moment(400); /* longer than the writer's period, so that it has tried to write */
    CHECK_IS(stat("mine", &st), 0);
    CHECK_IS(st.st_size, 0);
}

static void *
victim(void *p)
{
    int v;

    for (;;) {
        (void)((version_fn)p)(&v);
        pthread_testcancel();
    }
    return NULL;
}

static void
cancelled_threads(void)
{
    const version_fn version = driver_version();
    int v;

    for (int i = 0; i < 50; i++) {
        pthread_t t;

        CHECK_IS(pthread_create(&t, NULL, victim, (void *)version), 0);
        pthread_cancel(t);
        pthread_join(t, NULL);
    }
    CHECK_IS(version(&v), CUDA_SUCCESS);
}

static version_fn in_handler;
static volatile sig_atomic_t handled;

static void
on_signal(int s)
{
    int v;

    (void)in_handler(&v);
    handled++;
}

static void
calls_in_signal_handlers(void)
{
    const struct timespec tick = {.tv_nsec = 200000};
    struct itimerspec every = {tick, tick};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    int v;

    in_handler = driver_version();
    CHECK_IS(in_handler(&v), CUDA_SUCCESS);
    signal(SIGALRM, on_signal);
    CHECK_IS(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    CHECK_IS(timer_settime(timer, 0, &every, NULL), 0);
    while (handled < 200)
        CHECK_IS(in_handler(&v), CUDA_SUCCESS);
    CHECK_IS(timer_delete(timer), 0);
}

static void
children_made_behind_our_back(void)
{
    const version_fn version = driver_version();
    int status = 0;
    int v;

    CHECK_IS(version(&v), CUDA_SUCCESS);

    const pid_t child = _Fork();

    if (child == 0)
        exit(0); /* runs the library's destructor, in a process without its threads */
    CHECK_IS(waitpid(child, &status, 0), child);
    CHECK_IS(status, 0);
}

static void
run_case(const char *name, void (*f)(void))
{
    char trace[64];
    int status = 0;

    snprintf(trace, sizeof trace, "%s.hed", name);
    setenv("HEDDLE_TRACE", trace, 1);

    const pid_t child = fork();

    if (child == 0) {
        alarm(0);
        f();
        exit(0);
    }
    /* A hang ends with the test's own time-out. */
    CHECK_IS(waitpid(child, &status, 0), child);
    CHECK(status == 0, "%s ended with %#x", name, status);
}

int
main(void)
{
    const char *scratch = getenv("HED_SCRATCH");

    CHECK(scratch && chdir(scratch) == 0, "no scratch folder");
    run_case("descriptors", closed_descriptors);
    run_case("cancelled", cancelled_threads);
    if (!getenv("HED_SANITIZED")) {
        /* Sanitizers' runtimes are not reentrant in a handler, and need libc's fork. */
        run_case("signals", calls_in_signal_handlers);
        run_case("Fork", children_made_behind_our_back);
    }
    return 0;
}
