/* Which calls may be deferred, and what must be copied for that. The program's thread examines the
 * call and asks the driver about its memory. A call is deferred only if all answers are certain. */
#include <limits.h>
#include <stddef.h>

#include "gen/cuda_sets.h"
#include "share/record/engine.h"

#define GRID_YZ_MAX 65535u

/* ---- launches -------------------------------------------------------------------------------- */

/* Whether a launch with this grid fails for every kernel. */
static bool
grid_is_bad(unsigned x, unsigned y, unsigned z)
{
    return x == 0 || y == 0 || z == 0 || x > INT_MAX || y > GRID_YZ_MAX || z > GRID_YZ_MAX;
}

static uint64_t
mix_grid(uint64_t hash, unsigned x, unsigned y, unsigned z)
{
    return hed_record_mix(hed_record_mix(hash, (uint64_t)x << 32 | y), z);
}

/* Packed arguments in `extra`. False: they do not have the documented form. */
static bool
examine_extra(struct hed_record_candidate *t, void **extra, size_t at)
{
    const void *data = NULL;
    const size_t *size = NULL;

    for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
        if (i == 4)
            return false;
        if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            data = extra[i + 1];
        else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = extra[i + 1];
        else
            return false;
    }
    if (!data || !size || *size > HED_RECORD_MAX)
        return false;
    t->data = data;
    t->size = *size;
    t->data_at = at;
    t->packed = true;
    t->kind = hed_record_mix(t->kind, t->size + 1);
    return true;
}

static size_t
offset_in(const struct hed_record_candidate *t, const void *argument)
{
    return (size_t)((const char *)argument - (const char *)t->args);
}

/* Finds the kernel's arguments. */
static inline bool
examine_arguments(struct hed_record_candidate *t, const struct hed_record_roles *a)
{
    void **params = *a->params;
    void **extra = a->extra ? *a->extra : NULL;

    if (extra && params)
        return false;
    if (extra)
        return examine_extra(t, extra, offset_in(t, a->extra));
    t->has_params = true;
    t->params = params;
    t->params_at = offset_in(t, a->params);
    t->kind = hed_record_mix(t->kind, params == NULL);
    return true;
}

/* Adds the values of an attribute for which a launch may be refused to its kind, and notes its
 * event. False: the attribute is unknown, or the launch would write an answer for the caller. */
static bool
examine_attribute(struct hed_record_candidate *t, const CUlaunchAttribute *a)
{
    const CUlaunchAttributeValue *v = &a->value;

    t->kind = hed_record_mix(t->kind, (uint64_t)a->id);
    switch ((int)a->id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        t->kind = mix_grid(t->kind, v->clusterDim.x, v->clusterDim.y, v->clusterDim.z);
        return true;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        t->kind = hed_record_mix(t->kind, (uint32_t)v->cooperative);
        return true;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
        return true;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        if (t->touches)
            return false;
        t->touches = (uint64_t)(uintptr_t)v->programmaticEvent.event;
        return t->touches;
    default:
        return false;
    }
}

/* The attributes of a launch that has a config. */
static bool
examine_config(struct hed_record_candidate *t, const struct hed_record_roles *a)
{
    const CUlaunchConfig *k = a->config;

    if (k->numAttrs > 64 || (k->numAttrs && !k->attrs))
        return false;
    if (k->numAttrs)
        t->kind = mix_grid(t->kind, a->grid_x, a->grid_y, a->grid_z);
    for (unsigned i = 0; i < k->numAttrs; i++)
        if (!examine_attribute(t, &k->attrs[i]))
            return false;
    t->config = k;
    return true;
}

static inline __attribute__((always_inline)) bool
examine_launch(struct hed_recorder *r, struct hed_record_candidate *t,
               const struct hed_record_roles *a)
{
    /* Without a config, where there should be one, the grid is 0. */
    if (!a->kernel || grid_is_bad(a->grid_x, a->grid_y, a->grid_z))
        return false;
    t->function = (CUfunction)(uintptr_t)a->kernel;
    t->shared = a->shared;
    t->kind = hed_record_mix(t->id, a->kernel);
    t->kind = hed_record_mix(t->kind, (uint64_t)a->block_x << 32 | a->shared);
    t->kind = hed_record_mix(t->kind, (uint64_t)a->block_y << 32 | a->block_z);
    /* The driver refuses a cooperative grid that does not fit on the GPU as a whole. */
    if (a->whole)
        t->kind = mix_grid(t->kind, a->grid_x, a->grid_y, a->grid_z);
    return (!a->config || examine_config(t, a)) && examine_arguments(t, a);
}

/* ---- graphs, events, functions, words -------------------------------------------------------- */

static bool
examine_object(struct hed_recorder *r, struct hed_record_candidate *t,
               const struct hed_record_roles *a)
{
    t->touches = a->object;
    return a->object && a->flags == 0;
}

static bool
examine_host_function(struct hed_recorder *r, struct hed_record_candidate *t,
                      const struct hed_record_roles *a)
{
    return a->function;
}

/* With stream=own the callback must get the program's stream (see stream.c). */
static bool
examine_callback(struct hed_recorder *r, struct hed_record_candidate *t,
                 const struct hed_record_roles *a)
{
    return a->callback && a->flags == 0 && !r->own;
}

static bool
examine_free(struct hed_recorder *r, struct hed_record_candidate *t,
             const struct hed_record_roles *a)
{
    t->frees = a->address;
    return hed_record_is_allocation(r, t->frees);
}

/* Words in memory that a stream waits for or writes. The flags decide what the driver refuses. */
static bool
examine_word(struct hed_recorder *r, struct hed_record_candidate *t,
             const struct hed_record_roles *a)
{
    t->kind = hed_record_mix(t->id, a->flags);
    return a->address % a->bytes == 0 && (hed_record_is_device(r, a->address, a->bytes) ||
                                          hed_record_is_pinned(r, a->address, a->bytes));
}

/* ---- all ------------------------------------------------------------------------------------- */

unsigned
hed_record_sort(enum hed_cuda_call id)
{
    const struct hed_call_info *info = &hed_cuda_info[id];

    if (!(info->flags & HED_CALL_DEFER))
        return 0;
    if (info->does == HED_DOES_LAUNCH)
        return HED_RECORD_LAUNCHES;
    return info->does == HED_DOES_ORDER ? HED_RECORD_ORDER : HED_RECORD_COPIES;
}

/* See copy.c. */
static bool
examine_copy(struct hed_recorder *r, struct hed_record_candidate *t,
             const struct hed_record_roles *a)
{
    return hed_record_examine_copy(r, t, a);
}

#define EXAMINE(call, class, ...)                                              \
    case HED_##call: {                                                         \
        const struct hed_##call *a = t->args;                                  \
                                                                               \
        (void)a; /* some classes have no roles */                              \
        return examine_##class(r, t, &(struct hed_record_roles){__VA_ARGS__}); \
    }

/* One case for each call that says defer= in the spec. */
static bool
examine_by_class(struct hed_recorder *r, struct hed_record_candidate *t)
{
    switch ((int)t->id) {
        HED_CUDA_DEFER(EXAMINE)
    default:
        return false;
    }
}

bool
hed_record_examine(struct hed_recorder *r, struct hed_record_candidate *t)
{
    if (!examine_by_class(r, t))
        return false;
    /* Every call needs a kind that has succeeded in this context: in a context that has failed, no
     * call succeeds. */
    t->kind = t->kind ? t->kind : hed_record_mix(1, t->id);
    t->kind = hed_record_mix(t->kind, (uint64_t)(uintptr_t)t->context) | 1;
    return true;
}
