/* Names of enum values: the shape of the generated tables (gen/emit_print.py) and how to search
 * them. Tables are sorted: enums by name, values by number.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hed_enum_value {
    int32_t value;
    const char *name;
    const char *text; /* what it means, for people; NULL if the spec does not say */
};

struct hed_enum {
    const char *name;
    const struct hed_enum_value *values;
    size_t count;
};

/* The entry of a value, or NULL. hed_enum_find_name: by the value's name. */
const struct hed_enum_value *hed_enum_find(const struct hed_enum *e, int32_t value);
const struct hed_enum_value *hed_enum_find_name(const struct hed_enum *e, const char *name);

/* The enum of a name in a sorted table, or NULL. */
const struct hed_enum *hed_enums_find(const struct hed_enum *table, size_t count, const char *name);
