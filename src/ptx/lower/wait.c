/* Which loops may wait for other threads: these give way now and then (hed_rt_yield).
 *
 * A loop waits when a branch in it depends on something that other threads change while it runs: an
 * atomic, a volatile or ordered load, a barrier object. So registers are tainted by these, taint
 * follows the data, and a loop is found by its branch back: all that lies between the label and the
 * branch. (Of every cycle, each instruction lies within the span of one of the cycle's backward
 * branches.) Of memory only a thread's own is followed, as one place: code that was not optimised
 * keeps everything there. A call taints its results and that memory when a function that can be
 * reached holds such an instruction.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ptx/lower/lower.h"
#include "ptx/run/layout.h"

struct wait {
    struct hed_lower *l;
    bool *tainted;   /* by register id */
    bool own_memory; /* a tainted value was stored to the thread's own memory */
    bool changed;
};

static bool
is_ordered(const struct hed_ptx_form *f)
{
    return f->sem == HED_PTX_SEM_VOLATILE || f->sem == HED_PTX_SEM_RELAXED ||
           f->sem == HED_PTX_SEM_ACQUIRE || f->cop == HED_PTX_COP_CV ||
           (f->flags & HED_PTX_FLAG(MMIO));
}

/* Does its result depend on what other threads do now? */
static bool
is_source(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_ATOM:
    case HED_PTX_OP_MBARRIER_TEST_WAIT:
    case HED_PTX_OP_MBARRIER_TRY_WAIT:
        return true;
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
        return is_ordered(i->form);
    default:
        return false;
    }
}

static bool
holds_source(const struct hed_ptx_func *f)
{
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        if (s->kind == HED_PTX_STMT_INST && is_source((const struct hed_ptx_inst *)s))
            return true;
    }
    return false;
}

/* Any function that can be reached: which of them a call reaches is not worth finding out. */
static bool
calls_may_wait(const struct hed_lower *l)
{
    for (uint32_t i = 1; i < l->unit->nfuncs; i++) {
        if (holds_source(l->unit->funcs[i]))
            return true;
    }
    return false;
}

static bool
reads_taint(const struct wait *w, const struct hed_ptx_operand *o)
{
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        return w->tainted[o->reg->id];
    case HED_PTX_OPERAND_MEM:
        return o->base == HED_PTX_OPERAND_REG && w->tainted[o->reg->id];
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
    case HED_PTX_OPERAND_TUPLE:
        for (uint32_t i = 0; i < o->count; i++) {
            if (reads_taint(w, &o->elems[i]))
                return true;
        }
        return false;
    default:
        return false;
    }
}

static void
taint(struct wait *w, const struct hed_ptx_operand *o)
{
    switch (o->kind) {
    case HED_PTX_OPERAND_REG:
        w->changed = w->changed || !w->tainted[o->reg->id];
        w->tainted[o->reg->id] = true;
        break;
    case HED_PTX_OPERAND_VEC:
    case HED_PTX_OPERAND_PAIR:
    case HED_PTX_OPERAND_LIST:
        for (uint32_t i = 0; i < o->count; i++)
            taint(w, &o->elems[i]);
        break;
    default:
        break;
    }
}

/* May it be about the thread's own memory? */
static bool
is_own(const struct hed_ptx_form *f)
{
    const unsigned space = f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE;

    return space == HED_PTX_SPACE_NONE || space == HED_PTX_SPACE_LOCAL ||
           space == HED_PTX_SPACE_PARAM || space == HED_PTX_SPACE_PARAM_FUNC;
}

static void
follow(struct wait *w, const struct hed_ptx_inst *i, bool calls_wait)
{
    const unsigned op = i->form->op;
    bool is;

    if (i->is_refused || i->noperands == 0)
        return;
    is = is_source(i) || (i->guard && w->tainted[i->guard->id]) ||
         (op == HED_PTX_OP_CALL && calls_wait) ||
         (op == HED_PTX_OP_LD && w->own_memory && is_own(i->form));
    for (unsigned k = 1; k < i->noperands && !is; k++)
        is = reads_taint(w, &i->operands[k]);
    if (!is)
        return;
    taint(w, &i->operands[0]);
    if ((op == HED_PTX_OP_ST && is_own(i->form)) || op == HED_PTX_OP_CALL) {
        w->changed = w->changed || !w->own_memory;
        w->own_memory = true;
    }
}

static void
spread(struct wait *w, const struct hed_ptx_func *f, bool calls_wait)
{
    do {
        w->changed = false;
        for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
            if (s->kind == HED_PTX_STMT_INST)
                follow(w, (const struct hed_ptx_inst *)s, calls_wait);
        }
    } while (w->changed);
}

/* Does a branch between the two, the last included, hang on taint? */
static bool
hangs(const struct wait *w, const struct hed_ptx_stmt *from, const struct hed_ptx_stmt *to)
{
    for (const struct hed_ptx_stmt *s = from; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_INST) {
            const unsigned op = i->form->op;

            if (op == HED_PTX_OP_NANOSLEEP)
                return true;
            if (i->guard && w->tainted[i->guard->id] &&
                (op == HED_PTX_OP_BRA || op == HED_PTX_OP_RET || op == HED_PTX_OP_EXIT))
                return true;
            if (op == HED_PTX_OP_BRX_IDX && reads_taint(w, &i->operands[0]))
                return true;
        }
        if (s == to)
            break;
    }
    return false;
}

/* A branch to a label that was seen before closes a loop. */
static bool
mark(struct wait *w, const struct hed_ptx_stmt *at, const struct hed_ptx_label *to,
     const bool *seen)
{
    bool *waits = w->l->function->waits;

    if (seen[to->id] && !waits[to->id])
        waits[to->id] = hangs(w, to->at, at);
    return seen[to->id] && waits[to->id];
}

static bool
mark_loops(struct wait *w, const struct hed_ptx_func *f, bool *seen)
{
    bool any = false;

    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_LABEL)
            seen[s->label->id] = true;
        if (s->kind != HED_PTX_STMT_INST || i->is_refused)
            continue;
        if (i->form->op == HED_PTX_OP_BRA) {
            any |= mark(w, s, i->operands[0].label, seen);
        } else if (i->form->op == HED_PTX_OP_BRX_IDX) {
            for (uint32_t k = 0; k < i->operands[1].table->count; k++)
                any |= mark(w, s, i->operands[1].table->targets[k].label, seen);
        }
    }
    return any;
}

bool
hed_lower_find_waits(struct hed_lower *l)
{
    const struct hed_ptx_func *f = l->function->ptx;
    struct wait w = {.l = l, .tainted = calloc((size_t)f->nregs + 1, sizeof(bool))};
    bool *seen = calloc((size_t)f->nlabels + 1, sizeof(*seen));
    bool any = false;

    if (!w.tainted || !seen) {
        l->err = HED_ENOMEM;
    } else {
        spread(&w, f, calls_may_wait(l));
        any = mark_loops(&w, f, seen);
    }
    free(w.tainted);
    free(seen);
    return any;
}
