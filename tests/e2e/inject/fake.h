/* What the fake driver of the injection tests remembers (fake.c). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_LAUNCHES 4096

enum fake_kernel {
    FAKE_MIX,   /* (uint64_t *p, uint32_t v): *p = *p * 31 + v */
    FAKE_WIDE,  /* (struct of 24 bytes, uint64_t *p): *p += the sum of its three words */
    FAKE_GRAPH, /* cuGraphLaunch */
    FAKE_KERNELS
};

/* A launch as it reached the GPU. */
struct fake_launch {
    enum fake_kernel kernel;
    const char *function; /* the function that was called, such as cuLaunchKernel_ptsz */
    unsigned grid, block, shared;
    uint64_t stream;
    uint64_t value; /* FAKE_MIX's v */
    int thread;
    uint32_t correlation;
    bool captured;
};

struct fake_seen {
    _Atomic unsigned count;
    _Atomic unsigned refused; /* launches with an empty grid */
    _Atomic unsigned broken;  /* calls whose arguments were not restored */
    void (*signal)(void);     /* called once, inside the next call */
    struct fake_launch launches[FAKE_LAUNCHES];
};
