/* Memory of another process that cannot shrink. See sealed.h. */
#include "base/sealed.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"

#define STAT_BLOCK 512u /* bytes; the unit of st_blocks on Linux */

bool
hed_fd_has(int fd, uint64_t size)
{
    struct stat s;

    return fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size >= 0 &&
           (uint64_t)s.st_size >= size;
}

bool
hed_fd_is_sealed(int fd, uint64_t size)
{
    const int seals = fcntl(fd, F_GET_SEALS); /* fails for files of other kinds */
    struct statfs kind;

    return seals >= 0 && seals & F_SEAL_SHRINK && fstatfs(fd, &kind) == 0 &&
           kind.f_type == TMPFS_MAGIC && hed_fd_has(fd, size);
}

bool
hed_fd_is_fixed(int fd, uint64_t *size, uint64_t *taken)
{
    struct stat s;

    if (!hed_fd_is_sealed(fd, 0) || !(fcntl(fd, F_GET_SEALS) & F_SEAL_GROW) || fstat(fd, &s) != 0)
        return false;
    *size = (uint64_t)s.st_size;
    *taken = (uint64_t)s.st_blocks * STAT_BLOCK;
    return true;
}

bool
hed_fd_is_final(int fd, uint64_t size)
{
    uint64_t own, taken;

    return hed_fd_is_fixed(fd, &own, &taken) && own == size &&
           fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE;
}

int
hed_fd_write_sealed(const char *name, const void *bytes, size_t size, int *fd)
{
    const int made = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (made < 0)
        return HED_ENOMEM;
    if (write(made, bytes, size) == (ssize_t)size &&
        fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0) {
        *fd = made;
        return 0;
    }
    (void)close(made);
    return HED_ENOMEM;
}

int
hed_fd_read_whole(int fd, void *bytes, size_t size)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == (off_t)size &&
                   pread(fd, bytes, size, 0) == (ssize_t)size
               ? 0
               : HED_EINVAL;
}
