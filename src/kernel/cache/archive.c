/* Many entries of a cache in one file. See archive.h. */
#include "kernel/cache/archive.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/number.h"
#include "kernel/cache/room.h"

#define ARCHIVE_VERSION 1
#define ENTRIES_MAX 1000000

static const char magic[8] = "HEDKARC";

/* ---- writing --------------------------------------------------------------------------------- */

static int
write_hashed(int fd, struct hed_hash *h, const void *p, size_t n)
{
    hed_hash_add(h, p, n);
    return hed_write_all(fd, p, n);
}

static int
write_archive_entry(int fd, struct hed_hash *h, const struct hed_buf *bytes)
{
    const uint64_t size = bytes->size;
    const int err = write_hashed(fd, h, &size, sizeof size);

    return err ? err : write_hashed(fd, h, bytes->data, bytes->size);
}

int
hed_archive_write(const struct hed_cache *c, int fd, hed_archive_want_fn want, void *arg,
                  size_t *count, struct hed_why *why)
{
    const uint32_t version = ARCHIVE_VERSION;
    const uint64_t end = 0;
    uint8_t hash[HED_HASH_SIZE];
    struct hed_cache_file *files = NULL;
    struct hed_buf bytes;
    struct hed_hash h;
    size_t all = 0, written = 0;
    int err = hed_cache_list(c, &files, &all);

    /* Nothing was compiled yet: a CI system that exports after every run gets an empty archive. */
    if (err && err != HED_ENOTFOUND) {
        hed_why_set(why, "%s: %s", c->folder, hed_err_text(err));
        return err;
    }
    hed_buf_init(&bytes, HED_CACHE_ENTRY_MAX);
    hed_hash_init(&h);
    err = write_hashed(fd, &h, magic, sizeof magic);
    if (!err)
        err = write_hashed(fd, &h, &version, sizeof version);
    for (size_t i = 0; !err && i < all; i++) {
        struct hed_cache_entry e;

        if (hed_cache_look(c, files[i].name, true, &bytes, &e) != 0 || !want(arg, &e))
            continue;
        err = write_archive_entry(fd, &h, &bytes);
        written++;
    }
    if (!err)
        err = write_hashed(fd, &h, &end, sizeof end);
    hed_hash_end(&h, hash);
    if (!err)
        err = hed_write_all(fd, hash, sizeof hash);
    if (err)
        hed_why_set(why, "the archive cannot be written: %s", hed_err_text(err));
    else
        *count = written;
    hed_buf_fini(&bytes);
    free(files);
    return err;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct archive {
    int fd;
    struct hed_hash hash;
    struct hed_buf bytes; /* of the current entry */
    uint64_t count;       /* entries that were read */
};

static int
read_hashed(struct archive *a, void *p, size_t n)
{
    const int err = hed_read_all(a->fd, p, n);

    if (!err)
        hed_hash_add(&a->hash, p, n);
    return err;
}

static int
read_archive_head(struct archive *a, struct hed_why *why)
{
    char first[sizeof magic];
    uint32_t version = 0;
    int err = read_hashed(a, first, sizeof first);

    if (!err && memcmp(first, magic, sizeof magic) != 0)
        err = HED_EFORMAT;
    if (!err)
        err = read_hashed(a, &version, sizeof version);
    if (err) {
        hed_why_set(why, "it is no archive of compiled kernels");
    } else if (version != ARCHIVE_VERSION) {
        hed_why_set(why, "it has version %u of the format, and this heddle reads version %d",
                    version, ARCHIVE_VERSION);
        err = HED_EVERSION;
    }
    return err;
}

/* The memory grows with what the file really has. */
static int
read_archive_bytes(struct archive *a, uint64_t size)
{
    unsigned char piece[65536];
    int err = size > HED_CACHE_ENTRY_MAX || ++a->count > ENTRIES_MAX ? HED_ELIMIT : 0;

    hed_buf_reset(&a->bytes);
    while (!err && a->bytes.size < size) {
        const size_t n = (size_t)hed_min(sizeof piece, size - a->bytes.size);

        err = read_hashed(a, piece, n);
        if (!err)
            hed_buf_add(&a->bytes, piece, n);
        if (!err)
            err = a->bytes.err;
    }
    return err;
}

/* The hash, and nothing behind it. */
static int
read_archive_end(struct archive *a)
{
    uint8_t hash[HED_HASH_SIZE], is[HED_HASH_SIZE];
    char more;
    int err;

    hed_hash_end(&a->hash, hash);
    err = hed_read_all(a->fd, is, sizeof is);
    if (!err && memcmp(hash, is, sizeof hash) != 0)
        err = HED_EFORMAT;
    return !err && hed_read_all(a->fd, &more, 1) == 0 ? HED_EFORMAT : err;
}

static int
read_archive_entries(struct archive *a, hed_archive_entry_fn fn, void *arg, struct hed_why *why)
{
    for (;;) {
        struct hed_cache_entry e;
        uint64_t size = 0;
        int err = read_hashed(a, &size, sizeof size);

        if (!err && size == 0)
            err = read_archive_end(a);
        else if (!err)
            err = read_archive_bytes(a, size);
        if (!err && size)
            err = hed_cache_entry_read(a->bytes.data, a->bytes.size, size, &e);
        if (err)
            hed_why_set(why, "entry %llu of the archive: %s", (unsigned long long)a->count,
                        hed_err_text(err));
        if (!err && size && fn)
            err = fn(arg, &e, a->bytes.data, a->bytes.size);
        if (err || size == 0)
            return err;
    }
}

int
hed_archive_read(int fd, hed_archive_entry_fn fn, void *arg, struct hed_why *why)
{
    struct archive a = {.fd = fd};
    int err;

    hed_buf_init(&a.bytes, HED_CACHE_ENTRY_MAX);
    hed_hash_init(&a.hash);
    err = read_archive_head(&a, why);
    if (!err)
        err = read_archive_entries(&a, fn, arg, why);
    hed_buf_fini(&a.bytes);
    return err;
}

int
hed_archive_keep(struct hed_cache *c, const struct hed_cache_entry *e, const void *bytes,
                 size_t size)
{
    return hed_cache_store(c, &e->key, bytes, size) ? 0 : HED_EIO;
}
