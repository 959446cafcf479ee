/* Reading and writing whole ranges of bytes. See io.h. */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"

int
hed_read_all(int fd, void *p, size_t n)
{
    for (unsigned char *at = p; n > 0;) {
        const ssize_t got = read(fd, at, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? hed_err_from_errno(errno) : HED_ETRUNC;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

int
hed_write_all(int fd, const void *p, size_t n)
{
    for (const unsigned char *at = p; n > 0;) {
        const ssize_t put = write(fd, at, n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return hed_err_from_errno(errno);
        at += put;
        n -= (size_t)put;
    }
    return 0;
}

const char *
hed_read_small(const char *path, char *out, size_t size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

    if (fd >= 0)
        (void)close(fd);
    out[n > 0 ? n : 0] = '\0';
    return out;
}
