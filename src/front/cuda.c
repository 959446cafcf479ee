/* libcuda.so.1: the entry points that cannot be generated.
 *
 * cuGetProcAddress must hand out the addresses of our functions. On a backend that uses NVIDIA's
 * library, NVIDIA's answer comes first: what it refuses is refused. If it answers with a function
 * that our export does not stand for (a signature newer than our spec), the program gets that
 * function behind a stub that counts its calls.
 */
#include <string.h>

#include "core/foreign.h"
#include "core/layer.h"
#include "core/session.h"
#include "front/procs.h"
#include "gen/cuda_front.h"

/* The address that the program gets for the one that NVIDIA gave, or, on a soft backend, for none.
 * NULL: not found. */
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

/* What both forms do after the chain has answered. A missing function is an error only in the older
 * form, which then leaves *pfn alone (measured on 580). */
static CUresult
answer_proc(CUresult r, const char *symbol, void **pfn, int version, cuuint64_t flags,
            CUdriverProcAddressQueryResult *status, bool older)
{
    CUdriverProcAddressQueryResult found;

    if (r != CUDA_SUCCESS || !symbol || !pfn)
        return r;

    const bool soft = hed_session_backend()->type->symbol == NULL;
    const struct hed_proc *own = hed_proc_find(symbol, version, flags, &found);

    if (soft) {
        /* NVIDIA's runtime asks for "" first and expects success; the older form finds nothing. */
        if (*symbol == 0 && !older)
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        if (status)
            *status = found;
        if (found != CU_GET_PROC_ADDRESS_SUCCESS && older)
            return CUDA_ERROR_NOT_FOUND;
        *pfn = NULL;
        if (found != CU_GET_PROC_ADDRESS_SUCCESS)
            return CUDA_SUCCESS;
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

    return answer_proc(top->cuda->cuGetProcAddress(top, &a), symbol, pfn, cudaVersion, flags, NULL,
                       true);
}

HED_EXPORT CUresult
cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                    CUdriverProcAddressQueryResult *symbolStatus)
{
    struct hed_cuGetProcAddress_v2 a = {symbol, pfn, cudaVersion, flags, symbolStatus};
    struct hed_layer *top = hed_top();

    return answer_proc(top->cuda->cuGetProcAddress_v2(top, &a), symbol, pfn, cudaVersion, flags,
                       symbolStatus, false);
}
