/* Conversions between types. See inside.h for the rules. */
#include <stdio.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"

/* Sizes as the fields have them: log2 of bytes. */
enum { BITS8, BITS16, BITS32, BITS64 };

/* Types of floats as the fields have them. */
enum { BF16 = 4, FLOATS };

static const char *const floats[] = {NULL, "f16", "f32", "f64", "bf16"};

/* The type in a field, which is wider since sm_90; 0 if it is none. */
static unsigned
float_field(const struct lift *l, unsigned bit)
{
    const unsigned v =
        (unsigned)hed_sass_bits(l->inst, bit, hed_lift_arch(l) < LIFT_HOPPER ? 2 : 3);

    return v < FLOATS ? v : 0;
}

static unsigned
size_of_float(unsigned type)
{
    return type == BF16 ? BITS16 : type;
}

/* ---- sources and results --------------------------------------------------------------------- */

/* A 16-bit half of a register, with its sign. */
static const char *
source_of_half(struct lift *l, const struct hed_sass_operand *o)
{
    const char *low = hed_lift_temp(l, 'h'), *high = hed_lift_temp(l, 'h'), *h, *t;
    uint32_t v;
    const bool upper = !hed_lift_number(o, &v) && hed_sass_bits(l->inst, 60, 1);

    hed_lift_calc(l, "mov.b32 {%s, %s}, %s", low, high, hed_lift_reg(l, hed_lift_word(l, o)));
    h = upper ? high : low;
    if (o->absolute) {
        t = hed_lift_temp(l, 'h');
        hed_lift_calc(l, "and.b16 %s, %s, 0x7fff", t, h);
        h = t;
    }
    if (o->negate) {
        t = hed_lift_temp(l, 'h');
        hed_lift_calc(l, "xor.b16 %s, %s, 0x8000", t, h);
        h = t;
    }
    return h;
}

/* A float of a type, in a register. */
static const char *
source_of_float(struct lift *l, const struct hed_sass_operand *o, unsigned type)
{
    if (size_of_float(type) == BITS16)
        return source_of_half(l, o);
    if (type == BITS32)
        return hed_lift_reg(l, hed_lift_f32(l, o));
    return hed_lift_reg64(l, hed_lift_double(l, o));
}

/* Writes "OP result, source" to where a value of that size goes; a half goes to the lower half of a
 * register, and the upper one is zero. */
static void
write_converted(struct lift *l, unsigned size, const char *op, const char *source)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);

    if (size == BITS64) {
        hed_lift_put(l, "%s %s, %s", op, hed_lift_def64(l, d), source);
        hed_lift_end64(l, d);
    } else if (size == BITS16) {
        const char *h = hed_lift_temp(l, 'h');

        hed_lift_calc(l, "%s %s, %s", op, h, source);
        hed_lift_put(l, "cvt.u32.u16 %s, %s", hed_lift_def(l, d), h);
    } else {
        hed_lift_put(l, "%s %s, %s", op, hed_lift_def(l, d), source);
    }
}

/* How a float becomes a whole number. */
static const char *
whole_rounding(const struct lift *l)
{
    static const char *const rounds[] = {"rni", "rmi", "rpi", "rzi"};

    return rounds[hed_sass_bits(l->inst, 78, 2)];
}

/* A half of a word: some instructions want integers of 16 bits in such registers. */
static const char *
half_word(struct lift *l, const char *word, bool high)
{
    const char *h[2] = {hed_lift_temp(l, 'h'), hed_lift_temp(l, 'h')};

    hed_lift_calc(l, "mov.b32 {%s, %s}, %s", h[0], h[1], word);
    return h[high];
}

/* ---- integers -------------------------------------------------------------------------------- */

/* The part of a word that an integer of 8 or 16 bits is. */
static const char *
source_of_int(struct lift *l, const struct hed_sass_operand *o, unsigned size)
{
    const char *w, *t;
    unsigned by = 0;
    uint32_t v;

    if (size == BITS64)
        return hed_lift_reg64(l, hed_lift_u64(l, o));
    w = hed_lift_reg(l, hed_lift_word(l, o));
    if (!hed_lift_number(o, &v) && size < BITS32)
        by = (unsigned)hed_sass_bits(l->inst, 60, 2) * (size == BITS8 ? 8 : 16);
    if (by == 0)
        return w;
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "shr.u32 %s, %s, %u", t, w, by);
    return t;
}

void
hed_lift_i2f(struct lift *l)
{
    const unsigned from = (unsigned)hed_sass_bits(l->inst, 84, 2);
    const unsigned to = float_field(l, 75);
    const bool is_signed = hed_sass_bits(l->inst, 74, 1);
    const char *source = source_of_int(l, hed_lift_operand(l, 1), from);

    if (!floats[to]) {
        hed_lift_refuse(l, "a type that is not known");
        return;
    }
    if (to == BF16 && from == BITS16)
        source = half_word(l, source, false);
    write_converted(l, size_of_float(to),
                    hed_lift_text(l, "cvt.%s.%s.%c%u", hed_lift_round(l), floats[to],
                                  is_signed ? 's' : 'u', 8u << from),
                    source);
}

/* PTX makes 0 of a NaN, but the highest bit alone if one side has 64 bits. Where the instruction
 * says otherwise, the other one is chosen. */
static void
choose_nan(struct lift *l, unsigned to, bool zero, const char *is_nan, const char *value)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0);
    const bool is_signed = hed_sass_bits(l->inst, 72, 1);
    const unsigned width = 8u << to;

    if (to == BITS64) {
        hed_lift_put(l, "selp.b64 %s, %s, %s, %s", hed_lift_def64(l, d),
                     zero ? "0" : "0x8000000000000000", value, is_nan);
        hed_lift_end64(l, d);
        return;
    }
    hed_lift_put(l, "selp.b32 %s, 0x%x, %s, %s", hed_lift_def(l, d),
                 zero        ? 0
                 : is_signed ? 0xffffffffu << (width - 1)
                             : 1u << (width - 1),
                 value, is_nan);
}

void
hed_lift_f2i(struct lift *l)
{
    const unsigned from = float_field(l, 84);
    const unsigned to = (unsigned)hed_sass_bits(l->inst, 75, 2);
    const bool zero = hed_lift_has(l, "NTZ"), ptx_zero = from != BITS64 && to != BITS64;
    const char *source, *op, *value, *is_nan;

    if (!floats[from] || (from != BITS32 && hed_lift_has(l, "FTZ"))) {
        hed_lift_refuse(l, "a type that is not known");
        return;
    }
    source = source_of_float(l, hed_lift_operand(l, 1), from);
    op = hed_lift_text(l, "cvt.%s%s.%c%u.%s", whole_rounding(l), hed_lift_flag(l, "FTZ", ".ftz"),
                       hed_sass_bits(l->inst, 72, 1) ? 's' : 'u', 8u << to, floats[from]);
    value = hed_lift_temp(l, to == BITS64 ? 'q' : 't');
    if (from == BF16 && to == BITS16) {
        const char *h = hed_lift_temp(l, 'h');

        hed_lift_calc(l, "%s %s, %s", op, h, source);
        hed_lift_calc(l,
                      hed_sass_bits(l->inst, 72, 1) ? "cvt.s32.s16 %s, %s" : "cvt.u32.u16 %s, %s",
                      value, h);
    } else {
        hed_lift_calc(l, "%s %s, %s", op, value, source);
    }
    if (zero == ptx_zero) {
        write_converted(l, to == BITS64 ? BITS64 : BITS32, to == BITS64 ? "mov.b64" : "mov.b32",
                        value);
        return;
    }
    is_nan = hed_lift_temp(l, 'x');
    hed_lift_calc(l, "setp.nan.%s %s, %s, %s", floats[from], is_nan, source, source);
    choose_nan(l, to, zero, is_nan, value);
}

/* Two floats to bytes, beside each other; compilers convert one. */
void
hed_lift_f2ip(struct lift *l)
{
    if (!hed_lift_has(l, "NTZ") || !hed_lift_has(l, "U8") || hed_lift_has(l, "RELU") ||
        !hed_lift_is_zero(hed_lift_operand(l, 1)) || !hed_lift_is_zero(hed_lift_operand(l, 3))) {
        hed_lift_refuse(l, "several floats to bytes");
        return;
    }
    write_converted(l, BITS32, hed_lift_text(l, "cvt.%s.u8.f32", whole_rounding(l)),
                    source_of_float(l, hed_lift_operand(l, 2), BITS32));
}

/* ---- floats ---------------------------------------------------------------------------------- */

void
hed_lift_f2f(struct lift *l)
{
    const unsigned from = float_field(l, 84), code = (unsigned)hed_sass_bits(l->inst, 75, 3);
    const unsigned to = code < FLOATS ? code : 0;
    const bool rounds = size_of_float(to) <= size_of_float(from);

    if (!floats[to] || !floats[from] || from == to ||
        (hed_lift_arch(l) < LIFT_HOPPER && to == BF16 && from != BITS32)) {
        hed_lift_refuse(l, "types that are not known");
        return;
    }
    write_converted(l, size_of_float(to),
                    hed_lift_text(l, "cvt%s%s%s.%s.%s", rounds ? "." : "",
                                  rounds ? hed_lift_round(l) : "", hed_lift_flag(l, "FTZ", ".ftz"),
                                  floats[to], floats[from]),
                    source_of_float(l, hed_lift_operand(l, 1), from));
}

/* To a whole number of the same type. */
void
hed_lift_frnd(struct lift *l)
{
    const unsigned type = float_field(l, 75);

    if (type == 0 || float_field(l, 84) != type || (type != BITS32 && hed_lift_has(l, "FTZ"))) {
        hed_lift_refuse(l, "types that are not known");
        return;
    }
    write_converted(l, size_of_float(type),
                    hed_lift_text(l, "cvt.%s%s.%s.%s", whole_rounding(l),
                                  hed_lift_flag(l, "FTZ", ".ftz"), floats[type], floats[type]),
                    source_of_float(l, hed_lift_operand(l, 1), type));
}

/* Two of f32 as two halves; the first goes up. MERGE_C makes one and takes the upper half from
 * elsewhere, of which only zero is known. */
static void
convert_packed(struct lift *l)
{
    const bool merges = hed_lift_has(l, "MERGE_C"), bf16 = hed_lift_has(l, "BF16");
    const struct hed_sass_operand *first = hed_lift_operand(l, 1), *second = hed_lift_operand(l, 2);
    const unsigned round = (unsigned)hed_sass_bits(l->inst, 79, 2);
    const char *a, *b;
    uint32_t v;

    if ((round != 0 && round != 3) || (merges && !(hed_lift_number(second, &v) && v == 0))) {
        hed_lift_refuse(l, "a form that is not known");
        return;
    }
    a = merges ? "0" : hed_lift_f32(l, first);
    b = hed_lift_f32(l, merges ? first : second);
    a = hed_lift_reg(l, a);
    b = hed_lift_reg(l, b);
    hed_lift_put(l, "cvt.%s%s%s.%s.f32 %s, %s, %s", round ? "rz" : "rn",
                 hed_lift_flag(l, "RELU", ".relu"), hed_lift_flag(l, "SATFINITE", ".satfinite"),
                 bf16 ? "bf16x2" : "f16x2", hed_lift_def(l, hed_lift_operand(l, 0)), a, b);
}

/* F2FP with a type of 8 bits on one side: two values in a half of a word. */
static void
convert_bytes(struct lift *l, const char *bytes)
{
    const struct hed_sass_operand *d = hed_lift_operand(l, 0), *a = hed_lift_operand(l, 1);
    const char *flags = hed_lift_flag(l, "RELU", ".relu"), *x, *y, *h;
    uint32_t v;

    if (hed_lift_has(l, "UNPACK_B") && hed_lift_has(l, "F16")) {
        x = half_word(l, hed_lift_reg(l, hed_lift_word(l, a)), hed_sass_bits(l->inst, 88, 1));
        hed_lift_put(l, "cvt.rn%s.f16x2.%s %s, %s", flags, bytes, hed_lift_def(l, d), x);
        return;
    }
    if (!hed_lift_has(l, "SATFINITE") || hed_sass_bits(l->inst, 79, 2) ||
        !(hed_lift_number(hed_lift_operand(l, hed_lift_has(l, "F32") ? 3 : 2), &v) && v == 0)) {
        hed_lift_refuse(l, "a form that is not known");
        return;
    }
    x = hed_lift_reg(l, hed_lift_f32(l, a));
    h = hed_lift_temp(l, 'h');
    if (hed_lift_has(l, "PACK_AB_MERGE_C")) {
        y = hed_lift_reg(l, hed_lift_f32(l, hed_lift_operand(l, 2)));
        hed_lift_put(l, "cvt.rn.satfinite%s.%s.f32 %s, %s, %s", flags, bytes, h, x, y);
    } else if (hed_lift_has(l, "UNPACK_B_MERGE_C")) {
        hed_lift_put(l, "cvt.rn.satfinite%s.%s.f16x2 %s, %s", flags, bytes, h, x);
    } else {
        hed_lift_refuse(l, "a form that is not known");
        return;
    }
    hed_lift_put(l, "cvt.u32.u16 %s, %s", hed_lift_def(l, d), h);
}

static void
convert_tf32(struct lift *l)
{
    const unsigned round = (unsigned)hed_sass_bits(l->inst, 79, 2);
    const char *a = hed_lift_reg(l, hed_lift_f32(l, hed_lift_operand(l, 1)));

    if (!hed_lift_has(l, "PACK_B") || (round != 0 && round != 3)) {
        hed_lift_refuse(l, "a form that is not known");
        return;
    }
    hed_lift_put(l, "cvt.%s%s%s.tf32.f32 %s, %s", round ? "rz" : "rn",
                 hed_lift_flag(l, "SATFINITE", ".satfinite"), hed_lift_flag(l, "RELU", ".relu"),
                 hed_lift_def(l, hed_lift_operand(l, 0)), a);
}

void
hed_lift_f2fp(struct lift *l)
{
    if (hed_lift_has(l, "E4M3"))
        convert_bytes(l, "e4m3x2");
    else if (hed_lift_has(l, "E5M2"))
        convert_bytes(l, "e5m2x2");
    else if (hed_lift_has(l, "TF32"))
        convert_tf32(l);
    else
        convert_packed(l);
}
