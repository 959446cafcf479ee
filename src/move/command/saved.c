/* Tells the heddle command that has started a program where the program was saved. See saved.h. */
#include "move/command/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/process.h"
#include "base/str.h"
#include "base/tree.h"
#include "move/talk/talk.h"

/* Beside the program's socket, where only its user and root can write. */
static bool
name_saved(const char *socket, pid_t pid, char path[HED_TALK_PATH_MAX + 16])
{
    const char *slash = strrchr(socket, '/');

    return slash && snprintf(path, HED_TALK_PATH_MAX + 16, "%.*s/" HED_TALK_SAVED "%d",
                             (int)(slash - socket), socket, (int)pid) < HED_TALK_PATH_MAX + 16;
}

static pid_t
parent_of(pid_t pid)
{
    char text[1024];
    const char *at = hed_process_stat(pid, text, sizeof text);

    return at ? (pid_t)strtol(at + 3, NULL, 10) : 0;
}

void
hed_saved_tell(const char *socket, pid_t pid, const char *file)
{
    char path[HED_TALK_PATH_MAX + 16];

    if (!hed_tree_is_heddle(parent_of(pid)) || !name_saved(socket, pid, path))
        return;
    (void)unlink(path);

    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

    if (fd < 0)
        return;
    if (hed_write_all(fd, file, strlen(file)) != 0)
        (void)unlink(path);
    (void)close(fd);
}

bool
hed_saved_hear(pid_t pid, char *file, size_t size)
{
    char socket[HED_TALK_PATH_MAX], path[HED_TALK_PATH_MAX + 16];
    struct stat st;

    if (hed_talk_path(pid, socket, NULL) != 0 || !name_saved(socket, pid, path))
        return false;

    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return false;

    const bool good =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_uid == 0 || st.st_uid == geteuid());
    const ssize_t n = good ? read(fd, file, size - 1) : -1;

    file[n > 0 ? n : 0] = '\0';
    (void)close(fd);
    (void)unlink(path);
    return n > 0;
}
