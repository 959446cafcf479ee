/* Which library has asked for memory. */
#pragma once

#include <stddef.h>

/* Writes the file name of the first library on the stack that is neither heddle nor a shared CUDA
 * runtime; "" if there is none. Takes some microseconds. */
void watch_find_caller(char *out, size_t size);
