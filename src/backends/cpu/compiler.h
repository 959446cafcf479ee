/* The program's side of the compilers, which are processes of their own
 * (kernel/forkserver/forkserver.h). */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/lock.h"
#include "kernel/cache.h"
#include "kernel/forkserver.h"
#include "kernel/ptx.h"

struct hed_buf;
struct hed_cpu_text;

/* A slot at which one kernel at a time is compiled. */
struct hed_compiler_slot {
    int socket;
    bool busy;
    bool has_text; /* the compiler has read the text with this hash */
    uint8_t text[HED_HASH_SIZE];
};

/* A kernel that is to be compiled even if the program ends before that. */
struct hed_compiler_wanted {
    struct hed_cache_key key;
    uint8_t text[HED_HASH_SIZE];
};

struct hed_compilers_after {
    const struct hed_cache *cache;
    unsigned seconds, kernels; /* the most */
    char lock[4096];           /* a file on which the fork server has a lock until its end; or "" */
};

/* Invariants:
 * 1. Sockets are open if and only if `is_running`. They are closed only when no slot is busy.
 * 2. Whoever has made a slot busy uses it alone, without the lock.
 * 3. `wanted` is what is on the fork server's list (kernel/forkserver/after.c).
 */
struct hed_compilers {
    struct hed_lock lock; /* guards what follows; not `path` */
    pthread_cond_t free;  /* a slot is not busy any more, or the fork server is gone */
    struct hed_compiler_slot slots[HED_FORKSERVER_SOCKETS];
    unsigned count;    /* of slots */
    unsigned busy;     /* of them */
    uint32_t number;   /* of the last request */
    unsigned failures; /* fork servers that died, or could not be started */
    bool is_running;
    bool is_lost;   /* the fork server died; the sockets are closed when no slot is busy */
    bool is_absent; /* there is none, and there will be none */
    int niceness;   /* constant */
    int list;       /* the socket of the list, open if wanted may be more than 0; or -1 */
    struct hed_compiler_wanted wanted[HED_FORKSERVER_AFTER_MAX];
    unsigned wanted_count;
    bool after_said; /* that something happens after the end */
    /* What happens after the program's end; constant. after.cache is NULL: nothing. */
    struct hed_compilers_after after;
    /* In a process that cannot start others: the sockets of a fork server that is there already.
     * Returns how many it wrote. Constant; may be NULL. */
    unsigned (*given)(int *sockets, unsigned room);
    char path[4096]; /* heddle-compiler; constant */
};

/* What to compile. */
struct hed_compiler_job {
    const struct hed_cpu_text *text;
    const char *entry; /* the kernel's name in the text */
    const char *features;
    enum hed_rows rows;
    int level;
    bool check_alignment, confined;
    uint32_t seconds;         /* of processor time; 0: no limit */
    uint64_t memory;          /* bytes; 0: no limit */
    struct hed_cache_key key; /* of its object */
};

void hed_compilers_init(struct hed_compilers *c, unsigned slots, int niceness);
/* In the child of a fork: the compilers are the parent's. */
void hed_compilers_forked(struct hed_compilers *c);
void hed_compilers_fini(struct hed_compilers *c);

/* Waits for a slot, and compiles: appends the object. HED_ENOTSUP if the kernel cannot be compiled,
 * also because the compiler died of it (*died); HED_ENOTFOUND if there is no compiler. `why` has
 * the reason, also with 0 if a faster shape refused it. */
int hed_compilers_compile(struct hed_compilers *c, const struct hed_compiler_job *job,
                          struct hed_buf *object, bool *died, struct hed_why *why);

/* From now on, the job is done even if the program ends. Nothing if that is turned off. */
void hed_compilers_want(struct hed_compilers *c, const struct hed_compiler_job *job);
/* No more: it was done, or cannot be done. */
void hed_compilers_withdraw(struct hed_compilers *c, const struct hed_cache_key *key);
