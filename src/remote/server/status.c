/* The page of a worker's status. See status.h. */
#include "remote/server/status.h"

#include <stddef.h>
#include <sys/mman.h>

struct hed_worker_status *
hed_status_create(void)
{
    void *p = mmap(NULL, sizeof(struct hed_worker_status), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void
hed_status_keep(struct hed_worker_status *s)
{
    (void)madvise(s, sizeof *s, MADV_DONTFORK);
}

void
hed_status_free(struct hed_worker_status *s)
{
    if (s)
        (void)munmap(s, sizeof *s);
}
