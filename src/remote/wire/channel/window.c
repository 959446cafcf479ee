/* Channels in the window that a guest and its host share. The transport vm: uses them.
 *
 *   worker: takes a piece of the window, clears its words ──where it is──> client: maps it
 *           <──1: mapped, or 0── if it could not, both go on with bytes over the connection
 *
 * The host decides where a piece lies; the guest only learns it. Rings and their checks are those
 * of shared memory (ring.h). A side that sleeps is woken by a byte over the connection
 * (doorbell.h), which also shows whether the peer is still there.
 *
 * A guest without the device, or whose user may not map it, still has the connection, and so does a
 * guest whose window is full. What it loses is speed, and that pinned memory is shared.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/wire/channel/shm.h"
#include "remote/wire/socket.h"
#include "remote/wire/window.h"

#define PIECE_BYTES (HED_SHM_SIZE + HED_CHANNEL_SLOTS)
/* How long a worker may take to offer a piece: as long as for its welcome. A client in an emulated
 * guest on a busy machine may need some seconds to map it. */
#define OFFER_MS 60000
#define MAPPED_MS 30000

_Static_assert(PIECE_BYTES % HED_WINDOW_UNIT == 0, "a piece is a number of units");
_Static_assert(sizeof(struct hed_end) % 256 != HED_DOORBELL_BYTE, "last words are no ring");

struct place {       /* what the worker tells the client */
    uint64_t offset; /* of the piece; 0: there is none */
    uint64_t size;   /* of the piece */
    uint8_t id[16];  /* of the window */
};

struct window_channel {
    struct hed_shm_channel shm; /* must come first */
    struct hed_window window;   /* the descriptor is the client's own, or the worker's */
    uint64_t piece;             /* the worker's: where it begins; 0 if it has none */
    bool client;
};

static struct window_channel *
window_of(struct hed_channel *ch)
{
    return (struct window_channel *)ch;
}

static void
window_free(struct hed_channel *ch)
{
    struct window_channel *c = window_of(ch);

    if (c->shm.memory)
        (void)munmap(c->shm.memory, PIECE_BYTES);
    if (c->piece)
        c->window.give(c->window.arg, c->piece, PIECE_BYTES);
    if (c->client && c->window.fd >= 0)
        (void)close(c->window.fd);
    free(c);
}

static int
map_piece(struct window_channel *c, uint64_t offset)
{
    void *p =
        mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, c->window.fd, (off_t)offset);

    if (p == MAP_FAILED)
        return hed_err_from_errno(errno);
    c->shm.memory = p;
    return 0;
}

/* ---- the two sides agree on a piece ---------------------------------------------------------- */

/* The worker's side. HED_ENOTFOUND if the channel cannot be in the window; then, and after any
 * other error, window_free() gives the piece back. */
static int
offer_piece(struct window_channel *c, struct hed_conn *conn)
{
    struct place place = {0};
    uint32_t mapped = 0;
    int err = 0;

    if (conn->window && conn->window->fd >= 0) {
        c->window = *conn->window;
        c->piece = c->window.take(c->window.arg, PIECE_BYTES);
        if (!c->piece)
            hed_warn(WIRE, "the window of this guest is full, so a channel does not use it");
    }
    if (c->piece && (err = map_piece(c, c->piece)) != 0)
        hed_warn(WIRE, "cannot map the window of this guest: %s", hed_err_text(err));
    if (c->shm.memory) {
        memset(c->shm.memory, 0, HED_SHM_WORDS); /* an earlier session's, and its slots */
        memset((uint8_t *)c->shm.memory + HED_SHM_SIZE, 0, HED_CHANNEL_SLOTS);
        place.offset = c->piece;
        place.size = PIECE_BYTES;
        memcpy(place.id, c->window.id, sizeof place.id);
    }
    err = hed_conn_write(conn, &place, sizeof place);
    if (!err && place.offset)
        err = hed_conn_read(conn, &mapped, sizeof mapped, MAPPED_MS);
    return err ? err : mapped ? 0 : HED_ENOTFOUND;
}

/* The client was told where its window is. */
static int
share_window(struct window_channel *c, const struct hed_window *window)
{
    c->window = *window;
    c->window.fd = fcntl(window->fd, F_DUPFD_CLOEXEC, 0);
    return c->window.fd < 0 ? HED_ENOMEM : 0;
}

/* The client's side. */
static int
accept_piece(struct window_channel *c, struct hed_conn *conn)
{
    struct hed_why why = {""};
    struct place place;
    uint32_t mapped = 0;
    int err = hed_conn_read(conn, &place, sizeof place, OFFER_MS);

    if (err || !place.offset)
        return err ? err : HED_ENOTFOUND;
    err = conn->window && memcmp(conn->window->id, place.id, sizeof place.id) == 0
              ? share_window(c, conn->window)
              : hed_window_open("", place.id, &c->window, &why);
    if (!err && (place.size != PIECE_BYTES || place.offset % HED_WINDOW_UNIT ||
                 place.offset > c->window.size || PIECE_BYTES > c->window.size - place.offset))
        return HED_EFORMAT;
    if (!err && (err = map_piece(c, place.offset)) != 0)
        hed_why_set(&why, "%s", hed_err_text(err));
    if (err)
        hed_warn(WIRE, "the window that this guest shares with its host cannot be used: %s",
                 why.text);
    mapped = err == 0;
    err = hed_conn_write(conn, &mapped, sizeof mapped);
    return err ? err : mapped ? 0 : HED_ENOTFOUND;
}

static void
listen_to_doorbell(struct window_channel *c, struct hed_conn *conn)
{
    struct hed_shm_channel *s = &c->shm;
    struct hed_ring *const rings[] = {&s->out, &s->in, &s->bulk_out, &s->bulk_in};

    hed_doorbell_init(&s->doorbell, conn);
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++)
        /* Short sleeps spare the guest its rings, which cost it far more than a message. */
        hed_waiter_listen(&rings[i]->waiter, &s->doorbell, !c->client && rings[i] == &s->in);
}

static int
window_create(struct hed_conn *conn, bool client, struct hed_channel **out, struct hed_why *why)
{
    struct window_channel *c = calloc(1, sizeof *c);
    int err;

    if (!c)
        return HED_ENOMEM;
    c->client = client;
    c->window.fd = -1;
    err = client ? accept_piece(c, conn) : offer_piece(c, conn);
    if (!err) {
        hed_rings_init(&c->shm, conn, client);
        listen_to_doorbell(c, conn);
        *out = &c->shm.channel;
        return 0;
    }
    window_free(&c->shm.channel);
    if (err != HED_ENOTFOUND) {
        hed_why_set(why, "the two sides did not agree on a piece of the guest's window: %s",
                    hed_err_text(err));
        return err;
    }
    err = hed_channel_stream.create(conn, client, out, why);
    if (!err)
        (*out)->ops = &hed_channel_stream;
    return err;
}

static const struct hed_window *
window_and_slots(struct hed_channel *ch, void **slots)
{
    struct window_channel *c = window_of(ch);

    *slots = (uint8_t *)c->shm.memory + HED_SHM_SIZE;
    return &c->window;
}

const struct hed_channel_ops hed_channel_window = {
    .create = window_create,
    .free = window_free,
    .shares = true,
    .window = window_and_slots,
    HED_RINGS_OPS,
};
