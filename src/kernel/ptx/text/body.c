/* Bodies of functions: scopes, declarations, labels, tables, source locations. */
#include "kernel/ptx/text/parser.h"

#include <string.h>

void *
hed_ptx_add_stmt(struct hed_ptx_parser *p, size_t size, int kind)
{
    struct hed_ptx_stmt *s = hed_ptx_alloc(p, 1, size);

    s->kind = (uint8_t)kind;
    s->line = p->line;
    *p->body_end = s;
    p->body_end = &s->next;
    return s;
}

static struct hed_ptx_stmt *
add_plain(struct hed_ptx_parser *p, int kind)
{
    return hed_ptx_add_stmt(p, sizeof(struct hed_ptx_stmt), kind);
}

/* .reg .b32 %r<10>, %x; the .reg has been taken. */
static void
take_regs(struct hed_ptx_parser *p)
{
    struct hed_ptx_regs **end = &add_plain(p, HED_PTX_STMT_REGS)->regs;
    struct hed_ptx_regs like = {0};

    for (;;) {
        const int type = hed_ptx_type_at(p);

        if (type)
            like.type = (uint8_t)type;
        else if (hed_ptx_at_dot(p, "v2") || hed_ptx_at_dot(p, "v4"))
            like.vec = (uint8_t)(p->tok.text[1] - '0');
        else
            break;
        hed_ptx_next(p);
    }
    if (!like.type)
        hed_ptx_syntax(p);
    do {
        struct hed_ptx_regs *r = hed_ptx_alloc(p, 1, sizeof(*r));
        struct hed_ptx_name *name = hed_ptx_take_name(p);

        *r = like;
        r->name = name->text;
        r->count = 1;
        if (hed_ptx_at(p, '<')) {
            r->is_range = true;
            r->count = hed_ptx_take_range(p);
            hed_ptx_declare_range(p, name, r);
        } else {
            struct hed_ptx_sym *s = hed_ptx_declare(p, name, HED_PTX_SYM_REG);

            if (s)
                s->reg = hed_ptx_new_reg(p, r->name, r);
        }
        *end = r;
        end = &r->joined;
    } while (hed_ptx_take(p, ','));
    hed_ptx_expect(p, ';');
}

static void
take_locals(struct hed_ptx_parser *p, int space, int linkage)
{
    struct hed_ptx_var *next;

    for (struct hed_ptx_var *v = hed_ptx_take_vars(p, space, linkage); v; v = next) {
        next = v->next;
        v->next = NULL;
        add_plain(p, HED_PTX_STMT_VAR)->var = v;
        *p->vars_end = v;
        p->vars_end = &v->next;
        p->func->nvars++;
    }
}

/* .loc file line column, function_name label, inlined_at file line column */
static void
take_loc(struct hed_ptx_parser *p)
{
    struct hed_ptx_loc *loc = hed_ptx_alloc(p, 1, sizeof(*loc));

    loc->file = (uint32_t)hed_ptx_take_u32(p);
    loc->line = (uint32_t)hed_ptx_take_u32(p);
    loc->column = (uint32_t)hed_ptx_take_u32(p);
    while (hed_ptx_take(p, ',')) {
        if (p->tok.kind != HED_PTX_TOKEN_IDENT)
            hed_ptx_syntax(p);

        const bool is_function = p->tok.len == 13;

        hed_ptx_next(p);
        if (is_function) {
            hed_ptx_next(p);
            if (hed_ptx_take(p, '+'))
                hed_ptx_take_value(p);
        } else {
            for (int i = 0; i < 3; i++)
                hed_ptx_take_u32(p);
        }
    }
    add_plain(p, HED_PTX_STMT_LOC)->loc = loc;
    p->loc = loc;
}

static void
take_label(struct hed_ptx_parser *p, struct hed_ptx_name *name)
{
    struct hed_ptx_sym *s = hed_ptx_declare(p, name, HED_PTX_SYM_LABEL);
    struct hed_ptx_label *label = hed_ptx_alloc(p, 1, sizeof(*label));
    struct hed_ptx_stmt *stmt = add_plain(p, HED_PTX_STMT_LABEL);

    label->name = name->text;
    label->at = stmt;
    label->id = p->func->nlabels++;
    stmt->label = label;
    if (s)
        s->label = label;
}

/* "name :" and the directive have been taken. */
static void
take_table(struct hed_ptx_parser *p, struct hed_ptx_name *name, int kind)
{
    struct hed_ptx_sym *s = hed_ptx_declare(p, name, HED_PTX_SYM_TABLE);
    struct hed_ptx_table *t = hed_ptx_alloc(p, 1, sizeof(*t));
    uint64_t ignored;

    t->name = name->text;
    t->kind = kind;
    if (s)
        s->table = t;
    if (kind == HED_PTX_TABLE_PROTO) {
        if (hed_ptx_at(p, '('))
            t->sig.rets = hed_ptx_take_params(p, &t->sig.nrets, &ignored);
        hed_ptx_take_name(p);
        if (hed_ptx_at(p, '('))
            t->sig.params = hed_ptx_take_params(p, &t->sig.nparams, &t->sig.params_size);
        t->sig.noreturn = hed_ptx_take_dot(p, "noreturn");
        hed_ptx_expect(p, ';');
    } else {
        t->targets = hed_ptx_take_operands(p, ';', &t->count);
    }
    for (uint32_t i = 0; i < t->count; i++) {
        if (kind == HED_PTX_TABLE_CALL ? t->targets[i].kind != HED_PTX_OPERAND_FUNC
                                       : !hed_ptx_is_wanted(&t->targets[i], HED_PTX_WANT_LABEL))
            hed_ptx_fail(p, "Illegal target in '%s'", t->name);
    }
    add_plain(p, HED_PTX_STMT_TABLE)->table = t;
}

/* Is the current identifier followed by a colon? */
static bool
is_label(const struct hed_ptx_parser *p)
{
    const char *at = p->lex.at;

    while (at < p->lex.end && (*at == ' ' || *at == '\t'))
        at++;
    return at < p->lex.end && *at == ':' && (p->lex.end - at < 2 || at[1] != ':');
}

static void
take_labelled(struct hed_ptx_parser *p)
{
    struct hed_ptx_name *name = hed_ptx_take_name(p);

    hed_ptx_expect(p, ':');
    if (hed_ptx_take_dot(p, "branchtargets"))
        take_table(p, name, HED_PTX_TABLE_BRANCH);
    else if (hed_ptx_take_dot(p, "calltargets"))
        take_table(p, name, HED_PTX_TABLE_CALL);
    else if (hed_ptx_take_dot(p, "callprototype"))
        take_table(p, name, HED_PTX_TABLE_PROTO);
    else
        take_label(p, name);
}

static void
take_pragma(struct hed_ptx_parser *p)
{
    do {
        if (p->tok.kind != HED_PTX_TOKEN_STRING)
            hed_ptx_syntax(p);
        add_plain(p, HED_PTX_STMT_PRAGMA)->text = hed_ptx_copy(p, p->tok.text, p->tok.len);
        hed_ptx_next(p);
    } while (hed_ptx_take(p, ','));
    hed_ptx_expect(p, ';');
}

static void
take_directive(struct hed_ptx_parser *p)
{
    int linkage = HED_PTX_LINKAGE_NONE;

    if (hed_ptx_take_dot(p, "reg")) {
        take_regs(p);
    } else if (hed_ptx_take_dot(p, "loc")) {
        take_loc(p);
    } else if (hed_ptx_take_dot(p, "pragma")) {
        take_pragma(p);
    } else {
        if (hed_ptx_take_dot(p, "extern"))
            linkage = HED_PTX_LINKAGE_EXTERN;

        const int space = hed_ptx_space_at(p);

        if (!space || space == HED_PTX_SPACE_SREG)
            hed_ptx_syntax(p);
        hed_ptx_next(p);
        take_locals(p, space, linkage);
    }
}

/* Takes one statement; false after the closing brace of the function. */
static bool
take_stmt(struct hed_ptx_parser *p)
{
    p->line = p->tok.line;
    p->column = p->tok.column;
    p->want = HED_PTX_WANT_LABEL;
    switch (p->tok.kind) {
    case HED_PTX_TOKEN_IDENT:
        if (is_label(p))
            take_labelled(p);
        else
            hed_ptx_take_inst(p);
        return true;
    case HED_PTX_TOKEN_DOT:
        take_directive(p);
        return true;
    case HED_PTX_TOKEN_PUNCT:
        break;
    default:
        hed_ptx_syntax(p);
    }
    if (hed_ptx_at(p, '@')) {
        hed_ptx_take_inst(p);
    } else if (hed_ptx_at(p, '{')) {
        hed_ptx_open_scope(p);
        hed_ptx_next(p);
        add_plain(p, HED_PTX_STMT_OPEN);
    } else if (hed_ptx_take(p, '}')) {
        if (p->depth == 1)
            return false;
        hed_ptx_close_scope(p);
        add_plain(p, HED_PTX_STMT_CLOSE);
    } else if (!hed_ptx_take(p, ';')) {
        hed_ptx_syntax(p);
    }
    return true;
}

/* After an error: continues after the next ';', or at a '}' that can only end a scope. */
static void
skip_bad_statement(struct hed_ptx_parser *p)
{
    unsigned open = p->nesting;

    p->nesting = 0;
    for (; p->tok.kind != HED_PTX_TOKEN_END; hed_ptx_next(p)) {
        if (hed_ptx_take(p, ';'))
            return;
        if (hed_ptx_at(p, '{'))
            open++;
        else if (hed_ptx_at(p, '}') && open-- == 0)
            return;
    }
}

void
hed_ptx_take_body(struct hed_ptx_parser *p, struct hed_ptx_func *f)
{
    jmp_buf here;
    jmp_buf *outer = p->recover;

    p->body_end = &f->body;
    p->vars_end = &f->vars;
    p->loc = NULL;
    f->has_body = true;
    p->recover = &here;
    if (_setjmp(here))
        skip_bad_statement(p);
    do {
        if (p->tok.kind == HED_PTX_TOKEN_END) {
            p->recover = outer;
            hed_ptx_syntax(p);
        }
    } while (take_stmt(p));
    p->recover = outer;
    p->m->ninsts += f->ninsts;
}
