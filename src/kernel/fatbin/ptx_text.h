/* A quick look at PTX text: its version, its target, its kernels. Not a parser (that is the room
 * ptx): comments are skipped, and everything else is taken as it is.
 */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/fatbin/arch.h"
#include "kernel/fatbin/bytes.h"

/* Can it be in a name, or in the name of a register? */
static inline bool
hed_ptx_is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

struct hed_ptx_head {
    uint16_t major; /* of .version */
    uint16_t minor;
    struct hed_arch arch; /* of .target; the number is 0 if there is none */
    bool is_64;           /* .address_size 64 */
};

/* Does the text begin with .version, as PTX must? Looks only at its first few thousand bytes. */
bool hed_ptx_begins(struct hed_bytes text, struct hed_ptx_head *out);

struct hed_ptx_glance {
    struct hed_bytes name;
    uint32_t param_count; /* of all parameters, also those that did not fit */
    uint32_t param_bytes;
    uint32_t max_threads; /* of .maxntid; 0 if not given */
    uint32_t required[3]; /* .reqntid; 0 if not given */
};
struct hed_ptx_place {
    uint32_t offset, size; /* bytes */
};

/* The next kernel at or after *at, which is advanced, and its parameters; false at the end. A
 * kernel that cannot be read is skipped. params may be NULL. */
bool hed_ptx_next_kernel(struct hed_bytes text, size_t *at, struct hed_ptx_glance *out,
                         struct hed_ptx_place *params, uint32_t room);

/* The name of the next kernel (.entry) at or after *at, which is advanced; empty at the end. */
struct hed_bytes hed_ptx_next_entry(struct hed_bytes text, size_t *at);
