/* The trace file of see/trace/file.h: its name, its head, its blocks. */
#include "see/trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/pack.h"
#include "base/str.h"
#include "see/trace/format.h"
#include "see/trace/write.h"

#define FD_FROM 512    /* lower descriptors are left to the program if possible */
#define NAMES_MAX 1000 /* files that one process id can write under one name */

/* Writes everything, or sets err. */
static void
write_vector(struct hed_trace_file *f, struct iovec *v, int n)
{
    while (n > 0) {
        const ssize_t put = writev(f->fd, v, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            const int e = errno;

            f->err = hed_err_from_errno(e);
            hed_error(TRACE, "%s: %s; the rest of the trace is lost", f->path, strerror(e));
            errno = e;
            return;
        }

        size_t done = (size_t)put;

        while (n > 0 && done >= v->iov_len) {
            done -= v->iov_len;
            v++;
            n--;
        }
        if (n > 0) {
            v->iov_base = (char *)v->iov_base + done;
            v->iov_len -= done;
        }
    }
}

/* Some programs close descriptors that they do not know; the number may then belong to another
 * file. */
static bool
still_ours(struct hed_trace_file *f)
{
    struct stat st;

    if (fstat(f->fd, &st) == 0 && st.st_dev == f->device && st.st_ino == f->inode)
        return true;
    f->err = HED_ESTATE;
    f->fd = -1; /* not ours to close */
    hed_error(TRACE, "%s: the program closed the trace's descriptor; the rest is lost", f->path);
    return false;
}

/* Moves the descriptor to a high number, because some programs close all low ones. The lock tells
 * others that the trace is being written; it ends with the descriptor. Some file systems have none.
 */
static int
keep_descriptor(struct hed_trace_file *f, int fd, struct hed_why *why)
{
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, FD_FROM);
    struct stat st;

    if (high >= 0)
        close(fd);
    f->fd = high >= 0 ? high : fd;
    (void)flock(f->fd, LOCK_EX | LOCK_NB);
    if (fstat(f->fd, &st)) {
        hed_why_set(why, "cannot check the trace '%s': %s", f->path, strerror(errno));
        return hed_err_from_errno(errno);
    }
    f->device = st.st_dev;
    f->inode = st.st_ino;
    return 0;
}

void
hed_trace_file_block(struct hed_trace_file *f, uint32_t type, uint64_t thread, const void *p,
                     size_t n)
{
    uint8_t head[HED_TRACE_BLOCK_HEADER];
    struct hed_enc e = hed_enc_over(head, sizeof head);

    if (f->err || !still_ours(f))
        return;
    hed_put_raw(&e, HED_TRACE_BLOCK_MAGIC, 4);
    hed_put_u32(&e, type);
    hed_put_u32(&e, (uint32_t)n);
    hed_put_u32(&e, 0);
    hed_put_u64(&e, thread);
    hed_put_u64(&e, f->number++);
    hed_store_u32(head + HED_TRACE_BLOCK_CRC, hed_trace_block_crc(head, p, n));

    struct iovec v[2] = {{head, sizeof head}, {(void *)(uintptr_t)p, n}};

    write_vector(f, v, n ? 2 : 1);
}

/* `dir/name.hed` -> `dir/name.PID.hed`, with -N before the ending from the second try on. */
static bool
name_of_try(char *out, size_t size, const char *path, unsigned attempt)
{
    const char *slash = strrchr(path, '/');
    const char *dot = strrchr(path, '.');
    const int stem =
        (int)(dot && dot > (slash ? slash + 1 : path) ? dot - path : (int)strlen(path));
    const int n =
        attempt == 0
            ? snprintf(out, size, "%.*s.%d%s", stem, path, (int)getpid(), path + stem)
            : snprintf(out, size, "%.*s.%d-%u%s", stem, path, (int)getpid(), attempt, path + stem);

    return n > 0 && (size_t)n < size;
}

/* Is that an older trace, or an empty file? A typo must not destroy somebody's file. `busy`: it is
 * one that somebody is writing. */
static bool
is_replaceable(const char *path, bool *busy)
{
    char magic[sizeof HED_TRACE_MAGIC - 1];
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

    if (good && st.st_size > 0)
        good = read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
               memcmp(magic, HED_TRACE_MAGIC, sizeof magic) == 0;
    *busy = good && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0)
        close(fd);
    return good && !*busy;
}

/* Removes an older trace. */
static int
remove_old_trace(const char *path, bool *busy, struct hed_why *why)
{
    if (!is_replaceable(path, busy)) {
        hed_why_set(why,
                    *busy ? "the trace '%s' is being written by another process or thread; use "
                            "another name"
                          : "'%s' is not a trace, so it is not replaced; use another name",
                    path);
        return HED_EEXIST;
    }
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    hed_why_set(why, "cannot replace the old trace '%s': %s", path, strerror(errno));
    return hed_err_from_errno(errno);
}

static int
open_new(struct hed_trace_file *f, const struct hed_trace_options *o, struct hed_why *why)
{
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND;
    bool plain = o->owner == 0 || o->owner == (uint64_t)getpid();

    for (unsigned attempt = 0; attempt < NAMES_MAX;) {
        const bool fits = plain ? hed_str_copy(f->path, sizeof f->path, o->path)
                                : name_of_try(f->path, sizeof f->path, o->path, attempt++);

        if (!fits) {
            hed_why_set(why, "the trace's path is too long: '%.200s...'", o->path);
            return HED_ELIMIT;
        }

        const int fd = open(f->path, flags, 0666);
        const int e = errno;
        struct stat st;

        if (fd >= 0)
            return keep_descriptor(f, fd, why);
        if (e == EEXIST && plain && o->replace) {
            bool busy;
            const int err = remove_old_trace(f->path, &busy, why);

            plain = !err;
            if (!err || (busy && o->owner)) /* the owner has other names, too */
                continue;
            return err;
        }
        if (e == EEXIST && plain && lstat(f->path, &st) == 0 && !S_ISREG(st.st_mode) &&
            !S_ISLNK(st.st_mode)) {
            hed_why_set(why, "cannot write the trace '%s', which exists and is not a regular file",
                        f->path);
            return HED_EEXIST;
        }
        plain = false;
        if (e != EEXIST) {
            hed_why_set(why, "cannot create the trace '%s': %s", f->path, strerror(e));
            return hed_err_from_errno(e);
        }
    }
    hed_why_set(why, "there are too many traces with the name '%s'; remove some", o->path);
    return HED_EEXIST;
}

/* Adds the arguments of the program, joined by U+001F, or nothing if there is no /proc. */
static void
add_cmdline(struct hed_buf *b)
{
    char text[4096];
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);

    if (fd >= 0)
        close(fd);
    hed_buf_addf(b, "cmdline=");
    for (ssize_t i = 0; i + 1 < n; i++) {
        const char c = (char)(text[i] == 0 ? 0x1f : text[i] == '\n' ? ' ' : text[i]);

        hed_buf_add(b, &c, 1);
    }
    hed_buf_addf(b, "\n");
}

static void
write_info(struct hed_trace_file *f, const struct hed_trace_options *o)
{
    struct hed_buf b;
    struct utsname host;
    char exe[4096];
    const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    exe[n > 0 ? n : 0] = 0;
    exe[strcspn(exe, "\n")] = 0; /* a path can contain a newline, a line cannot */
    if (uname(&host))
        memset(&host, 0, sizeof host);
    hed_buf_init(&b, 65536);
    hed_buf_addf(&b, "heddle=%s\npid=%d\nppid=%d\nexe=%s\n", HED_VERSION, (int)getpid(),
                 (int)getppid(), exe);
    add_cmdline(&b);
    hed_buf_addf(&b, "host=%s\narch=%s\n", host.nodename, host.machine);
    hed_buf_addf(&b, "clock_mono=%llu\nclock_wall=%llu\n", (unsigned long long)hed_now_ns(),
                 (unsigned long long)hed_wall_ns());
    hed_buf_addf(&b, "chain=%s\n", o->chain ? o->chain : "");
    hed_trace_file_block(f, HED_TRACE_INFO, 0, b.data, b.size);
    hed_buf_fini(&b);
}

int
hed_trace_file_create(struct hed_trace_file *f, const struct hed_trace_options *o,
                      struct hed_why *why)
{
    uint8_t head[HED_TRACE_FILE_HEADER];
    struct hed_enc e = hed_enc_over(head, sizeof head);
    struct iovec v = {head, sizeof head};
    const int err = open_new(f, o, why);

    if (err)
        return err;
    f->err = 0;
    f->number = 0;
    hed_put_raw(&e, HED_TRACE_MAGIC, 8);
    hed_put_u16(&e, HED_TRACE_MAJOR);
    hed_put_u16(&e, HED_TRACE_MINOR);
    hed_put_u32(&e, 0);
    write_vector(f, &v, 1);
    write_info(f, o);
    for (const char *const *s = o->schemas; s && *s; s++)
        hed_trace_file_block(f, HED_TRACE_SCHEMA, 0, *s, strlen(*s));
    if (f->err) {
        hed_why_set(why, "cannot write the trace '%s': %s", f->path, strerror(errno));
        (void)unlink(f->path); /* there is nothing useful in it */
        hed_trace_file_close(f);
        return f->err;
    }
    return 0;
}

void
hed_trace_file_close(struct hed_trace_file *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
