/* The notice: a word by which workers see that the ledger has changed.
 *
 * A worker that is asked how much memory there is would have to ask the listener, although the
 * answer is nearly always the last one. So the listener counts the changes of its ledger in the
 * notice, which workers can read and not write, and a worker whose answer is as old as the count
 * gives it again.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct hed_notice {
    _Atomic uint64_t changes;
};

/* Listener: makes the notice, which is not inherited by children, and the descriptor by which they
 * can read it. HED_ENOMEM. */
int hed_notice_create(struct hed_notice **out, int *fd);
void hed_notice_free(struct hed_notice *b, int fd); /* NULL and -1 are allowed */

/* Worker: NULL if it cannot be mapped; then the worker asks every time. */
const struct hed_notice *hed_notice_map(int fd);
