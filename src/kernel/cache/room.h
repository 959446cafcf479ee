/* What the files of this room share. */
#pragma once

#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "kernel/cache/cache.h"

#define HED_CACHE_SUFFIX ".kernel"

struct hed_cache {
    char folder[PATH_MAX]; /* constant, like the next */
    uint64_t limit;        /* bytes */
    bool group;            /* whatever the group has stored is trusted */
    _Atomic unsigned stores;
    _Atomic bool told; /* that nothing can be kept */
};

/* With room for the file's name and the suffix of a temporary file. */
#define HED_CACHE_PATH_ROOM (PATH_MAX + 96)

/* The path of the entry's file. */
void hed_cache_entry_path(const struct hed_cache *c, const struct hed_cache_key *key, char *out);
/* The code will be executed, so only the user, or the trusted group, may have been able to write
 * it. */
bool hed_cache_trusts(const struct hed_cache *c, const struct stat *st);
/* Makes the folder and those above it. */
bool hed_cache_make_folder(const struct hed_cache *c);
/* Stores the bytes of an entry. */
bool hed_cache_store(struct hed_cache *c, const struct hed_cache_key *key, const void *bytes,
                     size_t size);
