/* Statements of one instruction, before they are written: a temporary that is only moved goes.
 *
 *   add.s32 %t4, %r3, 1;               add.s32 %r14, %r3, 1;
 *   mov.b32 %r14, %t4;           ->
 *
 *   setp.lt.s32 %x2, %r2, %r4;         @%p1 setp.lt.s32 %p0, %r2, %r4;
 *   @%p1 mov.pred %p0, %x2;      ->
 *
 * Families compute results in temporaries, since a result may be a source. Where nothing between
 * the two statements mentions the result, it can be computed in place. Temporaries do not live
 * longer than the instruction, so all that is said about one is here.
 */
#include <string.h>

#include "kernel/sass/lift/inside.h"

#define STATEMENTS_MAX 64
#define NAME_MAX_CHARS 16

struct statement {
    const char *text;  /* "\t@%p0 add.s32 %r1, ..." */
    size_t size;       /* with the end of line */
    const char *to;    /* another destination, or NULL */
    const char *guard; /* of the move that gave it; not terminated */
    size_t to_size, guard_size;
    bool gone;
};

/* Where the opcode begins: behind the guard. */
static const char *
opcode_of(const struct statement *s)
{
    const char *at = s->text + 1;

    if (*at == '@')
        at = memchr(at, ' ', s->size - 1) ? (const char *)memchr(at, ' ', s->size - 1) + 1 : at;
    return at;
}

/* The first operand, if it is a single register. */
static const char *
destination_of(const struct statement *s, size_t *size)
{
    const char *end = s->text + s->size;
    const char *at = memchr(opcode_of(s), ' ', (size_t)(end - opcode_of(s)));
    size_t n = 0;

    if (!at || *++at != '%')
        return NULL;
    while (at + n < end && at[n] != ',' && at[n] != ';' && at[n] != ' ' && at[n] != '|')
        n++;
    *size = n;
    return at[n] == ',' ? at : NULL;
}

/* How often a register is mentioned. */
static unsigned
count_mentions(const struct statement *s, const char *name, size_t size)
{
    unsigned n = 0;

    for (const char *at = s->text; at + size < s->text + s->size; at++)
        n += memcmp(at, name, size) == 0 && (at[size] < '0' || at[size] > '9');
    return n;
}

static bool
is_temporary(const char *name)
{
    return name[1] == 't' || name[1] == 'q' || name[1] == 'x' || name[1] == 'h';
}

/* A move from a temporary: its name. */
static const char *
moved_from(const struct statement *s, size_t *size)
{
    static const char *const moves[] = {"mov.b32 ", "mov.b64 ", "mov.pred "};
    const char *op = opcode_of(s), *d, *at;
    size_t n;

    for (unsigned i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        if ((size_t)(s->text + s->size - op) <= strlen(moves[i]) ||
            memcmp(op, moves[i], strlen(moves[i])) != 0)
            continue;
        d = destination_of(s, &n);
        if (!d)
            return NULL;
        at = d + n + 2; /* ", " */
        if (at >= s->text + s->size || *at != '%' || !is_temporary(at))
            return NULL;
        for (*size = 0; at[*size] != ';' && at[*size] != '\n'; ++*size)
            ;
        return at;
    }
    return NULL;
}

/* The statement that writes the temporary, if the move is all that reads it. */
static struct statement *
find_source(struct statement *all, unsigned move, const char *name, size_t size)
{
    struct statement *found = NULL;
    unsigned mentions = 0;

    for (unsigned i = 0; all[i].text; i++) {
        size_t n;
        const char *d = destination_of(&all[i], &n);

        mentions += all[i].gone ? 0 : count_mentions(&all[i], name, size);
        if (i < move && d && !all[i].to && n == size && memcmp(d, name, size) == 0)
            found = &all[i];
    }
    return mentions == 2 && found && opcode_of(found) == found->text + 1 ? found : NULL;
}

static void
merge_move(struct statement *all, unsigned move)
{
    struct statement *s = &all[move], *from;
    size_t size, to_size;
    const char *name = moved_from(s, &size), *to;

    if (!name)
        return;
    from = find_source(all, move, name, size);
    to = destination_of(s, &to_size);
    if (!from || !to)
        return;
    for (struct statement *at = from + 1; at < s; at++)
        if (!at->gone && (count_mentions(at, to, to_size) ||
                          (at->to && at->to_size == to_size && memcmp(at->to, to, to_size) == 0)))
            return;
    from->to = to;
    from->to_size = to_size;
    from->guard = s->text + 1;
    from->guard_size = (size_t)(opcode_of(s) - from->guard);
    s->gone = true;
}

static void
write_statement(struct hed_buf *out, const struct statement *s)
{
    size_t n;
    const char *d;

    if (s->gone)
        return;
    if (!s->to) {
        hed_buf_add(out, s->text, s->size);
        return;
    }
    d = destination_of(s, &n);
    hed_buf_add(out, "\t", 1);
    hed_buf_add(out, s->guard, s->guard_size);
    hed_buf_add(out, s->text + 1, (size_t)(d - s->text) - 1);
    hed_buf_add(out, s->to, s->to_size);
    hed_buf_add(out, d + n, (size_t)(s->text + s->size - (d + n)));
}

void
hed_lift_tidy(const struct hed_buf *in, struct hed_buf *out)
{
    struct statement all[STATEMENTS_MAX + 1] = {0};
    const char *text = hed_buf_cstr(in), *end;
    unsigned count = 0;

    for (const char *at = text; count < STATEMENTS_MAX && (end = strchr(at, '\n')); at = end + 1)
        all[count++] = (struct statement){.text = at, .size = (size_t)(end + 1 - at)};
    if (count == STATEMENTS_MAX) {
        hed_buf_add(out, in->data, in->size);
        return;
    }
    for (unsigned i = 1; i < count; i++)
        merge_move(all, i);
    for (unsigned i = 0; i < count; i++)
        write_statement(out, &all[i]);
}
