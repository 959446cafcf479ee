/* The file system, by Landlock: a worker opens the paths of paths.c, and writes to its folders. It
 * executes nothing. Numbers are the kernel's (linux/landlock.h), because the header of the machine
 * on which heddle is built may be older than the kernel on which it runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/sandbox/paths.h"
#include "remote/server/sandbox/steps.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define ASK_VERSION 1u /* a flag of landlock_create_ruleset */
#define PATH_BENEATH 1 /* a type of rule */

enum {
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_FILE = 1 << 5,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    REFER = 1 << 13,
    TRUNCATE = 1 << 14,
    IOCTL_DEV = 1 << 15,

    FOR_FILES = WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV, /* have no meaning for folders */

    READ = READ_FILE | READ_DIR,
    /* NVIDIA's driver also makes folders in the one for what it has compiled. */
    CHANGE = READ | WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE | REFER,
};

struct ruleset {
    uint64_t fs;    /* what is forbidden but for the rules */
    uint64_t net;   /* since version 4 */
    uint64_t scope; /* since version 6 */
};

struct beneath {
    uint64_t access;
    int32_t parent;
} __attribute__((packed));

/* All that a version of Landlock knows is forbidden. What is newer than this list stays allowed,
 * and the list of system calls has to forbid it. */
static struct ruleset
all_of_version(long version)
{
    static const uint64_t last[] = {0, 1 << 12, REFER, TRUNCATE, TRUNCATE, IOCTL_DEV};
    const long most = (long)(sizeof last / sizeof *last) - 1;

    return (struct ruleset){
        .fs = last[version < most ? version : most] * 2 - 1,
        .net = version >= 4 ? 3 : 0,   /* bind and connect */
        .scope = version >= 6 ? 3 : 0, /* abstract unix sockets, signals */
    };
}

struct rules {
    int fd;
    uint64_t known;
    int err; /* the first error; sticky */
};

/* Lets what lies beneath an open file or folder be used. */
static void
allow_open(struct rules *r, int fd, uint64_t access)
{
    struct stat st;

    if (r->err || fstat(fd, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode))
        access &= FOR_FILES;

    const struct beneath b = {.access = access & r->known, .parent = fd};

    if (b.access && syscall(SYS_landlock_add_rule, r->fd, PATH_BENEATH, &b, 0) != 0)
        r->err = -errno;
}

/* What is not there needs no rule. */
static void
allow_path(void *arg, const char *path, enum hed_path_use use)
{
    static const uint64_t access[] = {
        [HED_PATH_READ] = READ,
        [HED_PATH_WRITE] = READ | WRITE_FILE | TRUNCATE,
        [HED_PATH_DEVICE] = READ_FILE | WRITE_FILE | IOCTL_DEV,
    };
    const int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0)
        return;
    allow_open(arg, fd, access[use]);
    (void)close(fd);
}

int
hed_step_files(const struct hed_sandbox *s, struct hed_why *why)
{
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);

    if (version < 1) {
        hed_why_set(why, "this kernel has no Landlock (Linux 5.13), or it is turned off");
        return -errno;
    }
    /* Before version 3, files could be emptied that cannot be opened for writing. */
    if (version < 3) {
        hed_why_set(why, "this kernel's Landlock is too old; Linux 6.2 is needed");
        return -ENOSYS;
    }

    const struct ruleset all = all_of_version(version);
    struct rules r = {.known = all.fs};

    r.fd = (int)syscall(SYS_landlock_create_ruleset, &all,
                        version >= 6   ? sizeof all
                        : version >= 4 ? sizeof all - sizeof all.scope
                                       : sizeof all.fs,
                        0);
    if (r.fd < 0)
        return -errno;
    hed_paths_each(s, allow_path, &r);
    for (int i = 0; i < HED_SANDBOX_FOLDERS; i++)
        if (s->folders[i] >= 0)
            allow_open(&r, s->folders[i], s->driver ? CHANGE | MAKE_DIR : CHANGE);
    if (!r.err && syscall(SYS_landlock_restrict_self, r.fd, 0) != 0)
        r.err = -errno;
    (void)close(r.fd);
    return r.err;
}
