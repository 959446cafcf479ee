/* What the files of this room share: the state of a fork server. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "kernel/cache/cache.h"
#include "kernel/forkserver/forkserver.h"

struct hed_after; /* after.c: what the program wants compiled */

struct hed_forkserver_state {
    const struct hed_forkserver *how;
    pid_t compilers[HED_FORKSERVER_SOCKETS]; /* by socket; 0: none */
    hed_forkserver_serve_fn serve;           /* NULL until the library is loaded */
    struct hed_why why;                      /* why it cannot be */
    struct hed_forkserver_keep keep;
    struct hed_after *after; /* NULL: nothing is done after the program's end */
    bool is_over;            /* the program has ended, and the sockets are closed */
};

/* Loads LLVM into this process, of which all compilers are forks. False, and `why` is set, if it
 * cannot be. */
bool hed_forkserver_load(struct hed_forkserver_state *f);
/* Forks a compiler that serves `socket`. Its process, or a negative errno. */
pid_t hed_forkserver_fork(const struct hed_forkserver_state *f, int socket);
/* Notes the compilers that have ended, and answers for those that died. */
void hed_forkserver_reap(struct hed_forkserver_state *f);

/* ---- after.c --------------------------------------------------------------------------------- */

/* The key of what a request is to make. It follows from what the object is made of alone: the
 * program may have been taken over, and this process may have rights that it has not any more. Only
 * who waits for it (heddle cpu warm) trusts the program, and gets what was lifted under the key of
 * the machine code, so that the next run need not lift it. */
struct hed_cache_key hed_after_key(const struct hed_forkserver_after *how,
                                   const struct hed_forkserver_request *r,
                                   const struct hed_forkserver_texts *texts);

/* NULL if there is no memory. */
struct hed_after *hed_after_create(const struct hed_forkserver_after *how);
/* Reads what has come on the socket of the list. */
void hed_after_read(struct hed_after *a);
/* The program has ended: lets the compilers end, and works the list off. */
void hed_after_run(struct hed_after *a, struct hed_forkserver_state *f);
