/* The warps of harness.c. A warp runs on the caller's stack, to its end or to a place where the
 * kernel returns to wait; or on a stack of its own, and then it may wait anywhere.
 *
 *     fiber_run()  <->  fiber_wait()    one warp runs at a time, and the caller chooses which
 *
 * Only harness.c includes this.
 */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>

#include "base/err.h"
#include "kernel/ptx/run/abi.h"

#define FIBER_STACK (1u << 20) /* bytes; local memory of recursions lies there */

/* A warp that runs; with a stack of its own where threads meet. */
struct fiber {
    hed_ptx_entry entry;
    struct hed_ptx_warp *warp;
    struct hed_ptx_run *run; /* with HED_PTX_BLOCKS, instead of the warp */
    ucontext_t context, caller;
    void *stack;     /* NULL: runs on the caller's */
    jmp_buf trapped; /* where it ends */
    bool done;
    int err;
};

static struct fiber *running;

/* Lets the other warps of the block run up to their next barrier. */
static void
fiber_wait(void)
{
    struct fiber *f = running;

    if (f->stack)
        swapcontext(&f->context, &f->caller);
}

/* Runs `running` to its end, or without a stack to a place where the kernel returns to wait. */
static void
fiber_run(void)
{
    struct fiber *f = running;
    const int how = setjmp(f->trapped);

    while (how == 0) {
        if (f->run)
            hed_ptx_run_blocks(f->entry, f->run);
        else
            f->entry(f->warp);
        if (!f->warp->resume || !f->stack)
            break;
        fiber_wait();
    }
    f->err = how ? HED_ESTATE : 0;
    f->done = how != 0 || !f->warp->resume;
}

/* Gives a warp a stack. */
static bool
fiber_begin(struct fiber *f)
{
    f->stack = malloc(FIBER_STACK);
    if (!f->stack)
        return false;
    getcontext(&f->context);
    f->context.uc_stack = (stack_t){.ss_sp = f->stack, .ss_size = FIBER_STACK};
    f->context.uc_link = &f->caller;
    makecontext(&f->context, fiber_run, 0);
    return true;
}

/* Lets a warp run until it waits or ends. */
static void
fiber_go_on(struct fiber *f)
{
    running = f;
    if (f->stack)
        swapcontext(&f->caller, &f->context);
    else
        fiber_run();
}
