/* Writing snapshots: chunks and the file's end. See writer.h.
 *
 * Invariants:
 * 1. `end` is behind every payload, a multiple of HED_SNAP_BLOCK, and only grows. A thread that
 *    stores a blob reserves its place under the lock and writes it without.
 * 2. Blobs are in the order of their offsets, because place and row are taken together.
 * 3. A row of the table of chunks may name a blob whose bytes another thread is still writing. If
 *    that fails, err is set, and the file never gets a footer.
 */
#include "move/file/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc.h"
#include "base/err.h"
#include "base/number.h"
#include "move/file/pack.h"
#include "move/file/reader_parts.h"
#include "move/file/writer_parts.h"

static int
note_failure(struct hed_snap_writer *w, int err, const char *what, const char *text)
{
    if (w->err == 0) {
        w->err = err;
        hed_why_set(&w->why, "%s: %s", what, text);
    }
    return w->err;
}

int
hed_snap_writer_fail(struct hed_snap_writer *w, int err, const char *what)
{
    return note_failure(w, err, what, hed_err_text(err));
}

/* A file could not be read or written. */
static int
fail_unlocked(struct hed_snap_writer *w, int err, const char *what)
{
    hed_lock(&w->lock);
    err = note_failure(w, err, what, hed_snap_io_text(err));
    hed_unlock(&w->lock);
    return err;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static bool
all_zeros(const unsigned char *p, size_t size)
{
    uint64_t head[4];

    if (size < sizeof head) {
        for (size_t i = 0; i < size; i++) {
            if (p[i])
                return false;
        }
        return true;
    }
    memcpy(head, p, sizeof head);
    return (head[0] | head[1] | head[2] | head[3]) == 0 &&
           memcmp(p, p + sizeof head, size - sizeof head) == 0;
}

/* Is this the hash of `size` zeros? */
static bool
hash_of_zeros(struct hed_snap_writer *w, const struct hed_snap_hash *hash, uint32_t size)
{
    struct hed_snap_hash zeros = w->zeros;

    if (size != w->super.chunk_size)
        hed_snap_hash_zeros(size, &zeros);
    return hed_snap_hash_same(hash, &zeros);
}

/* The row of a chunk that may be put now; NULL, and *err, if it may not. */
static struct hed_snap_chunk_row *
row_to_put_locked(struct hed_snap_writer *w, uint32_t id, uint32_t index, int *err)
{
    struct hed_snap_chunk_row *c = &w->chunks[w->extents[id].first + index];

    *err = w->finished ? HED_ESTATE : w->err;
    if (*err == 0 && c->home != HED_SNAP_NOT_PUT)
        *err = HED_EEXIST;
    return *err ? NULL : c;
}

static void
set_row(struct hed_snap_chunk_row *c, const struct hed_snap_hash *hash, uint32_t home,
        uint32_t blob)
{
    memcpy(c->hash, hash->w, sizeof c->hash);
    c->home = home;
    c->blob = blob;
}

static int
put_zeros(struct hed_snap_writer *w, uint32_t id, uint32_t index, const struct hed_snap_hash *hash)
{
    int err;

    hed_lock(&w->lock);

    struct hed_snap_chunk_row *c = row_to_put_locked(w, id, index, &err);

    if (c)
        set_row(c, hash, HED_SNAP_ZEROS, 0);
    hed_unlock(&w->lock);
    return err;
}

/* Refers to bytes that are stored already. HED_ENOTFOUND if they are not. */
static int
put_stored(struct hed_snap_writer *w, uint32_t id, uint32_t index, const struct hed_snap_hash *hash,
           uint32_t size)
{
    int err;

    hed_lock(&w->lock);

    struct hed_snap_chunk_row *c = row_to_put_locked(w, id, index, &err);
    const struct hed_snap_place *p = c ? hed_snap_index_get(&w->index, hash, size) : NULL;

    if (p)
        set_row(c, hash, p->home, p->blob);
    else if (c)
        err = HED_ENOTFOUND;
    hed_unlock(&w->lock);
    return err;
}

static int
add_blob_locked(struct hed_snap_writer *w, struct hed_snap_blob_row *b)
{
    const struct hed_snap_place place = {.hash = {{b->hash[0], b->hash[1]}},
                                         .size = b->size,
                                         .home = HED_SNAP_HERE,
                                         .blob = w->blob_count};

    if (w->blob_count == HED_SNAP_CHUNKS_MAX)
        return hed_snap_writer_fail(w, HED_ELIMIT, "too many chunks");
    if (hed_snap_grow((void **)&w->blobs, &w->blob_room, w->blob_count, 1, sizeof *w->blobs) != 0 ||
        hed_snap_index_put(&w->index, &place) != 0)
        return hed_snap_writer_fail(w, HED_ENOMEM, "the table of chunks");
    b->offset = w->end;
    w->end += hed_round_up(b->stored, HED_SNAP_BLOCK);
    w->stored += b->stored;
    w->needs |= b->packing == HED_SNAP_ZSTD ? HED_SNAP_NEED_ZSTD : 0;
    w->blobs[w->blob_count++] = *b;
    return 0;
}

/* Takes a place for a blob and lets the chunk name it. b->offset is 0 if another thread has stored
 * the same bytes meanwhile. */
static int
reserve_blob(struct hed_snap_writer *w, uint32_t id, uint32_t index, struct hed_snap_blob_row *b)
{
    const struct hed_snap_hash hash = {{b->hash[0], b->hash[1]}};
    int err;

    hed_lock(&w->lock);

    struct hed_snap_chunk_row *c = row_to_put_locked(w, id, index, &err);
    const struct hed_snap_place *p = c ? hed_snap_index_get(&w->index, &hash, b->size) : NULL;

    if (p)
        set_row(c, &hash, p->home, p->blob);
    else if (c && (err = add_blob_locked(w, b)) == 0)
        set_row(c, &hash, HED_SNAP_HERE, w->blob_count - 1);
    hed_unlock(&w->lock);
    return err;
}

static struct hed_snap_packer *
take_packer(struct hed_snap_writer *w)
{
    hed_lock(&w->lock);

    struct hed_snap_packer *p = w->packers;

    if (p)
        w->packers = p->next;
    hed_unlock(&w->lock);
    return p ? p : hed_snap_packer_create(w->super.chunk_size);
}

static void
give_packer(struct hed_snap_writer *w, struct hed_snap_packer *p)
{
    hed_lock(&w->lock);
    p->next = w->packers;
    w->packers = p;
    hed_unlock(&w->lock);
}

static int
store_blob(struct hed_snap_writer *w, uint32_t id, uint32_t index, const void *data,
           struct hed_snap_blob_row *b)
{
    struct hed_snap_packer *packer = w->how.zstd ? take_packer(w) : NULL;
    const size_t packed = packer ? hed_snap_pack(packer, w->how.zstd, data, b->size) : 0;

    if (packed) {
        data = packer->data;
        b->packing = HED_SNAP_ZSTD;
    }
    b->stored = packed ? (uint32_t)packed : b->size;
    b->crc = hed_crc32c(0, data, b->stored);

    int err = reserve_blob(w, id, index, b);

    if (err == 0 && b->offset) {
        err = hed_snap_pwrite(w->files, w->fd, data, b->stored, b->offset);
        if (err)
            err = fail_unlocked(w, err, "cannot write to the snapshot");
    }
    if (packer)
        give_packer(w, packer);
    return err;
}

static int
chunk_to_put(const struct hed_snap_writer *w, uint32_t id, uint32_t index, uint32_t *length)
{
    if (id >= w->extent_count)
        return HED_EINVAL;

    const uint64_t size = w->extents[id].size, at = (uint64_t)index * w->super.chunk_size;

    if (at >= size)
        return HED_EINVAL;
    *length = (uint32_t)hed_min(size - at, w->super.chunk_size);
    return 0;
}

int
hed_snap_chunk_put(struct hed_snap_writer *w, uint32_t id, uint32_t index, const void *data,
                   size_t size, const struct hed_snap_hash *hash)
{
    struct hed_snap_hash own;
    uint32_t length;

    if (chunk_to_put(w, id, index, &length) != 0 || length != size)
        return HED_EINVAL;
    if (!hash) {
        hed_snap_hash(data, size, &own);
        hash = &own;
    }
    if (all_zeros(data, size))
        return put_zeros(w, id, index, hash);

    const int err = put_stored(w, id, index, hash, length);

    if (err != HED_ENOTFOUND)
        return err;

    struct hed_snap_blob_row b = {.size = length, .hash = {hash->w[0], hash->w[1]}};

    return store_blob(w, id, index, data, &b);
}

int
hed_snap_chunk_same(struct hed_snap_writer *w, uint32_t id, uint32_t index,
                    const struct hed_snap_hash *hash)
{
    uint32_t length;

    if (chunk_to_put(w, id, index, &length) != 0)
        return HED_EINVAL;
    if (hash_of_zeros(w, hash, length))
        return put_zeros(w, id, index, hash);
    return put_stored(w, id, index, hash, length);
}

bool
hed_snap_writer_has(struct hed_snap_writer *w, const struct hed_snap_hash *hash, size_t size)
{
    if (size == 0 || size > w->super.chunk_size)
        return false;
    if (hash_of_zeros(w, hash, (uint32_t)size))
        return true;
    hed_lock(&w->lock);

    const bool has = hed_snap_index_get(&w->index, hash, (uint32_t)size) != NULL;

    hed_unlock(&w->lock);
    return has;
}

/* ---- whole extents --------------------------------------------------------------------------- */

int
hed_snap_extent_put(struct hed_snap_writer *w, const struct hed_snap_extent *e, const void *data)
{
    const unsigned char *at = data;
    uint32_t id;
    int err = hed_snap_extent_begin(w, e, &id);

    for (uint64_t done = 0, i = 0; err == 0 && done < e->size; i++) {
        const uint64_t n = hed_min(e->size - done, w->super.chunk_size);

        err = hed_snap_chunk_put(w, id, (uint32_t)i, at + done, n, NULL);
        done += n;
    }
    return err;
}

static int
read_from(int fd, unsigned char *p, size_t n, uint64_t at)
{
    while (n > 0) {
        const ssize_t got = pread(fd, p, n, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? hed_err_from_errno(errno) : HED_ETRUNC;
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int
hed_snap_extent_put_file(struct hed_snap_writer *w, const struct hed_snap_extent *e, int from)
{
    unsigned char *piece = malloc(w->super.chunk_size);
    uint32_t id;
    int err = piece ? hed_snap_extent_begin(w, e, &id) : HED_ENOMEM;

    for (uint64_t done = 0, i = 0; err == 0 && done < e->size; i++) {
        const uint64_t n = hed_min(e->size - done, w->super.chunk_size);

        err = read_from(from, piece, n, done);
        if (err)
            (void)fail_unlocked(w, err, "cannot read a file for the snapshot");
        else
            err = hed_snap_chunk_put(w, id, (uint32_t)i, piece, n, NULL);
        done += n;
    }
    free(piece);
    return err;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int
check_all_put(struct hed_snap_writer *w)
{
    for (uint32_t i = 0; i < w->extent_count; i++) {
        const uint64_t n = hed_divide_up(w->extents[i].size, w->super.chunk_size);

        for (uint64_t k = 0; k < n; k++) {
            if (w->chunks[w->extents[i].first + k].home != HED_SNAP_NOT_PUT)
                continue;
            w->err = HED_ESTATE;
            hed_why_set(&w->why, "chunk %" PRIu64 " of extent %" PRIu32 " was not written", k, i);
            return w->err;
        }
    }
    return 0;
}

/* Keeps only homes that chunks lie in, and numbers them anew. */
static void
drop_unused_homes(struct hed_snap_writer *w)
{
    uint32_t number[HED_SNAP_HOMES_MAX] = {0}; /* the new one + 1; first: is it used? */
    uint32_t kept = 0;

    for (uint32_t i = 0; i < w->chunk_count; i++) {
        if (w->chunks[i].home != HED_SNAP_HERE && w->chunks[i].home != HED_SNAP_ZEROS)
            number[w->chunks[i].home - 1] = 1;
    }
    for (uint32_t i = 0; i < w->home_count; i++) {
        if (!number[i])
            continue;
        w->homes[kept] = w->homes[i];
        number[i] = ++kept;
    }
    w->home_count = kept;
    for (uint32_t i = 0; i < w->chunk_count; i++) {
        if (w->chunks[i].home != HED_SNAP_HERE && w->chunks[i].home != HED_SNAP_ZEROS)
            w->chunks[i].home = number[w->chunks[i].home - 1];
    }
}

static unsigned char *
add_rows(unsigned char *at, const void *rows, size_t bytes)
{
    if (bytes)
        memcpy(at, rows, bytes);
    return at + bytes;
}

static void
fill_footer(const struct hed_snap_writer *w, struct hed_snap_footer *f)
{
    memset(f, 0, sizeof *f);
    memcpy(f->magic, HED_SNAP_FOOTER_MAGIC, sizeof f->magic);
    memcpy(f->end, HED_SNAP_END_MAGIC, sizeof f->end);
    memcpy(f->uuid, w->super.uuid, sizeof f->uuid);
    f->flags = w->how.partial ? HED_SNAP_PARTIAL : 0;
    f->needs = w->needs;
    f->tables = w->end;
    f->homes = w->home_count;
    f->blobs = w->blob_count;
    f->extents = w->extent_count;
    f->chunks = w->chunk_count;
    f->names = w->names.size;
    f->content = w->content;
    f->stored = w->stored;
    f->at = hed_round_up(f->tables + hed_snap_tables_bytes(f), HED_SNAP_BLOCK);
}

static int
write_end(struct hed_snap_writer *w)
{
    struct hed_snap_footer f;

    drop_unused_homes(w);
    fill_footer(w, &f);

    const uint64_t bytes = f.at - f.tables;
    unsigned char *tables = calloc(1, bytes ? bytes : 1);

    if (!tables)
        return hed_snap_writer_fail(w, HED_ENOMEM, "the tables");

    unsigned char *at = add_rows(tables, w->homes, w->home_count * sizeof *w->homes);

    at = add_rows(at, w->blobs, w->blob_count * sizeof *w->blobs);
    at = add_rows(at, w->extents, w->extent_count * sizeof *w->extents);
    at = add_rows(at, w->chunks, w->chunk_count * sizeof *w->chunks);
    (void)add_rows(at, w->names.data, w->names.size);
    hed_snap_digest(&w->super, tables, bytes, &f, f.digest);
    f.crc = hed_crc32c(0, &f, offsetof(struct hed_snap_footer, crc));

    /* Whatever the footer vouches for is on the disk before the footer is. */
    int err = hed_snap_pwrite(w->files, w->fd, tables, bytes, f.tables);

    free(tables);
    err = err ? err : hed_snap_datasync(w->files, w->fd);
    err = err ? err : hed_snap_pwrite(w->files, w->fd, &f, sizeof f, f.at);
    err = err ? err : hed_snap_datasync(w->files, w->fd);
    w->end = f.at + sizeof f;
    return err ? note_failure(w, err, "cannot write the end of the snapshot", hed_snap_io_text(err))
               : 0;
}

int
hed_snap_writer_finish(struct hed_snap_writer *w, struct hed_why *why)
{
    int err = w->finished ? HED_ESTATE : w->err;

    if (w->finished)
        hed_why_set(&w->why, "the snapshot was finished before");
    err = err ? err : check_all_put(w);
    err = err ? err : write_end(w);
    if (err)
        hed_why_set(why, "%s", w->why.text);
    else
        w->finished = true;
    return err;
}

const char *
hed_snap_writer_reason(const struct hed_snap_writer *w)
{
    return w->err ? w->why.text : "";
}
