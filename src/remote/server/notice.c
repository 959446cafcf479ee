/* The notice: see notice.h. */
#include "remote/server/notice.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL)

int
hed_notice_create(struct hed_notice **out, int *fd)
{
    const int file = memfd_create("heddle-notice", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *p = MAP_FAILED;

    if (file >= 0 && ftruncate(file, sizeof **out) == 0)
        p = mmap(NULL, sizeof **out, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    /* From now on nobody can map it for writing, and no child inherits the mapping that can. */
    if (p != MAP_FAILED && madvise(p, sizeof **out, MADV_DONTFORK) == 0 &&
        fcntl(file, F_ADD_SEALS, SEALS) == 0) {
        *out = p;
        *fd = file;
        return 0;
    }
    hed_notice_free(p == MAP_FAILED ? NULL : p, file);
    return HED_ENOMEM;
}

void
hed_notice_free(struct hed_notice *b, int fd)
{
    if (b)
        (void)munmap(b, sizeof *b);
    if (fd >= 0)
        (void)close(fd);
}

const struct hed_notice *
hed_notice_map(int fd)
{
    const void *p =
        fd > 0 ? mmap(NULL, sizeof(struct hed_notice), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    return p == MAP_FAILED ? NULL : p;
}
