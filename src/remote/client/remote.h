/* The backend `remote`: the soft driver on a machine that is a worker of a heddle server.
 *
 *   soft driver ──struct hed_machine──> client ──the calling thread's channel──> server/worker
 *
 *   plugin.c    puts client and mover together       mover.h    what may pause and move the program
 *   remote.c    the layer type                       machine.c  the machine: which file does what
 *
 *   queue.c     work on streams, waiting             route.c    copies         exec.c  graphs
 *   put.c       work as messages, by kind            progress.c how far streams have come
 *   stream.c    streams, contexts, marks             event.c    launch.c  copy.c  graph.c  array.c
 *   host.c      the program's functions              rest.c     what else can travel      nvml.c
 *   code.c      libraries, image.c what is sent      function.c kernels        object.c  link.c
 *
 *   memory.c    mapping; mappings.c, lease.c         heap.c     pinned memory that the worker maps
 *   sync.c      memory of which both have a copy     mirror.c   its shadows
 *   deferred.c  bytes that come later                private.c  memory that only this process has
 *
 *   join.c      hello, devices.c, the arena          send.c     messages, calls, answers
 *   connect.c   connections, a thread's channel      channels.c the channels   flush.c
 *   session.c   slots, failures, the end             end.c      exit and fork
 *
 * No files call each other in a circle (tools/check_symbols.py).
 *
 * Invariants:
 * 1. A thread sends only on its own channel. It takes the ticket when there is room for the message
 *    and sends the message right after that: it never waits in between.
 * 2. When the session is lost, every channel ends, every context has failed with
 *    CUDA_ERROR_DEVICE_UNAVAILABLE, and nothing is sent any more. A lost session never comes back.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/lock.h"
#include "core/layer.h"
#include "driver/driver.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/transport.h"
#include "remote/wire/window.h"
#include "remote/wire/wire.h"

struct hed_config;
struct hed_remote;
struct hed_remote_mover;
struct hed_remote_moving;

#define HED_SLOTS_MAX 8192

/* What this client can do, whatever the program's limits are. A mover can do more. */
#define HED_REMOTE_CAN                                                                      \
    (HED_CAN_SLOTS | HED_CAN_SHARED_HEAP | HED_CAN_BEAT | HED_CAN_BASE | HED_CAN_REFUSALS | \
     HED_CAN_SHARE)

/* A thread's connection to the worker. */
struct hed_remote_channel {
    struct hed_remote *remote;
    struct hed_remote_channel *next; /* in remote->channels; guarded by channels_lock */
    struct hed_channel *channel;     /* NULL: not connected to the present worker yet */
    uint32_t thread;
    bool taken; /* a living thread uses it; guarded by channels_lock */
};

struct hed_remote_device {
    int ordinal;            /* the server's number of it, before CUDA_VISIBLE_DEVICES */
    _Atomic uint64_t lease; /* bytes that may be mapped without asking and are not used yet */
    bool real;              /* runs machine code */
    int major, minor;       /* compute capability of the worker's device */
    bool accepts_newer_ptx;
};

struct hed_remote {
    struct hed_driver *driver; /* set when the driver has been made */
    struct hed_layer_room
        calls; /* the driver's calls, which the layer makes while it is not held */
    struct hed_address address;
    _Atomic bool buffers; /* a channel keeps messages back until they are flushed */
    struct hed_tls tls;
    char token[128]; /* secret; for servers that want one */
    int timeout_ms;  /* for connecting, and for answers that do not wait for a device */
    int silent_ms;   /* without a sign of life from the worker */
    uint8_t session[16], secret[16];
    uint64_t capabilities; /* enum hed_capabilities that both sides have */
    enum hed_wire_backend backend;

    _Atomic uint64_t tickets; /* the last ticket taken */
    _Atomic bool lost;
    _Atomic bool ended; /* the process ends, or this is the child of a fork */

    struct hed_lock channels_lock; /* rank HED_RANK_CHANNELS */
    struct hed_remote_channel *channels;
    uint32_t threads; /* number of channels made so far */

    /* turns.c; guarded by channels_lock, but for turns */
    uint32_t turns; /* threads that may use a channel at the same time; 0: any number */
    uint32_t turns_taken, turns_kept;
    pthread_cond_t turn; /* there may be one */

    struct hed_lock events_lock; /* rank HED_RANK_EVENTS: event.c */

    uint64_t arena;      /* where all shares begin, before 2.1 also those of invisible devices */
    uint64_t base, size; /* this client's part of the arena; the host's share is last */
    uint64_t stride, usable; /* bytes from one share to the next; bytes of each that may be used */
    uint32_t map_unit;
    struct hed_remote_device devices[HED_PROFILE_DEVICES_MAX];
    int device_count;

    /* Shared memory only, else NULL: words that the worker writes when work has come so far. */
    _Atomic uint64_t *slots;
    uint32_t slot_count;
    int heap; /* descriptor of the heap, in which pinned memory is; -1: it is in no file */
    uint64_t heap_size; /* bytes of a heap that this process has made (heap.c); else 0 */
    bool shares_heap;   /* the worker maps the heap, too */
    bool all_in_heap;   /* all pinned memory is in the heap: it has always been shared */
    bool in_window; /* the heap is this guest's window, and the worker says where memory is in it */
    struct hed_window window; /* that one, for further channels; its descriptor is `heap` */

    _Atomic uint64_t failures_seen;         /* the last value seen of slots[HED_SLOT_FAILURES] */
    uint64_t slot_used[HED_SLOTS_MAX / 64]; /* one bit per slot; guarded by channels_lock */
    uint32_t slot_next;

    const struct hed_remote_mover *mover; /* mover.h; NULL: there is none. Constant */
    struct hed_remote_moving *moving;     /* the mover's; NULL without one */
    /* Rank HED_RANK_UNMAP. Device memory is unmapped under it, so whoever holds it may read all
     * that is mapped. */
    struct hed_lock unmap_lock;

    struct hed_lock flush_lock;    /* rank HED_RANK_FLUSH; held while the thread flushes */
    _Atomic bool flusher;          /* the thread that flushes exists (flush.c) */
    _Atomic uint32_t flush_wanted; /* messages are buffered */

    /* The state of each file; made by its init function, NULL before. */
    struct hed_remote_memory *memory;
    struct hed_remote_host *host;
    struct hed_remote_code *code;
    struct hed_remote_copies *copies;
};

#define HED_SLOT_FAILURES 0 /* how many contexts have failed; an answer has the details */
#define HED_SLOT_FIRST 16   /* slots of streams and functions begin here */

extern const struct hed_machine hed_remote_machine; /* machine.c */

/* remote.c. The layer type, which complete_type fills in, once. */
extern const struct hed_layer_type hed_remote_type;
void hed_remote_complete_type(void);

/* ---- join.c ---------------------------------------------------------------------------------- */

/* Connects and exchanges the hello: fills in what is known then, and the devices. */
int hed_remote_connect(struct hed_remote *r, const struct hed_config *config,
                       struct hed_profile_device *devices, size_t *count, struct hed_why *why);
/* Joins a worker at r->address for a program that has been somewhere else: with the same arena. The
 * channel is the first one; hed_remote_first_channel() makes it the calling thread's. */
int hed_remote_join_again(struct hed_remote *r, struct hed_channel **out, struct hed_why *why);
int hed_remote_first_channel(struct hed_remote *r, struct hed_channel *channel);

/* devices.c. take reads the descriptions that the server sends: `real` says which run machine code.
 * choose_visible keeps the devices that CUDA_VISIBLE_DEVICES names, which the server knows by their
 * index, as the program's. choose_again is for a program that has its devices: each becomes the one
 * with the same number, if there is one that no other has become, else the first of the rest. */
int hed_remote_take_devices(struct hed_remote *r, struct hed_channel *channel, uint32_t count,
                            bool *real, struct hed_profile_device *out);
size_t hed_remote_choose_visible(struct hed_remote *r, struct hed_profile_device *devices,
                                 size_t count, const bool *real);
int hed_remote_choose_again(struct hed_remote *r, const struct hed_profile_device *devices,
                            uint32_t there, const bool *real, struct hed_why *why);

/* ---- session.c ------------------------------------------------------------------------------- */

/* The worker, or the connection to it, is gone. Only the first call has an effect. If a mover
 * takes the program back to a snapshot, this does not return. */
void hed_remote_lose(struct hed_remote *r, const char *why);
/* The same, after the error of a channel: if the worker has said why it is gone, that is the
 * reason. For the thread that reads the channel. */
void hed_remote_lose_channel(struct hed_remote *r, struct hed_channel *ch, int err);

/* Is the worker one that the program has not been given to yet? Losing it loses nothing else. */
bool hed_remote_on_trial(const struct hed_remote *r);

/* Marks a context as failed, as an answer reports it. */
void hed_remote_failed(struct hed_remote *r, uint64_t context, CUresult error);

/* The machine's `reserve` entry. */
int hed_remote_reserve(void *m, uint64_t want, uint64_t size, uint64_t *base);

/* A slot in the shared page for a stream or function; 0 if there is none left, or no page. */
uint32_t hed_remote_slot_take(struct hed_remote *r);
void hed_remote_slot_give(struct hed_remote *r, uint32_t slot);

/* ---- channels.c ------------------------------------------------------------------------------ */

/* The calling thread's channel, if it is connected to the present worker; else NULL. */
struct hed_remote_channel *hed_remote_channel_own(struct hed_remote *r);
/* The calling thread's channel, connected or not, or one that another thread has left. NULL if
 * there is none: then *thread is the number of a new one. */
struct hed_remote_channel *hed_remote_channel_claim(struct hed_remote *r, uint32_t *thread);
struct hed_remote_channel *hed_remote_channel_add(struct hed_remote *r, struct hed_channel *channel,
                                                  uint32_t thread);
/* Has the thread a channel of this session? leave: it is for another thread. */
bool hed_remote_channel_is_own(const struct hed_remote *r);
void hed_remote_channel_leave(void);
/* A connection that the next thread without one will use. */
int hed_remote_channel_adopt(struct hed_remote *r, struct hed_channel *channel);
/* No thread but this one is in a call: gives connections that no thread uses to threads that have
 * none to the present worker, so that they need not connect. */
void hed_remote_channels_deal(struct hed_remote *r);
/* A thread has one channel, so to use another session (a mover's) it puts its own aside, which
 * may be NULL. back: it takes that again, and leaves the other one as if it ended. */
struct hed_remote_channel *hed_remote_channel_aside(void);
void hed_remote_channel_back(struct hed_remote_channel *aside);
/* The calling thread's channel, connected or not, or one that another thread has left; NULL if
 * there is none. */
struct hed_remote_channel *hed_remote_channel_of_thread(struct hed_remote *r);
/* Gives a channel another connection, or none (NULL). The caller closes the old one. */
void hed_remote_channel_use(struct hed_remote_channel *ch, struct hed_channel *channel);
void hed_remote_channels_forked(struct hed_remote *r);

/* ---- flush.c --------------------------------------------------------------------------------- */

/* For sockets: makes sure that buffered messages go out soon even if nothing else happens. */
void hed_remote_flush_soon(struct hed_remote_channel *channel);

/* Flushes the messages with lower tickets that other threads have buffered. Called before waiting
 * for an answer. */
void hed_remote_flush_others(struct hed_remote *r, struct hed_remote_channel *own, uint64_t below);

/* ---- connect.c ------------------------------------------------------------------------------- */

/* Opens a connection to the server with this preface, for the session if there is one. */
int hed_remote_call_on(const struct hed_remote *r, enum hed_preface_kind kind,
                       struct hed_conn **out, struct hed_why *why);
/* Gives the channel the patience of the settings, if the worker gives signs of life. */
int hed_remote_patience(const struct hed_remote *r, struct hed_channel *ch);
/* Opens another connection of the session, as a channel for this thread. */
int hed_remote_channel_open(struct hed_remote *r, uint32_t thread, enum hed_channel_purpose purpose,
                            struct hed_channel **out, struct hed_why *why);
/* Says to which session a channel belongs, and for one that returns to a parked worker the key.
 * There is no answer: the worker closes connections that it does not know. key may be NULL. */
int hed_remote_say_attach(struct hed_remote *r, struct hed_channel *channel, uint32_t thread,
                          enum hed_channel_purpose purpose, const uint8_t *key);
/* A thread's first message to a worker: waits while the program is being moved, then opens the
 * thread's channel. NULL if the session is lost, as it is when this fails. */
struct hed_remote_channel *hed_remote_channel_connect(struct hed_remote *r);

/* ---- turns.c --------------------------------------------------------------------------------- */

/* How many channels the server allows the session; 0: not told. Before the first call. */
void hed_remote_turns_told(struct hed_remote *r, uint32_t channels);
/* Around each call of the program; begins waits while too many threads are in calls. */
void hed_remote_turn_begins(struct hed_remote *r);
void hed_remote_turn_ends(struct hed_remote *r);

/* The calling thread's channel, which is opened when the thread has none. */
static inline struct hed_remote_channel *
hed_remote_channel_need(struct hed_remote *r)
{
    struct hed_remote_channel *ch = hed_remote_channel_own(r);

    return ch ? ch : hed_remote_channel_connect(r);
}

/* ---- send.c ---------------------------------------------------------------------------------- */

/* The calling thread's context as messages name it, or 0. */
uint64_t hed_remote_current(struct hed_remote *r);

/* Begins a message on the calling thread's channel (hed_remote_channel_need): room for `size`
 * bytes, with the head filled in (ticket, thread, kind, context) and the rest zero. *channel is the
 * channel. NULL if the session is lost. The message must be ended soon, and nothing in between may
 * wait. stream and number may be 0. */
void *hed_remote_begin(struct hed_remote *r, enum hed_msg_kind kind, uint32_t size,
                       uint64_t context, uint64_t stream, uint64_t number,
                       struct hed_remote_channel **channel);
/* Sends the message. `size` is its final size, at most what hed_remote_begin() reserved. If its
 * flags have HED_MSG_WANTS_ANSWER, the caller must take the answer next. If head.bulk is not 0, the
 * caller writes the bulk right after this. */
int hed_remote_end(struct hed_remote_channel *channel, struct hed_msg *msg, uint32_t size);

/* The answer to the message that was just ended; handles data and prints that come before it. The
 * memory is valid until the channel is used again. NULL if the session is lost. Failures of
 * contexts that it reports are noted. */
struct hed_answer *hed_remote_answer(struct hed_remote_channel *channel);

/* Sends a call that has no answer. Objects that it makes are named by the handles that its outputs
 * already hold. */
void hed_remote_send_call(struct hed_remote *r, uint64_t context, uint64_t stream, uint64_t number,
                          enum hed_cuda_call id, void *args);

/* Sends a call and waits for its answer; fills in its outputs after success. `waits`: the call
 * waits for the device, so it may take any length of time. DEVICE_UNAVAILABLE if the session is
 * lost. */
CUresult hed_remote_ask_call(struct hed_remote *r, uint64_t context, uint64_t stream,
                             enum hed_cuda_call id, void *args, bool waits);

/* The same with the call's arguments written out: hed_remote_send(r, context, stream, number,
 * cuEventRecord, .hEvent = event, .hStream = s). */
#define hed_remote_send(r, context, stream, number, call, ...)           \
    hed_remote_send_call((r), (context), (stream), (number), HED_##call, \
                         &(struct hed_##call){__VA_ARGS__})
#define hed_remote_ask(r, context, stream, call, ...)                                            \
    hed_remote_ask_call((r), (context), (stream), HED_##call, &(struct hed_##call){__VA_ARGS__}, \
                        false)
#define hed_remote_ask_waiting(r, context, stream, call, ...)                                    \
    hed_remote_ask_call((r), (context), (stream), HED_##call, &(struct hed_##call){__VA_ARGS__}, \
                        true)

/* Waits for a stream or, if that is 0, for a whole context. Programs wait so often that this has a
 * message of its own, which is cheaper than a call. */
CUresult hed_remote_wait(struct hed_remote *r, uint64_t context, uint64_t stream);
nvmlReturn_t hed_remote_ask_nvml(struct hed_remote *r, enum hed_nvml_call id, void *args);

/* Has no further context failed? Otherwise hed_remote_look() finds out which. Reads one word. */
static inline bool
hed_remote_healthy(struct hed_remote *r)
{
    /* Relaxed: it only says whether to ask; the answer brings the rest. */
    return !r->slots || atomic_load_explicit(&r->slots[HED_SLOT_FAILURES], memory_order_relaxed) ==
                            atomic_load_explicit(&r->failures_seen, memory_order_relaxed);
}
void hed_remote_look(struct hed_remote *r); /* asks the worker (HED_MSG_PING) */

static inline struct hed_remote *
hed_remote_of(void *m)
{
    return m;
}

/* ---- the areas: entries of hed_remote_machine, each in the file of its name ------------------ */

CUresult hed_remote_context_made(void *m, struct hed_context *c);              /* stream.c */
CUresult hed_remote_context_tell(struct hed_remote *r, struct hed_context *c); /* the messages */
void hed_remote_context_gone(void *m, struct hed_context *c);
CUresult hed_remote_context_limit(void *m, struct hed_context *c, CUlimit limit, size_t value);
void hed_remote_stream_init(void *m, struct hed_stream *s);
void hed_remote_stream_made(void *m, struct hed_stream *s);
void hed_remote_stream_set(void *m, struct hed_stream *s, CUlaunchAttributeID id,
                           const CUlaunchAttributeValue *value);

/* Handles the result of a query or a wait: a failure becomes the context's. stream.c, also for
 * event.c */
CUresult hed_remote_waited(struct hed_context *c, CUresult r);
/* s->lock is held. mark makes the worker write the number into the stream's slot when it is reached
 * (false: there is no slot). read takes note of what the slot says. The third says whether the slot
 * has been read in vain for so long that the worker must be asked. */
bool hed_remote_mark_locked(struct hed_remote *r, struct hed_stream *s, uint64_t number);
void hed_remote_read_locked(struct hed_remote *r, struct hed_stream *s);
bool hed_remote_is_late_locked(struct hed_stream *s);

void hed_remote_event_made(void *m, struct hed_event *e); /* event.c */
/* Sends a HED_MSG_SHARE; with `answer`, waits for it. */
CUresult hed_remote_send_share(struct hed_remote *r, uint64_t context, uint64_t stream,
                               const struct hed_share_body *what, bool waits,
                               struct hed_share_answer *answer);
/* Makes sure that the worker has the event. Called before a message that names it. */
void hed_remote_need_event(struct hed_remote *r, struct hed_event *e);
void hed_remote_event_gone(void *m, struct hed_event *e);
CUresult hed_remote_event_time(void *m, struct hed_event *begin, struct hed_event *end, float *ms);
CUresult hed_remote_put_event(struct hed_remote *r, struct hed_stream *s, struct hed_work *w);
/* Another worker: keep remembers when the event was recorded, before the old one is left; `now` was
 * recorded last. again makes the event at the new one. */
int hed_remote_event_keep(struct hed_remote *r, struct hed_event *e, CUevent now);
void hed_remote_event_again(struct hed_remote *r, struct hed_event *e);

CUresult hed_remote_put_host(struct hed_remote *r, struct hed_stream *s, struct hed_work *w);
int hed_remote_host_init(struct hed_remote *r); /* host.c */
void hed_remote_host_forked(struct hed_remote *r);
/* The worker is left: ends the thread, which has nothing to do. It begins again when needed. */
void hed_remote_host_stop(struct hed_remote *r);
void hed_remote_host_leave(struct hed_remote *r); /* forgets slots of the old worker */
/* For a worker that runs nothing: it does not wait for functions of the program, so threads that
 * wait for work do so here. busy: a function has yet to run, so nothing behind it counts as done.
 */
void hed_remote_host_drain(struct hed_remote *r);
bool hed_remote_host_busy(const struct hed_remote *r);
/* enter takes a slot for a stream and clears its word (0: none). leave gives a slot back once
 * `number` has been written to it. */
uint32_t hed_remote_slot_enter(struct hed_remote *r);
void hed_remote_slot_leave(struct hed_remote *r, uint32_t slot, uint64_t number);

/* heap.c: the shared heap that this process makes (HED_CAN_CLIENT_HEAP). It stays when the worker
 * is another. can_grow: may this process have such a file? send: passes it to the worker, and makes
 * it if there is none yet. need: makes it large enough before memory up to this offset is
 * mapped. */
bool hed_remote_heap_can_grow(void);
int hed_remote_heap_send(struct hed_remote *r, struct hed_conn *conn);
int hed_remote_heap_need(struct hed_remote *r, uint64_t end);

int hed_remote_memory_init(struct hed_remote *r, struct hed_why *why); /* memory.c */
int hed_remote_map(void *m, uint64_t at, uint64_t size);
void hed_remote_unmap(void *m, uint64_t at, uint64_t size);
int hed_remote_physical_create(void *m, int device, uint64_t size,
                               struct hed_physical_memory **out);
void hed_remote_physical_free(void *m, struct hed_physical_memory *p);
uint64_t hed_remote_physical_name(const struct hed_physical_memory *p); /* on the wire */
/* A new name; and memory of another program, which the worker has under this name. */
uint64_t hed_remote_physical_number(struct hed_remote *r);
int hed_remote_physical_adopt(struct hed_remote *r, uint64_t name, int device, uint64_t size,
                              struct hed_physical_memory **out);
int hed_remote_physical_map(void *m, struct hed_physical_memory *p, uint64_t offset, uint64_t at,
                            uint64_t size);
void hed_remote_memory_copy(void *m, uint64_t to, uint64_t from, size_t size); /* copy.c; waits */
void hed_remote_memory_fill(void *m, uint64_t to, uint32_t value, unsigned width, size_t count);
int hed_remote_protect(void *m, uint64_t at, uint64_t size, bool readable, bool writable);
size_t hed_remote_memory_left(void *m, struct hed_context *c);

CUresult hed_remote_put_copy(struct hed_remote *r, struct hed_stream *s, struct hed_work *w);
CUresult hed_remote_put_fill(struct hed_remote *r, struct hed_stream *s, struct hed_work *w);
/* Writes bytes of this process to device memory, in the order of the context's legacy stream,
 * without the driver knowing of it. */
int hed_remote_write(struct hed_remote *r, uint64_t context, uint64_t to, const void *from,
                     uint64_t size);
/* Waits until other threads have received the data that the worker sent them before an answer. */
void hed_remote_received(struct hed_remote *r, uint64_t pieces);
/* Handles a HED_MSG_DATA that came before an answer; takes its bulk. */
int hed_remote_data(struct hed_remote_channel *channel, const struct hed_data *d);
/* sync.c. For sockets: makes memory that both sides have equal, before work and after waiting. */
void hed_remote_sync_out(struct hed_remote *r);
void hed_remote_sync_in(struct hed_remote *r);

int hed_remote_code_init(struct hed_remote *r); /* code.c */
CUresult hed_remote_link_made(void *m, struct hed_device *dev, const struct hed_jit_how *how,
                              struct hed_linker **out);
CUresult hed_remote_link_add(void *m, struct hed_linker *l, const struct hed_linker_input *input,
                             struct hed_buf *log);
CUresult hed_remote_link_end(void *m, struct hed_linker *l, struct hed_buf *out,
                             struct hed_buf *log);
void hed_remote_link_gone(void *m, struct hed_linker *l);
CUresult hed_remote_describe(void *m, struct hed_device *dev, struct hed_code *code,
                             uint32_t kernel);
/* Where the worker has a variable. The second function is the machine's entry: it also keeps the
 * address free in this process, since the program will use it. */
CUresult hed_remote_variable_there(struct hed_remote *r, struct hed_context *c,
                                   struct hed_code *code, bool managed, const char *name,
                                   uint64_t *at, uint64_t *size);
CUresult hed_remote_variable(void *m, struct hed_context *c, struct hed_code *code, bool managed,
                             const char *name, uint64_t *at, uint64_t *size);
void hed_remote_function_made(void *m, struct hed_function *f);
void hed_remote_function_gone(void *m, struct hed_function *f);
CUresult hed_remote_function_set(void *m, struct hed_function *f, CUfunction_attribute a,
                                 int value);

CUresult hed_remote_function_load(void *m, struct hed_function *f, const uint32_t *block,
                                  struct hed_why *why);

/* graph.c */
CUresult hed_remote_put_graph(struct hed_remote *r, struct hed_stream *s, struct hed_work *w);

/* share.c: memory and events of other programs */
extern const struct hed_machine_keys hed_remote_keys;
int hed_remote_physical_export(void *m, struct hed_physical_memory *p, const uint8_t *owner,
                               int *fd);
int hed_remote_physical_import(void *m, int fd, uint8_t *owner, struct hed_physical_memory **out);
/* Has the program memory or events of others, or they of it? For who holds the program. */
bool hed_remote_is_sharing(struct hed_remote *r);

/* rest.c */
CUresult hed_remote_call(void *m, struct hed_context *c, enum hed_cuda_call id, void *args);
CUresult hed_remote_unknown(void *m, struct hed_layer *self, enum hed_cuda_call id, void *args);
void hed_remote_forked(void *m); /* end.c */
void hed_remote_fini(void *m);
uint64_t hed_remote_usable(void *m);              /* memory.c */
extern const struct hed_nvml_ops hed_remote_nvml; /* nvml.c: replaces answers of the soft driver */
