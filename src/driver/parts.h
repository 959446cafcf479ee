/* The soft driver: all of a CUDA driver that needs no device.
 *
 *   struct hed_driver           one per process: handles, visible devices, the machine
 *     struct hed_device         a profile, a range of addresses, how much memory is in use
 *       struct hed_context      primary or created; streams, modules, limits, sticky error
 *         struct hed_stream ... driver/stream/stream.h
 *
 * A backend makes one with hed_driver_create(). Its layer type has the table hed_driver_calls(),
 * and the layer's state is the driver. Each file that answers calls has a table of its own
 * (hed_calls_<area>). A call that is in no table is answered NOT_SUPPORTED, counted and logged by
 * name.
 *
 * Locks, outermost first (base/lock.h has the ranks): context lists, a stream's queue, memory,
 * handles. None is held while work runs, while the machine is called, or while functions of the
 * program (callbacks, destructors) run.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "core/layer.h"
#include "driver/handle.h"
#include "driver/machine.h"
#include "driver/profile.h"
#include "driver/space.h"

struct hed_context;
struct hed_stream;

#define HED_DRIVER_VERSION 13000

struct hed_device {
    struct hed_driver *driver;
    int ordinal;
    struct hed_profile_device info; /* constant */
    struct hed_space *space;        /* its addresses; guarded by driver->memory_lock */
    uint64_t used;                  /* bytes of profile.memory in use; guarded by memory_lock */
    uint64_t graph_memory;          /* bytes that graphs have; guarded by memory_lock */
    uint64_t graph_used_high;       /* the most of it since the program last reset the peak */
    uint64_t graph_reserved_high;   /* the same for reserved memory */
    struct hed_context *primary;    /* never NULL; its handle never changes; context.c */
    struct hed_pool *default_pool;  /* never NULL after init; pool.c */
    struct hed_pool *current_pool;  /* guarded by memory_lock */
};

struct hed_driver {
    uint64_t serial; /* never 0, never used twice; a thread recognises its driver by it */
    const struct hed_machine *machine;
    void *machine_state;
    struct hed_handles *handles;
    struct hed_device devices[HED_PROFILE_DEVICES_MAX];
    int device_count;
    struct hed_layer self;         /* for calls that the driver makes to itself */
    _Atomic bool initialized;      /* cuInit has succeeded */
    _Atomic bool managed;          /* there is managed memory, or there was */
    _Atomic bool ended;            /* the process is ending: every call answers DEINITIALIZED */
    _Atomic bool loaded;           /* a program has been opened */
    _Atomic(char *) not_loaded;    /* why the first one was not that need not be; owned; or NULL */
    _Atomic int lost;              /* CUresult; not 0: the machine is gone, every context fails */
    uint64_t space_base;           /* the start of the one reserved range */
    uint64_t space_size;           /* the devices' spaces come first, in order, then host_space */
    struct hed_lock memory_lock;   /* the address spaces and the allocation index (memory.h) */
    struct hed_lock contexts_lock; /* lists of contexts, primary states */
    pthread_cond_t contexts_changed; /* with contexts_lock: a context's `closing` was cleared */
    struct hed_context *contexts;    /* all living contexts; guarded by contexts_lock */
    struct hed_memory *memory;       /* index of allocations: memory.h */
    struct hed_space *host_space;    /* pinned and managed memory: guarded by memory_lock */
    _Atomic uint64_t grid_ids;
    struct hed_shared_state *shared; /* what processes of one user share for NVML; or NULL */
};

/* Makes a driver with these visible devices on a machine. Returns 0, HED_ENOMEM, or another error
 * with the reason. */
int hed_driver_create(const struct hed_machine *machine, void *machine_state,
                      const struct hed_profile_device *devices, size_t count,
                      struct hed_driver **out, struct hed_why *why);
void hed_driver_fini(struct hed_driver *d);   /* the process ends; waits for nothing */
void hed_driver_forked(struct hed_driver *d); /* called in the child of a fork */

/* The same for a backend's layer, whose state is the driver. */
void hed_driver_layer_fini(struct hed_layer *self);
void hed_driver_layer_forked(struct hed_layer *self);

/* Frees the driver with its contexts; no thread may use it any more. For a backend that cannot
 * start after all, and for tests: at the end of a process fini is enough. d may be NULL. */
void hed_driver_free(struct hed_driver *d);

/* The driver of this process. The functions in the export tables need it, since they are given no
 * layer. NULL if there is none yet. */
struct hed_driver *hed_driver_here(void);

/* Makes and frees the primary contexts: context.c. 0 or HED_E... */
int hed_context_driver_init(struct hed_driver *d);
void hed_context_driver_fini(struct hed_driver *d);

/* The tables of all areas merged into one, which is built once. A NULL entry is a call that no area
 * has; for those the backend's layer type sets cuda_any and nvml_any to the two functions below. */
const struct hed_cuda_ops *hed_driver_calls(void);
const struct hed_nvml_ops *hed_driver_nvml_calls(void);
CUresult hed_driver_unsupported(struct hed_layer *self, enum hed_cuda_call id, void *args);
nvmlReturn_t hed_driver_nvml_unsupported(struct hed_layer *self, enum hed_nvml_call id, void *args);

/* The areas. A test checks that a call is in exactly one of them. */
extern const struct hed_cuda_ops hed_calls_device;      /* device.c: init, version, devices */
extern const struct hed_cuda_ops hed_calls_device_info; /* device_info.c: attributes, peers */
extern const struct hed_cuda_ops hed_calls_context;     /* context_calls.c */
extern const struct hed_cuda_ops hed_calls_primary;     /* primary_calls.c, limits, caches */
extern const struct hed_cuda_ops hed_calls_stream;  /* stream_calls.c: streams, host functions */
extern const struct hed_cuda_ops hed_calls_event;   /* event.c */
extern const struct hed_cuda_ops hed_calls_memop;   /* memop.c: values in memory, in stream order */
extern const struct hed_cuda_ops hed_calls_memory;  /* memory_calls.c: plain, host, managed */
extern const struct hed_cuda_ops hed_calls_copy;    /* copy.c: copies and fills */
extern const struct hed_cuda_ops hed_calls_pool;    /* pool_calls.c */
extern const struct hed_cuda_ops hed_calls_virtual; /* virtual.c: address ranges, physical memory */
extern const struct hed_cuda_ops hed_calls_ipc_memory; /* ipc/memory.c: between processes */
extern const struct hed_cuda_ops hed_calls_ipc_event;  /* ipc/event_calls.c */
extern const struct hed_cuda_ops hed_calls_ipc_pool;   /* ipc/pool.c */
extern const struct hed_cuda_ops hed_calls_array; /* array.c: arrays, mipmaps, textures, surfaces */
extern const struct hed_cuda_ops hed_calls_module;      /* module_calls.c */
extern const struct hed_cuda_ops hed_calls_library;     /* library_calls.c: libraries and kernels */
extern const struct hed_cuda_ops hed_calls_function;    /* function.c: attributes, occupancy */
extern const struct hed_cuda_ops hed_calls_launch;      /* launch.c */
extern const struct hed_cuda_ops hed_calls_reference;   /* reference.c */
extern const struct hed_cuda_ops hed_calls_link;        /* link.c */
extern const struct hed_cuda_ops hed_calls_graph;       /* graph_calls.c: graphs, not nodes */
extern const struct hed_cuda_ops hed_calls_node;        /* node_calls.c: nodes */
extern const struct hed_cuda_ops hed_calls_exec;        /* graph_exec.c: executable graphs */
extern const struct hed_cuda_ops hed_calls_capture;     /* capture_calls.c */
extern const struct hed_cuda_ops hed_calls_table;       /* tables.c: export tables */
extern const struct hed_cuda_ops hed_calls_logs;        /* logs.c: messages */
extern const struct hed_cuda_ops hed_calls_user_object; /* user_object.c */
extern const struct hed_cuda_ops hed_calls_graph_dot;   /* graph_dot.c */
extern const struct hed_cuda_ops hed_calls_graph_update;   /* graph_update.c */
extern const struct hed_cuda_ops hed_calls_condition;      /* condition.c */
extern const struct hed_cuda_ops hed_calls_node_attribute; /* node_attribute.c */

extern const struct hed_nvml_ops hed_calls_nvml_device;  /* nvml_device.c */
extern const struct hed_nvml_ops hed_calls_nvml_system;  /* nvml_system.c */
extern const struct hed_nvml_ops hed_calls_nvml_sensor;  /* nvml_sensor.c */
extern const struct hed_nvml_ops hed_calls_nvml_process; /* nvml_process.c */

/* ---- what every call begins with ------------------------------------------------------------- */

static inline struct hed_driver *
hed_driver_of(struct hed_layer *self)
{
    return self->state;
}

/* Finds a device by ordinal: NOT_INITIALIZED, INVALID_DEVICE. The second function is for calls that
 * write an answer: as on CUDA a NULL `answer` is INVALID_VALUE before the ordinal is looked at. */
CUresult hed_device_get(struct hed_layer *self, CUdevice ordinal, struct hed_device **out);
CUresult hed_device_for(struct hed_layer *self, CUdevice ordinal, const void *answer,
                        struct hed_device **out);

/* What cuDeviceGetDevResource() says of a device. INVALID_RESOURCE_TYPE. */
CUresult hed_device_resource(const struct hed_device *dev, CUdevResourceType type,
                             CUdevResource_v1 *out);

/* A graph takes or gives back memory. memory_lock is held. */
static inline void
hed_device_graph_memory_locked(struct hed_device *dev, uint64_t more, uint64_t less)
{
    dev->graph_memory += more - less;
    if (dev->graph_used_high < dev->graph_memory)
        dev->graph_used_high = dev->graph_memory;
    if (dev->graph_reserved_high < dev->graph_memory)
        dev->graph_reserved_high = dev->graph_memory;
}

/* The thread's current context, which is alive: NOT_INITIALIZED, INVALID_CONTEXT (none),
 * CONTEXT_IS_DESTROYED, or its sticky error. The pointer is good for the length of the call, since
 * a context is not freed while a call uses it. Use hed_context_ref() to keep it longer. */
CUresult hed_current(struct hed_layer *self, struct hed_context **out);

/* The same for calls that need none: *out is NULL then, and INVALID_CONTEXT is no answer. */
CUresult hed_current_if_any(struct hed_layer *self, struct hed_context **out);

/* The same, but ignores a sticky error, for calls that destroy things or ask. */
CUresult hed_current_even_failed(struct hed_layer *self, struct hed_context **out);
