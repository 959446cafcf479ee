/* libheddle-nodes.so: lets programs find the device files of NVIDIA's driver.
 *
 * Some programs look for /dev/nvidia0 or /dev/nvidiactl before they load libcuda, and use no GPU
 * if neither exists (JAX does). `heddle run` preloads this library unless NVIDIA's driver is used.
 * If one of the two files does not exist, questions about it are answered as if it did. Opening
 * it fails as before, because there is no driver behind it; only NVIDIA's own libraries do that.
 * Everything else goes on to the next library, which is libc or something else that was preloaded.
 *
 * Invariant: no call is answered here that the next library did not fail with ENOENT.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* Numbers of NVIDIA's driver (Documentation/admin-guide/devices.txt of Linux: "195 char"). */
#define MAJOR_NVIDIA 195
#define MINOR_CONTROL 255

#define MODE (S_IFCHR | 0666)

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "both have 64-bit sizes");

/* The minor number of a device file, or -1 if the path is not one of ours. */
static int
node_minor(const char *path)
{
    if (strcmp(path, "/dev/nvidia0") == 0)
        return 0;
    return strcmp(path, "/dev/nvidiactl") == 0 ? MINOR_CONTROL : -1;
}

/* The function of that name in the next library. Functions that ask about files do not fail for
 * want of memory, so neither may this: libc has all of them. */
static void *
find_next(_Atomic(void *) *known, const char *name)
{
    /* Relaxed: every thread finds the same address. */
    void *f = atomic_load_explicit(known, memory_order_relaxed);

    if (!f) {
        f = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(known, f, memory_order_relaxed);
    }
    return f;
}

static int
stat_node(int folder, const char *path, struct stat *out, int flags)
{
    static _Atomic(void *) known;
    int (*next)(int, const char *, struct stat *, int) = find_next(&known, "fstatat");
    const int r = next ? next(folder, path, out, flags) : (errno = ENOSYS, -1);
    const int minor = r != 0 && errno == ENOENT ? node_minor(path) : -1;

    if (minor < 0)
        return r;
    *out = (struct stat){.st_mode = MODE,
                         .st_nlink = 1,
                         .st_rdev = makedev(MAJOR_NVIDIA, (unsigned)minor),
                         .st_blksize = 4096};
    return 0;
}

static int
access_node(int folder, const char *path, int mode, int flags)
{
    static _Atomic(void *) known;
    int (*next)(int, const char *, int, int) = find_next(&known, "faccessat");
    const int r = next ? next(folder, path, mode, flags) : (errno = ENOSYS, -1);

    if (r == 0 || errno != ENOENT || node_minor(path) < 0)
        return r;
    errno = EACCES;
    return mode & X_OK ? -1 : 0;
}

/* ---- what programs call ---------------------------------------------------------------------- */

EXPORT int
stat(const char *path, struct stat *out)
{
    return stat_node(AT_FDCWD, path, out, 0);
}

EXPORT int
lstat(const char *path, struct stat *out)
{
    return stat_node(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

EXPORT int
fstatat(int folder, const char *path, struct stat *out, int flags)
{
    return stat_node(folder, path, out, flags);
}

EXPORT int
stat64(const char *path, struct stat64 *out)
{
    return stat_node(AT_FDCWD, path, (struct stat *)out, 0);
}

EXPORT int
lstat64(const char *path, struct stat64 *out)
{
    return stat_node(AT_FDCWD, path, (struct stat *)out, AT_SYMLINK_NOFOLLOW);
}

EXPORT int
fstatat64(int folder, const char *path, struct stat64 *out, int flags)
{
    return stat_node(folder, path, (struct stat *)out, flags);
}

EXPORT int
statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict out)
{
    static _Atomic(void *) known;
    int (*next)(int, const char *, int, unsigned, struct statx *) = find_next(&known, "statx");
    const int r = next ? next(folder, path, flags, mask, out) : (errno = ENOSYS, -1);
    const int minor = r != 0 && errno == ENOENT ? node_minor(path) : -1;

    if (minor < 0)
        return r;
    *out = (struct statx){.stx_mask = STATX_TYPE | STATX_MODE | STATX_NLINK,
                          .stx_mode = MODE,
                          .stx_nlink = 1,
                          .stx_rdev_major = MAJOR_NVIDIA,
                          .stx_rdev_minor = (unsigned)minor,
                          .stx_blksize = 4096};
    return 0;
}

EXPORT int
access(const char *path, int mode)
{
    return access_node(AT_FDCWD, path, mode, 0);
}

EXPORT int
faccessat(int folder, const char *path, int mode, int flags)
{
    return access_node(folder, path, mode, flags);
}

/* Programs that were built with a glibc before 2.33 call these instead. The version says which
 * layout of struct stat is meant; on 64-bit machines there is one. */
EXPORT int __xstat(int version, const char *path, struct stat *out);
EXPORT int __xstat64(int version, const char *path, struct stat64 *out);
EXPORT int __lxstat(int version, const char *path, struct stat *out);
EXPORT int __lxstat64(int version, const char *path, struct stat64 *out);

int
__xstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return stat_node(AT_FDCWD, path, out, 0);
}

int
__xstat64(int version, const char *path, struct stat64 *out)
{
    (void)version;
    return stat_node(AT_FDCWD, path, (struct stat *)out, 0);
}

int
__lxstat(int version, const char *path, struct stat *out)
{
    (void)version;
    return stat_node(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}

int
__lxstat64(int version, const char *path, struct stat64 *out)
{
    (void)version;
    return stat_node(AT_FDCWD, path, (struct stat *)out, AT_SYMLINK_NOFOLLOW);
}
