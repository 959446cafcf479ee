/* Moves a program while it runs: memory goes ahead of it.
 *
 *   while the program runs                                     while it is held
 *   twin ──> round 0: all memory ──> round 1: what has ──> ... ──> hash, last round,
 *            is copied               changed since                 rebuild at the twin
 *
 *   a round:  hash at the old worker ──differs from what was written──> read, write at the twin
 *
 * What was written is hashed here, on its way: a hash that the old worker had made before or after
 * the copy would not tell which bytes were read in between.
 *
 * Only device memory goes ahead. Arrays, variables and physical memory are copied in the last
 * round.
 *
 * Invariants:
 * 1. Memory is read in batches, each under r->ahead, and only if it is mapped then. Memory is
 *    unmapped under the same lock. So no batch reads memory that is gone, which would fail the
 *    program's context. A batch takes about BATCH_NS.
 * 2. Nothing of the program changes before the last round is complete. If anything fails until
 *    then, the twin is closed, and the program goes on.
 */
#include <stdlib.h>

#include "backends/remote/memory.h"
#include "backends/remote/queue.h"
#include "backends/remote/snap/attend.h"
#include "backends/remote/snap/early.h"
#include "backends/remote/snap/shadow.h"
#include "backends/remote/snap/twin.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "driver/context/context.h"

#define ROUNDS_MOST 6u                   /* while the program runs */
#define TRIES 3u                         /* of a round that fails because a context ends */
#define BUDGET_NS (50 * HED_NS_PER_MS)   /* for the last round, unless the request says otherwise */
#define BATCH_NS (20 * HED_NS_PER_MS)    /* for which memory cannot be unmapped, about */
#define BATCH_LEAST ((uint64_t)16 << 20) /* bytes */
#define BATCH_MOST ((uint64_t)16 << 30)

/* One kind of work in batches, with its speed. */
struct pace {
    uint64_t bytes, ns; /* so far */
};

struct going {
    struct hed_remote_attendant *attendant;
    struct hed_remote_request *request;
    struct hed_remote *remote;
    struct hed_remote_twin *twin;
    struct hed_remote_pump *pump;
    struct hed_remote_hasher *hasher;
    struct hed_remote_hoard *hoard; /* for what does not go ahead */
    struct hed_why *why;
    struct hed_context *contexts[HED_PROFILE_DEVICES_MAX]; /* references; to copy in */
    struct pace copying, hashing;
    bool without_pinned; /* pinned memory is left for the last round */
    bool held;           /* the program is held: this is the last round */
    uint64_t round;      /* bytes copied in this round */
    uint64_t total;      /* in all rounds */

    /* Of the present round. */
    struct hed_remote_extent *extents; /* as the twin's ranges */
    struct hed_remote_chunk *chunks;
    struct hed_snap_hash *hashes;
    size_t count;
};

/* ---- what there is --------------------------------------------------------------------------- */

static void
forget_round(struct going *g)
{
    free(g->extents);
    free(g->chunks);
    free(g->hashes);
    g->extents = NULL;
    g->chunks = NULL;
    g->hashes = NULL;
    g->count = 0;
    for (int i = 0; i < HED_PROFILE_DEVICES_MAX; i++) {
        if (g->contexts[i])
            hed_context_unref(g->contexts[i]);
        g->contexts[i] = NULL;
    }
}

/* A context for each device that the twin has, too. */
static void
choose_contexts(struct going *g)
{
    const struct hed_remote_twin *t = g->twin;

    for (size_t i = 0; i < t->context_count; i++) {
        struct hed_context *c = t->contexts[i], **chosen = &g->contexts[c->device->ordinal];

        if (!hed_context_alive(c) || (*chosen && !c->primary))
            continue;
        if (*chosen)
            hed_context_unref(*chosen);
        hed_context_ref(c);
        *chosen = c;
    }
}

static bool
goes_ahead(const struct going *g, const struct hed_remote_twin_range *n)
{
    return g->contexts[n->device] && !hed_remote_hasher_owns(g->hasher, n->at) &&
           hed_remote_is_lived_in(g->remote->driver, n->at, n->size);
}

/* Lists the chunks of all memory that goes ahead. The twin has been adjusted. */
static int
list_round(struct going *g)
{
    const struct hed_remote_twin *t = g->twin;
    size_t chunks = 0;

    choose_contexts(g);
    for (size_t i = 0; i < t->count; i++)
        chunks += (size_t)hed_divide_up(t->ranges[i].size, HED_EXTENT_CHUNK);
    g->extents = calloc(t->count + 1, sizeof *g->extents);
    g->chunks = calloc(chunks + 1, sizeof *g->chunks);
    g->hashes = calloc(chunks + 1, sizeof *g->hashes);
    if (!g->extents || !g->chunks || !g->hashes)
        return HED_ENOMEM;
    for (size_t i = 0; i < t->count; i++) {
        const struct hed_remote_twin_range *n = &t->ranges[i];
        struct hed_remote_extent *e = &g->extents[i];

        if (!goes_ahead(g, n))
            continue;
        *e = (struct hed_remote_extent){.about = {.kind = HED_SNAP_DEVICE,
                                                  .device = (uint32_t)n->device,
                                                  .key = n->at,
                                                  .size = n->size,
                                                  .name = ""},
                                        .ctx = g->contexts[n->device],
                                        .at = n->at};
        for (uint64_t at = 0; at < n->size; at += HED_EXTENT_CHUNK)
            g->chunks[g->count++] =
                (struct hed_remote_chunk){.extent = e,
                                          .offset = at,
                                          .size = (uint32_t)hed_min(HED_EXTENT_CHUNK, n->size - at),
                                          .index = (uint32_t)(at / HED_EXTENT_CHUNK),
                                          .id = (uint32_t)i};
    }
    return 0;
}

/* ---- batches --------------------------------------------------------------------------------- */

static uint64_t
batch_bytes(const struct going *g, const struct pace *p)
{
    if (g->held) /* and nothing is unmapped */
        return BATCH_MOST;
    if (p->ns == 0)
        return BATCH_LEAST;
    return hed_clamp((uint64_t)((double)p->bytes / (double)p->ns * (double)BATCH_NS), BATCH_LEAST,
                     BATCH_MOST);
}

/* Takes chunks that are still mapped, up to a number of bytes, from chunks[*next] on. r->ahead is
 * held. */
static size_t
take_batch_locked(struct going *g, size_t *next, uint64_t most, struct hed_remote_chunk *out,
                  uint64_t *bytes)
{
    const struct hed_remote_extent *last = NULL;
    size_t n = 0;
    bool mapped = false;

    for (*bytes = 0; *next < g->count && *bytes < most; ++*next) {
        const struct hed_remote_chunk *c = &g->chunks[*next];

        if (c->extent != last)
            mapped = hed_remote_mapping_has(g->remote, HED_MAP_DEVICE, c->extent->at,
                                            c->extent->about.size);
        last = c->extent;
        if (!mapped)
            continue;
        out[n++] = *c;
        *bytes += c->size;
    }
    return n;
}

/* Does something with all chunks, in batches. */
static int
in_batches(struct going *g, struct pace *pace,
           int (*fn)(struct going *g, struct hed_remote_chunk *batch, size_t count))
{
    struct hed_remote_chunk *batch = calloc(g->count + 1, sizeof *batch);
    int err = batch ? 0 : HED_ENOMEM;

    for (size_t next = 0; next < g->count && !err;) {
        const uint64_t begin = hed_now_ns();
        uint64_t bytes;
        size_t n;

        hed_lock(&g->remote->ahead);
        n = take_batch_locked(g, &next, batch_bytes(g, pace), batch, &bytes);
        if (n)
            err = fn(g, batch, n);
        hed_unlock(&g->remote->ahead);
        pace->bytes += bytes;
        pace->ns += hed_now_ns() - begin;
    }
    free(batch);
    return err;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static struct hed_remote_twin_range *
range_of_chunk(const struct going *g, const struct hed_remote_chunk *c)
{
    return &g->twin->ranges[c->id];
}

/* Where the hashes of a batch go: a chunk's own place is found by its extent and index. */
static int
hash_batch(struct going *g, struct hed_remote_chunk *batch, size_t count)
{
    int err = hed_remote_hasher_run(g->hasher, batch, count, g->hashes, g->why);

    for (size_t i = 0; i < count && !err; i++) {
        struct hed_remote_twin_range *n = range_of_chunk(g, &batch[i]);

        if (!hed_snap_hash_same(&n->hashes[batch[i].index], &g->hashes[i]))
            n->known[batch[i].index] = false;
    }
    return err;
}

/* Moves the chunks for which `known` is as given to the front. */
static void
keep_chunks(struct going *g, bool known)
{
    size_t left = 0;

    for (size_t i = 0; i < g->count; i++)
        if (range_of_chunk(g, &g->chunks[i])->known[g->chunks[i].index] == known)
            g->chunks[left++] = g->chunks[i];
    g->count = left;
}

/* Finds out which chunks have changed since they were written, and keeps only those, and those that
 * never were. */
static int
find_changed(struct going *g)
{
    const size_t all = g->count;
    struct hed_remote_chunk *whole = calloc(all + 1, sizeof *whole);
    int err = whole ? 0 : HED_ENOMEM;

    if (err)
        return err;
    for (size_t i = 0; i < all; i++)
        whole[i] = g->chunks[i];
    keep_chunks(g, true);
    err = in_batches(g, &g->hashing, hash_batch);
    for (size_t i = 0; i < all; i++)
        g->chunks[i] = whole[i];
    g->count = all;
    free(whole);
    keep_chunks(g, false);
    return err;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The crew: a chunk has been read. */
static int
pass_chunk(void *arg, const struct hed_remote_chunk *c, void *data, struct hed_why *why)
{
    struct going *g = arg;
    struct hed_remote_twin_range *n = range_of_chunk(g, c);
    int err;

    /* After the last round nothing is compared any more. */
    if (!g->held || g->request->asked.flags & HED_TALK_VERIFY)
        hed_snap_hash(data, c->size, &n->hashes[c->index]);
    err = hed_remote_twin_write(g->twin, c->extent->ctx->object.handle, c->extent->at + c->offset,
                                data, c->size, why);
    n->known[c->index] = err == 0;
    return err;
}

static int
copy_batch(struct going *g, struct hed_remote_chunk *batch, size_t count)
{
    int err = hed_remote_pump_read(g->pump, batch, count, pass_chunk, g, g->why);

    for (size_t i = 0; i < count && !err; i++)
        g->round += batch[i].size;
    return err;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool
is_twin_lost(const struct going *g)
{
    return atomic_load_explicit(&g->twin->remote.lost, memory_order_relaxed);
}

static int
go_round(struct going *g)
{
    int err = hed_remote_twin_adjust(g->twin, g->held, g->why);

    g->round = 0;
    if (!err && !g->held)
        err = hed_remote_early_tell(g->twin);
    if (!err)
        err = list_round(g);
    hed_remote_lap(g->remote, HED_TALK_ADJUST);
    if (!err)
        err = find_changed(g);
    hed_remote_lap(g->remote, HED_TALK_HASH);
    if (!err)
        err = in_batches(g, &g->copying, copy_batch);
    if (!err)
        err = hed_remote_twin_settle(g->twin, g->why);
    forget_round(g);
    g->total += g->round;
    hed_remote_lap(g->remote, HED_TALK_COPY);
    return err;
}

/* How long it takes to copy so much. */
static uint64_t
copying_ns(const struct going *g, uint64_t bytes)
{
    return g->copying.bytes == 0
               ? 0
               : (uint64_t)((double)bytes / (double)g->copying.bytes * (double)g->copying.ns);
}

/* Rounds while the program runs: until little is left, or no less than before. */
static int
go_rounds(struct going *g, uint32_t *rounds)
{
    const uint32_t budget_ms = g->request->asked.budget_ms;
    const uint64_t budget = budget_ms ? budget_ms * HED_NS_PER_MS : BUDGET_NS;
    uint64_t before = UINT64_MAX;
    unsigned tries = 0;

    for (*rounds = 0; *rounds < ROUNDS_MOST; ++*rounds) {
        int err = go_round(g);

        while (err && !is_twin_lost(g) && err != HED_ENOMEM && ++tries < TRIES)
            err = go_round(g);
        if (err)
            return err;
        if (*rounds > 0 && (copying_ns(g, g->round) <= budget || g->round > before / 10 * 9)) {
            ++*rounds;
            break;
        }
        before = g->round;
    }
    return 0;
}

/* ---- taking over ----------------------------------------------------------------------------- */

struct taking_over {
    struct hed_remote_source source; /* must come first */
    struct going *going;
    bool verify;
};

static int
verify_batch(struct going *g, struct hed_remote_chunk *batch, size_t count)
{
    int err = hed_remote_hasher_run(g->hasher, batch, count, g->hashes, g->why);

    for (size_t i = 0; i < count && !err; i++) {
        const struct hed_remote_twin_range *n = range_of_chunk(g, &batch[i]);

        if (n->known[batch[i].index] &&
            !hed_snap_hash_same(&n->hashes[batch[i].index], &g->hashes[i])) {
            hed_why_set(g->why, "memory at %#llx is not what was sent",
                        (unsigned long long)(batch[i].extent->at + batch[i].offset));
            err = HED_EFORMAT;
        }
    }
    return err;
}

/* The program's driver is at the new worker. */
static int
verify_there(struct going *g)
{
    int err =
        hed_remote_hasher_open(g->remote, hed_remote_guess_chunks(g->remote), &g->hasher, g->why);

    if (!err)
        err = list_round(g);
    if (!err)
        err = in_batches(g, &g->hashing, verify_batch);
    forget_round(g);
    hed_remote_hasher_close(g->hasher);
    g->hasher = NULL;
    return err;
}

/* Writes what did not go ahead. It is little, usually, so no pump is made for it. */
static int
write_rest(struct going *g, const struct hed_remote_extents *x)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < x->count && result == CUDA_SUCCESS; i++) {
        const struct hed_remote_extent *e = &x->all[i];
        const struct hed_remote_chunk c = {.extent = e, .id = (uint32_t)i};
        const char *from = hed_remote_hoard_find(g->hoard, &c);

        if (!from) {
            hed_why_set(g->why, "the program has %s memory (%#llx) that was not copied",
                        hed_snap_kind_name(e->about.kind), (unsigned long long)e->about.key);
            return HED_ENOTFOUND;
        }
        result = hed_remote_extent_copy(g->remote, e->ctx->legacy, e, 0, 0, e->about.size,
                                        (void *)(uintptr_t)from, false);
        if (result == CUDA_SUCCESS && (i + 1 == x->count || x->all[i + 1].ctx != e->ctx))
            result = hed_stream_synchronize(e->ctx->legacy);
    }
    if (result == CUDA_SUCCESS)
        return 0;
    hed_why_set(g->why, "memory cannot be written: CUDA error %d", (int)result);
    return HED_EIO;
}

static int
fill_rest(struct hed_remote_source *self, struct hed_remote *r, struct hed_why *why)
{
    const struct taking_over *k = (const struct taking_over *)self;
    struct hed_remote_extents x;
    int err = hed_remote_extents_list(r, &x, why);

    if (err)
        return err;
    hed_remote_extents_rest(&x);
    err = write_rest(k->going, &x);
    hed_remote_extents_free(&x);
    hed_remote_lap(r, HED_TALK_REST);
    if (!err && k->verify)
        err = verify_there(k->going);
    hed_remote_lap(r, HED_TALK_VERIFIED);
    return err;
}

/* What is ours must not be taken along: the hasher's kernel would have to be loaded there, and
 * variables of the program would lie elsewhere. Only the pump may come, if the twin has its memory
 * already: giving that back takes long. */
static void
drop_tools(struct going *g, bool all)
{
    hed_remote_hasher_close(g->hasher);
    g->hasher = NULL;
    if (all) {
        hed_remote_pump_close(g->pump);
        g->pump = NULL;
    }
}

/* The program is held. */
static int
take_over(struct going *g)
{
    struct hed_talk_answer *answer = &g->request->answer;
    struct hed_remote_moved moved = {.bytes = 0};
    struct taking_over k = {.source = {.twin = &g->twin->remote, .fill = fill_rest},
                            .going = g,
                            .verify = g->request->asked.flags & HED_TALK_VERIFY};
    int err;

    g->held = true;
    err = go_round(g);
    if (!err)
        err = hed_remote_hoard_take(g->hoard, g->remote, g->pump, true, &moved, g->why);
    /* Relaxed: the crew is done. */
    answer->last_round = g->round + atomic_load_explicit(&moved.bytes, memory_order_relaxed);
    hed_remote_lap(g->remote, HED_TALK_REST);
    drop_tools(g, !g->twin->shared);
    hed_remote_lap(g->remote, HED_TALK_TOOLS);
    hed_remote_twin_written(g->twin);
    hed_remote_early_settle(g->twin);
    /* Dropping them may have left empty blocks, or taken some away. */
    if (!err)
        err = hed_remote_twin_adjust(g->twin, g->held, g->why);
    hed_remote_lap(g->remote, HED_TALK_ADJUST);
    if (err)
        return err;
    return hed_remote_arrive(g->remote, NULL, &k.source, g->why);
}

static int
prepare_going(struct going *g, bool *stays)
{
    struct hed_remote *r = g->remote;
    uint64_t at, size;
    int err = hed_remote_twin_open(r, g->request->asked.address, &g->twin, g->why);

    *stays = err && err != HED_ENOTSUP;
    if (!err) {
        g->twin->without_pinned = g->without_pinned;
        err = hed_remote_pump_open(r, &g->pump, g->why);
    }
    if (!err && hed_remote_pump_pinned(g->pump, &at, &size))
        hed_remote_twin_offer(g->twin, at, size);
    if (!err)
        err = hed_remote_hasher_open(r, hed_remote_guess_chunks(r), &g->hasher, g->why);
    if (!err)
        err = hed_remote_hoard_make(g->pump, 0, &g->hoard, g->why);
    return err;
}

static int
go_once(struct going *g, uint64_t *begin, uint32_t *rounds, bool *stays)
{
    int err = prepare_going(g, stays);

    if (!err)
        err = go_rounds(g, rounds);
    if (!err) {
        *stays = true; /* it has been tried with the program held */
        err = hed_remote_hold_program(g->attendant, g->request, begin);
        if (!err) {
            err = take_over(g);
            hed_remote_release(g->remote);
            g->request->answer.stall_ns += g->remote->laps.last - *begin;
        }
    } else if (g->twin) {
        *stays = is_twin_lost(g) || err == HED_ENOMEM;
    }
    drop_tools(g, true);
    hed_remote_hoard_free(g->hoard);
    hed_remote_twin_close(g->twin);
    return err;
}

int
hed_remote_move_ahead(struct hed_remote_attendant *a, struct hed_remote_request *q, bool *stays)
{
    const uint64_t whole = hed_now_ns();
    struct going g = {.attendant = a, .request = q, .remote = a->remote, .why = &q->why};
    uint64_t begin = 0, total;
    uint32_t rounds = 0;
    int err = go_once(&g, &begin, &rounds, stays);

    total = g.total;
    if (err == HED_EEXIST) { /* pinned memory came and went */
        hed_info(REMOTE,
                 "pinned memory has changed: the move begins again, and leaves it for last");
        g = (struct going){.attendant = a,
                           .request = q,
                           .remote = a->remote,
                           .why = &q->why,
                           .without_pinned = true};
        err = go_once(&g, &begin, &rounds, stays);
        total += g.total;
    }
    hed_remote_report_move(a, q);
    q->answer.rounds = rounds + 1;
    q->answer.written = total;
    q->answer.total_ns = hed_now_ns() - whole;
    return err;
}
