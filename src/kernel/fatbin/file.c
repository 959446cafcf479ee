/* Mapping a file. See file.h. */
#include "kernel/fatbin/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

static int
failed(int e, struct hed_why *why)
{
    hed_why_set(why, "%s", strerror(e));
    return hed_err_from_errno(e);
}

int
hed_fatbin_map(const char *path, struct hed_bytes *out, struct hed_why *why)
{
    /* Non-blocking, so that a FIFO or a device does not make us wait. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    int err = 0;

    if (fd < 0)
        return failed(errno, why);
    if (fstat(fd, &st) != 0) {
        err = failed(errno, why);
    } else if (!S_ISREG(st.st_mode)) {
        hed_why_set(why, "not a regular file");
        err = HED_EINVAL;
    } else if (st.st_size == 0) {
        *out = (struct hed_bytes){NULL, 0};
    } else {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (p == MAP_FAILED)
            err = failed(errno, why);
        else
            *out = (struct hed_bytes){p, (size_t)st.st_size};
    }
    close(fd);
    return err;
}

void
hed_fatbin_unmap(struct hed_bytes b)
{
    if (b.size)
        munmap((void *)(uintptr_t)b.data, b.size);
}
