/* A lane for each thread that calls. See remote.h.
 *
 * A thread's lane is found through a thread-specific pointer; when the thread ends, its lane waits
 * for another thread to need one. So there are as many as there were threads at once, and none is
 * closed before the process ends: that is how the worker knows that it has.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/remote/remote.h"
#include "base/err.h"
#include "base/log.h"

static _Thread_local struct hed_remote_lane *mine;
static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread ends: its lane is for the next. */
static void
leave(void *arg)
{
    struct hed_remote_lane *l = arg;

    mine = NULL;
    hed_lock(&l->remote->lanes_lock);
    l->taken = false;
    hed_unlock(&l->remote->lanes_lock);
    (void)hed_lane_flush(l->lane);
}

static void
make_key(void)
{
    (void)pthread_key_create(&at_end, leave);
}

/* Says whose lane it is; nothing is answered: the worker shuts out what it does not know. */
static int
say_attach(struct hed_remote *r, struct hed_lane *lane, uint32_t thread,
           enum hed_lane_purpose purpose)
{
    struct hed_attach *a = hed_lane_begin(lane, sizeof *a);

    if (!a)
        return HED_EIO;
    memset(a, 0, sizeof *a);
    a->head.size = sizeof *a;
    a->head.kind = HED_MSG_ATTACH;
    a->head.thread = thread;
    memcpy(a->session, r->session, sizeof a->session);
    memcpy(a->secret, r->secret, sizeof a->secret);
    a->purpose = purpose;
    return hed_lane_end(lane, sizeof *a, true);
}

int
hed_remote_lane_open(struct hed_remote *r, uint32_t thread, enum hed_lane_purpose purpose,
                     struct hed_lane **out, struct hed_why *why)
{
    struct hed_conn *conn;
    int err = hed_remote_call_on(r, HED_PREFACE_LANE, &conn, why);

    if (!err)
        err = hed_lane_create(conn, r->address.transport == HED_TRANSPORT_SHM, out, why);
    if (!err && r->address.transport != HED_TRANSPORT_SHM && purpose == HED_LANE_CALLS)
        err = hed_conn_patience(conn, HED_LANE_SILENT_MS);
    if (!err)
        err = say_attach(r, *out, thread, purpose);
    if (err && *out) {
        hed_lane_free(*out);
        *out = NULL;
    }
    return err;
}

struct hed_remote_lane *
hed_remote_lane_add(struct hed_remote *r, struct hed_lane *lane, uint32_t thread)
{
    struct hed_remote_lane *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    (void)pthread_once(&once, make_key);
    l->remote = r;
    l->lane = lane;
    l->thread = thread;
    l->taken = true;
    hed_lock(&r->lanes_lock);
    l->next = r->lanes;
    r->lanes = l;
    hed_unlock(&r->lanes_lock);
    mine = l;
    (void)pthread_setspecific(at_end, l);
    return l;
}

/* One that another thread has left. */
static struct hed_remote_lane *
take_left(struct hed_remote *r, uint32_t *thread)
{
    struct hed_remote_lane *l;

    hed_lock(&r->lanes_lock);
    for (l = r->lanes; l && l->taken; l = l->next)
        continue;
    if (l)
        l->taken = true;
    else
        *thread = ++r->threads;
    hed_unlock(&r->lanes_lock);
    return l;
}

static struct hed_remote_lane *
get_lane(struct hed_remote *r)
{
    struct hed_why why = {""};
    struct hed_lane *lane = NULL;
    struct hed_why lost;
    uint32_t thread = 0;
    struct hed_remote_lane *l = take_left(r, &thread);

    if (l) {
        mine = l;
        (void)pthread_setspecific(at_end, l);
        return l;
    }
    if (hed_remote_lane_open(r, thread, HED_LANE_CALLS, &lane, &why) == 0)
        l = hed_remote_lane_add(r, lane, thread);
    if (!l) {
        hed_why_set(&lost, "no connection for thread %u (is the server's --lanes reached?): %s",
                    thread + 1, why.text[0] ? why.text : hed_err_text(HED_ENOMEM));
        hed_remote_lose(r, lost.text);
    }
    return l;
}

struct hed_remote_lane *
hed_remote_lane(struct hed_remote *r)
{
    struct hed_remote_lane *l = mine;

    /* Relaxed, both: a lane that has ended says so when it is used. */
    if (atomic_load_explicit(&r->lost, memory_order_relaxed) ||
        atomic_load_explicit(&r->ended, memory_order_relaxed))
        return NULL;
    return l && l->remote == r ? l : get_lane(r);
}

/* The lane that has the lowest ticket in its buffer; NULL: none but `but` has one below `below`. */
static struct hed_remote_lane *
lowest(struct hed_remote *r, const struct hed_remote_lane *but, uint64_t below, uint64_t *ticket)
{
    struct hed_remote_lane *found = NULL;

    hed_lock(&r->lanes_lock);
    for (struct hed_remote_lane *l = r->lanes; l; l = l->next) {
        const uint64_t first = l == but ? 0 : hed_lane_first(l->lane);

        if (first && first < below) {
            below = *ticket = first;
            found = l;
        }
    }
    hed_unlock(&r->lanes_lock);
    return found;
}

/* Lowest tickets first: the worker takes what is in a connection only when everything with lower
 * tickets has come, so to write other messages first may be to wait for ever. For the same reason
 * no lock is held: another thread may have to write what this one waits for. Lanes never go. */
void
hed_remote_flush_others(struct hed_remote *r, struct hed_remote_lane *own, uint64_t below)
{
    struct hed_remote_lane *l;
    uint64_t ticket = 0;

    if (r->address.transport == HED_TRANSPORT_SHM)
        return;
    while ((l = lowest(r, own, below, &ticket))) {
        if (own && hed_lane_first(own->lane) - 1 < ticket - 1) /* 0, none, becomes the highest */
            (void)hed_lane_flush(own->lane);
        (void)hed_lane_flush(l->lane);
    }
}

void
hed_remote_lanes_forked(struct hed_remote *r)
{
    for (struct hed_remote_lane *l = r->lanes; l; l = l->next)
        hed_lane_forked(l->lane);
    mine = NULL;
}
