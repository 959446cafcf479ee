/* A worker: the process that does the work of one client. See docs/internals/server.md.
 *
 *   listener ──fork──> worker ──channel threads──> chain of layers (core/layer.h) ──> backend
 *                         └── control: new channels from the listener, peers that are gone
 *
 * It is forked before any driver call, and everything that belongs to the client is in it. When the
 * client is gone, the worker exits, and the kernel and the driver free everything. When a worker
 * dies, no other client notices.
 *
 *   worker.c  life, control thread, channels' loop      ticket.c  messages in ticket order
 *   hello.c   hello, devices                 names.c   the client's names -> the backend's handles
 *   call.c    HED_MSG_CALL                   memory.c  map, unmap, lease; pinned.c host memory
 *   copy.c    bulk in and out                code.c    images, libraries, kernels
 *   launch.c  launches                       host.c    functions that run in the client, marks
 *   print.c   what kernels print             arena.c   addresses that both sides have
 *   limits.c  sessions that take too much    progress.c  kernels that take too long
 *   park.c    clients that go away and return   spare.c  workers that are ready before the client
 *   orders.c  what operators tell the client    share.c  memory of other clients
 *   shared_event.c  events of other clients
 *
 * Invariants:
 * 1. Whatever the client sends, the worker neither crashes nor reads or writes memory that is not
 *    the client's. Nonsense ends the session with one line in the log.
 * 2. Messages are handled in ticket order. A handler that may block lets the next ticket proceed
 *    first.
 * 3. If a call without an answer fails, its context has failed, and every answer says so.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/lock.h"
#include "core/layer.h"
#include "remote/server/lease_socket.h"
#include "remote/server/notice.h"
#include "remote/server/start.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/transport.h"
#include "remote/wire/window.h"
#include "remote/wire/wire.h"

struct hed_handed;
struct hed_worker;

/* One channel and its thread. */
struct hed_worker_channel {
    struct hed_worker *worker;
    struct hed_worker_channel *next; /* worker->channels; guarded by lock */
    struct hed_channel *channel;
    uint32_t thread;
    uint32_t life;          /* of the worker, in which the channel was added */
    uint64_t ticket;        /* of the current message; 0 if none, or if it has been passed on */
    uint64_t context;       /* the client's name of the current context */
    struct hed_arena arena; /* for decoding; emptied before each message */
    /* Counted since the status was last updated (worker.c). Written by the channel's thread. */
    _Atomic uint64_t messages, launches, bytes_in;
    struct hed_copies *copies; /* copy.c: bulk that a device still reads or writes; NULL for none */
    struct hed_drafts *drafts; /* graph.c: graphs that are being built; NULL for none */
    _Atomic uint64_t taken;    /* counts messages; odd while one is being handled */
    uint64_t heard;            /* control thread only: `taken` at its last beat */
    uint32_t beats;            /* control thread only: signs of life since `taken` changed */
};

struct hed_worker {
    const struct hed_worker_start *start;
    struct hed_layer *top; /* calls go to this layer */
    bool started;          /* the backend is up */
    bool no_memory;        /* the backend does no work (null): it is all done when a call returns */
    enum hed_wire_backend backend;
    bool memops; /* values can be written and waited for in stream order */
    const struct hed_transport *transport; /* the one that the hello named */
    uint8_t secret[16];                    /* under the lock, once there is an arena */
    uint64_t offered;        /* the arena's base that was offered to the client; 0 for none yet */
    uint64_t base;           /* the arena's base; 0 until the client has accepted one */
    _Atomic bool settled;    /* all that depends on the base is ready: other channels may attach */
    uint64_t stride, usable; /* bytes from share to share; bytes of each for the client */
    uint32_t map_unit;
    int device_count;
    int device_shares;     /* shares of the arena for devices; the host's is behind them */
    uint64_t capabilities; /* enum hed_capabilities that both sides have */

    _Atomic uint64_t next_ticket; /* of the message that is handled next */
    _Atomic uint32_t ticket_waiters;
    _Atomic uint32_t ticket_wakeups;
    _Atomic bool ending;     /* the session is over, and no thread may go on waiting */
    _Atomic uint64_t *slots; /* shared page; NULL for none */
    int slots_fd;            /* its file; -1 if it is in a window */
    uint32_t slot_count;
    bool shares;       /* both sides see the same memory: rings, slots, pinned memory */
    bool in_window;    /* that memory is in the guest's window */
    int heap;          /* else the descriptor of pinned memory; -1 for none */
    bool clients_heap; /* the client has made it, and it grows */
    struct hed_window window;

    struct hed_lock lock; /* rank HED_RANK_WORKER: guards channels, failure */
    struct hed_worker_channel *channels;
    _Atomic uint32_t life;         /* how often the client has parked it; changed under the lock */
    bool parked;                   /* the client is away; under the lock */
    uint64_t parked_ns;            /* when it went; under the lock */
    uint8_t key[16];               /* by which it returns; under the lock */
    _Atomic uint32_t new_channels; /* channels that have not yet shown the session's secret */
    struct hed_conn *orders;       /* on which the client takes orders; under the lock; or NULL */
    uint64_t order;                /* number of the last order; under the lock */
    _Atomic bool ordering;         /* one is being carried out; changed under the lock */
    _Atomic uint32_t order_threads;
    _Atomic uint32_t resets; /* contexts that have ended; what was made in them is gone */
    bool lacks_memory;       /* one has ended since hed_memory_restore(); by ticket */
    _Atomic int failed;      /* CUresult of the first failure */
    uint64_t failed_context;

    struct hed_lock
        lease_socket_lock; /* rank HED_RANK_LEASE_SOCKET: one question at a time; guards `told` */
    const struct hed_notice *notice; /* NULL: every question is asked */
    struct hed_told {
        uint64_t changes; /* on the notice, 1 more than then; 0: never asked */
        uint64_t bytes;
    } told[2][HED_LEASE_SOCKET_PLACES]; /* the last answers: obtainable, others */

    struct hed_wire_device *described; /* by a spare, all devices; NULL: not yet */
    CUcontext warm_context;            /* of which a spare has a reference, while `warm` */
    _Atomic bool warm;                 /* a spare's own reference to a primary context (spare.c) */
    struct hed_names *names;
    struct hed_values *values; /* NULL if there are none yet */
    _Atomic uint32_t contexts; /* how many the client has created */
    struct hed_worker_memory *memory;
    struct hed_worker_code *code;
    struct hed_worker_host *host;
    struct hed_worker_print *print;
    struct hed_worker_refusals *refusals; /* NULL if the client does not want to know */
    struct hed_worker_progress *progress; /* NULL: kernels may take any time */
    struct hed_shared_events *shared;     /* shared_event.c; NULL if there are none yet */
    struct hed_worker_arrays *arrays;     /* array.c; NULL if there are none yet */
    struct hed_kept_graph *kept_graphs;   /* condition.c; NULL if there are none */
    _Atomic int nvml;                     /* nvml.c: 1 when NVML has been initialised */
};

/* Handles one kind of message. Returns 0, or HED_E... to end the session. The message is in private
 * memory, has at least `least` bytes, and its context is current. */
typedef int (*hed_handler)(struct hed_worker_channel *ch, struct hed_msg *m);
struct hed_handling {
    hed_handler handler; /* NULL if clients do not send it */
    uint32_t least;      /* its smallest size in bytes */
    bool waits_itself;   /* the handler waits for the ticket itself, because it reads bulk first */
    bool no_ticket;      /* the message has no ticket */
};

int hed_do_arena(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_ping(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_call(struct hed_worker_channel *ch, struct hed_msg *m); /* call.c */
int hed_do_wait(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_nvml(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_lease(struct hed_worker_channel *ch, struct hed_msg *m); /* memory.c */
int hed_do_map(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_unmap(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_sync_host(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_launch(struct hed_worker_channel *ch, struct hed_msg *m);  /* launch.c */
int hed_do_copy_in(struct hed_worker_channel *ch, struct hed_msg *m); /* copy.c */
int hed_do_copy_out(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_copy_deferred(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_image(struct hed_worker_channel *ch, struct hed_msg *m); /* code.c */
int hed_do_open(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_kernel(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_host(struct hed_worker_channel *ch, struct hed_msg *m); /* host.c */
int hed_do_mark(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_fetch(struct hed_worker_channel *ch, struct hed_msg *m);
int hed_do_array(struct hed_worker_channel *ch, struct hed_msg *m); /* array.c */
int hed_do_graph(struct hed_worker_channel *ch, struct hed_msg *m); /* graph.c */
bool hed_worker_has_draft(const struct hed_worker_channel *ch);
int hed_do_park(struct hed_worker_channel *ch, struct hed_msg *m);  /* park.c */
int hed_do_share(struct hed_worker_channel *ch, struct hed_msg *m); /* share.c */

/* Called once, when cuInit has succeeded and the devices are known, before any work. */
int hed_worker_memory_init(struct hed_worker *w, struct hed_why *why);
int hed_worker_code_init(struct hed_worker *w, struct hed_why *why);
int hed_worker_host_init(struct hed_worker *w, struct hed_why *why);
int hed_worker_print_init(struct hed_worker *w, struct hed_why *why);

/* ---- ticket.c -------------------------------------------------------------------------------- */

/* Waits until the ticket is next. HED_EFORMAT if it was used before. */
int hed_ticket_wait(struct hed_worker_channel *ch, uint64_t ticket);
/* Lets the next ticket proceed: at the end of a message, or before something that blocks. May be
 * called again. */
void hed_ticket_pass(struct hed_worker_channel *ch);

/* ---- names.c --------------------------------------------------------------------------------- */

#define HED_NAMES_MAX (1u << 23)           /* names of one kind */
#define HED_NAME_SLOTS (2 * HED_NAMES_MAX) /* what hed_name_slot() is below */

/* The place of a name in a table of one kind; HED_NAME_SLOTS or more if its index is too large.
 * Two names have the same place only if they differ in kind or generation alone. */
static inline uint32_t
hed_name_slot(uint64_t name)
{
    const uint32_t low = (uint32_t)name;

    if (low % 16 == 0)
        return low / 16 < HED_NAMES_MAX ? low / 16 : UINT32_MAX;
    return low < HED_NAMES_MAX ? HED_NAMES_MAX + low : UINT32_MAX; /* of an older client */
}

/* Binds the client's `name` to the backend's handle `real`. The kind (enum hed_kind of
 * driver/handle.h) is in the name's top byte. HED_EEXIST, HED_ELIMIT, HED_ENOMEM. */
int hed_name_bind(struct hed_names *n, uint64_t name, uint64_t real);
/* Finds the backend's handle. 0 and the numbers of the default streams (1, 2) stay what they are.
 * HED_ENOTFOUND. */
int hed_name_real(struct hed_names *n, uint64_t name, uint64_t *real);
/* Forgets a name. HED_ENOTFOUND. */
int hed_name_unbind(struct hed_names *n, uint64_t name, uint64_t *real);
struct hed_names *hed_names_create(void);
void hed_names_free(struct hed_names *n);
/* Is it a name for an object of this kind ("stream", as in gen/cuda_handles.h)? 0 is a name for all
 * kinds, and the numbers of the default streams are names for streams. To be asked before a
 * client's name is bound or looked up: a driver that gets a stream where it expects an event may do
 * anything. */
bool hed_name_fits(uint64_t name, const char *kind);

/* ---- values.c: texture and surface objects, by the backend's values -------------------------- */

struct hed_values *hed_values_create(void);
/* HED_ELIMIT, HED_ENOMEM. */
int hed_value_add(struct hed_values *v, bool surface, uint64_t value);
bool hed_value_has(struct hed_values *v, bool surface, uint64_t value);
bool hed_value_remove(struct hed_values *v, bool surface, uint64_t value); /* did it exist? */

#define HED_WORKER_FAILURES 0 /* slot that counts failed contexts and refusals in kernels */

/* arena.c: sets stride, usable and map_unit. */
void hed_arena_init_sizes(struct hed_worker *w);

/* ---- hello.c --------------------------------------------------------------------------------- */

/* Checks the hello, starts the backend and answers over the bare connection, with the reason if it
 * fails. Sets w->transport and all that is known of the devices. HED_EVERSION, HED_EACCESS, ... */
int hed_worker_welcome(struct hed_worker *w, struct hed_conn *conn, const struct hed_hello *h,
                       struct hed_why *why);
/* A client that looked for room (HED_LOOKS_FOR_ROOM) has got some. For any client. */
void hed_worker_has_room(struct hed_worker *w);
/* Sends the first messages on the first channel: one struct hed_wire_device per device. */
int hed_worker_tell_devices(struct hed_worker_channel *ch);
/* Finds out now what that will say. */
int hed_worker_find_devices(struct hed_worker *w);
int hed_worker_start_backend(struct hed_worker *w, struct hed_why *why);
uint64_t hed_worker_device_bytes(struct hed_worker *w, int i);

/* ---- spare.c --------------------------------------------------------------------------------- */

/* Does what can be done before the client is known. After an error, what is not done is not. */
int hed_worker_warm_up(struct hed_worker *w, struct hed_why *why);
/* Before and after a call of the client: gives up the reference that a spare has to a primary
 * context, when the client has its own, or does not want that context. `primary`: the call retains
 * a primary context. */
void hed_warm_before(struct hed_worker *w, const struct hed_msg *m, bool primary, const void *args);
void hed_warm_after(struct hed_worker *w, const struct hed_msg *m);

/* ---- worker.c -------------------------------------------------------------------------------- */

/* A worker of which nothing has been started; NULL if there is no memory. hed_worker_serve() takes
 * it from there, when its client is known, as hed_worker_run() does. */
struct hed_worker *hed_worker_begin(const struct hed_worker_start *start);
int hed_worker_serve(struct hed_worker *w);

/* lease.c: the guest's window, if it has one. */
void hed_worker_window_init(struct hed_worker *w);
/* lease.c: asks the listener for device memory. take returns how many bytes were leased, 0 for
 * fewer than `least`. Without a listener everything is granted. */
uint64_t hed_lease_take(struct hed_worker *w, int device, uint64_t want, uint64_t least);
void hed_lease_give(struct hed_worker *w, int device, uint64_t bytes);
uint64_t hed_lease_obtainable(struct hed_worker *w, int device);
/* What the other workers of the server have leased. */
uint64_t hed_lease_others(struct hed_worker *w, int device);
/* Asks it something else (server/lease_socket.h): hed_lease_socket_exchange(). */
int hed_lease_exchange(struct hed_worker *w, const struct hed_lease_socket_ask *ask, int fd,
                       struct hed_lease_socket_answer *answer, int *got);

/* count.c: counts a message; adds what was counted to the status. */
void hed_worker_count(struct hed_worker_channel *ch, const struct hed_msg *m);
void hed_worker_tell_counts(struct hed_worker_channel *ch);

/* Checks and handles one message. For the channels' loops and for tests. */
int hed_worker_handle(struct hed_worker_channel *ch, struct hed_msg *m);
struct hed_worker_channel *hed_worker_channel_add(struct hed_worker *w, struct hed_channel *channel,
                                                  uint32_t thread, uint32_t life);
struct hed_worker_new_channel { /* a channel whose first message has not come yet */
    struct hed_worker *worker;
    int fd;
    struct hed_conn_state state;
};
/* orders.c. Takes a connection for orders, or one of an operator who has an order. end: the process
 * ends; waits for a moment if the client has yet to say how an order went. */
void hed_worker_orders_accept(struct hed_worker *w, int fd, const struct hed_handed *h);
void hed_worker_orders_end(struct hed_worker *w);
/* park.c. Has the client parked the worker since the channel was added? */
bool hed_worker_is_left(const struct hed_worker_channel *ch);
/* May a channel come that says this? It then belongs to this life. */
bool hed_worker_knows(struct hed_worker *w, const struct hed_attach *a, uint32_t *life);
/* Frees a channel of an earlier life. For its thread, which then ends. */
void hed_worker_leave(struct hed_worker_channel *ch);
/* The client returns over this channel: adds it and answers. HED_EACCESS, and then the worker is as
 * before; after other failures the session ends. */
int hed_worker_take_back(struct hed_worker *w, struct hed_channel *channel,
                         const struct hed_attach *a, uint32_t life,
                         struct hed_worker_channel **out);
/* host.c. Is no function and no mark under way? leave: lets the callback channel and the slots go,
 * after the life of the channel is over. return: the client has a new channel. */
bool hed_worker_host_is_quiet(struct hed_worker *w);
void hed_worker_host_leave(struct hed_worker *w);
void hed_worker_host_return(struct hed_worker *w, struct hed_channel *channel);

/* host.c: takes the client's callback channel. Returns 0 or HED_E... */
int hed_worker_callback_channel(struct hed_worker *w, struct hed_channel *channel, uint32_t life);

/* Ends the process with its client. Nothing is flushed, nothing waits. err: 0 or HED_EIO if the
 * client is gone. */
_Noreturn void hed_worker_exit(struct hed_worker *w, int err);

/* limits.c: what the control thread knows of the session's limits. */
struct hed_worker_limits {
    uint64_t begin_ns; /* of the session */
    uint64_t heard_ns; /* when the client last sent something, or waited */
    uint64_t messages; /* then */
};
/* Called from time to time. Ends the session if it takes more than it may. */
void hed_worker_check_limits(struct hed_worker *w, struct hed_worker_limits *l);
/* Ends the session, and the process, for a reason that the log has and the client is told. Any
 * thread may call it. */
_Noreturn void hed_worker_end(struct hed_worker *w, const char *why);
/* host.c: the worker's last words on the callback channel, if there is one. */
void hed_worker_host_last(struct hed_worker *w, const struct hed_end *end);

/* Answers a message that wants an answer: the result, then n bytes of body. */
int hed_worker_answer(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                      const void *body, size_t n);
/* The same with the caller's own struct, which begins with a struct hed_answer whose head is filled
 * in here. The caller writes `bulk` bytes right after. */
int hed_worker_answer_with(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                           void *answer, size_t size, uint64_t bulk);
/* Notes the result of work that nobody waits for. CUDA_SUCCESS is allowed. */
void hed_worker_failed(struct hed_worker *w, uint64_t context, CUresult error);
/* Makes a client that asks for nothing ask: an answer has something to tell. */
void hed_worker_alert(struct hed_worker *w);
/* Explains the result of a call whose object has no name: if the context had failed before, the
 * object could not be created, and that failure is the answer. All other results stay as they
 * are. */
CUresult hed_worker_explain(struct hed_worker *w, uint64_t context, CUresult r);
/* A context has been destroyed or reset: forgets its failure, and what was made in it. */
void hed_worker_context_ended(struct hed_worker *w, uint64_t context);
/* What the driver has answered to a call in a context. */
void hed_worker_heard(struct hed_worker *w, uint64_t context, CUresult result);
/* memory.c: maps and registers what could not be mapped, or was registered in a context that has
 * ended. A failure is one of this context, which is current. False: the context is of no use. */
bool hed_memory_restore(struct hed_worker *w, uint64_t context);
/* The stream of a message, as the backend's handle. HED_ENOTFOUND. */
int hed_worker_stream(struct hed_worker_channel *ch, const struct hed_msg *m, CUstream *out);
/* Makes the client's context current on this thread. Returns HED_ENOTFOUND; or HED_ENOMEM, and then
 * nothing may be done for the message, because another context is current. */
int hed_worker_context(struct hed_worker_channel *ch, uint64_t name);
/* Called before every answer to a message that waited for the device: sends deferred copies
 * (copy.c) and what kernels have printed (print.c). */
int hed_worker_before_answer(struct hed_worker_channel *ch);
int hed_copies_deliver(struct hed_worker_channel *ch); /* copy.c */
/* copy.c: waits until devices have read all incoming bulk and gives it back. Called before other
 * code reads bulk, which would find no room in the channel. */
void hed_copies_settle(struct hed_worker_channel *ch);
/* copy.c: the channel ends. Nothing may use its memory any more. */
void hed_copies_leave(struct hed_worker_channel *ch);
uint64_t hed_copies_delivered(struct hed_worker *w);  /* pieces on all channels, for answers */
int hed_print_deliver(struct hed_worker_channel *ch); /* print.c */
/* refusals.c. The first is for a worker that has its client's hello. */
void hed_worker_refusals_init(struct hed_worker *w);
int hed_refusals_deliver(struct hed_worker_channel *ch); /* every answer does */
/* Drops the oldest text if there is too much that nobody has fetched. Called from time to time. */
void hed_print_trim(struct hed_worker *w);

/* shared_event.c. A context is about to end; or has ended, or failed: its streams use no events of
 * other clients any more. */
void hed_shared_events_context_ends(struct hed_worker *w, uint64_t context);
void hed_shared_events_context_ended(struct hed_worker *w, uint64_t context);
/* share.c. Can the client share memory and events with others? */
bool hed_share_is_possible(struct hed_worker *w);

/* host.c: words of this process that devices write in the order of streams. */
struct hed_words {
    _Atomic uint64_t *first;
    size_t count;
    CUdeviceptr at; /* their device address; 0 if they are not registered */
};
/* Makes the device write a number into word i when the stream comes to it. NOT_SUPPORTED. */
CUresult hed_words_write(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i,
                         uint64_t number);
/* Makes the stream wait until word i is at least the number. NOT_SUPPORTED. */
CUresult hed_words_await(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i,
                         uint64_t number);
/* Devices do not use them any more. May wait for all work of the current context. */
CUresult hed_words_forget(struct hed_worker *w, struct hed_words *words);

/* ---- progress.c: --kernel-time with NVIDIA's driver ------------------------------------------ */

void hed_progress_prepare(void); /* before the sandbox */
bool hed_progress_is_used(const struct hed_worker_start *start, bool driver);
int hed_worker_progress_init(struct hed_worker *w); /* when the backend is known */
/* The work of a message was put on its stream. Its context is current, and the thread holds the
 * current ticket. */
void hed_progress_put(struct hed_worker_channel *ch, const struct hed_msg *m);
/* The stream will now wait for somebody else, which is not its fault. put follows. */
void hed_progress_put_wait(struct hed_worker_channel *ch, const struct hed_msg *m);
void hed_progress_context_ended(struct hed_worker *w, uint64_t context);
/* Has a stream done nothing for too long though it has work? For the control thread. */
bool hed_progress_is_overdue(struct hed_worker *w, uint64_t now_ns);

/* guard.c: may the call be made with these addresses? The thread must hold the current ticket.
 * INVALID_VALUE, NOT_SUPPORTED. */
CUresult hed_memory_guard(struct hed_worker *w, enum hed_cuda_call id, const void *args);

/* Makes a call on the chain: hed_worker_do(w, cuMemMap, .ptr = at, .size = n). */
#define hed_worker_do(w, call, ...) hed_call((w)->top, call, __VA_ARGS__)
