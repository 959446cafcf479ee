/* The operations on files that snapshots need: the system's own. See files.h. */
#include "move/file/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static ssize_t
real_pread(void *state, int fd, void *p, size_t n, uint64_t at)
{
    (void)state;
    return pread(fd, p, n, (off_t)at);
}

static ssize_t
real_pwrite(void *state, int fd, const void *p, size_t n, uint64_t at)
{
    (void)state;
    return pwrite(fd, p, n, (off_t)at);
}

static int
real_datasync(void *state, int fd)
{
    (void)state;
    return fdatasync(fd);
}

static int
real_size(void *state, int fd, uint64_t *out)
{
    struct stat st;

    (void)state;
    if (fstat(fd, &st) != 0)
        return -1;
    if (!S_ISREG(st.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    *out = (uint64_t)st.st_size;
    return 0;
}

static int
real_truncate(void *state, int fd, uint64_t size)
{
    (void)state;
    return ftruncate(fd, (off_t)size);
}

static int
real_close(void *state, int fd)
{
    (void)state;
    return close(fd);
}

static int
real_open(void *state, int folder, const char *name, int flags, mode_t mode)
{
    (void)state;
    return openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, mode);
}

static int
real_rename(void *state, int folder, const char *from, const char *to, bool replace)
{
    (void)state;
    if (!replace) {
        if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EINVAL && errno != ENOSYS)
            return -1;
        /* Not every file system can. The caller has looked whether there is one. */
    }
    return renameat(folder, from, folder, to);
}

static int
real_remove(void *state, int folder, const char *name)
{
    (void)state;
    return unlinkat(folder, name, 0);
}

static int
real_syncdir(void *state, int folder)
{
    (void)state;
    return fsync(folder);
}

static int
real_list(void *state, int folder, bool (*visit)(void *arg, const char *name), void *arg)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e = NULL;
    bool more = true;

    (void)state;
    if (!dir) {
        const int err = errno;

        if (fd >= 0)
            (void)close(fd);
        errno = err;
        return -1;
    }
    errno = 0;
    while (more && (e = readdir(dir))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            more = visit(arg, e->d_name);
        errno = 0;
    }

    const int err = e ? 0 : errno;

    (void)closedir(dir);
    errno = err;
    return err ? -1 : 0;
}

static int
real_lock(void *state, int fd, enum hed_snap_lock_mode mode)
{
    (void)state;
    return flock(fd, mode == HED_SNAP_LOCK_ALONE ? LOCK_EX | LOCK_NB : LOCK_SH);
}

const struct hed_snap_files hed_snap_files_real = {
    .pread = real_pread,
    .pwrite = real_pwrite,
    .datasync = real_datasync,
    .size = real_size,
    .truncate = real_truncate,
    .close = real_close,
    .open = real_open,
    .rename = real_rename,
    .remove = real_remove,
    .syncdir = real_syncdir,
    .list = real_list,
    .lock = real_lock,
};

static _Thread_local int last_error; /* errno of the last failure */

static int
note_io_error(int e)
{
    last_error = e;
    return hed_err_from_errno(e);
}

const char *
hed_snap_io_text(int err)
{
    return last_error && hed_err_from_errno(last_error) == err ? strerror(last_error)
                                                               : hed_err_text(err);
}

int
hed_snap_pread(const struct hed_snap_files *f, int fd, void *p, size_t n, uint64_t at)
{
    for (unsigned char *to = p; n > 0;) {
        const ssize_t got = f->pread(f->state, fd, to, n, at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? note_io_error(errno) : HED_ETRUNC;
        to += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int
hed_snap_pwrite(const struct hed_snap_files *f, int fd, const void *p, size_t n, uint64_t at)
{
    for (const unsigned char *from = p; n > 0;) {
        const ssize_t put = f->pwrite(f->state, fd, from, n, at);

        if (put < 0 && errno == EINTR)
            continue;
        if (put == 0)
            errno = ENOSPC; /* nothing was written, and nobody says why */
        if (put <= 0)
            return note_io_error(errno);
        from += put;
        at += (uint64_t)put;
        n -= (size_t)put;
    }
    return 0;
}

/* A sync that failed is not tried again: the kernel may have dropped the pages that it could not
 * write, and would then report success. */
int
hed_snap_datasync(const struct hed_snap_files *f, int fd)
{
    while (f->datasync(f->state, fd) != 0) {
        if (errno != EINTR)
            return note_io_error(errno);
    }
    return 0;
}
