/* Pieces of a window: which worker has which part of the memory that a guest shares with its host.
 *
 * The map is the listener's own and lies outside the window, where the guest cannot change it.
 * Workers ask for pieces over their lease sockets; whatever a worker says changes its own pieces
 * only.
 *
 *   free ──take──> a worker's ──give──> free
 *                     └──leave: the worker is gone──> left ──clear──> free
 *
 * Freeing the pages of a gigabyte takes longer than the listener may, so it clears a little at a
 * time. Pieces that are left can be taken, too, if no others are free: all of them are memory of
 * the same guest.
 */
#pragma once

#include <stdint.h>

struct hed_pieces {
    uint32_t units;  /* of HED_WINDOW_UNIT bytes, the header's included; 0: there is no window */
    uint16_t *owner; /* of each: 1 + the worker, 0 if it is free, HED_PIECES_LEFT */
    uint32_t next;   /* where the last search ended */
    uint32_t left;   /* units that are left */
    uint32_t swept;  /* none of them is before this one */
};

#define HED_PIECES_LEFT UINT16_MAX

int hed_pieces_init(struct hed_pieces *p, uint64_t size);
void hed_pieces_fini(struct hed_pieces *p);

/* Takes a piece of at least so many bytes. Returns where it begins, or 0 if there is none. */
uint64_t hed_pieces_take(struct hed_pieces *p, uint32_t worker, uint64_t bytes);
/* Gives back all or a part of what was taken. Does nothing unless all of it is the worker's. */
void hed_pieces_give(struct hed_pieces *p, uint32_t worker, uint64_t offset, uint64_t bytes);
/* The worker is gone: all of its pieces are left. */
void hed_pieces_leave(struct hed_pieces *p, uint32_t worker);
/* The guest is gone, and may have written where nobody has a piece: all that is free is left. */
void hed_pieces_leave_free(struct hed_pieces *p);
/* Makes one range of what is left free, of `most` bytes at most. Returns its size; 0 if nothing is
 * left. */
uint64_t hed_pieces_clear(struct hed_pieces *p, uint64_t most, uint64_t *offset);
uint64_t hed_pieces_used(const struct hed_pieces *p); /* bytes that are not free */
