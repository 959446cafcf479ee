/* A small reader of mangled C++ names: types and template arguments. See demangle_parts.h. */
#include <stdio.h>

#include "base/demangle_parts.h"

/* ---- types ----------------------------------------------------------------------------------- */

static const char *
builtin_type(char c)
{
    static const char *const types['z' - 'a' + 1] = {
        ['v' - 'a'] = "void",        ['w' - 'a'] = "wchar_t",
        ['b' - 'a'] = "bool",        ['c' - 'a'] = "char",
        ['a' - 'a'] = "signed char", ['h' - 'a'] = "unsigned char",
        ['s' - 'a'] = "short",       ['t' - 'a'] = "unsigned short",
        ['i' - 'a'] = "int",         ['j' - 'a'] = "unsigned int",
        ['l' - 'a'] = "long",        ['m' - 'a'] = "unsigned long",
        ['x' - 'a'] = "long long",   ['y' - 'a'] = "unsigned long long",
        ['n' - 'a'] = "__int128",    ['o' - 'a'] = "unsigned __int128",
        ['f' - 'a'] = "float",       ['d' - 'a'] = "double",
        ['e' - 'a'] = "long double", ['g' - 'a'] = "__float128",
        ['z' - 'a'] = "..."};

    return c >= 'a' && c <= 'z' ? types[c - 'a'] : NULL;
}

/* Types of several letters that are never substituted; NULL if there is none. */
static const char *
read_builtin_pair(struct demangler *d)
{
    static const char *const pairs[][2] = {
        {"Dn", "std::nullptr_t"}, {"Di", "char32_t"},    {"Ds", "char16_t"},
        {"Du", "char8_t"},        {"Da", "auto"},        {"Dc", "decltype(auto)"},
        {"Dh", "half"},           {"DF16_", "_Float16"}, {"DF16b", "__bf16"}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (accept_text(d, pairs[i][0]))
            return pairs[i][1];
    }
    return NULL;
}

struct piece
hed_demangle_parameters(struct demangler *d)
{
    struct piece all = piece_of(d, "");

    if (peek_char(d) == 'v' && (peek_next_char(d) == 'E' || peek_next_char(d) == 0)) {
        d->at++;
        return all;
    }
    for (bool first = true; !d->failed && peek_char(d) && peek_char(d) != 'E'; first = false)
        all = join_pieces(d, all, first ? "" : ", ", hed_demangle_type(d));
    return all;
}

/* F <result> <parameters> E, printed with `inside` where a pointer's star goes. */
static struct piece
read_function_type(struct demangler *d, const char *inside)
{
    struct piece p;

    expect_char(d, 'F');
    (void)accept_char(d, 'Y'); /* extern "C" */
    p = hed_demangle_type(d);
    p = add_suffix(d, p, inside);
    p = join_pieces(d, p, "(", hed_demangle_parameters(d));
    expect_char(d, 'E');
    return add_suffix(d, p, ")");
}

/* Pointers and references; c is the letter, which has been taken. */
static struct piece
read_pointer(struct demangler *d, char c)
{
    const char *mark = c == 'P' ? "*" : c == 'R' ? "&" : "&&";
    char inside[8];
    struct piece p;

    if (peek_char(d) == 'F') {
        snprintf(inside, sizeof inside, " (%s)", mark);
        p = read_function_type(d, inside);
        (void)remember_piece(d, p); /* stands for the function type, which has no use of its own */
        return p;
    }
    return add_suffix(d, hed_demangle_type(d), mark);
}

/* A <number> _ <type> */
static struct piece
read_array_type(struct demangler *d)
{
    struct piece element;
    char size[32] = " []";

    if (is_digit_char(peek_char(d)))
        snprintf(size, sizeof size, " [%zu]", read_decimal(d));
    expect_char(d, '_');
    element = hed_demangle_type(d);
    return add_suffix(d, element, size);
}

/* A type that starts with D and is no builtin: packs, vectors. */
static struct piece
read_special_type(struct demangler *d)
{
    char text[32];
    size_t n;

    if (accept_text(d, "Dp"))
        return add_suffix(d, hed_demangle_type(d), "...");
    if (accept_text(d, "Dv")) {
        n = read_decimal(d);
        expect_char(d, '_');
        snprintf(text, sizeof text, " __vector(%zu)", n);
        return add_suffix(d, hed_demangle_type(d), text);
    }
    return fail_piece(d);
}

/* T_ T0_ ...: which argument it is does not matter for a name without parameters. */
static struct piece
read_template_parameter(struct demangler *d)
{
    char text[32];

    expect_char(d, 'T');
    snprintf(text, sizeof text, "T%zu", read_sequence(d, 10) + 1);
    return piece_of(d, text);
}

static struct piece
read_compound_type(struct demangler *d)
{
    struct piece p;

    switch (peek_char(d)) {
    case 'P':
    case 'R':
    case 'O':
        return read_pointer(d, *d->at++);
    case 'K':
        d->at++;
        return add_suffix(d, hed_demangle_type(d), " const");
    case 'V':
        d->at++;
        return add_suffix(d, hed_demangle_type(d), " volatile");
    case 'r':
        d->at++;
        return add_suffix(d, hed_demangle_type(d), " restrict");
    case 'F':
        return read_function_type(d, " ");
    case 'A':
        d->at++;
        return read_array_type(d);
    case 'M':
        d->at++;
        p = hed_demangle_type(d);
        return join_pieces(d, hed_demangle_type(d), " ", add_suffix(d, p, "::*"));
    case 'D':
        return read_special_type(d);
    case 'u': /* a vendor's type */
        d->at++;
        return hed_demangle_source_name(d);
    case 'T':
        p = read_template_parameter(d);
        if (peek_char(d) == 'I') {
            (void)remember_piece(d, p);
            p = join_pieces(d, p, "", hed_demangle_args(d));
        }
        return p;
    default:
        return hed_demangle_name(d);
    }
}

struct piece
hed_demangle_type(struct demangler *d)
{
    const char *builtin = builtin_type(peek_char(d));
    struct piece p;

    if (d->failed || d->depth == HED_DEMANGLE_DEPTH)
        return fail_piece(d);
    if (builtin) {
        d->at++;
        return piece_of(d, builtin);
    }
    builtin = read_builtin_pair(d);
    if (builtin)
        return piece_of(d, builtin);
    /* A substitution that nothing follows is not remembered again. */
    if (peek_char(d) == 'S' && peek_next_char(d) != 't') {
        p = hed_demangle_substitution(d);
        if (peek_char(d) != 'I')
            return p;
        p = join_pieces(d, p, "", hed_demangle_args(d));
        return remember_piece(d, p);
    }
    d->depth++;
    p = read_compound_type(d);
    d->depth--;
    return remember_piece(d, p);
}

/* ---- template arguments ---------------------------------------------------------------------- */

/* The suffix of a number of that type in C++; NULL if the type is written in front of it. */
static const char *
literal_suffix(char type)
{
    static const char types[] = "ijlmxy";
    static const char *const suffixes[] = {"", "u", "l", "ul", "ll", "ull"};
    const char *at = type ? strchr(types, type) : NULL;

    return at ? suffixes[at - types] : NULL;
}

/* L <type> <value> E, or L _Z <function> E */
static struct piece
read_literal(struct demangler *d)
{
    const char type = peek_next_char(d);
    const char *suffix = literal_suffix(type);
    struct piece p;

    expect_char(d, 'L');
    if (accept_text(d, "_Z")) {
        p = hed_demangle_encoding(d);
        expect_char(d, 'E');
        return p;
    }
    if (accept_text(d, "b0E"))
        return piece_of(d, "false");
    if (accept_text(d, "b1E"))
        return piece_of(d, "true");
    p = hed_demangle_type(d);
    if (suffix)
        p = new_piece(d);
    else
        p = add_suffix(d, join_pieces(d, piece_of(d, "("), "", p), ")");
    if (accept_char(d, 'n'))
        append_text(d, &p, "-");
    for (char c = peek_char(d); c && c != 'E' && !d->failed; c = peek_char(d)) {
        append_bytes(d, &p, &c, 1);
        d->at++;
    }
    expect_char(d, 'E');
    if (suffix)
        append_text(d, &p, suffix);
    return p;
}

/* One argument; a pack is as many as it holds. */
static struct piece
read_template_arg(struct demangler *d)
{
    struct piece all = piece_of(d, "");

    if (peek_char(d) == 'L')
        return read_literal(d);
    if (!accept_char(d, 'J'))
        return hed_demangle_type(d); /* which fails for expressions (X) */
    for (bool first = true; !d->failed && !accept_char(d, 'E'); first = false)
        all = join_pieces(d, all, first ? "" : ", ", read_template_arg(d));
    return all;
}

struct piece
hed_demangle_args(struct demangler *d)
{
    struct piece all = piece_of(d, "<");
    bool first = true;

    if (d->failed || d->depth == HED_DEMANGLE_DEPTH)
        return fail_piece(d);
    d->depth++;
    expect_char(d, 'I');
    while (!d->failed && !accept_char(d, 'E')) {
        const struct piece arg = read_template_arg(d);

        if (arg.size == 0)
            continue; /* an empty pack */
        all = join_pieces(d, all, first ? "" : ", ", arg);
        first = false;
    }
    d->depth--;
    return add_suffix(d, all, ">");
}
