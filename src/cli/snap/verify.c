/* heddle snap verify: reads all of a snapshot and checks every checksum. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"
#include "move/move.h"

static const char usage[] =
    "usage: heddle snap verify FILE|FOLDER... [OPTION...]\n"
    "\n"
    "Reads all bytes of snapshots, also those that lie in older files they need, and\n"
    "checks every checksum. For a folder, all its snapshots are checked.\n"
    "\n"
    "  --threads N   read with N threads (default: one per processor, at most 8)\n"
    "  --quiet       print nothing for snapshots that are intact\n"
    "  -h, --help    show this help\n"
    "\n"
    "The exit code is 0 if all are intact, 1 if one is damaged or cannot be read, 2\n"
    "if an option is wrong.\n";

enum { OPT_THREADS, OPT_QUIET, OPT_HELP };

static const struct hed_cli_opt options[] = {
    [OPT_THREADS] = {"threads", true},
    [OPT_QUIET] = {"quiet", false},
    [OPT_HELP] = {"help", false},
    {NULL, false},
};

struct verify_request {
    unsigned threads;
    bool quiet;
};

static int
verify_one(const struct verify_request *q, struct hed_cli_snaps *s, const char *name)
{
    struct hed_snap_reader *r = NULL;
    struct hed_snap_verdict v = {0};
    struct hed_why why = {""};
    const uint64_t began = hed_now_ns();
    char bytes[32];
    int fd = -1;
    int err = hed_snap_store_get(s->store, name, 0, &fd, &r, &why);

    err = err ? err : hed_snap_verify(r, q->threads, &v, &why);
    if (err) {
        hed_cli_say("snap verify: %s: %s", name, why.text);
    } else if (!q->quiet) {
        const double seconds = (double)(hed_now_ns() - began) * 1e-9;

        hed_cli_put(stdout, name);
        printf(": intact, %s in %.2f s\n", hed_cli_snap_bytes(v.bytes, bytes, sizeof bytes),
               seconds);
    }
    hed_snap_reader_free(r);
    if (fd >= 0)
        (void)hed_snap_files_real.close(NULL, fd);
    return err ? HED_EXIT_FAILED : HED_EXIT_OK;
}

static int
verify_folder(const struct verify_request *q, const char *path)
{
    struct hed_cli_snaps s;
    struct hed_snap_list l;
    struct hed_why why = {""};
    int code = hed_cli_snap_folder("snap verify", path, &s);

    if (code != HED_EXIT_OK)
        return code;
    if (hed_snap_store_list(s.store, &l, &why) != 0) {
        hed_cli_say("snap verify: %s: %s", path, why.text);
        hed_cli_snap_close(&s);
        return HED_EXIT_FAILED;
    }
    if (l.count == 0) {
        hed_cli_say("snap verify: there is no snapshot in '%s'", path);
        code = HED_EXIT_FAILED;
    }
    for (size_t i = 0; i < l.count; i++) {
        /* One that is kept only for its bytes is checked with those that need it. */
        if (l.entries[i].err == HED_ENOTFOUND && l.entries[i].users)
            continue;
        if (verify_one(q, &s, l.entries[i].name) != HED_EXIT_OK)
            code = HED_EXIT_FAILED;
    }
    hed_snap_list_fini(&l);
    hed_cli_snap_close(&s);
    return code;
}

static int
verify_path(const struct verify_request *q, const char *path)
{
    struct hed_cli_snaps s;

    if (hed_cli_snap_is_folder(path))
        return verify_folder(q, path);

    int code = hed_cli_snap_file("snap verify", path, &s);

    if (code != HED_EXIT_OK)
        return code;
    code = verify_one(q, &s, s.name);
    hed_cli_snap_close(&s);
    return code;
}

/* Reads the options; the operands are left to the caller. Returns -1 to go on, or the exit code. */
static int
read_verify_words(int argc, char **argv, struct verify_request *q, size_t *count)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    bool plain = false;
    uint64_t n = 0;
    int option;

    o.command = "snap verify";
    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPT_BAD)
            return HED_EXIT_USAGE;
        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return HED_EXIT_OK;
        }
        if (option == OPT_THREADS && (hed_parse_u64(o.value, &n) != 0 || n == 0 || n > 64)) {
            hed_cli_say("snap verify: --threads '%s' is not a number from 1 to 64", o.value);
            return HED_EXIT_USAGE;
        }
        q->threads = (unsigned)n;
        q->quiet = q->quiet || option == OPT_QUIET;
        *count += option == HED_CLI_OPERAND;
    }
    if (*count)
        return -1;
    hed_cli_say("snap verify: no file or folder given; see heddle snap verify --help");
    return HED_EXIT_USAGE;
}

int
hed_cli_snap_verify(int argc, char **argv)
{
    struct hed_cli_opts o = hed_cli_opts_over(options, argc, argv);
    struct verify_request q = {0};
    size_t count = 0;
    bool plain = false;
    int option;
    int code = read_verify_words(argc, argv, &q, &count);

    if (code >= 0)
        return code;
    code = HED_EXIT_OK;
    o.command = "snap verify";
    while ((option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        if (option == HED_CLI_OPERAND && verify_path(&q, o.value) != HED_EXIT_OK)
            code = HED_EXIT_FAILED;
    }
    return code;
}
