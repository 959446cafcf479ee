/* Physical memory of virtual memory management: made by cuMemCreate. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"
#include "driver/handle.h"
#include "driver/parts.h"

#define HED_PHYSICAL_UNIT (2ull << 20) /* bytes; the granularity of NVIDIA's driver */

struct hed_physical {
    struct hed_object object; /* must come first */
    struct hed_driver *driver;
    struct hed_device *device; /* where it is, and what it is charged to; NULL for host memory */
    bool imported;             /* another process made it and is charged */
    struct hed_physical_memory *memory;
    uint64_t size;
    CUmemAllocationProp_v1 prop;
    /* Guarded by driver->memory_lock. The handle is removed when both are 0: until then memory that
     * is mapped can be retained again. */
    uint32_t names;    /* cuMemRelease calls that are still due; 0: the handle is refused */
    uint32_t mappings; /* each also has a reference */
};

/* Can memory be exported as a descriptor? */
bool hed_physical_can_export(const struct hed_driver *d);

/* The memory of a handle that has not been released, with a reference that the caller gives back by
 * hed_object_put(); NULL if there is none. */
struct hed_physical *hed_physical_find(struct hed_driver *d, CUmemGenericAllocationHandle handle);

/* Takes one from a count (&p->names, &p->mappings); the handle is removed with the last. The caller
 * has a reference and does not hold the lock. */
void hed_physical_lose(struct hed_physical *p, uint32_t *count);
