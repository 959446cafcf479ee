/* Local memory. See inside.h for the rules.
 *
 * Compilers keep in it what they have no register for. Where a kernel addresses nothing else there
 * (words at places that are known, of which nobody takes the address), each word is a register of
 * the text, %s0, %s1, ...: whoever reads the text then knows which values are the same in all
 * lanes, and that no other thread writes them. The first pass finds out; see `spills`.
 *
 * Text for real GPUs keeps the memory: their compiler would have to spill the words again.
 */
#include <inttypes.h>
#include <stdio.h>

#include "kernel/sass/lift/family.h"
#include "kernel/sass/lift/inside.h"
#include "kernel/sass/lift/memory.h"

#define WORD 4          /* bytes */
#define SPILLS_MAX 4096 /* bytes of local memory that become registers */

/* Is the place of an access a number? */
static bool
is_known_place(struct lift *l, const struct hed_sass_operand *o, int64_t *at)
{
    if (o->kind != HED_SASS_MEMORY)
        hed_lift_refuse(l, "no address");
    if ((o->has_ureg && o->ureg != HED_SASS_URZ) ||
        (o->reg != HED_SASS_RZ && (o->reg != 1 || l->stack == INT64_MIN)))
        return false;
    *at = o->value + (o->reg == 1 ? l->stack : 0);
    return true;
}

/* Where the stack pointer is known, the place is a number. */
static const char *
local_address(struct lift *l, const struct hed_sass_operand *o, unsigned bytes)
{
    const char *t, *q, *base, *sum;
    int64_t at;

    l->uses_local = true;
    if (is_known_place(l, o, &at)) {
        if (at < 0 || at + bytes > (l->local ? l->local : 16))
            hed_lift_refuse(l, "an address outside of the local memory");
        if (at % WORD || bytes % WORD || at + bytes > SPILLS_MAX)
            l->spills = LIFT_SPILLS_STAY;
        return hed_lift_text(l, "%s+%" PRId64, l->is_function ? "%local" : "heddle_local", at);
    }
    t = hed_lift_temp(l, 't');
    q = hed_lift_temp(l, 'q');
    base = hed_lift_temp(l, 'q');
    sum = hed_lift_temp(l, 'q');
    hed_lift_calc(l, "add.s32 %s, %s, %" PRId64, t, hed_lift_shared_index(l, o), o->value);
    hed_lift_calc(l, "cvt.u64.u32 %s, %s", q, t);
    hed_lift_calc(l, "mov.u64 %s, %s", base, hed_lift_local_name(l));
    hed_lift_calc(l, "add.s64 %s, %s, %s", sum, base, q);
    return sum;
}

const char *
hed_lift_local_name(struct lift *l)
{
    l->uses_local = true;
    l->spills = LIFT_SPILLS_STAY;
    return l->is_function ? "%local" : "heddle_local";
}

void
hed_lift_judge_spills(struct lift *l)
{
    if (l->use != HED_SASS_FOR_CPU || l->is_function || l->stack_unknown || !l->uses_local)
        l->spills = LIFT_SPILLS_STAY;
    if (l->spills == LIFT_SPILLS_OPEN) {
        l->spills = LIFT_SPILLS_GO;
        l->uses_local = false;
    }
}

void
hed_lift_declare_local(const struct lift *l, struct hed_buf *b)
{
    if (l->uses_local && !l->is_function)
        hed_buf_addf(b, "\t.local .align 16 .b8 heddle_local[%u];\n", l->local ? l->local : 16);
    if (l->spill_words)
        hed_buf_addf(b, "\t.reg .b32 %%s<%u>;\n", l->spill_words);
}

/* ---- words that are registers ---------------------------------------------------------------- */

/* The register of a word; NULL, and the second pass has found what the first has not. */
static const char *
spilled_word(struct lift *l, int64_t at)
{
    const uint32_t n = (uint32_t)(at / WORD);

    l->spill_words = n + 1 > l->spill_words ? n + 1 : l->spill_words;
    return hed_lift_text(l, "%%s%u", n);
}

static bool
find_spilled(struct lift *l, const struct hed_sass_operand *o, unsigned bytes, int64_t *at)
{
    if (l->spills != LIFT_SPILLS_GO)
        return false;
    if (is_known_place(l, o, at) && *at >= 0 && *at % WORD == 0 && *at + bytes <= SPILLS_MAX)
        return true;
    hed_lift_refuse(l, "an address outside of the local memory");
    *at = 0;
    return true;
}

static void
load_words(struct lift *l, const struct hed_sass_operand *to, unsigned words, int64_t at)
{
    for (unsigned i = 0; i < words; i += 2) {
        if (words == 1 || !hed_lift_is_wanted_whole(l, to)) {
            hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def_nth(l, to, i),
                         spilled_word(l, at + (int64_t)i * WORD));
            if (words > 1)
                hed_lift_put(l, "mov.b32 %s, %s", hed_lift_def_nth(l, to, i + 1),
                             spilled_word(l, at + (int64_t)(i + 1) * WORD));
            continue;
        }

        const char *low = spilled_word(l, at + (int64_t)i * WORD);
        const char *high = spilled_word(l, at + (int64_t)(i + 1) * WORD);

        hed_lift_put(l, "mov.b64 %s, {%s, %s}",
                     i ? hed_lift_def64_nth(l, to, i) : hed_lift_def64(l, to), low, high);
        if (i)
            hed_lift_end64_nth(l, to, i);
        else
            hed_lift_end64(l, to);
    }
}

static void
store_words(struct lift *l, const struct hed_sass_operand *from, unsigned words, int64_t at)
{
    for (unsigned i = 0; i < words; i++) {
        const bool is_wide = i + 1 < words && i % 2 == 0 && hed_lift_has_wide(l, from, i);
        const char *low = spilled_word(l, at + (int64_t)i * WORD);

        if (!is_wide) {
            hed_lift_put(l, "mov.b32 %s, %s", low, hed_lift_nth(l, from, i));
            continue;
        }
        i++;
        hed_lift_put(l, "mov.b64 {%s, %s}, %s", low, spilled_word(l, at + (int64_t)i * WORD),
                     hed_lift_u64_nth(l, from, i - 1));
    }
}

/* ---- loads and stores ------------------------------------------------------------------------ */

void
hed_lift_load_local(struct lift *l)
{
    const struct hed_sass_operand *from = hed_lift_operand(l, 1);
    unsigned size;
    int64_t at;

    if (!hed_lift_access_size(l, &size))
        return;
    if (find_spilled(l, from, hed_lift_size_bytes(size), &at))
        load_words(l, hed_lift_operand(l, 0), hed_lift_size_bytes(size) / WORD, at);
    else
        hed_lift_put_load(l, "ld.local", size, local_address(l, from, hed_lift_size_bytes(size)));
}

void
hed_lift_store_local(struct lift *l)
{
    const struct hed_sass_operand *to = hed_lift_operand(l, 0);
    unsigned size;
    int64_t at;

    if (!hed_lift_access_size(l, &size))
        return;
    if (find_spilled(l, to, hed_lift_size_bytes(size), &at))
        store_words(l, hed_lift_operand(l, 1), hed_lift_size_bytes(size) / WORD, at);
    else
        hed_lift_put_store(l, "st.local", size, local_address(l, to, hed_lift_size_bytes(size)));
}
