/* Registers that need no step of their own: their value is a constant, or that of another register.
 *
 * A register that one instruction writes, whatever the guard and the lanes, can be read elsewhere
 * if that instruction only moves. A constant never changes. Another register holds the value for as
 * long as it is not written again, and one instruction writes it, too; so it is enough that each
 * lane that comes to one of the two instructions comes to the other:
 *
 *   entry:   both lie before the first label, or the register read does: it is written once
 *   block:   no label and no branch is between them
 *
 * Before the move, nobody reads what it writes: it is the first in the text to mention it.
 */
#include <string.h>

#include "kernel/ptx/interp/inside.h"
#include "kernel/ptx/pass/pass.h"

#define ENTRY 1u /* of made[]: before the first label; 0 is not known */

static bool
is_written_once(const struct interp_decoder *d, const struct hed_ptx_reg *r)
{
    return !r->vec && d->uses[r->id] == HED_PTX_USE_ONCE;
}

static void
mark_written(struct interp_decoder *d, const struct hed_ptx_operand *o)
{
    if (o->kind == HED_PTX_OPERAND_REG)
        d->uses[o->reg->id] = HED_PTX_USE_MANY;
    else if (o->kind == HED_PTX_OPERAND_VEC || o->kind == HED_PTX_OPERAND_PAIR ||
             o->kind == HED_PTX_OPERAND_LIST || o->kind == HED_PTX_OPERAND_TUPLE)
        for (uint32_t i = 0; i < o->count; i++)
            mark_written(d, &o->elems[i]);
}

void
hed_interp_find_written(struct interp_decoder *d)
{
    const struct hed_ptx_func *f = d->func->ptx;

    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        /* For hed_ptx_find_uses() they are no writes, since some lanes keep what they have. */
        if (s->kind == HED_PTX_STMT_INST && i->guard && i->noperands > 0)
            mark_written(d, &i->operands[0]);
    }
    /* Callers write the ones, and read the others. */
    for (const struct hed_ptx_var *v = f->is_entry ? NULL : f->sig.params; v; v = v->next)
        if (v->space == HED_PTX_SPACE_REG && v->reg)
            d->uses[v->reg->id] = HED_PTX_USE_MANY;
    for (const struct hed_ptx_var *v = f->is_entry ? NULL : f->sig.rets; v; v = v->next)
        if (v->space == HED_PTX_SPACE_REG && v->reg)
            d->uses[v->reg->id] = HED_PTX_USE_MANY;
}

void
hed_interp_note_label(struct interp_decoder *d)
{
    d->block = d->block < ENTRY + 1 ? ENTRY + 1 : d->block + 1;
}

void
hed_interp_note_made(struct interp_decoder *d, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *to = &i->operands[0];

    if (hed_ptx_op_nature(i->form->op) == HED_PTX_LEAVES && d->block > ENTRY)
        d->block++;
    else if (i->noperands > 0 && to->kind == HED_PTX_OPERAND_REG)
        d->made[to->reg->id] = d->block;
}

bool
hed_interp_known_word(const struct interp_decoder *d, uint32_t place, uint32_t *word)
{
    if (!(place & 1) || d->err)
        return false;
    memcpy(word, d->pool + (place - 1), sizeof(*word));
    return true;
}

bool
hed_interp_learn(struct interp_decoder *d, const struct hed_ptx_operand *to,
                 const struct hed_ptx_operand *from, uint32_t place, unsigned bytes)
{
    if (d->err || bytes == 0 || to->kind != HED_PTX_OPERAND_REG || !is_written_once(d, to->reg) ||
        interp_bytes(to->reg->type) != bytes)
        return false;
    if (!(place & 1)) {
        if (from->kind != HED_PTX_OPERAND_REG || !is_written_once(d, from->reg) ||
            interp_bytes(from->reg->type) != bytes)
            return false;
        if (d->made[from->reg->id] != ENTRY && d->made[from->reg->id] != d->block)
            return false;
    }
    d->known[to->reg->id] = place;
    return true;
}
