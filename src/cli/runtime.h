/* Which CUDA runtime (libcudart) a program gets: the setting `cudart`, docs/cudart.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hed_env;
struct hed_install;

/* Sets up the environment for `mode`: "auto", "own" or "nvidia". Without `audit`, the loader is not
 * to ask heddle about libraries, and the program gets what it finds. With "auto", an installation
 * that has no runtimes is no error. Returns 0, or prints the reason and returns the exit code.
 */
int hed_runtime_prepare(struct hed_env *env, const struct hed_install *install, const char *mode,
                        bool audit);

/* The sonames of the runtimes in heddle's installation, without "libcudart.so.", separated by
 * blanks and sorted by version: "8.0 10.2 11.0 12 13". "" if there are none. Returns out. */
const char *hed_runtime_list(const struct hed_install *install, char *out, size_t size);
