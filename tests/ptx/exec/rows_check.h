/* Results of rows against what an H200 gives, or for approximations, libm. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "rows.h"

extern const char *const rows_set_names[ROWS_SETS];

/* Prints what differs for inputs that differ in `bad` places, the first of them i. */
void rows_complain(const struct row *r, const uint64_t *in, unsigned bad, unsigned i, uint64_t got,
                   uint64_t want);

/* Are all results right? `golden` has the hashes, `in` the inputs of the row's set. Prints what is
 * not. */
bool rows_check(FILE *golden, const struct row *r, const uint64_t *in, const uint64_t *got);
