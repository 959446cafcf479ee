/* Programs, arrays, texture and surface objects of a worker: what this side keeps about them. See
 * queue.h.
 *
 * An array has no address here. It is in the index of memory under its handle, so that it is
 * charged to its device and is destroyed with its context. Texture and surface objects have the
 * value that they have at the worker, which may be the same in two contexts.
 */
#include "driver/driver.h"
#include "remote/client/queue.h"

/* ---- programs -------------------------------------------------------------------------------- */

CUresult
hed_remote_program_open(void *m, struct hed_device *dev, struct hed_program *p,
                        const struct hed_image *image, const struct hed_jit_how *how,
                        struct hed_why *why)
{
    return hed_remote_open(m, dev, image, &p->code, how, why);
}

void
hed_remote_program_close(void *m, struct hed_program *p)
{
    hed_remote_close(m, p->code);
}

/* Whether kernels are loaded eagerly is a setting of the worker. */
void
hed_remote_module_load(void *m, struct hed_module *mod)
{
}

/* The worker fills in its variables, none of which is listed here. */
void
hed_remote_fill_vars(void *m, struct hed_program *p, const uint64_t *addresses,
                     const uint64_t *where)
{
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The array is in the index. Keeps it there if `made`, the result of making it at the worker, is
 * success; else takes it out again. */
static CUresult
keep_or_leave(struct hed_context *c, uint64_t handle, CUresult made)
{
    if (made == CUDA_SUCCESS)
        hed_array_own(c->device->driver, handle, handle);
    else
        hed_array_leave(c, handle);
    return made;
}

CUresult
hed_remote_array_made(void *m, struct hed_context *c, struct hed_array *a, uint64_t bytes)
{
    const CUresult r = hed_array_enter(c, a->object.handle, bytes);

    if (r != CUDA_SUCCESS)
        return r;
    a->key = a->object.handle;
    return keep_or_leave(c, a->key, hed_remote_make_array(m, c, a));
}

CUresult
hed_remote_mipmap_made(void *m, struct hed_context *c, struct hed_mipmap *mm, uint64_t bytes)
{
    const CUresult r = hed_array_enter(c, mm->object.handle, bytes);

    if (r != CUDA_SUCCESS)
        return r;
    mm->key = mm->object.handle;
    return keep_or_leave(c, mm->key, hed_remote_make_mipmap(m, c, mm));
}

/* The worker destroys the array in the order of calls, and knows itself what uses it. */
CUresult
hed_remote_array_quiesce(void *m, struct hed_context *c, const struct hed_allocation *a)
{
    return CUDA_SUCCESS;
}

void
hed_remote_array_gone(void *m, const struct hed_allocation *a, uint64_t handle)
{
    if (handle)
        hed_remote_drop_array(m, a->ctx_handle, handle);
    hed_array_discharge(a->device->driver, a);
}

/* ---- objects --------------------------------------------------------------------------------- */

CUresult
hed_remote_texture_made(void *m, struct hed_context *c, const struct hed_texture *t,
                        const struct hed_texture_given *given, uint64_t *value)
{
    return hed_remote_make_texture(m, c, &given->resource, &given->texture,
                                   given->has_view ? &given->view : NULL, value);
}

CUresult
hed_remote_surface_made(void *m, struct hed_context *c, const struct hed_surface *s,
                        const CUDA_RESOURCE_DESC_v1 *given, uint64_t *value)
{
    return hed_remote_make_surface(m, c, given, value);
}

/* Values are unique in a context only. On a GPU they are small numbers, never more than 48 bits. */
uint64_t
hed_remote_object_key(void *m, const struct hed_context *c, bool surface, uint64_t value)
{
    return value + ((c->id * 2 + surface) << 48);
}

CUresult
hed_remote_object_gone(void *m, struct hed_context *c, bool surface, uint64_t value)
{
    hed_remote_drop_object(m, c, surface, value);
    return CUDA_SUCCESS;
}
