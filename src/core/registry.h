/* The layers and backends there are. src/registry.c has the tables. */
#pragma once

struct hed_config;
struct hed_layer_type;
struct hed_why;

/* In the order they stand in a chain, top first; NULL at the end. */
extern const struct hed_layer_type *const hed_layer_types[];

/* NULL at the end. */
extern const struct hed_layer_type *const hed_backend_types[];

/* The backend that the setting `gpu` means: one of the table, or a plug-in, which is loaded.
 *
 * "auto" is NVIDIA's driver where that and a device are there, else the CPU GPU where its plug-in
 * is there, else again NVIDIA's driver, which then says what it misses. */
int hed_backend_find(const struct hed_config *c, const struct hed_layer_type **out,
                     struct hed_why *why);
