/* Shared by the sections of quota.c: the limit, and checks around an allocation. */
#pragma once

#include "conformance/conf.h"

#include <stdatomic.h>

#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define MIB ((size_t)1 << 20)
#define LIMIT (256 * MIB)
#define PART (128 * MIB)

extern bool no_memory, far;
extern CUcontext primary;
extern CUstream stream;
extern _Atomic int wrong; /* how many expectations have failed */

/* Unlike CHECK and CHECK_IS, these do not end the section. */
#define EXPECT(holds, ...)                                  \
    do {                                                    \
        if (!(holds)) {                                     \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                   \
            fprintf(stderr, " (%s)\n", #holds);             \
            wrong++;                                        \
        }                                                   \
    } while (0)

#define EXPECT_IS(got, expected)                                                  \
    do {                                                                          \
        const long long got_ = (long long)(got);                                  \
        const long long expected_ = (long long)(expected);                        \
                                                                                  \
        EXPECT(got_ == expected_, "%s is %lld, not %lld", #got, got_, expected_); \
    } while (0)

static inline size_t
free_bytes(void)
{
    size_t free = 0, total = 0;

    OK(CU(cuMemGetInfo_v2)(&free, &total));
    EXPECT_IS(total, LIMIT);
    EXPECT(free <= total, "%zu of %zu", free, total);
    return free;
}

/* An allocation that must fail. If it succeeds it is freed, so that the rest can be tested. */
static inline void
expect_refusal(const char *what, size_t n)
{
    CUdeviceptr p = 0;
    CUresult r = CU(cuMemAlloc_v2)(&p, n);

    EXPECT(r == CUDA_ERROR_OUT_OF_MEMORY, "%s: %d for %zu bytes", what, (int)r, n);
    if (r == CUDA_SUCCESS)
        OK(CU(cuMemFree_v2)(p));
    r = CU(cuMemAllocAsync)(&p, n, stream);
    EXPECT(r == CUDA_ERROR_OUT_OF_MEMORY, "%s, async: %d for %zu bytes", what, (int)r, n);
    if (r == CUDA_SUCCESS)
        OK(CU(cuMemFreeAsync)(p, stream));
}

static inline void
try_all(const char *what, size_t n)
{
    CUdeviceptr p;
    const CUresult r = CU(cuMemAlloc_v2)(&p, n);

    EXPECT(r == CUDA_SUCCESS, "%s: %d for %zu bytes", what, (int)r, n);
    if (r != CUDA_SUCCESS)
        return;
    EXPECT(free_bytes() < 2 * MIB, "%s: %zu are left", what, free_bytes());
    OK(CU(cuMemFree_v2)(p));
}

/* While PART is allocated, the rest is available and nothing more. */
static inline void
the_rest_is_there(const char *what, size_t base)
{
    const size_t left = free_bytes();

    printf("    %s: %zu of %zu are left\n", what, left, base);
    EXPECT(left <= base - PART, "%s: %zu of %zu are left", what, left, base);
    EXPECT(left >= base - PART - 8 * MIB, "%s: only %zu of %zu are left", what, left, base);
    expect_refusal(what, base - PART + 1);
    expect_refusal(what, base);
    expect_refusal(what, SIZE_MAX);
    try_all(what, left / (2 * MIB) * (2 * MIB));
}

static inline void
all_is_back(const char *what, size_t base)
{
    const size_t left = free_bytes();

    EXPECT(left == base, "%s: %zu of %zu are back", what, left, base);
    try_all(what, base);
}

/* quota_many.c: sections with several threads and processes. The others run the last two. */
void threads_hold_the_limit(void);
void a_group_shares_and_loses_nothing(void);
void killed_in_the_middle_nothing_is_lost(void);
void hold(void);
void struggle(void);
