/* Pinned memory: host memory at the arena's addresses, which devices reach. See memory.h.
 *
 *   shm       pages of the heap, a memfd: the client's own, which grows as memory is mapped; for
 *             clients before 2.1 it is ours and covers all addresses of the host's share
 *   a guest   a piece of its window, whose place the client is told
 *   sockets   memory of this process; the client has other memory at the same addresses (mirror.c)
 *
 * The first two are the same pages on both sides: a device copies between them and its own memory
 * without a processor's help, and kernels read and write what the program sees.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/sealed.h"
#include "remote/server/status.h"
#include "remote/server/worker/memory.h"

#define HOST_UNIT 65536u /* bytes; HED_MACHINE_PAGE of the client's driver */

_Static_assert(HOST_UNIT == HED_WINDOW_UNIT, "pinned memory is a number of units of a window");

static void *
pointer_to(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

static void
close_host_range(uint64_t at, uint64_t size)
{
    (void)mmap(pointer_to(at), size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* Where the memory of a mapping is; -1 if this process has it alone. */
static int
file_of_pinned(const struct hed_worker *w, const struct hed_mapping *p, uint64_t *offset)
{
    *offset = p->window ? p->window : w->heap >= 0 ? p->at - hed_worker_host_base(w) : 0;
    return p->window ? w->window.fd : w->heap;
}

/* Maps the same pages as the client's, or other memory at the same addresses. */
static bool
open_host_range(const struct hed_worker *w, const struct hed_mapping *p)
{
    uint64_t offset;
    const int file = file_of_pinned(w, p, &offset);
    const int how = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    const void *at = mmap(pointer_to(p->at), p->size, PROT_READ | PROT_WRITE,
                          how | MAP_NORESERVE | MAP_FIXED, file, (off_t)offset);

    return at != MAP_FAILED;
}

CUresult
hed_pinned_register(struct hed_worker *w, uint64_t at, uint64_t size)
{
    return hed_worker_do(w, cuMemHostRegister_v2, .p = pointer_to(at), .bytesize = size,
                         .Flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
}

static void
show_pinned(const struct hed_worker *w)
{
    if (w->start->status) /* relaxed: only displayed */
        atomic_store_explicit(&w->start->status->host, w->memory->host, memory_order_relaxed);
}

/* Frees the pages, wherever they are. */
static void
free_pinned(struct hed_worker *w, const struct hed_mapping *p)
{
    uint64_t offset;
    const int file = file_of_pinned(w, p, &offset);

    close_host_range(p->at, p->size);
    if (file >= 0)
        (void)fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                        (off_t)p->size);
    if (p->window)
        w->window.give(w->window.arg, p->window, p->size);
    free(p->shadow);
    hed_memory_give_host(w, p->size);
}

int
hed_pinned_map(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    struct hed_mapping p = {.at = m->at, .size = m->size, .kind = HED_MAPPING_HOST, .device = -1};

    if (!hed_memory_in_arena(w, m, true, HOST_UNIT))
        return HED_EFORMAT;
    /* What the heap has now it will always have. Behind its end, the worker would be killed. */
    if (w->clients_heap && !hed_fd_has(w->heap, m->at + m->size - hed_worker_host_base(w)))
        return HED_EFORMAT;
    if (!hed_memory_take_host(w, m->size)) {
        *r = CUDA_ERROR_OUT_OF_MEMORY;
        return 0;
    }
    if (w->in_window && !(p.window = w->window.take(w->window.arg, m->size))) {
        hed_warn(SERVER, "the guest's window has no piece of %llu KiB left for pinned memory",
                 (unsigned long long)(m->size >> 10));
        hed_memory_give_host(w, m->size);
        *r = CUDA_ERROR_OUT_OF_MEMORY;
        return 0;
    }

    const int err = hed_mapping_enter(w->memory, &p);

    if (err) /* the session ends */
        return err;
    if (!open_host_range(w, &p))
        *r = CUDA_ERROR_OUT_OF_MEMORY;
    else if (!w->no_memory)
        *r = hed_pinned_register(w, m->at, m->size);
    if (*r != CUDA_SUCCESS) {
        struct hed_mapping out;

        free_pinned(w, &p);
        return hed_mapping_leave(w->memory, m->at, m->size, HED_MAPPING_HOST, &out);
    }
    show_pinned(w);
    return 0;
}

int
hed_pinned_unmap(struct hed_worker *w, const struct hed_map *m, CUresult *r)
{
    struct hed_mapping p;

    if (hed_mapping_leave(w->memory, m->at, m->size, HED_MAPPING_HOST, &p) != 0)
        return hed_memory_missing(w);
    if (!w->no_memory)
        *r = hed_worker_do(w, cuMemHostUnregister, .p = pointer_to(m->at));
    /* The registration ended with its context, or there is no context any more. */
    if (*r == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED || *r == CUDA_ERROR_INVALID_CONTEXT)
        *r = CUDA_SUCCESS;
    free_pinned(w, &p);
    show_pinned(w);
    return 0;
}

uint64_t
hed_pinned_offset(struct hed_worker *w, uint64_t at)
{
    const struct hed_mapping *p = w->in_window ? hed_mapping_find(w->memory, at) : NULL;

    return p && p->kind == HED_MAPPING_HOST && p->at == at ? p->window : 0;
}

/* Creates the heap, which covers all addresses of the host's share; pages appear with their first
 * use. It is sealed, so that the client cannot shrink it under the worker. */
static int
make_heap(uint64_t size)
{
    const int fd = memfd_create("heddle-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)size) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

int
hed_pinned_take_heap(struct hed_worker *w, struct hed_conn *conn, struct hed_why *why)
{
    int fd;
    const int err = hed_conn_take_fds(conn, &fd, 1, w->start->hello_ms);

    if (err) {
        hed_why_set(why, "the client did not send its heap: %s", hed_err_text(err));
        return err;
    }
    if (!hed_fd_is_sealed(fd, 0)) {
        (void)close(fd);
        hed_why_set(why, "the client's heap is not memory, or could shrink");
        return HED_EFORMAT;
    }
    w->heap = fd;
    w->clients_heap = true;
    return 0;
}

int
hed_pinned_init(struct hed_worker *w, struct hed_why *why)
{
    if (!w->shares || w->in_window || w->heap >= 0)
        return 0;
    w->heap = make_heap(w->usable);
    if (w->heap >= 0)
        return 0;
    hed_why_set(why, "cannot create a shared heap of %llu bytes", (unsigned long long)w->usable);
    return HED_ENOMEM;
}
