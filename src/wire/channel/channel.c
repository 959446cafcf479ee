/* Channels: made, ended, and over shared memory. What goes over a socket is in channel_socket.c.
 *
 * The client makes the memory, seals its size and sends it; the worker checks the seals and the
 * size before it maps it, so that the memory cannot be pulled away under it. */
#include "wire/channel/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"
#include "wire/channel/parts.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TAKE_MS 10000 /* how long the worker waits for the memory */

/* ---- the memory ------------------------------------------------------------------------------ */

static int
make_memory(int *out, struct hed_why *why)
{
    const int fd = memfd_create("heddle-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, HED_CHANNEL_SHARED) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0) {
        *out = fd;
        return 0;
    }

    const int e = hed_err_from_errno(errno);

    hed_why_set(why, "shared memory for a channel: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return e;
}

/* Is it memory that stays as it is? Huge pages may turn out not to be there when they are touched:
 * it must be of the ordinary kind. */
static int
check_memory(int fd, struct hed_why *why)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    struct statfs f;
    struct stat s;

    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &s) || !S_ISREG(s.st_mode) ||
        s.st_size != HED_CHANNEL_SHARED || fstatfs(fd, &f) || f.f_type != TMPFS_MAGIC) {
        hed_why_set(why, "what the client sent is not the memory of a channel");
        return HED_EFORMAT;
    }
    return 0;
}

static int
map_memory(struct hed_channel *ch, int fd, struct hed_why *why)
{
    void *p = mmap(NULL, HED_CHANNEL_SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED) {
        hed_why_set(why, "mapping a channel: %s", strerror(errno));
        return hed_err_from_errno(errno);
    }
    ch->shared = p;
    return 0;
}

static void
init_rings(struct hed_channel *ch, bool client)
{
    struct hed_ring_words *words = ((struct hed_channel_shared *)(void *)ch->shared)->rings;
    uint8_t *call = ch->shared + HED_CHANNEL_WORDS;
    uint8_t *answer = call + HED_CHANNEL_CALL_SIZE;
    uint8_t *bulk_in = answer + HED_CHANNEL_ANSWER_SIZE;
    uint8_t *bulk_out = bulk_in + HED_CHANNEL_STAGED;

    hed_ring_init(client ? &ch->out : &ch->in, &words[HED_CHANNEL_CALL], call,
                  HED_CHANNEL_CALL_SIZE, HED_MSG_ALIGN, ch->conn);
    hed_ring_init(client ? &ch->in : &ch->out, &words[HED_CHANNEL_ANSWER], answer,
                  HED_CHANNEL_ANSWER_SIZE, HED_MSG_ALIGN, ch->conn);
    hed_ring_init(client ? &ch->bulk_out : &ch->bulk_in, &words[HED_CHANNEL_BULK_IN], bulk_in,
                  HED_CHANNEL_STAGED, 1, ch->conn);
    hed_ring_init(client ? &ch->bulk_in : &ch->bulk_out, &words[HED_CHANNEL_BULK_OUT], bulk_out,
                  HED_CHANNEL_STAGED, 1, ch->conn);
}

/* ---- making and ending ----------------------------------------------------------------------- */

static int
init_shared(struct hed_channel *ch, bool client, struct hed_why *why)
{
    int fd = -1;
    int e;

    if (client) {
        e = make_memory(&fd, why);
    } else {
        e = hed_conn_take_fds(ch->conn, &fd, 1, TAKE_MS);
        if (e)
            hed_why_set(why, "the memory of a channel did not come: %s", hed_err_text(e));
        else
            e = check_memory(fd, why);
    }
    if (!e)
        e = map_memory(ch, fd, why);
    if (!e && client) {
        e = hed_conn_send_fds(ch->conn, &fd, 1);
        if (e)
            hed_why_set(why, "sending the memory of a channel: %s", hed_err_text(e));
    }
    if (fd >= 0)
        close(fd);
    if (!e)
        init_rings(ch, client);
    return e;
}

static int
make(struct hed_conn *conn, bool shared, bool client, struct hed_channel **out, struct hed_why *why)
{
    struct hed_channel *ch = calloc(1, sizeof *ch);
    int e = HED_ENOMEM;

    if (!ch) {
        hed_conn_close(conn);
        hed_why_set(why, "out of memory");
        return HED_ENOMEM;
    }
    ch->conn = conn;
    hed_lock_init(&ch->outgoing.lock, HED_RANK_CHANNEL);
    ch->message = aligned_alloc(HED_MSG_ALIGN, HED_MSG_MAX);
    if (ch->message)
        e = shared ? init_shared(ch, client, why) : hed_channel_socket_init(ch);
    if (e == HED_ENOMEM)
        hed_why_set(why, "out of memory");
    if (e) {
        hed_channel_free(ch);
        return e;
    }
    *out = ch;
    return 0;
}

int
hed_channel_create(struct hed_conn *conn, bool shared, struct hed_channel **out,
                   struct hed_why *why)
{
    return make(conn, shared, true, out, why);
}

int
hed_channel_accept(struct hed_conn *conn, bool shared, struct hed_channel **out,
                   struct hed_why *why)
{
    const int err = make(conn, shared, false, out, why);

    /* A client sends much that can wait; a worker's answers never can. */
    if (!err && shared)
        (*out)->in.waiter.naps = (*out)->in.waiter.few;
    return err;
}

/* The peer may sleep: it shall find out now that nobody is there any more. */
static void
wake_peer(struct hed_channel *ch)
{
    hed_wait_leave(&ch->out.words->reader_parked);
    hed_wait_leave(&ch->bulk_out.words->reader_parked);
    hed_wait_leave(&ch->in.words->writer_parked);
    hed_wait_leave(&ch->bulk_in.words->writer_parked);
}

void
hed_channel_free(struct hed_channel *ch)
{
    if (!ch)
        return;

    const bool tells = ch->conn && ch->out.words;

    hed_conn_close(ch->conn);
    if (tells)
        wake_peer(ch);
    if (ch->shared)
        munmap(ch->shared, HED_CHANNEL_SHARED);
    hed_channel_socket_fini(ch);
    hed_lock_fini(&ch->outgoing.lock);
    free(ch->message);
    free(ch);
}

void
hed_channel_forked(struct hed_channel *ch)
{
    if (!ch || !ch->conn)
        return;
    hed_conn_forget(ch->conn);
    ch->conn = NULL;
    ch->out.error = ch->in.error = ch->bulk_out.error = ch->bulk_in.error = HED_EIO;
    hed_channel_socket_failed(ch, HED_EIO);
}

struct hed_conn *
hed_channel_conn(struct hed_channel *ch)
{
    return ch->conn;
}

/* ---- messages -------------------------------------------------------------------------------- */

void *
hed_channel_begin(struct hed_channel *ch, uint32_t size)
{
    return ch->shared ? hed_ring_begin(&ch->out, size) : hed_channel_socket_begin(ch, size);
}

int
hed_channel_end(struct hed_channel *ch, uint32_t size, bool urgent)
{
    return ch->shared ? hed_ring_end(&ch->out, size, urgent)
                      : hed_channel_socket_end(ch, size, urgent);
}

int
hed_channel_flush(struct hed_channel *ch)
{
    return ch->shared ? 0 : hed_channel_socket_flush(ch);
}

void
hed_channel_beat(struct hed_channel *ch)
{
    if (!ch->shared)
        hed_channel_socket_beat(ch);
}

bool
hed_channel_dirty(struct hed_channel *ch)
{
    return hed_channel_first(ch) != 0;
}

uint64_t
hed_channel_first(struct hed_channel *ch)
{
    /* Relaxed: a hint; who needs to be sure flushes. */
    return ch->shared ? 0 : atomic_load_explicit(&ch->outgoing.first, memory_order_relaxed);
}

int
hed_channel_next(struct hed_channel *ch, int timeout_ms, struct hed_msg **out)
{
    const int e = ch->shared ? hed_ring_next(&ch->in, timeout_ms, ch->message)
                             : hed_channel_socket_next(ch, timeout_ms);

    if (!e)
        *out = ch->message;
    return e;
}

/* ---- bulk ------------------------------------------------------------------------------------ */

int
hed_channel_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n)
{
    return ch->shared ? hed_ring_space(&ch->bulk_out, want, p, n)
                      : hed_channel_socket_space(ch, want, p, n);
}

int
hed_channel_bulk_put(struct hed_channel *ch, size_t n)
{
    return ch->shared ? hed_ring_put(&ch->bulk_out, n) : hed_channel_socket_put(ch, n);
}

int
hed_channel_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n)
{
    return ch->shared ? hed_ring_peek(&ch->bulk_in, most, p, n)
                      : hed_channel_socket_peek(ch, most, p, n);
}

void
hed_channel_bulk_done(struct hed_channel *ch, size_t n)
{
    const int e = ch->shared ? hed_ring_done(&ch->bulk_in, n) : hed_channel_socket_done(ch, n);

    if (e == HED_EINVAL)
        hed_bug("more bulk given back than was taken");
}

int
hed_channel_bulk_write(struct hed_channel *ch, const void *p, size_t n)
{
    return ch->shared ? hed_ring_write(&ch->bulk_out, p, n) : hed_channel_socket_write(ch, p, n);
}

int
hed_channel_bulk_read(struct hed_channel *ch, void *p, size_t n)
{
    return ch->shared ? hed_ring_read(&ch->bulk_in, p, n) : hed_channel_socket_read(ch, p, n);
}

bool
hed_channel_bulk_area(struct hed_channel *ch, int direction, void **p, size_t *n)
{
    void *area = direction ? (void *)ch->outgoing.bulk.bytes : (void *)ch->incoming.bulk.bytes;

    if (ch->shared)
        area = direction ? ch->bulk_out.bytes : ch->bulk_in.bytes;
    if (!area)
        return false;
    *p = area;
    *n = HED_CHANNEL_STAGED;
    return true;
}
