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
 * them at any time. Those that concern the trace start heddle, as a first CUDA call would; so does
 * everything from heddle_chain() on.
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
    uint64_t problems;          /* see heddle_problem() */
    uint64_t refusals;          /* launches and calls that heddle cannot do, as opposed to CUDA */

    /* Only with the setting control=yes, otherwise 0. Memory is what the program asked for and has
     * not freed: plain, pitched and managed memory, arrays, pools, and handles of cuMemCreate. What
     * a graph allocates does not count, nor does memory of the host, but for pools there. */
    uint64_t launches;         /* of kernels and graphs, as far as they were accepted */
    uint64_t context_errors;   /* contexts that an error has made useless, such as a bad address */
    uint64_t allocations;      /* of device memory so far: the last one's serial */
    uint64_t live_allocations; /* of them, not freed yet */
    uint64_t memory_bytes;     /* the sum of their sizes */
    uint64_t memory_peak;      /* the largest that it was */

    /* Only where the CPU GPU is in this process, otherwise 0. */
    uint64_t grids_interpreted; /* began in the interpreter */
    uint64_t grids_compiled;    /* ran compiled code only */
    uint64_t kernels_compiled;  /* for this process */
    uint64_t kernels_cached;    /* compiled before, and found in the cache on disk */
};

/* Device memory that the program has allocated and not freed. */
struct heddle_memory {
    uint64_t serial;  /* allocations of a process are numbered from 1 */
    uint64_t address; /* or the handle */
    uint64_t bytes;
    char library[64]; /* file name of the library that asked for it, CUDA runtime left out; "" */
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

/* Why the calling thread's last call of a function below failed: one line. "" if it did not.
 * heddle_is_running() and heddle_problem() give no reason, and leave it as it is. */
HEDDLE_FUNCTION const char *heddle_reason(void);

/* Has a first call started heddle in this process? Until then the environment is not read. */
HEDDLE_FUNCTION int heddle_is_running(void);

/* Writes the chain of layers, "trace>fault>cpu", and returns its length. If that is not less than
 * size, the text is cut off. Fails if heddle could not be started: then every call of CUDA does. */
HEDDLE_FUNCTION int heddle_chain(char *out, size_t size);

/* What went wrong in this process: something that heddle refused, or an error that has made a
 * context useless. Problems are numbered from 0; counters have how many there were. Writes one line
 * and returns 0; -1 if there is no such problem, or it is too old: the latest 64 are kept. */
HEDDLE_FUNCTION int heddle_problem(uint64_t number, char *out, size_t size);

/* The functions below need layers that are all there if the program was started with the setting
 * control=yes (HEDDLE_CONTROL=yes, heddle run --set control=yes). Without it they fail with -12,
 * but for heddle_fault_*() in a program that was started with faults (heddle run --fault) and
 * heddle_trace_*() in one that was started with a trace (heddle run --trace). If heddle could not
 * be started at all, they fail with -13.
 *
 * Makes calls fail on purpose from now on: rules as for `heddle run --fault`, which count the calls
 * after this one. Returns a positive number, by which they are removed, or how many calls they have
 * made fail is asked. */
HEDDLE_FUNCTION int heddle_fault_add(const char *rules);
HEDDLE_FUNCTION int heddle_fault_remove(int rules);
HEDDLE_FUNCTION int64_t heddle_fault_count(int rules);

/* Begins a trace of this process, and completes it. One at a time. A complete trace that is there
 * is replaced; one that another process is writing is not, nor is any other file. */
HEDDLE_FUNCTION int heddle_trace_start(const char *path);
HEDDLE_FUNCTION int heddle_trace_stop(void);
/* Writes the path of the trace that is being written, "" if there is none. */
HEDDLE_FUNCTION int heddle_trace_file(char *out, size_t size);

/* Writes the device memory that was allocated after the one with that serial, and not freed: the
 * first `room` of it, in the order of the serials. Returns how many were written. */
HEDDLE_FUNCTION int heddle_list_memory(uint64_t after, struct heddle_memory *out, int room);

/* Waits until all work is done: in the devices' primary contexts, and in those that the program has
 * made with cuCtxCreate (the first 64). Returns 0, or the number of the error (CUresult) that one
 * of them has. Not while a stream captures a graph. */
HEDDLE_FUNCTION int heddle_settle(void);

#ifdef HEDDLE_DYNAMIC
#include <dlfcn.h>

/* The functions from `reason` on are NULL if heddle is older than this header. */
struct heddle_api {
    const char *(*version)(void);
    int (*record)(int on);
    int (*set_client)(const char *name);
    int (*mark)(const char *text);
    int (*range_push)(const char *text);
    int (*range_pop)(void);
    int (*read_counters)(struct heddle_counters *counters);
    const char *(*reason)(void);
    int (*is_running)(void);
    int (*chain)(char *out, size_t size);
    int (*problem)(uint64_t number, char *out, size_t size);
    int (*fault_add)(const char *rules);
    int (*fault_remove)(int rules);
    int64_t (*fault_count)(int rules);
    int (*trace_start)(const char *path);
    int (*trace_stop)(void);
    int (*trace_file)(char *out, size_t size);
    int (*list_memory)(uint64_t after, struct heddle_memory *out, int room);
    int (*settle)(void);
};

/* The functions, or NULL when the program does not run under heddle. Call it after the first CUDA
 * call, which is when libcuda.so.1 is loaded; it never loads anything itself. Not thread-safe until
 * it has succeeded once. */
static inline const struct heddle_api *
heddle_load(void)
{
    static struct heddle_api api;
    static const char *const names[] = {
        "heddle_version",      "heddle_record",      "heddle_set_client",    "heddle_mark",
        "heddle_range_push",   "heddle_range_pop",   "heddle_read_counters", "heddle_reason",
        "heddle_is_running",   "heddle_chain",       "heddle_problem",       "heddle_fault_add",
        "heddle_fault_remove", "heddle_fault_count", "heddle_trace_start",   "heddle_trace_stop",
        "heddle_trace_file",   "heddle_list_memory", "heddle_settle",
    };
    const size_t always = 7; /* those that every heddle has */
    void *library = api.version ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void **slot = (void **)&api;
    size_t i;

    if (api.version)
        return &api;
    for (i = sizeof names / sizeof *names; library && i-- > 0;) {
        slot[i] = dlsym(library, names[i]);
        if (!slot[i] && i < always)
            break;
    }
    return api.version ? &api : NULL;
}
#endif

#ifdef __cplusplus
}
#endif
