/* Emptying a server. See drain.h.
 *
 *   the server's status ──> its clients on this machine ──HED_TALK_MOVE──> each goes to `to`
 *        └── again, for those that came meanwhile; nobody left: SIGTERM
 */
#include "cli/drain.h"

#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/snap/live.h"
#include "wire/wire.h"

#define ROUNDS 100       /* questions, because clients may come meanwhile */
#define NAP_NS 100000000 /* between them, until the workers of those that went have ended */
#define CLIENTS_MAX 1024 /* of one server */

struct tried {
    pid_t pid;
    bool moved;
};

struct drain {
    const char *to;
    struct tried tried[CLIENTS_MAX]; /* programs that were moved, or could not be */
    unsigned count;
    /* Of this round: clients that were tried; those that were moved and whose worker is still
     * there; those that stay. */
    unsigned fresh, leaving, stay;
};

static const struct tried *
find_tried(const struct drain *d, pid_t pid)
{
    for (unsigned i = 0; i < d->count; i++)
        if (d->tried[i].pid == pid)
            return &d->tried[i];
    return NULL;
}

static bool
move_program(struct drain *d, pid_t pid)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why = {""};
    char stall[HED_SNAP_AMOUNT];

    hed_talk_ask(&q, HED_TALK_MOVE);
    q.deadline_ms = HED_SNAP_DEADLINE_MS;
    (void)hed_str_copy(q.address, sizeof q.address, d->to);
    if (hed_talk_call(pid, &q, NULL, 0, -1, &a, &why) != 0) {
        hed_cli_say("serve: process %d was not moved to %s: %s", (int)pid, d->to, why.text);
        return false;
    }
    printf("%s (process %d) goes on at %s; it stood still for %s\n", a.program, (int)pid, a.address,
           hed_snap_time_text(a.stall_ns, stall));
    (void)fflush(stdout);
    return true;
}

/* A client in the status: quotes in a client's own texts are escaped, so these words are the
 * server's. */
static void
drain_client(struct drain *d, const char *at)
{
    const char *pid = strstr(at, ",\"pid\":");
    const long number = pid ? strtol(pid + 7, NULL, 10) : 0;

    if (number <= 0 || number > INT_MAX) {
        hed_cli_say("serve: the client of worker %ld is on another machine: move it from there "
                    "(heddle migrate)",
                    strtol(at + strlen("{\"worker\":"), NULL, 10));
        d->stay++;
        return;
    }

    const struct tried *before = find_tried(d, (pid_t)number);

    if (before || d->count == CLIENTS_MAX) {
        d->leaving += before && before->moved;
        d->stay += !before || !before->moved;
        return;
    }

    const bool moved = move_program(d, (pid_t)number);

    d->tried[d->count++] = (struct tried){(pid_t)number, moved};
    d->fresh++;
    d->stay += !moved;
}

/* Moves what the server has now. */
static int
drain_round(struct drain *d, const char *listen, struct hed_why *why)
{
    const struct hed_preface question = {.kind = HED_PREFACE_STATUS};
    struct hed_buf text;

    hed_buf_init(&text, HED_CLI_ANSWER_MAX);

    const int err = hed_cli_ask(listen, &question, &text, why);

    d->fresh = d->leaving = d->stay = 0;
    for (const char *at = err ? NULL : strstr(hed_buf_cstr(&text), "{\"worker\":"); at;
         at = strstr(at + 1, "{\"worker\":"))
        drain_client(d, at);
    hed_buf_fini(&text);
    return err;
}

int
hed_cli_drain(const char *listen, const char *to)
{
    struct drain d = {.to = to};
    struct hed_why why = {""};
    pid_t server = 0;
    int err = hed_snap_check_address(to, &why);

    if (err) {
        hed_cli_say("serve: --to: %s", why.text);
        return HED_EXIT_USAGE;
    }
    err = hed_cli_ask_server(listen, &server, &why);
    for (int i = 0; i < ROUNDS && !err && (i == 0 || d.fresh || d.leaving); i++) {
        if (i > 0)
            (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        err = drain_round(&d, listen, &why);
    }
    if (err) {
        hed_cli_say("serve: --drain: %s", why.text);
        return err == HED_EINVAL ? HED_EXIT_USAGE : HED_EXIT_FAILED;
    }
    if (d.stay || d.fresh || d.leaving) {
        hed_cli_say("serve: the server goes on, because it still has clients");
        return HED_EXIT_FAILED;
    }
    if (kill(server, SIGTERM) != 0) {
        hed_cli_say("serve: the server has no clients, but cannot be stopped: %m");
        return HED_EXIT_FAILED;
    }
    return HED_EXIT_OK;
}
