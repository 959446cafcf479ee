/* Which of heddle's smaller libraries a program has preloaded, besides the driver itself. */
#pragma once

#include <stdbool.h>

struct hed_config;
struct hed_env;
struct hed_install;

/* Puts into LD_PRELOAD what the settings ask for, and takes out the rest, which may be there where
 * heddle runs heddle. Without `preload`, nothing may be preloaded. Returns 0, or prints the reason
 * and returns the exit code. */
int hed_preload_extras(struct hed_env *env, const struct hed_install *install,
                       const struct hed_config *config, bool preload);

/* Takes all of them out. */
void hed_preload_drop(struct hed_env *env, const struct hed_install *install);
