/* The runtime's errors: their names and texts, and the last one of each thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gen/cudart_abi.h"

struct hed_rt_error {
    int number;
    const char *name;
    const char *text;
};

extern const struct hed_rt_error hed_rt_errors[]; /* by number */
extern const size_t hed_rt_error_count;

/* NULL if no error has this number. */
const struct hed_rt_error *hed_rt_find_error(int number);

/* Remembers a failure for cudaGetLastError(), and returns it. */
cudaError_t hed_rt_failed(cudaError_t r);

/* Says once that a call is not supported, and why. */
void hed_rt_say_missing(const char *name, const char *why);

/* The number that CUDA 8.0 had for an error, and back. */
cudaError_t hed_rt_old_error(cudaError_t r);
cudaError_t hed_rt_new_error(int old);
