/* Descriptions of kernels for the client. See library.h. */
#include <string.h>

#include "base/number.h"
#include "remote/server/worker/library.h"
#include "remote/server/worker/required.h"
#include "remote/server/worker/worker.h"

#define SMALL_IMAGE (1u << 20) /* bytes */
#define BLOCK_MAX 1024         /* threads that every device supports */

static void
describe_kernel_params(struct hed_worker *w, CUkernel kernel, struct hed_buf *out, uint32_t *count,
                       uint32_t *bytes)
{
    *bytes = 0;
    for (*count = 0; *count < HED_PARAMS_MAX; ++*count) {
        size_t offset = 0, size = 0;

        if (hed_worker_do(w, cuKernelGetParamInfo, .kernel = kernel, .paramIndex = *count,
                          .paramOffset = &offset, .paramSize = &size) != CUDA_SUCCESS)
            return;
        if (!hed_range_fits(offset, size, HED_PARAMS_MAX))
            return;

        const struct hed_wire_param p = {(uint32_t)offset, (uint32_t)size};

        if (out)
            hed_buf_add(out, &p, sizeof p);
        *bytes = offset + size > *bytes ? (uint32_t)(offset + size) : *bytes;
    }
}

static CUresult
describe_attributes(struct hed_worker *w, CUkernel kernel, int device, int32_t *to)
{
    CUfunction f = NULL;

    for (int i = 0; i < HED_WIRE_FUNCTION_ATTRIBUTES; i++) {
        CUresult r =
            hed_worker_do(w, cuKernelGetAttribute, .pi = &to[i], .attrib = (CUfunction_attribute)i,
                          .kernel = kernel, .dev = device);

        /* Some devices need no context for this. Otherwise the function in the current context is
         * asked. */
        if (r != CUDA_SUCCESS && !f)
            r = hed_worker_do(w, cuKernelGetFunction, .pFunc = &f, .kernel = kernel);
        if (f)
            r = hed_worker_do(w, cuFuncGetAttribute, .pi = &to[i],
                              .attrib = (CUfunction_attribute)i, .hfunc = f);
        if (r != CUDA_SUCCESS)
            return r;
    }
    return CUDA_SUCCESS;
}

CUresult
hed_worker_describe(struct hed_worker *w, struct hed_worker_library *lib, uint32_t index,
                    int device, bool with_name, bool describe, struct hed_buf *out)
{
    static const char zeros[8];
    const size_t at = out->size;
    struct hed_wire_kernel k = {.described = describe};
    const char *name = NULL;
    CUresult r = CUDA_SUCCESS;

    hed_buf_add(out, &k, sizeof k);
    if (describe) {
        r = describe_attributes(w, lib->kernels[index], device, k.attributes);
        describe_kernel_params(w, lib->kernels[index], out, &k.params, &lib->param_bytes[index]);
    }
    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuKernelGetName, .name = &name, .hfunc = lib->kernels[index]);
    if (r != CUDA_SUCCESS)
        return r;
    /* A large image for a GPU is read only if the kernel has bounds at all. */
    if (describe && (w->backend == HED_BACKEND_CPU || lib->image_size < SMALL_IMAGE ||
                     k.attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] < BLOCK_MAX)) {
        if (!lib->required)
            lib->required = hed_required_read(lib->image, lib->image_size);
        (void)hed_required_find(lib->required, name, k.required);
    }
    if (with_name) {
        k.name = (uint32_t)strlen(name) + 1;
        hed_buf_add(out, name, k.name);
    }
    hed_buf_add(out, zeros, (8 - (out->size - at) % 8) % 8);
    if (out->err)
        return CUDA_ERROR_OUT_OF_MEMORY;
    k.size = (uint32_t)(out->size - at);
    memcpy(out->data + at, &k, sizeof k);
    return CUDA_SUCCESS;
}

uint32_t
hed_worker_param_bytes(struct hed_worker *w, struct hed_worker_library *lib, uint32_t index)
{
    uint32_t count;

    if (lib->param_bytes[index] == HED_PARAMS_UNKNOWN)
        describe_kernel_params(w, lib->kernels[index], NULL, &count, &lib->param_bytes[index]);
    return lib->param_bytes[index];
}
