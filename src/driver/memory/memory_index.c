/* The trees of memory_index.h: treaps, as in space.c, of allocations ordered by first address. */
#include "driver/memory/memory_index.h"

#include <stdlib.h>

struct hed_memory_node {
    struct hed_allocation a; /* must come first */
    struct hed_memory_node *kid[2];
    uint32_t priority;
};

static void
index_rotate(struct hed_memory_node **link, int up)
{
    struct hed_memory_node *n = *link;
    struct hed_memory_node *kid = n->kid[up];

    n->kid[up] = kid->kid[!up];
    kid->kid[!up] = n;
    *link = kid;
}

static void
index_insert(struct hed_memory_node **link, struct hed_memory_node *n)
{
    if (!*link) {
        *link = n;
        return;
    }

    const int side = (*link)->a.at < n->a.at;

    index_insert(&(*link)->kid[side], n);
    if ((*link)->kid[side]->priority > (*link)->priority)
        index_rotate(link, side);
}

struct hed_allocation *
hed_memory_insert_locked(struct hed_memory *m, struct hed_memory_node *n)
{
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    n->priority = (uint32_t)m->random;
    n->a.id = ++m->ids;
    index_insert(&m->root[hed_memory_tree_of(n->a.kind)], n);
    /* Relaxed: a thread that looks without the lock has made the allocation itself, or need not see
     * it. */
    if (hed_memory_is_mapped(&n->a))
        atomic_fetch_add_explicit(&m->mapped, 1, memory_order_relaxed);
    return &n->a;
}

struct hed_memory_node *
hed_memory_remove_locked(struct hed_memory *m, const struct hed_allocation *a)
{
    struct hed_memory_node **link = &m->root[hed_memory_tree_of(a->kind)];

    while (*link && &(*link)->a != a)
        link = &(*link)->kid[(*link)->a.at < a->at];

    struct hed_memory_node *n = *link;

    while (n && (n->kid[0] || n->kid[1])) {
        struct hed_memory_node *const *kid = n->kid;
        const int up = !kid[0] || (kid[1] && kid[1]->priority > kid[0]->priority);

        index_rotate(link, up);
        link = &(*link)->kid[!up];
    }
    *link = NULL;
    if (n && hed_memory_is_mapped(&n->a)) /* relaxed: as above */
        atomic_fetch_sub_explicit(&m->mapped, 1, memory_order_relaxed);
    return n;
}

struct hed_allocation *
hed_memory_floor_locked(struct hed_memory *m, enum hed_memory_tree t, uint64_t address)
{
    struct hed_memory_node *best = NULL;

    for (struct hed_memory_node *n = m->root[t]; n; n = n->kid[n->a.at <= address]) {
        if (n->a.at <= address)
            best = n;
    }
    return best ? &best->a : NULL;
}

struct hed_allocation *
hed_memory_ceiling_locked(struct hed_memory *m, enum hed_memory_tree t, uint64_t address)
{
    struct hed_memory_node *best = NULL;

    for (struct hed_memory_node *n = m->root[t]; n; n = n->kid[n->a.at < address]) {
        if (n->a.at >= address)
            best = n;
    }
    return best ? &best->a : NULL;
}

struct hed_allocation *
hed_memory_in_locked(struct hed_memory *m, enum hed_memory_tree t, uint64_t address)
{
    struct hed_allocation *a = hed_memory_floor_locked(m, t, address);

    return a && address - a->at < a->size ? a : NULL;
}

struct hed_allocation *
hed_memory_first_locked(struct hed_memory *m, enum hed_memory_tree t, uint64_t at, uint64_t size)
{
    struct hed_allocation *a = hed_memory_in_locked(m, t, at);

    if (a)
        return a;
    a = hed_memory_ceiling_locked(m, t, at);
    return a && a->at - at < size ? a : NULL;
}

struct hed_memory_node *
hed_memory_node_create(const struct hed_allocation *a)
{
    struct hed_memory_node *n = calloc(1, sizeof *n);

    if (n)
        n->a = *a;
    return n;
}

void
hed_memory_node_free(struct hed_memory_node *n)
{
    free(n);
}

struct hed_allocation *
hed_memory_node_allocation(struct hed_memory_node *n)
{
    return &n->a;
}

CUresult
hed_memory_add(struct hed_driver *d, const struct hed_allocation *a)
{
    struct hed_memory_node *n = hed_memory_node_create(a);

    if (!n)
        return CUDA_ERROR_OUT_OF_MEMORY;
    hed_lock(&d->memory_lock);
    hed_memory_insert_locked(d->memory, n);
    hed_unlock(&d->memory_lock);
    return CUDA_SUCCESS;
}

bool
hed_memory_remove(struct hed_driver *d, enum hed_memory_kind kind, uint64_t at,
                  struct hed_allocation *out)
{
    struct hed_memory_node *n = NULL;

    hed_lock(&d->memory_lock);

    struct hed_allocation *a = hed_memory_floor_locked(d->memory, hed_memory_tree_of(kind), at);

    if (a && a->at == at && a->kind == kind)
        n = hed_memory_remove_locked(d->memory, a);
    hed_unlock(&d->memory_lock);
    if (!n)
        return false;
    *out = n->a;
    hed_memory_node_free(n);
    return true;
}
