/* What channels over shared memory do once they have it: four rings, whoever made the memory. shm.c
 * and window.c create the channels.
 */
#include "remote/wire/channel/shm.h"

#include "base/err.h"

void
hed_rings_init(struct hed_shm_channel *s, struct hed_conn *conn, bool client)
{
    struct hed_ring_words *words = s->memory->rings;
    uint8_t *call = (uint8_t *)s->memory + HED_SHM_WORDS;
    uint8_t *answer = call + HED_SHM_CALL_SIZE;
    uint8_t *bulk_in = answer + HED_SHM_ANSWER_SIZE;
    uint8_t *bulk_out = bulk_in + HED_CHANNEL_STAGED;

    hed_ring_init(client ? &s->out : &s->in, &words[HED_SHM_CALL], call, HED_SHM_CALL_SIZE,
                  HED_MSG_ALIGN, conn);
    hed_ring_init(client ? &s->in : &s->out, &words[HED_SHM_ANSWER], answer, HED_SHM_ANSWER_SIZE,
                  HED_MSG_ALIGN, conn);
    hed_ring_init(client ? &s->bulk_out : &s->bulk_in, &words[HED_SHM_BULK_IN], bulk_in,
                  HED_CHANNEL_STAGED, 1, conn);
    hed_ring_init(client ? &s->bulk_in : &s->bulk_out, &words[HED_SHM_BULK_OUT], bulk_out,
                  HED_CHANNEL_STAGED, 1, conn);
    /* A client sends many messages that can wait, but a worker's answers cannot. A client waits for
     * the device, often for the same work again; a worker waits for the program to do something. */
    s->in.waiter.naps = !client && s->in.waiter.few;
    s->in.waiter.expects = client && !s->in.waiter.few;
}

void
hed_rings_forked(struct hed_channel *ch)
{
    struct hed_shm_channel *s = hed_shm_of(ch);

    s->out.error = s->in.error = s->bulk_out.error = s->bulk_in.error = HED_EIO;
}

/* ---- messages -------------------------------------------------------------------------------- */

void *
hed_rings_begin(struct hed_channel *ch, uint32_t size)
{
    return hed_ring_begin(&hed_shm_of(ch)->out, size);
}

int
hed_rings_end(struct hed_channel *ch, uint32_t size, bool urgent)
{
    return hed_ring_end(&hed_shm_of(ch)->out, size, urgent);
}

int
hed_rings_next(struct hed_channel *ch, int timeout_ms)
{
    return hed_ring_next(&hed_shm_of(ch)->in, timeout_ms, ch->message);
}

/* Relaxed: only the change matters. A client that scribbles over the count deceives itself. */
void
hed_rings_beat(struct hed_channel *ch)
{
    atomic_fetch_add_explicit(&hed_shm_of(ch)->memory->beats, 1, memory_order_relaxed);
}

int
hed_rings_patience(struct hed_channel *ch, int ms)
{
    struct hed_shm_channel *s = hed_shm_of(ch);
    struct hed_ring *const rings[] = {&s->out, &s->in, &s->bulk_out, &s->bulk_in};

    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++)
        hed_waiter_expect(&rings[i]->waiter, &s->memory->beats, (uint32_t)ms);
    return 0;
}

/* What kernels and answers go through may be full, or in the middle of a message. */
void
hed_rings_last(struct hed_channel *ch, const struct hed_end *end)
{
    (void)hed_conn_write_now(ch->conn, end, sizeof *end);
}

int
hed_rings_read_last(struct hed_channel *ch, struct hed_end *out)
{
    return hed_conn_read(ch->conn, out, sizeof *out, 0);
}

/* ---- bulk ------------------------------------------------------------------------------------ */

int
hed_rings_bulk_write(struct hed_channel *ch, const void *p, size_t n)
{
    return hed_ring_write(&hed_shm_of(ch)->bulk_out, p, n);
}

int
hed_rings_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n)
{
    return hed_ring_space(&hed_shm_of(ch)->bulk_out, want, p, n);
}

int
hed_rings_bulk_put(struct hed_channel *ch, size_t n)
{
    return hed_ring_put(&hed_shm_of(ch)->bulk_out, n);
}

int
hed_rings_bulk_read(struct hed_channel *ch, void *p, size_t n)
{
    return hed_ring_read(&hed_shm_of(ch)->bulk_in, p, n);
}

int
hed_rings_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n)
{
    return hed_ring_peek(&hed_shm_of(ch)->bulk_in, most, p, n);
}

int
hed_rings_bulk_done(struct hed_channel *ch, size_t n)
{
    return hed_ring_done(&hed_shm_of(ch)->bulk_in, n);
}

void *
hed_rings_bulk_area(struct hed_channel *ch, int direction)
{
    struct hed_shm_channel *s = hed_shm_of(ch);

    return direction ? s->bulk_out.bytes : s->bulk_in.bytes;
}
