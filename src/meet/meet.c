/* The file of meet/meet.h.
 *
 *   head (64 bytes) | common, to 64 | slot 0 | slot 1 | ...      a slot: owner (64) | its bytes
 *
 * The file has its final size and a valid head when it appears under its name, and neither changes
 * afterwards. Its locks are locks of open file descriptions, on offsets that mean nothing as bytes
 * of the file:
 *
 *   0                   held while the common part changes (hed_meet_lock)
 *   1 + i               slot i is in use: it was zeroed, and its owner lives
 *   1 + SLOTS_MAX + i   slot i is claimed: the claimer may zero it
 *
 * Joining takes no lock that another process could hold: a process tries the claims one after the
 * other, zeroes the slot whose claim it gets, and then marks the slot as in use. So a member that
 * is slow or stopped, at whatever step, blocks no other.
 *
 * Invariants:
 * 1. A slot that is in use holds nothing of its previous owner.
 * 2. A process uses a slot only in the file that has the name: it checks the name again after it
 *    has claimed the slot.
 * 3. A file loses its name only while one process has all of its slot locks, so that no other is in
 *    it.
 * 4. Sizes come from the caller's shape, never from the file.
 *
 * A process of the same user that truncates the file ends the processes that have mapped it, as it
 * could with kill(2).
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
#include "base/number.h"
#include "base/process.h"

#define FILE_MAGIC UINT64_C(0x325445454d444548) /* "HEDMEET2"; the digit counts versions */
#define ANY_VERSION UINT64_C(0x00ffffffffffffff)
#define FOLDER "/dev/shm"
#define LINE 64u
#define NAME_MAX_CHARS 100
#define COMMON_MAX (16u << 20)
#define SLOT_MAX (1u << 20)
#define SLOTS_MAX 4096u
#define REPLACE_NS (10 * HED_NS_PER_S) /* how long to wait for a file of another layout to go */

/* How long to wait for lock 0 while the same process has it. No process needs it for more than
 * microseconds, but a holder that does not get the processor may keep it for much longer. */
#define LOCK_STOPPED_NS (2 * HED_NS_PER_S) /* its holder is stopped */
#define LOCK_HELD_NS (10 * HED_NS_PER_S)   /* its holder is running, or is not known */
#define LOCK_AGAIN_NS HED_NS_PER_MS        /* after one wait has failed */
#define NAP_NS 5000
#define NAP_MAX_NS 500000

struct head {
    uint64_t magic;
    struct hed_meet_shape shape;
    _Atomic int32_t holder;  /* the process that has lock 0; 0 if none or unknown */
    _Atomic uint32_t serial; /* how often lock 0 has been taken */
    uint32_t reserved[8];
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
    int index;            /* of the own slot; -1 for none */
    bool stuck;           /* the last wait for lock 0 failed */
    unsigned char *map;
    size_t size;
};

static size_t
round_to_line(size_t n)
{
    return hed_round_up(n, LINE);
}

static size_t
slot_offset(const struct hed_meet_shape *s, uint32_t index)
{
    return LINE + round_to_line(s->common) + (size_t)index * (LINE + round_to_line(s->slot));
}

static struct owner *
owner_at(struct hed_meet *m, uint32_t index)
{
    return (struct owner *)(m->map + slot_offset(&m->shape, index));
}

/* ---- locks ----------------------------------------------------------------------------------- */

static off_t
use_byte(uint32_t index)
{
    return 1 + (off_t)index;
}

static off_t
claim_byte(uint32_t index)
{
    return 1 + (off_t)SLOTS_MAX + (off_t)index;
}

/* Locks or unlocks [at, at + n) without waiting; n = 0 means to the end. Returns 0 or errno. */
static int
lock_bytes(int fd, short type, off_t at, off_t n)
{
    struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n};
    int r;

    do
        r = fcntl(fd, F_OFD_SETLK, &f);
    while (r != 0 && errno == EINTR);
    return r == 0 ? 0 : errno;
}

static bool
is_lock_taken(int e)
{
    return e == EAGAIN || e == EACCES;
}

/* Does another process have a lock on that byte? If the kernel does not tell, the answer is yes. */
static bool
is_byte_locked(int fd, off_t at)
{
    struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &f) != 0 || f.l_type != F_UNLCK;
}

enum occupants {
    NOBODY,
    MEMBERS,
    A_REMOVER, /* has all slot locks, and is about to remove the file */
};

static enum occupants
find_occupants(int fd)
{
    struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = use_byte(0), .l_len = 0};

    if (fcntl(fd, F_OFD_GETLK, &f) != 0)
        return MEMBERS;
    if (f.l_type == F_UNLCK)
        return NOBODY;
    return f.l_len == 0 ? A_REMOVER : MEMBERS;
}

/* Sleeps a little longer each time. */
static void
take_nap(uint64_t *nap)
{
    hed_sleep_ns(*nap);
    if (*nap < NAP_MAX_NS)
        *nap *= 2;
}

static struct head *
head_of(struct hed_meet *m)
{
    return (struct head *)m->map;
}

/* How long the present holder of lock 0 may keep it. */
static uint64_t
lock_patience(struct hed_meet *m)
{
    const int32_t holder = atomic_load_explicit(&head_of(m)->holder, memory_order_relaxed);

    if (m->stuck)
        return LOCK_AGAIN_NS;
    return holder > 0 && hed_process_is_stopped(holder) ? LOCK_STOPPED_NS : LOCK_HELD_NS;
}

/* Takes lock 0 by trying: a process that is stopped while it holds the lock must not block this one
 * for ever. The wait is measured from the last time that the lock was seen to change hands, so it
 * goes on as long as the others make progress. */
static int
lock_common(struct hed_meet *m)
{
    uint64_t since = hed_now_ns();
    uint64_t nap = NAP_NS;
    uint32_t seen = atomic_load_explicit(&head_of(m)->serial, memory_order_relaxed);
    int e;

    while ((e = lock_bytes(m->fd, F_WRLCK, 0, 1)) != 0) {
        const uint32_t serial = atomic_load_explicit(&head_of(m)->serial, memory_order_relaxed);
        const uint64_t now = hed_now_ns();

        if (!is_lock_taken(e))
            return hed_err_from_errno(e);
        if (serial != seen && !m->stuck) {
            seen = serial;
            since = now;
        }
        if (now - since > LOCK_AGAIN_NS && now - since > lock_patience(m))
            return HED_ETIME;
        take_nap(&nap);
    }
    /* Relaxed: waiting processes read single numbers. */
    atomic_fetch_add_explicit(&head_of(m)->serial, 1, memory_order_relaxed);
    atomic_store_explicit(&head_of(m)->holder, (int32_t)getpid(), memory_order_relaxed);
    return 0;
}

int
hed_meet_lock(struct hed_meet *m)
{
    hed_lock(&m->lock);

    const int err = m->fd < 0 ? HED_ESTATE : lock_common(m);

    /* One thread has waited for it; the others, and every later call, need not wait as long. */
    m->stuck = err == HED_ETIME;
    if (err)
        hed_unlock(&m->lock);
    return err;
}

void
hed_meet_unlock(struct hed_meet *m)
{
    atomic_store_explicit(&head_of(m)->holder, 0, memory_order_relaxed);
    (void)lock_bytes(m->fd, F_UNLCK, 0, 1);
    hed_unlock(&m->lock);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int
check_arguments(const char *name, const struct hed_meet_shape *s, struct hed_why *why)
{
    const size_t n =
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.");

    if (n == 0 || n > NAME_MAX_CHARS || name[n] != '\0') {
        hed_why_set(why,
                    "'%.120s' is not a name for a meeting file: use letters, digits, '-' and '.'",
                    name);
        return HED_EINVAL;
    }
    if (s->magic == 0 || s->common > COMMON_MAX || s->slot > SLOT_MAX || s->slots == 0 ||
        s->slots > SLOTS_MAX) {
        hed_why_set(why, "%s: the sizes of this meeting file are not possible", name);
        return HED_EINVAL;
    }
    return 0;
}

static int
explain_errno(struct hed_why *why, const char *path, int e)
{
    hed_why_set(why, "%s: %s", path, strerror(e));
    return hed_err_from_errno(e);
}

/* Is the file that is open as fd still the one that the name stands for? */
static bool
has_name(int fd, const char *path)
{
    struct stat mine;
    struct stat now;

    return fstat(fd, &mine) == 0 && stat(path, &now) == 0 && now.st_ino == mine.st_ino &&
           now.st_dev == mine.st_dev;
}

/* Creates the complete file before it gets its name. If another process was faster, its file stays
 * and this one disappears. */
static int
make_meeting_file(const struct hed_meet *m, const char *path, struct hed_why *why)
{
    const struct head h = {.magic = FILE_MAGIC, .shape = m->shape};
    const int fd = open(FOLDER, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char self[64];
    int e;

    if (fd < 0)
        return explain_errno(why, FOLDER, errno);
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    /* A lack of memory must be an error here and not a signal later. */
    e = posix_fallocate(fd, 0, (off_t)m->size);
    if (e == 0 && (pwrite(fd, &h, sizeof h, 0) != (ssize_t)sizeof h ||
                   linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0))
        e = errno;
    close(fd);
    return e == 0 || e == EEXIST ? 0 : explain_errno(why, path, e);
}

/* In the functions below, 1 means: this file has gone or is about to, so start again. */

static int
open_meeting_file(struct hed_meet *m, const char *path, bool make, struct hed_why *why)
{
    struct stat st;

    m->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (m->fd < 0 && errno == ENOENT && make) {
        const int err = make_meeting_file(m, path, why);

        return err ? err : 1;
    }
    if (m->fd < 0 || fstat(m->fd, &st) != 0)
        return explain_errno(why, path, errno);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077)) {
        hed_why_set(why, "%s: other users can access this file, or it is not a file; remove it",
                    path);
        return HED_EACCESS;
    }
    return 0;
}

static int
explain_version(const char *path, struct hed_why *why)
{
    hed_why_set(why, "%s: another version of heddle uses this file", path);
    return HED_EVERSION;
}

/* Removes a file of another layout, if no process is in it. */
static int
remove_file(const struct hed_meet *m, const char *path, struct hed_why *why)
{
    const int e = lock_bytes(m->fd, F_WRLCK, use_byte(0), 0);

    if (is_lock_taken(e))
        return find_occupants(m->fd) == MEMBERS ? explain_version(path, why) : 1;
    /* While this process has the locks, no other removes the file, so the name is not another
     * file's. */
    if (e != 0 || (has_name(m->fd, path) && unlink(path) != 0))
        return explain_errno(why, path, e ? e : errno);
    return 1;
}

/* Is it a file of the right layout? */
static int
judge_file(struct hed_meet *m, const char *path, bool join, struct hed_why *why)
{
    struct head h = {0}; /* also for a file that is too short */
    struct stat st;

    if (pread(m->fd, &h, sizeof h, 0) < 0 || fstat(m->fd, &st) != 0)
        return explain_errno(why, path, errno);
    if (h.magic != 0 && (h.magic & ANY_VERSION) != (FILE_MAGIC & ANY_VERSION)) {
        hed_why_set(why, "%s: this is another kind of file", path);
        return HED_EVERSION;
    }
    if (h.magic == FILE_MAGIC && memcmp(&h.shape, &m->shape, sizeof h.shape) == 0 &&
        st.st_size >= (off_t)m->size)
        return 0;
    if (join)
        return remove_file(m, path, why);
    if (find_occupants(m->fd) == MEMBERS)
        return explain_version(path, why);
    hed_why_set(why, "%s: no program uses this file", path);
    return HED_ENOTFOUND;
}

static int
map_file(struct hed_meet *m, const char *path, struct hed_why *why)
{
    void *map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);

    if (map == MAP_FAILED)
        return explain_errno(why, path, errno);
    m->map = map;
    return 0;
}

/* Claims slot i, zeroes it and marks it as in use. Returns 0 or errno. */
static int
claim_meeting_slot(struct hed_meet *m, uint32_t i)
{
    struct owner *o = owner_at(m, i);
    int e = lock_bytes(m->fd, F_WRLCK, claim_byte(i), 1);

    if (e != 0)
        return e;
    memset((void *)o, 0, LINE + round_to_line(m->shape.slot));
    atomic_store_explicit(&o->pid, (int32_t)getpid(), memory_order_relaxed);
    e = lock_bytes(m->fd, F_WRLCK, use_byte(i), 1);
    if (e != 0)
        (void)lock_bytes(m->fd, F_UNLCK, claim_byte(i), 1);
    return e;
}

static int
take_slot(struct hed_meet *m, const char *path, struct hed_why *why)
{
    int e = EAGAIN;

    for (uint32_t i = 0; is_lock_taken(e) && i < m->shape.slots; i++)
        if ((e = claim_meeting_slot(m, i)) == 0)
            m->index = (int)i;
    if (!has_name(m->fd, path) || (is_lock_taken(e) && find_occupants(m->fd) == A_REMOVER)) {
        m->index = -1;
        return 1;
    }
    if (is_lock_taken(e)) {
        hed_why_set(why, "%s: all %u slots are taken: end a program that uses it", path,
                    m->shape.slots);
        return HED_ELIMIT;
    }
    return e == 0 ? 0 : explain_errno(why, path, e);
}

static void
close_file(struct hed_meet *m)
{
    if (m->map)
        (void)munmap(m->map, m->size);
    if (m->fd >= 0)
        close(m->fd); /* the locks end with it */
    m->map = NULL;
    m->fd = -1;
}

static int
enter_file(struct hed_meet *m, const char *path, bool join, struct hed_why *why)
{
    const uint64_t end = hed_now_ns() + REPLACE_NS;
    uint64_t nap = NAP_NS;

    for (;;) {
        int r = open_meeting_file(m, path, join, why);

        if (r == 0)
            r = judge_file(m, path, join, why);
        if (r == 0)
            r = map_file(m, path, why);
        if (r == 0 && join)
            r = take_slot(m, path, why);
        if (r <= 0)
            return r;
        close_file(m);
        if (hed_now_ns() > end) {
            hed_why_set(why, "%s: other processes keep removing it", path);
            return HED_EIO;
        }
        take_nap(&nap);
    }
}

static int
enter_meeting(const char *name, const struct hed_meet_shape *shape, bool join,
              struct hed_meet **out, struct hed_why *why)
{
    char path[sizeof FOLDER "/heddle--" + 20 + NAME_MAX_CHARS];
    int err = check_arguments(name, shape, why);

    if (err)
        return err;
    (void)snprintf(path, sizeof path, FOLDER "/heddle-%u-%s", (unsigned)geteuid(), name);

    struct hed_meet *m = calloc(1, sizeof *m);

    if (!m) {
        hed_why_set(why, "%s: %s", path, hed_err_text(HED_ENOMEM));
        return HED_ENOMEM;
    }
    m->shape = *shape;
    m->size = slot_offset(shape, shape->slots);
    m->fd = -1;
    m->index = -1;
    hed_lock_init(&m->lock, HED_RANK_MEET);
    err = enter_file(m, path, join, why);
    if (err) {
        hed_meet_leave(m);
        return err;
    }
    *out = m;
    return 0;
}

int
hed_meet_join(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
              struct hed_why *why)
{
    return enter_meeting(name, shape, true, out, why);
}

int
hed_meet_look(const char *name, const struct hed_meet_shape *shape, struct hed_meet **out,
              struct hed_why *why)
{
    return enter_meeting(name, shape, false, out, why);
}

void
hed_meet_leave(struct hed_meet *m)
{
    if (!m)
        return;
    close_file(m);
    hed_lock_fini(&m->lock);
    free(m);
}

/* The child has the parent's locks for as long as it has the descriptor. Code that still uses an
 * address of the mapping finds private memory there. */
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
    return m->index < 0 ? NULL : hed_meet_slot(m, (uint32_t)m->index);
}

int
hed_meet_index(const struct hed_meet *m)
{
    return m->index;
}

void *
hed_meet_slot(struct hed_meet *m, uint32_t index)
{
    return index < m->shape.slots ? m->map + slot_offset(&m->shape, index) + LINE : NULL;
}

bool
hed_meet_taken(struct hed_meet *m, uint32_t index, pid_t *pid)
{
    if (m->fd < 0 || index >= m->shape.slots)
        return false;
    /* The kernel does not report the locks of the description that asks. */
    if ((int)index != m->index && !is_byte_locked(m->fd, use_byte(index)))
        return false;
    if (pid)
        *pid = atomic_load_explicit(&owner_at(m, index)->pid, memory_order_relaxed);
    return true;
}
