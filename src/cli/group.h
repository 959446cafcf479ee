/* A command that has commands of its own: `heddle trace show`. */
#pragma once

#include <stddef.h>

struct hed_cli_group {
    const char *name; /* trace */
    const char *head; /* help before the list of commands */
    const char *tail; /* and after it */
    const struct {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *summary;
    } commands[8]; /* a NULL name ends them */
};

/* Finds the command that argv[1] names, or helps. `call` runs it; NULL: it is called as it is. */
int hed_cli_group(const struct hed_cli_group *g, int argc, char **argv,
                  int (*call)(int (*run)(int, char **), int argc, char **argv));
