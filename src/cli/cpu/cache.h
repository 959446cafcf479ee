/* heddle cpu cache: what its files share.
 *
 *   cache.c    the command: options, which entries are of use here
 *   keep.c     list and prune
 *   carry.c    export and import
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_cache;
struct hed_cache_entry;

/* What the user asked for, and for what entries must be made to be of use here. */
struct hed_cli_cache {
    struct hed_cache *cache;
    const char *file; /* of export and import */
    bool json, stale, all;
    bool has_size;
    uint64_t size;      /* --size: bytes */
    uint64_t older_s;   /* --older: seconds; 0: not given */
    char features[512]; /* of this processor */
    uint64_t compiler;  /* the identity of the installed one; 0: there is none */
};

/* NULL if programs of this installation find it on this processor; otherwise why not, in a word or
 * two. `err` is of hed_cache_look(). */
const char *hed_cli_cache_useless(const struct hed_cli_cache *c, int err,
                                  const struct hed_cache_entry *e);

/* These print the reason of a failure, and return an exit code. */
int hed_cli_cache_list(const struct hed_cli_cache *c);
int hed_cli_cache_prune(const struct hed_cli_cache *c);
int hed_cli_cache_export(const struct hed_cli_cache *c);
int hed_cli_cache_import(const struct hed_cli_cache *c);
