/* Between copy.c and deferred.c: a box of the device's memory or of an array, and this process's
 * bytes of it side by side. */
#pragma once

#include "server/worker/memory.h"

struct hed_box {
    const struct hed_copy_body *body;
    uint64_t bytes;
    CUarray array; /* NULL: memory */
    CUstream stream;
};

/* How many bytes a body is about; 0: it makes no sense. */
uint64_t hed_box_bytes(const struct hed_copy_body *b);

/* Names and addresses of a body: INVALID_VALUE, INVALID_HANDLE. It must be this thread's turn. */
CUresult hed_box_open(struct hed_worker_channel *ch, const struct hed_copy_body *b,
                      struct hed_box *out);

/* Puts the copy of n of its bytes, the first being number `from`, on its stream. */
CUresult hed_box_copy(struct hed_worker *w, const struct hed_box *b, uint64_t from, void *p,
                      uint64_t n, bool in);

/* Memory that a device can reach by itself; false: it cannot, copies take the long way. */
bool hed_copy_register(struct hed_worker *w, void *p, size_t n);

/* deferred.c. Is any copy of the client's to be delivered yet? */
bool hed_copies_are_deferred(struct hed_worker *w);
