/* The guests that servers of this user listen for: a socket for QEMU's vsock device, and a file in
 * /dev/shm for the window. See remote/wire/window.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/vm/vm.h"

/* The socket that a server has accepted a connection with has the name of the one it listens on.
 * The kernel lists all: "Num RefCount Protocol Flags Type St Inode Path", St 3 is connected. */
static bool
is_connected(const char *path)
{
    char line[HED_VM_PATH + 128];
    FILE *f = fopen("/proc/net/unix", "re");
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) {
        unsigned state = 0;
        int at = 0;

        line[strcspn(line, "\n")] = '\0';
        if (sscanf(line, "%*s %*s %*s %*s %*s %x %*s %n", &state, &at) == 1 && at > 0)
            found = state == 3 && strcmp(line + at, path) == 0;
    }
    if (f)
        (void)fclose(f);
    return found;
}

/* A datagram socket cannot be connected to the server's, so the server does not notice, but the
 * kernel says whether a process has it. A real connection would be taken for QEMU. */
static enum hed_cli_server
look_for_server(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int e = fd < 0 ? errno : 0;

    (void)hed_str_copy(to.sun_path, sizeof to.sun_path, path);
    if (!e && connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        e = errno;
    if (fd >= 0)
        (void)close(fd);
    switch (e) {
    case EPROTOTYPE:
        return is_connected(path) ? HED_CLI_SERVER_IN_USE : HED_CLI_SERVER_LISTENS;
    case ENOENT:
    case ENOTDIR:
        return HED_CLI_SERVER_NONE;
    case 0:
    case ECONNREFUSED:
        return HED_CLI_SERVER_GONE;
    default:
        return HED_CLI_SERVER_UNKNOWN;
    }
}

/* Everybody can make files in /dev/shm: what another user has put there is not a window. */
static int
look_at_window(const char *path, uint64_t *size)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char magic[sizeof HED_WINDOW_MAGIC - 1];
    struct stat st;
    int err = 0;

    if (fd < 0)
        return errno == ELOOP ? HED_EFORMAT : hed_err_from_errno(errno);
    if (fstat(fd, &st) != 0)
        err = hed_err_from_errno(errno);
    else if (st.st_uid != geteuid())
        err = HED_EACCESS;
    else if (!S_ISREG(st.st_mode) || st.st_size < (off_t)HED_WINDOW_LEAST ||
             pread(fd, magic, sizeof magic, 0) != (ssize_t)sizeof magic ||
             memcmp(magic, HED_WINDOW_MAGIC, sizeof magic) != 0)
        err = HED_EFORMAT;
    else
        *size = (uint64_t)st.st_size;
    (void)close(fd);
    return err;
}

int
hed_cli_guest_look(const char *name, struct hed_cli_guest *out, struct hed_why *why)
{
    struct hed_cli_guest g = {0};
    const int err = hed_vm_paths(name, g.socket, g.window, why);

    if (err)
        return err;
    (void)hed_str_copy(g.name, sizeof g.name, name);
    g.server = look_for_server(g.socket);
    g.error = look_at_window(g.window, &g.size);
    *out = g;
    return 0;
}

/* ---- all guests ------------------------------------------------------------------------------ */

struct names {
    char at[HED_CLI_GUESTS][HED_WINDOW_NAME];
    size_t count;
};

static void
add_guest_name(struct names *all, const char *name, size_t n)
{
    if (n == 0 || n >= HED_WINDOW_NAME || all->count == HED_CLI_GUESTS)
        return;
    for (size_t i = 0; i < all->count; i++)
        if (strlen(all->at[i]) == n && memcmp(all->at[i], name, n) == 0)
            return;
    memcpy(all->at[all->count], name, n);
    all->at[all->count++][n] = '\0';
}

/* Adds the names of files that are called as `example` is, which is the path for the name "x". */
static void
add_guest_files(struct names *all, const char *example, const char *end)
{
    char folder[HED_VM_PATH];
    char *file;
    const struct dirent *e;

    (void)hed_str_copy(folder, sizeof folder, example);
    folder[strlen(folder) - strlen(end) - 1] = '\0';
    file = strrchr(folder, '/');
    *file++ = '\0';

    DIR *dir = opendir(folder[0] ? folder : "/");
    const size_t head = strlen(file);
    const size_t tail = strlen(end);

    while (dir && (e = readdir(dir))) {
        const size_t n = strlen(e->d_name);

        if (n > head + tail && memcmp(e->d_name, file, head) == 0 &&
            strcmp(e->d_name + n - tail, end) == 0)
            add_guest_name(all, e->d_name + head, n - head - tail);
    }
    if (dir)
        (void)closedir(dir);
}

static int
by_guest_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

int
hed_cli_guest_list(struct hed_cli_guest *out, struct hed_why *why)
{
    static struct names all; /* large */
    char socket[HED_VM_PATH], window[HED_VM_PATH];
    const int err = hed_vm_paths("x", socket, window, why);
    int count = 0;

    if (err)
        return err;
    all.count = 0;
    add_guest_files(&all, socket, ".sock");
    add_guest_files(&all, window, "");
    qsort(all.at, all.count, sizeof all.at[0], by_guest_name);
    for (size_t i = 0; i < all.count; i++) /* anybody may have put other names there */
        count += hed_cli_guest_look(all.at[i], &out[count], NULL) == 0;
    return count;
}
