/* One encoded value as text or JSON, by its schema type. For print.c; it knows no call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/pack.h"

struct hed_buf;
struct hed_schema_type;

#define HED_VALUE_DEPTH_MAX 32 /* types inside types */

struct hed_value_out {
    struct hed_dec dec;  /* what is left to read; its error is ours */
    struct hed_buf *buf; /* where to; NULL: read only */
    bool json;
    uint64_t steps;  /* values that may still be read: what bounds types without bytes */
    bool has_stream; /* a handle of kind stream was read: */
    uint64_t stream; /* the first */
};

struct hed_value_out hed_value_over(const void *p, size_t n, struct hed_buf *buf, bool json);

/* Reads one value and prints it. When the bytes end too early, or the type is not understood, it
 * says so in place of the value (`<cut>`, `<unknown type>`), closes what is open, and leaves the
 * error.
 */
void hed_value_put(struct hed_value_out *o, const struct hed_schema_type *t);

/* A separator if this is not the first, then `name=` or `"name":`. */
void hed_value_name(struct hed_value_out *o, bool *first, const char *name);

/* Printed as it is, unless reading only. */
void hed_value_raw(struct hed_value_out *o, const char *text);

/* In place of a value: why there is none. Needs an error in o->dec. */
void hed_value_lament(struct hed_value_out *o);
