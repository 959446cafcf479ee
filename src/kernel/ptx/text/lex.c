/* The lexer of PTX. See lex.h. */
#include "kernel/ptx/text/lex.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FLOAT_TEXT_MAX 64 /* characters of a decimal float */

enum {
    BLANK = 1,
    ALPHA = 2, /* may begin an identifier */
    DIGIT = 4,
    HEX = 8,
};

/* clang-format off */
static const unsigned char classes[256] = {
    [' '] = BLANK, ['\t'] = BLANK, ['\r'] = BLANK, ['\f'] = BLANK, ['\v'] = BLANK, ['\n'] = BLANK,
    ['0' ... '9'] = DIGIT | HEX,
    ['a' ... 'f'] = ALPHA | HEX, ['g' ... 'z'] = ALPHA,
    ['A' ... 'F'] = ALPHA | HEX, ['G' ... 'Z'] = ALPHA,
    ['_'] = ALPHA, ['$'] = ALPHA, ['%'] = ALPHA,
};
/* clang-format on */

static bool
is_class(char c, unsigned mask)
{
    return (classes[(unsigned char)c] & mask) != 0;
}

/* A % can begin a name, but inside of one it would be the operator. */
static bool
is_ptx_name_char(char c)
{
    return is_class(c, ALPHA | DIGIT) && c != '%';
}

void
hed_ptx_lex_init(struct hed_ptx_lexer *l, const char *text, size_t size)
{
    const void *zero = size ? memchr(text, '\0', size) : NULL;

    *l = (struct hed_ptx_lexer){.at = text, .line_start = text, .line = 1};
    l->end = zero ? zero : text + size;
}

static void
newline(struct hed_ptx_lexer *l)
{
    l->line++;
    l->line_start = l->at;
}

/* The opening of a comment has been taken. Is the comment closed? */
static bool
skip_comment(struct hed_ptx_lexer *l)
{
    while (l->at < l->end) {
        const char c = *l->at++;

        if (c == '\n')
            newline(l);
        else if (c == '*' && l->at < l->end && *l->at == '/') {
            l->at++;
            return true;
        }
    }
    return false;
}

static void
skip_directive_line(struct hed_ptx_lexer *l)
{
    const char *nl = memchr(l->at, '\n', (size_t)(l->end - l->at));

    l->at = nl ? nl : l->end;
}

/* False for a comment without an end; the token is then its opening. */
static bool
skip_blanks(struct hed_ptx_lexer *l, struct hed_ptx_token *t)
{
    while (l->at < l->end) {
        const char c = *l->at;

        if (is_class(c, BLANK)) {
            l->at++;
            if (c == '\n')
                newline(l);
        } else if (c == '/' && l->end - l->at > 1 && l->at[1] == '/') {
            skip_directive_line(l);
        } else if (c == '/' && l->end - l->at > 1 && l->at[1] == '*') {
            t->text = l->at;
            t->line = l->line;
            t->column = (uint32_t)(l->at - l->line_start) + 1;
            l->at += 2;
            if (!skip_comment(l)) {
                t->len = 2;
                return false;
            }
        } else if (c == '#' && l->at == l->line_start) {
            skip_directive_line(l); /* left over from a preprocessor */
        } else {
            break;
        }
    }
    return true;
}

static unsigned
ptx_digit_value(char c)
{
    if (c <= '9')
        return (unsigned)(c - '0');
    return (unsigned)((c | 0x20) - 'a' + 10);
}

/* Reads digits of that base; stops at the first character that is none. */
static bool
lex_digits(const char **at, const char *end, unsigned base, uint64_t *out)
{
    const char *p = *at;
    uint64_t value = 0;
    bool fits = true;

    for (; p < end && is_class(*p, HEX) && ptx_digit_value(*p) < base; p++) {
        fits = fits && !__builtin_mul_overflow(value, (uint64_t)base, &value) &&
               !__builtin_add_overflow(value, (uint64_t)ptx_digit_value(*p), &value);
    }

    const bool any = p > *at;

    *at = p;
    *out = value;
    return any && fits;
}

/* 0f and 0d with exactly that many digits. */
static void
read_bits(struct hed_ptx_lexer *l, struct hed_ptx_token *t, uint16_t kind, int digits)
{
    const char *at = l->at + 2;

    t->kind = lex_digits(&at, l->end, 16, &t->bits) && at - l->at - 2 == digits ? kind
                                                                                : HED_PTX_TOKEN_BAD;
    l->at = at;
}

static void
read_decimal_float(struct hed_ptx_lexer *l, struct hed_ptx_token *t)
{
    const char *p = l->at;
    char copy[FLOAT_TEXT_MAX];

    while (p < l->end && (is_class(*p, DIGIT) || *p == '.'))
        p++;
    if (p < l->end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < l->end && (*p == '+' || *p == '-'))
            p++;
        while (p < l->end && is_class(*p, DIGIT))
            p++;
    }

    const size_t n = (size_t)(p - l->at);
    char *end = copy;

    t->kind = HED_PTX_TOKEN_BAD;
    if (n < sizeof(copy)) {
        memcpy(copy, l->at, n);
        copy[n] = '\0';

        /* If the locale's decimal point is not ours, the number is refused, not misread. */
        const double value = strtod(copy, &end);

        memcpy(&t->bits, &value, sizeof(value));
        if (end == copy + n)
            t->kind = HED_PTX_TOKEN_F64;
    }
    l->at = p;
}

static void
lex_number(struct hed_ptx_lexer *l, struct hed_ptx_token *t)
{
    const char *p = l->at;
    const char next = l->end - p > 1 ? (char)(p[1] | 0x20) : '\0';
    unsigned base = 10;

    if (*p == '0' && next == 'f') {
        read_bits(l, t, HED_PTX_TOKEN_F32, 8);
    } else if (*p == '0' && next == 'd') {
        read_bits(l, t, HED_PTX_TOKEN_F64, 16);
    } else {
        if (*p == '0' && (next == 'x' || next == 'b')) {
            base = next == 'x' ? 16 : 2;
            p += 2;
        }

        const char *digits = p;

        t->kind = lex_digits(&p, l->end, base, &t->bits) ? HED_PTX_TOKEN_INT : HED_PTX_TOKEN_BAD;
        if (base == 10 && p < l->end && (*p == '.' || *p == 'e' || *p == 'E')) {
            read_decimal_float(l, t);
        } else {
            if (base == 10 && *digits == '0' && p - digits > 1) {
                p = digits;
                if (!lex_digits(&p, l->end, 8, &t->bits))
                    t->kind = HED_PTX_TOKEN_BAD;
            }
            l->at = p;
            if (l->at < l->end && *l->at == 'U')
                l->at++;
        }
    }
    if (l->at < l->end && is_ptx_name_char(*l->at)) {
        t->kind = HED_PTX_TOKEN_BAD;
        while (l->at < l->end && is_ptx_name_char(*l->at))
            l->at++;
    }
}

static void
read_string(struct hed_ptx_lexer *l, struct hed_ptx_token *t)
{
    const char *p = ++l->at;

    while (p < l->end && *p != '"' && *p != '\n')
        p += *p == '\\' && l->end - p > 1 && p[1] != '\n' ? 2 : 1;
    t->text = l->at;
    t->len = (uint32_t)(p - l->at);
    if (p < l->end && *p == '"') {
        t->kind = HED_PTX_TOKEN_STRING;
        p++;
    } else {
        t->kind = HED_PTX_TOKEN_BAD;
    }
    l->at = p;
}

/* The end of the letters, digits and "::" that begin at p. */
static const char *
word_end(const char *p, const char *end)
{
    for (;;) {
        while (p < end && is_ptx_name_char(*p))
            p++;
        if (end - p > 2 && p[0] == ':' && p[1] == ':' && is_ptx_name_char(p[2]))
            p += 2;
        else
            return p;
    }
}

static void
read_punct(struct hed_ptx_lexer *l, struct hed_ptx_token *t)
{
    static const struct {
        char text[3];
        uint16_t punct;
    } pairs[] = {
        {"<<", HED_PTX_PUNCT_SHL}, {">>", HED_PTX_PUNCT_SHR}, {"<=", HED_PTX_PUNCT_LE},
        {">=", HED_PTX_PUNCT_GE},  {"==", HED_PTX_PUNCT_EQ},  {"!=", HED_PTX_PUNCT_NE},
        {"&&", HED_PTX_PUNCT_AND}, {"||", HED_PTX_PUNCT_OR},
    };
    const char c = *l->at;

    t->kind = HED_PTX_TOKEN_PUNCT;
    t->punct = (unsigned char)c;
    if (l->end - l->at > 1 && strchr("<>=!&|", c)) {
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
            if (memcmp(l->at, pairs[i].text, 2) == 0) {
                t->punct = pairs[i].punct;
                l->at += 2;
                return;
            }
        }
    }
    if (!strchr(",;:{}[]()<>@!|&^~+-*/=?%", c))
        t->kind = HED_PTX_TOKEN_BAD;
    l->at++;
}

void
hed_ptx_lex(struct hed_ptx_lexer *l, struct hed_ptx_token *t)
{
    t->bits = 0;
    t->punct = 0;
    if (!skip_blanks(l, t)) {
        t->kind = HED_PTX_TOKEN_BAD;
        return;
    }
    t->text = l->at;
    t->line = l->line;
    t->column = (uint32_t)(l->at - l->line_start) + 1;
    if (l->at == l->end) {
        t->kind = HED_PTX_TOKEN_END;
        t->len = 0;
        return;
    }

    const char c = *l->at;
    const char *next = l->at + 1;

    if (is_class(c, ALPHA) && (c != '%' || (next < l->end && is_ptx_name_char(*next)))) {
        while (next < l->end && is_ptx_name_char(*next))
            next++;
        l->at = next;
        t->kind = HED_PTX_TOKEN_IDENT;
    } else if (is_class(c, DIGIT)) {
        lex_number(l, t);
    } else if (c == '.') {
        l->at = word_end(next, l->end);
        t->text = next;
        t->kind = l->at > next ? HED_PTX_TOKEN_DOT : HED_PTX_TOKEN_BAD;
    } else if (c == '"') {
        read_string(l, t);
        return;
    } else {
        read_punct(l, t);
    }
    t->len = (uint32_t)(l->at - t->text);
}

void
hed_ptx_lex_opcode(struct hed_ptx_lexer *l, struct hed_ptx_token *t)
{
    while (l->end - l->at > 1 && *l->at == '.' && is_ptx_name_char(l->at[1]))
        l->at = word_end(l->at + 1, l->end);
    t->len = (uint32_t)(l->at - t->text);
}
