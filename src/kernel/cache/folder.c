/* What is in the folder of the cache: listing it, and keeping it small. See cache.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/number.h"
#include "kernel/cache/room.h"

#define ABANDONED_S 3600  /* a temporary file that is older will never be renamed */
#define FILES_MAX 1000000 /* in the folder; others are ignored */

static int
compare_ages(const void *x, const void *y)
{
    const struct hed_cache_file *a = x, *b = y;

    if (a->time.tv_sec != b->time.tv_sec)
        return a->time.tv_sec > b->time.tv_sec ? -1 : 1;
    return a->time.tv_nsec > b->time.tv_nsec ? -1 : a->time.tv_nsec < b->time.tv_nsec;
}

/* Does a name begin as those of our files do: a key, and the suffix? */
static bool
is_our_name(const char *name)
{
    const size_t digits = HED_HASH_TEXT - 1;

    return strspn(name, "0123456789abcdef") == digits &&
           strncmp(name + digits, HED_CACHE_SUFFIX, sizeof HED_CACHE_SUFFIX - 1) == 0;
}

/* Is it a finished file? Temporary files that writers left behind do not end in our suffix; old
 * ones are removed. */
static bool
is_cache_entry(DIR *d, const struct dirent *e, struct hed_cache_file *out)
{
    const size_t n = strlen(e->d_name), suffix = sizeof HED_CACHE_SUFFIX - 1;
    struct stat st;

    if (n >= sizeof out->name || !is_our_name(e->d_name) ||
        fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (strcmp(e->d_name + n - suffix, HED_CACHE_SUFFIX) != 0) {
        if (time(NULL) - st.st_mtime > ABANDONED_S)
            (void)unlinkat(dirfd(d), e->d_name, 0);
        return false;
    }
    memcpy(out->name, e->d_name, n + 1);
    out->bytes = (uint64_t)st.st_size;
    out->time = st.st_mtim;
    return true;
}

int
hed_cache_list(const struct hed_cache *c, struct hed_cache_file **files, size_t *count)
{
    DIR *d = opendir(c->folder);
    struct hed_cache_file *all = NULL;
    size_t n = 0, room = 0;
    const struct dirent *e;
    int err = 0;

    if (!d)
        return errno == ENOENT ? HED_ENOTFOUND : hed_err_from_errno(errno);
    while (!err && n < FILES_MAX && (e = readdir(d)) != NULL) {
        if (n == room) {
            const size_t more = room ? room * 2 : 256;
            struct hed_cache_file *grown = realloc(all, more * sizeof *all);

            err = grown ? 0 : HED_ENOMEM;
            all = grown ? grown : all;
            room = grown ? more : room;
        }
        if (!err && is_cache_entry(d, e, &all[n]))
            n++;
    }
    closedir(d);
    if (err) {
        free(all);
        return err;
    }
    if (n)
        qsort(all, n, sizeof *all, compare_ages);
    *files = all;
    *count = n;
    return 0;
}

static void
file_path(const struct hed_cache *c, const char *name, char *out)
{
    snprintf(out, HED_CACHE_PATH_ROOM, "%s/%s", c->folder, name);
}

bool
hed_cache_remove(const struct hed_cache *c, const char *name)
{
    char path[HED_CACHE_PATH_ROOM];

    file_path(c, name, path);
    return unlink(path) == 0;
}

/* Other processes may do the same at the same time; it does not matter which removes a file. */
void
hed_cache_trim(const struct hed_cache *c)
{
    struct hed_cache_file *files;
    uint64_t total = 0;
    size_t count;

    if (hed_cache_list(c, &files, &count) != 0)
        return;
    for (size_t i = 0; i < count; i++)
        total += files[i].bytes;
    if (total > c->limit)
        for (size_t i = count; i > 0 && total > c->limit / 10 * 9; i--) {
            (void)hed_cache_remove(c, files[i - 1].name);
            total -= files[i - 1].bytes;
        }
    free(files);
}

static int
look_at_file(const struct hed_cache *c, int fd, bool whole, struct hed_buf *bytes,
             struct hed_cache_entry *out)
{
    unsigned char piece[65536];
    struct stat st;

    if (fstat(fd, &st) != 0)
        return HED_EIO;
    if (!hed_cache_trusts(c, &st))
        return HED_EACCESS;
    if ((uint64_t)st.st_size > HED_CACHE_ENTRY_MAX)
        return HED_EFORMAT;

    const uint64_t total = (uint64_t)st.st_size;
    const uint64_t want = whole ? total : hed_min(total, (uint64_t)HED_CACHE_HEAD_MAX);

    for (uint64_t at = 0; at < want;) {
        const size_t n = (size_t)hed_min(sizeof piece, want - at);

        if (hed_read_all(fd, piece, n) != 0)
            return HED_EIO;
        hed_buf_add(bytes, piece, n);
        at += n;
    }
    return bytes->err ? bytes->err : hed_cache_entry_read(bytes->data, bytes->size, total, out);
}

int
hed_cache_look(const struct hed_cache *c, const char *name, bool whole, struct hed_buf *bytes,
               struct hed_cache_entry *out)
{
    char path[HED_CACHE_PATH_ROOM];
    int err;

    file_path(c, name, path);

    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return hed_err_from_errno(errno);
    hed_buf_reset(bytes);
    err = look_at_file(c, fd, whole, bytes, out);
    close(fd);
    if (!err) {
        char own[HED_CACHE_PATH_ROOM];

        hed_cache_entry_path(c, &out->key, own);
        err = strcmp(own, path) == 0 ? 0 : HED_EFORMAT;
    }
    return err;
}
