/* Bits: logic, shifts, fields, permutations, counting, and dot products of bytes. */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

/* ---- one lane -------------------------------------------------------------------------------- */

static inline uint64_t
low_bits(uint64_t n)
{
    return n >= 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1;
}

static inline uint64_t
shift_bits_up(uint64_t v, uint64_t by)
{
    return by >= 64 ? 0 : v << by;
}

static inline uint64_t
shift_bits_down(uint64_t v, uint64_t by)
{
    return by >= 64 ? 0 : v >> by;
}

/* Positions and lengths of fields count modulo 256, except that a GPU takes those of 64-bit fields
 * as they are. */
static uint64_t
field_number(uint64_t v, unsigned bits)
{
    if (bits == 64)
        return v < 64 ? v : 64;
    return v & 255;
}

/* "The destination d is padded with the sign bit of the extracted field. If the start position is
 * beyond the msb of the input, d is filled with the replicated sign bit of the extracted field":
 * the sign is bit min(pos + len - 1, msb), and 0 for a length of 0. PTX ISA, bfe. */
static uint64_t
bfe_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const unsigned bits = hed_ptx_types[f->types[0]].bits;
    const uint64_t pos = field_number(in[1], bits);
    const uint64_t len = field_number(in[2], bits);
    const uint64_t all = low_bits(bits);
    uint64_t mask = low_bits(len < bits ? len : bits);
    const uint64_t field = shift_bits_down(in[0], pos) & mask;
    uint64_t at, there;

    if (!interp_is_signed(f->types[0]) || len == 0)
        return field;
    at = pos + len - 1;
    at = at < bits - 1 ? at : bits - 1;
    if (!(in[0] >> at & 1))
        return field;
    /* Bits of the field beyond the msb of the input are copies of the sign too. */
    there = bits - (pos < bits ? pos : bits);
    mask &= low_bits(there);
    return (field | ~mask) & all;
}

static uint64_t
bfi_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const unsigned bits = hed_ptx_types[f->types[0]].bits;
    const uint64_t pos = field_number(in[2], bits);
    const uint64_t len = field_number(in[3], bits);
    const uint64_t all = low_bits(bits);
    const uint64_t mask = shift_bits_up(low_bits(len < bits ? len : bits), pos) & all;

    return (shift_bits_up(in[0], pos) & mask) | (in[1] & ~mask);
}

static uint64_t
bfind_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const unsigned bits = hed_ptx_types[f->types[0]].bits;
    uint64_t a = in[0];
    unsigned top;

    if (interp_is_signed(f->types[0]) && a >> (bits - 1) & 1)
        a = ~a & low_bits(bits);
    /* "bfind returns 0xffffffff if no non-sign bit is found" (PTX ISA, bfind), also with .shiftamt.
     */
    if (a == 0)
        return UINT32_MAX;
    top = 63u - (unsigned)__builtin_clzll(a);
    return INTERP_HAS(f, SHIFTAMT) ? bits - 1 - top : top;
}

/* "Find the n-th set bit" (PTX ISA, fns), from base upwards for positive n, downwards for
 * negative. */
static uint64_t
fns_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const uint32_t mask = (uint32_t)in[0], base = (uint32_t)in[1];
    const int32_t n = (int32_t)in[2];
    const int step = n < 0 ? -1 : 1;
    int64_t left = n < 0 ? -(int64_t)n : n;

    (void)f;
    if (n == 0)
        return base < 32 && (mask >> base & 1) ? base : UINT32_MAX;
    for (int64_t at = base; at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    }
    return UINT32_MAX;
}

static uint64_t
brev_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const unsigned bits = hed_ptx_types[f->types[0]].bits;
    uint64_t r = 0;

    for (unsigned i = 0; i < bits; i++)
        r |= (in[0] >> i & 1) << (bits - 1 - i);
    return r;
}

static uint64_t
szext_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const uint32_t n = f->clamp == HED_PTX_CLAMP_WRAP ? (uint32_t)in[1] & 31
                       : in[1] < 32                   ? (uint32_t)in[1]
                                                      : 32;

    if (n == 0)
        return 0;
    if (interp_is_signed(f->types[0]))
        return (uint32_t)((int32_t)((uint32_t)in[0] << (32 - n)) >> (32 - n));
    return (uint32_t)in[0] << (32 - n) >> (32 - n);
}

static uint64_t
bmsk_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const bool wraps = f->clamp == HED_PTX_CLAMP_WRAP;
    const uint64_t a = wraps ? in[0] & 31 : in[0];
    const uint64_t b = wraps ? in[1] & 31 : in[1];

    return (uint32_t)shift_bits_up(low_bits(b < 32 ? b : 32), a);
}

static uint64_t
prmt_lane(const struct hed_ptx_form *f, const uint64_t *in)
{
    const uint64_t both = in[1] << 32 | in[0];
    uint64_t r = 0;

    for (unsigned k = 0; k < 4; k++) {
        const unsigned nibble =
            f->mode ? hed_ptx_prmt_byte(f->mode, k, in[2] & 3) : (unsigned)(in[2] >> (4 * k)) & 15;
        uint64_t byte = both >> (8 * (nibble & 7)) & 255;

        if (nibble & 8)
            byte = byte >> 7 ? 255 : 0;
        r |= byte << (8 * k);
    }
    return r;
}

/* ---- steps ----------------------------------------------------------------------------------- */

STEP_BINARY(and_8, uint8_t, uint8_t, uint8_t, a &b)
STEP_BINARY(and_16, uint16_t, uint16_t, uint16_t, a &b)
STEP_BINARY(and_32, uint32_t, uint32_t, uint32_t, a &b)
STEP_BINARY(and_64, uint64_t, uint64_t, uint64_t, a &b)
STEP_BINARY(or_8, uint8_t, uint8_t, uint8_t, a | b)
STEP_BINARY(or_16, uint16_t, uint16_t, uint16_t, a | b)
STEP_BINARY(or_32, uint32_t, uint32_t, uint32_t, a | b)
STEP_BINARY(or_64, uint64_t, uint64_t, uint64_t, a | b)
STEP_BINARY(xor_8, uint8_t, uint8_t, uint8_t, a ^ b)
STEP_BINARY(xor_16, uint16_t, uint16_t, uint16_t, a ^ b)
STEP_BINARY(xor_32, uint32_t, uint32_t, uint32_t, a ^ b)
STEP_BINARY(xor_64, uint64_t, uint64_t, uint64_t, a ^ b)
STEP_UNARY(not_8, uint8_t, uint8_t, ~a)
STEP_UNARY(not_16, uint16_t, uint16_t, ~a)
STEP_UNARY(not_32, uint32_t, uint32_t, ~a)
STEP_UNARY(not_64, uint64_t, uint64_t, ~a)
STEP_UNARY(cnot_8, uint8_t, uint8_t, a == 0)
STEP_UNARY(cnot_16, uint16_t, uint16_t, a == 0)
STEP_UNARY(cnot_32, uint32_t, uint32_t, a == 0)
STEP_UNARY(cnot_64, uint64_t, uint64_t, a == 0)

/* and, or, xor and not of predicates; e says which. */
static INTERP_STEP(logic_predicate)
{
    const uint32_t a = interp_predicate(w, s->a);
    const uint32_t b = interp_predicate(w, s->b);

    interp_set_predicate(w, s->d,
                         s->e == HED_PTX_OP_AND   ? a & b
                         : s->e == HED_PTX_OP_OR  ? a | b
                         : s->e == HED_PTX_OP_XOR ? a ^ b
                                                  : ~a);
    return s + 1;
}

void
hed_interp_invert(struct interp_decoder *d, uint32_t to, uint32_t from)
{
    hed_interp_emit3(d, logic_predicate, to, from, from, 0)->e = HED_PTX_OP_NOT;
}

/* By operation and log2 of the width. */
static const interp_run logics[5][4] = {
    {and_8, and_16, and_32, and_64},     {or_8, or_16, or_32, or_64},
    {xor_8, xor_16, xor_32, xor_64},     {not_8, not_16, not_32, not_64},
    {cnot_8, cnot_16, cnot_32, cnot_64},
};

void
hed_interp_op_logic(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const enum hed_ptx_type t = f->types[0];
    const uint32_t a = hed_interp_operand(d, 1, t);
    const uint32_t b = d->inst->noperands > 2 ? hed_interp_operand(d, 2, t) : a;
    const uint32_t to = hed_interp_dest(d, &d->inst->operands[0], t);

    if (t == HED_PTX_TYPE_PRED) {
        hed_interp_emit3(d, logic_predicate, to, a, b, 0)->e = f->op;
        return;
    }
    hed_interp_emit3(d, logics[f->op - HED_PTX_OP_AND][__builtin_ctz(interp_bytes(t))], to, a, b,
                     0);
}

_Static_assert(HED_PTX_OP_CNOT == HED_PTX_OP_AND + 4, "the rows of logics are in this order");

/* e is the table. */
static INTERP_STEP(lop3_lanes)
{
    const uint32_t *pa = interp_at(w, s->a);
    const uint32_t *pb = interp_at(w, s->b);
    const uint32_t *pc = interp_at(w, s->c);
    uint32_t on[8];

    for (unsigned n = 0; n < 8; n++)
        on[n] = s->e >> n & 1 ? UINT32_MAX : 0;
    COMPUTE_LANES(uint32_t, const uint32_t a = pa[i]; const uint32_t b = pb[i];
                  const uint32_t c = pc[i]; const uint32_t c0 = (on[0] & ~c) | (on[1] & c);
                  const uint32_t c1 = (on[2] & ~c) | (on[3] & c);
                  const uint32_t c2 = (on[4] & ~c) | (on[5] & c);
                  const uint32_t c3 = (on[6] & ~c) | (on[7] & c);
                  r = (~a & ((~b & c0) | (b & c1))) | (a & ((~b & c2) | (b & c3))));
}

STEP_COMPARE(is_not_zero, uint32_t, a != 0 || b != 0)

void
hed_interp_op_lop3(struct interp_decoder *d)
{
    const struct hed_ptx_inst *i = d->inst;
    const struct hed_ptx_operand *o = &i->operands[0];
    const bool has_two = o->kind == HED_PTX_OPERAND_PAIR;
    uint32_t from[3], to;

    for (unsigned k = 0; k < 3; k++)
        from[k] = hed_interp_operand(d, k + 1, HED_PTX_TYPE_B32);
    to = hed_interp_dest(d, has_two ? &o->elems[0] : o, HED_PTX_TYPE_B32);
    hed_interp_emit3(d, lop3_lanes, to, from[0], from[1], from[2])->e =
        (uint32_t)(i->operands[4].bits & 255);
    if (has_two) {
        const uint32_t p = hed_interp_dest(d, &o->elems[1], HED_PTX_TYPE_PRED);
        const uint32_t q = i->noperands > 5 ? hed_interp_operand(d, 5, HED_PTX_TYPE_PRED) : 0;
        const uint32_t is = hed_interp_temp(d, 0);

        hed_interp_emit3(d, is_not_zero, is, to, to, 0);
        if (i->noperands > 5)
            hed_interp_emit3(d, logic_predicate, p, is, q, 0)->e =
                i->form->oper == HED_PTX_OPER_AND ? HED_PTX_OP_AND : HED_PTX_OP_OR;
        else
            hed_interp_move(d, p, is, 0);
    }
}

STEP_BINARY(shl_16, uint16_t, uint16_t, uint32_t, b > 15 ? 0 : (uint32_t)a << (b & 15))
STEP_BINARY(shl_32, uint32_t, uint32_t, uint32_t, b > 31 ? 0 : a << (b & 31))
STEP_BINARY(shl_64, uint64_t, uint64_t, uint32_t, b > 63 ? 0 : a << (b & 63))
STEP_BINARY(shr_u16, uint16_t, uint16_t, uint32_t, b > 15 ? 0 : a >> (b & 15))
STEP_BINARY(shr_u32, uint32_t, uint32_t, uint32_t, b > 31 ? 0 : a >> (b & 31))
STEP_BINARY(shr_u64, uint64_t, uint64_t, uint32_t, b > 63 ? 0 : a >> (b & 63))
STEP_BINARY(shr_s16, int16_t, int16_t, uint32_t, a >> (b > 15 ? 15 : b))
STEP_BINARY(shr_s32, int32_t, int32_t, uint32_t, a >> (b > 31 ? 31 : b))
STEP_BINARY(shr_s64, int64_t, int64_t, uint32_t, a >> (b > 63 ? 63 : b))

void
hed_interp_op_shift(struct interp_decoder *d)
{
    static const interp_run shifts[3][3] = {
        {shl_16, shl_32, shl_64}, {shr_u16, shr_u32, shr_u64}, {shr_s16, shr_s32, shr_s64}};
    const struct hed_ptx_form *f = d->inst->form;
    const enum hed_ptx_type t = f->types[0];
    const uint32_t a = hed_interp_operand(d, 1, t);
    const uint32_t by = hed_interp_operand(d, 2, HED_PTX_TYPE_U32);
    const unsigned row = f->op == HED_PTX_OP_SHL ? 0 : interp_is_signed(t) ? 2 : 1;

    hed_interp_emit3(d, shifts[row][__builtin_ctz(interp_bytes(t)) - 1],
                     hed_interp_dest(d, &d->inst->operands[0], t), a, by, 0);
}

STEP_TERNARY(shf_l_wrap, uint32_t, uint32_t, uint32_t, uint32_t,
             ((uint64_t)b << 32 | a) << (c & 31) >> 32)
STEP_TERNARY(shf_r_wrap, uint32_t, uint32_t, uint32_t, uint32_t,
             ((uint64_t)b << 32 | a) >> (c & 31))
STEP_TERNARY(shf_l_clamp, uint32_t, uint32_t, uint32_t, uint32_t,
             ((uint64_t)b << 32 | a) << (c < 32 ? c : 32) >> 32)
STEP_TERNARY(shf_r_clamp, uint32_t, uint32_t, uint32_t, uint32_t,
             ((uint64_t)b << 32 | a) >> (c < 32 ? c : 32))

/* Sources of 32 bits, result of 32 bits. */
static void
emit_words(struct interp_decoder *d, interp_run run)
{
    uint32_t from[3];

    for (unsigned k = 0; k < 3; k++)
        from[k] = hed_interp_operand(d, k + 1, HED_PTX_TYPE_U32);
    hed_interp_emit3(d, run, hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_U32), from[0],
                     from[1], from[2]);
}

void
hed_interp_op_funnel_shift(struct interp_decoder *d)
{
    const bool left = d->inst->form->mode == HED_PTX_MODE_L;
    const bool wraps = d->inst->form->clamp == HED_PTX_CLAMP_WRAP;

    emit_words(d, left ? (wraps ? shf_l_wrap : shf_l_clamp) : (wraps ? shf_r_wrap : shf_r_clamp));
}

STEP_UNARY(popc_32, uint32_t, uint32_t, __builtin_popcount(a))
STEP_UNARY(popc_64, uint32_t, uint64_t, __builtin_popcountll(a))
STEP_UNARY(clz_32, uint32_t, uint32_t, a ? __builtin_clz(a) : 32)
STEP_UNARY(clz_64, uint32_t, uint64_t, a ? __builtin_clzll(a) : 64)

static void
emit_count(struct interp_decoder *d, interp_run narrow, interp_run wide)
{
    const enum hed_ptx_type t = d->inst->form->types[0];
    const uint32_t a = hed_interp_operand(d, 1, t);

    hed_interp_emit3(d, interp_bytes(t) == 8 ? wide : narrow,
                     hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_U32), a, 0, 0);
}

void
hed_interp_op_popc(struct interp_decoder *d)
{
    emit_count(d, popc_32, popc_64);
}

void
hed_interp_op_clz(struct interp_decoder *d)
{
    emit_count(d, clz_32, clz_64);
}

/* ---- fields of 32 bits ----------------------------------------------------------------------- */

/* The n lowest bits; n is at most 32. */
static inline uint32_t
low_bits_32(uint32_t n)
{
    return (uint32_t)((UINT64_C(1) << n) - 1);
}

static inline uint32_t
field_32(uint32_t v, uint32_t at, uint32_t length)
{
    const uint32_t down = at > 31 ? 0 : v >> (at & 31);

    return down & low_bits_32(length > 32 ? 32 : length);
}

/* bfe_lane() says what is asked for. */
static inline uint32_t
signed_field_32(uint32_t v, uint32_t at, uint32_t length)
{
    const uint32_t last = at + length - 1, top = last > 31 ? 31 : last;
    const uint32_t there = 32 - (at > 32 ? 32 : at), bits = length > there ? there : length;
    const uint32_t sign = length && (v >> (top & 31) & 1) ? ~low_bits_32(bits) : 0;

    return field_32(v, at, length) | sign;
}

static inline uint32_t
insert_field_32(uint32_t from, uint32_t into, uint32_t at, uint32_t length)
{
    const uint32_t mask = low_bits_32(length > 32 ? 32 : length) << (at & 31);
    const uint32_t there = at > 31 ? 0 : mask;

    return (from << (at & 31) & there) | (into & ~there);
}

static inline uint32_t
reverse_32(uint32_t v)
{
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    v = (v >> 8 & 0x00ff00ff) | (v & 0x00ff00ff) << 8;
    return v >> 16 | v << 16;
}

/* Byte k of the result of prmt: of the eight bytes `both`, or its sign. */
static inline uint32_t
permuted_byte(uint64_t both, uint32_t selector, unsigned k)
{
    const uint32_t nibble = selector >> (4 * k);
    const uint32_t byte = (uint32_t)(both >> (8 * (nibble & 7))) & 255;
    const uint32_t sign = 0 - (byte >> 7);

    return (nibble & 8 ? sign & 255 : byte) << (8 * k);
}

#define PERMUTED(both)                                                                  \
    permuted_byte(both, c, 0) | permuted_byte(both, c, 1) | permuted_byte(both, c, 2) | \
        permuted_byte(both, c, 3)

STEP_UNARY(brev_32, uint32_t, uint32_t, reverse_32(a))
STEP_TERNARY(bfe_u32, uint32_t, uint32_t, uint32_t, uint32_t, field_32(a, b & 255, c & 255))
STEP_TERNARY(bfe_s32, uint32_t, uint32_t, uint32_t, uint32_t, signed_field_32(a, b & 255, c & 255))
STEP_TERNARY(prmt_any, uint32_t, uint32_t, uint32_t, uint32_t, PERMUTED((uint64_t)b << 32 | a))

static INTERP_STEP(bfi_32)
{
    const uint32_t *pa = interp_at(w, s->a), *pb = interp_at(w, s->b);
    const uint32_t *pc = interp_at(w, s->c), *pe = interp_at(w, s->e);

    COMPUTE_LANES(uint32_t, r = insert_field_32(pa[i], pb[i], pc[i] & 255, pe[i] & 255));
}

/* All operands are words. */
static void
emit_word_step(struct interp_decoder *d, interp_run run)
{
    uint32_t from[4] = {0};
    struct interp_step *s;

    for (unsigned i = 1; i < d->inst->noperands && i <= 4; i++)
        from[i - 1] = hed_interp_operand(d, i, HED_PTX_TYPE_U32);
    s = hed_interp_emit3(d, run, hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_U32),
                         from[0], from[1], from[2]);
    s->e = from[3];
}

/* ---- lane by lane ---------------------------------------------------------------------------- */

/* `own` sources of the instruction's type, then numbers of 32 bits. */
static void
emit_scalar(struct interp_decoder *d, interp_scalar_fn fn, enum hed_ptx_type result, unsigned own)
{
    const enum hed_ptx_type t = d->inst->form->types[0];
    uint8_t types[5];

    types[0] = result;
    for (unsigned i = 0; i < 4; i++)
        types[i + 1] = i < own ? t : HED_PTX_TYPE_U32;
    hed_interp_scalar(d, fn, types, d->inst->noperands - 1u);
}

void
hed_interp_op_bfind(struct interp_decoder *d)
{
    emit_scalar(d, bfind_lane, HED_PTX_TYPE_U32, 1);
}

void
hed_interp_op_fns(struct interp_decoder *d)
{
    emit_scalar(d, fns_lane, HED_PTX_TYPE_U32, 1);
}

void
hed_interp_op_brev(struct interp_decoder *d)
{
    const enum hed_ptx_type t = d->inst->form->types[0];

    if (interp_bytes(t) == 4)
        emit_word_step(d, brev_32);
    else
        emit_scalar(d, brev_lane, t, 1);
}

void
hed_interp_op_bfe(struct interp_decoder *d)
{
    const enum hed_ptx_type t = d->inst->form->types[0];

    if (interp_bytes(t) == 4)
        emit_word_step(d, interp_is_signed(t) ? bfe_s32 : bfe_u32);
    else
        emit_scalar(d, bfe_lane, t, 1);
}

void
hed_interp_op_bfi(struct interp_decoder *d)
{
    const enum hed_ptx_type t = d->inst->form->types[0];

    if (interp_bytes(t) == 4)
        emit_word_step(d, bfi_32);
    else
        emit_scalar(d, bfi_lane, t, 2);
}

void
hed_interp_op_szext(struct interp_decoder *d)
{
    emit_scalar(d, szext_lane, HED_PTX_TYPE_U32, 1);
}

void
hed_interp_op_bmsk(struct interp_decoder *d)
{
    emit_scalar(d, bmsk_lane, HED_PTX_TYPE_U32, 1);
}

void
hed_interp_op_prmt(struct interp_decoder *d)
{
    if (d->inst->form->mode)
        emit_scalar(d, prmt_lane, HED_PTX_TYPE_U32, 1);
    else
        emit_word_step(d, prmt_any);
}

/* ---- dot products ---------------------------------------------------------------------------- */

#define BYTE(T, v, n) (T)(uint8_t)((v) >> (8 * (n)))
#define HALF(T, v, n) (T)(uint16_t)((v) >> (16 * (n)))
#define SUM4(A, B)                                           \
    c + (uint32_t)((int32_t)BYTE(A, a, 0) * BYTE(B, b, 0)) + \
        (uint32_t)((int32_t)BYTE(A, a, 1) * BYTE(B, b, 1)) + \
        (uint32_t)((int32_t)BYTE(A, a, 2) * BYTE(B, b, 2)) + \
        (uint32_t)((int32_t)BYTE(A, a, 3) * BYTE(B, b, 3))
#define SUM2(A, B, first)                                        \
    c + (uint32_t)((int32_t)HALF(A, a, 0) * BYTE(B, b, first)) + \
        (uint32_t)((int32_t)HALF(A, a, 1) * BYTE(B, b, (first) + 1))
#define DOT(name, expr) STEP_TERNARY(name, uint32_t, uint32_t, uint32_t, uint32_t, expr)

DOT(dp4a_uu, SUM4(uint8_t, uint8_t))
DOT(dp4a_us, SUM4(uint8_t, int8_t))
DOT(dp4a_su, SUM4(int8_t, uint8_t))
DOT(dp4a_ss, SUM4(int8_t, int8_t))
DOT(dp2a_lo_uu, SUM2(uint16_t, uint8_t, 0))
DOT(dp2a_lo_us, SUM2(uint16_t, int8_t, 0))
DOT(dp2a_lo_su, SUM2(int16_t, uint8_t, 0))
DOT(dp2a_lo_ss, SUM2(int16_t, int8_t, 0))
DOT(dp2a_hi_uu, SUM2(uint16_t, uint8_t, 2))
DOT(dp2a_hi_us, SUM2(uint16_t, int8_t, 2))
DOT(dp2a_hi_su, SUM2(int16_t, uint8_t, 2))
DOT(dp2a_hi_ss, SUM2(int16_t, int8_t, 2))

void
hed_interp_op_dot_product(struct interp_decoder *d)
{
    static const interp_run dots[3][4] = {
        {dp4a_uu, dp4a_us, dp4a_su, dp4a_ss},
        {dp2a_lo_uu, dp2a_lo_us, dp2a_lo_su, dp2a_lo_ss},
        {dp2a_hi_uu, dp2a_hi_us, dp2a_hi_su, dp2a_hi_ss},
    };
    const struct hed_ptx_form *f = d->inst->form;
    const unsigned row = f->op == HED_PTX_OP_DP4A ? 0 : f->part == HED_PTX_PART_HI ? 2 : 1;

    emit_words(d, dots[row][2 * interp_is_signed(f->types[0]) + interp_is_signed(f->types[1])]);
}
