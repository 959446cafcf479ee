/* Channels over shared memory: four rings in a memfd. The transport shm: uses them.
 *
 * The client makes the memory, seals its size and sends it over the connection. The worker checks
 * seals and size before it maps the memory, so the client cannot take it away from under the
 * worker. Later the connection only shows whether the peer is still there. A worker that is there
 * but does not run, because it was stopped, is noticed by a count that it no longer increases.
 */
#include "wire/channel/shm.h"

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

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TAKE_MS 10000 /* how long the worker waits for the memory */

/* ---- the memory ------------------------------------------------------------------------------ */

static int
make_memory(int *out, struct hed_why *why)
{
    const int fd = memfd_create("heddle-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, HED_SHM_SIZE) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0) {
        *out = fd;
        return 0;
    }

    const int err = hed_err_from_errno(errno);

    hed_why_set(why, "cannot make shared memory for a channel: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return err;
}

/* The memory must stay as it is: sealed, of the right size, and not of huge pages, of which none
 * may be left when they are touched. */
static int
check_memory(int fd, struct hed_why *why)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    struct statfs f;
    struct stat s;

    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &s) || !S_ISREG(s.st_mode) ||
        s.st_size != HED_SHM_SIZE || fstatfs(fd, &f) || f.f_type != TMPFS_MAGIC) {
        hed_why_set(why, "what the client sent is not the shared memory of a channel");
        return HED_EFORMAT;
    }
    return 0;
}

static int
receive_memory(struct hed_conn *conn, int *out, struct hed_why *why)
{
    int fd = -1;
    int err = hed_conn_take_fds(conn, &fd, 1, TAKE_MS);

    if (err) {
        hed_why_set(why, "the shared memory of a channel did not come: %s", hed_err_text(err));
        return err;
    }
    err = check_memory(fd, why);
    if (err)
        close(fd);
    else
        *out = fd;
    return err;
}

static int
map_memory(struct hed_shm_channel *s, int fd, struct hed_why *why)
{
    void *p = mmap(NULL, HED_SHM_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (p == MAP_FAILED) {
        hed_why_set(why, "cannot map the shared memory of a channel: %s", strerror(errno));
        return hed_err_from_errno(errno);
    }
    s->memory = p;
    return 0;
}

static void
init_rings(struct hed_shm_channel *s, struct hed_conn *conn, bool client)
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

/* ---- beginning and end ----------------------------------------------------------------------- */

static void
shm_free(struct hed_channel *ch)
{
    struct hed_shm_channel *s = hed_shm_of(ch);

    if (s->memory)
        munmap(s->memory, HED_SHM_SIZE);
    free(s);
}

static int
shm_create(struct hed_conn *conn, bool client, struct hed_channel **out, struct hed_why *why)
{
    struct hed_shm_channel *s = calloc(1, sizeof *s);
    int fd = -1;
    int err;

    if (!s)
        return HED_ENOMEM;
    err = client ? make_memory(&fd, why) : receive_memory(conn, &fd, why);
    if (!err)
        err = map_memory(s, fd, why);
    if (!err && client) {
        err = hed_conn_send_fds(conn, &fd, 1);
        if (err)
            hed_why_set(why, "cannot send the shared memory of a channel: %s", hed_err_text(err));
    }
    if (fd >= 0)
        close(fd);
    if (err) {
        shm_free(&s->channel);
        return err;
    }
    init_rings(s, conn, client);
    *out = &s->channel;
    return 0;
}

static void
shm_wake_peer(struct hed_channel *ch)
{
    struct hed_shm_channel *s = hed_shm_of(ch);

    hed_wait_leave(&s->out.words->reader_parked);
    hed_wait_leave(&s->bulk_out.words->reader_parked);
    hed_wait_leave(&s->in.words->writer_parked);
    hed_wait_leave(&s->bulk_in.words->writer_parked);
}

static void
shm_forked(struct hed_channel *ch)
{
    struct hed_shm_channel *s = hed_shm_of(ch);

    s->out.error = s->in.error = s->bulk_out.error = s->bulk_in.error = HED_EIO;
}

/* ---- messages -------------------------------------------------------------------------------- */

static void *
shm_begin(struct hed_channel *ch, uint32_t size)
{
    return hed_ring_begin(&hed_shm_of(ch)->out, size);
}

static int
shm_end(struct hed_channel *ch, uint32_t size, bool urgent)
{
    return hed_ring_end(&hed_shm_of(ch)->out, size, urgent);
}

static int
shm_next(struct hed_channel *ch, int timeout_ms)
{
    return hed_ring_next(&hed_shm_of(ch)->in, timeout_ms, ch->message);
}

/* Relaxed: only the change matters. A client that scribbles over the count deceives itself. */
static void
shm_beat(struct hed_channel *ch)
{
    atomic_fetch_add_explicit(&hed_shm_of(ch)->memory->beats, 1, memory_order_relaxed);
}

static int
shm_patience(struct hed_channel *ch, int ms)
{
    struct hed_shm_channel *s = hed_shm_of(ch);
    struct hed_ring *const rings[] = {&s->out, &s->in, &s->bulk_out, &s->bulk_in};

    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++)
        hed_waiter_expect(&rings[i]->waiter, &s->memory->beats, (uint32_t)ms);
    return 0;
}

/* What kernels and answers go through may be full, or in the middle of a message. */
static void
shm_last(struct hed_channel *ch, const struct hed_end *end)
{
    (void)hed_conn_write_now(ch->conn, end, sizeof *end);
}

static int
shm_read_last(struct hed_channel *ch, struct hed_end *out)
{
    return hed_conn_read(ch->conn, out, sizeof *out, 0);
}

/* ---- bulk ------------------------------------------------------------------------------------ */

static int
shm_bulk_write(struct hed_channel *ch, const void *p, size_t n)
{
    return hed_ring_write(&hed_shm_of(ch)->bulk_out, p, n);
}

static int
shm_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n)
{
    return hed_ring_space(&hed_shm_of(ch)->bulk_out, want, p, n);
}

static int
shm_bulk_put(struct hed_channel *ch, size_t n)
{
    return hed_ring_put(&hed_shm_of(ch)->bulk_out, n);
}

static int
shm_bulk_read(struct hed_channel *ch, void *p, size_t n)
{
    return hed_ring_read(&hed_shm_of(ch)->bulk_in, p, n);
}

static int
shm_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n)
{
    return hed_ring_peek(&hed_shm_of(ch)->bulk_in, most, p, n);
}

static int
shm_bulk_done(struct hed_channel *ch, size_t n)
{
    return hed_ring_done(&hed_shm_of(ch)->bulk_in, n);
}

static void *
shm_bulk_area(struct hed_channel *ch, int direction)
{
    struct hed_shm_channel *s = hed_shm_of(ch);

    return direction ? s->bulk_out.bytes : s->bulk_in.bytes;
}

const struct hed_channel_ops hed_channel_shm = {
    .create = shm_create,
    .wake_peer = shm_wake_peer,
    .free = shm_free,
    .forked = shm_forked,
    .begin = shm_begin,
    .end = shm_end,
    .next = shm_next,
    .beat = shm_beat,
    .patience = shm_patience,
    .beat_ms = HED_CHANNEL_BEAT_SHM_MS,
    .last = shm_last,
    .read_last = shm_read_last,
    .bulk_write = shm_bulk_write,
    .bulk_space = shm_bulk_space,
    .bulk_put = shm_bulk_put,
    .bulk_read = shm_bulk_read,
    .bulk_peek = shm_bulk_peek,
    .bulk_done = shm_bulk_done,
    .bulk_area = shm_bulk_area,
};
