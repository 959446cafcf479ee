/* A small reader of mangled C++ names: names, and the entry point. See demangle.h. */
#include "base/demangle.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/demangle_parts.h"

/* ---- names ----------------------------------------------------------------------------------- */

struct piece
hed_demangle_source_name(struct demangler *d)
{
    const size_t n = read_decimal(d);
    struct piece p = new_piece(d);

    if (d->failed || n == 0 || n > (size_t)(d->end - d->at))
        return fail_piece(d);
    if (n >= 10 && memcmp(d->at, "_GLOBAL__N", 10) == 0)
        append_text(d, &p, "(anonymous namespace)");
    else
        append_bytes(d, &p, d->at, n);
    d->at += n;
    while (accept_char(d, 'B')) { /* an ABI tag */
        const size_t tag = read_decimal(d);

        if (d->failed || tag > (size_t)(d->end - d->at))
            return fail_piece(d);
        append_text(d, &p, "[abi:");
        append_bytes(d, &p, d->at, tag);
        append_text(d, &p, "]");
        d->at += tag;
    }
    return p;
}

static struct piece
read_operator(struct demangler *d)
{
    /* Two letters, and what they stand for; a space ends it. */
    static const char operators[] =
        "ps+ ng- ad& de* co~ pl+ mi- ml* dv/ rm% an& or| eo^ aS= pL+= mI-= mL*= dV/= rM%= aN&= "
        "oR|= eO^= ls<< rs>> lS<<= rS>>= eq== ne!= lt< gt> le<= ge>= ss<=> nt! aa&& oo|| pp++ "
        "mm-- cm, pm->* pt-> cl() ix[] qu? ";

    if (accept_text(d, "cv"))
        return join_pieces(d, piece_of(d, "operator "), "", hed_demangle_type(d));
    if (accept_text(d, "li"))
        return join_pieces(d, piece_of(d, "operator\"\" "), "", hed_demangle_source_name(d));
    if (accept_text(d, "nw"))
        return piece_of(d, "operator new");
    if (accept_text(d, "na"))
        return piece_of(d, "operator new[]");
    if (accept_text(d, "dl"))
        return piece_of(d, "operator delete");
    if (accept_text(d, "da"))
        return piece_of(d, "operator delete[]");
    for (const char *o = operators; *o; o = strchr(o, ' ') + 1) {
        if (peek_char(d) == o[0] && peek_next_char(d) == o[1]) {
            struct piece p = piece_of(d, "operator");

            append_bytes(d, &p, o + 2, (size_t)(strchr(o, ' ') - o) - 2);
            d->at += 2;
            return p;
        }
    }
    return fail_piece(d);
}

/* Lambdas and other types without a name: Ul <parameters> E [number] _, Ut [number] _ */
static struct piece
read_unnamed(struct demangler *d)
{
    char number[32];
    struct piece p;

    if (accept_text(d, "Ul")) {
        p = join_pieces(d, piece_of(d, "{lambda("), "", hed_demangle_parameters(d));
        expect_char(d, 'E');
        snprintf(number, sizeof number, ")#%zu}", read_sequence(d, 10) + 1);
    } else if (accept_text(d, "Ut")) {
        p = piece_of(d, "{unnamed type");
        snprintf(number, sizeof number, "#%zu}", read_sequence(d, 10) + 1);
    } else {
        return fail_piece(d);
    }
    return add_suffix(d, p, number);
}

/* The last word of a class's name, without template arguments: what its constructors repeat. */
static struct piece
last_word(const struct demangler *d, struct piece p)
{
    uint32_t end = p.size;
    unsigned depth = 0;

    for (uint32_t i = p.size; i-- > 0;) {
        const char c = d->text[p.at + i];

        depth += c == '>';
        if (c == '<' && depth > 0 && --depth == 0 && end == p.size)
            end = i;
        if (c == ':' && depth == 0)
            return (struct piece){p.at + i + 1, end - i - 1};
    }
    return (struct piece){p.at, end};
}

static struct piece
read_unqualified(struct demangler *d, struct piece scope)
{
    const char c = peek_char(d);

    if (is_digit_char(c))
        return hed_demangle_source_name(d);
    if (c == 'L') { /* internal linkage */
        d->at++;
        return hed_demangle_source_name(d);
    }
    if (c == 'U')
        return read_unnamed(d);
    if (c == 'C' && peek_next_char(d) >= '1' && peek_next_char(d) <= '5') {
        d->at += 2;
        return last_word(d, scope);
    }
    if (c == 'D' && peek_next_char(d) >= '0' && peek_next_char(d) <= '5') {
        d->at += 2;
        return join_pieces(d, piece_of(d, "~"), "", last_word(d, scope));
    }
    return read_operator(d);
}

/* S_ S0_ ... and the abbreviations of the standard library. */
struct piece
hed_demangle_substitution(struct demangler *d)
{
    static const char *const known[][2] = {
        {"St", "std"},          {"Sa", "std::allocator"}, {"Sb", "std::basic_string"},
        {"Ss", "std::string"},  {"Si", "std::istream"},   {"So", "std::ostream"},
        {"Sd", "std::iostream"}};
    size_t n;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (accept_text(d, known[i][0]))
            return piece_of(d, known[i][1]);
    }
    expect_char(d, 'S');
    n = read_sequence(d, 36);
    return d->failed || n >= d->seen_count ? fail_piece(d) : d->seen[n];
}

static void
skip_qualifiers(struct demangler *d)
{
    while (peek_char(d) == 'r' || peek_char(d) == 'V' || peek_char(d) == 'K')
        d->at++;
    if (peek_char(d) == 'R' || peek_char(d) == 'O')
        d->at++;
}

/* N <qualifiers> <prefix> ... <name> E. Every prefix can be substituted later, the whole cannot: if
 * it is a type, the caller remembers it. */
static struct piece
read_nested(struct demangler *d)
{
    struct piece name = {0, 0};

    expect_char(d, 'N');
    skip_qualifiers(d);
    while (!d->failed && !accept_char(d, 'E')) {
        const bool substituted = peek_char(d) == 'S';

        if (substituted)
            name = hed_demangle_substitution(d);
        else if (peek_char(d) == 'I')
            name = join_pieces(d, name, "", hed_demangle_args(d));
        else if (peek_char(d) == 'T')
            name = hed_demangle_type(d);
        else if (name.size)
            name = join_pieces(d, name, "::", read_unqualified(d, name));
        else
            name = read_unqualified(d, name);
        if (!substituted && peek_char(d) != 'E')
            (void)remember_piece(d, name);
    }
    return name;
}

/* Z <function> E <name>: something inside of a function. */
static struct piece
read_local(struct demangler *d)
{
    struct piece function;

    expect_char(d, 'Z');
    function = hed_demangle_encoding(d);
    expect_char(d, 'E');
    if (accept_char(d, 's'))
        return add_suffix(d, function, "::string literal");
    if (accept_char(d, 'd'))
        (void)read_sequence(d, 10);
    return join_pieces(d, function, "::", hed_demangle_name(d));
}

struct piece
hed_demangle_name(struct demangler *d)
{
    struct piece name;

    if (d->failed || d->depth == HED_DEMANGLE_DEPTH)
        return fail_piece(d);
    d->depth++;
    if (peek_char(d) == 'N') {
        name = read_nested(d);
    } else if (peek_char(d) == 'Z') {
        name = read_local(d);
    } else {
        bool is_new = true;

        if (accept_text(d, "St")) {
            name = join_pieces(d, piece_of(d, "std::"), "", read_unqualified(d, (struct piece){0}));
        } else if (peek_char(d) == 'S') {
            name = hed_demangle_substitution(d);
            is_new = false;
        } else {
            name = read_unqualified(d, (struct piece){0});
        }
        if (peek_char(d) == 'I') {
            if (is_new)
                (void)remember_piece(d, name);
            name = join_pieces(d, name, "", hed_demangle_args(d));
        }
    }
    d->depth--;
    return name;
}

/* ---- entry point ----------------------------------------------------------------------------- */

/* A function's name, and its parameters if they are there; only the name is kept. */
struct piece
hed_demangle_encoding(struct demangler *d)
{
    struct piece name;

    if (d->depth == HED_DEMANGLE_DEPTH)
        return fail_piece(d);
    d->depth++;
    name = hed_demangle_name(d);
    (void)hed_demangle_parameters(d); /* also the result, which comes first in templates */
    d->depth--;
    return name;
}

/* A result that was cut ends in dots. */
static void
copy_piece(const struct demangler *d, struct piece p, char *out, size_t size)
{
    if (p.size < size) {
        memcpy(out, d->text + p.at, p.size);
        out[p.size] = '\0';
        return;
    }
    memcpy(out, d->text + p.at, size - 1);
    out[size - 1] = '\0';
    if (size > 4)
        memcpy(out + size - 4, "...", 3);
}

const char *
hed_demangle(const char *name, char *out, size_t size)
{
    const size_t length = strnlen(name, HED_DEMANGLE_NAME + 1);
    struct demangler *d;
    struct piece p;

    if (size == 0 || length < 3 || length > HED_DEMANGLE_NAME || memcmp(name, "_Z", 2) != 0)
        return name;
    d = malloc(sizeof *d);
    if (!d)
        return name;
    d->at = name + 2;
    d->end = name + length;
    d->failed = false;
    d->depth = 0;
    d->used = 0;
    d->seen_count = 0;
    p = hed_demangle_name(d);

    const bool read = !d->failed && p.size > 0;

    if (read)
        copy_piece(d, p, out, size);
    free(d);
    return read ? out : name;
}
