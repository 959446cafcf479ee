/* Fork: a child of a process that has not initialised CUDA may use it; a child of one that has may
 * not, as with NVIDIA's driver; the parent is not affected. Each process has a trace of its own.
 */
#include "conf_trace.h"

#include "harness/settle.h"

/* Runs f in a child, and returns its result. */
static int
in_child(int (*f)(void))
{
    int status;
    const pid_t child = fork();

    CHECK(child >= 0, "no child");
    if (child == 0)
        exit(f()); /* not _exit, so that exit handlers run */
    CHECK(waitpid(child, &status, 0) == child, "the child is gone");
    CHECK(WIFEXITED(status), "the child died of %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

static int
use_cuda(void)
{
    int count = 0;

    return CU(cuInit)(0) || CU(cuDeviceGetCount)(&count) || count < 1;
}

static int
is_refused(void)
{
    int count = 0;

    return CU(cuInit)(0) != CUDA_ERROR_NOT_INITIALIZED ||
           CU(cuDeviceGetCount)(&count) != CUDA_ERROR_NOT_INITIALIZED;
}

static int
grandchild_is_refused(void)
{
    return in_child(is_refused);
}

static int
names_still_work(void)
{
    const char *name = NULL;

    return CU(cuGetErrorName)(CUDA_ERROR_NOT_INITIALIZED, &name) ||
           strcmp(name, "CUDA_ERROR_NOT_INITIALIZED") != 0;
}

static void
check_traces(void)
{
    char path[4096];
    unsigned calls = 0;
    DIR *d = opendir(getenv("HED_SCRATCH"));

    CHECK(d, "no scratch folder");
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        if (!strstr(e->d_name, ".hed"))
            continue;

        struct hed_trace *t = conf_trace_open(conf_path(path, sizeof path, e->d_name));

        CHECK(hed_trace_state(t)->ended || hed_trace_info_u64(t, "pid") == (uint64_t)getpid(),
              "%s has no end", path);
        calls += conf_trace_count(t, HED_TRACE_CALL, "cuInit");
        hed_trace_close(t);
    }
    closedir(d);
    /* The child before, the child of an open chain, and this process, whose records may not have
     * been written yet. */
    CHECK(calls == 2 || calls == 3, "%u calls of cuInit", calls);
    CHECK_IS(conf_trace_files(NULL, 0), 3);
}

int
main(void)
{
    int count = 0;
    int version = 0;
    char path[4096];

    setenv("HEDDLE_TRACE", conf_path(path, sizeof path, "t.hed"), 1);
    CHECK_IS(in_child(use_cuda), 0); /* this process has made no call yet */
    CHECK_IS(CU(cuDriverGetVersion)(&version), CUDA_SUCCESS);
    wait_for_writer_thread();
    CHECK_IS(in_child(use_cuda), 0); /* there is a chain, but CUDA is not initialised */
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
    CHECK_IS(in_child(is_refused), 0);
    CHECK_IS(in_child(grandchild_is_refused), 0);
    CHECK_IS(in_child(names_still_work), 0);
    CHECK_IS(CU(cuDeviceGetCount)(&count), CUDA_SUCCESS);
    CHECK(count >= 1, "%d devices", count);
    check_traces();
    return 0;
}
