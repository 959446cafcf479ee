/* Pieces of a window: which worker has which part of the memory that a guest shares with its host.
 *
 * The map is the listener's own and lies outside the window, where the guest cannot change it.
 * Workers ask for pieces at their desks; whatever a worker says changes its own pieces only. When
 * the listener reaps a worker, it clears the worker's pieces.
 */
#pragma once

#include <stdint.h>

struct hed_pieces {
    uint32_t units;  /* of HED_WINDOW_UNIT bytes, the header's included; 0: there is no window */
    uint16_t *owner; /* of each: 1 + the worker, 0 if it is free */
    uint32_t next;   /* where the last search ended */
};

int hed_pieces_init(struct hed_pieces *p, uint64_t size);
void hed_pieces_fini(struct hed_pieces *p);

/* Takes a piece of at least so many bytes. Returns where it begins, or 0 if there is none. */
uint64_t hed_pieces_take(struct hed_pieces *p, uint32_t worker, uint64_t bytes);
/* Gives back all or a part of what was taken. Does nothing unless all of it is the worker's. */
void hed_pieces_give(struct hed_pieces *p, uint32_t worker, uint64_t offset, uint64_t bytes);
/* Takes one range from the worker's pieces: for a worker that is gone, until it returns 0 bytes. */
uint64_t hed_pieces_clear(struct hed_pieces *p, uint32_t worker, uint64_t *offset);
uint64_t hed_pieces_used(const struct hed_pieces *p); /* bytes */
/* Returns the size of the first range at or after `from` that nobody has, or 0. The header is in
 * none. */
uint64_t hed_pieces_unused(const struct hed_pieces *p, uint64_t from, uint64_t *offset);
