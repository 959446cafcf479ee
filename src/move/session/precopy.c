/* Moves a program while it runs, by precopy.
 *
 *   while the program runs                                     while it is held
 *   standby ──> round 0: all memory ──> round 1: what has ──> ... ──> hash, last round,
 *               is copied               changed since                 rebuild at the standby
 *
 *   a round:  hash at the old worker ──differs from what was written──> read, write at the standby
 *
 * What was written is hashed here, on its way: a hash that the old worker had made before or after
 * the copy would not tell which bytes were read in between.
 *
 * Only device memory is precopied. Arrays, variables and physical memory are copied in the last
 * round.
 *
 * Invariants:
 * 1. Memory is read in batches, each under r->unmap_lock, and only if it is mapped then. Memory is
 *    unmapped under the same lock. So no batch reads memory that is gone, which would fail the
 *    program's context. A batch takes about 20 ms.
 * 2. Nothing of the program changes before the last round is complete. If anything fails until
 *    then, the standby is closed, and the program goes on.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "driver/driver.h"
#include "move/session/early.h"
#include "move/session/rounds.h"
#include "move/session/staging.h"
#include "remote/client.h"

/* ---- taking over ----------------------------------------------------------------------------- */

struct taking_over {
    struct hed_remote_source source; /* must come first */
    struct hed_remote_going *going;
    bool verify;
};

static int
verify_batch(struct hed_remote_going *g, struct hed_remote_chunk *batch, size_t count)
{
    int err = hed_remote_hasher_run(g->hasher, batch, count, g->hashes, g->why);

    for (size_t i = 0; i < count && !err; i++) {
        const struct hed_remote_standby_range *n = &g->standby->ranges[batch[i].id];

        if (n->known[batch[i].index] &&
            !hed_snap_hash_same(&n->hashes[batch[i].index], &g->hashes[i])) {
            hed_why_set(g->why, "memory at %#llx is not what was sent",
                        (unsigned long long)batch[i].extent->at + batch[i].offset);
            err = HED_EFORMAT;
        }
    }
    return err;
}

/* The program's driver is at the new worker. */
static int
verify_there(struct hed_remote_going *g)
{
    int err =
        hed_remote_hasher_open(g->remote, hed_remote_guess_chunks(g->remote), &g->hasher, g->why);

    if (!err)
        err = hed_remote_list_round(g);
    if (!err)
        err = hed_remote_in_batches(g, &g->hashing, verify_batch);
    hed_remote_forget_round(g);
    hed_remote_hasher_close(g->hasher);
    g->hasher = NULL;
    return err;
}

/* Writes what was not precopied. It is little, usually, so no pump is made for it. */
static int
write_rest(struct hed_remote_going *g, const struct hed_remote_extents *x)
{
    CUresult result = CUDA_SUCCESS;

    for (size_t i = 0; i < x->count && result == CUDA_SUCCESS; i++) {
        const struct hed_remote_extent *e = &x->all[i];
        const struct hed_remote_chunk c = {.extent = e, .id = (uint32_t)i};
        const char *from = hed_remote_host_copy_find(g->host_copy, &c);

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
 * variables of the program would lie elsewhere. Only the pump may come, if the standby has its
 * memory already: giving that back takes long. */
static void
drop_tools(struct hed_remote_going *g, bool all)
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
take_over(struct hed_remote_going *g)
{
    struct hed_talk_answer *answer = &g->request->answer;
    struct hed_remote_moved moved = {.bytes = 0};
    struct taking_over k = {.source = {.standby = &g->standby->remote, .fill = fill_rest},
                            .going = g,
                            .verify = g->request->asked.flags & HED_TALK_VERIFY};
    int err = hed_remote_last_round(g);

    if (!err)
        err = hed_remote_host_copy_take(g->host_copy, g->remote, g->pump, true, &moved, g->why);
    /* Relaxed: the copy threads are done. */
    answer->last_round = g->round + atomic_load_explicit(&moved.bytes, memory_order_relaxed);
    hed_remote_lap(g->remote, HED_TALK_REST);
    drop_tools(g, !g->standby->shared);
    hed_remote_lap(g->remote, HED_TALK_TOOLS);
    hed_remote_standby_written(g->standby);
    hed_remote_early_settle(g->standby);
    /* Dropping them may have left empty blocks, or taken some away. */
    if (!err)
        err = hed_remote_standby_adjust(g->standby, g->held, g->why);
    hed_remote_lap(g->remote, HED_TALK_ADJUST);
    if (err)
        return err;
    return hed_remote_arrive(g->remote, NULL, &k.source, g->why);
}

static int
prepare_going(struct hed_remote_going *g, bool *stays)
{
    struct hed_remote *r = g->remote;
    uint64_t at, size;
    int err = hed_remote_standby_open(r, g->request->asked.address, &g->standby, g->why);

    *stays = err && err != HED_ENOTSUP;
    if (!err) {
        g->standby->without_pinned = g->without_pinned;
        err = hed_remote_pump_open(r, &g->pump, g->why);
    }
    if (!err && hed_remote_pump_pinned(g->pump, &at, &size))
        hed_remote_standby_offer(g->standby, at, size);
    if (!err)
        err = hed_remote_hasher_open(r, hed_remote_guess_chunks(r), &g->hasher, g->why);
    if (!err)
        err = hed_remote_host_copy_make(g->pump, 0, &g->host_copy, g->why);
    return err;
}

static int
go_once(struct hed_remote_going *g, uint64_t *begin, uint32_t *rounds, bool *stays)
{
    int err = prepare_going(g, stays);

    if (!err)
        err = hed_remote_go_rounds(g, rounds);
    if (!err) {
        *stays = true; /* it has been tried */
        err = hed_remote_hold_program(g->agent, g->request, begin);
        if (!err) {
            err = take_over(g);
            hed_remote_release(g->remote);
            g->request->answer.stall_ns += g->remote->moving->laps.last - *begin;
            /* Variables may be elsewhere because code was loaded beforehand. */
            *stays = err != HED_ENOTSUP;
        }
    } else if (g->standby) {
        *stays = hed_remote_is_standby_lost(g) || err == HED_ENOMEM;
    }
    drop_tools(g, true);
    hed_remote_host_copy_free(g->host_copy);
    hed_remote_standby_close(g->standby);
    return err;
}

int
hed_remote_move_precopy(struct hed_remote_agent *a, struct hed_remote_request *q, bool *stays)
{
    const uint64_t whole = hed_now_ns();
    struct hed_remote_going g = {.agent = a, .request = q, .remote = a->remote, .why = &q->why};
    uint64_t begin = 0, total;
    uint32_t rounds = 0;
    int err = go_once(&g, &begin, &rounds, stays);

    total = g.total;
    if (err == HED_EEXIST) { /* pinned memory came and went */
        hed_info(REMOTE,
                 "pinned memory has changed: the move begins again, and leaves it for last");
        g = (struct hed_remote_going){
            .agent = a, .request = q, .remote = a->remote, .why = &q->why, .without_pinned = true};
        err = go_once(&g, &begin, &rounds, stays);
        total += g.total;
    }
    hed_remote_report_move(a, q);
    q->answer.rounds = rounds + 1;
    q->answer.written = total;
    q->answer.total_ns = hed_now_ns() - whole;
    return err;
}
