/* Included by fuzz targets: the one function that they define, and that fuzz_main.c calls. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes one input, in memory of exactly that size. Returns 0; a failure is a sanitizer's report or
 * a trap. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What holds for every input. */
static inline void
must(bool holds)
{
    if (!holds)
        __builtin_trap();
}
