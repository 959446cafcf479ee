/* The guest's memory, as QEMU shares it: files that are mapped here, and where they lie for the
 * guest (its physical addresses) and for QEMU (its own addresses, in which it tells where queues
 * are).
 *
 * Guest and QEMU may change any byte at any time. So whatever is checked is copied first, by
 * hed_guest_copy(), and only the copy is used. If QEMU truncates a file, touching what is gone ends
 * this process (SIGBUS), which serves nobody else.
 *
 * Invariant: regions do not overlap, neither in the guest nor in QEMU, and lie inside their files
 * as these were when they were mapped.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hed_why;

#define HED_GUEST_REGIONS 8 /* as vhost-user has it */

struct hed_guest_place { /* as QEMU tells it */
    uint64_t guest;      /* physical address */
    uint64_t size;       /* bytes */
    uint64_t user;       /* QEMU's address */
    uint64_t offset;     /* in the file */
};

struct hed_guest_region {
    uint64_t guest, user, size;
    uint8_t *at;   /* here */
    void *map;     /* the whole mapping; owned */
    size_t mapped; /* bytes */
};

struct hed_guest_memory {
    uint32_t count;
    struct hed_guest_region regions[HED_GUEST_REGIONS];
};

/* Replaces all regions. The descriptors stay the caller's. HED_EFORMAT for impossible ones; then
 * there are none. No pointer into the old regions may be used any more. */
int hed_guest_map(struct hed_guest_memory *m, const struct hed_guest_place *places, const int *fds,
                  uint32_t count, struct hed_why *why);
void hed_guest_unmap(struct hed_guest_memory *m);

/* The memory at a physical address, and in *n how many of the n bytes are in one piece from there;
 * NULL: none. */
void *hed_guest_at(const struct hed_guest_memory *m, uint64_t address, uint64_t *n);
/* The memory at QEMU's address; NULL: not all n bytes are in one region, or it is not aligned. */
void *hed_guest_at_user(const struct hed_guest_memory *m, uint64_t address, uint64_t n,
                        uint64_t alignment);

/* Copies out of the guest's memory. The compiler cannot read the source again afterwards. */
void hed_guest_copy(void *to, const void *from, size_t n);
