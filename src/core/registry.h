/* The layers and backends there are. src/registry.c has the tables. */
#pragma once

struct hed_layer_type;

/* In the order they stand in a chain, top first; NULL at the end. */
extern const struct hed_layer_type *const hed_layer_types[];

/* NULL at the end. */
extern const struct hed_layer_type *const hed_backend_types[];
