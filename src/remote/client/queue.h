/* A worker's streams as this side sees them: the numbers of their work, and how far they have come.
 *
 *   driver ──machine->submit, launch, copy──> queue.c, route.c, exec.c ──numbered──> messages
 *          ──machine->stream_wait, ...──────> queue.c: known already? ──no──> messages
 *
 * queue.c, progress.c, route.c, private.c, exec.c and object.c implement order and rules, but do
 * not send messages. In their tests (tests/unit/remote) a stand-in replaces the files that do.
 */
#pragma once

#include "driver/driver.h"

/* Guarded by the stream's lock. */
struct hed_remote_stream {
    uint64_t answered;        /* done, and an answer said so: what comes with answers is here too */
    uint64_t late;            /* the last work whose results come only with an answer */
    uint64_t begun;           /* the context's `begun` after the last work was sent */
    uint64_t marked;          /* the worker will report this number without being asked */
    uint64_t asked;           /* ns; when a thread that does not wait last asked */
    uint32_t slot;            /* where the worker reports; 0: no slot yet */
    uint32_t set;             /* attributes that the program has set: one bit each */
    uint64_t copied;          /* the last copy that the program considers done */
    _Atomic uint64_t settled; /* the context's `copies` when this stream last waited for them */
};

struct hed_remote_context {
    _Atomic uint64_t begun;  /* waits for the whole context that have begun */
    _Atomic uint64_t synced; /* the last of them that has succeeded */
    _Atomic uint64_t copies; /* calls of hed_remote_copied() */
    _Atomic uint64_t left;   /* `begun` when a stream with unfinished work was last destroyed */
    uint32_t limits;         /* that the program has set: one bit each */
    bool made, reset;        /* the worker has the context; the worker must make it again */
    _Atomic uint32_t resets; /* how often the worker has reset it, and lost everything in it */
};

/* Versions of the body (struct hed_exec). Guarded by the executable graph's lock. */
struct hed_remote_exec {
    uint64_t mirrored; /* the version of the worker's mirror; 0: there is no mirror */
    uint64_t by_node;  /* the version that cannot have a mirror: its nodes are sent one by one */
    CUresult refused;  /* why there is none */
};

static inline struct hed_remote_stream *
hed_remote_stream(const struct hed_stream *s)
{
    return s->own;
}

static inline struct hed_remote_context *
hed_remote_context(const struct hed_context *c)
{
    return c->own;
}

/* ---- queue.c: entries of the table ----------------------------------------------------------- */

bool hed_remote_stream_gone(void *m, struct hed_stream *s);
CUresult hed_remote_stream_query(void *m, struct hed_stream *s);
CUresult hed_remote_stream_wait(void *m, struct hed_stream *s);
CUresult hed_remote_context_wait(void *m, struct hed_context *c);
bool hed_remote_point_reached(void *m, struct hed_point p);
CUresult hed_remote_point_wait(void *m, struct hed_point p);
CUresult hed_remote_event_query(void *m, struct hed_event *e);
CUresult hed_remote_event_wait(void *m, struct hed_event *e);
CUresult hed_remote_submit(void *m, struct hed_stream *s, struct hed_work *w, bool wait);
CUresult hed_remote_launch(void *m, struct hed_stream *s, const struct hed_launch *l);

/* ---- progress.c: how far streams have come --------------------------------------------------- */

#define HED_ALL_WORK UINT64_MAX /* as a number: all work on the stream */

/* Is a number known to be done? `answered`: has an answer said so? */
bool hed_remote_is_known_done(struct hed_stream *s, uint64_t number, bool answered);

/* s->lock is held, for both. refresh takes waits for the whole context into account. sent: work has
 * just been sent. */
void hed_remote_refresh_locked(struct hed_stream *s);
void hed_remote_sent_locked(struct hed_stream *s);

/* Gives work that took many messages its number. Called without the lock, after the last message
 * was sent. late: its results come with a later answer. */
uint64_t hed_remote_sent(struct hed_stream *s, bool late);

/* An answer has said that this number is done. It was asked for after the work had been sent. */
void hed_remote_answered(struct hed_stream *s, uint64_t number);

/* The worker has reported, without being asked, that this number was reached; s->lock is held. What
 * comes only with an answer is not here yet. */
void hed_remote_told_locked(struct hed_stream *s, uint64_t number);

/* Is the point still that of the event's last record? If not, the worker's answer about the event
 * may concern a record that another thread has made meanwhile. */
bool hed_remote_is_last(struct hed_event *e, struct hed_point p);

/* The last work sent is a copy that the program considers done, because its call has returned. Work
 * that is put on unrelated streams must come behind it. */
void hed_remote_copied(struct hed_stream *s);

/* ---- queue.c: copies that the program considers done ----------------------------------------- */

void hed_remote_settle_now(void *m, struct hed_stream *s);

/* Called before work is put on a stream: waits for such copies on other streams. No lock is
 * held. */
static inline void
hed_remote_settle(void *m, struct hed_stream *s)
{
    /* Acquire: pairs with the release in hed_remote_copied(). Relaxed: only this stream's work
     * depends on it. */
    if (atomic_load_explicit(&hed_remote_context(s->ctx)->copies, memory_order_acquire) !=
        atomic_load_explicit(&hed_remote_stream(s)->settled, memory_order_relaxed))
        hed_remote_settle_now(m, s);
}

/* Has the program asked for an event that other programs can have? */
static inline bool
hed_remote_event_is_shared(const struct hed_event *e)
{
    return e->flags & CU_EVENT_INTERPROCESS;
}

/* ---- route.c: copies ------------------------------------------------------------------------- */

CUresult hed_remote_copy(void *m, struct hed_stream *s, const struct hed_copy *c, bool waits);

/* ---- private.c: memory that only this process has -------------------------------------------- */

/* Is this side of a resolved copy such memory? */
bool hed_remote_is_private(void *m, const struct hed_copy_side *side, const struct hed_box *box);

/* Is it a fill of such memory? Then this process does it, when the stream has come so far. */
bool hed_remote_fill_is_private(void *m, struct hed_driver *d, const struct hed_fill *f);
CUresult hed_remote_fill_here(struct hed_stream *s, const struct hed_fill *f);

/* ---- exec.c: executable graphs --------------------------------------------------------------- */

CUresult hed_remote_graph_launch(void *m, struct hed_exec *e, struct hed_stream *s,
                                 struct hed_graph_exec *body);
void hed_remote_graph_upload(void *m, struct hed_exec *e, struct hed_stream *s);
void hed_remote_graph_gone(void *m, struct hed_exec *e);

/* ---- object.c: programs, arrays, texture and surface objects --------------------------------- */

CUresult hed_remote_program_open(void *m, struct hed_device *dev, struct hed_program *p,
                                 const struct hed_image *image, const struct hed_jit_how *how,
                                 struct hed_why *why);
void hed_remote_program_close(void *m, struct hed_program *p);
void hed_remote_module_load(void *m, struct hed_module *mod);
void hed_remote_fill_vars(void *m, struct hed_program *p, const uint64_t *addresses,
                          const uint64_t *where);
CUresult hed_remote_array_made(void *m, struct hed_context *c, struct hed_array *a, uint64_t bytes);
CUresult hed_remote_mipmap_made(void *m, struct hed_context *c, struct hed_mipmap *mm,
                                uint64_t bytes);
CUresult hed_remote_array_quiesce(void *m, struct hed_context *c, const struct hed_allocation *a);
void hed_remote_array_gone(void *m, const struct hed_allocation *a, uint64_t handle);
CUresult hed_remote_texture_made(void *m, struct hed_context *c, const struct hed_texture *t,
                                 const struct hed_texture_given *given, uint64_t *value);
CUresult hed_remote_surface_made(void *m, struct hed_context *c, const struct hed_surface *s,
                                 const CUDA_RESOURCE_DESC_v1 *given, uint64_t *value);
uint64_t hed_remote_object_key(void *m, const struct hed_context *c, bool surface, uint64_t value);
CUresult hed_remote_object_gone(void *m, struct hed_context *c, bool surface, uint64_t value);

/* ---- messages: stream.c, event.c, launch.c, copy.c, graph.c, code.c, array.c ----------------- */

/* These functions send messages, and wait if they return a result that only the worker knows. `m`
 * is the struct hed_remote. */
void hed_remote_stream_drop(void *m, struct hed_stream *s); /* s->lock is held */
CUresult hed_remote_await_context(void *m, struct hed_context *c);
CUresult hed_remote_await_stream(void *m, struct hed_stream *s);
CUresult hed_remote_await_event(void *m, struct hed_event *e);
/* SUCCESS, NOT_READY, or the failure. They may set s->done. */
CUresult hed_remote_ask_stream(void *m, struct hed_stream *s);
CUresult hed_remote_ask_event(void *m, struct hed_event *e);
/* The same for events that other programs have (share.c); put_shared records one on a stream, or
 * makes the stream wait for it. s->lock is not held. */
CUresult hed_remote_await_shared(void *m, struct hed_event *e);
CUresult hed_remote_ask_shared(void *m, struct hed_event *e);
CUresult hed_remote_put_shared(void *m, struct hed_stream *s, struct hed_event *e, bool record);
/* Has the program ever shared memory with another? */
bool hed_remote_has_shared(void *m);
/* Takes note of the stream's progress without waiting; asks the worker only now and then. */
void hed_remote_look_at_stream(void *m, struct hed_stream *s);

/* Sends work; s->lock is held and w->number is set. The caller keeps the work and frees it. What is
 * needed later is copied, or taken over by setting the pointer in the work to NULL. For all kinds
 * but frees, and copies and fills of private memory. */
CUresult hed_remote_put(void *m, struct hed_stream *s, struct hed_work *w);
CUresult hed_remote_put_launch(void *m, struct hed_stream *s, const struct hed_launch *l,
                               uint64_t number);

/* A copy with private memory on one side. wait: the copy is done on return. Otherwise the program
 * may change the memory it copies from as soon as this returns, and the memory it copies to is
 * written before the stream is next known to have come this far. s->lock is not held, since the
 * copy may take many messages. */
CUresult hed_remote_copy_host(void *m, struct hed_stream *s, const struct hed_copy *c, bool to_host,
                              bool wait);

/* Is this host memory that the worker has at the same address? */
bool hed_remote_shares(void *m, uint64_t at, uint64_t size);

/* Has a function of the program yet to run? It may write memory that a copy is to read. */
bool hed_remote_functions_wait(void *m);

/* Makes the worker's mirror of an executable graph, or updates it. */
CUresult hed_remote_mirror_exec(void *m, struct hed_context *c, struct hed_exec *e,
                                struct hed_graph_exec *body, bool first);
void hed_remote_drop_exec(void *m, uint64_t handle);

/* Does a launch use system-wide atomics on managed memory that are not atomic for the program? If
 * so, it is waited for. patience: for so many nanoseconds. not_alone: it has not ended, and the
 * user is told. */
bool hed_remote_must_run_alone(void *m, const struct hed_stream *s, const struct hed_launch *l);
uint64_t hed_remote_patience_alone(const struct hed_launch *l);
void hed_remote_not_alone(const struct hed_launch *l);

/* Makes a conditional handle of the worker's driver for a graph, which the worker keeps; gone frees
 * them. */
CUresult hed_remote_graph_condition(void *m, struct hed_context *c, uint64_t graph, unsigned value,
                                    unsigned flags, uint64_t *out);
void hed_remote_graph_conditions_gone(void *m, uint64_t graph);

/* Loads an image. The code's kernels have names and positions, and the rest once they are
 * described. hed_remote_close() closes it. */
CUresult hed_remote_open(void *m, struct hed_device *dev, const struct hed_image *image,
                         struct hed_code **out, const struct hed_jit_how *how, struct hed_why *why);
void hed_remote_close(void *m, struct hed_code *code);

/* Arrays and mipmaps are named by their handles; objects have the value that the worker gives
 * them. */
CUresult hed_remote_make_array(void *m, struct hed_context *c, struct hed_array *a);
CUresult hed_remote_make_mipmap(void *m, struct hed_context *c, struct hed_mipmap *mm);
void hed_remote_drop_array(void *m, uint64_t context, uint64_t handle);
CUresult hed_remote_make_texture(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                                 const CUDA_TEXTURE_DESC_v1 *tex,
                                 const CUDA_RESOURCE_VIEW_DESC_v1 *view, uint64_t *value);
CUresult hed_remote_make_surface(void *m, struct hed_context *c, const CUDA_RESOURCE_DESC_v1 *res,
                                 uint64_t *value);
void hed_remote_drop_object(void *m, struct hed_context *c, bool surface, uint64_t value);
