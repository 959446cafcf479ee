/* The layers and backends there are: the one file that knows them all. */
#include "core/registry.h"

#include <stddef.h>

#include "backends/gpu/gpu.h"
#include "backends/null/null.h"
#include "layers/layers.h"

const struct hed_layer_type *const hed_layer_types[] = {
    &hed_trace_layer,
    &hed_fault_layer,
    NULL,
};

const struct hed_layer_type *const hed_backend_types[] = {
    &hed_gpu_backend,
    &hed_null_backend,
    NULL,
};
