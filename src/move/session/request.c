/* What the agent does for each request. See agent.h.
 *
 *   getting ready, while the program runs ──> hold ──> copy, leave, arrive ──> release
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "core/session.h"
#include "move/file/files.h"
#include "move/file/writer.h"
#include "move/session/agent.h"
#include "move/session/staging.h"

static int
refuse_state(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    hed_why_set(&q->why, "the program is %s", hed_talk_state_name(a->state));
    return HED_ESTATE;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* What is made before the program is held. */
struct outgoing {
    struct hed_remote_pump *pump;
    struct hed_remote_hasher *hasher;
    struct hed_snap_reader *parent;
    struct hed_snap_writer *writer;
    struct hed_remote_host_copy *host_copy;
    struct hed_remote_moved moved;
};

static int
prepare_out(struct hed_remote_agent *a, struct hed_remote_request *q, bool partial,
            struct outgoing *o)
{
    struct hed_remote *r = a->remote;
    int err = hed_remote_pump_open(r, &o->pump, &q->why);

    if (err)
        return err;
    if (q->asked.fds == 0)
        return hed_remote_host_copy_make(o->pump, hed_remote_extents_guess(r), &o->host_copy,
                                         &q->why);
    err = hed_remote_open_parent(q, 1, &o->parent);
    if (!err)
        err = hed_remote_open_writer(a, q, o->parent, partial, &o->writer);
    /* Without a hasher all memory is copied, which is slower and as good. */
    if (!err && o->parent)
        (void)hed_remote_hasher_open(r, hed_remote_guess_chunks(r), &o->hasher, NULL);
    return err;
}

static void
drop_out(struct outgoing *o)
{
    hed_remote_hasher_close(o->hasher);
    hed_remote_pump_close(o->pump);
    hed_snap_writer_free(o->writer);
    hed_snap_reader_free(o->parent);
    hed_remote_host_copy_free(o->host_copy);
}

static int
copy_memory_out(struct hed_remote_agent *a, struct hed_remote_request *q, struct outgoing *o)
{
    int err =
        o->host_copy
            ? hed_remote_host_copy_take(o->host_copy, a->remote, o->pump, false, &o->moved, &q->why)
            : hed_remote_capture(a->remote, o->pump, o->hasher, o->writer, &o->moved, &q->why);

    if (!err && o->writer)
        err = hed_snap_writer_finish(o->writer, &q->why);
    else if (err && o->writer && !q->why.text[0])
        hed_why_set(&q->why, "%s", hed_snap_writer_reason(o->writer));
    q->answer.written = o->moved.bytes;
    q->answer.same = o->moved.same;
    hed_remote_hasher_close(o->hasher);
    o->hasher = NULL;
    /* What is ours must not be saved with the process. */
    if (o->writer) {
        hed_remote_pump_close(o->pump);
        o->pump = NULL;
    }
    return err;
}

static int
go_out(struct hed_remote_agent *a, struct hed_remote_request *q, bool partial)
{
    const uint64_t whole = hed_now_ns();
    const bool was_held = a->state == HED_TALK_PAUSED;
    struct outgoing o = {.pump = NULL};
    uint64_t begin = hed_now_ns();
    int err = prepare_out(a, q, partial, &o);

    if (!err && !was_held)
        err = hed_remote_hold_program(a, q, &begin);
    if (err) {
        drop_out(&o);
        return err;
    }
    if (was_held)
        a->remote->moving->laps = (struct hed_remote_laps){.last = hed_now_ns()};
    err = copy_memory_out(a, q, &o);
    hed_remote_lap(a->remote, HED_TALK_COPY);
    if (!err)
        err = hed_remote_part(a->remote, false, &q->why);
    hed_remote_lap(a->remote, HED_TALK_LEAVE);
    if (err) {
        if (!was_held)
            hed_remote_release(a->remote);
    } else {
        a->host_copy = o.host_copy;
        a->pump = o.pump;
        o.host_copy = NULL;
        o.pump = NULL;
        a->state = a->host_copy ? HED_TALK_SWAPPED : HED_TALK_CAPTURED;
        hed_session_tell_away(true, hed_now_ns() - begin);
    }
    q->answer.stall_ns = hed_now_ns() - begin;
    hed_remote_tell_parts(a, q, "going out");
    drop_out(&o);
    q->answer.total_ns = hed_now_ns() - whole;
    return err;
}

/* ---- in -------------------------------------------------------------------------------------- */

static int
come_in(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    const uint64_t begin = hed_now_ns();
    struct hed_snap_reader *reader = NULL;
    struct hed_remote_fill f;
    int err = q->asked.fds ? hed_remote_open_reader(q, 0, HED_SNAP_OPEN_PARTIAL, &reader) : 0;

    if (!err && !reader && !a->host_copy) {
        hed_why_set(&q->why, "its memory is in a file, which must be given");
        err = HED_EINVAL;
    }
    if (err)
        return err;
    hed_remote_fill_init(&f, reader ? NULL : a->host_copy, reader,
                         q->asked.flags & HED_TALK_VERIFY);
    f.pump = a->pump;
    f.staging = a->staging;
    a->remote->moving->laps = (struct hed_remote_laps){.last = begin};
    err = hed_remote_arrive(a->remote, q->asked.address, &f.source, &q->why);
    hed_snap_reader_free(reader);
    q->answer.written = f.moved.bytes;
    q->answer.same = f.moved.same;
    q->answer.total_ns = q->answer.stall_ns = hed_now_ns() - begin;
    if (err)
        return err;
    hed_remote_tell_parts(a, q, "coming in");
    a->state = HED_TALK_RUNNING;
    hed_session_tell_away(false, q->answer.total_ns);
    hed_remote_release(a->remote);
    hed_remote_staging_drop(a);
    hed_remote_pump_close(a->pump);
    a->pump = NULL;
    hed_remote_host_copy_free(a->host_copy);
    a->host_copy = NULL;
    return 0;
}

/* ---- move ------------------------------------------------------------------------------------ */

static int
move_away(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    const uint64_t whole = hed_now_ns();
    struct outgoing o = {.pump = NULL};
    struct hed_remote_fill f;
    uint64_t begin = 0;
    int err;

    q->asked.fds = 0;
    err = prepare_out(a, q, false, &o);
    if (!err)
        err = hed_remote_hold_program(a, q, &begin);
    if (err) {
        drop_out(&o);
        return err;
    }
    err = copy_memory_out(a, q, &o);
    hed_remote_lap(a->remote, HED_TALK_COPY);
    if (!err) {
        hed_remote_fill_init(&f, o.host_copy, NULL, q->asked.flags & HED_TALK_VERIFY);
        f.pump = o.pump;
        err = hed_remote_arrive(a->remote, q->asked.address, &f.source, &q->why);
    }
    hed_remote_release(a->remote);
    q->answer.stall_ns += a->remote->moving->laps.last - begin;
    hed_remote_report_move(a, q);
    q->answer.rounds = 1;
    q->answer.last_round = o.moved.bytes;
    drop_out(&o);
    q->answer.total_ns = hed_now_ns() - whole;
    return err;
}

/* Memory is precopied while the program runs, where that is possible. */
static int
move_elsewhere(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    bool stays = false; /* no other way would do better */
    const int err = hed_remote_move_precopy(a, q, &stays);

    if (!err || stays)
        return err;
    hed_info(
        REMOTE,
        "precopy is not possible (%s), so the program is stopped while all of its memory is copied",
        q->why.text[0] ? q->why.text : hed_err_text(err));
    q->why.text[0] = '\0';
    return move_away(a, q);
}

/* ---- pause ----------------------------------------------------------------------------------- */

static int
pause_program(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    uint64_t begin;
    const int err = hed_remote_hold_program(a, q, &begin);

    if (!err)
        a->state = HED_TALK_PAUSED;
    q->answer.total_ns = q->answer.hold_ns;
    return err;
}

static int
resume_program(struct hed_remote_agent *a)
{
    hed_remote_release(a->remote);
    a->state = HED_TALK_RUNNING;
    return 0;
}

int
hed_remote_request(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    const enum hed_talk_state s = a->state;
    const bool runs = s == HED_TALK_RUNNING;
    const bool out = s == HED_TALK_SWAPPED || s == HED_TALK_CAPTURED;

    switch ((enum hed_talk_kind)q->asked.kind) {
    case HED_TALK_CAPTURE:
        if (q->asked.fds == 0)
            return HED_EINVAL;
        return runs || s == HED_TALK_PAUSED ? go_out(a, q, true) : refuse_state(a, q);
    case HED_TALK_OUT:
        return runs || s == HED_TALK_PAUSED ? go_out(a, q, false) : refuse_state(a, q);
    case HED_TALK_ATTACH:
        /* A copy of a program that was saved while its worker waited for it. */
        if (s == HED_TALK_PARKED && q->asked.fds)
            return come_in(a, q);
        return out ? come_in(a, q) : refuse_state(a, q);
    case HED_TALK_IN:
        return out ? come_in(a, q) : refuse_state(a, q);
    case HED_TALK_MOVE:
        return runs ? move_elsewhere(a, q) : refuse_state(a, q);
    case HED_TALK_PAUSE:
        return runs ? pause_program(a, q) : refuse_state(a, q);
    case HED_TALK_RESUME:
        return s == HED_TALK_PAUSED ? resume_program(a) : refuse_state(a, q);
    case HED_TALK_STAGE:
        return runs ? hed_remote_staging(a, q) : refuse_state(a, q);
    case HED_TALK_CONTINUE:
        return s == HED_TALK_PARKED ? hed_remote_continue(a, q) : refuse_state(a, q);
    case HED_TALK_INFO:
    case HED_TALK_RESCUE: /* not for us */
        break;
    }
    return HED_ENOTSUP;
}

int
hed_remote_agent_serve(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    const bool entered = hed_remote_enter_any(a->remote);
    const int err = hed_remote_request(a, q);

    if (entered)
        hed_thread_pop(a->remote->driver);
    return err;
}
