/* What the files of the baseline tier share.
 *
 *   program.c   makes a program: functions, constants, sizes
 *   decode.c    a function's body becomes steps; operand.c: operands, constants, memory operands;
 *               known.c: registers that are not written, since their value lies elsewhere
 *   machine.c   runs steps: which lanes run next, frames of functions
 *   join.c      lanes that meet at different steps
 *   branch.c    guards, labels, branches, ends
 *   call.c      calls and returns
 *   family/     instructions, one file for each family of opcodes.def
 *
 * A step is a function and the places of its operands. The function does the work for all lanes and
 * returns the next step:
 *
 *   while (s)
 *       s = s->run(w, s);
 *
 * A place is an offset into the registers of the current frame or, if its lowest bit is set, into
 * the program's constants. A register is an array of 32 elements of its width; a predicate is one
 * word with a bit for each lane. Constants have the same form, so that steps need not tell them
 * apart. Operands that do not have the width that an instruction expects are resized by steps of
 * their own, in temporary registers.
 *
 * An instruction with a guard is a guard step, which narrows w->mask, the instruction's own steps,
 * and a step that restores the mask.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clones.h"
#include "base/sanitize.h"
#include "kernel/ptx/interp/interp.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/abi.h"
#include "kernel/ptx/run/layout.h"

struct hed_ptx_meaning;
struct hed_why;
struct interp_func;
struct interp_step;
struct interp_warp;

typedef const struct interp_step *(*interp_run)(struct interp_warp *w, const struct interp_step *s);

struct interp_step {
    interp_run run;
    uint32_t d, a, b, c; /* places: destination and sources */
    uint32_t e;          /* a place or a number */
    uint32_t line;       /* of the PTX text */
    int64_t imm;
    const void *more; /* in the program's arena; of branches: the step to go to */
};

/* A parameter or a result of a function, on either side of a call. */
struct interp_value {
    bool is_register;
    uint32_t place; /* of a register: its place; else the offset in the lane's local memory */
    uint32_t bytes; /* of a predicate: 0; of an array of unknown size: UINT32_MAX */
};

struct interp_func {
    const struct hed_interp *program; /* that it belongs to */
    const struct hed_ptx_func *ptx;
    struct interp_step *steps;
    uint32_t count;
    uint32_t registers; /* bytes of a frame's registers, temporary ones included */
    uint32_t zeroed;    /* the first so many bytes of them begin as 0 */
    uint32_t local;     /* bytes of local memory per lane, a multiple of 64 */
    struct interp_value *params, *rets;
    uint32_t nparams, nrets;
};

struct hed_interp {
    const struct hed_ptx_module *module;
    struct hed_ptx_info info;
    struct hed_arena arena;
    struct interp_func *funcs; /* those of the unit, in its order; the kernel first */
    uint32_t nfuncs;
    struct interp_func **by_index; /* by position in the module; NULL if not reached */
    uint32_t nmodule;
    unsigned char *constants; /* aligned to 64 */
    bool joins;               /* lanes may meet at different steps: join.h */
    hed_interp_find_fn find;  /* functions of other programs; may be NULL */
    void *find_arg;
};

/* ---- running --------------------------------------------------------------------------------- */

/* Values of frame.pc. Lanes that wait have the index of a step. */
#define INTERP_NONE UINT32_C(0xffffffff)   /* runs, or is not in the frame */
#define INTERP_PARKED UINT32_C(0x80000000) /* | index: waits for other lanes to come there */
#define INTERP_CALLED UINT32_C(0x40000000) /* is in a function that was called from here */
#define INTERP_FAR UINT32_C(0x3fffffff)

/* A piece of the warp's memory. They are released from the top, so one that has ended may have to
 * wait for those above it. */
struct interp_block {
    struct interp_block *below;
    unsigned char *local;          /* local memory from here on is free without it */
    struct interp_block *previous; /* of alloca, in the same frame */
    bool ended;
    bool is_frame;
};

/* The call of a function by some lanes.
 *
 * Invariants:
 * 1. A lane is in `lanes` from the call until it returns or ends.
 * 2. `next` is at most the lowest pc of the waiting lanes, except while lanes run that have been
 *    put first because others spin; it is NONE only if no lane waits.
 */
struct interp_frame {
    struct interp_block block; /* first */
    const struct interp_func *func;
    struct interp_frame *parent;    /* NULL for the kernel */
    const struct interp_step *site; /* the call, in the parent */
    unsigned char *registers;
    unsigned char *local;       /* variables of lane i are at local + i * stride */
    uint64_t stride;            /* bytes */
    struct interp_block *extra; /* the latest block of alloca */
    uint32_t lanes;
    uint32_t next;
    uint32_t pc[HED_PTX_LANES];
};

struct interp_warp {
    uintptr_t base[2]; /* what places are added to: the current frame's registers, and its program's
                          constants less the bit that says so */
    uint32_t active;   /* the lanes that run */
    uint32_t mask;     /* those of them in which the instruction has an effect */
    uint32_t write;    /* mask, and lanes whose registers nobody reads any more */
    uint32_t live;     /* the lanes that have not ended */
    bool forced;       /* the running lanes were parked, and nobody else can come */
    struct interp_frame *frame;
    struct interp_block *top;
    struct hed_ptx_warp *warp;
    const uint32_t *stop;             /* not 0: the grid has failed */
    unsigned char *free, *end;        /* the warp's memory that is not in use */
    unsigned char *local, *local_end; /* the same of a confined kernel's local memory; or NULL */
    uint64_t sandbox_base, sandbox_outer; /* the grid's */
};

/* What an address stands for that the kernel computed. */
static inline uint64_t
interp_in_sandbox(const struct interp_warp *w, uint64_t address)
{
    return w->sandbox_base | (address & ~w->sandbox_outer);
}

static inline void *
interp_at(const struct interp_warp *w, uint32_t place)
{
    return (void *)(w->base[place & 1] + place);
}

static inline uint32_t
interp_pc(const struct interp_warp *w, const struct interp_step *s)
{
    return (uint32_t)(s - w->frame->func->steps);
}

/* Called wherever a kernel may go round in circles. If the grid has failed, for example because its
 * time is over, the warp does not come back. */
static inline void
interp_leave_if_stopped(struct interp_warp *w)
{
    /* Relaxed: a warp that sees it late only does useless work. */
    if (__builtin_expect(__atomic_load_n(w->stop, __ATOMIC_RELAXED) != 0, 0))
        w->warp->grid->host->yield(w->warp);
}

/* These lanes of the current frame run; no guard is in force. */
static inline void
interp_set_active(struct interp_warp *w, uint32_t lanes)
{
    w->active = lanes;
    w->mask = lanes;
    w->write = lanes | ~w->frame->lanes;
}

/* machine.c: lanes of the current frame wait at a pc. */
void hed_interp_wait(struct interp_warp *w, uint32_t lanes, uint32_t pc);
/* Chooses the lanes that run next; returns their step, or NULL if no lane is left. */
const struct interp_step *hed_interp_next(struct interp_warp *w);
/* The running lanes go to the step of a label, or wait there for others. */
const struct interp_step *hed_interp_go(struct interp_warp *w, const struct interp_step *to);
/* The running lanes spin: they wait at a pc, and others run first if there are any. */
const struct interp_step *hed_interp_rotate(struct interp_warp *w, uint32_t pc);
/* Brings the running lanes together with those of `required` at this step. False if they are
 * parked, and hed_interp_next comes next. */
bool hed_interp_meet(struct interp_warp *w, const struct interp_step *s, uint32_t required);
/* Memory of the warp; traps if there is none left. */
void *hed_interp_take(struct interp_warp *w, size_t bytes);
/* The same for variables in local memory, in the address sandbox of a confined kernel. */
void *hed_interp_take_local(struct interp_warp *w, size_t bytes);
/* Makes a frame the current one. */
void hed_interp_enter(struct interp_warp *w, struct interp_frame *f);
/* A frame for some lanes; its registers begin as they should. The current frame stays. */
struct interp_frame *hed_interp_push(struct interp_warp *w, const struct interp_func *f,
                                     uint32_t lanes, uint64_t extra);
/* These lanes leave a frame, which is released if it has none left. */
void hed_interp_leave(struct interp_warp *w, struct interp_frame *f, uint32_t lanes);
/* Calls host->trap for the lowest lane of a mask. */
_Noreturn void hed_interp_trap(struct interp_warp *w, const struct interp_step *s, uint32_t lanes,
                               enum hed_ptx_trap trap);

/* Ends a step that is followed by the next one. Where calls at the end of a function are jumps, it
 * runs that at once, which saves the way back to the loop: a step takes few cycles, and this is one
 * of them in five. Steps with memory of their own on the stack return instead, and so do branches:
 * the stack could only grow from one of them to the next if a compiler made calls of the jumps. */
#if defined(__OPTIMIZE__) && (defined(__x86_64__) || defined(__aarch64__)) && !HED_ASAN && !HED_TSAN
#define INTERP_NEXT(w, s) return (s)[1].run(w, (s) + 1)
#else
#define INTERP_NEXT(w, s) return (s) + 1
#endif

#define INTERP_SHARED_STEP(name) \
    const struct interp_step *name(struct interp_warp *w, const struct interp_step *s)

/* A step of one file. It is made for several kinds of processors: loops over lanes are as fast as
 * vectors are wide. */
#define INTERP_STEP(name) HED_CLONES INTERP_SHARED_STEP(name)

/* Steps that decode.c and the families put together. */
INTERP_SHARED_STEP(hed_interp_guard);
INTERP_SHARED_STEP(hed_interp_guard_split);
INTERP_SHARED_STEP(hed_interp_unguard);
INTERP_SHARED_STEP(hed_interp_label);
INTERP_SHARED_STEP(hed_interp_end);

/* ---- decoding -------------------------------------------------------------------------------- */

struct interp_map; /* from pointers or numbers to numbers: operand.c */

/* A destination that gets its value from a temporary register. */
struct interp_pending {
    uint32_t from, to; /* places */
    uint8_t bytes[2];  /* of both */
    bool is_signed;
};

#define INTERP_PENDING_MAX 64
#define INTERP_WIDTHS 6 /* a predicate, and 1 to 16 bytes */

/* The function that is being decoded, and what has been found so far. */
struct interp_decoder {
    struct hed_interp *program;
    const struct hed_ptx_module *module;
    const struct hed_ptx_unit *unit;
    struct interp_func *func;
    const struct hed_ptx_inst *inst;
    const struct hed_ptx_meaning *meaning; /* of inst */
    struct interp_step *steps;
    uint32_t count, room;
    uint32_t *regs;               /* places by register id; elements of vectors follow each other */
    uint8_t *uses;                /* by register id: hed_ptx_find_uses() */
    uint32_t *known;              /* by register id: where its value is instead (known.c), or 0 */
    uint32_t *made;               /* by register id: the block where it is written; 0: not known */
    uint32_t block;               /* of the instruction: 1 up to the first label */
    uint32_t *labels;             /* steps by label id; NONE before the label is reached */
    bool *waits;                  /* by label id: a branch back to it closes a loop that may wait */
    uint32_t fixed;               /* bytes of the registers, without temporary ones */
    uint32_t most;                /* bytes, with them */
    uint8_t taken[INTERP_WIDTHS]; /* temporary registers of this instruction, by width */
    struct interp_map *places;    /* variable -> index in grid->vars, or offset in shared memory */
    struct interp_map *locals;    /* variable -> offset in local memory */
    struct interp_map *constants; /* value and width -> place */
    unsigned char *pool;          /* of constants */
    uint32_t pooled, pool_room;   /* bytes */
    struct interp_pending pending[INTERP_PENDING_MAX];
    unsigned npending;
    uint32_t refusals; /* instructions that fail when they are run */
    int err;           /* sticky: the first failure; `why` has the reason */
    struct hed_why *why;
};

/* The carry flag of add.cc and the like: a predicate at the beginning of every frame. */
#define INTERP_CARRY 0u

/* Stops with HED_ENOTSUP. The reason is followed by the instruction, function and line. */
void hed_interp_refuse(struct interp_decoder *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a step; the pointer is valid until the next one is added. */
struct interp_step *hed_interp_emit(struct interp_decoder *d, interp_run run);
struct interp_step *hed_interp_emit3(struct interp_decoder *d, interp_run run, uint32_t to,
                                     uint32_t a, uint32_t b, uint32_t c);
/* Memory in the program's arena, cleared; never NULL before err is set. */
void *hed_interp_alloc(struct interp_decoder *d, size_t bytes);
/* A temporary register of so many bytes per lane, 0 for a predicate, until the instruction ends. */
uint32_t hed_interp_temp(struct interp_decoder *d, unsigned bytes);

/* The place of a source operand as a value of type t: registers of another width are resized by
 * PTX's rules (with the sign if t is signed), negated predicates inverted. */
uint32_t hed_interp_source(struct interp_decoder *d, const struct hed_ptx_operand *o,
                           enum hed_ptx_type t);
/* Operand n of the instruction. */
uint32_t hed_interp_operand(struct interp_decoder *d, unsigned n, enum hed_ptx_type t);
/* The place where an instruction writes a value of type t for a destination operand. If the
 * register is wider or narrower, steps that follow the instruction move it there. */
uint32_t hed_interp_dest(struct interp_decoder *d, const struct hed_ptx_operand *o,
                         enum hed_ptx_type t);
/* Adds the steps that the destinations still need. */
void hed_interp_flush(struct interp_decoder *d);
/* A constant that all lanes have: bytes is the width, 0 for a predicate. */
uint32_t hed_interp_constant(struct interp_decoder *d, uint64_t bits, unsigned bytes);
/* The word that all lanes have at a place. False if it is not a constant. */
bool hed_interp_known_word(const struct interp_decoder *d, uint32_t place, uint32_t *word);
/* The instruction moves a value of so many bytes from a place, the source operand's, to a register.
 * True: whoever reads that will read the place instead, so it is not written. */
bool hed_interp_learn(struct interp_decoder *d, const struct hed_ptx_operand *to,
                      const struct hed_ptx_operand *from, uint32_t place, unsigned bytes);
/* Makes `uses` of the function say MANY of registers that are also written under a guard, or by
 * callers. Before its instructions are decoded. */
void hed_interp_find_written(struct interp_decoder *d);
/* Called for every label, and for every instruction once it is decoded. */
void hed_interp_note_label(struct interp_decoder *d);
void hed_interp_note_made(struct interp_decoder *d, const struct hed_ptx_inst *i);
/* Adds a step that resizes integers; bytes are 1 to 16. */
void hed_interp_resize(struct interp_decoder *d, uint32_t from, unsigned from_bytes, uint32_t to,
                       unsigned to_bytes, bool is_signed);

/* Where a register lies, or the element of a vector register that the operand selects. */
uint32_t hed_interp_register_place(const struct interp_decoder *d, const struct hed_ptx_operand *o);

/* Bytes of a register of type t; 0 for predicates. */
static inline unsigned
interp_bytes(enum hed_ptx_type t)
{
    return hed_ptx_types[t].bits / 8u;
}

static inline bool
interp_is_signed(enum hed_ptx_type t)
{
    return hed_ptx_types[t].kind == HED_PTX_KIND_S;
}

/* Does the instruction that is being decoded have the flag? INTERP_SAID(d, FTZ) */
#define INTERP_SAID(d, name) (((d)->inst->form->flags & HED_PTX_FLAG(name)) != 0)
/* The same of a form. */
#define INTERP_HAS(f, name) (((f)->flags & HED_PTX_FLAG(name)) != 0)

/* ---- memory operands ------------------------------------------------------------------------- */

enum interp_address {
    INTERP_REGISTER,        /* a 64-bit register + imm */
    INTERP_SHARED_REGISTER, /* a 32-bit register + imm, in shared memory */
    INTERP_GLOBAL_VAR,      /* variable number `place` of the module + imm */
    INTERP_SHARED_VAR,      /* imm is the offset in shared memory */
    INTERP_PARAM_VAR,       /* imm is the offset in the kernel's parameters */
    INTERP_LOCAL_VAR,       /* imm is the offset in the lane's local memory */
};

struct interp_memory {
    uint8_t kind;   /* enum interp_address */
    bool aligned;   /* no check is needed */
    uint32_t place; /* of a register, or the index of a variable */
    int64_t imm;
};

/* The memory that an operand names; space is the instruction's, align what the access needs. */
struct interp_memory hed_interp_memory(struct interp_decoder *d, const struct hed_ptx_operand *o,
                                       enum hed_ptx_space space, unsigned align);
/* Its addresses as a register of 64 bits, checked for alignment (1: no check). */
uint32_t hed_interp_address(struct interp_decoder *d, const struct hed_ptx_operand *o,
                            enum hed_ptx_space space, unsigned align);

/* operand.c: a map from 64-bit keys. */
struct interp_map *hed_interp_map_new(void);
int hed_interp_map_put(struct interp_map *m, uint64_t key, uint32_t value);
bool hed_interp_map_get(const struct interp_map *m, uint64_t key, uint32_t *value);
void hed_interp_map_free(struct interp_map *m);

/* decode.c */
/* What cannot be run in a function that is not called by name fails when it is run. */
void hed_interp_decode(struct interp_decoder *d, struct interp_func *f, bool is_called);

/* call.c: decodes the parameters of a function, and calls. */
void hed_interp_values(struct interp_decoder *d, const struct hed_ptx_var *v,
                       struct interp_value **out, uint32_t *count);

/* Where variables of a kind begin that lie at one place for all lanes. */
static inline __attribute__((always_inline)) uint64_t
interp_variable_base(const struct interp_warp *w, unsigned kind, uint32_t place)
{
    switch (kind) {
    case INTERP_GLOBAL_VAR:
        return w->warp->grid->vars[place];
    case INTERP_SHARED_VAR:
        return (uintptr_t)w->warp->block->shared;
    default:
        return (uintptr_t)w->warp->grid->params;
    }
}

/* The address of every lane. Inlined, so that it is vector code of the step's processor. */
static inline __attribute__((always_inline)) void
interp_addresses(const struct interp_warp *w, unsigned kind, uint32_t place, int64_t imm,
                 uint64_t *out)
{
    uint64_t base;

    switch (kind) {
    case INTERP_REGISTER: {
        const uint64_t *a = interp_at(w, place);

        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            out[i] = interp_in_sandbox(w, a[i] + (uint64_t)imm);
        return;
    }
    case INTERP_SHARED_REGISTER: {
        const uint32_t *a = interp_at(w, place);

        base = (uintptr_t)w->warp->block->shared;
        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            out[i] = base + (uint32_t)(a[i] + (uint32_t)imm);
        return;
    }
    case INTERP_LOCAL_VAR:
        base = (uintptr_t)w->frame->local + (uint64_t)imm;
        for (unsigned i = 0; i < HED_PTX_LANES; i++)
            out[i] = interp_in_sandbox(w, base + i * w->frame->stride);
        return;
    default:
        base = interp_variable_base(w, kind, place);
        break;
    }
    base = interp_in_sandbox(w, base + (uint64_t)imm);
    for (unsigned i = 0; i < HED_PTX_LANES; i++)
        out[i] = base;
}
