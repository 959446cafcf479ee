/* Tells perf(1) the names of compiled kernels: /tmp/perf-PID.map has a line "address size name" for
 * each, in hexadecimal, and perf finds it by the number of the process.
 *
 * The folder is anybody's, so the file is made anew and never followed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "base/demangle.h"
#include "base/log.h"

/* A descriptor for this process's file, or -1. */
static int
open_map(void)
{
    char path[64];
    int fd;

    (void)snprintf(path, sizeof path, "/tmp/perf-%ld.map", (long)getpid());
    (void)unlink(path);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        hed_warn(CPU, "%s cannot be made: perf will not know the names of kernels", path);
    return fd;
}

void
hed_perf_map_init(struct hed_perf_map *m)
{
    m->is_wanted = true;
    m->pid = 0;
    m->fd = -1;
    hed_lock_init(&m->lock, HED_RANK_PERF_MAP);
}

void
hed_perf_map_add(struct hed_perf_map *m, const char *name, const void *base, size_t size)
{
    char room[HED_DEMANGLED_MAX], line[sizeof room + 64];
    int n;

    if (!m->is_wanted)
        return;
    n = snprintf(line, sizeof line, "%lx %zx [kernel] %s\n", (unsigned long)base, size,
                 hed_demangle(name, room, sizeof room));
    if (n < 0 || (size_t)n >= sizeof line)
        return;
    hed_lock(&m->lock);
    /* A child of a fork has its own file. */
    if (m->pid != getpid()) {
        if (m->fd >= 0)
            (void)close(m->fd);
        m->pid = getpid();
        m->fd = open_map();
    }
    if (m->fd >= 0)
        (void)!write(m->fd, line, (size_t)n);
    hed_unlock(&m->lock);
}

void
hed_perf_map_fini(struct hed_perf_map *m)
{
    if (m->is_wanted && m->fd >= 0)
        (void)close(m->fd);
}
