/* Bytes between the client's memory and devices: HED_MSG_COPY_IN, HED_MSG_COPY_OUT.
 *
 *   in    bulk has come ──ticket──> enqueued, straight out of the channel's memory ──> event
 *         ... later: the event has passed, the channel's memory is given back
 *   out   room in the channel's memory ──ticket──> enqueued, event ──pass──> event has passed
 *         ──> answer, bulk
 *
 * A thread holds the ticket only while it enqueues work on streams, never while it waits for the
 * client or a device. A copy that the client waits for may be enqueued a little after its ticket
 * was passed on. Whatever comes in between was sent while the client was waiting, so nothing orders
 * the two.
 *
 * Invariant: `pending` has, oldest first, every span of the channel's memory that was taken and not
 * given back. A device may read it until the entry's event has passed.
 */
#include "remote/server/worker/copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"

#define PENDING 64 /* messages whose bulk a device may still read */
#define SPANS 16   /* pieces that the bulk of one message may consist of */

struct span {
    void *p;
    size_t n;
};

struct context_event {
    CUevent event;    /* created when first needed */
    uint64_t context; /* the client's name of the context that the event belongs to */
    uint32_t resets;  /* of the worker at that time: a context keeps its name when it is reset */
};

struct pending {
    size_t bytes;
    struct context_event event;
    bool passed; /* there is nothing to wait for */
};

struct hed_copies {
    struct pending pending[PENDING];
    unsigned first, count;
    size_t bytes;              /* of all entries */
    bool registered[2];        /* the channel's memory for bulk, incoming and outgoing */
    bool refused[2];           /* registering it failed and is not tried again */
    uint64_t registered_in[2]; /* the client's name of the context */
    struct context_event out;  /* for copies to the client */
};

static struct hed_copies *
copies_of(struct hed_worker_channel *ch)
{
    if (!ch->copies)
        ch->copies = calloc(1, sizeof *ch->copies);
    return ch->copies;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void
drop_event(struct hed_worker_channel *ch, struct context_event *e)
{
    if (e->event)
        (void)hed_worker_do(ch->worker, cuEventDestroy_v2, .hEvent = e->event);
    e->event = NULL;
}

/* Makes sure that the event belongs to the channel's current context. */
static CUresult
fit_event(struct hed_worker_channel *ch, struct context_event *e)
{
    const uint32_t resets = atomic_load_explicit(&ch->worker->resets, memory_order_relaxed);

    if (e->event && e->context == ch->context && e->resets == resets)
        return CUDA_SUCCESS;
    drop_event(ch, e);
    *e = (struct context_event){.context = ch->context, .resets = resets};
    return hed_worker_do(ch->worker, cuEventCreate, .phEvent = &e->event,
                         .Flags = CU_EVENT_DISABLE_TIMING);
}

/* Gives back what devices have read. While more than `most` bytes are taken, it waits for the
 * oldest. */
static void
give_back_pending(struct hed_worker_channel *ch, struct hed_copies *c, size_t most)
{
    while (c->count > 0) {
        struct pending *p = &c->pending[c->first];

        if (!p->passed) {
            CUresult r = hed_worker_do(ch->worker, cuEventQuery, .hEvent = p->event.event);

            if (r == CUDA_ERROR_NOT_READY && c->bytes <= most && c->count < PENDING)
                return;
            if (r == CUDA_ERROR_NOT_READY)
                (void)hed_worker_do(ch->worker, cuEventSynchronize, .hEvent = p->event.event);
        }
        hed_channel_bulk_done(ch->channel, p->bytes);
        c->bytes -= p->bytes;
        c->first = (c->first + 1) % PENDING;
        c->count--;
    }
}

void
hed_copies_settle(struct hed_worker_channel *ch)
{
    if (ch->copies)
        give_back_pending(ch, ch->copies, 0);
}

/* ---- the channel's memory -------------------------------------------------------------------- */

bool
hed_copy_register(struct hed_worker *w, void *p, size_t n)
{
    return hed_worker_do(w, cuMemHostRegister_v2, .p = p, .bytesize = n,
                         .Flags = CU_MEMHOSTREGISTER_PORTABLE) == CUDA_SUCCESS;
}

/* Registers the channel's memory, so that devices access it directly. The registration ends with
 * its context. */
static void
register_area(struct hed_worker_channel *ch, struct hed_copies *c, int direction)
{
    uint64_t real;
    size_t n;
    void *p;

    if (c->registered[direction] &&
        hed_name_real(ch->worker->names, c->registered_in[direction], &real) != 0)
        c->registered[direction] = false;
    if (c->registered[direction] || c->refused[direction] || ch->worker->no_memory ||
        !ch->context || !hed_channel_bulk_area(ch->channel, direction, &p, &n))
        return;
    c->registered[direction] = hed_copy_register(ch->worker, p, n);
    c->refused[direction] = !c->registered[direction];
    c->registered_in[direction] = ch->context;
    if (c->refused[direction])
        hed_info(SERVER, "the memory of channel %u cannot be registered: copies are slower",
                 ch->thread);
}

void
hed_copies_leave(struct hed_worker_channel *ch)
{
    struct hed_copies *c = ch->copies;
    size_t n;
    void *p;

    if (!c)
        return;
    give_back_pending(ch, c, 0);
    for (int i = 0; i < 2; i++)
        if (c->registered[i] && hed_channel_bulk_area(ch->channel, i, &p, &n))
            (void)hed_worker_do(ch->worker, cuMemHostUnregister, .p = p);
    for (int i = 0; i < PENDING; i++)
        drop_event(ch, &c->pending[i].event);
    drop_event(ch, &c->out);
    free(c);
    ch->copies = NULL;
}

static size_t
most_pending(struct hed_worker_channel *ch)
{
    void *p;
    size_t n;

    if (!hed_channel_bulk_area(ch->channel, 0, &p, &n) || n > HED_CHANNEL_STAGED)
        n = HED_CHANNEL_STAGED;
    return n / 2;
}

/* Adds n bytes at p to the spans. */
static void
add_span(struct span *spans, unsigned *count, void *p, size_t n)
{
    struct span *last = *count ? &spans[*count - 1] : NULL;

    if (last && (char *)last->p + last->n == (char *)p)
        last->n += n;
    else
        spans[(*count)++] = (struct span){p, n};
}

/* Waits for the message's ticket and opens the copy, while this thread holds the ticket; *r is the
 * result of opening it. Handles and addresses are not checked again, since others may change them
 * once the ticket has been passed on. */
static int
open_in_turn(struct hed_worker_channel *ch, const struct hed_copy_body *b, bool in,
             struct hed_opened_copy *out, CUresult *r)
{
    int err = hed_ticket_wait(ch, b->head.ticket);

    if (!err)
        err = hed_worker_context(ch, b->head.context);
    if (err == HED_ENOTFOUND) {
        hed_debug(SERVER, "a copy names a context that is not there");
        err = 0;
    }
    if (!err)
        *r = hed_copy_open(ch, b, in, out);
    return err;
}

/* ---- in -------------------------------------------------------------------------------------- */

/* Copies a few bytes that are in the message itself. The backend reads them before the call
 * returns. */
static int
copy_from_message(struct hed_worker_channel *ch, const struct hed_copy_body *b, uint64_t n)
{
    struct hed_opened_copy copy;
    CUresult r;
    int err;

    if (b->head.size != sizeof *b + n || n > HED_COPY_INSIDE)
        return HED_EFORMAT;
    err = open_in_turn(ch, b, true, &copy, &r);
    if (err || ch->worker->no_memory)
        return err;
    if (r == CUDA_SUCCESS)
        r = hed_copy_bytes(ch->worker, &copy, 0, (void *)(uintptr_t)(b + 1), n);
    hed_worker_failed(ch->worker, b->head.context, r);
    return 0;
}

/* Notes that the spans are in use until the stream has come to this point. */
static void
note_pending(struct hed_worker_channel *ch, struct hed_copies *c,
             const struct hed_opened_copy *copy, CUresult r)
{
    struct pending *p = &c->pending[(c->first + c->count) % PENDING];

    p->bytes = copy->bytes;
    p->passed = r != CUDA_SUCCESS || !c->registered[0];
    if (!p->passed && (fit_event(ch, &p->event) != CUDA_SUCCESS ||
                       hed_worker_do(ch->worker, cuEventRecord, .hEvent = p->event.event,
                                     .hStream = copy->stream) != CUDA_SUCCESS)) {
        (void)hed_worker_do(ch->worker, cuStreamSynchronize, .hStream = copy->stream);
        p->passed = true;
    }
    c->bytes += p->bytes;
    c->count++;
}

static int
copy_bulk(struct hed_worker_channel *ch, struct hed_copies *c, const struct hed_copy_body *b,
          uint64_t all)
{
    struct span spans[SPANS];
    struct hed_opened_copy copy;
    unsigned count = 0;
    uint64_t got = 0;
    CUresult r = CUDA_SUCCESS;
    int err = 0;

    while (!err && got < all && count < SPANS) {
        void *p;
        size_t n;

        err = hed_channel_bulk_peek(ch->channel, all - got, &p, &n);
        if (!err) {
            add_span(spans, &count, p, n);
            got += n;
        }
    }
    if (!err && got < all)
        return HED_EFORMAT; /* in very small pieces, which none of our channels makes */
    if (!err)
        err = open_in_turn(ch, b, true, &copy, &r);
    if (err)
        return err;
    if (ch->worker->no_memory) {
        hed_channel_bulk_done(ch->channel, all);
        return 0;
    }
    register_area(ch, c, 0);
    for (unsigned i = 0, from = 0; i < count && r == CUDA_SUCCESS; i++) {
        r = hed_copy_bytes(ch->worker, &copy, from, spans[i].p, spans[i].n);
        from += (unsigned)spans[i].n;
    }
    copy.bytes = all;
    note_pending(ch, c, &copy, r);
    hed_worker_failed(ch->worker, b->head.context, r);
    return 0;
}

int
hed_do_copy_in(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_copy_body *b = (const struct hed_copy_body *)m;
    struct hed_copies *c = copies_of(ch);
    const uint64_t n = hed_copy_size(&b->copy, &b->copy.to);

    if (!c)
        return HED_ENOMEM;
    if (n == 0 || !ch->worker->memory || (m->bulk != 0 && m->bulk != n))
        return HED_EFORMAT;
    if (m->bulk == 0)
        return copy_from_message(ch, b, n);
    give_back_pending(ch, c, most_pending(ch));
    return copy_bulk(ch, c, b, n);
}

/* ---- out ------------------------------------------------------------------------------------- */

/* Sends deferred copies before this answer, as long as the channel's memory is not being filled. */
static CUresult
deliver_first(struct hed_worker_channel *ch, const struct hed_msg *m, int *err)
{
    CUstream stream;
    CUresult r;

    if (hed_worker_stream(ch, m, &stream) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    hed_ticket_pass(ch);
    r = hed_worker_do(ch->worker, cuStreamSynchronize, .hStream = stream);
    *err = hed_copies_deliver(ch);
    return r;
}

/* A copy to the client that has been opened in its turn, and room for its bytes. */
struct outgoing {
    struct hed_opened_copy copy;
    CUresult result; /* of opening it */
    struct span spans[SPANS];
    unsigned count;
};

/* Takes room in the channel's memory for all bytes. It may have to wait for the client. */
static int
take_room(struct hed_worker_channel *ch, uint64_t all, struct outgoing *o)
{
    uint64_t got = 0;
    int err = 0;

    while (!err && got < all && o->count < SPANS) {
        struct span *s = &o->spans[o->count];

        err = hed_channel_bulk_space(ch->channel, all - got, &s->p, &s->n);
        if (!err) {
            got += s->n;
            o->count++;
        }
    }
    return err ? err : got < all ? HED_ELIMIT : 0;
}

/* Answers with the bytes inside the message. */
static int
answer_inside(struct hed_worker_channel *ch, const struct outgoing *o)
{
    const struct hed_msg *m = &o->copy.body->head;
    const uint64_t n = hed_box_bytes(&o->copy.body->copy.box);
    void *p = hed_arena_alloc(&ch->arena, n, 16);
    CUresult r = o->result;
    int err;

    if (!p)
        return HED_ENOMEM;
    memset(p, 0, n);
    hed_ticket_pass(ch);
    if (r == CUDA_SUCCESS && !ch->worker->no_memory) {
        r = hed_copy_bytes(ch->worker, &o->copy, 0, p, n);
        /* A copy of one row has waited already. But NVIDIA's driver passes on what kernels have
         * printed only in a wait, as it would in a blocking copy of the program's own. */
        if (r == CUDA_SUCCESS)
            r = hed_worker_do(ch->worker, cuStreamSynchronize, .hStream = o->copy.stream);
    }
    err = hed_print_deliver(ch);
    return err ? err : hed_worker_answer(ch, m, (int)r, p, r == CUDA_SUCCESS ? n : 0);
}

/* Enqueues the copy and waits for it. The next ticket proceeds meanwhile. */
static CUresult
fill_spans(struct hed_worker_channel *ch, struct hed_copies *c, const struct outgoing *o)
{
    struct hed_worker *w = ch->worker;
    CUresult r = o->result;
    uint64_t from = 0;

    if (!w->no_memory && r == CUDA_SUCCESS) {
        register_area(ch, c, 1);
        r = fit_event(ch, &c->out);
    }
    if (!w->no_memory && !c->registered[1])
        hed_ticket_pass(ch); /* because each of the copies waits */
    for (unsigned i = 0; i < o->count && r == CUDA_SUCCESS && !w->no_memory; i++) {
        r = hed_copy_bytes(w, &o->copy, from, o->spans[i].p, o->spans[i].n);
        from += o->spans[i].n;
    }
    if (!w->no_memory && r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuEventRecord, .hEvent = c->out.event, .hStream = o->copy.stream);
    hed_ticket_pass(ch);
    if (!w->no_memory && r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuEventSynchronize, .hEvent = c->out.event);
    return r;
}

/* Answers with the bytes behind the message. Their room has been taken, so they are sent even if
 * the copy has failed. They mean nothing then. */
static int
answer_bulk(struct hed_worker_channel *ch, struct hed_copies *c, const struct outgoing *o)
{
    const struct hed_copy_body *b = o->copy.body;
    const CUresult r = fill_spans(ch, c, o);
    struct hed_answer a;
    int err = hed_print_deliver(ch);

    memset(&a, 0, sizeof a);
    if (!err)
        err =
            hed_worker_answer_with(ch, &b->head, (int)r, &a, sizeof a, hed_box_bytes(&b->copy.box));
    for (unsigned i = 0; i < o->count && !err; i++)
        err = hed_channel_bulk_put(ch->channel, o->spans[i].n);
    return err;
}

/* Copies that were deferred go out first, and need the channel's memory for that. So room for this
 * one is taken behind them. */
static int
copy_out_behind(struct hed_worker_channel *ch, struct hed_copies *c, const struct hed_copy_body *b,
                uint64_t n)
{
    struct outgoing o = {.count = 0};
    CUresult delivered = CUDA_SUCCESS;
    int err = open_in_turn(ch, b, false, &o.copy, &o.result);

    if (!err)
        delivered = deliver_first(ch, &b->head, &err);
    if (err)
        return err;
    if (delivered != CUDA_SUCCESS)
        return hed_worker_answer(ch, &b->head, (int)delivered, NULL, 0);
    if (n <= HED_COPY_INSIDE)
        return answer_inside(ch, &o);
    err = take_room(ch, n, &o);
    return err ? err : answer_bulk(ch, c, &o);
}

int
hed_do_copy_out(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_copy_body *b = (const struct hed_copy_body *)m;
    const uint64_t n = hed_copy_size(&b->copy, &b->copy.from);
    struct hed_copies *c = copies_of(ch);
    struct outgoing o = {.count = 0};
    int err = 0;

    if (!c)
        return HED_ENOMEM;
    if (n == 0 || !ch->worker->memory || !(m->flags & HED_MSG_WANTS_ANSWER) || m->bulk)
        return HED_EFORMAT;
    if (hed_copies_are_deferred(ch->worker))
        return copy_out_behind(ch, c, b, n);
    if (n > HED_COPY_INSIDE) /* before the ticket: nobody may wait for the client with it */
        err = take_room(ch, n, &o);
    if (!err)
        err = open_in_turn(ch, b, false, &o.copy, &o.result);
    if (err)
        return err;
    return n <= HED_COPY_INSIDE ? answer_inside(ch, &o) : answer_bulk(ch, c, &o);
}
