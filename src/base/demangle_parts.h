/* What the two files of the demangler share: demangle.c reads names, demangle_type.c types and
 * template arguments.
 *
 * Every piece of a name becomes a text in one buffer; larger pieces are made by copying smaller
 * ones together. So a substitution ("S0_", a piece seen before) is just a text again.
 *
 * Invariants:
 * 1. at <= end, and nothing is read at `end`: peek_char() gives 0 there.
 * 2. After a failure `failed` stays set, and nothing more is consumed.
 * 3. The buffer, the depth and the number of substitutions have ceilings; reaching one is a
 * failure.
 *    So time and memory are bounded whatever the name is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HED_DEMANGLE_TEXT 65536 /* bytes of all pieces together */
#define HED_DEMANGLE_SEEN 256
#define HED_DEMANGLE_DEPTH 64
#define HED_DEMANGLE_NAME 16384

/* A piece of the result, in the buffer. */
struct piece {
    uint32_t at, size;
};

struct demangler {
    const char *at, *end;
    bool failed;
    unsigned depth;
    uint32_t used; /* bytes of text */
    unsigned seen_count;
    struct piece seen[HED_DEMANGLE_SEEN]; /* what S_, S0_, ... stand for */
    char text[HED_DEMANGLE_TEXT];
};

/* Each reads one production of the grammar in chapter 5 of the Itanium C++ ABI. */
struct piece hed_demangle_encoding(struct demangler *d);
struct piece hed_demangle_name(struct demangler *d);
struct piece hed_demangle_source_name(struct demangler *d);
struct piece hed_demangle_substitution(struct demangler *d);
struct piece hed_demangle_type(struct demangler *d);
struct piece hed_demangle_args(struct demangler *d);
/* Types up to "E" or the end of the name, separated by commas; "v" alone means none. */
struct piece hed_demangle_parameters(struct demangler *d);

/* ---- pieces ---------------------------------------------------------------------------------- */

static inline struct piece
fail_piece(struct demangler *d)
{
    d->failed = true;
    return (struct piece){0, 0};
}

static inline struct piece
new_piece(const struct demangler *d)
{
    return (struct piece){d->used, 0};
}

/* Pieces grow at the end of the buffer only: p must be the newest one. */
static inline void
append_bytes(struct demangler *d, struct piece *p, const char *s, size_t n)
{
    if (d->failed || n > sizeof d->text - d->used) {
        d->failed = true;
        return;
    }
    memcpy(d->text + d->used, s, n);
    d->used += (uint32_t)n;
    p->size += (uint32_t)n;
}

static inline void
append_text(struct demangler *d, struct piece *p, const char *s)
{
    append_bytes(d, p, s, strlen(s));
}

static inline void
append_piece(struct demangler *d, struct piece *p, struct piece other)
{
    append_bytes(d, p, d->text + other.at, other.size);
}

static inline struct piece
piece_of(struct demangler *d, const char *s)
{
    struct piece p = new_piece(d);

    append_text(d, &p, s);
    return p;
}

/* a, text, b */
static inline struct piece
join_pieces(struct demangler *d, struct piece a, const char *text, struct piece b)
{
    struct piece p = new_piece(d);

    append_piece(d, &p, a);
    append_text(d, &p, text);
    append_piece(d, &p, b);
    return p;
}

static inline struct piece
add_suffix(struct demangler *d, struct piece a, const char *text)
{
    return join_pieces(d, a, text, (struct piece){0, 0});
}

static inline struct piece
remember_piece(struct demangler *d, struct piece p)
{
    if (d->seen_count == HED_DEMANGLE_SEEN)
        return fail_piece(d);
    d->seen[d->seen_count++] = p;
    return p;
}

/* ---- characters and numbers ------------------------------------------------------------------ */

static inline char
peek_char(const struct demangler *d)
{
    return d->failed || d->at == d->end ? 0 : *d->at;
}

static inline char
peek_next_char(const struct demangler *d)
{
    return d->failed || d->end - d->at < 2 ? 0 : d->at[1];
}

static inline bool
accept_char(struct demangler *d, char c)
{
    if (peek_char(d) != c)
        return false;
    d->at++;
    return true;
}

static inline bool
accept_text(struct demangler *d, const char *s)
{
    const size_t n = strlen(s);

    if (d->failed || (size_t)(d->end - d->at) < n || memcmp(d->at, s, n) != 0)
        return false;
    d->at += n;
    return true;
}

static inline void
expect_char(struct demangler *d, char c)
{
    if (!accept_char(d, c))
        d->failed = true;
}

static inline bool
is_digit_char(char c)
{
    return c >= '0' && c <= '9';
}

static inline size_t
read_decimal(struct demangler *d)
{
    size_t n = 0;

    if (!is_digit_char(peek_char(d)))
        d->failed = true;
    while (is_digit_char(peek_char(d)) && n < HED_DEMANGLE_NAME)
        n = n * 10 + (size_t)(*d->at++ - '0');
    return n;
}

/* "_" is 0, "0_" is 1, ... in base 36 for substitutions and base 10 for the rest. */
static inline size_t
read_sequence(struct demangler *d, unsigned base)
{
    size_t n = 0;

    if (accept_char(d, '_'))
        return 0;
    for (char c = peek_char(d); c && c != '_' && n < HED_DEMANGLE_NAME; c = peek_char(d)) {
        if (is_digit_char(c))
            n = n * base + (size_t)(c - '0');
        else if (base == 36 && c >= 'A' && c <= 'Z')
            n = n * base + (size_t)(c - 'A') + 10;
        else
            d->failed = true;
        d->at += !d->failed;
    }
    expect_char(d, '_');
    return n + 1;
}
