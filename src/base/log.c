/* The log: parsing the levels, writing a line. See log.h. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

_Atomic unsigned char hed_log_levels[HED_LOG_COUNT];

static const char *const comp_names[HED_LOG_COUNT] = {
#define NAME(token, name) [HED_LOG_##token] = (name),
    HED_LOG_MAP(NAME)
#undef NAME
};

static const char *const level_names[] = {
    [HED_LEVEL_OFF] = "off",   [HED_LEVEL_ERROR] = "error", [HED_LEVEL_WARN] = "warn",
    [HED_LEVEL_INFO] = "info", [HED_LEVEL_DEBUG] = "debug",
};

#define LEVEL_COUNT (sizeof(level_names) / sizeof(level_names[0]))

/* A piece of the spec; not terminated. */
struct span {
    const char *p;
    size_t n;
};

static struct span
trim_words(struct span s)
{
    while (s.n > 0 && s.p[0] == ' ')
        s.p++, s.n--;
    while (s.n > 0 && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

/* The index of s among names, or -1. */
static int
find_name(struct span s, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(names[i]) == s.n && memcmp(names[i], s.p, s.n) == 0)
            return (int)i;
    }
    return -1;
}

/* One "level" or "component=level". Levels of components are kept as level + 1, so that 0 is "not
 * named".
 */
static int
parse_item(struct span item, unsigned char *rest, unsigned char *named, struct hed_why *why)
{
    const char *eq = memchr(item.p, '=', item.n);
    struct span comp = {item.p, 0};
    struct span level = item;

    if (eq) {
        comp.n = (size_t)(eq - item.p);
        level.p = eq + 1;
        level.n = item.n - comp.n - 1;
        comp = trim_words(comp);
    }
    level = trim_words(level);

    const int l = find_name(level, level_names, LEVEL_COUNT);

    if (l < 0) {
        hed_why_set(why, "log: there is no level '%.*s'; use off, error, warn, info or debug",
                    (int)(level.n < 64 ? level.n : 64), level.p);
        return HED_EINVAL;
    }
    if (!eq) {
        *rest = (unsigned char)l;
        return 0;
    }

    const int c = find_name(comp, comp_names, HED_LOG_COUNT);

    if (c < 0) {
        hed_why_set(why, "log: there is no component '%.*s'; it is the name of a folder in src/",
                    (int)(comp.n < 64 ? comp.n : 64), comp.p);
        return HED_EINVAL;
    }
    named[c] = (unsigned char)(l + 1);
    return 0;
}

int
hed_log_setup(const char *spec, struct hed_why *why)
{
    unsigned char rest = HED_LEVEL_OFF;
    unsigned char named[HED_LOG_COUNT] = {0};

    for (const char *p = spec ? spec : ""; *p;) {
        const struct span item = trim_words((struct span){p, strcspn(p, ",")});

        p += strcspn(p, ",");
        p += *p == ',';
        if (item.n == 0)
            continue;

        const int err = parse_item(item, &rest, named, why);

        if (err)
            return err;
    }

    for (int c = 0; c < HED_LOG_COUNT; c++) {
        const unsigned char level = named[c] ? (unsigned char)(named[c] - 1) : rest;

        atomic_store_explicit(&hed_log_levels[c], level, memory_order_relaxed);
    }
    return 0;
}

/* How many bytes of UTF-8 begin here that a person can read; 0 if these are none: a control
 * character of one byte or two, one that changes the direction of text, or no UTF-8 at all. */
static size_t
readable_bytes(const unsigned char *p, size_t n)
{
    const size_t length = p[0] < 0x80                   ? 1
                          : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                          : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                          : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                        : 0;
    uint32_t c = length == 1 ? p[0] : p[0] & (0xffu >> (length + 1));

    if (length == 0 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x2028 && c <= 0x202e) ||
        (c >= 0x2066 && c <= 0x2069) || (length == 3 && c < 0x800) || (length == 4 && c < 0x10000))
        return 0;
    return length;
}

void
hed_log_write(enum hed_log_comp comp, enum hed_log_level level, const char *fmt, ...)
{
    const int saved = errno;
    char line[1024];
    va_list ap;

    const int head = snprintf(line, sizeof(line), "heddle[%d] %s %s: ", (int)getpid(),
                              level_names[level], comp_names[comp]);

    va_start(ap, fmt);
    /* %m in fmt means the caller's errno. */
    errno = saved;
    const int body = vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, ap);
    va_end(ap);

    size_t n = (size_t)head + (body > 0 ? (size_t)body : 0);

    if (n > sizeof(line) - 1) {
        n = sizeof(line) - 1;
        memcpy(line + n - 3, "...", 3);
    }
    /* What a peer sent may be in the text: it must not be able to forge a line, nor to command a
     * terminal. */
    for (size_t i = (size_t)head, length; i < n; i += length ? length : 1) {
        length = readable_bytes((const unsigned char *)line + i, n - i);
        if (length == 0)
            line[i] = '?';
    }
    line[n++] = '\n';

    while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
        ;
    errno = saved;
}
