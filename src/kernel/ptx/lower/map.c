/* A hash table from pointers to pointers. */
#include <stdlib.h>

#include "base/err.h"
#include "kernel/ptx/lower/lower.h"

struct entry {
    const void *key; /* NULL: free */
    void *value;
};

struct hed_lower_map {
    struct entry *entries;
    size_t capacity; /* a power of two, or 0 */
    size_t used;     /* at most half of it */
};

struct hed_lower_map *
hed_lower_map_new(void)
{
    return calloc(1, sizeof(struct hed_lower_map));
}

void
hed_lower_map_free(struct hed_lower_map *m)
{
    if (m)
        free(m->entries);
    free(m);
}

static struct entry *
find_entry(struct entry *entries, size_t capacity, const void *key)
{
    size_t at = (size_t)(((uintptr_t)key >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20);

    for (;; at++) {
        struct entry *e = &entries[at & (capacity - 1)];

        if (e->key == key || !e->key)
            return e;
    }
}

static bool
grow_map(struct hed_lower_map *m)
{
    const size_t capacity = m->capacity ? 2 * m->capacity : 64;
    struct entry *entries = calloc(capacity, sizeof(*entries));

    if (!entries)
        return false;
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->entries[i].key)
            *find_entry(entries, capacity, m->entries[i].key) = m->entries[i];
    }
    free(m->entries);
    m->entries = entries;
    m->capacity = capacity;
    return true;
}

void
hed_lower_map_add(struct hed_lower *l, struct hed_lower_map *m, const void *key, void *value)
{
    if (!m || (2 * m->used >= m->capacity && !grow_map(m))) {
        l->err = l->err ? l->err : HED_ENOMEM;
        return;
    }

    struct entry *e = find_entry(m->entries, m->capacity, key);

    if (!e->key)
        m->used++;
    *e = (struct entry){.key = key, .value = value};
}

void *
hed_lower_map_get(const struct hed_lower_map *m, const void *key)
{
    return m && m->capacity ? find_entry(m->entries, m->capacity, key)->value : NULL;
}
