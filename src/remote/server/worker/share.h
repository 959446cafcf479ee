/* What share.c and shared_event.c have in common. See wire/wire.h, HED_MSG_SHARE. */
#pragma once

#include "remote/server/worker/worker.h"

/* What the listener says, as the result for a client. */
CUresult hed_share_result(int err);

/* Offers a descriptor to other clients of the owner; it stays the caller's. 0 or HED_E... */
int hed_share_offer(struct hed_worker *w, const struct hed_lease_socket_ask *what, int fd,
                    uint8_t key[HED_SHARE_KEY]);

/* The operations on events. The thread holds the current ticket. The result is the client's, and
 * the key of an offer; or HED_EFORMAT: the session ends. */
int hed_shared_event_do(struct hed_worker_channel *ch, const struct hed_share_body *b,
                        uint8_t key[HED_SHARE_KEY], CUresult *r);

/* Looks for records of workers that have died: they count as reached, because that work is gone.
 * For the control thread. */
void hed_shared_events_look(struct hed_worker *w);
