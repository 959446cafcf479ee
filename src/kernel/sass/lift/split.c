/* Loops with two entries get one. See inside.h.
 *
 *        E1  E2                    E1    E2
 *         |   |                     |     |
 *         A<--B            ->       A<-B  B'
 *         |   ^                     |  ^  |
 *         +---+                     +--+  +--> A
 *
 * Compilers that overlap the iterations of a loop may jump into its middle. Masks need loops with
 * one entry, so what lies between another entry and the header is copied for those who enter
 * there. A loop is a strongly connected part of the graph; inside of it, without its header, there
 * may be further ones.
 */
#include <stdlib.h>
#include <string.h>

#include "kernel/sass/lift/inside.h"

#define SPLITS_MAX 64u
#define GROWTH_MAX 4u                /* times as large as before */
#define SIZE_FREE 4096u              /* instructions that are fine in any case */
#define WORK_MAX (UINT64_C(1) << 24) /* nodes that are looked at */

struct splitter {
    struct lift_flow *f;
    uint32_t *component; /* by node: the strongly connected part it is in, or LIFT_NONE */
    uint32_t *low, *index, *stack, *calls, *edge, *copy;
    uint8_t *in; /* by node: of the set at hand */
    uint8_t *on_stack;
    uint32_t components;
    uint64_t work; /* nodes that were looked at */
    bool failed;
};

static bool
split_alloc(struct splitter *s)
{
    const size_t n = s->f->node_count;
    uint32_t *all = malloc(7 * n * sizeof *all);
    uint8_t *flags = malloc(2 * n);

    free(s->component);
    free(s->in);
    s->component = all;
    s->in = flags;
    if (!all || !flags) {
        s->failed = true;
        return false;
    }
    s->low = all + n;
    s->index = all + 2 * n;
    s->stack = all + 3 * n;
    s->calls = all + 4 * n;
    s->edge = all + 5 * n;
    s->copy = all + 6 * n;
    s->on_stack = flags + n;
    return true;
}

/* ---- strongly connected parts ---------------------------------------------------------------- */

/* Those of the nodes in a set, by Tarjan's walk without recursion. */
static void
find_components(struct splitter *s, uint32_t root, uint32_t *counter)
{
    uint32_t depth = 0, top = 0;

    s->calls[depth++] = root;
    s->index[root] = s->low[root] = (*counter)++;
    s->edge[root] = 0;
    s->stack[top++] = root;
    s->on_stack[root] = 1;
    while (depth) {
        const uint32_t n = s->calls[depth - 1];
        const struct lift_node *node = &s->f->nodes[n];

        if (s->edge[n] < node->next_count) {
            const uint32_t to = node->next[s->edge[n]++];

            if (!s->in[to])
                continue;
            if (s->index[to] == LIFT_NONE) {
                s->index[to] = s->low[to] = (*counter)++;
                s->edge[to] = 0;
                s->stack[top++] = to;
                s->on_stack[to] = 1;
                s->calls[depth++] = to;
            } else if (s->on_stack[to] && s->index[to] < s->low[n]) {
                s->low[n] = s->index[to];
            }
            continue;
        }
        depth--;
        if (depth && s->low[n] < s->low[s->calls[depth - 1]])
            s->low[s->calls[depth - 1]] = s->low[n];
        if (s->low[n] != s->index[n])
            continue;
        do {
            s->component[s->stack[--top]] = s->components;
            s->on_stack[s->stack[top]] = 0;
        } while (s->stack[top] != n);
        s->components++;
    }
}

static void
find_all_components(struct splitter *s)
{
    uint32_t counter = 0;

    s->components = 0;
    memset(s->index, 0xff, s->f->node_count * sizeof *s->index);
    memset(s->component, 0xff, s->f->node_count * sizeof *s->component);
    memset(s->on_stack, 0, s->f->node_count);
    for (uint32_t n = 0; n < s->f->node_count; n++)
        if (s->in[n] && s->index[n] == LIFT_NONE)
            find_components(s, n, &counter);
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Edges into each node, from outside and from inside of its component: in low and index. */
static void
count_edges(struct splitter *s)
{
    memset(s->low, 0, s->f->node_count * sizeof *s->low);
    memset(s->index, 0, s->f->node_count * sizeof *s->index);
    s->low[0] = 1; /* the kernel begins there */
    for (uint32_t n = 0; n < s->f->node_count; n++)
        for (uint32_t k = 0; k < s->f->nodes[n].next_count; k++) {
            const uint32_t to = s->f->nodes[n].next[k];

            if (s->component[to] == LIFT_NONE)
                continue;
            if (s->in[n] && s->component[n] == s->component[to])
                s->index[to]++;
            else
                s->low[to]++;
        }
}

/* The header of each component, in calls: the entry that most of its own edges go to, or LIFT_NONE;
 * how many entries it has, in edge. A single node that does not branch to itself is no loop. The
 * kernel begins at node 0 and at no copy of it. */
static void
find_headers(struct splitter *s)
{
    uint32_t *inside = s->stack;

    memset(s->calls, 0xff, s->components * sizeof *s->calls);
    memset(s->edge, 0, s->components * sizeof *s->edge);
    memset(inside, 0, s->components * sizeof *inside);
    for (uint32_t n = 0; n < s->f->node_count; n++) {
        const uint32_t c = s->component[n];

        if (c == LIFT_NONE)
            continue;
        inside[c] += s->index[n];
        if (!s->low[n])
            continue;
        s->edge[c]++;
        if (s->calls[c] == LIFT_NONE || (s->calls[c] != 0 && s->index[n] > s->index[s->calls[c]]))
            s->calls[c] = n;
    }
    for (uint32_t c = 0; c < s->components; c++)
        if (!inside[c])
            s->calls[c] = LIFT_NONE;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static uint32_t
copy_flow_node(struct splitter *s, uint32_t n)
{
    struct lift_flow *f = s->f;
    uint32_t *next;

    if (f->node_count == f->node_room) {
        struct lift_node *more = realloc(f->nodes, (size_t)f->node_room * 2 * sizeof *more);

        if (!more) {
            s->failed = true;
            return LIFT_NONE;
        }
        f->nodes = more;
        f->node_room *= 2;
    }
    next = malloc((f->nodes[n].next_count + (size_t)1) * sizeof *next);
    if (!next) {
        s->failed = true;
        return LIFT_NONE;
    }
    memcpy(next, f->nodes[n].next, f->nodes[n].next_count * sizeof *next);
    f->nodes[f->node_count] = f->nodes[n];
    f->nodes[f->node_count].next = next;
    return f->node_count++;
}

/* Copies a component without its header for all who enter elsewhere. */
static void
split_component(struct splitter *s, uint32_t component, uint32_t header)
{
    const uint32_t count = s->f->node_count;

    memset(s->copy, 0xff, count * sizeof *s->copy);
    for (uint32_t n = 0; n < count && !s->failed; n++)
        if (s->component[n] == component && n != header)
            s->copy[n] = copy_flow_node(s, n);
    if (s->failed)
        return;
    for (uint32_t n = 0; n < s->f->node_count; n++) {
        struct lift_node *node = &s->f->nodes[n];
        const bool inside = n < count && s->in[n] && s->component[n] == component;

        for (uint32_t k = 0; k < node->next_count && !inside; k++)
            if (node->next[k] < count && s->copy[node->next[k]] != LIFT_NONE)
                node->next[k] = s->copy[node->next[k]];
    }
}

/* Instructions and edges: both become text. */
static uint64_t
flow_size(const struct lift_flow *f)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < f->node_count; i++)
        n += f->nodes[i].end - f->nodes[i].first + f->nodes[i].next_count;
    return n;
}

/* Looks at the set for a loop with several entries, outer loops first, and splits it. False if
 * there is none. */
static bool
split_one(struct splitter *s)
{
    bool any = true;

    memset(s->in, 1, s->f->node_count);
    while (any && s->work < WORK_MAX) {
        any = false;
        s->work += s->f->node_count;
        find_all_components(s);
        count_edges(s);
        find_headers(s);
        for (uint32_t c = 0; c < s->components; c++) {
            const uint32_t header = s->calls[c];

            if (header == LIFT_NONE)
                continue;
            if (s->edge[c] > 1) {
                split_component(s, c, header);
                return !s->failed;
            }
            s->in[header] = 0; /* next: the loops inside */
            any = true;
        }
    }
    return false;
}

/* Nodes that nothing leads to any more are dropped, so that every node can be reached. */
static void
drop_unreached(struct splitter *s)
{
    struct lift_flow *f = s->f;
    uint32_t top = 0, kept = 0;

    memset(s->in, 0, f->node_count);
    s->stack[top++] = 0;
    s->in[0] = 1;
    while (top) {
        const struct lift_node *n = &f->nodes[s->stack[--top]];

        for (uint32_t k = 0; k < n->next_count; k++)
            if (!s->in[n->next[k]]) {
                s->in[n->next[k]] = 1;
                s->stack[top++] = n->next[k];
            }
    }
    for (uint32_t n = 0; n < f->node_count; n++) {
        s->copy[n] = kept;
        if (s->in[n])
            f->nodes[kept++] = f->nodes[n];
        else
            free(f->nodes[n].next);
    }
    f->node_count = kept;
    for (uint32_t n = 0; n < kept; n++)
        for (uint32_t k = 0; k < f->nodes[n].next_count; k++)
            f->nodes[n].next[k] = s->copy[f->nodes[n].next[k]];
}

int
hed_lift_split(struct lift_flow *f)
{
    struct splitter s = {.f = f};
    const uint64_t most = flow_size(f) * GROWTH_MAX + SIZE_FREE;
    bool more = true;

    for (uint32_t i = 0; i < SPLITS_MAX && more && flow_size(f) < most && split_alloc(&s); i++)
        more = split_one(&s);
    if (!s.failed && split_alloc(&s))
        drop_unreached(&s);
    free(s.component);
    free(s.in);
    return s.failed ? HED_ENOMEM : 0;
}
