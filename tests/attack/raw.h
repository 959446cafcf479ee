/* A client without a driver: it says to a real server whatever a test wants to say.
 *
 * The server's address is HEDDLE_GPU; over TCP the TLS settings of heddle's clients are used, too.
 * Nothing here is checked that a worker should check.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "remote/wire/channel/channel.h"
#include "remote/wire/transport.h"
#include "remote/wire/wire.h"

#define RAW_ALL                                                                                \
    (HED_CAN_SLOTS | HED_CAN_SHARED_HEAP | HED_CAN_BEAT | HED_CAN_CLIENT_HEAP | HED_CAN_PARK | \
     HED_CAN_BASE | HED_CAN_ORDERS)

struct raw {
    struct hed_address address;
    struct hed_tls tls;
    struct hed_welcome welcome;
    struct hed_channel *channel; /* the first */
    uint64_t tickets;
    uint64_t base; /* of the arena, when it is accepted */
    int heap;      /* our file; -1 if there is none */
};

/* A new session, until its devices are known. Ends the test if the server does not take it. */
void raw_begin(struct raw *r, uint64_t capabilities);
void raw_end(struct raw *r); /* hangs up */

/* Asks for a base; 0 if there is none, or the session has ended. */
uint64_t raw_offer(struct raw *r, uint64_t want, uint32_t devices);
/* Accepts a base and sends the heap, if that is not negative. 0, or HED_E... of the channel. */
int raw_accept(struct raw *r, uint64_t base, int heap);
/* A session with an arena and, over shm, an empty heap. */
void raw_ready(struct raw *r, uint64_t capabilities);
int raw_memory(uint64_t size, unsigned flags, int seals); /* a memfd */

#define RAW_GONE (-1) /* the worker has ended the session */
/* Sends a message with the next ticket, and takes its answer: the result, or RAW_GONE. */
int raw_ask(struct raw *r, struct hed_msg *m);
/* The answer to the last question, valid until the next one. */
const struct hed_answer *raw_answer(const struct raw *r);
int raw_map_host(struct raw *r, uint64_t offset, uint64_t size);

/* Another connection, with this ATTACH. NULL if the server does not take it. The worker may still
 * close it: raw_is_closed() waits for that, or for an answer. */
struct hed_channel *raw_channel(struct raw *r, const uint8_t *session, struct hed_attach *a);
bool raw_is_closed(struct hed_channel *ch);
struct hed_attach raw_attach(const struct raw *r, enum hed_channel_purpose purpose);

/* A connection for orders, which begins with this. NULL if the server does not take it. */
struct hed_conn *raw_orders(struct raw *r, const struct hed_attach *a);

/* Parks the worker: the result, or RAW_GONE. Afterwards the channel is still open. */
int raw_park(struct raw *r, uint8_t *key);
/* Returns with this key: a new first channel. False if the worker does not take it. */
bool raw_return(struct raw *r, const uint8_t *key);
int raw_ping(struct raw *r);

#define MUST(what)                                                             \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #what); \
            exit(1);                                                           \
        }                                                                      \
    } while (0)
