/* Grids that kernels launch: dynamic parallelism (ADR 43).
 *
 *   hed_cpu_launch: the grid runs ──> its threads call hed_rt_device_call (device.c)
 *        │                               └──> struct hed_children: what they have launched so far
 *        └── then hed_children_run: the children one by one, each with all that it launches itself,
 *            and the tail launches after them
 *
 * Invariants:
 * 1. Children of a grid run in the order in which they were launched, one at a time, whatever their
 *    streams are. That keeps the order of every stream, and no event needs to be waited for.
 * 2. A child is done when everything that it launched is done, so the next one finds all its work.
 * 3. Nothing of a launch is left when hed_cpu_launch returns: to streams, events and graphs, the
 *    children are a part of the kernel that the program launched.
 * 4. A failure ends all of it: nothing that has not begun begins.
 *
 * Children begin when their parent's grid is done. A thread of their own runs them earlier if the
 * parent waits for them in a loop, or if more of them are pending than the program's limit.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/lock.h"
#include "driver/driver.h"
#include "gen/cuda_abi.h"

struct hed_cpu;
struct hed_grid;
struct hed_launch;
struct hed_ptx_warp;

#define HED_CHILDREN_GIVEN_MAX 65536 /* buffers of a grid without a launch; errors; handles */
/* Launches of a grid, and levels of them, whatever the program's limit is. */
#define HED_CHILDREN_PENDING_MAX 65536
#define HED_CHILDREN_BUCKETS 256

/* Results of device code: the numbers of cudaError_t. */
enum hed_device_result {
    HED_DEVICE_SUCCESS = 0,
    HED_DEVICE_INVALID_VALUE = 1,
    HED_DEVICE_NO_MEMORY = 2,
    HED_DEVICE_INVALID_CONFIGURATION = 9,
    HED_DEVICE_INVALID_DIRECTION = 21,
    HED_DEVICE_TOO_MANY_PENDING = 69,
    HED_DEVICE_INVALID_FUNCTION = 98,
    HED_DEVICE_INVALID_DEVICE = 101,
    HED_DEVICE_UNSUPPORTED_LIMIT = 215,
    HED_DEVICE_INVALID_HANDLE = 400,
    HED_DEVICE_NOT_SUPPORTED = 801,
    HED_DEVICE_UNKNOWN = 999,
};

/* A copy or a fill: rows of bytes. */
struct hed_move {
    uint64_t to, from;
    uint64_t to_pitch, from_pitch; /* bytes from row to row */
    uint64_t width, height;        /* bytes, rows */
    uint32_t value;                /* of a fill */
    bool is_fill;
};

/* A launch, or a parameter buffer that waits for one. */
struct hed_child_grid {
    struct hed_child_grid *next;
    void *buffer; /* that the kernel fills; NULL once it is launched */
    bool is_move; /* params is a struct hed_move */
    uint32_t kernel;
    uint32_t grid[3], block[3];
    uint32_t dynamic_shared;
    uint32_t param_bytes;
    _Alignas(HED_PARAMS_ALIGN) unsigned char params[];
};

struct hed_child_list {
    struct hed_child_grid *first, **last;
    uint32_t count;
};

/* The last error of a thread. */
struct hed_device_error {
    struct hed_device_error *next;
    uint64_t thread; /* its number in the grid */
    uint32_t error;
};

enum hed_device_handle { HED_HANDLE_FREE, HED_HANDLE_STREAM, HED_HANDLE_EVENT };

/* What a grid has launched. All of it is guarded by the lock. */
struct hed_children {
    struct hed_lock lock;
    pthread_cond_t changed; /* the queue or `ended` has */
    struct hed_child_list queue, tails;
    struct hed_child_grid *given[HED_CHILDREN_BUCKETS]; /* buffers, by address */
    uint32_t given_count;
    struct hed_device_error *errors;
    uint32_t error_count;
    uint8_t *handles; /* enum hed_device_handle */
    uint32_t handle_room, handle_next;
    struct hed_grid *grid; /* that runs now; NULL when it has ended */
    bool has_runner;       /* a thread runs children while the grid runs */
    bool ended;            /* the grid has: nothing is added any more */
    pthread_t runner;
    CUresult result; /* of the runner */
    struct hed_why why;
};

/* A launch that runs. */
struct hed_parent {
    struct hed_cpu *cpu;
    const struct hed_launch *launch;
    uint64_t deadline; /* of the launch by the host: it counts for all of its descendants */
    uint32_t depth;    /* 0: launched by the host. A tail launch is at the depth of its parent's
                        * other children, however often one follows from another */
    _Atomic(struct hed_children *) children; /* NULL until its kernel calls the device runtime */
};

/* ---- launch.c -------------------------------------------------------------------------------- */

/* Runs p's grid alone, to its end. */
CUresult hed_cpu_run_grid(struct hed_parent *p, struct hed_why *why);

/* ---- children.c: for launch.c ---------------------------------------------------------------- */

/* The grid's threads have all ended, or hand over to another grid of the same launch. */
void hed_children_grid_ended(const struct hed_parent *p);
/* Runs the children of a launch by the host, unless r is a failure already, and forgets them.
 * Returns the first failure. */
CUresult hed_children_run(struct hed_parent *p, CUresult r, struct hed_why *why);

/* ---- children.c: for device.c, on threads that run the grid ---------------------------------- */

/* How many launches of the grid may be pending, and how deep launches may be nested. */
uint32_t hed_children_limit(const struct hed_parent *p);
/* NULL if there is no memory. */
struct hed_children *hed_children_of(struct hed_parent *p);
/* Takes the child, even on failure. A launch that is over the limit waits until there is room. */
enum hed_device_result hed_children_add(struct hed_ptx_warp *s, struct hed_parent *p,
                                        struct hed_child_grid *child, bool is_tail);
/* The last error of a thread of the grid; 0 if there is none. It is forgotten if `clears`. */
uint32_t hed_children_error(struct hed_children *k, uint64_t thread, bool clears);
/* Returns the error. 0 clears it. If there is no memory for it, it is lost. */
uint32_t hed_children_set_error(struct hed_children *k, uint64_t thread, uint32_t error);
/* A warp has been waiting for a while. If it waits for children of its grid, they run now. */
void hed_children_hurry(void *parent, struct hed_grid *g);
/* device.c: a call of the device runtime. */
uint64_t hed_cpu_device_call(void *parent, struct hed_ptx_warp *s, uint32_t which,
                             const uint64_t *args);

/* move.c: the entry of a kernel that carries out the struct hed_move in its parameters. */
void hed_cpu_move_rows(struct hed_ptx_warp *s);
