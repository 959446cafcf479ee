/* The quota layer's parts: how much of each device's memory a process, or a group of them, has.
 *
 *   quota.c    the layer: settings, devices
 *   calls.c    the table of calls: which function treats which call
 *   budget.c   the amount a device is charged with, in this process and in the group
 *   table.c    what was charged for what: by address and by handle
 *   alloc.c    plain, pitched and managed memory, arrays, freeing
 *   pool.c     pools and stream-ordered allocations
 *   pools.c    which pools there are, and what they keep
 *   physical.c memory by handles (cuMemCreate) and its mappings
 *   graph.c    memory nodes
 *   code.c     modules and libraries
 *   limits.c   heap, stacks and print buffer of a context
 *   context.c  what goes with a context
 *   view.c     what the program is told: cuMemGetInfo, NVML
 *
 * Invariants:
 * 1. Memory is charged before the call that takes it, and given back after the call that frees it
 *    has succeeded: a charge is never less than what the program holds. The exceptions, where only
 *    the driver knows how much it takes, are pools' steps and code: what does not fit is undone.
 * 2. A charge is taken out of the table before its memory is freed, because another thread may be
 *    given the same address right after.
 * 3. No lock is held across a call of the next layer.
 * 4. What a process of a group has is in its own slot of the meeting file: it goes with it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "core/layer.h"
#include "meet/meet.h"

#define QUOTA_DEVICES 64
#define QUOTA_SLOTS 256
#define QUOTA_SHARDS 64

/* ---- budget ---------------------------------------------------------------------------------- */

/* The group's part that all share. A total has a count of changes in its upper 16 bits. */
struct quota_common {
    _Atomic uint64_t total[QUOTA_DEVICES];
    _Atomic uint64_t key[QUOTA_DEVICES][2]; /* the device's UUID; 0: free */
};

struct quota_slot {
    _Atomic uint64_t used[QUOTA_DEVICES];
};

struct quota_pool;

struct quota_device {
    uint64_t key[2];
    uint64_t limit;          /* bytes */
    uint32_t slot;           /* in the group's arrays */
    struct hed_meet *meet;   /* NULL: the limit is this process's alone */
    _Atomic uint64_t *total; /* what is compared with the limit */
    _Atomic uint64_t *used;  /* of this process, in its slot; NULL without a group */
    _Atomic uint64_t own;    /* of this process */
    _Atomic uint64_t alone;  /* total without a group */

    _Atomic(struct quota_pool *) pool; /* the current one; NULL: ask */
    _Atomic(CUcontext) primary;
    _Atomic uint32_t primary_refs;

    /* Graphs' memory; see graph.c. */
    struct hed_lock graph_lock;
    uint64_t graph_charged, graph_model, graph_serial;
    _Atomic bool graph_mute;      /* the layer below does not say */
    bool graph_eager;             /* it takes memory when a node is added */
    bool graph_reports;           /* the layer below says what graphs have */
    _Atomic uint32_t graph_epoch; /* counts trims */

    /* Loads under way: free memory and own charge at the last look; see code.c. */
    struct hed_lock code_lock;
    uint32_t loads;
    uint64_t free_mark, own_mark;
};

bool quota_reserve(struct quota_device *d, uint64_t n); /* false: it would be over the limit */
void quota_force(struct quota_device *d, uint64_t n);   /* the memory is there already */
void quota_give(struct quota_device *d, uint64_t n);
uint64_t quota_used(struct quota_device *d); /* of all who share the limit and live */
bool quota_is_over(struct quota_device *d);  /* by what was forced */

/* ---- table ----------------------------------------------------------------------------------- */

/* What a charge is for. Objects go by the kind that the spec gives them (new=, free=). */
enum quota_kind {
    QUOTA_MEMORY = HED_CUDA_KIND_MEMORY,
    QUOTA_ARRAY = HED_CUDA_KIND_ARRAY,
    QUOTA_MIPMAP = HED_CUDA_KIND_MIPMAP,
    QUOTA_PHYSICAL = HED_CUDA_KIND_PHYSICAL,
    QUOTA_MODULE = HED_CUDA_KIND_MODULE,
    QUOTA_LIBRARY = HED_CUDA_KIND_LIBRARY,
    QUOTA_EXEC = HED_CUDA_KIND_GRAPH_EXEC,
    QUOTA_LIMIT = HED_CUDA_KIND_CONTEXT, /* what a context was told to have for its kernels */
};

struct quota_charge {
    uint64_t key;
    uint64_t bytes;
    struct quota_device *device;
    CUcontext context; /* it goes with; NULL: with none */
    void *thing;       /* struct quota_pool, quota_physical, quota_exec or CUlibrary, by kind */
    enum quota_kind kind;
};

struct quota_shard {
    struct hed_lock lock;
    struct quota_charge *slots; /* kind 0: free */
    size_t size, count;         /* size: a power of two, or 0 */
} __attribute__((aligned(64)));

struct quota_charges {
    struct quota_charge *at;
    size_t count, size;
};

/* ---- the layer ------------------------------------------------------------------------------- */

struct quota_pool {
    CUmemoryPool handle;
    struct quota_device *device; /* NULL: of the host, not charged */
    bool gone;                   /* destroyed; the last of it goes with its last allocation */
    _Atomic bool mute;           /* the layer below does not say what it has */
    uint64_t live, charged;      /* guarded by quota.lock, as is the rest */
    uint64_t serial;
    struct quota_pool *next;
};

struct quota_mapping {
    uint64_t at, size;
    struct quota_physical *physical;
};

struct quota {
    uint64_t limit;
    struct hed_meet *meet;
    struct hed_lock lock; /* devices, pools, physical memory */
    _Atomic(struct quota_device *) ordinals[QUOTA_DEVICES];
    struct quota_device *devices[QUOTA_DEVICES];
    uint32_t device_count;
    struct quota_pool *pools;
    struct quota_mapping *mappings; /* sorted by address */
    size_t mapping_count, mapping_size;
    struct quota_shard shards[QUOTA_SHARDS];
    _Atomic bool captures;     /* a capture was begun, once */
    _Atomic bool memory_nodes; /* a graph had memory nodes, once */
};

/* The device of that ordinal or UUID; NULL: the layer below does not answer, as before cuInit. */
struct quota_device *quota_device(struct hed_layer *self, CUdevice ordinal);
struct quota_device *quota_device_by_key(struct quota *q, const uint64_t key[2]);
void quota_key_of_ordinal(unsigned ordinal, uint64_t key[2]); /* where there is no UUID */
struct quota_device *quota_current(struct hed_layer *self);
CUcontext quota_context(struct hed_layer *self);

/* Gives up what pools and graphs keep without need. */
void quota_relieve(struct hed_layer *self, struct quota_device *d);

/* Reserves; if need be after having given up what pools and graphs keep without need. */
bool quota_claim(struct hed_layer *self, struct quota_device *d, uint64_t n);

/* What a device loses by an allocation of n bytes. */
uint64_t quota_round(uint64_t n);

int quota_put(struct quota *q, const struct quota_charge *r);
bool quota_take(struct quota *q, enum quota_kind kind, uint64_t key, struct quota_charge *out);
bool quota_peek(struct quota *q, enum quota_kind kind, uint64_t key, struct quota_charge *out);
/* Takes what goes with a context. */
void quota_take_all(struct quota *q, CUcontext context, struct quota_charges *out);
void quota_take_library(struct quota *q, CUlibrary library, struct quota_charges *out);
void quota_put_all(struct quota *q, struct quota_charges *r);
void quota_drop_all(struct hed_layer *self, struct quota_charges *r); /* gives all back */

/* Pools. */
struct quota_pool *quota_pool_learn(struct quota *q, CUmemoryPool handle, struct quota_device *d);
void quota_pool_freed(struct hed_layer *self, struct quota_pool *p, uint64_t n);
void quota_pools_settle(struct hed_layer *self, struct quota_device *d, bool trim);
struct quota_pool *quota_pool_end(struct hed_layer *self, CUmemoryPool handle);
void quota_pool_ended(struct hed_layer *self, struct quota_pool *p, bool done);
void quota_pool_changed(struct hed_layer *self, CUmemoryPool handle);
/* Calls of ours must not end a capture of the program's. Returns what to put back. */
int quota_relax(struct hed_layer *self);
void quota_relaxed(struct hed_layer *self, int before);

/* Graphs. */
bool quota_graph_begin(struct hed_layer *self, struct quota_device *d, uint64_t n);
void quota_graph_end(struct hed_layer *self, struct quota_device *d, uint64_t n);
void quota_graph_added(struct hed_layer *self, struct quota_device *d, uint64_t n);
void quota_graph_trim(struct hed_layer *self, struct quota_device *d);

/* What a load took, without the heap that came with it and was charged when it was asked for. */
uint64_t quota_without_heap(struct hed_layer *self, uint64_t took);

/* Arrays that physical memory was mapped to. */
void quota_physical_array_gone(struct quota *q, uint64_t array);

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call that takes, frees, maps or tells of device memory, in the words of the spec (memory=).
 * Roles that a call does not have are 0. */
struct quota_call {
    enum hed_cuda_call id;
    void *args;

    struct hed_place out; /* takes the address or handle of what is made */
    uint64_t key;         /* address or handle of what is freed, used or asked about */
    uint64_t at;          /* an address in memory that is mapped */
    uint64_t bytes;
    struct hed_place free, total; /* what the program is told */

    struct hed_place pitch; /* of rows: takes how far they are apart; `bytes` is the width of one */
    uint64_t rows;
    uint64_t width, height, depth; /* of an array: elements */
    CUarray_format format;
    unsigned channels, flags, levels;

    CUmemLocationType where;
    int device; /* its ordinal, where `where` or the class says that it is a device */
    CUmemAllocationType type;
    uint64_t stream;
    bool ptds;
    CUlimit limit;
    CUgraphNodeType node;
    const CUarrayMapInfo_v1 *maps;
    unsigned count; /* of maps */
};

struct quota_nvml_call {
    enum hed_nvml_call id;
    void *args;
    uint64_t device;
    struct hed_place total, free, used, reserved;
    struct hed_place list, count; /* of processes */
    struct hed_place pid;         /* of the first one, as is `used` */
    nvmlProcessDetailList_v1_t *details;
};

/* Makes the call as the program made it. */
static inline CUresult
quota_next(struct hed_layer *self, const struct quota_call *c)
{
    return hed_cuda_invoke(self->next, c->id, c->args);
}

/* What is done about each class of calls. Every function makes the call, or refuses it. */

/* alloc.c */
CUresult quota_do_alloc(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_alloc_rows(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_alloc_array(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_free(struct hed_layer *self, const struct quota_call *c);
/* pool.c */
CUresult quota_do_pool_alloc(struct hed_layer *self, const struct quota_call *c);
/* pools.c */
CUresult quota_do_pool_seen(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_pool_choose(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_pool_trim(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_pool_end(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_capture(struct hed_layer *self, const struct quota_call *c);
/* physical.c */
CUresult quota_do_physical_make(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_physical_release(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_physical_retain(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_physical_map(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_physical_unmap(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_physical_map_arrays(struct hed_layer *self, const struct quota_call *c);
/* graph.c */
CUresult quota_do_node_add(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_exec_make(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_exec_launch(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_exec_end(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_graph_end(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_graph_trim(struct hed_layer *self, const struct quota_call *c);
/* code.c */
CUresult quota_do_code_load(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_library_use(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_library_unload(struct hed_layer *self, const struct quota_call *c);
/* context.c */
CUresult quota_do_context_end(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_context_detach(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_primary_retain(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_primary_release(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_primary_reset(struct hed_layer *self, const struct quota_call *c);
/* limits.c */
CUresult quota_do_context_limit(struct hed_layer *self, const struct quota_call *c);
/* view.c */
CUresult quota_do_tell_free(struct hed_layer *self, const struct quota_call *c);
CUresult quota_do_tell_total(struct hed_layer *self, const struct quota_call *c);
nvmlReturn_t quota_do_tell_memory(struct hed_layer *self, const struct quota_nvml_call *c);
nvmlReturn_t quota_do_tell_processes(struct hed_layer *self, const struct quota_nvml_call *c);
nvmlReturn_t quota_do_tell_details(struct hed_layer *self, const struct quota_nvml_call *c);

/* calls.c */
extern const struct hed_cuda_ops quota_cuda;
extern const struct hed_nvml_ops quota_nvml;
