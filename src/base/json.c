/* What base/json.h describes. */
#include "base/json.h"

#include <string.h>

#include "base/str.h"

struct hed_json
hed_json_over(const char *text, size_t size)
{
    return (struct hed_json){.at = text, .end = text + size};
}

/* The next character that is not a blank; 0 at the end and after a mistake. */
static char
json_peek(struct hed_json *j)
{
    while (!j->bad && j->at < j->end && (*j->at == ' ' || (*j->at >= '\t' && *j->at <= '\r')))
        j->at++;
    if (j->bad || j->at >= j->end)
        return '\0';
    return *j->at;
}

static bool
json_spoil(struct hed_json *j)
{
    j->bad = true;
    return false;
}

bool
hed_json_enter(struct hed_json *j, char what)
{
    if (json_peek(j) != what || j->depth == HED_JSON_DEPTH)
        return json_spoil(j);
    j->at++;
    j->depth++;
    j->first = true;
    return true;
}

bool
hed_json_next(struct hed_json *j)
{
    const char c = json_peek(j);

    if (c == ']' || c == '}') {
        if (j->depth == 0)
            return json_spoil(j);
        j->at++;
        j->depth--;
        j->first = false;
        return false;
    }
    if (!j->first && c != ',')
        return json_spoil(j);
    if (!j->first)
        j->at++;
    j->first = false;
    return json_peek(j) != '\0' || json_spoil(j);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Reads \uXXXX behind the u. */
static uint32_t
take_unit(struct hed_json *j)
{
    uint32_t unit = 0;

    for (int i = 0; i < 4; i++) {
        const int digit = j->at < j->end ? hed_str_digit(*j->at) : 16;

        if (digit == 16) {
            (void)json_spoil(j);
            return 0;
        }
        unit = unit << 4 | (uint32_t)digit;
        j->at++;
    }
    return unit;
}

/* Reads an escape behind the backslash. */
static uint32_t
take_escape(struct hed_json *j)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    const char c = (char)(j->at < j->end ? *j->at++ : '\0');
    const char *name = c ? strchr(names, c) : NULL;

    if (name)
        return (unsigned char)values[name - names];
    if (c != 'u') {
        (void)json_spoil(j);
        return 0;
    }

    const uint32_t unit = take_unit(j);

    if (unit < 0xd800 || unit > 0xdbff || j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
        return unit;
    j->at += 2;
    return 0x10000 + ((unit & 0x3ff) << 10 | (take_unit(j) & 0x3ff));
}

static size_t
put_utf8(char out[4], uint32_t c)
{
    const size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    if (n == 1) {
        out[0] = (char)c;
        return 1;
    }
    for (size_t i = n; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

/* Reads a text, and what fits of it into out[size]. */
static void
take_text(struct hed_json *j, char *out, size_t size)
{
    size_t n = 0;
    bool fits = size > 0;

    j->at++; /* the quote */
    while (!j->bad && j->at < j->end && *j->at != '"') {
        char bytes[4] = {*j->at++};
        size_t count = 1;

        if (bytes[0] == '\\')
            count = put_utf8(bytes, take_escape(j));
        fits = fits && n + count < size;
        if (fits) {
            memcpy(out + n, bytes, count);
            n += count;
        }
    }
    if (size)
        out[j->bad ? 0 : n] = '\0';
    if (j->bad || j->at >= j->end)
        (void)json_spoil(j);
    else
        j->at++;
}

bool
hed_json_key(struct hed_json *j, char *out, size_t size)
{
    out[0] = '\0';
    if (!hed_json_next(j))
        return false;
    if (json_peek(j) != '"')
        return json_spoil(j);
    take_text(j, out, size);
    if (json_peek(j) != ':')
        return json_spoil(j);
    j->at++;
    return true;
}

void
hed_json_text(struct hed_json *j, char *out, size_t size)
{
    if (size)
        out[0] = '\0';
    if (json_peek(j) == '"')
        take_text(j, out, size);
    else
        hed_json_skip(j);
}

/* ---- other values ---------------------------------------------------------------------------- */

double
hed_json_real(struct hed_json *j)
{
    const char c = json_peek(j);
    double sign = 1, n = 0, unit = 1;

    if (c != '-' && (c < '0' || c > '9')) {
        hed_json_skip(j);
        return 0;
    }
    if (c == '-') {
        sign = -1;
        j->at++;
    }
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
        n = n * 10 + (*j->at - '0');
    if (j->at < j->end && *j->at == '.')
        for (j->at++; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
            n += (*j->at - '0') * (unit /= 10);
    /* Nobody who writes for us uses exponents. */
    if (j->at < j->end && (*j->at == 'e' || *j->at == 'E'))
        (void)json_spoil(j);
    return sign * n;
}

uint64_t
hed_json_number(struct hed_json *j)
{
    const char *at = json_peek(j) ? j->at : NULL;
    uint64_t n = 0;

    if (!at || *at < '0' || *at > '9') {
        (void)hed_json_real(j);
        return 0;
    }
    for (; at < j->end && *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, (uint64_t)(*at - '0'), &n))
            n = UINT64_MAX;
    (void)hed_json_real(j);
    return n;
}

static bool
take_word(struct hed_json *j, const char *word)
{
    const size_t n = strlen(word);

    if (json_peek(j) != word[0] || (size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
        return false;
    j->at += n;
    return true;
}

bool
hed_json_null(struct hed_json *j)
{
    return take_word(j, "null");
}

bool
hed_json_bool(struct hed_json *j)
{
    if (take_word(j, "true"))
        return true;
    hed_json_skip(j);
    return false;
}

void
hed_json_skip(struct hed_json *j)
{
    char key[2];
    const char c = json_peek(j);

    if (c == '"') {
        take_text(j, NULL, 0);
    } else if (c == '{' && hed_json_enter(j, '{')) {
        while (hed_json_key(j, key, sizeof key))
            hed_json_skip(j);
    } else if (c == '[' && hed_json_enter(j, '[')) {
        while (hed_json_next(j))
            hed_json_skip(j);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        (void)hed_json_real(j);
    } else if (!take_word(j, "true") && !take_word(j, "false") && !hed_json_null(j)) {
        (void)json_spoil(j);
    }
}
