/* Conditions of graphs on this machine: values that kernels set, and that conditional nodes read.
 *
 * A handle is the number of a condition. Kernels may still set it when its graph is gone, so
 * conditions are never given back to the system: another handle gets them.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "driver/graph/node.h"
#include "driver/near/near.h"

struct condition {
    _Atomic uint32_t value;
    uint32_t first; /* the value at each launch of the graph */
    bool has_first;
    uint64_t graph; /* handle of the graph; 0 if nobody uses the condition */
};

/* Every number up to the end has a condition. */
static struct condition *
take_condition_locked(struct hed_near *n, uint64_t *handle)
{
    struct condition *c;

    for (uint32_t i = 1; i < n->conditions.end; i++) {
        c = hed_numbers_find(&n->conditions, i);
        *handle = i;
        if (c->graph == 0)
            return c;
    }
    c = calloc(1, sizeof *c);
    *handle = c ? hed_numbers_add_locked(&n->conditions, c) : 0;
    if (*handle == 0) {
        free(c);
        c = NULL;
    }
    return c;
}

CUresult
hed_near_graph_condition(void *m, struct hed_context *ctx, uint64_t graph, unsigned value,
                         unsigned flags, uint64_t *out)
{
    struct hed_near *n = m;
    struct condition *c;

    hed_lock(&n->conditions_lock);
    c = take_condition_locked(n, out);
    if (c) {
        c->graph = graph;
        c->first = value;
        c->has_first = flags & CU_GRAPH_COND_ASSIGN_DEFAULT;
        /* Relaxed, here and below: a launch comes after it, and orders it. */
        atomic_store_explicit(&c->value, value, memory_order_relaxed);
    }
    hed_unlock(&n->conditions_lock);
    return c ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void
hed_near_graph_conditions_gone(void *m, uint64_t graph)
{
    struct hed_near *n = m;

    hed_lock(&n->conditions_lock);
    for (uint32_t i = 1; i < n->conditions.end; i++) {
        struct condition *c = hed_numbers_find(&n->conditions, i);

        if (c->graph == graph)
            c->graph = 0;
    }
    hed_unlock(&n->conditions_lock);
}

bool
hed_near_condition_set(const struct hed_near *n, uint64_t handle, uint32_t value)
{
    struct condition *c = hed_numbers_find(&n->conditions, handle);

    /* Relaxed: whoever reads it (hed_near_branch()) does so when the grid has ended. */
    if (c)
        atomic_store_explicit(&c->value, value, memory_order_relaxed);
    return c != NULL;
}

void
hed_near_conditions_begin(struct hed_near *n, uint64_t graph)
{
    hed_lock(&n->conditions_lock);
    for (uint32_t i = 1; i < n->conditions.end; i++) {
        struct condition *c = hed_numbers_find(&n->conditions, i);

        if (c->graph == graph && c->has_first)
            atomic_store_explicit(&c->value, c->first, memory_order_relaxed);
    }
    hed_unlock(&n->conditions_lock);
}

/* cuda.h, CUgraphConditionalNodeType: "Body[0] executed if condition is non-zero. If size == 2, an
 * optional ELSE graph is created and this is executed if the condition is zero.", "Body executed
 * repeatedly while condition value is non-zero", "Body[n] is executed once, where 'n' is the value
 * of the condition. If the condition does not match a body index, no body is launched." */
uint32_t
hed_near_branch(const struct hed_near *n, const struct hed_condition *node)
{
    const struct condition *c = hed_numbers_find(&n->conditions, node->handle);
    /* Acquire: pairs with a kernel's write, whose grid has ended. */
    const uint32_t value = c ? atomic_load_explicit(&c->value, memory_order_acquire) : 0;

    if (node->type == CU_GRAPH_COND_TYPE_SWITCH)
        return value;
    return value ? 0 : 1;
}

void
hed_near_fini(struct hed_near *n)
{
    for (uint32_t i = 1; i < n->conditions.end; i++)
        free(hed_numbers_find(&n->conditions, i));
    hed_numbers_fini(&n->conditions);
}
