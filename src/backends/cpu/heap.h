/* The heap of device code: malloc and free of kernels, one heap a device. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"

struct hed_heap_slot {
    void *at; /* NULL: empty; a mark of its own: was used */
    size_t size;
};

/* Memory is the process's; the table knows what is in use, so that a bad pointer is found out
 * without looking behind it. */
struct hed_heap {
    struct hed_lock lock;
    struct hed_heap_slot *slots; /* open addressing; guarded by lock, as all that follows */
    size_t room;                 /* a power of two */
    size_t filled;               /* slots that are not empty */
    size_t used;                 /* bytes */
};

void hed_heap_init(struct hed_heap *h);
/* Frees everything. */
void hed_heap_fini(struct hed_heap *h);

/* NULL: over the limit, or no memory. Aligned to 16. */
void *hed_heap_take(struct hed_heap *h, size_t size, size_t limit);
/* HED_EINVAL: it is not of this heap. */
int hed_heap_give(struct hed_heap *h, void *p);
