/* Shared by the actions of the stress program: a thread's state, checks, kernels.
 *
 * An action makes the objects that it needs, checks the results and leaves nothing behind, so that
 * actions of many threads on the same device can run in any order. devices.c has their table.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/cuda_front.h"

/* What cuda.h has as macros. */
#define HOST_PORTABLE 1u /* CU_MEMHOSTALLOC_PORTABLE */
#define HOST_MAPPED 2u   /* CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTREGISTER_DEVICEMAP */
#define STREAM_LEGACY ((CUstream)1)
#define STREAM_PER_THREAD ((CUstream)2)

#define DEVICES_MAX 64
#define STREAMS 3
#define WORDS_MAX 16384 /* of 4 bytes, in the largest array that actions use */

/* One device and what its threads share. Constant while they run. */
struct device {
    CUdevice device;
    CUcontext primary;
    CUmodule module;
    size_t free_before; /* bytes */
};

struct worker {
    struct device *devices;
    int device_count;
    int device; /* its own */
    int index;  /* among all */
    uint64_t random;
    CUstream streams[STREAMS]; /* non-blocking; of the primary context */
    uint32_t *host;            /* WORDS_MAX */
    uint32_t *pinned;          /* WORDS_MAX */
    pthread_t thread;
    _Atomic(const char *) doing; /* for the watchdog */
    _Atomic uint64_t done;       /* actions */
};

/* Ends the program with a message, because nothing after a failure means anything. */
_Noreturn void stress_fail(const struct worker *w, const char *file, int line, const char *what,
                           long long got, long long expected);

#define MUST(w, call)                                                    \
    do {                                                                 \
        const CUresult r_ = (call);                                      \
                                                                         \
        if (r_ != CUDA_SUCCESS)                                          \
            stress_fail(w, __FILE__, __LINE__, #call, (long long)r_, 0); \
    } while (0)

#define SAME(w, got, expected)                                                          \
    do {                                                                                \
        const long long got_ = (long long)(got);                                        \
        const long long expected_ = (long long)(expected);                              \
                                                                                        \
        if (got_ != expected_)                                                          \
            stress_fail(w, __FILE__, __LINE__, #got " == " #expected, got_, expected_); \
    } while (0)

/* 0 to below n. */
uint32_t stress_random(struct worker *w, uint32_t n);
CUstream stress_stream(struct worker *w);
struct device *stress_device(struct worker *w);

/* Is words[i] == first + i * step for all? */
void stress_check(const struct worker *w, const char *file, int line, const uint32_t *words,
                  uint32_t n, uint32_t first, uint32_t step);
#define CHECK_WORDS(w, words, n, first, step) \
    stress_check(w, __FILE__, __LINE__, words, n, first, step)

/* ---- kernels.c ------------------------------------------------------------------------------- */

extern const char stress_ptx[];

CUfunction stress_function(const struct worker *w, CUmodule m, const char *name);

/* p[i] = first + i */
void stress_fill(const struct worker *w, CUmodule m, CUstream s, CUdeviceptr p, uint32_t n,
                 uint32_t first);
/* p[i] = p[i] * times + plus */
void stress_mix(const struct worker *w, CUmodule m, CUstream s, CUdeviceptr p, uint32_t n,
                uint32_t times, uint32_t plus);

/* ---- the actions ----------------------------------------------------------------------------- */

void act_plain(struct worker *w);
void act_pitched(struct worker *w);
void act_async(struct worker *w);
void act_pool(struct worker *w);
void act_host(struct worker *w);
void act_managed(struct worker *w);
void act_virtual(struct worker *w);
void act_array(struct worker *w);
void act_peer(struct worker *w);

void act_barrier(struct worker *w);
void act_atomics(struct worker *w);
void act_grid_spin(struct worker *w);
void act_shuffle(struct worker *w);
void act_events(struct worker *w);
void act_streams(struct worker *w);
void act_defaults(struct worker *w);
void act_host_function(struct worker *w);

void act_capture(struct worker *w);
void act_graph(struct worker *w);
void act_module(struct worker *w);
void act_library(struct worker *w);
void act_context(struct worker *w);
void act_primary(struct worker *w);
void act_failure(struct worker *w);
void act_thread(struct worker *w);
