/* The heap of device code: malloc and free of kernels, one heap per device. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "kernel/engine/region.h"

struct hed_heap_slot {
    void *at; /* NULL if empty; a mark if it was used */
    size_t size;
};

#define HED_HEAP_CLASSES 12 /* of 16 bytes to 32 KiB */

/* Addresses of one size that are free. */
struct hed_heap_spare {
    void **at;
    size_t count, room;
};

/* The memory is the process's, or comes from the address sandbox of confined kernels. The table has
 * the addresses in use, so a bad pointer is found without reading the memory it points to. */
struct hed_heap {
    struct hed_regions *sandbox; /* or NULL; constant */
    struct hed_lock lock;
    struct hed_heap_slot *slots; /* open addressing; guarded by lock, like all that follows */
    size_t room;                 /* a power of two */
    size_t filled;               /* slots that are not empty */
    size_t used;                 /* bytes */
    struct hed_heap_spare spare[HED_HEAP_CLASSES]; /* of the address sandbox */
};

void hed_heap_init(struct hed_heap *h, struct hed_regions *sandbox);
/* Frees everything. */
void hed_heap_fini(struct hed_heap *h);

/* Aligned to 16; NULL if the limit is exceeded or there is no memory. */
void *hed_heap_take(struct hed_heap *h, size_t size, size_t limit);
/* HED_EINVAL if p is not from this heap. */
int hed_heap_give(struct hed_heap *h, void *p);
