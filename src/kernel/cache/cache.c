/* Compiled kernels on disk: getting and storing. See cache.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/folder.h"
#include "base/io.h"
#include "base/log.h"
#include "base/str.h"
#include "kernel/cache/room.h"

#define FRESH_S 3600  /* a newer time is not updated */
#define TRIM_EVERY 64 /* stores between two checks of the whole folder */

struct hed_cache *
hed_cache_create(const char *folder, uint64_t limit)
{
    if (limit == 0)
        return NULL;

    struct hed_cache *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    c->limit = limit;
    /* Other processes, whose working folders are others, get its name. */
    if (*folder ? hed_path_absolute(folder, c->folder, sizeof c->folder, NULL) != 0
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

const char *
hed_cache_path(const struct hed_cache *c)
{
    return c->folder;
}

uint64_t
hed_cache_limit(const struct hed_cache *c)
{
    return c->limit;
}

void
hed_cache_entry_path(const struct hed_cache *c, const struct hed_cache_key *key, char *out)
{
    char text[HED_HASH_TEXT];

    snprintf(out, HED_CACHE_PATH_ROOM, "%s/%s" HED_CACHE_SUFFIX, c->folder,
             hed_hash_text(key->hash, text));
}

bool
hed_cache_trusts(const struct hed_cache *c, const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return false;
    if (c->group)
        return st->st_gid == getegid() && (st->st_mode & S_IWOTH) == 0;
    return st->st_uid == geteuid() && (st->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* ---- getting --------------------------------------------------------------------------------- */

static void
update_time(int fd, const struct stat *st)
{
    if (time(NULL) - st->st_mtime > FRESH_S)
        (void)futimens(fd, NULL);
}

static bool
read_cache_entry(const struct hed_cache *c, int fd, const struct hed_cache_key *key,
                 struct hed_buf *out, uint32_t *compile_us)
{
    struct hed_cache_entry e;
    struct stat st;

    if (fstat(fd, &st) != 0 || !hed_cache_trusts(c, &st) ||
        (uint64_t)st.st_size > HED_CACHE_ENTRY_MAX)
        return false;

    const size_t size = (size_t)st.st_size;
    void *bytes = malloc(size ? size : 1);
    const bool right = bytes && hed_read_all(fd, bytes, size) == 0 &&
                       hed_cache_entry_read(bytes, size, size, &e) == 0 &&
                       memcmp(&e.key, key, sizeof e.key) == 0;

    if (right) {
        *compile_us = e.about.compile_us;
        hed_buf_add(out, e.object, (size_t)e.size);
        update_time(fd, &st);
    }
    free(bytes);
    return right && !out->err;
}

bool
hed_cache_get(struct hed_cache *c, const struct hed_cache_key *key, struct hed_buf *out,
              uint32_t *compile_us)
{
    char path[HED_CACHE_PATH_ROOM];

    if (!c)
        return false;
    hed_cache_entry_path(c, key, path);

    /* What others put there may be a pipe, and opening that would wait. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return false;

    const bool found = read_cache_entry(c, fd, key, out, compile_us);

    close(fd);
    return found;
}

bool
hed_cache_has(const struct hed_cache *c, const struct hed_cache_key *key)
{
    char path[HED_CACHE_PATH_ROOM];
    struct stat st;

    hed_cache_entry_path(c, key, path);
    return lstat(path, &st) == 0 && hed_cache_trusts(c, &st);
}

/* ---- storing --------------------------------------------------------------------------------- */

bool
hed_cache_make_folder(const struct hed_cache *c)
{
    char path[PATH_MAX];

    if (!hed_str_copy(path, sizeof path, c->folder)) {
        errno = ENAMETOOLONG;
        return false;
    }
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

/* Results are right without a cache, but who has none waits in each run, and should know why. */
static bool
cannot_keep(struct hed_cache *c, int error)
{
    if (!atomic_exchange_explicit(&c->told, true, memory_order_relaxed))
        hed_warn(CPU, "compiled kernels cannot be kept in %s (%s): each run compiles them again",
                 c->folder, strerror(error));
    return false;
}

bool
hed_cache_store(struct hed_cache *c, const struct hed_cache_key *key, const void *bytes,
                size_t size)
{
    char path[HED_CACHE_PATH_ROOM], temporary[HED_CACHE_PATH_ROOM + 16];

    if (size > c->limit)
        return false;
    if (!hed_cache_make_folder(c))
        return cannot_keep(c, errno);
    hed_cache_entry_path(c, key, path);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);

    const int fd = mkostemp(temporary, O_CLOEXEC);

    if (fd < 0)
        return cannot_keep(c, errno);

    int error = c->group && fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP) != 0 ? errno : 0;

    if (!error && hed_write_all(fd, bytes, size) != 0)
        error = errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (!error && rename(temporary, path) != 0)
        error = errno;
    if (error) {
        (void)unlink(temporary);
        return cannot_keep(c, error);
    }
    /* Relaxed: the number only decides when to check the folder. */
    if (atomic_fetch_add_explicit(&c->stores, 1, memory_order_relaxed) % TRIM_EVERY == 0)
        hed_cache_trim(c);
    return true;
}

void
hed_cache_put(struct hed_cache *c, const struct hed_cache_key *key,
              const struct hed_cache_about *about, const void *object, size_t size)
{
    const struct hed_cache_entry e = {.key = *key, .about = *about, .size = size, .object = object};
    struct hed_buf bytes;

    if (!c || size > c->limit)
        return;
    hed_buf_init(&bytes, HED_CACHE_ENTRY_MAX);
    hed_cache_entry_write(&e, &bytes);
    if (!bytes.err)
        (void)hed_cache_store(c, key, bytes.data, bytes.size);
    hed_buf_fini(&bytes);
}
