/* Compiled kernels on disk, so that a program's second run needs no compiler.
 *
 *   FOLDER/0123456789abcdef0123456789abcdef.kernel      a header, the object file
 *
 * The name is a hash of everything the object depends on. Files are written under another name and
 * renamed, so that processes see whole files only; a file that is not right is passed over and
 * replaced. Reading freshens a file's time; when the folder has grown over its limit, the files
 * with the oldest times go.
 *
 * Nothing here is an error for the program: what fails is done without.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hed_buf;
struct hed_cache;

/* 128 bits: FNV-1a with 64-bit words instead of bytes. For telling texts apart; not for secrets. */
struct hed_hash {
    uint64_t high, low;
};

void hed_hash_init(struct hed_hash *h);
/* The length counts: adding "ab" and "c" is not adding "a" and "bc". */
void hed_hash_add(struct hed_hash *h, const void *p, size_t size);
void hed_hash_add_text(struct hed_hash *h, const char *text);

/* folder: "" for the user's own, $XDG_CACHE_HOME/heddle/kernels. NULL: no cache (limit 0, no
 * folder, no memory). Touches no file. */
struct hed_cache *hed_cache_create(const char *folder, uint64_t limit);
void hed_cache_free(struct hed_cache *c);

/* Appends the object of that key; false: there is none. c may be NULL. */
bool hed_cache_get(struct hed_cache *c, struct hed_hash key, struct hed_buf *out);
void hed_cache_put(struct hed_cache *c, struct hed_hash key, const void *object, size_t size);
