/* See process.h. */
#include "base/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *
hed_process_stat(pid_t pid, char *room, size_t size)
{
    char path[64] = "/proc/self/stat";

    /* In a PID namespace, the process's own number may mean another process in /proc. */
    if (pid != getpid())
        (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);

    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, room, size - 1);

    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return NULL;
    room[n] = '\0';
    return strrchr(room, ')');
}

#define START_FIELD 22 /* of /proc/PID/stat; proc(5): "starttime" */

uint64_t
hed_process_start(pid_t pid)
{
    char text[1024];
    const char *at = hed_process_stat(pid, text, sizeof text);

    if (!at || at[1] != ' ' || at[2] == '\0' || strchr("ZX", at[2]))
        return 0;
    /* The parenthesis ends field 2. */
    for (int field = 2; at && field < START_FIELD; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

bool
hed_process_is_stopped(pid_t pid)
{
    char text[256];
    const char *at = hed_process_stat(pid, text, sizeof text);

    return at && at[1] == ' ' && at[2] != '\0' && strchr("TtZX", at[2]);
}

uint64_t
hed_process_family(pid_t pid)
{
    const pid_t leader = getpgid(pid);
    struct stat st;

    if (leader < 0)
        return 0;
    /* Process 1 of one container is not that of another. */
    if (stat("/proc/self/ns/pid", &st) != 0)
        st.st_ino = 0;
    return ((uint64_t)st.st_ino << 32 ^ (uint64_t)leader) | UINT64_C(1) << 63;
}
