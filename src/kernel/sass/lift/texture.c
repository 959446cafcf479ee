/* Fetches from textures. See inside.h for the rules.
 *
 * The words of a fetch are, in this order, the layer, the coordinates, the object (.B; otherwise it
 * is in a constant bank), the level and the offsets. They are in two groups of registers: .SCR
 * divides them in the middle, otherwise the second group begins behind the coordinates. Of the four
 * channels, those of a mask are written, two to each group of results. The type is not known here;
 * results are words as they come.
 */
#include <stdbool.h>
#include <string.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/texture.h"

#define WORDS_MAX 7 /* a layer, three coordinates, an object, a level, offsets */

struct shape {
    const char *name; /* NULL if there is none */
    unsigned coordinates;
    bool layered;
};

/* By bits 61..63. */
static const struct shape shapes[] = {
    {"1d", 1, false}, {"2d", 2, false}, {"3d", 3, false}, {"cube", 3, false},
    {"a1d", 1, true}, {"a2d", 2, true}, {NULL, 0, false}, {"acube", 3, true},
};

/* ---- operands -------------------------------------------------------------------------------- */

struct hed_sass_operand
hed_lift_register_at(const struct lift *l, unsigned bit)
{
    return (struct hed_sass_operand){
        .kind = HED_SASS_REG, .reg = (uint32_t)hed_sass_bits(l->inst, bit, 8), .choice = {"", 0}};
}

const char *
hed_lift_object(struct lift *l, const char *half)
{
    const char *v, *q;

    if ((l->inst->opcode & 0xe00) == 0xe00) { /* the last form has UR: the lower half again */
        const struct hed_sass_operand ur = {.kind = HED_SASS_UREG,
                                            .reg = (uint32_t)hed_sass_bits(l->inst, 40, 6)};

        if (hed_sass_bits(l->inst, 46, 8))
            hed_lift_refuse(l, "an object that is not at the beginning of a table");
        half = hed_lift_word(l, &ur);
    }
    if (half) {
        q = hed_lift_temp(l, 'q');
        hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, half);
        return q;
    }
    v = hed_lift_constant(l, (uint32_t)hed_sass_bits(l->inst, 54, 5),
                          (int64_t)hed_sass_bits(l->inst, 40, 14) * 4, 8);
    if (v[0] == '%')
        return v;
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "mov.b64 %s, %s", q, v);
    return q;
}

const char *
hed_lift_group_word(struct lift *l, const struct hed_sass_operand *group, unsigned n)
{
    const char *v = hed_lift_nth(l, group, n), *t;

    if (v[0] == '%')
        return v;
    t = hed_lift_temp(l, 't');
    hed_lift_calc(l, "mov.b32 %s, %s", t, v);
    return t;
}

/* Is the object among the words? There are opcodes for it, which say .B. */
static bool
has_object_word(struct lift *l)
{
    const bool has = (l->inst->opcode & 0xe00) == 0x200;

    if (hed_sass_bits(l->inst, 59, 1) != has)
        hed_lift_refuse(l, "a fetch from a texture that is not known");
    return has;
}

/* The results: registers for the channels of the mask, temporaries for the others. */
static const char *
fetched_channels(struct lift *l)
{
    const struct hed_sass_operand low = hed_lift_register_at(l, 16),
                                  high = hed_lift_register_at(l, 64);
    const unsigned mask = (unsigned)hed_sass_bits(l->inst, 72, LIFT_CHANNELS);
    const char *channels[LIFT_CHANNELS];
    unsigned n = 0;

    for (unsigned i = 0; i < LIFT_CHANNELS; i++) {
        if (mask >> i & 1) {
            channels[i] = hed_lift_def_nth(l, n < 2 ? &low : &high, n % 2);
            n++;
        } else {
            channels[i] = hed_lift_temp(l, 't');
        }
    }
    return hed_lift_braces(l, channels, LIFT_CHANNELS);
}

/* Offsets in texels: `width` bits for each coordinate, `apart` bits from one to the next. As the
 * last operand, with the comma. */
static const char *
texel_offsets(struct lift *l, const char *packed, unsigned count, unsigned width, unsigned apart)
{
    const char *offsets[3];

    for (unsigned i = 0; i < count; i++) {
        offsets[i] = hed_lift_temp(l, 't');
        hed_lift_calc(l, "bfe.s32 %s, %s, %u, %u", offsets[i], packed, i * apart, width);
    }
    return hed_lift_text(l, ", %s", count == 1 ? offsets[0] : hed_lift_braces(l, offsets, count));
}

/* Halves, comparisons, whether the memory is there, samples of a pixel: graphics has these. */
static bool
is_plain_fetch(struct lift *l)
{
    if (hed_sass_bits(l->inst, 79, 2) || hed_lift_has(l, "DC") || hed_lift_has(l, "NDV") ||
        hed_lift_has(l, "MS") || hed_lift_has(l, "PTP") || hed_sass_bits(l->inst, 81, 3) != 7) {
        hed_lift_refuse(l, "a fetch from a texture that is not known");
        return false;
    }
    return true;
}

static const struct shape *
fetched_shape(struct lift *l)
{
    const struct shape *s = &shapes[hed_sass_bits(l->inst, 61, 3)];

    if (s->name)
        return s;
    hed_lift_refuse(l, "a shape of a texture that is not known");
    return NULL;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* "verb.geometry.v4.u32.type results, [object, coordinates]level offsets". */
static void
put_fetch(struct lift *l, const struct shape *s, const char *verb, const char *type, bool has_level,
          unsigned offset_width, unsigned offset_apart)
{
    const struct hed_sass_operand a = hed_lift_register_at(l, 24), b = hed_lift_register_at(l, 32);
    const bool has_offsets = hed_lift_has(l, "AOFFI");
    const bool has_object = has_object_word(l);
    const unsigned place = s->coordinates + s->layered;
    const unsigned count = place + has_object + has_level + has_offsets;
    const unsigned first = hed_sass_bits(l->inst, 60, 1) ? (count + 1) / 2 : place;
    const char *words[WORDS_MAX], *level = "", *offsets = "", *object, *at;

    for (unsigned i = 0; i < count; i++)
        words[i] =
            i < first ? hed_lift_group_word(l, &a, i) : hed_lift_group_word(l, &b, i - first);
    object = hed_lift_object(l, has_object ? words[place] : NULL);
    at = hed_lift_braces(l, words, place);
    if (has_level)
        level = hed_lift_text(l, ", %s", words[place + has_object]);
    if (has_offsets)
        offsets = texel_offsets(l, words[count - 1], s->coordinates, offset_width, offset_apart);
    hed_lift_put(l, "%s.%s.v4.u32.%s %s, [%s, %s]%s%s", verb, s->name, type, fetched_channels(l),
                 object, at, level, offsets);
}

/* TEX, at coordinates that are floats. Without a level of its own, ptxas gives it one below all. */
void
hed_lift_sample(struct lift *l)
{
    const struct shape *s = fetched_shape(l);
    const unsigned level = (unsigned)hed_sass_bits(l->inst, 87, 3);

    if (!s || !is_plain_fetch(l))
        return;
    if (level != 1 && level != 3) /* LZ, LL */
        hed_lift_refuse(l, "a texture whose level depends on other lanes");
    else
        put_fetch(l, s, level == 3 ? "tex.level" : "tex", "f32", level == 3, 4, 4);
}

/* TLD, at coordinates that are integers. */
void
hed_lift_fetch(struct lift *l)
{
    const struct shape *s = fetched_shape(l);
    const unsigned level = (unsigned)hed_sass_bits(l->inst, 87, 3);

    if (!s || !is_plain_fetch(l))
        return;
    if (s->coordinates == 3 && s != &shapes[2])
        hed_lift_refuse(l, "a shape of a texture that is not known");
    else if ((level != 1 && level != 3) || hed_lift_has(l, "CL") != (level == 3))
        hed_lift_refuse(l, "a fetch from a texture that is not known");
    else
        put_fetch(l, s, level == 3 ? "tex.level" : "tex", "s32", level == 3, 4, 4);
}

/* TLD4: one channel of four texels. */
void
hed_lift_gather(struct lift *l)
{
    static const char channels[] = "rgba";
    const struct shape *s = fetched_shape(l);

    if (!s || !is_plain_fetch(l))
        return;
    if (s->coordinates == 1 || s == &shapes[2])
        hed_lift_refuse(l, "a shape of a texture that is not known");
    else
        put_fetch(l, s, hed_lift_text(l, "tld4.%c", channels[hed_sass_bits(l->inst, 87, 2)]), "f32",
                  false, 6, 8);
}

/* TXD. The first group has the object, with .B, the coordinates, then the layer with the offsets
 * above it; the second one has both gradients of x, then those of y. */
void
hed_lift_sample_gradient(struct lift *l)
{
    const struct hed_sass_operand a = hed_lift_register_at(l, 24), b = hed_lift_register_at(l, 32);
    const bool has_object = has_object_word(l);
    const struct shape *s = fetched_shape(l);
    const char *place[3], *gradients[2][3], *object, *offsets = "", *more;

    if (!s || !is_plain_fetch(l))
        return;
    if (s->coordinates == 3 || hed_lift_has(l, "LC")) {
        hed_lift_refuse(l, "a fetch from a texture that is not known");
        return;
    }
    object = hed_lift_object(l, has_object ? hed_lift_group_word(l, &a, 0) : NULL);
    for (unsigned i = 0; i < s->coordinates; i++) {
        place[i + s->layered] = hed_lift_group_word(l, &a, i + has_object);
        for (unsigned k = 0; k < 2; k++)
            gradients[k][i] = hed_lift_group_word(l, &b, 2 * i + k);
    }
    if (s->layered || hed_lift_has(l, "AOFFI")) {
        const char *both = hed_lift_group_word(l, &a, s->coordinates + has_object);

        if (s->layered) {
            place[0] = hed_lift_temp(l, 't');
            hed_lift_calc(l, "and.b32 %s, %s, 0xffff", place[0], both);
        }
        if (hed_lift_has(l, "AOFFI")) {
            const char *high = hed_lift_temp(l, 't');

            hed_lift_calc(l, "shr.u32 %s, %s, 16", high, both);
            offsets = texel_offsets(l, high, s->coordinates, 4, 4);
        }
    }
    more = hed_lift_text(l, ", %s, %s%s", hed_lift_braces(l, gradients[0], s->coordinates),
                         hed_lift_braces(l, gradients[1], s->coordinates), offsets);
    hed_lift_put(l, "tex.grad.%s.v4.u32.f32 %s, [%s, %s]%s", s->name, fetched_channels(l), object,
                 hed_lift_braces(l, place, s->coordinates + s->layered), more);
}

/* TXQ: the size of a level. */
void
hed_lift_query_texture(struct lift *l)
{
    static const char *const sizes[] = {"width", "height", "depth"};
    const struct hed_sass_operand a = hed_lift_register_at(l, 24),
                                  low = hed_lift_register_at(l, 16),
                                  high = hed_lift_register_at(l, 64);
    const unsigned mask = (unsigned)hed_sass_bits(l->inst, 72, LIFT_CHANNELS);
    const bool has_object = has_object_word(l);
    const char *object, *level, *answers[3];
    unsigned n = 0;

    if (hed_sass_bits(l->inst, 62, 2) || mask > 7) {
        hed_lift_refuse(l, "a question about a texture that is not known");
        return;
    }
    object = hed_lift_object(l, has_object ? hed_lift_group_word(l, &a, 0) : NULL);
    level = hed_lift_group_word(l, &a, has_object);
    for (unsigned i = 0; i < 3; i++) {
        if (!(mask >> i & 1))
            continue;
        answers[n] = hed_lift_temp(l, 't');
        hed_lift_put(l, "txq.level.%s.b32 %s, [%s], %s", sizes[i], answers[n++], object, level);
    }
    for (unsigned i = 0; i < n; i++)
        hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def_nth(l, i < 2 ? &low : &high, i % 2),
                     answers[i]);
}
