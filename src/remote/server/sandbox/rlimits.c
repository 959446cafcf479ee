/* Resource limits. Threads are counted per user: the worker has its own, or its own user namespace.
 * Shared memory is not limited here; device memory is, by its leases.
 */
#include <errno.h>
#include <sys/resource.h>

#include "remote/server/sandbox/steps.h"

#define DESCRIPTORS_MAX 262144 /* each allocation of device memory has one */

/* Lowers a limit for good. */
static int
lower_limit(int what, rlim_t most)
{
    struct rlimit r;

    if (getrlimit(what, &r) != 0)
        return -errno;
    if (r.rlim_max > most)
        r.rlim_max = most;
    if (r.rlim_cur > r.rlim_max)
        r.rlim_cur = r.rlim_max;
    return setrlimit(what, &r) == 0 ? 0 : -errno;
}

int
hed_step_limits(const struct hed_sandbox *s, struct hed_why *why)
{
    const struct {
        int what;
        rlim_t most;
    } limits[] = {
        {RLIMIT_CORE, 0},
        {RLIMIT_MSGQUEUE, 0},
        {RLIMIT_NOFILE, DESCRIPTORS_MAX},
        {RLIMIT_NPROC, s->threads ? s->threads : RLIM_INFINITY},
        {RLIMIT_DATA, s->memory ? s->memory : RLIM_INFINITY},
    };
    int err = 0;

    for (unsigned i = 0; !err && i < sizeof limits / sizeof *limits; i++)
        err = lower_limit((int)limits[i].what, limits[i].most);
    return err;
}
