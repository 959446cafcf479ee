/* Images by hash. See images.h. */
#include "remote/server/worker/images.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/wire/code.h"

#define FOLDER_MAX (UINT64_C(16) << 30) /* bytes of all files; the oldest are removed first */
#define MEMORY_MAX (UINT64_C(2) << 30)  /* bytes of images that are in no folder */
#define MEMORY_COUNT 128                /* their number; each has a descriptor */
#define ARRIVING_MAX (UINT64_C(2) << 30)
/* Bytes that a file counts as at least, since all files are looked at for every new image. */
#define CHARGE_LEAST (UINT64_C(1) << 20)
#define STALE_S 3600 /* a file that has been arriving for so long was abandoned */
#define ARRIVING_PREFIX "arriving-"

/* An image that is arriving. */
struct arriving {
    struct arriving *next;
    const void *channel;
    uint8_t hash[HED_HASH_SIZE];
    uint64_t size, got;
    int fd;
    bool in_memory; /* there is no folder, or the folder failed */
    int err;        /* the image cannot be stored: the rest is dropped */
    char temporary[PATH_MAX];
    struct hed_hash state;
};

/* An image in memory. */
struct kept {
    struct kept *next;
    uint8_t hash[HED_HASH_SIZE];
    uint64_t size;
    int fd;
};

struct hed_images {
    char folder[PATH_MAX - 2 * HED_HASH_TEXT]; /* "" for none */
    mode_t mode;                               /* of the files in it */
    struct hed_images_limits limits;           /* constant after hed_images_limit() */
    _Atomic bool said;                         /* that images stay in memory */
    struct hed_lock lock;                      /* rank HED_RANK_IMAGES; guards the following */
    struct arriving *arriving;
    struct kept *kept; /* newest first */
    uint64_t kept_bytes;
    uint32_t kept_count;
};

/* ---- the folder ------------------------------------------------------------------------------ */

/* May only this user write to the folder, or only the group of the server's workers, for which root
 * has made it? *mode is what the files in it may be. */
static bool
is_private_folder(const char *folder, mode_t *mode)
{
    struct stat s;

    if (stat(folder, &s) != 0 || !S_ISDIR(s.st_mode) || s.st_mode & S_IWOTH)
        return false;
    *mode = s.st_mode & (S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP);
    return s.st_mode & S_IWGRP ? s.st_uid == 0 && s.st_gid == getegid() : s.st_uid == geteuid();
}

struct hed_images *
hed_images_create(const char *folder)
{
    struct hed_images *i = calloc(1, sizeof *i);

    if (!i)
        return NULL;
    hed_lock_init(&i->lock, HED_RANK_IMAGES);
    i->limits.folder = FOLDER_MAX;
    if (!folder || !folder[0])
        return i;
    if (strlen(folder) < sizeof i->folder && is_private_folder(folder, &i->mode))
        memcpy(i->folder, folder, strlen(folder) + 1);
    else
        hed_warn(
            SERVER,
            "%s is not a folder that only this user can write to, so images are not stored there",
            folder);
    return i;
}

void
hed_images_limit(struct hed_images *i, const struct hed_images_limits *l)
{
    i->limits = *l;
    if (!l->folder)
        i->limits.folder = FOLDER_MAX;
}

static bool
charge_memory(const struct hed_images *i, uint64_t bytes)
{
    return !i->limits.take || i->limits.take(i->limits.arg, bytes);
}

static void
discharge_memory(const struct hed_images *i, uint64_t bytes)
{
    if (i->limits.give)
        i->limits.give(i->limits.arg, bytes);
}

static void
image_path(const struct hed_images *i, const uint8_t *hash, char out[PATH_MAX])
{
    char text[HED_HASH_TEXT];

    (void)snprintf(out, PATH_MAX, "%s/%s", i->folder, hed_hash_text(hash, text));
}

static uint64_t
charged_size(uint64_t size)
{
    return size < CHARGE_LEAST ? CHARGE_LEAST : size;
}

/* The bytes in the folder. *oldest is the file to remove first. Abandoned files are removed at
 * once. */
static uint64_t
measure_folder(const struct hed_images *i, char oldest[PATH_MAX], uint64_t *oldest_size)
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
            continue; /* not one of our files */
        bytes += charged_size((uint64_t)s.st_size);
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
make_room_for_image(const struct hed_images *i, uint64_t size)
{
    char oldest[PATH_MAX];
    uint64_t gone;

    while (measure_folder(i, oldest, &gone) + charged_size(size) > i->limits.folder && oldest[0])
        if (unlink(oldest) != 0 && errno != ENOENT)
            return;
}

/* ---- finding --------------------------------------------------------------------------------- */

static struct kept *
find_kept_image_locked(struct hed_images *i, const uint8_t *hash, uint64_t size)
{
    struct kept *k = i->kept;

    while (k && (k->size != size || memcmp(k->hash, hash, HED_HASH_SIZE) != 0))
        k = k->next;
    return k;
}

/* Opens the image for the caller; -1 if it is not there. */
static int
open_stored_image(struct hed_images *i, const uint8_t *hash, uint64_t size)
{
    char path[PATH_MAX];
    struct stat s;
    int fd = -1;

    if (i->folder[0]) {
        image_path(i, hash, path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && (uint64_t)s.st_size == size) {
            (void)futimens(fd, NULL); /* it was used, so it is no longer the oldest */
            return fd;
        }
        if (fd >= 0)
            (void)close(fd);
        fd = -1;
    }
    hed_lock(&i->lock);

    const struct kept *k = find_kept_image_locked(i, hash, size);

    if (k)
        fd = fcntl(k->fd, F_DUPFD_CLOEXEC, 0);
    hed_unlock(&i->lock);
    return fd;
}

bool
hed_images_has(struct hed_images *i, const uint8_t hash[HED_HASH_SIZE], uint64_t size)
{
    const int fd = open_stored_image(i, hash, size);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

/* ---- arriving -------------------------------------------------------------------------------- */

static void
drop_arriving(const struct hed_images *i, struct arriving *a)
{
    if (a->in_memory && a->fd >= 0)
        discharge_memory(i, a->size);
    if (a->temporary[0])
        (void)unlink(a->temporary);
    if (a->fd >= 0)
        (void)close(a->fd);
    free(a);
}

/* Takes a channel's image out of the list. Only that channel's thread uses it then. */
static struct arriving *
take_arriving(struct hed_images *i, const void *channel)
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
return_arriving(struct hed_images *i, struct arriving *a)
{
    hed_lock(&i->lock);
    a->next = i->arriving;
    i->arriving = a;
    hed_unlock(&i->lock);
}

static uint64_t
count_arriving_bytes(struct hed_images *i)
{
    uint64_t bytes = 0;

    hed_lock(&i->lock);
    for (const struct arriving *a = i->arriving; a; a = a->next)
        bytes += a->size;
    hed_unlock(&i->lock);
    return bytes;
}

/* Creates a file in the folder, without a name if the system can do that. Such a file disappears
 * with this process, however it ends, so that clients that come and go cannot fill the disk. */
static int
make_image_file(const struct hed_images *i, struct arriving *a)
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

/* Gives a file without a name a temporary one. It is random, because workers in PID namespaces have
 * the same number. */
static bool
name_image_file(const struct hed_images *i, struct arriving *a)
{
    char self[64];
    uint64_t number = 0;

    if (a->temporary[0])
        return true;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return false;
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", a->fd);
    (void)snprintf(a->temporary, sizeof a->temporary, "%s/%s%016llx", i->folder, ARRIVING_PREFIX,
                   (unsigned long long)number);
    if (linkat(AT_FDCWD, self, AT_FDCWD, a->temporary, AT_SYMLINK_FOLLOW) == 0 ||
        linkat(a->fd, "", AT_FDCWD, a->temporary, AT_EMPTY_PATH) == 0)
        return true;
    a->temporary[0] = '\0';
    return false;
}

/* Is there room for the image on the disk? Other programs, and other clients, need some, too. */
static bool
has_disk_room(const struct hed_images *i, uint64_t size)
{
    struct statvfs v;

    if (size > i->limits.folder)
        return false;
    if (statvfs(i->folder, &v) != 0)
        return true; /* writing will show it */
    return (uint64_t)v.f_bavail * v.f_frsize >= i->limits.reserve + size;
}

/* Once for each worker: the images of this client are kept while it is there, and no longer. */
static void
say_in_memory(struct hed_images *i, const char *why)
{
    if (!atomic_exchange_explicit(&i->said, true, memory_order_relaxed))
        hed_warn(SERVER, "images stay in memory, because the folder for them fails: %s", why);
}

/* The image goes on in memory: what has arrived is copied there. */
static int
move_to_memory(const struct hed_images *i, struct arriving *a, uint64_t got)
{
    char piece[16384];
    uint64_t at = 0;

    if (!charge_memory(i, a->size))
        return HED_ENOMEM;

    const int fd = memfd_create("heddle-image", MFD_CLOEXEC);

    while (fd >= 0 && at < got) {
        const ssize_t n = pread(a->fd, piece, hed_min(sizeof piece, got - at), (off_t)at);

        if (n <= 0 || pwrite(fd, piece, (size_t)n, (off_t)at) != n)
            break;
        at += (uint64_t)n;
    }
    if (fd < 0 || at < got) {
        if (fd >= 0)
            (void)close(fd);
        discharge_memory(i, a->size);
        return HED_EIO;
    }
    if (a->temporary[0])
        (void)unlink(a->temporary);
    a->temporary[0] = '\0';
    if (a->fd >= 0)
        (void)close(a->fd);
    a->fd = fd;
    a->in_memory = true;
    return 0;
}

static struct arriving *
begin_arriving(struct hed_images *i, const void *channel, const uint8_t *hash, uint64_t size)
{
    struct arriving *a = calloc(1, sizeof *a);

    if (!a)
        return NULL;
    a->channel = channel;
    a->size = size;
    a->fd = -1;
    memcpy(a->hash, hash, HED_HASH_SIZE);
    hed_hash_init(&a->state);
    if (i->folder[0]) {
        make_room_for_image(i, size);
        if (!has_disk_room(i, size))
            say_in_memory(i, "too little space is free");
        else if ((a->fd = make_image_file(i, a)) < 0)
            say_in_memory(i, strerror(errno));
    }
    if (a->fd < 0)
        a->err = move_to_memory(i, a, 0);
    return a;
}

static void
write_piece(struct hed_images *i, struct arriving *a, const unsigned char *p, size_t n)
{
    uint64_t at = a->got;

    while (n > 0 && a->err == 0) {
        const ssize_t wrote = pwrite(a->fd, p, n, (off_t)at);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0 && !a->in_memory) {
            say_in_memory(i, wrote < 0 ? strerror(errno) : "nothing is written");
            a->err = move_to_memory(i, a, at);
            continue;
        }
        if (wrote <= 0) {
            hed_warn(SERVER, "cannot store an image: %s", strerror(errno));
            a->err = HED_EIO;
            return;
        }
        p += wrote;
        at += (uint64_t)wrote;
        n -= (size_t)wrote;
    }
}

/* Stores the image in memory and removes the oldest ones to make room. Their mappings stay
 * valid. */
static int
keep_in_memory(struct hed_images *i, struct arriving *a)
{
    struct kept *k = calloc(1, sizeof *k);
    uint64_t freed = 0;

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
        freed += (*last)->size;
        (void)close((*last)->fd);
        free(*last);
        *last = NULL;
    }
    hed_unlock(&i->lock);
    if (freed)
        discharge_memory(i, freed);
    return 0;
}

/* All pieces are here: gives the image its name if its hash is right. */
static int
finish_arriving(struct hed_images *i, struct arriving *a)
{
    uint8_t hash[HED_HASH_SIZE];
    char path[PATH_MAX];

    if (a->err)
        return a->err;
    hed_hash_end(&a->state, hash);
    if (memcmp(hash, a->hash, sizeof hash) != 0)
        return HED_EINVAL;
    if (a->in_memory)
        return keep_in_memory(i, a);
    image_path(i, hash, path);
    if (fchmod(a->fd, i->mode) == 0 && name_image_file(i, a) && rename(a->temporary, path) == 0) {
        a->temporary[0] = '\0';
        return 0;
    }
    say_in_memory(i, strerror(errno));

    const int err = move_to_memory(i, a, a->size);

    return err ? err : keep_in_memory(i, a);
}

int
hed_images_add(struct hed_images *i, const void *channel, const uint8_t hash[HED_HASH_SIZE],
               uint64_t size, uint64_t offset, const void *p, size_t n, bool *complete)
{
    struct arriving *a = take_arriving(i, channel);
    int err = 0;

    *complete = false;
    if (offset == 0 && a) { /* the image before was given up */
        drop_arriving(i, a);
        a = NULL;
    }
    if (offset == 0 && size > 0 && size <= HED_IMAGE_MAX) {
        if (count_arriving_bytes(i) + size > ARRIVING_MAX)
            return HED_ELIMIT;
        a = begin_arriving(i, channel, hash, size);
        if (!a)
            return HED_ENOMEM;
    }
    if (!a || a->got != offset || a->size != size || n == 0 || n > size - offset ||
        memcmp(a->hash, hash, HED_HASH_SIZE) != 0) {
        if (a)
            drop_arriving(i, a);
        return HED_EFORMAT;
    }
    hed_hash_add(&a->state, p, n);
    write_piece(i, a, p, n);
    a->got += n;
    if (a->got < a->size) {
        return_arriving(i, a);
        return 0;
    }
    err = finish_arriving(i, a);
    *complete = err == 0;
    drop_arriving(i, a);
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
    const int fd = open_stored_image(i, hash, size);
    void *p;

    if (fd < 0)
        return HED_ENOTFOUND;
    /* A page of zeros follows, so that text always ends with a 0. */
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
        drop_arriving(i, a);
    }
    while (i->kept) {
        struct kept *k = i->kept;

        i->kept = k->next;
        (void)close(k->fd);
        discharge_memory(i, k->size);
        free(k);
    }
    hed_lock_fini(&i->lock);
    free(i);
}
