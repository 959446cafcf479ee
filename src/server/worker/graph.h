/* Graphs that a client tells, between the files that deal with them: graph.c (the steps), nodes.c
 * (the kinds of nodes), condition.c (graphs that are kept for their conditional handles).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gen/cuda_abi.h"
#include "wire/wire.h"

struct hed_kept_graph;
struct hed_worker;
struct hed_worker_channel;

/* A graph that is being made. */
struct hed_draft {
    struct hed_draft *outer;
    CUgraph graph;
    CUgraphNode *nodes; /* the backend's, in the order they were told; owned */
    uint32_t count, room;
    bool borrowed;               /* the graph is a node's, or kept */
    struct hed_kept_graph *kept; /* NULL: it is none */
    CUgraph *branches;           /* of the last node, if that is conditional; the backend's */
    uint32_t branch_count;
};

/* Where a node goes, checked. */
struct hed_node_place {
    struct hed_draft *draft;
    CUgraphNode *after;
    uint32_t count;
    const void *own; /* the node's own struct */
    uint32_t size;
};

/* ---- nodes.c --------------------------------------------------------------------------------- */

/* The backend's handle of the current context: that of the message. */
CUcontext hed_worker_current(struct hed_worker *w);

/* Adds a node: 0 and the backend's result, or HED_EFORMAT, HED_ENOMEM. */
int hed_worker_add_node(struct hed_worker_channel *ch, uint32_t type,
                        const struct hed_node_place *p, CUgraphNode *out, CUresult *r);

/* ---- condition.c ----------------------------------------------------------------------------- */

/* HED_GRAPH_CONDITION: a handle for the graph of a name, which is made and kept if it is new. */
int hed_worker_condition(struct hed_worker_channel *ch, const struct hed_graph_body *b);

/* HED_GRAPH_FORGET. */
int hed_worker_forget_graph(struct hed_worker_channel *ch, const struct hed_graph_body *b);

/* Lends a kept graph to a draft, without the nodes that it got from an earlier one, and takes it
 * back with its nodes. INVALID_HANDLE: there is none of that name, or another draft has it. */
CUresult hed_kept_graph_lend(struct hed_worker *w, uint64_t name, struct hed_draft *to);
void hed_kept_graph_return(struct hed_draft *from);

/* Adds a conditional node. */
int hed_worker_add_choice(struct hed_worker *w, const struct hed_node_place *p, CUgraphNode *out,
                          CUresult *r);
