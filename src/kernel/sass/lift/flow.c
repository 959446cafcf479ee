/* The blocks of a kernel's machine code. See inside.h.
 *
 *   CALL of a subroutine          every call gets blocks of its own, so a return knows where to go:
 *                                 [a: CALL f][b]  ->  [a][f of a][b]
 *   many copies                   every subroutine has one copy, if lanes need not meet (shared.c)
 *   recursion, too many copies    calls are jumps; a return compares its register with the places
 *                                 behind all calls
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/search.h"
#include "kernel/sass/lift/flow.h"
#include "kernel/sass/lift/inside.h"

#define NODES_MAX (1u << 16) /* blocks, with copies */
#define EDGES_MAX (1u << 18) /* between blocks */
#define DEPTH_MAX 16u        /* calls inside of calls, until none is copied */
/* Copies of subroutines may have so many times the code's size, and so many instructions are fine
 * in any case: if each could have one copy instead, and if it could not. */
#define FEW_FACTOR 2u
#define FEW_FREE 16384u
#define MOST_FACTOR 4u
#define MOST_FREE 65536u

/* ---- where blocks begin ---------------------------------------------------------------------- */

static int
mark_table(struct lift *l, uint32_t index)
{
    uint32_t count, *targets = hed_lift_table(l, index, &count);

    for (uint32_t i = 0; targets && i < count; i++)
        l->flow.begins[targets[i]] = 1;
    free(targets);
    return 0;
}

/* Unknown instructions do not matter until they are reached. */
static void
mark_begins(struct lift *l)
{
    struct lift_flow *f = &l->flow;
    struct hed_sass_inst inst;

    f->begins[l->entry] = 1;
    for (uint32_t i = 0; i < f->function_count; i++)
        f->begins[f->functions[i]] = 1;
    for (uint32_t i = 0; i < l->code.taken_count; i++)
        f->begins[l->code.taken[i]] = 1;
    for (uint32_t i = 1; i < l->code.piece_count; i++)
        f->begins[l->code.pieces[i].base / HED_SASS_BYTES] = 1;
    for (uint32_t i = 0; i < f->inst_count; i++) {
        if (hed_sass_decode(hed_lift_arch(l), l->code.bytes.data + (size_t)i * HED_SASS_BYTES,
                            &inst) != 0)
            continue;

        const enum lift_transfer t = hed_lift_transfer_of(l, &inst);

        if (t == LIFT_GOES_ON)
            continue;
        f->begins[i + 1] = 1;
        if (t == LIFT_BRANCHES_BY_TABLE)
            (void)mark_table(l, i);
        if (t == LIFT_BRANCHES || t == LIFT_CALLS) {
            const uint32_t to = hed_lift_target(l, &inst, i);

            if (to != LIFT_NONE)
                f->begins[to] = 1;
        }
    }
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint32_t
node_hash(uint32_t inst, uint32_t context)
{
    return (inst * 2654435761u) ^ (context * 40503u + (context >> 7));
}

static void
limit_flow(struct flow_maker *m)
{
    m->l->err = HED_ELIMIT;
    hed_why_set(m->l->why, "machine code: the kernel has too many branches");
}

static uint32_t
add_flow_node(struct flow_maker *m, uint32_t inst, uint32_t context)
{
    struct lift_flow *f = &m->l->flow;

    if (f->node_count == f->node_room) {
        const uint32_t room = f->node_room ? f->node_room * 2 : 64;
        struct lift_node *more = room <= NODES_MAX ? realloc(f->nodes, room * sizeof *more) : NULL;

        if (room > NODES_MAX)
            limit_flow(m);
        else if (!more)
            m->l->err = HED_ENOMEM;
        if (!more)
            return LIFT_NONE;
        f->nodes = more;
        f->node_room = room;
    }
    f->nodes[f->node_count] =
        (struct lift_node){.first = inst, .context = context, .stack = INT64_MAX};
    return f->node_count++;
}

static void
grow_slots(struct flow_maker *m)
{
    const struct lift_flow *f = &m->l->flow;
    const uint32_t size = (m->mask + 1) * 2;
    uint32_t *more = calloc(size, sizeof *more);

    if (!more) {
        m->l->err = HED_ENOMEM;
        return;
    }
    for (uint32_t n = 0; n < f->node_count; n++) {
        uint32_t at = node_hash(f->nodes[n].first, f->nodes[n].context) & (size - 1);

        while (more[at])
            at = (at + 1) & (size - 1);
        more[at] = n + 1;
    }
    free(m->slots);
    m->slots = more;
    m->mask = size - 1;
}

static uint32_t
find_flow_node(struct flow_maker *m, uint32_t inst, uint32_t context, bool add)
{
    const struct lift_flow *f = &m->l->flow;
    uint32_t at = node_hash(inst, context) & m->mask;

    for (; m->slots[at]; at = (at + 1) & m->mask)
        if (f->nodes[m->slots[at] - 1].first == inst &&
            f->nodes[m->slots[at] - 1].context == context)
            return m->slots[at] - 1;
    if (!add)
        return LIFT_NONE;

    const uint32_t n = add_flow_node(m, inst, context);

    if (n != LIFT_NONE)
        m->slots[at] = n + 1;
    if (f->node_count * 2 > m->mask)
        grow_slots(m);
    return n;
}

/* Whenever the count is a power of two, the room is doubled. */
static bool
make_room_for_next(struct lift_node *n)
{
    uint32_t *more;

    if (n->next_count & (n->next_count - 1))
        return true;
    more = realloc(n->next, (n->next_count ? n->next_count * (size_t)2 : 1) * sizeof *more);
    n->next = more ? more : n->next;
    return more != NULL;
}

void
hed_flow_add_next(struct flow_maker *m, uint32_t node, uint32_t inst, uint32_t context)
{
    struct lift_flow *f = &m->l->flow;
    uint32_t to;

    if (m->l->err)
        return;
    if (inst >= f->inst_count) {
        m->l->err = HED_EFORMAT;
        hed_why_set(m->l->why, "machine code: the flow leaves the kernel at 0x%x",
                    f->nodes[node].end * HED_SASS_BYTES);
        return;
    }
    if (m->edges++ == EDGES_MAX) {
        limit_flow(m);
        return;
    }
    to = find_flow_node(m, inst, context, true);
    if (to == LIFT_NONE || !make_room_for_next(&f->nodes[node])) {
        m->l->err = m->l->err ? m->l->err : HED_ENOMEM;
        return;
    }
    f->nodes[node].next[f->nodes[node].next_count++] = to;
}

/* Only calls and returns leave the section that an instruction is in. */
uint32_t
hed_flow_stay_inside(const struct lift *l, uint32_t from, uint32_t to)
{
    return to < l->flow.inst_count && hed_lift_piece(&l->code, from) == hed_lift_piece(&l->code, to)
               ? to
               : LIFT_NONE;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call is followed once in each context, so the context is new. */
uint32_t
hed_flow_add_context(struct flow_maker *m, uint32_t parent, uint32_t callee, uint32_t back)
{
    struct lift_flow *f = &m->l->flow;

    for (uint32_t c = parent; c != 0; c = f->contexts[c].parent)
        m->recursion |= f->contexts[c].callee == callee;
    m->recursion |= f->contexts[parent].depth >= DEPTH_MAX;
    if (f->context_count == f->context_room) {
        const uint32_t room = f->context_room * 2;
        struct lift_context *more = realloc(f->contexts, room * sizeof *more);

        if (!more) {
            m->l->err = HED_ENOMEM;
            return 0;
        }
        f->contexts = more;
        f->context_room = room;
    }
    f->contexts[f->context_count] = (struct lift_context){
        .parent = parent, .callee = callee, .back = back, .depth = f->contexts[parent].depth + 1};
    return f->context_count++;
}

static void
follow_call(struct flow_maker *m, uint32_t node, const struct hed_sass_inst *inst, uint32_t index)
{
    struct lift_flow *f = &m->l->flow;
    const uint32_t to = hed_lift_target(m->l, inst, index), context = f->nodes[node].context;

    if (to == LIFT_NONE || f->by_value)
        hed_flow_add_next(m, node, to, 0);
    else if (hed_lift_is_jump(m->l, inst, index, to))
        hed_flow_add_next(m, node, hed_flow_stay_inside(m->l, index, to), context);
    else if (f->shared)
        hed_flow_share_call(m, node, to, index + 1);
    else
        hed_flow_add_next(m, node, to, hed_flow_add_context(m, context, to, index + 1));
}

/* The first of the places that is not before an instruction. */
static uint32_t
first_place(const uint32_t *all, uint32_t count, uint32_t index)
{
    return (uint32_t)hed_lower_bound(&index, all, count, sizeof index, hed_compare_u32);
}

/* Those of the places that are in the same piece as an instruction. They are sorted. */
static const uint32_t *
places_of_piece(const struct lift *l, uint32_t index, const uint32_t *all, uint32_t *count)
{
    const struct lift_piece *p = hed_lift_piece(&l->code, index);
    const uint32_t first = p->base / HED_SASS_BYTES, end = first + p->size / HED_SASS_BYTES;
    const uint32_t at = first_place(all, *count, first);

    *count = first_place(all, *count, end) - at;
    return all + at;
}

const uint32_t *
hed_lift_callees(const struct lift *l, uint32_t index, bool by_address, uint32_t *count)
{
    *count = by_address ? l->code.taken_count : l->flow.function_count;
    return by_address ? l->code.taken : places_of_piece(l, index, l->flow.functions, count);
}

const uint32_t *
hed_lift_returns(const struct lift *l, uint32_t index, bool by_address, uint32_t *count)
{
    *count = l->flow.return_count;
    return by_address ? l->flow.returns : places_of_piece(l, index, l->flow.returns, count);
}

/* The register says which function; a copy of each is made, as for other calls. */
static void
follow_call_by_value(struct flow_maker *m, uint32_t node, uint32_t index, bool by_address)
{
    struct lift_flow *f = &m->l->flow;
    const uint32_t context = f->nodes[node].context;
    uint32_t count;
    const uint32_t *to = hed_lift_callees(m->l, index, by_address, &count);

    f->calls_by_value = true;
    m->unclear |= f->shared;
    for (uint32_t i = 0; i < count && !m->l->err; i++)
        hed_flow_add_next(m, node, to[i],
                          f->by_value ? 0 : hed_flow_add_context(m, context, to[i], index + 1));
}

static void
follow_return(struct flow_maker *m, uint32_t node, const struct hed_sass_inst *inst)
{
    struct lift_flow *f = &m->l->flow;
    const struct lift_context *c = &f->contexts[f->nodes[node].context];

    if (f->by_value) {
        uint32_t count;
        const uint32_t *to =
            hed_lift_returns(m->l, f->nodes[node].end - 1, hed_lift_is_absolute(inst), &count);

        for (uint32_t i = 0; i < count; i++)
            hed_flow_add_next(m, node, to[i], 0);
    } else if (f->nodes[node].context == 0 && m->l->is_function) {
        return;
    } else if (f->nodes[node].context == 0) {
        m->l->err = HED_ENOTSUP;
        hed_why_set(m->l->why, "machine code: a return from the kernel itself at 0x%x",
                    (f->nodes[node].end - 1) * HED_SASS_BYTES);
    } else if (f->shared) {
        hed_flow_share_return(m, node);
    } else {
        hed_flow_add_next(m, node, hed_flow_stay_inside(m->l, c->back - 1, c->back), c->parent);
    }
}

/* ---- following the flow ---------------------------------------------------------------------- */

static void
follow_table(struct flow_maker *m, uint32_t node, uint32_t index)
{
    uint32_t count, *targets = hed_lift_table(m->l, index, &count);

    for (uint32_t i = 0; i < count; i++)
        hed_flow_add_next(m, node, hed_flow_stay_inside(m->l, index, targets[i]),
                          m->l->flow.nodes[node].context);
    free(targets);
    if (!count) {
        m->l->err = HED_ENOTSUP;
        hed_why_set(m->l->why, "machine code: an indirect branch without a table at 0x%x",
                    index * HED_SASS_BYTES);
    }
}

static void
follow_node(struct flow_maker *m, uint32_t node)
{
    struct lift_flow *f = &m->l->flow;
    const uint32_t context = f->nodes[node].context;
    uint32_t i = f->nodes[node].first;
    struct hed_sass_inst inst;
    enum lift_transfer t = LIFT_GOES_ON;

    do {
        if (!hed_lift_decode(m->l, i, &inst))
            return;
        t = hed_lift_transfer_of(m->l, &inst);
        i++;
    } while (t == LIFT_GOES_ON && i < f->inst_count && !f->begins[i]);
    f->nodes[node].end = i;
    m->copied += i - f->nodes[node].first;
    switch (t) {
    case LIFT_BRANCHES:
        hed_flow_add_next(m, node,
                          hed_flow_stay_inside(m->l, i - 1, hed_lift_target(m->l, &inst, i - 1)),
                          context);
        break;
    case LIFT_BRANCHES_BY_TABLE:
        follow_table(m, node, i - 1);
        break;
    case LIFT_CALLS:
        follow_call(m, node, &inst, i - 1);
        break;
    case LIFT_CALLS_BY_VALUE:
    case LIFT_CALLS_BY_ADDRESS:
        follow_call_by_value(m, node, i - 1, t == LIFT_CALLS_BY_ADDRESS);
        break;
    case LIFT_RETURNS:
        follow_return(m, node, &inst);
        break;
    default:
        break;
    }
    /* A call by address may be that of a system function. */
    if (t == LIFT_GOES_ON || t == LIFT_CALLS_BY_ADDRESS || hed_lift_is_conditional(&inst)) {
        hed_flow_add_next(m, node, hed_flow_stay_inside(m->l, i - 1, i), context);
        f->nodes[node].falls = true;
    }
}

/* A return must know the places behind all calls, so these are found first. */
static void
find_returns(struct flow_maker *m)
{
    struct hed_sass_inst inst;

    for (uint32_t i = 0; i + 1 < m->l->flow.inst_count; i++) {
        if (hed_sass_decode(hed_lift_arch(m->l), m->l->code.bytes.data + (size_t)i * HED_SASS_BYTES,
                            &inst) != 0)
            continue;

        const enum lift_transfer t = hed_lift_transfer_of(m->l, &inst);

        if (t == LIFT_CALLS || t == LIFT_CALLS_BY_VALUE || t == LIFT_CALLS_BY_ADDRESS)
            m->l->flow.returns[m->l->flow.return_count++] = i + 1; /* room for every instruction */
    }
}

/* False if there are more instructions than that, or if it cannot be done this way. */
static bool
follow_all(struct flow_maker *m, uint64_t most)
{
    struct lift_flow *f = &m->l->flow;

    if (f->by_value)
        find_returns(m);
    (void)find_flow_node(m, m->l->entry, 0, true);
    for (uint32_t n = 0; n < f->node_count && !m->l->err && !m->recursion && !m->unclear; n++) {
        follow_node(m, n);
        if (m->copied > most)
            return false;
    }
    return !m->recursion && !m->unclear;
}

static void
forget_nodes(struct flow_maker *m)
{
    struct lift_flow *f = &m->l->flow;

    for (uint32_t n = 0; n < f->node_count; n++)
        free(f->nodes[n].next);
    f->node_count = 0;
    f->context_count = 1;
    f->contexts[0] = (struct lift_context){0};
    f->return_count = 0;
    f->calls_by_value = false;
    memset(m->slots, 0, (m->mask + 1) * sizeof *m->slots);
    m->copied = 0;
    m->edges = 0;
    m->recursion = m->unclear = false;
}

/* One copy of each subroutine. False if that cannot be done. */
static bool
follow_shared(struct flow_maker *m)
{
    struct lift *l = m->l;
    bool done = false;

    forget_nodes(m);
    l->flow.shared = true;
    if (!hed_flow_share_init(m))
        l->err = HED_ENOMEM;
    else
        done = follow_all(m, UINT64_MAX);
    if (done && !l->err)
        hed_flow_share_end(m);
    hed_flow_share_fini(m);
    l->flow.shared = done;
    return done;
}

static int
make_nodes(struct lift *l, bool may_share)
{
    const uint64_t n = l->flow.inst_count, most = n * MOST_FACTOR + MOST_FREE;
    struct flow_maker m = {.l = l, .mask = 255};
    bool done;

    m.slots = calloc(m.mask + 1, sizeof *m.slots);
    if (!m.slots)
        return HED_ENOMEM;
    forget_nodes(&m);
    done = follow_all(&m, may_share ? n * FEW_FACTOR + FEW_FREE : most);
    l->flow.recurses |= m.recursion;
    if (!done && !l->err && may_share) {
        done = !hed_lift_lanes_meet(l) && follow_shared(&m);
        if (!done && !l->err && !l->flow.recurses) {
            forget_nodes(&m);
            done = follow_all(&m, most);
        }
    }
    if (!done && !l->err) {
        forget_nodes(&m);
        l->flow.by_value = true;
        l->flow.recurses = true; /* for all that is known */
        (void)follow_all(&m, UINT64_MAX);
    }
    free(m.slots);
    return l->err;
}

static int
make_flow(struct lift *l, bool may_share)
{
    struct lift_flow *f = &l->flow;
    int err = make_nodes(l, may_share);

    if (!err && !f->shared) /* one copy is what is wanted there, not more */
        err = hed_lift_split(f);
    if (err)
        return err;
    err = hed_lift_order(f);
    if (err == HED_ELIMIT)
        hed_why_set(l->why, "machine code: the kernel has too many loops");
    return err;
}

/* ---- all of it ------------------------------------------------------------------------------- */

int
hed_lift_flow(struct lift *l)
{
    struct lift_flow *f = &l->flow;

    f->inst_count = (uint32_t)(l->code.bytes.size / HED_SASS_BYTES);
    f->begins = calloc((size_t)f->inst_count + 1, 1);
    f->returns = malloc(((size_t)f->inst_count + 1) * sizeof *f->returns);
    f->contexts = calloc(16, sizeof *f->contexts);
    f->context_room = 16;
    f->context_count = 1;
    f->listed = calloc((size_t)f->inst_count + 1, 1);
    f->jumps = calloc((size_t)f->inst_count + 1, 1);
    f->queue = malloc(((size_t)f->inst_count + 1) * sizeof *f->queue);
    f->queued = calloc((size_t)f->inst_count + 1, 1);
    if (!f->begins || !f->returns || !f->contexts || !f->listed || !f->jumps || !f->queue ||
        !f->queued)
        return HED_ENOMEM;

    int err = hed_lift_find_functions(l);

    if (!err)
        err = hed_lift_read_tables(l);
    if (err)
        return err;
    mark_begins(l);
    err = make_flow(l, true);
    if (err == HED_ELIMIT && f->shared) { /* copies have fewer branches and loops */
        free(f->order);
        f->order = NULL;
        f->shared = false;
        l->err = 0;
        err = make_flow(l, false);
    }
    return err;
}

void
hed_lift_flow_fini(struct lift_flow *f)
{
    for (uint32_t n = 0; n < f->node_count; n++)
        free(f->nodes[n].next);
    free(f->nodes);
    free(f->contexts);
    free(f->order);
    free(f->begins);
    free(f->returns);
    free(f->functions);
    free(f->tables);
    free(f->listed);
    free(f->jumps);
    free(f->queue);
    free(f->queued);
}
