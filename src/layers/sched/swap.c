/* A call that takes device memory has found none: programs of lower priority leave it (swap=on).
 *
 * the call: no memory ──> pick a program (share/sched/swap.h) ──> ask it to go out
 * (move/talk/talk.h) ──┐
 *            ▲                                                                                   │
 *            └──────────────────────── make the call again <─────────────────────────────────────┘
 *
 * Everything happens in the thread of the call, without a lock. A program that was sent out comes
 * back by itself, but not before this side hangs up, so that it does not take the memory again that
 * this call has still to get. If this process dies, the kernel hangs up for it.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "layers/sched/sched.h"
#include "move/move.h"
#include "share/share.h"

#define HOLD_MS 2000                /* how long a program may take to be between two calls */
#define ANSWER_MS 120000            /* how long it may take to copy its memory, with that */
#define FREED_NS (2 * HED_NS_PER_S) /* until the server or the driver has freed the memory */
#define PAUSE_NS HED_NS_PER_MS      /* between two attempts meanwhile; doubles */
#define PAUSE_MOST_NS (50 * HED_NS_PER_MS)

/* Programs that were sent out, which wait until these connections end. */
struct sent_out {
    int fds[HED_SCHED_SLOTS];
    uint32_t count;
};

static void
hang_up(struct sent_out *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        (void)close(s->fds[i]);
}

/* Asks a process to go out, and waits until it has. */
static int
order_out(int32_t pid, struct sent_out *sent, struct hed_talk_answer *a, struct hed_why *why)
{
    struct hed_talk_request q;
    int fd = -1;
    int err = hed_talk_open(pid, &fd, why);

    if (err)
        return err;
    hed_talk_ask(&q, HED_TALK_OUT);
    q.flags = HED_TALK_RETURN;
    q.deadline_ms = HOLD_MS;
    err = hed_talk_exchange(fd, &q, NULL, 0, ANSWER_MS, a, why);
    if (!err && sent->count < HED_SCHED_SLOTS)
        sent->fds[sent->count++] = fd;
    else
        (void)close(fd);
    return err;
}

/* Of the current context's device; 0 if there is none. */
static uint64_t
free_bytes(struct hed_layer *self)
{
    size_t available = 0;
    size_t total = 0;
    const CUresult r = hed_call(self->next, cuMemGetInfo_v2, .free = &available, .total = &total);

    return r == CUDA_SUCCESS ? available : 0;
}

/* Makes the call again. Memory that a program has left is free a moment later, when its worker has
 * ended: tries until it succeeds, so much is free, or that takes too long. */
static CUresult
call_again(struct hed_layer *self, const struct hed_sched_need *need, uint64_t goal)
{
    const uint64_t end = hed_now_ns() + FREED_NS;
    uint64_t pause = PAUSE_NS;

    for (;;) {
        const bool last = free_bytes(self) >= goal || hed_now_ns() >= end;
        const CUresult r = hed_cuda_invoke(self->next, need->id, need->args);

        if (r != CUDA_ERROR_OUT_OF_MEMORY || last)
            return r;
        hed_sleep_ns(pause);
        pause = pause < PAUSE_MOST_NS ? 2 * pause : pause;
    }
}

static bool
fits_on_device(struct hed_layer *self, const struct hed_gate *g, uint64_t bytes)
{
    size_t total = 0;
    const CUresult r = hed_call(self->next, cuDeviceTotalMem_v2, .bytes = &total, .dev = g->device);

    return r != CUDA_SUCCESS || bytes <= total;
}

/* The gate of the calling client on the device, if it may send others out. */
static struct hed_gate *
gate_of_need(struct hed_sched *s, const struct hed_sched_need *need)
{
    struct hed_gate *g;

    if (need->device < 0)
        g = hed_gate_current(s);
    else
        g = s->settings.swap ? hed_sched_join_device(s, need->device) : NULL;
    /* Relaxed: a setting. */
    return g && g->meet && atomic_load_explicit(&g->slot->swap, memory_order_relaxed) ? g : NULL;
}

CUresult
hed_sched_make_room(struct hed_layer *self, const struct hed_sched_need *need)
{
    struct hed_gate *g = gate_of_need(self->state, need);
    struct hed_sched_tried tried = {.count = 0};
    struct sent_out sent = {.count = 0};
    CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
    int32_t pid;

    if (!g || !fits_on_device(self, g, need->bytes))
        return r;
    while (r == CUDA_ERROR_OUT_OF_MEMORY && (pid = hed_sched_pick_victim(g->meet, &tried)) != 0) {
        const uint64_t before = free_bytes(self);
        struct hed_talk_answer a = {.err = 0};
        struct hed_why why = {""};
        const int err = order_out(pid, &sent, &a, &why);

        hed_sched_tried_add(&tried, pid);
        if (err) {
            hed_info(SCHED, "process %d was not sent out of device memory: %s", (int)pid, why.text);
            /* If another thread has sent it out, the memory may be there now. */
            if (a.state == HED_TALK_SWAPPED)
                r = call_again(self, need, 0);
            continue;
        }
        hed_info(SCHED, "process %d was sent out of device memory: %llu MiB in %llu ms", (int)pid,
                 (unsigned long long)(a.written >> 20),
                 (unsigned long long)(a.total_ns / HED_NS_PER_MS));
        r = call_again(self, need, before + a.written - a.written / 8);
    }
    hang_up(&sent);
    return r;
}
