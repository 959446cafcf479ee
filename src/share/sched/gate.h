/* The engine of sharing, in one process: gates, pacing and clients.
 *
 *     a call that puts work on a GPU
 *       gate word 0 -----------------------------------------------> the call
 *       else: hed_gate_enter: announce, wait, keep below the cap --> the call --> hed_gate_leave
 *
 * The engine only delays calls, each in its own thread: it never changes, keeps or reorders one. It
 * knows no CUDA call. Its caller says what a call does, and lends it the few functions of the
 * driver that it needs (struct hed_sched_driver). Streams, contexts and events are numbers here; 0
 * is none.
 */
#pragma once

#include "share/sched/engine.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* `driver` is constant and lives for ever; `below` is handed to its functions. `settings` is
 * copied. An engine is never freed: calls may come until the very end of the process. */
int hed_sched_create(const struct hed_sched_driver *driver, void *below,
                     const struct hed_sched_settings *settings, struct hed_sched **out,
                     struct hed_why *why);

/* The process is about to end: all its gates are open from now on. */
void hed_sched_open_gates(struct hed_sched *s);

/* In the child of a fork: the slots are the parent's. */
void hed_sched_forked(struct hed_sched *s);

/* The process has a context on that device: its client joins the clients of the GPU. NULL if that
 * cannot be; with `meet` NULL if the GPU's other clients cannot be reached. */
struct hed_gate *hed_sched_join_device(struct hed_sched *s, int device);

/* ---- clients --------------------------------------------------------------------------------- */

/* The calling thread works for that client from now on, "name" or "name:prio=high,share=3"; "" or
 * NULL: for the process's own, as also after an error, which the log explains. */
int hed_sched_set_client(struct hed_sched *s, const char *text);

/* The gate of the calling thread's client on the device of its context. NULL: there is none. */
struct hed_gate *hed_gate_current(struct hed_sched *s);

/* ---- work ------------------------------------------------------------------------------------ */

/* Describes a launch of a function, kernel or graph with so many blocks; and a copy or fill by a
 * call of that number, of so many bytes. 0: the size is not known. */
void hed_gpu_work_set_launch(struct hed_gpu_work *w, uint64_t function, uint64_t blocks);
void hed_gpu_work_set_copy(struct hed_gpu_work *w, uint32_t call, uint64_t bytes);

/* Before and after a call that puts work on a GPU, unless hed_gate_open() has let it pass. The
 * second must follow in the same thread. `ok`: the call succeeded. */
void hed_gate_enter(struct hed_sched *s, struct hed_gate_pass *pass,
                    const struct hed_gpu_work *work);
void hed_gate_leave(struct hed_sched *s, struct hed_gate_pass *pass, bool ok);

/* ---- waits for the GPU ----------------------------------------------------------------------- */

/* Before and after a call that waits for the GPU. The first also counts while the gate is open: a
 * client that begins to work must see that this one has work. `stream` is the key of the stream
 * that has no work left, 0 if none has, UINT64_MAX if that is not known. */
struct hed_gate *hed_gate_wait_begin(struct hed_sched *s);
void hed_gate_wait_end(struct hed_sched *s, struct hed_gate *g, bool ok, uint64_t stream);

/* `stream` of hed_gate_wait_end() for a wait for a whole context: 0 if it is the current one. */
uint64_t hed_sched_stream_of_context(struct hed_sched *s, uint64_t context);

/* ---- captures and contexts ------------------------------------------------------------------- */

/* Between the first and the second, no thread makes a driver call for the engine, except to ask
 * whether a stream captures. Around the call that begins a capture, until the capture has ended;
 * and around a call that ends a context. */
void hed_sched_forbid_calls(struct hed_sched *s);
void hed_sched_allow_calls(struct hed_sched *s);

/* A capture has begun on that stream (a key): calls stay forbidden until it ends. */
void hed_sched_capture_began(struct hed_sched *s, uint64_t stream);
void hed_sched_capture_ended(struct hed_sched *s, uint64_t stream);

/* A context is about to end, and calls are forbidden: destroys the engine's events. It has ended:
 * its captures have ended with it. 0: it is not known which one. */
void hed_sched_context_ends(struct hed_sched *s);
void hed_sched_context_ended(struct hed_sched *s, uint64_t context);

/* ---- what the recording queue tells ---------------------------------------------------------- */

/* One more call is recorded and not at the gate yet; one fewer. */
void hed_gate_queue(struct hed_gate *g);
void hed_gate_unqueue(struct hed_gate *g);

/* After hed_gate_queue(), with the call in the queue: decides if that call is reason enough. */
void hed_gate_queued(struct hed_gate *g);

/* Between the first and the second, a thread waits for the client's work. */
void hed_gate_sync_begin(struct hed_gate *g);
void hed_gate_sync_end(struct hed_gate *g);

/* The calls that the client has queued so far go on, because another client waits for them. Nothing
 * happens if a user has paused it. */
void hed_gate_release(struct hed_gate *g);

/* ---- the fast path --------------------------------------------------------------------------- */

/* May the calling thread's call go on at once? Looks at all gates of its client. Counts it,
 * then. */
bool hed_sched_all_open(struct hed_sched *s);

/* Counts a call. Threads that were started one after the other have different counters: their
 * thread pointers are a stack and a guard page apart, and stacks are multiples of 64 KiB. */
static inline void
hed_sched_count(struct hed_sched_slot *p)
{
    const uintptr_t thread = (uintptr_t)__builtin_thread_pointer();

    atomic_fetch_add_explicit(&p->calls[(thread >> 12) % HED_SCHED_STRIPES].n, 1,
                              memory_order_relaxed);
}

/* May a call go on at once? Counts it, then. */
static inline bool
hed_gate_open(struct hed_sched *s)
{
    /* Acquire: pairs with the release in hed_sched_join_device, so that the slot is complete. */
    struct hed_sched_slot *p = atomic_load_explicit(&s->only, memory_order_acquire);

    if (__builtin_expect(p == NULL, 0))
        return hed_sched_all_open(s);
    /* Relaxed: if a gate closes just now, the next call sees it. */
    if (__builtin_expect(atomic_load_explicit(&p->gate, memory_order_relaxed) != 0, 0))
        return false;
    hed_sched_count(p);
    return true;
}
