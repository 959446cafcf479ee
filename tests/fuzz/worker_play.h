/* A worker on the null backend whose client is the fuzzer: its channel is memory.
 *
 * What the worker sends is checked and thrown away; bulk that it reads comes out of the input, and
 * ends with it. The process has one worker: what an input leaves behind stays, as in a session that
 * goes on; but tickets start again with every input, and a name of each kind is bound again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/worker.h"

struct play_channel {
    struct hed_channel channel;
    const uint8_t *bulk; /* left of the input for bulk */
    size_t bulk_size;
    uint32_t begun; /* bytes of the message that is being filled; 0: none */
    uint64_t owed;  /* bytes of bulk that the last message promised */
};

#define PLAY_KINDS 18 /* of names: enum hed_kind */

/* A name of every kind that is bound before the input begins. */
static inline uint64_t
play_name(unsigned kind)
{
    return (uint64_t)kind << 56 | UINT64_C(1) << 32 | 1;
}

/* Ready for an input. The message in it may be up to HED_MSG_MAX bytes. */
struct hed_worker_channel *play_begin(const uint8_t *bulk, size_t size);

extern int play_result; /* of the last answer */

/* A message of the client: its ticket is made the next one, if it has one. */
int play_message(struct hed_worker_channel *ch, struct hed_msg *m);

static inline void
must(bool holds)
{
    if (!holds)
        __builtin_trap();
}
