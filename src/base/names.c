/* Searching the tables of base/names.h. */
#include "base/names.h"

#include <string.h>

const struct hed_enum_value *
hed_enum_find(const struct hed_enum *e, int32_t value)
{
    size_t low = 0;
    size_t high = e->count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (e->values[mid].value == value)
            return &e->values[mid];
        if (e->values[mid].value < value)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

const struct hed_enum_value *
hed_enum_find_name(const struct hed_enum *e, const char *name)
{
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->values[i].name, name) == 0)
            return &e->values[i];
    return NULL;
}

const struct hed_enum *
hed_enums_find(const struct hed_enum *table, size_t count, const char *name)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = strcmp(table[mid].name, name);

        if (order == 0)
            return &table[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}
