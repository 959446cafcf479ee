/* A lost worker that the program does not see: it goes back to its newest snapshot instead.
 *
 *   a call notices ─RESCUE─> heddle run --ckpt ──┬── kills the program, restores it from a snapshot
 *   and waits, as do all others that notice      └── refuses: the call fails
 *
 * What the program has done since the snapshot cannot be separated from what its device has done,
 * so the whole program goes back, not only its session.
 */
#pragma once

struct hed_remote;

/* The worker is lost. Returns when the program has to see that: at once if nobody offers help. May
 * be called with locks held, by any thread. */
void hed_remote_rescue(struct hed_remote *r, const char *why);
