/* A root of its own: an empty file system in which only the paths of paths.c are, read-only. So
 * what Landlock does not cover, such as asking whether a file exists or where a link leads, finds
 * nothing either.
 *
 *   a mount namespace ── copies of the mounts that are needed, not attached anywhere
 *     ── an empty file system ── the copies, at the paths that they had
 *     ── pivot_root: it is the root, and the old root is gone
 *
 * A server that is not root can do this in the user namespace that the step before has made.
 * Descriptors of folders would lead out of the new root, by "..", so they are opened anew in it.
 * Numbers are the kernel's (linux/mount.h), because the C library's may be older.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/paths.h"
#include "remote/server/sandbox/steps.h"

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_move_mount 429
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

enum {
    TREE_CLONE = 1,        /* open_tree: a copy of the mount */
    TREE_ALL = 0x8000,     /* and of those that lie on it */
    FROM_DESCRIPTOR = 4,   /* move_mount: the path of the source is empty */
    MOUNT_READ_ONLY = 0x1, /* attributes of mounts */
    MOUNT_NO_SETUID = 0x2,
    MOUNT_NO_DEVICES = 0x4,
    MOUNT_NO_PROGRAMS = 0x8,
};

#define PLACES_MAX 128
#define FOLDER_NAME "client/%d" /* where the worker's own folders are in the new root */

struct place { /* what will be in the new root */
    int mount; /* a copy that is not attached; -1 for a link */
    bool folder;
    char path[PATH_MAX];   /* without the leading "/" */
    char target[PATH_MAX]; /* of a link */
};

struct root {
    struct place *places;
    size_t count;
    bool own_proc; /* there is a PID namespace, so /proc is mounted anew */
    int err;       /* sticky */
};

/* ---- before the new root: copies of the mounts ----------------------------------------------- */

static int
limit_mount(int mount, uint64_t attributes)
{
    const struct {
        uint64_t set, clear, propagation, user;
    } change = {.set = attributes};

    return syscall(SYS_mount_setattr, mount, "", AT_EMPTY_PATH | TREE_ALL, &change,
                   sizeof change) == 0
               ? 0
               : -errno;
}

static struct place *
add_place(struct root *r, const char *path)
{
    if (r->count == PLACES_MAX)
        r->err = -E2BIG;
    if (r->err)
        return NULL;

    struct place *p = &r->places[r->count++];

    p->mount = -1;
    (void)snprintf(p->path, sizeof p->path, "%s", path + 1);
    return p;
}

/* Copies the mount of a path, without links in it, and puts the copy at `at`. */
static void
add_mount(struct root *r, const char *from, const char *at, uint64_t attributes)
{
    struct stat st;
    const int mount =
        (int)syscall(SYS_open_tree, AT_FDCWD, from, TREE_CLONE | O_CLOEXEC | TREE_ALL);

    if (mount < 0 || fstat(mount, &st) != 0) {
        r->err = -errno;
        return;
    }

    struct place *p = add_place(r, at);
    const int err = p ? limit_mount(mount, attributes) : r->err;

    if (err)
        r->err = err;
    if (!p) {
        (void)close(mount);
        return;
    }
    p->mount = mount;
    p->folder = S_ISDIR(st.st_mode);
}

/* Relative if both are in one folder, as /proc/self is. */
static void
add_link(struct root *r, const char *path, const char *real)
{
    const size_t folder = (size_t)(strrchr(path, '/') - path) + 1;
    const bool near = strncmp(path, real, folder) == 0 && !strchr(real + folder, '/');
    struct place *p = add_place(r, path);

    if (p)
        (void)snprintf(p->target, sizeof p->target, "%s", near ? real + folder : real);
}

/* A path that is a link, or beneath one, stays a link to the real one. */
static void
add_path(void *arg, const char *path, enum hed_path_use use)
{
    struct root *r = arg;
    char real[PATH_MAX];
    const bool is_self = strncmp(path, "/proc/self", 10) == 0;

    if (r->err || (strncmp(path, "/proc/", 6) == 0 && r->own_proc) || !realpath(path, real) ||
        strcmp(real, "/") == 0)
        return;
    /* Some files of the process itself may be written; Landlock knows which. */
    add_mount(r, real, real, is_self ? MOUNT_NO_SETUID : MOUNT_NO_SETUID | MOUNT_READ_ONLY);
    if (strcmp(path, real) != 0 && !strstr(path, "/../"))
        add_link(r, path, real);
}

/* The descriptor was opened in the namespace before this one, so the path is asked again. */
static void
add_client_folder(struct root *r, int fd, int number)
{
    char link[64], path[PATH_MAX], at[32];
    struct stat old, now;

    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    (void)snprintf(at, sizeof at, "/" FOLDER_NAME, number);
    if (r->err || !realpath(link, path))
        return;
    if (fstat(fd, &old) != 0 || stat(path, &now) != 0 || old.st_dev != now.st_dev ||
        old.st_ino != now.st_ino)
        r->err = -ESTALE;
    else
        add_mount(r, path, at, MOUNT_NO_SETUID | MOUNT_NO_DEVICES);
}

/* ---- the new root; it is the current folder -------------------------------------------------- */

/* Makes the folders above a path. */
static int
make_folders_above(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0755) != 0 && errno != EEXIST && errno != EROFS)
            return -errno;
    }
    return 0;
}

static int
make_mount_point(const struct place *p)
{
    if (p->folder)
        return mkdir(p->path, 0755) == 0 || errno == EEXIST ? 0 : -errno;

    const int fd = open(p->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0 || errno == EEXIST ? 0 : -errno;
}

/* Is it there already, as a part of something larger? */
static bool
is_in_place(const struct place *p)
{
    struct stat there, wanted;

    return stat(p->path, &there) == 0 && fstat(p->mount, &wanted) == 0 &&
           there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino;
}

static int
put_place(const struct place *p)
{
    struct stat st;
    int err = 0;

    if (p->mount < 0 ? lstat(p->path, &st) == 0 : is_in_place(p))
        return 0;
    err = make_folders_above(p->path);
    if (!err && p->mount < 0)
        return symlink(p->target, p->path) == 0 ? 0 : -errno;
    if (!err)
        err = make_mount_point(p);
    if (!err && syscall(SYS_move_mount, p->mount, "", AT_FDCWD, p->path, FROM_DESCRIPTOR) != 0)
        err = -errno;
    return err;
}

/* Threads have other numbers in the PID namespace of the worker than in that of the old /proc. */
static int
mount_own_proc(void)
{
    if (mkdir("proc", 0755) != 0 ||
        mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0)
        return -errno;
    return 0;
}

static int
fill_root(const struct root *r)
{
    int err = r->own_proc ? mount_own_proc() : 0;

    for (size_t i = 0; !err && i < r->count; i++)
        err = put_place(&r->places[i]);
    return err;
}

static int
change_root(void)
{
    /* The old root lies on the new one for a moment, and is taken off. */
    if (syscall(SYS_pivot_root, ".", ".") != 0 || umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        return -errno;

    const int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const struct {
        uint64_t set, clear, propagation, user;
    } change = {.set = MOUNT_READ_ONLY | MOUNT_NO_SETUID | MOUNT_NO_DEVICES | MOUNT_NO_PROGRAMS};
    const int err =
        fd < 0 || syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &change, sizeof change) != 0
            ? -errno
            : 0;

    if (fd >= 0)
        (void)close(fd);
    return err;
}

/* The same descriptor, for the same folder in the new root. */
static int
open_folder_again(int fd, int number)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/" FOLDER_NAME, number);

    const int again = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int err = again < 0 || dup3(again, fd, O_CLOEXEC) < 0 ? -errno : 0;

    if (again >= 0)
        (void)close(again);
    return err;
}

static int
enter_root(const struct hed_sandbox *s, struct root *r)
{
    hed_paths_each(s, add_path, r);
    for (int i = 0; i < HED_SANDBOX_FOLDERS; i++)
        if (s->folders[i] >= 0)
            add_client_folder(r, s->folders[i], i);
    /* All copies have been made, so it does not matter what lies under the new root. */
    if (!r->err &&
        (mount("none", s->libraries, "tmpfs", MS_NOSUID | MS_NODEV, "size=256k,mode=755") != 0 ||
         chdir(s->libraries) != 0))
        r->err = -errno;
    if (!r->err)
        r->err = fill_root(r);
    if (!r->err)
        r->err = change_root();
    for (int i = 0; !r->err && i < HED_SANDBOX_FOLDERS; i++)
        if (s->folders[i] >= 0)
            r->err = open_folder_again(s->folders[i], i);
    return r->err;
}

int
hed_step_root(const struct hed_sandbox *s, struct hed_why *why)
{
    struct root r = {.own_proc = s->steps >> HED_STEP_PROCESSES & 1};

    /* Nothing that is mounted here may show in the server's namespace. */
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -errno;
    r.places = calloc(PLACES_MAX, sizeof *r.places);
    if (!r.places)
        return -ENOMEM;

    /* The worker's user must be able to search the folders that are made here. */
    const mode_t mask = umask(S_IWGRP | S_IWOTH);
    const int err = enter_root(s, &r);

    (void)umask(mask);
    for (size_t i = 0; i < r.count; i++)
        if (r.places[i].mount >= 0)
            (void)close(r.places[i].mount);
    free(r.places);
    return err;
}
