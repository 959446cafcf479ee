/* Inside the lifter: one kernel at a time.
 *
 *   targets.c  what instructions do to the flow, and where branches and calls through registers
 *              can go
 *   flow.c     blocks of machine code, subroutines repeated for each call
 *   shared.c   subroutines that are not repeated, if that would be too much
 *   split.c    copies blocks, so that every loop has one entry
 *   order.c    puts them into an order in which loops are contiguous and joins come after what
 *              they join
 *   converge.c where lanes of a warp meet again, for a GPU
 *   kernel.c   writes the kernel, twice: the first time to learn what each block does to pairs of
 *              registers and to predicates, the second time for real
 *   write.c    statements, registers, operands
 *   bank.c     what constant banks hold
 *   window.c   generic addresses of shared memory
 *   tidy.c     removes temporaries that are only moved
 *   pair.c     two registers as one 64-bit value
 *   fuse.c     two instructions that are halves of one 64-bit operation
 *   far.c      functions that are lifted when they are called
 *   family files: what instructions mean; table.c says which function lifts which
 *
 * Registers of the machine keep their numbers: R5 is %r5, UR5 is %u5, P0 is %p0, UP0 is %v0. The
 * pair R4, R5 has a wide register %d4 (UR4, UR5: %e4): both as one value, wherever it is valid.
 * %result is what the last BAR.RED answered, %members the lanes of a group. Everything else is a
 * temporary that is written once:
 * %t (32 bits), %q (64), %x (predicate), %h (16).
 *
 * The rules for a function of a family:
 * 1. Fetch all sources first (hed_lift_u32 and so on): they may emit statements, and their text is
 *    valid until the instruction ends. Then ask for the places of results (hed_lift_def and so
 *    on), then write them.
 * 2. hed_lift_put() writes a statement under the instruction's guard: everything that changes a
 *    register of the machine or memory. hed_lift_calc() writes one without: only temporaries.
 * 3. A result may be a source: if there are several results, compute all of them in temporaries
 *    first.
 * 4. What cannot be lifted is refused by name (hed_lift_refuse).
 *
 * On our CPU the order of blocks replaces convergence barriers: where lanes of a warp run in the
 * order of the text, lowest first, those that part meet again at the first block that all of them
 * reach.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "kernel/sass/lift/module.h"
#include "kernel/sass/sass.h"

#define LIFT_NONE UINT32_MAX
#define LIFT_PAIRS (128 + 32) /* of R, then of UR */
#define LIFT_BANK_BYTES 65536 /* of constants */
#define LIFT_TEXT_MAX 16384   /* characters of operands that one instruction may need */
#define LIFT_ALIGN_MAX 16u    /* bytes: of a variable in text for a GPU */

/* Sets of pairs. */
struct lift_pairs {
    uint64_t bits[(LIFT_PAIRS + 63) / 64];
};

/* A block, once for each chain of calls that leads to it. */
struct lift_node {
    uint32_t first, end; /* instructions */
    uint32_t context;    /* of flow.c */
    uint32_t *next;      /* nodes that can follow; the one that is reached without a branch last */
    uint32_t next_count;
    bool falls;     /* the last of them is reached without a branch */
    uint32_t order; /* position in the text */
    int64_t stack;  /* R1 at its beginning; INT64_MIN if it is not known, INT64_MAX at first */
    struct lift_pairs gen;  /* wide registers that are valid at its end */
    struct lift_pairs kill; /* those that are not */
    struct lift_pairs in;   /* those that are valid at its beginning */
    uint16_t live;          /* predicates that are read after it: bits by lift_pred_bit() */
};

struct lift_context {
    uint32_t parent;
    uint32_t callee; /* instruction */
    uint32_t back;   /* instruction after the call */
    uint32_t depth;
    uint32_t calls,
        returns; /* of a subroutine that has one copy: 1 + the last one (flow.h), or 0 */
};

/* The targets of an indirect branch, as .nv.info lists them. */
struct lift_table {
    uint32_t at;   /* the branch, in bytes */
    uint32_t base; /* where its piece begins: targets count from there */
    struct hed_bytes targets;
};

enum lift_jump { LIFT_JUMP_UNKNOWN, LIFT_JUMP, LIFT_NO_JUMP };

struct lift_flow {
    struct lift_node *nodes;
    uint32_t node_count, node_room;
    struct lift_context *contexts;
    uint32_t context_count, context_room;
    uint32_t *order; /* nodes as they are written */
    bool shared;     /* subroutines have one copy each: a return compares its register */
    bool recurses;   /* subroutines call themselves, as far as their stack is concerned */
    bool by_value;   /* calls are not followed: a return compares its register with all places */
    bool calls_by_value; /* there are calls through registers */
    uint8_t *begins;     /* by instruction: a block begins here */
    uint32_t *returns;   /* instructions after calls, by value */
    uint32_t return_count;
    uint32_t *functions; /* instructions at which functions begin, sorted; not those of pieces */
    uint32_t function_count;
    uint32_t inst_count;
    struct lift_table *tables; /* by place */
    uint32_t table_count;
    uint8_t *listed; /* by instruction: scratch of hed_lift_table */
    uint8_t *jumps;  /* by instruction: does nothing return from there? enum lift_jump */
    uint32_t walked; /* instructions, in order to find that out */
    uint32_t *queue; /* scratch of hed_lift_is_jump: instructions, and by instruction: */
    uint8_t *queued; /* it is in the queue */
};

/* Is a pair's wide register valid, and is that since the block's beginning? */
struct lift_pair_state {
    bool valid, gen, kill;
};

/* What fuse.c knows about an instruction: by index. */
struct lift_fused {
    uint32_t other;              /* 1 + the other half of a 64-bit operation; 0 if there is none */
    uint32_t temp;               /* of the first half: the %q that holds the result */
    struct lift_pair_state pair; /* of what may be a first half: of its result, before that */
};

/* What a register holds, within a block: half of a 64-bit value. */
enum lift_note_kind {
    LIFT_NOTE_NONE,
    LIFT_NOTE_CONSTANT, /* key: bank << 20 | offset */
    LIFT_NOTE_PAIR,     /* of the pair that begins with register `key` */
    LIFT_NOTE_SHIFTED,  /* of that pair, shifted left */
    LIFT_NOTE_SIGN,     /* of register `key`: its sign in all bits */
    LIFT_NOTE_LOADED,   /* the low word of a pair that was loaded as one; key as for CONSTANT */
};

struct lift_note {
    uint8_t kind; /* enum lift_note_kind */
    bool high;
    uint8_t by; /* bits shifted */
    uint32_t key;
    uint32_t written; /* when the source was written last */
};

/* Words of local memory, as registers of the text: local.c. */
enum lift_spills {
    LIFT_SPILLS_OPEN, /* they can be, as far as is known */
    LIFT_SPILLS_STAY, /* they cannot */
    LIFT_SPILLS_GO,   /* they are */
};

struct lift {
    const struct hed_sass_program *program;
    struct lift_code code;
    uint32_t number; /* of the kernel */
    enum hed_sass_for use;
    bool in_module;            /* the variables have been declared */
    struct hed_buf *out;       /* where the text goes now */
    struct hed_buf statements; /* of the instruction */
    struct hed_why *why;
    int err;
    struct lift_flow flow;
    bool first_pass;

    /* The instruction that is being lifted. */
    const struct hed_sass_inst *inst;
    uint32_t index;
    struct lift_node *node;
    char guard[16]; /* "@!%p0 ", or "" */
    bool guarded;
    char text[LIFT_TEXT_MAX];
    size_t text_used;

    uint32_t temps[4]; /* handed out: t q x h */

    /* pair.c */
    struct lift_pairs valid; /* wide registers, here */
    struct lift_note notes[256 + 64];
    uint32_t written[256 + 64]; /* 1 + the instruction of this block that wrote it last; 0: none */
    struct lift_fused *fused;   /* by instruction */
    uint32_t carries[16];       /* by predicate: 1 + the instruction that made it; 0 if none */

    /* Predicates, by instruction: what is read and written, and what is read later. */
    uint16_t *pred_uses, *pred_defs, *pred_live;
    uint16_t *pred_skips; /* read only by the half of an operation that does not need it */

    int64_t stack;           /* R1 here; INT64_MIN if it is not known */
    bool stack_unknown;      /* it cannot be known */
    uint32_t local;          /* bytes of local memory */
    enum lift_spills spills; /* words of local memory */
    uint32_t spill_words;    /* how many are */

    uint32_t barriers; /* bits: convergence barriers that are written, as masks */
    bool met;          /* the lanes that run here are those of %members: since the last WARPSYNC */
    bool in_group;     /* and no others run with them: a group, which ends before its block does */
    bool shared_is_generic; /* there are generic addresses that window.c has to tell apart */

    bool is_function; /* what is lifted is a function, not the kernel: far.c */
    uint32_t entry;   /* the instruction at which it begins */
    bool calls_far;   /* it calls functions that are not in its text */

    bool exits_early; /* the label heddle_LX is needed */
    bool uses_local, uses_shared, uses_literals, uses_printf, uses_assert, uses_malloc, uses_free;
    bool uses_condition;
    uint32_t uses_device; /* calls of the device runtime: bits of enum hed_device_call_number */
};

/* The number of a predicate among all: P0 to P6, then UP0 from 8 on. */
static inline unsigned
lift_pred_bit(unsigned reg, bool uniform)
{
    return reg + (uniform ? 8 : 0);
}

/* ---- kernel.c -------------------------------------------------------------------------------- */

typedef void (*lift_fn)(struct lift *l);

/* The number of the architecture whose machine code it is. */
unsigned hed_lift_arch(const struct lift *l);

/* Decodes instruction i. False, and an error, if it is unknown. */
bool hed_lift_decode(struct lift *l, uint32_t i, struct hed_sass_inst *out);

/* table.c: the function that lifts an instruction of that name, or NULL. */
lift_fn hed_lift_find(const char *name);

/* ---- local.c --------------------------------------------------------------------------------- */

/* The address of the thread's local memory: a name or a register. */
const char *hed_lift_local_name(struct lift *l);
/* Between the passes: decides whether words of local memory are registers. */
void hed_lift_judge_spills(struct lift *l);
/* Local memory, or the registers in its place. */
void hed_lift_declare_local(const struct lift *l, struct hed_buf *b);

/* ---- declare.c ------------------------------------------------------------------------------- */

/* The head of a module, and its variables. */
void hed_lift_declare_module(const struct hed_sass_program *p, enum hed_sass_for use,
                             struct hed_buf *b);
/* Everything of a kernel before its statements. */
void hed_lift_declare_kernel(struct lift *l, struct hed_buf *b);
/* The parameter that holds these bytes, as an address; NULL if no single one does. */
const char *hed_lift_param(struct lift *l, int64_t at, unsigned bytes);
/* The name of the block's shared memory. */
const char *hed_lift_shared_name(struct lift *l);
/* The symbol that holds a byte of a variable; NULL if there is none. */
const struct hed_sass_symbol *hed_lift_symbol_at(const struct hed_sass_program *p, uint32_t var,
                                                 int64_t offset);
/* A place in a variable of the program, as an address: "name+8". */
const char *hed_lift_variable(struct lift *l, uint32_t var, int64_t offset);

/* What an instruction does to the flow. */
enum lift_transfer {
    LIFT_GOES_ON,
    LIFT_BRANCHES, /* to a target, or goes on if it has a condition */
    LIFT_BRANCHES_BY_TABLE,
    LIFT_CALLS,
    LIFT_CALLS_BY_VALUE,   /* any function of the same section, by its offset */
    LIFT_CALLS_BY_ADDRESS, /* any function whose address is known somewhere, or one of the system */
    LIFT_RETURNS,
    LIFT_ENDS,
};

/* ---- control.c ------------------------------------------------------------------------------- */

/* The last instruction of a block: branches, calls, returns. True if it was one. */
bool hed_lift_transfer(struct lift *l);
/* The predicate of the guard, perhaps with ! before it; NULL if there is none. */
const char *hed_lift_guard(struct lift *l);
/* The inverse of such a predicate. */
const char *hed_lift_inverse(struct lift *l, const char *pred);
/* A label that no other statement has. */
const char *hed_lift_label(struct lift *l);

/* ---- warp.c ---------------------------------------------------------------------------------- */

/* ATOMS.POPC.INC whose result is used. at: what stands in brackets; index: what lanes differ in, or
 * NULL. */
void hed_lift_count_lanes(struct lift *l, const char *at, const char *index);

/* ---- converge.c ------------------------------------------------------------------------------ */

/* Is there an instruction that counts on lanes being together? */
bool hed_lift_lanes_meet(const struct lift *l);
/* Sets l->barriers. */
void hed_lift_find_meetings(struct lift *l);

/* ---- window.c -------------------------------------------------------------------------------- */

/* Sets l->shared_is_generic. */
void hed_lift_find_window(struct lift *l);

/* ---- far.c ----------------------------------------------------------------------------------- */

/* A call of a function that is not in the text, by its address; without the guard. */
void hed_lift_call_far(struct lift *l, const struct hed_sass_operand *to);
/* What such calls, and such functions, need to have declared. */
void hed_lift_declare_far(const struct lift *l, struct hed_buf *b);
/* The first statements of a function, and the last ones. */
void hed_lift_enter_function(struct hed_buf *b);
void hed_lift_leave_function(struct lift *l);

/* ---- grid.c ---------------------------------------------------------------------------------- */

/* Functions of the system that are written in their place. arguments are registers; result is a
 * new one. */
/* What the name of a call of the device runtime begins with. call.c */
const char *hed_lift_device_prefix(unsigned number);
void hed_lift_grid_handle(struct lift *l, const char *const *arguments, const char *result);
void hed_lift_grid_sync(struct lift *l, const char *const *arguments, const char *result);
void hed_lift_grid_size(struct lift *l, const char *const *arguments, const char *result);
void hed_lift_grid_rank(struct lift *l, const char *const *arguments, const char *result);

/* ---- flow.c ---------------------------------------------------------------------------------- */

/* HED_ENOTSUP, HED_ELIMIT, HED_ENOMEM. */
int hed_lift_flow(struct lift *l);
enum lift_transfer hed_lift_transfer_of(const struct lift *l, const struct hed_sass_inst *inst);
/* split.c: copies blocks so that loops have one entry. HED_ENOMEM. */
int hed_lift_split(struct lift_flow *f);
/* order.c: sets f->order and the nodes' positions. HED_ENOMEM, HED_ELIMIT. */
int hed_lift_order(struct lift_flow *f);
void hed_lift_flow_fini(struct lift_flow *f);
/* The instruction that a branch goes to; LIFT_NONE if it is outside of the code. */
uint32_t hed_lift_target(const struct lift *l, const struct hed_sass_inst *inst, uint32_t index);
/* The functions that a call through a register can reach, and the places behind calls that a return
 * can go to: instructions. Those in the same piece, or all that have an address. */
const uint32_t *hed_lift_callees(const struct lift *l, uint32_t index, bool by_address,
                                 uint32_t *count);
const uint32_t *hed_lift_returns(const struct lift *l, uint32_t index, bool by_address,
                                 uint32_t *count);
/* Is it a branch that depends on the uniform predicate in bits 24 to 27? */
bool hed_lift_has_uniform_condition(const struct hed_sass_inst *inst);
/* Can it happen that it does nothing? */
bool hed_lift_is_conditional(const struct hed_sass_inst *inst);
/* Does a call or a return go to an address, not to an offset in its section? */
bool hed_lift_is_absolute(const struct hed_sass_inst *inst);

/* ---- targets.c ------------------------------------------------------------------------------- */

/* Set f->tables and f->functions. HED_ENOMEM. */
int hed_lift_read_tables(struct lift *l);
int hed_lift_find_functions(struct lift *l);
/* Is the call `index`, which goes to an instruction, a jump? Nothing returns to behind it. */
bool hed_lift_is_jump(struct lift *l, const struct hed_sass_inst *inst, uint32_t index,
                      uint32_t to);
/* The targets of an indirect branch, by .nv.info: sets count, and returns them in memory that the
 * caller frees. NULL if there are none. */
uint32_t *hed_lift_table(const struct lift *l, uint32_t index, uint32_t *count);

/* ---- write.c --------------------------------------------------------------------------------- */

/* Refuses the instruction: "NAME: reason". */
void hed_lift_refuse(struct lift *l, const char *reason);

/* Text that lives until the instruction ends. */
const char *hed_lift_text(struct lift *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

void hed_lift_put(struct lift *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hed_lift_calc(struct lift *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "{a, b}", of 1 to 4 words. PTX has no vectors of three: there, the last word follows twice. */
const char *hed_lift_braces(struct lift *l, const char *const *words, unsigned count);

/* A new temporary: 't' 32 bits, 'q' 64, 'x' predicate, 'h' 16. */
const char *hed_lift_temp(struct lift *l, char kind);

/* Is this modifier written? */
bool hed_lift_has(const struct lift *l, const char *word);
bool hed_lift_inst_has(const struct hed_sass_inst *inst, const char *word);

/* Operand n without predicates: 0 is usually the destination. Never NULL: what is not there reads
 * as RZ. */
const struct hed_sass_operand *hed_lift_operand(const struct lift *l, unsigned n);
const struct hed_sass_operand *hed_lift_inst_operand(const struct hed_sass_inst *inst, unsigned n);

/* A source of 32 bits as a register or a number, with its sign: integers, floats (bits), and the
 * bare word. */
const char *hed_lift_u32(struct lift *l, const struct hed_sass_operand *o);
const char *hed_lift_f32(struct lift *l, const struct hed_sass_operand *o);
const char *hed_lift_word(struct lift *l, const struct hed_sass_operand *o);
/* Is the operand a number that is known here? RZ is 0. *value is the number without its sign. */
bool hed_lift_number(const struct hed_sass_operand *o, uint32_t *value);
bool hed_lift_is_zero(const struct hed_sass_operand *o);

/* A constant of 4 or 8 bytes in a bank. */
const char *hed_lift_constant(struct lift *l, uint32_t bank, int64_t offset, unsigned bytes);

/* ---- named.c --------------------------------------------------------------------------------- */

/* How far a constant of that name is aligned in text for a GPU. */
unsigned hed_lift_constant_align(const struct hed_sass_symbol *s);
/* 1, 2, 4 or 8 bytes of bank 3 in text for a GPU: at an offset, or at one to which a register is
 * added. The result is a 64-bit value if there are 8, a word without sign otherwise. */
const char *hed_lift_named_constant(struct lift *l, int64_t offset, unsigned bytes);
const char *hed_lift_named_indexed(struct lift *l, int64_t offset, const char *index,
                                   unsigned bytes);

/* The half of an address that the instruction has in place of a number; NULL if it has none. */
const char *hed_lift_patched(struct lift *l);

/* The place of a 32-bit result: a register, or a temporary if nobody wants it. */
const char *hed_lift_def(struct lift *l, const struct hed_sass_operand *o);
/* The same for register n, n + 1, ... of an operand that is a group. */
const char *hed_lift_def_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n);
/* Register n of a group that is a source; "0" for RZ. */
const char *hed_lift_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n);

/* Predicates by the bit of their field: 81 and 84 are results, 87, 77 and 68 sources whose next
 * bits but two invert them. A source is a register, perhaps inverted into a temporary; it is NULL
 * with *constant set if it is PT or !PT. */
const char *hed_lift_pred(struct lift *l, unsigned bit, bool *constant);
/* The same as 0 or 1 in a 32-bit value. */
const char *hed_lift_pred_number(struct lift *l, unsigned bit);
/* The place of a result, or NULL if it is PT or nobody reads it. */
const char *hed_lift_def_pred(struct lift *l, unsigned bit);
/* Writes a predicate: the sources' truth combined. `value` is a predicate register. */
void hed_lift_set_pred(struct lift *l, unsigned bit, const char *value);

/* ---- tidy.c ---------------------------------------------------------------------------------- */

/* Appends the statements of one instruction, without temporaries that are only moved. */
void hed_lift_tidy(const struct hed_buf *in, struct hed_buf *out);

/* ---- logic.c --------------------------------------------------------------------------------- */

/* A predicate combined with the one at 87: 0 and, 1 or, 2 xor. */
const char *hed_lift_combined(struct lift *l, const char *x, unsigned how);
/* Writes both results of a comparison, x at 81 and `second` at 84, each combined with the predicate
 * at 87. The second is the inverse of x if it is NULL. */
void hed_lift_compared(struct lift *l, const char *x, const char *second, unsigned how);

/* ---- floating.c ------------------------------------------------------------------------------ */

/* A source as a register or a number that PTX takes for a float, with its sign. The second is a
 * pair. */
const char *hed_lift_float(struct lift *l, const struct hed_sass_operand *o);
const char *hed_lift_double(struct lift *l, const struct hed_sass_operand *o);
/* Any text of an operand as a register: of 32 bits, of 64. */
const char *hed_lift_reg(struct lift *l, const char *text);
const char *hed_lift_reg64(struct lift *l, const char *text);
/* The rounding at 78: "rn", ...; "" or a modifier of PTX if the instruction has it. */
const char *hed_lift_round(const struct lift *l);
const char *hed_lift_flag(const struct lift *l, const char *word, const char *ptx);
/* The smaller or the larger of two values, by the predicate at 87. With XORSIGN they are given
 * without the bars that the operands have. */
void hed_lift_smaller_or_larger(struct lift *l, const char *type, const char *a, const char *b);
/* A comparison of floats by the code at 76, as a new predicate. `type` is "f32", ... */
const char *hed_lift_float_compare(struct lift *l, const char *type, const char *a, const char *b);

/* ---- pair.c ---------------------------------------------------------------------------------- */

/* A pair as one value; "0" for RZ. `o` is a register, a uniform one, a constant, or a number. Signs
 * are not looked at. */
const char *hed_lift_u64(struct lift *l, const struct hed_sass_operand *o);
/* The same for the pair that begins with register n of a group. */
const char *hed_lift_u64_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n);
/* Is the pair of ordinary registers that begins with register n of a group there as one value? */
bool hed_lift_has_wide(const struct lift *l, const struct hed_sass_operand *o, unsigned n);
/* The place of a 64-bit result; after it is written, end64 splits it. */
const char *hed_lift_def64(struct lift *l, const struct hed_sass_operand *o);
void hed_lift_end64(struct lift *l, const struct hed_sass_operand *o);
const char *hed_lift_def64_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n);
void hed_lift_end64_nth(struct lift *l, const struct hed_sass_operand *o, unsigned n);

/* A register was written: its wide register is not valid any more. reg counts R, then UR from
 * 256. */
void hed_lift_wrote(struct lift *l, unsigned reg);
struct lift_pair_state hed_lift_pair_state(const struct lift *l, const struct hed_sass_operand *o);
/* Both halves of the pair were written under one guard, and its wide register, too: it is as valid
 * as it was before, or as it became in between. */
void hed_lift_pair_restore(struct lift *l, const struct hed_sass_operand *o,
                           struct lift_pair_state was);
/* A register was set to this source, without a change. */
void hed_lift_moved(struct lift *l, const struct hed_sass_operand *to,
                    const struct hed_sass_operand *from);
/* A register was set to a half of the pair that begins with `low`, shifted left. */
void hed_lift_shifted(struct lift *l, const struct hed_sass_operand *to,
                      const struct hed_sass_operand *low, unsigned by, bool high);
/* A register was set to the sign of another. */
void hed_lift_is_sign(struct lift *l, const struct hed_sass_operand *to,
                      const struct hed_sass_operand *of);
/* Is `high` known to be the sign of `low`? */
bool hed_lift_has_sign(const struct lift *l, const struct hed_sass_operand *low,
                       const struct hed_sass_operand *high);

void hed_lift_begin_block(struct lift *l);

/* ---- fuse.c ---------------------------------------------------------------------------------- */

/* Before an instruction is lifted, first pass: notes halves of 64-bit operations. */
void hed_lift_note_halves(struct lift *l);
/* After an instruction was lifted: notes that it made a carry. */
void hed_lift_note_carry(struct lift *l);
/* Before an instruction is lifted: notes what is known of the pair whose lower half it may
 * write. */
void hed_lift_note_pair(struct lift *l);
/* Lifts a half of a 64-bit operation as such. False if it is none. */
bool hed_lift_half(struct lift *l);
/* The comparison of 64 bits whose high half the instruction is, as a predicate; NULL if its low
 * half is not known. type begins with s or u. */
const char *hed_lift_whole_compare(struct lift *l, const char *cmp, const char *type);
