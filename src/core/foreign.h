/* Foreign functions: NVIDIA's, handed to the program without one of ours in front, because we do
 * not know their signature. Calls through them escape every layer, so they are counted.
 *
 * A stub (foreign.S) adds one to its counter and jumps to its target with all registers and the
 * stack as they were: it works for any signature.
 */
#pragma once

#include <stdint.h>

#include "core/export.h"

#define HED_FOREIGN_MAX 4096 /* stubs; foreign.S has as many */

/* A stub for a function, the same one every time; the function itself when stubs have run out or
 * this architecture has none. The first time, `name` is said in the log. */
HED_EXPORT void *hed_foreign_wrap(void *function, const char *name);

/* In the child of a fork: its lock may have been held by a thread that is not here. */
void hed_foreign_forked(void);

/* Calls made through stubs so far. */
uint64_t hed_foreign_calls(void);
