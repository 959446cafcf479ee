/* Waiting in the kernel for a word of memory to change.
 *
 * The plain functions work between processes that share the memory; the private ones only between
 * threads of one process, and are cheaper. A waiter and its waker must use the same kind. All keep
 * errno.
 *
 *     while ((v = atomic_load_explicit(&word, memory_order_acquire)) == busy)
 *         hed_futex_wait(&word, busy, -1);
 *
 * and on the other side a store with release order, then hed_futex_wake(&word, INT_MAX).
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Sleeps while *addr is expect, until woken or, if timeout_ns is not negative, until that time has
 * passed. False if the time ran out. True does not mean that the word has changed: a signal also
 * ends the wait, so look at the word again.
 */
bool hed_futex_wait(_Atomic uint32_t *addr, uint32_t expect, int64_t timeout_ns);
bool hed_futex_wait_private(_Atomic uint32_t *addr, uint32_t expect, int64_t timeout_ns);

/* Wakes at most n waiters; returns how many it woke. */
int hed_futex_wake(_Atomic uint32_t *addr, int n);
int hed_futex_wake_private(_Atomic uint32_t *addr, int n);
