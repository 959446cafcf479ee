/* Objects of textures and surfaces by the lower halves of their values: machine code keeps no more
 * of them in registers. */
#include <stdlib.h>
#include <string.h>

#include "driver/near/near.h"

#define LIST_OF(value) ((uint32_t)(value) / 64 % HED_NEAR_OBJECT_LISTS)

struct hed_near_object {
    uint64_t value;
    struct hed_near_object *next;
};

void
hed_near_objects_init(struct hed_near *n)
{
    memset(n->objects, 0, sizeof n->objects);
    hed_lock_init(&n->objects_lock, HED_RANK_CONDITIONS);
}

/* The link to the object with this lower half, or to NULL. */
static struct hed_near_object **
find_object_locked(struct hed_near *n, uint32_t half)
{
    struct hed_near_object **at = &n->objects[LIST_OF(half)];

    while (*at && (uint32_t)(*at)->value != half)
        at = &(*at)->next;
    return at;
}

bool
hed_near_object_add(struct hed_near *n, uint64_t value)
{
    struct hed_near_object **at, *o;
    bool done;

    hed_lock(&n->objects_lock);
    at = find_object_locked(n, (uint32_t)value);
    o = *at;
    if (!o) {
        o = *at = calloc(1, sizeof *o);
        if (o)
            o->value = value;
    }
    done = o && o->value == value;
    hed_unlock(&n->objects_lock);
    return done;
}

void
hed_near_object_remove(struct hed_near *n, uint64_t value)
{
    struct hed_near_object **at, *o;

    hed_lock(&n->objects_lock);
    at = find_object_locked(n, (uint32_t)value);
    o = *at;
    if (o && o->value == value) {
        *at = o->next;
        free(o);
    }
    hed_unlock(&n->objects_lock);
}

uint64_t
hed_near_object_find(struct hed_near *n, uint32_t half)
{
    const struct hed_near_object *o;
    uint64_t value;

    hed_lock(&n->objects_lock);
    o = *find_object_locked(n, half);
    value = o ? o->value : half;
    hed_unlock(&n->objects_lock);
    return value;
}

void
hed_near_objects_fini(struct hed_near *n)
{
    for (unsigned i = 0; i < HED_NEAR_OBJECT_LISTS; i++) {
        while (n->objects[i]) {
            struct hed_near_object *o = n->objects[i];

            n->objects[i] = o->next;
            free(o);
        }
    }
}
