/* The parts of the engine of memory limits (share/quota/quota.h), which counts how much of each
 * device's memory a process, or a group of processes, has.
 *
 *   quota.c    the engine's life, devices, room for what is asked for
 *   budget.c   the amount a device is charged with, in this process and in the group
 *   table.c    the charges, by address and by handle
 *   alloc.c    plain, pitched and managed memory, arrays, freeing
 *   pool.c     pools and stream-ordered allocations
 *   pools.c    which pools there are, and what they keep
 *   physical.c memory by handles and its mappings
 *   graph.c    memory nodes
 *   code.c     modules and libraries
 *   limits.c   heap, stacks and print buffer of a context
 *   context.c  memory that ends with its context
 *   view.c     what the program is told about memory, by CUDA and by NVML
 *
 * Invariants:
 * 1. Memory is charged before the call that takes it, and given back after the call that frees it
 *    has succeeded: a charge is never less than what the program holds. Only the driver knows how
 *    much a pool grows by and how much code takes: these are charged afterwards, and undone if they
 *    do not fit.
 * 2. A charge is taken out of the table before its memory is freed, because another thread may be
 *    given the same address right after.
 * 3. No lock is held across a call of the next layer.
 * 4. What a process of a group has is written in its own slot of the meeting file, so it ends with
 *    the process.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "core/layer.h"
#include "share/meet/meet.h"
#include "share/quota/quota.h"

#define QUOTA_DEVICES 64
#define QUOTA_SLOTS 256
#define QUOTA_SHARDS 64
#define QUOTA_LIMIT_MAX ((UINT64_C(1) << 48) - 1) /* no limit; a total has 48 bits for bytes */

/* ---- budget ---------------------------------------------------------------------------------- */

/* The part of the meeting file that the group shares. The upper 16 bits of a total count changes.
 */
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
    _Atomic int ordinal;     /* of CUDA; -1: not known yet */
    uint32_t slot;           /* in the group's arrays */
    struct hed_meet *meet;   /* NULL: the limit is this process's alone */
    _Atomic uint64_t *total; /* this is compared with the limit */
    _Atomic uint64_t *used;  /* of this process, in its slot; NULL without a group */
    _Atomic uint64_t own;    /* of this process */
    _Atomic uint64_t alone;  /* total without a group */

    _Atomic(struct quota_pool *) pool; /* the current one; NULL: not known, so ask */
    _Atomic(CUcontext) primary;
    _Atomic uint32_t primary_refs;

    /* Graphs' memory; see graph.c. */
    struct hed_lock graph_lock;
    uint64_t graph_charged, graph_model, graph_serial;
    _Atomic bool graph_mute;      /* the layer below does not say */
    bool graph_eager;             /* it takes memory when a node is added */
    bool graph_reports;           /* the layer below says what graphs have */
    _Atomic uint32_t graph_epoch; /* counts trims */

    /* For code.c: the number of loads under way, and free memory and `own` at the last look. */
    struct hed_lock code_lock;
    uint32_t loads;
    uint64_t free_mark, own_mark;
};

bool hed_quota_reserve(struct quota_device *d, uint64_t n); /* false: it would be over the limit */
void hed_quota_force(struct quota_device *d, uint64_t n);   /* the memory is there already */
void hed_quota_give(struct quota_device *d, uint64_t n);
uint64_t hed_quota_used(struct quota_device *d); /* of all living processes that share the limit */
/* Shows others what the process has (core/usage.h). */
void hed_quota_show(struct quota_device *d);
bool hed_quota_is_over(struct quota_device *d); /* because of charges that were forced */

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
    CUcontext context; /* the charge ends with it; NULL: with none */
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

/* ---- the engine ------------------------------------------------------------------------------ */

struct quota_pool {
    CUmemoryPool handle;
    struct quota_device *device; /* NULL: of the host, not charged */
    bool gone;                   /* destroyed; its last memory goes with its last allocation */
    _Atomic bool mute;           /* the layer below does not say what it has */
    uint64_t live, charged;      /* guarded by quota.lock, as is the rest */
    uint64_t serial;
    struct quota_pool *next;
};

struct quota_mapping {
    uint64_t at, size;
    struct quota_physical *physical;
};

struct hed_quota {
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
    _Atomic bool captures;     /* a capture has been begun */
    _Atomic bool memory_nodes; /* a graph has had memory nodes */
    _Atomic bool warned;       /* the user knows that the limit is reached */
};

/* The device of that ordinal or UUID. NULL: the layer below does not know it, or not yet. */
struct quota_device *hed_quota_device(struct hed_layer *self, CUdevice ordinal);
struct quota_device *hed_quota_device_by_key(struct hed_quota *q, const uint64_t key[2]);
void hed_quota_key_of_ordinal(unsigned ordinal, uint64_t key[2]); /* where there is no UUID */
struct quota_device *hed_quota_current(struct hed_layer *self);
CUcontext hed_quota_context(struct hed_layer *self);

/* Makes pools and graphs give up memory that they do not need. */
void hed_quota_relieve(struct hed_layer *self, struct quota_device *d);

/* Reserves n bytes; if they do not fit, after hed_quota_relieve(). */
bool hed_quota_claim(struct hed_layer *self, struct quota_device *d, uint64_t n);

/* How much memory a device loses by an allocation of n bytes. */
uint64_t hed_quota_round(uint64_t n);

int hed_quota_put(struct hed_quota *q, const struct quota_charge *r);
bool hed_quota_take(struct hed_quota *q, enum quota_kind kind, uint64_t key,
                    struct quota_charge *out);
bool hed_quota_peek(struct hed_quota *q, enum quota_kind kind, uint64_t key,
                    struct quota_charge *out);
/* Takes out the charges that end with a context. */
void hed_quota_take_all(struct hed_quota *q, CUcontext context, struct quota_charges *out);
void hed_quota_take_library(struct hed_quota *q, CUlibrary library, struct quota_charges *out);
void hed_quota_put_all(struct hed_quota *q, struct quota_charges *r);
void hed_quota_drop_all(struct hed_layer *self, struct quota_charges *r); /* gives all back */

/* Pools. */
struct quota_pool *hed_quota_pool_learn(struct hed_quota *q, CUmemoryPool handle,
                                        struct quota_device *d);
void hed_quota_pool_freed(struct hed_layer *self, struct quota_pool *p, uint64_t n);
void hed_quota_pools_settle(struct hed_layer *self, struct quota_device *d, bool trim);
struct quota_pool *hed_quota_pool_end(struct hed_layer *self, CUmemoryPool handle);
void hed_quota_pool_ended(struct hed_layer *self, struct quota_pool *p, bool done);
void hed_quota_pool_changed(struct hed_layer *self, CUmemoryPool handle);
/* Around calls of our own, which must not end a capture of the program. Returns the mode to put
 * back. */
int hed_quota_relax(struct hed_layer *self);
void hed_quota_relaxed(struct hed_layer *self, int before);

/* Graphs. */
bool hed_quota_graph_begin(struct hed_layer *self, struct quota_device *d, uint64_t n);
void hed_quota_graph_end(struct hed_layer *self, struct quota_device *d, uint64_t n);
void hed_quota_graph_added(struct hed_layer *self, struct quota_device *d, uint64_t n);
void hed_quota_graph_trim(struct hed_layer *self, struct quota_device *d);

/* What a load took, without the heap that came with it: that was charged when it was asked for. */
uint64_t hed_quota_without_heap(struct hed_layer *self, uint64_t took);

/* An array is gone: the physical memory that was mapped to it is not held by it any more. */
void hed_quota_physical_array_gone(struct hed_quota *q, uint64_t array);

/* ---- calls ----------------------------------------------------------------------------------- */

/* A call that takes, frees, maps or tells of device memory, in the words of the spec (memory=).
 * Roles that a call does not have are 0. */
struct quota_call {
    enum hed_cuda_call id;
    CUresult (*next)(struct hed_layer *self, void *args); /* calls the next layer */
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

/* Makes a call that ends the memory of these charges, which were taken out; puts them back if it
 * fails. */
CUresult hed_quota_end_all(struct hed_layer *self, const struct quota_call *c,
                           struct quota_charges *all);

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
    return c->next(self, c->args);
}

/* Defines a function for a call of a class; quota_do_<class>() makes the call, or refuses it. */
#define QUOTA_CALL(call, class, ...)                                                              \
    static CUresult next_##call(struct hed_layer *self, void *args)                               \
    {                                                                                             \
        return hed_next(self, call, args);                                                        \
    }                                                                                             \
    CUresult hed_quota_##call(struct hed_layer *self, struct hed_##call *a)                       \
    {                                                                                             \
        return quota_do_##class(                                                                  \
            self,                                                                                 \
            &(struct quota_call){.id = HED_##call, .next = next_##call, .args = a, __VA_ARGS__}); \
    }

#define QUOTA_NVML_CALL(call, class, ...)                                               \
    nvmlReturn_t hed_quota_##call(struct hed_layer *self, struct hed_##call *a)         \
    {                                                                                   \
        return quota_do_##class(                                                        \
            self, &(struct quota_nvml_call){.id = HED_##call, .args = a, __VA_ARGS__}); \
    }
