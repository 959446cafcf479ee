/* Settings of functions, and of kernels on devices: their initial values, and telling the
 * machine. */
#include "driver/module/image.h"
#include "driver/module/library.h"
#include "driver/module/module.h"

void
hed_settings_init(struct hed_settings *s)
{
    atomic_init(&s->max_dynamic_shared, -1);
    atomic_init(&s->carveout, -1);
    for (int i = 0; i < 3; i++)
        atomic_init(&s->cluster[i], 0);
    atomic_init(&s->nonportable_cluster, 0);
    atomic_init(&s->cluster_policy, 0);
    atomic_init(&s->cache_config, CU_FUNC_CACHE_PREFER_NONE);
}

/* The kernel's function in a context, with a reference; NULL if it has not been made. */
static struct hed_function *
made_function(struct hed_kernel *k, struct hed_module *m)
{
    const uint32_t i =
        m->program == k->program ? k->index : hed_program_kernel(m->program, k->name);
    struct hed_function *f = NULL;

    hed_lock(&m->lock);
    if (i != HED_PROGRAM_NONE && !m->unloaded)
        f = m->functions[i];
    if (f)
        hed_object_ref(&f->object);
    hed_unlock(&m->lock);
    return f;
}

/* The module at a position in the list, with a reference, or NULL if it is on another device. False
 * at the end of the list. */
static bool
module_at(struct hed_library *l, unsigned position, const struct hed_device *dev,
          struct hed_module **out)
{
    hed_lock(&l->lock);

    struct hed_library_in_context *at = l->contexts;

    while (at && position-- > 0)
        at = at->next;
    *out = at && at->ctx->device == dev ? at->module : NULL;
    if (*out)
        hed_object_ref(&(*out)->object);
    hed_unlock(&l->lock);
    return at != NULL;
}

CUresult
hed_kernel_tell(struct hed_kernel *k, struct hed_device *dev, CUfunction_attribute a, int value)
{
    struct hed_module *m;
    CUresult r = CUDA_SUCCESS;

    for (unsigned i = 0; r == CUDA_SUCCESS && module_at(k->library, i, dev, &m); i++) {
        struct hed_function *f = m ? made_function(k, m) : NULL;

        if (f) {
            r = dev->driver->machine->function_set(dev->driver->machine_state, f, a, value);
            hed_object_put(&f->object);
        }
        if (m)
            hed_object_put(&m->object);
    }
    return r;
}
