/* Fat binaries in object files and archives. See link_find.h. */
#include "driver/module/link_find.h"

#include "kernel/fatbin.h"

CUresult
hed_link_find(struct hed_bytes file, CUresult (*fn)(void *arg, struct hed_bytes fatbin), void *arg)
{
    struct hed_find f;
    struct hed_found found;
    int more;

    hed_find_init(&f, file, HED_FIND_SECTIONS);
    while ((more = hed_find_next(&f, &found, NULL)) > 0) {
        const CUresult r =
            found.kind == HED_FOUND_FATBIN && !found.cut ? fn(arg, found.bytes) : CUDA_SUCCESS;

        if (r != CUDA_SUCCESS)
            return r;
    }
    return more < 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
