/* How many blocks fit on a multiprocessor: arithmetic on a profile's numbers, nothing else. */
#pragma once

#include <stdint.h>

#include "driver/profile.h"

/* What a block takes. */
struct hed_need {
    uint32_t threads;        /* a block */
    uint32_t registers;      /* a thread */
    uint64_t static_shared;  /* bytes */
    uint64_t dynamic_shared; /* bytes */
};

/* Blocks that are on a multiprocessor at a time; 0 if not even one fits. */
uint32_t hed_occupancy_blocks(const struct hed_profile *p, const struct hed_need *need);

/* The most dynamic shared memory with which so many blocks fit; 0 also if none do. */
uint64_t hed_occupancy_shared(const struct hed_profile *p, const struct hed_need *need,
                              uint32_t blocks);

/* A profile's attribute, or what is given if it has none. */
uint32_t hed_profile_number(const struct hed_profile *p, unsigned attribute, uint32_t otherwise);
