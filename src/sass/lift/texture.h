/* What textures and surfaces have in common, for the two families. See inside.h. */
#pragma once

#include <stdbool.h>

struct lift;
struct hed_sass_operand;

#define LIFT_CHANNELS 4

/* The register in the field at a bit, as an operand. */
struct hed_sass_operand hed_lift_register_at(const struct lift *l, unsigned bit);

/* The object, in a register of 64 bits. Without word of a constant bank, with .B, it is refused:
 * machine code keeps only its lower half then, and ours are addresses. */
const char *hed_lift_object(struct lift *l, bool in_register);

/* Word n of a group of registers; a register even if it is zero. */
const char *hed_lift_group_word(struct lift *l, const struct hed_sass_operand *group, unsigned n);
