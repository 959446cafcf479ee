/* Folders that belong to the user, and full paths. Nothing here creates or opens anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hed_why;

/* The user's cache folder for `what`: $XDG_CACHE_HOME/heddle/WHAT, or ~/.cache/heddle/WHAT. False,
 * and out[0] is 0, if neither variable holds an absolute path or the result does not fit. */
bool hed_cache_folder(const char *what, char *out, size_t size);

/* The full path of a path that is relative to the current folder. */
int hed_path_absolute(const char *path, char *out, size_t size, struct hed_why *why);
