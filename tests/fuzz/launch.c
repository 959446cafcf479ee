/* Fuzz target: launches with any grid, block, shared memory and attributes, and with parameters as
 * pointers and as a buffer. The call always returns, and accepted launches are within the device's
 * limits.
 */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>

#include "unit/driver/fake.h"

#define ATTRIBUTES 6

/* The words of `extra`, which are macros in NVIDIA's header. */
#define PARAM_END ((void *)0)
#define PARAM_POINTER ((void *)1)
#define PARAM_SIZE ((void *)2)

struct input {
    CUlaunchConfig config; /* its pointers are set by us */
    CUlaunchAttribute attributes[ATTRIBUTES];
    uint8_t attribute_count, kernel, how;
    uint64_t words[4];
    uint64_t extra[6];
};

static struct fake *fake;
static CUfunction kernels[FAKE_KERNELS];
static bool wrong;

static CUresult
check_launch(struct fake *f, const struct hed_launch *l)
{
    const uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];

    wrong = wrong || threads == 0 || threads > 1024 || l->grid[0] == 0 || l->grid[1] == 0 ||
            l->grid[2] == 0 || l->grid[1] > 65535 || l->grid[2] > 65535;
    return CUDA_SUCCESS;
}

static void
set_up_device(void)
{
    CUmodule m;

    if (fake)
        return;
    fake = fake_create(1);
    fake->launch = check_launch;
    (void)fake_use_primary(fake, 0);
    if (fake_call(fake, cuModuleLoadData, &m, ".version 8.0\n.target sm_80\n") != CUDA_SUCCESS ||
        fake_call(fake, cuModuleGetFunction, &kernels[FAKE_COPY], m, "fake_copy") != CUDA_SUCCESS ||
        fake_call(fake, cuModuleGetFunction, &kernels[FAKE_NONE], m, "fake_none") != CUDA_SUCCESS)
        __builtin_trap();
}

/* The driver follows addresses, as CUDA does, so those in the input are replaced. */
static void
launch_kernel(struct input *in)
{
    void *params[] = {&in->words[0], &in->words[1], &in->words[2]};
    size_t bytes = in->extra[5] % (sizeof in->words + 1);
    /* The last one stays: a list without an end is an address that leads nowhere. */
    void *extra[7] = {PARAM_POINTER, in->words, PARAM_SIZE, &bytes,
                      PARAM_END,     PARAM_END, PARAM_END};

    for (unsigned i = 0; i < 5; i += 2)
        if (in->extra[i] % 8 == 0)
            extra[i] = (void *)(uintptr_t)(in->extra[i] / 8 % 5);
    in->config.hStream = NULL;
    in->config.attrs = in->attribute_count ? in->attributes : NULL;
    in->config.numAttrs = in->attribute_count % (ATTRIBUTES + 1);
    for (unsigned i = 0; i < ATTRIBUTES; i++)
        if (in->attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT ||
            in->attributes[i].id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            in->attributes[i].value.programmaticEvent.event = NULL;
    (void)fake_call(fake, cuLaunchKernelEx, &in->config, kernels[in->kernel % FAKE_KERNELS],
                    in->how & 1 ? params : NULL, in->how & 2 ? extra : NULL, false);
    (void)fake_call(fake, cuCtxSynchronize);
    if (wrong)
        __builtin_trap();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.config = {.gridDimX = 1,
                                  .gridDimY = 1,
                                  .gridDimZ = 1,
                                  .blockDimX = 1,
                                  .blockDimY = 1,
                                  .blockDimZ = 1}};

    set_up_device();
    memcpy(&in, data, size < sizeof in ? size : sizeof in);
    launch_kernel(&in);
    return 0;
}
