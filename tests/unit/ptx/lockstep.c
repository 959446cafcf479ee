/* The lanes of a warp run in lockstep, however long the kernel is: programs exchange values through
 * shared memory without waiting for each other. */
#include "harness/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "ptx/exec/harness.h"

#define LANES 32

/* In each step a lane stores its number and adds three times its neighbour's. */
static void
write_kernel(struct hed_buf *text, unsigned steps)
{
    hed_buf_addf(text, ".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry k(.param .u64 out) {\n"
                       ".reg .b32 %%r<9>; .reg .b64 %%rd<4>;\n"
                       ".shared .align 4 .b8 sh[128];\n"
                       "mov.u32 %%r1, %%tid.x; shl.b32 %%r2, %%r1, 2; mov.u32 %%r3, sh;\n"
                       "add.u32 %%r4, %%r3, %%r2; add.u32 %%r5, %%r1, 1; and.b32 %%r5, %%r5, 31;\n"
                       "shl.b32 %%r5, %%r5, 2; add.u32 %%r5, %%r3, %%r5; mov.u32 %%r6, %%r1;\n");
    for (unsigned i = 0; i < steps; i++)
        hed_buf_addf(text, "st.shared.u32 [%%r4], %%r6; ld.shared.u32 %%r7, [%%r5];\n"
                           "mul.lo.u32 %%r8, %%r7, 3; add.u32 %%r6, %%r6, %%r8;\n");
    hed_buf_addf(text, "ld.param.u64 %%rd1, [out]; cvt.u64.u32 %%rd2, %%r2;\n"
                       "add.u64 %%rd3, %%rd1, %%rd2; st.global.u32 [%%rd3], %%r6; ret; }\n");
}

static void
check_steps(enum exec_tier tier, unsigned steps)
{
    uint32_t out[LANES] = {0}, want[LANES], next[LANES];
    void *params[] = {out};
    const struct exec_launch launch = {.threads = LANES, .params = params, .size = sizeof(params)};
    struct hed_buf text;
    struct exec e;

    hed_buf_init(&text, 16 << 20);
    write_kernel(&text, steps);
    exec_open(&e, hed_buf_cstr(&text), tier);
    e.options.level = 0;
    if (exec_run(&e, "k", &launch) != 0)
        fail_msg("%u steps: %s", steps, e.why.text);
    exec_close(&e);
    hed_buf_fini(&text);
    for (unsigned i = 0; i < LANES; i++)
        want[i] = i;
    for (unsigned k = 0; k < steps; k++) {
        for (unsigned i = 0; i < LANES; i++)
            next[i] = want[i] + 3 * want[(i + 1) % LANES];
        for (unsigned i = 0; i < LANES; i++)
            want[i] = next[i];
    }
    for (unsigned i = 0; i < LANES; i++)
        if (out[i] != want[i])
            fail_msg("%u steps: lane %u has %u, not %u", steps, i, out[i], want[i]);
}

static void
long_kernels_run_in_lockstep(void **state)
{
    (void)state;
    check_steps(EXEC_COMPILED, 30);
    check_steps(EXEC_COMPILED, 500);
    check_steps(EXEC_BASELINE, 500);
}

/* Too long for LLVM. */
static void
huge_kernels_run_in_lockstep(void **state)
{
    (void)state;
    check_steps(EXEC_COMPILED, 9000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(long_kernels_run_in_lockstep),
    cmocka_unit_test(huge_kernels_run_in_lockstep),
};

HED_UNIT_MAIN(tests)
