/* What share/meet/file.h describes: creating, opening, checking and removing the file. */
#include "share/meet/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"

#define FILE_MAGIC UINT64_C(0x325445454d444548) /* "HEDMEET2"; the digit counts versions */
#define ANY_VERSION UINT64_C(0x00ffffffffffffff)
#define OPEN_FILE (O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
#define REMOVER_BYTE (1 + 2 * (off_t)HED_MEET_SLOTS_MAX)
#define UNLINK_BYTE (REMOVER_BYTE + 1)
#define LEFT_S 600     /* seconds; an older file that nobody uses belongs to a process that died */
#define LEFT_MAX 1024u /* names that are looked at */

/* ---- locks ----------------------------------------------------------------------------------- */

int
hed_meet_lock_bytes(int fd, short type, off_t at, off_t n)
{
    struct flock f = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n};
    int r;

    do
        r = fcntl(fd, F_OFD_SETLK, &f);
    while (r != 0 && errno == EINTR);
    return r == 0 ? 0 : errno;
}

bool
hed_meet_is_lock_taken(int e)
{
    return e == EAGAIN || e == EACCES;
}

static bool
are_bytes_locked(int fd, off_t at, off_t n)
{
    struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = n};

    return fcntl(fd, F_OFD_GETLK, &f) != 0 || f.l_type != F_UNLCK;
}

bool
hed_meet_is_byte_locked(int fd, off_t at)
{
    return are_bytes_locked(fd, at, 1);
}

bool
hed_meet_has_remover(int fd)
{
    return are_bytes_locked(fd, REMOVER_BYTE, 0);
}

/* Is a process in the file that does not remove it? */
static bool
has_members(int fd)
{
    return !hed_meet_has_remover(fd) &&
           are_bytes_locked(fd, hed_meet_use_byte(0), REMOVER_BYTE - hed_meet_use_byte(0));
}

/* ---- reasons --------------------------------------------------------------------------------- */

int
hed_meet_explain(const struct hed_meet *m, struct hed_why *why, int e)
{
    hed_why_set(why, "%s/%s: %s", m->folder.path, m->name, strerror(e));
    return hed_err_from_errno(e);
}

static int
explain_version(const struct hed_meet *m, struct hed_why *why)
{
    hed_why_set(why, "%s/%s: another version of heddle uses this file", m->folder.path, m->name);
    return HED_EVERSION;
}

/* ---- removing -------------------------------------------------------------------------------- */

static bool
is_name_of(int folder, const char *name, int fd)
{
    struct stat mine;
    struct stat now;

    return fstat(fd, &mine) == 0 && fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
           now.st_ino == mine.st_ino && now.st_dev == mine.st_dev;
}

bool
hed_meet_has_name(const struct hed_meet *m)
{
    return is_name_of(m->folder.fd, m->name, m->fd);
}

/* Removes a file that this process is not in, if no other is in it. Returns 0, EAGAIN if a process
 * is, or errno. */
static int
remove_unused(int folder, const char *name, int fd)
{
    const int e = hed_meet_lock_bytes(fd, F_WRLCK, hed_meet_use_byte(0), 0);

    if (e != 0)
        return hed_meet_is_lock_taken(e) ? EAGAIN : e;
    return is_name_of(folder, name, fd) && unlinkat(folder, name, 0) != 0 ? errno : 0;
}

/* Two processes that leave at once may both get as far as the last lock, and one gets it. If it
 * dies there, the file stays until a process joins or sweep_folder() finds it. */
void
hed_meet_end(struct hed_meet *m)
{
    if (!m || m->fd < 0 || m->index < 0)
        return;

    const uint32_t i = (uint32_t)m->index;

    if (hed_meet_lock_bytes(m->fd, F_RDLCK, hed_meet_claim_byte(i), 1) != 0 ||
        hed_meet_lock_bytes(m->fd, F_RDLCK, hed_meet_use_byte(i), 1) != 0 ||
        hed_meet_lock_bytes(m->fd, F_RDLCK, hed_meet_use_byte(0),
                            REMOVER_BYTE + 1 - hed_meet_use_byte(0)) != 0)
        return;
    /* If the name cannot be removed, nobody may take this process for one that is about to. */
    if (hed_meet_lock_bytes(m->fd, F_WRLCK, UNLINK_BYTE, 1) == 0 && hed_meet_has_name(m) &&
        unlinkat(m->folder.fd, m->name, 0) != 0)
        (void)hed_meet_lock_bytes(m->fd, F_UNLCK, hed_meet_use_byte(0), 0);
}

/* Is it the file of a meeting, whatever its version, that has not changed for a while? */
static bool
is_left_behind(const struct hed_meeting_folder *f, int fd)
{
    uint64_t magic = 0;
    struct stat st;

    return hed_meeting_owns(f, fd) && fstat(fd, &st) == 0 &&
           st.st_mtim.tv_sec < time(NULL) - LEFT_S &&
           pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           (magic & ANY_VERSION) == (FILE_MAGIC & ANY_VERSION);
}

/* Removes the files of processes that were killed. */
static void
sweep_folder(const struct hed_meeting_folder *f)
{
    const int again = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    const struct dirent *e;

    if (!d && again >= 0)
        close(again);
    for (unsigned n = 0; d && n < LEFT_MAX && (e = readdir(d)) != NULL; n++) {
        const int fd = e->d_type == DT_REG ? openat(f->fd, e->d_name, OPEN_FILE) : -1;

        if (fd >= 0 && is_left_behind(f, fd))
            (void)remove_unused(f->fd, e->d_name, fd);
        if (fd >= 0)
            close(fd);
    }
    if (d)
        closedir(d);
}

/* ---- creating and opening -------------------------------------------------------------------- */

/* Creates the complete file before it gets its name. If another process was faster, its file stays
 * and this one disappears. */
static int
make_meeting_file(const struct hed_meet *m, struct hed_why *why)
{
    const struct hed_meet_head h = {.magic = FILE_MAGIC, .shape = m->shape};
    const int fd = openat(m->folder.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, m->folder.mode);
    char self[64];
    int e;

    if (fd < 0)
        return hed_meet_explain(m, why, errno);
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    e = -hed_meeting_adopt(&m->folder, fd);
    /* A lack of memory must be an error here and not a signal later. */
    if (e == 0)
        e = posix_fallocate(fd, 0, (off_t)m->size);
    if (e == 0 && (pwrite(fd, &h, sizeof h, 0) != (ssize_t)sizeof h ||
                   linkat(AT_FDCWD, self, m->folder.fd, m->name, AT_SYMLINK_FOLLOW) != 0))
        e = errno;
    close(fd);
    if (e != 0 && e != EEXIST)
        return hed_meet_explain(m, why, e);
    if (e == 0)
        sweep_folder(&m->folder);
    return 0;
}

/* Chooses the folder. It is found again for every try: it may have been removed. */
static int
open_meeting_folder(struct hed_meet *m, bool make, struct hed_why *why)
{
    struct hed_meeting_folders all;
    const int err = hed_meeting_open(make, &all, why);

    if (err)
        return err;

    const struct hed_meeting_folder *f = hed_meeting_find(&all, m->name);

    m->folder = *f;
    m->folder.fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);

    const int e = errno;

    hed_meeting_close(&all);
    return m->folder.fd < 0 ? hed_meet_explain(m, why, e) : 0;
}

static int
open_by_name(struct hed_meet *m, bool make, struct hed_why *why)
{
    m->fd = openat(m->folder.fd, m->name, OPEN_FILE);
    if (m->fd < 0 && errno == ENOENT && make) {
        const int err = make_meeting_file(m, why);

        return err ? err : 1;
    }
    if (m->fd < 0)
        return hed_meet_explain(m, why, errno);
    if (!hed_meeting_owns(&m->folder, m->fd)) {
        hed_why_set(why, "%s/%s: other users can access this file, or it is not a file; remove it",
                    m->folder.path, m->name);
        return HED_EACCESS;
    }
    return 0;
}

/* 1: it has another layout. */
static int
judge_layout(const struct hed_meet *m, struct hed_why *why)
{
    struct hed_meet_head h = {0}; /* also for a file that is too short */
    struct stat st;

    if (pread(m->fd, &h, sizeof h, 0) < 0 || fstat(m->fd, &st) != 0)
        return hed_meet_explain(m, why, errno);
    if (h.magic != 0 && (h.magic & ANY_VERSION) != (FILE_MAGIC & ANY_VERSION)) {
        hed_why_set(why, "%s/%s: this is another kind of file", m->folder.path, m->name);
        return HED_EVERSION;
    }
    return h.magic == FILE_MAGIC && memcmp(&h.shape, &m->shape, sizeof h.shape) == 0 &&
                   st.st_size >= (off_t)m->size
               ? 0
               : 1;
}

int
hed_meet_judge(const struct hed_meet *m, struct hed_why *why)
{
    const int r = judge_layout(m, why);

    if (r <= 0)
        return r;
    if (has_members(m->fd))
        return explain_version(m, why);
    hed_why_set(why, "%s/%s: no program uses this file", m->folder.path, m->name);
    return HED_ENOTFOUND;
}

/* Is it a file of the right layout? Removes one of another layout if no process is in it. */
static int
judge_file(const struct hed_meet *m, bool join, struct hed_why *why)
{
    const int r = join ? judge_layout(m, why) : hed_meet_judge(m, why);

    if (r <= 0)
        return r;

    const int e = remove_unused(m->folder.fd, m->name, m->fd);

    if (e == EAGAIN && has_members(m->fd))
        return explain_version(m, why);
    return e == 0 || e == EAGAIN ? 1 : hed_meet_explain(m, why, e);
}

static int
map_file(struct hed_meet *m, struct hed_why *why)
{
    void *map = mmap(NULL, m->size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);

    if (map == MAP_FAILED)
        return hed_meet_explain(m, why, errno);
    m->map = map;
    return 0;
}

int
hed_meet_open_file(struct hed_meet *m, bool join, struct hed_why *why)
{
    int r = open_meeting_folder(m, join, why);

    if (r == 0)
        r = open_by_name(m, join, why);
    if (r == 0)
        r = judge_file(m, join, why);
    return r ? r : map_file(m, why);
}

void
hed_meet_close_file(struct hed_meet *m)
{
    if (m->map)
        (void)munmap(m->map, m->size);
    if (m->fd >= 0)
        close(m->fd); /* the locks end with it */
    if (m->folder.fd >= 0)
        close(m->folder.fd);
    m->map = NULL;
    m->fd = -1;
    m->folder.fd = -1;
}
