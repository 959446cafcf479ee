/* A fake device for tests of the quota layer. It counts the memory that is taken, uses addresses
 * again at once, has a pool that grows in steps and code that takes memory, and fails when told to.
 */
#pragma once

#include "harness/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "backends/null/null.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "layers/layers.h"
#include "share/quota/engine.h"

#define MIB ((uint64_t)1 << 20)
#define SLOTS 4096
#define FAKE_TOTAL (1024 * MIB)

struct fake {
    _Atomic int64_t taken, high; /* bytes that are taken: now, and at most */
    _Atomic uint64_t calls;      /* number of calls that allocate */
    _Atomic CUresult fail;       /* the result of the next call that allocates */
    pthread_mutex_t lock;
    uint64_t size[SLOTS]; /* of the allocation in each slot; 0: free */
    uint64_t pool[SLOTS]; /* the same for the pool */
    uint64_t pool_reserved, pool_step, pool_used;
    uint64_t code;                       /* bytes that the next module takes */
    uint64_t others;                     /* bytes that another process takes while it is loaded */
    uint64_t module;                     /* bytes of the loaded module */
    uint64_t graph_node, graph_reserved; /* bytes of a graph's node; bytes that graphs have */
    bool graph_early;                    /* graphs take their memory when a node is added */
    uint64_t library;                    /* bytes of the library in a context */
    size_t limits[3];                    /* of contexts, by enum CUlimit_enum */
    unsigned stranger;                   /* id of another process that NVML shows */
    uint64_t strangers;                  /* bytes of that process */
    CUmemoryPool made;                   /* the next pool that is created */
    int primary_refs;
    unsigned char uuid;
};

extern struct fake fake;
extern const struct hed_layer_type fake_backend;
extern _Thread_local uintptr_t fake_context; /* 1 when a thread begins */
extern _Thread_local CUdevice fake_device;   /* device of that context; 0 when a thread begins */

/* Makes the quota layer above the fake device, with a limit and in a group ("": none). */
struct hed_layer *quota_over(uint64_t limit, const char *group);
void quota_discard(struct hed_layer *l);

#define CALL(l, call, ...) (l)->cuda->call((l), &(struct hed_##call){__VA_ARGS__})

CUdeviceptr take(struct hed_layer *l, uint64_t n, CUresult expect);
void give(struct hed_layer *l, CUdeviceptr p);
uint64_t charged(struct hed_layer *l);
