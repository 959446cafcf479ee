/* Which streams of this worker may still use a page that it shares with other workers.
 *
 *   stream: ... writes or awaits a word of the page ── then writes a number into memory of our own
 *
 * Other workers can write anything into the page, so what it says of records is not believed when
 * it is to be unmapped. The numbers are in memory that only this worker and its devices have.
 *
 * A stream has a place while a number is on its way to it. Then the place is free for another
 * stream. Its numbers only grow.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "remote/server/worker/worker.h"

#define HED_USES_STREAMS 256 /* that use shared pages at the same time */

struct hed_uses;

/* Of one page: the last number of each place. */
struct hed_page_uses {
    uint64_t last[HED_USES_STREAMS];
};

/* NULL if there is no memory. They stay until the process ends. */
struct hed_uses *hed_uses_create(void);

/* The place of a stream; -1: too many streams use pages. Then the stream gets its work on the page,
 * and `end` follows, whether that has failed or not. For the thread that holds the current
 * ticket. */
int hed_uses_begin(struct hed_uses *u, uint64_t context, uint64_t stream);
void hed_uses_end(struct hed_uses *u, struct hed_worker *w, CUstream stream, int place,
                  struct hed_page_uses *page);

/* Has everything been done that was put on streams? Any thread. */
bool hed_uses_are_over(const struct hed_uses *u, const struct hed_page_uses *page);

/* A context has ended, or failed: its streams do nothing more. Any thread. */
void hed_uses_context_ended(struct hed_uses *u, uint64_t context);
