/* The lift layer as a plug-in (core/plugin.h). */
#include "core/export.h"
#include "layers/lift/lift.h"

HED_EXPORT extern const char hed_plugin_version[];
const char hed_plugin_version[] = HED_VERSION;

HED_EXPORT const struct hed_layer_type *hed_plugin_type(void);

const struct hed_layer_type *
hed_plugin_type(void)
{
    return &hed_lift_layer;
}
