/* Compiled kernels on disk, so that a program's second run needs no compiler.
 *
 *   FOLDER/<64 hexadecimal digits>.kernel          an entry: entry.c has its format
 *   FOLDER/<64 hexadecimal digits>.kernel.making   locked by the program that makes it now
 *   FOLDER/after.lock, after.next                  locked by processes that compile for programs
 *                                                  which have ended (kernel/forkserver/after.c)
 *
 *   cache.c    getting and storing
 *   entry.c    what is in a file
 *   folder.c   what is in the folder: listing it, keeping it small
 *   claim.c    the locks
 *   archive.c  many entries in one file
 *   key.c      what an object depends on
 *
 * An entry's name is a hash of everything the object depends on. Files are written under a
 * temporary name and then renamed, so other processes only ever see complete files. A damaged file
 * is ignored and replaced. Reading a file updates its time; when the folder has grown over its
 * limit, the files with the oldest times are removed.
 *
 * No failure here reaches the program: it just runs without the cache.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/hash.h"

struct hed_buf;
struct hed_cache;

/* The hash (base/hash.h) of everything a compiled kernel depends on. */
struct hed_cache_key {
    uint8_t hash[HED_HASH_SIZE];
};

#define HED_CACHE_NAME_MAX 65536                 /* bytes of a kernel's name, with its NUL */
#define HED_CACHE_FEATURES_MAX 1024              /* bytes of a processor's features, likewise */
#define HED_CACHE_VERSION_MAX 24                 /* bytes of heddle's version, likewise */
#define HED_CACHE_OBJECT_MAX ((size_t)512 << 20) /* bytes */

/* Everything that an object is made from and by. */
struct hed_cache_origin {
    const uint8_t *code; /* HED_HASH_SIZE bytes: the hash of the PTX or the machine code */
    const char *kernel;
    const char *features; /* of the processor */
    uint64_t compiler;    /* the identity of its file */
    uint32_t abi;         /* HED_PTX_ABI */
    uint32_t rows;        /* enum hed_rows */
    uint32_t level;
    bool check_alignment, confined;
};

struct hed_cache_key hed_cache_key_of(const struct hed_cache_origin *o);

/* What people and other machines want to know of an object. All of it is in the key, too, but for
 * compile_us. */
struct hed_cache_about {
    const char *name;     /* the kernel's */
    const char *features; /* of the processor that it is for */
    const char *version;  /* of heddle */
    uint64_t compiler;    /* the identity of its file */
    uint32_t abi;         /* HED_PTX_ABI */
    uint32_t rows;        /* enum hed_rows */
    uint32_t compile_us;  /* that it took */
};

/* If `folder` is "", the user's own cache folder is taken ($XDG_CACHE_HOME/heddle/kernels). Returns
 * NULL, which means "no cache", if the limit is 0 or there is no folder or no memory. Touches no
 * file. */
struct hed_cache *hed_cache_create(const char *folder, uint64_t limit);
void hed_cache_free(struct hed_cache *c);
/* Also trusts what others of this process's group have stored, and lets them read and renew what it
 * stores: the workers of one client are different users of one group. c may be NULL. */
void hed_cache_trust_group(struct hed_cache *c);
/* The folder's path, and the limit in bytes; constant. */
const char *hed_cache_path(const struct hed_cache *c);
uint64_t hed_cache_limit(const struct hed_cache *c);

/* Appends the object with that key to `out`, and tells how long it took to compile; false if there
 * is none. c may be NULL. */
bool hed_cache_get(struct hed_cache *c, const struct hed_cache_key *key, struct hed_buf *out,
                   uint32_t *compile_us);
/* Is there a file for this key? It is not read. */
bool hed_cache_has(const struct hed_cache *c, const struct hed_cache_key *key);
/* c may be NULL. */
void hed_cache_put(struct hed_cache *c, const struct hed_cache_key *key,
                   const struct hed_cache_about *about, const void *object, size_t size);

/* ---- entry.c --------------------------------------------------------------------------------- */

struct hed_cache_entry {
    struct hed_cache_key key;
    struct hed_cache_about about; /* its texts are in the bytes that were read */
    uint64_t size;                /* of the object */
    const void *object;           /* in those bytes; NULL if only the head was read */
};

#define HED_CACHE_HEAD_MAX (128 + HED_CACHE_NAME_MAX + HED_CACHE_FEATURES_MAX)
#define HED_CACHE_ENTRY_MAX (HED_CACHE_HEAD_MAX + HED_CACHE_OBJECT_MAX)

/* Reads an entry of `total` bytes, of which the first `size` are at `data`: all of them, or at
 * least the head (HED_CACHE_HEAD_MAX or `total` bytes, whichever is less). The checksum is checked
 * only if all are there. HED_EFORMAT, HED_EVERSION. */
int hed_cache_entry_read(const void *data, size_t size, uint64_t total,
                         struct hed_cache_entry *out);
/* Appends the bytes of an entry to `out`, which has a sticky error. */
void hed_cache_entry_write(const struct hed_cache_entry *e, struct hed_buf *out);

/* ---- folder.c -------------------------------------------------------------------------------- */

/* A file in the folder whose name is that of an entry. */
struct hed_cache_file {
    char name[HED_HASH_TEXT + 32];
    uint64_t bytes;
    struct timespec time; /* when it was last used, about */
};

/* Lists the entries' files, the most recently used first. The caller frees *files. HED_ENOTFOUND if
 * there is no folder, HED_ENOMEM, or why it cannot be read. Removes what writers left behind long
 * ago. */
int hed_cache_list(const struct hed_cache *c, struct hed_cache_file **files, size_t *count);
/* Reads a listed file: its head, or all of it if `whole`. The entry's texts are in `bytes`. Refuses
 * what hed_cache_get() would not trust: HED_EACCESS, HED_EFORMAT, HED_EVERSION, HED_EIO. */
int hed_cache_look(const struct hed_cache *c, const char *name, bool whole, struct hed_buf *bytes,
                   struct hed_cache_entry *out);
/* Removes a listed file. */
bool hed_cache_remove(const struct hed_cache *c, const char *name);
/* If the folder is over its limit, removes the oldest files until nine tenths of it are left. */
void hed_cache_trim(const struct hed_cache *c);

/* ---- claim.c --------------------------------------------------------------------------------- */

/* Says that this process makes the object with that key now. 0: it does, and *fd is to be given to
 * hed_cache_release() afterwards; HED_ESTATE: another process does. Where files cannot be locked,
 * everybody may, and *fd is -1. A process that dies has released all. c may be NULL. */
int hed_cache_claim(struct hed_cache *c, const struct hed_cache_key *key, int *fd);
void hed_cache_release(struct hed_cache *c, const struct hed_cache_key *key, int fd);
/* Does another process make it now? Removes what a dead one has left. */
bool hed_cache_is_claimed(const struct hed_cache *c, const struct hed_cache_key *key);

/* Of the processes that compile for programs which have ended, one works at a time, and one more
 * may wait for that; besides, those that somebody waits for (`insists`). Returns a descriptor,
 * which holds the turn while it is open, or -1 if it is another's; `waits` is asked again and
 * again, and ends the waiting with false. */
int hed_cache_take_turn(const struct hed_cache *c, bool insists, bool (*waits)(void *arg),
                        void *arg);
/* Tells others, in at most HED_CACHE_TURN_TEXT bytes, what the holder does. */
void hed_cache_tell_turn(int turn, const char *text);
/* What the holder last told. False: there is none. */
#define HED_CACHE_TURN_TEXT 1024
bool hed_cache_see_turn(const struct hed_cache *c, char text[HED_CACHE_TURN_TEXT]);
