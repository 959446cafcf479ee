/* Events that several processes use: a page in a file that all of them map.
 *
 *   record, at the call     number = ++recorded; its place says who records it
 *   record, on the stream   the place says that the number has been reached; sleepers are woken
 *   wait                    until the place of the number that was last recorded says so
 *
 * A place is used again after HED_EVENT_PLACES records. A record that was never reached because its
 * process has died counts as reached: its work is gone. The other processes can write anything into
 * the page, so nothing in it is more than a number.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/ipc/name.h"
#include "gen/cuda_abi.h"

struct hed_context;
struct hed_shared_event;

/* A new one; and the one that has a name. HED_ENOMEM, and as hed_ipc_open(). `uuid` is that of the
 * event's device. */
int hed_shared_event_create(const uint8_t uuid[16], struct hed_shared_event **out);
int hed_shared_event_open(const struct hed_ipc_name *n, struct hed_shared_event **out);
void hed_shared_event_free(struct hed_shared_event *e);

/* The name for others. HED_EINVAL: it is another process's. HED_ENOTSUP. */
int hed_shared_event_name(const struct hed_shared_event *e, struct hed_ipc_name *out);

/* Begins a record; returns its number, which must be reached some time, whatever happens. */
uint64_t hed_shared_event_begin(struct hed_shared_event *e);
void hed_shared_event_reached(struct hed_shared_event *e, uint64_t number);

/* The number of the last record of any process; 0: there is none. */
uint64_t hed_shared_event_last(const struct hed_shared_event *e);
bool hed_shared_event_is_reached(struct hed_shared_event *e, uint64_t number);
/* Waits for it. Ends with the context's error if it fails, and when it is destroyed. */
CUresult hed_shared_event_wait(struct hed_shared_event *e, uint64_t number,
                               const struct hed_context *c);
