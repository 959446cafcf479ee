/* Runs kernels in the test's own process: text is compiled, loaded and run, warp after warp.
 *
 *     struct exec e;
 *
 *     exec_open(&e, text, EXEC_COMPILED);
 *     const struct exec_launch launch = {.blocks = 4, .threads = 64, .params = &p};
 *     assert_int_equal(exec_run(&e, "kernel", &launch), 0);
 *     exec_close(&e);
 *
 * The runtime behind the kernels is a stand-in: warps run one after the other to their end, on
 * one stack. So it is only for kernels in which no warp waits for another: hed_rt_barrier acts as
 * if the warp were alone in its block. With exec_launch.meets each warp has a stack, and barriers
 * work as long as all threads of a block come to each of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kernel/ptx/lower/compile.h"
#include "kernel/ptx/ptx.h"
#include "kernel/ptx/run/abi.h"

/* What runs a kernel. The baseline tier compiles nothing. */
enum exec_tier { EXEC_BASELINE, EXEC_COMPILED };

struct exec {
    struct hed_ptx_module module;
    enum exec_tier tier;
    struct hed_ptx_options options; /* exec_open sets them; change them before exec_run */
    char features[512];             /* of this machine */
    uint64_t *vars;                 /* addresses of the module's variables */
    void *memory;                   /* the memory behind them */
    hed_ptx_entry entry;            /* of the baseline tier, instead of hed_interp_entry; or NULL */
    struct hed_ptx_info info;       /* of the kernel that ran last */
    struct hed_why why;             /* of the last failure */
    uint32_t trap;                  /* enum hed_ptx_trap of the last run, or 0 */
    uint32_t trap_line;
    unsigned yields;  /* how often hed_rt_yield was called in the last run */
    char printed[64]; /* the format of the last vprintf */
    uint64_t printed_args;
};

struct exec_launch {
    unsigned blocks, threads; /* 0 means 1 */
    unsigned width;           /* of a block in x, which divides threads; 0: all threads */
    const void *params;       /* the block of parameters */
    size_t size;              /* of it */
    unsigned dynamic_shared;  /* bytes */
    unsigned first;           /* the block to begin with */
    unsigned end;             /* the block to end before; 0: all run */
    bool any_rows;            /* compiles for HED_ROWS_ANY instead of the rows of this block */
    bool meets;               /* all threads of a block come to each barrier, and wait there */
};

/* Fails the test, with the reason, if the text does not parse. */
void exec_open(struct exec *e, const char *text, enum exec_tier tier);

/* Compiles, loads and runs. 0, or the error of the compiler or loader with the reason in e->why;
 * HED_ESTATE when the kernel trapped. */
int exec_run(struct exec *e, const char *kernel, const struct exec_launch *launch);

/* The address of a variable of the module. Fails the test if it does not exist. */
void *exec_var(struct exec *e, const char *name);

void exec_close(struct exec *e);

/* One thread runs `code` between declarations and end of a kernel; %in and %out (.b64) point to the
 * memory given. Registers there: %p<10> .pred, %h<20> .b16, %r<40> .b32, %d<40> .b64, %q<4> .b128,
 * %f<20> .f32, %g<20> .f64, %c<8> .b8. Fails the test if that does not work. `before` (variables,
 * functions) comes before the kernel; it may be NULL. */
void exec_code(const char *before, const char *code, const void *in, void *out);

/* The same in one tier only; exec_code runs it compiled and then in the baseline tier. */
void exec_code_as(enum exec_tier tier, const char *before, const char *code, const void *in,
                  void *out);
