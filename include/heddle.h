/* heddle's own small API, for programs that know they may run under heddle.
 *
 * There are three ways to use it:
 *
 *   1. Declare the functions weak, and call those that are there. They are there when heddle was
 *      preloaded, as `heddle run` does:
 *
 *          #define HEDDLE_WEAK
 *          #include <heddle.h>
 *          ...
 *          if (heddle_mark)
 *              heddle_mark("epoch 1");
 *
 *   2. Look them up, which also works when heddle was found through LD_LIBRARY_PATH:
 *
 *          #define HEDDLE_DYNAMIC
 *          #include <heddle.h>
 *          ...
 *          const struct heddle_api *h = heddle_load();
 *
 *          if (h)
 *              h->mark("epoch 1");
 *
 *   3. Link with heddle: `pkg-config --cflags --libs heddle`. The program then needs heddle to run.
 *
 * Functions return 0, or a negative number if they cannot do what was asked. Any thread may call
 * them at any time. Those that concern the trace start heddle, as a first CUDA call would.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef HEDDLE_WEAK
#define HEDDLE_FUNCTION __attribute__((weak))
#else
#define HEDDLE_FUNCTION
#endif

/* What happened in this process so far. Set size to sizeof(struct heddle_counters) before the call:
 * a newer heddle fills only what fits, and an older one leaves the rest alone. */
struct heddle_counters {
    size_t size;
    uint64_t unsupported_calls; /* answered with "not supported" */
    uint64_t foreign_pointers;  /* NVIDIA's functions that were handed to the program as they are */
    uint64_t foreign_calls;     /* calls made through those: heddle did not see them */
    uint64_t export_tables;     /* NVIDIA's private tables that were handed out */
    uint64_t trace_records;     /* calls, ranges and marks in the trace */
    uint64_t trace_dropped;     /* records left out because the disk was too slow */
    uint64_t faults_injected;   /* calls that failed on purpose (setting `fault`) */
};

/* heddle's version, "0.3.0". */
HEDDLE_FUNCTION const char *heddle_version(void);

/* Switches recording for the whole process: 1 on, 0 off. Returns what it was. */
HEDDLE_FUNCTION int heddle_record(int on);

/* Names the client that the calling thread works for from now on. Threads of one process can work
 * for different clients: under `heddle run --sched`, each client is scheduled on its own. The name
 * is copied. NULL or "" returns the thread to the process's own client.
 *
 * A name has up to 31 letters, digits, '-' and '.'. A client that is to differ from its process has
 * settings after a colon (heddle-sched(1): prio, share, deadline_us, group), as in
 * "web:prio=high,share=3". They count when the name is used for the first time.
 *
 * Returns a negative number if the name was refused: the log says why, and the thread works for the
 * process. Without --sched, names are not looked at and never refused. */
HEDDLE_FUNCTION int heddle_set_client(const char *name);

/* Puts a mark, or the begin and end of a range, into the trace. Ranges of a thread nest. text is
 * copied; at most 1024 bytes are kept. */
HEDDLE_FUNCTION int heddle_mark(const char *text);
HEDDLE_FUNCTION int heddle_range_push(const char *text);
HEDDLE_FUNCTION int heddle_range_pop(void);

/* Reads the counters. -1: counters is NULL or its size makes no sense. */
HEDDLE_FUNCTION int heddle_read_counters(struct heddle_counters *counters);

#ifdef HEDDLE_DYNAMIC
#include <dlfcn.h>

struct heddle_api {
    const char *(*version)(void);
    int (*record)(int on);
    int (*set_client)(const char *name);
    int (*mark)(const char *text);
    int (*range_push)(const char *text);
    int (*range_pop)(void);
    int (*read_counters)(struct heddle_counters *counters);
};

/* The functions, or NULL when the program does not run under heddle. Call it after the first CUDA
 * call, which is when libcuda.so.1 is loaded; it never loads anything itself. Not thread-safe until
 * it has succeeded once. */
static inline const struct heddle_api *
heddle_load(void)
{
    static struct heddle_api api;
    static const char *const names[] = {
        "heddle_version",    "heddle_record",    "heddle_set_client",    "heddle_mark",
        "heddle_range_push", "heddle_range_pop", "heddle_read_counters",
    };
    void *library = api.version ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void **slot = (void **)&api;
    size_t i;

    if (api.version)
        return &api;
    for (i = sizeof names / sizeof *names; library && i-- > 0;) {
        slot[i] = dlsym(library, names[i]);
        if (!slot[i])
            break;
    }
    return api.version ? &api : NULL;
}
#endif

#ifdef __cplusplus
}
#endif
