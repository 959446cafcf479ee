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

/* The stub for a function, always the same one; the function itself when there are no more stubs or
 * this architecture has none. The first time, `name` is logged. */
HED_EXPORT void *hed_foreign_wrap(void *function, const char *name);

/* In the child of a fork: resets the lock, which another thread of the parent may have held. */
void hed_foreign_forked(void);

/* Calls made through stubs so far. */
uint64_t hed_foreign_calls(void);
