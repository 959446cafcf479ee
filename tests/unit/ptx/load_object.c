/* The C compiler makes an object file of this that is like those of the PTX compiler, with all
 * kinds of calls and data that the loader must relocate. It is never linked into anything. */
#include <stdint.h>

#include "kernel/ptx/run/abi.h"

extern uint32_t load_outside(uint32_t x);
extern uint32_t load_other(uint32_t x);

void hed_kernel(struct hed_ptx_warp *s);

const struct hed_ptx_info hed_kernel_info = {
    .abi = HED_PTX_ABI, .flags = HED_PTX_WAITS, .shared = 16, .stack = 100};

static uint32_t counts[4] = {1, 2, 3, 4};
static uint32_t empty[1000];
static const double table[4] = {1.5, 2.5, 3.5, 4.5};

static __attribute__((noinline)) uint32_t
local(uint32_t x)
{
    return x * 3;
}

/* Addresses in data. */
static uint32_t (*volatile const functions[3])(uint32_t) = {local, load_outside, load_other};

__attribute__((visibility("default"))) uint32_t load_global = 5;

void
hed_kernel(struct hed_ptx_warp *s)
{
    const uint32_t x = s->line;

    empty[x % 1000] += 1;
    counts[x % 4] += 10;
    s->line = local(x) + load_outside(x) + functions[x % 3](x) + counts[x % 4] + empty[x % 1000] +
              (uint32_t)(table[x % 4] * 2) + load_global;
}
