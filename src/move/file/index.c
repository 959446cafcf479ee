/* An index of stored chunks: open addressing, at most three quarters full. See index.h. */
#include "move/file/index.h"

#include <stdlib.h>

#include "base/err.h"

#define INDEX_LEAST 1024 /* slots */

static struct hed_snap_place *
place_slot(struct hed_snap_place *slots, size_t room, const struct hed_snap_hash *hash,
           uint32_t size)
{
    const uint64_t mixed = (hash->w[0] ^ hash->w[1] >> 29 ^ size) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (mixed >> 20) & (room - 1);

    while (slots[at].size && (slots[at].size != size || !hed_snap_hash_same(&slots[at].hash, hash)))
        at = (at + 1) & (room - 1);
    return &slots[at];
}

const struct hed_snap_place *
hed_snap_index_get(const struct hed_snap_index *x, const struct hed_snap_hash *hash, uint32_t size)
{
    const struct hed_snap_place *p = x->room ? place_slot(x->slots, x->room, hash, size) : NULL;

    return p && p->size ? p : NULL;
}

static int
grow_index(struct hed_snap_index *x)
{
    const size_t room = x->room ? 2 * x->room : INDEX_LEAST;
    struct hed_snap_place *slots = calloc(room, sizeof *slots);

    if (!slots)
        return HED_ENOMEM;
    for (size_t i = 0; i < x->room; i++) {
        if (x->slots[i].size)
            *place_slot(slots, room, &x->slots[i].hash, x->slots[i].size) = x->slots[i];
    }
    free(x->slots);
    x->slots = slots;
    x->room = room;
    return 0;
}

int
hed_snap_index_put(struct hed_snap_index *x, const struct hed_snap_place *p)
{
    const int err = 4 * (x->count + 1) > 3 * x->room ? grow_index(x) : 0;

    if (err)
        return err;

    struct hed_snap_place *slot = place_slot(x->slots, x->room, &p->hash, p->size);

    if (!slot->size) {
        *slot = *p;
        x->count++;
    }
    return 0;
}

void
hed_snap_index_fini(struct hed_snap_index *x)
{
    free(x->slots);
    *x = (struct hed_snap_index){0};
}
