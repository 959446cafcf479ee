/* Writes all memory to a snapshot. See contents.h. */
#include <stdlib.h>

#include "base/err.h"
#include "move/session/contents.h"

int
hed_remote_begin_extents(const struct hed_remote_extents *x, struct hed_snap_writer *w,
                         uint32_t *ids, struct hed_why *why)
{
    int err = 0;

    for (size_t i = 0; i < x->count && !err; i++) {
        err = hed_snap_extent_begin(w, &x->all[i].about, &ids[i]);
        if (err)
            hed_why_set(why, "the snapshot cannot describe %s memory: %s",
                        hed_snap_kind_name(x->all[i].about.kind), hed_err_text(err));
    }
    return err;
}

int
hed_remote_put_chunk(struct hed_snap_writer *w, const struct hed_remote_chunk *c, const void *data,
                     const struct hed_snap_hash *known, struct hed_why *why)
{
    struct hed_snap_hash hash;
    int err;

    hed_snap_hash(data, c->size, &hash);
    /* The bytes that arrived are not those that the device has hashed. */
    if (known && !hed_snap_hash_same(&hash, known)) {
        hed_why_set(why, "memory at %#llx was damaged on its way from the device",
                    (unsigned long long)(c->extent->at + c->offset));
        return HED_EIO;
    }
    err = hed_snap_chunk_put(w, c->id, c->index, data, c->size, &hash);
    if (err)
        hed_why_set(why, "%s", hed_snap_writer_reason(w));
    return err;
}

struct capturing {
    struct hed_snap_writer *writer;
    struct hed_remote_moved *moved;
    const struct hed_snap_hash *hashes; /* of the chunks that are read; NULL: not known */
    const struct hed_remote_chunk *chunks;
};

static int
write_chunk(void *arg, const struct hed_remote_chunk *c, void *data, struct hed_why *why)
{
    struct capturing *k = arg;
    const bool known = k->hashes && hed_remote_is_hashable(c);

    /* Relaxed: a counter. */
    atomic_fetch_add_explicit(&k->moved->bytes, c->size, memory_order_relaxed);
    return hed_remote_put_chunk(k->writer, c, data, known ? &k->hashes[c - k->chunks] : NULL, why);
}

/* Puts the chunks whose bytes are known already, and moves the others to the front. Says how many
 * those are. */
static int
put_known_chunks(struct capturing *k, struct hed_remote_chunk *chunks, struct hed_snap_hash *hashes,
                 size_t *count)
{
    static const char zeros[HED_EXTENT_CHUNK];
    struct hed_snap_hash zero;
    size_t left = 0;
    int err = 0;

    hed_snap_hash_zeros(HED_EXTENT_CHUNK, &zero);
    for (size_t i = 0; i < *count && !err; i++) {
        const struct hed_remote_chunk *c = &chunks[i];
        int found = HED_ENOTFOUND;

        if (hed_remote_is_hashable(c)) {
            if (c->size == HED_EXTENT_CHUNK && hed_snap_hash_same(&hashes[i], &zero))
                found = hed_snap_chunk_put(k->writer, c->id, c->index, zeros, c->size, &zero);
            else
                found = hed_snap_chunk_same(k->writer, c->id, c->index, &hashes[i]);
        }
        if (found == HED_ENOTFOUND) {
            hashes[left] = hashes[i];
            chunks[left++] = *c;
        } else {
            k->moved->same += c->size;
            err = found;
        }
    }
    *count = left;
    return err;
}

int
hed_remote_capture(struct hed_remote *r, struct hed_remote_pump *p, struct hed_remote_hasher *h,
                   struct hed_snap_writer *w, struct hed_remote_moved *moved, struct hed_why *why)
{
    struct hed_remote_extents x;
    struct hed_remote_chunk *chunks = NULL;
    struct hed_snap_hash *hashes = NULL;
    uint32_t *ids = NULL;
    int err = hed_remote_extents_list(r, &x, why);

    if (err)
        return err;
    hed_remote_hasher_hide(h, &x);

    size_t count = x.chunks;
    struct capturing k = {.writer = w, .moved = moved};

    chunks = calloc(count + 1, sizeof *chunks);
    hashes = calloc(count + 1, sizeof *hashes);
    ids = calloc(x.count + 1, sizeof *ids);
    if (!chunks || !hashes || !ids)
        err = HED_ENOMEM;
    if (!err)
        err = hed_remote_begin_extents(&x, w, ids, why);
    if (!err) {
        hed_remote_extents_cut(&x, chunks);
        for (size_t i = 0; i < count; i++)
            chunks[i].id = ids[chunks[i].id];
    }
    if (!err && h) {
        err = hed_remote_hasher_run(h, chunks, count, hashes, why);
        if (!err)
            err = put_known_chunks(&k, chunks, hashes, &count);
        k.hashes = hashes;
    }
    k.chunks = chunks;
    if (!err)
        err = hed_remote_pump_read(p, chunks, count, write_chunk, &k, why);
    free(ids);
    free(hashes);
    free(chunks);
    hed_remote_extents_free(&x);
    return err;
}
