/* Rings in shared memory. See ring.h for the positions and their invariants. */
#include "remote/wire/channel/ring.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/wire/wire.h"

#define PIECE (256 << 10) /* bytes of bulk that the reader is told at once */

static __attribute__((cold, noinline)) int
ring_fail(struct hed_ring *r, int error, const char *what)
{
    if (!r->error && error == HED_EFORMAT)
        hed_warn(WIRE, "the peer wrote nonsense into shared memory: %s", what);
    if (!r->error)
        r->error = error;
    return r->error;
}

int
hed_spans_add(struct hed_spans *s, size_t n)
{
    if (s->count == HED_RING_SPANS)
        return HED_ELIMIT;
    s->size[(s->first + s->count) % HED_RING_SPANS] = (uint32_t)n;
    s->count++;
    return 0;
}

int
hed_spans_take(struct hed_spans *s, size_t n)
{
    if (s->count == 0)
        return HED_ESTATE;
    if (n > s->size[s->first] || (n < s->size[s->first] && s->count > 1))
        return HED_EINVAL;
    s->first = (s->first + 1) % HED_RING_SPANS;
    s->count--;
    return 0;
}

void
hed_ring_init(struct hed_ring *r, struct hed_ring_words *words, void *bytes, uint64_t size,
              uint64_t unit, struct hed_conn *conn)
{
    *r = (struct hed_ring){.words = words, .bytes = bytes, .size = size, .unit = unit};
    hed_waiter_init(&r->waiter, conn);
}

/* ---- what the peer says ---------------------------------------------------------------------- */

/* Reads the tail, for the reader. */
static int
read_tail(struct hed_ring *r)
{
    /* Acquire: pairs with the writer's hed_wait_tell(); what was written before is visible. */
    const uint64_t tail = atomic_load_explicit(&r->words->tail, memory_order_acquire);

    if (tail - r->shown > r->size || tail - r->shown < r->peer - r->shown || tail % r->unit)
        return ring_fail(r, HED_EFORMAT, "an impossible tail");
    if (r->waiter.doorbell)
        hed_doorbell_loaded();
    r->peer = tail;
    return 0;
}

/* Reads the head, for the writer. */
static int
read_head(struct hed_ring *r)
{
    /* Acquire: pairs with the reader's hed_wait_tell(); the reader has read what was there. */
    const uint64_t head = atomic_load_explicit(&r->words->head, memory_order_acquire);

    if (r->shown - head > r->size || r->shown - head > r->shown - r->peer || head % r->unit)
        return ring_fail(r, HED_EFORMAT, "an impossible head");
    if (r->waiter.doorbell)
        hed_doorbell_loaded();
    r->peer = head;
    return 0;
}

static inline void
show_tail(struct hed_ring *r, uint64_t tail, bool can_wait)
{
    r->shown = tail;
    hed_wait_tell(&r->words->tail, tail, &r->words->reader_parked, can_wait, r->waiter.doorbell);
}

static inline void
show_head(struct hed_ring *r, uint64_t head)
{
    r->shown = head;
    hed_wait_tell(&r->words->head, head, &r->words->writer_parked, false, r->waiter.doorbell);
}

/* Waits until the peer's position differs from the one read last. A timeout is not a failure of the
 * ring. */
static int
wait_for_peer(struct hed_ring *r, bool reads, int timeout_ms)
{
    struct hed_ring_words *w = r->words;
    const int e = hed_wait_change(&r->waiter, reads ? &w->tail : &w->head, r->peer,
                                  reads ? &w->reader_parked : &w->writer_parked, timeout_ms);

    if (e == 0)
        return reads ? read_tail(r) : read_head(r);
    return e == HED_ETIME ? e : ring_fail(r, e, "");
}

/* Waits until the writer may write up to position `end`. */
static __attribute__((noinline)) int
wait_for_room(struct hed_ring *r, uint64_t end)
{
    int e = read_head(r);

    while (e == 0 && end - r->peer > r->size)
        e = wait_for_peer(r, false, -1);
    return e;
}

/* ---- messages -------------------------------------------------------------------------------- */

void *
hed_ring_begin(struct hed_ring *r, uint32_t size)
{
    const uint64_t n = hed_align_up(hed_max(size, sizeof(struct hed_msg)), HED_MSG_ALIGN);
    const uint64_t offset = r->mine & (r->size - 1);
    const uint64_t left = r->size - offset;
    const uint64_t begin = n <= left ? r->mine : r->mine + left;

    if (__builtin_expect(r->error || size > HED_MSG_MAX, 0))
        return NULL;
    if (__builtin_expect(begin + n - r->peer > r->size, 0) && wait_for_room(r, begin + n))
        return NULL;
    if (begin != r->mine) {
        const uint32_t pad = HED_RING_PAD;

        memcpy(r->bytes + offset, &pad, sizeof pad);
    }
    r->begun = begin;
    r->room = (uint32_t)n;
    return r->bytes + (begin & (r->size - 1));
}

/* Prefetches the cache lines of the next message. The peer read them last, so getting them takes
 * longer than filling them, and there is time until then. */
static inline void
prefetch_for_writer(const struct hed_ring *r)
{
    for (unsigned line = 0; line < 4; line++)
        __builtin_prefetch(r->bytes + ((r->mine + line * 64) & (r->size - 1)), 1);
}

int
hed_ring_end(struct hed_ring *r, uint32_t size, bool urgent)
{
    if (r->error)
        return r->error;
    if (size < sizeof(struct hed_msg) || hed_align_up(size, HED_MSG_ALIGN) > r->room)
        return r->room ? HED_EINVAL : HED_ESTATE;
    memcpy(r->bytes + (r->begun & (r->size - 1)), &size, sizeof size);
    r->mine = r->begun + hed_align_up(size, HED_MSG_ALIGN);
    r->room = 0;
    /* A napping reader is not woken while there is room. The head that was read last is good enough
     * for that, unless it is old. An impossible head is an error of the next message. */
    if (!urgent && r->mine - r->peer >= r->size / 2)
        (void)read_head(r);
    show_tail(r, r->mine, !urgent && r->mine - r->peer < r->size / 2);
    prefetch_for_writer(r);
    return 0;
}

/* The size of what begins at the reader's position, of which there is some. Relaxed: read_tail()
 * has ordered it, and any value is checked. Each size is read once. */
static inline uint32_t
read_size(const struct hed_ring *r)
{
    const void *at = r->bytes + (r->mine & (r->size - 1));

    return atomic_load_explicit((const _Atomic uint32_t *)at, memory_order_relaxed);
}

/* Skips a pad. A pad is never alone, and never fills the ring. */
static int
skip_pad(struct hed_ring *r)
{
    const uint64_t offset = r->mine & (r->size - 1);
    const uint64_t left = r->size - offset;

    if (offset == 0 || left >= r->peer - r->mine)
        return ring_fail(r, HED_EFORMAT, "an impossible pad");
    r->mine += left;
    return 0;
}

/* Prefetches the next message, which is there already: its cache lines still belong to the writer,
 * and arrive while the current message is handled. A message that is still being written is left to
 * the writer. */
static inline void
prefetch_for_reader(const struct hed_ring *r)
{
    for (unsigned line = 0; line < 3; line++)
        __builtin_prefetch(r->bytes + ((r->mine + line * 64) & (r->size - 1)), 0);
}

static int
take_message(struct hed_ring *r, uint32_t size, void *into)
{
    const uint64_t offset = r->mine & (r->size - 1);
    const uint64_t length = hed_align_up(size, HED_MSG_ALIGN);

    if (size < sizeof(struct hed_msg) || size > HED_MSG_MAX)
        return ring_fail(r, HED_EFORMAT, "a message of a wrong size");
    if (length > r->peer - r->mine || length > r->size - offset)
        return ring_fail(r, HED_EFORMAT, "an incomplete message");
    memcpy(into, r->bytes + offset, size);
    memcpy(into, &size, sizeof size); /* it may have been changed meanwhile */
    r->mine += length;
    if (r->mine != r->peer)
        prefetch_for_reader(r);
    /* The writer is told rarely, because that costs a fence: once per quarter of the ring, and
     * before waiting. */
    if (r->mine - r->shown >= r->size / 4)
        show_head(r, r->mine);
    return 0;
}

int
hed_ring_next(struct hed_ring *r, int timeout_ms, void *into)
{
    int e = r->error;

    if (!e && r->mine == r->peer)
        e = read_tail(r);
    if (!e && r->mine == r->peer) {
        if (r->shown != r->mine)
            show_head(r, r->mine);
        e = wait_for_peer(r, true, timeout_ms);
    }
    if (e)
        return e;

    uint32_t size = read_size(r);

    if (size == HED_RING_PAD) {
        e = skip_pad(r);
        if (e)
            return e;
        size = read_size(r);
    }
    return take_message(r, size, into);
}

/* ---- bulk ------------------------------------------------------------------------------------ */

int
hed_ring_space(struct hed_ring *r, size_t want, void **p, size_t *n)
{
    const uint64_t offset = r->mine & (r->size - 1);

    if (r->error)
        return r->error;
    if (want == 0)
        return HED_EINVAL;
    /* The caller itself is filling all of the ring, so nobody can make room. */
    if (r->mine - r->shown == r->size)
        return HED_ESTATE;
    if (r->mine + hed_min(want, r->size - offset) - r->peer > r->size) {
        const int e = wait_for_room(r, r->mine + 1);

        if (e)
            return e;
    }

    const uint64_t room = r->size - (r->mine - r->peer);
    const uint64_t span = hed_min(hed_min(want, r->size - offset), room);
    const int e = hed_spans_add(&r->spans, span);

    if (e)
        return e;
    *p = r->bytes + offset;
    *n = span;
    r->mine += span;
    return 0;
}

int
hed_ring_put(struct hed_ring *r, size_t n)
{
    const int e = r->error ? r->error : hed_spans_take(&r->spans, n);

    if (e)
        return e;
    if (r->spans.count == 0)
        r->mine = r->shown + n;
    show_tail(r, r->shown + n, false);
    return 0;
}

int
hed_ring_write(struct hed_ring *r, const void *p, size_t n)
{
    const char *from = p;

    /* These bytes would overtake what the caller is still filling. */
    if (r->spans.count > 0)
        return HED_ESTATE;
    while (n > 0) {
        size_t span;
        void *to;
        int e = hed_ring_space(r, hed_min(n, PIECE), &to, &span);

        if (e)
            return e;
        memcpy(to, from, span);
        e = hed_ring_put(r, span);
        if (e)
            return e;
        from += span;
        n -= span;
    }
    return 0;
}

/* Takes the next span that has arrived, and waits for it if needed. */
static int
take_span(struct hed_ring *r, size_t most, void **p, size_t *n)
{
    const uint64_t offset = r->mine & (r->size - 1);
    int e = r->error;

    if (!e && most == 0)
        e = HED_EINVAL;
    /* The caller itself uses all of the ring, so nothing more can arrive. */
    if (!e && r->mine - r->shown == r->size)
        e = HED_ESTATE;
    if (!e && r->taken.count == HED_RING_SPANS)
        e = HED_ELIMIT;
    if (!e && r->peer - r->mine < hed_min(most, r->size - offset))
        e = read_tail(r);
    if (!e && r->peer == r->mine)
        e = wait_for_peer(r, true, -1);
    if (e)
        return e;
    *p = r->bytes + offset;
    *n = hed_min(hed_min(most, r->size - offset), r->peer - r->mine);
    r->mine += *n;
    return 0;
}

/* Notes that the caller uses the last n bytes taken, or that it has finished with them. */
static void
note_span_taken(struct hed_taken *t, size_t n, bool finished)
{
    const uint32_t last = (t->first + t->count - 1) % HED_RING_SPANS;

    if (t->count > 0 && t->span[last].finished == finished) {
        t->span[last].size += (uint32_t)n;
        return;
    }
    t->span[(last + 1) % HED_RING_SPANS].size = (uint32_t)n;
    t->span[(last + 1) % HED_RING_SPANS].finished = finished;
    t->count++;
}

/* The caller has finished with the first n bytes that it uses. Gives them back to the writer,
 * together with what was finished before but lay after them. */
static int
give_back_spans(struct hed_ring *r, uint64_t n)
{
    struct hed_taken *t = &r->taken;
    uint64_t freed = 0;

    while (t->count > 0 && (n > 0 || t->span[t->first].finished)) {
        const bool finished = t->span[t->first].finished;
        const uint32_t size = t->span[t->first].size;
        const uint32_t some = finished ? size : (uint32_t)hed_min(n, size);

        freed += some;
        n -= finished ? 0 : some;
        t->span[t->first].size -= some;
        if (some < size)
            break;
        t->first = (t->first + 1) % HED_RING_SPANS;
        t->count--;
    }
    if (freed > 0)
        show_head(r, r->shown + freed);
    return n > 0 ? HED_EINVAL : 0;
}

int
hed_ring_peek(struct hed_ring *r, size_t most, void **p, size_t *n)
{
    const int e = take_span(r, most, p, n);

    if (!e)
        note_span_taken(&r->taken, *n, false);
    return e;
}

int
hed_ring_done(struct hed_ring *r, size_t n)
{
    return r->error ? r->error : give_back_spans(r, n);
}

int
hed_ring_read(struct hed_ring *r, void *p, size_t n)
{
    char *to = p;

    while (n > 0) {
        size_t span;
        void *from;
        const int e = take_span(r, hed_min(n, PIECE), &from, &span);

        if (e)
            return e;
        memcpy(to, from, span);
        note_span_taken(&r->taken, span, true);
        give_back_spans(r, 0);
        to += span;
        n -= span;
    }
    return 0;
}
