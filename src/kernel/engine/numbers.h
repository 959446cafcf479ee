/* Small numbers for what kernels name: texture and surface objects, conditions of graphs. A new
 * thing gets the lowest number that is free, beginning with 1, as on an H200. So a program that
 * comes from a GPU finds its objects under the values that it has, and machine code, which keeps
 * only 32 bits of them, finds them too.
 *
 * Adding and removing need the owner's lock. Finding needs none: kernels do it for each sample.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define HED_NUMBERS_PAGE 1024u
#define HED_NUMBERS_PAGES 1024u
#define HED_NUMBERS_END (HED_NUMBERS_PAGE * HED_NUMBERS_PAGES)

struct hed_numbers {
    _Atomic(_Atomic(void *) *) pages[HED_NUMBERS_PAGES]; /* made when needed, kept to the end */
    uint32_t lowest;                                     /* none below is free, except 0 */
    uint32_t end;                                        /* none from here on was ever given */
};

/* The table is zeroed memory at first. */
void hed_numbers_fini(struct hed_numbers *t);

/* 0 if there is no memory, or a million things already. */
uint32_t hed_numbers_add_locked(struct hed_numbers *t, void *thing);
/* The number must have been given. */
void hed_numbers_remove_locked(struct hed_numbers *t, uint64_t number);
/* NULL if nothing has this number, which may be anything. */
void *hed_numbers_find(const struct hed_numbers *t, uint64_t number);
