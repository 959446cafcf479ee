/* Addresses of memory, for the families that access it. See inside.h. */
#pragma once

struct lift;
struct hed_sass_operand;

/* What stands in brackets: a 64-bit address; an address in shared memory. */
const char *hed_lift_far(struct lift *l, const struct hed_sass_operand *o);
const char *hed_lift_shared(struct lift *l, const struct hed_sass_operand *o);

/* The field of order and scope, with the values of sm_80: 0 weak, 4 constant, 5 to 7 and 10 strong,
 * 8 and 12 for devices. */
unsigned hed_lift_order_field(const struct lift *l);
