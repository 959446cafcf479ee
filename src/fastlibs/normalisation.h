/* Batch normalisation as cuDNN is asked for it: each channel by itself, over all images and space.
 *
 *     training    mean and variance of X; Y = (X - mean) / sqrt(variance + epsilon) * scale + bias
 *     inference   the same with a mean and a variance that are given
 *     gradients   those of X, scale and bias from DY, X and what training has saved
 */
#pragma once

#include <stdbool.h>

#include "fastlibs/tensor.h"

enum hed_normalisation_kind {
    HED_NORMALISATION_TRAINING,
    HED_NORMALISATION_INFERENCE,
    HED_NORMALISATION_GRADIENTS,
    HED_NORMALISATION_KINDS
};

/* Numbers of channels, one each. */
enum hed_normalisation_numbers {
    HED_NORMALISATION_SCALE,
    HED_NORMALISATION_BIAS,            /* not for gradients */
    HED_NORMALISATION_MEAN,            /* training: NULL, or moved by `factor` */
    HED_NORMALISATION_VARIANCE,        /* likewise */
    HED_NORMALISATION_SAVED_MEAN,      /* training: NULL, or written */
    HED_NORMALISATION_SAVED_DEVIATION, /* likewise: 1 / sqrt(variance + epsilon) */
    HED_NORMALISATION_SCALE_GRADIENT,
    HED_NORMALISATION_BIAS_GRADIENT,
    HED_NORMALISATION_NUMBERS
};

struct hed_normalisation {
    enum hed_normalisation_kind kind;
    enum hed_product_type type; /* of the tensors; a channel's numbers are floats */
    struct hed_tensor x, y; /* of one size; gradients: Y is what is written, the gradient of X */
    struct hed_tensor dy;   /* gradients */
    float *numbers[HED_NORMALISATION_NUMBERS];
    double epsilon, factor;
};

/* How a kind uses some numbers. */
enum hed_normalisation_use {
    HED_NUMBERS_UNUSED,
    HED_NUMBERS_READ,
    HED_NUMBERS_WRITTEN,
    HED_NUMBERS_MAYBE_WRITTEN,
};

enum hed_normalisation_use hed_normalisation_uses(enum hed_normalisation_kind kind,
                                                  enum hed_normalisation_numbers which);

/* Can hed_normalisation_run() compute it, as far as sizes and types say? */
bool hed_normalisation_is_sound(const struct hed_normalisation *n);

/* Computes a sound one. It needs no memory. */
void hed_normalisation_run(const struct hed_normalisation *n);
