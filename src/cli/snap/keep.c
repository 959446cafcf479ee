/* heddle snap prune and heddle snap compact: fewer snapshots, and shorter chains of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"
#include "move/move.h"

#define KEEP_USUAL 3
#define ZSTD_MOST 19

static const char prune_usage[] =
    "usage: heddle snap prune FOLDER [OPTION...]\n"
    "\n"
    "Removes all but the newest snapshots of each program, and what processes that\n"
    "died left behind. A snapshot that a kept one needs is never removed; compact the\n"
    "newest one first to get rid of those.\n"
    "\n"
    "  --keep N     keep N snapshots of each program that can be used (default: 3)\n"
    "  --damaged    remove damaged snapshots, too\n"
    "  --dry-run    only print what would be removed\n"
    "  -h, --help   show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if the folder cannot be changed or a snapshot\n"
    "is being written there, 2 if an option is wrong.\n";

static const char compact_usage[] =
    "usage: heddle snap compact FILE [OPTION...]\n"
    "\n"
    "Writes a snapshot again as a new file that needs no other. The old one stays;\n"
    "use heddle snap prune to remove it and those that only it needed.\n"
    "\n"
    "  -o, --output NAME   name of the new file, in the same folder\n"
    "  --zstd LEVEL        compress (1 to 19); without it, nothing is compressed\n"
    "  -h, --help          show this help\n"
    "\n"
    "The exit code is 0 on success, 1 if the snapshot cannot be read or written, 2 if\n"
    "an option is wrong.\n";

/* ---- prune ----------------------------------------------------------------------------------- */

enum { PRUNE_KEEP, PRUNE_DAMAGED, PRUNE_DRY, PRUNE_HELP };

static const struct hed_cli_opt prune_options[] = {
    [PRUNE_KEEP] = {"keep", true},
    [PRUNE_DAMAGED] = {"damaged", false},
    [PRUNE_DRY] = {"dry-run", false},
    [PRUNE_HELP] = {"help", false},
    {NULL, false},
};

struct prune_request {
    const char *path;
    uint32_t keep;
    bool damaged;
    bool dry;
};

static void
print_gone(void *arg, const char *name)
{
    const struct prune_request *q = arg;

    printf("%s ", q->dry ? "would remove" : "removed");
    hed_cli_put(stdout, name);
    putchar('\n');
}

static int
prune_folder(struct prune_request *q)
{
    struct hed_snap_pruned p = {0};
    struct hed_why why = {""};
    struct hed_cli_snaps s;
    char bytes[32];
    int code = hed_cli_snap_folder("snap prune", q->path, &s);

    if (code != HED_EXIT_OK)
        return code;
    if (hed_snap_store_prune(s.store, q->keep, q->damaged, q->dry, print_gone, q, &p, &why) != 0) {
        hed_cli_say("snap prune: %s: %s", q->path, why.text);
        code = HED_EXIT_FAILED;
    } else {
        printf("%" PRIu32 " removed (%s), %" PRIu32 " kept", p.removed,
               hed_cli_snap_bytes(p.bytes, bytes, sizeof bytes), p.kept);
        if (p.needed)
            printf(", %" PRIu32 " of them only because newer ones need them", p.needed);
        putchar('\n');
    }
    hed_cli_snap_close(&s);
    return code;
}

int
hed_cli_snap_prune(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(prune_options, argc, argv);
    struct prune_request q = {.keep = KEEP_USUAL};
    bool plain = false;
    uint64_t n = KEEP_USUAL;
    int option;

    o.command = "snap prune";
    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == PRUNE_HELP) {
            fputs(prune_usage, stdout);
            return HED_EXIT_OK;
        }
        if (option == PRUNE_KEEP && (hed_parse_u64(o.value, &n) != 0 || n == 0 || n > UINT32_MAX)) {
            hed_cli_say("snap prune: --keep '%s' is not a number of snapshots", o.value);
            return HED_EXIT_USAGE;
        }
        if (option == HED_CLI_OPERAND && q.path) {
            hed_cli_say("snap prune: unexpected '%s'; give one folder", o.value);
            return HED_EXIT_USAGE;
        }
        if (option == HED_CLI_OPERAND)
            q.path = o.value;
        q.damaged = q.damaged || option == PRUNE_DAMAGED;
        q.dry = q.dry || option == PRUNE_DRY;
    }
    q.keep = (uint32_t)n;
    if (!q.path) {
        hed_cli_say("snap prune: no folder given; see heddle snap prune --help");
        return HED_EXIT_USAGE;
    }
    return prune_folder(&q);
}

/* ---- compact --------------------------------------------------------------------------------- */

enum { COMPACT_OUTPUT, COMPACT_ZSTD, COMPACT_HELP };

static const struct hed_cli_opt compact_options[] = {
    [COMPACT_OUTPUT] = {"output", true},
    [COMPACT_ZSTD] = {"zstd", true},
    [COMPACT_HELP] = {"help", false},
    {NULL, false},
};

static int
compact_file(const char *path, const char *name, int zstd)
{
    char made[HED_SNAP_FILE_NAME] = "";
    struct hed_why why = {""};
    struct hed_cli_snaps s;
    int code = hed_cli_snap_file("snap compact", path, &s);

    if (code != HED_EXIT_OK)
        return code;
    if (hed_snap_store_compact(s.store, s.name, name, zstd, made, &why) != 0) {
        hed_cli_say("snap compact: %s: %s", path, why.text);
        code = HED_EXIT_FAILED;
    } else {
        hed_cli_put(stdout, made);
        putchar('\n');
    }
    hed_cli_snap_close(&s);
    return code;
}

int
hed_cli_snap_compact(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(compact_options, argc, argv);
    const char *path = NULL, *name = NULL;
    bool plain = false;
    uint64_t zstd = 0;
    int option;

    o.command = "snap compact";
    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == COMPACT_HELP) {
            fputs(compact_usage, stdout);
            return HED_EXIT_OK;
        }
        if (option == COMPACT_ZSTD &&
            (hed_parse_u64(o.value, &zstd) != 0 || zstd == 0 || zstd > ZSTD_MOST)) {
            hed_cli_say("snap compact: --zstd '%s' is not a level from 1 to %d", o.value,
                        ZSTD_MOST);
            return HED_EXIT_USAGE;
        }
        if (option == HED_CLI_OPERAND && path) {
            hed_cli_say("snap compact: unexpected '%s'; give one file", o.value);
            return HED_EXIT_USAGE;
        }
        if (option == HED_CLI_OPERAND)
            path = o.value;
        if (option == COMPACT_OUTPUT)
            name = o.value;
    }
    if (!path) {
        hed_cli_say("snap compact: no file given; see heddle snap compact --help");
        return HED_EXIT_USAGE;
    }
    return compact_file(path, name, (int)zstd);
}
