/* A worker whose client is the fuzzer. Its channel is memory. It runs on the null backend
 * (worker_null.c), which accepts every address, or on the CPU GPU (worker_cpu.c).
 *
 * What the worker sends is checked and discarded. Bulk data that it reads comes from the input, and
 * ends with it. The process has one worker, and keeps what an input leaves behind, as in a long
 * session; but tickets start again with every input, and one name of each kind is bound again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/fuzz.h"
#include "remote/server/worker/worker.h"

struct play_channel {
    struct hed_channel channel;
    const uint8_t *bulk; /* bytes of the input that are left for bulk */
    size_t bulk_size;
    uint32_t begun; /* bytes of the message that is being filled; 0: none */
    uint64_t owed;  /* bytes of bulk that the last message promised */
};

#define PLAY_KINDS 18 /* of names: enum hed_kind */

/* One name of every kind, which is bound before the input begins. */
static inline uint64_t
play_name(unsigned kind)
{
    return (uint64_t)kind << 56 | UINT64_C(1) << 32 | 1;
}

/* Prepares for an input. A message in it may have up to HED_MSG_MAX bytes. */
struct hed_worker_channel *play_begin(const uint8_t *bulk, size_t size);

/* What depends on the backend: starts it, with all that the worker needs of it; binds names before
 * an input; says whether a message can be performed without a client that answers. */
void play_backend_start(struct hed_worker_channel *ch);
void play_backend_names(struct hed_worker *w);
bool play_backend_takes(const struct hed_msg *m);

extern int play_result; /* of the last answer */

/* Performs a message of the client. If it has a ticket, that becomes the next one. */
int play_message(struct hed_worker_channel *ch, struct hed_msg *m);
