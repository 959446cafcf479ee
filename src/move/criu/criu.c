/* libheddle-criu.so: lets CRIU save and restore processes that it would refuse.
 *
 * `heddle snap` preloads it into criu, and into nothing else: the programs that criu restores do
 * not have it. It works around what criu does not know; the first two until version 4.1:
 *
 * 1. On x86-64, Linux 6.13 and later map the clocks of hypervisors apart: "[vvar]" is followed by
 *    "[vvar_vclock]". criu wants the vDSO right behind "[vvar]" and gives up otherwise. In the
 *    lists of mappings (maps, smaps) that criu reads, both appear as one "[vvar]". When criu
 *    restores, it moves that range as a whole, which Linux can do across mappings since 6.17.
 * 2. On processors with AMX, the registers of a thread take 11 KiB, and the kernel accepts no less
 *    when they are set; criu has 4 KiB. The rest is taken from the thread itself: criu's code in it
 *    does not use AMX. A thread that has something in these registers is refused, because criu
 *    could not save it.
 * 3. In a PID namespace whose first process was made by a job of a shell, the leaders of criu's
 *    session and process group are outside, and the kernel says that both have the number 0. criu
 *    restores the job of a shell into its own session and group, finds that number used twice, and
 *    gives up ("Current gid 0 intersects with pid"). So a group outside has a number of its own
 *    here. criu compares it only with itself, because the program is to stay in that group: there
 *    it gets the signals of the terminal, as the job that restores it.
 *
 * Invariant: what is not about these goes to libc unchanged.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* ---- mappings -------------------------------------------------------------------------------- */

/* Is the last part of the path `name`? */
static bool
path_ends_in(const char *path, const char *name)
{
    const size_t n = strlen(path);
    const size_t k = strlen(name);

    return n >= k && strcmp(path + n - k, name) == 0 && (n == k || path[n - k - 1] == '/');
}

static bool
lists_mappings(const char *path)
{
    return path_ends_in(path, "maps") || path_ends_in(path, "smaps");
}

/* criu also opens the program's own files, which may have such names. */
static bool
is_kernels(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

/* Reads a file of unknown size; NULL if that fails. */
static char *
read_list(int fd, size_t *size)
{
    size_t room = 1u << 16;
    size_t n = 0;
    char *text = malloc(room);

    while (text) {
        const ssize_t got = read(fd, text + n, room - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(text);
            return NULL;
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n == room) {
            char *more = realloc(text, room *= 2);

            if (!more)
                free(text);
            text = more;
        }
    }
    if (text)
        text[n] = '\0';
    *size = n;
    return text;
}

/* Does a line begin a mapping ("START-END PERM ...")? smaps has further lines about each. */
static bool
begins_mapping(const char *line, size_t n)
{
    const size_t hex = strspn(line, "0123456789abcdef");

    return hex > 0 && hex < n && line[hex] == '-';
}

/* Is the mapping the kernel's own of that name? A file may be called so, too: its line has a number
 * of its file ("START-END PERM OFFSET DEVICE FILE  NAME"). */
static bool
is_kernel_mapping(const char *line, size_t n, const char *name)
{
    const size_t k = strlen(name);
    const char *at = line;

    for (int i = 0; i < 3; i++) {
        at = memchr(at, ' ', n - (size_t)(at - line));
        if (!at)
            return false;
        at++;
    }

    const char *found = memmem(at, n - (size_t)(at - line), name, k);

    return found && strncmp(at, "00:00 0 ", 8) == 0 &&
           strspn(at + 8, " ") == (size_t)(found - (at + 8)) &&
           (found + k == line + n || found[k] == '\n');
}

/* Joins "[vvar_vclock]" to the "[vvar]" before it, in place. The end of the one becomes the end of
 * the other: addresses of user space on x86-64 have at most 12 digits, and both have the same
 * number of them. Returns the new size. The text ends in NUL. */
static size_t
join_vvar(char *text, size_t size)
{
    char *vvar = NULL; /* where its end stands */
    size_t digits = 0;
    size_t out = 0;
    bool skip = false;

    for (size_t at = 0; at < size;) {
        const char *line = text + at;
        const char *newline = memchr(line, '\n', size - at);
        const size_t n = newline ? (size_t)(newline - line) + 1 : size - at;

        if (begins_mapping(line, n)) {
            const char *end = memchr(line, '-', n);
            const size_t k = strspn(end + 1, "0123456789abcdef");

            skip = vvar && k == digits && is_kernel_mapping(line, n, "[vvar_vclock]");
            if (skip)
                memcpy(vvar, end + 1, k);
            if (is_kernel_mapping(line, n, "[vvar]")) {
                vvar = text + out + (size_t)(end + 1 - line);
                digits = k;
            }
        }
        if (!skip) {
            memmove(text + out, line, n);
            out += n;
        }
        at += n;
    }
    return out;
}

/* Replaces a list of mappings by a changed copy of it. Closes fd. */
static int
change_list(int fd)
{
    size_t size = 0;
    char *text = read_list(fd, &size);
    const int copy = text ? (int)syscall(SYS_memfd_create, "maps", MFD_CLOEXEC) : -1;
    bool good = copy >= 0;

    if (good) {
        size = join_vvar(text, size);
        for (size_t at = 0; good && at < size;) {
            const ssize_t n = write(copy, text + at, size - at);

            good = n > 0;
            at += good ? (size_t)n : 0;
        }
        good = good && lseek(copy, 0, SEEK_SET) == 0;
    }
    free(text);
    if (!good) {
        if (copy >= 0)
            close(copy);
        return lseek(fd, 0, SEEK_SET) == 0 ? fd : (close(fd), errno = EIO, -1);
    }
    close(fd);
    return copy;
}

static int
open_changed(int folder, const char *path, int flags, mode_t mode)
{
    const int fd = (int)syscall(SYS_openat, folder, path, flags, mode);

    return fd >= 0 && (flags & O_ACCMODE) == O_RDONLY && lists_mappings(path) && is_kernels(fd)
               ? change_list(fd)
               : fd;
}

/* The optional argument of open(2). Without O_CREAT or O_TMPFILE it is not there, and not used. */
#define TAKE_MODE(flags, mode)                                     \
    do {                                                           \
        va_list rest;                                              \
                                                                   \
        va_start(rest, flags);                                     \
        if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE) \
            (mode) = va_arg(rest, mode_t);                         \
        va_end(rest);                                              \
    } while (0)

EXPORT int
open(const char *path, int flags, ...)
{
    mode_t mode = 0;

    TAKE_MODE(flags, mode);
    return open_changed(AT_FDCWD, path, flags, mode);
}

EXPORT int
open64(const char *path, int flags, ...)
{
    mode_t mode = 0;

    TAKE_MODE(flags, mode);
    return open_changed(AT_FDCWD, path, flags, mode);
}

EXPORT int
openat(int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;

    TAKE_MODE(flags, mode);
    return open_changed(folder, path, flags, mode);
}

EXPORT int
openat64(int folder, const char *path, int flags, ...)
{
    mode_t mode = 0;

    TAKE_MODE(flags, mode);
    return open_changed(folder, path, flags, mode);
}

static FILE *
open_stream(const char *path, const char *mode)
{
    static FILE *(*next)(const char *, const char *);

    if (strncmp(mode, "r", 1) == 0 && !strchr(mode, '+') && lists_mappings(path)) {
        const int fd = open_changed(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);

        return fd < 0 ? NULL : fdopen(fd, "r");
    }
    if (!next)
        next = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
    return next ? next(path, mode) : (errno = ENOSYS, NULL);
}

EXPORT FILE *
fopen(const char *path, const char *mode)
{
    return open_stream(path, mode);
}

EXPORT FILE *
fopen64(const char *path, const char *mode)
{
    return open_stream(path, mode);
}

/* ---- registers ------------------------------------------------------------------------------- */

#define XSTATE 0x202            /* NT_X86_XSTATE: the registers as XSAVE stores them */
#define XSTATE_USED 512         /* where a mask says which of them are not in their first state */
#define XSTATE_AMX (3ull << 17) /* tile configuration, tile data */
#define XSTATE_MAX (1u << 16)   /* bytes; larger than any processor's */

typedef long ptrace_function(enum __ptrace_request what, pid_t pid, void *addr, void *data);

static uint64_t
used_registers(const void *area)
{
    uint64_t used;

    memcpy(&used, (const char *)area + XSTATE_USED, sizeof used);
    return used;
}

/* Sets the registers that `part` has; the thread keeps the others. */
static long
set_registers(ptrace_function *next, pid_t pid, const struct iovec *part)
{
    char *all = calloc(1, XSTATE_MAX);
    struct iovec whole = {.iov_base = all, .iov_len = XSTATE_MAX};
    long r = -1;

    if (!all)
        return -1;
    if (next(PTRACE_GETREGSET, pid, (void *)XSTATE, &whole) == 0 && part->iov_len < whole.iov_len &&
        part->iov_len > XSTATE_USED + sizeof(uint64_t)) {
        const uint64_t amx = used_registers(all) & XSTATE_AMX;

        memcpy(all, part->iov_base, part->iov_len);

        const uint64_t used = (used_registers(all) & ~XSTATE_AMX) | amx;

        memcpy(all + XSTATE_USED, &used, sizeof used);
        r = next(PTRACE_SETREGSET, pid, (void *)XSTATE, &whole);
    } else {
        errno = EFAULT;
    }

    const int e = errno;

    free(all);
    errno = e;
    return r;
}

EXPORT long
ptrace(enum __ptrace_request what, ...)
{
    static ptrace_function *next;
    va_list rest;

    va_start(rest, what);

    const pid_t pid = va_arg(rest, pid_t);
    void *addr = va_arg(rest, void *);
    struct iovec *data = va_arg(rest, void *);

    va_end(rest);
    if (!next)
        next = (ptrace_function *)dlsym(RTLD_NEXT, "ptrace");
    if (!next) {
        errno = ENOSYS;
        return -1;
    }

    const size_t room = what == PTRACE_GETREGSET && data ? data->iov_len : 0;
    const long r = next(what, pid, addr, data);

    if (addr != (void *)XSTATE)
        return r;
    if (what == PTRACE_SETREGSET && r < 0 && errno == EFAULT)
        return set_registers(next, pid, data);
    if (what == PTRACE_GETREGSET && r == 0 && room > XSTATE_USED + sizeof(uint64_t) &&
        room <= 8192 && (used_registers(data->iov_base) & XSTATE_AMX) != 0) {
        errno = ENOTSUP;
        return -1;
    }
    return r;
}

/* ---- process groups -------------------------------------------------------------------------- */

#define OUTSIDE 0x3ffffffe /* the kernel gives no process such a large number */

EXPORT pid_t
getpgid(pid_t pid)
{
    const pid_t group = (pid_t)syscall(SYS_getpgid, pid);

    return group == 0 ? OUTSIDE : group;
}

EXPORT pid_t
getpgrp(void)
{
    return getpgid(0);
}

/* criu makes the restored group that of the terminal. A group outside is what it is already, or was
 * put into the background by its shell. */
EXPORT int
ioctl(int fd, unsigned long request, ...)
{
    va_list args;

    va_start(args, request);

    void *arg = va_arg(args, void *);

    va_end(args);
    if (request == TIOCSPGRP && *(const pid_t *)arg == OUTSIDE)
        return 0;
    return (int)syscall(SYS_ioctl, fd, request, arg);
}
