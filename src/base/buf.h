/* A growing buffer of bytes with a ceiling and one sticky error.
 *
 * Add as much as you like and check err once, at the end. Not a decoder, and not for use by two
 * threads at once.
 *
 * Invariants:
 * 1. size is never over ceiling; data[size] is 0 whenever data is not NULL.
 * 2. An addition happens as a whole or not at all. Once err is set nothing is added until reset.
 */
#pragma once

#include <stddef.h>

struct hed_buf {
    unsigned char *data; /* owned; NULL until something is added */
    size_t size;         /* bytes in use, the terminating 0 not counted */
    size_t capacity;     /* bytes allocated */
    size_t ceiling;      /* bytes; constant after init */
    int err;             /* 0, HED_ENOMEM, HED_ELIMIT, or HED_EINVAL for a format that fails */
};

/* Allocates nothing yet. */
void hed_buf_init(struct hed_buf *b, size_t ceiling);

/* Appends n bytes. p may be NULL when n is 0, and must not point into the buffer. */
void hed_buf_add(struct hed_buf *b, const void *p, size_t n);

/* Appends formatted text. No argument may point into the buffer. */
void hed_buf_addf(struct hed_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Takes the end off: keeps the first `size` bytes, or all if there are fewer. */
void hed_buf_cut(struct hed_buf *b, size_t size);

/* Empties the buffer and clears the error; the memory is kept. */
void hed_buf_reset(struct hed_buf *b);

/* Frees the memory. The buffer can be used again as after init. */
void hed_buf_fini(struct hed_buf *b);

/* What was added so far as a string: terminated, never NULL, valid until the next addition. */
const char *hed_buf_cstr(const struct hed_buf *b);
