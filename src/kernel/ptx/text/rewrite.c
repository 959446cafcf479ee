/* Rewrites what ptxas accepts beyond the manual into plain instructions that mean the same, so that
 * nothing behind the parser has to know it:
 *
 *   st.u64 [a], r+1;         .reg .b64 t; add.s64 t, r, 1; st.u64 [a], t;
 *   mov.b64 r, v;            mov.b64 r, {v.x, v.y, v.z, v.w};
 *   mov.v2.u32 {a, b}, v;    mov.u32 a, v.x; mov.u32 b, v.y;
 *   mov.v2.u32 {a, b}, {b, a};   the same, but the sources are copied to new registers first
 *
 * A sum is one of integers, as wide as its register. ptxas was seen to make the same machine code
 * of both sides.
 */
#include "kernel/ptx/text/parser.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 32 };

/* Adds a statement before the instruction that is being read. */
static void *
insert_stmt(struct hed_ptx_parser *p, size_t size, int kind)
{
    struct hed_ptx_stmt **end = p->body_end, *inst = *p->inst_at;
    struct hed_ptx_stmt *s;

    p->body_end = p->inst_at;
    s = hed_ptx_add_stmt(p, size, kind);
    s->next = inst;
    p->inst_at = &s->next;
    p->body_end = end;
    return s;
}

static struct hed_ptx_operand
new_register(struct hed_ptx_parser *p, enum hed_ptx_type type)
{
    struct hed_ptx_regs *decl = hed_ptx_alloc(p, 1, sizeof(*decl));
    struct hed_ptx_stmt *s = insert_stmt(p, sizeof(*s), HED_PTX_STMT_REGS);
    char name[NAME_MAX_BYTES];
    const int n = snprintf(name, sizeof(name), "%%__new%u", p->func->nregs);

    decl->name = hed_ptx_copy(p, name, (size_t)n);
    decl->type = (uint8_t)type;
    decl->count = 1;
    s->regs = decl;
    return (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_REG,
                                    .reg = hed_ptx_new_reg(p, decl->name, decl)};
}

/* name.type a, b[, c]: before the instruction that is being read. */
static struct hed_ptx_inst *
insert_inst(struct hed_ptx_parser *p, const char *name, enum hed_ptx_type type,
            const struct hed_ptx_operand *operands, unsigned count)
{
    struct hed_ptx_inst *i = insert_stmt(p, sizeof(*i), HED_PTX_STMT_INST);
    char text[NAME_MAX_BYTES];
    const int n = snprintf(text, sizeof(text), "%s.%s", name, hed_ptx_types[type].text);

    i->form = hed_ptx_form(p, text, (size_t)n);
    i->loc = p->loc;
    i->noperands = (uint8_t)count;
    i->operands = hed_ptx_alloc(p, count, sizeof(*operands));
    memcpy(i->operands, operands, count * sizeof(*operands));
    p->func->ninsts++;
    hed_ptx_check_inst(p, i);
    return i;
}

/* ---- r+1 ------------------------------------------------------------------------------------- */

static bool
can_be_sum(const struct hed_ptx_operand *o)
{
    const struct hed_ptx_type_info *t = &hed_ptx_types[o->reg->type];

    return !o->sel && !o->reg->vec && !o->negated && t->bits >= 16 && t->bits <= 64 &&
           (t->kind == HED_PTX_KIND_U || t->kind == HED_PTX_KIND_S || t->kind == HED_PTX_KIND_B);
}

void
hed_ptx_take_sum(struct hed_ptx_parser *p, const struct hed_ptx_form *form, unsigned nth,
                 struct hed_ptx_operand *o)
{
    if (o->kind != HED_PTX_OPERAND_REG || !hed_ptx_at(p, '+') || nth >= HED_PTX_OPERANDS_MAX ||
        !strchr("suM", form->patterns[0].slots[nth].role) || !form->patterns[0].slots[nth].role)
        return;
    if (!can_be_sum(o))
        hed_ptx_fail(p, "Arguments mismatch for instruction '%s'", hed_ptx_op_text(form->op));

    const struct hed_ptx_value v = hed_ptx_take_value(p);
    const unsigned bits = hed_ptx_types[o->reg->type].bits;
    const enum hed_ptx_type type = bits == 16   ? HED_PTX_TYPE_S16
                                   : bits == 32 ? HED_PTX_TYPE_S32
                                                : HED_PTX_TYPE_S64;

    if (v.kind != HED_PTX_VALUE_INT)
        hed_ptx_fail(p, "Integer offset expected");

    const struct hed_ptx_operand sum = new_register(p, o->reg->type);
    const struct hed_ptx_operand parts[] = {sum, *o, {.kind = HED_PTX_OPERAND_INT, .bits = v.bits}};

    insert_inst(p, "add", type, parts, 3);
    *o = sum;
}

/* ---- mov ------------------------------------------------------------------------------------- */

/* The number of elements of a vector register, or of a special register such as %tid. */
static unsigned
count_elements(const struct hed_ptx_operand *o)
{
    if (o->sel)
        return 0;
    if (o->kind == HED_PTX_OPERAND_REG)
        return o->reg->vec;
    return o->kind == HED_PTX_OPERAND_SREG && hed_ptx_sregs[o->sreg].dims ? 4 : 0;
}

/* A vector register becomes a list of its elements. */
static void
list_elements(struct hed_ptx_parser *p, struct hed_ptx_operand *o)
{
    const unsigned count = count_elements(o);
    struct hed_ptx_operand *elems;

    if (count == 0)
        return;
    elems = hed_ptx_alloc(p, count, sizeof(*elems));
    for (unsigned i = 0; i < count; i++) {
        elems[i] = *o;
        elems[i].sel = (uint16_t)(i + 1);
    }
    *o = (struct hed_ptx_operand){.kind = HED_PTX_OPERAND_VEC, .count = count, .elems = elems};
}

static bool
is_same_register(const struct hed_ptx_operand *a, const struct hed_ptx_operand *b)
{
    return a->kind == HED_PTX_OPERAND_REG && b->kind == HED_PTX_OPERAND_REG && a->reg == b->reg &&
           a->sel == b->sel;
}

/* Would writing the elements of `to` one by one change an element of `from` that is read later? */
static bool
vectors_overlap(const struct hed_ptx_operand *to, const struct hed_ptx_operand *from)
{
    for (uint32_t i = 0; i < to->count; i++) {
        for (uint32_t j = i + 1; j < from->count; j++) {
            if (is_same_register(&to->elems[i], &from->elems[j]))
                return true;
        }
    }
    return false;
}

/* A new register that holds what the element holds now. */
static struct hed_ptx_operand
copy_element(struct hed_ptx_parser *p, enum hed_ptx_type type, const struct hed_ptx_operand *o)
{
    const struct hed_ptx_operand copy[] = {new_register(p, type), *o};

    insert_inst(p, "mov", type, copy, 2);
    return copy[0];
}

/* All but the last element get an instruction of their own. */
static void
split_mov(struct hed_ptx_parser *p, struct hed_ptx_inst *i, struct hed_ptx_operand *o)
{
    const enum hed_ptx_type type = i->form->types[0];
    const uint32_t count = i->form->vec;
    char text[NAME_MAX_BYTES];

    if (count > 4)
        hed_ptx_fail(p, "Illegal vector size in instruction 'mov'");
    if (o[0].kind != HED_PTX_OPERAND_VEC || o[1].kind != HED_PTX_OPERAND_VEC ||
        o[0].count != count || o[1].count != count)
        hed_ptx_fail(p, "Arguments mismatch for instruction 'mov'");
    if (vectors_overlap(&o[0], &o[1])) {
        for (uint32_t k = 0; k < count; k++)
            o[1].elems[k] = copy_element(p, type, &o[1].elems[k]);
    }
    for (uint32_t k = 0; k + 1 < count; k++) {
        const struct hed_ptx_operand pair[] = {o[0].elems[k], o[1].elems[k]};
        struct hed_ptx_inst *one = insert_inst(p, "mov", type, pair, 2);

        one->guard = i->guard;
        one->guard_negated = i->guard_negated;
    }
    o[0] = o[0].elems[count - 1];
    o[1] = o[1].elems[count - 1];

    const int n = snprintf(text, sizeof(text), "mov.%s", hed_ptx_types[type].text);

    i->form = hed_ptx_form(p, text, (size_t)n);
}

void
hed_ptx_rewrite_mov(struct hed_ptx_parser *p, struct hed_ptx_inst *i, struct hed_ptx_operand *o,
                    unsigned count)
{
    if (i->form->op != HED_PTX_OP_MOV || count != 2)
        return;
    if (i->form->vec || hed_ptx_types[i->form->types[0]].kind == HED_PTX_KIND_B) {
        list_elements(p, &o[0]);
        list_elements(p, &o[1]);
    }
    if (i->form->vec)
        split_mov(p, i, o);
}
