/* The dynamic loader's cache, /etc/ld.so.cache: which file belongs to a library's name. We read it
 * ourselves, because the loader would answer for this process, with its LD_LIBRARY_PATH and
 * LD_PRELOAD, which may name heddle's own libraries.
 */
#pragma once

#include <stddef.h>

/* Calls fn with the path of each entry for `name`, best first. 0, or HED_E... if there is no cache
 * or it cannot be read.
 */
int hed_ldcache_each(const char *name, void (*fn)(void *arg, const char *path), void *arg);

/* The same over a cache in memory. */
int hed_ldcache_each_in(const void *data, size_t size, const char *name,
                        void (*fn)(void *arg, const char *path), void *arg);
