/* What textures and surfaces have in common, for the two families. See inside.h. */
#pragma once

#include <stdbool.h>

struct lift;
struct hed_sass_operand;

#define LIFT_CHANNELS 4

/* The register in the field at a bit, as an operand. */
struct hed_sass_operand hed_lift_register_at(const struct lift *l, unsigned bit);

/* The object, in a register of 64 bits: from a constant bank, or `half` of it, a register. Machine
 * code keeps no more in registers, and a GPU needs no more; ours is found by it. */
const char *hed_lift_object(struct lift *l, const char *half);

/* Word n of a group of registers; a register even if it is zero. */
const char *hed_lift_group_word(struct lift *l, const struct hed_sass_operand *group, unsigned n);
