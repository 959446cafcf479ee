/* Channels over shared memory: four rings in a memfd. The transport shm: uses them.
 *
 * The client makes the memory, seals its size and sends it over the connection. The worker checks
 * seals and size before it maps the memory, so the client cannot take it away from under the
 * worker. Later the connection only shows whether the peer is still there. A worker that is there
 * but does not run, because it was stopped, is noticed by a count that it no longer increases.
 */
#include "remote/wire/channel/shm.h"

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
    hed_rings_init(s, conn, client);
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
shm_wake_own(struct hed_channel *ch)
{
    hed_wait_leave(&hed_shm_of(ch)->in.words->reader_parked);
    hed_wait_leave(&hed_shm_of(ch)->bulk_in.words->reader_parked);
}

const struct hed_channel_ops hed_channel_shm = {
    .create = shm_create,
    .wake_peer = shm_wake_peer,
    .wake_own = shm_wake_own,
    .free = shm_free,
    .shares = true,
    HED_RINGS_OPS,
};
