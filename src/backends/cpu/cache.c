/* Compiled kernels on disk. See cache.h. */
#include "backends/cpu/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/crc.h"
#include "base/folder.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"

#define SUFFIX ".kernel"
#define OBJECT_MAX ((uint64_t)512 << 20) /* bytes of one object */
#define FRESH_S 3600                     /* a newer time is not updated */
#define ABANDONED_S 3600                 /* a temporary file that is older will never be renamed */
#define TRIM_EVERY 64                    /* stores between two checks of the whole folder */
#define FILES_MAX 1000000                /* in the folder; others are ignored */

struct header {
    char magic[8];
    struct hed_cache_key key;
    uint64_t size;
    uint32_t crc;        /* of the object */
    uint32_t compile_us; /* that compiling it took */
};

static const char magic[8] = "HEDKRN3";

struct hed_cache {
    char folder[PATH_MAX];
    uint64_t limit;
    bool group; /* whatever the group has stored is trusted */
    _Atomic unsigned stores;
};

struct hed_cache *
hed_cache_create(const char *folder, uint64_t limit)
{
    if (limit == 0)
        return NULL;

    struct hed_cache *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->limit = limit;
    if (*folder ? !hed_str_copy(c->folder, sizeof c->folder, folder)
                : !hed_cache_folder("kernels", c->folder, sizeof c->folder)) {
        free(c);
        return NULL;
    }
    return c;
}

void
hed_cache_free(struct hed_cache *c)
{
    free(c);
}

void
hed_cache_trust_group(struct hed_cache *c)
{
    if (c)
        c->group = true;
}

/* With room for the file's name and the suffix of a temporary file. */
#define PATH_ROOM (PATH_MAX + 96)

static void
entry_path(const struct hed_cache *c, const struct hed_cache_key *key, char *out)
{
    char text[HED_HASH_TEXT];

    snprintf(out, PATH_ROOM, "%s/%s" SUFFIX, c->folder, hed_hash_text(key->hash, text));
}

static void
update_time(int fd, const struct stat *st)
{
    if (time(NULL) - st->st_mtime > FRESH_S)
        (void)futimens(fd, NULL);
}

/* The code will be executed, so only the user, or the trusted group, may have been able to write
 * it. */
static bool
is_trusted(const struct hed_cache *c, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return false;
    if (c->group)
        return st->st_gid == getegid() && (st->st_mode & S_IWOTH) == 0;
    return st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool
read_cache_entry(const struct hed_cache *c, int fd, const struct hed_cache_key *key,
                 struct hed_buf *out, uint32_t *compile_us)
{
    struct header h;
    struct stat st;

    if (fstat(fd, &st) != 0 || !is_trusted(c, &st) || hed_read_all(fd, &h, sizeof h) != 0)
        return false;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || memcmp(&h.key, key, sizeof h.key) != 0 ||
        h.size > OBJECT_MAX || (uint64_t)st.st_size != sizeof h + h.size)
        return false;

    void *object = malloc(h.size ? h.size : 1);
    const bool right =
        object && hed_read_all(fd, object, h.size) == 0 && hed_crc32(0, object, h.size) == h.crc;

    if (right) {
        *compile_us = h.compile_us;
        hed_buf_add(out, object, h.size);
        update_time(fd, &st);
    }
    free(object);
    return right && !out->err;
}

bool
hed_cache_get(struct hed_cache *c, const struct hed_cache_key *key, struct hed_buf *out,
              uint32_t *compile_us)
{
    char path[PATH_ROOM];

    if (!c)
        return false;
    entry_path(c, key, path);

    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return false;

    const bool found = read_cache_entry(c, fd, key, out, compile_us);

    close(fd);
    return found;
}

/* ---- storing --------------------------------------------------------------------------------- */

/* Makes the folder and those above it. */
static bool
make_folder(const char *folder)
{
    char path[PATH_MAX];

    if (!hed_str_copy(path, sizeof path, folder))
        return false;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = 0;
        if (mkdir(path, 0700) != 0 && errno != EEXIST)
            return false;
        *p = '/';
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

struct file {
    char name[HED_HASH_TEXT + 32];
    uint64_t size;
    struct timespec time;
};

static int
compare_ages(const void *x, const void *y)
{
    const struct file *a = x, *b = y;

    if (a->time.tv_sec != b->time.tv_sec)
        return a->time.tv_sec < b->time.tv_sec ? -1 : 1;
    return a->time.tv_nsec < b->time.tv_nsec ? -1 : a->time.tv_nsec > b->time.tv_nsec;
}

/* Is it a finished file? Temporary files that writers left behind do not end in our suffix; old
 * ones are removed. */
static bool
is_cache_entry(DIR *d, const struct dirent *e, struct file *out)
{
    const size_t n = strlen(e->d_name), suffix = sizeof SUFFIX - 1;
    struct stat st;

    if (n < suffix || n >= sizeof out->name || !strstr(e->d_name, SUFFIX) ||
        fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (strcmp(e->d_name + n - suffix, SUFFIX) != 0) {
        if (time(NULL) - st.st_mtime > ABANDONED_S)
            (void)unlinkat(dirfd(d), e->d_name, 0);
        return false;
    }
    memcpy(out->name, e->d_name, n + 1);
    out->size = (uint64_t)st.st_size;
    out->time = st.st_mtim;
    return true;
}

/* If the folder is over its limit, removes the oldest files until nine tenths of the limit are
 * left. Other processes may do the same at the same time; it does not matter which removes a
 * file. */
static void
trim_folder(const struct hed_cache *c)
{
    DIR *d = opendir(c->folder);
    struct file *files = NULL;
    size_t count = 0, room = 0;
    uint64_t total = 0;
    const struct dirent *e;

    if (!d)
        return;
    while (count < FILES_MAX && (e = readdir(d)) != NULL) {
        if (count == room) {
            const size_t more = room ? room * 2 : 256;
            struct file *grown = realloc(files, more * sizeof *files);

            if (!grown)
                break;
            files = grown;
            room = more;
        }
        if (is_cache_entry(d, e, &files[count]))
            total += files[count++].size;
    }
    if (total > c->limit) {
        qsort(files, count, sizeof *files, compare_ages);
        for (size_t i = 0; i < count && total > c->limit / 10 * 9; i++) {
            (void)unlinkat(dirfd(d), files[i].name, 0);
            total -= files[i].size;
        }
    }
    free(files);
    closedir(d);
}

void
hed_cache_put(struct hed_cache *c, const struct hed_cache_key *key, const void *object, size_t size,
              uint32_t compile_us)
{
    char path[PATH_ROOM], temporary[PATH_ROOM + 16];
    struct header h = {.key = *key, .size = size, .compile_us = compile_us};

    if (!c || size > OBJECT_MAX || size > c->limit || !make_folder(c->folder))
        return;
    memcpy(h.magic, magic, sizeof magic);
    h.crc = hed_crc32(0, object, size);
    entry_path(c, key, path);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);

    const int fd = mkostemp(temporary, O_CLOEXEC);

    if (fd < 0) {
        hed_info(CPU, "compiled kernels cannot be kept in %s", c->folder);
        return;
    }

    const bool written = (!c->group || fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) == 0) &&
                         hed_write_all(fd, &h, sizeof h) == 0 &&
                         hed_write_all(fd, object, size) == 0;

    if (close(fd) != 0 || !written || rename(temporary, path) != 0) {
        (void)unlink(temporary);
        return;
    }
    /* Relaxed: the number only decides when to check the folder. */
    if (atomic_fetch_add_explicit(&c->stores, 1, memory_order_relaxed) % TRIM_EVERY == 0)
        trim_folder(c);
}
