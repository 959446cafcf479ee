/* What the subcommands of `heddle trace` share: options, files, damage, times. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/trace/map.h"

struct hed_buf;
struct hed_call_info;
struct hed_trace;
struct hed_trace_index;
struct hed_trace_record;
struct hed_trace_cursor;

#define HED_CLI_LINE_MAX (1u << 20) /* bytes of one record as text */

int hed_cli_trace_show(int argc, char **argv);
int hed_cli_trace_summary(int argc, char **argv);
int hed_cli_trace_export(int argc, char **argv);
int hed_cli_trace_diff(int argc, char **argv);

/* ---- words ----------------------------------------------------------------------------------- */

/* The option's value, a number of seconds such as 1.5, in nanoseconds. Complains and returns false
 * if it is not one. */
bool hed_cli_seconds(const struct hed_cli_opts *o, uint64_t *ns);

/* The same for a number. */
bool hed_cli_number(const struct hed_cli_opts *o, uint64_t *n);

/* ---- the file -------------------------------------------------------------------------------- */

/* Opens a trace. Prints the reason and returns NULL if that fails. */
struct hed_trace *hed_cli_trace_open(const char *path);

/* Prints in one line what part of the file was lost, if any. Returns the exit code: damage is a
 * failure; a missing end is not, as long as there is something before it.
 */
int hed_cli_trace_verdict(const char *path, const struct hed_trace *t);

/* The command line, or else the program's path, in b; never NULL. */
const char *hed_cli_trace_program(const struct hed_trace *t, struct hed_buf *b);

/* When the trace began, for people: "2001-02-03 04:05:06 +0000"; "" if that is not known. */
const char *hed_cli_trace_began(const struct hed_trace *t, char *out, size_t size);

/* A thread's label: its id, and its name if it has one. */
const char *hed_cli_trace_thread(const struct hed_trace *t, uint64_t thread, char *out,
                                 size_t size);

/* What this heddle knows of a call. A trace names its calls itself: its numbers are usually ours,
 * but it may have calls that we do not know, whose answer is NULL. `name` is what the trace calls
 * it. */
const struct hed_call_info *hed_cli_trace_info(const struct hed_trace_record *r, const char *name);

/* Where the calls went: the last part of the chain ("cpu", "gpu", "remote"); "" if unknown. */
const char *hed_cli_trace_backend(const struct hed_trace *t);

/* Time since the trace began, in ns. */
uint64_t hed_cli_trace_time(const struct hed_trace *t, uint64_t ns);

/* ---- output ---------------------------------------------------------------------------------- */

/* "950 ns", "12.3 us", "1.25 ms", "3.20 s". */
const char *hed_cli_duration(uint64_t ns, char *out, size_t size);
/* "17 B", "4.10 kB", "2.00 GB". */
const char *hed_cli_bytes(uint64_t bytes, char *out, size_t size);

/* A string with its quotes; s may be NULL (null). */
void hed_cli_json_text(struct hed_buf *b, const char *s);

/* Should the output be coloured? On a terminal, unless NO_COLOR is set. */
bool hed_cli_colour(void);
