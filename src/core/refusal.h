/* What heddle refuses, for `heddle run --fail-on-refusal`: a launch or a call that heddle cannot
 * do, as opposed to one that CUDA would refuse, too.
 *
 * `heddle run` makes a file and names it in the setting `refusals`; every process of the program
 * appends a line for each thing that it is refused. Nothing happens unless something is refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/export.h"

/* The session's setting; empty: nobody wants to know. */
void hed_refusals_choose(const char *path);

/* Notes that something was refused. The text has no newline. Any thread; once for each thing. */
HED_EXPORT void hed_refused(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for what a kernel comes to while it runs: no result of a call says so. */
HED_EXPORT void hed_refused_in_kernel(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* The same for something that was refused before: it is counted, and not noted again. */
HED_EXPORT void hed_refused_again(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* What went wrong in this process, for the program itself: refusals, and errors that a context does
 * not recover from. Numbered from 0; the latest HED_PROBLEMS_KEPT are kept. */
#define HED_PROBLEMS_KEPT 64
void hed_problem_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* A backend knows why work failed, which the call that is answered with the error does not: the
 * latest reason, for the text of the next problem. */
HED_EXPORT void hed_problem_cause(const char *text);
bool hed_problem_take_cause(char *out, size_t size);
uint64_t hed_problem_count(void);
/* In the child of a fork: another thread of the parent may have held the lock. */
void hed_problems_forked(void);
/* False: there is no such problem, or it is not kept any more. */
bool hed_problem_get(uint64_t number, char *out, size_t size);

/* From now on, `fn` also gets the lines of hed_refused_in_kernel(), on any thread. For the process
 * that runs the kernels of another one, before it runs any. At most once per process. */
HED_EXPORT void hed_refusals_tell(void (*fn)(void *state, const char *line), void *state);
