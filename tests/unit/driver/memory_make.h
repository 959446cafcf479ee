/* What the tests of memory share: the areas that they need, and an initialised driver. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "harness/unit.h"
#include "unit/driver/fake.h"

/* A call without `ptds` is made by its plain name. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define ok(call) assert_int_equal((call), CUDA_SUCCESS)
#define bad(call) assert_int_equal((call), CUDA_ERROR_INVALID_VALUE)
#define MIB (1ull << 20)

static inline struct fake *
ready(int devices)
{
    struct fake *f = fake_create(devices);

    (void)fake_use_primary(f, 0);
    return f;
}

static inline void *
host(CUdeviceptr p)
{
    return (void *)(uintptr_t)p;
}

static inline uint64_t
used(struct fake *f)
{
    return f->driver->devices[0].used;
}
