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
