/* What the files of the engine share: blocks, warps, workers. Callers see engine.h.
 *
 *   hed_engine_run(job)          the caller works too, and waits until the grid is done
 *     struct hed_grid            one launch: blocks are handed out in order of their index
 *       struct hed_engine_worker   a thread that works on it: the engine's, or the caller
 *         struct hed_block         an open block: shared memory, stacks, barriers
 *           struct hed_engine_warp   a warp of it (kernel/ptx/run/abi.h)
 *
 * There are two ways to run a block. A kernel that never waits runs warp after warp on one
 * stack (direct.c). Otherwise each warp has a stack of its own, and the warps of a block run
 * alternately (grid.c); a worker whose blocks all wait opens further ones, so that blocks can wait
 * for each other.
 *
 * Kernels always run on stacks from the engine's range, never on the thread's own. So after a
 * fault, wherever the kernel was, the launch ends by going back to the thread's stack (fault.c).
 *
 * Invariants:
 * 1. A block and its warps belong to one worker from beginning to end; nothing in them is locked.
 * 2. A worker leaves a grid when no block is left to be handed out and its own have ended; when all
 *    workers have left, the grid is done.
 * 3. A failed grid (failed != 0) hands out no more blocks, and none of its warps continues after
 *    it has yielded.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/lock.h"
#include "gen/cuda_abi.h"
#include "kernel/engine/engine.h"
#include "kernel/engine/fiber.h"
#include "kernel/engine/region.h"
#include "kernel/ptx/run/abi.h"

struct hed_block;
struct hed_engine_worker;

#define HED_BARRIERS 17 /* the sixteen of PTX, and one for a cluster of one block */
#define HED_SHARED_MAX ((size_t)256 << 10) /* bytes of shared memory a block can have */

enum hed_engine_warp_state {
    HED_ENGINE_WARP_READY,   /* in the block's queue, or running */
    HED_ENGINE_WARP_WAITING, /* at a barrier */
    HED_ENGINE_WARP_ENDED,
};

struct hed_engine_warp {
    struct hed_ptx_warp abi; /* first */
    struct hed_block *block;
    struct hed_side side;
    struct hed_engine_warp *next; /* in the queue, or among those that wait at the same barrier */
    enum hed_engine_warp_state state;
    unsigned char *stack; /* lowest byte, including the guard; NULL if it shares one */
    uint32_t threads;     /* at its beginning */
    uint32_t spun;        /* how often it has yielded in a row */

    /* While it waits at a barrier. */
    uint32_t barrier;       /* 1 + id; 0 if it waits at none */
    uint32_t barrier_trues; /* the result */
    uint32_t barrier_count;
};

struct hed_barrier {
    uint32_t expected; /* threads; 0 means all of the block */
    uint32_t arrived;  /* threads */
    uint32_t trues;
    struct hed_engine_warp *waiting; /* the latest first */
};

struct hed_block {
    struct hed_ptx_block abi; /* first */
    struct hed_engine_worker *worker;
    struct hed_grid *grid;
    struct hed_block *next; /* in the worker's list of open or spare blocks */
    uint32_t live;          /* warps that have not ended */
    uint32_t ended_threads;
    uint32_t moved; /* counts what happens besides yielding, for the scheduler */
    struct hed_engine_warp *first, *last; /* the queue of ready warps */
    uint32_t queued;
    struct hed_barrier barriers[HED_BARRIERS];
    struct hed_buf out; /* what its threads printed */
    uint64_t out_index; /* of the block that they belong to; hed_kernel goes on by itself */

    /* Kept for the next block. */
    struct hed_region shared;
    size_t shared_room; /* bytes of it that can be used */
    bool in_window;     /* it is a window, and its beginning can be used */
    struct hed_region stacks;
    size_t stack_size;              /* per warp, including the guard */
    size_t guard;                   /* bytes of it that are inaccessible; 0 if none */
    uint32_t stack_room, warp_room; /* how many there are */
    uint32_t steps;                 /* since other blocks last had a step */
    struct hed_engine_warp *warps;
    struct hed_region frames; /* one per warp; empty if none is needed */
    struct hed_region locals; /* of confined kernels: g->locals of them, one by one; or empty */
    struct hed_buf format;    /* of printf */
    /* What its warps were made for. */
    struct {
        uint32_t ntid[3];
        bool direct, in_baseline;
        size_t frame, local;
        uint32_t locals;
    } made;
};

/* The place where a kernel failed. The signal handler fills it in, so it has plain values only. */
struct hed_fault {
    int signo, code;
    uint64_t address;
    uint64_t pc;
};

struct hed_grid {
    struct hed_ptx_grid abi; /* first */
    const struct hed_job *job;
    struct hed_engine *engine;
    uint32_t threads, warps; /* of a block */
    uint32_t stacks;         /* per block: warps, or 1 if they share one */
    bool direct;             /* warps run one after the other */
    bool shared;             /* with other workers than the caller */
    uint64_t blocks;
    uint64_t chunk;      /* blocks that are handed out at once at most (direct) */
    uint32_t open_most;  /* blocks that a worker may have open */
    uint32_t open_share; /* and may open before its blocks have waited */
    size_t stack_size, guard;
    size_t frame;             /* bytes of a warp's frame, with HED_PTX_CUT */
    size_t local;             /* bytes of a confined warp's local memory */
    uint32_t locals;          /* per block: warps, or 1 if they share it */
    _Atomic uint64_t next;    /* the next block to be handed out */
    _Atomic uint32_t failed;  /* CUresult */
    _Atomic bool handed_over; /* no block begins any more */
    _Alignas(64)
        uint32_t workspace[16]; /* for grid-wide barriers, unless it is in the address sandbox */
    struct hed_output *out;     /* what blocks printed; guarded by out_lock */
    size_t out_bytes;
    uint64_t out_count;
    /* Guarded by the engine's lock. */
    struct hed_grid *next_grid, *previous_grid;
    unsigned users; /* workers in it, without the caller */
    /* Kept from launch to launch; see hed_engine_run. */
    struct hed_why why; /* the reason; written by the thread that set failed */
    struct hed_lock out_lock;
    pthread_cond_t left_cond;
};

struct hed_engine_worker {
    struct hed_engine *engine;
    struct hed_engine_worker *next_idle; /* in engine->idle; guarded by the engine's lock */
    unsigned index;
    pthread_t thread;
    struct hed_grid *grid;           /* that it works on, or NULL */
    struct hed_grid own;             /* of the launch that the worker was taken for */
    bool is_bound;                   /* to its thread, between launches too */
    stack_t before;                  /* with is_bound: the thread's stack for signals */
    struct hed_side side;            /* its own stack, while a kernel runs */
    struct hed_engine_warp *running; /* NULL while no kernel runs; read by the signal handler */
    bool gone;                       /* the warp left by a fault, a trap or an exit */
    struct hed_fault fault;          /* signo is 0 if there was none */
    struct hed_block *open;          /* a ring; open->next takes the next step */
    uint32_t open_count;
    struct hed_block *spare; /* from earlier blocks */
    uint32_t spare_count;
    struct hed_region alternate; /* stack for signals */
    struct hed_region
        given; /* of confined kernels: parameters of the own grid, in the address sandbox */

    /* direct.c */
    struct {
        uint64_t block, end; /* blocks to run */
        uint32_t warp;       /* the next of the block */
        uint32_t rounds;     /* that the block has had, with HED_PTX_CUT */
        struct hed_block *room;
        struct hed_ptx_run run; /* with HED_PTX_BLOCKS */
    } direct;
};

struct hed_engine {
    unsigned threads;
    size_t page;                             /* bytes */
    struct hed_watch *watch;                 /* or NULL */
    _Atomic(struct hed_engine_worker *) hot; /* one more that is idle, taken without the lock */
    struct hed_address_sandbox *sandbox;     /* of confined kernels; or NULL */
    struct hed_regions stacks;               /* never in the address sandbox */
    struct hed_regions *shared;              /* own_shared, or the address sandbox's */
    struct hed_regions own_shared;
    struct hed_lock lock; /* guards what follows */
    pthread_cond_t work;
    struct hed_grid *grids;             /* that have blocks to hand out */
    struct hed_engine_worker **workers; /* threads - 1; started with the first launch */
    unsigned started;
    struct hed_engine_worker *idle; /* for calling threads */
    unsigned worker_count;          /* of all, for their index */
    bool stopping;
    unsigned guards; /* stacks with a guard: each costs the system a mapping or two */
};

static inline struct hed_engine_warp *
hed_engine_warp_of(struct hed_ptx_warp *s)
{
    return (struct hed_engine_warp *)s;
}

/* ---- block.c: open blocks -------------------------------------------------------------------- */

/* A block for the worker's grid; NULL if there is no memory. */
struct hed_block *hed_block_open(struct hed_engine_worker *w, struct hed_grid *g);
/* Makes it block `index` of the grid, with all warps at their beginning. */
void hed_block_begin(struct hed_block *b, uint64_t index);
/* Sets the position of a block in the grid, and nothing else of hed_block_begin. */
void hed_block_place(struct hed_block *b, uint64_t index);
/* The block has ended, or never will: passes on what it printed, and keeps its memory. */
void hed_block_close(struct hed_block *b);
/* Frees spare blocks; at most `keep` stay. */
void hed_block_trim(struct hed_engine_worker *w, uint32_t keep);

/* ---- worker.c -------------------------------------------------------------------------------- */

/* Offers a grid to the threads; withdraws it and waits until no worker is in it. */
void hed_engine_workers_join(struct hed_engine *e, struct hed_grid *g);
void hed_engine_workers_leave(struct hed_engine *e, struct hed_grid *g);
/* A worker for the calling thread, its own if it has one; NULL if there is no memory. */
struct hed_engine_worker *hed_engine_worker_take(struct hed_engine *e);
void hed_engine_worker_give(struct hed_engine_worker *w);
/* The calling thread works on a grid as w. */
void hed_engine_worker_run(struct hed_engine_worker *w, struct hed_grid *g);
void hed_engine_workers_stop(struct hed_engine *e);
/* Interrupts the engine's threads and `caller`: those that are in compiled code of a grid that has
 * failed leave it. */
void hed_engine_interrupt(struct hed_engine *e, pthread_t caller);

/* ---- grid.c, direct.c: a worker's part of a grid --------------------------------------------- */

void hed_grid_work(struct hed_engine_worker *w, struct hed_grid *g);
void hed_direct_work(struct hed_engine_worker *w, struct hed_grid *g);

static inline bool
hed_grid_failed(struct hed_grid *g)
{
    /* Relaxed: a worker that sees it late only does useless work. */
    return atomic_load_explicit(&g->failed, memory_order_relaxed) != 0;
}

/* May no block begin any more? Blocks that others wait for begin nevertheless. */
static inline bool
hed_grid_hands_over(struct hed_grid *g)
{
    const struct hed_job *job = g->job;

    if (!job->hands_over)
        return false;
    /* Relaxed: it only stops the handing out of blocks. */
    if (atomic_load_explicit(&g->handed_over, memory_order_relaxed))
        return true;
    if (!job->hands_over(job->hands_over_arg, atomic_load_explicit(&g->next, memory_order_relaxed)))
        return false;
    atomic_store_explicit(&g->handed_over, true, memory_order_relaxed);
    return true;
}

/* Suspends the warp until hed_engine_warp_ready. */
void hed_engine_warp_wait(struct hed_engine_warp *s);
/* The warp has run to its end. */
_Noreturn void hed_engine_warp_end(struct hed_engine_warp *s);
/* Returns to the worker's scheduler; comes back when the warp runs again. */
void hed_engine_warp_leave(struct hed_engine_warp *s);
/* Returns to the worker's scheduler for good. */
_Noreturn void hed_engine_warp_abandon(struct hed_engine_warp *s);
/* Called by functions in C that compiled code calls: the warp does not continue if its grid has
 * failed. No lock may be held. */
static inline void
hed_engine_warp_look(struct hed_ptx_warp *a)
{
    struct hed_engine_warp *s = hed_engine_warp_of(a);

    if (hed_grid_failed(s->block->grid))
        hed_engine_warp_abandon(s);
}
/* The warp can run: puts it into the queue. */
void hed_engine_warp_ready(struct hed_engine_warp *s);
/* Runs the warp until it leaves. If w->gone is set, it will never come back. */
void hed_engine_warp_run(struct hed_engine_worker *w, struct hed_engine_warp *s);

/* ---- barrier.c: reactions to changes --------------------------------------------------------- */

/* Threads of the block have ended, so barriers may be complete. */
void hed_barrier_ended(struct hed_block *b);
/* No warp of the block can run; true if one can now. */
bool hed_barrier_stuck(struct hed_block *b);

/* ---- fault.c --------------------------------------------------------------------------------- */

/* Takes a stack for the worker's signals. HED_ENOMEM. */
#define HED_FAULT_STACK HED_REGION_LEAST
int hed_fault_init(struct hed_engine_worker *w);
void hed_fault_fini(struct hed_engine_worker *w);

/* The calling thread is the worker until it leaves. */
void hed_fault_enter(struct hed_engine_worker *w, stack_t *before);
void hed_fault_leave(struct hed_engine_worker *w, const stack_t *before);
/* Only the part of hed_fault_enter that the program may have undone from another thread. */
void hed_fault_renew(void);
/* Makes the process take HED_INTERRUPT, by which the threads of a failed grid are interrupted. */
#define HED_INTERRUPT SIGURG /* its default is to be ignored, so one that comes late does no harm */
void hed_fault_take_interrupts(void);
/* Reports the fault that the handler noted as the grid's failure. */
void hed_fault_report(struct hed_engine_worker *w, const struct hed_engine_warp *s);

/* ---- printf.c -------------------------------------------------------------------------------- */

/* Adds what the block printed to the grid; writes all of it to stdout in the order of the blocks.
 */
void hed_output_add(struct hed_block *b);
void hed_output_write(struct hed_grid *g);

/* ---- rt.c ------------------------------------------------------------------------------------ */

/* Backward branches that may wait, between two yields: at first, and for a warp that does nothing
 * else. */
#define HED_FUEL 512
#define HED_FUEL_SPINNING 64
#define HED_SPINS 4 /* yields after which a warp is assumed to do nothing else */

/* together.c: the functions of kernel/ptx/run/group.h, by name; comes before the table of those. */
extern const struct hed_ptx_symbol hed_engine_together[];
/* The thread works as w from now on; returns as what it worked before. */
struct hed_engine_worker *hed_engine_worker_begin(struct hed_engine_worker *w);

/* texture.c: what a descriptor says of elements and images makes sense. */
struct hed_format;
struct hed_surface;
struct hed_texels;
struct hed_texture;
bool hed_format_is_sound(const struct hed_format *f);
bool hed_texels_are_sound(const struct hed_texels *g);
/* The descriptor at an object's address, NULL if there is none. A confined kernel can write where
 * it lies, so it is copied to `own` before it is checked. */
const struct hed_texture *hed_engine_texture_of(const struct hed_ptx_warp *s, uint64_t object,
                                                struct hed_texture *own);

/* rt.c: the address of the descriptor of a texture or surface object. References by name are such
 * addresses already. */
uint64_t hed_engine_object(struct hed_ptx_warp *a, uint64_t object);
