/* Atomic operations on memory. See inside.h for the rules. */
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/memory.h"

enum { ADD, MIN, MAX, INC, DEC, AND, OR, XOR, EXCH };
enum { U32, S32, U64, F32, F16X2, S64, F64, BF16X2, TYPES };

static const char *const op_names[] = {"add", "min", "max", "inc", "dec",
                                       "and", "or",  "xor", "exch"};

static bool
is_wide_type(unsigned type)
{
    return type == U64 || type == S64 || type == F64;
}

/* Since sm_90 operations on floats have opcodes of their own. */
static bool
is_float_atomic(const struct lift *l)
{
    const unsigned opcode = l->inst->opcode & 0x1ff;

    return hed_lift_arch(l) >= LIFT_HOPPER &&
           (opcode == 0x1a2 || opcode == 0x1a3 || opcode == 0x1a6);
}

/* The type by its field, which is not the same everywhere; TYPES if it is not known. */
static unsigned
type_of_atomic(const struct lift *l)
{
    static const uint8_t floats[16] = {F16X2, TYPES, TYPES, BF16X2, TYPES, TYPES, TYPES, TYPES,
                                       TYPES, F32,   TYPES, TYPES,  TYPES, TYPES, TYPES, F64};
    static const uint8_t integers[8] = {U32, S32, U64, S64, TYPES, TYPES, TYPES, TYPES};

    if (is_float_atomic(l))
        return floats[hed_sass_bits(l->inst, 73, 4)];
    if (hed_lift_arch(l) >= LIFT_HOPPER)
        return integers[hed_sass_bits(l->inst, 73, 3)];
    return (unsigned)hed_sass_bits(l->inst, 73, hed_lift_arch(l) == LIFT_TURING ? 3 : 4);
}

/* The operation by its field; that of REDG and RED has three bits. */
static unsigned
operation_of_atomic(const struct lift *l, unsigned bits)
{
    return (unsigned)(is_float_atomic(l) ? hed_sass_bits(l->inst, 88, 2)
                                         : hed_sass_bits(l->inst, 87, bits));
}

/* The operation and the type as PTX writes them: "add.u32". NULL, refused, if there is none. */
static const char *
operation_name(struct lift *l, unsigned op, unsigned type)
{
    static const char *const numbers[] = {"u32", "s32", "u64", NULL, NULL, "s64", NULL, NULL};
    static const char *const sums[] = {"u32",         "u32", "u64", "f32",
                                       "noftz.f16x2", "u64", "f64", "noftz.bf16x2"};
    const char *word = NULL;

    if (op <= EXCH && type < TYPES) {
        if (op == ADD)
            word = sums[type];
        else if (op == MIN || op == MAX)
            word = numbers[type];
        else if (op == INC || op == DEC)
            word = type == U32 ? "u32" : NULL;
        else if (numbers[type])
            word = is_wide_type(type) ? "b64" : "b32";
    }
    if (!word) {
        hed_lift_refuse(l, "an atomic operation that is not known");
        return NULL;
    }
    return hed_lift_text(l, "%s.%s", op_names[op], word);
}

/* The order and the scope, by their field. */
static const char *
order_of_atomic(struct lift *l)
{
    switch (hed_lift_order_field(l)) {
    case 4:
    case 5:
        return ".relaxed.cta";
    case 0:
    case 6:
    case 7:
        return ".relaxed.gpu";
    case 8:
    case 10:
    case 12:
        return ".relaxed.sys";
    default:
        hed_lift_refuse(l, "an order of memory that is not known");
        return "";
    }
}

static const char *
atomic_source(struct lift *l, unsigned operand, bool wide)
{
    const struct hed_sass_operand *o = hed_lift_operand(l, operand);

    return wide ? hed_lift_u64(l, o) : hed_lift_word(l, o);
}

/* "atom<where>.<what> d, [at], <sources>"; without a destination, red. */
static void
put_atomic(struct lift *l, const char *where, const char *what, const char *at, const char *sources,
           bool wide)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);

    if (d->reg == HED_SASS_RZ && strncmp(what, "exch", 4) != 0 && strncmp(what, "cas", 3) != 0) {
        hed_lift_put(l, "red%s.%s [%s], %s", where, what, at, sources);
    } else if (wide) {
        hed_lift_put(l, "atom%s.%s %s, [%s], %s", where, what, hed_lift_def64(l, d), at, sources);
        hed_lift_end64(l, d);
    } else {
        hed_lift_put(l, "atom%s.%s %s, [%s], %s", where, what, hed_lift_def(l, d), at, sources);
    }
}

/* A predicate that is true: the memory did it. */
static void
set_done(struct lift *l)
{
    const char *p = hed_lift_def_pred(l, 81);

    if (p)
        hed_lift_put(l, "setp.eq.b32 %s, 0, 0", p);
}

static bool
has_far_address(struct lift *l)
{
    if (!hed_lift_has(l, "E"))
        hed_lift_refuse(l, "an address of 32 bits");
    return hed_lift_has(l, "E");
}

static void
lift_far_atomic(struct lift *l, const char *space)
{
    const unsigned type = type_of_atomic(l);
    const unsigned opcode = l->inst->opcode & 0x1ff;
    const bool is_swap = opcode == 0x18b || opcode == 0x1a9, wide = is_wide_type(type);
    const char *where = hed_lift_text(l, "%s%s", order_of_atomic(l), space), *what, *sources;

    if (!has_far_address(l))
        return;
    sources = atomic_source(l, 2, wide);
    if (is_swap) {
        if ((type != U32 && type != U64) || hed_sass_bits(l->inst, 87, 1)) {
            hed_lift_refuse(l, "an atomic operation that is not known");
            return;
        }
        sources = hed_lift_text(l, "%s, %s", sources, atomic_source(l, 3, wide));
        what = wide ? "cas.b64" : "cas.b32";
    } else {
        what = operation_name(l, operation_of_atomic(l, 4), type);
    }
    if (what) {
        const struct hed_sass_operand *o = hed_lift_operand(l, 1);
        const char *at = space[0] ? hed_lift_far(l, o) : hed_lift_generic(l, o);

        put_atomic(l, where, what, at, sources, wide);
        set_done(l);
    }
}

void
hed_lift_atomic_global(struct lift *l)
{
    lift_far_atomic(l, ".global");
}

void
hed_lift_atomic_generic(struct lift *l)
{
    lift_far_atomic(l, "");
}

void
hed_lift_reduce_global(struct lift *l)
{
    const unsigned type = type_of_atomic(l);
    const char *what = operation_name(l, operation_of_atomic(l, 3), type), *at, *s;

    if (!what || !has_far_address(l))
        return;
    s = atomic_source(l, 1, is_wide_type(type));
    at = hed_lift_far(l, hed_lift_operand(l, 0));
    hed_lift_put(l, "red%s.global.%s [%s], %s", order_of_atomic(l), what, at, s);
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* The old value, or, with .CAST, a number of the same size: 1 if it was replaced, else 0. */
static void
lift_shared_swap(struct lift *l, const char *at, bool wide)
{
    const char *old = atomic_source(l, 2, wide), *new = atomic_source(l, 3, wide), *t, *x;
    const unsigned bits = wide ? 64 : 32;

    if (!hed_sass_bits(l->inst, 87, 1)) {
        put_atomic(l, ".shared", wide ? "cas.b64" : "cas.b32", at,
                   hed_lift_text(l, "%s, %s", old, new), wide);
        return;
    }
    t = hed_lift_temp(l, wide ? 'q' : 't');
    x = hed_lift_temp(l, 'x');
    hed_lift_put(l, "atom.shared.cas.b%u %s, [%s], %s, %s", bits, t, at, old, new);
    hed_lift_put(l, "setp.eq.b%u %s, %s, %s", bits, x, t, old);
    hed_lift_put(l, "selp.b32 %s, 1, 0, %s", hed_lift_def(l, hed_lift_operand(l, 0)), x);
    if (wide)
        hed_lift_put(l, "mov.b32 %s, 0", hed_lift_def_nth(l, hed_lift_operand(l, 0), 1));
}

void
hed_lift_atomic_shared(struct lift *l)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const unsigned type = (unsigned)hed_sass_bits(l->inst, 73, 2);
    const char *at = hed_lift_shared(l, hed_lift_operand(l, 1)), *what;

    if (hed_lift_has(l, "POPC")) { /* each lane that runs adds 1 */
        if (d->reg == HED_SASS_RZ)
            hed_lift_put(l, "red.shared.add.u32 [%s], 1", at);
        else
            hed_lift_count_lanes(l, at, hed_lift_shared_index(l, hed_lift_operand(l, 1)));
    } else if (type > U64) {
        hed_lift_refuse(l, "an atomic operation that is not known");
    } else if ((l->inst->opcode & 0x1ff) == 0x18d) {
        lift_shared_swap(l, at, type == U64);
    } else {
        what = operation_name(l, (unsigned)hed_sass_bits(l->inst, 87, 4), type);
        if (what)
            put_atomic(l, ".shared", what, at, atomic_source(l, 2, type == U64), type == U64);
    }
}
