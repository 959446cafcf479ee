/* Where the sockets of move/talk/talk.h are: "snap-PID" and "rescue-PID" in the folder where
 * processes meet. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/meeting.h"
#include "base/str.h"
#include "move/talk/talk.h"

#define TALK_PREFIX "snap-"
#define RESCUE_PREFIX "rescue-"
#define LEFT_SECONDS 5   /* that a socket is old before it counts as left */
#define SAVED_SECONDS 60 /* the same for a file that tells where a program was saved */

/* Opens the folders of the user that a process belongs to. Root may look into those of others. */
static int
open_talk_folders(pid_t pid, bool make, struct hed_meeting_folders *out, struct hed_why *why)
{
    char proc[32];
    char run[48];
    struct stat st;

    (void)snprintf(proc, sizeof proc, "/proc/%d", (int)pid);
    if (geteuid() != 0 || stat(proc, &st) != 0 || st.st_uid == 0)
        return hed_meeting_open(make, out, why);

    const struct hed_meeting_places places = {
        .user = st.st_uid, .run = run, .shared = "/dev/shm", .home = NULL, .given = NULL};

    (void)snprintf(run, sizeof run, "/run/user/%u", (unsigned)st.st_uid);
    return hed_meeting_open_in(&places, make, out, why);
}

static int
name_talk_path(const char *prefix, pid_t pid, bool make, char path[HED_TALK_PATH_MAX],
               struct hed_why *why)
{
    struct hed_meeting_folders folders;
    char name[32];
    const int err = open_talk_folders(pid, make, &folders, why);

    if (err != 0)
        return err;
    (void)snprintf(name, sizeof name, "%s%d", prefix, (int)pid);

    const struct hed_meeting_folder *at = make ? &folders.at[0] : hed_meeting_find(&folders, name);
    const int n = snprintf(path, HED_TALK_PATH_MAX, "%s/%s", at->path, name);

    if (n >= HED_TALK_PATH_MAX)
        hed_why_set(why, "%s: too long a folder for sockets: use a shorter meet_dir", at->path);
    hed_meeting_close(&folders);
    return n < HED_TALK_PATH_MAX ? 0 : HED_ERANGE;
}

int
hed_talk_path(pid_t pid, char path[HED_TALK_PATH_MAX], struct hed_why *why)
{
    return name_talk_path(TALK_PREFIX, pid, false, path, why);
}

/* ---- sockets that are left ------------------------------------------------------------------- */

/* Does nobody listen there, nor will anybody? A process of another PID namespace may have the
 * number, and a process that begins has a socket before it listens. */
static bool
is_left(const char *path, pid_t pid)
{
    const int64_t now = (int64_t)(hed_wall_ns() / HED_NS_PER_S);
    struct hed_why ignored;
    struct stat st;
    int fd = -1;

    if (kill(pid, 0) == 0 || errno != ESRCH || lstat(path, &st) != 0)
        return false;

    const int64_t age = now - (int64_t)st.st_mtime;

    if (S_ISREG(st.st_mode))
        return age >= SAVED_SECONDS;
    if (!S_ISSOCK(st.st_mode) || age < LEFT_SECONDS)
        return false;

    const int err = hed_talk_open_at(path, &fd, &ignored);

    if (err == 0)
        (void)close(fd);
    return err == HED_ENOTFOUND;
}

static bool
sweep_talk_name(void *arg, const char *name)
{
    const struct hed_meeting_folders *folders = arg;
    const char *dash = strchr(name, '-');
    char path[HED_TALK_PATH_MAX];
    uint64_t pid;

    if (!dash ||
        (strncmp(name, TALK_PREFIX, strlen(TALK_PREFIX)) != 0 &&
         strncmp(name, RESCUE_PREFIX, strlen(RESCUE_PREFIX)) != 0 &&
         strncmp(name, HED_TALK_SAVED, strlen(HED_TALK_SAVED)) != 0) ||
        hed_parse_u64(dash + 1, &pid) != 0 || pid == 0 || pid > INT32_MAX)
        return true;

    const struct hed_meeting_folder *at = hed_meeting_find(folders, name);

    if (snprintf(path, sizeof path, "%s/%s", at->path, name) < (int)sizeof path &&
        is_left(path, (pid_t)pid))
        (void)unlink(path);
    return true;
}

/* A process that was killed leaves its socket, so the next one that comes removes it. */
static void
sweep_sockets(void)
{
    struct hed_meeting_folders folders;

    if (hed_meeting_open(false, &folders, NULL) != 0)
        return;
    hed_meeting_each(&folders, sweep_talk_name, &folders);
    hed_meeting_close(&folders);
}

void
hed_talk_forget_own(void)
{
    char path[HED_TALK_PATH_MAX];

    if (name_talk_path(TALK_PREFIX, getpid(), false, path, NULL) == 0)
        (void)unlink(path);
}

int
hed_talk_listen(int *listener, char path[HED_TALK_PATH_MAX], struct hed_why *why)
{
    const int err = name_talk_path(TALK_PREFIX, getpid(), true, path, why);

    sweep_sockets();
    return err != 0 ? err : hed_talk_listen_at(path, listener, why);
}

/* A process of another container may have the same number and listen at the same path. */
int
hed_talk_check_peer(int fd, pid_t pid, struct hed_why *why)
{
    struct ucred c;
    socklen_t size = sizeof c;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size) == 0 && c.pid == pid)
        return 0;
    hed_why_set(why, "the socket of process %d belongs to a process of another container",
                (int)pid);
    return HED_ENOTFOUND;
}

int
hed_talk_open(pid_t pid, int *out, struct hed_why *why)
{
    char path[HED_TALK_PATH_MAX];
    struct hed_why detail;
    int fd = -1;
    int err = hed_talk_path(pid, path, &detail);

    if (err == 0)
        err = hed_talk_open_at(path, &fd, &detail);
    if (err == HED_ENOTFOUND) {
        hed_why_set(why,
                    "process %d cannot be reached (%s): only programs that use a GPU through a "
                    "server can be (heddle run --gpu shm:..., or --ckpt), once they use CUDA",
                    (int)pid, detail.text);
        return err;
    }
    if (err != 0) {
        hed_why_set(why, "process %d: %s", (int)pid, detail.text);
        return err;
    }
    err = hed_talk_check_peer(fd, pid, why);
    if (err != 0)
        close(fd);
    else
        *out = fd;
    return err;
}

/* ---- rescue ---------------------------------------------------------------------------------- */

int
hed_talk_listen_rescue(pid_t pid, int *listener, char path[HED_TALK_PATH_MAX], struct hed_why *why)
{
    const int err = name_talk_path(RESCUE_PREFIX, pid, true, path, why);

    return err != 0 ? err : hed_talk_listen_at(path, listener, why);
}

int
hed_talk_open_rescue(int *out, struct hed_why *why)
{
    char path[HED_TALK_PATH_MAX];
    struct ucred c;
    socklen_t size = sizeof c;
    int fd = -1;
    int err = name_talk_path(RESCUE_PREFIX, getpid(), false, path, why);

    if (err == 0)
        err = hed_talk_open_at(path, &fd, why);
    if (err != 0)
        return err;
    /* Others may have a process with our number, or could keep us waiting for ever. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &size) == 0 && c.pid == getppid() &&
        (c.uid == 0 || c.uid == geteuid())) {
        *out = fd;
        return 0;
    }
    close(fd);
    hed_why_set(why, "%s does not belong to the parent of this process", path);
    return HED_ENOTFOUND;
}

/* ---- everybody ------------------------------------------------------------------------------- */

struct talk_visit {
    bool (*visit)(void *arg, pid_t pid);
    void *arg;
};

static bool
visit_talk_name(void *arg, const char *name)
{
    const struct talk_visit *v = arg;
    uint64_t pid;

    if (strncmp(name, TALK_PREFIX, strlen(TALK_PREFIX)) != 0 ||
        hed_parse_u64(name + strlen(TALK_PREFIX), &pid) != 0 || pid == 0 || pid > INT32_MAX)
        return true;
    return v->visit(v->arg, (pid_t)pid);
}

void
hed_talk_each(bool (*visit)(void *arg, pid_t pid), void *arg)
{
    struct hed_meeting_folders folders;
    struct talk_visit v = {.visit = visit, .arg = arg};

    if (hed_meeting_open(false, &folders, NULL) != 0)
        return;
    hed_meeting_each(&folders, visit_talk_name, &v);
    hed_meeting_close(&folders);
}
