/* Recovery from a lost server. See recover.h. */
#include "move/command/recover.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/str.h"
#include "move/command/command.h"
#include "move/command/private.h"
#include "move/command/tails.h"
#include "remote/remote.h"

#define HEAR_MS 1000 /* for a program that has connected to say what it wants */
#define FIRST_PAUSE_NS (250 * HED_NS_PER_MS)
#define LONGEST_PAUSE_NS (5 * HED_NS_PER_S)
#define HANG_UP_MS 100
#define CONNECT_NS (2 * HED_NS_PER_S)
#define HOPELESS_TRIES 3

int
hed_recovery_open(struct hed_recovery *r, pid_t pid, struct hed_why *why)
{
    r->ops = &hed_recovery_ops;
    r->pid = pid;
    r->listener = -1;
    r->peer = -1;
    return hed_talk_listen_rescue(pid, &r->listener, r->path, why);
}

void
hed_recovery_close(struct hed_recovery *r)
{
    if (r->listener >= 0) {
        close(r->listener);
        (void)unlink(r->path);
    }
    if (r->peer >= 0)
        close(r->peer);
    r->listener = r->peer = -1;
    r->waiting = false;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* The program sees the error. */
static void
refuse_recovery(struct hed_recovery *r, const char *why)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;

    r->say("run: --ckpt: process %d has lost its GPU's server (%s) and is told so: %s", (int)r->pid,
           r->lost, why);
    if (r->peer >= 0) {
        hed_talk_ask(&q, HED_TALK_RESCUE);
        hed_talk_reply(&a, &q);
        a.err = HED_ENOTFOUND;
        (void)hed_str_copy(a.why, sizeof a.why, why);
        (void)hed_talk_answer(r->peer, &a);
        close(r->peer);
    }
    r->peer = -1;
    r->waiting = false;
}

struct newest {
    struct hed_snap_folder place;
    struct hed_snap_reader *reader;
    int fd;
};

static void
close_newest(struct newest *n)
{
    hed_snap_reader_free(n->reader);
    close(n->fd);
    hed_snap_place_close(&n->place);
}

/* Opens the newest snapshot in the folder of this run. HED_ENOTFOUND: there is none yet. */
static int
open_newest(const struct hed_recovery *r, struct newest *n)
{
    char name[HED_SNAP_FILE_NAME];
    int err = hed_snap_place_open(r->ckpt->dir, false, &n->place, NULL);

    if (err != 0)
        return err;
    err = hed_snap_store_newest(n->place.store, r->session, UINT64_MAX, false, &n->fd, &n->reader,
                                name, NULL);
    if (err != 0)
        hed_snap_place_close(&n->place);
    return err;
}

static bool
find_newest(const struct hed_recovery *r, uint64_t *epoch)
{
    struct newest n;

    if (open_newest(r, &n) != 0)
        return false;
    *epoch = hed_snap_reader_about(n.reader)->epoch;
    close_newest(&n);
    return true;
}

/* Before the program is killed: would CRIU refuse a file? What cannot be checked passes. */
static int
check_files(const struct hed_recovery *r, struct hed_why *why)
{
    struct hed_snap_process p;
    struct newest n;
    void *files = NULL;
    size_t size = 0;
    int err = 0;

    if (open_newest(r, &n) != 0)
        return 0;
    if (hed_snap_images_peek(n.reader, &p, &files, &size, NULL) == 0)
        err = hed_snap_tails_check(files, size, &p.criu, why);
    free(files);
    close_newest(&n);
    return err;
}

static void
begin_recovery(struct hed_recovery *r, const char *lost, const char *at)
{
    struct hed_why why;
    const uint64_t now = hed_now_ns();
    uint64_t epoch = r->epoch;

    (void)hed_str_copy(r->lost, sizeof r->lost, lost);
    (void)hed_str_copy(r->at, sizeof r->at, at[0] ? at : r->address);
    r->at_private = r->server->folder[0] && strcmp(r->at, r->server->address) == 0;
    if (!find_newest(r, &epoch) && !r->from_name[0]) {
        refuse_recovery(r, "there is no snapshot of it yet");
        return;
    }
    if (r->count >= r->ckpt->recover && epoch == r->epoch) {
        hed_why_set(&why,
                    "it has gone on from its newest snapshot %llu times already (recover=%llu)",
                    (unsigned long long)r->count, (unsigned long long)r->ckpt->recover);
        refuse_recovery(r, why.text);
        return;
    }
    r->waiting = true;
    r->said = false;
    r->hopeless = 0;
    r->lost_wall = hed_wall_ns();
    r->next = now;
    r->end = now + r->ckpt->wait_ns;
    r->pause = FIRST_PAUSE_NS;
}

static void
recovery_hear(struct hed_recovery *r)
{
    struct hed_talk_request q;
    int fds[HED_TALK_FDS_MAX];
    int peer;
    pid_t pid = 0;

    if (hed_talk_accept(r->listener, 0, &peer, &pid) != 0)
        return;
    if (r->waiting || pid != r->pid || hed_talk_receive(peer, HEAR_MS, &q, fds, NULL) != 0) {
        close(peer);
        return;
    }
    for (uint32_t i = 0; i < q.fds; i++)
        close(fds[i]);
    if (q.kind != HED_TALK_RESCUE) {
        close(peer);
        return;
    }
    r->peer = peer;
    memcpy(r->session, q.uuid, sizeof r->session);
    begin_recovery(r, q.label, q.address);
}

static void
recovery_stuck(struct hed_recovery *r, const char *why)
{
    if (r->waiting)
        return;
    memcpy(r->session, r->memory->session, sizeof r->session);
    begin_recovery(r, why, "");
}

/* ---- the server ------------------------------------------------------------------------------ */

/* A server that is just dying lets clients connect for a moment; then it hangs up. A living one
 * waits for them to speak. */
static int
reach_server(const char *text, struct hed_why *why)
{
    struct hed_address a;
    int fd = -1;
    int err = hed_address_parse(text, &a, why);

    if (err == 0)
        err = a.transport->link->connect(&a, hed_now_ns() + CONNECT_NS, &fd, why);
    if (err == 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};

        if (poll(&p, 1, HANG_UP_MS) > 0) {
            hed_why_set(why, "%s hangs up", text);
            err = HED_EIO;
        }
    }
    if (fd >= 0)
        close(fd);
    return err;
}

/* Makes sure that there is a server for the program. */
static int
find_recovery_server(struct hed_recovery *r, struct hed_why *why)
{
    int err;

    if (!r->at_private)
        return reach_server(r->at, why);
    if (r->server->pid > 0)
        return 0;
    hed_private_stop(r->server); /* removes its folder */
    err = hed_private_start(r->gpu, r->server, why);
    if (err == 0) /* its folder has another name */
        (void)hed_str_copy(r->at, sizeof r->at, r->server->address);
    return err;
}

static bool
recovery_ended(struct hed_recovery *r, int status)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS};
    const bool asked = r->waiting;
    bool crashed = false;
    struct hed_why why = {""};

    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        crashed = crashed || (WIFSIGNALED(status) && WTERMSIG(status) == crashes[i]);
    if (r->peer >= 0)
        close(r->peer);
    r->peer = -1;
    r->waiting = r->waiting && crashed;
    if (asked || !crashed)
        return r->waiting;
    /* It may have noticed in another way than by a call. */
    if (r->server->folder[0] ? r->server->pid > 0 : reach_server(r->address, &why) == 0)
        return false;
    memcpy(r->session, r->memory->session, sizeof r->session);
    begin_recovery(r, "it crashed, and the server is gone", "");
    return r->waiting;
}

/* ---- going on -------------------------------------------------------------------------------- */

static int
bring_back(struct hed_recovery *r, struct hed_snap_brought *out, struct hed_why *why)
{
    struct hed_snap_bring b = {
        .dir = r->ckpt->dir, .session = r->session, .address = r->at, .cut = true, .say = r->say};
    uint64_t epoch;

    if (!find_newest(r, &epoch) && r->from_name[0]) {
        b.dir = r->from_dir;
        b.name = r->from_name;
    }
    return hed_snap_bring(&b, out, why);
}

/* Will the same happen again the next time? A process number may be taken for a moment, which criu
 * reports like everything else, so this is not certain. */
static bool
is_hopeless(int err)
{
    return err == HED_ENOTSUP || err == HED_EFORMAT || err == HED_EVERSION || err == HED_EACCESS ||
           err == HED_EINVAL || err == HED_ENOTFOUND;
}

static enum hed_recovery_step
try_later(struct hed_recovery *r, bool alive, const struct hed_why *why)
{
    const uint64_t now = hed_now_ns();
    char text[HED_SNAP_AMOUNT];

    if (now >= r->end || r->hopeless >= HOPELESS_TRIES) {
        if (alive) {
            refuse_recovery(r, why->text);
            return HED_RECOVERY_NOT_YET;
        }
        r->say("run: --ckpt: process %d has lost its GPU's server (%s) and cannot go on from "
               "a snapshot: %s",
               (int)r->pid, r->lost, why->text);
        r->waiting = false;
        return HED_RECOVERY_OVER;
    }
    if (!r->said)
        r->say("run: --ckpt: process %d has lost its GPU's server (%s) and waits up to %s "
               "for another at %s: %s",
               (int)r->pid, r->lost, hed_snap_time_text(r->ckpt->wait_ns, text), r->at, why->text);
    r->said = true;
    r->next = now + r->pause;
    r->pause = hed_min(2 * r->pause, LONGEST_PAUSE_NS);
    return HED_RECOVERY_NOT_YET;
}

static void
say_recovered(const struct hed_recovery *r, const struct hed_snap_brought *b)
{
    const uint64_t age = r->lost_wall > b->created_ns ? r->lost_wall - b->created_ns : 0;
    char text[HED_SNAP_AMOUNT];
    char cut[64] = "";

    if (b->cut > 0)
        (void)snprintf(cut, sizeof cut, "; %u of its files %s cut to the size of then", b->cut,
                       b->cut == 1 ? "was" : "were");
    r->say("run: --ckpt: process %d has lost its GPU's server (%s) and goes on from %s, which "
           "was saved %s before (%llu of at most %llu times from there)%s",
           (int)r->pid, r->lost, b->name, hed_snap_time_text(age, text),
           (unsigned long long)r->count, (unsigned long long)r->ckpt->recover, cut);
}

static int
recovery_timeout(const struct hed_recovery *r)
{
    const uint64_t now = hed_now_ns();

    if (!r->waiting)
        return -1;
    return now >= r->next ? 0 : (int)((r->next - now) / HED_NS_PER_MS) + 1;
}

static enum hed_recovery_step
recovery_step(struct hed_recovery *r, bool alive)
{
    struct hed_snap_brought brought;
    struct hed_why why = {""};
    int err;

    if (!r->waiting || hed_now_ns() < r->next)
        return HED_RECOVERY_NOT_YET;
    err = find_recovery_server(r, &why);
    if (err == 0 && alive && check_files(r, &why) != 0) {
        refuse_recovery(r, why.text);
        return HED_RECOVERY_NOT_YET;
    }
    if (err == 0 && alive)
        return HED_RECOVERY_KILL;
    if (r->peer >= 0 && !alive) {
        close(r->peer);
        r->peer = -1;
    }
    if (err == 0) {
        err = bring_back(r, &brought, &why);
        r->hopeless += is_hopeless(err);
    }
    if (err != 0)
        return try_later(r, alive, &why);
    r->count = brought.epoch == r->epoch ? r->count + 1 : 1;
    r->epoch = brought.epoch;
    r->waiting = false;
    say_recovered(r, &brought);
    return HED_RECOVERY_BACK;
}

const struct hed_recovery_ops hed_recovery_ops = {
    .hear = recovery_hear,
    .stuck = recovery_stuck,
    .ended = recovery_ended,
    .timeout = recovery_timeout,
    .step = recovery_step,
};
