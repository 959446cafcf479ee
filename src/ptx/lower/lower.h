/* From PTX to LLVM IR: what the files of the code generators share.
 *
 *   compile.c       module set-up, passes, object file
 *   lower.c         functions, blocks, registers, operands; hands each instruction to its family
 *   lower_scalar.c  the scalar shape: a function runs one thread
 *   lower_warp.c    the warp shape: a function runs 32 lanes under a mask
 *   lower_integer.c lower_float.c lower_half.c lower_convert.c lower_bits.c lower_video.c
 *                   instructions that compute: one code for both shapes, because LLVM's operations
 *                   work on a value and on a vector of 32 values alike
 *   lower_move.c lower_memory.c lower_atomic.c lower_call.c lower_sync.c lower_matrix.c ...
 *                   instructions that do more: they work out operands and addresses, and leave to
 *                   the shape what differs
 *   lower_wait.c    which loops may wait for other threads
 *
 * Values are integers of the register's width (i1 for predicates), or vectors of 32 of these:
 * floating point is a bitcast away, and PTX's rules on .bN registers cost nothing. "Lanes" below
 * means: a plain value in the scalar shape, <32 x T> in the warp shape.
 *
 * Numerics are exact: no fast-math flag, no contraction, no mode switching.
 */
#pragma once

#include <llvm-c/Core.h>
#include <stdbool.h>
#include <stdint.h>

#include "ptx/lower/compile.h"
#include "ptx/ptx.h"
#include "ptx/run/abi.h"

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
    LLVMBuilderRef b; /* at the place where code goes now */
    LLVMTypeRef i1, i8, i16, i32, i64, i128, f16, f32, f64, ptr, nothing; /* one lane */

    struct hed_lower_map *places;        /* variable -> its index in grid->vars, or its offset in
                                          * shared memory */
    struct hed_lower_map *functions;     /* function -> LLVM function */
    LLVMValueRef function_table;         /* pointers by function index; NULL until it is wanted */
    struct hed_lower_function *function; /* the one being made: lower.c */
    const struct hed_ptx_inst *inst;     /* the instruction being made */
    struct hed_ptx_info info;

    int err; /* sticky: the first failure; why is set */
    struct hed_why *why;
};

/* The function that is being made. */
struct hed_lower_function {
    const struct hed_ptx_func *ptx;
    LLVMValueRef value;
    LLVMBasicBlockRef entry;    /* begins with all allocas; ends in a branch to the code */
    LLVMValueRef strand;        /* ptr: struct hed_ptx_strand */
    LLVMValueRef grid;          /* ptr: struct hed_ptx_grid */
    LLVMValueRef block;         /* ptr: struct hed_ptx_block */
    LLVMValueRef shared;        /* ptr: the block's shared memory */
    LLVMValueRef params;        /* ptr: of a kernel, grid->params; else the shape's business */
    LLVMValueRef rets;          /* ptr: the shape's business */
    LLVMValueRef **regs;        /* slots by id; a vector register has several */
    LLVMValueRef carry;         /* slot */
    struct hed_lower_map *vars; /* variable of the function -> ptr: the shape's business */
    const struct hed_ptx_label **labels; /* by id */
    bool *waits; /* by label id: some branch back to it closes a loop that may wait */
    void *state; /* the shape's */
};

/* Where an access goes. One of var, base and address is set. */
struct hed_lower_place {
    const struct hed_ptx_var *var; /* of the function, local or param; each lane has its own */
    LLVMValueRef base;             /* ptr: the same for all lanes */
    LLVMValueRef address;          /* i64, lanes: a host address, offset included */
    int64_t offset;                /* bytes from var or base */
};

/* How it goes. */
struct hed_lower_access {
    LLVMTypeRef type;         /* of an element, one lane: an integer type of 8 bits and more */
    unsigned count;           /* elements, one behind the other */
    unsigned align;           /* bytes that may be taken for granted */
    LLVMAtomicOrdering order; /* LLVMAtomicOrderingNotAtomic for plain accesses */
    bool is_volatile;
    bool is_constant; /* nothing writes there while the kernel runs */
};

/* Makes the code of one lane: args and results have no lanes. */
typedef void (*hed_lower_each)(struct hed_lower *l, void *arg, LLVMValueRef *args,
                               LLVMValueRef *results);

/* What differs between a strand of one thread and one of 32. All are called with the builder where
 * code goes, and leave it there. Values have lanes unless something else is said. Guards: begin is
 * called before the code of an instruction with a guard, end behind it; effects in between happen
 * only where the guard holds. Behind what never returns (branch, ret, exit) the builder stands in
 * code that nobody reaches, or that the guard's other lanes reach.
 */
struct hed_lower_shape {
    unsigned lanes;
    bool checks_moves; /* load and store see for themselves whether addresses are aligned */

    /* The LLVM function of a PTX function: declared, with its type. */
    LLVMValueRef (*declare)(struct hed_lower *l, const struct hed_ptx_func *f);
    /* Begins the body: entry exists and the builder is in it, ptx and value are set; sets strand,
     * params, rets, vars, state, and what it wants more. */
    void (*enter)(struct hed_lower *l);
    /* Register parameters have been declared; the first statement follows. */
    void (*start)(struct hed_lower *l);
    /* Ends the body, whose last statement may or may not have been a ret. Frees state; called even
     * after failures once enter was. */
    void (*leave)(struct hed_lower *l);
    void (*label)(struct hed_lower *l, const struct hed_ptx_label *label);
    void (*guard_begin)(struct hed_lower *l, LLVMValueRef holds);
    void (*guard_end)(struct hed_lower *l);

    void (*branch)(struct hed_lower *l, const struct hed_ptx_label *to);
    /* brx.idx: index is i32; what is out of the table goes anywhere. */
    void (*branch_table)(struct hed_lower *l, LLVMValueRef index, const struct hed_ptx_table *to);
    void (*ret)(struct hed_lower *l);
    void (*exit)(struct hed_lower *l);
    /* callee: a function with a body, or NULL and pointer (i64) says which. */
    void (*call)(struct hed_lower *l, const struct hed_ptx_func *callee, LLVMValueRef pointer,
                 const struct hed_ptx_sig *sig, const struct hed_ptx_operand *rets,
                 const struct hed_ptx_operand *args);
    /* hed_rt_trap where the condition (i1; NULL: always) holds. */
    void (*trap)(struct hed_lower *l, LLVMValueRef condition, enum hed_ptx_trap trap);

    /* Writes a slot (an alloca with lanes) where the code is active. */
    void (*assign)(struct hed_lower *l, LLVMValueRef slot, LLVMValueRef v);
    LLVMValueRef (*tid)(struct hed_lower *l, unsigned dimension); /* i32 */
    LLVMValueRef (*lane)(struct hed_lower *l);                    /* i32: %laneid */
    LLVMValueRef (*address)(struct hed_lower *l, const struct hed_lower_place *at); /* i64 */
    void (*load)(struct hed_lower *l, const struct hed_lower_place *at,
                 const struct hed_lower_access *how, LLVMValueRef *out);
    void (*store)(struct hed_lower *l, const struct hed_lower_place *at,
                  const struct hed_lower_access *how, LLVMValueRef *in);
    /* Runs code for each active lane, in order: atomics, calls of the runtime. results are of
     * types[i] (one lane's). */
    void (*each)(struct hed_lower *l, hed_lower_each fn, void *arg, LLVMValueRef *args,
                 unsigned nargs, const LLVMTypeRef *types, LLVMValueRef *results,
                 unsigned nresults);

    /* Barriers; id and threads are i32. reduce answers i32 (0 or 1, or the count). */
    void (*barrier)(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
    void (*barrier_arrive)(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads);
    LLVMValueRef (*barrier_reduce)(struct hed_lower *l, LLVMValueRef id, LLVMValueRef threads,
                                   LLVMValueRef predicate, enum hed_rt_reduce op);
    /* Among the lanes of a warp; mask is i32. A NULL mask: the old forms without .sync, which mean
     * the lanes that are active. Predicates are i1. */
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
    /* `helper`, of type hed_rt_together, with 32-bit words in and out: a lane's data begins with
     * nin words, which are in's, and nout words are behind it, which become out's. */
    void (*together)(struct hed_lower *l, const char *helper, LLVMValueRef mask, uint64_t arg,
                     LLVMValueRef *in, unsigned nin, LLVMValueRef *out, unsigned nout);
    void (*nanosleep)(struct hed_lower *l, LLVMValueRef ns);
};

extern const struct hed_lower_shape hed_lower_scalar;
extern const struct hed_lower_shape hed_lower_warp;

/* Makes all of the kernel's code in l->module. l->err says how it went. */
void hed_lower_unit(struct hed_lower *l);

/* Stops the compilation: HED_ENOTSUP with the instruction's text, function and line in front. */
void hed_lower_refuse(struct hed_lower *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- types and constants --------------------------------------------------------------------- */

/* T with lanes: T or <32 x T>. */
LLVMTypeRef hed_lower_lanes(struct hed_lower *l, LLVMTypeRef t);
/* The integer type of a PTX type, one lane: i32 of .f32, i32 of .f16x2, i1 of .pred. */
LLVMTypeRef hed_lower_int_type(struct hed_lower *l, enum hed_ptx_type t);
/* One lane's LLVM floating type of .f16 .f32 .f64 (bf16 has none: NULL). */
LLVMTypeRef hed_lower_float_type(struct hed_lower *l, enum hed_ptx_type t);
/* A constant for every lane; t is one lane's type. */
LLVMValueRef hed_lower_int(struct hed_lower *l, LLVMTypeRef t, uint64_t value);
LLVMValueRef hed_lower_float(struct hed_lower *l, LLVMTypeRef t, double value);

/* ---- operands -------------------------------------------------------------------------------- */

/* The value of a source operand as an integer of the width of `t`, lanes. Registers of another
 * width are cut or extended as PTX's rules for mixed sizes say (signed for signed t). Immediates
 * become what t wants (a double for .f64, ...). Negated predicates are inverted. */
LLVMValueRef hed_lower_get(struct hed_lower *l, const struct hed_ptx_operand *o,
                           enum hed_ptx_type t);

/* Writes a destination operand: a register (or `_`, which drops it). v is an integer of t's width,
 * lanes; wider registers are extended (by t's sign). */
void hed_lower_set(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t,
                   LLVMValueRef v);

/* The same as floating point: .f16, .f32, .f64. */
LLVMValueRef hed_lower_get_float(struct hed_lower *l, const struct hed_ptx_operand *o,
                                 enum hed_ptx_type t);
void hed_lower_set_float(struct hed_lower *l, const struct hed_ptx_operand *o, enum hed_ptx_type t,
                         LLVMValueRef v);

/* The carry flag of add.cc and its kind: i1, lanes. */
LLVMValueRef hed_lower_get_carry(struct hed_lower *l);
void hed_lower_set_carry(struct hed_lower *l, LLVMValueRef v);

/* ---- building -------------------------------------------------------------------------------- */

/* Calls an overloaded intrinsic: hed_lower_intrinsic(l, "llvm.ctpop", t, args, n), t (with lanes)
 * being what it is overloaded on. */
LLVMValueRef hed_lower_intrinsic(struct hed_lower *l, const char *name, LLVMTypeRef t,
                                 LLVMValueRef *args, unsigned n);

/* Calls a function of hed_ptx_helpers by name for every lane. args have lanes; `result` is one
 * lane's type. It must have no effect but its result. */
LLVMValueRef hed_lower_helper(struct hed_lower *l, const char *name, LLVMTypeRef result,
                              LLVMValueRef *args, unsigned n);

LLVMValueRef hed_lower_select(struct hed_lower *l, LLVMValueRef c, LLVMValueRef yes,
                              LLVMValueRef no);

/* A number of 32 bits, no lanes. */
LLVMValueRef hed_lower_word(struct hed_lower *l, uint64_t value);
/* One value for all lanes. */
LLVMValueRef hed_lower_splat(struct hed_lower *l, LLVMValueRef v);
/* A basic block at the end of the function. */
LLVMBasicBlockRef hed_lower_block(struct hed_lower *l, const char *name);
/* An alloca in the entry block; count is that of bytes when t is i8. */
LLVMValueRef hed_lower_alloca(struct hed_lower *l, LLVMTypeRef t, uint64_t count, unsigned align);
/* ptr + bytes. */
LLVMValueRef hed_lower_at(struct hed_lower *l, LLVMValueRef ptr, int64_t bytes);
/* Loads a field of grid, block or strand that does not change while the kernel runs; no lanes. */
LLVMValueRef hed_lower_field(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef ptr, size_t offset);
/* Calls a function of the runtime (abi.h); nothing has lanes. The strand is no argument of its own
 * accord. */
LLVMValueRef hed_lower_runtime(struct hed_lower *l, const char *name, LLVMTypeRef result,
                               LLVMValueRef *args, unsigned n);
/* Gives a function one of LLVM's attributes by name; one that LLVM does not know is left out. */
void hed_lower_attribute(struct hed_lower *l, LLVMValueRef f, const char *name, uint64_t value);
/* A function of the PTX, declared in the module with the shape's type. */
LLVMValueRef hed_lower_declare(struct hed_lower *l, const struct hed_ptx_func *f, LLVMTypeRef type);
/* A function or helper as it is declared in the module, made on first use. */
LLVMValueRef hed_lower_external(struct hed_lower *l, const char *name, LLVMTypeRef type);
/* Widens or cuts integers, lanes or not, to the type of one lane t. */
LLVMValueRef hed_lower_resize(struct hed_lower *l, LLVMValueRef v, LLVMTypeRef t, bool is_signed);
/* The value of a special register: i1, i32 or i64, lanes. */
LLVMValueRef hed_lower_sreg(struct hed_lower *l, const struct hed_ptx_operand *o);
/* The address of a variable (in its own space) or function: i64, lanes. */
LLVMValueRef hed_lower_address_of(struct hed_lower *l, const struct hed_ptx_operand *o);
/* The place a memory operand names; space is the instruction's. Checks the alignment where that is
 * wanted and not known. */
struct hed_lower_place hed_lower_place(struct hed_lower *l, const struct hed_ptx_operand *o,
                                       enum hed_ptx_space space, unsigned align);
/* The slot of a register, of element n of a vector register. */
LLVMValueRef hed_lower_slot(struct hed_lower *l, const struct hed_ptx_reg *r, unsigned n);
/* The value of parameter `sig` as passed by operand o of a call: i32 or i64 as t says, lanes. */
LLVMValueRef hed_lower_argument(struct hed_lower *l, const struct hed_ptx_operand *o,
                                LLVMTypeRef t);

/* Pointers to pointers. Adding what is there replaces it. */
struct hed_lower_map *hed_lower_map_new(void);
void hed_lower_map_add(struct hed_lower *l, struct hed_lower_map *m, const void *key, void *value);
void *hed_lower_map_get(const struct hed_lower_map *m, const void *key);
void hed_lower_map_free(struct hed_lower_map *m);

/* Sets function->waits, and says whether the function holds a loop that may wait: lower_wait.c */
bool hed_lower_find_waits(struct hed_lower *l);

/* ---- families: each makes the code of l->inst; false: the instruction is none of theirs ------ */

bool hed_lower_integer(struct hed_lower *l); /* add sub mul mad mul24 mad24 sad div rem abs neg min
                                              * max addc subc madc, of integer types */
bool hed_lower_bits(struct hed_lower *l);    /* and or xor not cnot lop3 shl shr shf popc clz bfind
                                              * fns brev bfe bfi szext bmsk prmt dp4a dp2a */
bool hed_lower_real(struct hed_lower *l);    /* floating arithmetic and functions, f16 and bf16 */
bool hed_lower_choose(struct hed_lower *l);  /* set setp selp slct testp copysign */
bool hed_lower_convert(struct hed_lower *l); /* cvt cvt.pack */
bool hed_lower_video(struct hed_lower *l);   /* vadd ... vset4 */
bool hed_lower_move(struct hed_lower *l);    /* mov cvta isspacep mapa getctarank: lower.c's side */
bool hed_lower_memory(struct hed_lower *l);  /* ld ldu st prefetch cp.async ... alloca */
bool hed_lower_atomic(struct hed_lower *l);  /* atom red fence membar */
bool hed_lower_sync(struct hed_lower *l);    /* barriers, shfl vote match redux activemask elect */
bool hed_lower_control(struct hed_lower *l); /* bra brx ret exit trap call */
bool hed_lower_barrier(struct hed_lower *l); /* mbarrier, cp.async, clusters */
bool hed_lower_matrix(struct hed_lower *l);  /* ldmatrix stmatrix movmatrix mma wmma */
bool hed_lower_texture(struct hed_lower *l); /* tex tld4 txq suld sust sured suq */
