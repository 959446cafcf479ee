/* Times on the GPU as folded stacks, which flame graphs are made of: a line for each thread, the
 * ranges it was in, the call, and what that caused, with the nanoseconds at its end.
 *
 *     4242 main;epoch 1;step;CALL;saxpy 50000
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct hed_trace;

/* False if there is no memory or writing fails. */
bool hed_folded_write(const struct hed_trace *t, FILE *file);
