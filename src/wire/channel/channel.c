/* Lanes: made, ended, and over shared memory. What goes over a socket is in lane_socket.c.
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
    const int fd = memfd_create("heddle-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, HED_LANE_SHARED) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0) {
        *out = fd;
        return 0;
    }

    const int e = hed_err_from_errno(errno);

    hed_why_set(why, "shared memory for a lane: %s", strerror(errno));
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
        s.st_size != HED_LANE_SHARED || fstatfs(fd, &f) || f.f_type != TMPFS_MAGIC) {
        hed_why_set(why, "what the client sent is not the memory of a lane");
        return HED_EFORMAT;
    }
    return 0;
}

static int
map_memory(struct hed_lane *l, int fd, struct hed_why *why)
{
    void *p = mmap(NULL, HED_LANE_SHARED, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED) {
        hed_why_set(why, "mapping a lane: %s", strerror(errno));
        return hed_err_from_errno(errno);
    }
    l->shared = p;
    return 0;
}

static void
init_rings(struct hed_lane *l, bool client)
{
    struct hed_ring_words *words = ((struct hed_lane_shared *)(void *)l->shared)->rings;
    uint8_t *call = l->shared + HED_LANE_WORDS;
    uint8_t *answer = call + HED_LANE_CALL_SIZE;
    uint8_t *bulk_in = answer + HED_LANE_ANSWER_SIZE;
    uint8_t *bulk_out = bulk_in + HED_LANE_STAGED;

    hed_ring_init(client ? &l->out : &l->in, &words[HED_LANE_CALL], call, HED_LANE_CALL_SIZE,
                  HED_MSG_ALIGN, l->conn);
    hed_ring_init(client ? &l->in : &l->out, &words[HED_LANE_ANSWER], answer, HED_LANE_ANSWER_SIZE,
                  HED_MSG_ALIGN, l->conn);
    hed_ring_init(client ? &l->bulk_out : &l->bulk_in, &words[HED_LANE_BULK_IN], bulk_in,
                  HED_LANE_STAGED, 1, l->conn);
    hed_ring_init(client ? &l->bulk_in : &l->bulk_out, &words[HED_LANE_BULK_OUT], bulk_out,
                  HED_LANE_STAGED, 1, l->conn);
}

/* ---- making and ending ----------------------------------------------------------------------- */

static int
init_shared(struct hed_lane *l, bool client, struct hed_why *why)
{
    int fd = -1;
    int e;

    if (client) {
        e = make_memory(&fd, why);
    } else {
        e = hed_conn_take_fds(l->conn, &fd, 1, TAKE_MS);
        if (e)
            hed_why_set(why, "the memory of a lane did not come: %s", hed_err_text(e));
        else
            e = check_memory(fd, why);
    }
    if (!e)
        e = map_memory(l, fd, why);
    if (!e && client) {
        e = hed_conn_send_fds(l->conn, &fd, 1);
        if (e)
            hed_why_set(why, "sending the memory of a lane: %s", hed_err_text(e));
    }
    if (fd >= 0)
        close(fd);
    if (!e)
        init_rings(l, client);
    return e;
}

static int
make(struct hed_conn *conn, bool shared, bool client, struct hed_lane **out, struct hed_why *why)
{
    struct hed_lane *l = calloc(1, sizeof *l);
    int e = HED_ENOMEM;

    if (!l) {
        hed_conn_close(conn);
        hed_why_set(why, "out of memory");
        return HED_ENOMEM;
    }
    l->conn = conn;
    hed_lock_init(&l->outgoing.lock, HED_RANK_LANE);
    l->message = aligned_alloc(HED_MSG_ALIGN, HED_MSG_MAX);
    if (l->message)
        e = shared ? init_shared(l, client, why) : hed_lane_socket_init(l);
    if (e == HED_ENOMEM)
        hed_why_set(why, "out of memory");
    if (e) {
        hed_lane_free(l);
        return e;
    }
    *out = l;
    return 0;
}

int
hed_lane_create(struct hed_conn *conn, bool shared, struct hed_lane **out, struct hed_why *why)
{
    return make(conn, shared, true, out, why);
}

int
hed_lane_accept(struct hed_conn *conn, bool shared, struct hed_lane **out, struct hed_why *why)
{
    const int err = make(conn, shared, false, out, why);

    /* A client sends much that can wait; a worker's answers never can. */
    if (!err && shared)
        (*out)->in.waiter.naps = (*out)->in.waiter.few;
    return err;
}

/* The peer may sleep: it shall find out now that nobody is there any more. */
static void
wake_peer(struct hed_lane *l)
{
    hed_wait_leave(&l->out.words->reader_parked);
    hed_wait_leave(&l->bulk_out.words->reader_parked);
    hed_wait_leave(&l->in.words->writer_parked);
    hed_wait_leave(&l->bulk_in.words->writer_parked);
}

void
hed_lane_free(struct hed_lane *l)
{
    if (!l)
        return;

    const bool tells = l->conn && l->out.words;

    hed_conn_close(l->conn);
    if (tells)
        wake_peer(l);
    if (l->shared)
        munmap(l->shared, HED_LANE_SHARED);
    hed_lane_socket_fini(l);
    hed_lock_fini(&l->outgoing.lock);
    free(l->message);
    free(l);
}

void
hed_lane_forked(struct hed_lane *l)
{
    if (!l || !l->conn)
        return;
    hed_conn_forget(l->conn);
    l->conn = NULL;
    l->out.error = l->in.error = l->bulk_out.error = l->bulk_in.error = HED_EIO;
    hed_lane_socket_failed(l, HED_EIO);
}

struct hed_conn *
hed_lane_conn(struct hed_lane *l)
{
    return l->conn;
}

/* ---- messages -------------------------------------------------------------------------------- */

void *
hed_lane_begin(struct hed_lane *l, uint32_t size)
{
    return l->shared ? hed_ring_begin(&l->out, size) : hed_lane_socket_begin(l, size);
}

int
hed_lane_end(struct hed_lane *l, uint32_t size, bool urgent)
{
    return l->shared ? hed_ring_end(&l->out, size, urgent) : hed_lane_socket_end(l, size, urgent);
}

int
hed_lane_flush(struct hed_lane *l)
{
    return l->shared ? 0 : hed_lane_socket_flush(l);
}

void
hed_lane_beat(struct hed_lane *l)
{
    if (!l->shared)
        hed_lane_socket_beat(l);
}

bool
hed_lane_dirty(struct hed_lane *l)
{
    return hed_lane_first(l) != 0;
}

uint64_t
hed_lane_first(struct hed_lane *l)
{
    /* Relaxed: a hint; who needs to be sure flushes. */
    return l->shared ? 0 : atomic_load_explicit(&l->outgoing.first, memory_order_relaxed);
}

int
hed_lane_next(struct hed_lane *l, int timeout_ms, struct hed_msg **out)
{
    const int e = l->shared ? hed_ring_next(&l->in, timeout_ms, l->message)
                            : hed_lane_socket_next(l, timeout_ms);

    if (!e)
        *out = l->message;
    return e;
}

/* ---- bulk ------------------------------------------------------------------------------------ */

int
hed_lane_bulk_space(struct hed_lane *l, size_t want, void **p, size_t *n)
{
    return l->shared ? hed_ring_space(&l->bulk_out, want, p, n)
                     : hed_lane_socket_space(l, want, p, n);
}

int
hed_lane_bulk_put(struct hed_lane *l, size_t n)
{
    return l->shared ? hed_ring_put(&l->bulk_out, n) : hed_lane_socket_put(l, n);
}

int
hed_lane_bulk_peek(struct hed_lane *l, size_t most, void **p, size_t *n)
{
    return l->shared ? hed_ring_peek(&l->bulk_in, most, p, n) : hed_lane_socket_peek(l, most, p, n);
}

void
hed_lane_bulk_done(struct hed_lane *l, size_t n)
{
    const int e = l->shared ? hed_ring_done(&l->bulk_in, n) : hed_lane_socket_done(l, n);

    if (e == HED_EINVAL)
        hed_bug("more bulk given back than was taken");
}

int
hed_lane_bulk_write(struct hed_lane *l, const void *p, size_t n)
{
    return l->shared ? hed_ring_write(&l->bulk_out, p, n) : hed_lane_socket_write(l, p, n);
}

int
hed_lane_bulk_read(struct hed_lane *l, void *p, size_t n)
{
    return l->shared ? hed_ring_read(&l->bulk_in, p, n) : hed_lane_socket_read(l, p, n);
}

bool
hed_lane_bulk_area(struct hed_lane *l, int direction, void **p, size_t *n)
{
    void *area = direction ? (void *)l->outgoing.bulk.bytes : (void *)l->incoming.bulk.bytes;

    if (l->shared)
        area = direction ? l->bulk_out.bytes : l->bulk_in.bytes;
    if (!area)
        return false;
    *p = area;
    *n = HED_LANE_STAGED;
    return true;
}
