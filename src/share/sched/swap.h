/* Clients that leave device memory to others (setting swap).
 *
 * A client that finds no device memory sends clients of lower priority out: all their device memory
 * goes to host memory, and they wait until there is room again. The order goes from program to
 * program (move/talk/talk.h), and the layer gives it; here is who is sent out, and what the shared
 * memory says about it.
 *
 * Invariants:
 * 1. A program is sent out only for a strictly higher priority, so two programs never send each
 *    other out.
 * 2. A program is sent out as a whole. If threads of it work for several clients, all of them must
 *    agree, and the highest priority among them counts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "share/sched/share.h"

struct hed_sched;

/* Programs that a call has already asked for their memory. */
struct hed_sched_tried {
    int32_t pids[HED_SCHED_SLOTS];
    uint32_t count;
};

void hed_sched_tried_add(struct hed_sched_tried *t, int32_t pid);

/* The process to send out for the owner of m's slot; 0: there is none. The lowest priority comes
 * first; among equals, one that is paused, then one that has no work. Those that are out come last:
 * one that is just coming back must go out again, the others say that they are out. */
int32_t hed_sched_pick_victim(struct hed_meet *m, const struct hed_sched_tried *tried);

/* This process has left its GPUs, or is back on them, which took `copy_ns`. */
void hed_sched_set_out(struct hed_sched *s, bool out, uint64_t copy_ns);

/* How long a client was out so far. */
uint64_t hed_sched_out_ns(const struct hed_sched_slot *p, uint64_t now);
