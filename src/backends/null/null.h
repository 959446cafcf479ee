/* The null backend: answers at once. Nothing is executed.
 *
 * For tests, and for measuring what heddle itself costs. Handles and addresses are numbers that
 * were never used before; outputs are zero; host memory is real. Whoever wants results wants
 * another backend.
 */
#pragma once

#include "core/layer.h"

extern const struct hed_layer_type hed_null_backend;

#define HED_NULL_VERSION 13000        /* of the driver */
#define HED_NULL_MEMORY (16ull << 30) /* bytes that the device claims to have */

/* The one object that questions for an existing one are answered with. */
#define HED_NULL_OBJECT 0x100000ull

/* For the generated answers (gen/emit_null.py). */
extern const struct hed_cuda_ops hed_cuda_null;
extern const struct hed_nvml_ops hed_nvml_null;

/* A number nobody has seen yet, aligned like device memory. */
uint64_t hed_null_mint(struct hed_layer *self);

/* Clears count items; no more than a sane program can have meant. */
void hed_null_clear(void *p, uint64_t count, size_t size);
