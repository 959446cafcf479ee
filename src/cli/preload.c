/* Smaller libraries that a program has preloaded. See preload.h. */
#include "cli/preload.h"

#include <limits.h>
#include <string.h>

#include "base/env.h"
#include "cli/cli.h"
#include "core/config.h"
#include "locate/install.h"

/* Device files of NVIDIA's driver, where it is not used. */
#define NODES "libheddle-nodes"
/* Matrix products and convolutions by OpenBLAS. */
#define FAST_LIBS "libheddle-fast-libs"
/* OpenBLAS's threads look for work for 2 to the power of this many ticks before they sleep. Theirs
 * is 26, tens of milliseconds, which are taken from the threads that run kernels. */
#define IDLE_TICKS "14"

static void
drop_library(struct hed_env *env, const struct hed_install *install, const char *name)
{
    char path[PATH_MAX];

    if (hed_install_plugin(install, name, path, sizeof path))
        hed_env_drop(env, "LD_PRELOAD", path, ": ");
}

void
hed_preload_drop(struct hed_env *env, const struct hed_install *install)
{
    drop_library(env, install, NODES);
    drop_library(env, install, FAST_LIBS);
}

/* Why the setting fast_libs cannot hold; NULL: it can. */
static const char *
hinders_fast_libs(const char *gpu, bool preload, bool is_there)
{
    if (!preload)
        return "needs LD_PRELOAD; leave out --no-preload";
    if (!hed_config_gpu_is(gpu, "cpu"))
        return "is for a CPU GPU in the program's own process; add --gpu cpu";
    return is_there ? NULL : "is not in this installation; install heddle again";
}

int
hed_preload_extras(struct hed_env *env, const struct hed_install *install,
                   const struct hed_config *config, bool preload)
{
    const char *gpu = hed_install_gpu(install, config->gpu, config->driver);
    char path[PATH_MAX];

    hed_preload_drop(env, install);
    if (preload && !hed_config_gpu_is(gpu, "gpu") &&
        hed_install_plugin(install, NODES, path, sizeof path))
        hed_env_prepend(env, "LD_PRELOAD", path, ": ");
    if (strcmp(config->fast_libs, "yes") == 0) {
        const bool is_there = hed_install_plugin(install, FAST_LIBS, path, sizeof path);
        const char *why = hinders_fast_libs(gpu, preload, is_there);

        if (why) {
            hed_cli_say("run: --fast-libs: it %s", why);
            return HED_EXIT_USAGE;
        }
        hed_env_prepend(env, "LD_PRELOAD", path, ": ");
        if (!hed_env_get(env, "OPENBLAS_THREAD_TIMEOUT"))
            hed_env_set(env, "OPENBLAS_THREAD_TIMEOUT", IDLE_TICKS);
    }
    return HED_EXIT_OK;
}
