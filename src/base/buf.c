/* The growing buffer. See buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define FIRST_CAPACITY 64u /* bytes */

void
hed_buf_init(struct hed_buf *b, size_t ceiling)
{
    /* One byte less than the largest size, so that the terminating 0 always fits. */
    if (ceiling > (size_t)-2)
        ceiling = (size_t)-2;
    *b = (struct hed_buf){.ceiling = ceiling};
}

/* Makes room for n more bytes and the 0, or sets the error. */
static bool
grow_buf(struct hed_buf *b, size_t n)
{
    if (b->err)
        return false;
    if (n > b->ceiling - b->size) {
        b->err = HED_ELIMIT;
        return false;
    }

    const size_t need = b->size + n + 1;

    if (need <= b->capacity)
        return true;

    size_t capacity = b->capacity ? b->capacity : FIRST_CAPACITY;

    if (capacity > (b->ceiling + 1) / 2)
        capacity = b->ceiling + 1;
    else if (b->capacity)
        capacity *= 2;
    if (capacity < need)
        capacity = need;

    unsigned char *data = realloc(b->data, capacity);

    if (!data) {
        b->err = HED_ENOMEM;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

void
hed_buf_add(struct hed_buf *b, const void *p, size_t n)
{
    if (!grow_buf(b, n))
        return;
    if (n > 0)
        memcpy(b->data + b->size, p, n);
    b->size += n;
    b->data[b->size] = 0;
}

void
hed_buf_addf(struct hed_buf *b, const char *fmt, ...)
{
    va_list ap;

    if (b->err)
        return;

    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);

    if (n < 0) {
        b->err = HED_EINVAL;
        return;
    }
    if (!grow_buf(b, (size_t)n))
        return;

    va_start(ap, fmt);
    const int written = vsnprintf((char *)b->data + b->size, (size_t)n + 1, fmt, ap);
    va_end(ap);
    /* A text among the arguments may have become shorter, if others can write to it. */
    b->size += written < 0 ? 0 : written < n ? (size_t)written : (size_t)n;
}

void
hed_buf_cut(struct hed_buf *b, size_t size)
{
    if (size >= b->size)
        return;
    b->size = size;
    b->data[size] = 0;
}

void
hed_buf_reset(struct hed_buf *b)
{
    b->size = 0;
    b->err = 0;
    if (b->data)
        b->data[0] = 0;
}

void
hed_buf_fini(struct hed_buf *b)
{
    free(b->data);
    *b = (struct hed_buf){.ceiling = b->ceiling};
}

const char *
hed_buf_cstr(const struct hed_buf *b)
{
    return b->data ? (const char *)b->data : "";
}
