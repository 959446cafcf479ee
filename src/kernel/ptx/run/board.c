/* What a process shows of its kernels. See board.h. */
#include "kernel/ptx/run/board.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/number.h"

struct hed_board {
    struct hed_lock lock; /* guards the addition of records */
    struct hed_board_head *head;
    uint32_t modules;
    int fd; /* kept open for readers, and never used */
};

struct hed_board *
hed_board_create(void)
{
    struct hed_board *b = calloc(1, sizeof *b);
    void *at = MAP_FAILED;

    if (!b)
        return NULL;
    b->fd = memfd_create(HED_BOARD_NAME, MFD_CLOEXEC);
    if (b->fd >= 0 && ftruncate(b->fd, (off_t)HED_BOARD_MAX) == 0)
        at =
            mmap(NULL, HED_BOARD_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, b->fd, 0);
    if (at == MAP_FAILED) {
        if (b->fd >= 0)
            close(b->fd);
        free(b);
        return NULL;
    }
    hed_lock_init(&b->lock, HED_RANK_CODE);
    b->head = at;
    b->head->pid = (uint32_t)getpid();
    memcpy(b->head->magic, HED_BOARD_MAGIC, sizeof b->head->magic);
    return b;
}

void
hed_board_free(struct hed_board *b)
{
    if (!b)
        return;
    munmap(b->head, HED_BOARD_MAX);
    close(b->fd);
    hed_lock_fini(&b->lock);
    free(b);
}

/* Room for a record behind the last one, zeroed; NULL if there is none. Readers see it after
 * publish_record_locked(). */
static void *
new_record_locked(struct hed_board *b, uint32_t kind, size_t size)
{
    /* Relaxed: only written under the lock. */
    const uint64_t used = atomic_load_explicit(&b->head->used, memory_order_relaxed);
    struct hed_board_record *r = (struct hed_board_record *)((unsigned char *)(b->head + 1) + used);

    size = hed_round_up(size, 8);
    if (size > HED_BOARD_MAX - sizeof *b->head - used) {
        atomic_fetch_add_explicit(&b->head->left_out, 1, memory_order_relaxed);
        return NULL;
    }
    *r = (struct hed_board_record){.kind = kind, .size = (uint32_t)size};
    return r;
}

static void
publish_record_locked(struct hed_board *b, const struct hed_board_record *r)
{
    /* Release: a reader copies no record before it is complete. */
    atomic_fetch_add_explicit(&b->head->used, r->size, memory_order_release);
}

static uint32_t
add_module_text(struct hed_board *b, const void *text, size_t size, bool is_lifted)
{
    struct hed_board_module *m;
    uint32_t id = 0;

    if (!b)
        return 0;
    hed_lock(&b->lock);
    m = text && size < HED_BOARD_MAX ? new_record_locked(b, HED_BOARD_MODULE, sizeof *m + size)
                                     : NULL;
    if (m) {
        m->has_text = 1;
        memcpy(m->text, text, size);
    } else {
        m = new_record_locked(b, HED_BOARD_MODULE, sizeof *m);
    }
    if (m) {
        m->is_lifted = is_lifted;
        m->text_size = size;
        id = m->id = ++b->modules;
        publish_record_locked(b, &m->record);
    }
    hed_unlock(&b->lock);
    return id;
}

uint32_t
hed_board_add_module(struct hed_board *b, const void *text, size_t size)
{
    return add_module_text(b, text, size, false);
}

uint32_t
hed_board_add_lifted(struct hed_board *b, const void *text, size_t size)
{
    return add_module_text(b, text, size, true);
}

struct hed_board_kernel *
hed_board_add_kernel(struct hed_board *b, uint32_t module, uint32_t rows, const char *name)
{
    const size_t length = strlen(name) + 1;
    struct hed_board_kernel *k;

    if (!b || !module)
        return NULL;
    hed_lock(&b->lock);
    k = new_record_locked(b, HED_BOARD_KERNEL, sizeof *k + length);
    if (k) {
        k->module = module;
        k->rows = rows;
        memcpy(k->name, name, length);
        publish_record_locked(b, &k->record);
    }
    hed_unlock(&b->lock);
    return k;
}

/* ---- the reader ------------------------------------------------------------------------------ */

/* Is the record complete, and its text inside it? */
static bool
is_good_record(const struct hed_board_record *r, size_t room)
{
    const struct hed_board_module *m = (const struct hed_board_module *)r;
    const struct hed_board_kernel *k = (const struct hed_board_kernel *)r;

    if (r->size < sizeof *r || r->size % 8 != 0 || r->size > room)
        return false;
    if (r->kind == HED_BOARD_MODULE)
        return r->size >= sizeof *m && (!m->has_text || m->text_size <= r->size - sizeof *m);
    if (r->kind == HED_BOARD_KERNEL)
        return r->size > sizeof *k && memchr(k->name, 0, r->size - sizeof *k) != NULL;
    return true;
}

static int
check_board(const struct hed_board_copy *c, uint32_t pid)
{
    const struct hed_board_head *head = (const struct hed_board_head *)c->bytes;
    size_t at = 0, used;

    if (c->size < sizeof *head || memcmp(head->magic, HED_BOARD_MAGIC, sizeof head->magic) != 0 ||
        head->pid != pid)
        return HED_EFORMAT;
    used = head->used;
    if (used > c->size - sizeof *head)
        return HED_EFORMAT;
    while (at < used) {
        const struct hed_board_record *r =
            (const struct hed_board_record *)(c->bytes + sizeof *head + at);

        if (used - at < sizeof *r || !is_good_record(r, used - at))
            return HED_EFORMAT;
        at += r->size;
    }
    return 0;
}

int
hed_board_read(int fd, uint32_t pid, struct hed_board_copy *out)
{
    struct hed_board_copy c = {0};
    struct stat st;
    ssize_t n;
    int err;

    if (fstat(fd, &st) != 0)
        return hed_err_from_errno(errno);
    if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(struct hed_board_head) ||
        st.st_size > (off_t)HED_BOARD_MAX)
        return HED_EFORMAT;
    c.bytes = malloc((size_t)st.st_size);
    if (!c.bytes)
        return HED_ENOMEM;
    while (c.size < (size_t)st.st_size &&
           (n = pread(fd, c.bytes + c.size, (size_t)st.st_size - c.size, (off_t)c.size)) > 0)
        c.size += (size_t)n;
    err = check_board(&c, pid);
    if (err)
        free(c.bytes);
    else
        *out = c;
    return err;
}

void
hed_board_copy_free(struct hed_board_copy *c)
{
    free(c->bytes);
    *c = (struct hed_board_copy){0};
}

const struct hed_board_record *
hed_board_next(const struct hed_board_copy *c, size_t *at)
{
    const struct hed_board_head *head = (const struct hed_board_head *)c->bytes;
    const struct hed_board_record *r;

    if (*at >= head->used)
        return NULL;
    r = (const struct hed_board_record *)(c->bytes + sizeof *head + *at);
    *at += r->size;
    return r;
}

uint64_t
hed_board_left_out(const struct hed_board_copy *c)
{
    return ((const struct hed_board_head *)c->bytes)->left_out;
}
