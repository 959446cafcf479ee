/* Transports: all the ways in which a client and its worker can reach each other, in one table.
 *
 *   "shm:/run/heddle.sock" ──> transport ──┬── link      makes a connection (link/link.h)
 *                                          └── channel   carries messages over it (channel/ops.h)
 *
 * A new transport is a line in the table of transport.c, and a file for the link or the channel
 * that it does not share with another transport. docs/adding-a-transport.md shows the steps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/wire/wire.h"

struct hed_channel_ops;
struct hed_link;
struct hed_why;

struct hed_transport {
    enum hed_transport_id id; /* its number in struct hed_hello; a number is never used again */
    const char *name;         /* in the log: "shm" */
    const char *scheme;       /* what its addresses begin with: "shm:" */
    const char *form;         /* one of its addresses, as a message shows it: "shm:PATH" */
    uint64_t capabilities;    /* enum hed_capabilities that it allows */
    const struct hed_link *link;
    const struct hed_channel_ops *channel;
};

/* Returns NULL if there is none. */
const struct hed_transport *hed_transport_by_id(uint32_t id);

/* ---- addresses of servers -------------------------------------------------------------------- */

#define HED_ADDRESS_PORT 7717 /* for an address without a port */
#define HED_ADDRESS_HOST 256
#define HED_ADDRESS_TEXT (HED_ADDRESS_HOST + 32) /* enough for hed_address_text() */

struct hed_address {
    const struct hed_transport *transport; /* NULL if this is not an address yet */
    char path[108];                        /* of a unix socket; else "" */
    char host[HED_ADDRESS_HOST];           /* of TCP; of vm:, the guest's name; else "" */
    uint64_t window;                       /* of vm:, for listening: bytes of the window */
    uint16_t port;                         /* 0 is for listening only: any free port */
};

/* Parsing is strict, so that a typing error is reported here and not by a failed lookup a minute
 * later. A printed address can be parsed again and is the same address. Nothing is looked up. */
int hed_address_parse(const char *text, struct hed_address *out, struct hed_why *why);
void hed_address_text(const struct hed_address *a, char *out, size_t size);
bool hed_address_is(const char *text); /* does it begin like an address? */
