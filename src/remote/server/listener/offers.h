/* Offers: what workers let other workers of the same owner open (CUDA IPC between clients).
 *
 *   exporter's worker ── OFFER, descriptor ──> listener: a key        (server/lease_socket.h)
 *       the key goes from client to client, however they like
 *   importer's worker ── OPEN, key ──────────> listener ── the descriptor ──> importer's worker
 *
 * The listener neither reads nor maps the descriptors. It only passes them on, and only between
 * workers whose clients are the same user, or have the same certificate, or the server's token, or
 * are in the same guest. Clients that are known by their address alone have no offers.
 *
 * Invariants:
 * 1. An offer that its worker has (`place`) can be opened. One that it has withdrawn, or that has
 *    outlived its worker, has no descriptor here, and is in the list only while it is open.
 * 2. Leased bytes of an offer are in the ledger once: in its worker's lease while it has the offer,
 *    then as orphaned bytes until the last one closes it.
 * 3. What a worker offers of a device is never more than its lease of it, and a descriptor never
 *    has more memory than was said when it was offered.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/server/lease_socket.h"

struct hed_child;
struct hed_peer;
struct hed_server;

#define HED_OFFERS_WORKER 1024u /* offers of one worker, and what one worker has opened */
#define HED_OFFERS_OWNER 4096u  /* offers of all workers of one owner, and at most half of ... */
#define HED_OFFERS_PART 4       /* this part of our descriptors, which all offers have */

struct hed_offer;

/* May this client's worker share with others at all? */
bool hed_offers_may(const struct hed_peer *p);

/* The asks of server/lease_socket.h. offer takes the descriptor, which may be -1. open: *fd stays
 * here. */
int hed_offer_make(struct hed_server *s, const struct hed_child *c,
                   const struct hed_lease_socket_ask *ask, int fd,
                   struct hed_lease_socket_answer *answer);
uint64_t hed_offer_withdraw(struct hed_server *s, const struct hed_child *c,
                            const uint8_t key[HED_LEASE_SOCKET_KEY]);
int hed_offer_open(struct hed_server *s, const struct hed_child *c,
                   const struct hed_lease_socket_ask *ask, struct hed_lease_socket_answer *answer,
                   int *fd);
void hed_offer_close(struct hed_server *s, const struct hed_child *c,
                     const uint8_t key[HED_LEASE_SOCKET_KEY]);

/* Bytes of a worker's lease that it does not offer, and so may give back. */
uint64_t hed_offers_leave(const struct hed_server *s, uint32_t place, int device);
/* Memory in files that workers share: what there really is of those of this worker that others have
 * opened, and the most that it can have of those that count for others. */
void hed_offers_count(const struct hed_server *s, const struct hed_child *c, uint64_t *own,
                      uint64_t *others);

/* A worker is gone. Called before its leases are cleared. */
void hed_offers_forget(struct hed_server *s, const struct hed_child *c);
/* In a new worker: wipes the keys that it has inherited. */
void hed_offers_wipe(const struct hed_server *s);
