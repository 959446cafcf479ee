/* The steps that requests share: holding the program, the files that came with a request, and what
 * is answered. See agent.h and staging.h. request.c has the requests themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "driver/driver.h"
#include "move/file/files.h"
#include "move/file/writer.h"
#include "move/session/agent.h"
#include "move/session/staging.h"

#define DEADLINE_MS 10000 /* for holding, unless the request says otherwise */

int
hed_remote_hold_program(struct hed_remote_agent *a, struct hed_remote_request *q, uint64_t *begin)
{
    const int deadline =
        q->asked.deadline_ms ? (int)(q->asked.deadline_ms & INT32_MAX) : DEADLINE_MS;
    int err;

    *begin = hed_now_ns();
    err = hed_remote_hold(a->remote, deadline, &q->why);
    q->answer.hold_ns = hed_now_ns() - *begin;
    return err;
}

uint64_t
hed_remote_guess_chunks(struct hed_remote *r)
{
    return 2 * hed_remote_extents_guess(r) / HED_EXTENT_CHUNK + 1024;
}

/* ---- answers --------------------------------------------------------------------------------- */

void
hed_remote_describe_self(struct hed_remote_agent *a, struct hed_talk_answer *out)
{
    struct hed_remote *r = a->remote;

    /* Relaxed: a lost session stays lost. */
    out->state = atomic_load_explicit(&r->lost, memory_order_relaxed) ? HED_TALK_LOST : a->state;
    out->pid = (uint32_t)getpid();
    out->devices = (uint32_t)r->device_count;
    out->device_bytes = hed_remote_extents_guess(r);
    out->host_bytes = hed_remote_host_copy_bytes(a->host_copy);
    out->heap_base = r->base;
    out->heap_size = r->size;
    memcpy(out->session, a->session, sizeof out->session);
    hed_address_text(&r->address, out->address, sizeof out->address);
    (void)hed_str_copy(out->program, sizeof out->program, program_invocation_short_name);
    if (r->device_count)
        (void)hed_str_copy(out->device, sizeof out->device,
                           r->driver->devices[0].info.profile.name);
}

void
hed_remote_agent_answer(struct hed_remote_agent *a, struct hed_remote_request *q, int err)
{
    hed_remote_describe_self(a, &q->answer);
    q->answer.err = err;
    if (!err)
        return;
    (void)hed_str_copy(q->answer.why, sizeof q->answer.why,
                       q->why.text[0] ? q->why.text : hed_err_text(err));
    hed_info(REMOTE, "%s failed: %s", hed_talk_kind_name(q->asked.kind), q->answer.why);
}

void
hed_remote_tell_parts(const struct hed_remote_agent *a, struct hed_remote_request *q,
                      const char *what)
{
    char text[HED_TALK_PARTS * 48] = ""; /* of a name and a time */
    size_t used = 0;

    for (unsigned i = 0; i < HED_TALK_PARTS; i++) {
        q->answer.parts_ns[i] = a->remote->moving->laps.ns[i];
        if (q->answer.parts_ns[i] >= 1000)
            used += (size_t)snprintf(text + used, sizeof text - used, " %s %.3f",
                                     hed_talk_part_name(i), (double)q->answer.parts_ns[i] * 1e-6);
    }
    hed_info(REMOTE, "%s held the program for %.3f ms:%s", what, (double)q->answer.stall_ns * 1e-6,
             text);
}

void
hed_remote_report_move(struct hed_remote_agent *a, struct hed_remote_request *q)
{
    if (q->answer.stall_ns)
        hed_remote_tell_parts(a, q, "a move");
}

/* ---- files ----------------------------------------------------------------------------------- */

struct homes {
    const int *fds;
    uint32_t count;
};

/* Finds the file with a UUID among those that came with the request. */
static int
dup_home(void *arg, const uint8_t uuid[HED_SNAP_UUID])
{
    const struct homes *h = arg;

    for (uint32_t i = 0; i < h->count; i++) {
        struct hed_snap_super s;

        if (hed_snap_pread(&hed_snap_files_real, h->fds[i], &s, sizeof s, 0) == 0 &&
            memcmp(s.uuid, uuid, sizeof s.uuid) == 0)
            return dup(h->fds[i]);
    }
    return -1;
}

/* The reader of the descriptor number `first`; those after it are its homes. */
int
hed_remote_open_reader(struct hed_remote_request *q, uint32_t first, unsigned flags,
                       struct hed_snap_reader **out)
{
    struct homes h = {q->fds + first + 1, q->asked.fds - first - 1};

    return hed_snap_reader_open(&hed_snap_files_real, q->fds[first], flags, dup_home, &h, out,
                                &q->why);
}

int
hed_remote_open_parent(struct hed_remote_request *q, uint32_t first, struct hed_snap_reader **out)
{
    *out = NULL;
    return q->asked.flags & HED_TALK_PARENT && q->asked.fds > first
               ? hed_remote_open_reader(q, first, 0, out)
               : 0;
}

int
hed_remote_open_writer(struct hed_remote_agent *a, struct hed_remote_request *q,
                       const struct hed_snap_reader *parent, bool partial,
                       struct hed_snap_writer **out)
{
    const struct hed_snap_how how = {.zstd = q->asked.zstd, .partial = partial};
    struct hed_snap_about about = {.epoch = q->asked.epoch,
                                   .heap_base = a->remote->base,
                                   .heap_size = a->remote->size,
                                   .pid = (uint32_t)getpid()};
    struct hed_talk_answer self = {.pid = 0};

    hed_remote_describe_self(a, &self);
    memcpy(about.uuid, q->asked.uuid, sizeof about.uuid);
    memcpy(about.session, a->session, sizeof about.session);
    (void)hed_str_copy(about.backend, sizeof about.backend, "remote");
#if defined(__x86_64__)
    (void)hed_str_copy(about.arch, sizeof about.arch, "x86_64");
#else
    (void)hed_str_copy(about.arch, sizeof about.arch, "aarch64");
#endif
    (void)hed_str_copy(about.device, sizeof about.device, self.device);
    (void)hed_str_copy(about.address, sizeof about.address, self.address);
    (void)hed_str_copy(about.program, sizeof about.program, self.program);
    (void)hed_str_copy(about.label, sizeof about.label, q->asked.label);
    return hed_snap_writer_create(&hed_snap_files_real, q->fds[0], &about, parent, &how, out,
                                  &q->why);
}
