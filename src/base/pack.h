/* Encoding and decoding bytes: the primitives of the wire and the trace (docs/trace-format.md).
 *
 * An encoder writes into a fixed piece of memory, a decoder reads from one; each holds one sticky
 * error that is checked once, at the end. Little-endian, unaligned. This file knows nothing of
 * calls and records: generated code (gen/emit_wire.py) does.
 *
 * Invariants:
 * 1. at never passes end. After an error nothing more is written or handed out.
 * 2. A decoder allocates from its arena, whose ceiling bounds it. A count is believed only if there
 *    are bytes for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct hed_arena;

#define HED_PACK_NULL32 UINT32_MAX /* as a count: the pointer was NULL */
#define HED_PACK_NULL64 UINT64_MAX

struct hed_enc {
    uint8_t *at;        /* next byte to write */
    uint8_t *end;       /* one past the last */
    uint32_t max_items; /* longest array kept whole; longer ones are cut */
    uint32_t max_bytes; /* bytes of bulk data kept */
    uint32_t max_text;  /* bytes of a string kept */
    int err;            /* 0 or HED_ELIMIT */
};

struct hed_dec {
    const uint8_t *at;
    const uint8_t *end;
    struct hed_arena *arena; /* for pointers in what is decoded */
    int err;                 /* 0, HED_ETRUNC, HED_EFORMAT, HED_ELIMIT, HED_ENOMEM */
};

/* An encoder over memory that cuts nothing. p may be NULL if n is 0, here and below. */
static inline struct hed_enc
hed_enc_over(void *p, size_t n)
{
    return (struct hed_enc){
        p, p ? (uint8_t *)p + n : NULL, UINT32_MAX - 1, UINT32_MAX - 1, UINT32_MAX - 1, 0};
}

static inline struct hed_dec
hed_dec_over(const void *p, size_t n, struct hed_arena *arena)
{
    return (struct hed_dec){p, p ? (const uint8_t *)p + n : NULL, arena, 0};
}

/* ---- put ------------------------------------------------------------------------------------- */

static inline void
hed_put_raw(struct hed_enc *e, const void *p, size_t n)
{
    if (__builtin_expect((size_t)(e->end - e->at) < n, 0)) {
        e->err = HED_ELIMIT;
        e->end = e->at;
        return;
    }
    memcpy(e->at, p, n);
    e->at += n;
}

#define HED_PACK_PUT(name, type)                                 \
    static inline void hed_put_##name(struct hed_enc *e, type v) \
    {                                                            \
        hed_put_raw(e, &v, sizeof v);                            \
    }

HED_PACK_PUT(u8, uint8_t)
HED_PACK_PUT(u16, uint16_t)
HED_PACK_PUT(u32, uint32_t)
HED_PACK_PUT(u64, uint64_t)
HED_PACK_PUT(f32, float)
HED_PACK_PUT(f64, double)

/* Room for n bytes, for hed_store_* to fill. NULL, and the error is set, if there is not enough. */
static inline uint8_t *
hed_put_space(struct hed_enc *e, size_t n)
{
    uint8_t *p = e->at;

    if (__builtin_expect((size_t)(e->end - p) < n, 0)) {
        e->err = HED_ELIMIT;
        e->end = p;
        return NULL;
    }
    e->at = p + n;
    return p;
}

#define HED_PACK_STORE(name, type)                          \
    static inline void hed_store_##name(uint8_t *p, type v) \
    {                                                       \
        memcpy(p, &v, sizeof v);                            \
    }

HED_PACK_STORE(u8, uint8_t)
HED_PACK_STORE(u16, uint16_t)
HED_PACK_STORE(u32, uint32_t)
HED_PACK_STORE(u64, uint64_t)
HED_PACK_STORE(f32, float)
HED_PACK_STORE(f64, double)

/* Puts the head of an array of count items at p. Returns how many of them the caller must put. */
uint32_t hed_put_items(struct hed_enc *e, const void *p, uint64_t count);

/* Bulk data; p may be NULL. */
void hed_put_bulk(struct hed_enc *e, const void *p, uint64_t count);

/* A string; s may be NULL. textbuf: at most count characters are looked at. */
void hed_put_text(struct hed_enc *e, const char *s);
void hed_put_textbuf(struct hed_enc *e, const char *s, uint64_t count);

/* ---- get ------------------------------------------------------------------------------------- */

/* Fills p, with zeros after an error. */
static inline void
hed_get_raw(struct hed_dec *d, void *p, size_t n)
{
    if (__builtin_expect((size_t)(d->end - d->at) < n, 0)) {
        d->err = d->err ? d->err : HED_ETRUNC;
        d->at = d->end;
        memset(p, 0, n);
        return;
    }
    memcpy(p, d->at, n);
    d->at += n;
}

#define HED_PACK_GET(name, type)                         \
    static inline type hed_get_##name(struct hed_dec *d) \
    {                                                    \
        type v;                                          \
                                                         \
        hed_get_raw(d, &v, sizeof v);                    \
        return v;                                        \
    }

HED_PACK_GET(u8, uint8_t)
HED_PACK_GET(u16, uint16_t)
HED_PACK_GET(u32, uint32_t)
HED_PACK_GET(u64, uint64_t)
HED_PACK_GET(f32, float)
HED_PACK_GET(f64, double)

/* Sets HED_EFORMAT, unless there was an error before: the bytes make no sense. */
void hed_get_bad(struct hed_dec *d);

/* The number of a union's member; any other than `which` is HED_EFORMAT. */
void hed_get_case(struct hed_dec *d, uint16_t which);

/* The u32 that is `skip` bytes ahead, without consuming it; 0 if there are not enough bytes. */
uint32_t hed_get_peek(const struct hed_dec *d, size_t skip);

/* Checks that p, which was decoded with n items, has as many as the caller's own `count`. Otherwise
 * sets HED_EFORMAT, so that nothing is read past the end. p may be NULL, with any count. */
void hed_get_same(struct hed_dec *d, const void *p, uint32_t n, uint64_t count);

/* n bytes in place. NULL, and the error is set, if there are not enough. */
const uint8_t *hed_get_span(struct hed_dec *d, size_t n);

/* Cleared room from the arena for count items of a size. NULL, and the error is set, if refused. */
void *hed_get_room(struct hed_dec *d, uint64_t count, size_t size);

/* Gets the head of an array and allocates room for its items; the caller must get *n of them. Only
 * complete arrays are accepted: one that was cut when it was put is HED_EFORMAT. NULL for NULL,
 * with *n 0.
 */
void *hed_get_items(struct hed_dec *d, size_t size, uint32_t *n);

/* The same for the caller's own array of `room` items. Returns how many to get. */
uint32_t hed_get_count_into(struct hed_dec *d, uint64_t room);

/* Bulk data and strings, in the arena. *n is the number of bytes; the string ends in 0. */
void *hed_get_bulk(struct hed_dec *d, uint32_t *n);
char *hed_get_text(struct hed_dec *d);

/* The same into the caller's memory. Returns how many bytes there were. */
uint32_t hed_get_bulk_into(struct hed_dec *d, void *p, uint64_t room);
void hed_get_text_into(struct hed_dec *d, char *s, uint64_t room);
