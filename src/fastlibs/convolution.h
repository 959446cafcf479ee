/* A convolution as cuDNN is asked for it, and how it is computed as matrix products.
 *
 *     forward     Y = alpha * conv(X, W) + beta * Y
 *     to data     X = alpha * (gradient of X from Y's and W) + beta * X
 *     to filter   W = alpha * (gradient of W from Y's and X) + beta * W
 *
 * It is cuDNN's cross-correlation: a filter is not turned around. There are up to three spatial
 * dimensions; those that a tensor does not have are 1 long.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fastlibs/product.h"

enum hed_convolution_kind {
    HED_CONVOLUTION_FORWARD,
    HED_CONVOLUTION_TO_DATA,
    HED_CONVOLUTION_TO_FILTER,
    HED_CONVOLUTION_KINDS
};

#define HED_CONVOLUTION_SPACE 3 /* spatial dimensions */
#define HED_CONVOLUTION_DIMS (2 + HED_CONVOLUTION_SPACE)

/* X: images, channels, space; Y: images, filters, space; W: filters, channels of a group, space.
 * Strides are elements. */
struct hed_convolution_tensor {
    void *data;
    int64_t size[HED_CONVOLUTION_DIMS], stride[HED_CONVOLUTION_DIMS];
};

struct hed_convolution {
    enum hed_convolution_kind kind;
    enum hed_product_type type; /* of all three */
    struct hed_convolution_tensor x, y, w;
    /* Of space. `before` and `after` are zeros around X. */
    int64_t before[HED_CONVOLUTION_SPACE], after[HED_CONVOLUTION_SPACE];
    int64_t step[HED_CONVOLUTION_SPACE], dilation[HED_CONVOLUTION_SPACE];
    double alpha, beta;
};

/* Can hed_convolution_run() compute it, as far as sizes and types say? */
bool hed_convolution_is_sound(const struct hed_convolution *c);

/* Bytes from a sound tensor's first element to behind its last one; 0: more than there are. */
uint64_t hed_convolution_extent(const struct hed_convolution_tensor *t, enum hed_product_type type);

/* Gets memory for hed_convolution_run() of this one, which is sound. False: there is none. */
bool hed_convolution_prepare(const struct hed_convolution *c);

/* Computes a sound convolution that was prepared for. */
void hed_convolution_run(const struct hed_convolution *c, const struct hed_blas *blas);
