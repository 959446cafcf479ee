/* Messages about parking (remote/wire/wire.h): the worker waits for the client's return. */
#pragma once

#include <stdint.h>

struct hed_channel;
struct hed_remote;
struct hed_why;

/* Asks the worker to wait. `key` (16 bytes) brings this client back, once. HED_ETIME: the worker
 * has work under way, and goes on. */
int hed_remote_say_park(struct hed_remote *r, uint8_t *key, struct hed_why *why);
/* Comes back: a first channel, and the slots where there are any (slot_count is set). The key is
 * the session's secret from then on. */
int hed_remote_say_return(struct hed_remote *r, const uint8_t *key, struct hed_channel **out,
                          struct hed_why *why);
