/* The engine: runs grids of kernels, compiled or in the baseline tier, on this machine's cores.
 *
 *   struct hed_job ──> hed_engine_run() ──> CUDA_SUCCESS, or why the grid failed
 *
 * It knows kernels as kernel/ptx/run/abi.h describes them, and neither a driver nor a device: what
 * a kernel asks for that is not the engine's goes to the job's host. engine_parts.h is the inside.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/cuda_abi.h"
#include "kernel/ptx/run/abi.h"

struct hed_engine;
struct hed_grid;
struct hed_heap;
struct hed_numbers;
struct hed_address_sandbox;
struct hed_engine_warp;
struct hed_watch;
struct hed_why;

#define HED_ENGINE_THREADS_MAX 1024
#define HED_BLOCK_THREADS_MAX 1024
#define HED_WAITING_AFTER 32 /* yields in a row after which host->waiting is called */

/* What a launch asks the program for that runs it. A NULL function, or no table at all: kernels
 * cannot do that. Functions are called by the threads that run the grid, by several at once. */
struct hed_engine_host {
    /* A warp of the grid has been waiting for a while, perhaps for something it asked for. */
    void (*waiting)(void *owner, struct hed_grid *g);
    /* A call of the device runtime: see struct hed_ptx_host. */
    uint64_t (*device_call)(void *owner, struct hed_ptx_warp *s, uint32_t which,
                            const uint64_t *args);
    /* Sets a condition of a graph. False: there is no such condition. */
    bool (*set_condition)(void *owner, uint64_t handle, uint32_t value);
    /* The grid fails at an instruction that no tier can run. */
    void (*refused)(void *owner, const char *text, const char *kernel);
};

/* A launch. Everything that it points to lives until hed_engine_run returns. */
struct hed_job {
    hed_ptx_entry entry;
    struct hed_ptx_info info;
    const void *program; /* of the baseline tier, or NULL */
    const void *code;    /* compiled code, in which it can be interrupted; or NULL */
    size_t code_size;    /* bytes */
    uint64_t deadline;   /* a time of hed_now_ns() at which it fails; 0 for none */
    const char *name;    /* of the kernel, for messages */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t dynamic_shared; /* bytes */
    const void *params;
    size_t param_bytes;
    const uint64_t *vars;
    bool cooperative;
    /* The kernel takes the lower 24 bits of an address in shared memory for its offset there, as
     * machine code does: shared memory begins at a multiple of HED_WINDOW. */
    bool in_windows;
    uint64_t id;
    uint64_t begin;                     /* ns; when the launch began; needed if there is a pace */
    uint32_t sm_count;                  /* of the device */
    uint32_t resident;                  /* blocks that a GPU would run at once; 0 if unknown */
    uint32_t clock_khz;                 /* of %clock */
    size_t stack_limit;                 /* bytes per thread, for kernels that recurse */
    size_t printf_limit;                /* bytes */
    size_t heap_limit;                  /* bytes */
    struct hed_heap *heap;              /* of the device; NULL if malloc of kernels always fails */
    const struct hed_numbers *objects;  /* textures and surfaces; or NULL */
    const struct hed_engine_host *host; /* or NULL */
    void *owner;                        /* for the functions of host */
    _Atomic uint32_t *pace; /* ns per block of the kernel's last grid; 0 if unknown; or NULL */

    uint64_t first; /* the block to begin with; those before it have run */
    /* Asked between blocks, on any thread that works on the grid, with the number of those that
     * began: if true, no block begins any more, and *ran tells how many began. Both NULL if the
     * grid runs to its end. */
    bool (*hands_over)(void *arg, uint64_t began);
    void *hands_over_arg;
    uint64_t *ran;
    uint32_t chunk_most; /* blocks that a worker takes at once at most; 0: as many as is good */
};

/* `threads` is the number of threads that work on a grid, including the caller; 0 means one per
 * core. HED_ENOMEM, ... */
int hed_engine_create(unsigned threads, struct hed_engine **out, struct hed_why *why);
/* The same for confined kernels only, whose address sandbox outlives the engine. */
int hed_engine_create_confined(unsigned threads, struct hed_address_sandbox *sandbox,
                               struct hed_engine **out, struct hed_why *why);

/* Launches with a deadline need a watch, which must outlive the engine. */
void hed_engine_set_watch(struct hed_engine *e, struct hed_watch *w);

/* No grid may run. Stops the threads. */
void hed_engine_free(struct hed_engine *e);

/* In the child of a fork, where the threads do not exist. */
void hed_engine_forked(struct hed_engine *e);

/* The calling thread is going to run many grids and is heddle's own: it gets a worker that is ready
 * to run, until hed_engine_thread_end. With `again`, foreign code has run on the thread; nothing
 * happens if it has no worker. */
void hed_engine_thread_begin(struct hed_engine *e, bool again);
void hed_engine_thread_end(struct hed_engine *e);

/* Runs a grid to its end. May be called by any thread, by several at once. Returns CUDA_SUCCESS or
 * the error of the grid. */
CUresult hed_engine_run(struct hed_engine *e, const struct hed_job *job, struct hed_why *why);

/* ---- for functions that kernels call, on threads of the grid --------------------------------- */

struct hed_grid *hed_grid_of(const struct hed_ptx_warp *s);
const struct hed_job *hed_grid_job(const struct hed_grid *g);
bool hed_grid_has_failed(const struct hed_grid *g);
/* The first failure counts; true if this is it. The kernel is added to the text and, if s is given,
 * block and thread. */
bool hed_grid_fail(struct hed_grid *g, CUresult r, const struct hed_engine_warp *s, const char *fmt,
                   ...) __attribute__((format(printf, 4, 5)));
/* Does not return if the grid has failed. No lock may be held. */
void hed_engine_warp_leave_failed(struct hed_ptx_warp *s);

/* ---- for those who load compiled kernels ----------------------------------------------------- */

/* All that an object file may leave undefined, for hed_ptx_load(). */
#define HED_ENGINE_TABLES 5
extern const struct hed_ptx_symbol *const hed_engine_symbols[HED_ENGINE_TABLES];

/* fault.c: a thread that writes to memory which can only be read runs on if `retry` is true for the
 * address. It is called by the handler of signals, on any thread, from now on. */
void hed_fault_set_retry(bool (*retry)(uint64_t address));
