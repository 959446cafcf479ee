/* Finds the loops of a text that may wait for other threads. Their code yields now and then
 * (hed_rt_yield). spin.c does so for a flow; it is more exact, but a flow has no jumps by tables.
 *
 * A loop waits if a branch in it depends on something that other threads change while it runs: an
 * atomic, a volatile or ordered load, a barrier object. These instructions taint the registers they
 * write, and taint follows the data. A loop is everything between a label and a branch back to it.
 * (Each instruction of a cycle lies between such a pair that belongs to the cycle.) Of memory, only
 * the thread's own is followed, as a single location, since unoptimised code keeps everything
 * there. A call taints its results and that memory if any function that can be reached has such an
 * instruction.
 *
 * Something in the loop must be such an instruction, or a branch in it depends only on what was
 * known before: the loop ends by itself, and lanes that ran together must not part there. Where
 * branches back cross each other, all that they enclose together counts.
 *
 * A short loop that loads the same place again and again and writes nothing waits as well, whatever
 * the load is: machine code of shared memory does not say which loads are volatile, and a compiler
 * would have moved any other load out of the loop.
 *
 * An update that is tried again until nobody came between does not wait: it fails only if another
 * thread's update succeeded.
 *
 *      L: add.f32 %f2, %f1, 1.0;  atom.cas.b32 %r3, [%rd1], %r2, ...;
 *         setp.ne.s32 %p1, %r2, %r3;  mov.u32 %r2, %r3;  @%p1 bra L;
 */
#include "kernel/ptx/pass/wait.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernel/ptx/pass/pass.h"
#include "kernel/ptx/run/layout.h"

/* A branch to a label above it, both by the number of their statement. */
struct wait_back {
    uint32_t from, to;
};

struct wait {
    bool *waits;     /* by label id: the result */
    bool *seen;      /* by label id: the label is above the current statement */
    bool *tainted;   /* by register id */
    uint32_t *same;  /* by register id: the lowest id of the registers it is copied from or to */
    bool own_memory; /* a tainted value was stored to the thread's own memory */
    bool changed;
    uint32_t *place;   /* by label id: the number of its statement */
    uint32_t *learned; /* by statement: how many before it learn what other threads do */
    struct wait_back *backs;
    uint32_t back_count;
};

static bool
is_ordered_load(const struct hed_ptx_form *f)
{
    return f->sem == HED_PTX_SEM_VOLATILE || f->sem == HED_PTX_SEM_RELAXED ||
           f->sem == HED_PTX_SEM_ACQUIRE || f->cop == HED_PTX_COP_CV ||
           (f->flags & HED_PTX_FLAG(MMIO));
}

bool
hed_wait_is_source(const struct hed_ptx_inst *i)
{
    switch (i->form->op) {
    case HED_PTX_OP_ATOM:
    case HED_PTX_OP_MBARRIER_TEST_WAIT:
    case HED_PTX_OP_MBARRIER_TRY_WAIT:
        return true;
    case HED_PTX_OP_LD:
    case HED_PTX_OP_LDU:
        return is_ordered_load(i->form);
    default:
        return false;
    }
}

bool
hed_wait_is_own_memory(const struct hed_ptx_form *f)
{
    const unsigned space = f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE;

    return space == HED_PTX_SPACE_NONE || space == HED_PTX_SPACE_LOCAL ||
           space == HED_PTX_SPACE_PARAM || space == HED_PTX_SPACE_PARAM_FUNC;
}

/* ---- updates that are tried again ------------------------------------------------------------ */

bool
hed_wait_is_copy(const struct hed_ptx_inst *i)
{
    return i->form->op == HED_PTX_OP_MOV && !i->is_refused &&
           i->operands[0].kind == HED_PTX_OPERAND_REG && i->operands[1].kind == HED_PTX_OPERAND_REG;
}

/* Finds the registers that are copies of each other, wherever in the text. */
static void
find_copies(struct wait *w, const struct hed_ptx_func *f)
{
    bool changed = true;

    for (uint32_t r = 0; r < f->nregs; r++)
        w->same[r] = r;
    while (changed) {
        changed = false;
        for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
            const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

            if (s->kind != HED_PTX_STMT_INST || !hed_wait_is_copy(i))
                continue;

            uint32_t *a = &w->same[i->operands[0].reg->id], *b = &w->same[i->operands[1].reg->id];

            changed |= *a != *b;
            *a = *b = *a < *b ? *a : *b;
        }
    }
}

bool
hed_wait_compares(const struct hed_ptx_inst *i)
{
    return i->form->op == HED_PTX_OP_SETP && !i->is_refused &&
           (i->form->cmp == HED_PTX_CMP_EQ || i->form->cmp == HED_PTX_CMP_NE ||
            i->form->cmp == HED_PTX_CMP_NEU) &&
           i->operands[1].kind == HED_PTX_OPERAND_REG &&
           i->operands[2].kind == HED_PTX_OPERAND_REG && i->operands[1].reg != i->operands[2].reg;
}

bool
hed_wait_is_swap(const struct hed_ptx_inst *i)
{
    return i->form->op == HED_PTX_OP_ATOM && i->form->oper == HED_PTX_OPER_CAS &&
           i->operands[0].kind == HED_PTX_OPERAND_REG && i->operands[2].kind == HED_PTX_OPERAND_REG;
}

/* Does an instruction compare two copies of a register for equality? */
static bool
compares_copies(const struct wait *w, const struct hed_ptx_inst *i, uint32_t of)
{
    return hed_wait_compares(i) && w->same[i->operands[1].reg->id] == of &&
           w->same[i->operands[2].reg->id] == of;
}

/* Is it a compare-and-swap that expects what it found the last time, and is done when it finds
 * that? */
static bool
is_tried_again(const struct wait *w, const struct hed_ptx_func *f, const struct hed_ptx_inst *i)
{
    uint32_t found;

    if (!hed_wait_is_swap(i))
        return false;
    found = w->same[i->operands[0].reg->id];
    if (found != w->same[i->operands[2].reg->id])
        return false;
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next)
        if (s->kind == HED_PTX_STMT_INST &&
            compares_copies(w, (const struct hed_ptx_inst *)s, found))
            return true;
    return false;
}

bool
hed_wait_others_write(const struct hed_ptx_form *f)
{
    const unsigned space = f->nspaces ? f->spaces[0] : HED_PTX_SPACE_NONE;

    return space == HED_PTX_SPACE_NONE ||
           (space != HED_PTX_SPACE_CONST && !hed_wait_is_own_memory(f));
}

/* ---- loops that only look -------------------------------------------------------------------- */

#define LOOK_MOST 64 /* statements of such a loop */

/* The statements of a loop, from a label to a branch back to it, and the registers that may have
 * other values than at the same place a round before. */
struct look {
    const struct hed_ptx_stmt *from, *to;
    const struct hed_ptx_reg *changing[LOOK_MOST];
    uint32_t count;
};

static bool
is_changing(const struct look *l, const struct hed_ptx_reg *r)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->changing[i] == r)
            return true;
    return false;
}

static void
set_changing(struct look *l, const struct hed_ptx_reg *r, bool changes)
{
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->changing[i] != r)
            continue;
        if (!changes)
            l->changing[i] = l->changing[--l->count];
        return;
    }
    if (changes) /* there is room: a loop has at most as many statements */
        l->changing[l->count++] = r;
}

static bool
reads_changing(const struct look *l, const struct hed_ptx_operand *o)
{
    return (o->kind == HED_PTX_OPERAND_REG ||
            (o->kind == HED_PTX_OPERAND_MEM && o->base == HED_PTX_OPERAND_REG)) &&
           is_changing(l, o->reg);
}

static bool
is_inside(const struct look *l, const struct hed_ptx_label *label)
{
    for (const struct hed_ptx_stmt *s = l->from->next; s && s != l->to; s = s->next)
        if (s == label->at)
            return true;
    return false;
}

/* Does an instruction do nothing but compute, load, leave the loop and order what is in memory?
 * Notes what it writes. */
static bool
only_looks(struct look *l, const struct hed_ptx_inst *i)
{
    const struct hed_ptx_operand *to = &i->operands[0];

    if (i->is_refused)
        return false;
    switch (i->form->op) {
    case HED_PTX_OP_BRA:
        return !is_inside(l, to->label);
    case HED_PTX_OP_BAR_WARP_SYNC:
    case HED_PTX_OP_MEMBAR:
    case HED_PTX_OP_FENCE:
    case HED_PTX_OP_NANOSLEEP:
        return true;
    case HED_PTX_OP_LD:
        break;
    default:
        if (hed_ptx_op_nature(i->form->op) != HED_PTX_COMPUTES)
            return false;
    }
    if (i->noperands == 0 || to->kind != HED_PTX_OPERAND_REG)
        return false;
    set_changing(l, to->reg, true);
    return true;
}

static bool
is_look(struct look *l)
{
    unsigned n = 0;

    for (const struct hed_ptx_stmt *s = l->from; s && n < LOOK_MOST; s = s->next, n++) {
        if (s->kind == HED_PTX_STMT_INST && !only_looks(l, (const struct hed_ptx_inst *)s))
            return false;
        if (s == l->to)
            return true;
    }
    return false;
}

/* Taints what such a loop loads from one place. Addresses are often computed in the loop, but from
 * what stays the same. */
static void
taint_looks(struct wait *w, const struct hed_ptx_stmt *from, const struct hed_ptx_stmt *to)
{
    struct look l = {.from = from, .to = to};

    if (!is_look(&l))
        return;
    for (const struct hed_ptx_stmt *s = from; s != to; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;
        bool same;

        if (s->kind != HED_PTX_STMT_INST)
            continue;
        same = !i->guard;
        for (unsigned k = 1; same && k < i->noperands; k++)
            same = !reads_changing(&l, &i->operands[k]);
        if (i->form->op == HED_PTX_OP_LD) {
            w->tainted[i->operands[0].reg->id] |= same && hed_wait_others_write(i->form);
            set_changing(&l, i->operands[0].reg, true);
        } else if (hed_ptx_op_nature(i->form->op) == HED_PTX_COMPUTES) {
            set_changing(&l, i->operands[0].reg, !same);
        }
    }
}

static void
find_looks(struct wait *w, const struct hed_ptx_func *f)
{
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_LABEL)
            w->seen[s->label->id] = true;
        else if (s->kind == HED_PTX_STMT_INST && !i->is_refused && i->form->op == HED_PTX_OP_BRA &&
                 w->seen[i->operands[0].label->id])
            taint_looks(w, i->operands[0].label->at, s);
    }
    memset(w->seen, 0, f->nlabels * sizeof(bool));
}

/* ---- taint ----------------------------------------------------------------------------------- */

static bool
has_taint_source(const struct hed_ptx_func *f)
{
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
        if (s->kind == HED_PTX_STMT_INST && hed_wait_is_source((const struct hed_ptx_inst *)s))
            return true;
    }
    return false;
}

bool
hed_wait_calls(const struct hed_ptx_unit *u)
{
    for (uint32_t i = 1; i < u->nfuncs; i++) {
        if (has_taint_source(u->funcs[i]))
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
taint_operand(struct wait *w, const struct hed_ptx_operand *o)
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
            taint_operand(w, &o->elems[i]);
        break;
    default:
        break;
    }
}

static void
follow_taint(struct wait *w, const struct hed_ptx_func *f, const struct hed_ptx_inst *i,
             bool calls_wait)
{
    const unsigned op = i->form->op;
    bool is;

    if (i->is_refused || i->noperands == 0)
        return;
    is = (hed_wait_is_source(i) && !is_tried_again(w, f, i)) ||
         (i->guard && w->tainted[i->guard->id]) || (op == HED_PTX_OP_CALL && calls_wait) ||
         (op == HED_PTX_OP_LD && w->own_memory && hed_wait_is_own_memory(i->form));
    for (unsigned k = 1; k < i->noperands && !is; k++)
        is = reads_taint(w, &i->operands[k]);
    if (!is)
        return;
    taint_operand(w, &i->operands[0]);
    if ((op == HED_PTX_OP_ST && hed_wait_is_own_memory(i->form)) || op == HED_PTX_OP_CALL) {
        w->changed = w->changed || !w->own_memory;
        w->own_memory = true;
    }
}

static void
spread_taint(struct wait *w, const struct hed_ptx_func *f, bool calls_wait)
{
    do {
        w->changed = false;
        for (const struct hed_ptx_stmt *s = f->body; s; s = s->next) {
            if (s->kind == HED_PTX_STMT_INST)
                follow_taint(w, f, (const struct hed_ptx_inst *)s, calls_wait);
        }
    } while (w->changed);
}

/* Does a branch from `from` up to and including `to` depend on a tainted value? */
static bool
branches_on_taint(const struct wait *w, const struct hed_ptx_stmt *from,
                  const struct hed_ptx_stmt *to)
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

/* ---- loops ----------------------------------------------------------------------------------- */

/* Does it learn what other threads do at this moment, or wait for them? */
static bool
learns(const struct wait *w, const struct hed_ptx_func *f, const struct hed_ptx_inst *i,
       bool calls_wait)
{
    const unsigned op = i->form->op;

    if (i->is_refused)
        return false;
    if (op == HED_PTX_OP_NANOSLEEP || (op == HED_PTX_OP_CALL && calls_wait))
        return true;
    if (hed_wait_is_source(i))
        return !is_tried_again(w, f, i);
    return op == HED_PTX_OP_LD && hed_wait_others_write(i->form) && reads_taint(w, &i->operands[0]);
}

static void
note_back(struct wait *w, uint32_t from, const struct hed_ptx_label *to)
{
    if (w->seen[to->id])
        w->backs[w->back_count++] = (struct wait_back){from, w->place[to->id]};
}

/* Numbers the statements, and notes the branches back. False if there is no memory. */
static bool
note_places(struct wait *w, const struct hed_ptx_func *f, bool calls_wait)
{
    uint32_t count = 0, targets = 0, n = 0;

    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next, count++) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_INST && !i->is_refused)
            targets += i->form->op == HED_PTX_OP_BRX_IDX ? i->operands[1].table->count
                                                         : i->form->op == HED_PTX_OP_BRA;
    }
    w->place = calloc((size_t)f->nlabels + 1, sizeof *w->place);
    w->learned = calloc((size_t)count + 1, sizeof *w->learned);
    w->backs = calloc((size_t)targets + 1, sizeof *w->backs);
    if (!w->place || !w->learned || !w->backs)
        return false;
    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next, n++) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;
        const bool is_inst = s->kind == HED_PTX_STMT_INST && !i->is_refused;

        w->learned[n + 1] = w->learned[n] + (is_inst && learns(w, f, i, calls_wait));
        if (s->kind == HED_PTX_STMT_LABEL) {
            w->seen[s->label->id] = true;
            w->place[s->label->id] = n;
        } else if (is_inst && i->form->op == HED_PTX_OP_BRA) {
            note_back(w, n, i->operands[0].label);
        } else if (is_inst && i->form->op == HED_PTX_OP_BRX_IDX) {
            for (uint32_t k = 0; k < i->operands[1].table->count; k++)
                note_back(w, n, i->operands[1].table->targets[k].label);
        }
    }
    memset(w->seen, 0, f->nlabels * sizeof(bool));
    return true;
}

/* Is there such an instruction from one statement to another, or in what branches back enclose
 * together with these? */
static bool
learns_between(const struct wait *w, uint32_t from, uint32_t to)
{
    for (bool grown = true; grown;) {
        if (w->learned[to + 1] != w->learned[from])
            return true;
        grown = false;
        for (uint32_t i = 0; i < w->back_count; i++)
            if (w->backs[i].from > to && w->backs[i].to >= from && w->backs[i].to <= to) {
                to = w->backs[i].from;
                grown = true;
            }
    }
    return false;
}

/* A branch to a label above it closes a loop. Returns whether that loop may wait. at: the number of
 * the branch. */
static bool
mark_loop(struct wait *w, const struct hed_ptx_stmt *branch, uint32_t at,
          const struct hed_ptx_label *to)
{
    if (w->seen[to->id] && !w->waits[to->id])
        w->waits[to->id] =
            branches_on_taint(w, to->at, branch) && learns_between(w, w->place[to->id], at);
    return w->seen[to->id] && w->waits[to->id];
}

static bool
mark_loops(struct wait *w, const struct hed_ptx_func *f)
{
    bool any = false;
    uint32_t n = 0;

    for (const struct hed_ptx_stmt *s = f->body; s; s = s->next, n++) {
        const struct hed_ptx_inst *i = (const struct hed_ptx_inst *)s;

        if (s->kind == HED_PTX_STMT_LABEL)
            w->seen[s->label->id] = true;
        if (s->kind != HED_PTX_STMT_INST || i->is_refused)
            continue;
        if (i->form->op == HED_PTX_OP_BRA) {
            any |= mark_loop(w, s, n, i->operands[0].label);
        } else if (i->form->op == HED_PTX_OP_BRX_IDX) {
            for (uint32_t k = 0; k < i->operands[1].table->count; k++)
                any |= mark_loop(w, s, n, i->operands[1].table->targets[k].label);
        }
    }
    return any;
}

int
hed_ptx_find_waits(const struct hed_ptx_unit *u, const struct hed_ptx_func *f, bool *waits,
                   bool *any)
{
    struct wait w = {
        .waits = waits,
        .seen = calloc((size_t)f->nlabels + 1, sizeof(bool)),
        .tainted = calloc((size_t)f->nregs + 1, sizeof(bool)),
        .same = calloc((size_t)f->nregs + 1, sizeof(uint32_t)),
    };
    bool ready = w.seen && w.tainted && w.same;

    if (ready) {
        const bool calls_wait = hed_wait_calls(u);

        find_copies(&w, f);
        find_looks(&w, f);
        spread_taint(&w, f, calls_wait);
        ready = note_places(&w, f, calls_wait);
    }
    if (ready)
        *any = mark_loops(&w, f);
    free(w.place);
    free(w.learned);
    free(w.backs);
    free(w.seen);
    free(w.tainted);
    free(w.same);
    return ready ? 0 : HED_ENOMEM;
}
