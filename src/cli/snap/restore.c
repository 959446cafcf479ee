/* heddle snap restore, heddle snap fork. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/io.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/snap/snap.h"
#include "cli/supervise.h"
#include "core/config.h"
#include "move/move.h"
#include "remote/remote.h"

#define COPIES_MAX 1024

static const char restore_usage[] =
    "usage: heddle snap restore FILE|DIR [OPTION...]\n"
    "\n"
    "Makes a saved program again: it goes on where it was saved, with the memory of\n"
    "its GPU. Of a folder, the newest snapshot that is intact is used. The command\n"
    "stays until the program ends, passes signals on to it, and ends as it ends. CRIU\n"
    "makes the process, and needs root.\n"
    "\n"
    "  --gpu WHERE     where its GPU work runs: the address of a server; gpu, cpu or\n"
    "                  auto for this machine (default: the server that it had; for a\n"
    "                  program with a server of its own, such as --ckpt starts, a new\n"
    "                  one)\n"
    "  --new-pids      give it its old number in a namespace of its own: if another\n"
    "                  process has that number now\n"
    "  --detach        do not stay; print the number of its process\n"
    "  --verify        compare its GPU memory with the snapshot before it goes on\n"
    "  --trust-user    restore it although it belongs to another user, who could get\n"
    "                  at files of others: CRIU opens the program's files as root\n"
    "  -h, --help      show this help\n";

static const char fork_usage[] =
    "usage: heddle snap fork FILE|DIR -n N [OPTION...]\n"
    "\n"
    "Starts N programs from one snapshot: all go on where it was saved, each in a\n"
    "namespace of its own. The command stays until all have ended. It fails if one of\n"
    "them does.\n"
    "\n"
    "  -n, --copies N  how many (default: 1)\n"
    "  --gpu WHERE     as in heddle snap restore\n"
    "  --verify        as in heddle snap restore\n"
    "  --trust-user    as in heddle snap restore\n"
    "  -h, --help      show this help\n";

enum { OPT_GPU, OPT_VERIFY, OPT_HELP, OPT_NEW_PIDS, OPT_DETACH, OPT_TRUST_USER, OPT_COPIES };

static const struct hed_cli_opt restore_options[] = {
    [OPT_GPU] = {"gpu", true},
    [OPT_VERIFY] = {"verify", false},
    [OPT_HELP] = {"help", false},
    [OPT_NEW_PIDS] = {"new-pids", false},
    [OPT_DETACH] = {"detach", false},
    [OPT_TRUST_USER] = {"trust-user", false},
    {NULL, false},
};

static const struct hed_cli_opt fork_options[] = {
    [OPT_GPU] = {"gpu", true},        [OPT_VERIFY] = {"verify", false},
    [OPT_HELP] = {"help", false},     [OPT_NEW_PIDS] = {"new-pids", false},
    [OPT_DETACH] = {"detach", false}, [OPT_TRUST_USER] = {"trust-user", false},
    [OPT_COPIES] = {"copies", true},  {NULL, false},
};

struct restore_words {
    const char *command;
    const char *file, *gpu;
    uint64_t copies;
    bool new_pids, detach, verify, trust_user, help;
    char dir[PATH_MAX], name[HED_SNAP_FILE_NAME]; /* of the file; name is "" for a folder */
    struct hed_private_server server;             /* if there is one */
    char noted[HED_SNAP_GPU];                     /* what its own server used, if it had one */
};

static int
take_restore_word(struct restore_words *w, int option, const char *value)
{
    if (option == HED_CLI_OPT_BAD)
        return HED_EXIT_USAGE;
    if (option == HED_CLI_OPERAND && w->file) {
        hed_cli_say("%s: unexpected '%s'; one snapshot at a time", w->command, value);
        return HED_EXIT_USAGE;
    }
    if (option == HED_CLI_OPERAND)
        w->file = value;
    if (option == OPT_GPU)
        w->gpu = value;
    if (option == OPT_COPIES &&
        (hed_parse_u64(value, &w->copies) != 0 || w->copies < 1 || w->copies > COPIES_MAX)) {
        hed_cli_say("%s: -n '%s' is not a number from 1 to %d", w->command, value, COPIES_MAX);
        return HED_EXIT_USAGE;
    }
    w->verify = w->verify || option == OPT_VERIFY;
    w->new_pids = w->new_pids || option == OPT_NEW_PIDS;
    w->detach = w->detach || option == OPT_DETACH;
    w->trust_user = w->trust_user || option == OPT_TRUST_USER;
    w->help = w->help || option == OPT_HELP;
    return HED_EXIT_OK;
}

/* Checks the values before anything is started. */
static int
check_restore_words(struct restore_words *w)
{
    struct hed_config config;
    struct hed_why why = {""};
    const int fd = w->file ? open(w->file, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

    if (!w->file) {
        hed_cli_say("%s: no snapshot given; see heddle %s --help", w->command, w->command);
        return HED_EXIT_USAGE;
    }
    if (fd >= 0) {
        close(fd);
        (void)hed_str_copy(w->dir, sizeof w->dir, w->file);
    } else if (hed_snap_place_split(w->file, w->dir, w->name, &why) != 0) {
        hed_cli_say("%s: %s", w->command, why.text);
        return HED_EXIT_USAGE;
    }
    hed_config_init(&config);
    if (w->gpu && hed_config_set(&config, "gpu", w->gpu, &why) != 0) {
        hed_cli_say("%s: --gpu: %s", w->command, why.text);
        return HED_EXIT_USAGE;
    }
    if (w->gpu && !hed_address_is(w->gpu) && w->detach) {
        hed_cli_say("%s: --detach needs a server that stays: --gpu ADDRESS (heddle serve)",
                    w->command);
        return HED_EXIT_USAGE;
    }
    return HED_EXIT_OK;
}

static int
parse_restore(struct restore_words *w, const struct hed_cli_opt *table, int argc, char **argv)
{
    static char copies[] = "--copies";
    struct hed_cli_opts o = hed_cli_opts_over(table, argc, argv);
    bool plain = false;
    int option;

    o.command = w->command;
    for (int i = 1; i < argc; i++)
        if (table == fork_options && strcmp(argv[i], "-n") == 0)
            argv[i] = copies;
    while (!w->help && (option = hed_cli_words_next(&o, &plain)) != HED_CLI_OPT_END) {
        const int code = take_restore_word(w, option, o.value);

        if (code != 0)
            return code;
    }
    return w->help ? HED_EXIT_OK : check_restore_words(w);
}

/* A program that had a server of its own gets another one. */
static int
choose_private(struct restore_words *w)
{
    struct hed_config config;
    struct hed_why why = {""};

    if (hed_snap_private_gpu(w->dir, w->name[0] ? w->name : NULL, w->noted, &why) != 0) {
        hed_cli_say("%s: %s: %s", w->command, w->file, why.text);
        return HED_EXIT_FAILED;
    }
    if (!w->noted[0])
        return HED_EXIT_OK;
    hed_config_init(&config);
    if (hed_address_is(w->noted) || hed_config_set(&config, "gpu", w->noted, &why) != 0) {
        hed_cli_say("%s: %s: the snapshot does not say what GPU it used: give --gpu", w->command,
                    w->file);
        return HED_EXIT_FAILED;
    }
    if (w->detach) {
        hed_cli_say("%s: the program had a server of its own, which would have to stay: --detach "
                    "needs --gpu ADDRESS (heddle serve)",
                    w->command);
        return HED_EXIT_USAGE;
    }
    w->gpu = w->noted;
    return HED_EXIT_OK;
}

/* Where the work is to run. Devices of this machine are used through a server of our own. */
static int
choose_address(struct restore_words *w, const char **out)
{
    struct hed_why why = {""};
    const int code = w->gpu ? HED_EXIT_OK : choose_private(w);

    *out = w->gpu ? w->gpu : "";
    if (code != HED_EXIT_OK || !w->gpu || hed_address_is(w->gpu))
        return code;
    if (hed_private_start(w->gpu, &w->server, &why) != 0) {
        hed_cli_say("%s: %s%s: %s", w->command, w->gpu == w->noted ? "" : "--gpu ", w->gpu,
                    why.text);
        return HED_EXIT_FAILED;
    }
    *out = w->server.address;
    return HED_EXIT_OK;
}

static int
bring_program(const struct restore_words *w, const char *address, struct hed_snap_brought *out)
{
    const struct hed_snap_bring b = {.say = hed_cli_say,
                                     .dir = w->dir,
                                     .name = w->name[0] ? w->name : NULL,
                                     .address = address,
                                     .verify = w->verify,
                                     .trust_user = w->trust_user};
    struct hed_why why = {""};
    const int err = hed_snap_bring(&b, out, &why);

    if (err == 0)
        return HED_EXIT_OK;
    hed_cli_say("%s: %s: %s%s", w->command, w->file, why.text,
                err == HED_EEXIST && !w->new_pids ? "; --new-pids restores it in a namespace of "
                                                    "its own"
                                                  : "");
    return HED_EXIT_FAILED;
}

/* Process 1 of a namespace: makes the program, says so, and stays until it ends. */
__attribute__((noreturn)) static void
be_first_process(const struct restore_words *w, const char *address, int say)
{
    struct hed_snap_brought brought;
    struct hed_supervised s = {.was_saved = hed_saved_hear};
    int signal_number = 0;
    int code;

    hed_supervise_prepare(NULL);
    code = bring_program(w, address, &brought);
    if (code == HED_EXIT_OK) {
        (void)hed_write_all(say, brought.socket, sizeof brought.socket);
        close(say);
        s.pid = brought.pid;
        code = hed_supervise(&s, &signal_number);
    }
    fflush(NULL);
    _exit(code);
}

/* Makes the program in a namespace. *init is its process 1, here. */
static int
bring_elsewhere(const struct restore_words *w, const char *address, pid_t *init, pid_t *pid)
{
    char socket[HED_TALK_PATH_MAX];
    struct hed_why why = {""};
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) != 0 || hed_snap_new_pids(init, &why) != 0) {
        hed_cli_say("%s: %s", w->command, why.text);
        return HED_EXIT_FAILED;
    }
    if (*init == 0) {
        close(fds[0]);
        be_first_process(w, address, fds[1]);
    }
    close(fds[1]);

    const int err = hed_read_all(fds[0], socket, sizeof socket);

    close(fds[0]);
    if (err != 0) {
        (void)waitpid(*init, NULL, 0); /* it has said why */
        return HED_EXIT_FAILED;
    }
    socket[sizeof socket - 1] = '\0';
    if (hed_snap_rename_socket(*init, socket, pid, &why) != 0) {
        hed_cli_say("%s: the program goes on, but cannot be reached: %s", w->command, why.text);
        *pid = *init;
    }
    return HED_EXIT_OK;
}

static int
restore_one(struct restore_words *w, const char *address, int *signal_number)
{
    struct hed_snap_brought brought = {.pid = -1};
    struct hed_supervised s = {.was_saved = hed_saved_hear};
    pid_t pid = 0;
    int code;

    if (!w->detach)
        hed_supervise_prepare(NULL);
    code = w->new_pids ? bring_elsewhere(w, address, &s.pid, &pid)
                       : bring_program(w, address, &brought);
    if (code != HED_EXIT_OK)
        return code;
    if (!w->new_pids)
        s.pid = pid = brought.pid;
    if (w->detach) {
        printf("%d\n", (int)pid);
        return HED_EXIT_OK;
    }
    return hed_supervise(&s, signal_number);
}

int
hed_cli_snap_restore(int argc, char **argv)
{
    struct restore_words w = {.command = "snap restore", .copies = 1};
    const char *address = NULL;
    int signal_number = 0;
    int code = parse_restore(&w, restore_options, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (w.help) {
        fputs(restore_usage, stdout);
        return HED_EXIT_OK;
    }
    if (w.detach && w.new_pids) {
        hed_cli_say(
            "snap restore: --new-pids needs this command to stay, so --detach is not possible");
        return HED_EXIT_USAGE;
    }
    code = choose_address(&w, &address);
    if (code == HED_EXIT_OK)
        code = restore_one(&w, address, &signal_number);
    hed_private_stop(&w.server);
    if (signal_number)
        hed_supervise_die(signal_number);
    return code;
}

/* One after the other: while a program is made, it has the socket of its old number. */
static int
fork_all(const struct restore_words *w, const char *address, pid_t *inits)
{
    for (uint64_t i = 0; i < w->copies; i++) {
        pid_t pid;

        if (bring_elsewhere(w, address, &inits[i], &pid) != HED_EXIT_OK) {
            while (i > 0)
                (void)kill(inits[--i], SIGKILL); /* and all processes of its namespace */
            return HED_EXIT_FAILED;
        }
        printf("%d\n", (int)pid);
        fflush(stdout);
    }
    return HED_EXIT_OK;
}

int
hed_cli_snap_fork(int argc, char **argv)
{
    struct restore_words w = {.command = "snap fork", .copies = 1, .new_pids = true};
    const char *address = NULL;
    pid_t *inits;
    int code = parse_restore(&w, fork_options, argc, argv);

    if (code != HED_EXIT_OK)
        return code;
    if (w.help) {
        fputs(fork_usage, stdout);
        return HED_EXIT_OK;
    }
    inits = calloc(w.copies, sizeof *inits);
    code = inits ? choose_address(&w, &address) : HED_EXIT_FAILED;
    if (code == HED_EXIT_OK)
        code = fork_all(&w, address, inits);
    if (code == HED_EXIT_OK) {
        for (uint64_t i = 0; i < w.copies; i++) {
            int status = 0;

            if (waitpid(inits[i], &status, 0) == inits[i] && status != 0)
                code = HED_EXIT_FAILED;
        }
    }
    hed_private_stop(&w.server);
    free(inits);
    return code;
}
