/* Fills the memory of a new worker from a snapshot or from a host copy, and checks what has
 * arrived. See contents.h. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "move/session/contents.h"
#include "move/session/staging.h"
#include "remote/client.h"

/* One filling. */
struct filling {
    struct hed_remote_fill *fill;
    struct hed_remote_extents list;
    struct hed_remote_chunk *chunks;
    uint32_t *ids; /* where the snapshot has each extent */
    struct hed_snap_hash
        *want; /* of the chunks of a host copy, by their tags, if they are verified */
};

static int
find_extents(struct filling *k, struct hed_why *why)
{
    const struct hed_remote_extents *x = &k->list;

    k->ids = calloc(x->count + 1, sizeof *k->ids);
    if (!k->ids)
        return HED_ENOMEM;
    for (size_t i = 0; i < x->count; i++) {
        const struct hed_snap_extent *e = &x->all[i].about;
        const struct hed_remote_chunk first = {.extent = &x->all[i], .id = (uint32_t)i};
        const bool found =
            k->fill->host_copy
                ? hed_remote_host_copy_find(k->fill->host_copy, &first) != NULL
                : hed_snap_extent_find(k->fill->reader, e, &k->ids[i]) &&
                      hed_snap_extent_at(k->fill->reader, k->ids[i])->size == e->size;

        if (!found) {
            hed_why_set(why,
                        "the program has %s memory (%#llx%s%s, %llu bytes) of which the "
                        "contents were not saved",
                        hed_snap_kind_name(e->kind), (unsigned long long)e->key,
                        e->name[0] ? ", " : "", e->name, (unsigned long long)e->size);
            return HED_ENOTFOUND;
        }
    }
    return 0;
}

static int
fill_chunk(void *arg, const struct hed_remote_chunk *c, void *data, struct hed_why *why)
{
    struct filling *k = arg;
    struct hed_remote_fill *f = k->fill;

    /* Relaxed: a counter. */
    atomic_fetch_add_explicit(&f->moved.bytes, c->size, memory_order_relaxed);
    if (f->host_copy) {
        memcpy(data, hed_remote_host_copy_find(f->host_copy, c), c->size);
        if (k->want)
            hed_snap_hash(data, c->size, &k->want[c->tag]);
        return 0;
    }
    /* What the device will hash need not be hashed here. */
    return (f->verify && hed_remote_is_hashable(c) ? hed_snap_chunk_read : hed_snap_chunk_get)(
        f->reader, k->ids[c->id], c->index, data, c->size, why);
}

/* ---- zeros ----------------------------------------------------------------------------------- */

/* A snapshot knows which chunks are zeros; the device writes those itself. */
static bool
is_known_zero(const struct filling *k, const struct hed_remote_chunk *c)
{
    return !k->fill->host_copy && !c->extent->array && c->extent->about.kind != HED_SNAP_VARIABLE &&
           hed_snap_chunk_where(k->fill->reader, k->ids[c->id], c->index) == HED_SNAP_IS_ZERO;
}

static CUresult
clear_chunk(struct hed_remote *r, const struct hed_remote_chunk *c)
{
    struct hed_work *w = hed_work_create(c->extent->ctx, HED_WORK_FILL);

    if (!w)
        return CUDA_ERROR_OUT_OF_MEMORY;
    w->fill = (struct hed_fill){.to = c->extent->at + c->offset,
                                .size = 1,
                                .width = c->size,
                                .height = 1,
                                .pitch = c->size};
    return hed_remote_submit(r, c->extent->ctx->legacy, w, false);
}

/* Moves the other chunks to the front. */
static int
fill_zeros(struct filling *k, struct hed_remote *r, size_t *count, struct hed_why *why)
{
    CUresult result = CUDA_SUCCESS;
    size_t left = 0;

    for (size_t i = 0; i < *count && result == CUDA_SUCCESS; i++) {
        if (is_known_zero(k, &k->chunks[i])) {
            result = clear_chunk(r, &k->chunks[i]);
            k->fill->moved.same += k->chunks[i].size;
        } else {
            k->chunks[left++] = k->chunks[i];
        }
    }
    for (size_t i = 0; i < k->list.count && result == CUDA_SUCCESS && left < *count; i++)
        if (i == 0 || k->list.all[i].ctx != k->list.all[i - 1].ctx)
            result = hed_stream_synchronize(k->list.all[i].ctx->legacy);
    *count = left;
    if (result == CUDA_SUCCESS)
        return 0;
    hed_why_set(why, "memory cannot be cleared: CUDA error %d", (int)result);
    return HED_EIO;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const struct hed_snap_hash *
expected_hash(const struct filling *k, const struct hed_remote_chunk *c)
{
    return k->want ? &k->want[c->tag]
                   : hed_snap_chunk_hash(k->fill->reader, k->ids[c->id], c->index);
}

/* Cuts the list, with the number of each chunk as its tag. */
static void
cut_list(struct filling *k)
{
    hed_remote_extents_cut(&k->list, k->chunks);
    for (uint64_t i = 0; i < k->list.chunks; i++)
        k->chunks[i].tag = (uint32_t)i;
}

static int
verify_all(struct filling *k, struct hed_remote *r, struct hed_why *why)
{
    const size_t count = k->list.chunks;
    struct hed_snap_hash *hashes = calloc(count + 1, sizeof *hashes);
    struct hed_remote_hasher *h = NULL;
    int err = hashes ? hed_remote_hasher_open(r, count, &h, why) : HED_ENOMEM;

    cut_list(k);
    if (!err)
        err = hed_remote_hasher_run(h, k->chunks, count, hashes, why);
    for (size_t i = 0; i < count && !err; i++) {
        const struct hed_remote_chunk *c = &k->chunks[i];

        if (hed_remote_is_hashable(c) && !hed_snap_hash_same(&hashes[i], expected_hash(k, c))) {
            hed_why_set(why, "memory at %#llx is not what was saved",
                        (unsigned long long)(c->extent->at + c->offset));
            err = HED_EFORMAT;
        }
    }
    hed_remote_hasher_close(h);
    free(hashes);
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int
fill_all(struct hed_remote_source *self, struct hed_remote *r, struct hed_why *why)
{
    struct hed_remote_fill *f = (struct hed_remote_fill *)self;
    struct hed_remote_pump *p = NULL;
    struct filling k = {.fill = f};
    int err = hed_remote_extents_list(r, &k.list, why);

    if (err)
        return err;

    if (f->staging)
        hed_remote_staging_hide(f->staging, &k.list);

    size_t count = k.list.chunks;

    k.chunks = calloc(count + 1, sizeof *k.chunks);
    err = k.chunks ? find_extents(&k, why) : HED_ENOMEM;
    if (!err && f->verify && f->host_copy && !(k.want = calloc(count + 1, sizeof *k.want)))
        err = HED_ENOMEM;
    if (!err && !f->pump)
        err = hed_remote_pump_open(r, &p, why);
    if (!err) {
        cut_list(&k);
        err = fill_zeros(&k, r, &count, why);
    }
    if (!err)
        err = hed_remote_pump_write(p ? p : f->pump, k.chunks, count, fill_chunk, &k, why);
    if (!err && f->verify && k.list.chunks > 0)
        err = verify_all(&k, r, why);
    hed_remote_pump_close(p);
    free(k.ids);
    free(k.want);
    free(k.chunks);
    hed_remote_extents_free(&k.list);
    return err;
}

void
hed_remote_fill_init(struct hed_remote_fill *f, struct hed_remote_host_copy *host_copy,
                     struct hed_snap_reader *reader, bool verify)
{
    *f = (struct hed_remote_fill){
        .source.fill = fill_all, .host_copy = host_copy, .reader = reader, .verify = verify};
}
