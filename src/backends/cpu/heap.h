/* The heap of device code: malloc and free of kernels, one heap per device. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

struct hed_heap_slot {
    void *at; /* NULL if empty; a mark if it was used */
    size_t size;
};

/* The memory is the process's. The table has the addresses in use, so a bad pointer is found
 * without reading the memory it points to. */
struct hed_heap {
    struct hed_lock lock;
    struct hed_heap_slot *slots; /* open addressing; guarded by lock, like all that follows */
    size_t room;                 /* a power of two */
    size_t filled;               /* slots that are not empty */
    size_t used;                 /* bytes */
};

void hed_heap_init(struct hed_heap *h);
/* Frees everything. */
void hed_heap_fini(struct hed_heap *h);

/* Aligned to 16; NULL if the limit is exceeded or there is no memory. */
void *hed_heap_take(struct hed_heap *h, size_t size, size_t limit);
/* HED_EINVAL if p is not from this heap. */
int hed_heap_give(struct hed_heap *h, void *p);
