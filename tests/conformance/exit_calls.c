/* Calls made while the process ends, before and after heddle's own exit: all are in the trace. */
#include "conf_trace.h"

static int
threads_of_this_process(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static void
from_atexit(void)
{
    int n;

    (void)CU(cuDriverGetVersion)(&n);
}

/* The writer's thread has ended and the trace is closed when this call is made. */
static void
from_late_destructor(void)
{
    int n;
    CUcontext context;

    (void)CU(cuDeviceGetCount)(&n);
    if (threads_of_this_process() == 1)
        (void)CU(cuCtxGetCurrent)(&context);
}

static int
call_at_exit(void)
{
    const char *late = getenv("HED_LATE");
    void (**call)(void);
    void *library;

    atexit(from_atexit);
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
    library = dlopen(late ? late : "", RTLD_NOW);
    CHECK(library, "%s", dlerror());
    call = dlsym(library, "late_call");
    CHECK(call, "%s", dlerror());
    *call = from_late_destructor;
    return 0;
}

int
main(int argc, char **argv)
{
    char path[4096];
    char text[4096];
    const char *const env[] = {"HEDDLE_TRACE", conf_path(path, sizeof path, "t.hed"), NULL};

    if (argc > 1)
        return call_at_exit();

    const int status = conf_again("run", text, sizeof text, env);

    CHECK(status == 0, "%s", text);
    CHECK_IS(conf_trace_files(NULL, 0), 1);

    struct hed_trace *t = conf_trace_open(path);
    const unsigned late = conf_trace_count(t, HED_TRACE_CALL, "cuCtxGetCurrent");

    CHECK(hed_trace_state(t)->ended, "no end");
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuInit"), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuDriverGetVersion"), 1);
    CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuDeviceGetCount"), 1);
    CHECK_IS(hed_trace_state(t)->end_records, 3 + late);
    hed_trace_close(t);
    if (!late && !getenv("HED_SANITIZED")) {
        printf("skipped: nothing runs after heddle's end here\n");
        return 77;
    }
    return 0;
}
