/* The driver's functions by name. */
#include "cudart/driver.h"
#include "cudart/front.h"
#include "gen/cudart_calls.h"

enum { /* cudaGetDriverEntryPointFlags */
       ENTRY_DEFAULT = 0,
       ENTRY_LEGACY = 1,
       ENTRY_PER_THREAD = 2,
};

cudaError_t
hed_rt_cudaGetDriverEntryPointByVersion(const struct hed_rt_driver *cu, const char *symbol,
                                        void **funcPtr, unsigned int cudaVersion,
                                        unsigned long long flags,
                                        cudaDriverEntryPointQueryResult *driverStatus)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult r;

    if (!symbol || !funcPtr || flags > ENTRY_PER_THREAD)
        return cudaErrorInvalidValue;
    /* What the default is depends on how the caller was compiled. */
    if (flags == ENTRY_DEFAULT && cu == &hed_rt_per_thread)
        flags = ENTRY_PER_THREAD;
    r = cu->cuGetProcAddress_v2(symbol, funcPtr, (int)cudaVersion, flags, &status);
    if (r == CUDA_ERROR_NOT_FOUND && driverStatus)
        r = CUDA_SUCCESS;
    if (r == CUDA_SUCCESS && driverStatus)
        *driverStatus = (cudaDriverEntryPointQueryResult)status;
    return (cudaError_t)r;
}

cudaError_t
hed_rt_cudaGetDriverEntryPoint(const struct hed_rt_driver *cu, const char *symbol, void **funcPtr,
                               unsigned long long flags,
                               cudaDriverEntryPointQueryResult *driverStatus)
{
    return hed_rt_cudaGetDriverEntryPointByVersion(cu, symbol, funcPtr, (unsigned)hed_rt_version,
                                                   flags, driverStatus);
}

/* Until CUDA 11 there was no status to tell what is missing, and what is not found leaves the
 * caller's pointer as it is. */
cudaError_t
hed_rt_cudaGetDriverEntryPoint_11(const struct hed_rt_driver *cu, const char *symbol,
                                  void **funcPtr, unsigned long long flags)
{
    void *found = NULL;
    const cudaError_t r =
        hed_rt_cudaGetDriverEntryPoint(cu, symbol, funcPtr ? &found : NULL, flags, NULL);

    if (r == cudaSuccess && !found)
        return cudaErrorSymbolNotFound;
    if (r == cudaSuccess)
        *funcPtr = found;
    return r;
}
