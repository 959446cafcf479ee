/* Texture and surface objects. Kernels get their values, so the client uses the backend's values
 * instead of names. A value that the client passes must be one that it was given. See worker.h.
 *
 * A backend may give out the same value twice; then it is counted twice.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/lock.h"
#include "remote/server/worker/worker.h"

#define BUCKETS 4096u
#define VALUES_MAX (1u << 20) /* per client */

struct value {
    struct value *next;
    uint64_t value;
    bool surface;
};

struct hed_values {
    struct hed_lock lock; /* rank HED_RANK_CHANNEL; guards all of this */
    struct value *buckets[BUCKETS];
    uint32_t count;
};

struct hed_values *
hed_values_create(void)
{
    struct hed_values *v = calloc(1, sizeof *v);

    if (v)
        hed_lock_init(&v->lock, HED_RANK_CHANNEL);
    return v;
}

static struct value **
find_value_locked(struct hed_values *v, bool surface, uint64_t value)
{
    struct value **at = &v->buckets[(value ^ value >> 12 ^ value >> 32) % BUCKETS];

    while (*at && ((*at)->value != value || (*at)->surface != surface))
        at = &(*at)->next;
    return at;
}

int
hed_value_add(struct hed_values *v, bool surface, uint64_t value)
{
    struct value *new = v ? malloc(sizeof *new) : NULL;
    int err = HED_ELIMIT;

    if (!new)
        return HED_ENOMEM;
    hed_lock(&v->lock);
    if (v->count < VALUES_MAX) {
        struct value **at = find_value_locked(v, surface, value);

        *new = (struct value){*at, value, surface};
        *at = new;
        v->count++;
        err = 0;
    }
    hed_unlock(&v->lock);
    if (err)
        free(new);
    return err;
}

bool
hed_value_has(struct hed_values *v, bool surface, uint64_t value)
{
    bool has = false;

    if (v) {
        hed_lock(&v->lock);
        has = *find_value_locked(v, surface, value) != NULL;
        hed_unlock(&v->lock);
    }
    return has;
}

bool
hed_value_remove(struct hed_values *v, bool surface, uint64_t value)
{
    struct value *old = NULL;

    if (v) {
        hed_lock(&v->lock);

        struct value **at = find_value_locked(v, surface, value);

        old = *at;
        if (old) {
            *at = old->next;
            v->count--;
        }
        hed_unlock(&v->lock);
    }
    free(old);
    return old != NULL;
}
