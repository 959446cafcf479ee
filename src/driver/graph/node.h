/* Graphs from the inside: nodes, edges, and executable graphs. For the files of graphs and captures
 * only; others use driver/graph/graph.h.
 *
 * One lock (hed_graphs_lock, rank HED_RANK_GRAPH) guards the structure of all graphs. CUDA requires
 * programs not to change a graph from two threads; with the lock, a program that does so anyway
 * breaks nothing.
 *
 * Invariants:
 * 1. An edge is in out[] of one node and in in[] of another, or in neither. Both nodes are in the
 *    same graph, and edges never form a cycle.
 * 2. A node owns its work. An executable graph has copies, so a graph can be changed or destroyed
 *    while it runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "driver/graph/graph.h"
#include "driver/handle.h"
#include "driver/memory/memory.h"
#include "driver/stream/work.h"

struct hed_layer;
struct hed_node;
struct hed_user_object;

/* Memory of an allocation node. It lives as long as the node or a copy of the node. */
struct hed_graph_memory {
    _Atomic uint32_t refs;
    struct hed_driver *driver;
    uint64_t at, size;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 given; /* accessDescs is NULL */
};

/* The condition of a conditional node: a handle from the machine, whose value kernels set. */
struct hed_condition {
    uint64_t handle;
    CUgraphConditionalNodeType type;
    uint32_t count; /* number of branches (graphs to choose from); 0: not conditional */
};

struct hed_edge {
    struct hed_node *node; /* the node at the other end */
    CUgraphEdgeData data;
};

struct hed_edges {
    struct hed_edge *at;
    size_t count, room;
};

struct hed_node {
    struct hed_object object; /* must come first */
    struct hed_graph *graph;
    struct hed_node *next; /* from oldest to newest */
    CUgraphNodeType type;
    struct hed_work *work;           /* NULL for empty, child graph and memory nodes */
    struct hed_graph *child;         /* of a child graph node; owned */
    struct hed_graph_memory *memory; /* of an allocation node; a reference */
    uint64_t freed;                  /* of a free node: the address */
    void **pointers;                 /* pointers to the kernel's parameters, made when the
                                      * program asks; owned */
    struct hed_condition condition;  /* of a conditional node */
    struct hed_graph **branches;     /* condition.count graphs to choose from; owned */
    CUgraph *branch_handles;         /* their handles, as given to the program; owned */
    struct hed_edges in, out;
    uint64_t origin; /* handle of the node that it was cloned from, or 0 */
    size_t mark;     /* for functions that walk the graph, under the lock */
};

/* A user object that lives at least as long as a graph uses it. */
struct hed_graph_user {
    struct hed_graph_user *next;
    struct hed_user_object *object;
    unsigned count;
};

struct hed_graph {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_node *first, **last;
    size_t count;
    struct hed_graph_user *users;
    bool is_child;          /* belongs to a node: its handle cannot destroy it */
    struct hed_graph *root; /* of a branch: the graph that has the handles, a reference; or NULL */
    struct hed_graph_handle *handles; /* conditional handles of the graph and of its branches */
};

/* A conditional handle of a graph. Guarded by the lock of all graphs. */
struct hed_graph_handle {
    struct hed_graph_handle *next;
    uint64_t handle;
    bool used;               /* a node uses it */
    struct hed_context *ctx; /* how it was made: a reference, */
    unsigned value, flags;   /* the default, CU_GRAPH_COND_... */
};

struct hed_exec_node {
    uint64_t handle; /* handle of the node in the graph */
    CUgraphNodeType type;
    struct hed_work *work;            /* owned */
    struct hed_graph_exec *child;     /* a reference */
    struct hed_graph_memory *memory;  /* a reference */
    struct hed_condition condition;   /* of a conditional node */
    struct hed_graph_exec **branches; /* references, condition.count of them; the array is owned */
    size_t *in;                       /* positions of the nodes that it comes after */
    size_t in_count;
    bool disabled;
};

/* The contents of an executable graph. They are constant as soon as there is a second reference, so
 * that a launch that waits in a queue is not affected by changes for the next launch. */
struct hed_graph_exec {
    _Atomic uint32_t refs;
    struct hed_exec_node *nodes; /* in an order that respects their edges */
    size_t count;
    uint64_t root; /* handle of the graph if it has conditional handles, else 0 */
};

/* The object that a CUgraphExec names. */
struct hed_exec {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_lock lock;        /* guards body; rank HED_RANK_GRAPH */
    struct hed_graph_exec *body; /* a reference */
    struct hed_points last;      /* points of the last launch, which the next one comes after;
                                  * guarded by lock */
    unsigned long long flags;
    struct hed_graph_user *users;
    struct hed_graph *graph; /* a reference that keeps its conditional handles alive; or NULL */
    uint64_t version;        /* goes up whenever the body changes; guarded by lock */
    void *own;               /* the machine's bytes, which follow this struct; guarded by lock */
};

/* Called before the body is changed. */
static inline void
hed_exec_changed_locked(struct hed_exec *e)
{
    e->version++;
}

extern struct hed_lock hed_graphs_lock;

/* ---- graph.c --------------------------------------------------------------------------------- */

/* Creates a graph with a handle; child graphs have one too. NULL if there is no memory. */
struct hed_graph *hed_graph_create(struct hed_driver *d);

/* The graph of a handle, with a reference for the caller; NULL if there is none. */
struct hed_graph *hed_graph_find(struct hed_driver *d, CUgraph handle);
struct hed_node *hed_node_find(struct hed_driver *d, CUgraphNode handle);
struct hed_exec *hed_exec_find(struct hed_driver *d, CUgraphExec handle);

/* Removes the handles of a graph and its nodes. The graph is freed when its last user is done. */
void hed_graph_destroy(struct hed_graph *g);

/* Adds a node behind others. Takes ownership of `work` even on failure. deps are handles:
 * INVALID_VALUE for nodes that are not in this graph or are named twice. edges may be NULL. */
CUresult hed_graph_add(struct hed_graph *g, CUgraphNodeType type, struct hed_work *work,
                       const CUgraphNode *deps, const CUgraphEdgeData *edges, size_t count,
                       struct hed_node **out);

CUresult hed_graph_connect_locked(struct hed_node *from, struct hed_node *to,
                                  const CUgraphEdgeData *data);
bool hed_graph_disconnect_locked(struct hed_node *from, struct hed_node *to,
                                 const CUgraphEdgeData *data);
void hed_graph_remove_node_locked(struct hed_node *n);

/* A deep copy, with handles of its own. */
CUresult hed_graph_clone(struct hed_graph *g, struct hed_graph **out);

/* The nodes in an order that respects their edges, older nodes first. g->count of them; the caller
 * frees the array. NULL if there is no memory. */
struct hed_node **hed_graph_order_locked(struct hed_graph *g);

struct hed_graph_memory *hed_graph_memory_ref(struct hed_graph_memory *m);
void hed_graph_memory_unref(struct hed_graph_memory *m);

/* ---- condition.c ----------------------------------------------------------------------------- */

/* Makes a new node conditional: makes its branches and sets p->phGraph_out. INVALID_VALUE: the
 * handle does not belong to this graph, or another node has it. */
CUresult hed_node_give_condition(struct hed_node *n, CUDA_CONDITIONAL_NODE_PARAMS *p);
/* The node is being taken out of its graph: another one may have its handle. */
void hed_node_leave_handle_locked(struct hed_node *n);
/* The node is being destroyed, and its branches with it. */
void hed_node_take_condition(struct hed_node *n);
/* Whether the graph has a conditional handle that no node uses. */
bool hed_graph_has_idle_handle(struct hed_graph *g);
/* The graph is being destroyed, and its handles with it. */
void hed_graph_handles_free(struct hed_graph *g);

/* ---- user_object.c --------------------------------------------------------------------------- */

CUresult hed_graph_users_add(struct hed_graph_user **list, struct hed_user_object *o,
                             unsigned count);
CUresult hed_graph_users_copy(struct hed_graph_user *from, struct hed_graph_user **to);
void hed_graph_users_free(struct hed_graph_user **list);

/* ---- node_params.c: work out of what a program says about a node, and back ------------------- */

/* The context of a node whose work can run in any: the one that is named, or else the current one;
 * without either, one of the device (-1: any). Kernels and waits belong to a context of their own.
 */
CUresult hed_node_context(struct hed_layer *self, CUcontext handle, int device,
                          struct hed_context **out);
/* Checks the parameters of a node and makes its work; NULL for empty and child graph nodes. */
CUresult hed_node_work(struct hed_layer *self, const CUgraphNodeParams *p, struct hed_work **out);

/* The parameters of a node. Pointers in them are valid until the node is changed. */
CUresult hed_node_params(struct hed_node *n, CUgraphNodeParams *out);

/* ---- graph_exec.c ---------------------------------------------------------------------------- */

/* Makes the body of an executable graph, including child graphs. */
CUresult hed_exec_body(struct hed_graph *g, struct hed_graph_exec **out);

/* Replaces the work of a node in an executable graph; takes ownership of it. INVALID_VALUE: there
 * is no such node, or it has another type. */
CUresult hed_exec_set_work(struct hed_layer *self, CUgraphExec exec, CUgraphNode node,
                           CUgraphNodeType type, struct hed_work *w);
CUresult hed_exec_set_child(struct hed_layer *self, CUgraphExec exec, CUgraphNode node,
                            CUgraph child);

/* ---- graph_launch.c -------------------------------------------------------------------------- */

/* "Each launch is ordered behind both any previous work in this stream and any previous launches of
 * this graph." (CUDA Driver API, cuGraphLaunch) The first function adds the points of the last
 * launch; the second notes a launch that has been put on a stream. Machines call them. */
bool hed_exec_add_last(struct hed_exec *e, struct hed_points *after);
CUresult hed_exec_launched(struct hed_exec *e, struct hed_stream *s);

/* The calls, for the table of graph_exec.c. */
CUresult hed_soft_cuGraphLaunch(struct hed_layer *self, struct hed_cuGraphLaunch *a);
CUresult hed_soft_cuGraphUpload(struct hed_layer *self, struct hed_cuGraphUpload *a);
