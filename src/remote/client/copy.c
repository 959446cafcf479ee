/* Copies and fills. If the worker has both sides, the copy is a call. Memory that only this process
 * has travels as bulk, in pieces of up to HED_BULK_CHUNK bytes.
 *
 *   to the device    COPY_IN and its bytes, no answer: the program may change them at once
 *   from the device  COPY_OUT, several are requested before the first answer is read;
 *                    COPY_DEFERRED (deferred.c) if no thread waits
 *
 * Over shared memory the bytes are written before their message, so that messages of other threads
 * need not wait for them. Over a socket they follow it, as they must.
 */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/number.h"
#include "driver/driver.h"
#include "remote/client/memory.h"
#include "remote/client/queue.h"

#define LARGE ((uint64_t)8 << 20) /* bytes; from this size on several threads copy */
#define ON_THE_WAY 4              /* requests sent before the first answer is read */
#define LOST CUDA_ERROR_DEVICE_UNAVAILABLE

struct transfer {
    struct hed_remote *r;
    struct hed_stream *s;
    uint64_t context, stream;
    const struct hed_copy *copy; /* the whole copy; adjacent rows are joined */
    bool to_host;                /* false: from memory of this process */
    bool large;
};

static void *
pointer_at(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

/* The side of a copy, or of a piece of it, that is memory of this process. */
static const struct hed_copy_side *
our_side(const struct transfer *t, const struct hed_copy *c)
{
    return t->to_host ? &c->to : &c->from;
}

/* Does the whole copy fit in one message? Then it is its own only piece. */
static bool
is_one_piece(const struct transfer *t)
{
    return hed_box_bytes(&t->copy->box) <= HED_BULK_CHUNK;
}

/* The piece that begins at (x, y, z): as much as fits in one message. */
static struct hed_copy
piece_at(const struct transfer *t, uint64_t x, uint64_t y, uint64_t z)
{
    const struct hed_box *b = &t->copy->box;
    struct hed_copy p = {.from = hed_side_move(t->copy->from, x, y, z),
                         .to = hed_side_move(t->copy->to, x, y, z),
                         .box = {hed_min(b->width - x, HED_BULK_CHUNK), 1, 1}};

    if (p.box.width == b->width)
        p.box.height = hed_min(b->height - y, HED_BULK_CHUNK / b->width);
    if (p.box.width == b->width && p.box.height == b->height)
        p.box.depth = hed_min(b->depth - z, HED_BULK_CHUNK / (b->width * b->height));
    return p;
}

/* The beginning of the next piece; false if this was the last. */
static bool
next_piece(const struct transfer *t, const struct hed_copy *p, uint64_t *x, uint64_t *y,
           uint64_t *z)
{
    *x += p->box.width;
    if (*x < t->copy->box.width)
        return true;
    *x = 0;
    *y += p->box.height;
    if (*y < t->copy->box.height)
        return true;
    *y = 0;
    *z += p->box.depth;
    return *z < t->copy->box.depth;
}

/* ---- bytes of a box, as one row -------------------------------------------------------------- */

/* Copies n bytes from or to p, beginning with byte number `from` of the copy. */
static void
move_bytes(const struct transfer *t, const struct hed_copy *c, uint64_t from, void *p, uint64_t n,
           bool out)
{
    const struct hed_copy_side *ours = our_side(t, c);
    const struct hed_box *b = &c->box;
    char *row = p;

    if (b->height == 1 && b->depth == 1) {
        if (out)
            hed_remote_memcpy(t->r, p, pointer_at(ours->at + from), n, t->large);
        else
            hed_remote_memcpy(t->r, pointer_at(ours->at + from), p, n, t->large);
        return;
    }
    while (n > 0) {
        const uint64_t y = from / b->width;
        const uint64_t x = from % b->width;
        const uint64_t part = hed_min(b->width - x, n);
        char *here = pointer_at(hed_side_at(ours, x, y % b->height, y / b->height));

        memcpy(out ? row : here, out ? here : row, part);
        row += part;
        from += part;
        n -= part;
    }
}

/* Are the bytes one row of this process's memory, on a channel without shared memory? Then they
 * need not be copied on the way. */
static bool
goes_straight(const struct transfer *t, const struct hed_copy *c)
{
    return !t->r->slots && c->box.height == 1 && c->box.depth == 1;
}

static int
write_bulk(const struct transfer *t, struct hed_channel *channel, const struct hed_copy *b)
{
    const uint64_t all = hed_box_bytes(&b->box);
    int err = 0;

    if (goes_straight(t, b))
        return hed_channel_bulk_write(channel, pointer_at(our_side(t, b)->at), all);
    for (uint64_t done = 0; !err && done < all;) {
        void *p;
        size_t n;

        err = hed_channel_bulk_space(channel, all - done, &p, &n);
        if (err)
            break;
        move_bytes(t, b, done, p, n, true);
        err = hed_channel_bulk_put(channel, n);
        done += n;
    }
    return err;
}

static int
read_bulk(const struct transfer *t, struct hed_channel *channel, const struct hed_copy *b)
{
    const uint64_t all = hed_box_bytes(&b->box);
    int err = 0;

    if (goes_straight(t, b))
        return hed_channel_bulk_read(channel, pointer_at(our_side(t, b)->at), all);
    for (uint64_t done = 0; !err && done < all;) {
        void *p;
        size_t n;

        err = hed_channel_bulk_peek(channel, all - done, &p, &n);
        if (err)
            break;
        move_bytes(t, b, done, p, n, false);
        hed_channel_bulk_done(channel, n);
        done += n;
    }
    return err;
}

/* Drops the bytes of a copy that failed. */
static int
skip_bulk(struct hed_channel *channel, uint64_t n)
{
    int err = 0;

    while (!err && n > 0) {
        void *p;
        size_t some;

        err = hed_channel_bulk_peek(channel, n, &p, &some);
        if (err)
            break;
        hed_channel_bulk_done(channel, some);
        n -= some;
    }
    return err;
}

/* ---- messages -------------------------------------------------------------------------------- */

static struct hed_copy_body *
begin_transfer(const struct transfer *t, enum hed_msg_kind kind, const struct hed_copy *p,
               uint32_t inside, struct hed_remote_channel **channel)
{
    struct hed_copy_body *m = hed_remote_begin(t->r, kind, (uint32_t)sizeof *m + inside, t->context,
                                               t->stream, 0, channel);

    if (m)
        m->copy = *p;
    return m;
}

/* Sends a small copy with the bytes inside the message. */
static int
send_inside(const struct transfer *t, const struct hed_copy *p)
{
    const uint32_t n = (uint32_t)hed_box_bytes(&p->box);
    struct hed_remote_channel *channel;
    struct hed_copy_body *m = begin_transfer(t, HED_MSG_COPY_IN, p, n, &channel);

    if (!m)
        return HED_EIO;
    move_bytes(t, p, 0, m + 1, n, true);
    return hed_remote_end(channel, &m->head, (uint32_t)sizeof *m + n);
}

static int
send_copy_piece(const struct transfer *t, const struct hed_copy *p)
{
    struct hed_remote_channel *channel = hed_remote_channel_need(t->r);
    const bool first = t->r->slots != NULL;
    struct hed_copy_body *m;
    int err = channel ? 0 : HED_EIO;

    if (hed_box_bytes(&p->box) <= HED_COPY_INSIDE)
        return send_inside(t, p);
    if (!err && first)
        err = write_bulk(t, channel->channel, p);
    m = err ? NULL : begin_transfer(t, HED_MSG_COPY_IN, p, 0, &channel);
    if (!m)
        return err ? err : HED_EIO;
    m->head.bulk = hed_box_bytes(&p->box);
    err = hed_remote_end(channel, &m->head, sizeof *m);
    if (!err && !first)
        err = write_bulk(t, channel->channel, p);
    return err;
}

static int
send_pieces(const struct transfer *t)
{
    uint64_t x = 0, y = 0, z = 0;
    bool more = !is_one_piece(t);
    int err = more ? 0 : send_copy_piece(t, t->copy);

    while (!err && more) {
        const struct hed_copy p = piece_at(t, x, y, z);

        err = send_copy_piece(t, &p);
        more = next_piece(t, &p, &x, &y, &z);
    }
    if (err)
        hed_remote_lose(t->r, hed_err_text(err));
    return err;
}

static CUresult
send_all(const struct transfer *t)
{
    if (send_pieces(t) != 0)
        return LOST;
    (void)hed_remote_sent(t->s, false);
    return CUDA_SUCCESS;
}

int
hed_remote_write(struct hed_remote *r, uint64_t context, uint64_t to, const void *from,
                 uint64_t size)
{
    const struct hed_copy row = {
        .from = {.at = (uintptr_t)from, .pitch = size, .slice = size, .host = true},
        .to = {.at = to, .pitch = size, .slice = size},
        .box = {size, 1, 1}};
    const struct transfer t = {
        .r = r, .context = context, .stream = 1 /* the legacy stream */, .copy = &row};

    return send_pieces(&t);
}

/* Requests a piece without waiting for the answer. */
static int
request_bytes(const struct transfer *t, const struct hed_copy *p,
              struct hed_remote_channel **channel)
{
    struct hed_copy_body *m = begin_transfer(t, HED_MSG_COPY_OUT, p, 0, channel);

    if (!m)
        return HED_EIO;
    m->head.flags = HED_MSG_WANTS_ANSWER | HED_MSG_BLOCKS;
    return hed_remote_end(*channel, &m->head, sizeof *m);
}

/* Reads the answer to the oldest request, and the bytes. */
static int
receive_piece(const struct transfer *t, struct hed_remote_channel *channel,
              const struct hed_copy *p, CUresult *r)
{
    const struct hed_answer *a = hed_remote_answer(channel);
    const uint64_t n = hed_box_bytes(&p->box);

    if (!a)
        return HED_EIO;
    if (a->result != CUDA_SUCCESS) {
        const uint64_t bulk = a->head.bulk;

        *r = (CUresult)a->result;
        return bulk == 0 ? 0 : bulk == n ? skip_bulk(channel->channel, n) : HED_EFORMAT;
    }
    if (a->head.bulk == 0 && n <= HED_COPY_INSIDE && a->head.size == sizeof *a + n) {
        move_bytes(t, p, 0, (void *)(uintptr_t)(a + 1), n, false);
        return 0;
    }
    return a->head.bulk == n ? read_bulk(t, channel->channel, p) : HED_EFORMAT;
}

static int
receive_pieces(const struct transfer *t, CUresult *r)
{
    struct hed_copy asked[ON_THE_WAY];
    struct hed_remote_channel *channel = NULL;
    uint64_t x = 0, y = 0, z = 0;
    unsigned first = 0, count = 0;
    bool more = true;
    int err = 0;

    while (!err && (more || count > 0)) {
        if (more && count < ON_THE_WAY) {
            struct hed_copy *p = &asked[(first + count++) % ON_THE_WAY];

            *p = piece_at(t, x, y, z);
            err = request_bytes(t, p, &channel);
            more = next_piece(t, p, &x, &y, &z);
            continue;
        }
        err = receive_piece(t, channel, &asked[first], r);
        first = (first + 1) % ON_THE_WAY;
        count--;
        more = more && *r == CUDA_SUCCESS;
    }
    return err;
}

static int
receive_one(const struct transfer *t, CUresult *r)
{
    struct hed_remote_channel *channel;
    const int err = request_bytes(t, t->copy, &channel);

    return err ? err : receive_piece(t, channel, t->copy, r);
}

static CUresult
receive_all(const struct transfer *t)
{
    const uint64_t before = hed_stream_now(t->s);
    CUresult r = CUDA_SUCCESS;
    const int err = is_one_piece(t) ? receive_one(t, &r) : receive_pieces(t, &r);

    if (err) {
        hed_remote_lose(t->r, hed_err_text(err));
        return LOST;
    }
    /* Something before the copy may have failed: then these are not the right bytes. */
    if (r == CUDA_SUCCESS)
        r = hed_context_error(t->s->ctx);
    if (r == CUDA_SUCCESS) {
        hed_remote_sync_in(t->r); /* a later wait may be skipped from now on */
        hed_remote_answered(t->s, before);
    }
    return r;
}

/* ---- deferred copies ------------------------------------------------------------------------- */

/* Requests the whole copy as a deferred one. False: too many bytes are deferred already, and
 * nothing was requested. */
static bool
ask_deferred(const struct transfer *t, CUresult *r)
{
    struct hed_remote_deferred piece;
    struct hed_remote_channel *channel;
    uint64_t x = 0, y = 0, z = 0;
    struct hed_copy p;

    if (!hed_remote_deferred_room(t->r, hed_box_bytes(&t->copy->box)))
        return false;
    *r = CUDA_SUCCESS;
    do {
        struct hed_copy_body *m = NULL;

        p = piece_at(t, x, y, z);
        piece = (struct hed_remote_deferred){.to = p.to, .box = p.box};

        if (hed_remote_deferred_add(t->r, &piece))
            m = begin_transfer(t, HED_MSG_COPY_DEFERRED, &p, 0, &channel);
        if (!m || hed_remote_end(channel, &m->head, sizeof *m) != 0) {
            hed_remote_lose(t->r, "cannot request a copy");
            *r = LOST;
        }
    } while (*r == CUDA_SUCCESS && next_piece(t, &p, &x, &y, &z));
    (void)hed_remote_sent(t->s, true);
    return true;
}

/* Joins the rows of a box that lie side by side. A row is one already, and the layout of an array's
 * rows is not known here. */
static const struct hed_copy *
join_rows(const struct hed_copy *c, struct hed_copy *joined)
{
    if (c->from.array || c->to.array || (c->box.height == 1 && c->box.depth == 1))
        return c;
    *joined = *c;
    hed_copy_flatten(joined);
    return joined;
}

CUresult
hed_remote_copy_host(void *m, struct hed_stream *s, const struct hed_copy *c, bool to_host,
                     bool wait)
{
    struct hed_copy joined;
    const struct transfer t = {.r = hed_remote_of(m),
                               .s = s,
                               .context = s->ctx->object.handle,
                               .stream = hed_stream_name(s),
                               .copy = join_rows(c, &joined),
                               .to_host = to_host,
                               .large = hed_box_bytes(&c->box) >= LARGE};
    const struct hed_copy_side *ours = our_side(&t, t.copy);
    uint64_t span = 0;
    CUresult r = CUDA_SUCCESS;

    if (to_host) {
        if (wait || !ask_deferred(&t, &r))
            r = receive_all(&t);
        return r;
    }
    (void)hed_side_span(ours, &t.copy->box, &span); /* cannot fail: checked with the copy */
    if (hed_remote_deferred_touches(t.r, ours->at, span)) {
        r = hed_stream_synchronize(s);
        if (r != CUDA_SUCCESS)
            return r;
    }
    r = send_all(&t);
    return r == CUDA_SUCCESS && wait ? hed_stream_synchronize(s) : r;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The number of rows from one plane to the next. */
static uint64_t
copy_plane_rows(const struct hed_copy *c, const struct hed_copy_side *s)
{
    return c->box.depth > 1 && s->pitch ? s->slice / s->pitch : c->box.height;
}

static CUDA_MEMCPY3D_v2
describe_copy(const struct hed_copy *c)
{
    CUDA_MEMCPY3D_v2 p = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .WidthInBytes = c->box.width,
                          .Height = c->box.height,
                          .Depth = c->box.depth};

    if (c->from.array) {
        p.srcMemoryType = CU_MEMORYTYPE_ARRAY;
        p.srcArray = (CUarray)(uintptr_t)c->from.array;
        p.srcXInBytes = c->from.x;
        p.srcY = c->from.y;
        p.srcZ = c->from.z;
    } else {
        p.srcDevice = c->from.at;
        p.srcPitch = c->from.pitch;
        p.srcHeight = copy_plane_rows(c, &c->from);
    }
    if (c->to.array) {
        p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
        p.dstArray = (CUarray)(uintptr_t)c->to.array;
        p.dstXInBytes = c->to.x;
        p.dstY = c->to.y;
        p.dstZ = c->to.z;
    } else {
        p.dstDevice = c->to.at;
        p.dstPitch = c->to.pitch;
        p.dstHeight = copy_plane_rows(c, &c->to);
    }
    return p;
}

CUresult
hed_remote_put_copy(struct hed_remote *r, struct hed_stream *s, struct hed_work *w)
{
    const struct hed_copy *c = &w->copy;
    const uint64_t context = s->ctx->object.handle;
    const uint64_t stream = hed_stream_name(s);
    const CUstream named = (CUstream)(uintptr_t)stream;

    if (!c->from.array && !c->to.array && c->box.height == 1 && c->box.depth == 1) {
        hed_remote_send(r, context, stream, w->number, cuMemcpyAsync, .dst = c->to.at,
                        .src = c->from.at, .ByteCount = c->box.width, .hStream = named);
        return CUDA_SUCCESS;
    }

    const CUDA_MEMCPY3D_v2 p = describe_copy(c);

    hed_remote_send(r, context, stream, w->number, cuMemcpy3DAsync_v2, .pCopy = &p,
                    .hStream = named);
    return CUDA_SUCCESS;
}

CUresult
hed_remote_put_fill(struct hed_remote *r, struct hed_stream *s, struct hed_work *w)
{
    const struct hed_fill *f = &w->fill;
    const uint64_t context = s->ctx->object.handle;
    const uint64_t stream = hed_stream_name(s);
    const CUstream on = (CUstream)(uintptr_t)stream;

#define SEND(call, ...) hed_remote_send(r, context, stream, w->number, call, __VA_ARGS__)
#define ROW .dstDevice = f->to, .N = f->width, .hStream = on
#define PLANE \
    .dstDevice = f->to, .dstPitch = f->pitch, .Width = f->width, .Height = f->height, .hStream = on
    if (f->height == 1 && f->size == 1)
        SEND(cuMemsetD8Async, ROW, .uc = (unsigned char)f->value);
    else if (f->height == 1 && f->size == 2)
        SEND(cuMemsetD16Async, ROW, .us = (unsigned short)f->value);
    else if (f->height == 1)
        SEND(cuMemsetD32Async, ROW, .ui = f->value);
    else if (f->size == 1)
        SEND(cuMemsetD2D8Async, PLANE, .uc = (unsigned char)f->value);
    else if (f->size == 2)
        SEND(cuMemsetD2D16Async, PLANE, .us = (unsigned short)f->value);
    else
        SEND(cuMemsetD2D32Async, PLANE, .ui = f->value);
    return CUDA_SUCCESS;
}

/* ---- the machine's copy and fill: small things of the driver's own --------------------------- */

static struct hed_stream *
legacy_stream(struct hed_remote *r)
{
    const struct hed_context *c = r->driver ? hed_thread_context(r->driver) : NULL;

    return c && hed_context_alive(c) ? c->legacy : NULL;
}

void
hed_remote_memory_copy(void *m, uint64_t to, uint64_t from, size_t size)
{
    struct hed_remote *r = hed_remote_of(m);
    struct hed_stream *s = legacy_stream(r);
    const bool reads = hed_remote_shares(m, from, size);
    const struct hed_copy c = {.from = {.at = from, .pitch = size, .slice = size},
                               .to = {.at = to, .pitch = size, .slice = size},
                               .box = {size, 1, 1}};

    if (size == 0)
        return;
    if (!reads && !hed_remote_shares(m, to, size))
        memmove(pointer_at(to), pointer_at(from), size);
    else if (s)
        (void)hed_remote_copy_host(m, s, &c, reads, true);
}

void
hed_remote_memory_fill(void *m, uint64_t to, uint32_t value, unsigned width, size_t count)
{
    struct hed_remote *r = hed_remote_of(m);
    struct hed_stream *s = legacy_stream(r);
    struct hed_work w = {
        .kind = HED_WORK_FILL,
        .fill = {.to = to, .value = value, .size = width, .width = count, .height = 1}};

    if (!s || count == 0)
        return;
    (void)hed_remote_put_fill(r, s, &w);
    (void)hed_remote_sent(s, false);
}
