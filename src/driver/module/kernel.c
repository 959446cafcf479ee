/* The kernels of libraries. See library.h. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "driver/module/image.h"
#include "driver/module/library.h"

static void
kernel_destroy(struct hed_object *o)
{
    /* The library owns its memory. */
    hed_object_put(&((struct hed_kernel *)o)->library->object);
}

static struct hed_kernel *
kernel_create_locked(struct hed_library *l, const char *name, struct hed_program *p, uint32_t index)
{
    struct hed_kernel *k = calloc(1, sizeof *k);
    const int devices = l->driver->device_count;

    if (!k)
        return NULL;
    k->object.destroy = kernel_destroy;
    k->library = l;
    k->program = p;
    k->index = index;
    k->name = strdup(name);
    k->settings = calloc((size_t)devices, sizeof *k->settings);
    if (!k->name || !k->settings ||
        hed_handles_add(l->driver->handles, HED_KIND_KERNEL, &k->object) != 0) {
        free(k->name);
        free(k->settings);
        free(k);
        return NULL;
    }
    for (int i = 0; i < devices; i++)
        hed_settings_init(&k->settings[i]);
    hed_object_ref(&l->object);
    return k;
}

static uint32_t
kernel_bucket(const struct hed_library *l, const char *name)
{
    return hed_str_hash(name, strlen(name)) & l->bucket_mask;
}

CUresult
hed_library_kernel(struct hed_library *l, struct hed_device *dev, const char *name, CUkernel *out)
{
    struct hed_program *p;
    CUresult r = hed_library_program(l, dev, NULL, &p);

    if (r != CUDA_SUCCESS)
        return r;

    const uint32_t index = hed_program_kernel(p, name);

    if (index == HED_PROGRAM_NONE)
        return CUDA_ERROR_NOT_FOUND;
    hed_lock(&l->lock);

    struct hed_kernel **head = &l->kernels[kernel_bucket(l, name)];
    struct hed_kernel *k = *head;

    while (k && strcmp(k->name, name) != 0)
        k = k->next;
    if (l->unloaded) {
        r = CUDA_ERROR_INVALID_HANDLE;
    } else if (!k && (k = kernel_create_locked(l, name, p, index))) {
        k->next = *head;
        *head = k;
    } else if (!k) {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (r == CUDA_SUCCESS)
        *out = (CUkernel)(uintptr_t)k->object.handle;
    hed_unlock(&l->lock);
    return r;
}

/* Finds the function as every launch but the first does, with a reference. NULL if it has to be
 * made or searched for. */
static struct hed_function *
made_already(struct hed_kernel *k, struct hed_context *c)
{
    struct hed_library *l = k->library;
    struct hed_function *f = NULL;

    hed_lock_brief(&l->lock);

    struct hed_module *m = hed_library_module_in_locked(l, c);

    /* The module is in the list, so it is not being unloaded. Acquire: pairs with the release where
     * the function is made. */
    if (m && m->program == k->program)
        f = atomic_load_explicit(&m->functions[k->index], memory_order_acquire);
    if (f)
        hed_object_ref(&f->object);
    hed_unlock_brief(&l->lock);
    return f;
}

CUresult
hed_kernel_function(struct hed_kernel *k, struct hed_context *c, struct hed_function **out)
{
    struct hed_module *m;

    *out = made_already(k, c);
    if (*out)
        return CUDA_SUCCESS;

    CUresult r = hed_library_module(k->library, c, &m);

    if (r != CUDA_SUCCESS)
        return r;

    /* Names may be thousands of bytes long, so launches do not compare them. */
    const uint32_t i =
        m->program == k->program ? k->index : hed_program_kernel(m->program, k->name);

    r = i == HED_PROGRAM_NONE ? CUDA_ERROR_NOT_FOUND
                              : hed_module_function(m, i, &k->settings[c->device->ordinal], out);
    hed_object_put(&m->object);
    return r;
}
