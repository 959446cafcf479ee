/* A command that has subcommands, as in `heddle trace show`. */
#pragma once

#include <stddef.h>

struct hed_cli_group {
    const char *name; /* trace */
    const char *head; /* the help text before the list of subcommands */
    const char *tail; /* the help text after it */
    const struct {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *summary;
    } commands[16]; /* a NULL name ends them */
};

/* Runs the subcommand that argv[1] names, or prints help. `call` calls it; NULL: it is called
 * directly. */
int hed_cli_group(const struct hed_cli_group *g, int argc, char **argv,
                  int (*call)(int (*run)(int, char **), int argc, char **argv));
