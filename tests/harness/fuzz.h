/* What a fuzz target includes: the one function it defines. See fuzz_main.c for who calls it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* One input, in memory of exactly that size. Returns 0; says "bad" by a sanitizer or a trap. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
