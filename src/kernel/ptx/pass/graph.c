/* Dominators, loops and the order of blocks. See graph.h and flow.h. */
#include "kernel/ptx/pass/graph.h"

#include <string.h>

#include "base/err.h"
#include "kernel/ptx/pass/flow.h"

struct graph {
    struct hed_flow *f;
    uint32_t n;         /* raw blocks */
    uint32_t *rpo;      /* reverse postorder: position -> raw block */
    uint32_t *position; /* raw block -> position; NONE if unreachable */
    uint32_t reached;
    uint32_t *dominator; /* by raw block */
    uint32_t *loop_of;   /* by raw block: innermost loop, or NONE */
    uint32_t *order;     /* new number -> raw block */
    uint32_t norder;
    uint32_t *stack;
    uint8_t *mark;
};

static void
number_postorder(struct graph *g)
{
    uint32_t depth = 1, done = g->n;
    uint8_t *child = g->mark; /* by raw block: 0 is unvisited, else 1 + successors visited */

    g->stack[0] = 0;
    child[0] = 1;
    while (depth) {
        const uint32_t b = g->stack[depth - 1];
        const struct hed_flow_block *block = &g->f->blocks[b];

        if (child[b] <= block->nnext) {
            /* The last successor first: the text's order stays where it can. */
            const uint32_t to = block->next[block->nnext - child[b]];

            child[b]++;
            if (!child[to]) {
                child[to] = 1;
                g->stack[depth++] = to;
            }
        } else {
            g->rpo[--done] = b;
            depth--;
        }
    }
    g->reached = g->n - done;
    memmove(g->rpo, g->rpo + done, g->reached * sizeof(*g->rpo));
    for (uint32_t i = 0; i < g->n; i++)
        g->position[i] = HED_FLOW_NONE;
    for (uint32_t i = 0; i < g->reached; i++)
        g->position[g->rpo[i]] = i;
}

/* The nearest common dominator, by numbers that fall towards the root. */
static uint32_t
meet_dominators(const uint32_t *dominator, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (a > b)
            a = dominator[a];
        while (b > a)
            b = dominator[b];
    }
    return a;
}

/* Dominators by position, then translated to raw blocks. */
static void
find_dominators(struct graph *g)
{
    uint32_t *d = g->stack; /* by position */
    bool changed = true;

    for (uint32_t i = 0; i < g->reached; i++)
        d[i] = HED_FLOW_NONE;
    d[0] = 0;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < g->reached; i++) {
            const struct hed_flow_block *b = &g->f->blocks[g->rpo[i]];

            for (uint32_t k = 0; k < b->nnext; k++) {
                const uint32_t to = g->position[b->next[k]];
                const uint32_t now = d[to] == HED_FLOW_NONE ? i : meet_dominators(d, i, d[to]);

                if (to != 0 && now != d[to]) {
                    d[to] = now;
                    changed = true;
                }
            }
        }
    }
    for (uint32_t i = 0; i < g->reached; i++)
        g->dominator[g->rpo[i]] = i == 0 ? HED_FLOW_NONE : g->rpo[d[i]];
}

static bool
raw_dominates(const struct graph *g, uint32_t a, uint32_t b)
{
    while (b != HED_FLOW_NONE && b != a)
        b = g->dominator[b];
    return b == a;
}

static bool
is_back_edge(const struct graph *g, uint32_t from, uint32_t to)
{
    return g->position[to] <= g->position[from];
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Is raw block b in loop l, by loop_of as it is so far? */
static bool
is_in_loop(const struct graph *g, uint32_t b, uint32_t l)
{
    uint32_t k = g->loop_of[b];

    while (k != HED_FLOW_NONE && k != l)
        k = g->f->loops[k].parent;
    return k == l;
}

/* Adds all blocks that reach `from` without passing the header. Inner loops are found later and
 * take their blocks over, so outer loops must be marked first. */
static void
mark_loop_blocks(struct graph *g, uint32_t loop, uint32_t from, uint32_t **before,
                 const uint32_t *nbefore)
{
    uint32_t depth = 0;

    if (g->mark[from] == 0) {
        g->mark[from] = 1;
        g->stack[depth++] = from;
    }
    while (depth) {
        const uint32_t b = g->stack[--depth];

        g->loop_of[b] = loop;
        for (uint32_t i = 0; i < nbefore[b]; i++) {
            const uint32_t p = before[b][i];

            if (!g->mark[p]) {
                g->mark[p] = 1;
                g->stack[depth++] = p;
            }
        }
    }
}

/* Predecessors by raw block. */
static bool
find_predecessors(struct graph *g, uint32_t ***before, uint32_t **nbefore)
{
    uint32_t **list = hed_flow_alloc(g->f, g->n, sizeof(uint32_t *));
    uint32_t *count = hed_flow_alloc(g->f, g->n, sizeof(uint32_t));

    *before = list;
    *nbefore = count;
    if (!list || !count)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < g->reached; i++) {
            const struct hed_flow_block *b = &g->f->blocks[g->rpo[i]];

            for (uint32_t k = 0; k < b->nnext; k++) {
                if (pass == 1)
                    list[b->next[k]][count[b->next[k]]] = g->rpo[i];
                count[b->next[k]]++;
            }
        }
        for (uint32_t i = 0; pass == 0 && i < g->n; i++) {
            list[i] = hed_flow_alloc(g->f, count[i], sizeof(uint32_t));
            count[i] = 0;
            if (!list[i])
                return false;
        }
    }
    return true;
}

static int
find_loops(struct graph *g, const char **why)
{
    uint32_t **before, *nbefore;
    struct hed_flow *f = g->f;

    f->loops = hed_flow_alloc(f, g->n, sizeof(*f->loops));
    if (!f->loops || !find_predecessors(g, &before, &nbefore))
        return HED_ENOMEM;
    for (uint32_t i = 0; i < g->n; i++)
        g->loop_of[i] = HED_FLOW_NONE;
    /* Headers in reverse postorder: an outer loop's header comes before an inner one's. */
    for (uint32_t i = 0; i < g->reached; i++) {
        const uint32_t h = g->rpo[i];
        const uint32_t loop = f->nloops;

        memset(g->mark, 0, g->n);
        g->mark[h] = 1;
        for (uint32_t k = 0; k < nbefore[h]; k++) {
            const uint32_t from = before[h][k];

            if (!is_back_edge(g, from, h))
                continue;
            if (!raw_dominates(g, h, from)) {
                *why = "a loop with two entries";
                return HED_ENOTSUP;
            }
            if (f->nloops == loop) {
                f->loops[loop] = (struct hed_flow_loop){.header = h, .parent = g->loop_of[h]};
                f->nloops++;
            }
            f->loops[loop].nlatches++;
            mark_loop_blocks(g, loop, from, before, nbefore);
            g->loop_of[h] = loop;
        }
    }
    return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The node that stands for raw block b in the graph of the loop `around`: the header of the loop
 * just inside of it that holds b, or b itself; NONE if b lies outside. */
static uint32_t
node_in(const struct graph *g, uint32_t b, uint32_t around)
{
    uint32_t l = g->loop_of[b];

    if (around != HED_FLOW_NONE && !is_in_loop(g, b, around))
        return HED_FLOW_NONE;
    if (l == around)
        return b;
    while (g->f->loops[l].parent != around)
        l = g->f->loops[l].parent;
    return g->f->loops[l].header;
}

/* A successor of the node, or of the loop that it stands for, that has not been visited: the one
 * that is last in reverse postorder, so that the text's order stays where it can. */
static uint32_t
next_unvisited(struct graph *g, uint32_t node, uint32_t around)
{
    const uint32_t inner = g->loop_of[node];
    const bool is_loop = inner != around;
    uint32_t best = HED_FLOW_NONE;

    for (uint32_t i = g->position[node]; i < g->reached; i++) {
        const uint32_t b = g->rpo[i];
        const struct hed_flow_block *block = &g->f->blocks[b];

        if (is_loop ? node_in(g, b, around) != node : b != node)
            continue;
        for (uint32_t k = 0; k < block->nnext; k++) {
            const uint32_t to = node_in(g, block->next[k], around);

            if (to == HED_FLOW_NONE || to == node || g->mark[to] ||
                is_back_edge(g, b, block->next[k]))
                continue;
            if (best == HED_FLOW_NONE || g->position[to] > g->position[best])
                best = to;
        }
        if (!is_loop)
            break;
    }
    return best;
}

/* The nodes of a loop, in postorder. */
struct sorting {
    uint32_t *nodes;
    uint32_t count;
};

/* Sorts the nodes of one loop by depth-first search over forward edges. */
static void
sort_nodes(struct graph *g, uint32_t around, uint32_t first, struct sorting *s, uint32_t *stack)
{
    uint32_t depth = 0;

    stack[depth++] = first;
    g->mark[first] = 1;
    while (depth) {
        const uint32_t node = stack[depth - 1];
        const uint32_t to = next_unvisited(g, node, around);

        if (to == HED_FLOW_NONE) {
            s->nodes[s->count++] = node;
            depth--;
        } else {
            g->mark[to] = 1;
            stack[depth++] = to;
        }
    }
}

static int
order_loop(struct graph *g, uint32_t around, uint32_t first, unsigned depth)
{
    struct sorting s = {.nodes = hed_flow_alloc(g->f, g->reached, sizeof(uint32_t))};
    uint32_t *stack = hed_flow_alloc(g->f, g->reached, sizeof(uint32_t));

    if (!s.nodes || !stack || depth > 200)
        return HED_ENOMEM;
    sort_nodes(g, around, first, &s, stack);
    for (uint32_t i = s.count; i-- > 0;) {
        const uint32_t node = s.nodes[i];

        if (g->loop_of[node] == around) {
            g->order[g->norder++] = node;
            continue;
        }
        /* The search inside visits the header again. */
        uint32_t inner = g->loop_of[node];

        while (g->f->loops[inner].parent != around)
            inner = g->f->loops[inner].parent;
        g->mark[node] = 0;

        const int err = order_loop(g, inner, node, depth + 1);

        if (err != 0)
            return err;
    }
    return 0;
}

/* ---- the result ------------------------------------------------------------------------------ */

static uint32_t
renumbered(const uint32_t *number, uint32_t raw)
{
    return raw == HED_FLOW_NONE ? HED_FLOW_NONE : number[raw];
}

static int
renumber(struct graph *g)
{
    struct hed_flow *f = g->f;
    struct hed_flow_block *blocks = hed_flow_alloc(f, g->reached, sizeof(*blocks));
    uint32_t *number = g->position;

    if (!blocks)
        return HED_ENOMEM;
    for (uint32_t i = 0; i < g->reached; i++)
        number[g->order[i]] = i;
    for (uint32_t i = 0; i < g->reached; i++) {
        blocks[i] = f->blocks[g->order[i]];
        blocks[i].dominator = renumbered(number, g->dominator[g->order[i]]);
        blocks[i].loop = g->loop_of[g->order[i]];
        for (uint32_t k = 0; k < blocks[i].nnext; k++)
            blocks[i].next[k] = number[blocks[i].next[k]];
    }
    for (uint32_t i = 0; i < f->func->nlabels; i++)
        f->of_label[i] = number[f->of_label[i]];
    f->blocks = blocks;
    f->nblocks = g->reached;
    for (uint32_t l = 0; l < f->nloops; l++) {
        f->loops[l].header = number[f->loops[l].header];
        f->loops[l].last = f->loops[l].header;
    }
    for (uint32_t i = 0; i < f->nblocks; i++)
        for (uint32_t l = blocks[i].loop; l != HED_FLOW_NONE; l = f->loops[l].parent)
            f->loops[l].last = i > f->loops[l].last ? i : f->loops[l].last;
    return 0;
}

static int
set_predecessors(struct hed_flow *f)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < f->nblocks; i++) {
            for (uint32_t k = 0; k < f->blocks[i].nnext; k++) {
                struct hed_flow_block *to = &f->blocks[f->blocks[i].next[k]];

                if (pass == 1)
                    to->before[to->nbefore] = i;
                to->nbefore++;
            }
        }
        for (uint32_t i = 0; pass == 0 && i < f->nblocks; i++) {
            f->blocks[i].before = hed_flow_alloc(f, f->blocks[i].nbefore, sizeof(uint32_t));
            f->blocks[i].nbefore = 0;
            if (!f->blocks[i].before)
                return HED_ENOMEM;
        }
    }
    return 0;
}

/* ---- where all paths meet again -------------------------------------------------------------- */

/* Ranks of blocks over reversed edges: the end of the function has rank 0, and a block has a higher
 * rank than what follows it, loops aside. */
struct ranks {
    uint32_t *of;    /* block -> rank; NONE if the end cannot be reached */
    uint32_t *block; /* rank -> block */
    uint32_t *after; /* rank -> rank of the nearest block that all paths pass; NONE */
    uint32_t count;
    uint32_t *stack, *child;
    bool *ends; /* by rank: lanes that leave here count, since the others find no end either */
};

/* Depth-first over reversed edges from a block that lanes may leave from. */
static void
rank_backwards(const struct hed_flow *f, struct ranks *r, uint32_t from)
{
    uint32_t depth = 0;

    r->stack[depth++] = from;
    r->child[from] = 1;
    while (depth) {
        const uint32_t b = r->stack[depth - 1];

        if (r->child[b] <= f->blocks[b].nbefore) {
            const uint32_t p = f->blocks[b].before[r->child[b]++ - 1];

            if (!r->child[p]) {
                r->child[p] = 1;
                r->stack[depth++] = p;
            }
        } else {
            r->block[r->count++] = b;
            depth--;
        }
    }
}

static void
rank_blocks(const struct hed_flow *f, struct ranks *r)
{
    for (uint32_t i = 0; i < f->nblocks; i++) {
        r->of[i] = HED_FLOW_NONE;
        if (f->blocks[i].end >= HED_FLOW_LEAVES && !r->child[i])
            rank_backwards(f, r, i);
    }
    /* So far the list is a postorder: its last block has rank 1. */
    for (uint32_t i = 0; i < r->count; i++)
        r->stack[r->count - i] = r->block[i];
    for (uint32_t i = 1; i <= r->count; i++) {
        r->block[i] = r->stack[i];
        r->of[r->block[i]] = i;
        r->after[i] = HED_FLOW_NONE;
    }
    r->after[0] = 0;
}

/* The same for the block of a rank, as far as it is known. Lanes that leave early are gone: they do
 * not pull the meeting point of the others to the end. */
static uint32_t
meeting_rank(const struct hed_flow *f, const struct ranks *r, uint32_t rank)
{
    const struct hed_flow_block *b = &f->blocks[r->block[rank]];
    uint32_t now = b->end == HED_FLOW_LEAVES || r->ends[rank] ? 0 : HED_FLOW_NONE;

    for (uint32_t k = 0; k < b->nnext; k++) {
        const uint32_t s = r->of[b->next[k]];

        if (s == HED_FLOW_NONE || r->after[s] == HED_FLOW_NONE)
            continue;
        now = now == HED_FLOW_NONE ? s : meet_dominators(r->after, now, s);
    }
    return now;
}

static void
settle_meetings(const struct hed_flow *f, struct ranks *r)
{
    bool changed = true;

    while (changed) {
        changed = false;
        for (uint32_t i = 1; i <= r->count; i++) {
            const uint32_t now = meeting_rank(f, r, i);

            changed |= now != HED_FLOW_NONE && now != r->after[i];
            if (now != HED_FLOW_NONE)
                r->after[i] = now;
        }
    }
}

/* A loop that lanes only leave by ending: it ends where they do. Returns whether there was one. */
static bool
end_somewhere(const struct hed_flow *f, struct ranks *r)
{
    for (uint32_t i = 1; i <= r->count; i++) {
        if (r->after[i] == HED_FLOW_NONE && f->blocks[r->block[i]].end > HED_FLOW_LEAVES) {
            r->ends[i] = true;
            return true;
        }
    }
    return false;
}

static int
find_post_dominators(struct hed_flow *f)
{
    const size_t n = (size_t)f->nblocks + 1;
    struct ranks r = {.of = hed_flow_alloc(f, n, sizeof(uint32_t)),
                      .block = hed_flow_alloc(f, n, sizeof(uint32_t)),
                      .after = hed_flow_alloc(f, n, sizeof(uint32_t)),
                      .stack = hed_flow_alloc(f, n, sizeof(uint32_t)),
                      .child = hed_flow_alloc(f, n, sizeof(uint32_t)),
                      .ends = hed_flow_alloc(f, n, sizeof(bool))};

    if (!r.of || !r.block || !r.after || !r.stack || !r.child || !r.ends)
        return HED_ENOMEM;
    rank_blocks(f, &r);
    do
        settle_meetings(f, &r);
    while (end_somewhere(f, &r));
    for (uint32_t i = 0; i < f->nblocks; i++) {
        const uint32_t after = r.of[i] == HED_FLOW_NONE ? HED_FLOW_NONE : r.after[r.of[i]];

        f->blocks[i].after = after == HED_FLOW_NONE || after == 0 ? HED_FLOW_NONE : r.block[after];
    }
    return 0;
}

int
hed_flow_order(struct hed_flow *f, const char **why)
{
    struct graph g = {.f = f, .n = f->nblocks};
    int err;

    g.rpo = hed_flow_alloc(f, g.n, sizeof(uint32_t));
    g.position = hed_flow_alloc(f, g.n, sizeof(uint32_t));
    g.dominator = hed_flow_alloc(f, g.n, sizeof(uint32_t));
    g.loop_of = hed_flow_alloc(f, g.n, sizeof(uint32_t));
    g.order = hed_flow_alloc(f, g.n, sizeof(uint32_t));
    g.stack = hed_flow_alloc(f, g.n, sizeof(uint32_t));
    g.mark = hed_flow_alloc(f, g.n, 1);
    if (!g.rpo || !g.position || !g.dominator || !g.loop_of || !g.order || !g.stack || !g.mark)
        return HED_ENOMEM;
    number_postorder(&g);
    find_dominators(&g);
    err = find_loops(&g, why);
    memset(g.mark, 0, g.n);
    if (err == 0)
        err = order_loop(&g, HED_FLOW_NONE, 0, 0);
    if (err == 0)
        err = renumber(&g);
    if (err == 0)
        err = set_predecessors(f);
    return err ? err : find_post_dominators(f);
}
