/* What cli/trace/map.h describes. */
#include "cli/trace/map.h"

#include <stdlib.h>
#include <string.h>

#include "see/see.h"

void *
hed_cli_widened(void *array, size_t count, size_t size)
{
    if (count && (count & (count - 1)) != 0)
        return array;
    return reallocarray(array, count ? count * 2 : 1, size);
}

uint64_t
hed_cli_hash(uint64_t h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h ^ n;
}

/* ---- a map from numbers to numbers ----------------------------------------------------------- */

static size_t
find_slot(const struct hed_cli_map *m, uint64_t key)
{
    size_t i = (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (m->room - 1);

    while (m->values[i] && m->keys[i] != key)
        i = (i + 1) & (m->room - 1);
    return i;
}

uint32_t
hed_cli_map_get(const struct hed_cli_map *m, uint64_t key)
{
    return m->room ? m->values[find_slot(m, key)] : 0;
}

static bool
widen_map(struct hed_cli_map *m)
{
    struct hed_cli_map wide = {.room = m->room ? m->room * 2 : 64};

    wide.keys = calloc(wide.room, sizeof(*wide.keys));
    wide.values = calloc(wide.room, sizeof(*wide.values));
    if (!wide.keys || !wide.values) {
        hed_cli_map_fini(&wide);
        return false;
    }
    for (size_t i = 0; i < m->room; i++) {
        if (m->values[i]) {
            const size_t to = find_slot(&wide, m->keys[i]);

            wide.keys[to] = m->keys[i];
            wide.values[to] = m->values[i];
        }
    }
    wide.count = m->count;
    hed_cli_map_fini(m);
    *m = wide;
    return true;
}

bool
hed_cli_map_put(struct hed_cli_map *m, uint64_t key, uint32_t value)
{
    if (m->count * 2 >= m->room && !widen_map(m))
        return false;

    const size_t i = find_slot(m, key);

    m->keys[i] = key;
    m->values[i] = value;
    m->count++;
    return true;
}

uint32_t
hed_cli_map_number(struct hed_cli_map *m, uint64_t key)
{
    const uint32_t known = hed_cli_map_get(m, key);
    const uint32_t next = (uint32_t)m->count + 1;

    return known ? known : hed_cli_map_put(m, key, next) ? next : 0;
}

void
hed_cli_map_fini(struct hed_cli_map *m)
{
    free(m->keys);
    free(m->values);
    *m = (struct hed_cli_map){0};
}

size_t
hed_cli_map_index(struct hed_cli_map *map, uint64_t key, void **array, size_t size, bool *fresh)
{
    const uint32_t known = hed_cli_map_get(map, key);
    const size_t n = map->count;
    void *wide;

    *fresh = !known;
    if (known)
        return known - 1;
    wide = hed_cli_widened(*array, n, size);
    if (!wide)
        return SIZE_MAX;
    *array = wide;
    memset((char *)wide + n * size, 0, size);
    return hed_cli_map_put(map, key, (uint32_t)n + 1) ? n : SIZE_MAX;
}

/* ---- contexts -------------------------------------------------------------------------------- */

uint32_t
hed_cli_context(struct hed_cli_contexts *c, const struct hed_trace_activity *a, bool *first)
{
    const uint32_t number = hed_cli_map_number(&c->numbers, (uint64_t)a->device << 32 | a->context);
    const uint32_t known = hed_cli_map_get(&c->devices, a->device);

    if (!number || (!known && !hed_cli_map_put(&c->devices, a->device, number)))
        return 0;
    *first = !known || known == number;
    return number;
}

void
hed_cli_contexts_fini(struct hed_cli_contexts *c)
{
    hed_cli_map_fini(&c->numbers);
    hed_cli_map_fini(&c->devices);
}
