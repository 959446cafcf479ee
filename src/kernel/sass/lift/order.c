/* The order in which the blocks of a kernel are written. See inside.h.
 *
 * It is a reverse post-order in which the blocks of a loop follow each other. So a block where
 * paths join comes after all blocks on these paths, and what follows a loop comes after it.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/sass/lift/inside.h"

#define WORK_MAX (UINT64_C(1) << 25) /* steps; compilers' code needs a small part of them */

struct ordering {
    struct lift_flow *f;
    uint32_t *rpo;                   /* nodes in reverse post-order */
    uint32_t *number;                /* by node: position in rpo */
    uint32_t *dom;                   /* by position: the position of the immediate dominator */
    uint32_t *before_first, *before; /* predecessors, by position */
    uint32_t *stack;                 /* for walks */
    uint8_t *member;                 /* by position: of the loop at hand */
    uint64_t work;                   /* steps made */
};

/* A depth-first walk; a block is numbered when all that can follow it are. */
static bool
number_nodes(struct ordering *o)
{
    struct lift_flow *f = o->f;
    uint32_t *at = calloc(f->node_count, sizeof *at); /* the edge to follow next */
    uint32_t depth = 0, left = f->node_count;

    if (!at)
        return false;
    memset(o->number, 0xff, f->node_count * sizeof *o->number);
    o->stack[depth++] = 0;
    o->number[0] = 0;
    while (depth) {
        const uint32_t n = o->stack[depth - 1];
        const struct lift_node *node = &f->nodes[n];

        if (at[n] < node->next_count) {
            /* Of two ways, the one that goes on is walked last: its blocks come first. */
            const uint32_t to = node->next[at[n]++];

            if (o->number[to] == LIFT_NONE) {
                o->number[to] = 0;
                o->stack[depth++] = to;
            }
            continue;
        }
        depth--;
        o->rpo[--left] = n;
    }
    for (uint32_t i = 0; i < f->node_count; i++)
        o->number[o->rpo[i]] = i;
    free(at);
    return true;
}

static bool
list_before(struct ordering *o)
{
    const struct lift_flow *f = o->f;
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->node_count; i++)
        n += f->nodes[i].next_count;
    o->before = malloc(((size_t)n + 1) * sizeof *o->before);
    if (!o->before)
        return false;
    for (uint32_t i = 0; i < f->node_count; i++)
        for (uint32_t k = 0; k < f->nodes[i].next_count; k++)
            o->before_first[o->number[f->nodes[i].next[k]] + 1]++;
    for (uint32_t i = 0; i < f->node_count; i++)
        o->before_first[i + 1] += o->before_first[i];
    for (uint32_t i = f->node_count; i-- > 0;) {
        const struct lift_node *from = &f->nodes[o->rpo[i]];

        for (uint32_t k = 0; k < from->next_count; k++)
            o->before[--o->before_first[o->number[from->next[k]] + 1]] = i;
    }
    /* Filling has moved each end to its beginning. */
    memmove(o->before_first, o->before_first + 1, f->node_count * sizeof *o->before_first);
    o->before_first[f->node_count] = n;
    return true;
}

static uint32_t
common_dominator(struct ordering *o, uint32_t a, uint32_t b)
{
    while (a != b) {
        o->work++;
        if (a > b)
            a = o->dom[a];
        else
            b = o->dom[b];
    }
    return a;
}

static void
find_node_dominators(struct ordering *o)
{
    bool changed = true;

    memset(o->dom, 0xff, o->f->node_count * sizeof *o->dom);
    o->dom[0] = 0;
    while (changed && o->work < WORK_MAX) {
        changed = false;
        o->work += o->f->node_count;
        for (uint32_t i = 1; i < o->f->node_count && o->work < WORK_MAX; i++) {
            uint32_t d = LIFT_NONE;

            /* The last first: so each step up is made once, not for each that comes before. */
            for (uint32_t k = o->before_first[i + 1]; k-- > o->before_first[i];)
                if (o->dom[o->before[k]] != LIFT_NONE)
                    d = d == LIFT_NONE ? o->before[k] : common_dominator(o, d, o->before[k]);
            if (d != o->dom[i]) {
                o->dom[i] = d;
                changed = true;
            }
        }
    }
}

static bool
dominates(struct ordering *o, uint32_t a, uint32_t b)
{
    for (; b > a; o->work++)
        b = o->dom[b];
    return a == b;
}

/* Is there an edge from a later block back to this one, which dominates it? */
static bool
is_loop_edge(struct ordering *o, uint32_t from, uint32_t header)
{
    return from > header && dominates(o, header, from);
}

static bool
is_header(struct ordering *o, uint32_t at)
{
    for (uint32_t k = o->before_first[at]; k < o->before_first[at + 1]; k++)
        if (is_loop_edge(o, o->before[k], at))
            return true;
    return false;
}

/* Marks the blocks of the loops that begin at a header. */
static void
mark_members(struct ordering *o, uint32_t header)
{
    uint32_t depth = 0;

    memset(o->member, 0, o->f->node_count);
    o->member[header] = 1;
    for (uint32_t k = o->before_first[header]; k < o->before_first[header + 1]; k++)
        if (is_loop_edge(o, o->before[k], header) && !o->member[o->before[k]]) {
            o->member[o->before[k]] = 1;
            o->stack[depth++] = o->before[k];
        }
    while (depth) {
        const uint32_t at = o->stack[--depth];

        for (uint32_t k = o->before_first[at]; k < o->before_first[at + 1]; k++)
            if (!o->member[o->before[k]]) {
                o->member[o->before[k]] = 1;
                o->stack[depth++] = o->before[k];
            }
    }
}

/* Moves the blocks of a loop behind its header, outer loops first. Whatever stood between them
 * comes after the loop: nothing but the header leads into it. */
static void
gather_loop(struct ordering *o, uint32_t *order)
{
    const uint32_t n = o->f->node_count;
    uint32_t first = 0, last = 0, kept = 0;

    for (uint32_t i = 0, seen = 0; i < n; i++)
        if (o->member[order[i]]) {
            first = seen++ ? first : i;
            last = i;
        }
    for (uint32_t i = first; i <= last; i++)
        if (!o->member[order[i]])
            o->stack[kept++] = order[i];
    for (uint32_t i = first, to = first; i <= last; i++)
        if (o->member[order[i]])
            order[to++] = order[i];
    memcpy(&order[last + 1 - kept], o->stack, kept * sizeof *order);
}

static void
order_nodes(struct ordering *o)
{
    const uint32_t n = o->f->node_count;
    uint32_t *order = o->f->order;

    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = 0; i < n && o->work < WORK_MAX; i++)
        if (is_header(o, i)) {
            mark_members(o, i);
            gather_loop(o, order);
            o->work += n / 8 + 1; /* simple steps */
        }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = o->rpo[order[i]];
        o->f->nodes[order[i]].order = i;
    }
}

int
hed_lift_order(struct lift_flow *f)
{
    const size_t n = f->node_count;
    uint32_t *all = calloc(6 * n + 2, sizeof *all);
    struct ordering o = {.f = f, .member = malloc(n)};
    int err = HED_ENOMEM;

    f->order = malloc(n * sizeof *f->order);
    if (all && o.member && f->order) {
        o.rpo = all;
        o.number = all + n;
        o.dom = all + 2 * n;
        o.stack = all + 3 * n; /* n for walks */
        o.before_first = all + 4 * n;
        if (number_nodes(&o) && list_before(&o)) {
            find_node_dominators(&o);
            if (o.work < WORK_MAX)
                order_nodes(&o);
            err = o.work < WORK_MAX ? 0 : HED_ELIMIT;
        }
    }
    free(o.before);
    free(o.member);
    free(all);
    return err;
}
