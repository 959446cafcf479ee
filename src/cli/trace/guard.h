/* What may end `heddle trace` in the middle: a signal, or a trace that is made shorter while it is
 * mapped. Neither leaves a half-written file behind. One trace and one file at a time.
 */
#pragma once

/* Runs a subcommand. If the trace it reads goes away under it: says so, HED_EXIT_FAILED. */
int hed_guard_run(int (*run)(int argc, char **argv), int argc, char **argv);

/* The trace that is read from now on. The name must stay. */
void hed_guard_reading(const char *path);

/* mkstemp; the file is removed if we are ended before hed_guard_settled. The name must stay. */
int hed_guard_mkstemp(char *name);

/* The file has its place, or is gone. */
void hed_guard_settled(void);
