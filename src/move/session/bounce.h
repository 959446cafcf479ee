/* Memory through which the pump copies: pinned memory that the worker shares, where there is such
 * memory; else plain memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hed_remote;

struct hed_remote_bounce {
    char *at; /* NULL: there is none */
    size_t size;
    uint64_t pinned; /* its address, if the worker shares it; else 0 */
};

/* A size of whole chunks. HED_ENOMEM. */
int hed_remote_bounce_make(struct hed_remote *r, size_t size, struct hed_remote_bounce *out);
void hed_remote_bounce_drop(struct hed_remote *r, const struct hed_remote_bounce *p);
