/* A machine for tests of the soft driver, and a driver on it behind a layer.
 *
 *     static void
 *     memory_can_be_had(void **state)
 *     {
 *         struct fake *f = fake_create(2);
 *         CUdeviceptr p = 0;
 *
 *         assert_int_equal(fake_call(f, cuInit, 0), CUDA_SUCCESS);
 *         fake_use_primary(f, 0);
 *         assert_int_equal(fake_call(f, cuMemAlloc_v2, &p, 64), CUDA_SUCCESS);
 *         fake_free(f);
 *     }
 *
 * Device memory is memory of the process, physical memory is a memfd, copies are memmove, and code
 * is always the same: whatever is opened, two kernels and two variables come out of it. A launch
 * calls a C function.
 *
 * A test's list of libraries is `heddle_driver heddle_core`, its sources include fake.c.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "core/layer.h"
#include "driver/driver.h"
#include "driver/near/near.h"

#define FAKE_MEMORY (8ull << 30) /* bytes per device */
#define FAKE_ARCH 90             /* compute capability 9.0 */

/* The kernels: by index in hed_code.kernels. */
enum {
    FAKE_COPY, /* "fake_copy"(u64 to, u64 from, u32 bytes): 20 bytes of parameters */
    FAKE_NONE, /* "fake_none"(): no parameters, 128 bytes of static shared memory */
    FAKE_KERNELS
};

/* The variables: by index in hed_code.vars. */
enum {
    FAKE_GLOBAL,   /* "fake_global": 64 bytes, the first four are 1 2 3 4 */
    FAKE_CONSTANT, /* "fake_constant": 16 bytes of zeros, .const */
    FAKE_VARS
};

struct fake {
    struct hed_near near; /* must come first */
    struct hed_layer_room room;
    struct hed_layer *layer; /* its state is the driver */
    struct hed_driver *driver;
    uint64_t base, size; /* the reserved range */

    /* What a launch does. NULL: fake_copy copies and fake_none does nothing. Set it while nothing
     * runs. */
    CUresult (*launch)(struct fake *f, const struct hed_launch *l);
    void *data; /* for launch */

    /* The result of preparing a kernel; a failure has the reason "not today". */
    CUresult prepare_result;

    /* What the machine was asked to do. */
    _Atomic unsigned maps, unmaps, physicals, opens, closes, prepares, launches;
    _Atomic uint64_t mapped; /* bytes that are mapped now */

    /* This many of the next answers are HED_ENOMEM (map, physical_create) or HED_EFORMAT (open). */
    _Atomic unsigned fail_map, fail_open;
};

/* A driver with this many devices, before cuInit. Never NULL: a failure ends the test. */
struct fake *fake_create(int devices);

/* The same; the caller may change the profile first. */
void fake_profile(struct hed_profile_device *out, int index);
struct fake *fake_create_with(const struct hed_profile_device *devices, size_t count);

/* A driver on another machine, whose operations get the struct fake; `data` is for them. */
struct fake *fake_create_on(int devices, const struct hed_machine *machine, void *data);

/* Frees the driver and the machine. */
void fake_free(struct fake *f);

/* cuInit, cuDevicePrimaryCtxRetain, cuCtxSetCurrent. */
CUcontext fake_use_primary(struct fake *f, int device);

/* fake_call(f, cuMemAlloc_v2, &p, 64) */
#define fake_call(f, call, ...) \
    ((f)->layer->cuda->call((f)->layer, &(struct hed_##call){__VA_ARGS__}))

/* The executor under the machine; its state is the struct fake. */
extern const struct hed_executor fake_executor;
