/* Bank 3 in text for a GPU: constants that programs find by name. See inside.h.
 *
 *   LDC R3, c[0x3][R7]       setp.ge.u32 %x, %r7, 0x50
 *                            selp.b64 %q, second-0x50, first-0x0, %x
 *                            ld.const.b32 %r3, [%q+%r7]
 *
 * Machine code has one bank, and often the place of an array in it only as a number in a register.
 * In the text each symbol is a variable of its own, since a program looks it up by its name, and it
 * is for the driver to say where it lies. So a place in the bank is first looked for among the
 * symbols.
 *
 * A compiler also knows how far places in the bank are aligned: an array of shorts that begins at a
 * multiple of eight is loaded eight bytes at a time. A variable is aligned as its place in the bank
 * is, up to 16 bytes; what is loaded in one piece is never more than that.
 */
#include <inttypes.h>

#include "kernel/sass/lift/inside.h"

#define SYMBOLS_MOST 128u /* among which a register may choose */

static unsigned
least_bit(uint64_t x, unsigned most)
{
    while (x & (most - 1))
        most /= 2;
    return most;
}

unsigned
hed_lift_constant_align(const struct hed_sass_symbol *s)
{
    return least_bit(s->at, LIFT_ALIGN_MAX);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Words from pieces, lowest first. count is 1 if a piece is all. */
static const char *
join_loaded(struct lift *l, const char *const *pieces, unsigned count, unsigned piece,
            unsigned bytes)
{
    const unsigned in_word = piece < 4 ? (bytes < 4 ? bytes : 4) / piece : 1;
    const char *words[2] = {"0", "0"}, *q;

    for (unsigned i = 0; i < count; i++) {
        const unsigned by = i % in_word * piece * 8;
        const char *t, *sum;

        if (by == 0) {
            words[i / in_word] = pieces[i];
            continue;
        }
        t = hed_lift_temp(l, 't');
        sum = hed_lift_temp(l, 't');
        hed_lift_calc(l, "shl.b32 %s, %s, %u", t, pieces[i], by);
        hed_lift_calc(l, "or.b32 %s, %s, %s", sum, words[i / in_word], t);
        words[i / in_word] = sum;
    }
    if (bytes < 8)
        return words[0];
    q = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "mov.b64 %s, {%s, %s}", q, words[0], words[1]);
    return q;
}

/* Under the guard: where it is false, the place may be anywhere. */
static const char *
load_piece(struct lift *l, unsigned bytes, const char *at)
{
    const char *t = hed_lift_temp(l, bytes == 8 ? 'q' : 't');

    hed_lift_put(l, "ld.const.%c%u %s, [%s]", bytes < 4 ? 'u' : 'b', bytes * 8, t, at);
    return t;
}

/* ---- at a place that is known ---------------------------------------------------------------- */

const char *
hed_lift_named_constant(struct lift *l, int64_t offset, unsigned bytes)
{
    const uint32_t var = l->code.constants;
    unsigned piece = least_bit((uint64_t)offset, bytes), found = 0;
    const char *pieces[8];

    if (var == LIFT_NONE) {
        hed_lift_refuse(l, "a constant bank that is not known");
        return "0";
    }
    for (unsigned i = 0; i < bytes; i++) {
        const struct hed_sass_symbol *s = hed_lift_symbol_at(l->program, var, offset + i);

        if (s)
            piece = least_bit(s->at, piece);
        found += s != NULL;
    }
    if (!found)
        hed_lift_refuse(l, "a variable without a name");
    for (unsigned i = 0; i < bytes / piece; i++)
        pieces[i] = hed_lift_symbol_at(l->program, var, offset + i * piece)
                        ? load_piece(l, piece, hed_lift_variable(l, var, offset + i * piece))
                        : "0"; /* between two of them */
    return piece == bytes ? pieces[0] : join_loaded(l, pieces, bytes / piece, piece, bytes);
}

/* ---- at a place that a register says --------------------------------------------------------- */

/* The address that a symbol's piece of the bank would have if the bank began at 0. */
static const char *
bank_begin(struct lift *l, const struct hed_sass_symbol *s)
{
    const char *q = hed_lift_temp(l, 'q'), *begin;

    hed_lift_calc(l, "mov.b64 %s, %s", q, hed_lift_variable(l, s->var, (int64_t)s->at));
    if (s->at == 0)
        return q;
    begin = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "sub.s64 %s, %s, %" PRIu64, begin, q, s->at);
    return begin;
}

/* The symbols of the bank are in order. Sets *piece to what can be loaded at once from all. */
static const char *
choose_symbol(struct lift *l, const char *place, unsigned *piece)
{
    const char *chosen = NULL, *x, *q;
    unsigned count = 0;

    for (uint32_t i = 0; i < l->program->symbol_count; i++) {
        const struct hed_sass_symbol *s = &l->program->symbols[i];

        if (s->var != l->code.constants || !s->size)
            continue;
        if (++count > SYMBOLS_MOST) {
            hed_lift_refuse(l, "a choice among too many constants");
            break;
        }
        *piece = least_bit(s->at, *piece);
        q = bank_begin(l, s);
        if (chosen) {
            const char *next = hed_lift_temp(l, 'q');

            x = hed_lift_temp(l, 'x');
            hed_lift_calc(l, "setp.ge.u32 %s, %s, %" PRIu64, x, place, s->at);
            hed_lift_calc(l, "selp.b64 %s, %s, %s, %s", next, q, chosen, x);
            q = next;
        }
        chosen = q;
    }
    if (!chosen)
        hed_lift_refuse(l, "a variable without a name");
    return chosen ? chosen : "0";
}

const char *
hed_lift_named_indexed(struct lift *l, int64_t offset, const char *index, unsigned bytes)
{
    const char *place = hed_lift_temp(l, 't'), *q = hed_lift_temp(l, 'q'), *at, *begin;
    unsigned piece = bytes;
    const char *pieces[8];

    hed_lift_calc(l, "add.s32 %s, %s, %" PRId64, place, index, offset);
    begin = choose_symbol(l, place, &piece);
    at = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "cvt.s64.s32 %s, %s", q, place);
    hed_lift_calc(l, "add.s64 %s, %s, %s", at, begin, q);
    for (unsigned i = 0; i < bytes / piece; i++)
        pieces[i] = load_piece(l, piece, hed_lift_text(l, "%s+%u", at, i * piece));
    return piece == bytes ? pieces[0] : join_loaded(l, pieces, bytes / piece, piece, bytes);
}
