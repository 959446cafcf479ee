/* How many blocks fit on a multiprocessor: pure arithmetic on the values of a profile. */
#pragma once

#include <stdint.h>

#include "driver/profile.h"

/* The resources that a block needs. */
struct hed_need {
    uint32_t threads;        /* per block */
    uint32_t registers;      /* per thread */
    uint64_t static_shared;  /* bytes */
    uint64_t dynamic_shared; /* bytes */
};

/* How many blocks fit on a multiprocessor at a time; 0 if not even one does. */
uint32_t hed_occupancy_blocks(const struct hed_profile *p, const struct hed_need *need);

/* The most dynamic shared memory with which this many blocks fit; 0 if they do not fit at all. */
uint64_t hed_occupancy_shared(const struct hed_profile *p, const struct hed_need *need,
                              uint32_t blocks);

/* An attribute of a profile, or `otherwise` if it has none. */
uint32_t hed_profile_number(const struct hed_profile *p, unsigned attribute, uint32_t otherwise);
