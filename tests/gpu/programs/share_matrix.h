/* Shared by the rows of share_matrix: kernels whose results show the order in which they ran, and
 * how a row says that this GPU does not support something. */
#pragma once

#include "conformance/conf.h"

#define OK(call) share_ok(call, #call, __FILE__, __LINE__)
#define WORDS 4096
#define BYTES (WORDS * sizeof(unsigned))

/* A refusal by name is an answer, not a failure. */
static inline void
share_ok(CUresult r, const char *call, const char *file, int line)
{
    if (r == CUDA_SUCCESS)
        return;
    if (r == CUDA_ERROR_NOT_SUPPORTED) {
        printf("refused %s\n", call);
        fflush(stdout);
        _exit(77);
    }
    fprintf(stderr, "%s:%d: %s: error %d\n", file, line, call, (int)r);
    exit(1);
}

struct share_gpu {
    CUcontext context;
    CUmodule module;
    CUfunction step; /* step(p, n, a): p[i] = p[i] * 3 + a + i, for i < n; order shows */
    CUfunction late; /* late(p, n, a): the same, after some work */
    CUfunction meet; /* meet(p, count): blocks wait for each other; p[block] = blocks that came */
};

/* Context, module and functions of this process; the same for every thread. */
struct share_gpu *share_begin(void);

/* Launches a step, or a late one, over n words at p. */
CUresult share_step(CUfunction f, CUdeviceptr p, unsigned n, unsigned a, CUstream s);

/* Compares the words at p with the result of the steps a, a + 1, ... on zeros, and prints a sum. */
void share_check(const char *what, CUdeviceptr p, unsigned n, unsigned first, unsigned steps);

/* The same for words on the host. */
void share_check_host(const char *what, const unsigned *p, unsigned n, unsigned first,
                      unsigned steps);

/* Zeros. */
CUdeviceptr share_memory(unsigned words);

/* Rows. */
void share_legacy(void);
void share_ptds(void);
void share_streams(void);
void share_events(void);
void share_callbacks(void);
void share_threads(void);
void share_steady(void);
void share_children(void);
void share_graphs(void);
void share_capture(void);
void share_cooperative(void);
void share_clusters(void);
void share_attributes(void);
void share_failing(void);
void share_pools(void);
void share_managed(void);
void share_boxes(void);
void share_reuse(void);
