/* Bits: logic, shifts, fields, permutations, counting, and dot products of bytes. */
#include "ptx/lower/math.h"

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

/* The low n bits set; n from 0 to the width. */
static LLVMValueRef
ones(struct hed_lower *l, LLVMTypeRef t, LLVMValueRef n)
{
    LLVMValueRef one = hed_lower_int(l, t, 1);

    return LLVMBuildSub(l->b, hed_shift_left(l, one, n), one, "");
}

/* Positions and lengths of fields count up to 255; those of 64-bit fields a GPU takes whole. */
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
funnel(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
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
extract(struct hed_lower *l, enum hed_ptx_type t, LLVMValueRef a, LLVMValueRef pos,
        LLVMValueRef len)
{
    const unsigned bits = hed_ptx_types[t].bits;
    LLVMTypeRef type = hed_lane_type(a);
    LLVMValueRef empty, at, sign, mask, field;

    pos = field_size(l, pos, bits);
    len = field_size(l, len, bits);
    empty = hed_icmp(l, LLVMIntEQ, len, hed_like(l, len, 0));
    mask = ones(l, type, len);
    field = LLVMBuildAnd(l->b, hed_shift_right(l, a, pos, false), mask, "");
    if (!hed_is_signed(t))
        return field;
    at = LLVMBuildSub(l->b, LLVMBuildAdd(l->b, pos, len, ""), hed_like(l, len, 1), "");
    at = hed_lower_select(l, empty, hed_like(l, at, 0), at_most(l, at, bits - 1));
    sign = hed_trunc(l, hed_shift_right(l, a, at, false), l->i1);
    sign = LLVMBuildAnd(l->b, sign, LLVMBuildNot(l->b, empty, ""), "");

    /* Bits of the field beyond the msb of the input are copies of the sign too. */
    LLVMValueRef there = LLVMBuildSub(l->b, hed_like(l, pos, bits), at_most(l, pos, bits), "");

    mask = LLVMBuildAnd(l->b, mask, ones(l, type, there), "");
    return hed_lower_select(l, sign, LLVMBuildOr(l->b, field, LLVMBuildNot(l->b, mask, ""), ""),
                            field);
}

static LLVMValueRef
insert(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef pos, LLVMValueRef len)
{
    const unsigned bits = LLVMGetIntTypeWidth(hed_lane_type(a));
    LLVMValueRef mask;

    pos = field_size(l, pos, bits);
    mask = hed_shift_left(l, ones(l, hed_lane_type(a), field_size(l, len, bits)), pos);
    a = LLVMBuildAnd(l->b, hed_shift_left(l, a, pos), mask, "");
    return LLVMBuildOr(l->b, a, LLVMBuildAnd(l->b, b, LLVMBuildNot(l->b, mask, ""), ""), "");
}

static LLVMValueRef
size_extend(struct hed_lower *l, bool is_signed, LLVMValueRef a, LLVMValueRef n)
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
    return hed_shift_left(l, ones(l, l->i32, b), a);
}

/* ---- counting -------------------------------------------------------------------------------- */

static LLVMValueRef
leading_zeros(struct hed_lower *l, LLVMValueRef a)
{
    LLVMValueRef args[] = {a, LLVMConstInt(l->i1, 0, false)};

    return hed_lower_intrinsic(l, "llvm.ctlz", LLVMTypeOf(a), args, 2);
}

/* "bfind returns 0xffffffff if no non-sign bit is found", with .shiftamt too. */
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

/* Byte `n` (a value, 0 to 7) of the eight in v. */
static LLVMValueRef
pick_byte(struct hed_lower *l, LLVMValueRef v, LLVMValueRef n)
{
    n = LLVMBuildShl(l->b, hed_zext(l, n, l->i64), hed_lower_int(l, l->i64, 3), "");
    v = LLVMBuildLShr(l->b, v, n, "");
    return LLVMBuildAnd(l->b, hed_trunc(l, v, l->i32), hed_lower_int(l, l->i32, 255), "");
}

/* The byte that place k of the special modes takes when c says n: PTX ISA, prmt. */
static unsigned
special_byte(enum hed_ptx_mode mode, unsigned k, unsigned n)
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

static LLVMValueRef
special_selector(struct hed_lower *l, enum hed_ptx_mode mode, LLVMValueRef c)
{
    LLVMValueRef sel = hed_like(l, c, 0);

    c = LLVMBuildAnd(l->b, c, hed_like(l, c, 3), "");
    for (unsigned n = 0; n < 4; n++) {
        uint64_t s = 0;

        for (unsigned k = 0; k < 4; k++)
            s |= (uint64_t)special_byte(mode, k, n) << (4 * k);
        sel = hed_lower_select(l, hed_icmp(l, LLVMIntEQ, c, hed_like(l, c, n)), hed_like(l, c, s),
                               sel);
    }
    return sel;
}

static LLVMValueRef
permute(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
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

/* Field `n` of `bits` bits of v, extended. */
static LLVMValueRef
field(struct hed_lower *l, LLVMValueRef v, unsigned n, unsigned bits, bool is_signed)
{
    LLVMValueRef rest = hed_like(l, v, 32 - bits);

    v = LLVMBuildShl(l->b, v, hed_like(l, v, 32 - bits * (n + 1)), "");
    return is_signed ? LLVMBuildAShr(l->b, v, rest, "") : LLVMBuildLShr(l->b, v, rest, "");
}

/* dp4a: four bytes by four; dp2a: two halves of a by two bytes of b. */
static LLVMValueRef
dot(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    const struct hed_ptx_form *f = l->inst->form;
    const unsigned count = f->op == HED_PTX_OP_DP4A ? 4 : 2;
    const unsigned first = f->part == HED_PTX_PART_HI ? 2 : 0;

    for (unsigned k = 0; k < count; k++) {
        LLVMValueRef x = field(l, a, k, 32 / count, hed_is_signed(f->types[0]));
        LLVMValueRef y = field(l, b, first + k, 8, hed_is_signed(f->types[1]));

        c = LLVMBuildAdd(l->b, c, LLVMBuildMul(l->b, x, y, ""), "");
    }
    return c;
}

/* ---- logic ----------------------------------------------------------------------------------- */

static LLVMValueRef
logic3(struct hed_lower *l, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c, unsigned lut)
{
    LLVMValueRef in[] = {a, b, c};
    LLVMValueRef r = hed_like(l, a, 0);

    /* LLVM finds the short way. */
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

static void
lower_lop3(struct hed_lower *l)
{
    const struct hed_ptx_inst *i = l->inst;
    const struct hed_ptx_operand *d = &i->operands[0];
    LLVMValueRef r;

    if (i->operands[4].kind != HED_PTX_OPERAND_INT) {
        hed_lower_refuse(l, "the table of lop3 must be a constant");
        return;
    }
    r = logic3(l, hed_operand(l, 1, HED_PTX_TYPE_B32), hed_operand(l, 2, HED_PTX_TYPE_B32),
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

/* Two sources of the instruction's type; NULL: none of these. */
static LLVMValueRef
two_alike(struct hed_lower *l, enum hed_ptx_type t)
{
    LLVMValueRef a = hed_operand(l, 1, t);

    switch (l->inst->form->op) {
    case HED_PTX_OP_AND:
        return LLVMBuildAnd(l->b, a, hed_operand(l, 2, t), "");
    case HED_PTX_OP_OR:
        return LLVMBuildOr(l->b, a, hed_operand(l, 2, t), "");
    case HED_PTX_OP_XOR:
        return LLVMBuildXor(l->b, a, hed_operand(l, 2, t), "");
    case HED_PTX_OP_NOT:
        return LLVMBuildNot(l->b, a, "");
    case HED_PTX_OP_CNOT:
        return hed_zext(l, hed_icmp(l, LLVMIntEQ, a, hed_like(l, a, 0)), hed_lane_type(a));
    case HED_PTX_OP_SHL:
        return hed_shift_left(l, a, hed_operand(l, 2, HED_PTX_TYPE_U32));
    case HED_PTX_OP_SHR:
        return hed_shift_right(l, a, hed_operand(l, 2, HED_PTX_TYPE_U32), hed_is_signed(t));
    case HED_PTX_OP_BREV:
        return hed_one(l, "llvm.bitreverse", a);
    case HED_PTX_OP_BFE:
        return extract(l, t, a, hed_operand(l, 2, HED_PTX_TYPE_U32),
                       hed_operand(l, 3, HED_PTX_TYPE_U32));
    case HED_PTX_OP_BFI:
        return insert(l, a, hed_operand(l, 2, t), hed_operand(l, 3, HED_PTX_TYPE_U32),
                      hed_operand(l, 4, HED_PTX_TYPE_U32));
    default:
        return NULL;
    }
}

/* What gives 32 bits whatever it takes; NULL: none of these. */
static LLVMValueRef
to_word(struct hed_lower *l, enum hed_ptx_type t)
{
    const enum hed_ptx_type u32 = HED_PTX_TYPE_U32;
    LLVMValueRef a = hed_operand(l, 1, t);

    switch (l->inst->form->op) {
    case HED_PTX_OP_POPC:
        return hed_lower_resize(l, hed_one(l, "llvm.ctpop", a), l->i32, false);
    case HED_PTX_OP_CLZ:
        return hed_lower_resize(l, leading_zeros(l, a), l->i32, false);
    case HED_PTX_OP_BFIND:
        return find_top(l, t, a);
    case HED_PTX_OP_FNS:
        return hed_lower_helper(l, "hed_ptx_fns", l->i32,
                                (LLVMValueRef[]){a, hed_operand(l, 2, u32), hed_operand(l, 3, u32)},
                                3);
    case HED_PTX_OP_SZEXT:
        return size_extend(l, hed_is_signed(t), a, hed_operand(l, 2, u32));
    case HED_PTX_OP_BMSK:
        return bit_mask(l, a, hed_operand(l, 2, u32));
    case HED_PTX_OP_SHF:
        return funnel(l, a, hed_operand(l, 2, u32), hed_operand(l, 3, u32));
    case HED_PTX_OP_PRMT:
        return permute(l, a, hed_operand(l, 2, u32), hed_operand(l, 3, u32));
    case HED_PTX_OP_DP4A:
    case HED_PTX_OP_DP2A:
        return dot(l, a, hed_operand(l, 2, u32), hed_operand(l, 3, u32));
    default:
        return NULL;
    }
}

bool
hed_lower_bits(struct hed_lower *l)
{
    const struct hed_ptx_form *f = l->inst->form;
    const enum hed_ptx_type t = f->types[0];
    LLVMValueRef r;

    switch (f->op) {
    case HED_PTX_OP_LOP3:
        lower_lop3(l);
        return true;
    case HED_PTX_OP_AND:
    case HED_PTX_OP_OR:
    case HED_PTX_OP_XOR:
    case HED_PTX_OP_NOT:
    case HED_PTX_OP_CNOT:
    case HED_PTX_OP_SHL:
    case HED_PTX_OP_SHR:
    case HED_PTX_OP_BREV:
    case HED_PTX_OP_BFE:
    case HED_PTX_OP_BFI:
        r = two_alike(l, t);
        if (r)
            hed_lower_set(l, &l->inst->operands[0], t, r);
        return true;
    case HED_PTX_OP_POPC:
    case HED_PTX_OP_CLZ:
    case HED_PTX_OP_BFIND:
    case HED_PTX_OP_FNS:
    case HED_PTX_OP_SZEXT:
    case HED_PTX_OP_BMSK:
    case HED_PTX_OP_SHF:
    case HED_PTX_OP_PRMT:
    case HED_PTX_OP_DP4A:
    case HED_PTX_OP_DP2A:
        r = to_word(l, t);
        if (r)
            hed_lower_set(l, &l->inst->operands[0], HED_PTX_TYPE_U32, r);
        return true;
    default:
        return false;
    }
}
