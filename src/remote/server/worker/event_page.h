/* The page of an event that several workers share.
 *
 *   record   takes a number and a place; the stream writes the number into the place when it comes
 *            to it; `last` says which number and place that is
 *   wait     until the place of the last record has at least its number
 *
 * A place belongs to the records of one worker on one stream, which are reached in order, until its
 * last record has been reached; then it is free. So a number in a place only grows.
 *
 * A worker that records holds a lock on a byte of the file, by which the others see whether it is
 * alive: the kernel drops it with the process. The records of a dead worker count as reached,
 * because its work is gone: somebody who waits writes that into the page.
 *
 * The other workers can write anything into the page, so nothing in it is more than a number. They
 * belong to the same client (listener/offers.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/server/lease_socket.h"

#define HED_EVENT_PAGE HED_LEASE_SOCKET_EVENT_SIZE /* bytes of the file */
#define HED_EVENT_PLACES 200

struct hed_event_words; /* what is in it */

struct hed_event_page {
    struct hed_event_words *words;
    /* The file. The kernel drops the lock when this process closes any descriptor of it. */
    int fd;
    uint64_t me; /* who this worker is in the page; 0: it has not recorded yet */
    struct {
        uint64_t context, stream; /* of the records in a place that this worker has claimed */
        uint64_t number;          /* the last of them; 0: none */
    } mine[HED_EVENT_PLACES];
};

/* A new file; and the page in one, whose descriptor stays the caller's. HED_ENOMEM; HED_EFORMAT if
 * it is something else, or could shrink. */
int hed_event_file(int *fd);
int hed_event_page_map(struct hed_event_page *p, int fd);
void hed_event_page_unmap(struct hed_event_page *p);

/* Begins a record on a stream. HED_ELIMIT: there are too many streams or workers. Its number must
 * be written to the word, in the order of the stream; then ended: it is the last record. Or it is
 * dropped. One thread at a time. */
int hed_event_page_begin(struct hed_event_page *p, uint64_t context, uint64_t stream,
                         uint64_t *number, int *place);
void hed_event_page_end(struct hed_event_page *p, uint64_t number, int place);
void hed_event_page_drop(struct hed_event_page *p, uint64_t number, int place);
size_t hed_event_page_word(int place); /* its index in the page, as 64-bit words */

/* The last record of anybody; false if there is none that has yet to be reached. */
bool hed_event_page_last(const struct hed_event_page *p, uint64_t *number, int *place);
bool hed_event_page_is_reached(const struct hed_event_page *p, uint64_t number, int place);
/* Has it been reached, or will it never be? */
bool hed_event_page_is_over(struct hed_event_page *p, uint64_t number, int place);
/* Looks for records of dead workers. */
void hed_event_page_bury(struct hed_event_page *p);
/* A context of this worker has ended, or failed: its records count as reached, because its work is
 * gone. */
void hed_event_page_give_up(struct hed_event_page *p, uint64_t context);
