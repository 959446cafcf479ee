/* Rounds of a move. See rounds.h, and precopy.c for the invariants. */
#include "move/session/rounds.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/number.h"
#include "driver/driver.h"
#include "move/session/early.h"
#include "remote/client.h"

#define ROUNDS_MOST 6u                   /* while the program runs */
#define TRIES 3u                         /* of a round that fails because a context ends */
#define BUDGET_NS (50 * HED_NS_PER_MS)   /* for the last round, unless the request says otherwise */
#define BATCH_NS (20 * HED_NS_PER_MS)    /* for which memory cannot be unmapped, about */
#define BATCH_LEAST ((uint64_t)16 << 20) /* bytes */
#define BATCH_MOST ((uint64_t)16 << 30)
#define STEPS_MOST 8u               /* of the last round */
#define STEP_NS (2 * HED_NS_PER_MS) /* of hashing, about: each costs a launch and a wait */
#define STEP_LEAST 32u              /* chunks */

/* ---- what there is --------------------------------------------------------------------------- */

void
hed_remote_forget_round(struct hed_remote_going *g)
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

/* A context for each device that the standby has, too. */
static void
choose_contexts(struct hed_remote_going *g)
{
    const struct hed_remote_standby *t = g->standby;

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
is_precopied(const struct hed_remote_going *g, const struct hed_remote_standby_range *n)
{
    return g->contexts[n->device] && !hed_remote_hasher_owns(g->hasher, n->at) &&
           hed_remote_is_lived_in(g->remote->driver, n->at, n->size);
}

int
hed_remote_list_round(struct hed_remote_going *g)
{
    const struct hed_remote_standby *t = g->standby;
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
        const struct hed_remote_standby_range *n = &t->ranges[i];
        struct hed_remote_extent *e = &g->extents[i];

        if (!is_precopied(g, n))
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
batch_bytes(const struct hed_remote_pace *p)
{
    if (p->ns == 0)
        return BATCH_LEAST;
    return hed_clamp((uint64_t)((double)p->bytes / (double)p->ns * (double)BATCH_NS), BATCH_LEAST,
                     BATCH_MOST);
}

/* Takes chunks that are still mapped, up to a number of bytes, from chunks[*next] on. r->unmap_lock
 * is held. */
static size_t
take_batch_locked(struct hed_remote_going *g, size_t *next, uint64_t most,
                  struct hed_remote_chunk *out, uint64_t *bytes)
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

int
hed_remote_in_batches(struct hed_remote_going *g, struct hed_remote_pace *pace,
                      int (*fn)(struct hed_remote_going *g, struct hed_remote_chunk *batch,
                                size_t count))
{
    struct hed_remote_chunk *batch = calloc(g->count + 1, sizeof *batch);
    int err = batch ? 0 : HED_ENOMEM;

    for (size_t next = 0; next < g->count && !err;) {
        const uint64_t begin = hed_now_ns();
        uint64_t bytes;
        size_t n;

        hed_lock(&g->remote->unmap_lock);
        n = take_batch_locked(g, &next, batch_bytes(pace), batch, &bytes);
        if (n)
            err = fn(g, batch, n);
        hed_unlock(&g->remote->unmap_lock);
        pace->bytes += bytes;
        pace->ns += hed_now_ns() - begin;
        if (!g->held)
            hed_remote_orders_going(g->request, g->total + g->round);
    }
    free(batch);
    return err;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static struct hed_remote_standby_range *
range_of_chunk(const struct hed_remote_going *g, const struct hed_remote_chunk *c)
{
    return &g->standby->ranges[c->id];
}

/* Where the hashes of a batch go: a chunk's own place is found by its extent and index. */
static int
hash_batch(struct hed_remote_going *g, struct hed_remote_chunk *batch, size_t count)
{
    int err = hed_remote_hasher_run(g->hasher, batch, count, g->hashes, g->why);

    for (size_t i = 0; i < count && !err; i++) {
        struct hed_remote_standby_range *n = range_of_chunk(g, &batch[i]);

        if (!hed_snap_hash_same(&n->hashes[batch[i].index], &g->hashes[i]))
            n->known[batch[i].index] = false;
    }
    return err;
}

/* Moves the chunks for which `known` is as given to the front. */
static void
keep_chunks(struct hed_remote_going *g, bool known)
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
find_changed(struct hed_remote_going *g)
{
    const size_t all = g->count;
    struct hed_remote_chunk *whole = calloc(all + 1, sizeof *whole);
    int err = whole ? 0 : HED_ENOMEM;

    if (err)
        return err;
    for (size_t i = 0; i < all; i++)
        whole[i] = g->chunks[i];
    keep_chunks(g, true);
    err = hed_remote_in_batches(g, &g->hashing, hash_batch);
    for (size_t i = 0; i < all; i++)
        g->chunks[i] = whole[i];
    g->count = all;
    free(whole);
    keep_chunks(g, false);
    return err;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* A copy thread: a chunk has been read. */
static int
pass_chunk(void *arg, const struct hed_remote_chunk *c, void *data, struct hed_why *why)
{
    struct hed_remote_going *g = arg;
    struct hed_remote_standby_range *n = range_of_chunk(g, c);
    int err;

    /* After the last round nothing is compared any more. */
    if (!g->held || g->request->asked.flags & HED_TALK_VERIFY)
        hed_snap_hash(data, c->size, &n->hashes[c->index]);
    err = hed_remote_standby_write(g->standby, c->extent->ctx->object.handle,
                                   c->extent->at + c->offset, data, c->size, why);
    n->known[c->index] = err == 0;
    return err;
}

static int
copy_batch(struct hed_remote_going *g, struct hed_remote_chunk *batch, size_t count)
{
    int err = hed_remote_pump_read(g->pump, batch, count, pass_chunk, g, g->why);

    for (size_t i = 0; i < count && !err; i++)
        g->round += batch[i].size;
    return err;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static int
tell_standby(struct hed_remote_going *g)
{
    const int err = hed_remote_standby_adjust(g->standby, false, g->why);

    return err ? err : hed_remote_early_tell(g->standby);
}

static int
go_round(struct hed_remote_going *g)
{
    int err = g->standby->coded ? 0 : tell_standby(g); /* first without what is ours */

    g->round = 0;
    if (!err)
        err = tell_standby(g);
    if (!err)
        err = hed_remote_list_round(g);
    if (!err)
        err = find_changed(g);
    if (!err)
        err = hed_remote_in_batches(g, &g->copying, copy_batch);
    if (!err)
        err = hed_remote_standby_settle(g->standby, g->why);
    hed_remote_forget_round(g);
    g->total += g->round;
    return err;
}

/* How long it takes to copy so much. */
static uint64_t
copying_ns(const struct hed_remote_going *g, uint64_t bytes)
{
    return g->copying.bytes == 0
               ? 0
               : (uint64_t)((double)bytes / (double)g->copying.bytes * (double)g->copying.ns);
}

/* Rounds while the program runs: until little is left, or no less than before. */
int
hed_remote_go_rounds(struct hed_remote_going *g, uint32_t *rounds)
{
    const uint32_t budget_ms = g->request->asked.budget_ms;
    const uint64_t budget = budget_ms ? budget_ms * HED_NS_PER_MS : BUDGET_NS;
    uint64_t before = UINT64_MAX;
    unsigned tries = 0;

    for (*rounds = 0; *rounds < ROUNDS_MOST; ++*rounds) {
        int err = go_round(g);

        while (err && !hed_remote_is_standby_lost(g) && err != HED_ENOMEM && ++tries < TRIES)
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

/* ---- the last round -------------------------------------------------------------------------- */

/* Takes the chunks that have never been written out of the list, into `out`. Says how many. */
static size_t
take_unknown(struct hed_remote_going *g, struct hed_remote_chunk *out)
{
    size_t unknown = 0, left = 0;

    for (size_t i = 0; i < g->count; i++) {
        const struct hed_remote_chunk c = g->chunks[i];

        if (range_of_chunk(g, &c)->known[c.index])
            g->chunks[left++] = c;
        else
            out[unknown++] = c;
    }
    g->count = left;
    return unknown;
}

/* Moves the chunks of a batch that have changed to its front. The batch has been hashed. */
static size_t
part_changed(struct hed_remote_going *g, struct hed_remote_chunk *batch, size_t count)
{
    size_t changed = 0;

    for (size_t i = 0; i < count; i++) {
        const struct hed_remote_chunk c = batch[i];

        if (hed_snap_hash_same(&range_of_chunk(g, &c)->hashes[c.index], &g->hashes[i]))
            continue;
        batch[i] = batch[changed];
        batch[changed++] = c;
    }
    return changed;
}

static int
compare_chunks(const void *left, const void *right)
{
    const struct hed_remote_chunk *a = left, *b = right;

    return a->extent != b->extent ? (a->extent > b->extent) - (a->extent < b->extent)
                                  : (a->offset > b->offset) - (a->offset < b->offset);
}

/* Neighbours are one copy. */
static int
copy_some(struct hed_remote_going *g, struct hed_remote_chunk *some, size_t count)
{
    if (count == 0)
        return 0;
    qsort(some, count, sizeof *some, compare_chunks);
    return copy_batch(g, some, count);
}

/* How many chunks are hashed at a time, as fast as they were before. */
static size_t
step_chunks(const struct hed_remote_going *g)
{
    const struct hed_remote_pace *p = &g->hashing;
    const double per_ns = p->ns ? (double)p->bytes / (double)p->ns : 0;
    const size_t paced = (size_t)(per_ns * (double)STEP_NS) / HED_EXTENT_CHUNK;
    const size_t shared = (size_t)hed_divide_up(g->count, STEPS_MOST);

    return hed_min(hed_max(hed_max(paced, shared), STEP_LEAST), hed_remote_hasher_room(g->hasher));
}

/* One batch is copied while the next one is hashed. */
static int
copy_changed(struct hed_remote_going *g)
{
    struct hed_remote_chunk *unknown = calloc(g->count + 1, sizeof *unknown);
    const size_t fresh = unknown ? take_unknown(g, unknown) : 0;
    const size_t step = step_chunks(g);
    int err = unknown ? 0 : HED_ENOMEM;

    if (!err && g->count)
        err = hed_remote_hasher_begin(g->hasher, g->chunks, hed_min(step, g->count), g->why);
    if (!err)
        err = copy_some(g, unknown, fresh);
    hed_remote_lap(g->remote, HED_TALK_COPY);
    for (size_t at = 0, n; at < g->count && !err; at += n) {
        struct hed_remote_chunk *batch = g->chunks + at;

        n = hed_min(step, g->count - at);
        err = hed_remote_hasher_end(g->hasher, batch, n, g->hashes, g->why);
        if (!err && at + n < g->count)
            err = hed_remote_hasher_begin(g->hasher, batch + n, hed_min(step, g->count - at - n),
                                          g->why);
        hed_remote_lap(g->remote, HED_TALK_HASH);
        if (!err)
            err = copy_some(g, batch, part_changed(g, batch, n));
        hed_remote_lap(g->remote, HED_TALK_COPY);
    }
    free(unknown);
    return err;
}

int
hed_remote_last_round(struct hed_remote_going *g)
{
    int err;

    g->held = true;
    g->round = 0;
    err = hed_remote_standby_adjust(g->standby, true, g->why);
    if (!err)
        err = hed_remote_list_round(g);
    hed_remote_lap(g->remote, HED_TALK_ADJUST);
    if (!err)
        err = copy_changed(g);
    if (!err)
        err = hed_remote_standby_settle(g->standby, g->why);
    hed_remote_forget_round(g);
    g->total += g->round;
    hed_remote_lap(g->remote, HED_TALK_COPY);
    return err;
}
