/* What heddle refuses, for `heddle run --fail-on-refusal`: a launch or a call that heddle cannot
 * do, as opposed to one that CUDA would refuse, too.
 *
 * `heddle run` makes a file and names it in the setting `refusals`; every process of the program
 * appends a line for each thing that it is refused. Nothing happens unless something is refused.
 */
#pragma once

#include "core/export.h"

/* The session's setting; empty: nobody wants to know. */
void hed_refusals_choose(const char *path);

/* Notes that something was refused. The text has no newline. Any thread; once for each thing. */
HED_EXPORT void hed_refused(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for what a kernel comes to while it runs: no result of a call says so. */
HED_EXPORT void hed_refused_in_kernel(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* From now on, `fn` also gets the lines of hed_refused_in_kernel(), on any thread. For the process
 * that runs the kernels of another one, before it runs any. At most once per process. */
HED_EXPORT void hed_refusals_tell(void (*fn)(void *state, const char *line), void *state);
