/* libcuda.so.1: the entry points that cannot be generated.
 *
 * cuGetProcAddress hands out addresses, and must hand out ours. On a backend that stands on
 * NVIDIA's library, NVIDIA's answer comes first: what it refuses is refused, and where it answers
 * with a function other than the one our export stands for (a signature newer than our spec), that
 * function is handed through, behind a stub that counts its calls.
 */
#include <string.h>

#include "core/foreign.h"
#include "core/layer.h"
#include "core/session.h"
#include "front/procs.h"
#include "gen/cuda_front.h"

/* The address to give for one NVIDIA gave, or, on a soft backend, for none. NULL: not found. */
static void *
ours_for(void *theirs, const char *symbol, const struct hed_proc *own)
{
    struct hed_layer *backend = hed_session_backend();

    if (!backend->type->symbol)
        return own ? own->function : NULL;
    if (own && backend->type->symbol(backend, HED_API_CUDA, own->name) == theirs)
        return own->function;
    return hed_foreign_wrap(theirs, symbol);
}

/* What both forms do after the chain has answered. What is missing is an error of the older form
 * only (measured on 580). */
static CUresult
answer(CUresult r, const char *symbol, void **pfn, int version, cuuint64_t flags,
       CUdriverProcAddressQueryResult *status, CUresult missing)
{
    CUdriverProcAddressQueryResult found;

    if (r != CUDA_SUCCESS || !symbol || !pfn)
        return r;

    const bool soft = hed_session_backend()->type->symbol == NULL;
    const struct hed_proc *own = hed_proc_find(symbol, version, flags, &found);

    if (soft) {
        /* NVIDIA's runtime asks for "" first and expects success. */
        if (*symbol == 0)
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        if (status)
            *status = found;
        *pfn = NULL;
        if (found != CU_GET_PROC_ADDRESS_SUCCESS)
            return missing;
    } else if (!*pfn) {
        return r;
    }
    *pfn = ours_for(*pfn, symbol, own);
    return CUDA_SUCCESS;
}

HED_EXPORT CUresult
cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    struct hed_cuGetProcAddress a = {symbol, pfn, cudaVersion, flags};
    struct hed_layer *top = hed_top();

    return answer(top->cuda->cuGetProcAddress(top, &a), symbol, pfn, cudaVersion, flags, NULL,
                  CUDA_ERROR_NOT_FOUND);
}

HED_EXPORT CUresult
cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *symbolStatus)
{
    struct hed_cuGetProcAddress_v2 a = {symbol, pfn, cudaVersion, flags, symbolStatus};
    struct hed_layer *top = hed_top();

    return answer(top->cuda->cuGetProcAddress_v2(top, &a), symbol, pfn, cudaVersion, flags,
                  symbolStatus, CUDA_SUCCESS);
}
