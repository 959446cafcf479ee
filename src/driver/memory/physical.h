/* Physical memory of virtual memory management: what cuMemCreate makes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/layer.h"
#include "driver/driver.h"
#include "driver/handle.h"

#define HED_PHYSICAL_UNIT (2ull << 20) /* bytes; minimum and recommended, as NVIDIA's */

struct hed_physical {
    struct hed_object object; /* first */
    struct hed_driver *driver;
    struct hed_device *device; /* who pays; NULL: the host */
    struct hed_physical_memory *memory;
    uint64_t size;
    CUmemAllocationProp_v1 prop;
    /* Guarded by driver->memory_lock. The handle goes when both are 0: until then memory that is
     * mapped can be retained again. */
    uint32_t names;    /* cuMemRelease calls that are owed; 0: the handle is refused */
    uint32_t mappings; /* each has a reference as well */
};

/* The memory of a handle that has not been released, to be put back with hed_object_put; NULL:
 * there is none. */
struct hed_physical *hed_physical_find(struct hed_driver *d, CUmemGenericAllocationHandle handle);

/* One name or mapping less (&p->names, &p->mappings); the handle goes with the last. The caller has
 * a reference, and not the lock. */
void hed_physical_lose(struct hed_physical *p, uint32_t *count);
