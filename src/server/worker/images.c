/* Images by hash. See images.h. */
#include "server/worker/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/number.h"
#include "wire/code.h"

#define FOLDER_MAX (UINT64_C(16) << 30) /* bytes of all files; the oldest go first */
#define MEMORY_MAX (UINT64_C(2) << 30)  /* bytes of images without a folder */
#define MEMORY_COUNT 128                /* and their number: each has a descriptor */
#define ARRIVING_MAX (UINT64_C(2) << 30)
#define CHARGE_LEAST \
    (UINT64_C(1) << 20) /* bytes that a file counts as at least: a folder of so
                                          * many is looked through for every image */
#define STALE_S 3600    /* a file that has been arriving for so long has been left by somebody */
#define ARRIVING_PREFIX "arriving-"

/* An image that is coming in. */
struct arriving {
    struct arriving *next;
    const void *channel;
    uint8_t hash[HED_HASH_SIZE];
    uint64_t size, got;
    int fd;
    int err; /* it cannot be kept: the rest is dropped */
    char temporary[PATH_MAX];
    struct hed_hash state;
};

/* One in memory. */
struct kept {
    struct kept *next;
    uint8_t hash[HED_HASH_SIZE];
    uint64_t size;
    int fd;
};

struct hed_images {
    char folder[PATH_MAX - 2 * HED_HASH_TEXT]; /* "": none */
    struct hed_lock lock;                      /* rank HED_RANK_IMAGES; guards what follows */
    struct arriving *arriving;
    struct kept *kept; /* newest first */
    uint64_t kept_bytes;
    uint32_t kept_count;
};

/* ---- the folder ------------------------------------------------------------------------------ */

static bool
is_ours(const char *folder)
{
    struct stat s;

    if (stat(folder, &s) != 0 || !S_ISDIR(s.st_mode))
        return false;
    return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

struct hed_images *
hed_images_create(const char *folder)
{
    struct hed_images *i = calloc(1, sizeof *i);

    if (!i)
        return NULL;
    hed_lock_init(&i->lock, HED_RANK_IMAGES);
    if (!folder || !folder[0])
        return i;
    if (strlen(folder) < sizeof i->folder && is_ours(folder))
        memcpy(i->folder, folder, strlen(folder) + 1);
    else
        hed_warn(SERVER, "%s is not a folder that only this user writes to: no images are kept",
                 folder);
    return i;
}

static void
path_of(const struct hed_images *i, const uint8_t *hash, char out[PATH_MAX])
{
    char text[HED_HASH_TEXT];

    (void)snprintf(out, PATH_MAX, "%s/%s", i->folder, hed_hash_text(hash, text));
}

static uint64_t
charge(uint64_t size)
{
    return size < CHARGE_LEAST ? CHARGE_LEAST : size;
}

/* Bytes in the folder; *oldest is the file to go first. Files that never arrived go at once. */
static uint64_t
look_around(const struct hed_images *i, char oldest[PATH_MAX], uint64_t *oldest_size)
{
    DIR *d = opendir(i->folder);
    const time_t now = time(NULL);
    time_t first = 0;
    uint64_t bytes = 0;

    oldest[0] = '\0';
    for (const struct dirent *e; d && (e = readdir(d));) {
        struct stat s;

        if (e->d_name[0] == '.' || fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(s.st_mode))
            continue;
        if (strncmp(e->d_name, ARRIVING_PREFIX, sizeof ARRIVING_PREFIX - 1) == 0) {
            if (now - s.st_mtime > STALE_S)
                (void)unlinkat(dirfd(d), e->d_name, 0);
            continue;
        }
        if (strlen(e->d_name) != HED_HASH_TEXT - 1)
            continue; /* none of ours */
        bytes += charge((uint64_t)s.st_size);
        if (!oldest[0] || s.st_mtime < first) {
            first = s.st_mtime;
            *oldest_size = (uint64_t)s.st_size;
            (void)snprintf(oldest, PATH_MAX, "%s/%.*s", i->folder, HED_HASH_TEXT, e->d_name);
        }
    }
    if (d)
        (void)closedir(d);
    return bytes;
}

static void
make_room(const struct hed_images *i, uint64_t size)
{
    char oldest[PATH_MAX];
    uint64_t gone;

    while (look_around(i, oldest, &gone) + charge(size) > FOLDER_MAX && oldest[0])
        if (unlink(oldest) != 0 && errno != ENOENT)
            return;
}

/* ---- finding --------------------------------------------------------------------------------- */

static struct kept *
kept_locked(struct hed_images *i, const uint8_t *hash, uint64_t size)
{
    struct kept *k = i->kept;

    while (k && (k->size != size || memcmp(k->hash, hash, HED_HASH_SIZE) != 0))
        k = k->next;
    return k;
}

/* A descriptor of the image, the caller's; -1: it is not there. */
static int
find(struct hed_images *i, const uint8_t *hash, uint64_t size)
{
    char path[PATH_MAX];
    struct stat s;
    int fd = -1;

    if (i->folder[0]) {
        path_of(i, hash, path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
            return -1;
        if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && (uint64_t)s.st_size == size) {
            (void)futimens(fd, NULL); /* used: not the oldest any more */
            return fd;
        }
        (void)close(fd);
        return -1;
    }
    hed_lock(&i->lock);

    const struct kept *k = kept_locked(i, hash, size);

    if (k)
        fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 0);
    hed_unlock(&i->lock);
    return fd;
}

bool
hed_images_has(struct hed_images *i, const uint8_t hash[HED_HASH_SIZE], uint64_t size)
{
    const int fd = find(i, hash, size);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* ---- arriving -------------------------------------------------------------------------------- */

static void
drop(struct arriving *a)
{
    if (a->temporary[0])
        (void)unlink(a->temporary);
    if (a->fd >= 0)
        (void)close(a->fd);
    free(a);
}

/* Takes a channel's out of the list: it is that channel's thread's alone then. */
static struct arriving *
take(struct hed_images *i, const void *channel)
{
    struct arriving **at = &i->arriving;

    hed_lock(&i->lock);
    while (*at && (*at)->channel != channel)
        at = &(*at)->next;

    struct arriving *a = *at;

    if (a)
        *at = a->next;
    hed_unlock(&i->lock);
    return a;
}

static void
put_back(struct hed_images *i, struct arriving *a)
{
    hed_lock(&i->lock);
    a->next = i->arriving;
    i->arriving = a;
    hed_unlock(&i->lock);
}

static uint64_t
all_arriving(struct hed_images *i)
{
    uint64_t bytes = 0;

    hed_lock(&i->lock);
    for (const struct arriving *a = i->arriving; a; a = a->next)
        bytes += a->size;
    hed_unlock(&i->lock);
    return bytes;
}

/* A file in the folder. Where the system can, one without a name: it goes with this process,
 * however that ends, so that clients who come and go fill no disk. */
static int
make_file(const struct hed_images *i, struct arriving *a)
{
    const int fd = open(i->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);

    if (fd >= 0)
        return fd;
    (void)snprintf(a->temporary, sizeof a->temporary, "%s/%sXXXXXX", i->folder, ARRIVING_PREFIX);

    const int named = mkostemp(a->temporary, O_CLOEXEC);

    if (named < 0)
        a->temporary[0] = '\0';
    return named;
}

/* Gives a file that has none a name, for a moment. */
static bool
name_file(const struct hed_images *i, struct arriving *a)
{
    char self[64];

    if (a->temporary[0])
        return true;
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", a->fd);
    (void)snprintf(a->temporary, sizeof a->temporary, "%s/%s%d-%d", i->folder, ARRIVING_PREFIX,
                   (int)getpid(), a->fd);
    (void)unlink(a->temporary); /* of a process that had this number before */
    if (linkat(AT_FDCWD, self, AT_FDCWD, a->temporary, AT_SYMLINK_FOLLOW) == 0 ||
        linkat(a->fd, "", AT_FDCWD, a->temporary, AT_EMPTY_PATH) == 0)
        return true;
    a->temporary[0] = '\0';
    return false;
}

static struct arriving *
begin(struct hed_images *i, const void *channel, const uint8_t *hash, uint64_t size)
{
    struct arriving *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->channel = channel;
    a->size = size;
    memcpy(a->hash, hash, HED_HASH_SIZE);
    hed_hash_init(&a->state);
    if (i->folder[0]) {
        make_room(i, size);
        a->fd = make_file(i, a);
    } else {
        a->fd = memfd_create("heddle-image", MFD_CLOEXEC);
    }
    if (a->fd < 0)
        a->err = HED_EIO;
    return a;
}

static void
write_piece(struct arriving *a, const unsigned char *p, size_t n)
{
    uint64_t at = a->got;

    while (n > 0 && a->err == 0) {
        const ssize_t wrote = pwrite(a->fd, p, n, (off_t)at);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            hed_warn(SERVER, "an image cannot be kept: %s", strerror(errno));
            a->err = HED_EIO;
            return;
        }
        p += wrote;
        at += (uint64_t)wrote;
        n -= (size_t)wrote;
    }
}

/* In memory: the oldest make room. What is mapped of them stays. */
static int
keep_in_memory(struct hed_images *i, struct arriving *a)
{
    struct kept *k = calloc(1, sizeof *k);

    if (!k)
        return HED_ENOMEM;
    *k = (struct kept){.size = a->size, .fd = a->fd};
    memcpy(k->hash, a->hash, HED_HASH_SIZE);
    a->fd = -1;
    hed_lock(&i->lock);
    k->next = i->kept;
    i->kept = k;
    i->kept_bytes += k->size;
    i->kept_count++;
    while ((i->kept_bytes > MEMORY_MAX || i->kept_count > MEMORY_COUNT) && i->kept->next) {
        struct kept **last = &i->kept;

        while ((*last)->next)
            last = &(*last)->next;
        i->kept_bytes -= (*last)->size;
        i->kept_count--;
        (void)close((*last)->fd);
        free(*last);
        *last = NULL;
    }
    hed_unlock(&i->lock);
    return 0;
}

/* All of it is here: it gets its name if it is what it was said to be. */
static int
finish(struct hed_images *i, struct arriving *a)
{
    uint8_t hash[HED_HASH_SIZE];
    char path[PATH_MAX];

    if (a->err)
        return a->err;
    hed_hash_end(&a->state, hash);
    if (memcmp(hash, a->hash, sizeof hash) != 0)
        return HED_EFORMAT;
    if (!i->folder[0])
        return keep_in_memory(i, a);
    path_of(i, hash, path);
    if (fchmod(a->fd, S_IRUSR | S_IWUSR) != 0 || !name_file(i, a) ||
        rename(a->temporary, path) != 0)
        return HED_EIO;
    a->temporary[0] = '\0';
    return 0;
}

int
hed_images_add(struct hed_images *i, const void *channel, const uint8_t hash[HED_HASH_SIZE],
               uint64_t size, uint64_t offset, const void *p, size_t n, bool *complete)
{
    struct arriving *a = take(i, channel);
    int err = 0;

    *complete = false;
    if (offset == 0 && a) { /* the one before was given up */
        drop(a);
        a = NULL;
    }
    if (offset == 0 && size > 0 && size <= HED_IMAGE_MAX) {
        if (all_arriving(i) + size > ARRIVING_MAX)
            return HED_ELIMIT;
        a = begin(i, channel, hash, size);
        if (!a)
            return HED_ENOMEM;
    }
    if (!a || a->got != offset || a->size != size || n == 0 || n > size - offset ||
        memcmp(a->hash, hash, HED_HASH_SIZE) != 0) {
        if (a)
            drop(a);
        return HED_EFORMAT;
    }
    hed_hash_add(&a->state, p, n);
    write_piece(a, p, n);
    a->got += n;
    if (a->got < a->size) {
        put_back(i, a);
        return 0;
    }
    err = finish(i, a);
    *complete = err == 0;
    drop(a);
    return err;
}

/* ---- using ----------------------------------------------------------------------------------- */

static uint64_t
mapped_size(uint64_t size)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return hed_round_up(size, page) + page;
}

int
hed_images_map(struct hed_images *i, const uint8_t hash[HED_HASH_SIZE], uint64_t size, void **out)
{
    const int fd = find(i, hash, size);
    void *p;

    if (fd < 0)
        return HED_ENOTFOUND;
    /* The page behind it: text ends with a 0 wherever it ends. */
    p = mmap(NULL, mapped_size(size), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED && mmap(p, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        hed_images_unmap(p, size);
        p = MAP_FAILED;
    }
    (void)close(fd);
    if (p == MAP_FAILED)
        return HED_ENOMEM;
    *out = p;
    return 0;
}

void
hed_images_unmap(void *p, uint64_t size)
{
    (void)munmap(p, mapped_size(size));
}

void
hed_images_free(struct hed_images *i)
{
    if (!i)
        return;
    while (i->arriving) {
        struct arriving *a = i->arriving;

        i->arriving = a->next;
        drop(a);
    }
    while (i->kept) {
        struct kept *k = i->kept;

        i->kept = k->next;
        (void)close(k->fd);
        free(k);
    }
    hed_lock_fini(&i->lock);
    free(i);
}
