/* A plug-in that was linked with another version of cuBLAS than its program. */
#include "played.h"

int plugin_ask(void *handle, const float *a, const float *b, float *c);

int
plugin_ask(void *handle, const float *a, const float *b, float *c)
{
    const float one = 1, zero = 0;

    return cublasSgemm_v2(handle, 0, 0, 2, 2, 2, &one, a, 2, b, 2, &zero, c, 2);
}
