/* The gpu backend: NVIDIA's own driver on this machine. */
#pragma once

#include "core/layer.h"

extern const struct hed_layer_type hed_gpu_backend;
