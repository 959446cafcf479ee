/* Floating point with integers, for what compiled kernels cannot do with LLVM's operations alone.
 * Modes are enum hed_ptx_round. No state, no errors. */
#pragma once

#include <stdint.h>

uint64_t hed_ptx_add_f64(uint64_t a, uint64_t b, uint32_t mode);
uint64_t hed_ptx_sub_f64(uint64_t a, uint64_t b, uint32_t mode);
uint64_t hed_ptx_mul_f64(uint64_t a, uint64_t b, uint32_t mode);
uint64_t hed_ptx_fma_f64(uint64_t a, uint64_t b, uint64_t c, uint32_t mode);
uint64_t hed_ptx_div_f64(uint64_t a, uint64_t b, uint32_t mode);
uint64_t hed_ptx_rcp_f64(uint64_t a, uint32_t mode);
uint64_t hed_ptx_sqrt_f64(uint64_t a, uint32_t mode);

/* A 64-bit integer as a float; how: mode, signed << 8, bits << 16, mantissa << 24. */
uint64_t hed_ptx_round_int(uint64_t v, uint32_t how);
