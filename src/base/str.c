/* Text helpers. See str.h. */
#include "base/str.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* ASCII only, unlike tolower: a Turkish user's "I" is our "i". */
static char
lower_letter(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

int
hed_str_digit(char c)
{
    c = lower_letter(c);
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return 16;
}

/* Reads digits up to the first character that is none, and leaves *s there. */
static int
parse_digits(const char **s, unsigned base, uint64_t *out)
{
    const char *p = *s;
    uint64_t value = 0;
    bool over = false;

    while (hed_str_digit(*p) < (int)base) {
        over |= __builtin_mul_overflow(value, base, &value);
        over |= __builtin_add_overflow(value, (uint64_t)hed_str_digit(*p), &value);
        p++;
    }
    if (p == *s)
        return HED_EINVAL;
    if (over)
        return HED_ERANGE;
    *s = p;
    *out = value;
    return 0;
}

int
hed_parse_u64(const char *s, uint64_t *out)
{
    unsigned base = 10;
    uint64_t value;

    if (s[0] == '0' && lower_letter(s[1]) == 'x') {
        base = 16;
        s += 2;
    }

    /* What is no number at all is HED_EINVAL, however many digits it begins with. */
    if (s[strspn(s, base == 16 ? "0123456789abcdefABCDEF" : "0123456789")] != '\0')
        return HED_EINVAL;

    const int err = parse_digits(&s, base, &value);

    if (err)
        return err;
    *out = value;
    return 0;
}

/* The shift of a unit's power of two, 0 for none, -1 for an unknown one. */
static int
unit_shift(const char *s)
{
    static const char units[] = "kmgtpe";
    int shift = 0;

    if (*s != '\0') {
        const char *unit = strchr(units, lower_letter(*s));

        if (unit) {
            shift = 10 * (int)(unit - units + 1);
            s++;
            if (lower_letter(s[0]) == 'i' && lower_letter(s[1]) == 'b')
                s++;
        }
    }
    if (lower_letter(*s) == 'b')
        s++;
    return *s == '\0' ? shift : -1;
}

int
hed_parse_size(const char *s, uint64_t *out)
{
    uint64_t whole = 0;
    uint64_t part = 0; /* the fraction is part / scale */
    uint64_t scale = 1;
    int err = parse_digits(&s, 10, &whole);

    if (err)
        return err;

    const bool fraction = *s == '.';

    if (fraction) {
        const char *first = ++s;

        if (strspn(s, "0123456789") > 18)
            return HED_EINVAL;
        err = parse_digits(&s, 10, &part);
        if (err)
            return err;
        for (const char *p = first; p < s; p++)
            scale *= 10;
    }

    const int shift = unit_shift(s);

    if (shift < 0 || (fraction && shift == 0))
        return HED_EINVAL;
    if (whole > UINT64_MAX >> shift)
        return HED_ERANGE;

    /* The fraction is below one unit, so that the sum cannot overflow. */
    *out = (whole << shift) + (uint64_t)(((unsigned __int128)part << shift) / scale);
    return 0;
}

static bool
same_word(const char *a, const char *b)
{
    while (*a && lower_letter(*a) == *b)
        a++, b++;
    return *a == '\0' && *b == '\0';
}

int
hed_parse_bool(const char *s, bool *out)
{
    static const char *const words[][2] = {
        {"off", "on"}, {"false", "true"}, {"no", "yes"}, {"0", "1"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        for (int value = 0; value < 2; value++) {
            if (same_word(s, words[i][value])) {
                *out = value != 0;
                return 0;
            }
        }
    }
    return HED_EINVAL;
}

bool
hed_str_copy(char *dst, size_t size, const char *src)
{
    if (size == 0)
        return false;

    const size_t n = strnlen(src, size);
    const bool fits = n < size;
    const size_t kept = fits ? n : size - 1;

    memcpy(dst, src, kept);
    dst[kept] = '\0';
    return fits;
}

static bool
is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

const char *
hed_str_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *
hed_str_trim(char *s)
{
    while (is_blank(*s))
        s++;

    size_t n = strlen(s);

    while (n > 0 && is_blank(s[n - 1]))
        n--;
    s[n] = '\0';
    return s;
}

/* The length of the UTF-8 sequence at s[n], or 0 if none begins there. After the Unicode Standard,
 * table 3-7, "Well-Formed UTF-8 Byte Sequences": only the second byte's range varies.
 */
static size_t
utf8_length(const unsigned char *s, size_t n)
{
    const unsigned char c = s[0];
    size_t length;
    unsigned char low = 0x80;
    unsigned char high = 0xbf;

    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    length = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (length > n)
        return 0;
    if (c == 0xe0)
        low = 0xa0; /* no overlong forms */
    else if (c == 0xed)
        high = 0x9f; /* no surrogates */
    else if (c == 0xf0)
        low = 0x90;
    else if (c == 0xf4)
        high = 0x8f; /* nothing over U+10FFFF */
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return length;
}

/* The letter after the backslash for what has a short escape, else 0. */
static char
short_escape(unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
        return (char)c;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 0;
    }
}

/* Valid UTF-8 of two bytes or three that a terminal or a script may obey: U+0080 to U+009F, ends of
 * lines, and what turns the direction of text (U+2028 to U+202E, U+2066 to U+2069). */
static bool
is_control(const unsigned char *p)
{
    if (*p == 0xc2)
        return p[1] < 0xa0;
    return *p == 0xe2 && ((p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||
                          (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
}

void
hed_str_escape(struct hed_buf *b, const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;

    while (n > 0) {
        const size_t length = utf8_length(p, n);
        const char letter = short_escape(*p);

        if (length == 0)
            hed_buf_add(b, "\xef\xbf\xbd", 3);
        else if (letter)
            hed_buf_add(b, (const char[]){'\\', letter}, 2);
        else if (*p < 0x20 || *p == 0x7f)
            hed_buf_addf(b, "\\u%04x", *p);
        else if (is_control(p))
            hed_buf_addf(b, "\\u%04x",
                         *p == 0xc2 ? p[1] : 0x2000u | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu));
        else
            hed_buf_add(b, p, length);
        p += length ? length : 1;
        n -= length ? length : 1;
    }
}

void
hed_str_field(struct hed_buf *b, const char *key, const char *s, size_t n)
{
    hed_buf_addf(b, "\"%s\":\"", key);
    hed_str_escape(b, s, n);
    hed_buf_addf(b, "\"");
}

void
hed_str_next_field(struct hed_buf *b, const char *key, const char *s)
{
    hed_buf_addf(b, ",");
    hed_str_field(b, key, s, strlen(s));
}

bool
hed_same_secret(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    unsigned difference = 0;

    for (size_t i = 0; i < n; i++)
        difference |= (unsigned)(x[i] ^ y[i]);
    return difference == 0;
}
