/* Launching as in CUDA's first years: a function has a block shape, a size of shared memory and a
 * buffer of parameters, which are set one by one before cuLaunch. It is implemented with
 * cuLaunchKernel. The settings stay after a launch here. */
#include "driver/module/old_launch.h"

#include <stdlib.h>
#include <string.h>

#include "driver/module/module.h"

/* Returns a function's state, created if necessary, with its module's lock held. The caller ends
 * with leave_old_state(). */
static CUresult
enter_old_state(struct hed_layer *self, CUfunction handle, struct hed_function **out)
{
    struct hed_function *f;
    const CUresult r = hed_function_get(self, handle, &f);

    if (r != CUDA_SUCCESS)
        return r;
    hed_lock(&f->module->lock);
    if (!f->old && (f->old = calloc(1, sizeof *f->old)))
        f->old->block[0] = f->old->block[1] = f->old->block[2] = 1;
    *out = f;
    if (f->old)
        return CUDA_SUCCESS;
    hed_unlock(&f->module->lock);
    hed_object_put(&f->object);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static void
leave_old_state(struct hed_function *f)
{
    hed_unlock(&f->module->lock);
    hed_object_put(&f->object);
}

CUresult
hed_old_cuFuncSetBlockShape(struct hed_layer *self, struct hed_cuFuncSetBlockShape *a)
{
    struct hed_function *f;

    if (a->x <= 0 || a->y <= 0 || a->z <= 0)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = enter_old_state(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    f->old->block[0] = (uint32_t)a->x;
    f->old->block[1] = (uint32_t)a->y;
    f->old->block[2] = (uint32_t)a->z;
    leave_old_state(f);
    return CUDA_SUCCESS;
}

CUresult
hed_old_cuFuncSetSharedSize(struct hed_layer *self, struct hed_cuFuncSetSharedSize *a)
{
    struct hed_function *f;
    const CUresult r = enter_old_state(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    f->old->shared = a->bytes;
    leave_old_state(f);
    return CUDA_SUCCESS;
}

CUresult
hed_old_cuParamSetSize(struct hed_layer *self, struct hed_cuParamSetSize *a)
{
    struct hed_function *f;

    if (a->numbytes > HED_OLD_PARAMS_MAX)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = enter_old_state(self, a->hfunc, &f);

    if (r != CUDA_SUCCESS)
        return r;
    f->old->param_bytes = a->numbytes;
    leave_old_state(f);
    return CUDA_SUCCESS;
}

static CUresult
set_old_parameter(struct hed_layer *self, CUfunction handle, int offset, const void *from,
                  size_t size)
{
    struct hed_function *f;

    if (!from || offset < 0 || (size_t)offset > HED_OLD_PARAMS_MAX ||
        size > HED_OLD_PARAMS_MAX - (size_t)offset)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = enter_old_state(self, handle, &f);

    if (r != CUDA_SUCCESS)
        return r;
    memcpy(f->old->params + offset, from, size);
    leave_old_state(f);
    return CUDA_SUCCESS;
}

CUresult
hed_old_cuParamSeti(struct hed_layer *self, struct hed_cuParamSeti *a)
{
    return set_old_parameter(self, a->hfunc, a->offset, &a->value, sizeof a->value);
}

CUresult
hed_old_cuParamSetf(struct hed_layer *self, struct hed_cuParamSetf *a)
{
    return set_old_parameter(self, a->hfunc, a->offset, &a->value, sizeof a->value);
}

CUresult
hed_old_cuParamSetv(struct hed_layer *self, struct hed_cuParamSetv *a)
{
    return set_old_parameter(self, a->hfunc, a->offset, a->ptr, a->numbytes);
}

static CUresult
launch_old_grid(struct hed_layer *self, CUfunction handle, int width, int height, CUstream stream)
{
    struct hed_function *f;
    struct hed_old_launch old;

    if (width <= 0 || height <= 0)
        return CUDA_ERROR_INVALID_VALUE;

    const CUresult r = enter_old_state(self, handle, &f);

    if (r != CUDA_SUCCESS)
        return r;
    old = *f->old;
    leave_old_state(f);

    size_t size = old.param_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, old.params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    struct hed_cuLaunchKernel a = {.f = handle,
                                   .gridDimX = (unsigned)width,
                                   .gridDimY = (unsigned)height,
                                   .gridDimZ = 1,
                                   .blockDimX = old.block[0],
                                   .blockDimY = old.block[1],
                                   .blockDimZ = old.block[2],
                                   .sharedMemBytes = old.shared,
                                   .hStream = stream,
                                   .extra = size ? extra : NULL};

    return self->cuda->cuLaunchKernel(self, &a);
}

CUresult
hed_old_cuLaunch(struct hed_layer *self, struct hed_cuLaunch *a)
{
    return launch_old_grid(self, a->f, 1, 1, NULL);
}

CUresult
hed_old_cuLaunchGrid(struct hed_layer *self, struct hed_cuLaunchGrid *a)
{
    return launch_old_grid(self, a->f, a->grid_width, a->grid_height, NULL);
}

CUresult
hed_old_cuLaunchGridAsync(struct hed_layer *self, struct hed_cuLaunchGridAsync *a)
{
    return launch_old_grid(self, a->f, a->grid_width, a->grid_height, a->hStream);
}
