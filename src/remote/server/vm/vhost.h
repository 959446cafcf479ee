/* The front end, QEMU, and what it says over its socket (vhost-user): where the guest's memory and
 * the two queues lie, and when they may be used. One message at a time; each is checked against a
 * table of sizes and descriptors before it is looked at. vhost.c takes them, requests.c has the
 * table and does what they say.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/server/vm/memory.h"
#include "remote/server/vm/queue.h"

struct hed_why;

#define HED_VHOST_QUEUES 2    /* to the guest, from the guest; QEMU itself has the third */
#define HED_VHOST_PAYLOAD 512 /* bytes of a message */
#define HED_VHOST_FDS HED_GUEST_REGIONS

struct hed_vhost_head {
    uint32_t request, flags, size;
};

struct hed_vhost {
    int fd;                      /* the caller's */
    int epoll;                   /* that kicks are added to; the caller's */
    uint64_t cid;                /* the guest's */
    uint64_t features, protocol; /* that QEMU has chosen */
    struct hed_guest_memory memory;
    struct hed_virtq queues[HED_VHOST_QUEUES];
    bool stopped[HED_VHOST_QUEUES]; /* a queue was taken back, and waits at queues[i].next */
    bool renewed; /* the guest's driver has started anew; for the caller to take note and clear */

    struct { /* the message that is arriving */
        struct hed_vhost_head head;
        uint8_t payload[HED_VHOST_PAYLOAD];
    } message;
    uint32_t have;          /* bytes of it */
    int fds[HED_VHOST_FDS]; /* that came with it; owned */
    uint32_t fd_count;
};

/* What epoll's events have as data for the kicks of a queue: this plus its number. */
#define HED_VHOST_KICK (UINT64_C(1) << 32)

void hed_vhost_init(struct hed_vhost *v, int fd, int epoll, uint64_t cid);
void hed_vhost_fini(struct hed_vhost *v);

/* Takes the messages that have arrived. 0; 1: QEMU is gone; or an error. */
int hed_vhost_hear(struct hed_vhost *v, struct hed_why *why);

/* ---- requests.c ------------------------------------------------------------------------------ */

#define HED_VHOST_REPLY_ACK 3 /* the bit of hed_vhost.protocol */

struct hed_vhost_request {
    const char *name;
    uint32_t least, most; /* bytes of the payload */
    uint32_t fds;         /* at most */
    bool answered;        /* with a payload of its own, which `handle` leaves in the message */
    int (*handle)(struct hed_vhost *v, struct hed_why *why); /* NULL: refused */
};

/* By number, from 1. */
extern const struct hed_vhost_request hed_vhost_requests[];
extern const uint32_t hed_vhost_request_count;

void hed_vhost_drop_kick(struct hed_vhost *v, struct hed_virtq *q);
int hed_vhost_refuse(struct hed_why *why, const char *text); /* HED_EFORMAT */
