/* What the system knows of processes and users. */
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "see/live/parts.h"

#define ACCOUNT_MAX 16384 /* bytes of an entry of the password database */

void
hed_live_user_name(uid_t user, char out[HED_LIVE_TEXT])
{
    char room[ACCOUNT_MAX];
    struct passwd account;
    struct passwd *found = NULL;

    if (getpwuid_r(user, &account, room, sizeof room, &found) != 0 || !found)
        (void)snprintf(out, HED_LIVE_TEXT, "%u", (unsigned)user);
    else
        (void)hed_str_copy(out, HED_LIVE_TEXT, found->pw_name);
}

bool
hed_live_user_of(int32_t pid, uid_t *out)
{
    char path[32];
    struct stat st;

    (void)snprintf(path, sizeof path, "/proc/%d", pid);
    if (pid <= 0 || stat(path, &st) != 0)
        return false;
    *out = st.st_uid;
    return true;
}

void
hed_live_command_of(int32_t pid, uid_t user, char out[HED_LIVE_COMMAND])
{
    char path[48];
    uid_t owner;

    out[0] = '\0';
    if (!hed_live_user_of(pid, &owner) || owner != user)
        return;
    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", pid);

    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, out, HED_LIVE_COMMAND - 1);

    if (fd >= 0)
        close(fd);
    while (n > 0 && out[n - 1] == '\0')
        n--;
    out[n > 0 ? n : 0] = '\0';
    for (ssize_t i = 0; i < n; i++)
        if (out[i] == '\0')
            out[i] = ' ';
}
