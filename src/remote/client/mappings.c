/* What memory the worker has been told to have: a table, so that another worker can be told the
 * same. See memory.h.
 *
 * Invariant: an entry exists exactly while the worker has what it describes: it is added after MAP
 * was sent, and removed before UNMAP is sent.
 */
#include <stdlib.h>

#include "base/err.h"
#include "remote/client/memory.h"

static size_t
mapping_bucket(enum hed_map_kind kind, uint64_t key)
{
    const uint64_t mixed = (key / 65536 + (uint64_t)kind) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(mixed >> 32) % HED_MAPPING_BUCKETS;
}

static uint64_t
mapping_key(const struct hed_remote_mapping *m)
{
    return m->kind == HED_MAP_PHYSICAL ? m->physical * 65536 : m->at;
}

int
hed_remote_mapping_add(struct hed_remote *r, const struct hed_remote_mapping *what)
{
    struct hed_remote_mapping *m = malloc(sizeof *m);

    if (!m)
        return HED_ENOMEM;
    *m = *what;

    struct hed_remote_mapping **list =
        &r->memory->mappings[mapping_bucket(m->kind, mapping_key(m))];

    hed_lock(&r->memory->lock);
    if (!m->serial)
        m->serial = ++r->memory->serials;
    m->next = *list;
    *list = m;
    hed_unlock(&r->memory->lock);
    return 0;
}

/* Takes an entry out of the table; NULL if there is none. */
static struct hed_remote_mapping *
take_mapping(struct hed_remote *r, enum hed_map_kind kind, uint64_t key)
{
    if (kind == HED_MAP_PHYSICAL)
        key *= 65536;

    struct hed_remote_mapping **link = &r->memory->mappings[mapping_bucket(kind, key)];
    struct hed_remote_mapping *m;

    hed_lock(&r->memory->lock);
    while ((m = *link) && (m->kind != kind || mapping_key(m) != key))
        link = &m->next;
    if (m)
        *link = m->next;
    hed_unlock(&r->memory->lock);
    return m;
}

bool
hed_remote_mapping_remove(struct hed_remote *r, enum hed_map_kind kind, uint64_t key)
{
    struct hed_remote_mapping *m = take_mapping(r, kind, key);

    free(m);
    return m != NULL;
}

bool
hed_remote_mapping_remove_offered(struct hed_remote *r, enum hed_map_kind kind, uint64_t key)
{
    struct hed_remote_mapping *m = take_mapping(r, kind, key);
    const bool offered = m && m->offered;

    free(m);
    return offered;
}

void
hed_remote_mapping_offered(struct hed_remote *r, enum hed_map_kind kind, uint64_t key)
{
    if (kind == HED_MAP_PHYSICAL)
        key *= 65536;
    hed_lock(&r->memory->lock);

    struct hed_remote_mapping *m = r->memory->mappings[mapping_bucket(kind, key)];

    while (m && (m->kind != kind || mapping_key(m) != key))
        m = m->next;
    if (m)
        m->offered = true;
    hed_unlock(&r->memory->lock);
}

static const struct hed_remote_mapping *
find_mapping_locked(struct hed_remote *r, enum hed_map_kind kind, uint64_t key)
{
    const struct hed_remote_mapping *m = r->memory->mappings[mapping_bucket(kind, key)];

    while (m && (m->kind != kind || mapping_key(m) != key))
        m = m->next;
    return m;
}

bool
hed_remote_mapping_has(struct hed_remote *r, enum hed_map_kind kind, uint64_t key, uint64_t size)
{
    if (kind == HED_MAP_PHYSICAL)
        key *= 65536;
    hed_lock(&r->memory->lock);

    const struct hed_remote_mapping *m = find_mapping_locked(r, kind, key);
    const bool has = m && m->size == size;

    hed_unlock(&r->memory->lock);
    return has;
}

bool
hed_remote_mapping_same(struct hed_remote *standby, const struct hed_remote_mapping *m)
{
    hed_lock(&standby->memory->lock);

    const struct hed_remote_mapping *there = find_mapping_locked(standby, m->kind, m->at);
    const bool same = there && there->size == m->size && there->serial == m->serial;

    hed_unlock(&standby->memory->lock);
    return same;
}

void
hed_remote_mapping_access(struct hed_remote *r, uint64_t at, uint64_t size, unsigned access)
{
    hed_lock(&r->memory->lock);
    for (size_t i = 0; i < HED_MAPPING_BUCKETS; i++)
        for (struct hed_remote_mapping *m = r->memory->mappings[i]; m; m = m->next)
            if (m->kind == HED_MAP_VIEW && m->at >= at && m->at - at < size) {
                m->access = access;
                m->has_access = true;
            }
    hed_unlock(&r->memory->lock);
}

int
hed_remote_mappings_list(struct hed_remote *r, enum hed_map_kind kind,
                         struct hed_remote_mappings *out)
{
    size_t count = 0;
    int err = 0;

    *out = (struct hed_remote_mappings){.count = 0};
    hed_lock(&r->memory->lock);
    for (int pass = 0; pass < 2; pass++) {
        if (pass == 1 && count && !(out->all = malloc(count * sizeof *out->all)))
            err = HED_ENOMEM;
        for (size_t i = 0; i < HED_MAPPING_BUCKETS && !err; i++)
            for (struct hed_remote_mapping *m = r->memory->mappings[i]; m; m = m->next) {
                if (m->kind != kind)
                    continue;
                if (pass == 0)
                    count++;
                else
                    out->all[out->count++] = *m;
            }
    }
    hed_unlock(&r->memory->lock);
    return err;
}

int
hed_remote_mappings_each(struct hed_remote *r, enum hed_map_kind kind,
                         int (*fn)(void *arg, const struct hed_remote_mapping *m), void *arg)
{
    struct hed_remote_mappings l;
    int err = hed_remote_mappings_list(r, kind, &l);

    for (size_t i = 0; i < l.count && !err; i++)
        err = fn(arg, &l.all[i]);
    free(l.all);
    return err;
}
