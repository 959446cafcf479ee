/* Arrays, textures and surfaces on this machine: memory, and descriptors in memory that kernels can
 * read. */
#include "driver/memory/array.h"
#include "base/number.h"
#include "driver/memory/memory.h"
#include "driver/memory/memory_calls.h"
#include "driver/memory/memory_index.h"
#include "driver/near/near.h"
#include "driver/parts.h"

CUresult
hed_near_array_made(void *m, struct hed_context *c, struct hed_array *a, uint64_t bytes)
{
    const CUresult r = hed_memory_take(c, HED_MEMORY_ARRAY, bytes, 0, &a->key);

    if (r != CUDA_SUCCESS)
        return r;
    a->image.at = a->key;
    hed_array_own(c->device->driver, a->key, a->object.handle);
    return CUDA_SUCCESS;
}

CUresult
hed_near_mipmap_made(void *m, struct hed_context *c, struct hed_mipmap *mm, uint64_t bytes)
{
    struct hed_driver *d = c->device->driver;
    const CUresult r = hed_memory_take(c, HED_MEMORY_ARRAY, bytes, 0, &mm->key);
    uint64_t at = mm->key;

    if (r != CUDA_SUCCESS)
        return r;
    for (unsigned i = 0; i < mm->levels; i++) {
        struct hed_array *a = hed_array_find(d, (CUarray)(uintptr_t)mm->level[i]);

        if (!a)
            continue;
        a->image.at = at;
        at += hed_round_up(a->image.slice * a->image.depth, HED_LEVEL_ALIGN);
        hed_object_put(&a->object);
    }
    hed_array_own(d, mm->key, mm->object.handle);
    return CUDA_SUCCESS;
}

CUresult
hed_near_array_quiesce(void *m, struct hed_context *c, const struct hed_allocation *a)
{
    return hed_memory_quiesce(c, a);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static uint64_t
number_of_new(struct hed_near *n, const struct hed_context *c, uint64_t descriptor)
{
    uint64_t value;

    hed_lock(&n->objects_lock);
    value = hed_numbers_add_locked(&hed_near_context(c)->objects, (void *)(uintptr_t)descriptor);
    hed_unlock(&n->objects_lock);
    return value;
}

static CUresult
publish_descriptor(void *m, struct hed_context *c, const void *descriptor, size_t size,
                   uint64_t *value)
{
    struct hed_near *n = m;
    uint64_t at;
    CUresult r = hed_memory_take(c, HED_MEMORY_DESCRIPTOR, size, 0, &at);

    if (r != CUDA_SUCCESS)
        return r;
    n->executor->memory.copy(m, at, (uint64_t)(uintptr_t)descriptor, size);
    *value = number_of_new(n, c, at);
    if (*value == 0) {
        (void)hed_memory_give(c->device->driver, HED_MEMORY_DESCRIPTOR, at);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return r;
}

CUresult
hed_near_texture_made(void *m, struct hed_context *c, const struct hed_texture *t,
                      const struct hed_texture_given *given, uint64_t *value)
{
    return publish_descriptor(m, c, t, sizeof *t, value);
}

CUresult
hed_near_surface_made(void *m, struct hed_context *c, const struct hed_surface *s,
                      const CUDA_RESOURCE_DESC_v1 *given, uint64_t *value)
{
    return publish_descriptor(m, c, s, sizeof *s, value);
}

/* The descriptor's address. */
uint64_t
hed_near_object_key(void *m, const struct hed_context *c, bool surface, uint64_t value)
{
    return (uintptr_t)hed_numbers_find(&hed_near_context(c)->objects, value);
}

CUresult
hed_near_object_gone(void *m, struct hed_context *c, bool surface, uint64_t value)
{
    struct hed_driver *d = c->device->driver;
    struct hed_near *n = m;
    const uint64_t at = hed_near_object_key(m, c, surface, value);

    hed_lock(&d->memory_lock);

    const struct hed_allocation *found = hed_memory_in_locked(d->memory, HED_TREE_DESCRIPTORS, at);
    const struct hed_allocation entry = found ? *found : (struct hed_allocation){0};

    hed_unlock(&d->memory_lock);

    const CUresult r = found ? hed_memory_quiesce(c, &entry) : CUDA_SUCCESS;

    hed_lock(&n->objects_lock); /* kernels that still ran have ended */
    if (at && hed_near_object_key(m, c, surface, value) == at)
        hed_numbers_remove_locked(&hed_near_context(c)->objects, value);
    hed_unlock(&n->objects_lock);
    return r;
}
