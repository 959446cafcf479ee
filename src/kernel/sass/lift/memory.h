/* Addresses of memory, for the families that access it. See inside.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct lift;
struct hed_sass_operand;

/* What stands in brackets: a 64-bit address; an address in shared memory. */
const char *hed_lift_far(struct lift *l, const struct hed_sass_operand *o);
const char *hed_lift_shared(struct lift *l, const struct hed_sass_operand *o);
/* The sum of the registers of an address in shared memory; NULL if it has none. */
const char *hed_lift_shared_index(struct lift *l, const struct hed_sass_operand *o);

/* The field of order and scope, with the values of sm_80: 0 weak, 4 constant, 5 to 7 and 10 strong,
 * 8 and 12 for devices. */
unsigned hed_lift_order_field(const struct lift *l);

/* ---- accesses -------------------------------------------------------------------------------- */

enum {
    LIFT_SIZE_WORD = 4,
    LIFT_SIZE_PAIR = 5,
    LIFT_SIZE_QUAD = 6,
    LIFT_SIZE_QUAD_OF_ALL = 7,
};

static inline unsigned
hed_lift_size_bytes(unsigned size)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 8, 16, 16};

    return bytes[size];
}

/* The size of an access, up to QUAD; false if the field holds a value that means nothing. */
bool hed_lift_access_size(struct lift *l, unsigned *size);
/* Will the pair that is loaded into these registers be read as one value, soon? Then it is loaded
 * as such: doubles and addresses. Otherwise halves are what others want: they are vectors of
 * floats. */
bool hed_lift_is_wanted_whole(const struct lift *l, const struct hed_sass_operand *o);
/* "ld.shared" of what stands at an address into the first operand; "st.shared" of the second. */
void hed_lift_put_load(struct lift *l, const char *ld, unsigned size, const char *at);
void hed_lift_put_store(struct lift *l, const char *st, unsigned size, const char *at);

/* ---- window.c -------------------------------------------------------------------------------- */

/* As hed_lift_far(), of an address that may be one of shared memory. */
const char *hed_lift_generic(struct lift *l, const struct hed_sass_operand *o);
/* The same for an address that code hands to a function: a register of 64 bits. */
const char *hed_lift_generic_value(struct lift *l, const char *address);
/* The offset of the first byte of shared memory that a kernel has. */
int64_t hed_lift_shared_begin(const struct lift *l);
/* Is a special register the high half of generic addresses of shared memory? Sets the half. */
bool hed_lift_window_high(const struct lift *l, unsigned special, uint32_t *value);
