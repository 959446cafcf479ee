/* Operands: registers, constants, memory operands; and the map that finds things. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "kernel/ptx/interp/family.h"
#include "kernel/ptx/interp/lanes.h"
#include "kernel/ptx/interp/real.h"

#define POOL_MAX (UINT32_C(1) << 30) /* bytes of constants */

/* ---- a map --------------------------------------------------------------------------------- */

struct interp_map {
    struct {
        uint64_t key; /* 0: free */
        uint32_t value;
    } * entries;
    uint32_t used, room; /* room is a power of two */
};

struct interp_map *
hed_interp_map_new(void)
{
    return calloc(1, sizeof(struct interp_map));
}

void
hed_interp_map_free(struct interp_map *m)
{
    if (m)
        free(m->entries);
    free(m);
}

/* The entry of a key, or the free one where it belongs. */
static uint32_t
map_entry(const struct interp_map *m, uint64_t key)
{
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(hash >> 32) & (m->room - 1);

    while (m->entries[at].key && m->entries[at].key != key)
        at = (at + 1) & (m->room - 1);
    return at;
}

int
hed_interp_map_put(struct interp_map *m, uint64_t key, uint32_t value)
{
    if (2 * m->used >= m->room) {
        const struct interp_map old = *m;
        struct interp_map more = {.room = old.room ? 2 * old.room : 64, .used = old.used};

        more.entries = calloc(more.room, sizeof(*more.entries));
        if (!more.entries)
            return HED_ENOMEM;
        for (uint32_t i = 0; i < old.room; i++) {
            if (old.entries[i].key)
                more.entries[map_entry(&more, old.entries[i].key)] = old.entries[i];
        }
        free(old.entries);
        *m = more;
    }

    const uint32_t at = map_entry(m, key);

    m->used += m->entries[at].key == 0;
    m->entries[at].key = key;
    m->entries[at].value = value;
    return 0;
}

bool
hed_interp_map_get(const struct interp_map *m, uint64_t key, uint32_t *value)
{
    if (m->room == 0)
        return false;

    const uint32_t at = map_entry(m, key);

    if (m->entries[at].key)
        *value = m->entries[at].value;
    return m->entries[at].key != 0;
}

/* ---- constants ----------------------------------------------------------------------------- */

/* A key for the map: few constants have more than 56 bits, and those are not shared. */
static uint64_t
constant_key(uint64_t bits, unsigned bytes)
{
    return bits >> 56 ? 0 : bits << 8 | (bytes + 1);
}

static bool
pool_grow(struct interp_decoder *d, uint32_t bytes)
{
    uint32_t room = d->pool_room ? d->pool_room : 4096;
    unsigned char *more;

    while (room < d->pooled + bytes)
        room *= 2;
    if (room == d->pool_room)
        return true;
    more = room <= POOL_MAX ? realloc(d->pool, room) : NULL;
    if (!more) {
        d->err = d->err ? d->err : HED_ENOMEM;
        return false;
    }
    d->pool = more;
    d->pool_room = room;
    return true;
}

uint32_t
hed_interp_constant(struct interp_decoder *d, uint64_t bits, unsigned bytes)
{
    const uint32_t size = bytes ? bytes * HED_PTX_LANES : 32;
    uint64_t key;
    uint32_t place;

    if (bytes == 0)
        bits = bits & 1 ? UINT32_MAX : 0;
    else if (bytes < 8)
        bits &= (UINT64_C(1) << (8 * bytes)) - 1;
    key = constant_key(bits, bytes);
    if (key && hed_interp_map_get(d->constants, key, &place))
        return place;
    if (!pool_grow(d, size))
        return 1;
    place = d->pooled | 1;
    memset(d->pool + d->pooled, 0, size);
    if (bytes == 0)
        memcpy(d->pool + d->pooled, &bits, 4);
    for (unsigned i = 0; bytes && i < HED_PTX_LANES; i++)
        memcpy(d->pool + d->pooled + (size_t)i * bytes, &bits, bytes < 8 ? bytes : 8);
    d->pooled += size;
    if (key && hed_interp_map_put(d->constants, key, place) != 0)
        d->err = HED_ENOMEM;
    return place;
}

/* The number that a floating point constant stands for. */
static double
constant_number(const struct hed_ptx_operand *o)
{
    if (o->is_f32)
        return (double)hed_from_bits32((uint32_t)o->bits);
    return hed_from_bits64(o->bits);
}

static uint64_t
float_constant(const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    const double v = constant_number(o);
    const uint32_t single = o->is_f32 ? (uint32_t)o->bits : hed_to_bits32((float)v);

    switch (t) {
    case HED_PTX_TYPE_F16:
        return real_narrow(hed_to_bits64(v), &real_f64, &real_f16, (struct real_rounding){0});
    case HED_PTX_TYPE_BF16:
        return real_narrow16(hed_from_bits32(single), &real_bf16);
    case HED_PTX_TYPE_F64:
        return hed_to_bits64(v);
    default:
        return hed_ptx_types[t].bits == 32 ? single : o->bits;
    }
}

static uint32_t
integer_constant(struct interp_decoder *d, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    if (t == HED_PTX_TYPE_PRED)
        return hed_interp_constant(d, (o->bits != 0) != o->negated, 0);
    return hed_interp_constant(d, o->bits, interp_bytes(t));
}

/* ---- sources ------------------------------------------------------------------------------- */

uint32_t
hed_interp_register_place(const struct interp_decoder *d, const struct hed_ptx_operand *o)
{
    const unsigned bytes = interp_bytes(o->reg->type);

    return d->regs[o->reg->id] + hed_ptx_operand_element(o) * (bytes ? bytes * HED_PTX_LANES : 4);
}

/* A place of some width as type t. */
static uint32_t
resized_source(struct interp_decoder *d, uint32_t place, unsigned bytes, enum hed_ptx_type t)
{
    uint32_t to;

    if (bytes == interp_bytes(t))
        return place;
    if (bytes == 0 || interp_bytes(t) == 0) {
        hed_interp_refuse(d, "a predicate is not a number");
        return place;
    }
    to = hed_interp_temp(d, interp_bytes(t));
    hed_interp_resize(d, place, bytes, to, interp_bytes(t), interp_is_signed(t));
    return to;
}

static uint32_t
address_source(struct interp_decoder *d, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    struct interp_memory m;
    uint32_t to, offset;

    if (o->kind == HED_PTX_OPERAND_FUNC)
        return hed_interp_constant(d, hed_ptx_func_address(d->module, o->func), interp_bytes(t));
    if (hed_ptx_is_shared_space(o->var->space)) {
        if (!hed_interp_map_get(d->places, (uintptr_t)o->var, &offset))
            offset = 0;
        return hed_interp_constant(d, offset + (uint64_t)o->offset, interp_bytes(t));
    }
    m = hed_interp_memory(d, o, HED_PTX_SPACE_NONE, 1);
    to = hed_interp_temp(d, 8);
    hed_interp_emit_address(d, &m, to, 1);
    return resized_source(d, to, 8, t);
}

uint32_t
hed_interp_source(struct interp_decoder *d, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    const char *why = hed_ptx_lacks_value(o, t);
    uint32_t place, to;

    if (why) {
        hed_interp_refuse(d, "%s", why);
        return 1;
    }
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        place = d->known[o->reg->id];
        place = resized_source(d, place ? place : hed_interp_register_place(d, o),
                               interp_bytes(o->reg->type), t);
        break;
    case HED_PTX_OPERAND_SREG:
        to = hed_interp_temp(d, interp_bytes(hed_ptx_sregs[o->sreg].type));
        place = resized_source(d, hed_interp_sreg(d, o, to),
                               interp_bytes(hed_ptx_sregs[o->sreg].type), t);
        break;
    case HED_PTX_OPERAND_INT:
        return integer_constant(d, o, t);
    case HED_PTX_OPERAND_FLOAT:
        return hed_interp_constant(d, float_constant(o, t), interp_bytes(t));
    case HED_PTX_OPERAND_VAR:
    case HED_PTX_OPERAND_FUNC:
        return address_source(d, o, t);
    default: /* a sink */
        return hed_interp_constant(d, 0, interp_bytes(t));
    }
    if (!o->negated || t != HED_PTX_TYPE_PRED)
        return place;
    to = hed_interp_temp(d, 0);
    hed_interp_invert(d, to, place);
    return to;
}

uint32_t
hed_interp_operand(struct interp_decoder *d, unsigned n, enum hed_ptx_type t)
{
    return hed_interp_source(d, &d->inst->operands[n], t);
}

/* ---- destinations -------------------------------------------------------------------------- */

uint32_t
hed_interp_dest(struct interp_decoder *d, const struct hed_ptx_operand *o, enum hed_ptx_type t)
{
    const unsigned bytes = interp_bytes(t);
    const char *why = hed_ptx_lacks_place(o);
    uint32_t temp, place;

    if (why)
        hed_interp_refuse(d, "%s", why);
    if (o->kind != HED_PTX_OPERAND_REG)
        return hed_interp_temp(d, bytes);
    place = hed_interp_register_place(d, o);
    if (interp_bytes(o->reg->type) == bytes)
        return place;
    temp = hed_interp_temp(d, bytes);
    if (bytes == 0 || interp_bytes(o->reg->type) == 0 || d->npending == INTERP_PENDING_MAX) {
        hed_interp_refuse(d, "a predicate is not a number");
        return temp;
    }
    d->pending[d->npending++] = (struct interp_pending){
        .from = temp,
        .to = place,
        .bytes = {(uint8_t)bytes, (uint8_t)interp_bytes(o->reg->type)},
        .is_signed = interp_is_signed(t),
    };
    return temp;
}

void
hed_interp_flush(struct interp_decoder *d)
{
    for (unsigned i = 0; i < d->npending; i++) {
        const struct interp_pending *p = &d->pending[i];

        hed_interp_resize(d, p->from, p->bytes[0], p->to, p->bytes[1], p->is_signed);
    }
    d->npending = 0;
}

/* ---- memory operands ----------------------------------------------------------------------- */

static struct interp_memory
memory_of_variable(struct interp_decoder *d, const struct hed_ptx_var *v, int64_t offset)
{
    struct interp_memory m = {.imm = offset};
    uint32_t at = 0;

    if (hed_ptx_var_counts(v)) {
        m.kind = INTERP_GLOBAL_VAR;
        (void)hed_interp_map_get(d->places, (uintptr_t)v, &m.place);
    } else if (hed_ptx_is_shared_space(v->space)) {
        m.kind = INTERP_SHARED_VAR;
        (void)hed_interp_map_get(d->places, (uintptr_t)v, &at);
        m.imm += at;
    } else if (hed_interp_map_get(d->locals, (uintptr_t)v, &at)) {
        m.kind = INTERP_LOCAL_VAR;
        m.imm += at;
    } else { /* what hed_ptx_get_meaning() allows besides: a parameter of the kernel */
        m.kind = INTERP_PARAM_VAR;
        m.imm += (int64_t)v->offset;
    }
    return m;
}

/* An address in a register or a number. */
static struct interp_memory
memory_of_address(struct interp_decoder *d, const struct hed_ptx_operand *o,
                  enum hed_ptx_space space)
{
    struct interp_memory m = {.kind = INTERP_REGISTER, .imm = o->offset};
    struct hed_ptx_operand value = *o;
    const bool is_shared = hed_ptx_is_shared_space(space);

    /* A shared address is 32 bits wide, whatever the register's width. */
    if (is_shared)
        m.kind = INTERP_SHARED_REGISTER;
    if (o->base == HED_PTX_OPERAND_REG) {
        value.kind = HED_PTX_OPERAND_REG;
        m.place = hed_interp_source(d, &value, is_shared ? HED_PTX_TYPE_U32 : HED_PTX_TYPE_U64);
    } else {
        m.place = hed_interp_constant(d, o->bits, is_shared ? 4 : 8);
    }
    return m;
}

struct interp_memory
hed_interp_memory(struct interp_decoder *d, const struct hed_ptx_operand *o,
                  enum hed_ptx_space space, unsigned align)
{
    struct interp_memory m;

    if (o->kind == HED_PTX_OPERAND_VAR || o->base == HED_PTX_OPERAND_VAR) {
        m = memory_of_variable(d, o->var, o->offset);
        m.aligned = align <= 1 || m.imm % (int64_t)align == 0;
    } else {
        m = memory_of_address(d, o, space);
        m.aligned = align <= 1;
    }
    return m;
}

uint32_t
hed_interp_address(struct interp_decoder *d, const struct hed_ptx_operand *o,
                   enum hed_ptx_space space, unsigned align)
{
    const struct interp_memory m = hed_interp_memory(d, o, space, align);
    const uint32_t to = hed_interp_temp(d, 8);

    hed_interp_emit_address(d, &m, to, m.aligned ? 1 : align);
    return to;
}
