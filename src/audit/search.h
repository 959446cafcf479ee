/* Which file the dynamic loader will find for a library's name. */
#pragma once

#include <stdbool.h>

#include "audit/path.h"

struct link_map;

enum hed_audit_found {
    HED_AUDIT_NONE,   /* the loader will find none */
    HED_AUDIT_FOUND,  /* it will find the file at the path */
    HED_AUDIT_UNKNOWN /* it depends on something that we do not know */
};

struct hed_audit_search {
    const struct link_map *by;   /* who needs or opens the library */
    const char *name;            /* without a slash */
    const char *library_path;    /* LD_LIBRARY_PATH, or NULL */
    struct hed_audit_path found; /* the result, valid with HED_AUDIT_FOUND */
};

/* Searches as ld.so(8) does: RPATH, LD_LIBRARY_PATH, RUNPATH, the loader's cache, default folders.
 * Files for other machines are passed over.
 */
enum hed_audit_found hed_audit_search(struct hed_audit_search *s);

/* A name with a slash as a path: $ORIGIN at its beginning is the folder of `by`. False if there is
 * another variable in it, or if it is too long.
 */
bool hed_audit_expand(struct hed_audit_path *out, const struct link_map *by, const char *name,
                      size_t n);

/* Can the loader load this file, as far as its class and machine go? */
bool hed_audit_loadable(const char *path);
