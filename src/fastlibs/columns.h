/* Tensors of a convolution as matrices of floats. See convolution.c for what they are for.
 *
 * Matrices are stored row by row. A place is an element of Y in one image, for all filters; places
 * are counted through all images. A row of columns is an element of a filter.
 */
#pragma once

#include "fastlibs/convolution.h"

/* Some filters of a group and some places. */
struct hed_columns_part {
    int64_t group;
    int64_t filter, filters; /* of all groups' */
    int64_t place, places;
};

/* Some images of a group. */
struct hed_columns_images {
    int64_t group, image, images;
};

/* Elements from one place of space to the next; 0: they are not a fixed distance apart. */
int64_t hed_columns_step(const struct hed_convolution_tensor *t);

/* What each element of a filter meets at each place: rows by places. Zeros around X are zeros. */
void hed_columns_read(const struct hed_convolution *c, const struct hed_columns_part *of,
                      float *to);

/* Adds each element of a matrix of columns to the element of X that it belongs to. `sums` are
 * images from `image` on, channels of the group, space. */
void hed_columns_add(const struct hed_convolution *c, const struct hed_columns_part *of,
                     const float *from, int64_t image, float *sums);

/* Y: filters by places. Written: Y = from + beta * Y. */
void hed_columns_read_y(const struct hed_convolution *c, const struct hed_columns_part *of,
                        float *to);
void hed_columns_write_y(const struct hed_convolution *c, const struct hed_columns_part *of,
                         const float *from);

/* W: filters by rows of columns. */
void hed_columns_read_filter(const struct hed_convolution *c, int64_t filter, int64_t filters,
                             float *to);
void hed_columns_write_filter(const struct hed_convolution *c, int64_t filter, int64_t filters,
                              const float *from);

/* X, from sums as hed_columns_add() makes them. */
void hed_columns_write_x(const struct hed_convolution *c, const struct hed_columns_images *of,
                         const float *sums);
