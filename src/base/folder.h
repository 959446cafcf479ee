/* Folders that belong to the user: where they are. Nothing here creates or opens one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The user's cache folder for `what`: $XDG_CACHE_HOME/heddle/WHAT, or ~/.cache/heddle/WHAT. False,
 * and out[0] is 0, if neither variable holds an absolute path or the result does not fit. */
bool hed_cache_folder(const char *what, char *out, size_t size);
