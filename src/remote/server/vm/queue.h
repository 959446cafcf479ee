/* A queue of the device (virtio 1.1, "split virtqueues"): chains of buffers that the guest makes
 * available, and those that the device has used, in the guest's memory.
 *
 * Invariants:
 * 1. Everything in the guest's memory is copied before it is checked, and read once.
 * 2. No pointer into the guest's memory that a chain has is kept beyond the message or kick that is
 *    being handled: QEMU may replace the memory after it.
 * 3. Chains are used in the order in which they became available.
 */
#pragma once

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct hed_guest_memory;
struct hed_why;

#define HED_VIRTQ_SIZE 1024  /* descriptors of a queue; QEMU's have 128 */
#define HED_CHAIN_PARTS 64   /* pieces of a chain; Linux needs up to 19 */
#define HED_CHAIN_TABLE 1024 /* descriptors of an indirect table */

struct hed_virtq {
    uint32_t size;                             /* descriptors, a power of two; 0: not known */
    uint64_t desc_user, avail_user, used_user; /* QEMU's addresses */
    bool placed;                               /* the addresses are known */
    bool started;                              /* QEMU has handed over the queue */
    bool enabled;                              /* and wants it served */
    bool events;                               /* VIRTIO_RING_F_EVENT_IDX */
    bool indirect;                             /* VIRTIO_RING_F_INDIRECT_DESC */
    int kick, call;                            /* eventfds, or -1; owned */
    struct vring_desc *desc;                   /* here; NULL unless all three are */
    struct vring_avail *avail;
    struct vring_used *used;
    uint16_t next;  /* the first chain that was not used, as avail->idx counts */
    uint16_t seen;  /* avail->idx when it was last read */
    uint16_t done;  /* what used->idx becomes at the next hed_virtq_publish() */
    uint16_t shown; /* used->idx */
};

struct hed_chain {
    uint16_t head;
    uint32_t count;
    size_t bytes; /* in all parts */
    struct iovec parts[HED_CHAIN_PARTS];
};

void hed_virtq_init(struct hed_virtq *q);
void hed_virtq_fini(struct hed_virtq *q); /* closes its descriptors */

/* Finds the queue in the memory. HED_EFORMAT if not all of it is there. */
int hed_virtq_place(struct hed_virtq *q, const struct hed_guest_memory *m, struct hed_why *why);
/* QEMU hands the queue over, and takes it back. */
int hed_virtq_start(struct hed_virtq *q, const struct hed_guest_memory *m, struct hed_why *why);
void hed_virtq_stop(struct hed_virtq *q);
bool hed_virtq_is_live(const struct hed_virtq *q);

/* The chain that is `ahead` places after the first one that was not used. All its buffers must be
 * for the device to write to, or all for it to read. 1; 0: there is none; HED_EFORMAT. */
int hed_virtq_peek(struct hed_virtq *q, const struct hed_guest_memory *m, uint32_t ahead,
                   bool writable, struct hed_chain *out, struct hed_why *why);
/* Gives the first chain back, with as many bytes written. */
void hed_virtq_use(struct hed_virtq *q, const struct hed_chain *c, uint32_t written);
/* Shows the guest what was used, and interrupts it if it wants that. Once per batch. */
void hed_virtq_publish(struct hed_virtq *q);
void hed_virtq_call(const struct hed_virtq *q); /* interrupts the guest, if QEMU has said how */
/* Says whether the guest should kick when it makes a chain available. Returns whether there is one
 * already, of which no kick will tell. */
bool hed_virtq_want_kicks(struct hed_virtq *q, bool wanted);

/* Copy between a chain, from an offset on, and plain memory. The caller has compared the sizes. */
void hed_chain_read(const struct hed_chain *c, size_t offset, void *to, size_t n);
void hed_chain_write(const struct hed_chain *c, size_t offset, const void *from, size_t n);
/* The parts of n bytes of a chain from an offset on. Returns how many there are; `out` has room for
 * HED_CHAIN_PARTS. */
int hed_chain_slice(const struct hed_chain *c, size_t offset, size_t n, struct iovec *out);
