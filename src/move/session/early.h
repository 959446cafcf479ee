/* What a standby (standby.h) gets before the program is held: code, and executable graphs. Making
 * them takes longer than all the rest of what a worker is told.
 *
 *   while the program runs        libraries ──> functions ──> addresses of variables ──> graphs
 *   while it is held              what has changed since: rebuild.c, reopen.c
 *
 * All functions are for the agent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/client.h"

struct hed_exec;
struct hed_function;
struct hed_remote;
struct hed_remote_early;
struct hed_remote_library;
struct hed_remote_told;
struct hed_remote_standby;

/* The program runs: tells the standby about code that it does not have yet. What cannot be told is
 * left for later, when the program is held. HED_ENOMEM. */
int hed_remote_early_tell(struct hed_remote_standby *t);
/* The program is held, and the standby is about to become its worker: takes away what the program
 * has no longer. */
void hed_remote_early_settle(struct hed_remote_standby *t);
void hed_remote_early_free(struct hed_remote_standby *t);

struct hed_remote_early_library {
    struct hed_remote_early_library *next;
    struct hed_remote_library *there; /* the standby's; NULL: it could not be opened */
    uint32_t *order;                  /* where the standby has each kernel; owned */
    bool seen;                        /* the program still has it */
};

/* Has the standby, which may be NULL, the library? Then *order is where it has each kernel; it
 * becomes the caller's. */
static inline bool
hed_remote_early_library(struct hed_remote *standby, struct hed_remote_library *c, uint32_t **order)
{
    if (!standby || !c->early || !c->early->there)
        return false;
    *order = c->early->order;
    c->early->order = NULL;
    return true;
}

/* What the standby, which may be NULL, knows of a function; NULL: nothing. */
struct hed_remote_told *hed_remote_early_function(struct hed_remote *standby,
                                                  const struct hed_function *f);

/* ---- graphs.c -------------------------------------------------------------------------------- */

/* A part of tell, settle and free. */
void hed_remote_early_graph(struct hed_remote_standby *t, struct hed_exec *e);
void hed_remote_early_drop_graphs(struct hed_remote_standby *t);
void hed_remote_early_forget_graphs(struct hed_remote_standby *t);

/* The worker of r, which was the standby, if that is not NULL, is the program's: the mirror of an
 * executable graph stays if it has the same; else it is made again with the next launch. */
void hed_remote_graph_again(struct hed_remote *r, struct hed_remote *standby, struct hed_exec *e);
