/* Copies to the client's memory that nobody waits for: HED_MSG_COPY_DEFERRED.
 *
 *   in ticket order: memory of ours ──> enqueued on the stream, event ──> list
 *   before an answer, on any channel: those whose event has passed are sent as HED_MSG_DATA
 *
 * Invariants:
 * 1. Only one thread at a time checks which events have passed; others wait until it has taken out
 *    the pieces to send. So when a channel makes an answer, all pieces that were finished by then
 *    have been counted in `delivered`, and the client waits until that many have arrived, on
 *    whatever channels.
 * 2. A copy that failed is delivered too, without its bytes.
 * 3. A copy is not delivered before one that was requested earlier and is done earlier: the client
 *    writes them in that order. Copies to one place on two streams can be done in the other order,
 *    if the first stream waits for the second through memory. When both are found done at the same
 *    time, they are delivered in the order in which they were requested, so the older bytes stay.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"
#include "remote/server/worker/copy.h"

/* Bytes of all pieces. The client stays below that: its HED_DEFERRED_MAX is smaller. */
#define BYTES_MAX (UINT64_C(96) << 20)
#define PIECES_MAX 65536u
#define CLASSES 6          /* of buffers: 32 KiB, 64 KiB, ... 1 MiB */
#define CLASS_LEAST 32768u /* bytes */

struct buffer {
    struct buffer *next;
    void *p;
};

struct piece {
    struct piece *next;
    struct hed_data data; /* the message that is sent */
    uint64_t bytes;
    uint64_t number; /* an answer names a number, and the client waits for all up to it */
    void *p;
    unsigned class;
    CUevent event; /* NULL if there is nothing to wait for */
    bool failed;
};

struct hed_deferred_copies {
    struct hed_lock lock; /* rank HED_RANK_LEASE; no call is made under it */
    pthread_cond_t looked;
    bool looking;
    struct piece *first, **last;
    struct buffer *free[CLASSES];
    uint64_t bytes;
    uint32_t pieces;
    _Atomic uint32_t waiting; /* pieces in the list or being checked */
    _Atomic uint64_t delivered;
};

struct hed_deferred_copies *
hed_deferred_copies_create(void)
{
    struct hed_deferred_copies *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    hed_lock_init(&t->lock, HED_RANK_LEASE);
    (void)pthread_cond_init(&t->looked, NULL);
    t->last = &t->first;
    return t;
}

bool
hed_copies_are_deferred(struct hed_worker *w)
{
    /* What this client's thread has sent before is visible, because of ticket order. Acquire: pairs
     * with return_pieces(), so that a thread that finds none knows how many were delivered. */
    return atomic_load_explicit(&w->memory->deferred->waiting, memory_order_acquire) > 0;
}

uint64_t
hed_copies_delivered(struct hed_worker *w)
{
    /* Relaxed: this thread has checked itself, or has waited for the thread that did. */
    return w->memory ? atomic_load_explicit(&w->memory->deferred->delivered, memory_order_relaxed)
                     : 0;
}

/* ---- memory that devices write by themselves ------------------------------------------------- */

static size_t
class_size(unsigned class)
{
    return (size_t)CLASS_LEAST << class;
}

/* A page of any host fits at least twice into the smallest class, or is as large. */
static void *
take_buffer(struct hed_worker *w, unsigned class)
{
    struct hed_deferred_copies *t = w->memory->deferred;
    const size_t size = class_size(class) < 65536 ? 65536 : class_size(class);
    struct buffer *b;
    void *p = NULL;

    hed_lock(&t->lock);
    b = t->free[class];
    if (b)
        t->free[class] = b->next;
    hed_unlock(&t->lock);
    if (b) {
        p = b->p;
        free(b);
        return p;
    }
    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!w->no_memory)
        (void)hed_copy_register(w, p, size); /* else the copy waits, which is slow but right */
    return p;
}

static void
give_buffer(struct hed_deferred_copies *t, unsigned class, void *p)
{
    struct buffer *b = malloc(sizeof *b);

    if (!b)
        return; /* the memory is lost, but the process is about to end, too */
    b->p = p;
    hed_lock(&t->lock);
    b->next = t->free[class];
    t->free[class] = b;
    hed_unlock(&t->lock);
}

/* ---- taking them on -------------------------------------------------------------------------- */

static bool
is_too_much(struct hed_deferred_copies *t, uint64_t n)
{
    hed_lock(&t->lock);

    const bool too_much = t->pieces >= PIECES_MAX || n > BYTES_MAX - t->bytes;

    if (!too_much) {
        t->pieces++;
        t->bytes += n;
    }
    hed_unlock(&t->lock);
    return too_much;
}

static CUresult
enqueue_piece(struct hed_worker_channel *ch, const struct hed_copy_body *b, struct piece *q)
{
    struct hed_worker *w = ch->worker;
    struct hed_opened_copy c;
    CUresult r = hed_copy_open(ch, b, false, &c);

    if (w->no_memory || r != CUDA_SUCCESS)
        return r;
    r = hed_copy_bytes(w, &c, 0, q->p, q->bytes);
    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuEventCreate, .phEvent = &q->event, .Flags = CU_EVENT_DISABLE_TIMING);
    if (r == CUDA_SUCCESS)
        r = hed_worker_do(w, cuEventRecord, .hEvent = q->event, .hStream = c.stream);
    return r;
}

int
hed_do_copy_deferred(struct hed_worker_channel *ch, struct hed_msg *m)
{
    const struct hed_copy_body *b = (const struct hed_copy_body *)m;
    struct hed_worker *w = ch->worker;
    const uint64_t n = hed_copy_size(&b->copy, &b->copy.from);
    struct hed_deferred_copies *t;
    struct piece *q;
    CUresult r;

    if (n == 0 || !w->memory || m->bulk || is_too_much(w->memory->deferred, n))
        return HED_EFORMAT;
    t = w->memory->deferred;
    q = calloc(1, sizeof *q);
    if (!q)
        return HED_ENOMEM;
    q->bytes = n;
    while (class_size(q->class) < n)
        q->class ++;
    q->data.to = b->copy.to;
    q->data.box = b->copy.box;
    q->p = take_buffer(w, q->class);
    r = q->p ? enqueue_piece(ch, b, q) : CUDA_ERROR_OUT_OF_MEMORY;
    q->failed = r != CUDA_SUCCESS;
    hed_worker_failed(w, m->context, r);
    hed_lock(&t->lock);
    *t->last = q;
    t->last = &q->next;
    hed_unlock(&t->lock);
    /* Relaxed: see hed_copies_are_deferred(). */
    atomic_fetch_add_explicit(&t->waiting, 1, memory_order_relaxed);
    return 0;
}

/* ---- delivering ------------------------------------------------------------------------------ */

/* Is the piece ready to be sent? Failed ones are. */
static bool
is_ready_to_send(struct hed_worker *w, struct piece *q)
{
    CUresult r;

    if (q->failed || !q->event)
        return true;
    r = hed_worker_do(w, cuEventQuery, .hEvent = q->event);
    if (r == CUDA_ERROR_NOT_READY)
        return false;
    q->failed = r != CUDA_SUCCESS;
    return true;
}

/* Takes the list, the newest first, so that one thread can go through it. NULL if it is empty. */
static struct piece *
take_pieces(struct hed_deferred_copies *t)
{
    struct piece *newest = NULL, *next;

    hed_lock(&t->lock);
    while (t->looking)
        (void)hed_lock_wait(&t->lock, &t->looked, UINT64_MAX);

    struct piece *all = t->first;

    if (all) {
        t->looking = true;
        t->first = NULL;
        t->last = &t->first;
    }
    hed_unlock(&t->lock);
    for (; all; all = next) {
        next = all->next;
        all->next = newest;
        newest = all;
    }
    return newest;
}

/* Puts the unfinished pieces back, before those added meanwhile, and counts the others as sent. */
static void
return_pieces(struct hed_deferred_copies *t, struct piece *left, struct piece **last,
              struct piece *go, uint32_t sent)
{
    uint64_t number;

    hed_lock(&t->lock);
    if (left) {
        *last = t->first;
        if (!t->first)
            t->last = last;
        t->first = left;
    }
    t->looking = false;
    number = atomic_fetch_add_explicit(&t->delivered, sent, memory_order_relaxed);
    for (; go; go = go->next)
        go->number = ++number;
    /* Release: pairs with hed_copies_are_deferred(). */
    atomic_fetch_sub_explicit(&t->waiting, sent, memory_order_release);
    (void)pthread_cond_broadcast(&t->looked);
    hed_unlock(&t->lock);
}

static int
send_piece(struct hed_worker_channel *ch, struct piece *q)
{
    struct hed_data *d = hed_channel_begin(ch->channel, sizeof *d);
    int err = d ? 0 : HED_EIO;

    if (err)
        return err;
    *d = q->data;
    d->head = (struct hed_msg){.size = sizeof *d,
                               .kind = HED_MSG_DATA,
                               .thread = ch->thread,
                               .number = q->number,
                               .bulk = q->failed ? 0 : q->bytes};
    err = hed_channel_end(ch->channel, sizeof *d, false);
    return err || q->failed ? err : hed_channel_bulk_write(ch->channel, q->p, q->bytes);
}

static void
free_piece(struct hed_worker *w, struct piece *q)
{
    struct hed_deferred_copies *t = w->memory->deferred;

    if (q->event)
        (void)hed_worker_do(w, cuEventDestroy_v2, .hEvent = q->event);
    if (q->p)
        give_buffer(t, q->class, q->p);
    hed_lock(&t->lock);
    t->pieces--;
    t->bytes -= q->bytes;
    hed_unlock(&t->lock);
    free(q);
}

int
hed_copies_deliver(struct hed_worker_channel *ch)
{
    struct hed_worker *w = ch->worker;
    struct hed_deferred_copies *t = w->memory ? w->memory->deferred : NULL;
    struct piece *left = NULL, **last = &left;
    struct piece *go = NULL;
    struct piece *next;
    uint32_t sent = 0;
    int err = 0;

    if (!t || !hed_copies_are_deferred(w))
        return 0;
    /* The newest is asked first: when it has been copied, so have those before it, even if they had
     * not a moment ago. */
    for (struct piece *q = take_pieces(t); q; q = next) {
        struct piece **to = is_ready_to_send(w, q) ? &go : &left;

        next = q->next;
        q->next = *to;
        *to = q;
        if (to == &go)
            sent++;
        else if (!q->next)
            last = &q->next;
    }
    if (sent || left)
        return_pieces(t, left, last, go, sent);
    for (struct piece *q = go; q; q = next) {
        next = q->next;
        if (!err)
            err = send_piece(ch, q);
        free_piece(w, q);
    }
    return err;
}
