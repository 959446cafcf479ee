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

/* ---- copies ---------------------------------------------------------------------------------- */

uint64_t
hed_copy_size(const struct hed_copy *c, const struct hed_copy_side *side)
{
    const struct hed_box *b = &c->box;
    uint64_t n;

    if (b->width == 0 || b->height == 0 || b->depth == 0 ||
        __builtin_mul_overflow(b->width, b->height, &n) ||
        __builtin_mul_overflow(n, b->depth, &n) || n > HED_BULK_CHUNK)
        return 0;
    /* The API gives the distance between planes in rows. */
    if (!side->array && b->height * b->depth > 1 &&
        (side->pitch < b->width ||
         (b->depth > 1 && (side->slice % side->pitch || side->slice / side->pitch < b->height))))
        return 0;
    return n;
}

CUresult
hed_copy_open(struct hed_worker_channel *ch, const struct hed_copy_body *b, bool in,
              struct hed_opened_copy *out)
{
    const struct hed_copy_side *side = in ? &b->copy.to : &b->copy.from;
    struct hed_worker *w = ch->worker;
    uint64_t real, span;

    *out = (struct hed_opened_copy){
        .body = b, .side = side, .in = in, .bytes = hed_copy_size(&b->copy, side)};
    if (out->bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (hed_worker_stream(ch, &b->head, &out->stream) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (side->array) {
        if (!hed_name_fits(side->array, "array") ||
            hed_name_real(w->names, side->array, &real) != 0)
            return CUDA_ERROR_INVALID_HANDLE;
        out->array = (CUarray)(uintptr_t)real;
        return CUDA_SUCCESS;
    }
    if (!hed_side_span(side, &b->copy.box, &span) || !hed_memory_reaches(w, side->at, span))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* A part of a copy's box: a box of its own that begins at (x, y, z). */
struct part {
    uint64_t x, y, z;
    struct hed_box box;
};

static CUresult
copy_part(struct hed_worker *w, const struct hed_opened_copy *o, const struct part *q, void *p)
{
    const struct hed_copy_side *s = o->side;
    const uint64_t at = hed_side_at(s, q->x, q->y, q->z);
    const uint64_t rows =
        o->body->copy.box.depth > 1 && s->pitch ? s->slice / s->pitch : q->box.height;
    CUDA_MEMCPY3D_v2 c = {
        .WidthInBytes = q->box.width, .Height = q->box.height, .Depth = q->box.depth};

    if (!o->array && q->box.height == 1 && q->box.depth == 1)
        return o->in ? hed_worker_do(w, cuMemcpyHtoDAsync_v2, .dstDevice = at, .srcHost = p,
                                     .ByteCount = q->box.width, .hStream = o->stream)
                     : hed_worker_do(w, cuMemcpyDtoHAsync_v2, .dstHost = p, .srcDevice = at,
                                     .ByteCount = q->box.width, .hStream = o->stream);
    if (o->in) {
        c.srcMemoryType = CU_MEMORYTYPE_HOST;
        c.srcHost = p;
        c.srcPitch = q->box.width;
        c.srcHeight = q->box.height;
        c.dstMemoryType = o->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
        c.dstArray = o->array;
        c.dstDevice = o->array ? 0 : at;
        c.dstPitch = o->array ? 0 : s->pitch;
        c.dstHeight = o->array ? 0 : rows;
        c.dstXInBytes = o->array ? s->x + q->x : 0;
        c.dstY = o->array ? s->y + q->y : 0;
        c.dstZ = o->array ? s->z + q->z : 0;
    } else {
        c.dstMemoryType = CU_MEMORYTYPE_HOST;
        c.dstHost = p;
        c.dstPitch = q->box.width;
        c.dstHeight = q->box.height;
        c.srcMemoryType = o->array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
        c.srcArray = o->array;
        c.srcDevice = o->array ? 0 : at;
        c.srcPitch = o->array ? 0 : s->pitch;
        c.srcHeight = o->array ? 0 : rows;
        c.srcXInBytes = o->array ? s->x + q->x : 0;
        c.srcY = o->array ? s->y + q->y : 0;
        c.srcZ = o->array ? s->z + q->z : 0;
    }
    return hed_worker_do(w, cuMemcpy3DAsync_v2, .pCopy = &c, .hStream = o->stream);
}

/* The largest part that begins at byte `from` and has at most n bytes: complete planes, complete
 * rows, or a part of a row. */
static struct part
part_at(const struct hed_box *b, uint64_t from, uint64_t n)
{
    const uint64_t plane = b->width * b->height;
    struct part q = {.x = from % b->width,
                     .y = from / b->width % b->height,
                     .z = from / plane,
                     .box = {b->width, b->height, 1}};

    if (q.x == 0 && q.y == 0 && n >= plane) {
        q.box.depth = n / plane;
    } else if (q.x == 0 && n >= b->width) {
        q.box.height = n / b->width < b->height - q.y ? n / b->width : b->height - q.y;
    } else {
        q.box.width = n < b->width - q.x ? n : b->width - q.x;
        q.box.height = 1;
    }
    return q;
}

CUresult
hed_copy_bytes(struct hed_worker *w, const struct hed_opened_copy *c, uint64_t from, void *p,
               uint64_t n)
{
    CUresult r = CUDA_SUCCESS;

    while (n > 0 && r == CUDA_SUCCESS) {
        const struct part q = part_at(&c->body->copy.box, from, n);
        const uint64_t bytes = hed_box_bytes(&q.box);

        r = copy_part(w, c, &q, p);
        p = (char *)p + bytes;
        from += bytes;
        n -= bytes;
    }
    return r;
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

/* ---- in -------------------------------------------------------------------------------------- */

static int
wait_for_ticket(struct hed_worker_channel *ch, const struct hed_msg *m)
{
    const int err = hed_ticket_wait(ch, m->ticket);
    const int none = err ? 0 : hed_worker_context(ch, m->context);

    if (none == HED_ENOTFOUND)
        hed_debug(SERVER, "a copy names a context that is not there");
    return err ? err : none == HED_ENOTFOUND ? 0 : none;
}

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
    err = wait_for_ticket(ch, &b->head);
    if (err || ch->worker->no_memory)
        return err;
    r = hed_copy_open(ch, b, true, &copy);
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
    struct hed_opened_copy copy = {0};
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
        err = wait_for_ticket(ch, &b->head);
    if (err)
        return err;
    if (ch->worker->no_memory) {
        hed_channel_bulk_done(ch->channel, all);
        return 0;
    }
    register_area(ch, c, 0);
    r = hed_copy_open(ch, b, true, &copy);
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

/* Answers with the bytes inside the message. The copy was opened while this thread held the ticket;
 * its handles and addresses are not checked again, since others may change them by now. */
static int
answer_with_bytes(struct hed_worker_channel *ch, const struct hed_opened_copy *copy, CUresult r)
{
    const struct hed_copy_body *b = copy->body;
    const uint64_t n = hed_copy_size(&b->copy, &b->copy.from);
    void *p = hed_arena_alloc(&ch->arena, n, 16);
    int err;

    if (!p)
        return HED_ENOMEM;
    memset(p, 0, n);
    hed_ticket_pass(ch);
    if (r == CUDA_SUCCESS && !ch->worker->no_memory) {
        r = hed_copy_bytes(ch->worker, copy, 0, p, n);
        /* A copy of one row has waited already. But NVIDIA's driver passes on what kernels have
         * printed only in a wait, as it would in a blocking copy of the program's own. */
        if (r == CUDA_SUCCESS)
            r = hed_worker_do(ch->worker, cuStreamSynchronize, .hStream = copy->stream);
    }
    err = hed_print_deliver(ch);
    return err ? err : hed_worker_answer(ch, &b->head, (int)r, p, r == CUDA_SUCCESS ? n : 0);
}

/* Enqueues the copy and waits for it. The next ticket proceeds meanwhile. */
static CUresult
fill_spans(struct hed_worker_channel *ch, struct hed_copies *c, const struct hed_opened_copy *copy,
           CUresult r, const struct span *spans, unsigned count)
{
    struct hed_worker *w = ch->worker;
    uint64_t from = 0;

    if (!w->no_memory && r == CUDA_SUCCESS) {
        register_area(ch, c, 1);
        r = fit_event(ch, &c->out);
    }
    if (!w->no_memory && !c->registered[1])
        hed_ticket_pass(ch); /* because each of the copies waits */
    for (unsigned i = 0; i < count && r == CUDA_SUCCESS && !w->no_memory; i++) {
        r = hed_copy_bytes(w, copy, from, spans[i].p, spans[i].n);
        from += spans[i].n;
    }
    if (!w->no_memory && r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuEventRecord, .hEvent = c->out.event, .hStream = copy->stream);
    hed_ticket_pass(ch);
    if (!w->no_memory && r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuEventSynchronize, .hEvent = c->out.event);
    return r;
}

/* `opened` means that the copy was opened while this thread held the ticket, with the result r. */
static int
answer_bulk(struct hed_worker_channel *ch, struct hed_copies *c, struct hed_opened_copy *copy,
            bool opened, CUresult r)
{
    const struct hed_copy_body *b = copy->body;
    const uint64_t all = hed_copy_size(&b->copy, &b->copy.from);
    struct hed_answer a;
    struct span spans[SPANS];
    unsigned count = 0;
    uint64_t got = 0;
    int err = 0;

    while (!err && got < all && count < SPANS) {
        err = hed_channel_bulk_space(ch->channel, all - got, &spans[count].p, &spans[count].n);
        if (!err)
            got += spans[count++].n;
    }
    if (!err && got < all)
        return HED_ELIMIT;
    if (!err && !opened)
        err = wait_for_ticket(ch, &b->head);
    if (err)
        return err;
    if (!opened)
        r = hed_copy_open(ch, b, false, copy);
    r = fill_spans(ch, c, copy, r, spans, count);
    err = hed_print_deliver(ch);
    memset(&a, 0, sizeof a);
    /* The space has been taken, so bytes are sent even if the copy failed. They mean nothing
     * then. */
    if (!err)
        err = hed_worker_answer_with(ch, &b->head, (int)r, &a, sizeof a, all);
    for (unsigned i = 0; i < count && !err; i++)
        err = hed_channel_bulk_put(ch->channel, spans[i].n);
    return err;
}

int
hed_do_copy_out(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_copy_body *b = (const struct hed_copy_body *)m;
    struct hed_copies *c = copies_of(ch);
    const uint64_t n = hed_copy_size(&b->copy, &b->copy.from);
    const bool first = ch->worker->memory && hed_copies_are_deferred(ch->worker);
    const bool opened = first || n <= HED_COPY_INSIDE;
    struct hed_opened_copy copy = {.body = b, .side = &b->copy.from};
    CUresult r = CUDA_SUCCESS, delivered = CUDA_SUCCESS;
    int err = 0;

    if (!c)
        return HED_ENOMEM;
    if (n == 0 || !ch->worker->memory || !(m->flags & HED_MSG_WANTS_ANSWER) || m->bulk)
        return HED_EFORMAT;
    if (opened)
        err = wait_for_ticket(ch, m);
    if (!err && opened)
        r = hed_copy_open(ch, b, false, &copy);
    if (!err && first)
        delivered = deliver_first(ch, m, &err);
    if (err)
        return err;
    if (delivered != CUDA_SUCCESS)
        return hed_worker_answer(ch, m, (int)delivered, NULL, 0);
    return n <= HED_COPY_INSIDE ? answer_with_bytes(ch, &copy, r)
                                : answer_bulk(ch, c, &copy, opened, r);
}
