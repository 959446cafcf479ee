/* The search of front/procs.h. */
#include "front/procs.h"

#include <string.h>

static size_t
first_of(const char *base)
{
    size_t low = 0;
    size_t high = hed_cuda_proc_count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (strcmp(hed_cuda_procs[mid].base, base) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const struct hed_proc *
hed_proc_find(const char *base, int version, cuuint64_t flags,
              CUdriverProcAddressQueryResult *status)
{
    const bool per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const struct hed_proc *best = NULL;
    size_t i = first_of(base);
    bool known = false;

    for (; i < hed_cuda_proc_count && strcmp(hed_cuda_procs[i].base, base) == 0; i++) {
        const struct hed_proc *p = &hed_cuda_procs[i];

        known = true;
        /* Plain variants come first and both are sorted by version, so the last match is the best.
         */
        if (p->since <= version && (!p->ptds || per_thread))
            best = p;
    }
    *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return best;
}
