/* Runs instructions with one operand on every n-th float, compiled and in the baseline
 * tier, and compares the bits of the results.
 *
 *     every_float STEP [INSTRUCTION]...     STEP 1 takes all floats, and minutes
 *
 * Compiled code may take other ways to a result than the baseline tier: fused operations,
 * estimates, other formats in between. This shows that nobody can tell.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#define THREADS 1024u
#define CHUNK (UINT64_C(1) << 22) /* results of one run */

static const char *const instructions[] = {
    "ex2.approx.f32",     "ex2.approx.ftz.f32", "lg2.approx.f32",       "lg2.approx.ftz.f32",
    "sin.approx.f32",     "sin.approx.ftz.f32", "cos.approx.f32",       "cos.approx.ftz.f32",
    "tanh.approx.f32",    "rsqrt.approx.f32",   "rsqrt.approx.ftz.f32", "rcp.approx.f32",
    "rcp.approx.ftz.f32", "sqrt.approx.f32",    "sqrt.approx.ftz.f32",  "rcp.rz.f32",
    "sqrt.rm.f32",        "rcp.rp.f32",
};

/* Thread i of the grid gets the bits first + i * step. */
static void
write_kernel(char *text, size_t size, const char *instruction)
{
    snprintf(text, size,
             ".version 8.0\n.target sm_80\n.address_size 64\n"
             ".visible .entry k(.param .u64 out, .param .u32 first, .param .u32 step) {\n"
             ".reg .b32 %%r<10>; .reg .b64 %%d<10>; .reg .f32 %%f<4>;\n"
             "ld.param.u64 %%d1, [out]; ld.param.u32 %%r1, [first]; ld.param.u32 %%r2, [step];\n"
             "mov.u32 %%r3, %%ctaid.x; mov.u32 %%r4, %%ntid.x; mov.u32 %%r5, %%tid.x;\n"
             "mad.lo.u32 %%r6, %%r3, %%r4, %%r5; mul.wide.u32 %%d2, %%r6, 4;\n"
             "add.u64 %%d3, %%d1, %%d2; mad.lo.u32 %%r7, %%r6, %%r2, %%r1;\n"
             "mov.b32 %%f1, %%r7; %s %%f2, %%f1; st.global.f32 [%%d3], %%f2; ret; }\n",
             instruction);
}

static bool
run_chunk(const char *text, enum exec_tier tier, uint32_t first, uint32_t step, uint64_t n,
          uint32_t *out)
{
    struct {
        uint64_t out;
        uint32_t first, step;
    } params = {(uintptr_t)out, first, step};
    const struct exec_launch launch = {.blocks = (unsigned)(n / THREADS),
                                       .threads = THREADS,
                                       .params = &params,
                                       .size = sizeof(params)};
    struct exec e;
    int err;

    exec_open(&e, text, tier);
    err = exec_run(&e, "k", &launch);
    if (err)
        printf("%s\n", e.why.text);
    exec_close(&e);
    return err == 0;
}

/* How many results differ; -1 if the kernel does not run. */
static int64_t
compare_tiers(const char *instruction, uint32_t step)
{
    static uint32_t baseline[CHUNK], compiled[CHUNK];
    const uint64_t all = (UINT64_C(1) << 32) / step;
    int64_t bad = 0;
    char text[2048];

    write_kernel(text, sizeof(text), instruction);
    for (uint64_t at = 0; at < all; at += CHUNK) {
        const uint64_t left = all - at < CHUNK ? all - at : CHUNK;
        const uint64_t n = (left + THREADS - 1) / THREADS * THREADS;
        const uint32_t first = (uint32_t)(at * step);

        if (!run_chunk(text, EXEC_BASELINE, first, step, n, baseline) ||
            !run_chunk(text, EXEC_COMPILED, first, step, n, compiled))
            return -1;
        for (uint64_t i = 0; i < n; i++)
            if (baseline[i] != compiled[i] && bad++ == 0)
                printf("%s of %08" PRIx32 ": %08" PRIx32 " in the baseline tier, %08" PRIx32
                       " compiled\n",
                       instruction, (uint32_t)(first + i * step), baseline[i], compiled[i]);
    }
    return bad;
}

int
main(int argc, char **argv)
{
    const uint32_t step = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    const char *const *list = argc > 2 ? (const char *const *)argv + 2 : instructions;
    const int n = argc > 2 ? argc - 2 : (int)(sizeof(instructions) / sizeof(*instructions));
    bool good = true;

    if (step == 0) {
        fprintf(stderr, "usage: every_float STEP [INSTRUCTION]...\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        const int64_t bad = compare_tiers(list[i], step);

        if (bad)
            printf("%s: %" PRId64 " results differ\n", list[i], bad);
        good = good && bad == 0;
    }
    return !good;
}
