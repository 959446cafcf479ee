/* The model of a PTX module, which the parser makes and the code generators read.
 *
 *   module -> items in the order of the text: variables, functions, aliases, pragmas, files
 *   func   -> parameters, directives, body: a list of statements, scopes flattened
 *   inst   -> guard, form, operands; a form is shared by all instructions spelled alike
 *
 * Everything lives in the module's arena; nothing points into the text. Names are resolved: an
 * operand points to its register, variable, function, label or table. Names are kept for people,
 * for the printer, and for a driver that looks up kernels and variables.
 *
 * Invariants after hed_ptx_parse has returned 0:
 * 1. An instruction that is not `refused` has operands that fit a pattern of its form
 *    (opcodes.def), in count, kind and type.
 * 2. A function that has a refused instruction, or can reach one by calls that are not through
 *    pointers, has `refused` set. Of such an instruction only the guard, the line and the raw text
 *    are valid.
 * 3. regs holds the registers that a body mentions, not those it only declares; ids are dense.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "kernel/ptx/words.h"

struct hed_ptx_func;
struct hed_ptx_var;
struct hed_ptx_operand;
struct hed_ptx_stmt;

#define HED_PTX_DIMS_MAX 8     /* dimensions of an array */
#define HED_PTX_OPERANDS_MAX 9 /* operands of an instruction */
#define HED_PTX_ALTS_MAX 2     /* patterns of a form */

/* The rule for one operand, made from the letters in opcodes.def. */
struct hed_ptx_slot {
    char role;       /* d D s v u V M m T l x, or 0 after the last */
    uint8_t type;    /* enum hed_ptx_type, or NONE if `size` decides */
    uint8_t size;    /* bits of a register of any kind, 0 for any size; only with type NONE */
    uint8_t arity;   /* elements of a vector, 0 for a scalar */
    bool optional;   /* may be absent */
    bool is_address; /* an address in a register: 32 or 64 bits */
};

struct hed_ptx_pattern {
    struct hed_ptx_slot slots[HED_PTX_OPERANDS_MAX + 1];
    uint8_t least, most; /* operands; most is 255 for "anything from here on" */
};

/* An opcode with its modifiers, parsed once for each spelling that occurs. */
struct hed_ptx_form {
    const char *text;    /* as it was written: "ld.global.nc.v4.f32" */
    const char *refused; /* why no code can be made of it, or NULL */
    uint64_t flags;      /* HED_PTX_FLAG(...) */
    uint16_t op;         /* enum hed_ptx_op */
    uint8_t types[5];    /* enum hed_ptx_type, in order */
    uint8_t ntypes;
    uint8_t spaces[2]; /* enum hed_ptx_space, in order: destination, source */
    uint8_t nspaces;
    uint8_t round; /* enum hed_ptx_round, and so on */
    uint8_t cmp;   /* of setp, set, vset */
    uint8_t oper;  /* of atom, red, redux, barrier.red; the boolean half of setp */
    uint8_t part;  /* lo, hi, wide */
    uint8_t mode;  /* of shfl, vote, match, shf, prmt, testp */
    uint8_t clamp;
    uint8_t vec; /* elements: 2, 4, 8, or 0 for a scalar */
    uint8_t cop;
    uint8_t sem;
    uint8_t scope;
    uint8_t geom;
    uint8_t layouts[2]; /* of a and b; a single one is in [0] */
    uint8_t nlayouts;
    uint8_t count; /* matrices: 1, 2, 4 */
    uint8_t matrix;
    uint8_t channel;
    uint8_t fetch;
    uint8_t query;
    uint8_t hints[3];
    uint8_t nhints;
    uint16_t m, n, k; /* the shape; 0 if not given */
    uint8_t npatterns;
    bool other_words; /* there are words that we do not know: see text */
    struct hed_ptx_pattern patterns[HED_PTX_ALTS_MAX];
};

/* A vector of 16 bytes with .cg and no order: this is how older versions of CUB publish their
 * {status, value}. Where plain instructions move 16 bytes at once, all tiers move it whole. */
static inline bool
hed_ptx_publishes_pair(const struct hed_ptx_form *f)
{
    return f->cop == HED_PTX_COP_CG && f->vec && hed_ptx_types[f->types[0]].bits * f->vec == 128;
}

/* A declaration of registers: one, or a range of them. */
struct hed_ptx_regs {
    const char *name; /* "%r": the prefix of a range, else the whole name */
    uint8_t type;
    uint8_t vec;                 /* elements of a vector register, else 0 */
    bool is_range;               /* %r<count>: %r0 .. %r(count-1) */
    uint32_t count;              /* 1 if it is no range */
    struct hed_ptx_regs *joined; /* the next of the same .reg directive */
};

/* A register that is mentioned. */
struct hed_ptx_reg {
    const char *name;
    const struct hed_ptx_regs *decl;
    uint32_t id; /* dense within the function */
    uint8_t type;
    uint8_t vec;
    struct hed_ptx_reg *next; /* by id */
};

enum hed_ptx_linkage {
    HED_PTX_LINKAGE_NONE, /* module-local */
    HED_PTX_LINKAGE_EXTERN,
    HED_PTX_LINKAGE_VISIBLE,
    HED_PTX_LINKAGE_WEAK,
    HED_PTX_LINKAGE_COMMON,
};

/* An address inside an initialiser: the `bytes` bytes at `at` are symbol + addend. */
struct hed_ptx_reloc {
    struct hed_ptx_reloc *next; /* by rising `at` */
    uint64_t at;
    int64_t addend;
    uint64_t mask;                 /* of mask(symbol): the bits stored, shifted down; 0 for all */
    const struct hed_ptx_var *var; /* the symbol is either this */
    struct hed_ptx_func *func;     /* or this */
    uint8_t bytes;
    bool generic; /* generic(symbol) */
};

struct hed_ptx_var {
    const char *name;
    uint8_t space; /* enum hed_ptx_space; REG for a register parameter */
    uint8_t type;
    uint8_t vec;     /* elements, or 0 */
    uint8_t linkage; /* enum hed_ptx_linkage */
    uint8_t ndims;
    bool managed;      /* .attribute(.managed) */
    bool unsized;      /* the first dimension is [] and there is no initialiser */
    bool is_ptr;       /* kernel parameter with .ptr */
    uint8_t ptr_space; /* of .ptr */
    bool has_uuid;     /* .attribute(.unified(a, b)) */
    uint32_t ptr_align;
    uint32_t align; /* bytes; the type's own if none is given */
    bool said_align;
    uint32_t line;
    uint64_t uuid[2];
    uint64_t dims[HED_PTX_DIMS_MAX];
    uint64_t size;                    /* bytes in all; 0 when unsized */
    uint64_t offset;                  /* of a parameter: bytes into the block of parameters */
    unsigned char *init;              /* the first init_size bytes; the rest is zero */
    uint64_t init_size;               /* 0 if there is no initialiser */
    struct hed_ptx_reloc *relocs;     /* on top of init */
    struct hed_ptx_reg *reg;          /* of a register parameter */
    const struct hed_ptx_func *owner; /* the function it is declared in, or NULL */
    struct hed_ptx_var *next;         /* in its list: parameters, or a function's variables */
};

struct hed_ptx_label {
    const char *name;
    struct hed_ptx_stmt *at; /* the label's own statement */
    uint32_t id;             /* dense within the function */
};

/* The parameters and results of a function or a prototype. Lists by `next`. */
struct hed_ptx_sig {
    struct hed_ptx_var *rets, *params;
    uint32_t nrets, nparams;
    uint64_t params_size; /* bytes of the block of parameters, each at its alignment */
    bool noreturn;
};

/* .branchtargets, .calltargets, .callprototype: the targets of an indirect jump or call. */
struct hed_ptx_table {
    const char *name;
    enum { HED_PTX_TABLE_BRANCH, HED_PTX_TABLE_CALL, HED_PTX_TABLE_PROTO } kind;
    uint32_t count;
    struct hed_ptx_operand *targets; /* labels or functions */
    struct hed_ptx_sig sig;          /* of a prototype */
};

enum hed_ptx_operand_kind {
    HED_PTX_OPERAND_NONE,
    HED_PTX_OPERAND_REG,   /* reg, perhaps with sel */
    HED_PTX_OPERAND_SREG,  /* sreg, perhaps with sel */
    HED_PTX_OPERAND_INT,   /* bits */
    HED_PTX_OPERAND_FLOAT, /* bits of a double, or of a float: is_f32 */
    HED_PTX_OPERAND_VAR,   /* the address of var, + offset */
    HED_PTX_OPERAND_FUNC,  /* func */
    HED_PTX_OPERAND_LABEL, /* label */
    HED_PTX_OPERAND_TABLE, /* table */
    HED_PTX_OPERAND_MEM,   /* [base + offset]; base says which member */
    HED_PTX_OPERAND_TUPLE, /* [a, {b, c}]: elems */
    HED_PTX_OPERAND_VEC,   /* {a, b}: elems */
    HED_PTX_OPERAND_PAIR,  /* a|b: two elems */
    HED_PTX_OPERAND_LIST,  /* (a, b): elems, of a call */
    HED_PTX_OPERAND_SINK,  /* _ */
};

/* Values of sel: the letters x y z w (or r g b a) are 1..4. Selectors of the video instructions,
 * such as b0, h1 or b3210, have the bit HED_PTX_SEL_VIDEO, then one bit for h, two for the number
 * of digits less one, and three for each digit, the first of them highest.
 */
#define HED_PTX_SEL_VIDEO 0x8000u
#define HED_PTX_SEL_HALF 0x4000u

struct hed_ptx_operand {
    uint8_t kind; /* enum hed_ptx_operand_kind */
    uint8_t base; /* of MEM: REG, VAR, INT */
    bool negated; /* !p or -a */
    bool is_f32;  /* of FLOAT: written as 0f...; bits are those of a float */
    uint16_t sel; /* component or selector, 0 for none */
    bool unified; /* [..].unified */
    uint32_t count;
    union {
        const struct hed_ptx_reg *reg;
        const struct hed_ptx_var *var;
        struct hed_ptx_func *func;
        const struct hed_ptx_label *label;
        const struct hed_ptx_table *table;
        struct hed_ptx_operand *elems;
        uint64_t bits;
        uint32_t sreg; /* enum hed_ptx_sreg */
    };
    int64_t offset; /* of VAR and MEM */
};

/* The element of a vector register that an operand names; 0 for a plain register. The selectors of
 * video instructions mean something else. */
static inline unsigned
hed_ptx_operand_element(const struct hed_ptx_operand *o)
{
    return o->sel && !(o->sel & HED_PTX_SEL_VIDEO) && o->sel <= o->reg->vec ? o->sel - 1u : 0;
}

enum hed_ptx_stmt_kind {
    HED_PTX_STMT_INST,   /* struct hed_ptx_inst */
    HED_PTX_STMT_LABEL,  /* label */
    HED_PTX_STMT_OPEN,   /* { */
    HED_PTX_STMT_CLOSE,  /* } */
    HED_PTX_STMT_REGS,   /* regs */
    HED_PTX_STMT_VAR,    /* var */
    HED_PTX_STMT_TABLE,  /* table */
    HED_PTX_STMT_LOC,    /* loc */
    HED_PTX_STMT_PRAGMA, /* text */
};

/* The location in the source program (.file, .loc) that the following instructions come from. */
struct hed_ptx_loc {
    uint32_t file, line, column;
};

struct hed_ptx_stmt {
    struct hed_ptx_stmt *next;
    uint8_t kind;
    uint32_t line; /* in the PTX text, from 1 */
    union {
        struct hed_ptx_label *label;
        struct hed_ptx_regs *regs;
        struct hed_ptx_var *var;
        struct hed_ptx_table *table;
        struct hed_ptx_loc *loc;
        const char *text;
    };
};

struct hed_ptx_inst {
    struct hed_ptx_stmt stmt;        /* first: the statement is the instruction */
    const struct hed_ptx_form *form; /* never NULL */
    const struct hed_ptx_reg *guard; /* the instruction runs if this holds; or NULL */
    bool guard_negated;              /* it runs if the guard does not hold */
    bool is_refused;                 /* raw has the text, and form->refused the reason */
    uint8_t pattern;                 /* which of the form's patterns fits */
    uint8_t noperands;               /* a call has 3 or 4: rets, callee, args, table */
    const struct hed_ptx_loc *loc;   /* in force here, or NULL */
    struct hed_ptx_operand *operands;
    const char *raw; /* of a refused instruction: its text without guard and ';'; else NULL */
};

struct hed_ptx_refusal {
    const struct hed_ptx_func *func; /* the function with the instruction */
    const char *text;                /* the instruction */
    const char *why;
    uint32_t line;
};

/* A variable of the driver's, which names a texture, a surface or a sampler. */
static inline bool
hed_ptx_var_is_reference(const struct hed_ptx_var *v)
{
    return v->type == HED_PTX_TYPE_TEXREF || v->type == HED_PTX_TYPE_SURFREF ||
           v->type == HED_PTX_TYPE_SAMPLERREF;
}

/* One edge of the call graph. */
struct hed_ptx_call {
    struct hed_ptx_call *next;
    struct hed_ptx_func *callee;
};

/* 0 means "not given". */
struct hed_ptx_directives {
    uint32_t maxntid[3], reqntid[3], reqnctapercluster[3];
    uint32_t minnctapersm, maxnctapersm, maxnreg, maxclusterrank;
    bool explicitcluster, blocksareclusters;
    const char *pragmas[4];
    uint8_t npragmas;
};

struct hed_ptx_func {
    const char *name;
    uint8_t linkage;
    bool is_entry;
    bool has_body;
    bool address_taken;
    bool calls_indirectly;
    uint32_t line; /* of the definition, else of the first declaration */
    struct hed_ptx_sig sig;
    struct hed_ptx_directives directives;
    struct hed_ptx_stmt *body;
    struct hed_ptx_var *vars; /* declared in the body, in all scopes */
    struct hed_ptx_reg *regs; /* by id */
    struct hed_ptx_call *calls;
    uint32_t nvars, nregs, nlabels, ninsts;
    const struct hed_ptx_refusal *refused;
    const struct hed_ptx_func *alias; /* .alias: the function that this is another name for */
    struct hed_ptx_func *next;        /* all of the module, in order of first mention */
};

enum hed_ptx_item_kind {
    HED_PTX_ITEM_VAR,
    HED_PTX_ITEM_DECL, /* a function without its body */
    HED_PTX_ITEM_FUNC,
    HED_PTX_ITEM_ALIAS,
    HED_PTX_ITEM_PRAGMA,
    HED_PTX_ITEM_FILE,
};

struct hed_ptx_item {
    struct hed_ptx_item *next;
    uint8_t kind;
    uint32_t number; /* of a file */
    union {
        struct hed_ptx_var *var;
        struct hed_ptx_func *func;
        const char *text; /* pragma, or name of a file */
    };
};

enum hed_ptx_option {
    HED_PTX_OPTION_TEXMODE_UNIFIED = 1,
    HED_PTX_OPTION_TEXMODE_INDEPENDENT = 2,
    HED_PTX_OPTION_DEBUG = 4,
    HED_PTX_OPTION_MAP_F64 = 8,
};

struct hed_ptx_error {
    struct hed_ptx_error *next;
    uint32_t line, column; /* from 1 */
    const char *text;
};

struct hed_ptx_module {
    struct hed_arena arena;
    uint16_t version_major, version_minor;
    uint16_t sm;          /* 80 of sm_80 */
    char suffix;          /* a, f, or 0 */
    uint8_t options;      /* enum hed_ptx_option */
    uint8_t address_size; /* 32 or 64 */
    struct hed_ptx_item *items;
    struct hed_ptx_func *funcs;
    uint32_t nfuncs, nentries, nvars, nforms, nrefused; /* nrefused: functions */
    uint64_t ninsts;
    struct hed_ptx_error *errors; /* in the order they were found */
    uint32_t nerrors;
};
