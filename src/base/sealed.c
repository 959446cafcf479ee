/* Memory of another process that cannot shrink. See sealed.h. */
#include "base/sealed.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

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
