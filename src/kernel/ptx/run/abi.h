/* The contract between compiled kernels and the runner (backends/cpu): the state that a kernel
 * reads, the functions that it calls, and the contents of its object file.
 *
 * All shapes of code have the same interface: an object file with `hed_kernel_info` and a function
 * `hed_kernel` that runs one warp of a block to its end, or, with HED_PTX_BLOCKS, whole blocks. The
 * runner makes a grid, a block and its warps, and calls hed_kernel(warp) or hed_kernel(run).
 *
 * Generic, global, const and local addresses are host addresses. A shared address is an offset into
 * the block's shared memory; adding block->shared makes it generic. The parameters of a kernel are
 * at grid->params. The module's variables are at grid->vars[index]: first the global and const
 * variables outside of functions, in the order of the text, then those that functions declare, in
 * the order of the functions. The address of a function is HED_PTX_FUNC_STRIDE * (1 + its position
 * in module->funcs).
 *
 * The offsets of fields are compiled into cached code: raise HED_PTX_ABI with every change of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HED_PTX_ABI 10
#define HED_PTX_LANES 32
#define HED_PTX_FUNC_STRIDE 16

/* A confined kernel (HED_PTX_CONFINED) reaches one range of addresses only, its address sandbox,
 * which begins at a multiple of its size. All that it may touch lies there: memory of devices,
 * parameters, shared and local memory. An address that it computes counts by its lower bits, within
 * the address sandbox. Nothing is mapped in the margins on both sides, so a known distance may be
 * added after that.
 */
#define HED_PTX_SANDBOX_BITS 45
#define HED_PTX_SANDBOX_SIZE (UINT64_C(1) << HED_PTX_SANDBOX_BITS)
#define HED_PTX_SANDBOX_MARGIN (UINT64_C(1) << 40)  /* bytes */
#define HED_PTX_SANDBOX_REACH (INT64_C(1) << 31)    /* bytes that may be added or subtracted */
#define HED_PTX_SANDBOX_LENGTH UINT64_C(0xffffffff) /* bytes that one instruction may move */

struct hed_ptx_host;

/* One launch. Constant while it runs. */
struct hed_ptx_grid {
    uint32_t ntid[3];
    uint32_t nctaid[3];
    uint32_t ncluster[3]; /* blocks per cluster; 1 1 1 */
    uint32_t dynamic_shared;
    uint32_t total_shared;
    uint32_t nsm;
    uint64_t id;
    const unsigned char *params;
    const uint64_t *vars;  /* addresses of the module's variables */
    uint64_t workspace;    /* %envreg1 and 2, for grid-wide barriers; 0 if not cooperative */
    uint64_t shared_first; /* [shared_first, shared_last) holds all blocks' shared memory */
    uint64_t shared_last;
    uint64_t local_first; /* [local_first, local_last) holds all warps' stacks and frames */
    uint64_t local_last;
    uint64_t clock_start;
    const void *program;    /* of the baseline tier: struct hed_interp; else NULL */
    const uint32_t *stop;   /* not 0: the grid has failed, and its loops need not go on; or NULL */
    uint64_t sandbox_base;  /* of a confined kernel; else 0 */
    uint64_t sandbox_outer; /* the bits of its addresses that do not count; else 0 */
    const struct hed_ptx_host *host; /* of the baseline tier; compiled code is bound to its own */
};

/* What an address stands for that a kernel computed. */
static inline uint64_t
hed_ptx_in_sandbox(const struct hed_ptx_grid *g, uint64_t address)
{
    return g->sandbox_base | (address & ~g->sandbox_outer);
}

/* Threads at a barrier that reduces. */
struct hed_ptx_votes {
    uint32_t count, trues;
};

/* One block. The runner's own data follows. */
struct hed_ptx_block {
    const struct hed_ptx_grid *grid;
    unsigned char *shared; /* aligned to 1024 */
    uint32_t ctaid[3];
    uint32_t smid;
    /* Of a kernel that is cut at barriers, for its own use: those that come to a barrier in this
     * round, and those that came in the last one. */
    struct hed_ptx_votes coming, came;
};

/* One warp. The runner's own data follows. */
struct hed_ptx_warp {
    const struct hed_ptx_grid *grid;
    struct hed_ptx_block *block;
    int32_t fuel;    /* counts down at backward branches that may wait; at 0, hed_rt_yield */
    uint32_t warp;   /* %warpid: position of the warp in the block */
    uint32_t lane;   /* that calls a function of the runtime, or traps */
    uint32_t lanes;  /* that exist: the last warp may be partial */
    uint32_t line;   /* of the PTX text, set before anything that can fail; 0 if unknown */
    uint32_t resume; /* of a kernel cut at barriers: where it goes on; 0 at first and at its end */
    unsigned char *frame; /* what such a kernel keeps meanwhile: info.frame bytes, aligned to 64 */
    uint32_t tid[3][HED_PTX_LANES];
    unsigned char *memory; /* of the baseline tier: for registers and local variables; in
                                     * the range of local memory, aligned to 64 */
    size_t memory_size;    /* bytes */
    unsigned char
        *local; /* of a confined kernel: its variables in local memory, in the address sandbox,
                            * aligned to 64 */
    size_t local_size; /* bytes */
};

/* What a worker runs with one call, with HED_PTX_BLOCKS: one block after the other, in the same
 * memory. The caller sets the block's ctaid to that of the first; hed_kernel goes on from there. */
struct hed_ptx_run {
    struct hed_ptx_block *block;
    struct hed_ptx_warp *warps;   /* of the block */
    uint64_t stride;              /* bytes from one warp to the next */
    uint64_t count;               /* warps */
    uint64_t blocks;              /* 1 or more */
    const uint32_t *stop;         /* not 0: no further block need begin */
    struct hed_ptx_warp *running; /* written by hed_kernel */
};

typedef void (*hed_ptx_entry)(struct hed_ptx_warp *s);

/* With HED_PTX_BLOCKS, hed_kernel takes a run instead of a warp. */
static inline void
hed_ptx_run_blocks(hed_ptx_entry kernel, struct hed_ptx_run *run)
{
    kernel((struct hed_ptx_warp *)(void *)run);
}

enum hed_ptx_info_flag {
    HED_PTX_WAITS = 1,     /* has barriers, warp operations, or loops that may wait: a warp needs a
                           * stack of its own, so that it can be suspended */
    HED_PTX_GRID = 2,      /* may wait for other blocks (atomics or volatile reads in loops) */
    HED_PTX_RECURSES = 4,  /* stack depth is not known */
    HED_PTX_CUT = 8,       /* at a barrier of the whole block hed_kernel returns, with warp->resume
                           * set; it is called again when all warps of the block have come */
    HED_PTX_BLOCKS = 16,   /* hed_kernel runs whole blocks; not with HED_PTX_WAITS */
    HED_PTX_CONFINED = 32, /* it stays in the address sandbox */
};

/* How compiled code runs threads, for people. */
enum hed_ptx_made {
    HED_PTX_MADE_UNKNOWN,
    HED_PTX_MADE_MACHINE, /* warps; which lanes run next is decided at run time */
    HED_PTX_MADE_MASKS,   /* warps under masks, in an order that was fixed before */
};

/* In the object file as `hed_kernel_info`. */
struct hed_ptx_info {
    uint32_t abi;          /* HED_PTX_ABI */
    uint32_t flags;        /* enum hed_ptx_info_flag */
    uint32_t shared;       /* bytes of static shared memory; dynamic follows, see shared_align */
    uint32_t shared_align; /* dynamic shared memory begins at the next multiple of this */
    uint32_t stack;        /* bytes of stack per warp, as far as known */
    uint32_t frame;        /* bytes that a warp keeps at a barrier, with HED_PTX_CUT */
    uint32_t made;         /* enum hed_ptx_made */
    uint32_t local;        /* bytes of a warp's local memory, with HED_PTX_CONFINED */
};

enum hed_ptx_trap {
    HED_PTX_TRAP = 1,         /* the trap instruction, brkpt */
    HED_PTX_TRAP_ALIGN,       /* misaligned address */
    HED_PTX_TRAP_ADDRESS,     /* illegal address found by a check */
    HED_PTX_TRAP_CALL,        /* a call through an invalid pointer */
    HED_PTX_TRAP_INSTRUCTION, /* illegal instruction */
};

/* ---- what kernels ask their runner for ------------------------------------------------------- */

#define HED_PTX_CLUSTER_BARRIER 16 /* the id for barrier.cluster, after those of the block */
enum hed_rt_reduce { HED_RT_AND, HED_RT_OR, HED_RT_POPC };

/* Operations among the lanes of a warp (kernel/ptx/run/warp.h). */
enum hed_rt_shfl { HED_RT_SHFL_UP, HED_RT_SHFL_DOWN, HED_RT_SHFL_BFLY, HED_RT_SHFL_IDX };
enum hed_rt_vote { HED_RT_VOTE_ALL, HED_RT_VOTE_ANY, HED_RT_VOTE_UNI, HED_RT_VOTE_BALLOT };
enum hed_rt_redux {
    HED_RT_REDUX_ADD,
    HED_RT_REDUX_MIN_S,
    HED_RT_REDUX_MAX_S,
    HED_RT_REDUX_MIN_U,
    HED_RT_REDUX_MAX_U,
    HED_RT_REDUX_AND,
    HED_RT_REDUX_OR,
    HED_RT_REDUX_XOR,
    HED_RT_REDUX_MIN_F,
    HED_RT_REDUX_MAX_F,
    HED_RT_REDUX_MIN_F_NAN,
    HED_RT_REDUX_MAX_F_NAN,
    HED_RT_REDUX_MIN_F_ABS,
    HED_RT_REDUX_MAX_F_ABS,
    HED_RT_REDUX_MIN_F_ABS_NAN,
    HED_RT_REDUX_MAX_F_ABS_NAN
};

/* What lanes do together by a function in C: `data` points to each lane's words, NULL for lanes
 * that are not there. */
#define HED_RT_STRIDED (UINT64_C(1) << 63) /* in arg: word i of a lane is at data + 32 i */
typedef void (*hed_rt_together)(void *const data[HED_PTX_LANES], uint32_t mask, uint64_t arg);

/* An access to a texture or surface. */
struct hed_rt_access {
    uint8_t geom;       /* enum hed_ptx_geom */
    uint8_t fetch;      /* enum hed_ptx_fetch */
    uint8_t type;       /* enum hed_ptx_type: of a texture's result, or of a surface's element */
    uint8_t count;      /* of surfaces: elements */
    uint8_t clamp;      /* of surfaces: enum hed_ptx_clamp */
    uint8_t channel;    /* of tld4: enum hed_ptx_channel; of sured: enum hed_ptx_oper; else 0 */
    uint8_t is_integer; /* coordinates of textures */
    uint8_t is_store;   /* of surfaces: sust and sured */
};
#define HED_RT_COORDINATES 14

/* The functions that kernels call. Compiled code finds them by the names hed_rt_yield, hed_rt_trap
 * and so on in a table of symbols (kernel/ptx/run/load.h); the baseline tier by grid->host. Nothing
 * in ptx defines or names them, so whoever runs kernels brings his own. */
struct hed_ptx_host {
    /* Lets other warps run. Resets fuel. */
    void (*yield)(struct hed_ptx_warp *s);
    void (*trap)(struct hed_ptx_warp *s, uint32_t trap, uint32_t line) __attribute__((noreturn));
    /* A trap for an instruction that no tier can run; the text says which. Only the baseline tier
     * calls it, in functions that a pointer leads to: other kernels are refused before they run. */
    void (*refuse)(struct hed_ptx_warp *s, const char *text, uint32_t line)
        __attribute__((noreturn));
    void (*nanosleep)(struct hed_ptx_warp *s, uint32_t ns);
    uint64_t (*clock)(struct hed_ptx_warp *s);       /* %clock64 */
    uint64_t (*globaltimer)(struct hed_ptx_warp *s); /* ns */

    /* Barriers of the block. `threads` is the number of threads that must arrive, 0 for all of the
     * block; `arriving` of them arrive with this call, and `trues` of those have a true predicate.
     * op is enum hed_rt_reduce; the result is 0 or 1, or the count. */
    void (*barrier)(struct hed_ptx_warp *s, uint32_t id, uint32_t threads, uint32_t arriving);
    void (*barrier_arrive)(struct hed_ptx_warp *s, uint32_t id, uint32_t threads,
                           uint32_t arriving);
    uint32_t (*barrier_reduce)(struct hed_ptx_warp *s, uint32_t id, uint32_t threads,
                               uint32_t arriving, uint32_t trues, uint32_t op);

    /* Functions that device code of CUDA expects. Called once per lane, with s->lane set. */
    uint32_t (*vprintf)(struct hed_ptx_warp *s, uint64_t format, uint64_t args);
    /* Returns, so that each failing lane is reported; the calling code then traps. */
    void (*assertfail)(struct hed_ptx_warp *s, uint64_t message, uint64_t file, uint32_t line,
                       uint64_t function, uint64_t char_size);
    uint64_t (*malloc)(struct hed_ptx_warp *s, uint64_t size);
    void (*free)(struct hed_ptx_warp *s, uint64_t p);
    /* `handle` is the address of a graph's condition, or anything else that a kernel has. */
    void (*set_condition)(struct hed_ptx_warp *s, uint64_t handle, uint32_t value);
    /* A call of the device runtime: which is enum hed_device_call_number (base/device_calls.h);
     * what the call has no arguments for is 0. */
    uint64_t (*device_call)(struct hed_ptx_warp *s, uint32_t which, uint64_t a0, uint64_t a1,
                            uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                            uint64_t a7);

    /* Textures and surfaces. `object` is the object that the program passed. The coordinates are
     * words, either floats or integers: layer, x, y, z, level, then the gradients in x and in y
     * with three words each, then three integers that are added to x, y and z in texels. */
    void (*texture)(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
                    uint32_t out[4], uint32_t line);
    /* x is in bytes, or in elements for .p; data has `count` elements. */
    void (*surface)(struct hed_ptx_warp *s, uint64_t object, uint64_t access, const uint32_t *in,
                    void *data, uint32_t line);
    void (*surface_reduce)(struct hed_ptx_warp *s, uint64_t object, uint64_t access,
                           const uint32_t *in, const void *data, uint32_t line);
    /* query is enum hed_ptx_query; level, an integer, is for textures. */
    uint32_t (*texture_query)(struct hed_ptx_warp *s, uint64_t object, uint32_t query,
                              uint32_t level, uint32_t line);
};

/* A symbol that an object file may leave undefined. */
struct hed_ptx_symbol {
    const char *name;
    const void *address;
};

/* helpers.c: functions without state that compiled code calls: numerics, and what LLVM expects from
 * a C library (memcpy, __extendhfsf2, ...). A NULL name ends the table. */
extern const struct hed_ptx_symbol hed_ptx_helpers[];

/* group.c: the same for what threads do in groups: matrices, barrier objects. */
extern const struct hed_ptx_symbol hed_ptx_group_helpers[];
