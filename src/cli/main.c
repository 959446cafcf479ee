/* heddle COMMAND ...: finds the command and runs it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cpu/cpu.h"
#include "cli/fatbin/fatbin.h"
#include "cli/snap/snap.h"
#include "cli/vm/vm.h"
#include "core/config.h"

static int run_help(int argc, char **argv);

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", hed_cli_run, "run a program on heddle's CUDA driver"},
    {"serve", hed_cli_serve, "let programs elsewhere use this machine's GPUs"},
    {"sched", hed_cli_sched, "show and control programs that share a GPU"},
    {"top", hed_cli_top, "show who uses the GPUs now"},
    {"trace", hed_cli_trace, "read the CUDA calls that a program made"},
    {"fatbin", hed_cli_fatbin, "find, list, extract and disassemble the GPU code in a file"},
    {"cpu", hed_cli_cpu, "explain how kernels run on the CPU"},
    {"snap", hed_cli_snap, "save running programs, bring them back, keep snapshots"},
    {"migrate", hed_cli_migrate, "move a running program to another server"},
    {"vm", hed_cli_vm, "connect QEMU guests to a server"},
    {"cert", hed_cli_cert, "create certificates for servers and clients"},
    {"devices", hed_cli_devices, "list the GPUs that programs would see"},
    {"doctor", hed_cli_doctor, "find out what is wrong and how to fix it"},
    {"version", hed_cli_version, "print the version and the build"},
    {"help", run_help, "show help: help COMMAND, help settings"},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const struct command *
find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int
unknown_command(const char *name)
{
    const struct command *best = NULL;
    unsigned least = HED_CLI_FAR;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const unsigned far = hed_cli_distance(name, commands[i].name);

        if (far < least) {
            least = far;
            best = &commands[i];
        }
    }
    if (best && hed_cli_similar(least, name))
        hed_cli_say("there is no command '%s'; did you mean '%s'?", name, best->name);
    else
        hed_cli_say("there is no command '%s'; see heddle --help", name);
    return HED_EXIT_USAGE;
}

static void
print_help(FILE *out)
{
    fputs("usage: heddle COMMAND [OPTION...]\n\n"
          "heddle is a drop-in CUDA driver. It runs unmodified CUDA programs on a GPU of\n"
          "this machine, on a GPU elsewhere or on the CPU, and traces, shares and limits\n"
          "what they do.\n\n",
          out);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fputs("\n"
          "  heddle run -- ./app                    run a program\n"
          "  heddle run --trace app.hed -- ./app    and record its CUDA calls\n"
          "  heddle trace summary app.hed           see where the time went\n"
          "\n"
          "`heddle COMMAND --help` explains each command.\n",
          out);
}

/* Lists every setting, from the same table that reads them. */
static int
print_settings(void)
{
    const char *key, *value, *text;

    puts("A setting comes from `heddle run --set key=value`, from the variable\n"
         "HEDDLE_KEY, or from a line `key = value` in ~/.config/heddle/heddle.conf or,\n"
         "for all users of the machine, in /etc/heddle/heddle.conf.\n"
         "heddle.conf(5) has the details.\n");
    for (size_t i = 0; hed_config_describe(i, &key, &value, &text); i++) {
        printf("  %-15s %s\n", key, text);
        if (value[0])
            printf("  %-15s default: %s\n", "", value);
    }
    return HED_EXIT_OK;
}

static int
run_help(int argc, char **argv)
{
    if (argc > 2) {
        hed_cli_say("help: unexpected '%s'; ask for one command at a time", argv[2]);
        return HED_EXIT_USAGE;
    }
    if (argc < 2 || argv[1][0] == '-' || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return HED_EXIT_OK;
    }
    if (strcmp(argv[1], "settings") == 0)
        return print_settings();

    const struct command *c = find_command(argv[1]);
    char *words[] = {argv[1], (char[]){"--help"}, NULL};

    return c ? c->run(2, words) : unknown_command(argv[1]);
}

static int
run_command(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return HED_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return run_help(1, argv);
    if (strcmp(argv[1], "--version") == 0) {
        printf("heddle %s\n", hed_cli_version_text);
        return HED_EXIT_OK;
    }
    if (argv[1][0] == '-') {
        hed_cli_say("there is no option '%s' before the command; see heddle --help", argv[1]);
        return HED_EXIT_USAGE;
    }

    const struct command *c = find_command(argv[1]);

    return c ? c->run(argc - 1, argv + 1) : unknown_command(argv[1]);
}

int
main(int argc, char **argv)
{
    /* One write per line: a program that heddle has started may write to the same file. */
    (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ);

    const int code = run_command(argc, argv);

    /* A full disk must not look like success. */
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        hed_cli_say("cannot write the output: %s", errno ? strerror(errno) : "write error");
        return code == HED_EXIT_OK ? HED_EXIT_FAILED : code;
    }
    return code;
}
