/* heddle snap out, in, pause, resume: programs that wait, with and without GPU memory. The process
 * stays, so CRIU is not needed. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"
#include "move/move.h"
#include "remote/remote.h"

#define FREE_NS (60 * HED_NS_PER_S) /* for a worker to end */
#define FREE_LOOK_NS (2 * HED_NS_PER_MS)

static const char out_usage[] =
    "usage: heddle snap out PID|WORKER [OPTION...]\n"
    "\n"
    "Pauses a program at its next CUDA call, copies its GPU memory to the memory of\n"
    "its own machine, and frees the GPU. `heddle snap in` brings it back. The memory\n"
    "is free when the command ends, unless it says otherwise.\n"
    "\n"
    "  --deadline TIME   how long the program may take to finish its GPU work (60s)\n"
    "  --listen ADDRESS  the server that knows WORKER\n"
    "  --verbose         say how the time was spent\n"
    "  -h, --help        show this help\n";

static const char in_usage[] =
    "usage: heddle snap in PID [OPTION...]\n"
    "\n"
    "Gives a program that `heddle snap out` has paused its GPU memory again, and lets\n"
    "it go on. If that fails, it stays paused.\n"
    "\n"
    "  --gpu ADDRESS     the server to go to (default: the one that it had)\n"
    "  --verify          compare its GPU memory with what was saved before it goes on\n"
    "  --verbose         say how the time was spent\n"
    "  -h, --help        show this help\n";

static const char pause_usage[] =
    "usage: heddle snap pause PID|WORKER [OPTION...]\n"
    "\n"
    "Lets a program finish its GPU work and wait at its next CUDA call, until\n"
    "`heddle snap resume`. It keeps its GPU memory.\n"
    "\n"
    "  --deadline TIME   how long the program may take to finish its GPU work (60s)\n"
    "  --listen ADDRESS  the server that knows WORKER\n"
    "  -h, --help        show this help\n";

static const char resume_usage[] = "usage: heddle snap resume PID|WORKER [--listen ADDRESS]\n"
                                   "\n"
                                   "Lets a paused program go on.\n"
                                   "\n"
                                   "  --listen ADDRESS  the server that knows WORKER\n"
                                   "  -h, --help        show this help\n";

enum { OPT_LISTEN, OPT_HELP, OPT_DEADLINE, OPT_VERBOSE, OPT_GPU, OPT_VERIFY };

/* What each command knows of them. */
static const struct hed_cli_opt hold_options[] = {[OPT_LISTEN] = {"listen", true},
                                                  [OPT_HELP] = {"help", false},
                                                  [OPT_DEADLINE] = {"deadline", true},
                                                  {NULL, false}};
static const struct hed_cli_opt out_options[] = {[OPT_LISTEN] = {"listen", true},
                                                 [OPT_HELP] = {"help", false},
                                                 [OPT_DEADLINE] = {"deadline", true},
                                                 [OPT_VERBOSE] = {"verbose", false},
                                                 {NULL, false}};
static const struct hed_cli_opt resume_options[] = {
    [OPT_LISTEN] = {"listen", true}, [OPT_HELP] = {"help", false}, {NULL, false}};
static const struct hed_cli_opt in_options[] = {[OPT_LISTEN] = {"listen", true},
                                                [OPT_HELP] = {"help", false},
                                                [OPT_DEADLINE] = {"deadline", true},
                                                [OPT_VERBOSE] = {"verbose", false},
                                                [OPT_GPU] = {"gpu", true},
                                                [OPT_VERIFY] = {"verify", false},
                                                {NULL, false}};

struct swap_words {
    const char *subject, *listen, *gpu;
    uint64_t deadline_ns;
    bool verify, verbose, help;
};

static int
parse_swap(const char *command, const struct hed_cli_opt *table, struct swap_words *w, int argc,
           char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(table, argc, argv);
    struct hed_why why = {""};
    bool plain = false;
    int option;

    o.command = command;
    w->deadline_ns = HED_SNAP_DEADLINE_MS * UINT64_C(1000000);
    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == HED_CLI_OPERAND && w->subject) {
            hed_cli_say("%s: unexpected '%s'; one program at a time", command, o.value);
            return HED_EXIT_USAGE;
        }
        if (option == OPT_DEADLINE && (hed_snap_parse_time(o.value, &w->deadline_ns) != 0 ||
                                       w->deadline_ns > UINT32_MAX * UINT64_C(1000000))) {
            hed_cli_say("%s: --deadline '%s' is not a time such as 500ms or 60s", command, o.value);
            return HED_EXIT_USAGE;
        }
        if (option == OPT_GPU && hed_snap_check_address(o.value, &why) != 0) {
            hed_cli_say("%s: --gpu: %s", command, why.text);
            return HED_EXIT_USAGE;
        }
        w->subject = option == HED_CLI_OPERAND ? o.value : w->subject;
        w->listen = option == OPT_LISTEN ? o.value : w->listen;
        w->gpu = option == OPT_GPU ? o.value : w->gpu;
        w->verify = w->verify || option == OPT_VERIFY;
        w->verbose = w->verbose || option == OPT_VERBOSE;
        w->help = w->help || option == OPT_HELP;
    }
    return HED_EXIT_OK;
}

/* Sends one request, and says what failed. */
static int
ask_swap(const char *command, enum hed_talk_kind kind, const struct swap_words *w,
         struct hed_talk_answer *a, pid_t *out)
{
    struct hed_talk_request q;
    struct hed_why why = {""};
    pid_t pid;
    const int code = hed_snap_subject(command, w->subject, w->listen, &pid);

    *out = pid;

    if (code != HED_EXIT_OK)
        return code;
    /* A program whose worker waits for it was left so by a command that died with its guard. */
    if (kind == HED_TALK_RESUME && hed_snap_ask_info(pid, a, &why) == 0 &&
        a->state == HED_TALK_PARKED)
        kind = HED_TALK_CONTINUE;
    hed_talk_ask(&q, kind);
    q.deadline_ms = (uint32_t)(w->deadline_ns / 1000000);
    if (w->verify)
        q.flags |= HED_TALK_VERIFY;
    if (w->gpu)
        (void)hed_str_copy(q.address, sizeof q.address, w->gpu);
    if (hed_talk_call(pid, &q, NULL, 0, -1, a, &why) == 0)
        return HED_EXIT_OK;
    hed_cli_say("%s: process %d: %s", command, (int)pid, why.text);
    return HED_EXIT_FAILED;
}

/* The program has left its worker, whose memory is free when its process has ended: a driver may
 * take long to free much. Returns what to say about it. */
static const char *
wait_for_memory(pid_t pid, const struct hed_talk_answer *a)
{
    const uint64_t end = hed_now_ns() + FREE_NS;
    bool serves = true;

    while (serves) {
        /* Over TCP a server cannot be asked. One that has ended has freed everything. */
        if (hed_ask_serves(a->address, pid, &serves) != 0)
            return strncmp(a->address, "tcp:", 4) == 0
                       ? "; its server is on another machine, and may need a moment to free it"
                       : "";
        if (serves && hed_now_ns() >= end)
            return "; the memory is not free yet, because its worker has not ended (heddle serve "
                   "--list)";
        if (serves)
            hed_sleep_ns(FREE_LOOK_NS);
    }
    return "";
}

static void
show_swap(enum hed_talk_kind kind, const struct hed_talk_answer *a, const char *more, bool verbose)
{
    char bytes[HED_SNAP_AMOUNT], time[HED_SNAP_AMOUNT];

    (void)hed_snap_bytes_text(a->written, bytes);
    (void)hed_snap_time_text(a->total_ns, time);
    if (kind == HED_TALK_OUT)
        hed_cli_tell("%s is out: %s of GPU memory, %s%s", a->program, bytes, time, more);
    else if (kind == HED_TALK_IN)
        hed_cli_tell("%s goes on at %s: %s of GPU memory, %s", a->program, a->address, bytes, time);
    if (verbose)
        hed_snap_print_parts(a);
}

static int
run_swap(const char *command, const char *usage, const struct hed_cli_opt *table,
         enum hed_talk_kind kind, int argc, char **argv)
{
    struct swap_words w = {0};
    struct hed_talk_answer a;
    pid_t pid = 0;
    int code = parse_swap(command, table, &w, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (w.help) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    code = ask_swap(command, kind, &w, &a, &pid);
    if (code == HED_EXIT_OK)
        show_swap(kind, &a, kind == HED_TALK_OUT ? wait_for_memory(pid, &a) : "", w.verbose);
    return code;
}

int
hed_cli_snap_out(int argc, char **argv)
{
    return run_swap("snap out", out_usage, out_options, HED_TALK_OUT, argc, argv);
}

int
hed_cli_snap_in(int argc, char **argv)
{
    return run_swap("snap in", in_usage, in_options, HED_TALK_IN, argc, argv);
}

int
hed_cli_snap_pause(int argc, char **argv)
{
    return run_swap("snap pause", pause_usage, hold_options, HED_TALK_PAUSE, argc, argv);
}

int
hed_cli_snap_resume(int argc, char **argv)
{
    return run_swap("snap resume", resume_usage, resume_options, HED_TALK_RESUME, argc, argv);
}
