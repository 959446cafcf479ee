/* The heddle command: what its subcommands share. Each subcommand has one file, or a folder where
 * that is not enough; main.c has the table.
 *
 * A subcommand gets its own name as argv[0], writes results to standard output and everything else
 * to standard error, and returns the exit code. `--help` must work in every one of them.
 *
 * An error message names the command, then says what failed, with which value, and what to do:
 *
 *     heddle: run: --mem 'lots' is not a size such as 64k or 1M
 *     heddle: trace show: no file given; see heddle trace show --help
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum hed_exit {
    HED_EXIT_OK = 0,
    HED_EXIT_FAILED = 1,    /* the thing asked for did not work */
    HED_EXIT_USAGE = 2,     /* a wrong option, operand or setting */
    HED_EXIT_WORSE = 3,     /* trace diff: something is worse in the second trace */
    HED_EXIT_REFUSED = 123, /* run: heddle refused something (--fail-on-refusal) */
    HED_EXIT_BROKEN = 125,  /* run: heddle itself is not installed properly */
    HED_EXIT_NOEXEC = 126,  /* run: the program exists but cannot be executed */
    HED_EXIT_MISSING = 127, /* run: there is no such program */
};

int hed_cli_run(int argc, char **argv);
int hed_cli_serve(int argc, char **argv);
int hed_cli_sched(int argc, char **argv);
int hed_cli_migrate(int argc, char **argv);
int hed_cli_top(int argc, char **argv);
int hed_cli_trace(int argc, char **argv);
int hed_cli_cert(int argc, char **argv);
int hed_cli_devices(int argc, char **argv);
int hed_cli_doctor(int argc, char **argv);
int hed_cli_version(int argc, char **argv);

/* Prints one line on standard error that begins with "heddle: ". Control characters become "?", so
 * that a file name or a value can neither forge a line nor control the terminal.
 */
void hed_cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same on standard output, without "heddle: ". */
void hed_cli_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Says that this build has not got what `command` needs, and which option of CMake left it out.
 * Returns the exit code. */
int hed_cli_lacks(const char *command, const char *option);

/* Prints text with its control characters replaced, without a newline. */
void hed_cli_put(FILE *out, const char *text);

/* Prints text folded at 79 columns, and a newline. The caller has printed up to column `at`, where
 * the other lines begin, too. A word that is longer than a line is not cut. Control characters
 * become "?".
 */
void hed_cli_fold(FILE *out, const char *text, size_t at);

/* Columns of the terminal (or COLUMNS); 0 if there is none. */
size_t hed_cli_columns(void);

/* How many letters must be added, dropped, changed or swapped to turn one word into the other.
 * Words of 32 letters and more are HED_CLI_FAR apart. For "did you mean".
 */
#define HED_CLI_FAR 99
unsigned hed_cli_distance(const char *a, const char *b);

/* Is a word at that distance worth suggesting for what the user typed? */
bool hed_cli_similar(unsigned distance, const char *typed);

/* Long options, `--name value` or `--name=value`, and -h for --help. There are no abbreviations:
 * with them, every new option could change the meaning of somebody's script. Options end at the
 * first other word, or after `--`.
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
    int at;            /* the next word; when the options have ended, the first operand */
    const char *value; /* of the option just returned, if it takes one */
};

#define HED_CLI_OPT_END (-1)
#define HED_CLI_OPT_BAD (-2) /* the reason has been printed */

struct hed_cli_opts hed_cli_opts_over(const struct hed_cli_opt *table, int argc, char **argv);

/* The index of the next option in the table, or one of the two above. */
int hed_cli_opts_next(struct hed_cli_opts *o);

#define HED_CLI_OPERAND (-3)

/* Like hed_cli_opts_next, but operands may appear anywhere: returns HED_CLI_OPERAND, with o->value,
 * for each. -o is --output. *plain must be false at first; `--` sets it.
 */
int hed_cli_words_next(struct hed_cli_opts *o, bool *plain);

/* For commands without operands: complains and returns false if there are any. */
bool hed_cli_opts_no_operands(const struct hed_cli_opts *o);

/* ---- settings.c ------------------------------------------------------------------------------ */

struct hed_config;
struct hed_env;
struct hed_why;

/* Loads the settings with hed_config_load, and checks those that it takes as plain text: a layer
 * would refuse them later, where nobody sees the reason. Afterwards all paths are full ones, in the
 * settings and in the environment, because the program may change its folder before heddle uses
 * them, and the library accepts no others.
 */
int hed_cli_settings(struct hed_config *c, struct hed_env *env, struct hed_why *why);

/* Checks a setting that a layer parses (`sched`, `fault`) as that layer would. Others are fine. */
int hed_cli_check_setting(const char *key, const char *value, struct hed_why *why);

/* ---- version.c: this build ------------------------------------------------------------------- */

extern const char hed_cli_version_text[]; /* "0.3.0" */
