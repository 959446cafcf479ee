/* See name.h. */
#include "driver/ipc/name.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process.h"

#define VERSION 1

static const char magic[4] = {'H', 'I', 'P', 'C'};

int
hed_ipc_secret(uint8_t out[HED_IPC_SECRET])
{
    return getrandom(out, HED_IPC_SECRET, 0) == HED_IPC_SECRET ? 0 : HED_EIO;
}

int
hed_ipc_name(enum hed_ipc_kind kind, int fd, const uint8_t secret[HED_IPC_SECRET], uint64_t at,
             uint64_t size, struct hed_ipc_name *out)
{
    struct hed_ipc_name n = {.version = VERSION,
                             .kind = (uint8_t)kind,
                             .pid = (int32_t)getpid(),
                             .fd = fd,
                             .start = hed_process_start(getpid()),
                             .at = at,
                             .size = size};

    if (n.start == 0)
        return HED_ENOTSUP;
    memcpy(n.magic, magic, sizeof n.magic);
    memcpy(n.secret, secret, sizeof n.secret);
    *out = n;
    return 0;
}

void
hed_ipc_key_name(enum hed_ipc_kind kind, const uint8_t key[HED_IPC_KEY], const uint8_t *secret,
                 uint64_t at, uint64_t size, struct hed_ipc_name *out)
{
    *out = (struct hed_ipc_name){.version = VERSION, .kind = (uint8_t)kind, .at = at, .size = size};
    memcpy(out->magic, magic, sizeof out->magic);
    memcpy(out->key, key, sizeof out->key);
    if (secret)
        memcpy(out->secret, secret, sizeof out->secret);
}

/* Is what a kind does not use zero? Names are compared as a whole. */
static bool
is_rest_zero(const struct hed_ipc_name *n)
{
    static const uint8_t none[HED_IPC_SECRET] = {0};

    if (n->kind == HED_IPC_KEY_EVENT && (n->at != 0 || n->size != 1))
        return false;
    return (n->kind != HED_IPC_KEY_MEMORY && n->kind != HED_IPC_KEY_EVENT) ||
           memcmp(n->secret, none, sizeof none) == 0;
}

int
hed_ipc_check(const struct hed_ipc_name *n, enum hed_ipc_kind kind)
{
    return memcmp(n->magic, magic, sizeof magic) == 0 && n->version == VERSION && n->zero == 0 &&
                   n->more == 0 && n->kind == kind &&
                   (kind >= HED_IPC_KEY_MEMORY || (n->pid > 0 && n->fd >= 0)) && n->size > 0 &&
                   n->size <= INT64_MAX && n->at <= INT64_MAX && is_rest_zero(n)
               ? 0
               : HED_EINVAL;
}

/* Is it a file in memory of this user? Nothing has been opened yet: opening a device or a pipe can
 * have effects. */
static int
check_shared_file(int path_fd)
{
    struct stat st;
    struct statfs kind;
    char self[64], link[64];

    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", path_fd);

    const ssize_t n = readlink(self, link, sizeof link - 1);
    const char want[] = "/memfd:" HED_IPC_FILE;

    if (n < (ssize_t)sizeof want - 1 || memcmp(link, want, sizeof want - 1) != 0)
        return HED_ENOTFOUND;
    if (fstat(path_fd, &st) != 0 || !S_ISREG(st.st_mode) || fstatfs(path_fd, &kind) != 0 ||
        kind.f_type != TMPFS_MAGIC)
        return HED_ENOTFOUND;
    return st.st_uid == geteuid() ? 0 : HED_EACCESS;
}

static int
open_checked_memory(int path_fd, int *out)
{
    char self[64];
    const int err = check_shared_file(path_fd);

    if (err)
        return err;
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", path_fd);
    *out = open(self, O_RDWR | O_CLOEXEC);
    return *out >= 0 ? 0 : hed_err_from_errno(errno);
}

int
hed_ipc_open(const struct hed_ipc_name *n, enum hed_ipc_kind kind, int *fd)
{
    char path[64];
    int err = hed_ipc_check(n, kind);

    if (err)
        return err;
    if (n->pid == getpid() && n->start == hed_process_start(getpid()))
        return HED_ESTATE;
    if (hed_process_start(n->pid) != n->start)
        return HED_ENOTFOUND;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)n->pid, (int)n->fd);

    const int path_fd = open(path, O_PATH | O_CLOEXEC);

    if (path_fd < 0)
        return hed_err_from_errno(errno);
    err = open_checked_memory(path_fd, fd);
    close(path_fd);
    return err;
}
