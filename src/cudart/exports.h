/* Between the exported functions that are written by hand (exports.c) and the room. */
#pragma once

#include <stdbool.h>

#include "cudart/thread.h"

/* The stack of configurations of the thread's launches. Push returns an error as a number. */
unsigned hed_rt_push_config(const struct hed_rt_config *c);
bool hed_rt_pop_config(struct hed_rt_config *out);
