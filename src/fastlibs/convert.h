/* Numbers of 16 bits to floats and back, many at once. */
#pragma once

#include <stdint.h>

/* Every number of either type is a float. */
void hed_convert_from_f16(float *to, const uint16_t *from, int64_t n);
void hed_convert_from_bf16(float *to, const uint16_t *from, int64_t n);

/* To nearest even; a NaN stays one. */
void hed_convert_to_f16(uint16_t *to, const float *from, int64_t n);
void hed_convert_to_bf16(uint16_t *to, const float *from, int64_t n);
