/* A copy: a box of bytes, and the two sides that it goes between. The same struct from the call of
 * the program, once that has been checked, to the message and to the worker that makes the copy
 * there; so it is fixed in size and has no pointers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hed_box {
    uint64_t width, height, depth; /* bytes, rows, planes; none is 0 */
};

/* One side: memory, or an array. */
struct hed_copy_side {
    uint64_t at;           /* address of the first byte; 0: of an array that has no address here */
    uint64_t pitch, slice; /* bytes from row to row, from plane to plane */
    uint64_t array;        /* handle; 0: memory */
    uint64_t x, y, z;      /* in that array: bytes, rows, planes */

    /* What the driver has found out of memory; a worker does not look at it. */
    uint8_t host;     /* memory of the host: pinned, registered, managed or pageable */
    uint8_t pageable; /* the program's own, which no call has told the driver of */
    uint8_t mapped;   /* kernels may be told of it */
    uint8_t reserved[5];
};

struct hed_copy {
    struct hed_copy_side from, to;
    struct hed_box box;
};

static inline uint64_t
hed_box_bytes(const struct hed_box *b)
{
    return b->width * b->height * b->depth;
}

/* The address, on one side that is memory, of the byte that is x bytes, y rows and z planes from
 * the first. */
static inline uint64_t
hed_side_at(const struct hed_copy_side *s, uint64_t x, uint64_t y, uint64_t z)
{
    return s->at + z * s->slice + y * s->pitch + x;
}

/* Bytes from the first to the last of one side's memory. False: more than there are. */
static inline bool
hed_side_span(const struct hed_copy_side *s, const struct hed_box *b, uint64_t *out)
{
    uint64_t rows, planes;

    return !__builtin_mul_overflow(s->pitch, b->height - 1, &rows) &&
           !__builtin_mul_overflow(s->slice, b->depth - 1, &planes) &&
           !__builtin_add_overflow(rows, planes, &rows) &&
           !__builtin_add_overflow(rows, b->width, out);
}

/* The side with its first byte moved on. */
static inline struct hed_copy_side
hed_side_move(struct hed_copy_side s, uint64_t x, uint64_t y, uint64_t z)
{
    if (s.at)
        s.at = hed_side_at(&s, x, y, z);
    s.x += x;
    s.y += y;
    s.z += z;
    return s;
}

/* Makes rows that lie side by side on both sides one long row, and planes one tall plane. */
static inline void
hed_copy_flatten(struct hed_copy *c)
{
    struct hed_box *b = &c->box;
    const uint64_t plane = b->width * b->height;

    if (b->height > 1 && (c->from.pitch != b->width || c->to.pitch != b->width))
        return;
    if (b->depth == 1 || (c->from.slice == plane && c->to.slice == plane)) {
        *b = (struct hed_box){plane * b->depth, 1, 1};
    } else {
        *b = (struct hed_box){plane, b->depth, 1};
        c->from.pitch = c->from.slice;
        c->to.pitch = c->to.slice;
    }
}
