/* The parts of base/pack.h that are too large to be inline. */
#include "base/pack.h"

#include <stdalign.h>

#include "base/arena.h"

static void
fail_decoder(struct hed_dec *d, int err)
{
    d->err = d->err ? d->err : err;
    d->at = d->end;
}

uint32_t
hed_put_items(struct hed_enc *e, const void *p, uint64_t count)
{
    if (!p || count >= HED_PACK_NULL32) {
        hed_put_u32(e, p ? HED_PACK_NULL32 - 1 : HED_PACK_NULL32);
        hed_put_u32(e, 0);
        return 0;
    }

    const uint32_t stored = count < e->max_items ? (uint32_t)count : e->max_items;

    hed_put_u32(e, (uint32_t)count);
    hed_put_u32(e, stored);
    /* An item is a byte at least: millions that cannot fit are not tried one by one. */
    if (stored > (size_t)(e->end - e->at)) {
        e->err = HED_ELIMIT;
        e->end = e->at;
    }
    return e->err ? 0 : stored;
}

void
hed_put_bulk(struct hed_enc *e, const void *p, uint64_t count)
{
    const uint32_t stored = !p ? 0 : count < e->max_bytes ? (uint32_t)count : e->max_bytes;

    hed_put_u64(e, p ? count : HED_PACK_NULL64);
    hed_put_u32(e, stored);
    if (stored)
        hed_put_raw(e, p, stored);
}

void
hed_put_textbuf(struct hed_enc *e, const char *s, uint64_t count)
{
    const size_t limit = count < HED_PACK_NULL32 ? (size_t)count : HED_PACK_NULL32 - 1;
    const uint32_t length = s ? (uint32_t)strnlen(s, limit) : 0;
    const uint32_t stored = length < e->max_text ? length : e->max_text;

    hed_put_u32(e, s ? length : HED_PACK_NULL32);
    hed_put_u32(e, stored);
    if (stored)
        hed_put_raw(e, s, stored);
}

void
hed_put_text(struct hed_enc *e, const char *s)
{
    hed_put_textbuf(e, s, UINT64_MAX);
}

void
hed_get_bad(struct hed_dec *d)
{
    fail_decoder(d, HED_EFORMAT);
}

void
hed_get_case(struct hed_dec *d, uint16_t which)
{
    const uint16_t found = hed_get_u16(d);

    if (found != which)
        fail_decoder(d, HED_EFORMAT);
}

uint32_t
hed_get_peek(const struct hed_dec *d, size_t skip)
{
    struct hed_dec ahead = *d;

    (void)hed_get_span(&ahead, skip);
    return hed_get_u32(&ahead);
}

void
hed_get_same(struct hed_dec *d, const void *p, uint32_t n, uint64_t count)
{
    if (p && n != count)
        fail_decoder(d, HED_EFORMAT);
}

const uint8_t *
hed_get_span(struct hed_dec *d, size_t n)
{
    const uint8_t *p = d->at;

    if ((size_t)(d->end - d->at) < n) {
        fail_decoder(d, HED_ETRUNC);
        return NULL;
    }
    d->at += n;
    return p;
}

void *
hed_get_room(struct hed_dec *d, uint64_t count, size_t size)
{
    size_t bytes;

    if (d->err)
        return NULL;
    if (!d->arena || __builtin_mul_overflow(count, size, &bytes)) {
        fail_decoder(d, HED_ELIMIT);
        return NULL;
    }

    void *p = hed_arena_alloc(d->arena, bytes, alignof(max_align_t) < 128 ? 128 : 256);

    if (!p) {
        fail_decoder(d, HED_ELIMIT);
        return NULL;
    }
    memset(p, 0, bytes);
    return p;
}

/* Reads count and stored; stored is what follows. -1 for NULL. */
static int64_t
whole_count(struct hed_dec *d)
{
    const uint32_t count = hed_get_u32(d);
    const uint32_t stored = hed_get_u32(d);

    if (d->err)
        return 0;
    if (count == HED_PACK_NULL32 && stored == 0)
        return -1;
    if (count != stored || stored > (size_t)(d->end - d->at)) {
        fail_decoder(d, HED_EFORMAT);
        return 0;
    }
    return stored;
}

void *
hed_get_items(struct hed_dec *d, size_t size, uint32_t *n)
{
    const int64_t count = whole_count(d);
    void *p = count < 0 ? NULL : hed_get_room(d, (uint64_t)count, size);

    *n = p ? (uint32_t)count : 0;
    return p;
}

uint32_t
hed_get_count_into(struct hed_dec *d, uint64_t room)
{
    const int64_t count = whole_count(d);

    if (count > 0 && (uint64_t)count > room) {
        fail_decoder(d, HED_EFORMAT);
        return 0;
    }
    return count < 0 ? 0 : (uint32_t)count;
}

/* The bytes of bulk data where they lie; NULL for NULL and after an error. */
static const uint8_t *
bulk_span(struct hed_dec *d, uint32_t *n)
{
    const uint64_t count = hed_get_u64(d);
    const uint32_t stored = hed_get_u32(d);

    *n = 0;
    if (d->err || (count == HED_PACK_NULL64 && stored == 0))
        return NULL;
    if (count != stored) {
        fail_decoder(d, HED_EFORMAT);
        return NULL;
    }

    const uint8_t *p = hed_get_span(d, stored);

    *n = p ? stored : 0;
    return p;
}

void *
hed_get_bulk(struct hed_dec *d, uint32_t *n)
{
    const uint8_t *from = bulk_span(d, n);
    void *p = from ? hed_get_room(d, *n, 1) : NULL;

    if (p)
        memcpy(p, from, *n);
    else
        *n = 0;
    return p;
}

uint32_t
hed_get_bulk_into(struct hed_dec *d, void *p, uint64_t room)
{
    uint32_t n;
    const uint8_t *from = bulk_span(d, &n);

    if (from && n > room)
        fail_decoder(d, HED_EFORMAT);
    else if (from)
        memcpy(p, from, n);
    return d->err ? 0 : n;
}

/* The characters where they lie; NULL for NULL and after an error. */
static const uint8_t *
text_span(struct hed_dec *d, size_t *n)
{
    const int64_t count = whole_count(d);

    *n = count > 0 ? (size_t)count : 0;
    return d->err || count < 0 ? NULL : hed_get_span(d, *n);
}

char *
hed_get_text(struct hed_dec *d)
{
    size_t n;
    const uint8_t *from = text_span(d, &n);
    char *s = from ? hed_get_room(d, n + 1, 1) : NULL;

    if (s)
        memcpy(s, from, n);
    return s;
}

void
hed_get_text_into(struct hed_dec *d, char *s, uint64_t room)
{
    size_t n;
    const uint8_t *from = text_span(d, &n);

    if (!from)
        return;
    if (n >= room) {
        fail_decoder(d, HED_EFORMAT);
        return;
    }
    memcpy(s, from, n);
    s[n] = 0;
}
