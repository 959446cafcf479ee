/* The file of meet/meet.h.
 *
 *   head (64 bytes) | common, to 64 | place 0 | place 1 | ...      a place: owner (64) | its bytes
 *
 * Locks are open file description's locks, on offsets that mean nothing as bytes of the file:
 *   0        whoever changes the common part, makes the file or takes a place
 *   1 + i    the owner of place i, for as long as it lives
 *
 * Invariants:
 * 1. A place is taken and zeroed under lock 0, so who holds that sees no place that is taken and
 *    still has its last owner's bytes.
 * 2. The file only ever grows: somebody may have mapped it without having a place.
 * 3. Everybody's file is made anew only where nobody has a place in it.
 * 4. Sizes come from the caller's shape, never from the file.
 *
 * Somebody of the same user who cuts the file short ends the processes that have it mapped, as he
 * could by kill(2).
 */
#include "meet/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/lock.h"

#define FILE_MAGIC UINT64_C(0x315445454d444548) /* "HEDMEET1" */
#define LINE 64u
#define NAME_MAX_CHARS 100
#define COMMON_MAX (16u << 20)
#define PLACE_MAX (1u << 20)
#define PLACES_MAX 4096u
#define OPEN_TRIES 100                  /* the file was removed between opening and locking */
#define LOCK_WAIT_NS (2 * HED_NS_PER_S) /* nobody holds it for more than microseconds */
#define LOCK_AGAIN_NS HED_NS_PER_MS     /* after it was not to be had: its holder is stopped */
#define LOCK_NAP_MAX_NS 500000

struct head {
    _Atomic uint64_t magic; /* written last */
    struct hed_meet_shape shape;
    uint32_t reserved[10];
};

struct owner {
    _Atomic int32_t pid;
    uint32_t reserved[15];
};

_Static_assert(sizeof(struct head) == LINE && sizeof(struct owner) == LINE, "layout of the file");

struct hed_meet {
    struct hed_meet_shape shape;
    struct hed_lock lock; /* lock 0 keeps processes apart, not threads */
    int fd;               /* -1 in the child of a fork */
    int index;            /* of the own place; -1 */
    bool stuck;           /* lock 0 was not to be had the last time */
    unsigned char *map;
    size_t size;
};

static size_t
lines(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

static size_t
place_offset(const struct hed_meet_shape *s, uint32_t index)
{
    return LINE + lines(s->common) + (size_t)index * (LINE + lines(s->place));
}

static struct owner *
owner_at(struct hed_meet *m, uint32_t index)
{
    return (struct owner *)(m->map + place_offset(&m->shape, index));
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* 0 or errno. */
static int
lock_byte(int fd, short type, off_t at)
{
    struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int r;

    do
        r = fcntl(fd, F_OFD_SETLK, &f);
    while (r != 0 && errno == EINTR);
    return r == 0 ? 0 : errno;
}

/* Has somebody else a lock on [at, at + n)? n 0: to the end. What cannot be told counts as yes. */
static bool
byte_locked(int fd, off_t at, off_t n)
{
    struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = n};

    return fcntl(fd, F_OFD_GETLK, &f) != 0 || f.l_type != F_UNLCK;
}

/* Lock 0. By trying: somebody who is stopped while he has it must not stop us for good. */
static int
lock_file(int fd, uint64_t wait)
{
    const uint64_t end = hed_now_ns() + wait;
    uint64_t nap = 5000;
    int e;

    while ((e = lock_byte(fd, F_WRLCK, 0)) != 0) {
        if (e != EAGAIN && e != EACCES)
            return hed_err_from_errno(e);
        if (hed_now_ns() > end)
            return HED_ETIME;
        hed_sleep_ns(nap);
        if (nap < LOCK_NAP_MAX_NS)
            nap *= 2;
    }
    return 0;
}

int
hed_meet_lock(struct hed_meet *m)
{
    hed_lock(&m->lock);

    const int err =
        m->fd < 0 ? HED_ESTATE : lock_file(m->fd, m->stuck ? LOCK_AGAIN_NS : LOCK_WAIT_NS);

    /* One thread has waited for it; the others, and every later call, need not do the same. */
    m->stuck = err == HED_ETIME;
    if (err)
        hed_unlock(&m->lock);
    return err;
}

void
hed_meet_unlock(struct hed_meet *m)
{
    (void)lock_byte(m->fd, F_UNLCK, 0);
    hed_unlock(&m->lock);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int
check(const char *name, const struct hed_meet_shape *s, struct hed_why *why)
{
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    if (n == 0 || n > NAME_MAX_CHARS || name[n] != '\0') {
        hed_why_set(why, "'%.120s' is no name of a meeting place", name);
        return HED_EINVAL;
    }
    if (s->magic == 0 || s->common > COMMON_MAX || s->place > PLACE_MAX || s->places == 0 ||
        s->places > PLACES_MAX) {
        hed_why_set(why, "%s: no shape of a meeting place", name);
        return HED_EINVAL;
    }
    return 0;
}

static int
complain(struct hed_why *why, const char *path, int e)
{
    hed_why_set(why, "%s: %s", path, strerror(e));
    return hed_err_from_errno(e);
}

/* Opens the file with lock 0 held, and makes sure that it is the one others will find. */
static int
open_locked(const char *path, int flags, int *out, struct hed_why *why)
{
    for (int i = 0; i < OPEN_TRIES; i++) {
        const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
        struct stat mine;
        struct stat now;
        int err = 0;

        if (fd < 0)
            return complain(why, path, errno);
        if (fstat(fd, &mine) != 0) {
            err = complain(why, path, errno);
        } else if (!S_ISREG(mine.st_mode) || mine.st_uid != geteuid() || (mine.st_mode & 077)) {
            hed_why_set(why, "%s: not a file that is this user's alone", path);
            err = HED_EACCESS;
        } else if ((err = lock_file(fd, LOCK_WAIT_NS)) != 0) {
            hed_why_set(why, "%s: cannot be locked: %s", path, hed_err_text(err));
        } else if (stat(path, &now) == 0 && now.st_ino == mine.st_ino &&
                   now.st_dev == mine.st_dev) {
            *out = fd;
            return 0;
        }
        close(fd);
        if (err)
            return err;
    }
    hed_why_set(why, "%s: is removed all the time", path);
    return HED_EIO;
}

/* Is it the right kind of file (0), or must it be made that (1), or neither? Under lock 0. */
static int
judge(struct hed_meet *m, const char *path, bool make, struct hed_why *why)
{
    struct head h = {0}; /* of what is not there, too */

    if (pread(m->fd, &h, sizeof h, 0) < 0)
        return complain(why, path, errno);

    const uint64_t magic = atomic_load_explicit(&h.magic, memory_order_relaxed);

    if (magic != 0 && magic != FILE_MAGIC) {
        hed_why_set(why, "%s: is another kind of file", path);
        return HED_EVERSION;
    }

    const bool same = magic != 0 && memcmp(&h.shape, &m->shape, sizeof h.shape) == 0;
    struct stat st;

    if (fstat(m->fd, &st) != 0)
        return complain(why, path, errno);
    if (same && st.st_size >= (off_t)m->size)
        return 0;
    if (byte_locked(m->fd, 1, 0)) {
        hed_why_set(why, "%s: is used by another version of heddle", path);
        return HED_EVERSION;
    }
    if (!make) {
        hed_why_set(why, "%s: nobody is there", path);
        return HED_ENOTFOUND;
    }
    return 1;
}

static void
make_anew(struct hed_meet *m)
{
    struct head *h = (struct head *)m->map;

    atomic_store_explicit(&h->magic, 0, memory_order_relaxed);
    memset(m->map + sizeof h->magic, 0, m->size - sizeof h->magic);
    h->shape = m->shape;
    /* Relaxed: lock 0, a system call, is what others see it after. */
    atomic_store_explicit(&h->magic, FILE_MAGIC, memory_order_relaxed);
}

/* Maps the file, as it must be. Under lock 0. */
static int
map_file(struct hed_meet *m, const char *path, bool make, struct hed_why *why)
{
    m->size = place_offset(&m->shape, m->shape.places);

    const int fresh = judge(m, path, make, why);

    if (fresh < 0)
        return fresh;
    if (fresh) {
        /* Memory that is not there must be an error here, not a signal later. */
        const int e = posix_fallocate(m->fd, 0, (off_t)m->size);

        if (e != 0)
            return complain(why, path, e);
    }

    void *map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);

    if (map == MAP_FAILED)
        return complain(why, path, errno);
    m->map = map;
    if (fresh)
        make_anew(m);
    return 0;
}

static int
take_place(struct hed_meet *m, const char *path, struct hed_why *why)
{
    for (uint32_t i = 0; i < m->shape.places; i++) {
        const int e = lock_byte(m->fd, F_WRLCK, 1 + (off_t)i);

        if (e == EAGAIN || e == EACCES)
            continue;
        if (e != 0)
            return complain(why, path, e);

        struct owner *o = owner_at(m, i);

        memset((void *)o, 0, LINE + lines(m->shape.place));
        atomic_store_explicit(&o->pid, (int32_t)getpid(), memory_order_relaxed);
        m->index = (int)i;
        return 0;
    }
    hed_why_set(why, "%s: all %u places are taken", path, m->shape.places);
    return HED_ELIMIT;
}

static int
enter(const char *name, const struct hed_meet_shape *shape, bool join, struct hed_meet **out,
      struct hed_why *why)
{
    char path[sizeof "/dev/shm/heddle--" + 20 + NAME_MAX_CHARS];
    int err = check(name, shape, why);

    if (err)
        return err;
    (void)snprintf(path, sizeof path, "/dev/shm/heddle-%u-%s", (unsigned)geteuid(), name);

    struct hed_meet *m = calloc(1, sizeof *m);

    if (!m) {
        hed_why_set(why, "%s: %s", path, hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    m->shape = *shape;
    m->fd = -1;
    m->index = -1;
    hed_lock_init(&m->lock, HED_RANK_MEET);
    err = open_locked(path, join ? O_CREAT : 0, &m->fd, why);
    if (!err)
        err = map_file(m, path, join, why);
    if (!err && join)
        err = take_place(m, path, why);
    if (err) {
        hed_meet_leave(m); /* closing lets lock 0 go */
        return err;
    }
    (void)lock_byte(m->fd, F_UNLCK, 0);
    *out = m;
    return 0;
}

int
hed_meet_join(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
              struct hed_why *why)
{
    return enter(name, shape, true, out, why);
}

int
hed_meet_look(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
              struct hed_why *why)
{
    return enter(name, shape, false, out, why);
}

void
hed_meet_leave(struct hed_meet *m)
{
    if (!m)
        return;
    if (m->map)
        (void)munmap(m->map, m->size);
    if (m->fd >= 0)
        close(m->fd);
    hed_lock_fini(&m->lock);
    free(m);
}

/* The child has the parent's locks as long as it has the descriptor. Whoever still has an address
 * of the mapping finds memory there that is nobody else's. */
void
hed_meet_forked(struct hed_meet *m)
{
    if (!m || m->fd < 0)
        return;
    close(m->fd);
    m->fd = -1;
    m->index = -1;
    hed_lock_init(&m->lock, HED_RANK_MEET);
    (void)mmap(m->map, m->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0);
}

/* ---- looking --------------------------------------------------------------------------------- */

void *
hed_meet_common(struct hed_meet *m)
{
    return m->map + LINE;
}

void *
hed_meet_mine(struct hed_meet *m)
{
    return m->index < 0 ? NULL : hed_meet_place(m, (uint32_t)m->index);
}

int
hed_meet_index(const struct hed_meet *m)
{
    return m->index;
}

void *
hed_meet_place(struct hed_meet *m, uint32_t index)
{
    return index < m->shape.places ? m->map + place_offset(&m->shape, index) + LINE : NULL;
}

bool
hed_meet_taken(struct hed_meet *m, uint32_t index, pid_t *pid)
{
    if (m->fd < 0 || index >= m->shape.places)
        return false;
    /* The kernel does not tell of a description's own locks. */
    if ((int)index != m->index && !byte_locked(m->fd, 1 + (off_t)index, 1))
        return false;
    if (pid)
        *pid = atomic_load_explicit(&owner_at(m, index)->pid, memory_order_relaxed);
    return true;
}
