/* What PTX text says at a glance: its version, its target, its kernels. Not a parser,
 * which is the room ptx; comments are passed over, everything else is taken at its word.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fatbin/arch.h"
#include "fatbin/bytes.h"

struct hed_ptx_head {
    uint16_t major; /* of .version */
    uint16_t minor;
    struct hed_arch arch; /* of .target; the number is 0 if there is none */
    bool is_64;           /* .address_size 64 */
};

/* Does the text begin as PTX must, with .version? Only its first few thousand bytes are looked at.
 */
bool hed_ptx_begins(struct hed_bytes text, struct hed_ptx_head *out);

struct hed_ptx_glance {
    struct hed_bytes name;
    uint32_t param_count; /* all there are, also those there was no room for */
    uint32_t param_bytes;
    uint32_t max_threads; /* of .maxntid; 0: not said */
    uint32_t required[3]; /* .reqntid; 0: not said */
};
struct hed_ptx_place {
    uint32_t offset, size; /* bytes */
};

/* The next kernel at or after *at, which moves on, and its parameters: false at the end. One that
 * makes no sense is passed over. params: NULL for none. */
bool hed_ptx_next_kernel(struct hed_bytes text, size_t *at, struct hed_ptx_glance *out,
                         struct hed_ptx_place *params, uint32_t room);

/* The name of the next kernel (.entry) at or after *at, which moves on; empty at the end. */
struct hed_bytes hed_ptx_next_entry(struct hed_bytes text, size_t *at);
