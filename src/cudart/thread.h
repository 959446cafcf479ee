/* What the runtime keeps for each thread. Small: it is in the loader's room for static TLS. */
#pragma once

#include <stdbool.h>

#include "gen/cudart_abi.h"

/* What stands between <<< and >>>. */
struct hed_rt_config {
    dim3 grid;
    dim3 block;
    size_t shared; /* bytes */
    cudaStream_t stream;
};

struct hed_rt_thread {
    cudaError_t last;            /* for cudaGetLastError() */
    int device;                  /* to use when no context is current */
    struct hed_rt_config config; /* the innermost launch that is being made */
    unsigned depth;              /* how many there are */
    struct hed_rt_outer *outer;  /* those around it: launch.c */
    unsigned arrived;            /* hed_rt_age when it last saw to its context; 0: never */
    bool chosen;                 /* has chosen its device, and will take its context later */
    bool keeps;                  /* cudaSetDevice() has chosen it, so that no list changes it */
    bool places;                 /* gives managed variables their addresses: registry.c */
};

extern __thread struct hed_rt_thread hed_rt_thread __attribute__((tls_model("initial-exec")));
