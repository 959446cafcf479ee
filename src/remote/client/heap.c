/* The shared heap: a file in memory with the contents of the host's share of the arena, from its
 * beginning. The worker maps the same pages. See remote.h.
 *
 * The file belongs to this process, so that pinned memory stays what it is when the worker ends or
 * is another. It grows as memory is mapped, and never shrinks. The worker frees pages of memory
 * that is unmapped.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/client/memory.h"

#define HEAP_STEP (UINT64_C(4) << 20) /* bytes */

/* A file that grows over the limit of file sizes would kill the program with a signal. */
bool
hed_remote_heap_can_grow(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

static int
make_heap_file(void)
{
    const int fd = memfd_create("heddle heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -1;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

int
hed_remote_heap_send(struct hed_remote *r, struct hed_conn *conn)
{
    if (r->heap < 0)
        r->heap = make_heap_file();
    return r->heap < 0 ? HED_ENOMEM : hed_conn_send_fds(conn, &r->heap, 1);
}

int
hed_remote_heap_need(struct hed_remote *r, uint64_t end)
{
    struct hed_remote_memory *m = r->memory;
    int err = 0;

    if (r->heap < 0 || !(r->capabilities & HED_CAN_CLIENT_HEAP))
        return 0;
    hed_lock(&m->lock);
    if (end > r->heap_size) {
        const uint64_t size = hed_round_up(end, HEAP_STEP);

        if (ftruncate(r->heap, (off_t)size) == 0)
            r->heap_size = size;
        else
            err = HED_ENOMEM;
    }
    hed_unlock(&m->lock);
    return err;
}

/* Puts the contents of private memory into the file, and the file's pages in its place. Memory that
 * is in the file already stays as it is. */
static int
enter_heap(void *arg, const struct hed_remote_mapping *m)
{
    struct hed_remote *r = arg;
    const uint64_t offset = m->at - hed_remote_host_base(r);
    void *here = (void *)(uintptr_t)m->at;
    void *there;
    int err = hed_remote_heap_need(r, offset + m->size);

    if (err)
        return err;
    there = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, r->heap, (off_t)offset);
    if (there == MAP_FAILED)
        return HED_ENOMEM;
    memmove(there, here, m->size);
    if (mmap(here, m->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, r->heap,
             (off_t)offset) == MAP_FAILED)
        err = HED_ENOMEM;
    (void)munmap(there, m->size);
    return err;
}

int
hed_remote_heap_enter(struct hed_remote *r)
{
    int err = 0;

    if (!r->shares_heap || r->in_window || r->all_in_heap)
        return 0;
    if (r->heap < 0)
        return HED_ENOTSUP;
    err = hed_remote_mappings_each(r, HED_MAP_HOST, enter_heap, r);
    r->all_in_heap = err == 0;
    return err;
}
