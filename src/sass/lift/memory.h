/* Addresses of memory, for the families that access it. See inside.h. */
#pragma once

struct lift;
struct hed_sass_operand;

/* What stands in brackets: a 64-bit address; an address in shared memory. */
const char *hed_lift_far(struct lift *l, const struct hed_sass_operand *o);
const char *hed_lift_shared(struct lift *l, const struct hed_sass_operand *o);
