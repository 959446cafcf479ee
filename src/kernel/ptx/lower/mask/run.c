/* The loops around a kernel's body: over blocks, and over the warps of a block.
 *
 *      hed_kernel(run)                     with HED_PTX_BLOCKS
 *        for each block of the run           unless the grid has failed: kernel/ptx/run/abi.h
 *          for each warp of the block
 *            hed_warp(warp, ...)           the body; lanes end by returning from it
 *          where it is cut at barriers: the same again for warps that are not at their end, in a
 *          loop of its own for each barrier, if the body is short
 *
 * LLVM puts short bodies into the loops, and takes out of them what is the same for all blocks or
 * warps: parameters, sizes, tests of alignment. A kernel that waits on a stack of its own has no
 * loops: hed_kernel(warp) runs one warp.
 */
#include <llvm-c/TargetMachine.h>
#include <stddef.h>

#include "base/number.h"
#include "kernel/ptx/lower/mask/mask.h"

/* Instructions of a body that goes into the loops. In longer ones LLVM moves too much out of the
 * loops or down to their ends, and keeps it on the stack: sgemm32 of bench/cpu takes twice as long.
 */
#define INLINE_MOST 128
/* Instructions of a kernel whose code LLVM orders for this processor. That helps short ones, which
 * wait for memory (stencil5 by a fifth), and harms long ones. */
#define TUNE_MOST 100

/* A kernel that is cut at so many places has a loop over warps for each of them. */
#define LOOPS_MOST 16

enum { WARP, BLOCK, GRID, CTAID, AT = CTAID + 3, IN, OUT, ARGUMENTS };

/* ---- the body -------------------------------------------------------------------------------- */

static LLVMTypeRef
body_type(struct hed_lower *l)
{
    LLVMTypeRef types[ARGUMENTS] = {l->ptr, l->ptr, l->ptr, l->i32, l->i32,
                                    l->i32, l->i32, l->ptr, l->ptr};

    return LLVMFunctionType(l->nothing, types, ARGUMENTS, false);
}

LLVMValueRef
hed_mask_declare(struct hed_lower *l, const struct hed_ptx_func *f)
{
    LLVMValueRef v;

    if (f != l->kernel)
        return hed_lower_warp_declare(l, f);
    hed_lower_warp_refuse(l, f);
    v = hed_lower_declare_as(l, "hed_warp", body_type(l));
    LLVMSetLinkage(v, LLVMInternalLinkage);
    return v;
}

void
hed_mask_take_arguments(struct hed_lower *l)
{
    struct hed_lower_function *f = l->function;
    struct mask *m = hed_mask_state(l);

    f->warp = LLVMGetParam(f->value, WARP);
    f->block = LLVMGetParam(f->value, BLOCK);
    f->grid = LLVMGetParam(f->value, GRID);
    for (unsigned d = 0; d < 3; d++)
        f->ctaid[d] = LLVMGetParam(f->value, CTAID + d);
    m->at = LLVMGetParam(f->value, AT);
    m->in = LLVMGetParam(f->value, IN);
    m->out = LLVMGetParam(f->value, OUT);
}

/* ---- the loops ------------------------------------------------------------------------------- */

/* What the loops have at hand. */
struct run {
    LLVMValueRef run, body;
    LLVMValueRef warps, stride, warps_end, stop;
    LLVMValueRef args[ARGUMENTS];
    LLVMValueRef nctaid[3];
    LLVMValueRef again; /* where warps go on from different barriers: i32, not 0 behind one */
    bool reduces;       /* at barriers */
    bool is_inline;     /* the body goes into the loops */
};

static LLVMValueRef
run_field(struct hed_lower *l, const struct run *r, LLVMTypeRef t, size_t offset)
{
    return hed_lower_field(l, t, r->run, offset);
}

static void
load_run(struct hed_lower *l, struct run *r)
{
    LLVMValueRef bytes;

    r->warps = run_field(l, r, l->ptr, offsetof(struct hed_ptx_run, warps));
    r->stride = run_field(l, r, l->i64, offsetof(struct hed_ptx_run, stride));
    r->stop = run_field(l, r, l->ptr, offsetof(struct hed_ptx_run, stop));
    bytes = LLVMBuildMul(l->b, r->stride,
                         run_field(l, r, l->i64, offsetof(struct hed_ptx_run, count)), "");
    r->warps_end = LLVMBuildGEP2(l->b, l->i8, r->warps, &bytes, 1, "");
    r->args[BLOCK] = run_field(l, r, l->ptr, offsetof(struct hed_ptx_run, block));
    r->args[GRID] =
        hed_lower_field(l, l->ptr, r->args[BLOCK], offsetof(struct hed_ptx_block, grid));
    r->args[IN] = hed_lower_alloca(l, l->i64, hed_max(l->cut.common, 1), 0);
    r->args[OUT] = hed_lower_alloca(l, l->i64, hed_max(l->cut.common, 1), 0);
    for (unsigned d = 0; d < 3; d++)
        r->nctaid[d] = hed_lower_field(
            l, l->i32, r->args[GRID], offsetof(struct hed_ptx_grid, nctaid) + d * sizeof(uint32_t));
}

static LLVMValueRef
load_resume(struct hed_lower *l, LLVMValueRef warp)
{
    return LLVMBuildLoad2(l->b, l->i32,
                          hed_lower_at(l, warp, offsetof(struct hed_ptx_warp, resume)), "");
}

/* Goes to `after` if the warp has ended, when others of the block go on behind a barrier. */
static void
skip_if(struct hed_lower *l, LLVMValueRef ended, LLVMBasicBlockRef after)
{
    LLVMBasicBlockRef runs = hed_lower_block(l, "");

    LLVMBuildCondBr(l->b, ended, after, runs);
    LLVMPositionBuilderAtEnd(l->b, runs);
}

/* A loop over the warps of a block; `one` is the warp. */
struct warps {
    LLVMBasicBlockRef before, loop, next;
    LLVMValueRef one;
};

static struct warps
begin_warps(struct hed_lower *l, struct run *r)
{
    struct warps w = {.before = LLVMGetInsertBlock(l->b),
                      .loop = hed_lower_block(l, "warp"),
                      .next = hed_lower_block(l, "")};

    LLVMBuildBr(l->b, w.loop);
    LLVMPositionBuilderAtEnd(l->b, w.loop);
    w.one = LLVMBuildPhi(l->b, l->ptr, "");
    r->args[WARP] = w.one;
    return w;
}

static void
run_body(struct hed_lower *l, struct run *r, LLVMBasicBlockRef next)
{
    LLVMBuildStore(l->b, r->args[WARP],
                   hed_lower_at(l, r->run, offsetof(struct hed_ptx_run, running)));
    LLVMBuildCall2(l->b, body_type(l), r->body, r->args, ARGUMENTS, "");
    LLVMBuildBr(l->b, next);
    LLVMPositionBuilderAtEnd(l->b, next);
}

static void
end_warps(struct hed_lower *l, struct run *r, const struct warps *w)
{
    LLVMBasicBlockRef after = hed_lower_block(l, "");
    LLVMValueRef following = LLVMBuildGEP2(l->b, l->i8, w->one, &r->stride, 1, "");

    LLVMAddIncoming(w->one, (LLVMValueRef[]){r->warps, following},
                    (LLVMBasicBlockRef[]){w->before, w->next}, 2);
    LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, following, r->warps_end, ""), after,
                    w->loop);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* i1: has a warp ended that would go on from `at`? All are at 0 before they begin. */
static LLVMValueRef
has_ended(struct hed_lower *l, LLVMValueRef warp, LLVMValueRef at)
{
    return LLVMBuildAnd(l->b, LLVMBuildIsNotNull(l->b, at, ""),
                        LLVMBuildIsNull(l->b, load_resume(l, warp), ""), "");
}

/* One warp after the other, all from the same place, `at`. Skips those that have ended. */
static void
run_warps(struct hed_lower *l, struct run *r, LLVMValueRef at)
{
    const struct warps w = begin_warps(l, r);

    r->args[AT] = at;
    if (l->cut.some_end)
        skip_if(l, has_ended(l, w.one, at), w.next);
    run_body(l, r, w.next);
    end_warps(l, r, &w);
}

/* One warp after the other, each from where it is. Returns bits, i32, of which one is set if a warp
 * is not at its end. */
static LLVMValueRef
run_warps_apart(struct hed_lower *l, struct run *r)
{
    const struct warps w = begin_warps(l, r);
    LLVMValueRef any = LLVMBuildPhi(l->b, l->i32, ""), more;

    r->args[AT] = load_resume(l, w.one);
    skip_if(l,
            LLVMBuildAnd(l->b, LLVMBuildIsNotNull(l->b, r->again, ""),
                         LLVMBuildIsNull(l->b, r->args[AT], ""), ""),
            w.next);
    run_body(l, r, w.next);
    more = LLVMBuildOr(l->b, any, load_resume(l, w.one), "");
    LLVMAddIncoming(any, (LLVMValueRef[]){hed_lower_word(l, 0), more},
                    (LLVMBasicBlockRef[]){w.before, w.next}, 2);
    end_warps(l, r, &w);
    return more;
}

/* Between two rounds: those that were coming to a barrier that reduces came. */
static void
turn_votes(struct hed_lower *l, const struct run *r)
{
    const size_t coming = offsetof(struct hed_ptx_block, coming);
    LLVMValueRef from = hed_lower_at(l, r->args[BLOCK], (int64_t)coming);
    LLVMValueRef to =
        hed_lower_at(l, r->args[BLOCK], (int64_t)offsetof(struct hed_ptx_block, came));

    _Static_assert(sizeof(struct hed_ptx_votes) == sizeof(uint64_t), "moved as one word");
    if (!r->reduces)
        return;
    LLVMBuildStore(l->b, LLVMBuildLoad2(l->b, l->i64, from, ""), to);
    LLVMBuildStore(l->b, LLVMConstInt(l->i64, 0, false), from);
}

/* A block whose warps may go on from different barriers. */
static void
run_rounds_apart(struct hed_lower *l, struct run *r)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), round = hed_lower_block(l, "round");
    LLVMBasicBlockRef after = hed_lower_block(l, "");
    LLVMValueRef more;

    LLVMBuildBr(l->b, round);
    LLVMPositionBuilderAtEnd(l->b, round);
    r->again = LLVMBuildPhi(l->b, l->i32, "");
    more = run_warps_apart(l, r);
    turn_votes(l, r);
    LLVMAddIncoming(r->again, (LLVMValueRef[]){hed_lower_word(l, 0), more},
                    (LLVMBasicBlockRef[]){before, LLVMGetInsertBlock(l->b)}, 2);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, more, ""), after, round);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* The warps of a round, with a loop for each place where they may go on: LLVM makes of the body
 * what belongs there, and takes out of the loop what is the same for all warps. */
static void
run_round_by_place(struct hed_lower *l, struct run *r, LLVMValueRef at)
{
    LLVMBasicBlockRef first = hed_lower_block(l, ""), after = hed_lower_block(l, "");
    LLVMValueRef places = LLVMBuildSwitch(l->b, at, first, l->cut.cuts);

    for (uint32_t i = 0; i <= l->cut.cuts; i++) {
        LLVMBasicBlockRef here = i ? hed_lower_block(l, "") : first;

        if (i)
            LLVMAddCase(places, LLVMConstInt(l->i64, i, false), here);
        LLVMPositionBuilderAtEnd(l->b, here);
        run_warps(l, r, hed_lower_word(l, i));
        LLVMBuildBr(l->b, after);
    }
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* What warps had in common at this barrier, they have at hand behind it. */
static void
turn_common(struct hed_lower *l, const struct run *r)
{
    for (uint32_t i = 1; i < l->cut.common; i++) {
        const int64_t offset = (int64_t)(i * sizeof(uint64_t));

        LLVMBuildStore(l->b,
                       LLVMBuildLoad2(l->b, l->i64, hed_lower_at(l, r->args[OUT], offset), ""),
                       hed_lower_at(l, r->args[IN], offset));
    }
}

/* A block whose warps come to barriers together. */
static void
run_rounds(struct hed_lower *l, struct run *r)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), round = hed_lower_block(l, "round");
    LLVMBasicBlockRef after = hed_lower_block(l, "");
    LLVMValueRef zero = LLVMConstInt(l->i64, 0, false), at, next;

    LLVMBuildBr(l->b, round);
    LLVMPositionBuilderAtEnd(l->b, round);
    at = LLVMBuildPhi(l->b, l->i64, "");
    LLVMBuildStore(l->b, zero, r->args[OUT]);
    if (r->is_inline && l->cut.cuts <= LOOPS_MOST)
        run_round_by_place(l, r, at);
    else
        run_warps(l, r, hed_lower_resize(l, at, l->i32, false));
    turn_votes(l, r);
    turn_common(l, r);
    next = LLVMBuildLoad2(l->b, l->i64, r->args[OUT], "");
    LLVMAddIncoming(at, (LLVMValueRef[]){zero, next},
                    (LLVMBasicBlockRef[]){before, LLVMGetInsertBlock(l->b)}, 2);
    LLVMBuildCondBr(l->b, LLVMBuildIsNull(l->b, next, ""), after, round);
    LLVMPositionBuilderAtEnd(l->b, after);
}

/* One block: where it is cut, its warps run up to the next barrier, then all of them on from it. */
static void
run_block(struct hed_lower *l, struct run *r, bool is_cut)
{
    if (!is_cut) {
        run_warps(l, r, hed_lower_word(l, 0));
        return;
    }
    turn_votes(l, r); /* a grid that failed may have left some */
    if (l->cut.together)
        run_rounds(l, r);
    else
        run_rounds_apart(l, r);
}

static LLVMValueRef
ctaid_place(struct hed_lower *l, const struct run *r, unsigned d)
{
    return hed_lower_at(l, r->args[BLOCK],
                        (int64_t)(offsetof(struct hed_ptx_block, ctaid) + d * sizeof(uint32_t)));
}

/* A row of blocks has ended: the position of the first one of the next row. Stores what has changed
 * of it. */
static void
step_row(struct hed_lower *l, const struct run *r, LLVMValueRef next[3])
{
    LLVMValueRef carry = LLVMConstInt(l->i1, 1, false);

    next[0] = hed_lower_word(l, 0);
    for (unsigned d = 1; d < 3; d++) {
        LLVMValueRef v =
            LLVMBuildAdd(l->b, r->args[CTAID + d], LLVMBuildZExt(l->b, carry, l->i32, ""), "");

        carry = LLVMBuildICmp(l->b, LLVMIntEQ, v, r->nctaid[d], "");
        next[d] = LLVMBuildSelect(l->b, carry, hed_lower_word(l, 0), v, "");
        LLVMBuildStore(l->b, next[d], ctaid_place(l, r, d));
    }
}

/* i1: need no further block begin? Relaxed: who sees `stop` late does useless work. */
static LLVMValueRef
is_last_block(struct hed_lower *l, const struct run *r, LLVMValueRef left)
{
    LLVMValueRef stop = LLVMBuildLoad2(l->b, l->i32, r->stop, "");

    LLVMSetOrdering(stop, LLVMAtomicOrderingMonotonic);
    LLVMSetAlignment(stop, 4);
    return LLVMBuildOr(l->b, LLVMBuildIsNull(l->b, left, ""), LLVMBuildIsNotNull(l->b, stop, ""),
                       "");
}

/* The blocks of the run, each at least once. Most follow another one in their row. */
static void
run_blocks(struct hed_lower *l, struct run *r, bool is_cut)
{
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), loop = hed_lower_block(l, "block");
    LLVMBasicBlockRef more = hed_lower_block(l, ""), row = hed_lower_block(l, "row");
    LLVMBasicBlockRef end = hed_lower_block(l, "");
    LLVMValueRef first[3], next[3], left, fewer, x;

    for (unsigned d = 0; d < 3; d++)
        first[d] = LLVMBuildLoad2(l->b, l->i32, ctaid_place(l, r, d), "");
    fewer = run_field(l, r, l->i64, offsetof(struct hed_ptx_run, blocks));
    LLVMBuildBr(l->b, loop);
    LLVMPositionBuilderAtEnd(l->b, loop);
    for (unsigned d = 0; d < 3; d++)
        r->args[CTAID + d] = LLVMBuildPhi(l->b, l->i32, "");
    left = LLVMBuildPhi(l->b, l->i64, "");
    LLVMAddIncoming(left, &fewer, &before, 1);
    LLVMBuildStore(l->b, r->args[CTAID], ctaid_place(l, r, 0));
    run_block(l, r, is_cut);
    fewer = LLVMBuildSub(l->b, left, LLVMConstInt(l->i64, 1, false), "");
    LLVMBuildCondBr(l->b, is_last_block(l, r, fewer), end, more);
    LLVMPositionBuilderAtEnd(l->b, more);
    x = LLVMBuildAdd(l->b, r->args[CTAID], hed_lower_word(l, 1), "");
    hed_lower_unlikely(l, LLVMBuildICmp(l->b, LLVMIntEQ, x, r->nctaid[0], ""), row, loop);
    LLVMPositionBuilderAtEnd(l->b, row);
    step_row(l, r, next);
    LLVMBuildBr(l->b, loop);
    for (unsigned d = 0; d < 3; d++)
        LLVMAddIncoming(r->args[CTAID + d],
                        (LLVMValueRef[]){first[d], d ? r->args[CTAID + d] : x, next[d]},
                        (LLVMBasicBlockRef[]){before, more, row}, 3);
    LLVMAddIncoming(left, (LLVMValueRef[]){fewer, fewer}, (LLVMBasicBlockRef[]){more, row}, 2);
    LLVMPositionBuilderAtEnd(l->b, end);
    LLVMBuildRetVoid(l->b);
}

/* A warp that may wait: the caller has a stack for it. */
static void
run_warp(struct hed_lower *l, struct run *r)
{
    r->args[WARP] = r->run;
    r->args[AT] = hed_lower_word(l, 0);
    r->args[IN] = r->args[OUT] = LLVMConstNull(l->ptr);
    r->args[BLOCK] = hed_lower_field(l, l->ptr, r->run, offsetof(struct hed_ptx_warp, block));
    r->args[GRID] = hed_lower_field(l, l->ptr, r->run, offsetof(struct hed_ptx_warp, grid));
    for (unsigned d = 0; d < 3; d++)
        r->args[CTAID + d] = LLVMBuildLoad2(l->b, l->i32, ctaid_place(l, r, d), "");
    LLVMBuildCall2(l->b, body_type(l), r->body, r->args, ARGUMENTS, "");
    LLVMBuildRetVoid(l->b);
}

static unsigned
count_instructions(const struct hed_ptx_func *f)
{
    unsigned n = 0;

    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next)
        n += s->kind == HED_PTX_STMT_INST;
    return n;
}

static bool
has_reductions(const struct hed_ptx_func *f)
{
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next)
        if (s->kind == HED_PTX_STMT_INST &&
            ((const struct hed_ptx_inst *)s)->form->op == HED_PTX_OP_BARRIER_RED)
            return true;
    return false;
}

/* For the order of instructions only: which instructions there are, the features say. */
static void
tune_for_processor(struct hed_lower *l, LLVMValueRef f)
{
    char *name = LLVMGetHostCPUName();

    hed_lower_text_attribute(l, f, "tune-cpu", name);
    LLVMDisposeMessage(name);
}

void
hed_mask_finish(struct hed_lower *l)
{
    LLVMValueRef entry =
        hed_lower_declare_as(l, "hed_kernel", LLVMFunctionType(l->nothing, &l->ptr, 1, false));
    struct hed_lower_function f = {.value = entry, .ptx = l->kernel};
    struct run r = {.run = LLVMGetParam(entry, 0),
                    .body = hed_lower_map_get(l->functions, l->kernel),
                    .reduces = has_reductions(l->kernel)};
    const unsigned count = count_instructions(l->kernel);

    r.is_inline = count <= INLINE_MOST;
    hed_lower_attribute(l, r.body, r.is_inline ? "alwaysinline" : "noinline", 0);
    if (count <= TUNE_MOST)
        tune_for_processor(l, entry);
    l->function = &f;
    f.entry = hed_lower_block(l, "entry");
    LLVMPositionBuilderAtEnd(l->b, f.entry);
    if (l->info.flags & HED_PTX_WAITS) {
        run_warp(l, &r);
    } else {
        l->info.flags |= HED_PTX_BLOCKS;
        load_run(l, &r);
        run_blocks(l, &r, (l->info.flags & HED_PTX_CUT) != 0);
    }
    l->function = NULL;
}
