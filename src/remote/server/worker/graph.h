/* Graphs that the client describes node by node. Shared by graph.c (the steps), nodes.c (the kinds
 * of nodes) and condition.c (graphs that are kept for their conditional handles).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gen/cuda_abi.h"
#include "remote/wire/wire.h"

struct hed_kept_graph;
struct hed_worker;
struct hed_worker_channel;

/* A graph that is being built. */
struct hed_draft {
    struct hed_draft *outer;
    CUgraph graph;
    CUgraphNode *nodes; /* the backend's, in the client's order; owned */
    uint32_t count, room;
    bool borrowed;               /* the graph belongs to a node, or is kept */
    struct hed_kept_graph *kept; /* NULL if the graph is not kept */
    CUgraph *branches;           /* bodies of the last node if it is conditional; the backend's */
    uint32_t branch_count;
};

/* Where a node is added, after checking. */
struct hed_node_position {
    struct hed_draft *draft;
    CUgraphNode *after;
    uint32_t count;
    const void *own; /* the part of the message that describes the node itself */
    uint32_t size;
};

/* ---- nodes.c --------------------------------------------------------------------------------- */

/* The backend's handle of the current context, which is that of the message. */
CUcontext hed_worker_current(struct hed_worker *w);

/* Adds a node. Returns 0 and the backend's result, or HED_EFORMAT, HED_ENOMEM. */
int hed_worker_add_node(struct hed_worker_channel *ch, uint32_t type,
                        const struct hed_node_position *p, CUgraphNode *out, CUresult *r);

/* ---- condition.c ----------------------------------------------------------------------------- */

/* HED_GRAPH_CONDITION: creates a conditional handle for the graph of that name. The graph is
 * created, and kept, with its first handle. */
int hed_worker_condition(struct hed_worker_channel *ch, const struct hed_graph_body *b);

/* HED_GRAPH_FORGET: destroys a kept graph. */
int hed_worker_forget_graph(struct hed_worker_channel *ch, const struct hed_graph_body *b);

/* Lends a kept graph to a draft, without the nodes of an earlier draft; takes it back with its
 * nodes. INVALID_HANDLE if there is no graph of that name, or another draft has it. */
CUresult hed_kept_graph_lend(struct hed_worker *w, uint64_t name, struct hed_draft *to);
void hed_kept_graph_return(struct hed_draft *from);

/* Adds a conditional node. */
int hed_worker_add_choice(struct hed_worker *w, const struct hed_node_position *p, CUgraphNode *out,
                          CUresult *r);
