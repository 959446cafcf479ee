/* heddle snap save. */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"
#include "move/move.h"

static const char usage[] =
    "usage: heddle snap save PID|WORKER [-o FILE | --dir DIR] [OPTION...]\n"
    "\n"
    "Saves a running program with its GPU memory in a file, and ends it. `heddle snap\n"
    "restore FILE` makes it go on. The program must use its GPU through a server\n"
    "(heddle run --gpu ADDRESS, or heddle run --ckpt). It is named by the number of\n"
    "its process, or of its worker (heddle serve --list). CRIU saves the process, and\n"
    "needs root. If anything fails, the program goes on.\n"
    "\n"
    "  -o, --output FILE  write this file (default: heddle-PID.snap)\n"
    "  --dir DIR          write a file in this folder of snapshots; only what has\n"
    "                     changed since the program's last snapshot there is written\n"
    "  --leave-running    let the program go on\n"
    "  --zstd LEVEL       pack the file, 1 (fast) to 19 (small)\n"
    "  --label TEXT       a remark that `heddle snap list` shows\n"
    "  --deadline TIME    how long the program may take to finish its GPU work, such\n"
    "                     as 500ms or 60s (the default)\n"
    "  --listen ADDRESS   the server that knows WORKER\n"
    "  -h, --help         show this help\n";

enum { OPT_OUTPUT, OPT_DIR, OPT_LEAVE, OPT_ZSTD, OPT_LABEL, OPT_DEADLINE, OPT_LISTEN, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_OUTPUT] = {"output", true},
    [OPT_DIR] = {"dir", true},
    [OPT_LEAVE] = {"leave-running", false},
    [OPT_ZSTD] = {"zstd", true},
    [OPT_LABEL] = {"label", true},
    [OPT_DEADLINE] = {"deadline", true},
    [OPT_LISTEN] = {"listen", true},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

struct save_words {
    const char *subject, *output, *dir, *listen, *label;
    uint64_t zstd, deadline_ns;
    bool leave, help;
};

static int
take_save_word(struct save_words *w, int option, const char *value)
{
    switch (option) {
    case HED_CLI_OPERAND:
        if (w->subject) {
            hed_cli_say("snap save: unexpected '%s'; one program at a time", value);
            return HED_EXIT_USAGE;
        }
        w->subject = value;
        return HED_EXIT_OK;
    case OPT_OUTPUT:
        w->output = value;
        return HED_EXIT_OK;
    case OPT_DIR:
        w->dir = value;
        return HED_EXIT_OK;
    case OPT_LEAVE:
        w->leave = true;
        return HED_EXIT_OK;
    case OPT_LABEL:
        w->label = value;
        return HED_EXIT_OK;
    case OPT_LISTEN:
        w->listen = value;
        return HED_EXIT_OK;
    case OPT_HELP:
        w->help = true;
        return HED_EXIT_OK;
    case OPT_ZSTD:
        if (hed_parse_u64(value, &w->zstd) == 0 && w->zstd >= 1 && w->zstd <= 19)
            return HED_EXIT_OK;
        hed_cli_say("snap save: --zstd '%s' is not a level from 1 to 19", value);
        return HED_EXIT_USAGE;
    case OPT_DEADLINE:
        if (hed_snap_parse_time(value, &w->deadline_ns) == 0 &&
            w->deadline_ns <= UINT32_MAX * UINT64_C(1000000))
            return HED_EXIT_OK;
        hed_cli_say("snap save: --deadline '%s' is not a time such as 500ms or 60s", value);
        return HED_EXIT_USAGE;
    default:
        return HED_EXIT_USAGE;
    }
}

static int
parse_save(struct save_words *w, int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    int option;

    o.command = "snap save";
    while (!w->help && (option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        const int code =
            option == HED_CLI_OPT_BAD ? HED_EXIT_USAGE : take_save_word(w, option, o.value);

        if (code != 0)
            return code;
    }
    if (w->output && w->dir) {
        hed_cli_say("snap save: -o names a file and --dir a folder; give one of them");
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

static void
report_taken(const struct save_words *w, const struct hed_snap_taken *t)
{
    char a[HED_SNAP_AMOUNT], b[HED_SNAP_AMOUNT], c[HED_SNAP_AMOUNT];

    hed_cli_tell("%s: %s of GPU memory in a file of %s, %s", t->path,
                 hed_snap_bytes_text(t->device_bytes, a), hed_snap_bytes_text(t->file_bytes, b),
                 hed_snap_time_text(t->total_ns, c));
    if (w->leave)
        printf("the program stood still for %s%s\n", hed_snap_time_text(t->stall_ns, a),
               t->staged ? "" : ", because the GPU has no room for a copy of its memory meanwhile");
}

int
hed_cli_snap_save(int argc, char **argv)
{
    struct save_words w = {.deadline_ns = HED_SNAP_DEADLINE_MS * UINT64_C(1000000)};
    struct hed_snap_take t = {.say = hed_cli_say};
    struct hed_snap_taken taken;
    struct hed_why why = {""};
    char dir[PATH_MAX], name[HED_SNAP_FILE_NAME], usual[64];
    int code = parse_save(&w, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (w.help) {
        fputs(usage, stdout);
        return HED_EXIT_OK;
    }
    code = hed_snap_subject("snap save", w.subject, w.listen, &t.pid);
    if (code != HED_EXIT_OK)
        return code;
    t.dir = w.dir;
    t.running = w.leave;
    t.zstd = (int)w.zstd;
    t.label = w.label;
    t.deadline_ms = (uint32_t)(w.deadline_ns / 1000000);
    if (!w.dir) {
        (void)snprintf(usual, sizeof usual, "heddle-%d.snap", (int)t.pid);
        if (hed_snap_place_split(w.output ? w.output : usual, dir, name, &why) != 0) {
            hed_cli_say("snap save: -o: %s", why.text);
            return HED_EXIT_USAGE;
        }
        t.dir = dir;
        t.name = name;
        t.own_file = true;
    }
    if (hed_snap_take(&t, &taken, &why) != 0) {
        hed_cli_say("snap save: process %d: %s", (int)t.pid, why.text);
        return HED_EXIT_FAILED;
    }
    report_taken(&w, &taken);
    return HED_EXIT_OK;
}
