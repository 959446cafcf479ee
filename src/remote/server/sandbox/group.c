/* See group.h. */
#include "remote/server/sandbox/group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/process.h"
#include "remote/server/sandbox/steps.h"

#define CPU_PERIOD_US 100000
#define PROCESSES_MAX 64 /* in the server's group when it starts */

/* ---- files ----------------------------------------------------------------------------------- */

static const char *
read_group_file(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX + NAME_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return hed_read_small(path, out, size);
}

/* The kernel takes a value in one write. It makes the files itself; only a test's files need to be
 * made. */
static int
write_group_file(const char *folder, const char *name, const char *text)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);

    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    const int error = errno;

    if (fd >= 0)
        (void)close(fd);
    return n == (ssize_t)strlen(text) ? 0 : -(error ? error : EIO);
}

static bool
has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL; at += n) {
        const bool begins = at == text || at[-1] == ' ';

        if (begins && (at[n] == '\0' || at[n] == ' ' || at[n] == '\n'))
            return true;
    }
    return false;
}

/* ---- the server's group ---------------------------------------------------------------------- */

/* The folder of the group that this process is in. */
static int
find_group(const char *root, char base[HED_GROUP_PATH], struct hed_why *why)
{
    char text[4096], folder[PATH_MAX], controllers[512];
    const char *line;

    (void)snprintf(folder, sizeof folder, "%s/proc/self", root);
    (void)read_group_file(folder, "cgroup", text, sizeof text);
    line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!line) {
        hed_why_set(why, "there are no control groups of version 2");
        return HED_ENOTSUP;
    }
    line = strchr(line, '/');
    if (!line)
        line = "/";

    size_t length = strcspn(line, "\n");

    while (length && line[length - 1] == '/')
        length--;

    const int n = snprintf(base, HED_GROUP_PATH, "%s/sys/fs/cgroup%.*s", root, (int)length, line);

    if (n < 0 || n >= HED_GROUP_PATH - 32) {
        hed_why_set(why, "the name of the server's control group is too long");
        return HED_ENOTSUP;
    }
    (void)read_group_file(base, "cgroup.controllers", controllers, sizeof controllers);
    if (!has_word(controllers, "memory") || !has_word(controllers, "pids")) {
        hed_why_set(why, "the server's control group cannot limit memory and threads (systemd: "
                         "Delegate=cpu memory pids)");
        return HED_ENOTSUP;
    }
    return 0;
}

static bool
is_child_of(pid_t pid, pid_t parent)
{
    char text[1024];
    const char *at = hed_process_stat(pid, text, sizeof text);
    int its = 0;

    return at && sscanf(at, ") %*c %d", &its) == 1 && its == (int)parent;
}

/* Lists the processes of the group. Only if all are ours, the group is. */
static int
list_own(const char *base, pid_t out[PROCESSES_MAX], size_t *count, struct hed_why *why)
{
    char text[4096];
    char *at, *end;

    *count = 0;
    (void)read_group_file(base, "cgroup.procs", text, sizeof text);
    for (at = text; *at; at = end + strspn(end, "\n")) {
        const pid_t pid = (pid_t)strtol(at, &end, 10);

        if (end == at || *count == PROCESSES_MAX ||
            (pid != getpid() && !is_child_of(pid, getpid()))) {
            hed_why_set(why, "the server's control group has other processes; systemd gives it one "
                             "of its own (heddled.service)");
            return HED_ENOTSUP;
        }
        out[(*count)++] = pid;
    }
    return 0;
}

/* Groups of an earlier server in the same group. */
static void
remove_left_over(const char *base)
{
    DIR *folder = opendir(base);
    char path[PATH_MAX];

    for (const struct dirent *d; folder && (d = readdir(folder)) != NULL;) {
        if (strncmp(d->d_name, "worker-", 7) != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", base, d->d_name);
        (void)hed_group_remove(path);
    }
    if (folder)
        (void)closedir(folder);
}

static int
move_all(const char *to, const pid_t *pids, size_t count)
{
    char text[32];
    int err = 0;

    for (size_t i = 0; !err && i < count; i++) {
        (void)snprintf(text, sizeof text, "%d", (int)pids[i]);
        err = write_group_file(to, "cgroup.procs", text);
        if (err == -ESRCH) /* a child has ended */
            err = 0;
    }
    return err;
}

int
hed_groups_begin(const char *root, char base[HED_GROUP_PATH], struct hed_why *why)
{
    pid_t pids[PROCESSES_MAX];
    char listener[HED_GROUP_PATH + 16];
    size_t count;
    int err = find_group(root, base, why);

    if (!err)
        err = list_own(base, pids, &count, why);
    if (err)
        return err;
    (void)snprintf(listener, sizeof listener, "%s/listener", base);

    const bool made = mkdir(listener, 0755) == 0;

    if (!made && errno != EEXIST) {
        hed_why_set(why, "%.400s: %s", listener, strerror(errno));
        return HED_ENOTSUP;
    }
    err = move_all(listener, pids, count);
    if (!err)
        err = write_group_file(base, "cgroup.subtree_control", "+memory +pids");
    if (err) {
        hed_why_set(why, "%.400s: %s", base, strerror(-err));
        (void)move_all(base, pids, count);
        if (made)
            (void)rmdir(listener);
        return HED_ENOTSUP;
    }
    /* Shares of the processors are welcome, but not needed. */
    (void)write_group_file(base, "cgroup.subtree_control", "+cpu");
    remove_left_over(base);
    return 0;
}

/* ---- a worker's group ------------------------------------------------------------------------ */

static const char *
limit_number(uint64_t n, char out[32])
{
    (void)snprintf(out, 32, "%" PRIu64, n);
    return n ? out : "max";
}

int
hed_group_make(const char *base, const char *name, const struct hed_group_limits *l,
               char path[HED_GROUP_PATH], struct hed_why *why)
{
    const int n = snprintf(path, HED_GROUP_PATH, "%s/%s", base, name);
    char text[64];
    int err = n < 0 || n >= HED_GROUP_PATH ? -ENAMETOOLONG : 0;

    if (!err && mkdir(path, 0755) != 0 && errno != EEXIST)
        err = -errno;
    if (!err)
        err = write_group_file(path, "memory.max", limit_number(l->memory, text));
    if (!err)
        err = write_group_file(path, "pids.max", limit_number(l->threads, text));
    if (!err && l->cpus) {
        (void)snprintf(text, sizeof text, "%" PRIu64 " %u", (uint64_t)l->cpus * CPU_PERIOD_US,
                       CPU_PERIOD_US);
        err = write_group_file(path, "cpu.max", text);
    }
    if (err)
        hed_why_set(why, "%.400s: %s", path, strerror(-err));
    return err ? HED_EIO : 0;
}

uint64_t
hed_group_kills(const char *path)
{
    char text[512];
    const char *at = strstr(read_group_file(path, "memory.events", text, sizeof text), "oom_kill ");
    uint64_t n = 0;

    return at && sscanf(at, "oom_kill %" SCNu64, &n) == 1 ? n : 0;
}

bool
hed_group_remove(const char *path)
{
    return rmdir(path) == 0;
}

int
hed_step_cgroup(const struct hed_sandbox *s, struct hed_why *why)
{
    /* 0 is the process that writes. */
    return s->group ? write_group_file(s->group, "cgroup.procs", "0") : -ENOENT;
}
