/* Finding NVIDIA's libraries: by setting, then in the loader's cache, then in the usual folders;
 * never heddle's own, never the toolkit's stub. A library is judged by its file alone, because
 * loading the wrong one would run its code. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct hed_why;

/* Why the file cannot be NVIDIA's library for this process ("is heddle itself"); NULL if it can. */
const char *hed_locate_reject(const char *path);

/* Calls fn with every file of that name, best first, and where it was found ("loader's cache",
 * "usual folder"), until fn returns true. */
typedef bool (*hed_locate_fn)(void *arg, const char *path, const char *place);
void hed_locate_each(const char *soname, hed_locate_fn fn, void *arg);

/* Are NVIDIA's library and device files there? `given` is the setting `driver`; a library that it
 * names is not checked. */
bool hed_locate_gpu(const char *given);

/* The path of the library `soname` (libcuda.so.1). `given` is the setting, "" for none. On failure
 * why says which files were found and what is wrong with them. HED_ENOTFOUND: there is no such
 * library; HED_EINVAL: the given file cannot be it. */
int hed_locate_find(const char *soname, const char *given, char *path, size_t size,
                    struct hed_why *why);
