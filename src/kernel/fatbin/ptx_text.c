/* A quick look at PTX text. See ptx_text.h. */
#include "kernel/fatbin/ptx_text.h"

#include <stdio.h>

#include "base/number.h"

/* Only comments come before .version and .target; longer ones are not expected. */
#define HEAD_MAX 16384

static bool
is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '$' || c == '.' || c == '%';
}

/* The position after blanks and comments. */
static size_t
skip_ptx_blanks(struct hed_bytes t, size_t at)
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

/* The next word, string, or single other character; empty at the end. */
static struct hed_bytes
ptx_token(struct hed_bytes t, size_t *at)
{
    const size_t start = skip_ptx_blanks(t, *at);
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

static void
copy_word(struct hed_bytes word, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)(word.size < size ? word.size : 0), (const char *)word.data);
}

bool
hed_ptx_begins(struct hed_bytes text, struct hed_ptx_head *out)
{
    const struct hed_bytes t = hed_bytes_cut(text, 0, hed_min(text.size, HEAD_MAX));
    struct hed_ptx_head head = {0};
    size_t at = 0;
    char word[32];

    if (!hed_bytes_equal(ptx_token(t, &at), ".version"))
        return false;
    copy_word(ptx_token(t, &at), word, sizeof word);
    if (sscanf(word, "%4hu.%4hu", &head.major, &head.minor) != 2)
        return false;
    for (int i = 0; i < 32; i++) {
        const struct hed_bytes w = ptx_token(t, &at);

        if (hed_bytes_equal(w, ".target") && head.arch.number == 0) {
            copy_word(ptx_token(t, &at), word, sizeof word);
            hed_arch_parse(word, &head.arch, NULL);
        } else if (hed_bytes_equal(w, ".address_size")) {
            head.is_64 = hed_bytes_equal(ptx_token(t, &at), "64");
            break;
        }
    }
    *out = head;
    return true;
}

struct hed_bytes
hed_ptx_next_entry(struct hed_bytes text, size_t *at)
{
    struct hed_bytes w = ptx_token(text, at);

    while (w.size && !hed_bytes_equal(w, ".entry"))
        w = ptx_token(text, at);
    return w.size ? ptx_token(text, at) : w;
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define PARAMS_MAX 32764u /* bytes; no kernel takes more */

static bool
ptx_number(struct hed_bytes w, uint32_t *out)
{
    uint64_t n = 0;

    if (w.size == 0 || w.size > 9)
        return false;
    for (size_t i = 0; i < w.size; i++) {
        if (w.data[i] < '0' || w.data[i] > '9')
            return false;
        n = n * 10 + (uint64_t)(w.data[i] - '0');
    }
    *out = (uint32_t)n;
    return true;
}

/* The size of a type (.u32, .b8, .f64, ...) in bytes; 0 if it is not a type. */
static uint32_t
type_size(struct hed_bytes w)
{
    uint32_t bits;

    if (hed_bytes_equal(w, ".texref") || hed_bytes_equal(w, ".samplerref") ||
        hed_bytes_equal(w, ".surfref"))
        return 8;
    if (w.size < 3 || w.data[0] != '.' || !strchr("busf", w.data[1]) ||
        !ptx_number(hed_bytes_from(w, 2), &bits) || bits % 8 != 0 || bits > 128)
        return 0;
    return bits / 8;
}

/* "[4][3]" after a name: multiplies *size. False if it gets too large. */
static bool
read_dimensions(struct hed_bytes t, size_t *at, uint64_t *size)
{
    size_t next = *at;

    while (hed_bytes_equal(ptx_token(t, &next), "[")) {
        uint32_t n;

        if (!ptx_number(ptx_token(t, &next), &n) || !hed_bytes_equal(ptx_token(t, &next), "]"))
            return false;
        *size *= n;
        if (*size > PARAMS_MAX)
            return false;
        *at = next;
    }
    return true;
}

/* One parameter, after ".param": its type, its name, its alignment and size. */
static bool
read_parameter(struct hed_bytes t, size_t *at, uint32_t *align, uint64_t *size)
{
    bool is_pointer = false, is_aligned = false;
    uint32_t type = 0, n;
    struct hed_bytes w = ptx_token(t, at);

    *align = 1;
    for (; w.size && w.data[0] == '.'; w = ptx_token(t, at)) {
        if (hed_bytes_equal(w, ".ptr")) {
            is_pointer = true; /* an .align after it applies to what it points to */
        } else if (hed_bytes_equal(w, ".align")) {
            if (!ptx_number(ptx_token(t, at), &n) || n == 0 || n > 4096)
                return false;
            *align = is_pointer ? *align : n;
            is_aligned = is_aligned || !is_pointer;
        } else if (type_size(w)) {
            type = type_size(w);
        }
    }
    *size = type;
    if (!is_aligned)
        *align = type;
    return type && w.size && is_word(w.data[0]) && read_dimensions(t, at, size);
}

/* Reads "(.param ..., .param ...)", or nothing. */
static bool
read_parameters(struct hed_bytes t, size_t *at, struct hed_ptx_glance *k,
                struct hed_ptx_place *params, uint32_t room)
{
    size_t next = *at;
    struct hed_bytes w = ptx_token(t, &next);
    uint64_t bytes = 0;

    if (!hed_bytes_equal(w, "("))
        return true;
    for (w = ptx_token(t, &next); hed_bytes_equal(w, ".param"); w = ptx_token(t, &next)) {
        uint32_t align;
        uint64_t size;

        if (!read_parameter(t, &next, &align, &size))
            return false;
        bytes = hed_round_up(bytes, align);
        if (bytes + size > PARAMS_MAX)
            return false;
        if (params && k->param_count < room)
            params[k->param_count] = (struct hed_ptx_place){(uint32_t)bytes, (uint32_t)size};
        k->param_count++;
        bytes += size;
        w = ptx_token(t, &next);
        if (!hed_bytes_equal(w, ","))
            break;
    }
    k->param_bytes = (uint32_t)bytes;
    *at = next;
    return hed_bytes_equal(w, ")");
}

/* Reads up to three numbers, separated by commas. */
static void
read_three(struct hed_bytes t, size_t *at, uint32_t out[3])
{
    for (int i = 0; i < 3; i++) {
        size_t next = *at;

        if (!ptx_number(ptx_token(t, &next), &out[i]))
            return;
        *at = next;
        if (!hed_bytes_equal(ptx_token(t, &next), ","))
            return;
        *at = next;
    }
}

bool
hed_ptx_next_kernel(struct hed_bytes text, size_t *at, struct hed_ptx_glance *out,
                    struct hed_ptx_place *params, uint32_t room)
{
    for (;;) {
        struct hed_ptx_glance k = {.name = hed_ptx_next_entry(text, at)};
        uint32_t most[3] = {0};
        struct hed_bytes w;

        if (k.name.size == 0)
            return false;
        if (!is_word(k.name.data[0]) || !read_parameters(text, at, &k, params, room))
            continue;
        for (w = ptx_token(text, at);
             w.size && !hed_bytes_equal(w, "{") && !hed_bytes_equal(w, ";");
             w = ptx_token(text, at)) {
            if (hed_bytes_equal(w, ".maxntid"))
                read_three(text, at, most);
            else if (hed_bytes_equal(w, ".reqntid"))
                read_three(text, at, k.required);
        }
        if (!hed_bytes_equal(w, "{"))
            continue; /* it is cut off */
        for (int i = 1; i < 3; i++)
            most[i] = most[i] ? most[i] : 1;
        if (most[0] <= 1024 && most[1] <= 1024 && most[2] <= 1024)
            k.max_threads = most[0] * most[1] * most[2];
        *out = k;
        return true;
    }
}
