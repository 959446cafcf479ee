/* Backends and layers that are libraries of their own, so that their dependencies are loaded only
 * into processes that use them. They lie beside libheddle.so.0 and belong to the same build.
 *
 * A plug-in backend-NAME.so or layer-NAME.so is linked with libheddle.so.0 for the session, the
 * counters and the tables of calls, and exports the two symbols below.
 */
#pragma once

#include <stddef.h>

struct hed_layer_type;
struct hed_why;

/* What a plug-in exports: its version, HED_VERSION, and its type. */
#define HED_PLUGIN_VERSION "hed_plugin_version" /* const char[] */
#define HED_PLUGIN_TYPE "hed_plugin_type"       /* const struct hed_layer_type *(*)(void) */

/* The folder that this library (or program) was loaded from. HED_ENOTFOUND, HED_ELIMIT. */
int hed_plugin_folder(char *out, size_t size);

/* Loads KIND-NAME.so, which is never unloaded; KIND is "backend" or "layer". HED_ENOTFOUND: there
 * is none; HED_EVERSION, HED_EINVAL: it cannot be used. */
int hed_plugin_open(const char *kind, const char *name, const struct hed_layer_type **out,
                    struct hed_why *why);
