/* Tensors as cuDNN describes them: up to five dimensions, the last three of them space. Those that
 * a tensor does not have are 1 long.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fastlibs/product.h"

#define HED_TENSOR_SPACE 3 /* spatial dimensions */
#define HED_TENSOR_DIMS (2 + HED_TENSOR_SPACE)

/* Images, channels, space; of filters: filters, channels of a group, space. Strides are elements.
 */
struct hed_tensor {
    void *data;
    int64_t size[HED_TENSOR_DIMS], stride[HED_TENSOR_DIMS];
};

/* Can its elements be addressed? */
bool hed_tensor_is_sound(const struct hed_tensor *t, enum hed_product_type type);

/* Do no two elements lie in the same place? Only what is written must be so. */
bool hed_tensor_is_apart(const struct hed_tensor *t);

/* Bytes from a tensor's first element to behind its last one; 0: more than there are. */
uint64_t hed_tensor_extent(const struct hed_tensor *t, enum hed_product_type type);

/* Elements from one place of space to the next; 0: they are not a fixed distance apart. */
int64_t hed_tensor_step(const struct hed_tensor *t);

/* Elements that are `stride` apart, as floats. The type is F32, F16 or BF16. */
void hed_tensor_read(float *to, const void *from, enum hed_product_type type, int64_t stride,
                     int64_t n);

/* to = from + beta * to, of which nothing is read if beta is 0. */
void hed_tensor_write(char *to, enum hed_product_type type, int64_t stride, const float *from,
                      double beta, int64_t n);
