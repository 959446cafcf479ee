/* Between copy.c and deferred.c: a copy whose names and addresses are this process's, and the bytes
 * of its box side by side. */
#pragma once

#include "server/worker/memory.h"

struct hed_opened_copy {
    const struct hed_copy_body *body;
    const struct hed_copy_side *side; /* the device's, in the body */
    bool in;                          /* to the device */
    uint64_t bytes;
    CUarray array; /* NULL: memory */
    CUstream stream;
};

/* How many bytes a copy is about, one side of which is the device's; 0: it makes no sense. */
uint64_t hed_copy_size(const struct hed_copy *c, const struct hed_copy_side *side);

/* Names and addresses of a body: INVALID_VALUE, INVALID_HANDLE. It must be this ticket's turn. */
CUresult hed_copy_open(struct hed_worker_channel *ch, const struct hed_copy_body *b, bool in,
                       struct hed_opened_copy *out);

/* Puts the copy of n of its bytes, the first being number `from`, on its stream. */
CUresult hed_copy_bytes(struct hed_worker *w, const struct hed_opened_copy *c, uint64_t from,
                        void *p, uint64_t n);

/* Memory that a device can reach by itself; false: it cannot, copies take the long way. */
bool hed_copy_register(struct hed_worker *w, void *p, size_t n);

/* deferred.c. Is any copy of the client's to be delivered yet? */
bool hed_copies_are_deferred(struct hed_worker *w);
