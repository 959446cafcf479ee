/* Loops that are made twice (pass/guess.h).
 *
 *      lanes come to the header
 *        │
 *      all lanes run, and the tested values step?
 *        │ yes                     │ no
 *        v                         v
 *      the loop, with guess.u    the loop as it is, or lane by lane
 *        │                         │
 *        └──> blocks behind it <───┘
 *
 * While the first is made, the shape's state has the guess's classes, and other slots for the
 * values and blocks of the loop. Values from outside have the same slots in both.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernel/ptx/lower/mask/mask.h"

/* What is put aside while the guessed version is made. */
struct aside {
    struct hed_uniforms uniforms;
    struct mask_value *values;
    LLVMBasicBlockRef *begins, *gates;
    LLVMValueRef *waiting;
};

/* Does the value have slots of its own in the guessed version? */
static bool
is_remade(const struct mask *m, const struct hed_guess *g, uint32_t loop, uint32_t id)
{
    return hed_ssa_is_made_in(&m->ssa, &m->flow, id, loop) || hed_guess_tests(g, id);
}

/* i1: do all lanes have what the guess says? */
static LLVMValueRef
test_value(struct hed_lower *l, const struct hed_guess *g, uint32_t id, LLVMValueRef *first)
{
    LLVMValueRef v = hed_mask_lanes(l, hed_mask_state(l)->flow.values[id]);
    LLVMTypeRef t = LLVMGetElementType(LLVMTypeOf(v));
    const struct hed_uniform *c = &g->u.values[id];
    LLVMValueRef off, more = c->kind == HED_OFFSETS ? hed_mask_offsets(l, t, c)
                                                    : hed_lower_warp_iota(l, t, (uint64_t)c->step);

    *first = LLVMBuildExtractElement(l->b, v, hed_lower_word(l, 0), "");
    off = LLVMBuildAdd(l->b, hed_lower_splat(l, *first), more, "");
    off = LLVMBuildXor(l->b, v, off, "");
    off = hed_lower_intrinsic(l, "llvm.vector.reduce.or", LLVMTypeOf(off), &off, 1);
    return LLVMBuildIsNull(l->b, off, "");
}

/* Copies of the arrays, with new entries for what is in the loop. Returns whether there was memory;
 * whatever it got is in the state. */
static bool
put_aside(struct mask *m, const struct hed_guess *g, uint32_t loop, struct aside *old)
{
    const size_t n = m->flow.nblocks + 1, nvalues = (size_t)m->flow.nvalues + 1;

    *old = (struct aside){m->uniforms, m->values, m->begins, m->gates, m->waiting};
    m->uniforms = g->u;
    m->values = calloc(nvalues, sizeof(*m->values));
    m->begins = calloc(n, sizeof(*m->begins));
    m->gates = calloc(n, sizeof(*m->gates));
    m->waiting = calloc(n, sizeof(LLVMValueRef));
    if (!m->values || !m->begins || !m->gates || !m->waiting)
        return false;
    memcpy(m->values, old->values, nvalues * sizeof(*m->values));
    memcpy(m->begins, old->begins, n * sizeof(*m->begins));
    memcpy(m->gates, old->gates, n * sizeof(*m->gates));
    memcpy(m->waiting, old->waiting, n * sizeof(LLVMValueRef));
    for (uint32_t v = 0; v < m->flow.nvalues; v++)
        if (is_remade(m, g, loop, v))
            m->values[v] = (struct mask_value){0};
    return true;
}

/* The state as it was; slots that values from outside got meanwhile stay. */
static void
take_back(struct mask *m, const struct hed_guess *g, uint32_t loop, struct aside *old)
{
    for (uint32_t v = 0; m->values && v < m->flow.nvalues; v++)
        if (!is_remade(m, g, loop, v))
            old->values[v] = m->values[v];
    free(m->values);
    free(m->begins);
    free(m->gates);
    free(m->waiting);
    m->uniforms = old->uniforms;
    m->values = old->values;
    m->begins = old->begins;
    m->gates = old->gates;
    m->waiting = old->waiting;
}

/* The guessed version. The builder is where lanes come in. */
static void
make_guessed(struct hed_lower *l, const struct hed_guess *g, uint32_t loop,
             LLVMValueRef const *first)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_flow_loop *f = &m->flow.loops[loop];
    LLVMValueRef outer = m->waiting[f->header];
    struct aside old;

    if (put_aside(m, g, loop, &old)) {
        hed_mask_make_loop_gates(l, loop);
        LLVMBuildStore(l->b, LLVMBuildLoad2(l->b, l->i32, outer, ""), m->waiting[f->header]);
        LLVMBuildStore(l->b, hed_lower_word(l, 0), outer);
        for (uint32_t i = 0; i < g->ntested; i++)
            LLVMBuildStore(l->b, first[i], hed_mask_slot(l, m->flow.values[g->tested[i]], 0));
        for (const struct hed_flow_phi *p = m->flow.blocks[f->header].phis; p; p = p->next)
            if (!hed_guess_tests(g, p->to->id))
                m->values[p->to->id] = old.values[p->to->id];
        LLVMBuildBr(l->b, m->begins[f->header]);
        for (uint32_t b = f->header; b <= f->last && !l->err; b++)
            hed_mask_make_block(l, b);
    } else {
        l->err = HED_ENOMEM;
    }
    take_back(m, g, loop, &old);
}

void
hed_mask_make_guess(struct hed_lower *l, uint32_t loop)
{
    struct mask *m = hed_mask_state(l);
    const struct hed_guess *g = m->guesses[loop];
    const uint32_t header = m->flow.loops[loop].header;
    LLVMBasicBlockRef yes = hed_lower_block(l, ""), test = hed_lower_block(l, "");
    LLVMBasicBlockRef no = hed_lower_block(l, "");
    LLVMValueRef first[HED_GUESS_MAX], all;

    LLVMMoveBasicBlockAfter(m->begins[header], LLVMGetInsertBlock(l->b));
    LLVMPositionBuilderAtEnd(l->b, m->begins[header]);
    all = LLVMBuildICmp(l->b, LLVMIntEQ, LLVMBuildLoad2(l->b, l->i32, m->waiting[header], ""),
                        hed_lower_word(l, UINT32_MAX), "");
    LLVMBuildCondBr(l->b, all, test, no);
    LLVMPositionBuilderAtEnd(l->b, test);
    all = LLVMConstInt(l->i1, 1, false);
    for (uint32_t i = 0; i < g->ntested; i++)
        all = LLVMBuildAnd(l->b, all, test_value(l, g, g->tested[i], &first[i]), "");
    LLVMBuildCondBr(l->b, all, yes, no);
    LLVMPositionBuilderAtEnd(l->b, yes);
    make_guessed(l, g, loop, first);
    /* Lanes that go round in the other version are not asked again. */
    m->begins[header] = no;
    LLVMPositionBuilderAtEnd(l->b, yes);
}
