/* The futex system call. See futex.h. */
#include "base/futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"

_Static_assert(sizeof(_Atomic uint32_t) == 4, "the kernel reads four bytes");

static bool
futex_wait(int op, _Atomic uint32_t *addr, uint32_t expect, int64_t timeout_ns)
{
    const int saved = errno;
    struct timespec t;
    bool in_time = true;

    if (timeout_ns >= 0) {
        t.tv_sec = (time_t)(timeout_ns / (int64_t)HED_NS_PER_S);
        t.tv_nsec = (long)(timeout_ns % (int64_t)HED_NS_PER_S);
    }
    if (syscall(SYS_futex, addr, op, expect, timeout_ns >= 0 ? &t : NULL, NULL, 0) < 0) {
        in_time = errno != ETIMEDOUT;
        if (errno != ETIMEDOUT && errno != EAGAIN && errno != EINTR)
            hed_bug("futex wait: errno %d", errno);
    }
    errno = saved;
    return in_time;
}

static int
futex_wake(int op, _Atomic uint32_t *addr, int n)
{
    const int saved = errno;
    const long woken = syscall(SYS_futex, addr, op, n, NULL, NULL, 0);

    if (woken < 0)
        hed_bug("futex wake: errno %d", errno);
    errno = saved;
    return woken < 0 ? 0 : (int)woken;
}

bool
hed_futex_wait(_Atomic uint32_t *addr, uint32_t expect, int64_t timeout_ns)
{
    return futex_wait(FUTEX_WAIT, addr, expect, timeout_ns);
}

bool
hed_futex_wait_private(_Atomic uint32_t *addr, uint32_t expect, int64_t timeout_ns)
{
    return futex_wait(FUTEX_WAIT_PRIVATE, addr, expect, timeout_ns);
}

int
hed_futex_wake(_Atomic uint32_t *addr, int n)
{
    return futex_wake(FUTEX_WAKE, addr, n);
}

int
hed_futex_wake_private(_Atomic uint32_t *addr, int n)
{
    return futex_wake(FUTEX_WAKE_PRIVATE, addr, n);
}
