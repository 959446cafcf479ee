/* A folder on a disk that can fail. See disk.h. */
#include "unit/snap/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define FILES 256 /* that may ever be created */
#define NAMES 256
#define OPENS 256
#define CHANGES 1024 /* of the folder, that were not synced */
#define SECTOR 512

struct bytes {
    unsigned char *data; /* owned */
    uint64_t size;
};

struct disk_file {
    struct bytes now;    /* what programs see */
    struct bytes synced; /* what is on the disk */
};

struct disk_name {
    char name[512]; /* "": free */
    int file;
};

struct change {
    struct disk_name names[NAMES]; /* the folder after it; owned by the array of pointers */
};

struct disk {
    struct hed_snap_files table;
    struct disk_faults faults;
    uint64_t operations;
    _Atomic uint64_t calls; /* of all kinds, for faults that come by turns */
    bool crashed;
    struct disk_file files[FILES];
    int file_count;
    struct disk_name names[NAMES];   /* what programs see */
    struct change *changes[CHANGES]; /* since the last sync of the folder; [0]: as it was then */
    int change_count;
    int opens[OPENS]; /* the file + 1; 0: free; -1: the folder */
};

static void
set_bytes(struct bytes *b, const void *data, uint64_t size)
{
    unsigned char *p = malloc(size ? size : 1);

    if (size)
        memcpy(p, data, size);
    free(b->data);
    b->data = p;
    b->size = size;
}

static void
resize(struct bytes *b, uint64_t size)
{
    b->data = realloc(b->data, size ? size : 1);
    if (size > b->size)
        memset(b->data + b->size, 0, size - b->size);
    b->size = size;
}

static int
fail(int error)
{
    errno = error;
    return -1;
}

/* Before an operation that changes something. 0: it may happen. */
static int
before_change(struct disk *d, bool is_write, bool interruptible)
{
    if (d->crashed)
        return fail(EIO);
    d->calls++;
    if (interruptible && d->faults.interrupts && d->calls % d->faults.interrupts == 0)
        return fail(EINTR);
    d->operations++;
    if (d->operations == d->faults.crash_at)
        return 0; /* it happens in part; then the power is gone */
    if (d->faults.error_at &&
        (d->operations == d->faults.error_at ||
         (d->faults.error_stays && is_write && d->operations > d->faults.error_at)))
        return fail(d->faults.error);
    return 0;
}

static bool
crashes_now(struct disk *d)
{
    if (d->operations != d->faults.crash_at)
        return false;
    d->crashed = true;
    errno = EIO;
    return true;
}

static struct disk_file *
file_of(struct disk *d, int fd)
{
    return fd >= 0 && fd < OPENS && d->opens[fd] > 0 ? &d->files[d->opens[fd] - 1] : NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static ssize_t
disk_pread(void *state, int fd, void *p, size_t n, uint64_t at)
{
    struct disk *d = state;
    const struct disk_file *f = file_of(d, fd);

    if (!f || d->crashed)
        return fail(f ? EIO : EBADF);

    /* Relaxed: it only counts, and several threads may read at once. */
    const uint64_t call = atomic_fetch_add_explicit(&d->calls, 1, memory_order_relaxed) + 1;

    if (d->faults.interrupts && call % d->faults.interrupts == 0)
        return fail(EINTR);
    if (at >= f->now.size)
        return 0;
    if (n > f->now.size - at)
        n = f->now.size - at;
    if (d->faults.shorts && call % d->faults.shorts == 0 && n > 1)
        n /= 2;
    memcpy(p, f->now.data + at, n);
    return (ssize_t)n;
}

static ssize_t
disk_pwrite(void *state, int fd, const void *p, size_t n, uint64_t at)
{
    struct disk *d = state;
    struct disk_file *f = file_of(d, fd);

    if (!f)
        return fail(EBADF);
    if (before_change(d, true, true) != 0)
        return -1;
    if ((d->faults.shorts && d->calls % d->faults.shorts == 0 && n > 1) ||
        d->operations == d->faults.crash_at)
        n /= 2;
    if (at + n > f->now.size)
        resize(&f->now, at + n);
    memcpy(f->now.data + at, p, n);
    return crashes_now(d) ? -1 : (ssize_t)n;
}

static int
disk_datasync(void *state, int fd)
{
    struct disk *d = state;
    struct disk_file *f = file_of(d, fd);

    if (!f)
        return fail(EBADF);
    if (before_change(d, false, true) != 0) {
        /* What could not be written is gone: the next sync will say that all is well. */
        if (errno != EINTR && !d->crashed)
            set_bytes(&f->now, f->synced.data, f->synced.size);
        return -1;
    }
    if (crashes_now(d))
        return -1;
    set_bytes(&f->synced, f->now.data, f->now.size);
    return 0;
}

static int
disk_size(void *state, int fd, uint64_t *out)
{
    const struct disk_file *f = file_of(state, fd);

    if (!f)
        return fail(EBADF);
    *out = f->now.size;
    return 0;
}

static int
disk_truncate(void *state, int fd, uint64_t size)
{
    struct disk *d = state;
    struct disk_file *f = file_of(d, fd);

    if (!f)
        return fail(EBADF);
    if (before_change(d, false, false) != 0 || crashes_now(d))
        return -1;
    resize(&f->now, size);
    return 0;
}

static int
disk_close(void *state, int fd)
{
    struct disk *d = state;

    if (fd < 0 || fd >= OPENS || !d->opens[fd])
        return fail(EBADF);
    d->opens[fd] = 0;
    return 0;
}

static struct disk_name *
find_name(struct disk *d, const char *name)
{
    for (int i = 0; i < NAMES; i++) {
        if (strcmp(d->names[i].name, name) == 0)
            return &d->names[i];
    }
    return NULL;
}

/* Keeps the folder as it has become, for crashes that come before it is synced. */
static void
note_change(struct disk *d)
{
    struct change *c = malloc(sizeof *c);

    if (d->change_count == CHANGES)
        abort();
    memcpy(c->names, d->names, sizeof c->names);
    d->changes[d->change_count++] = c;
}

static int
new_descriptor(struct disk *d, int file)
{
    for (int i = 3; i < OPENS; i++) {
        if (!d->opens[i]) {
            d->opens[i] = file;
            return i;
        }
    }
    return fail(EMFILE);
}

static int
disk_open(void *state, int folder, const char *name, int flags, mode_t mode)
{
    struct disk *d = state;
    struct disk_name *n = find_name(d, name);

    (void)mode;
    if (folder != DISK_FOLDER || d->crashed)
        return fail(EIO);
    if (strcmp(name, ".") == 0)
        return new_descriptor(d, -1);
    if (!n && !(flags & O_CREAT))
        return fail(ENOENT);
    if (n && flags & O_EXCL)
        return fail(EEXIST);
    if (!n) {
        if (before_change(d, true, false) != 0 || crashes_now(d))
            return -1;
        n = find_name(d, "");
        if (!n || d->file_count == FILES)
            return fail(ENOSPC);
        strncpy(n->name, name, sizeof n->name - 1);
        n->file = d->file_count++;
        resize(&d->files[n->file].now, 0);
        resize(&d->files[n->file].synced, 0);
        note_change(d);
    } else if (flags & O_TRUNC) {
        resize(&d->files[n->file].now, 0);
    }
    return new_descriptor(d, n->file + 1);
}

static int
disk_rename(void *state, int folder, const char *from, const char *to, bool replace)
{
    struct disk *d = state;
    struct disk_name *n = find_name(d, from), *old = find_name(d, to);

    if (folder != DISK_FOLDER || !n)
        return fail(ENOENT);
    if (old && !replace)
        return fail(EEXIST);
    if (before_change(d, false, false) != 0 || crashes_now(d))
        return -1;
    if (old)
        old->name[0] = '\0';
    memset(n->name, 0, sizeof n->name);
    strncpy(n->name, to, sizeof n->name - 1);
    note_change(d);
    return 0;
}

static int
disk_remove(void *state, int folder, const char *name)
{
    struct disk *d = state;
    struct disk_name *n = find_name(d, name);

    if (folder != DISK_FOLDER || !n)
        return fail(ENOENT);
    if (before_change(d, false, false) != 0 || crashes_now(d))
        return -1;
    n->name[0] = '\0';
    note_change(d);
    return 0;
}

static void
forget_changes(struct disk *d)
{
    while (d->change_count > 0)
        free(d->changes[--d->change_count]);
    note_change(d);
}

static int
disk_syncdir(void *state, int folder)
{
    struct disk *d = state;

    if (folder != DISK_FOLDER)
        return fail(EBADF);
    if (before_change(d, false, false) != 0 || crashes_now(d))
        return -1;
    forget_changes(d);
    return 0;
}

static int
disk_list(void *state, int folder, bool (*visit)(void *arg, const char *name), void *arg)
{
    struct disk *d = state;

    if (folder != DISK_FOLDER || d->crashed)
        return fail(EIO);
    for (int i = 0; i < NAMES; i++) {
        if (d->names[i].name[0] && !visit(arg, d->names[i].name))
            break;
    }
    return 0;
}

static int
disk_lock(void *state, int fd, enum hed_snap_lock_mode mode)
{
    (void)state;
    (void)fd;
    (void)mode;
    return 0;
}

/* ---- for the tests --------------------------------------------------------------------------- */

struct disk *
disk_create(void)
{
    struct disk *d = calloc(1, sizeof *d);

    d->table = (struct hed_snap_files){
        .state = d,
        .pread = disk_pread,
        .pwrite = disk_pwrite,
        .datasync = disk_datasync,
        .size = disk_size,
        .truncate = disk_truncate,
        .close = disk_close,
        .open = disk_open,
        .rename = disk_rename,
        .remove = disk_remove,
        .syncdir = disk_syncdir,
        .list = disk_list,
        .lock = disk_lock,
    };
    note_change(d);
    return d;
}

void
disk_free(struct disk *d)
{
    while (d->change_count > 0)
        free(d->changes[--d->change_count]);
    for (int i = 0; i < d->file_count; i++) {
        free(d->files[i].now.data);
        free(d->files[i].synced.data);
    }
    free(d);
}

const struct hed_snap_files *
disk_files(struct disk *d)
{
    return &d->table;
}

void
disk_set_faults(struct disk *d, const struct disk_faults *f)
{
    d->faults = *f;
    d->operations = 0;
    d->calls = 0;
}

uint64_t
disk_operations(const struct disk *d)
{
    return d->operations;
}

bool
disk_crashed(const struct disk *d)
{
    return d->crashed;
}

static unsigned
draw(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

/* Each sector that differs is the old or the new one; so is the size. Disks write in any order: in
 * every second crash, only a part in the middle of a file may be missing. */
static void
lose_sectors(struct disk_file *f, unsigned *seed)
{
    const bool middle = draw(seed) % 2;
    const uint64_t from = middle ? f->now.size * (draw(seed) % 16) / 16 : 0;
    const uint64_t to = middle ? f->now.size * (draw(seed) % 16) / 16 : f->now.size;
    struct bytes left = {0};

    set_bytes(&left, f->synced.data, f->synced.size);
    if (f->now.size < left.size && draw(seed) % 2)
        resize(&left, f->now.size);
    if (f->now.size > left.size && draw(seed) % 2)
        resize(&left, f->now.size); /* the size got there, perhaps without the bytes */
    for (uint64_t at = 0; at < f->now.size; at += SECTOR) {
        const uint64_t n = f->now.size - at < SECTOR ? f->now.size - at : SECTOR;

        if (at >= from && at < to && draw(seed) % 2)
            continue;
        if (at + n > left.size)
            resize(&left, at + n);
        memcpy(left.data + at, f->now.data + at, n);
    }
    set_bytes(&f->now, left.data, left.size);
    free(left.data);
}

void
disk_restart(struct disk *d, enum disk_loss loss, unsigned seed)
{
    int last = d->change_count - 1;

    if (loss == DISK_LOSE_ALL)
        last = 0;
    if (loss == DISK_LOSE_SOME)
        last = (int)(draw(&seed) % (unsigned)d->change_count);
    memcpy(d->names, d->changes[last]->names, sizeof d->names);
    for (int i = 0; i < d->file_count; i++) {
        struct disk_file *f = &d->files[i];

        if (loss == DISK_LOSE_ALL)
            set_bytes(&f->now, f->synced.data, f->synced.size);
        if (loss == DISK_LOSE_SOME)
            lose_sectors(f, &seed);
        set_bytes(&f->synced, f->now.data, f->now.size);
    }
    forget_changes(d);
    memset(d->opens, 0, sizeof d->opens);
    d->faults = (struct disk_faults){0};
    d->crashed = false;
}

unsigned char *
disk_bytes(struct disk *d, const char *name, uint64_t *size)
{
    const struct disk_name *n = find_name(d, name);

    if (!n)
        return NULL;
    *size = d->files[n->file].now.size;
    return d->files[n->file].now.data;
}

void
disk_cut(struct disk *d, const char *name, uint64_t size)
{
    resize(&d->files[find_name(d, name)->file].now, size);
}

unsigned
disk_open_files(const struct disk *d)
{
    unsigned n = 0;

    for (int i = 0; i < OPENS; i++)
        n += d->opens[i] != 0;
    return n;
}
