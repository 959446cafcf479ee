/* Moving values and addresses: mov, cvta, isspacep, mapa, getctarank; resizing integers, and the
 * addresses of memory operands.
 */
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"

/* ---- copies and widths ----------------------------------------------------------------------- */

struct wide128 {
    uint64_t low, high;
};

STEP_UNARY(move_8, uint8_t, uint8_t, a)
STEP_UNARY(move_16, uint16_t, uint16_t, a)
STEP_UNARY(move_32, uint32_t, uint32_t, a)
STEP_UNARY(move_64, uint64_t, uint64_t, a)

static INTERP_STEP(move_128)
{
    const struct wide128 *a = interp_at(w, s->a);
    struct wide128 *to = interp_at(w, s->d);

    MASKED_LANES(w->write, lane)
    to[lane] = a[lane];
    return s + 1;
}

static INTERP_STEP(move_predicate)
{
    interp_set_predicate(w, s->d, interp_predicate(w, s->a));
    INTERP_NEXT(w, s);
}

void
hed_interp_move(struct interp_decoder *d, uint32_t to, uint32_t from, unsigned bytes)
{
    const interp_run run = bytes == 0   ? move_predicate
                           : bytes == 1 ? move_8
                           : bytes == 2 ? move_16
                           : bytes == 4 ? move_32
                           : bytes == 8 ? move_64
                                        : move_128;

    hed_interp_emit3(d, run, to, from, 0, 0);
}

STEP_UNARY(widen_u8_16, uint16_t, uint8_t, a)
STEP_UNARY(widen_u8_32, uint32_t, uint8_t, a)
STEP_UNARY(widen_u8_64, uint64_t, uint8_t, a)
STEP_UNARY(widen_u16_32, uint32_t, uint16_t, a)
STEP_UNARY(widen_u16_64, uint64_t, uint16_t, a)
STEP_UNARY(widen_u32_64, uint64_t, uint32_t, a)
STEP_UNARY(widen_s8_16, int16_t, int8_t, a)
STEP_UNARY(widen_s8_32, int32_t, int8_t, a)
STEP_UNARY(widen_s8_64, int64_t, int8_t, a)
STEP_UNARY(widen_s16_32, int32_t, int16_t, a)
STEP_UNARY(widen_s16_64, int64_t, int16_t, a)
STEP_UNARY(widen_s32_64, int64_t, int32_t, a)
STEP_UNARY(cut_64_32, uint32_t, uint64_t, a)
STEP_UNARY(cut_64_16, uint16_t, uint64_t, a)
STEP_UNARY(cut_64_8, uint8_t, uint64_t, a)
STEP_UNARY(cut_32_16, uint16_t, uint32_t, a)
STEP_UNARY(cut_32_8, uint8_t, uint32_t, a)
STEP_UNARY(cut_16_8, uint8_t, uint16_t, a)

/* Widths that are rare: 128 bits. e is the source's width, imm the sign. */
static INTERP_STEP(resize_128)
{
    const unsigned from = s->e & 255, to = s->e >> 8;

    MASKED_LANES(w->write, lane)
    {
        const unsigned char *a = (const unsigned char *)interp_at(w, s->a) + (size_t)lane * from;
        unsigned char *d = (unsigned char *)interp_at(w, s->d) + (size_t)lane * to;
        const bool minus = s->imm && a[from - 1] >> 7;
        unsigned char whole[16];

        memset(whole, minus ? 0xff : 0, sizeof(whole));
        memcpy(whole, a, from);
        memcpy(d, whole, to);
    }
    return s + 1;
}

/* By log2 of the widths; [2] is for signed numbers. */
static const interp_run resizes[4][4][2] = {
    [0] = {{move_8, move_8},
           {widen_u8_16, widen_s8_16},
           {widen_u8_32, widen_s8_32},
           {widen_u8_64, widen_s8_64}},
    [1] = {{cut_16_8, cut_16_8},
           {move_16, move_16},
           {widen_u16_32, widen_s16_32},
           {widen_u16_64, widen_s16_64}},
    [2] = {{cut_32_8, cut_32_8},
           {cut_32_16, cut_32_16},
           {move_32, move_32},
           {widen_u32_64, widen_s32_64}},
    [3] = {{cut_64_8, cut_64_8},
           {cut_64_16, cut_64_16},
           {cut_64_32, cut_64_32},
           {move_64, move_64}},
};

void
hed_interp_resize(struct interp_decoder *d, uint32_t from, unsigned from_bytes, uint32_t to,
                  unsigned to_bytes, bool is_signed)
{
    struct interp_step *s;

    if (from_bytes <= 8 && to_bytes <= 8) {
        const interp_run run =
            resizes[__builtin_ctz(from_bytes)][__builtin_ctz(to_bytes)][is_signed];

        hed_interp_emit3(d, run, to, from, 0, 0);
        return;
    }
    s = hed_interp_emit3(d, resize_128, to, from, 0, 0);
    s->e = from_bytes | to_bytes << 8;
    s->imm = is_signed;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* e is the kind of the operand, b the alignment. */
static INTERP_STEP(address_lanes)
{
    uint64_t at[HED_PTX_LANES];
    uint32_t bad = 0;

    interp_addresses(w, s->e, s->a, s->imm, at);
    if (s->b > 1) {
        EACH_LANE(i)
        bad |= at[i] & (s->b - 1) ? hed_interp_bits[i] : 0;
        if (bad & w->mask)
            hed_interp_trap(w, s, bad & w->mask, HED_PTX_TRAP_ALIGN);
    }
    w->warp->line = s->line;
    interp_merge(interp_at(w, s->d), at, w->write, 8);
    return s + 1;
}

void
hed_interp_emit_address(struct interp_decoder *d, const struct interp_memory *m, uint32_t to,
                        unsigned align)
{
    struct interp_step *s = hed_interp_emit3(d, address_lanes, to, m->place, align, 0);

    s->e = m->kind;
    s->imm = m->imm;
}

/* ---- mov ------------------------------------------------------------------------------------- */

/* Moves a part of each lane's value: e is the offset in the source, b the one in the destination, c
 * the number of bytes; imm holds both widths. */
static INTERP_STEP(move_part)
{
    const size_t from = (size_t)s->imm & 255, to = (size_t)s->imm >> 8;
    const unsigned char *a = interp_at(w, s->a);
    unsigned char *d = interp_at(w, s->d);

    MASKED_LANES(w->write, lane)
    memcpy(d + lane * to + s->b, a + lane * from + s->e, s->c);
    return s + 1;
}

STEP_BINARY(pack_32_64, uint64_t, uint32_t, uint32_t, (uint64_t)b << 32 | a)
STEP_BINARY(pack_16_32, uint32_t, uint16_t, uint16_t, (uint32_t)b << 16 | a)
STEP_UNARY(high_64_32, uint32_t, uint64_t, a >> 32)
STEP_UNARY(high_32_16, uint16_t, uint32_t, a >> 16)

static enum hed_ptx_type
part_type(unsigned bytes)
{
    switch (bytes) {
    case 1:
        return HED_PTX_TYPE_B8;
    case 2:
        return HED_PTX_TYPE_B16;
    case 4:
        return HED_PTX_TYPE_B32;
    default:
        return HED_PTX_TYPE_B64;
    }
}

static void
emit_part(struct interp_decoder *d, uint32_t to, unsigned to_bytes, unsigned to_at, uint32_t from,
          unsigned from_bytes, unsigned from_at, unsigned bytes)
{
    struct interp_step *s = hed_interp_emit3(d, move_part, to, from, to_at, bytes);

    s->e = from_at;
    s->imm = from_bytes | (int64_t)to_bytes << 8;
}

static void
pack_parts(struct interp_decoder *d, const struct hed_ptx_operand *from, uint32_t to,
           unsigned whole)
{
    const unsigned bytes = whole / from->count;
    uint32_t parts[16];

    if (from->count > 16 || bytes == 0) {
        hed_interp_refuse(d, "too many elements");
        return;
    }
    for (unsigned i = 0; i < from->count; i++)
        parts[i] = hed_interp_source(d, &from->elems[i], part_type(bytes));
    if (from->count == 2 && (whole == 8 || whole == 4)) {
        hed_interp_emit3(d, whole == 8 ? pack_32_64 : pack_16_32, to, parts[0], parts[1], 0);
        return;
    }

    /* A source may be a part of the destination. */
    const uint32_t temp = hed_interp_temp(d, whole);

    for (unsigned i = 0; i < from->count; i++)
        emit_part(d, temp, whole, i * bytes, parts[i], bytes, 0, bytes);
    hed_interp_move(d, to, temp, whole);
}

static void
unpack_parts(struct interp_decoder *d, const struct hed_ptx_operand *to, uint32_t from,
             unsigned whole)
{
    const unsigned bytes = whole / to->count;

    if (bytes == 0) {
        hed_interp_refuse(d, "too many elements");
        return;
    }
    for (unsigned i = 0; i < to->count; i++) {
        uint32_t part;

        if (to->elems[i].kind == HED_PTX_OPERAND_SINK)
            continue;
        part = hed_interp_dest(d, &to->elems[i], part_type(bytes));
        if (to->count == 2 && whole == 8)
            hed_interp_emit3(d, i ? high_64_32 : cut_64_32, part, from, 0, 0);
        else if (to->count == 2 && whole == 4)
            hed_interp_emit3(d, i ? high_32_16 : cut_32_16, part, from, 0, 0);
        else
            emit_part(d, part, bytes, 0, from, whole, i * bytes, bytes);
    }
}

void
hed_interp_op_mov(struct interp_decoder *d)
{
    const struct hed_ptx_operand *to = &d->inst->operands[0];
    const struct hed_ptx_operand *from = &d->inst->operands[1];
    const enum hed_ptx_type t = d->inst->form->types[0];
    const unsigned bytes = interp_bytes(t);
    uint32_t v;

    if (from->kind == HED_PTX_OPERAND_SREG && to->kind == HED_PTX_OPERAND_REG &&
        interp_bytes(hed_ptx_sregs[from->sreg].type) == bytes && !from->negated) {
        const uint32_t place = hed_interp_dest(d, to, t);

        v = hed_interp_sreg(d, from, place);
        if (v != place)
            hed_interp_move(d, place, v, bytes);
        return;
    }
    if (from->kind == HED_PTX_OPERAND_VEC && to->kind != HED_PTX_OPERAND_VEC) {
        pack_parts(d, from, hed_interp_dest(d, to, t), bytes);
        return;
    }
    if (from->kind == HED_PTX_OPERAND_VEC) {
        v = hed_interp_temp(d, bytes);
        pack_parts(d, from, v, bytes);
    } else {
        v = hed_interp_source(d, from, t);
    }
    if (to->kind == HED_PTX_OPERAND_VEC) {
        /* A destination may be the source. */
        const uint32_t copy = hed_interp_temp(d, bytes);

        hed_interp_move(d, copy, v, bytes);
        unpack_parts(d, to, copy, bytes);
        return;
    }
    if (!hed_interp_learn(d, to, from, v, bytes))
        hed_interp_move(d, hed_interp_dest(d, to, t), v, bytes);
}

/* ---- spaces ---------------------------------------------------------------------------------- */

static INTERP_STEP(to_shared)
{
    const uint64_t base = (uintptr_t)w->warp->block->shared;
    const uint64_t *pa = interp_at(w, s->a);

    COMPUTE_LANES(uint64_t, r = pa[i] - base);
}

static INTERP_STEP(from_shared)
{
    const uint64_t base = (uintptr_t)w->warp->block->shared;
    const uint64_t *pa = interp_at(w, s->a);

    COMPUTE_LANES(uint64_t, r = (uint32_t)pa[i] + base);
}

void
hed_interp_op_cvta(struct interp_decoder *d)
{
    const struct hed_ptx_form *f = d->inst->form;
    const bool is_wide = f->types[0] == HED_PTX_TYPE_U64;
    const bool is_shared = hed_ptx_is_shared_space(f->spaces[0]);
    const struct hed_ptx_operand *o = d->inst->operands;
    uint32_t v = hed_interp_operand(d, 1, HED_PTX_TYPE_U64);
    uint32_t to;

    if (is_wide && !is_shared && hed_interp_learn(d, &o[0], &o[1], v, 8))
        return;
    to = hed_interp_dest(d, &o[0], f->types[0]);
    /* Only shared memory has addresses that differ from the generic ones. */
    if (is_shared) {
        const uint32_t temp = is_wide ? to : hed_interp_temp(d, 8);

        hed_interp_emit3(d, f->flags & HED_PTX_FLAG(TO) ? to_shared : from_shared, temp, v, 0, 0);
        v = temp;
    }
    if (v != to || !is_wide)
        hed_interp_resize(d, v, 8, to, is_wide ? 8 : 4, false);
}

/* e is the space. */
static INTERP_STEP(isspacep_lanes)
{
    const struct hed_ptx_grid *g = w->warp->grid;
    const uint64_t *a = interp_at(w, s->a);
    uint32_t shared = 0, local = 0;

    EACH_LANE(i)
    {
        shared |= a[i] >= g->shared_first && a[i] < g->shared_last ? hed_interp_bits[i] : 0;
        local |= a[i] >= g->local_first && a[i] < g->local_last ? hed_interp_bits[i] : 0;
    }
    /* Constants and parameters cannot be told from global memory, since a program may pass global
     * memory for either. Every use of the address works if they count as global. */
    interp_set_predicate(w, s->d,
                         hed_ptx_is_shared_space(s->e)  ? shared
                         : s->e == HED_PTX_SPACE_LOCAL  ? local
                         : s->e == HED_PTX_SPACE_GLOBAL ? ~(shared | local)
                                                        : 0);
    return s + 1;
}

void
hed_interp_op_isspacep(struct interp_decoder *d)
{
    const uint32_t a = hed_interp_operand(d, 1, HED_PTX_TYPE_U64);
    const uint32_t to = hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_PRED);

    hed_interp_emit3(d, isspacep_lanes, to, a, 0, 0)->e = d->inst->form->spaces[0];
}

/* ---- clusters: every block is one of its own, so its memory is all there is ------------------ */

void
hed_interp_op_mapa(struct interp_decoder *d)
{
    const enum hed_ptx_type t = d->inst->form->types[0];
    const uint32_t v = hed_interp_operand(d, 1, t);

    hed_interp_move(d, hed_interp_dest(d, &d->inst->operands[0], t), v, interp_bytes(t));
}

void
hed_interp_op_getctarank(struct interp_decoder *d)
{
    hed_interp_move(d, hed_interp_dest(d, &d->inst->operands[0], HED_PTX_TYPE_B32),
                    hed_interp_constant(d, 0, 4), 4);
}
