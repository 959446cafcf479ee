/* Subroutines that have one copy each, since a copy for each call would be too much. See inside.h.
 *
 *   [a: CALL f][b] ... [c: CALL f][d]   ->   [a] [c]
 *                                              \ /
 *                                               f      the return compares its register with the
 *                                              / \     places behind all calls of f
 *                                            [b] [d]
 *
 * A context is a subroutine here, whoever calls it. Calls and returns of a subroutine are found one
 * by one, and each is tied to all of the others that are known.
 *
 * The order of the blocks does not say any more where lanes meet: a block behind a call may come
 * before the subroutine. So this is for code in which lanes need not meet.
 */
#include <stdlib.h>

#include "kernel/sass/lift/flow.h"
#include "kernel/sass/lift/inside.h"

bool
hed_flow_share_init(struct flow_maker *m)
{
    const size_t n = (size_t)m->l->flow.inst_count + 1;

    m->context_of = calloc(n, sizeof *m->context_of);
    m->caller_of = calloc(n, sizeof *m->caller_of);
    return m->context_of && m->caller_of;
}

void
hed_flow_share_fini(struct flow_maker *m)
{
    free(m->context_of);
    free(m->caller_of);
    free(m->ties);
    m->context_of = m->caller_of = NULL;
    m->ties = NULL;
    m->tie_count = m->tie_room = 0;
}

/* Adds a tie to a list of a context; false if there is no memory. */
static bool
add_tie(struct flow_maker *m, uint32_t *list, uint32_t place, uint32_t context)
{
    if (m->tie_count == m->tie_room) {
        const uint32_t room = m->tie_room ? m->tie_room * 2 : 64;
        struct flow_tie *more = realloc(m->ties, room * sizeof *more);

        if (!more) {
            m->l->err = HED_ENOMEM;
            return false;
        }
        m->ties = more;
        m->tie_room = room;
    }
    m->ties[m->tie_count] = (struct flow_tie){.place = place, .context = context, .next = *list};
    *list = ++m->tie_count;
    return true;
}

/* The node that follows without a branch stays the last one. A call may end its section: no return
 * can go behind it. */
static void
tie_return(struct flow_maker *m, uint32_t node, const struct flow_tie *call)
{
    const uint32_t back = hed_flow_stay_inside(m->l, call->place - 1, call->place);
    struct lift_node *n;
    uint32_t last;

    if (back == LIFT_NONE)
        return;
    hed_flow_add_next(m, node, back, call->context);
    n = &m->l->flow.nodes[node];
    if (m->l->err || !n->falls)
        return;
    last = n->next[n->next_count - 1];
    n->next[n->next_count - 1] = n->next[n->next_count - 2];
    n->next[n->next_count - 2] = last;
}

/* An instruction that calls in two contexts would have two places behind it, and a return could not
 * tell them apart. */
void
hed_flow_share_call(struct flow_maker *m, uint32_t node, uint32_t to, uint32_t back)
{
    struct lift_flow *f = &m->l->flow;
    const uint32_t caller = f->nodes[node].context;
    struct flow_tie call;

    if (m->caller_of[back - 1] && m->caller_of[back - 1] != caller + 1) {
        m->unclear = true;
        return;
    }
    m->caller_of[back - 1] = caller + 1;
    if (!m->context_of[to])
        m->context_of[to] = hed_flow_add_context(m, 0, to, back);
    if (m->l->err)
        return;
    hed_flow_add_next(m, node, to, m->context_of[to]);
    if (!add_tie(m, &f->contexts[m->context_of[to]].calls, back, caller))
        return;
    call = m->ties[m->tie_count - 1];
    for (uint32_t i = f->contexts[m->context_of[to]].returns; i && !m->l->err;
         i = m->ties[i - 1].next)
        tie_return(m, m->ties[i - 1].place, &call);
}

void
hed_flow_share_return(struct flow_maker *m, uint32_t node)
{
    struct lift_flow *f = &m->l->flow;
    const uint32_t context = f->nodes[node].context;

    if (!add_tie(m, &f->contexts[context].returns, node, 0))
        return;
    for (uint32_t i = f->contexts[context].calls; i && !m->l->err; i = m->ties[i - 1].next) {
        const struct flow_tie call = m->ties[i - 1];

        tie_return(m, node, &call);
    }
}

/* ---- recursion ------------------------------------------------------------------------------- */

/* Takes away subroutines that call nothing, until none is left: those that stay call each other. */
static bool
calls_itself(struct flow_maker *m)
{
    const struct lift_flow *f = &m->l->flow;
    uint32_t *left = calloc(f->context_count, 2 * sizeof *left); /* calls in each context */
    uint32_t *done = left + f->context_count, count = 0;

    if (!left) {
        m->l->err = HED_ENOMEM;
        return false;
    }
    for (uint32_t c = 0; c < f->context_count; c++)
        for (uint32_t i = f->contexts[c].calls; i; i = m->ties[i - 1].next)
            left[m->ties[i - 1].context]++;
    for (uint32_t c = 0; c < f->context_count; c++)
        if (!left[c])
            done[count++] = c;
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t i = f->contexts[done[k]].calls; i; i = m->ties[i - 1].next)
            if (--left[m->ties[i - 1].context] == 0)
                done[count++] = m->ties[i - 1].context;
    free(left);
    return count < f->context_count;
}

void
hed_flow_share_end(struct flow_maker *m)
{
    m->l->flow.recurses = calls_itself(m);
}
