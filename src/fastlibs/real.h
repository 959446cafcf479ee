/* The real functions of cuBLAS, cuDNN and the driver. */
#pragma once

#include <stdbool.h>

#include "gen/cuda_abi.h"

/* Which library has a function. */
enum hed_real_library {
    HED_REAL_CUBLAS,
    HED_REAL_CUBLASLT,
    HED_REAL_CUDNN,
};

/* The function behind ours, for the code at `caller`: a process may have several versions of the
 * library, and the caller means the one that it was linked with. NULL: there is none. `caller` is
 * the return address of our function. */
void *hed_real_find(enum hed_real_library library, const char *name, const void *caller);

/* Has the process loaded one of these libraries? */
bool hed_real_is_loaded(void);

/* What is needed of the driver. */
struct hed_real_driver {
    CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
    CUresult (*address_range)(CUdeviceptr *, size_t *, CUdeviceptr);
    CUresult (*pointer_attribute)(void *, CUpointer_attribute, CUdeviceptr);
    CUresult (*host_function)(CUstream, CUhostFn, void *);
};

/* NULL: the program does not run on a CPU GPU of its own process, so that the memory of its GPU
 * cannot be reached from here. */
const struct hed_real_driver *hed_real_driver(void);
