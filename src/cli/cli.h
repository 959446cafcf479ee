/* The heddle command: what its subcommands share. One file a subcommand; main.c has the table.
 *
 * A subcommand gets its own name as argv[0], writes results to standard output and everything else
 * to standard error, and returns the exit code. `--help` must work in every one of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum hed_exit {
    HED_EXIT_OK = 0,
    HED_EXIT_FAILED = 1,    /* the thing asked for did not work */
    HED_EXIT_USAGE = 2,     /* wrong words, or a setting that makes no sense */
    HED_EXIT_BROKEN = 125,  /* run: heddle itself is not installed properly */
    HED_EXIT_NOEXEC = 126,  /* run: the program is there and cannot be executed */
    HED_EXIT_MISSING = 127, /* run: no such program */
};

int hed_cli_run(int argc, char **argv);
int hed_cli_serve(int argc, char **argv);
int hed_cli_sched(int argc, char **argv);
int hed_cli_trace(int argc, char **argv);
int hed_cli_cert(int argc, char **argv);
int hed_cli_devices(int argc, char **argv);
int hed_cli_doctor(int argc, char **argv);
int hed_cli_version(int argc, char **argv);

/* One line on standard error, with "heddle: " in front. What a file's name or a value may hold, it
 * must not be able to forge a line or reach the terminal: control characters become "?".
 */
void hed_cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Text without its control characters, and without a newline. */
void hed_cli_put(FILE *out, const char *text);

/* Text folded at 79 columns, with a newline at its end. The caller is at column `at`, where the
 * other lines begin, too; a word that is longer than a line is not cut. Control
 * characters become "?" here, too.
 */
void hed_cli_fold(FILE *out, const char *text, size_t at);

/* How many letters must be added, dropped, changed or swapped to make one word of the other. Words
 * of 32 letters and more are as far as can be. For "did you mean".
 */
#define HED_CLI_FAR 99
unsigned hed_cli_distance(const char *a, const char *b);

/* Is a word at that distance worth suggesting for what the user typed? */
bool hed_cli_similar(unsigned distance, const char *typed);

/* Long options, `--name value`, `--name=value`, and -h for --help. No abbreviations: they would
 * make every new option a change of meaning for somebody. Options end at the first other word, or
 * after `--`.
 */
struct hed_cli_opt {
    const char *name;
    bool takes_value;
};

struct hed_cli_opts {
    const char *command;             /* for messages */
    const struct hed_cli_opt *table; /* ends with a NULL name */
    int argc;
    char **argv;
    int at;            /* the next word; where the operands begin when the options ended */
    const char *value; /* of the option just returned, if it takes one */
};

#define HED_CLI_OPT_END (-1)
#define HED_CLI_OPT_BAD (-2) /* said why */

struct hed_cli_opts hed_cli_opts_over(const struct hed_cli_opt *table, int argc, char **argv);

/* The index of the next option in the table, or one of the two above. */
int hed_cli_opts_next(struct hed_cli_opts *o);

#define HED_CLI_OPERAND (-3)

/* As hed_cli_opts_next, but operands may stand anywhere: HED_CLI_OPERAND, with o->value, for each.
 * -o is --output. *plain must be false at first; `--` sets it.
 */
int hed_cli_words_next(struct hed_cli_opts *o, bool *plain);

/* For commands without operands: says so if there are any. */
bool hed_cli_opts_no_operands(const struct hed_cli_opts *o);

/* ---- settings.c ------------------------------------------------------------------------------ */

struct hed_config;
struct hed_env;
struct hed_why;

/* hed_config_load, and a look at the values that it takes as plain text: those that layers read are
 * refused here, because nobody sees what a layer says. Paths are full ones
 * afterwards, in the settings and in the environment: the program may change its folder before
 * heddle looks at them, and the library takes no others.
 */
int hed_cli_settings(struct hed_config *c, struct hed_env *env, struct hed_why *why);

/* The setting `sched`, as the layer of that name would read it. */
int hed_cli_check_sched(const char *value, struct hed_why *why);

/* The full path of what a path means here. */
int hed_cli_absolute(const char *path, char *out, size_t size, struct hed_why *why);

/* ---- version.c: this build ------------------------------------------------------------------- */

extern const char hed_cli_version_text[]; /* "0.1.0" */
