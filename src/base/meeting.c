/* Finding and creating the folders of base/meeting.h. */
#include "base/meeting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define OTHERS 077        /* bits of a mode */
#define OTHERS_WRITE 022  /* of these, the bits that allow changes */
#define ACCOUNT_MAX 16384 /* bytes of an entry of the password database */

static bool
is_users_folder(const struct stat *st, uid_t user)
{
    return S_ISDIR(st->st_mode) && st->st_uid == user && (st->st_mode & OTHERS) == 0;
}

/* Opens, and with `make` creates, a folder of the user alone in another. Returns its descriptor or
 * -errno: -ENOENT if there is none, -EEXIST if something else has the name. */
static int
open_private_folder(int in, const char *name, uid_t user, bool make)
{
    struct stat st;
    const int made = make && mkdirat(in, name, 0700) != 0 && errno != EEXIST ? errno : 0;
    const int fd = openat(in, name, OPEN_FOLDER | O_NOFOLLOW);
    const int e = errno;

    if (fd < 0) {
        if (fstatat(in, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !is_users_folder(&st, user))
            return -EEXIST;
        return e == ENOENT && made ? -made : -e;
    }
    if (fstat(fd, &st) != 0 || !is_users_folder(&st, user)) {
        close(fd);
        return -EEXIST;
    }
    return fd;
}

/* Adds IN/NAME to the list. Returns 0 or -errno, as above. */
static int
add_folder(struct hed_meeting_folders *out, const char *in_path, int in, const char *name,
           uid_t user, bool make)
{
    struct hed_meeting_folder *f = &out->at[out->count];
    const int n = snprintf(f->path, sizeof f->path, "%s/%s", in_path, name);
    const int fd = n > 0 && (size_t)n < sizeof f->path ? open_private_folder(in, name, user, make)
                                                       : -ENAMETOOLONG;

    if (fd < 0)
        return fd;
    f->fd = fd;
    f->shared = false;
    f->user = user;
    f->group = (gid_t)-1;
    f->mode = 0600;
    out->count++;
    return 0;
}

static void
add_run_folder(struct hed_meeting_folders *out, const struct hed_meeting_places *p, bool make)
{
    struct stat st;
    const int run = open(p->run, OPEN_FOLDER | O_NOFOLLOW);

    if (run < 0)
        return;
    if (fstat(run, &st) == 0 && is_users_folder(&st, p->user))
        (void)add_folder(out, p->run, run, "heddle", p->user, make);
    close(run);
}

static int
add_shared_folder(struct hed_meeting_folders *out, const struct hed_meeting_places *p, bool make)
{
    char name[32];
    const int shared = open(p->shared, OPEN_FOLDER);

    if (shared < 0)
        return errno == ENOENT ? -ENODEV : -errno;
    (void)snprintf(name, sizeof name, "heddle-%u", (unsigned)p->user);

    const int err = add_folder(out, p->shared, shared, name, p->user, make);

    close(shared);
    return err;
}

/* ---- the home folder ------------------------------------------------------------------------- */

static bool
find_home(const struct hed_meeting_places *p, char *out, size_t size)
{
    char room[ACCOUNT_MAX];
    struct passwd account;
    struct passwd *found = NULL;
    const char *home = p->home;

    if (!home && getpwuid_r(p->user, &account, room, sizeof room, &found) == 0 && found)
        home = account.pw_dir;

    const int n = home && *home == '/' ? snprintf(out, size, "%s", home) : -1;

    return n > 0 && (size_t)n < size;
}

/* A home folder may be on several machines, whose processes cannot meet. */
static void
name_home_folder(char *out, size_t size)
{
    struct utsname host;

    (void)snprintf(out, size, ".heddle-%s", uname(&host) == 0 ? host.nodename : "");
    for (char *c = out; *c; c++)
        if (*c == '/')
            *c = '-';
}

static int
add_home_folder(struct hed_meeting_folders *out, const struct hed_meeting_places *p, bool make)
{
    char path[HED_MEETING_PATH_MAX];
    char name[80];
    struct stat st;
    int err = -EACCES;

    if (!find_home(p, path, sizeof path))
        return -ENOENT;
    name_home_folder(name, sizeof name);

    const int home = open(path, OPEN_FOLDER);

    if (home < 0)
        return -errno;
    if (fstat(home, &st) == 0 && st.st_uid == p->user && (st.st_mode & OTHERS_WRITE) == 0)
        err = add_folder(out, path, home, name, p->user, make);
    close(home);
    return err;
}

/* ---- the setting meet_dir -------------------------------------------------------------------- */

static char chosen[HED_MEETING_PATH_MAX + 1]; /* too long if it is full */

void
hed_meeting_choose(const char *path)
{
    (void)snprintf(chosen, sizeof chosen, "%s", path);
}

/* Says what is wrong with the folder; NULL if it can be used. */
static const char *
judge_given_folder(const struct stat *st, uid_t user)
{
    if (!S_ISDIR(st->st_mode))
        return "it is not a folder";
    if (st->st_uid != 0 && st->st_uid != user)
        return "it belongs to another user; it must be root's or your own";
    if (st->st_mode & S_IWOTH)
        return "all users can write to it; remove that right (chmod o-w)";
    return NULL;
}

/* Files in it are shared if the group can write to it. A sticky folder would keep the last process
 * from removing a file that another user has created. */
static int
add_given_folder(struct hed_meeting_folders *out, const struct hed_meeting_places *p,
                 struct hed_why *why)
{
    struct hed_meeting_folder *f = &out->at[0];
    const char *wrong = NULL;
    struct stat st;

    if (p->given[0] != '/' || strlen(p->given) >= sizeof f->path) {
        hed_why_set(why, "meet_dir: %.200s is not the full path of a folder", p->given);
        return HED_EINVAL;
    }

    const int fd = open(p->given, OPEN_FOLDER | O_NOFOLLOW);
    const int e = errno;

    if (fd < 0 || fstat(fd, &st) != 0)
        wrong =
            e == ENOENT ? "there is no such folder; an administrator has to make it" : strerror(e);
    else
        wrong = judge_given_folder(&st, p->user);
    if (!wrong && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        wrong = "you may not write to it; are you in its group?";
    if (wrong) {
        hed_why_set(why, "meet_dir: %.200s: %s", p->given, wrong);
        if (fd >= 0)
            close(fd);
        return fd < 0 && e == ENOENT ? HED_ENOTFOUND : HED_EACCESS;
    }
    f->fd = fd;
    f->shared = (st.st_mode & S_IWGRP) != 0;
    f->user = p->user;
    f->group = st.st_gid;
    f->mode = f->shared ? 0660 : 0600;
    (void)snprintf(f->path, sizeof f->path, "%s", p->given);
    out->count = 1;
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Says which user has taken the name. */
static void
explain_squatter(const struct hed_meeting_places *p, struct hed_why *why)
{
    char room[ACCOUNT_MAX];
    char path[HED_MEETING_PATH_MAX];
    struct passwd account;
    struct passwd *found = NULL;
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/heddle-%u", p->shared, (unsigned)p->user);
    if (lstat(path, &st) != 0) {
        hed_why_set(why, "%s: %s", path, strerror(errno));
        return;
    }
    if (getpwuid_r(st.st_uid, &account, room, sizeof room, &found) != 0)
        found = NULL;
    hed_why_set(why,
                "%s belongs to user %u%s%s%s and has mode %04o, so programs cannot meet there: "
                "remove it, or ask its owner or root to",
                path, (unsigned)st.st_uid, found ? " (" : "", found ? found->pw_name : "",
                found ? ")" : "", (unsigned)(st.st_mode & 07777));
}

/* Adds the folder for a user without a folder in /run/user. A home folder that exists is used as
 * long as /dev/shm has no folder of the user: whoever took that name could otherwise separate
 * programs by giving it up. Returns 0 or -errno. */
static int
add_other_folder(struct hed_meeting_folders *out, const struct hed_meeting_places *p, bool make)
{
    int err = add_shared_folder(out, p, false);

    if (err == -ENOENT && add_home_folder(out, p, false) == 0)
        return 0;
    if (err == -ENOENT && make)
        err = add_shared_folder(out, p, true);
    if (err != -EEXIST)
        return err;
    explain_squatter(p, &out->warning);
    return add_home_folder(out, p, make);
}

int
hed_meeting_open_in(const struct hed_meeting_places *p, bool make, struct hed_meeting_folders *out,
                    struct hed_why *why)
{
    out->count = 0;
    out->warning.text[0] = '\0';
    if (p->given && p->given[0])
        return add_given_folder(out, p, why);
    add_run_folder(out, p, make);

    const int err = out->count ? add_shared_folder(out, p, false) : add_other_folder(out, p, make);

    if (out->count > 0)
        return 0;
    if (out->warning.text[0])
        hed_why_set(why, "%s; the home folder cannot be used instead: %s", out->warning.text,
                    strerror(-err));
    else
        hed_why_set(why, "%s/heddle-%u: %s", p->shared, (unsigned)p->user, strerror(-err));
    return hed_err_from_errno(-err);
}

int
hed_meeting_open_of(uid_t user, struct hed_meeting_folders *out, struct hed_why *why)
{
    char run[48];
    const struct hed_meeting_places places = {.user = user, .run = run, .shared = "/dev/shm"};

    (void)snprintf(run, sizeof run, "/run/user/%u", (unsigned)user);
    return hed_meeting_open_in(&places, false, out, why);
}

static bool
is_folder_of(DIR *d, const char *name, uint64_t uid)
{
    struct stat st;

    return fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == uid;
}

/* Adds the users after whom something in a folder is called, PREFIX-UID; with `own`, those alone to
 * whom it belongs. */
static size_t
add_users(const char *path, const char *prefix, bool own, uid_t *out, size_t count, size_t room)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    uint64_t uid;

    while (d && count < room && (e = readdir(d)) != NULL) {
        size_t i = 0;

        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 ||
            hed_parse_u64(e->d_name + strlen(prefix), &uid) != 0 || uid >= UINT32_MAX ||
            (own && !is_folder_of(d, e->d_name, uid)))
            continue;
        while (i < count && out[i] != (uid_t)uid)
            i++;
        if (i == count && (uid_t)uid != geteuid())
            out[count++] = (uid_t)uid;
    }
    if (d)
        closedir(d);
    return count;
}

size_t
hed_meeting_users(uid_t *out, size_t room)
{
    size_t count = add_users("/dev/shm", "heddle-", true, out, 0, room);

    count = add_users("/run/user", "", true, out, count, room);
    /* A user whose name is taken there meets at home. These come last: anybody can take the names
     * of so many users that there is room for no other. */
    return add_users("/dev/shm", "heddle-", false, out, count, room);
}

int
hed_meeting_open(bool make, struct hed_meeting_folders *out, struct hed_why *why)
{
    static atomic_bool has_warned;
    char run[48];
    const struct hed_meeting_places places = {
        .user = geteuid(), .run = run, .shared = "/dev/shm", .home = NULL, .given = chosen};

    (void)snprintf(run, sizeof run, "/run/user/%u", (unsigned)places.user);

    const int err = hed_meeting_open_in(&places, make, out, why);

    /* Relaxed: it orders nothing. */
    if (err == 0 && out->warning.text[0] &&
        !atomic_exchange_explicit(&has_warned, true, memory_order_relaxed))
        hed_warn(BASE, "%s. Until then they meet in %s", out->warning.text, out->at[0].path);
    return err;
}

void
hed_meeting_close(struct hed_meeting_folders *f)
{
    while (f->count > 0)
        close(f->at[--f->count].fd);
}

const struct hed_meeting_folder *
hed_meeting_find(const struct hed_meeting_folders *f, const char *name)
{
    struct stat st;

    for (size_t i = 0; i < f->count; i++)
        if (fstatat(f->at[i].fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            return &f->at[i];
    return &f->at[0];
}

void
hed_meeting_each(const struct hed_meeting_folders *f, bool (*visit)(void *arg, const char *name),
                 void *arg)
{
    bool more = true;

    for (size_t i = 0; more && i < f->count; i++) {
        const int fd = openat(f->at[i].fd, ".", OPEN_FOLDER);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;

        if (!d && fd >= 0)
            close(fd);
        while (d && more && (e = readdir(d)) != NULL)
            if (e->d_name[0] != '.' && hed_meeting_find(f, e->d_name) == &f->at[i])
                more = visit(arg, e->d_name);
        if (d)
            closedir(d);
    }
}

bool
hed_meeting_owns(const struct hed_meeting_folder *f, int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           (f->shared ? st.st_gid == f->group : st.st_uid == f->user) &&
           (st.st_mode & 0777 & ~f->mode) == 0 && st.st_nlink <= 1;
}

int
hed_meeting_adopt(const struct hed_meeting_folder *f, int fd)
{
    struct stat st;

    if (!f->shared)
        return 0;
    if (fstat(fd, &st) != 0 || (st.st_gid != f->group && fchown(fd, (uid_t)-1, f->group) != 0) ||
        fchmod(fd, f->mode) != 0)
        return -errno;
    return 0;
}
