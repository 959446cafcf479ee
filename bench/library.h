/* The CUDA library that a benchmark measures, opened at run time: several are compared in one run.
 * What fails ends the benchmark. */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gen/cuda_front.h"

static void *library;

/* HED_LIBCUDA names it. */
static inline void
open_library(void)
{
    const char *path = getenv("HED_LIBCUDA");

    library = path ? dlopen(path, RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "HED_LIBCUDA: %s\n", path ? dlerror() : "not set");
        exit(1);
    }
}

static inline void *
library_symbol(const char *name)
{
    void *p = dlsym(library, name);

    if (!p) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    return p;
}

#define CU(name) ((__typeof__(&(name)))library_symbol(#name))

#define MUST(call)                                             \
    do {                                                       \
        const CUresult r_ = (call);                            \
                                                               \
        if (r_ != CUDA_SUCCESS) {                              \
            fprintf(stderr, "%s failed with %d\n", #call, r_); \
            exit(1);                                           \
        }                                                      \
    } while (0)

/* The current thread gets the first device's primary context. */
static inline void
open_context(void)
{
    CUcontext c;

    MUST(CU(cuInit)(0));
    MUST(CU(cuDevicePrimaryCtxRetain)(&c, 0));
    MUST(CU(cuCtxSetCurrent)(c));
}
