/* Values: conversions, comparisons, and what else computes but not in every form. */
#include "kernel/ptx/meaning/family.h"

/* ---- conversions ----------------------------------------------------------------------------- */

static bool
is_real(enum hed_ptx_type t)
{
    return t == HED_PTX_TYPE_F16 || t == HED_PTX_TYPE_BF16 || t == HED_PTX_TYPE_F32 ||
           t == HED_PTX_TYPE_F64 || t == HED_PTX_TYPE_TF32;
}

static bool
is_narrow_pair(enum hed_ptx_type t)
{
    switch (t) {
    case HED_PTX_TYPE_E4M3X2:
    case HED_PTX_TYPE_E5M2X2:
    case HED_PTX_TYPE_E2M3X2:
    case HED_PTX_TYPE_E3M2X2:
    case HED_PTX_TYPE_E2M1X2:
    case HED_PTX_TYPE_UE8M0X2:
        return true;
    default:
        return false;
    }
}

/* -1 if there is none. */
static int
conversion(enum hed_ptx_type to, enum hed_ptx_type from)
{
    const bool to_pair = hed_ptx_is_half_pair(to) || is_narrow_pair(to);
    const enum hed_ptx_type halves =
        from == HED_PTX_TYPE_UE8M0X2 ? HED_PTX_TYPE_BF16X2 : HED_PTX_TYPE_F16X2;

    if (hed_ptx_is_int(from))
        return hed_ptx_is_int(to) ? HED_PTX_INT_TO_INT : is_real(to) ? HED_PTX_INT_TO_REAL : -1;
    if (is_real(from) && hed_ptx_is_int(to))
        return HED_PTX_REAL_TO_INT;
    if (is_real(from) && is_real(to))
        return HED_PTX_REAL_TO_REAL;
    if (is_narrow_pair(from) && to == halves)
        return HED_PTX_PAIR_TO_HALVES;
    if (from == HED_PTX_TYPE_F32 && to_pair)
        return HED_PTX_FLOATS_TO_PAIR;
    return hed_ptx_is_half_pair(from) && to_pair ? HED_PTX_HALVES_TO_PAIR : -1;
}

HED_MEANING(cvt)
{
    const struct hed_ptx_form *f = i->form;
    const int found = conversion(f->types[0], f->types[1]);
    const unsigned sources = found == HED_PTX_FLOATS_TO_PAIR ? 2 : 1;

    if (found < 0 || f->round == HED_PTX_ROUND_RS || f->ntypes > 2 ||
        f->flags & HED_PTX_FLAG(SCALED_N2) || i->noperands != 1 + sources)
        return hed_meaning_refuse(why, "this conversion is not supported");
    m->conversion = (enum hed_ptx_conversion)found;
    return 0;
}

HED_MEANING(cvt_pack)
{
    const enum hed_ptx_type to = i->form->types[0], from = i->form->types[1];

    if (!hed_ptx_is_int(to) || hed_ptx_types[to].bits > 16 || !hed_ptx_is_int(from) ||
        hed_ptx_types[from].bits != 32)
        return hed_meaning_refuse(why, "only integers of 32 bits can be packed, into 8 or 16 bits");
    return 0;
}

/* ---- the others ------------------------------------------------------------------------------ */

/* set and setp */
HED_MEANING(compare)
{
    const struct hed_ptx_form *f = i->form;
    const bool is_unsigned = f->cmp >= HED_PTX_CMP_LO && f->cmp <= HED_PTX_CMP_HS;

    if (hed_ptx_is_int(f->types[f->ntypes - 1])) {
        if (f->cmp > HED_PTX_CMP_HS)
            return hed_meaning_refuse(why, "this comparison does not exist for integers");
    } else if (is_unsigned) {
        return hed_meaning_refuse(why, "this comparison does not exist for floats");
    }
    if (f->oper > HED_PTX_OPER_XOR)
        return hed_meaning_refuse(why, "comparisons cannot be combined with this operation");
    return 0;
}

_Static_assert(HED_PTX_CMP_EQ == 1 && HED_PTX_CMP_LO == 7 && HED_PTX_CMP_HS == 10 &&
                   HED_PTX_OPER_AND == 1 && HED_PTX_OPER_XOR == 3,
               "words.def has first what all have, then what integers have, then what floats have");

unsigned
hed_ptx_prmt_byte(enum hed_ptx_mode mode, unsigned k, unsigned n)
{
    switch (mode) {
    case HED_PTX_MODE_F4E:
        return n + k;
    case HED_PTX_MODE_B4E:
        return (n - k) & 7;
    case HED_PTX_MODE_RC8:
        return n;
    case HED_PTX_MODE_ECL:
        return k > n ? k : n;
    case HED_PTX_MODE_ECR:
        return k < n ? k : n;
    default:
        return (n & 1) * 2 + (k & 1);
    }
}

HED_MEANING(lop3)
{
    if (i->operands[4].kind != HED_PTX_OPERAND_INT)
        return hed_meaning_refuse(why, "the table of lop3 must be a constant");
    return 0;
}

HED_MEANING(mov)
{
    if (i->operands[1].kind == HED_PTX_OPERAND_LABEL)
        return hed_meaning_refuse(why, "the address of a label is not supported");
    return 0;
}
