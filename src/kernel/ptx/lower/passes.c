/* The compiler on one screen: its passes, in the order in which they run.
 *
 *   PTX model ── hed_passes_of_module ──> object file
 *                  └ code: the kernel in the mask shape ── hed_passes_of_masks
 *
 * A kernel that a pass refuses (HED_ENOTSUP) is made in the warp shape instead, which has no passes
 * of its own: all of it is `code` (compile.c).
 */
#include "kernel/ptx/lower/passes.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "kernel/ptx/lower/lower.h"

const struct hed_pass hed_passes_of_masks[] = {
    {"flow", "the order in which lanes run the blocks", hed_pass_flow, false},
    {"ssa", "a value of its own for each write of a register", hed_pass_ssa, false},
    {"tidy", "guards and halves of numbers that nobody needs", hed_pass_tidy, false},
    {"uniform", "values that are the same in all lanes, or step", hed_pass_uniform, false},
    {"masks", "which lanes run a block, and who waits for whom", hed_pass_masks, false},
    {"nan", "results that may be any NaN", hed_pass_nan, false},
    {"solo", "loops that run lane by lane", hed_pass_solo, false},
    {"guess", "loops that are made twice, once for the usual case", hed_pass_guess, false},
    {"tiles", "products of floats, in an order that keeps sums in registers", hed_pass_tiles,
     false},
    {"frame", "places of variables and values, cuts at barriers", hed_pass_frame, false},
    {"blocks", "LLVM code of each block", hed_pass_blocks, false},
    {NULL, NULL, NULL, false},
};

const struct hed_pass hed_passes_of_module[] = {
    {"code", "LLVM code of the kernel and of its functions", hed_pass_code, false},
    {"verify", "LLVM's own rules hold", hed_pass_verify, false},
    {"sandbox", "no access leaves the address sandbox", hed_pass_check_sandbox, true},
    {"optimise", "LLVM's passes", hed_pass_optimise, false},
    {"ends", "nothing runs on behind the end of a function", hed_pass_close_ends, true},
    {"object", "machine code in an object file", hed_pass_object, false},
    {NULL, NULL, NULL, false},
};

void
hed_pass_did(struct hed_lower *l, const char *fmt, ...)
{
    va_list args;

    if (!l->options->on_pass)
        return;
    va_start(args, fmt);
    (void)vsnprintf(l->did, sizeof l->did, fmt, args);
    va_end(args);
}

static void
run_pass(struct hed_lower *l, const struct hed_pass *p)
{
    const uint64_t begin = hed_now_ns();
    int err;

    l->pass_depth++;
    err = p->run(l);
    l->pass_depth--;
    if (!l->err)
        l->err = err;
    if (l->options->on_pass) {
        const struct hed_ptx_pass_report r = {
            .made = l->shape->made,
            .name = p->name,
            .does = p->does,
            .did = l->did,
            .depth = l->pass_depth,
            .ns = hed_now_ns() - begin,
            .err = l->err,
        };

        l->options->on_pass(l->options->on_pass_arg, &r);
    }
    l->did[0] = '\0';
}

int
hed_lower_run_passes(struct hed_lower *l, const struct hed_pass *list)
{
    for (const struct hed_pass *p = list; p->name && !l->err; p++)
        if (l->options->confined || !p->is_of_confined)
            run_pass(l, p);
    return l->err;
}
