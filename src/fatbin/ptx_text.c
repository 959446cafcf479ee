/* A look at PTX text. See ptx_text.h. */
#include "fatbin/ptx_text.h"

#include <stdio.h>

/* What comes before .version and .target are comments; longer ones have not been seen. */
#define HEAD_MAX 16384

static bool
is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || c == '.' || c == '%';
}

/* Past blanks and comments. */
static size_t
skip(struct hed_bytes t, size_t at)
{
    while (at < t.size) {
        const uint8_t c = t.data[at];
        const uint8_t next = at + 1 < t.size ? t.data[at + 1] : 0;

        if (c == '/' && next == '/') {
            const uint8_t *end = memchr(t.data + at, '\n', t.size - at);

            at = end ? (size_t)(end - t.data) : t.size;
        } else if (c == '/' && next == '*') {
            const uint8_t *end = memmem(t.data + at + 2, t.size - at - 2, "*/", 2);

            at = end ? (size_t)(end - t.data) + 2 : t.size;
        } else if (c == ' ' || (c >= '\t' && c <= '\r')) {
            at++;
        } else {
            break;
        }
    }
    return at;
}

/* The next word, or one other character; strings are one. Empty at the end. */
static struct hed_bytes
token(struct hed_bytes t, size_t *at)
{
    const size_t start = skip(t, *at);
    size_t end = start;

    while (end < t.size && is_word(t.data[end]))
        end++;
    if (end == start && end < t.size) {
        const uint8_t *quote = NULL;

        if (t.data[end] == '"')
            quote = memchr(t.data + end + 1, '"', t.size - end - 1);
        end = quote ? (size_t)(quote - t.data) + 1 : end + 1;
    }
    *at = end;
    return hed_bytes_cut(t, start, end - start);
}

static bool
is(struct hed_bytes word, const char *text)
{
    return word.size == strlen(text) && hed_bytes_begin(word, text, word.size);
}

static void
copy_word(struct hed_bytes word, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)(word.size < size ? word.size : 0), (const char *)word.data);
}

bool
hed_ptx_begins(struct hed_bytes text, struct hed_ptx_head *out)
{
    const struct hed_bytes t = hed_bytes_cut(text, 0, text.size < HEAD_MAX ? text.size : HEAD_MAX);
    struct hed_ptx_head head = {0};
    size_t at = 0;
    char word[32];

    if (!is(token(t, &at), ".version"))
        return false;
    copy_word(token(t, &at), word, sizeof word);
    if (sscanf(word, "%4hu.%4hu", &head.major, &head.minor) != 2)
        return false;
    for (int i = 0; i < 32; i++) {
        const struct hed_bytes w = token(t, &at);

        if (is(w, ".target") && head.arch.number == 0) {
            copy_word(token(t, &at), word, sizeof word);
            hed_arch_parse(word, &head.arch, NULL);
        } else if (is(w, ".address_size")) {
            head.is_64 = is(token(t, &at), "64");
            break;
        }
    }
    *out = head;
    return true;
}

struct hed_bytes
hed_ptx_next_entry(struct hed_bytes text, size_t *at)
{
    struct hed_bytes w = token(text, at);

    while (w.size && !is(w, ".entry"))
        w = token(text, at);
    return w.size ? token(text, at) : w;
}
