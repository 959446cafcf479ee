/* Shared by copy.c and deferred.c: a copy whose handles and addresses are those of this process
 * (opened.c). */
#pragma once

#include "remote/server/worker/memory.h"

struct hed_opened_copy {
    const struct hed_copy_body *body;
    const struct hed_copy_side *side; /* the device's side, in the body */
    bool in;                          /* to the device */
    uint64_t bytes;
    CUarray array; /* NULL if the side is memory */
    CUstream stream;
};

/* How many bytes a copy moves, one side of which is the device's. 0 if the copy makes no sense. */
uint64_t hed_copy_size(const struct hed_copy *c, const struct hed_copy_side *side);

/* Translates the handles of a body and checks its addresses: INVALID_VALUE, INVALID_HANDLE. The
 * thread must hold the current ticket. */
CUresult hed_copy_open(struct hed_worker_channel *ch, const struct hed_copy_body *b, bool in,
                       struct hed_opened_copy *out);

/* Enqueues a part of the copy on its stream: n bytes of its box, the first being number `from`. */
CUresult hed_copy_bytes(struct hed_worker *w, const struct hed_opened_copy *c, uint64_t from,
                        void *p, uint64_t n);

/* Registers memory with the driver, so that devices can access it directly. False if that fails;
 * copies then work, but are slower. */
bool hed_copy_register(struct hed_worker *w, void *p, size_t n);

/* deferred.c. Does the client have deferred copies that are not yet delivered? */
bool hed_copies_are_deferred(struct hed_worker *w);
