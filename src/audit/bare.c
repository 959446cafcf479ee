/* As much of a C library as the audit libraries need.
 *
 * The loader keeps an audit library apart from the program, with libraries of its own. If it needed
 * the C library, every process would have that twice: programs would start more slowly, debuggers
 * would find two of each function, and Valgrind would abort the program at its end. So the
 * functions that this room and src/locate call are here, on the kernel's system calls, and in
 * bytes.c. They do what C and POSIX say, no faster than necessary. Nothing of this is visible
 * outside of the library.
 *
 * The loader holds its lock when it calls an audit library, so there is one thread here at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef errno

static int last_error;

int *
__errno_location(void)
{
    return &last_error;
}

/* The kernel's answer: a small negative number is an error. */
static long
call_kernel(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long r = number;

    __asm__ volatile("syscall"
                     : "+a"(r)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return r;
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;

    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
#else
#error "no system calls for this machine: leave this room out of the build"
#endif
}

static long
call_or_fail(long number, long a, long b, long c, long d, long e, long f)
{
    const long r = call_kernel(number, a, b, c, d, e, f);

    if (r >= 0 || r < -4095)
        return r;
    last_error = (int)-r;
    return -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* open(); move/criu/criu.c has another function of that name. */
int hed_bare_open(const char *path, int flags, ...) __asm__("open");

int
hed_bare_open(const char *path, int flags, ...)
{
    /* Nothing is created here, so there is no mode. */
    return (int)call_or_fail(SYS_openat, AT_FDCWD, (long)path, flags, 0, 0, 0);
}

int
close(int fd)
{
    return (int)call_or_fail(SYS_close, fd, 0, 0, 0, 0, 0);
}

ssize_t
read(int fd, void *p, size_t n)
{
    return call_or_fail(SYS_read, fd, (long)p, (long)n, 0, 0, 0);
}

ssize_t
write(int fd, const void *p, size_t n)
{
    return call_or_fail(SYS_write, fd, (long)p, (long)n, 0, 0, 0);
}

ssize_t
readlink(const char *restrict path, char *restrict out, size_t size)
{
    return call_or_fail(SYS_readlinkat, AT_FDCWD, (long)path, (long)out, (long)size, 0, 0);
}

int
fstat(int fd, struct stat *out)
{
    return (int)call_or_fail(SYS_fstat, fd, (long)out, 0, 0, 0, 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *
mmap(void *at, size_t size, int access_bits, int flags, int fd, off_t offset)
{
    return (void *)call_or_fail(SYS_mmap, (long)at, (long)size, access_bits, flags, fd, offset);
}

int
munmap(void *at, size_t size)
{
    return (int)call_or_fail(SYS_munmap, (long)at, (long)size, 0, 0, 0, 0);
}

/* In front of what malloc() returns. */
struct block {
    _Alignas(max_align_t) size_t size; /* with this */
};

void *
malloc(size_t size)
{
    const size_t whole = size + sizeof(struct block);

    if (whole < size)
        return NULL;

    struct block *b = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (b == MAP_FAILED)
        return NULL;
    b->size = whole;
    return b + 1;
}

void
free(void *p)
{
    if (p)
        (void)munmap((struct block *)p - 1, ((struct block *)p - 1)->size);
}
