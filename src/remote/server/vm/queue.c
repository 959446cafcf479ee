/* Split virtqueues, from the device's side. See queue.h. */
#include "remote/server/vm/queue.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/vm/memory.h"

/* ---- where it lies --------------------------------------------------------------------------- */

void
hed_virtq_init(struct hed_virtq *q)
{
    *q = (struct hed_virtq){.kick = -1, .call = -1};
}

void
hed_virtq_fini(struct hed_virtq *q)
{
    if (q->kick >= 0)
        (void)close(q->kick);
    if (q->call >= 0)
        (void)close(q->call);
    hed_virtq_init(q);
}

int
hed_virtq_place(struct hed_virtq *q, const struct hed_guest_memory *m, struct hed_why *why)
{
    const uint64_t n = q->size;

    /* Two bytes more than the rings: the words by which both sides say when to tell the other. */
    q->desc = hed_guest_at_user(m, q->desc_user, n * sizeof *q->desc, VRING_DESC_ALIGN_SIZE);
    q->avail = hed_guest_at_user(m, q->avail_user, sizeof *q->avail + (n + 1) * sizeof(uint16_t),
                                 VRING_AVAIL_ALIGN_SIZE);
    q->used = hed_guest_at_user(m, q->used_user,
                                sizeof *q->used + n * sizeof *q->used->ring + sizeof(uint16_t),
                                VRING_USED_ALIGN_SIZE);
    if (q->placed && n > 0 && q->desc && q->avail && q->used)
        return 0;
    q->desc = NULL;
    q->avail = NULL;
    q->used = NULL;
    hed_why_set(why,
                "a queue has no size, or is not in memory that QEMU shares; is share=on missing?");
    return HED_EFORMAT;
}

int
hed_virtq_start(struct hed_virtq *q, const struct hed_guest_memory *m, struct hed_why *why)
{
    const int err = hed_virtq_place(q, m, why);

    if (err)
        return err;
    q->seen = q->next;
    q->done = __atomic_load_n(&q->used->idx, __ATOMIC_RELAXED);
    q->shown = q->done;
    q->started = true;
    return 0;
}

void
hed_virtq_stop(struct hed_virtq *q)
{
    q->started = false;
    q->desc = NULL;
    q->avail = NULL;
    q->used = NULL;
}

bool
hed_virtq_is_live(const struct hed_virtq *q)
{
    return q->started && q->enabled && q->desc;
}

/* ---- chains ---------------------------------------------------------------------------------- */

struct table { /* of descriptors */
    const struct vring_desc *at;
    uint32_t size;
    bool indirect;
};

static int
chain_refuse(struct hed_why *why, const char *text)
{
    hed_why_set(why, "the guest's queue: %s", text);
    return HED_EFORMAT;
}

/* Adds a buffer. It may go over the border between two regions. */
static int
chain_add(struct hed_chain *c, const struct hed_guest_memory *m, uint64_t address, uint64_t n,
          struct hed_why *why)
{
    if (n > UINT64_MAX - address)
        return chain_refuse(why, "a buffer wraps around");
    while (n > 0) {
        uint64_t run = n;
        void *at = hed_guest_at(m, address, &run);

        if (!at)
            return chain_refuse(why, "a buffer is not in the guest's memory");
        if (c->count == HED_CHAIN_PARTS)
            return chain_refuse(why, "a chain has too many buffers");
        c->parts[c->count++] = (struct iovec){.iov_base = at, .iov_len = run};
        c->bytes += run;
        address += run;
        n -= run;
    }
    return 0;
}

static int
enter_table(struct table *t, const struct hed_guest_memory *m, const struct vring_desc *d,
            struct hed_why *why)
{
    uint64_t run = d->len;

    if (t->indirect || (d->flags & VRING_DESC_F_NEXT))
        return chain_refuse(why, "an indirect table in a table, or with something after it");
    if (d->len == 0 || d->len % sizeof *d != 0 || d->len / sizeof *d > HED_CHAIN_TABLE)
        return chain_refuse(why, "an indirect table has an impossible size");
    t->at = hed_guest_at(m, d->addr, &run);
    t->size = (uint32_t)(d->len / sizeof *d);
    t->indirect = true;
    return t->at && run == d->len ? 0 : chain_refuse(why, "a table is not in the guest's memory");
}

static int
chain_walk(const struct hed_virtq *q, const struct hed_guest_memory *m, bool writable,
           struct hed_chain *c, struct hed_why *why)
{
    struct table t = {.at = q->desc, .size = q->size};
    uint32_t index = c->head, steps = 0;
    struct vring_desc d;
    int err;

    do {
        if (index >= t.size || steps++ == t.size)
            return chain_refuse(why, "a chain leaves its table, or is a loop");
        hed_guest_copy(&d, (const uint8_t *)t.at + index * sizeof d, sizeof d);
        if ((d.flags & VRING_DESC_F_INDIRECT) && q->indirect) {
            err = enter_table(&t, m, &d, why);
            if (err)
                return err;
            index = 0;
            steps = 0;
            d.flags = VRING_DESC_F_NEXT;
            continue;
        }
        if ((d.flags & VRING_DESC_F_INDIRECT) || !(d.flags & VRING_DESC_F_WRITE) != !writable)
            return chain_refuse(why, "a buffer of a kind that this queue does not have");
        err = chain_add(c, m, d.addr, d.len, why);
        if (err)
            return err;
        index = d.next;
    } while (d.flags & VRING_DESC_F_NEXT);
    return 0;
}

/* Is there one so far ahead? 1, 0, or an error. */
static int
chain_is_there(struct hed_virtq *q, uint32_t ahead, struct hed_why *why)
{
    if ((uint16_t)(q->seen - q->next) > ahead)
        return 1;
    /* Acquire: the guest has written the ring's entry and the descriptors before. */
    q->seen = __atomic_load_n(&q->avail->idx, __ATOMIC_ACQUIRE);
    if ((uint16_t)(q->seen - q->next) > q->size)
        return chain_refuse(why, "its index jumps");
    return (uint16_t)(q->seen - q->next) > ahead;
}

int
hed_virtq_peek(struct hed_virtq *q, const struct hed_guest_memory *m, uint32_t ahead, bool writable,
               struct hed_chain *out, struct hed_why *why)
{
    if (!hed_virtq_is_live(q))
        return 0;

    const int there = chain_is_there(q, ahead, why);

    if (there != 1)
        return there;
    out->head =
        __atomic_load_n(&q->avail->ring[(q->next + ahead) & (q->size - 1)], __ATOMIC_RELAXED);
    out->count = 0;
    out->bytes = 0;

    const int err = chain_walk(q, m, writable, out, why);

    return err ? err : 1;
}

/* ---- back to the guest ----------------------------------------------------------------------- */

void
hed_virtq_use(struct hed_virtq *q, const struct hed_chain *c, uint32_t written)
{
    q->used->ring[q->done & (q->size - 1)] =
        (struct vring_used_elem){.id = c->head, .len = written};
    q->done++;
    q->next++;
}

/* The word after each ring, with VIRTIO_RING_F_EVENT_IDX: at which index to tell. */
static uint16_t *
used_event(const struct hed_virtq *q)
{
    return &q->avail->ring[q->size];
}

static uint16_t *
avail_event(const struct hed_virtq *q)
{
    return (uint16_t *)&q->used->ring[q->size];
}

void
hed_virtq_call(const struct hed_virtq *q)
{
    const uint64_t one = 1;

    /* A full counter has told already. */
    if (q->call >= 0 && write(q->call, &one, sizeof one) < 0)
        errno = 0;
}

void
hed_virtq_publish(struct hed_virtq *q)
{
    const uint16_t before = q->shown;
    bool wanted;

    if (!hed_virtq_is_live(q) || q->done == before)
        return;
    /* Release: the guest reads the ring's entries and the buffers after it. */
    __atomic_store_n(&q->used->idx, q->done, __ATOMIC_RELEASE);
    q->shown = q->done;
    /* The guest changes its wish and then looks at the index; we do it the other way round. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (q->events)
        wanted =
            vring_need_event(__atomic_load_n(used_event(q), __ATOMIC_RELAXED), q->done, before);
    else
        wanted =
            !(__atomic_load_n(&q->avail->flags, __ATOMIC_RELAXED) & VRING_AVAIL_F_NO_INTERRUPT);
    if (wanted)
        hed_virtq_call(q);
}

bool
hed_virtq_want_kicks(struct hed_virtq *q, bool wanted)
{
    if (!hed_virtq_is_live(q))
        return false;
    /* With events, an old index is the wish for none. */
    if (!q->events)
        __atomic_store_n(&q->used->flags, wanted ? 0 : VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED);
    else if (wanted)
        __atomic_store_n(avail_event(q), q->next, __ATOMIC_RELAXED);
    if (!wanted)
        return false;
    /* The guest writes its index and then looks whether we want to know. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&q->avail->idx, __ATOMIC_ACQUIRE) != q->next;
}

/* ---- bytes of a chain ------------------------------------------------------------------------ */

int
hed_chain_slice(const struct hed_chain *c, size_t offset, size_t n, struct iovec *out)
{
    int count = 0;

    for (uint32_t i = 0; i < c->count && n > 0; i++) {
        const struct iovec *p = &c->parts[i];

        if (offset >= p->iov_len) {
            offset -= p->iov_len;
            continue;
        }

        const size_t here = p->iov_len - offset < n ? p->iov_len - offset : n;

        out[count++] = (struct iovec){.iov_base = (uint8_t *)p->iov_base + offset, .iov_len = here};
        offset = 0;
        n -= here;
    }
    return count;
}

void
hed_chain_read(const struct hed_chain *c, size_t offset, void *to, size_t n)
{
    struct iovec parts[HED_CHAIN_PARTS];
    const int count = hed_chain_slice(c, offset, n, parts);
    uint8_t *at = to;

    for (int i = 0; i < count; at += parts[i++].iov_len)
        hed_guest_copy(at, parts[i].iov_base, parts[i].iov_len);
}

void
hed_chain_write(const struct hed_chain *c, size_t offset, const void *from, size_t n)
{
    struct iovec parts[HED_CHAIN_PARTS];
    const int count = hed_chain_slice(c, offset, n, parts);
    const uint8_t *at = from;

    for (int i = 0; i < count; at += parts[i++].iov_len)
        memcpy(parts[i].iov_base, at, parts[i].iov_len);
}
