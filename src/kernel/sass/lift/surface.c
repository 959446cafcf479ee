/* Surfaces. See inside.h for the rules. Coordinates come before the layer, unlike in PTX; x counts
 * bytes.
 */
#include <stdbool.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/texture.h"

struct surface {
    const char *name; /* NULL if there is none */
    unsigned coordinates;
    bool layered;
};

/* By bits 61..63. */
static const struct surface surfaces[8] = {
    {"1d", 1, false}, {NULL, 0, false}, {"a1d", 1, true}, {"2d", 2, false},
    {"a2d", 2, true}, {"3d", 3, false}, {NULL, 0, false}, {NULL, 0, false},
};

/* By bits 59..60: what happens outside of it. */
static const char *const outsides[] = {"zero", "clamp", "trap", NULL};

/* By bits 73..75. */
enum { SIZE_U8, SIZE_S8, SIZE_U16, SIZE_S16, SIZE_32, SIZE_64, SIZE_128, SIZES };

static const unsigned words_of[SIZES] = {1, 1, 1, 1, 1, 2, 4};

/* ".2d" and the place, "[object, {x, y}]"; NULL, refused, if it is of another form. */
static const char *
surface_place(struct lift *l, bool in_bytes, bool in_register, const char **name)
{
    const struct surface *s = &surfaces[hed_sass_bits(l->inst, 61, 3)];
    const struct hed_sass_operand a = hed_lift_register_at(l, 24), c = hed_lift_register_at(l, 64);
    const char *words[4], *object;

    if (!s->name || !in_bytes || !outsides[hed_sass_bits(l->inst, 59, 2)]) {
        hed_lift_refuse(l, "an access to a surface that is not known");
        return NULL;
    }
    object = hed_lift_object(l, in_register ? hed_lift_group_word(l, &c, 0) : NULL);
    for (unsigned i = 0; i < s->coordinates; i++)
        words[i + s->layered] = hed_lift_group_word(l, &a, i);
    if (s->layered)
        words[0] = hed_lift_group_word(l, &a, s->coordinates);
    *name = s->name;
    return hed_lift_text(l, "[%s, %s]", object,
                         hed_lift_braces(l, words, s->coordinates + s->layered));
}

/* The spelling of an access, "2d.v2.b32.trap"; NULL, refused, for a size or an order of memory that
 * is not known. */
static const char *
surface_type(struct lift *l, const char *name)
{
    static const char *const types[SIZES] = {"b8", "b8", "b16", "b16", "b32", "v2.b32", "v4.b32"};
    const unsigned size = (unsigned)hed_sass_bits(l->inst, 73, 3);
    const unsigned order = (unsigned)hed_sass_bits(l->inst, 77, 4);

    if (size >= SIZES || (order != 0 && order != 5)) { /* weak, STRONG.SM */
        hed_lift_refuse(l, "an access to a surface that is not known");
        return NULL;
    }
    return hed_lift_text(l, "%s.%s.%s", name, types[size], outsides[hed_sass_bits(l->inst, 59, 2)]);
}

void
hed_lift_load_surface(struct lift *l)
{
    static const char *const narrow[] = {"u32.u8", "s32.s8", "u32.u16", "s32.s16"};
    const unsigned size = (unsigned)hed_sass_bits(l->inst, 73, 3);
    const bool in_register = (l->inst->opcode & 0x1ff) == 0x19a;
    const struct hed_sass_operand d = hed_lift_register_at(l, 16);
    const char *name, *at, *type, *words[LIFT_CHANNELS] = {""}, *h;

    at = surface_place(l, hed_sass_bits(l->inst, 72, 1), in_register, &name);
    type = at ? surface_type(l, name) : NULL;
    if (!type)
        return;
    if (hed_sass_bits(l->inst, 81, 3) != 7) {
        hed_lift_refuse(l, "an access to a surface that is not known");
        return;
    }
    if (size < SIZE_32) {
        h = hed_lift_temp(l, 'h');
        hed_lift_put(l, "suld.b.%s %s, %s", type, h, at);
        hed_lift_put(l, "cvt.%s %s, %s", narrow[size], hed_lift_def(l, &d), h);
        return;
    }
    for (unsigned i = 0; i < words_of[size]; i++)
        words[i] = hed_lift_def_nth(l, &d, i);
    hed_lift_put(l, "suld.b.%s %s, %s", type, hed_lift_braces(l, words, words_of[size]), at);
}

/* SUST.P: 32 bits for each channel, converted to the format of the surface. */
static void
lift_formatted_store(struct lift *l)
{
    const bool in_register = (l->inst->opcode & 0x1ff) == 0x19c;
    const unsigned mask = (unsigned)hed_sass_bits(l->inst, 72, LIFT_CHANNELS);
    const struct hed_sass_operand b = hed_lift_register_at(l, 32);
    const char *name, *at = surface_place(l, true, in_register, &name), *words[LIFT_CHANNELS];

    if (!at)
        return;
    if (mask != 15 || hed_sass_bits(l->inst, 77, 4) != 5) {
        hed_lift_refuse(l, "an access to a surface that is not known");
        return;
    }
    for (unsigned i = 0; i < LIFT_CHANNELS; i++)
        words[i] = hed_lift_group_word(l, &b, i);
    hed_lift_put(l, "sust.p.%s.v4.b32.%s %s, %s", name, outsides[hed_sass_bits(l->inst, 59, 2)], at,
                 hed_lift_braces(l, words, LIFT_CHANNELS));
}

void
hed_lift_store_surface(struct lift *l)
{
    const unsigned size = (unsigned)hed_sass_bits(l->inst, 73, 3);
    const unsigned opcode = l->inst->opcode & 0x1ff;
    const struct hed_sass_operand b = hed_lift_register_at(l, 32);
    const char *name, *at, *type, *words[LIFT_CHANNELS] = {""};

    if (opcode == 0x19b || opcode == 0x19c) {
        lift_formatted_store(l);
        return;
    }
    at = surface_place(l, hed_sass_bits(l->inst, 72, 1), opcode == 0x19e, &name);
    type = at ? surface_type(l, name) : NULL;
    if (!type)
        return;
    for (unsigned i = 0; i < words_of[size]; i++)
        words[i] = hed_lift_group_word(l, &b, i);
    if (size < SIZE_32) {
        const char *h = hed_lift_temp(l, 'h');

        hed_lift_calc(l, "cvt.u16.u32 %s, %s", h, words[0]);
        words[0] = h;
    }
    hed_lift_put(l, "sust.b.%s %s, %s", type, at, hed_lift_braces(l, words, words_of[size]));
}

void
hed_lift_reduce_surface(struct lift *l)
{
    static const char *const ops[] = {"add", "min", "max", NULL, NULL, "and", "or", NULL};
    static const char *const types[] = {"u32", "s32", "u64", NULL, NULL, "s64", NULL, NULL};
    const unsigned op = (unsigned)hed_sass_bits(l->inst, 87, 3);
    const unsigned number = (unsigned)hed_sass_bits(l->inst, 73, 3);
    const bool in_register = (l->inst->opcode & 0x1ff) == 0x1a0, is_bits = op >= 5;
    const bool wide = number == 2 || number == 5;
    const struct hed_sass_operand b = hed_lift_register_at(l, 32);
    const char *name, *at = surface_place(l, hed_sass_bits(l->inst, 72, 1), in_register, &name);

    if (!at)
        return;
    if (!ops[op] || !types[number] || (is_bits && number != 0) || name[0] == 'a' ||
        hed_sass_bits(l->inst, 77, 4) != 10) { /* STRONG.SYS */
        hed_lift_refuse(l, "an access to a surface that is not known");
        return;
    }
    hed_lift_put(l, "sured.b.%s.%s.%s.%s %s, %s", ops[op], name, is_bits ? "b32" : types[number],
                 outsides[hed_sass_bits(l->inst, 59, 2)], at,
                 wide ? hed_lift_u64(l, &b) : hed_lift_group_word(l, &b, 0));
}
