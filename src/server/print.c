/* What kernels print comes out at the client.
 *
 * Drivers write it to this process's standard output when a context is waited for. That is a file
 * in memory here, so that nobody who writes to it ever waits; what has been sent is cut out of it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "server/worker.h"

#define PIECE ((size_t)32768) /* bytes of text a message */

struct hed_worker_print {
    int fd;
    struct hed_lock lock; /* rank HED_RANK_LANE; guards sent */
    uint64_t sent;        /* bytes from the file's beginning that have been sent */
};

int
hed_worker_print_init(struct hed_worker *w, struct hed_why *why)
{
    struct hed_worker_print *p = calloc(1, sizeof *p);

    if (!p) {
        hed_why_set(why, "no memory");
        return HED_ENOMEM;
    }
    p->fd = memfd_create("heddle-print", MFD_CLOEXEC);
    /* Appending: several threads of a driver may write. */
    if (p->fd < 0 || fcntl(p->fd, F_SETFL, O_APPEND) != 0 || dup2(p->fd, STDOUT_FILENO) < 0) {
        hed_why_set(why, "no file for what kernels print");
        if (p->fd >= 0)
            (void)close(p->fd);
        free(p);
        return HED_EIO;
    }
    hed_lock_init(&p->lock, HED_RANK_LANE);
    w->print = p;
    return 0;
}

/* The next piece of text; 0: there is no more. What was taken is cut out: its memory goes, and
 * positions stay, so that whoever appends meanwhile loses nothing. */
static size_t
take(struct hed_worker_print *p, char *to)
{
    struct stat s;
    ssize_t n = 0;

    hed_lock(&p->lock);
    if (fstat(p->fd, &s) == 0 && (uint64_t)s.st_size > p->sent)
        n = pread(p->fd, to, PIECE, (off_t)p->sent);
    if (n > 0) {
        (void)fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)p->sent, n);
        p->sent += (uint64_t)n;
    }
    hed_unlock(&p->lock);
    return n > 0 ? (size_t)n : 0;
}

int
hed_print_deliver(struct hed_worker_lane *l)
{
    struct hed_worker_print *p = l->worker->print;
    char text[PIECE];
    size_t n;
    int err = 0;

    if (!p)
        return 0;
    (void)fflush(stdout); /* a driver that writes through it need not have flushed */
    while (!err && (n = take(p, text)) > 0) {
        const uint32_t size = (uint32_t)(sizeof(struct hed_msg) + n);
        struct hed_msg *m = hed_lane_begin(l->lane, size);

        if (!m)
            return HED_EIO;
        memset(m, 0, sizeof *m);
        m->kind = HED_MSG_PRINT;
        m->size = size;
        m->thread = l->thread;
        memcpy(m + 1, text, n);
        err = hed_lane_end(l->lane, size, false);
    }
    return err;
}
