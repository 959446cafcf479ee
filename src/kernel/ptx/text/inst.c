/* Instructions: guard, name, operands. */
#include "kernel/ptx/text/parser.h"

#include <string.h>

/* A name that is not declared yet: until settle_operand() sees the operand, its elems hold the name
 * and its offset holds line and column.
 */
#define UNRESOLVED HED_PTX_OPERAND_NONE

static void
settle_operand(struct hed_ptx_parser *p, struct hed_ptx_operand *o, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (o[i].kind == UNRESOLVED && o[i].count == UINT32_MAX)
            hed_ptx_add_fixup(p, &o[i]);
    }
}

/* .x, .b0, .h10: the selector after a register. */
static uint16_t
take_sel(struct hed_ptx_parser *p)
{
    const char *t = p->tok.text;
    const uint32_t n = p->tok.len;
    const char *at = n == 1 ? memchr("xyzwrgba", t[0], 8) : NULL;
    unsigned sel = 0;

    if (at) {
        sel = (unsigned)(at - "xyzwrgba") % 4 + 1;
    } else if ((t[0] == 'b' || t[0] == 'h') && n >= 2 && n <= 5) {
        sel = HED_PTX_SEL_VIDEO | (t[0] == 'h' ? HED_PTX_SEL_HALF : 0) | (n - 2) << 12;
        for (uint32_t i = 1; i < n; i++) {
            if (t[i] < '0' || t[i] > '7')
                hed_ptx_syntax(p);
            sel |= (unsigned)(t[i] - '0') << (3 * (n - 1 - i));
        }
    } else {
        hed_ptx_syntax(p);
    }
    hed_ptx_next(p);
    return (uint16_t)sel;
}

static void
take_offset(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    while (hed_ptx_at(p, '+') || hed_ptx_at(p, '-')) {
        const struct hed_ptx_value v = hed_ptx_take_value(p);

        if (v.kind != HED_PTX_VALUE_INT)
            hed_ptx_fail(p, "Integer offset expected");
        o->offset = (int64_t)((uint64_t)o->offset + v.bits);
    }
}

/* arr[2]: the address of the element. */
static void
take_index(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    const struct hed_ptx_var *v = o->var;

    hed_ptx_next(p);
    if (v->ndims == 0)
        hed_ptx_fail(p, "Array indexing on non-array");

    const struct hed_ptx_value index = hed_ptx_take_value(p);
    uint64_t step = (hed_ptx_types[v->type].bits + 7u) / 8 * (v->vec ? v->vec : 1u);

    for (int i = 1; i < v->ndims; i++)
        step *= v->dims[i];
    o->offset = (int64_t)((uint64_t)o->offset + index.bits * step);
    hed_ptx_expect(p, ']');
}

/* A name: register, special register, symbol with an offset, or something declared later. */
static void
take_named(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    struct hed_ptx_name *name = hed_ptx_take_name(p);
    const struct hed_ptx_sym *s = hed_ptx_lookup(p, name);
    const int kind = s ? s->kind : HED_PTX_SYM_NONE;

    switch (kind) {
    case HED_PTX_SYM_REG:
    case HED_PTX_SYM_SREG:
        o->kind = kind == HED_PTX_SYM_REG ? HED_PTX_OPERAND_REG : HED_PTX_OPERAND_SREG;
        if (kind == HED_PTX_SYM_REG)
            o->reg = s->reg;
        else
            o->sreg = s->sreg;
        if (p->tok.kind == HED_PTX_TOKEN_DOT)
            o->sel = take_sel(p);
        return;
    case HED_PTX_SYM_VAR:
        o->kind = HED_PTX_OPERAND_VAR;
        o->var = s->var;
        if (hed_ptx_at(p, '['))
            take_index(p, o);
        take_offset(p, o);
        return;
    case HED_PTX_SYM_FUNC:
        o->kind = HED_PTX_OPERAND_FUNC;
        o->func = s->func;
        s->func->address_taken = true;
        return;
    case HED_PTX_SYM_LABEL:
    case HED_PTX_SYM_TABLE:
        /* A declaration in an inner scope may still follow and hide it. */
        if (s->depth < p->depth)
            break;
        o->kind = kind == HED_PTX_SYM_LABEL ? HED_PTX_OPERAND_LABEL : HED_PTX_OPERAND_TABLE;
        if (kind == HED_PTX_SYM_LABEL)
            o->label = s->label;
        else
            o->table = s->table;
        return;
    default:
        break;
    }
    if (name->text[0] == '%')
        hed_ptx_fail_name(p, "Unknown symbol '%s'", name->text);
    o->kind = UNRESOLVED;
    o->count = UINT32_MAX;
    o->elems = (void *)name;
    o->offset = (int64_t)((uint64_t)p->name_line << 32 | p->name_column);
}

static void
take_constant(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    const struct hed_ptx_value v = hed_ptx_take_value(p);

    o->kind = v.kind == HED_PTX_VALUE_INT ? HED_PTX_OPERAND_INT : HED_PTX_OPERAND_FLOAT;
    o->is_f32 = v.kind == HED_PTX_VALUE_F32;
    o->bits = v.bits;
}

static struct hed_ptx_operand *
keep_elements(struct hed_ptx_parser *p, const struct hed_ptx_operand *o, uint32_t count)
{
    struct hed_ptx_operand *copy = hed_ptx_alloc(p, count ? count : 1, sizeof(*o));

    memcpy(copy, o, count * sizeof(*o));
    settle_operand(p, copy, count);
    return copy;
}

#define LIST_MAX 64u /* elements while they are read; longer lists are copied once more */

struct hed_ptx_operand *
hed_ptx_take_operands(struct hed_ptx_parser *p, unsigned close, uint32_t *count)
{
    struct hed_ptx_operand room[LIST_MAX];
    struct hed_ptx_operand *list = room;
    uint32_t capacity = LIST_MAX;
    uint32_t n = 0;

    while (!hed_ptx_at(p, close)) {
        if (n == capacity) {
            struct hed_ptx_operand *more = hed_ptx_alloc(p, capacity * 2, sizeof(*more));

            memcpy(more, list, n * sizeof(*more));
            list = more;
            capacity *= 2;
        }
        hed_ptx_take_operand(p, &list[n++]);
        if (!hed_ptx_take(p, ',') && !hed_ptx_at(p, close))
            hed_ptx_syntax(p);
    }
    hed_ptx_next(p);
    *count = n;
    return keep_elements(p, list, n);
}

/* [a + 4], or a tuple: [tex, {x, y}] */
static void
take_memory_operand(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    struct hed_ptx_operand base = {0};

    if (p->tok.kind == HED_PTX_TOKEN_IDENT)
        take_named(p, &base);
    else
        take_constant(p, &base);
    if (base.kind == UNRESOLVED)
        hed_ptx_fail_name(p, "Unknown symbol '%s'",
                          ((struct hed_ptx_name *)(void *)base.elems)->text);
    take_offset(p, &base);
    *o = base;
    o->kind = HED_PTX_OPERAND_MEM;
    o->base = base.kind;
    if (hed_ptx_take(p, ']'))
        return;
    hed_ptx_expect(p, ',');

    struct hed_ptx_operand parts[4] = {*o};
    uint32_t n = 1;

    do {
        if (n == 4)
            hed_ptx_syntax(p);
        hed_ptx_take_operand(p, &parts[n++]);
    } while (hed_ptx_take(p, ','));
    hed_ptx_expect(p, ']');
    *o = (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_TUPLE, .count = n};
    o->elems = keep_elements(p, parts, n);
}

static void
take_simple(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    *o = (struct hed_ptx_operand){0};
    if (p->tok.kind == HED_PTX_TOKEN_IDENT) {
        if (p->tok.len == 1 && p->tok.text[0] == '_') {
            o->kind = HED_PTX_OPERAND_SINK;
            hed_ptx_next(p);
        } else if (p->tok.len == 7 && memcmp(p->tok.text, "WARP_SZ", 7) == 0) {
            take_constant(p, o);
        } else {
            take_named(p, o);
        }
    } else if (hed_ptx_take(p, '[')) {
        take_memory_operand(p, o);
        if (hed_ptx_take_dot(p, "unified"))
            o->unified = true;
    } else if (hed_ptx_at(p, '{')) {
        if (++p->nesting > 2)
            hed_ptx_syntax(p);
        hed_ptx_next(p);
        o->elems = hed_ptx_take_operands(p, '}', &o->count);
        o->kind = HED_PTX_OPERAND_VEC;
        p->nesting--;
    } else {
        take_constant(p, o);
    }
}

/* !p or -a, if a name follows; anything else is a constant expression. */
static bool
take_negation(struct hed_ptx_parser *p)
{
    if (!hed_ptx_at(p, '!') && !hed_ptx_at(p, '-'))
        return false;

    const struct hed_ptx_lexer before = p->lex;
    const struct hed_ptx_token t = p->tok;

    hed_ptx_next(p);
    if (p->tok.kind == HED_PTX_TOKEN_IDENT)
        return true;
    p->lex = before;
    p->tok = t;
    return false;
}

void
hed_ptx_take_operand(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    const bool negated = take_negation(p);

    take_simple(p, o);
    o->negated = negated;
    if (hed_ptx_take(p, '|')) {
        struct hed_ptx_operand both[2] = {*o};

        take_simple(p, &both[1]);
        *o = (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_PAIR, .count = 2};
        o->elems = keep_elements(p, both, 2);
    }
}

static void
add_call_edge(struct hed_ptx_parser *p, struct hed_ptx_func *callee)
{
    struct hed_ptx_call *c;

    for (c = p->func->calls; c; c = c->next) {
        if (c->callee == callee)
            return;
    }
    c = hed_ptx_alloc(p, 1, sizeof(*c));
    c->callee = callee;
    c->next = p->func->calls;
    p->func->calls = c;
}

/* call (rets), callee, (args), table; rets and args may be left out. */
static uint8_t
take_call(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    uint8_t n = 3;

    o[0].kind = o[2].kind = HED_PTX_OPERAND_LIST;
    if (hed_ptx_take(p, '(')) {
        o[0].elems = hed_ptx_take_operands(p, ')', &o[0].count);
        hed_ptx_expect(p, ',');
    }

    bool taken = false;
    struct hed_ptx_name *name =
        p->tok.kind == HED_PTX_TOKEN_IDENT ? hed_ptx_intern(p, p->tok.text, p->tok.len) : NULL;

    if (name && name->sym && name->sym->kind == HED_PTX_SYM_FUNC)
        taken = name->sym->func->address_taken;
    hed_ptx_take_operand(p, &o[1]);
    if (o[1].kind == HED_PTX_OPERAND_FUNC) {
        o[1].func->address_taken = taken;
        add_call_edge(p, o[1].func);
    } else if (o[1].kind == HED_PTX_OPERAND_REG) {
        p->func->calls_indirectly = true;
    } else {
        hed_ptx_fail_name(p, "Unknown symbol '%s'", name ? name->text : "");
    }
    if (hed_ptx_take(p, ',')) {
        if (hed_ptx_take(p, '(')) {
            o[2].elems = hed_ptx_take_operands(p, ')', &o[2].count);
            if (hed_ptx_take(p, ','))
                hed_ptx_take_operand(p, &o[n++]);
        } else {
            hed_ptx_take_operand(p, &o[n++]);
        }
    }
    return n;
}

static void
take_guard(struct hed_ptx_parser *p, struct hed_ptx_inst *i)
{
    struct hed_ptx_operand o;

    i->guard_negated = hed_ptx_take(p, '!');
    take_simple(p, &o);
    if (o.kind != HED_PTX_OPERAND_REG || o.reg->type != HED_PTX_TYPE_PRED)
        hed_ptx_fail_name(p, "Predicate expression expected", "");
    i->guard = o.reg;
}

/* The instruction's name, whose words may be separated by blanks. */
static const struct hed_ptx_form *
take_form(struct hed_ptx_parser *p)
{
    char whole[256];
    size_t n;

    if (p->tok.kind != HED_PTX_TOKEN_IDENT)
        hed_ptx_syntax(p);
    hed_ptx_lex_opcode(&p->lex, &p->tok);

    const struct hed_ptx_token t = p->tok;

    hed_ptx_next(p);
    if (p->tok.kind != HED_PTX_TOKEN_DOT)
        return hed_ptx_form(p, t.text, t.len);
    n = t.len < sizeof(whole) ? t.len : sizeof(whole);
    memcpy(whole, t.text, n);
    for (; p->tok.kind == HED_PTX_TOKEN_DOT; hed_ptx_next(p)) {
        if (n + 1 + p->tok.len > sizeof(whole))
            hed_ptx_syntax(p);
        whole[n++] = '.';
        memcpy(whole + n, p->tok.text, p->tok.len);
        n += p->tok.len;
    }
    return hed_ptx_form(p, whole, n);
}

/* Skips a refused instruction, whatever its operands are. */
static void
skip_to_end(struct hed_ptx_parser *p)
{
    while (!hed_ptx_at(p, ';')) {
        if (p->tok.kind == HED_PTX_TOKEN_END)
            hed_ptx_syntax(p);
        hed_ptx_next(p);
    }
}

static void
keep_raw(struct hed_ptx_parser *p, struct hed_ptx_inst *i, const char *from)
{
    i->raw = hed_ptx_copy(p, from, (size_t)(p->tok.text - from));
}

static void
refuse_inst(struct hed_ptx_parser *p, const struct hed_ptx_inst *i)
{
    struct hed_ptx_refusal *r;

    if (p->func->refused)
        return;
    r = hed_ptx_alloc(p, 1, sizeof(*r));
    r->func = p->func;
    r->text = i->raw;
    r->why = i->form->refused;
    r->line = i->stmt.line;
    p->func->refused = r;
}

static uint8_t
wanted_kind(unsigned op)
{
    if (op == HED_PTX_OP_CALL)
        return HED_PTX_WANT_CALLS;
    return op == HED_PTX_OP_BRX_IDX ? HED_PTX_WANT_BRANCHES : HED_PTX_WANT_LABEL;
}

void
hed_ptx_take_inst(struct hed_ptx_parser *p)
{
    struct hed_ptx_operand o[HED_PTX_OPERANDS_MAX];
    struct hed_ptx_inst *i;
    unsigned n = 0;

    p->inst_at = p->body_end;
    i = hed_ptx_add_stmt(p, sizeof(*i), HED_PTX_STMT_INST);

    if (hed_ptx_take(p, '@'))
        take_guard(p, i);

    const char *from = p->tok.text;

    i->form = take_form(p);
    i->loc = p->loc;
    p->func->ninsts++;
    if (i->form->refused) {
        i->is_refused = true;
        skip_to_end(p);
        keep_raw(p, i, from);
        refuse_inst(p, i);
        hed_ptx_next(p);
        return;
    }
    p->want = wanted_kind(i->form->op);
    if (i->form->op == HED_PTX_OP_CALL) {
        memset(o, 0, 4 * sizeof(o[0]));
        n = take_call(p, o);
    } else if (!hed_ptx_at(p, ';')) {
        do {
            if (n == HED_PTX_OPERANDS_MAX)
                hed_ptx_fail(p, "Arguments mismatch for instruction '%s'",
                             hed_ptx_op_text(i->form->op));
            hed_ptx_take_operand(p, &o[n]);
            hed_ptx_take_sum(p, i->form, n, &o[n]);
            n++;
        } while (hed_ptx_take(p, ','));
    }
    if (!hed_ptx_at(p, ';'))
        hed_ptx_syntax(p);
    hed_ptx_rewrite_mov(p, i, o, n);
    i->noperands = (uint8_t)n;
    i->operands = keep_elements(p, o, n);
    hed_ptx_next(p);
    hed_ptx_check_inst(p, i);
}
