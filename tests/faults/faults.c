/* A library that is preloaded into heddle's programs and makes one of their operations fail.
 *
 *     HED_FAULTS=FILE LD_PRELOAD=libfaults.so heddled ...
 *
 * FILE is a struct hed_faults_control, in which the test says which operation fails and reads what
 * happened. The file is mapped when the program starts, so workers, which are forked and may open
 * nothing, share it.
 *
 *   heddle ──malloc, read, mmap ...──> here: is it heddle that calls? is it the nth? ──> libc
 *
 * Invariants:
 * 1. Only calls from heddle's own code count: return addresses are looked up in the list of loaded
 *    objects. The libraries that heddle uses have their own ways to fail.
 * 2. Nothing here takes a lock or allocates memory once the program runs.
 * 3. An operation that does not fail is made exactly as it was asked for.
 */
#include "faults/faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <link.h>

#define EARLY 16384 /* bytes for what dlsym() allocates before there is a malloc() */
#define OBJECTS 256

static struct hed_faults_control *control; /* NULL: nothing fails */
static uint32_t role;

/* The C library's function with the same name as the one that asks. */
#define REAL(name)                                                          \
    ({                                                                      \
        static __typeof__(&(name)) real_;                                   \
        __typeof__(&(name)) p_ = __atomic_load_n(&real_, __ATOMIC_RELAXED); \
                                                                            \
        if (!p_) {                                                          \
            p_ = (__typeof__(&(name)))find_real(#name);                     \
            __atomic_store_n(&real_, p_, __ATOMIC_RELAXED);                 \
        }                                                                   \
        p_;                                                                 \
    })

static _Thread_local bool finding __attribute__((tls_model("initial-exec")));

static void *
find_real(const char *name)
{
    const bool was = finding;

    finding = true;

    void *p = dlsym(RTLD_NEXT, name);

    finding = was;
    if (!p)
        abort();
    return p;
}

/* ---- who calls ------------------------------------------------------------------------------- */

static bool
is_heddles_name(const char *path)
{
    const char *name = strrchr(path, '/');

    /* The main program has no name here. A client's is the test's own. */
    if (!path[0])
        return role != HED_FAULTS_CLIENT;
    name = name ? name + 1 : path;
    return strncmp(name, "libheddle", 9) == 0 || strncmp(name, "backend-", 8) == 0 ||
           strncmp(name, "compiler-", 9) == 0 || strncmp(name, "libcuda.so", 10) == 0;
}

/* Objects that were asked about: the address of their entry, with bit 0 for heddle's. */
static bool
is_heddles(const struct link_map *m)
{
    static _Atomic uintptr_t known[OBJECTS];
    const uintptr_t at = (uintptr_t)m;

    for (size_t i = at / 64, tried = 0; tried < OBJECTS; i++, tried++) {
        const uintptr_t seen = atomic_load_explicit(&known[i % OBJECTS], memory_order_relaxed);

        if ((seen & ~(uintptr_t)1) == at)
            return seen & 1;
        if (seen == 0) {
            const bool is = is_heddles_name(m->l_name);

            atomic_store_explicit(&known[i % OBJECTS], at | is, memory_order_relaxed);
            return is;
        }
    }
    return is_heddles_name(m->l_name);
}

static uint64_t
hash_place(const char *name, uint64_t offset)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ offset;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return h;
}

/* Counts an operation of heddle's. True: it has to fail. */
static bool
count_operation(const struct link_map *m, uintptr_t at)
{
    const uint64_t n = atomic_fetch_add(&control->count, 1) + 1;

    if (n <= HED_FAULTS_LOGGED)
        atomic_store(&control->places[n - 1], hash_place(m->l_name, at - m->l_addr));
    if (n != atomic_load(&control->at))
        return false;
    (void)snprintf(control->where, sizeof control->where, "%.140s+0x%llx", m->l_name,
                   (unsigned long long)(at - m->l_addr));
    atomic_fetch_add(&control->fired, 1);
    return true;
}

static bool
fails(enum hed_faults_kind kind, const void *caller)
{
    struct dl_find_object found;
    const int e = errno;

    if (!control || finding || !(atomic_load(&control->roles) & role) ||
        atomic_load(&control->kind) != (uint32_t)kind ||
        _dl_find_object((void *)(uintptr_t)caller, &found) != 0 || !is_heddles(found.dlfo_link_map))
        return false;

    const bool does = count_operation(found.dlfo_link_map, (uintptr_t)caller);

    errno = e;
    return does;
}

#define CALLER __builtin_return_address(0)
#define FAILS(kind) fails(HED_FAULTS_##kind, CALLER)
#define FAIL(e, result) return errno = (e), (result)

/* From here on, what is not static replaces the C library's function of that name. */
#pragma GCC visibility push(default)

/* ---- memory ---------------------------------------------------------------------------------- */

static _Alignas(16) unsigned char early[EARLY];
static size_t early_used;

static void *
allocate_early(size_t n)
{
    void *p = early + early_used;

    early_used += (n + 15) & ~(size_t)15;
    if (early_used > sizeof early)
        abort();
    return p;
}

static bool
is_early(const void *p)
{
    return (const unsigned char *)p >= early && (const unsigned char *)p < early + sizeof early;
}

static void *
count_block(void *p, int n)
{
    if (p && control && role == HED_FAULTS_LISTENER)
        atomic_fetch_add_explicit(&control->blocks, n, memory_order_relaxed);
    return p;
}

void *
malloc(size_t n)
{
    if (finding)
        return allocate_early(n);
    if (FAILS(MEMORY))
        FAIL(ENOMEM, NULL);
    return count_block(REAL(malloc)(n), 1);
}

void *
calloc(size_t n, size_t size)
{
    if (finding)
        return allocate_early(n * size);
    if (FAILS(MEMORY))
        FAIL(ENOMEM, NULL);
    return count_block(REAL(calloc)(n, size), 1);
}

void *
realloc(void *p, size_t n)
{
    if (FAILS(MEMORY))
        FAIL(ENOMEM, NULL);
    if (is_early(p))
        abort();
    return p ? REAL(realloc)(p, n) : count_block(REAL(realloc)(p, n), 1);
}

void *
aligned_alloc(size_t to, size_t n)
{
    if (FAILS(MEMORY))
        FAIL(ENOMEM, NULL);
    return count_block(REAL(aligned_alloc)(to, n), 1);
}

char *
strdup(const char *text)
{
    if (FAILS(MEMORY))
        FAIL(ENOMEM, NULL);
    return REAL(strdup)(text);
}

void
free(void *p)
{
    if (!p || is_early(p))
        return;
    (void)count_block(p, -1);
    REAL(free)(p);
}

void *
mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (FAILS(MEMORY))
        FAIL(ENOMEM, MAP_FAILED);
    return REAL(mmap)(at, n, protection, flags, fd, offset);
}

int
mprotect(void *at, size_t n, int protection)
{
    if (FAILS(MEMORY))
        FAIL(ENOMEM, -1);
    return REAL(mprotect)(at, n, protection);
}

/* ---- files, sockets, threads, processes ------------------------------------------------------ */

static mode_t
mode_of(int flags, va_list args)
{
    return flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

int
open(const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);

    const mode_t mode = mode_of(flags, args);

    va_end(args);
    if (FAILS(THINGS))
        FAIL(EMFILE, -1);
    return REAL(open)(path, flags, mode);
}

int
openat(int in, const char *path, int flags, ...)
{
    va_list args;

    va_start(args, flags);

    const mode_t mode = mode_of(flags, args);

    va_end(args);
    if (FAILS(THINGS))
        FAIL(EMFILE, -1);
    return REAL(openat)(in, path, flags, mode);
}

#define THING(result, error, failed, name, parameters, arguments) \
    result name parameters                                        \
    {                                                             \
        if (FAILS(THINGS))                                        \
            FAIL(error, failed);                                  \
        return REAL(name) arguments;                              \
    }

THING(FILE *, EMFILE, NULL, fopen, (const char *path, const char *mode), (path, mode))
THING(DIR *, EMFILE, NULL, opendir, (const char *path), (path))
THING(int, EMFILE, -1, socket, (int family, int type, int protocol), (family, type, protocol))
THING(int, EMFILE, -1, socketpair, (int family, int type, int protocol, int fds[2]),
      (family, type, protocol, fds))
THING(int, EMFILE, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
THING(int, EMFILE, -1, epoll_create1, (int flags), (flags))
THING(int, EMFILE, -1, pipe2, (int fds[2], int flags), (fds, flags))
THING(pid_t, EAGAIN, -1, fork, (void), ())

int
accept4(int fd, struct sockaddr *at, socklen_t *n, int flags)
{
    if (FAILS(THINGS))
        FAIL(EMFILE, -1);
    if (FAILS(INTERRUPT))
        FAIL(EINTR, -1);
    return REAL(accept4)(fd, at, n, flags);
}

int
pthread_create(pthread_t *out, const pthread_attr_t *a, void *(*body)(void *), void *arg)
{
    return FAILS(THINGS) ? EAGAIN : REAL(pthread_create)(out, a, body, arg);
}

/* ---- room in files --------------------------------------------------------------------------- */

int
ftruncate(int fd, off_t size)
{
    if (FAILS(SPACE))
        FAIL(ENOSPC, -1);
    return REAL(ftruncate)(fd, size);
}

int
fallocate(int fd, int mode, off_t from, off_t size)
{
    if (FAILS(SPACE))
        FAIL(ENOSPC, -1);
    return REAL(fallocate)(fd, mode, from, size);
}

int
posix_fallocate(int fd, off_t from, off_t size)
{
    return FAILS(SPACE) ? ENOSPC : REAL(posix_fallocate)(fd, from, size);
}

/* ---- reading and writing --------------------------------------------------------------------- */

enum way { READS, WRITES };

static bool
is_stream(int fd, const struct stat *st)
{
    int type = SOCK_STREAM;
    socklen_t n = sizeof type;

    return !S_ISSOCK(st->st_mode) ||
           (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM);
}

static bool
never_waits(int fd, int flags)
{
    return (flags & MSG_DONTWAIT) || (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

/* A connection that is broken stays so, and its other end notices. */
static int
break_socket(int fd, enum way way)
{
    (void)shutdown(fd, SHUT_RDWR);
    return way == READS ? ECONNRESET : EPIPE;
}

/* Decides about one transfer. True: it fails, with errno. *half: do half of it. */
static bool
transfer_fails(int fd, enum way way, size_t n, int flags, const void *caller, bool *half)
{
    struct stat st;
    const int before = errno;

    *half = false;
    if (!control || finding || !atomic_load(&control->roles) || fstat(fd, &st) != 0)
        return false;

    const bool file = S_ISREG(st.st_mode), socket = S_ISSOCK(st.st_mode);
    int e = 0;

    if (n > 1 && is_stream(fd, &st) && fails(HED_FAULTS_SHORT, caller))
        *half = true;
    else if (!file && fails(HED_FAULTS_INTERRUPT, caller))
        e = EINTR;
    else if (!file && (way == READS || is_stream(fd, &st)) && never_waits(fd, flags) &&
             fails(HED_FAULTS_AGAIN, caller))
        e = EAGAIN;
    else if (file && way == WRITES && fails(HED_FAULTS_SPACE, caller))
        e = ENOSPC;
    else if (socket && fails(HED_FAULTS_BROKEN, caller))
        e = break_socket(fd, way);
    else if (file && way == READS && fails(HED_FAULTS_BROKEN, caller))
        e = EIO;
    errno = e ? e : before;
    return e != 0;
}

#define PLAIN(name, way, parameters, arguments)                \
    ssize_t name parameters                                    \
    {                                                          \
        bool half;                                             \
                                                               \
        if (transfer_fails(fd, way, n, FLAGS_, CALLER, &half)) \
            return -1;                                         \
        n = half ? n / 2 : n;                                  \
        return REAL(name) arguments;                           \
    }

#define FLAGS_ 0
PLAIN(read, READS, (int fd, void *p, size_t n), (fd, p, n))
PLAIN(write, WRITES, (int fd, const void *p, size_t n), (fd, p, n))
PLAIN(pread, READS, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
PLAIN(pwrite, WRITES, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
#undef FLAGS_
#define FLAGS_ flags
PLAIN(recv, READS, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
PLAIN(send, WRITES, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
#undef FLAGS_

static size_t
bytes_in(const struct iovec *parts, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        n += parts[i].iov_len;
    return n;
}

/* The first half of the parts: of a single one, half of its bytes. Returns how many are left. */
static size_t
halve_parts(struct iovec *out, const struct iovec *parts, size_t count)
{
    size_t used = 0;

    while (used < count && parts[used].iov_len == 0)
        used++;
    out[0] = parts[used];
    out[0].iov_len -= out[0].iov_len > 1 ? out[0].iov_len / 2 : 0;
    return 1;
}

ssize_t
recvmsg(int fd, struct msghdr *m, int flags)
{
    struct iovec first;
    struct msghdr less = *m;
    bool half;

    if (transfer_fails(fd, READS, bytes_in(m->msg_iov, m->msg_iovlen), flags, CALLER, &half))
        return -1;
    if (!half)
        return REAL(recvmsg)(fd, m, flags);
    less.msg_iov = &first;
    less.msg_iovlen = halve_parts(&first, m->msg_iov, m->msg_iovlen);

    const ssize_t got = REAL(recvmsg)(fd, &less, flags);

    m->msg_controllen = less.msg_controllen;
    m->msg_flags = less.msg_flags;
    m->msg_namelen = less.msg_namelen;
    return got;
}

ssize_t
sendmsg(int fd, const struct msghdr *m, int flags)
{
    struct iovec first;
    struct msghdr less = *m;
    bool half;

    if (transfer_fails(fd, WRITES, bytes_in(m->msg_iov, m->msg_iovlen), flags, CALLER, &half))
        return -1;
    if (half) {
        less.msg_iov = &first;
        less.msg_iovlen = halve_parts(&first, m->msg_iov, m->msg_iovlen);
    }
    return REAL(sendmsg)(fd, &less, flags);
}

ssize_t
writev(int fd, const struct iovec *parts, int count)
{
    struct iovec first;
    bool half;

    if (transfer_fails(fd, WRITES, bytes_in(parts, (size_t)count), 0, CALLER, &half))
        return -1;
    if (!half)
        return REAL(writev)(fd, parts, count);
    (void)halve_parts(&first, parts, (size_t)count);
    return REAL(writev)(fd, &first, 1);
}

/* ---- waiting --------------------------------------------------------------------------------- */

int
poll(struct pollfd *fds, nfds_t n, int ms)
{
    if (FAILS(INTERRUPT))
        FAIL(EINTR, -1);
    return REAL(poll)(fds, n, ms);
}

int
epoll_wait(int fd, struct epoll_event *events, int most, int ms)
{
    if (FAILS(INTERRUPT))
        FAIL(EINTR, -1);
    return REAL(epoll_wait)(fd, events, most, ms);
}

/* ---- the start ------------------------------------------------------------------------------- */

static void
be_worker(void)
{
    role = HED_FAULTS_WORKER;
}

static __attribute__((constructor)) void
map_control(void)
{
    const char *path = getenv("HED_FAULTS");
    const int fd = path ? REAL(open)(path, O_RDWR | O_CLOEXEC) : -1;
    void *p = fd < 0 ? MAP_FAILED
                     : REAL(mmap)(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED)
        return;
    role = strcmp(program_invocation_short_name, "heddled") == 0 ? HED_FAULTS_LISTENER
                                                                 : HED_FAULTS_CLIENT;
    if (role == HED_FAULTS_LISTENER && pthread_atfork(NULL, NULL, be_worker) != 0)
        abort();
    control = p;
}

#pragma GCC visibility pop
