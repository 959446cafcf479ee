/* The table of driver/handle.h: slots in chunks that never move, and a list of free slots. */
#include "driver/handle.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/lock.h"

#define CHUNK_SLOTS 1024
#define CHUNKS (HED_HANDLES_MAX / CHUNK_SLOTS)
#define GENERATIONS (1u << 24)
#define NO_SLOT UINT32_MAX

struct slot {
    struct hed_object *object; /* NULL while it is free */
    uint32_t generation;       /* of the object, or of the next object if the slot is free */
    uint32_t next_free;        /* index, or NO_SLOT */
    uint8_t kind;
};

/* One lock guards everything. It is held for a few loads, never across a call. */
struct hed_handles {
    struct hed_lock lock;
    struct slot *chunks[CHUNKS];
    uint32_t used;       /* slots that exist */
    uint32_t first_free; /* index, or NO_SLOT */
};

struct hed_handles *
hed_handles_create(void)
{
    struct hed_handles *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    hed_lock_init(&t->lock, HED_RANK_HANDLES);
    t->first_free = NO_SLOT;
    return t;
}

static struct slot *
slot_at(struct hed_handles *t, uint32_t index)
{
    return index < t->used ? &t->chunks[index / CHUNK_SLOTS][index % CHUNK_SLOTS] : NULL;
}

void
hed_handles_free(struct hed_handles *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; i < t->used; i++) {
        struct hed_object *o = slot_at(t, i)->object;

        if (o)
            hed_object_put(o);
    }
    for (uint32_t i = 0; i < CHUNKS; i++)
        free(t->chunks[i]);
    hed_lock_fini(&t->lock);
    free(t);
}

/* Takes a free slot, or makes a new one. NULL with *err on failure. */
static struct slot *
take_slot_locked(struct hed_handles *t, uint32_t *index, int *err)
{
    if (t->first_free != NO_SLOT) {
        struct slot *s = slot_at(t, t->first_free);

        *index = t->first_free;
        t->first_free = s->next_free;
        return s;
    }
    if (t->used == HED_HANDLES_MAX) {
        *err = HED_ELIMIT;
        return NULL;
    }

    struct slot **chunk = &t->chunks[t->used / CHUNK_SLOTS];

    if (!*chunk && !(*chunk = calloc(CHUNK_SLOTS, sizeof **chunk))) {
        *err = HED_ENOMEM;
        return NULL;
    }
    *index = t->used++;
    return slot_at(t, *index);
}

int
hed_handles_add(struct hed_handles *t, enum hed_kind kind, struct hed_object *o)
{
    uint32_t index = 0;
    int err = 0;

    hed_lock(&t->lock);

    struct slot *s = take_slot_locked(t, &index, &err);

    if (s) {
        s->object = o;
        s->kind = (uint8_t)kind;
        o->handle = (uint64_t)kind << 56 | (uint64_t)s->generation << 32 |
                    (uint64_t)index * HED_HANDLE_ALIGN;
        atomic_store_explicit(&o->refs, 1, memory_order_relaxed);
    }
    hed_unlock(&t->lock);
    return err;
}

/* The index in a handle. A handle that is no multiple of HED_HANDLE_ALIGN has none. */
static uint32_t
index_of(uint64_t handle)
{
    const uint32_t low = (uint32_t)handle;

    return low % HED_HANDLE_ALIGN ? NO_SLOT : low / HED_HANDLE_ALIGN;
}

/* The slot whose object the handle names; NULL if there is no such object of that kind. */
static struct slot *
find_slot_locked(struct hed_handles *t, enum hed_kind kind, uint64_t handle)
{
    struct slot *s = slot_at(t, index_of(handle));

    if (!s || !s->object || handle >> 56 != (uint64_t)kind || s->kind != (uint8_t)kind ||
        s->generation != (uint32_t)(handle >> 32 & (GENERATIONS - 1)))
        return NULL;
    return s;
}

struct hed_object *
hed_handles_get(struct hed_handles *t, enum hed_kind kind, uint64_t handle)
{
    hed_lock_brief(&t->lock);

    const struct slot *s = find_slot_locked(t, kind, handle);
    struct hed_object *o = s ? s->object : NULL;

    /* Relaxed: the lock orders it against removal, and the name's own reference keeps it alive. */
    if (o)
        atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    hed_unlock_brief(&t->lock);
    return o;
}

struct hed_object *
hed_handles_remove(struct hed_handles *t, enum hed_kind kind, uint64_t handle)
{
    hed_lock(&t->lock);

    struct slot *s = find_slot_locked(t, kind, handle);
    struct hed_object *o = s ? s->object : NULL;

    if (s) {
        s->object = NULL;
        s->generation++;
        /* A slot that has used up its generations is retired, so that no old handle becomes valid
         * again. */
        if (s->generation < GENERATIONS) {
            s->next_free = t->first_free;
            t->first_free = index_of(handle);
        }
    }
    hed_unlock(&t->lock);
    return o;
}

static struct hed_object *
ref_at(struct hed_handles *t, enum hed_kind kind, uint32_t index, bool *over)
{
    struct hed_object *o = NULL;

    hed_lock_brief(&t->lock);

    const struct slot *s = slot_at(t, index);

    *over = !s;
    if (s && s->object && s->kind == (uint8_t)kind) {
        o = s->object; /* relaxed: as in hed_handles_get() */
        atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
    }
    hed_unlock_brief(&t->lock);
    return o;
}

int
hed_handles_each(struct hed_handles *t, enum hed_kind kind,
                 int (*fn)(void *arg, struct hed_object *o), void *arg)
{
    bool over = false;
    int err = 0;

    for (uint32_t i = 0; !over && !err; i++) {
        struct hed_object *o = ref_at(t, kind, i, &over);

        if (!o)
            continue;
        err = fn(arg, o);
        hed_object_put(o);
    }
    return err;
}

void
hed_object_put(struct hed_object *o)
{
    /* Release: the thread that destroys the object sees what this user did to it. Acquire: this
     * thread may be that one. */
    if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1)
        o->destroy(o);
}
