/* A worker: the process that does one client's work. docs/internals/server.md.
 *
 *   listener ──fork──> worker ──channel threads──> chain of layers (core/layer.h) ──> backend
 *                         └── control: new channels from the listener, peers that are gone
 *
 * It is forked before any driver call, and everything of the client's is in it: when the client is
 * gone it exits, and the kernel and the driver free it all; when it dies nobody else notices.
 *
 *   worker.c  life, control thread, channels' loop      ticket.c  messages in ticket order
 *   hello.c   hello, devices                 names.c   the client's names -> what the backend gave
 *   call.c    HED_MSG_CALL                   memory.c  map, unmap, lease, heap
 *   copy.c    bulk in and out                code.c    images, libraries, kernels
 *   launch.c  launches                       host.c    functions that run in the client, marks
 *   print.c   what kernels print             arena.c   addresses that both sides have
 *
 * Invariants:
 * 1. Whatever the client sends, the worker neither crashes nor reads or writes memory that is not
 *    the client's; nonsense ends the session with a line in the log.
 * 2. Messages are done in the order of their tickets; one that may block passes the turn on first.
 * 3. A call without an answer that fails is the failure of its context: told in every answer.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/lock.h"
#include "core/layer.h"
#include "server/start.h"
#include "wire/channel/channel.h"
#include "wire/transport.h"
#include "wire/wire.h"

struct hed_worker;

/* One channel's thread. */
struct hed_worker_channel {
    struct hed_worker *worker;
    struct hed_worker_channel *next; /* worker->channels; guarded by lock */
    struct hed_channel *channel;
    uint32_t thread;
    uint64_t ticket;        /* of the message in hand; 0: none, or its turn has been passed on */
    uint64_t context;       /* the client's name of the current one */
    struct hed_arena arena; /* for decoding; emptied before each message */
    /* Since the status was told of them (worker.c); written by the channel's thread. */
    _Atomic uint64_t messages, launches, bytes_in;
    struct hed_copies *copies; /* copy.c's: bulk that a device still reads or writes; NULL: none */
    struct hed_drafts *drafts; /* graph.c's: graphs that are being made; NULL: none */
    _Atomic uint64_t taken;    /* messages: odd while one is being done */
    uint64_t heard;            /* the control thread's: `taken` at its last beat */
    uint32_t beats;            /* the control thread's: signs of life since that changed */
};

struct hed_worker {
    const struct hed_worker_start *start;
    struct hed_layer *top; /* calls go here */
    bool no_memory;        /* the backend does nothing (null): all is done when a call returns */
    enum hed_wire_backend backend;
    bool memops; /* values can be written and waited for in stream order */
    const struct hed_transport *transport; /* what the hello has named */
    uint8_t secret[16];
    uint64_t offered;        /* base of the arena that the client thinks about; 0: none yet */
    uint64_t base;           /* of the arena: 0 until the client has taken an offer */
    _Atomic bool settled;    /* and all that stands on it is up: now other channels may come */
    uint64_t stride, usable; /* bytes: from share to share, and of each that is the client's */
    uint32_t map_unit;
    int device_count;

    _Atomic uint64_t next_ticket; /* of the message that is handled next */
    _Atomic uint32_t ticket_waiters;
    _Atomic uint32_t ticket_bell;
    _Atomic bool ending;     /* the session is over: nobody waits any more */
    _Atomic uint64_t *slots; /* shared page; NULL: none */
    uint32_t slot_count;
    int heap; /* -1: none */

    struct hed_lock lock; /* rank HED_RANK_WORKER: channels, failure */
    struct hed_worker_channel *channels;
    _Atomic uint32_t doors; /* channels that have not said yet whose they are */
    _Atomic int failed;     /* CUresult of the first failure */
    uint64_t failed_context;

    struct hed_names *names;
    struct hed_values *values; /* NULL: none yet */
    _Atomic uint32_t contexts; /* that the client has made */
    struct hed_worker_memory *memory;
    struct hed_worker_code *code;
    struct hed_worker_host *host;
    struct hed_worker_print *print;
    struct hed_worker_arrays *arrays;   /* array.c's; NULL: none yet */
    struct hed_kept_graph *kept_graphs; /* condition.c's; NULL: none */
    _Atomic int nvml;                   /* nvml.c's: it has been begun */
};

/* A handler of one kind of message: 0, or HED_E... and the session ends. The message is private
 * memory, its size fits `least`, and its context is current. */
typedef int (*hed_handler)(struct hed_worker_channel *ch, struct hed_msg *m);
struct hed_handling {
    hed_handler handler; /* NULL: clients do not send it */
    uint32_t least;      /* bytes it has at least */
    bool waits_itself;   /* the handler takes the turn itself (bulk comes first) */
    bool no_ticket;      /* is not in the order */
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

/* Called once the backend is up (cuInit has succeeded, devices are known), before any work. */
int hed_worker_memory_init(struct hed_worker *w, struct hed_why *why);
int hed_worker_code_init(struct hed_worker *w, struct hed_why *why);
int hed_worker_host_init(struct hed_worker *w, struct hed_why *why);
int hed_worker_print_init(struct hed_worker *w, struct hed_why *why);

/* ---- ticket.c -------------------------------------------------------------------------------- */

/* Waits until it is this ticket's turn. HED_EFORMAT: it has been (used twice). */
int hed_ticket_wait(struct hed_worker_channel *ch, uint64_t ticket);
/* The next one's turn: at the end of a message, or before something that blocks. Idempotent. */
void hed_ticket_pass(struct hed_worker_channel *ch);

/* ---- names.c --------------------------------------------------------------------------------- */

/* What the client calls `name` is `real` here. kind: enum hed_kind of driver/handle.h is in the
 * name's top byte. HED_EEXIST, HED_ELIMIT, HED_ENOMEM. */
int hed_name_bind(struct hed_names *n, uint64_t name, uint64_t real);
/* 0 stays 0, the default streams' numbers (1, 2) stay what they are. HED_ENOTFOUND. */
int hed_name_real(struct hed_names *n, uint64_t name, uint64_t *real);
/* Forgets it. HED_ENOTFOUND. */
int hed_name_unbind(struct hed_names *n, uint64_t name, uint64_t *real);
struct hed_names *hed_names_create(void);
void hed_names_free(struct hed_names *n);
/* Is it a name for a thing of this kind ("stream", as in gen/cuda_handles.h)? 0 is one for all, the
 * default streams' numbers for streams. Whoever binds or looks up a client's name asks first: a
 * driver that is given a stream for an event may do anything. */
bool hed_name_fits(uint64_t name, const char *kind);

/* ---- values.c: texture and surface objects, by the backend's values -------------------------- */

struct hed_values *hed_values_create(void);
/* HED_ELIMIT, HED_ENOMEM. */
int hed_value_add(struct hed_values *v, bool surface, uint64_t value);
bool hed_value_has(struct hed_values *v, bool surface, uint64_t value);
bool hed_value_remove(struct hed_values *v, bool surface, uint64_t value); /* false: not there */

#define HED_WORKER_FAILURES 0 /* slot: how many contexts have failed */

/* arena.c: stride, usable, map_unit. */
void hed_arena_init_sizes(struct hed_worker *w);

/* ---- hello.c --------------------------------------------------------------------------------- */

/* Checks the hello, brings the backend up and says so over the bare connection, or says why not.
 * Sets w->transport and all that is known of the devices. HED_EVERSION, HED_EACCESS, ... */
int hed_worker_welcome(struct hed_worker *w, struct hed_conn *conn, const struct hed_hello *h,
                       struct hed_why *why);
/* Is it one? For hed_worker_welcome, and for tests. certified: no token is needed. */
int hed_worker_check_hello(const struct hed_worker *w, const struct hed_hello *h, bool certified,
                           struct hed_why *why);
/* The first messages on the first channel: struct hed_wire_device for each. */
int hed_worker_tell_devices(struct hed_worker_channel *ch);

/* ---- worker.c -------------------------------------------------------------------------------- */

/* count.c: a message has come; what has been counted is told. */
void hed_worker_count(struct hed_worker_channel *ch, const struct hed_msg *m);
void hed_worker_tell_counts(struct hed_worker_channel *ch);

/* One message, checked and done; for the channels' loops, and for tests. */
int hed_worker_handle(struct hed_worker_channel *ch, struct hed_msg *m);
struct hed_worker_channel *hed_worker_channel_add(struct hed_worker *w, struct hed_channel *channel,
                                                  uint32_t thread);
struct hed_worker_door { /* a channel that has knocked */
    struct hed_worker *worker;
    int fd;
};
/* host.c: the client's callback channel is there; it is taken. 0 or HED_E... */
int hed_worker_callback_channel(struct hed_worker *w, struct hed_channel *channel);

/* The answer to a message that wanted one: result, then n bytes of body. */
int hed_worker_answer(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                      const void *body, size_t n);
/* The same for a message of the caller's own: a struct that begins with struct hed_answer, whose
 * head is filled in here. `bulk` bytes are written by the caller right after. */
int hed_worker_answer_with(struct hed_worker_channel *ch, const struct hed_msg *m, int result,
                           void *answer, size_t size, uint64_t bulk);
/* The result of work that nobody waits for. 0 is fine. */
void hed_worker_failed(struct hed_worker *w, uint64_t context, CUresult error);
/* The result of a call whose object has no name: if the context had failed before, the object could
 * not be made, and the failure is the answer. All other results stay as they are. */
CUresult hed_worker_explain(struct hed_worker *w, uint64_t context, CUresult r);
/* The context has been destroyed or reset: its failure is told no more. */
void hed_worker_recovered(struct hed_worker *w, uint64_t context);
/* The stream of a message as the backend names it. HED_ENOTFOUND. */
int hed_worker_stream(struct hed_worker_channel *ch, const struct hed_msg *m, CUstream *out);
/* Makes the client's context current on this thread. HED_ENOTFOUND, or the call's failure noted. */
int hed_worker_context(struct hed_worker_channel *ch, uint64_t name);
/* Before every answer to a message that waited for the device: what was to come later (copy.c)
 * and what kernels printed (print.c) goes first. */
int hed_worker_before_answer(struct hed_worker_channel *ch);
int hed_copies_deliver(struct hed_worker_channel *ch); /* copy.c */
/* copy.c: all of the incoming bulk that devices still read is given back: before bulk is read by
 * anybody else, who would find no room in the pipe. */
void hed_copies_settle(struct hed_worker_channel *ch);
uint64_t hed_copies_delivered(struct hed_worker *w);  /* pieces, on all channels: for answers */
int hed_print_deliver(struct hed_worker_channel *ch); /* print.c */

/* guard.c: may the call be made, with these addresses? It must be this thread's turn.
 * INVALID_VALUE, NOT_SUPPORTED. */
CUresult hed_memory_guard(struct hed_worker *w, enum hed_cuda_call id, const void *args);

/* A call of the chain: hed_worker_do(w, cuMemMap, .ptr = at, .size = n). */
#define hed_worker_do(w, name, ...) \
    ((w)->top->cuda->name((w)->top, &(struct hed_##name){__VA_ARGS__}))
