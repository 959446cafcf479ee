/* From PTX to LLVM IR: what the files of the code generator share.
 *
 *   compile.c   sets LLVM up, runs its passes, emits the object file
 *   lower.c     functions, registers, statements; for each instruction it calls the function that
 *               opcodes.def names
 *   value.c     types, constants, operands;  sreg.c: special registers
 *   apart.c     long instructions as functions;  sandbox.c: confined kernels
 *   family/     instructions. Those that only compute have one code for both shapes, because LLVM's
 *               operations work alike on a value and on a vector of 32 values. The others work out
 *               operands and addresses, and leave to the shape what differs.
 *   warp/       the warp shape: a function runs 32 lanes, and a machine says which of them run
 *   mask/       the same, where control flow can be laid out in advance
 *
 * A value is an integer of the register's width (i1 for predicates) or a vector of 32 of these.
 * Floating point is a bitcast away, and PTX's rules about .bN registers cost nothing. Below, a
 * value "with lanes" is <32 x T>, or a plain value where l->lanes is 1.
 *
 * Numerics are exact: no fast-math flags, no contraction, no change of the rounding mode.
 */
#pragma once

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/ptx/lower/compile.h"
#include "kernel/ptx/meaning/meaning.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/abi.h"

struct hed_lower_function;
struct hed_lower_map;
struct hed_lower_shape;
struct hed_ptx_unit;

struct hed_lower {
    const struct hed_ptx_module *ptx;
    const struct hed_ptx_func *kernel;
    const struct hed_ptx_options *options;
    const struct hed_lower_shape *shape;
    const struct hed_ptx_unit *unit; /* the kernel and what it reaches: layout.h */
    unsigned lanes;                  /* 1 or 32 */

    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b; /* stands where code goes */
    LLVMTypeRef i1, i8, i16, i32, i64, i128, f16, f32, f64, ptr, nothing; /* one lane */

    struct hed_lower_map *places;          /* variable -> its index in grid->vars, or its offset in
                                          * shared memory */
    struct hed_lower_map *functions;       /* function -> LLVM function */
    LLVMValueRef function_table;           /* pointers by function index; NULL until it is needed */
    struct hed_lower_function *function;   /* the function whose code is being made */
    const struct hed_ptx_inst *inst;       /* the instruction whose code is being made */
    const struct hed_ptx_meaning *meaning; /* of inst */
    struct hed_ptx_info info;

    int err; /* sticky: the first failure; `why` has the reason */
    struct hed_why *why;
    bool is_hopeless;   /* no other shape can do what this one refuses */
    bool reads_any_nan; /* registers are read as they are, even if they may hold any NaN */

    /* compile.c, passes.c */
    LLVMTargetMachineRef machine;
    struct hed_buf *object; /* takes the result */
    unsigned pass_depth;    /* passes that run now */
    char did[96];           /* of the pass that runs: hed_pass_did() */

    /* mask/region.c: how a kernel was cut at barriers, for the loops around it. */
    struct {
        uint32_t cuts;   /* places where it goes on */
        uint32_t common; /* words that all warps of a block have in common behind a barrier */
        bool together;   /* warps that have not ended always come to the same barrier */
        bool some_end;   /* with `together`: some warps may end while others go on */
    } cut;
};

/* The function whose code is being made. */
struct hed_lower_function {
    const struct hed_ptx_func *ptx;
    LLVMValueRef value;
    LLVMBasicBlockRef entry;             /* begins with all allocas; ends in a branch to the code */
    LLVMValueRef warp;                   /* ptr: struct hed_ptx_warp */
    LLVMValueRef grid;                   /* ptr: struct hed_ptx_grid */
    LLVMValueRef block;                  /* ptr: struct hed_ptx_block */
    LLVMValueRef ctaid[3];               /* i32: the block's position; NULL: it is in the block */
    LLVMValueRef shared;                 /* ptr: the block's shared memory */
    LLVMValueRef sandbox;                /* ptr: of a confined kernel */
    LLVMValueRef params;                 /* ptr: for a kernel, grid->params; else up to the shape */
    LLVMValueRef rets;                   /* ptr: up to the shape */
    LLVMValueRef **regs;                 /* slots by id; a vector register has several */
    LLVMValueRef carry;                  /* slot */
    struct hed_lower_map *vars;          /* variable of the function -> ptr: up to the shape */
    const struct hed_ptx_label **labels; /* by id */
    bool *waits; /* by label id: a branch back to it closes a loop that may wait */
    void *state; /* the shape's own */
};

/* The memory that an access goes to. One of var, base, address, first and reg is set. */
struct hed_lower_place {
    const struct hed_ptx_var *var; /* of the function, local or param; each lane has its own */
    LLVMValueRef base;             /* ptr: the same for all lanes */
    LLVMValueRef address;          /* i64, lanes: a host address, offset included */
    int64_t offset;                /* bytes from var or base */
    LLVMValueRef first;            /* i64: the address of lane 0; mask shape only */
    int64_t step;                  /* with first: bytes from lane to lane */
    const struct hed_ptx_reg *reg; /* also with address: the register that it comes from */
    int64_t reg_offset;            /* the address is reg + this; where is_shared, an offset into */
    bool is_shared;                /* the block's shared memory */
};

#define HED_LOWER_ELEMENTS_MAX 8 /* of an access, per lane */

/* The kind of an access. */
struct hed_lower_access {
    LLVMTypeRef type;         /* of one lane's element: an integer of 8 bits or more */
    unsigned count;           /* elements, one after the other */
    unsigned align;           /* bytes; the address is known to be a multiple */
    LLVMAtomicOrdering order; /* LLVMAtomicOrderingNotAtomic for plain accesses */
    bool is_volatile;
    bool is_constant; /* nothing writes there while the kernel runs */
};

/* The element that is loaded k-th. With an order, loads begin at the end and stores end there: who
 * finds the end of a vector new, finds all of it new. */
static inline unsigned
hed_lower_nth_load(const struct hed_lower_access *how, unsigned k)
{
    return how->order == LLVMAtomicOrderingNotAtomic ? k : how->count - 1 - k;
}

/* Makes the code for one lane: args and results have no lanes. */
typedef void (*hed_lower_each)(struct hed_lower *l, void *arg, LLVMValueRef *args,
                               LLVMValueRef *results);

/* What differs between the mask shape and the warp shape. Every function finds the builder
 * where code goes, and leaves it there. Values have lanes unless the comment says otherwise. An
 * instruction with a guard is made between guard_begin and guard_end; its effects happen only where
 * the guard holds. After branch, ret and exit the builder stands in code that is never reached, or
 * that only the lanes reach whose guard does not hold.
 */
struct hed_lower_shape {
    enum hed_ptx_made made;
    const struct hed_lower_shape *functions; /* for functions other than the kernel; NULL: this */

    /* Declares the LLVM function of a PTX function, with its type. */
    LLVMValueRef (*declare)(struct hed_lower *l, const struct hed_ptx_func *f);
    /* Begins the body: the builder is in the entry block, ptx and value are set. Sets warp,
     * params, rets, vars, state, and whatever else it needs; grid, block and ctaid if it has them.
     */
    void (*enter)(struct hed_lower *l);
    /* Makes all of the body, if not NULL. Otherwise lower.c makes registers, calls start, and goes
     * from statement to statement. */
    void (*body)(struct hed_lower *l);
    /* Register parameters have been declared; the first statement follows. */
    void (*start)(struct hed_lower *l);
    /* Ends the body, whether or not its last statement was a ret, and frees state. Called after
     * enter even if something failed. */
    void (*leave)(struct hed_lower *l);
    /* Makes what goes around the kernel, when all functions have been made; may be NULL. */
    void (*finish)(struct hed_lower *l);
    void (*label)(struct hed_lower *l, const struct hed_ptx_label *label);
    void (*guard_begin)(struct hed_lower *l, LLVMValueRef holds);
    void (*guard_end)(struct hed_lower *l);

    void (*branch)(struct hed_lower *l, const struct hed_ptx_label *to);
    /* brx.idx: index is i32. An index outside of the table may go anywhere. */
    void (*branch_table)(struct hed_lower *l, LLVMValueRef index, const struct hed_ptx_table *to);
    void (*ret)(struct hed_lower *l);
    void (*exit)(struct hed_lower *l);
    /* callee is a function with a body; if it is NULL, `pointer` (i64) says which to call. */
    void (*call)(struct hed_lower *l, const struct hed_ptx_func *callee, LLVMValueRef pointer,
                 const struct hed_ptx_sig *sig, const struct hed_ptx_operand *rets,
                 const struct hed_ptx_operand *args);
    /* Calls hed_rt_trap where the condition (i1; NULL means always) holds. */
    void (*trap)(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap);

    /* Writes a slot (an alloca with lanes) where the code is active. */
    void (*assign)(struct hed_lower *l, LLVMValueRef slot, LLVMValueRef v);
    /* Read and write a register, if not NULL. Otherwise every register has a slot. */
    LLVMValueRef (*read)(struct hed_lower *l, const struct hed_ptx_reg *r);
    void (*write)(struct hed_lower *l, const struct hed_ptx_reg *r, LLVMValueRef v);
    /* May a float in this register be any NaN, because nobody can tell? NULL: never. */
    bool (*takes_any_nan)(struct hed_lower *l, const struct hed_ptx_reg *r);
    /* Hides what LLVM may know about an operand of the instruction that makes `to`, if the shape
     * relies on that being computed. NULL: never. */
    LLVMValueRef (*hide)(struct hed_lower *l, const struct hed_ptx_reg *to, LLVMValueRef v);
    LLVMValueRef (*tid)(struct hed_lower *l, unsigned dimension); /* i32 */
    LLVMValueRef (*lane)(struct hed_lower *l);                    /* i32: %laneid */
    LLVMValueRef (*address)(struct hed_lower *l, const struct hed_lower_place *at); /* i64 */
    void (*load)(struct hed_lower *l, const struct hed_lower_place *at,
                 const struct hed_lower_access *how, LLVMValueRef *out);
    void (*store)(struct hed_lower *l, const struct hed_lower_place *at,
                  const struct hed_lower_access *how, LLVMValueRef *in);
    /* Runs code for each active lane, in order: atomics, calls of the runtime. results[i] has the
     * type types[i], which is that of one lane. */
    void (*each)(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                 unsigned nargs, const LLVMTypeRef *types, LLVMValueRef *results,
                 unsigned nresults);
    /* The same for code that is a few instructions long and may be repeated; NULL: use each. */
    void (*each_short)(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                       unsigned nargs, const LLVMTypeRef *types, LLVMValueRef *results,
                       unsigned nresults);
    /* Runs the code of an atomic operation, whose args are the address and the value, once for all
     * active lanes. Returns false and makes nothing if they go to several addresses, if somebody
     * reads the result, or if the operation has no such form. NULL: never. */
    bool (*once)(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                 const struct hed_lower_place *at, const struct hed_ptx_operand *result,
                 enum hed_ptx_oper op, bool is_signed);

    /* Barriers; id and threads are i32. barrier_reduce gives i32: 0 or 1, or the count. */
    void (*barrier)(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
    void (*barrier_arrive)(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
    LLVMValueRef (*barrier_reduce)(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads,
                                   LLVMValueRef predicate, enum hed_rt_reduce op);
    /* Operations among the lanes of a warp; mask is i32. A NULL mask stands for the active lanes:
     * the old forms without .sync. Predicates are i1. */
    LLVMValueRef (*shfl)(struct hed_lower *l, enum hed_rt_shfl mode, LLVMValueRef value,
                         LLVMValueRef b, LLVMValueRef c, LLVMValueRef mask, LLVMValueRef *inside);
    LLVMValueRef (*vote)(struct hed_lower *l, enum hed_rt_vote mode, LLVMValueRef predicate,
                         LLVMValueRef mask); /* i32: 0 or 1, or the ballot */
    LLVMValueRef (*match)(struct hed_lower *l, LLVMValueRef value64, LLVMValueRef mask,
                          LLVMValueRef *same); /* same: NULL for .any */
    LLVMValueRef (*redux)(struct hed_lower *l, enum hed_rt_redux op, LLVMValueRef value,
                          LLVMValueRef mask);
    LLVMValueRef (*activemask)(struct hed_lower *l);
    LLVMValueRef (*elect)(struct hed_lower *l, LLVMValueRef mask, LLVMValueRef *elected);
    void (*warp_sync)(struct hed_lower *l, LLVMValueRef mask);
    /* i1: do all 32 lanes run? NULL: the shape makes no code for that case alone. */
    LLVMValueRef (*all_run)(struct hed_lower *l);
    /* Calls `helper`, of type hed_rt_together. Each lane's data are nin words, taken from `in`, and
     * after them nout words, which become `out`. */
    void (*together)(struct hed_lower *l, const char *helper, LLVMValueRef mask, uint64_t arg,
                     LLVMValueRef *in, unsigned nin, LLVMValueRef *out, unsigned nout);
    void (*nanosleep)(struct hed_lower *l, LLVMValueRef ns);
};

extern const struct hed_lower_shape hed_lower_warp;
extern const struct hed_lower_shape hed_lower_mask;

/* Makes all of the kernel's code in l->module. l->err is 0 on success. */
void hed_lower_unit(struct hed_lower *l);

/* Makes the code of one instruction. */
void hed_lower_inst(struct hed_lower *l, const struct hed_ptx_inst *i);

/* Stops the compilation with HED_ENOTSUP. The reason is preceded by the instruction's text,
 * function and line. */
void hed_lower_refuse(struct hed_lower *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- types and constants --------------------------------------------------------------------- */

/* T with lanes: T or <32 x T>. */
LLVMTypeRef hed_lower_lanes(struct hed_lower *l, LLVMTypeRef t);
/* One lane's integer type for a PTX type: i32 for .f32 and .f16x2, i1 for .pred. */
LLVMTypeRef hed_lower_int_type(struct hed_lower *l, enum hed_ptx_type t);
/* One lane's LLVM type for .f16 .f32 .f64; NULL for bf16, which has none. */
LLVMTypeRef hed_lower_float_type(struct hed_lower *l, enum hed_ptx_type t);
/* The same constant for every lane; t is one lane's type. */
LLVMValueRef hed_lower_int(struct hed_lower *l, LLVMTypeRef t, uint64_t value);
LLVMValueRef hed_lower_float(struct hed_lower *l, LLVMTypeRef t, double value);

/* ---- operands -------------------------------------------------------------------------------- */

/* The value of a source operand as an integer of the width of t, with lanes. Registers of another
 * width are truncated or extended by PTX's rules for mixed sizes (with the sign if t is signed).
 * Immediates become constants of type t. Negated predicates are inverted. */
LLVMValueRef hed_lower_get(struct hed_lower *l, const struct hed_ptx_operand *o,
                           enum hed_ptx_type t);

/* Writes a destination operand: a register, or `_`, which drops the value. v is an integer of the
 * width of t, with lanes; it is extended for wider registers, with the sign if t is signed. */
void hed_lower_set(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t,
                   LLVMValueRef v);

/* The carry flag of add.cc and the like: i1, with lanes. */
LLVMValueRef hed_lower_get_carry(struct hed_lower *l);
void hed_lower_set_carry(struct hed_lower *l, LLVMValueRef v);

/* ---- building -------------------------------------------------------------------------------- */

/* Calls an overloaded intrinsic: hed_lower_intrinsic(l, "llvm.ctpop", t, args, n). t is the type
 * that it is overloaded on, with lanes. */
LLVMValueRef hed_lower_intrinsic(struct hed_lower *l, const char *name, LLVMTypeRef t,
                                 LLVMValueRef *args, unsigned n);

/* Calls a function of hed_ptx_helpers, by name, for every lane. args have lanes; `result` is one
 * lane's type. The function must have no effect other than its result. */
LLVMValueRef hed_lower_helper(struct hed_lower *l, const char *name, LLVMTypeRef result,
                              LLVMValueRef *args, unsigned n);

LLVMValueRef hed_lower_select(struct hed_lower *l, LLVMValueRef c, LLVMValueRef yes,
                              LLVMValueRef no);

/* Makes the result of the instruction from its operands, for l->lanes lanes. It may depend on
 * nothing but them and the instruction's form, and makes no blocks. */
typedef LLVMValueRef (*hed_lower_make)(struct hed_lower *l, LLVMValueRef *args, unsigned n);

/* The same for all lanes, but in a function of its own that all instructions of this form call;
 * `result` is one lane's type, with 8 bits or more. */
LLVMValueRef hed_lower_apart(struct hed_lower *l, LLVMValueRef *args, unsigned n,
                             LLVMTypeRef result, hed_lower_make make);

/* A 32-bit constant without lanes. */
LLVMValueRef hed_lower_word(struct hed_lower *l, uint64_t value);
/* A value without lanes, given to all lanes. */
LLVMValueRef hed_lower_splat(struct hed_lower *l, LLVMValueRef v);
/* A vector of n elements of v: number `from`, and every step-th after it. */
LLVMValueRef hed_lower_elements(struct hed_lower *l, LLVMValueRef v, unsigned from, unsigned step,
                                unsigned n);
/* The elements of a, then those of b. */
LLVMValueRef hed_lower_concatenate(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b);
/* A new basic block at the end of the function. */
LLVMBasicBlockRef hed_lower_block(struct hed_lower *l, const char *name);
/* A conditional branch that hardly ever goes to `yes`. */
void hed_lower_unlikely(struct hed_lower *l, LLVMValueRef condition, LLVMBasicBlockRef yes,
                        LLVMBasicBlockRef no);
/* The alignment, in bytes, of memory through which vectors pass: one that is written at once and
 * read in pieces is in the store buffer only if it lies in one line of the cache. */
#define HED_LOWER_LINE 64
/* An alloca of `count` elements in the entry block; align 0 leaves the alignment to LLVM. */
LLVMValueRef hed_lower_alloca(struct hed_lower *l, LLVMTypeRef t, uint64_t count, unsigned align);
/* sandbox.c: the pointer of an address without lanes, i64, or of what it stands for in the address
 * sandbox of a confined kernel. All pointers that code makes of numbers come from here. */
LLVMValueRef hed_lower_pointer(struct hed_lower *l, LLVMValueRef address);
/* What addresses stand for that a function in C gets; i64, with lanes or without. */
LLVMValueRef hed_lower_in_sandbox(struct hed_lower *l, LLVMValueRef addresses);
/* May this many bytes be added to the place of a variable? If not, refuses. */
bool hed_lower_reaches(struct hed_lower *l, int64_t distance);
/* Memory for a variable of the function, for as long as it runs: an alloca, or in the address
 * sandbox. */
LLVMValueRef hed_lower_local(struct hed_lower *l, uint64_t bytes, unsigned align);
/* ptr + bytes. */
LLVMValueRef hed_lower_at(struct hed_lower *l, LLVMValueRef ptr, int64_t bytes);
/* Loads a field of grid, block or warp that does not change while the kernel runs; no lanes. */
LLVMValueRef hed_lower_field(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef ptr, size_t offset);
/* Calls a function of the runtime (abi.h); nothing has lanes. The warp is passed only if it is
 * among args. */
LLVMValueRef hed_lower_runtime(struct hed_lower *l, const char *name, LLVMTypeRef result,
                               LLVMValueRef *args, unsigned n);
/* Does the machine multiply and add in one instruction? */
bool hed_lower_has_fma(const struct hed_lower *l);
/* Was the compiler told that the machine has a feature (LLVM's name)? */
bool hed_lower_has(const struct hed_lower *l, const char *feature);
/* Calls hed_rt_trap(warp, trap, line), which does not return. */
void hed_lower_trap(struct hed_lower *l, LLVMValueRef args[3]);
/* The convention of functions that are called where things are not as usual: they keep vector
 * registers, so that code around the call need not keep its values in memory. */
#if defined(__aarch64__)
#define HED_LOWER_RARE 97 /* aarch64_vector_pcs; LLVM's C interface has no name for it */
#else
#define HED_LOWER_RARE LLVMCCallConv
#endif
/* Gives a function one of LLVM's attributes, by name; ignores one that LLVM does not know. */
void hed_lower_attribute(struct hed_lower *l, LLVMValueRef f, const char *name, uint64_t value);
void hed_lower_text_attribute(struct hed_lower *l, LLVMValueRef f, const char *name,
                              const char *value);
/* Declares a PTX function in the module; the shape chooses the type, or name and type. */
LLVMValueRef hed_lower_declare(struct hed_lower *l, const struct hed_ptx_func *f, LLVMTypeRef type);
LLVMValueRef hed_lower_declare_as(struct hed_lower *l, const char *name, LLVMTypeRef type);
/* The declaration of a runtime function or helper, added to the module on first use. */
LLVMValueRef hed_lower_external(struct hed_lower *l, const char *name, LLVMTypeRef type);
/* Widens or truncates integers, with or without lanes, to the width of t. */
LLVMValueRef hed_lower_resize(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t, bool is_signed);
/* The value of a special register: i1, i32 or i64, with lanes. */
LLVMValueRef hed_lower_sreg(struct hed_lower *l, const struct hed_ptx_operand *o);
/* The address of a function, or of a variable in its own space: i64, with lanes. */
LLVMValueRef hed_lower_address_of(struct hed_lower *l, const struct hed_ptx_operand *o);
/* The place that a memory operand names; space is the instruction's. Makes code that checks the
 * alignment if the options ask for it and the alignment is not known. */
struct hed_lower_place hed_lower_place(struct hed_lower *l, const struct hed_ptx_operand *o,
                                       enum hed_ptx_space space, unsigned align);
/* The address of a place in a register: i64, with lanes. Shapes with lanes ask for it only where a
 * vector of addresses is needed, so that LLVM need not keep one for the fast ways. */
LLVMValueRef hed_lower_place_address(struct hed_lower *l, const struct hed_lower_place *at);
/* The slot of a register, or of element n of a vector register. */
LLVMValueRef hed_lower_slot(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned n);

/* The argument that operand o of a call passes: i32 or i64, as t says, with lanes. */
LLVMValueRef hed_lower_argument(struct hed_lower *l, const struct hed_ptx_operand *o,
                                LLVMTypeRef t);

/* A map from pointers to pointers. Adding a key again replaces its value. */
struct hed_lower_map *hed_lower_map_new(void);
void hed_lower_map_add(struct hed_lower *l, struct hed_lower_map *m, const void *key, void *value);
void *hed_lower_map_get(const struct hed_lower_map *m, const void *key);
void hed_lower_map_free(struct hed_lower_map *m);
