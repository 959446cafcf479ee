/* All layers and backends. src/registry.c has the tables. */
#pragma once

#include <stdbool.h>

struct hed_config;
struct hed_layer_type;
struct hed_why;

/* Those that are not plug-ins, in the order of the chain, top first; NULL at the end. */
extern const struct hed_layer_type *const hed_layer_types[];

/* NULL at the end. */
extern const struct hed_layer_type *const hed_backend_types[];

/* The layer of that name: one of the table, or a plug-in, which is loaded. */
int hed_layer_find(const char *name, const struct hed_layer_type **out, struct hed_why *why);

/* The layer that an entry of the setting `plugins` means, which is loaded. */
int hed_layer_find_plugin(const char *entry, const struct hed_layer_type **out,
                          struct hed_why *why);

/* The backend that the setting `gpu` means: one of the table, or a plug-in, which is loaded.
 *
 * "auto" means NVIDIA's driver if there is one and a device, otherwise the CPU GPU if its plug-in
 * is installed, otherwise NVIDIA's driver again, which then reports what is missing. */
int hed_backend_find(const struct hed_config *c, const struct hed_layer_type **out,
                     struct hed_why *why);
/* Does the setting `gpu` mean NVIDIA's driver? Loads nothing. */
bool hed_backend_is_driver(const struct hed_config *c);
/* Turns "auto" into "vm:" if this is a guest without a GPU whose host serves one. */
void hed_backend_ask_host(struct hed_config *c);
