/* Fuzz target: PTX text whose kernels run in the baseline tier, confined, with addresses of all
 * kinds as parameters. Nothing outside of their address sandbox changes; a sanitizer sees what the
 * functions do that they call.
 */
#include "harness/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "base/clock.h"
#include "base/number.h"
#include "kernel/engine/engine_parts.h"
#include "kernel/engine/sandbox.h"
#include "kernel/engine/watch.h"

#define DEVICE_BYTES ((size_t)1 << 20)
#define SECRET_BYTES 4096
#define KERNELS_MAX 4
#define PARAMS_MAX 4096
#define KERNEL_NS (20 * HED_NS_PER_MS)

static struct hed_cpu cpu;
static uint64_t device; /* memory of the device */
static unsigned char *secret;

static void
set_up(void)
{
    struct hed_why why;

    hed_cpu_compile_init(&cpu);
    cpu.baseline = true;
    must(hed_address_sandbox_create(HED_SPACE_BASE, &cpu.sandbox, &why) == 0);
    must(hed_engine_create_confined(1, cpu.sandbox, &cpu.engine, &why) == 0);
    cpu.watch = hed_watch_create(KERNEL_NS, 0, NULL);
    hed_engine_set_watch(cpu.engine, cpu.watch);
    hed_heap_init(&cpu.heaps[0], &cpu.sandbox->open);
    must(hed_cpu_reserve(&cpu, 0, (uint64_t)1 << 40, &device) == 0);
    must(hed_cpu_map(&cpu, device, DEVICE_BYTES) == 0);
    secret = malloc(SECRET_BYTES);
    must(secret != NULL);
    memset(secret, 0x5e, SECRET_BYTES);
}

/* Places for the variables, in the second half of the memory. False if there is not enough. */
static bool
place_variables(const struct hed_code *code, uint64_t *places)
{
    uint64_t used = 0;

    for (uint32_t i = 0; i < code->var_count; i++) {
        if (code->vars[i].size > DEVICE_BYTES / 2 - used)
            return false;
        places[i] = device + DEVICE_BYTES / 2 + used;
        used = hed_min(used + hed_round_up(code->vars[i].size, 256), DEVICE_BYTES / 2);
    }
    return true;
}

static void
run_kernel(struct hed_code *code, uint32_t kernel, const uint64_t *variables)
{
    const uint64_t kinds[] = {device,     (uintptr_t)secret, (uintptr_t)cpu.engine->stacks.base,
                              UINT64_MAX, (uintptr_t)&cpu,   device + 8};
    uint64_t params[PARAMS_MAX / sizeof(uint64_t)];
    struct hed_launch l = {.code = code,
                           .kernel = kernel,
                           .variables = variables,
                           .grid = {2, 1, 1},
                           .block = {40, 1, 1},
                           .param_bytes = code->kernels[kernel].param_bytes,
                           .params = (const unsigned char *)params,
                           .heap_limit = 1 << 16,
                           .stack_limit = 1024};
    struct hed_why why;

    for (size_t i = 0; i < sizeof params / sizeof *params; i++)
        params[i] = kinds[(i + kernel) % (sizeof kinds / sizeof *kinds)];
    if (l.param_bytes > sizeof params ||
        hed_cpu_prepare(&cpu, code, kernel, l.block, &why) != CUDA_SUCCESS)
        return;
    (void)hed_cpu_launch(&cpu, &l, &why);
    for (size_t i = 0; i < SECRET_BYTES; i++)
        must(secret[i] == 0x5e);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hed_code_source source = {.data = data, .size = size, .device = 90, .arch = 90};
    struct hed_code *code;
    struct hed_why why;
    uint64_t *variables;

    if (!cpu.engine)
        set_up();
    if (hed_cpu_open(&cpu, &source, &code, NULL, &why) != 0)
        return 0;
    variables = calloc((size_t)code->var_count + 1, sizeof *variables);
    if (variables && place_variables(code, variables)) {
        hed_cpu_fill_vars(&cpu, code, variables, variables);
        for (uint32_t i = 0; i < code->kernel_count && i < KERNELS_MAX; i++)
            run_kernel(code, i, variables);
    }
    free(variables);
    hed_cpu_close(&cpu, code);
    return 0;
}
