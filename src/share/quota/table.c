/* The charges by kind and key: open addressing, in shards so that threads seldom meet
 * (share/quota/engine.h). Removing a charge moves later ones forward, so there are no tombstones.
 */
#include <stdlib.h>

#include "base/err.h"
#include "share/quota/engine.h"

#define FIRST_SIZE 16

static uint64_t
hash_key(enum quota_kind kind, uint64_t key)
{
    uint64_t h = (key ^ (uint64_t)kind << 56) * UINT64_C(0x9e3779b97f4a7c15);

    return h ^ h >> 32;
}

static struct quota_shard *
shard_of(struct hed_quota *q, uint64_t hash)
{
    return &q->shards[hash % QUOTA_SHARDS];
}

/* Where the charge is or would be. There is always a free slot. */
static size_t
shard_find(const struct quota_shard *s, enum quota_kind kind, uint64_t key, uint64_t hash)
{
    size_t i = (hash / QUOTA_SHARDS) & (s->size - 1);

    while (s->slots[i].kind != 0 && (s->slots[i].kind != kind || s->slots[i].key != key))
        i = (i + 1) & (s->size - 1);
    return i;
}

static bool
shard_grow(struct quota_shard *s)
{
    struct quota_shard to = {.size = s->size ? s->size * 2 : FIRST_SIZE};

    to.slots = calloc(to.size, sizeof *to.slots);
    if (!to.slots)
        return false;
    for (size_t i = 0; i < s->size; i++) {
        const struct quota_charge *r = &s->slots[i];

        if (r->kind != 0)
            to.slots[shard_find(&to, r->kind, r->key, hash_key(r->kind, r->key))] = *r;
    }
    free(s->slots);
    s->slots = to.slots;
    s->size = to.size;
    return true;
}

/* A charge that has this key already belongs to memory whose end we did not see: it is replaced. */
int
hed_quota_put(struct hed_quota *q, const struct quota_charge *r)
{
    const uint64_t hash = hash_key(r->kind, r->key);
    struct quota_shard *s = shard_of(q, hash);
    struct quota_charge old = {0};
    bool good = true;

    hed_lock_brief(&s->lock);
    if ((s->count + 1) * 4 > s->size * 3)
        good = shard_grow(s);
    if (good) {
        struct quota_charge *at = &s->slots[shard_find(s, r->kind, r->key, hash)];

        old = *at;
        *at = *r;
        s->count += old.kind == 0;
    }
    hed_unlock_brief(&s->lock);
    if (good && old.kind != 0 && old.bytes && (!old.thing || old.kind == QUOTA_LIBRARY))
        hed_quota_give(old.device, old.bytes);
    return good ? 0 : HED_ENOMEM;
}

static void
shard_erase(struct quota_shard *s, size_t hole)
{
    const size_t mask = s->size - 1;

    for (size_t i = (hole + 1) & mask; s->slots[i].kind != 0; i = (i + 1) & mask) {
        const struct quota_charge *r = &s->slots[i];
        const size_t home = (hash_key(r->kind, r->key) / QUOTA_SHARDS) & mask;

        /* A charge may move if its home is not between the hole and itself. */
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            s->slots[hole] = *r;
            hole = i;
        }
    }
    s->slots[hole].kind = 0;
    s->count--;
}

static bool
table_get(struct hed_quota *q, enum quota_kind kind, uint64_t key, struct quota_charge *out,
          bool remove)
{
    const uint64_t hash = hash_key(kind, key);
    struct quota_shard *s = shard_of(q, hash);
    bool found = false;

    hed_lock_brief(&s->lock);
    if (s->size != 0) {
        const size_t i = shard_find(s, kind, key, hash);

        found = s->slots[i].kind != 0;
        if (found)
            *out = s->slots[i];
        if (found && remove)
            shard_erase(s, i);
    }
    hed_unlock_brief(&s->lock);
    return found;
}

bool
hed_quota_take(struct hed_quota *q, enum quota_kind kind, uint64_t key, struct quota_charge *out)
{
    return table_get(q, kind, key, out, true);
}

bool
hed_quota_peek(struct hed_quota *q, enum quota_kind kind, uint64_t key, struct quota_charge *out)
{
    return table_get(q, kind, key, out, false);
}

/* If there is no memory for the list, the rest stays charged: too much, never too little. */
static bool
list_append(struct quota_charges *list, const struct quota_charge *r)
{
    if (list->count == list->size) {
        const size_t size = list->size ? list->size * 2 : 64;
        struct quota_charge *at = realloc(list->at, size * sizeof *at);

        if (!at)
            return false;
        list->at = at;
        list->size = size;
    }
    list->at[list->count++] = *r;
    return true;
}

/* Takes out the charges of a context, or of a library. */
static void
take_those(struct hed_quota *q, CUcontext context, const void *library, struct quota_charges *out)
{
    *out = (struct quota_charges){0};
    for (size_t n = 0; n < QUOTA_SHARDS; n++) {
        struct quota_shard *s = &q->shards[n];

        hed_lock_brief(&s->lock);
        for (size_t i = 0; i < s->size;) {
            const struct quota_charge *r = &s->slots[i];
            const bool meant = library ? r->kind == QUOTA_LIBRARY && r->thing == library
                                       : r->kind != 0 && r->context == context;

            /* Erasing may move another one here. */
            if (meant && list_append(out, r))
                shard_erase(s, i);
            else
                i++;
        }
        hed_unlock_brief(&s->lock);
    }
}

void
hed_quota_take_all(struct hed_quota *q, CUcontext context, struct quota_charges *out)
{
    *out = (struct quota_charges){0};
    if (context)
        take_those(q, context, NULL, out);
}

void
hed_quota_take_library(struct hed_quota *q, CUlibrary library, struct quota_charges *out)
{
    *out = (struct quota_charges){0};
    if (library)
        take_those(q, NULL, library, out);
}

void
hed_quota_put_all(struct hed_quota *q, struct quota_charges *r)
{
    for (size_t i = 0; i < r->count; i++)
        (void)hed_quota_put(q, &r->at[i]);
    free(r->at);
}

void
hed_quota_drop_all(struct hed_layer *self, struct quota_charges *r)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->at[i].kind == QUOTA_MEMORY && r->at[i].thing)
            hed_quota_pool_freed(self, r->at[i].thing, r->at[i].bytes);
        else
            hed_quota_give(r->at[i].device, r->at[i].bytes);
    }
    free(r->at);
}
