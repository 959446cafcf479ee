/* Memory: atomics, asynchronous copies and their barrier objects, the stack. */
#include <string.h>

#include "kernel/ptx/meaning/family.h"

#define STACK_ALIGN_MAX 4096

/* ---- atomics --------------------------------------------------------------------------------- */

static bool
operation_exists(const struct hed_ptx_form *f)
{
    const enum hed_ptx_type type = f->types[0];
    const struct hed_ptx_type_info *t = &hed_ptx_types[type];
    const bool is_real = t->kind == HED_PTX_KIND_F || t->kind == HED_PTX_KIND_X;
    const bool is_half =
        type == HED_PTX_TYPE_F16 || type == HED_PTX_TYPE_BF16 || hed_ptx_is_half_pair(type);

    if (t->bits < 16)
        return false;
    if (t->bits == 128)
        return f->oper == HED_PTX_OPER_EXCH || f->oper == HED_PTX_OPER_CAS;
    switch (f->oper) {
    case HED_PTX_OPER_ADD:
    case HED_PTX_OPER_EXCH:
    case HED_PTX_OPER_CAS:
        return true;
    case HED_PTX_OPER_MIN:
    case HED_PTX_OPER_MAX:
        return !is_real || is_half;
    case HED_PTX_OPER_POPC:
        return false;
    default:
        return !is_real;
    }
}

HED_MEANING(atomic)
{
    const struct hed_ptx_form *f = i->form;
    const bool is_red = f->op == HED_PTX_OP_RED;
    const bool is_cas = f->oper == HED_PTX_OPER_CAS;
    const struct hed_ptx_operand *memory = &i->operands[is_red ? 0 : 1];

    if (is_red && is_cas)
        return hed_meaning_refuse(why, "red has no cas");
    if (!operation_exists(f))
        return hed_meaning_refuse(why, "this operation does not exist for this type");
    m->atomic = (struct hed_ptx_atomic){
        .to = is_red ? NULL : &i->operands[0],
        .memory = memory,
        .from = memory + 1,
        .swap = is_cas ? memory + 2 : NULL,
        .bytes = hed_ptx_types[f->types[0]].bits / 8,
        .count = f->vec ? f->vec : 1,
    };
    return 0;
}

/* ---- copies and barrier objects -------------------------------------------------------------- */

/* cp.async [to], [from], bytes {, bytes to take from the source | ignore the source} */
HED_MEANING(copy)
{
    const struct hed_ptx_operand *o = i->operands;
    const bool has_hint = (i->form->flags & HED_PTX_FLAG(CACHE_HINT)) != 0;
    const bool has_more = i->noperands > (has_hint ? 4 : 3);
    const unsigned bytes = o[2].kind == HED_PTX_OPERAND_INT ? (unsigned)o[2].bits : 0;

    if (bytes != 4 && bytes != 8 && bytes != 16)
        return hed_meaning_refuse(why, "a copy of %u bytes is not supported", bytes);
    m->copy = (struct hed_ptx_copy){.bytes = bytes};
    if (has_more && !(o[3].kind == HED_PTX_OPERAND_INT && o[3].bits == bytes))
        m->copy.take = &o[3];
    m->copy.take_is_predicate =
        has_more && o[3].kind == HED_PTX_OPERAND_REG && o[3].reg->type == HED_PTX_TYPE_PRED;
    return 0;
}

/* cp.async.bulk [to], [from], bytes {, [barrier]} ... */
HED_MEANING(bulk_copy)
{
    if (i->form->nspaces < 2 || strstr(i->form->text, "cp_mask"))
        return hed_meaning_refuse(why, "this kind of copy is not supported");
    m->copy = (struct hed_ptx_copy){.bytes = 0};
    if (strstr(i->form->text, "mbarrier::complete_tx") && i->noperands > 3)
        m->copy.barrier = &i->operands[3];
    return 0;
}

/* mbarrier.arrive and .arrive_drop: {state,} [barrier] {, count}; with .expect_tx the last operand
 * is a number of bytes instead. */
HED_MEANING(arrival)
{
    const bool has_state = i->pattern == 0;
    const struct hed_ptx_operand *barrier = &i->operands[has_state ? 1 : 0];
    const struct hed_ptx_operand *given = i->noperands > 1 + has_state ? barrier + 1 : NULL;
    const bool expects = (i->form->flags & HED_PTX_FLAG(EXPECT_TX)) != 0;

    m->arrival = (struct hed_ptx_arrival){
        .state = has_state ? &i->operands[0] : NULL,
        .barrier = barrier,
        .count = expects ? NULL : given,
        .bytes = expects ? given : NULL,
        .drops = i->form->op == HED_PTX_OP_MBARRIER_ARRIVE_DROP,
    };
    return 0;
}

/* ---- the stack ------------------------------------------------------------------------------- */

HED_MEANING(alloca)
{
    uint64_t align = 8;

    if (i->noperands > 2 && i->operands[2].kind == HED_PTX_OPERAND_INT)
        align = i->operands[2].bits;
    if (align == 0 || (align & (align - 1)) != 0 || align > STACK_ALIGN_MAX)
        return hed_meaning_refuse(why, "an alignment of %u bytes is not supported",
                                  (unsigned)align);
    m->align = (unsigned)align;
    return 0;
}
