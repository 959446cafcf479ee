/* The plug-in's main file: puts the client and, if it is built (HEDDLE_MOVE), the mover together.
 * Nothing else in this folder knows the mover but by its table (mover.h). */
#include <pthread.h>

#include "core/layer.h"
#include "core/plugin.h"
#include "gen/storeys.h"
#include "remote/client.h"
#if HED_HAVE_MOVE
#include "move/move.h"
#endif

static void
put_together(void)
{
#if HED_HAVE_MOVE
    hed_remote_use_mover(&hed_remote_session_mover);
#endif
    hed_remote_complete_type();
}

HED_EXPORT extern const char hed_plugin_version[];
const char hed_plugin_version[] = HED_VERSION;

HED_EXPORT const struct hed_layer_type *hed_plugin_type(void);

const struct hed_layer_type *
hed_plugin_type(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, put_together);
    return &hed_remote_type;
}
