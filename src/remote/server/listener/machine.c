/* How much memory this machine has for the server, and what follows from it if the options do not
 * say otherwise. A container or a service may have less than the machine: control groups say so. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/number.h"
#include "base/sanitize.h"
#include "remote/server/listener/listener.h"

/* The rest is for the system, for the listener, and for private memory of workers. */
#define TOTAL_PART(bytes) ((bytes) / 4 * 3)
/* Private memory counts when it is reserved, and each thread reserves 8 MiB for its stack. */
#define PRIVATE_LEAST (UINT64_C(16) << 30)

/* The least of the limits of a group and those above it. `path` is changed. */
static uint64_t
least_limit(const char *mount, char *path, const char *file)
{
    uint64_t least = UINT64_MAX;
    char text[32], name[PATH_MAX];

    for (;;) {
        const int n = snprintf(name, sizeof name, "%s%s/%s", mount, path, file);
        uint64_t limit = 0;

        /* "max" is not a number. */
        if (n > 0 && (size_t)n < sizeof name &&
            sscanf(hed_read_small(name, text, sizeof text), "%" SCNu64, &limit) == 1)
            least = hed_min(least, limit);

        char *slash = strrchr(path, '/');

        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* One line of /proc/self/cgroup: "0::/path", or "4:memory:/path" of the first version. */
static uint64_t
limit_of_line(const char *root, char *line)
{
    char *names = strchr(line, ':');
    char *path = names ? strchr(names + 1, ':') : NULL;
    char mount[PATH_MAX];

    if (!path || path[1] != '/')
        return UINT64_MAX;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (names[1] == '\0') {
        (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
        return least_limit(mount, path, "memory.max");
    }
    if (strcmp(names + 1, "memory") != 0)
        return UINT64_MAX;
    (void)snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/memory", root);
    return least_limit(mount, path, "memory.limit_in_bytes");
}

static uint64_t
limit_of_groups(const char *root)
{
    uint64_t least = UINT64_MAX;
    char text[8192], path[PATH_MAX];
    char *rest = text, *line;

    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    (void)hed_read_small(path, text, sizeof text);
    while ((line = strsep(&rest, "\n")) != NULL)
        least = hed_min(least, limit_of_line(root, line));
    return least;
}

uint64_t
hed_machine_memory(const char *root)
{
    char text[512], path[PATH_MAX];
    uint64_t kib = 0;

    (void)snprintf(path, sizeof path, "%s/proc/meminfo", root);

    const char *total = strstr(hed_read_small(path, text, sizeof text), "MemTotal:");

    if (!total || sscanf(total, "MemTotal: %" SCNu64, &kib) != 1 || kib == 0)
        return 0;
    return hed_min(kib * 1024, limit_of_groups(root));
}

void
hed_memory_defaults(struct hed_server_options *o, const char *root)
{
    const uint64_t machine = hed_machine_memory(root);

    if (o->total_memory == HED_NOT_GIVEN)
        o->total_memory = TOTAL_PART(machine);
    if (o->host_memory == HED_NOT_GIVEN)
        o->host_memory = o->total_memory;
    o->worker_memory_given = o->worker_memory != HED_NOT_GIVEN;
    if (!o->worker_memory_given)
        o->worker_memory = machine && !HED_SANITIZED ? hed_max(machine, PRIVATE_LEAST) : 0;
}
