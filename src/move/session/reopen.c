/* Libraries at another worker: the same images under the same numbers. See snap.h.
 *
 * The other device may be of another kind, so its kernels may come from another part of the image,
 * and in another order. They must have the same names and parameters.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "kernel/fatbin.h"
#include "move/session/early.h"
#include "move/session/reopen.h"
#include "remote/client.h"

static bool
has_same_params(const struct hed_code_kernel *a, const struct hed_code_kernel *b)
{
    if (a->param_count != b->param_count)
        return false;
    for (uint32_t i = 0; i < a->param_count; i++)
        if (a->params[i].offset != b->params[i].offset || a->params[i].size != b->params[i].size)
            return false;
    return true;
}

/* Finds the kernels of a library among those that a new worker has found in its image. */
static CUresult
find_kernels(const struct hed_remote_library *c, const struct hed_remote_library *there,
             uint32_t **out, struct hed_why *why)
{
    const uint32_t count = c->code.kernel_count, others = there->code.kernel_count;
    uint32_t *order = malloc((count + (size_t)1) * sizeof *order);

    if (!order)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0, at = 0; i < count; i++) {
        uint32_t looked = 0;

        /* Usually the next one. */
        while (looked < others && strcmp(c->kernels[i].name, there->kernels[at % others].name) != 0)
            looked++, at++;
        /* Acquire: pairs with the release in learn_kernel(). Relaxed: no other thread has it. */
        if (looked == others ||
            (atomic_load_explicit(&c->described[i], memory_order_acquire) &&
             atomic_load_explicit(&there->described[at % others], memory_order_relaxed) &&
             !has_same_params(&c->kernels[i], &there->kernels[at % others]))) {
            hed_why_set(why, "the server's device has no kernel %s with the same parameters",
                        c->kernels[i].name);
            free(order);
            return CUDA_ERROR_NOT_FOUND;
        }
        order[i] = at++ % others;
    }
    *out = order;
    return CUDA_SUCCESS;
}

CUresult
hed_remote_open_at(struct hed_remote *r, struct hed_remote_library *c,
                   struct hed_remote_library **out, uint32_t **order, struct hed_why *why)
{
    struct hed_remote_library *there = calloc(1, sizeof *there);
    struct hed_remote_opening o = {
        .remote = r, .code = there, .device = c->device, .how = &c->how, .context = c->context};
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

    if (!there)
        return result;
    there->remote = r;
    there->number = c->number;
    result = hed_remote_open_there(&o, &c->image, why);
    if (result != CUDA_SUCCESS) {
        hed_why_set(why, "the server cannot load code of the program (%s%s): CUDA error %d",
                    c->code.kernel_count ? "with the kernel " : "without kernels",
                    c->code.kernel_count ? c->kernels[0].name : "", (int)result);
    } else {
        result = find_kernels(c, there, order, why);
        if (result != CUDA_SUCCESS)
            hed_remote_close_there(there);
    }
    if (result == CUDA_SUCCESS)
        *out = there;
    else
        hed_remote_library_free(there);
    return result;
}

static CUresult
reopen_library(struct hed_remote *r, struct hed_remote *standby, struct hed_remote_library *c,
               struct hed_why *why)
{
    struct hed_remote_library *there;
    uint32_t *order;

    if (!hed_remote_early_library(standby, c, &order)) {
        const CUresult result = hed_remote_open_at(r, c, &there, &order, why);

        if (result != CUDA_SUCCESS)
            return result;
        hed_remote_library_free(there);
    }
    c->before = c->order;
    c->order = order;
    c->reopened = true;
    return CUDA_SUCCESS;
}

/* The list does not change: the program is held. */
CUresult
hed_remote_open_again(struct hed_remote *r, struct hed_remote *standby, struct hed_why *why)
{
    CUresult result = CUDA_SUCCESS;

    for (struct hed_remote_library *c = r->code->libraries; c && result == CUDA_SUCCESS;
         c = c->next)
        result = reopen_library(r, standby, c, why);
    return result;
}

void
hed_remote_opened(struct hed_remote *r, bool accepted)
{
    for (struct hed_remote_library *c = r->code->libraries; c; c = c->next) {
        uint32_t *other = accepted ? c->before : c->order;

        if (!c->reopened) /* the worker was refused before it came to this one */
            continue;
        c->reopened = false;
        if (!accepted)
            c->order = c->before;
        c->before = NULL;
        free(other);
    }
}

/* Of a program that is linked by the worker, the parts are searched. */
static bool
packed_imports(const struct hed_image *image, struct hed_bytes packed, const char *name)
{
    const uint32_t magic = HED_WIRE_LINKED_MAGIC;
    struct hed_image part;

    if (packed.size < sizeof magic || memcmp(packed.data, &magic, sizeof magic) != 0)
        return hed_image_imports(packed, name);
    for (size_t i = 0; image->parts && image->parts[i]; i++)
        if (hed_image_at(image->parts[i], &part, NULL) == 0 && hed_image_imports(part.bytes, name))
            return true;
    return false;
}

/* The heap of a device is the driver's own, and nobody else knows what is in it. */
bool
hed_remote_allocates(struct hed_remote *r, struct hed_remote_library *c)
{
    struct hed_profile profile;
    struct hed_bytes bytes;
    struct hed_buf made;

    if (c->allocates)
        return c->allocates > 0;
    hed_remote_profile_there(r, c->device, &profile);
    hed_buf_init(&made, HED_IMAGE_MAX);
    if (hed_remote_pack(&c->image, &profile, r->devices[c->device->ordinal].real, &made, &bytes) ==
        0)
        c->allocates = packed_imports(&c->image, bytes, "malloc") ? 1 : -1;
    hed_buf_fini(&made);
    return c->allocates > 0;
}

const char *
hed_remote_allocating_kernel(struct hed_remote *r)
{
    for (struct hed_remote_library *c = r->code->libraries; c; c = c->next)
        if (hed_remote_allocates(r, c))
            return c->code.kernel_count ? c->kernels[0].name : "";
    return NULL;
}
