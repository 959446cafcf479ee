/* Asks the kernel. See readable.h. */
#include "base/readable.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORD 8       /* bytes of a signal mask */
#define NO_SUCH (-1) /* no way to change a mask */

/* The kernel reads the mask before it finds that it shall do nothing with it. Unlike mincore(2) and
 * the like this knows about protection, and every sandbox allows it. */
static int
can_read_word(uintptr_t at)
{
    const int before = errno;
    const long r = syscall(SYS_rt_sigprocmask, NO_SUCH, (const void *)at, NULL, (size_t)WORD);
    const int can = !(r != 0 && errno == EFAULT);

    errno = before;
    return can;
}

size_t
hed_readable(const void *p, size_t n)
{
    const uintptr_t from = (uintptr_t)p;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t end = n > UINTPTR_MAX - from ? UINTPTR_MAX : from + n;

    for (uintptr_t at = from & ~(page - 1); at < end; at += page) {
        if (!can_read_word(at))
            return at > from ? at - from : 0;
        if (at > UINTPTR_MAX - page)
            break;
    }
    return end - from;
}
