/* heddle snap: the table of its subcommands, and what those that look at files share. */
#include "cli/snap/snap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/group.h"
#include "move/move.h"

static const struct hed_cli_group group = {
    .name = "snap",
    .head = "usage: heddle snap COMMAND [OPTION...]\n\n"
            "Saves running programs with their GPU memory, and brings them back.\n\n",
    .tail = "\n"
            "  heddle snap save 1234 -o app.snap      save process 1234, and end it\n"
            "  heddle snap restore app.snap           it goes on where it was\n"
            "  heddle snap list snapshots/\n"
            "  heddle snap verify snapshots/\n"
            "  heddle snap prune snapshots/ --keep 3\n"
            "\n"
            "`heddle snap COMMAND --help` explains each command.\n",
    .commands =
        {
            {"save", hed_cli_snap_save, "save a running program, and end it or let it go on"},
            {"restore", hed_cli_snap_restore, "make a saved program again; it goes on"},
            {"fork", hed_cli_snap_fork, "start several programs from one snapshot"},
            {"out", hed_cli_snap_out, "pause a program and free its GPU memory"},
            {"in", hed_cli_snap_in, "give it its GPU memory again, perhaps elsewhere"},
            {"pause", hed_cli_snap_pause, "let a program wait at its next CUDA call"},
            {"resume", hed_cli_snap_resume, "let it go on"},
            {"list", hed_cli_snap_list, "show the snapshots of a folder"},
            {"info", hed_cli_snap_info, "show what is in a snapshot"},
            {"verify", hed_cli_snap_verify, "read all of a snapshot and check it"},
            {"prune", hed_cli_snap_prune, "remove old snapshots"},
            {"compact", hed_cli_snap_compact, "make a snapshot independent of older ones"},
        },
};

int
hed_cli_snap(int argc, char **argv)
{
    return hed_cli_group(&group, argc, argv, NULL);
}

/* ---- files ----------------------------------------------------------------------------------- */

int
hed_cli_snap_folder(const char *command, const char *path, struct hed_cli_snaps *out)
{
    struct hed_cli_snaps s = {.folder = -1};
    struct hed_why why = {""};

    s.folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s.folder < 0) {
        hed_cli_say("%s: cannot open the folder '%s': %s", command, path, strerror(errno));
        return HED_EXIT_FAILED;
    }
    if (hed_snap_store_open(&hed_snap_files_real, s.folder, &s.store, &why) != 0) {
        hed_cli_say("%s: %s: %s", command, path, why.text);
        (void)close(s.folder);
        return HED_EXIT_FAILED;
    }
    *out = s;
    return HED_EXIT_OK;
}

int
hed_cli_snap_file(const char *command, const char *path, struct hed_cli_snaps *out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char folder[4096] = ".";

    if (slash)
        (void)snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path),
                       path);
    if (!name[0] || strlen(name) >= sizeof out->name ||
        (slash && (size_t)(slash - path) >= sizeof folder)) {
        hed_cli_say("%s: '%s' cannot be a snapshot", command, path);
        return HED_EXIT_USAGE;
    }

    const int code = hed_cli_snap_folder(command, folder, out);

    if (code == HED_EXIT_OK)
        (void)hed_str_copy(out->name, sizeof out->name, name);
    return code;
}

void
hed_cli_snap_close(struct hed_cli_snaps *s)
{
    hed_snap_store_close(s->store);
    if (s->folder >= 0)
        (void)close(s->folder);
    *s = (struct hed_cli_snaps){.folder = -1};
}

bool
hed_cli_snap_is_folder(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- text ------------------------------------------------------------------------------------ */

const char *
hed_cli_snap_bytes(uint64_t n, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)n;
    size_t unit = 0;

    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    if (unit == 0)
        (void)snprintf(out, size, "%" PRIu64 " B", n);
    else
        (void)snprintf(out, size, "%.1f %s", value, units[unit]);
    return out;
}

const char *
hed_cli_snap_time(uint64_t ns, char *out, size_t size)
{
    const time_t t = (time_t)(ns / 1000000000u);
    struct tm tm;

    out[0] = '\0';
    if (ns && localtime_r(&t, &tm))
        (void)strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm);
    return out;
}
