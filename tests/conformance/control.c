/* What a program may ask of heddle while it runs (heddle.h): problems, faults, traces, memory. */
#define HEDDLE_DYNAMIC
#include <heddle.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conf_trace.h"

#define FORKS 40
#define PATIENCE_SECONDS 600

static const struct heddle_api *
load(void)
{
    (void)CU(cuInit);

    const struct heddle_api *h = heddle_load();

    CHECK(h && h->settle, "not found");
    return h;
}

/* Without the setting control=yes: what needs its layers fails, and says why. */
static int
refused(void)
{
    const struct heddle_api *h = load();
    struct heddle_memory memory;
    char text[256];

    CHECK_IS(h->is_running(), 0);
    CHECK_IS(h->chain(text, sizeof text), 4);
    CHECK_IS(h->is_running(), 1);
    CHECK(strcmp(text, "null") == 0, "the chain is %s", text);
    CHECK_IS(strlen(h->reason()), 0);
    CHECK_IS(h->fault_add("cuInit:1:1"), -12);
    CHECK(strstr(h->reason(), "control=yes"), "%s", h->reason());
    CHECK_IS(h->fault_remove(1), -12);
    CHECK_IS(h->fault_count(1), -12);
    CHECK_IS(h->trace_start("x.hed"), -12);
    CHECK_IS(h->trace_stop(), -12);
    CHECK_IS(h->trace_file(text, sizeof text), -12);
    CHECK_IS(h->list_memory(0, &memory, 1), -12);
    CHECK_IS(h->settle(), -12);
    return 0;
}

/* Settings that cannot be used: the chain says why there is none. */
static int
broken(void)
{
    const struct heddle_api *h = load();
    char text[256];

    CHECK(h->chain(text, sizeof text) < 0, "there is a chain");
    CHECK(strstr(h->reason(), "HEDDLE_TRACE_BUFFER"), "%s", h->reason());
    CHECK_IS(h->fault_add("cuInit:1:1"), -13);
    CHECK(strstr(h->reason(), "HEDDLE_TRACE_BUFFER"), "%s", h->reason());
    return 0;
}

/* ---- children -------------------------------------------------------------------------------- */

/* Runs something in a forked child, which must end by itself, and returns its exit status. */
static int
in_child(int (*run)(const struct heddle_api *h), const struct heddle_api *h)
{
    int status = -1;
    const pid_t child = fork();

    if (child == 0) {
        (void)alarm(PATIENCE_SECONDS);
        _exit(run(h));
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child");
    return status;
}

static int
ask_in_child(const struct heddle_api *h)
{
    char text[4096];

    (void)h->problem(0, text, sizeof text);
    return h->trace_file(text, sizeof text) == 0 ? 0 : 1;
}

static int
has_no_chain(const struct heddle_api *h)
{
    CHECK_IS(h->fault_add("cuInit:1:1"), -13);
    CHECK(strstr(h->reason(), "forked from one that had initialised CUDA"), "%s", h->reason());
    return 0;
}

static _Atomic int has_enough;

static void *
ask_all_the_time(void *p)
{
    const struct heddle_api *h = p;
    char text[4096];

    while (!has_enough) {
        (void)h->problem(0, text, sizeof text);
        (void)h->trace_file(text, sizeof text);
    }
    return NULL;
}

/* A fork while other threads ask, then one of a process that has initialised CUDA. */
static int
forked(void)
{
    const struct heddle_api *h = load();
    pthread_t threads[2];
    char text[64];

    CHECK_IS(h->chain(text, sizeof text), 22);
    for (int i = 0; i < 2; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, ask_all_the_time, (void *)(uintptr_t)h), 0);
    for (int i = 0; i < FORKS; i++)
        CHECK_IS(in_child(ask_in_child, h), 0);
    has_enough = 1;
    for (int i = 0; i < 2; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
    CHECK_IS(in_child(has_no_chain, h), 0);
    return 0;
}

static void
check_faults(const struct heddle_api *h)
{
    struct heddle_counters c = {.size = sizeof c};
    CUdeviceptr p;
    const int rules = h->fault_add("cuMemAlloc:2-3:CUDA_ERROR_OUT_OF_MEMORY");

    CHECK(rules > 0, "%s", h->reason());
    CHECK_IS(CU(cuMemAlloc_v2)(&p, 64), CUDA_SUCCESS);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, 64), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_IS(h->fault_count(rules), 1);
    CHECK_IS(h->fault_remove(rules), 0);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, 64), CUDA_SUCCESS);
    CHECK(h->fault_count(rules) < 0 && strstr(h->reason(), "any more"), "%s", h->reason());
    CHECK(h->fault_add("cuNothing:1:1") < 0 && strstr(h->reason(), "no call 'cuNothing'"), "%s",
          h->reason());
    CHECK(h->fault_add(NULL) < 0, "no rules");
    CHECK_IS(h->read_counters(&c), 0);
    CHECK_IS(c.faults_injected, 1);
}

static void
check_memory(const struct heddle_api *h)
{
    struct heddle_counters before = {.size = sizeof before};
    struct heddle_counters c = {.size = sizeof c};
    struct heddle_memory items[2];
    CUdeviceptr p = 0;

    CHECK_IS(h->read_counters(&before), 0);
    CHECK_IS(CU(cuMemAlloc_v2)(&p, 4096), CUDA_SUCCESS);
    CHECK_IS(h->list_memory(before.allocations, items, 2), 1);
    CHECK_IS(items[0].address, p);
    CHECK_IS(items[0].bytes, 4096);
    CHECK(strcmp(items[0].library, "again") == 0, "allocated by %s", items[0].library);
    CHECK_IS(h->read_counters(&c), 0);
    CHECK_IS(c.memory_bytes, before.memory_bytes + 4096);
    CHECK_IS(c.live_allocations, before.live_allocations + 1);
    CHECK_IS(CU(cuMemFree_v2)(p), CUDA_SUCCESS);
    CHECK_IS(h->list_memory(before.allocations, items, 2), 0);
    CHECK(h->list_memory(0, NULL, 1) < 0, "no room");
    CHECK(h->list_memory(0, items, -1) < 0, "less than no room");
    CHECK_IS(h->settle(), 0);
}

static void
check_trace(const struct heddle_api *h)
{
    char path[4096];
    char text[4096];
    int n;

    conf_path(path, sizeof path, "control.hed");
    (void)remove(path);
    CHECK_IS(h->trace_file(text, sizeof text), 0);
    CHECK_IS(strlen(text), 0);
    CHECK(h->trace_stop() < 0 && strcmp(h->reason(), "no trace is being written") == 0, "%s",
          h->reason());
    CHECK(h->trace_start("") < 0, "a trace without a name");
    for (int i = 0; i < 3; i++) {
        CHECK_IS(CU(cuDriverGetVersion)(&n), CUDA_SUCCESS);
        CHECK_IS(h->trace_start(path), 0);
        CHECK(h->trace_start(path) < 0 && strstr(h->reason(), "already"), "%s", h->reason());
        CHECK_IS(h->trace_file(text, sizeof text), 0);
        CHECK(strcmp(text, path) == 0, "%s", text);
        CHECK(h->trace_file(text, 4) < 0, "four bytes are enough");
        CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
        CHECK_IS(h->mark("inside"), 0);
        CHECK_IS(h->trace_stop(), 0);

        struct hed_trace *t = conf_trace_open(path);

        CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuInit"), 1);
        CHECK_IS(conf_trace_count(t, HED_TRACE_CALL, "cuDriverGetVersion"), 0);
        CHECK_IS(conf_trace_count(t, HED_TRACE_MARK, "inside"), 1);
        CHECK(hed_trace_state(t)->ended, "the trace is not complete");
        hed_trace_close(t);
    }
}

static int
controlled(void)
{
    const struct heddle_api *h = load();
    char text[64];

    CHECK_IS(h->chain(text, sizeof text), 22);
    CHECK(strcmp(text, "trace>fault>watch>null") == 0, "the chain is %s", text);
    CHECK_IS(h->chain(text, 6), 22);
    CHECK(strcmp(text, "trace") == 0, "cut off: %s", text);
    CHECK(h->chain(NULL, 8) < 0 && h->chain(text, 0) < 0, "no room");
    CHECK_IS(CU(cuInit)(0), CUDA_SUCCESS);
    CHECK_IS(h->problem(0, text, sizeof text), -1);
    CHECK_IS(h->problem(0, NULL, 0), -1);
    check_faults(h);
    check_memory(h);
    check_trace(h);
    return 0;
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
        const char *variable, *value;
    } parts[] = {
        {"refused", refused, "HEDDLE_CONTROL", NULL},
        {"broken", broken, "HEDDLE_TRACE_BUFFER", "1"},
        {"controlled", controlled, "HEDDLE_CONTROL", "yes"},
        {"forked", forked, "HEDDLE_CONTROL", "yes"},
    };

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *const env[] = {parts[i].variable, parts[i].value, NULL};
        char text[4096];

        if (argc > 1 && strcmp(argv[1], parts[i].name) == 0)
            return parts[i].run();
        if (argc > 1)
            continue;

        const int status = conf_again(parts[i].name, text, sizeof text, env);

        CHECK(status == 0, "%s: %d: %s", parts[i].name, status, text);
    }
    return 0;
}
