/* Graphs from the inside: nodes, edges, and what executable graphs are made of. For the files of
 * graphs and captures only; others see driver/graph/graph.h.
 *
 * One lock (hed_graphs_lock, rank HED_RANK_GRAPH) guards the structure of all graphs. CUDA leaves
 * it to the program not to change a graph from two threads; the lock makes sure that a program that
 * does so anyway harms nobody.
 *
 * Invariants:
 * 1. in[] of a node and out[] of another mention each other or neither does; both are nodes of the
 *    same graph; edges never form a cycle.
 * 2. A node's work belongs to it; an executable graph has copies, so a graph can be changed or
 *    destroyed while it runs.
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

/* Memory that an allocation node gave out: there as long as the node or a copy of it is. */
struct hed_graph_memory {
    _Atomic uint32_t refs;
    struct hed_driver *driver;
    uint64_t at, size;
    CUDA_MEM_ALLOC_NODE_PARAMS_v1 given; /* accessDescs is NULL */
};

/* What a conditional node chooses by: a handle of the machine's, whose value kernels set. */
struct hed_condition {
    uint64_t handle;
    CUgraphConditionalNodeType type;
    uint32_t count; /* branches: graphs that it chooses among; 0: the node is none */
};

struct hed_edge {
    struct hed_node *node; /* the other end */
    CUgraphEdgeData data;
};

struct hed_edges {
    struct hed_edge *at;
    size_t count, room;
};

struct hed_node {
    struct hed_object object; /* first */
    struct hed_graph *graph;
    struct hed_node *next; /* by age */
    CUgraphNodeType type;
    struct hed_work *work;           /* NULL: empty, child graph, memory */
    struct hed_graph *child;         /* of a child graph node; owned */
    struct hed_graph_memory *memory; /* of an allocation node; counted */
    uint64_t freed;                  /* of a free node: the address */
    void **pointers;                 /* to the kernel's parameters, once asked for; owned */
    struct hed_condition condition;  /* of a conditional node */
    struct hed_graph **branches;     /* its graphs, condition.count of them; owned */
    CUgraph *branch_handles;         /* their handles, which the program was given; owned */
    struct hed_edges in, out;
    uint64_t origin; /* handle of the node it was cloned from; 0 */
    size_t mark;     /* of whoever walks the graph, under the lock */
};

/* Objects of the program that live as long as a graph uses them. */
struct hed_graph_user {
    struct hed_graph_user *next;
    struct hed_user_object *object;
    unsigned count;
};

struct hed_graph {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_node *first, **last;
    size_t count;
    struct hed_graph_user *users;
    bool is_child;          /* belongs to a node: cannot be destroyed by its handle */
    struct hed_graph *root; /* of a branch: the graph that has the handles, a reference; or NULL */
    struct hed_graph_handle *handles; /* conditional ones, of it and of its branches */
};

/* A conditional handle that a graph was given. Under the lock of all graphs. */
struct hed_graph_handle {
    struct hed_graph_handle *next;
    uint64_t handle;
    bool used; /* a node has it */
};

struct hed_exec_node {
    uint64_t handle; /* of the graph's node */
    CUgraphNodeType type;
    struct hed_work *work;            /* owned */
    struct hed_graph_exec *child;     /* a reference */
    struct hed_graph_memory *memory;  /* a reference */
    struct hed_condition condition;   /* of a conditional node */
    struct hed_graph_exec **branches; /* references, condition.count of them; owned */
    size_t *in;                       /* positions of the nodes it comes after */
    size_t in_count;
    bool disabled;
};

/* What runs: constant once somebody else has a reference, so that a launch that waits in a queue is
 * not changed by what the program sets for the next one. */
struct hed_graph_exec {
    _Atomic uint32_t refs;
    struct hed_exec_node *nodes; /* in an order that their edges allow */
    size_t count;
    uint64_t root; /* handle of the graph, if that has conditional handles; 0 */
};

/* What a CUgraphExec is the name of. */
struct hed_exec {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_lock lock;        /* guards body; rank HED_RANK_GRAPH */
    struct hed_graph_exec *body; /* a reference */
    struct hed_points last;      /* of the last launch: the next one comes behind it; under lock */
    unsigned long long flags;
    struct hed_graph_user *users;
    struct hed_graph *graph; /* a reference, if it has conditional handles: they live on; or NULL */
    uint64_t version;        /* of the body: goes up when that is changed; under lock */
    void *own;               /* the machine's bytes, behind this struct; under lock */
};

/* The body is about to be changed. */
static inline void
hed_exec_changed_locked(struct hed_exec *e)
{
    e->version++;
}

extern struct hed_lock hed_graphs_lock;

/* ---- graph.c --------------------------------------------------------------------------------- */

/* A new graph with a handle; child ones have a handle too. NULL: no memory. */
struct hed_graph *hed_graph_create(struct hed_driver *d);

/* The graph of a handle, to be put back; NULL if there is none. */
struct hed_graph *hed_graph_find(struct hed_driver *d, CUgraph handle);
struct hed_node *hed_node_find(struct hed_driver *d, CUgraphNode handle);
struct hed_exec *hed_exec_find(struct hed_driver *d, CUgraphExec handle);

/* Takes the handles of a graph and its nodes away and frees it when nobody uses it any more. */
void hed_graph_destroy(struct hed_graph *g);

/* Adds a node behind others. `work` is taken, also on failure. deps are handles: INVALID_VALUE for
 * those that are not of this graph, or named twice. edges may be NULL. */
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

/* The nodes in an order their edges allow, oldest first among equals: g->count of them, to be
 * freed. NULL: no memory. */
struct hed_node **hed_graph_order_locked(struct hed_graph *g);

struct hed_graph_memory *hed_graph_memory_ref(struct hed_graph_memory *m);
void hed_graph_memory_unref(struct hed_graph_memory *m);

/* ---- condition.c ----------------------------------------------------------------------------- */

/* Makes a new node conditional: its branches are made and p->phGraph_out is set. INVALID_VALUE: the
 * handle is not of this graph, or has a node. */
CUresult hed_node_give_condition(struct hed_node *n, CUDA_CONDITIONAL_NODE_PARAMS *p);
/* The node goes, and with it its branches. */
void hed_node_take_condition(struct hed_node *n);
/* The graph goes, and with it its handles. */
void hed_graph_handles_free(struct hed_graph *g);

/* ---- user_object.c --------------------------------------------------------------------------- */

CUresult hed_graph_users_add(struct hed_graph_user **list, struct hed_user_object *o,
                             unsigned count);
CUresult hed_graph_users_copy(struct hed_graph_user *from, struct hed_graph_user **to);
void hed_graph_users_free(struct hed_graph_user **list);

/* ---- node_params.c: work out of what a program says about a node, and back ------------------- */

/* Work of a node of `type` from its parameters, checked; NULL work for empty and child nodes. */
CUresult hed_node_work(struct hed_layer *self, const CUgraphNodeParams *p, struct hed_work **out);

/* What a node was given; pointers in it live as long as the node is not changed. */
CUresult hed_node_params(struct hed_node *n, CUgraphNodeParams *out);

/* ---- graph_exec.c ---------------------------------------------------------------------------- */

/* The body that a graph makes; child graphs included. */
CUresult hed_exec_body(struct hed_graph *g, struct hed_graph_exec **out);

/* Gives a node of an executable graph other work, which is taken. INVALID_VALUE: there is no such
 * node, or it is of another type. */
CUresult hed_exec_set_work(struct hed_layer *self, CUgraphExec exec, CUgraphNode node,
                           CUgraphNodeType type, struct hed_work *w);
CUresult hed_exec_set_child(struct hed_layer *self, CUgraphExec exec, CUgraphNode node,
                            CUgraph child);

/* ---- graph_launch.c -------------------------------------------------------------------------- */

/* "Each launch is ordered behind both any previous work in this stream and any previous launches of
 * this graph." (CUDA Driver API, cuGraphLaunch) The first adds the points of the last launch, the
 * second notes that of one that has been put on a stream. For machines. */
bool hed_exec_add_last(struct hed_exec *e, struct hed_points *after);
CUresult hed_exec_launched(struct hed_exec *e, struct hed_stream *s);

/* The calls, for the table of graph_exec.c. */
CUresult hed_soft_cuGraphLaunch(struct hed_layer *self, struct hed_cuGraphLaunch *a);
CUresult hed_soft_cuGraphUpload(struct hed_layer *self, struct hed_cuGraphUpload *a);
