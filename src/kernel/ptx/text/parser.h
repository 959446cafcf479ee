/* What the files of the parser share. Not an interface for others.
 *
 * The parser reads one token ahead. Errors are collected; after an error, it continues after the
 * next ';' or '}'. hed_ptx_fail jumps to the nearest recovery point, which owns only arena memory,
 * so nothing leaks. If memory runs out, or the ceiling or the limit of errors is reached, the parse
 * ends with a jump to the outermost point.
 */
#pragma once

#include <setjmp.h>

#include "kernel/ptx/ptx.h"
#include "kernel/ptx/text/lex.h"

#define HED_PTX_ERRORS_MAX 64 /* errors reported */
#define HED_PTX_DEPTH_MAX 256 /* nested scopes, braces of initialisers, parentheses */

enum hed_ptx_sym_kind {
    HED_PTX_SYM_NONE,
    HED_PTX_SYM_REG,
    HED_PTX_SYM_SREG,
    HED_PTX_SYM_VAR,
    HED_PTX_SYM_FUNC,
    HED_PTX_SYM_LABEL,
    HED_PTX_SYM_TABLE,
};

/* What a name means in a scope. Declarations of an inner scope hide those outside. */
struct hed_ptx_sym {
    uint8_t kind;
    uint16_t depth; /* of its scope; 0 is the module */
    union {
        struct hed_ptx_reg *reg;
        struct hed_ptx_var *var;
        struct hed_ptx_func *func;
        struct hed_ptx_label *label;
        struct hed_ptx_table *table;
        uint32_t sreg;
    };
    struct hed_ptx_sym *hidden; /* what the name meant outside */
    struct hed_ptx_name *name;
    struct hed_ptx_sym *sibling; /* the next of the same scope */
};

/* A range of registers that is in scope: prefix name -> range. */
struct hed_ptx_range {
    struct hed_ptx_regs *regs;
    struct hed_ptx_range *hidden;
    struct hed_ptx_range *sibling;
    struct hed_ptx_name *name;
    uint16_t depth;
};

/* An interned name. */
struct hed_ptx_name {
    const char *text;
    uint32_t len, hash;
    struct hed_ptx_sym *sym;     /* its meaning in the current scope, or NULL */
    struct hed_ptx_range *range; /* the range of which it is the prefix, or NULL */
};

/* What kind of thing an undeclared name must turn out to be. */
enum hed_ptx_want {
    HED_PTX_WANT_LABEL,
    HED_PTX_WANT_BRANCHES, /* .branchtargets */
    HED_PTX_WANT_CALLS,    /* .calltargets, .callprototype */
};

/* A use of a name before its declaration: labels, tables. */
struct hed_ptx_fixup {
    struct hed_ptx_fixup *next;
    struct hed_ptx_name *name;
    struct hed_ptx_operand *operand;
    uint32_t line, column;
    uint8_t want; /* enum hed_ptx_want */
};

/* One of the nested scopes; [0] is the module. */
struct hed_ptx_name_scope {
    struct hed_ptx_sym *syms;
    struct hed_ptx_range *ranges;
    struct hed_ptx_fixup *fixups;
};

/* A spelling of an opcode, for the table of forms. */
struct hed_ptx_form_slot {
    uint32_t hash, len;
    struct hed_ptx_form *form;
};

struct hed_ptx_parser {
    struct hed_ptx_module *m;
    struct hed_ptx_lexer lex;
    struct hed_ptx_token tok; /* the current token, which is not taken yet */
    jmp_buf *recover;         /* where hed_ptx_fail jumps to */
    jmp_buf *give_up;         /* where hed_ptx_give_up jumps to */
    int err;                  /* why it gave up */

    struct hed_ptx_name **names; /* open addressing; a power of two */
    uint32_t nnames, names_size;
    struct hed_ptx_form_slot *forms;
    uint32_t nforms, forms_size;

    struct hed_ptx_name_scope scopes[HED_PTX_DEPTH_MAX + 1];
    uint16_t depth;
    uint16_t inner_ranges; /* ranges declared in scopes of a body, which may hide names */

    struct hed_ptx_item **items_end;
    struct hed_ptx_func **funcs_end;
    struct hed_ptx_error **errors_end;

    /* The function being read. */
    struct hed_ptx_func *func;
    struct hed_ptx_stmt **body_end;
    struct hed_ptx_stmt **inst_at; /* the link to the instruction being read */
    struct hed_ptx_reg **regs_end;
    struct hed_ptx_var **vars_end;
    const struct hed_ptx_loc *loc;
    uint32_t line, column;           /* of the statement */
    uint8_t want;                    /* enum hed_ptx_want, of the operands being read */
    uint8_t nesting;                 /* braces open in an operand */
    uint32_t name_line, name_column; /* of the name taken last */
};

/* Zeroed memory from the module's arena; does not return if there is none. */
void *hed_ptx_alloc(struct hed_ptx_parser *p, size_t count, size_t size);

/* A terminated copy of the text. */
const char *hed_ptx_copy(struct hed_ptx_parser *p, const char *text, size_t len);

/* Notes an error at that position and continues. */
void hed_ptx_error_at(struct hed_ptx_parser *p, uint32_t line, uint32_t column, const char *fmt,
                      ...) __attribute__((cold, format(printf, 4, 5)));

/* Notes an error at the token and jumps to the recovery point. */
_Noreturn void hed_ptx_fail(struct hed_ptx_parser *p, const char *fmt, ...)
    __attribute__((cold, format(printf, 2, 3)));

/* Notes an error at the last name that was taken and jumps to the recovery point. */
_Noreturn void hed_ptx_fail_name(struct hed_ptx_parser *p, const char *fmt, const char *name)
    __attribute__((cold));

/* "Parsing error near 'x': syntax error", at the token. */
_Noreturn void hed_ptx_syntax(struct hed_ptx_parser *p) __attribute__((cold));

_Noreturn void hed_ptx_give_up(struct hed_ptx_parser *p, int err) __attribute__((cold));

/* Tokens. */

static inline void
hed_ptx_next(struct hed_ptx_parser *p)
{
    hed_ptx_lex(&p->lex, &p->tok);
}

static inline bool
hed_ptx_at(const struct hed_ptx_parser *p, unsigned punct)
{
    return p->tok.kind == HED_PTX_TOKEN_PUNCT && p->tok.punct == punct;
}

static inline bool
hed_ptx_take(struct hed_ptx_parser *p, unsigned punct)
{
    if (!hed_ptx_at(p, punct))
        return false;
    hed_ptx_next(p);
    return true;
}

static inline void
hed_ptx_expect(struct hed_ptx_parser *p, unsigned punct)
{
    if (!hed_ptx_take(p, punct))
        hed_ptx_syntax(p);
}

bool hed_ptx_at_dot(const struct hed_ptx_parser *p, const char *word);
bool hed_ptx_take_dot(struct hed_ptx_parser *p, const char *word);

/* names.c */

uint32_t hed_ptx_hash(const char *text, size_t len);
struct hed_ptx_name *hed_ptx_intern(struct hed_ptx_parser *p, const char *text, size_t len);

/* Takes an identifier; anything else is a syntax error. */
struct hed_ptx_name *hed_ptx_take_name(struct hed_ptx_parser *p);

/* Gives the name a meaning in the current scope. NULL, with an error, if it has one there
 * already. */
struct hed_ptx_sym *hed_ptx_declare(struct hed_ptx_parser *p, struct hed_ptx_name *name, int kind);
void hed_ptx_declare_range(struct hed_ptx_parser *p, struct hed_ptx_name *name,
                           struct hed_ptx_regs *regs);

/* The meaning of the name in the current scope, or NULL. Makes the register if the name is one of a
 * range. */
struct hed_ptx_sym *hed_ptx_lookup(struct hed_ptx_parser *p, struct hed_ptx_name *name);

/* A new register of the function. */
struct hed_ptx_reg *hed_ptx_new_reg(struct hed_ptx_parser *p, const char *name,
                                    const struct hed_ptx_regs *decl);

void hed_ptx_open_scope(struct hed_ptx_parser *p);
void hed_ptx_close_scope(struct hed_ptx_parser *p);
void hed_ptx_add_fixup(struct hed_ptx_parser *p, struct hed_ptx_operand *o);

/* form.c: the form with that spelling, made when it is first met. */
const struct hed_ptx_form *hed_ptx_form(struct hed_ptx_parser *p, const char *text, size_t len);

/* expr.c: constant expressions. */

struct hed_ptx_value {
    enum { HED_PTX_VALUE_INT, HED_PTX_VALUE_F32, HED_PTX_VALUE_F64 } kind;
    bool is_unsigned;
    uint64_t bits;
};

struct hed_ptx_value hed_ptx_take_value(struct hed_ptx_parser *p);
uint64_t hed_ptx_take_u32(struct hed_ptx_parser *p); /* an integer of 0 .. 2^32-1 */

/* <n>: the number of registers or variables. A literal, because an expression would take the
 * '>'. */
uint32_t hed_ptx_take_range(struct hed_ptx_parser *p);

double hed_ptx_value_double(const struct hed_ptx_value *v);

/* var.c */

/* enum hed_ptx_type or _space of a dot token, or 0; nothing is taken. */
int hed_ptx_type_at(const struct hed_ptx_parser *p);
int hed_ptx_space_at(const struct hed_ptx_parser *p);

/* Takes what follows the state space: alignment, type, names, initialisers. A list by next. */
struct hed_ptx_var *hed_ptx_take_vars(struct hed_ptx_parser *p, int space, int linkage);

/* "(.param .b32 a, ...)": a list by next, the number of parameters, and their size in bytes. */
struct hed_ptx_var *hed_ptx_take_params(struct hed_ptx_parser *p, uint32_t *count, uint64_t *size);

/* Declares the parameters' names in the current scope. */
void hed_ptx_declare_params(struct hed_ptx_parser *p, struct hed_ptx_var *params);
void hed_ptx_take_init(struct hed_ptx_parser *p, struct hed_ptx_var *v);
void hed_ptx_set_size(struct hed_ptx_parser *p, struct hed_ptx_var *v);

/* body.c: takes everything after the '{', up to and including the '}'. */
void hed_ptx_take_body(struct hed_ptx_parser *p, struct hed_ptx_func *f);
void *hed_ptx_add_stmt(struct hed_ptx_parser *p, size_t size, int kind);

/* inst.c: takes an instruction; the current token is its name. */
void hed_ptx_take_inst(struct hed_ptx_parser *p);
void hed_ptx_take_operand(struct hed_ptx_parser *p, struct hed_ptx_operand *o);
struct hed_ptx_operand *hed_ptx_take_operands(struct hed_ptx_parser *p, unsigned close,
                                              uint32_t *count);

/* rewrite.c: what ptxas accepts beyond the manual. */

/* Takes the "+1" after a register that is the nth operand of a form, if it is there. */
void hed_ptx_take_sum(struct hed_ptx_parser *p, const struct hed_ptx_form *form, unsigned nth,
                      struct hed_ptx_operand *o);

/* Makes plain instructions of a mov of vectors. `o` holds the operands of i. */
void hed_ptx_rewrite_mov(struct hed_ptx_parser *p, struct hed_ptx_inst *i,
                         struct hed_ptx_operand *o, unsigned count);

/* check.c */

/* May an operand that names a label, a table, or something undeclared stand where `want` is
 * wanted? */
bool hed_ptx_is_wanted(const struct hed_ptx_operand *o, uint8_t want);
void hed_ptx_check_inst(struct hed_ptx_parser *p, struct hed_ptx_inst *i);
bool hed_ptx_check_matrix(const struct hed_ptx_inst *i);
void hed_ptx_spread_refusals(struct hed_ptx_parser *p);
