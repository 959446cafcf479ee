/* Whom a snapshot may be believed. See trust.h. */
#include "move/command/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "move/file/files.h"

#define OTHERS_WRITE 022 /* bits of a mode */
#define CLAIM_TRIES 100
#define CLAIM_PAUSE_NS (10 * HED_NS_PER_MS)

/* Its real, effective, saved and file system's user. */
static bool
read_users(pid_t pid, unsigned u[4])
{
    char path[48];
    char text[4096];

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);

    const char *at = strstr(hed_read_small(path, text, sizeof text), "\nUid:");

    return at && sscanf(at, "\nUid: %u %u %u %u", &u[0], &u[1], &u[2], &u[3]) == 4;
}

bool
hed_snap_user_of(pid_t pid, uid_t *out)
{
    unsigned u[4];
    const bool known = read_users(pid, u);

    if (known)
        *out = (uid_t)u[0];
    return known;
}

bool
hed_snap_is_own_process(pid_t pid)
{
    const unsigned own = (unsigned)geteuid();
    unsigned u[4];

    return read_users(pid, u) && u[0] == own && u[1] == own && u[2] == own && u[3] == own;
}

int
hed_snap_check_user(uid_t user, struct hed_why *why)
{
    const char *sudo = getenv("SUDO_UID");
    uint64_t caller;

    if (user == geteuid() || user == 0 ||
        (sudo && geteuid() == 0 && hed_parse_u64(sudo, &caller) == 0 && caller == user))
        return 0;
    hed_why_set(why,
                "the program belongs to user %u. CRIU opens its files as root, by their names, so "
                "that user can get at files of others by exchanging them. If you trust that user, "
                "add --trust-user",
                (unsigned)user);
    return HED_EACCESS;
}

static int
open_again(int fd, int flags)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, flags | O_CLOEXEC);
}

int
hed_snap_reading_copy(int fd)
{
    return open_again(fd, O_RDONLY);
}

/* The kernel gives a lease for reading only if nobody has the file open for writing, in any
 * process, as a mapping, or on its way through a socket. Our own guard (guard.h) may still have to
 * close it. 0 or an errno. */
static int
find_writers(int fd)
{
    for (int i = 0; fcntl(fd, F_SETLEASE, F_RDLCK) != 0; i++) {
        if (errno != EAGAIN || i == CLAIM_TRIES)
            return errno;
        hed_sleep_ns(CLAIM_PAUSE_NS);
    }
    return fcntl(fd, F_SETLEASE, F_UNLCK) == 0 ? 0 : errno;
}

int
hed_snap_claim(int *fd, bool own, struct hed_why *why)
{
    if (own)
        return 0;

    const int reading = open_again(*fd, O_RDONLY);

    if (reading < 0) {
        hed_why_set(why, "cannot open the snapshot again: %s", strerror(errno));
        return HED_EIO;
    }
    close(*fd);
    *fd = -1;

    const int found = find_writers(reading);

    *fd = open_again(reading, O_RDWR);
    if (*fd >= 0) {
        close(reading);
    } else {
        *fd = reading; /* good enough to be closed by the caller */
        hed_why_set(why, "cannot open the snapshot again: %s", strerror(errno));
        return HED_EIO;
    }
    if (found == EAGAIN) {
        hed_why_set(why, "the program belongs to another user and did not give the snapshot's file "
                         "back: it could change it later");
        return HED_EACCESS;
    }
    if (found != 0) {
        hed_why_set(why,
                    "the program belongs to another user, and this file system cannot tell whether "
                    "it still has the snapshot open: %s. Choose a folder on a local disk",
                    strerror(found));
        return HED_ENOTSUP;
    }
    return 0;
}

static bool
is_memory(enum hed_snap_kind kind)
{
    return kind == HED_SNAP_DEVICE || kind == HED_SNAP_PHYSICAL || kind == HED_SNAP_ARRAY ||
           kind == HED_SNAP_VARIABLE;
}

int
hed_snap_check_part(int fd, const struct hed_snap_about *asked, struct hed_why *why)
{
    struct hed_snap_reader *r = NULL;
    int err =
        hed_snap_reader_open(&hed_snap_files_real, fd, HED_SNAP_OPEN_PARTIAL, NULL, NULL, &r, why);

    if (err != 0)
        return err;

    const struct hed_snap_about *a = hed_snap_reader_about(r);

    if (memcmp(a->uuid, asked->uuid, sizeof a->uuid) != 0 || a->epoch != asked->epoch ||
        memcmp(a->session, asked->session, sizeof a->session) != 0) {
        hed_why_set(why,
                    "the program has written a different snapshot from the one it was asked for");
        err = HED_EACCESS;
    }
    for (uint32_t i = 0; err == 0 && i < hed_snap_extent_count(r); i++) {
        const struct hed_snap_extent *e = hed_snap_extent_at(r, i);

        if (is_memory(e->kind))
            continue;
        hed_why_set(why, "the program has written a %s into the snapshot, which it must not do",
                    hed_snap_kind_name(e->kind));
        err = HED_EACCESS;
    }
    hed_snap_reader_free(r);
    return err;
}

int
hed_snap_check_owner(int fd, struct hed_why *why)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        hed_why_set(why, "%s", strerror(errno));
        return HED_EIO;
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        hed_why_set(why,
                    "the snapshot belongs to user %u. To restore it is to run what that user has "
                    "put into it, with any user's rights that it names. If you trust it, make a "
                    "copy of your own",
                    (unsigned)st.st_uid);
        return HED_EACCESS;
    }
    if ((st.st_mode & OTHERS_WRITE) != 0) {
        hed_why_set(why,
                    "others may write to the snapshot (mode %04o), and so decide what is run. If "
                    "nobody has, remove that right (chmod go-w)",
                    (unsigned)(st.st_mode & 07777));
        return HED_EACCESS;
    }
    return 0;
}
