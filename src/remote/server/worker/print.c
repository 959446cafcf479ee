/* Sends what kernels print to the client.
 *
 * Drivers write it to this process's standard output when a context is waited for. Here that is a
 * file in memory, so that writers never wait. What has been sent is cut out of it.
 *
 * Every wait asks whether there is text, so asking must cost almost nothing. The file has its final
 * size from the start, is mapped, and is written from its beginning on. If the byte where the next
 * text would begin is not 0, there is text. (Text that begins with a 0 is sent later, with the text
 * after it.)
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "remote/server/worker/worker.h"

#define PIECE ((size_t)32768) /* bytes of text per message */
/* ThreadSanitizer leaves little of the address space on some machines. */
#define IS_CROWDED HED_TSAN

/* Bytes of text per session; only written pages take memory. */
#define MOST ((uint64_t)1 << (IS_CROWDED ? 30 : 40))
#define LOOK_EVERY 64 /* questions between two checks of the file position */
/* Bytes that are kept for a client that does not wait for its kernels. GPUs keep 1 MiB
 * (CU_LIMIT_PRINTF_FIFO_SIZE) and write over the oldest text, too. */
#define KEPT (UINT64_C(16) << 20)

struct hed_worker_print {
    int fd;
    const _Atomic char *text; /* the mapped file */
    _Atomic uint32_t looks;
    struct hed_lock lock;  /* rank HED_RANK_CHANNEL; guards changes of sent */
    _Atomic uint64_t sent; /* bytes from the beginning of the file that have been sent */
    uint64_t dropped;      /* bytes that nobody fetched in time; guarded by lock */
};

int
hed_worker_print_init(struct hed_worker *w, struct hed_why *why)
{
    struct hed_worker_print *p = calloc(1, sizeof *p);

    if (!p) {
        hed_why_set(why, "not enough memory for the output of kernels");
        return HED_ENOMEM;
    }
    p->fd = memfd_create("heddle-print", MFD_CLOEXEC);
    if (p->fd >= 0 && ftruncate(p->fd, (off_t)MOST) == 0)
        p->text = mmap(NULL, MOST, PROT_READ, MAP_SHARED | MAP_NORESERVE, p->fd, 0);
    if (!p->text || p->text == MAP_FAILED || dup2(p->fd, STDOUT_FILENO) < 0) {
        hed_why_set(why, "cannot create a file for the output of kernels");
        if (p->fd >= 0)
            (void)close(p->fd);
        free(p);
        return HED_EIO;
    }
    hed_lock_init(&p->lock, HED_RANK_CHANNEL);
    w->print = p;
    return 0;
}

/* Is there text? Relaxed: a driver has written it before it came back to this thread. What the
 * drivers of other threads write meanwhile is left to those threads. */
static bool
has_text(struct hed_worker_print *p)
{
    const uint64_t at = atomic_load_explicit(&p->sent, memory_order_relaxed);

    if (at >= MOST)
        return false;
    return atomic_load_explicit(&p->text[at], memory_order_relaxed) != 0 ||
           atomic_fetch_add_explicit(&p->looks, 1, memory_order_relaxed) % LOOK_EVERY == 0;
}

/* Cuts bytes out of the beginning of the text: their memory is freed, but positions stay the same,
 * so nothing is lost that is written meanwhile. */
static void
cut_text_locked(struct hed_worker_print *p, uint64_t sent, uint64_t bytes)
{
    (void)fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)sent, (off_t)bytes);
    atomic_store_explicit(&p->sent, sent + bytes, memory_order_relaxed);
}

void
hed_print_trim(struct hed_worker *w)
{
    struct hed_worker_print *p = w->print;

    hed_lock(&p->lock);

    const uint64_t sent = atomic_load_explicit(&p->sent, memory_order_relaxed); /* under the lock */
    const off_t end = lseek(p->fd, 0, SEEK_CUR);
    const uint64_t there = end > 0 && (uint64_t)end > sent ? (uint64_t)end - sent : 0;
    const bool first = there > KEPT && p->dropped == 0;

    if (there > KEPT) {
        cut_text_locked(p, sent, there - KEPT);
        p->dropped += there - KEPT;
    }
    hed_unlock(&p->lock);
    if (first)
        hed_warn(SERVER, "a client does not fetch what its kernels print; the oldest is dropped");
}

/* What the client reads in place of text that was dropped; the number of bytes. */
static size_t
take_notice_locked(struct hed_worker_print *p, char *to)
{
    const int n = snprintf(to, PIECE, "heddle: %llu bytes that kernels printed were dropped here\n",
                           (unsigned long long)p->dropped);

    p->dropped = 0;
    return n > 0 ? (size_t)n : 0;
}

/* Takes the next piece of text; 0 if there is none. */
static size_t
take_text(struct hed_worker_print *p, char *to)
{
    ssize_t n = 0;

    hed_lock(&p->lock);
    if (p->dropped) {
        const size_t notice = take_notice_locked(p, to);

        hed_unlock(&p->lock);
        return notice;
    }

    const uint64_t sent = atomic_load_explicit(&p->sent, memory_order_relaxed); /* under the lock */
    const off_t end = lseek(p->fd, 0, SEEK_CUR);

    if (end > 0 && (uint64_t)end > sent)
        n = pread(p->fd, to, (uint64_t)end - sent < PIECE ? (size_t)((uint64_t)end - sent) : PIECE,
                  (off_t)sent);
    if (n > 0)
        cut_text_locked(p, sent, (uint64_t)n);
    hed_unlock(&p->lock);
    return n > 0 ? (size_t)n : 0;
}

int
hed_print_deliver(struct hed_worker_channel *ch)
{
    struct hed_worker_print *p = ch->worker->print;
    char text[PIECE];
    size_t n;
    int err = 0;

    if (!p)
        return 0;
    (void)fflush(stdout); /* a driver may write through stdout without flushing it */
    if (!has_text(p))
        return 0;
    while (!err && (n = take_text(p, text)) > 0) {
        const uint32_t size = (uint32_t)(sizeof(struct hed_msg) + n);
        struct hed_msg *m = hed_channel_begin(ch->channel, size);

        if (!m)
            return HED_EIO;
        memset(m, 0, sizeof *m);
        m->kind = HED_MSG_PRINT;
        m->size = size;
        m->thread = ch->thread;
        memcpy(m + 1, text, n);
        err = hed_channel_end(ch->channel, size, false);
    }
    return err;
}
