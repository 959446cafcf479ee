/* Guards `heddle trace` against early ends: a signal, or a trace that becomes shorter while it is
 * mapped. Neither leaves a half-written file behind. Handles one trace and one output file at a
 * time.
 */
#pragma once

/* Runs a subcommand. If the trace disappears while it is read, prints that and returns
 * HED_EXIT_FAILED. */
int hed_guard_run(int (*run)(int argc, char **argv), int argc, char **argv);

/* The trace that is read from now on. The name must stay valid. */
void hed_guard_reading(const char *path);

/* Like mkstemp. The file is removed if the process ends before hed_guard_settled. The name must
 * stay valid. */
int hed_guard_mkstemp(char *name);

/* The file has its final name, or has been removed. */
void hed_guard_settled(void);
