/* A snapshot and the one that it needs, read, verified, and used as a parent. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/fuzz.h"

/* Two files in memory, which are descriptors 0 and 1. Nothing is ever written. */
struct snap_input {
    const uint8_t *data[2];
    size_t size[2];
};

/* Opens the first file in several ways, and checks what a reader promises. An input that was not
 * repaired rarely gets far, and is opened once. */
void snap_play(struct snap_input *in, bool repaired);

/* Corrects the checksums of a file, because otherwise every mutant would be refused there. */
void snap_repair(uint8_t *p, size_t size);
