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

/* ---- window.c -------------------------------------------------------------------------------- */

/* As hed_lift_far(), of an address that may be one of shared memory. */
const char *hed_lift_generic(struct lift *l, const struct hed_sass_operand *o);
/* The same for an address that code hands to a function: a register of 64 bits. */
const char *hed_lift_generic_value(struct lift *l, const char *address);
/* The offset of the first byte of shared memory that a kernel has. */
int64_t hed_lift_shared_begin(const struct lift *l);
/* Is a special register the high half of generic addresses of shared memory? Sets the half. */
bool hed_lift_window_high(const struct lift *l, unsigned special, uint32_t *value);
