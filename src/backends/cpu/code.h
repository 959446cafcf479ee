/* The CPU GPU's own data of a hed_code. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backends/cpu/cpu.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/lock.h"
#include "driver/driver.h"
#include "kernel/ptx.h"

#define HED_CPU_DESCRIPTION_MAX ((size_t)1 << 30) /* bytes of descriptions */

enum hed_cpu_kernel_state { HED_CPU_NONE, HED_CPU_BUSY, HED_CPU_READY, HED_CPU_FAILED };

/* tier.c: where the launches of a kernel in the baseline tier go. */
enum hed_tier_state { HED_TIER_COLD, HED_TIER_QUEUED, HED_TIER_COMPILED, HED_TIER_STAYS };

/* A function that kernels from machine code call by its address. Constant once it is in a list. */
struct hed_cpu_function {
    struct hed_cpu_function *next;
    uint64_t address;
    struct hed_ptx_module module;
    struct hed_interp *program; /* NULL if it cannot be lifted */
};

/* PTX that was made from the machine code of a kernel, for all of its layouts. */
struct hed_cpu_lifted {
    /* Functions that it has called. They are added under the code's lock and stay; no lock is
     * needed to look for one. */
    _Atomic(struct hed_cpu_function *) functions;
    int state;    /* enum hed_cpu_kernel_state; guarded by the code's lock */
    int err;      /* valid if READY or FAILED, like the next members */
    bool is_read; /* module is to be freed */
    struct hed_ptx_module module;
    const struct hed_ptx_func *func;
    struct hed_cpu_text text; /* for the compiler; empty if nothing is compiled */
    uint32_t shown;           /* id of the text on the board, or 0 */
    struct hed_why why;
};

/* A kernel's code for one layout of threads in warps. */
struct hed_cpu_kernel {
    const char *name;
    /* The kernel, and the module that it belongs to. For machine code, they are set before the
     * kernel is READY, and NULL if its compiled code was in the cache. */
    const struct hed_ptx_func *func;
    const struct hed_ptx_module *module;
    enum hed_rows rows;
    _Atomic int state;              /* enum hed_cpu_kernel_state; changed under the code's lock */
    CUresult result;                /* valid if READY or FAILED, like the next members */
    struct hed_ptx_loaded loaded;   /* of the baseline tier */
    struct hed_interp *program;     /* the same; NULL if the kernel is compiled from the start */
    struct hed_board_kernel *shown; /* on the board, or NULL */
    struct hed_why why;
    _Atomic uint32_t pace; /* of its compiled code: engine.h */

    struct hed_cpu_code *code;
    _Atomic int tier;                 /* enum hed_tier_state */
    _Atomic uint64_t spent_ns;        /* by its launches in the baseline tier */
    struct hed_cpu_compiled compiled; /* valid if COMPILED */
    struct hed_cpu_kernel *next_hot;  /* in the queue; guarded by the lock of struct hed_tiers */
    /* Another process compiles it: when to look again, and when not to wait for it any more, by
     * hed_now_ns(); 0: not known. Guarded by the same lock. */
    uint64_t look_at, patience_end;
};

struct hed_cpu;

struct hed_cpu_code {
    struct hed_code pub;             /* first */
    struct hed_arena arena;          /* holds what pub points to */
    struct hed_ptx_module module;    /* empty for machine code */
    struct hed_sass_program *sass;   /* machine code, or NULL */
    struct hed_cpu_lifted *lifted;   /* machine code: one for each of pub.kernels */
    struct hed_watch *watch;         /* of the CPU GPU: limits of time, or NULL */
    struct hed_cache_key text;       /* the hash of the PTX or the machine code */
    struct hed_cpu_text source;      /* PTX, for the compiler; empty if nothing is compiled */
    uint32_t shown;                  /* id of the module on the board, or 0 */
    const struct hed_ptx_var **vars; /* by index in pub.vars; NULL for machine code */
    struct hed_cpu_kernel *states;   /* HED_ROWS_COUNT for each of pub.kernels, one by one */
    struct hed_lock lock;
    pthread_cond_t done; /* a kernel is not BUSY any more */
    unsigned compiling;  /* threads of tier.c; guarded by their lock, like the next */
    bool closed;
};

/* ---- tier.c ---------------------------------------------------------------------------------- */

/* A launch in the baseline tier that runs. */
struct hed_tier_launch {
    struct hed_cpu *cpu;
    struct hed_cpu_kernel *kernel;
    uint64_t begin;
    bool forced;        /* by trial.c: it changes the tier after so many blocks */
    uint64_t change_at; /* blocks */
};
/* Between two blocks of it, of which so many began; arg is a struct hed_tier_launch. True if
 * compiled code is there for the remaining blocks, which are to use it. */
bool hed_tier_between(void *arg, uint64_t began);
/* A launch of a kernel in the baseline tier took ns: compiles it soon if it is hot. */
void hed_tier_note(struct hed_cpu *c, struct hed_cpu_kernel *k, uint64_t ns);
/* Takes the kernel to compile next out of the queue, and counts its thread as busy until
 * hed_tier_done(). NULL if none waits for which there is a thread. Both under the lock. */
struct hed_cpu_kernel *hed_tier_take(struct hed_tiers *t);
void hed_tier_done(struct hed_tiers *t, const struct hed_cpu_kernel *k);
/* Compiles a kernel of the baseline tier, and says so; it stays there if that is impossible. False
 * if another process compiles it, with HED_CPU_OTHERS_FIRST; nothing has changed then. */
bool hed_tier_compile(struct hed_cpu *c, struct hed_cpu_kernel *k, enum hed_cpu_others others);
/* What a launch of the kernel runs now. */
const struct hed_ptx_loaded *hed_tier_loaded(const struct hed_cpu_kernel *k);
/* The code is closed. True if the caller frees it now; otherwise one of its kernels is being
 * compiled, and the thread that does that will free it. */
bool hed_tier_forget(struct hed_cpu *c, struct hed_cpu_code *code);

/* ---- trial.c: changes of tier that a test asks for ------------------------------------------- */

/* Are they asked for? Then kernels are compiled when they are first launched, and are in both
 * tiers. Constant. Always false without HED_DEBUG. */
bool hed_tier_trial(void);
/* After how many blocks of a grid that has so many the next launch changes the tier; 0: it is
 * compiled from the start. More than there are: it never does. */
uint64_t hed_tier_trial_moment(uint64_t blocks);

/* code.c */
void hed_code_free(struct hed_cpu_code *code);
/* What the compiler needs of a kernel whose func is set. */
struct hed_cpu_source hed_code_source_of(const struct hed_cpu_code *code,
                                         const struct hed_cpu_kernel *k);

/* show.c: what a launch of the kernel did. */
void hed_show_launch(const struct hed_cpu_kernel *k, uint64_t baseline_ns);
/* The kernel's tier has changed. */
void hed_show_tier(const struct hed_cpu_kernel *k);

/* describe.c: reads PTX and describes what is in it. */
int hed_code_read_ptx(struct hed_cpu_code *code, const struct hed_code_source *source,
                      struct hed_buf *log, struct hed_why *why);
/* Makes the states of pub.kernels. HED_ENOMEM. */
int hed_code_make_states(struct hed_cpu_code *code, const struct hed_code_kernel *kernels,
                         uint32_t count);

/* ---- lift.c: machine code -------------------------------------------------------------------- */

/* Reads machine code and describes what is in it. */
int hed_code_read_cubin(struct hed_cpu *c, struct hed_cpu_code *code,
                        const struct hed_code_source *source, struct hed_why *why);
struct hed_cpu_lifted *hed_code_lifted(const struct hed_cpu_code *code,
                                       const struct hed_cpu_kernel *k);
/* Sets func and module of a kernel that has none yet, and which no other thread uses. */
int hed_code_lift(struct hed_cpu *c, struct hed_cpu_code *code, struct hed_cpu_kernel *k,
                  struct hed_why *why);
/* A hed_interp_find_fn: lifts a function of machine code when it is first called. arg is the
 * struct hed_cpu_kernel that calls it. */
const struct hed_interp *hed_code_find_function(void *arg, uint64_t address);
/* Writes the addresses in the initial values of variables. */
void hed_code_fill_pointers(const struct hed_cpu_code *code, const uint64_t *addresses,
                            const uint64_t *where);
void hed_code_free_lifted(struct hed_cpu_code *code);
