/* Layers of others, which include/heddle/layer.h describes: libraries that a setting names. */
#pragma once

struct hed_layer_type;
struct hed_why;

/* Loads the layer that an entry of the setting `plugins` means, "/path/layer.so[:OPTIONS]". The
 * type and its library stay until the process ends. HED_ENOTFOUND: there is no such file;
 * HED_EVERSION: another version of the interface; HED_EINVAL: it cannot be used; HED_ENOMEM. */
int hed_layer_plugin_open(const char *entry, const struct hed_layer_type **out,
                          struct hed_why *why);
