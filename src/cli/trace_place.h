/* The file that `heddle run --trace` is to write. */
#pragma once

/* Can a trace be written to this full path, and may it replace what is there? Changes nothing.
 * Returns 0, or prints the reason and returns the exit code.
 */
int hed_trace_place_check(const char *path);
