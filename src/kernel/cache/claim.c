/* Locks in the folder of the cache: who makes which object, and who compiles for programs that have
 * ended. See cache.h.
 *
 * A lock is flock() on a file, so the system takes it back from a process that dies. The file is
 * removed by its holder; whoever has locked a file that was removed meanwhile tries again.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "kernel/cache/room.h"

#define TRIES 16         /* to lock a file that others remove */
#define TURN_POLL_MS 200 /* between two looks whether it is our turn */

/* Opens a file that is there to be locked. It must be ours alone: others may have put a pipe there,
 * on which opening waits, or a second name of another file. */
static int
open_lock(const char *path, int flags, mode_t mode)
{
    const int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode);
    struct stat st;

    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink <= 1)
        return fd;
    (void)close(fd);
    return -1;
}

static void
claim_path(const struct hed_cache *c, const struct hed_cache_key *key, char *out)
{
    char text[HED_HASH_TEXT];

    snprintf(out, HED_CACHE_PATH_ROOM, "%s/%s" HED_CACHE_SUFFIX ".making", c->folder,
             hed_hash_text(key->hash, text));
}

/* Is the file at `path` the one that is open? */
static bool
is_at(int fd, const char *path)
{
    struct stat open, named;

    return fstat(fd, &open) == 0 && lstat(path, &named) == 0 && open.st_ino == named.st_ino &&
           open.st_dev == named.st_dev;
}

int
hed_cache_claim(struct hed_cache *c, const struct hed_cache_key *key, int *fd)
{
    char path[HED_CACHE_PATH_ROOM];

    *fd = -1;
    if (!c || !hed_cache_make_folder(c))
        return 0;
    claim_path(c, key, path);
    for (int i = 0; i < TRIES; i++) {
        const int made = open_lock(path, O_RDWR | O_CREAT, S_IRUSR | S_IWUSR);

        if (made < 0)
            return 0;
        if (flock(made, LOCK_EX | LOCK_NB) == 0 && is_at(made, path)) {
            *fd = made;
            return 0;
        }

        const bool is_taken = errno == EWOULDBLOCK && is_at(made, path);

        (void)close(made);
        if (is_taken)
            return HED_ESTATE;
    }
    return 0;
}

void
hed_cache_release(struct hed_cache *c, const struct hed_cache_key *key, int fd)
{
    char path[HED_CACHE_PATH_ROOM];

    if (fd < 0)
        return;
    claim_path(c, key, path);
    (void)unlink(path);
    /* A child of a fork may have the descriptor, too. */
    (void)flock(fd, LOCK_UN);
    (void)close(fd);
}

bool
hed_cache_is_claimed(const struct hed_cache *c, const struct hed_cache_key *key)
{
    char path[HED_CACHE_PATH_ROOM];
    int fd;

    claim_path(c, key, path);
    fd = open_lock(path, O_RDWR, 0);
    if (fd < 0)
        return false;

    const bool is_ours = flock(fd, LOCK_EX | LOCK_NB) == 0;
    const bool is_taken = !is_ours && errno == EWOULDBLOCK;

    /* A dead process has left it. */
    if (is_ours && is_at(fd, path))
        (void)unlink(path);
    (void)close(fd);
    return is_taken;
}

/* ---- taking turns ---------------------------------------------------------------------------- */

/* The open file, locked; HED_ESTATE if another process has it, or HED_EACCESS if nobody can. */
static int
lock_file(const struct hed_cache *c, const char *name)
{
    char path[HED_CACHE_PATH_ROOM];
    int fd, err;

    snprintf(path, sizeof path, "%s/%s", c->folder, name);
    fd = open_lock(path, O_RDWR | O_CREAT, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return HED_EACCESS;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    err = errno == EWOULDBLOCK ? HED_ESTATE : HED_EACCESS;
    (void)close(fd);
    return err;
}

int
hed_cache_take_turn(const struct hed_cache *c, bool insists, bool (*waits)(void *arg), void *arg)
{
    int next = -1, turn;

    if (!hed_cache_make_folder(c))
        return -1;
    if (!insists) {
        next = lock_file(c, "after.next");
        if (next < 0)
            return -1;
    }
    turn = lock_file(c, "after.lock");
    while (turn == HED_ESTATE && waits(arg)) {
        (void)poll(NULL, 0, TURN_POLL_MS);
        turn = lock_file(c, "after.lock");
    }
    if (next >= 0)
        (void)close(next);
    return turn < 0 ? -1 : turn;
}

void
hed_cache_tell_turn(int turn, const char *text)
{
    const size_t n = strlen(text);

    /* Whoever reads it meanwhile sees a line of before and a line of now, which is no harm. */
    if (ftruncate(turn, 0) == 0 && pwrite(turn, text, n, 0) != (ssize_t)n)
        (void)ftruncate(turn, 0);
}

bool
hed_cache_see_turn(const struct hed_cache *c, char text[HED_CACHE_TURN_TEXT])
{
    char path[HED_CACHE_PATH_ROOM];
    bool is_held;
    int fd;

    snprintf(path, sizeof path, "%s/after.lock", c->folder);
    fd = open_lock(path, O_RDONLY, 0);
    if (fd < 0)
        return false;
    is_held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;

    const ssize_t n = is_held ? pread(fd, text, HED_CACHE_TURN_TEXT - 1, 0) : -1;

    (void)close(fd);
    if (n >= 0)
        text[n] = 0;
    return n >= 0;
}
