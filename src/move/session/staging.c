/* Snapshots of a program that hardly stops. See staging.h.
 *
 *   STAGE      hold ──> hash ──> what changed: device ──copy──> free device memory ──> part, parked
 *   CONTINUE   return, release ──> free device memory ──pump──> file
 *
 * Which bytes have changed is decided by the hashes of the parent. Arrays and variables are small
 * and not hashed; they are copied into memory of this process.
 */
#include "move/session/staging.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/number.h"
#include "driver/driver.h"
#include "move/file/writer.h"
#include "remote/client.h"

#define RETURN_TRIES 3
#define RETURN_NAP_NS (100 * HED_NS_PER_MS) /* between two of these */

/* Where the bytes of a chunk are. */
enum chunk_place { IN_STAGING, IN_PARENT, IN_HOST, IS_ZERO };

struct staging_memory {
    struct hed_context *ctx; /* a reference */
    uint64_t at, size;       /* at is 0 if there is none */
};

struct hed_remote_staging {
    struct hed_remote *remote;
    struct hed_remote_hasher *hasher; /* to be closed when the worker is back */
    struct hed_remote_extents list;
    struct hed_remote_chunk *chunks; /* list.chunks of them */
    struct hed_snap_hash *hashes;
    uint8_t *places; /* enum chunk_place */
    char **host;     /* of those IN_HOST; owned */
    struct staging_memory memory[HED_PROFILE_DEVICES_MAX];
    unsigned count;
};

static void
free_staging(struct hed_remote_staging *w)
{
    if (!w)
        return;
    for (unsigned i = 0; i < w->count; i++) {
        if (w->memory[i].at)
            (void)hed_memory_give(w->remote->driver, HED_MEMORY_DEVICE, w->memory[i].at);
        hed_context_unref(w->memory[i].ctx);
    }
    for (uint64_t i = 0; w->host && i < w->list.chunks; i++)
        free(w->host[i]);
    free(w->host);
    free(w->places);
    free(w->hashes);
    free(w->chunks);
    hed_remote_extents_free(&w->list);
    free(w);
}

void
hed_remote_staging_hide(const struct hed_remote_staging *w, struct hed_remote_extents *x)
{
    hed_remote_hasher_hide(w->hasher, x);
    for (unsigned i = 0; i < w->count; i++)
        if (w->memory[i].at)
            hed_remote_extents_hide(x, w->memory[i].at);
}

void
hed_remote_staging_drop(struct hed_remote_agent *a)
{
    if (!a->staging)
        return;
    hed_remote_hasher_close(a->staging->hasher);
    free_staging(a->staging);
    a->staging = NULL;
}

/* ---- what has changed ------------------------------------------------------------------------ */

static bool
is_in_parent(const struct hed_snap_reader *parent, const struct hed_remote_chunk *c,
             const struct hed_snap_hash *hash)
{
    const struct hed_snap_hash *there = NULL;
    uint32_t id;

    if (parent && hed_snap_extent_find(parent, &c->extent->about, &id) &&
        hed_snap_extent_at(parent, id)->size == c->extent->about.size)
        there = hed_snap_chunk_hash(parent, id, c->index);
    return there && hed_snap_hash_same(there, hash);
}

/* Says where each chunk's bytes are or will be, and how many bytes each context's staging copy
 * needs. */
static int
place_chunks(struct hed_remote_staging *w, const struct hed_snap_reader *parent)
{
    struct hed_snap_hash zero;

    hed_snap_hash_zeros(HED_EXTENT_CHUNK, &zero);
    for (uint64_t i = 0; i < w->list.chunks; i++) {
        const struct hed_remote_chunk *c = &w->chunks[i];
        unsigned k = 0;

        if (!hed_remote_is_hashable(c))
            w->places[i] = IN_HOST;
        else if (c->size == HED_EXTENT_CHUNK && hed_snap_hash_same(&w->hashes[i], &zero))
            w->places[i] = IS_ZERO;
        else
            w->places[i] = is_in_parent(parent, c, &w->hashes[i]) ? IN_PARENT : IN_STAGING;
        if (w->places[i] != IN_STAGING)
            continue;
        while (k < w->count && w->memory[k].ctx != c->extent->ctx)
            k++;
        if (k == HED_PROFILE_DEVICES_MAX)
            return HED_ELIMIT;
        if (k == w->count) {
            w->memory[w->count++].ctx = c->extent->ctx;
            hed_context_ref(c->extent->ctx);
        }
        w->memory[k].size += hed_round_up(c->size, 512);
    }
    return 0;
}

/* ---- copying --------------------------------------------------------------------------------- */

static CUresult
copy_on_device(struct hed_remote *r, struct hed_context *c, uint64_t to, uint64_t from, uint64_t n)
{
    const struct hed_copy copy = {.from = {.at = from, .pitch = n, .slice = n},
                                  .to = {.at = to, .pitch = n, .slice = n},
                                  .box = {n, 1, 1}};

    return hed_remote_copy(r, c->legacy, &copy, false);
}

/* Copies the chunks of one context that have changed; neighbours are one copy. */
static CUresult
copy_to_staging(struct hed_remote_staging *w, const struct staging_memory *m)
{
    uint64_t to = m->at, begin = 0, from = 0, n = 0;
    CUresult r = CUDA_SUCCESS;

    for (uint64_t i = 0; i < w->list.chunks && r == CUDA_SUCCESS; i++) {
        struct hed_remote_chunk *c = &w->chunks[i];
        const uint64_t at = c->extent->at + c->offset;

        if (w->places[i] != IN_STAGING || c->extent->ctx != m->ctx)
            continue;
        if (n && (at != from + n || to != begin + n)) {
            r = copy_on_device(w->remote, m->ctx, begin, from, n);
            n = 0;
        }
        if (!n) {
            begin = to;
            from = at;
        }
        c->from = to;
        n += c->size;
        to += hed_round_up(c->size, 512);
    }
    if (n && r == CUDA_SUCCESS)
        r = copy_on_device(w->remote, m->ctx, begin, from, n);
    return r == CUDA_SUCCESS ? hed_stream_synchronize(m->ctx->legacy) : r;
}

static int
copy_to_host(struct hed_remote_staging *w, struct hed_why *why)
{
    for (uint64_t i = 0; i < w->list.chunks; i++) {
        const struct hed_remote_chunk *c = &w->chunks[i];
        CUresult r;

        if (w->places[i] != IN_HOST)
            continue;
        w->host[i] = malloc(c->size);
        if (!w->host[i])
            return HED_ENOMEM;
        r = hed_remote_extent_copy(w->remote, c->extent->ctx->legacy, c->extent, 0, c->offset,
                                   c->size, w->host[i], true);
        if (r != CUDA_SUCCESS) {
            hed_why_set(why, "memory cannot be read: CUDA error %d", (int)r);
            return HED_EIO;
        }
    }
    return 0;
}

/* Takes memory that is free, and copies into it. HED_ENOMEM: there is not enough. */
static int
fill_staging(struct hed_remote_staging *w, struct hed_remote_request *q)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct staging_memory *m = &w->memory[i];
        CUresult r = hed_memory_take(m->ctx, HED_MEMORY_DEVICE,
                                     hed_max(m->size, 2 * HED_EXTENT_CHUNK), 512, &m->at);

        if (r == CUDA_ERROR_OUT_OF_MEMORY) {
            m->at = 0;
            hed_why_set(&q->why, "%llu MiB have changed, which is more than the device has free",
                        (unsigned long long)(m->size >> 20));
            return HED_ENOMEM;
        }
        if (r == CUDA_SUCCESS)
            r = copy_to_staging(w, m);
        if (r != CUDA_SUCCESS) {
            hed_why_set(&q->why, "memory cannot be copied on the device: CUDA error %d", (int)r);
            return HED_EIO;
        }
        q->answer.written += m->size;
    }
    return copy_to_host(w, &q->why);
}

static int
make_staging(struct hed_remote_staging *w, struct hed_remote_hasher *h,
             const struct hed_snap_reader *parent, struct hed_remote_request *q)
{
    int err = hed_remote_extents_list(w->remote, &w->list, &q->why);

    if (err)
        return err;
    hed_remote_hasher_hide(h, &w->list);
    w->chunks = calloc(w->list.chunks + 1, sizeof *w->chunks);
    w->hashes = calloc(w->list.chunks + 1, sizeof *w->hashes);
    w->places = calloc(w->list.chunks + 1, sizeof *w->places);
    w->host = calloc(w->list.chunks + 1, sizeof *w->host);
    if (!w->chunks || !w->hashes || !w->places || !w->host)
        return HED_ENOMEM;
    hed_remote_extents_cut(&w->list, w->chunks);
    err = hed_remote_hasher_run(h, w->chunks, w->list.chunks, w->hashes, &q->why);
    if (!err)
        err = place_chunks(w, parent);
    return err ? err : fill_staging(w, q);
}

int
hed_remote_staging(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    const uint64_t whole = hed_now_ns();
    struct hed_remote *r = a->remote;
    struct hed_remote_staging *w = calloc(1, sizeof *w);
    struct hed_snap_reader *parent = NULL;
    struct hed_remote_hasher *h = NULL;
    uint64_t begin = 0;
    int err = w ? hed_remote_open_parent(q, 0, &parent) : HED_ENOMEM;

    if (w)
        w->remote = r;
    if (!err)
        err = hed_remote_hasher_open(r, hed_remote_guess_chunks(r), &h, &q->why);
    if (!err)
        err = hed_remote_hold_program(a, q, &begin);
    if (!err) {
        err = make_staging(w, h, parent, q);
        if (!err)
            err = hed_remote_part(r, true, &q->why);
        if (err)
            hed_remote_release(r);
        q->answer.stall_ns = hed_now_ns() - begin;
    }
    hed_snap_reader_free(parent);
    /* While the worker is parked it keeps the kernel; afterwards it is not needed. */
    if (err) {
        hed_remote_hasher_close(h);
        free_staging(w);
        return err;
    }
    w->hasher = h;
    a->staging = w;
    a->state = HED_TALK_PARKED;
    q->answer.total_ns = hed_now_ns() - whole;
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct staging_writing {
    struct hed_remote_staging *staging;
    struct hed_snap_writer *writer;
};

static int
write_staged_chunk(void *arg, const struct hed_remote_chunk *c, void *data, struct hed_why *why)
{
    const struct staging_writing *k = arg;

    return hed_remote_put_chunk(k->writer, c, data, &k->staging->hashes[c->tag], why);
}

/* Everything but what is in the staging copy, whose chunks are moved to `left`. */
static int
write_known_chunks(struct hed_remote_staging *w, struct hed_snap_writer *to,
                   struct hed_remote_chunk *left, size_t *count, struct hed_why *why)
{
    static const char zeros[HED_EXTENT_CHUNK];
    int err = 0;

    *count = 0;
    for (uint64_t i = 0; i < w->list.chunks && !err; i++) {
        const struct hed_remote_chunk *c = &w->chunks[i];

        if (w->places[i] == IN_PARENT)
            err = hed_snap_chunk_same(to, c->id, c->index, &w->hashes[i]);
        else if (w->places[i] == IS_ZERO)
            err = hed_snap_chunk_put(to, c->id, c->index, zeros, c->size, &w->hashes[i]);
        else if (w->places[i] == IN_HOST)
            err = hed_snap_chunk_put(to, c->id, c->index, w->host[i], c->size, NULL);
        else
            left[(*count)++] = *c;
    }
    if (err)
        hed_why_set(why, "the snapshot cannot be written: %s", hed_err_text(err));
    return err;
}

static int
write_staged(struct hed_remote_agent *a, struct hed_remote_request *q, struct hed_remote_staging *w)
{
    struct hed_remote_chunk *left = calloc(w->list.chunks + 1, sizeof *left);
    uint32_t *ids = calloc(w->list.count + 1, sizeof *ids);
    struct hed_snap_reader *parent = NULL;
    struct hed_remote_pump *p = NULL;
    struct staging_writing k = {.staging = w};
    size_t count = 0;
    int err = left && ids ? hed_remote_open_parent(q, 1, &parent) : HED_ENOMEM;

    if (!err)
        err = hed_remote_open_writer(a, q, parent, true, &k.writer);
    if (!err)
        err = hed_remote_begin_extents(&w->list, k.writer, ids, &q->why);
    for (uint64_t i = 0; i < w->list.chunks && !err; i++) {
        w->chunks[i].id = ids[w->chunks[i].id];
        w->chunks[i].tag = (uint32_t)i;
    }
    if (!err)
        err = write_known_chunks(w, k.writer, left, &count, &q->why);
    if (!err)
        err = hed_remote_pump_open(a->remote, &p, &q->why);
    if (!err)
        err = hed_remote_pump_read(p, left, count, write_staged_chunk, &k, &q->why);
    for (size_t i = 0; i < count; i++)
        q->answer.written += left[i].size;
    if (!err)
        err = hed_snap_writer_finish(k.writer, &q->why);
    else if (k.writer && !q->why.text[0])
        hed_why_set(&q->why, "%s", hed_snap_writer_reason(k.writer));
    hed_remote_pump_close(p);
    hed_snap_writer_free(k.writer);
    hed_snap_reader_free(parent);
    free(ids);
    free(left);
    return err;
}

/* Returns to the worker. If that is gone, the program is released and finds out. */
static int
return_to_worker(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    int err = hed_remote_return(a->remote, &q->why);

    for (int i = 1; err && i < RETURN_TRIES; i++) {
        hed_sleep_ns(RETURN_NAP_NS);
        err = hed_remote_return(a->remote, &q->why);
    }
    if (!err)
        return 0;
    hed_remote_waited_in_vain(a->remote, q->why.text);
    hed_remote_staging_drop(a);
    a->state = HED_TALK_RUNNING;
    hed_remote_release(a->remote);
    return err;
}

int
hed_remote_continue(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    const uint64_t whole = hed_now_ns();
    struct hed_remote_staging *w = a->staging;
    int err = return_to_worker(a, q);

    if (err)
        return err;
    hed_remote_release(a->remote);
    a->state = HED_TALK_RUNNING;
    a->staging = NULL;
    q->answer.stall_ns = hed_now_ns() - whole;
    if (q->asked.fds) {
        struct hed_talk_answer first = q->answer;

        hed_remote_describe_self(a, &first);
        first.flags |= HED_TALK_MORE;
        (void)hed_talk_answer(q->peer, &first);
        err = write_staged(a, q, w);
    }
    hed_remote_hasher_close(w->hasher);
    free_staging(w);
    q->answer.total_ns = hed_now_ns() - whole;
    return err;
}
