/* Conditions of graphs on this machine: words that kernels set, and that conditional nodes read.
 *
 * A handle is the address of its word. Kernels may still set it when its graph is gone, so words
 * are never given back to the system: another handle gets them.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "driver/graph/node.h"
#include "driver/near/near.h"

struct hed_near_condition {
    _Atomic uint32_t value; /* must come first: kernels know its address */
    uint32_t first;         /* the value at each launch of the graph */
    bool has_first;
    uint64_t graph; /* handle of the graph; 0 if nobody uses the condition */
    struct hed_near_condition *next;
};

static struct hed_near_condition *
take_condition_locked(struct hed_near *n)
{
    struct hed_near_condition *c = n->conditions;

    while (c && c->graph)
        c = c->next;
    if (c)
        return c;
    c = calloc(1, sizeof *c);
    if (c) {
        c->next = n->conditions;
        n->conditions = c;
    }
    return c;
}

CUresult
hed_near_graph_condition(void *m, struct hed_context *ctx, uint64_t graph, unsigned value,
                         unsigned flags, uint64_t *out)
{
    struct hed_near *n = m;
    struct hed_near_condition *c;

    hed_lock(&n->conditions_lock);
    c = take_condition_locked(n);
    if (c) {
        c->graph = graph;
        c->first = value;
        c->has_first = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
        /* Relaxed, here and below: a launch comes after it, and orders it. */
        atomic_store_explicit(&c->value, value, memory_order_relaxed);
        *out = (uintptr_t)&c->value;
    }
    hed_unlock(&n->conditions_lock);
    return c ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void
hed_near_graph_conditions_gone(void *m, uint64_t graph)
{
    struct hed_near *n = m;

    hed_lock(&n->conditions_lock);
    for (struct hed_near_condition *c = n->conditions; c; c = c->next)
        if (c->graph == graph)
            c->graph = 0;
    hed_unlock(&n->conditions_lock);
}

bool
hed_near_condition_is(struct hed_near *n, uint64_t handle)
{
    const struct hed_near_condition *c;

    hed_lock(&n->conditions_lock);
    c = n->conditions;
    while (c && (uintptr_t)&c->value != handle)
        c = c->next;
    hed_unlock(&n->conditions_lock);
    return c != NULL;
}

void
hed_near_conditions_begin(struct hed_near *n, uint64_t graph)
{
    hed_lock(&n->conditions_lock);
    for (struct hed_near_condition *c = n->conditions; c; c = c->next)
        if (c->graph == graph && c->has_first)
            atomic_store_explicit(&c->value, c->first, memory_order_relaxed);
    hed_unlock(&n->conditions_lock);
}

/* cuda.h, CUgraphConditionalNodeType: "Body[0] executed if condition is non-zero. If size == 2, an
 * optional ELSE graph is created and this is executed if the condition is zero.", "Body executed
 * repeatedly while condition value is non-zero", "Body[n] is executed once, where 'n' is the value
 * of the condition. If the condition does not match a body index, no body is launched." */
uint32_t
hed_near_branch(const struct hed_condition *c)
{
    /* Acquire: pairs with a kernel's write, whose grid has ended. */
    const uint32_t value =
        atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)c->handle, memory_order_acquire);

    if (c->type == CU_GRAPH_COND_TYPE_SWITCH)
        return value;
    return value ? 0 : 1;
}

void
hed_near_fini(struct hed_near *n)
{
    while (n->conditions) {
        struct hed_near_condition *c = n->conditions;

        n->conditions = c->next;
        free(c);
    }
    hed_near_objects_fini(n);
}
