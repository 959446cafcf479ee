/* Plays libcublasLt.so.99. */
#include <string.h>

#include "played.h"

static int
get_attribute(const struct played_descriptor *d, int attribute, void *out, size_t size,
              size_t *written)
{
    if (attribute < 0 || attribute >= PLAYED_ATTRIBUTES || d->sizes[attribute] == 0 ||
        d->sizes[attribute] != size)
        return 7;
    memcpy(out, &d->values[attribute], size);
    *written = size;
    return 0;
}

int
cublasLtMatmulDescGetAttribute(const struct played_descriptor *d, int attribute, void *out,
                               size_t size, size_t *written)
{
    return get_attribute(d, attribute, out, size, written);
}

int
cublasLtMatrixLayoutGetAttribute(const struct played_descriptor *d, int attribute, void *out,
                                 size_t size, size_t *written)
{
    return get_attribute(d, attribute, out, size, written);
}

int
cublasLtMatmul(void *handle, const void *desc, const void *alpha, const void *a,
               const void *layout_a, const void *b, const void *layout_b, const void *beta,
               const void *c, const void *layout_c, void *d, const void *layout_d,
               const void *algorithm, void *workspace, size_t workspace_size, void *stream)
{
    (void)handle;
    (void)desc;
    (void)alpha;
    (void)a;
    (void)layout_a;
    (void)b;
    (void)layout_b;
    (void)beta;
    (void)c;
    (void)layout_c;
    (void)d;
    (void)layout_d;
    (void)algorithm;
    (void)workspace;
    (void)workspace_size;
    (void)stream;
    return 99;
}
