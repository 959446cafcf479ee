/* Bits: logic, shifts, fields, permutations, counting, and dot products of bytes. */
#include "kernel/ptx/lower/family/family.h"
#include "kernel/ptx/lower/family/math.h"

/* ---- shifts ---------------------------------------------------------------------------------- */

LLVMValueRef
hed_shift_left(struct hed_lower *l, LLVMValueRef v, LLVMValueRef by)
{
    LLVMTypeRef t = hed_lane_type(v);
    LLVMValueRef width = hed_like(l, by, LLVMGetIntTypeWidth(t));
    LLVMValueRef fits = hed_icmp(l, LLVMIntULT, by, width);
    LLVMValueRef safe = hed_lower_select(l, fits, by, hed_like(l, by, 0));

    safe = hed_lower_resize(l, safe, t, false);
    return hed_lower_select(l, fits, LLVMBuildShl(l->b, v, safe, ""), hed_like(l, v, 0));
}

LLVMValueRef
hed_shift_right(struct hed_lower *l, LLVMValueRef v, LLVMValueRef by, bool is_signed)
{
    LLVMTypeRef t = hed_lane_type(v);
    const unsigned bits = LLVMGetIntTypeWidth(t);
    LLVMValueRef fits = hed_icmp(l, LLVMIntULT, by, hed_like(l, by, bits));
    LLVMValueRef safe = hed_lower_select(l, fits, by, hed_like(l, by, is_signed ? bits - 1 : 0));

    safe = hed_lower_resize(l, safe, t, false);
    if (is_signed)
        return LLVMBuildAShr(l->b, v, safe, "");
    return hed_lower_select(l, fits, LLVMBuildLShr(l->b, v, safe, ""), hed_like(l, v, 0));
}

/* A value with the low n bits set; n is from 0 to the width. */
static LLVMValueRef
low_ones(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef n)
{
    LLVMValueRef one = hed_lower_int(l, t, 1);

    return LLVMBuildSub(l->b, hed_shift_left(l, one, n), one, "");
}

/* Positions and lengths of fields count modulo 256, except that a GPU takes those of 64-bit fields
 * as they are. */
static LLVMValueRef
field_size(struct hed_lower *l, LLVMValueRef v, unsigned bits)
{
    if (bits == 64)
        return hed_two(l, "llvm.umin", v, hed_like(l, v, 64));
    return LLVMBuildAnd(l->b, v, hed_like(l, v, 255), "");
}

static LLVMValueRef
at_most(struct hed_lower *l, LLVMValueRef v, uint64_t n)
{
    return hed_two(l, "llvm.umin", v, hed_like(l, v, n));
}

static LLVMValueRef
funnel_shift(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    const bool left = l->inst->form->mode == HED_PTX_MODE_L;
    LLVMValueRef both =
        LLVMBuildShl(l->b, hed_zext(l, b, l->i64), hed_lower_int(l, l->i64, 32), "");

    both = LLVMBuildOr(l->b, both, hed_zext(l, a, l->i64), "");
    c = l->inst->form->clamp == HED_PTX_CLAMP_WRAP ? LLVMBuildAnd(l->b, c, hed_like(l, c, 31), "")
                                                   : at_most(l, c, 32);
    c = hed_zext(l, c, l->i64);
    if (!left)
        return hed_trunc(l, LLVMBuildLShr(l->b, both, c, ""), l->i32);
    both = LLVMBuildShl(l->b, both, c, "");
    return hed_trunc(l, LLVMBuildLShr(l->b, both, hed_like(l, both, 32), ""), l->i32);
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* "The destination d is padded with the sign bit of the extracted field. If the start position is
 * beyond the msb of the input, d is filled with the replicated sign bit of the extracted field":
 * the sign is bit min(pos + len - 1, msb), and 0 for a length of 0. PTX ISA, bfe. */
static LLVMValueRef
extract_field(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef a, LLVMValueRef pos,
              LLVMValueRef len)
{
    const unsigned bits = hed_ptx_types[t].bits;
    LLVMTypeRef type = hed_lane_type(a);
    LLVMValueRef empty, at, sign, mask, field;

    pos = field_size(l, pos, bits);
    len = field_size(l, len, bits);
    empty = hed_icmp(l, LLVMIntEQ, len, hed_like(l, len, 0));
    mask = low_ones(l, type, len);
    field = LLVMBuildAnd(l->b, hed_shift_right(l, a, pos, false), mask, "");
    if (!hed_is_signed(t))
        return field;
    at = LLVMBuildSub(l->b, LLVMBuildAdd(l->b, pos, len, ""), hed_like(l, len, 1), "");
    at = hed_lower_select(l, empty, hed_like(l, at, 0), at_most(l, at, bits - 1));
    sign = hed_trunc(l, hed_shift_right(l, a, at, false), l->i1);
    sign = LLVMBuildAnd(l->b, sign, LLVMBuildNot(l->b, empty, ""), "");

    /* Bits of the field beyond the msb of the input are copies of the sign too. */
    LLVMValueRef there = LLVMBuildSub(l->b, hed_like(l, pos, bits), at_most(l, pos, bits), "");

    mask = LLVMBuildAnd(l->b, mask, low_ones(l, type, there), "");
    return hed_lower_select(l, sign, LLVMBuildOr(l->b, field, LLVMBuildNot(l->b, mask, ""), ""),
                            field);
}

static LLVMValueRef
insert_field(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef pos,
             LLVMValueRef len)
{
    const unsigned bits = LLVMGetIntTypeWidth(hed_lane_type(a));
    LLVMValueRef mask;

    pos = field_size(l, pos, bits);
    mask = hed_shift_left(l, low_ones(l, hed_lane_type(a), field_size(l, len, bits)), pos);
    a = LLVMBuildAnd(l->b, hed_shift_left(l, a, pos), mask, "");
    return LLVMBuildOr(l->b, a, LLVMBuildAnd(l->b, b, LLVMBuildNot(l->b, mask, ""), ""), "");
}

static LLVMValueRef
extend_from_size(struct hed_lower *l, bool is_signed, LLVMValueRef a, LLVMValueRef n)
{
    LLVMValueRef zero = hed_like(l, a, 0);
    LLVMValueRef up;
    LLVMValueRef r;

    n = l->inst->form->clamp == HED_PTX_CLAMP_WRAP ? LLVMBuildAnd(l->b, n, hed_like(l, n, 31), "")
                                                   : at_most(l, n, 32);
    up = LLVMBuildSub(l->b, hed_like(l, n, 32), n, "");
    r = hed_shift_right(l, hed_shift_left(l, a, up), up, is_signed);
    return hed_lower_select(l, hed_icmp(l, LLVMIntEQ, n, zero), zero, r);
}

static LLVMValueRef
bit_mask(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b)
{
    if (l->inst->form->clamp == HED_PTX_CLAMP_WRAP) {
        a = LLVMBuildAnd(l->b, a, hed_like(l, a, 31), "");
        b = LLVMBuildAnd(l->b, b, hed_like(l, b, 31), "");
    }
    return hed_shift_left(l, low_ones(l, l->i32, b), a);
}

/* ---- counting -------------------------------------------------------------------------------- */

static LLVMValueRef
leading_zeros(struct hed_lower *l, LLVMValueRef a)
{
    LLVMValueRef args[] = {a, LLVMConstInt(l->i1, 0, false)};

    return hed_lower_intrinsic(l, "llvm.ctlz", LLVMTypeOf(a), args, 2);
}

/* "bfind returns 0xffffffff if no non-sign bit is found" (PTX ISA, bfind), also with .shiftamt. */
static LLVMValueRef
find_top(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef a)
{
    const unsigned bits = hed_ptx_types[t].bits;
    LLVMValueRef none, zeros;

    if (hed_is_signed(t)) {
        LLVMValueRef sign = LLVMBuildAShr(l->b, a, hed_like(l, a, bits - 1), "");

        a = LLVMBuildXor(l->b, a, sign, "");
    }
    none = hed_icmp(l, LLVMIntEQ, a, hed_like(l, a, 0));
    zeros = hed_lower_resize(l, leading_zeros(l, a), l->i32, false);
    if (!HED_SAID(l, SHIFTAMT))
        zeros = LLVMBuildSub(l->b, hed_like(l, zeros, bits - 1), zeros, "");
    return hed_lower_select(l, none, hed_like(l, zeros, UINT32_MAX), zeros);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Byte n (a value, 0 to 7) of the eight in v. */
static LLVMValueRef
pick_byte(struct hed_lower *l, LLVMValueRef v, LLVMValueRef n)
{
    n = LLVMBuildShl(l->b, hed_zext(l, n, l->i64), hed_lower_int(l, l->i64, 3), "");
    v = LLVMBuildLShr(l->b, v, n, "");
    return LLVMBuildAnd(l->b, hed_trunc(l, v, l->i32), hed_lower_int(l, l->i32, 255), "");
}

static LLVMValueRef
special_selector(struct hed_lower *l, enum hed_ptx_mode mode, LLVMValueRef c)
{
    LLVMValueRef sel = hed_like(l, c, 0);

    c = LLVMBuildAnd(l->b, c, hed_like(l, c, 3), "");
    for (unsigned n = 0; n < 4; n++) {
        uint64_t s = 0;

        for (unsigned k = 0; k < 4; k++)
            s |= (uint64_t)hed_ptx_prmt_byte(mode, k, n) << (4 * k);
        sel = hed_lower_select(l, hed_icmp(l, LLVMIntEQ, c, hed_like(l, c, n)), hed_like(l, c, s),
                               sel);
    }
    return sel;
}

static LLVMValueRef
permute_bytes(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    const enum hed_ptx_mode mode = l->inst->form->mode;
    LLVMValueRef both =
        LLVMBuildShl(l->b, hed_zext(l, b, l->i64), hed_lower_int(l, l->i64, 32), "");
    LLVMValueRef r = hed_like(l, c, 0);

    both = LLVMBuildOr(l->b, both, hed_zext(l, a, l->i64), "");
    if (mode != HED_PTX_MODE_NONE)
        c = special_selector(l, mode, c);
    for (unsigned k = 0; k < 4; k++) {
        LLVMValueRef nibble = LLVMBuildLShr(l->b, c, hed_like(l, c, 4 * k), "");
        LLVMValueRef byte = pick_byte(l, both, LLVMBuildAnd(l->b, nibble, hed_like(l, c, 7), ""));
        LLVMValueRef copies = LLVMBuildAnd(l->b, nibble, hed_like(l, c, 8), "");
        LLVMValueRef sign = LLVMBuildMul(l->b, LLVMBuildLShr(l->b, byte, hed_like(l, c, 7), ""),
                                         hed_like(l, c, 255), "");

        byte = hed_lower_select(l, hed_icmp(l, LLVMIntNE, copies, hed_like(l, c, 0)), sign, byte);
        r = LLVMBuildOr(l->b, r, LLVMBuildShl(l->b, byte, hed_like(l, c, 8 * k), ""), "");
    }
    return r;
}

/* Field n of v, with fields of `bits` bits, extended. */
static LLVMValueRef
signed_field(struct hed_lower *l, LLVMValueRef v, unsigned n, unsigned bits, bool is_signed)
{
    LLVMValueRef rest = hed_like(l, v, 32 - bits);

    v = LLVMBuildShl(l->b, v, hed_like(l, v, 32 - bits * (n + 1)), "");
    return is_signed ? LLVMBuildAShr(l->b, v, rest, "") : LLVMBuildLShr(l->b, v, rest, "");
}

/* dp4a multiplies four bytes by four; dp2a two halves of a by two bytes of b. */
static LLVMValueRef
dot_product(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    const struct hed_ptx_form *f = l->inst->form;
    const unsigned count = f->op == HED_PTX_OP_DP4A ? 4 : 2;
    const unsigned first = f->part == HED_PTX_PART_HI ? 2 : 0;
    const bool is_signed = hed_is_signed(f->types[0]);
    LLVMValueRef whole = NULL;

    if (count == 4)
        whole = hed_dot_bytes(l, a, b, c, is_signed, hed_is_signed(f->types[1]));
    if (whole)
        return whole;
    for (unsigned k = 0; k < count; k++) {
        LLVMValueRef x = signed_field(l, a, k, 32 / count, is_signed);
        LLVMValueRef y = signed_field(l, b, first + k, 8, hed_is_signed(f->types[1]));

        c = LLVMBuildAdd(l->b, c, LLVMBuildMul(l->b, x, y, ""), "");
    }
    return c;
}

/* ---- logic ----------------------------------------------------------------------------------- */

static LLVMValueRef
logic_of_three(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, unsigned lut)
{
    LLVMValueRef in[] = {a, b, c};
    LLVMValueRef r = hed_like(l, a, 0);

    /* A sum of products; LLVM finds the short form. */
    for (unsigned n = 0; n < 8; n++) {
        LLVMValueRef term = NULL;

        if (!(lut >> n & 1))
            continue;
        for (unsigned k = 0; k < 3; k++) {
            LLVMValueRef x = n >> (2 - k) & 1 ? in[k] : LLVMBuildNot(l->b, in[k], "");

            term = term ? LLVMBuildAnd(l->b, term, x, "") : x;
        }
        r = LLVMBuildOr(l->b, r, term, "");
    }
    return r;
}

void
hed_op_lop3(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const struct hed_ptx_operand *d = &i->operands[0];
    LLVMValueRef r;

    r = logic_of_three(l, hed_operand(l, 1, HED_PTX_TYPE_B32), hed_operand(l, 2, HED_PTX_TYPE_B32),
                       hed_operand(l, 3, HED_PTX_TYPE_B32), (unsigned)(i->operands[4].bits & 255));
    if (d->kind == HED_PTX_OPERAND_PAIR) {
        LLVMValueRef p = hed_icmp(l, LLVMIntNE, r, hed_like(l, r, 0));
        LLVMValueRef q = i->noperands > 5 ? hed_operand(l, 5, HED_PTX_TYPE_PRED) : NULL;

        if (q)
            p = i->form->oper == HED_PTX_OPER_AND ? LLVMBuildAnd(l->b, p, q, "")
                                                  : LLVMBuildOr(l->b, p, q, "");
        hed_lower_set(l, &d->elems[1], HED_PTX_TYPE_PRED, p);
        d = &d->elems[0];
    }
    hed_lower_set(l, d, HED_PTX_TYPE_B32, r);
}

void
hed_op_logic(struct hed_lower *l)
{
    const enum hed_ptx_type t = l->inst->form->types[0];
    LLVMValueRef a = hed_operand(l, 1, t);
    LLVMValueRef r;

    switch (l->inst->form->op) {
    case HED_PTX_OP_AND:
        r = LLVMBuildAnd(l->b, a, hed_operand(l, 2, t), "");
        break;
    case HED_PTX_OP_OR:
        r = LLVMBuildOr(l->b, a, hed_operand(l, 2, t), "");
        break;
    case HED_PTX_OP_XOR:
        r = LLVMBuildXor(l->b, a, hed_operand(l, 2, t), "");
        break;
    case HED_PTX_OP_NOT:
        r = LLVMBuildNot(l->b, a, "");
        break;
    default: /* cnot */
        r = hed_zext(l, hed_icmp(l, LLVMIntEQ, a, hed_like(l, a, 0)), hed_lane_type(a));
        break;
    }
    hed_lower_set(l, &l->inst->operands[0], t, r);
}

/* ---- instructions with a result of their own type -------------------------------------------- */

/* Source n of an instruction, as a 32-bit number: amounts, positions, selectors. */
static LLVMValueRef
word_operand(struct hed_lower *l, unsigned n)
{
    return hed_operand(l, n, HED_PTX_TYPE_U32);
}

static void
set_same_type(struct hed_lower *l, LLVMValueRef v)
{
    hed_lower_set(l, &l->inst->operands[0], l->inst->form->types[0], v);
}

/* Source 1, of the instruction's type. */
static LLVMValueRef
first_source(struct hed_lower *l)
{
    return hed_operand(l, 1, l->inst->form->types[0]);
}

void
hed_op_shift(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    LLVMValueRef a = first_source(l), by = word_operand(l, 2);

    set_same_type(l, f->op == HED_PTX_OP_SHL
                         ? hed_shift_left(l, a, by)
                         : hed_shift_right(l, a, by, hed_is_signed(f->types[0])));
}

void
hed_op_brev(struct hed_lower *l)
{
    set_same_type(l, hed_one(l, "llvm.bitreverse", first_source(l)));
}

void
hed_op_bfe(struct hed_lower *l)
{
    set_same_type(l, extract_field(l, l->inst->form->types[0], first_source(l), word_operand(l, 2),
                                   word_operand(l, 3)));
}

void
hed_op_bfi(struct hed_lower *l)
{
    LLVMValueRef a = first_source(l), b = hed_operand(l, 2, l->inst->form->types[0]);

    set_same_type(l, insert_field(l, a, b, word_operand(l, 3), word_operand(l, 4)));
}

/* ---- instructions with a result of 32 bits, whatever their type ------------------------------ */

static void
set_word(struct hed_lower *l, LLVMValueRef v)
{
    hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_U32, v);
}

void
hed_op_popc(struct hed_lower *l)
{
    set_word(l, hed_lower_resize(l, hed_one(l, "llvm.ctpop", first_source(l)), l->i32, false));
}

void
hed_op_clz(struct hed_lower *l)
{
    set_word(l, hed_lower_resize(l, leading_zeros(l, first_source(l)), l->i32, false));
}

void
hed_op_bfind(struct hed_lower *l)
{
    set_word(l, find_top(l, l->inst->form->types[0], first_source(l)));
}

void
hed_op_fns(struct hed_lower *l)
{
    LLVMValueRef args[] = {first_source(l), word_operand(l, 2), word_operand(l, 3)};

    set_word(l, hed_lower_helper(l, "hed_ptx_fns", l->i32, args, 3));
}

void
hed_op_szext(struct hed_lower *l)
{
    set_word(l, extend_from_size(l, hed_is_signed(l->inst->form->types[0]), first_source(l),
                                 word_operand(l, 2)));
}

void
hed_op_bmsk(struct hed_lower *l)
{
    set_word(l, bit_mask(l, first_source(l), word_operand(l, 2)));
}

void
hed_op_funnel_shift(struct hed_lower *l)
{
    set_word(l, funnel_shift(l, first_source(l), word_operand(l, 2), word_operand(l, 3)));
}

void
hed_op_prmt(struct hed_lower *l)
{
    set_word(l, permute_bytes(l, first_source(l), word_operand(l, 2), word_operand(l, 3)));
}

void
hed_op_dot_product(struct hed_lower *l)
{
    set_word(l, dot_product(l, first_source(l), word_operand(l, 2), word_operand(l, 3)));
}
