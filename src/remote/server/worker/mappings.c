/* The table of mappings: see memory.h. It is sorted, so that finding is fast; changes are rare. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "remote/server/worker/memory.h"

#define MAPPINGS_MAX (1u << 20)

/* The index of the first mapping that ends after an address. */
static size_t
index_of_mapping(const struct hed_worker_memory *m, uint64_t at)
{
    size_t low = 0, high = m->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct hed_mapping *p = &m->mappings[middle];

        if (p->at + p->size <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct hed_mapping *
hed_mapping_find(struct hed_worker_memory *m, uint64_t at)
{
    const size_t i = index_of_mapping(m, at);

    return i < m->count && m->mappings[i].at <= at ? &m->mappings[i] : NULL;
}

bool
hed_mapping_covers(struct hed_worker_memory *m, uint64_t at, uint64_t size)
{
    size_t i = index_of_mapping(m, at);

    if (size > UINT64_MAX - at)
        return false;
    while (i < m->count && m->mappings[i].at <= at) {
        const uint64_t end = m->mappings[i].at + m->mappings[i].size;

        if (size <= end - at)
            return true;
        size -= end - at;
        at = end;
        i++;
    }
    return false;
}

bool
hed_table_grow(void **table, size_t count, size_t *room, size_t most, size_t each)
{
    const size_t more = *room ? *room * 2 : 64;
    void *p;

    if (count < *room)
        return true;
    p = more <= most ? realloc(*table, more * each) : NULL;
    if (!p)
        return false;
    *table = p;
    *room = more;
    return true;
}

int
hed_mapping_enter(struct hed_worker_memory *m, const struct hed_mapping *new)
{
    const size_t i = index_of_mapping(m, new->at);

    if (i < m->count && m->mappings[i].at < new->at + new->size)
        return HED_EFORMAT;
    if (!hed_table_grow((void **)&m->mappings, m->count, &m->room, MAPPINGS_MAX, sizeof *new))
        return HED_ELIMIT;
    memmove(&m->mappings[i + 1], &m->mappings[i], (m->count - i) * sizeof *new);
    m->mappings[i] = *new;
    m->count++;
    return 0;
}

int
hed_mapping_leave(struct hed_worker_memory *m, uint64_t at, uint64_t size,
                  enum hed_mapping_kind kind, struct hed_mapping *out)
{
    const size_t i = index_of_mapping(m, at);

    if (i == m->count || m->mappings[i].at != at || m->mappings[i].size != size ||
        m->mappings[i].kind != kind)
        return HED_EFORMAT;
    *out = m->mappings[i];
    m->count--;
    memmove(&m->mappings[i], &m->mappings[i + 1], (m->count - i) * sizeof *out);
    return 0;
}
