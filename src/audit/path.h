/* Paths as text in buffers of PATH_MAX bytes. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct hed_audit_path {
    char text[PATH_MAX];
    size_t size; /* without the 0 */
    bool cut;    /* sticky: something did not fit */
};

static inline void
hed_audit_path_clear(struct hed_audit_path *p)
{
    p->size = 0;
    p->text[0] = '\0';
    p->cut = false;
}

static inline void
hed_audit_path_add(struct hed_audit_path *p, const char *text, size_t n)
{
    if (p->cut || n >= sizeof p->text - p->size) {
        p->cut = true;
        return;
    }
    memcpy(p->text + p->size, text, n);
    p->size += n;
    p->text[p->size] = '\0';
}

static inline void
hed_audit_path_put(struct hed_audit_path *p, const char *text)
{
    hed_audit_path_add(p, text, strlen(text));
}
