/* Memory of other processes that is mapped here. For the files of ipc/ and of pools. */
#pragma once

#include "driver/ipc/name.h"
#include "driver/memory/memory.h"

struct hed_memory_block;
struct hed_pool;

/* hed_allocation.extra of HED_MEMORY_IMPORTED. */
struct hed_imported {
    struct hed_imported *next, **link;  /* those of cuIpcOpenMemHandle; link is NULL for others */
    struct hed_physical_memory *memory; /* owned, unless it is the pool's file */
    struct hed_pool *pool;              /* a reference: cuMemPoolImportPointer; or NULL */
    struct hed_context *ctx;            /* for comparing only */
    struct hed_space *space;
    uint64_t base, bytes; /* what is mapped: whole pages around the allocation */
    uint64_t at;          /* first address of the allocation */
    uint32_t opens;       /* calls that have not been closed; guarded by driver->memory_lock */
    struct hed_ipc_name name;
};

/* Maps n->at and n->size of a file into the address space of the context's device, in the index as
 * memory of `dev`. OUT_OF_MEMORY; INVALID_VALUE if the file is not that large. Takes `i`, with its
 * memory and its pool, also on failure. */
CUresult hed_imported_map(struct hed_context *c, struct hed_device *dev, struct hed_imported *i,
                          uint64_t *at);

/* The memory of a name with a key. HED_EINVAL, or as struct hed_machine_keys. */
int hed_imported_open(struct hed_driver *d, enum hed_ipc_kind kind, const struct hed_ipc_name *n,
                      uint8_t owner[HED_PHYSICAL_OWNER], struct hed_physical_memory **out);

/* Lets other processes map a block, of which the caller has a part or a pin. */
int hed_block_share(struct hed_driver *d, struct hed_device *dev, struct hed_memory_block *k);

/* The program's error, which for most reasons is `refused`, and a line in the log if it is a name
 * of ours. The errors are those of NVIDIA's driver 580 on an H200. */
CUresult hed_ipc_refused(const struct hed_ipc_name *n, int err, const char *what, CUresult refused);

/* The visible device with this number; NULL if there is none. */
struct hed_device *hed_ipc_device(struct hed_driver *d, const uint8_t uuid[16]);

/* Can this driver share anything? If not, is_possible counts the call as not supported. */
bool hed_ipc_can(const struct hed_driver *d);
bool hed_ipc_is_possible(struct hed_driver *d, enum hed_cuda_call id);

static inline bool
hed_imported_from_pool(const struct hed_allocation *a)
{
    return a->kind == HED_MEMORY_IMPORTED && ((const struct hed_imported *)a->extra)->pool != NULL;
}
