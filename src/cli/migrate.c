/* heddle migrate: moves a running program to another server, or to another GPU of the same one. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/order.h"
#include "cli/snap/snap.h"
#include "move/move.h"
#include "remote/remote.h"

static const char usage[] =
    "usage: heddle migrate PID|WORKER --to ADDRESS [OPTION...]\n"
    "\n"
    "Moves a running program to another server: its GPU memory is copied while it\n"
    "runs, then it stops for a moment, and goes on there. If the move fails, it goes\n"
    "on where it was. The program is named by the number of its process on this\n"
    "machine, or of its worker (heddle serve --list). A program that cannot be\n"
    "reached from here, such as one on another machine, is told by its server.\n"
    "\n"
    "  --to ADDRESS      the server to go to: shm:PATH, unix:PATH, tcp://HOST:PORT\n"
    "  --deadline TIME   how long the program may take to finish its GPU work (60s)\n"
    "  --budget TIME     stop the program for the last copy when that will take no\n"
    "                    longer than this (50ms)\n"
    "  --listen ADDRESS  the server that knows WORKER\n"
    "  --verbose         say how the pause was spent\n"
    "  -h, --help        show this help\n";

enum { OPT_TO, OPT_DEADLINE, OPT_BUDGET, OPT_LISTEN, OPT_VERBOSE, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_TO] = {"to", true},
    [OPT_DEADLINE] = {"deadline", true},
    [OPT_BUDGET] = {"budget", true},
    [OPT_LISTEN] = {"listen", true},
    [OPT_VERBOSE] = {"verbose", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

struct migrate_words {
    const char *subject, *to, *listen;
    uint64_t deadline_ns, budget_ns;
    bool verbose, help;
};

static int
parse_migrate(struct migrate_words *w, int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct hed_why why = {""};
    bool plain = false;
    int option;

    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        uint64_t *time = option == OPT_DEADLINE ? &w->deadline_ns : &w->budget_ns;

        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == HED_CLI_OPERAND && w->subject) {
            hed_cli_say("migrate: unexpected '%s'; one program at a time", o.value);
            return HED_EXIT_USAGE;
        }
        if ((option == OPT_DEADLINE || option == OPT_BUDGET) &&
            (hed_snap_parse_time(o.value, time) != 0 || *time > UINT32_MAX * UINT64_C(1000000))) {
            hed_cli_say("migrate: --%s '%s' is not a time such as 500ms or 60s",
                        options[option].name, o.value);
            return HED_EXIT_USAGE;
        }
        w->subject = option == HED_CLI_OPERAND ? o.value : w->subject;
        w->to = option == OPT_TO ? o.value : w->to;
        w->listen = option == OPT_LISTEN ? o.value : w->listen;
        w->verbose = w->verbose || option == OPT_VERBOSE;
        w->help = w->help || option == OPT_HELP;
    }
    if (w->help)
        return HED_EXIT_OK;
    if (!w->to || !w->to[0]) {
        hed_cli_say("migrate: no destination given; add --to ADDRESS, the server to go to");
        return HED_EXIT_USAGE;
    }
    if (hed_snap_check_address(w->to, &why) != 0) {
        hed_cli_say("migrate: --to: %s", why.text);
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

static void
show_move(const char *program, const char *address, uint64_t written, uint32_t rounds,
          uint64_t last_round, uint64_t stall_ns)
{
    char bytes[HED_SNAP_AMOUNT], last[HED_SNAP_AMOUNT], stall[HED_SNAP_AMOUNT];

    hed_cli_tell("%s goes on at %s: %s in %" PRIu32
                 " rounds, %s in the last; it stood still for %s",
                 program, address, hed_snap_bytes_text(written, bytes), rounds,
                 hed_snap_bytes_text(last_round, last), hed_snap_time_text(stall_ns, stall));
}

static int
ask_program(const struct migrate_words *w, pid_t pid)
{
    struct hed_talk_request q;
    struct hed_talk_answer a;
    struct hed_why why = {""};

    hed_talk_ask(&q, HED_TALK_MOVE);
    q.deadline_ms = (uint32_t)(w->deadline_ns / 1000000);
    q.budget_ms = (uint32_t)(w->budget_ns / 1000000);
    (void)hed_str_copy(q.address, sizeof q.address, w->to);
    if (hed_talk_call(pid, &q, NULL, 0, -1, &a, &why) != 0) {
        hed_cli_say("migrate: process %d was not moved to %s: %s", (int)pid, w->to, why.text);
        return HED_EXIT_FAILED;
    }
    show_move(a.program, a.address, a.written, a.rounds, a.last_round, a.stall_ns);
    if (w->verbose)
        hed_snap_print_parts(&a);
    return HED_EXIT_OK;
}

/* The server tells its client. */
static int
order_program(const struct migrate_words *w, uint64_t worker)
{
    const struct hed_cli_order order = {.listen = w->listen,
                                        .worker = worker,
                                        .to = w->to,
                                        .deadline_ms = (uint32_t)(w->deadline_ns / 1000000),
                                        .budget_ms = (uint32_t)(w->budget_ns / 1000000)};
    struct hed_order_report r;
    struct hed_conn *c = NULL;
    struct hed_why why = {""};
    int err = hed_cli_order_give(&order, &c, &why);

    if (!err)
        err = hed_cli_order_wait(c, &r, &why);
    if (err) {
        hed_cli_say("migrate: the program of worker %" PRIu64 " was not moved to %s: %s", worker,
                    w->to, why.text);
        return HED_EXIT_FAILED;
    }
    show_move(r.program, r.address, r.written, r.rounds, r.last_round, r.stall_ns);
    return HED_EXIT_OK;
}

/* Is it a worker whose client cannot be reached from here? */
static bool
is_out_of_reach(const struct migrate_words *w, uint64_t *worker)
{
    pid_t pid = 0;
    int fd;

    if (!w->subject || hed_parse_u64(w->subject, worker) != 0 || *worker == 0 || *worker > INT_MAX)
        return false;
    if (hed_snap_find_program((pid_t)*worker, &pid, NULL))
        return false;

    const int err = hed_ask_client(w->listen, *worker, &pid, NULL);

    if (!err && hed_talk_open(pid, &fd, NULL) == 0) {
        (void)close(fd);
        return false;
    }
    return !err || err == HED_ENOTSUP;
}

int
hed_cli_migrate(int argc, char **argv)
{
    struct migrate_words w = {.deadline_ns = HED_SNAP_DEADLINE_MS * UINT64_C(1000000)};
    uint64_t worker = 0;
    pid_t pid;
    int code = parse_migrate(&w, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (w.help) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    if (is_out_of_reach(&w, &worker))
        return order_program(&w, worker);
    code = hed_snap_subject("migrate", w.subject, w.listen, &pid);
    return code == HED_EXIT_OK ? ask_program(&w, pid) : code;
}
