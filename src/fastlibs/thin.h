/* Products with few columns, as a language model makes them for one token: each element of A is
 * used once or twice, so that nothing is gained by storing it as a float. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fastlibs/product.h"

#define HED_THIN_MOST 4 /* columns */

/* T = A * B for `rows` rows of op(A) from `row` on. `a` has numbers of 16 bits; b is k floats for
 * each of n columns, one behind the other, and t rows floats for each column. n is at most
 * HED_THIN_MOST. */
void hed_thin_sum(const struct hed_product_matrix *a, int64_t batch, int64_t row, int64_t rows,
                  int64_t k, int64_t n, const float *b, float *t);
