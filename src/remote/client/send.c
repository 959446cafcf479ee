/* Messages to the worker, and its answers. See remote.h.
 *
 *   begin: the thread's channel -> room in it -> ticket -> head       end: sent       answer: read
 *
 * The ticket is taken when there is room, so that a thread that has a ticket never waits.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/pack.h"
#include "core/refusal.h"
#include "driver/driver.h"
#include "gen/cuda_handles.h"
#include "gen/cuda_wire.h"
#include "gen/nvml_wire.h"
#include "remote/client/remote.h"
#include "remote/wire/dies.h"

#define NAMES_MAX 64
#define LOST CUDA_ERROR_DEVICE_UNAVAILABLE

uint64_t
hed_remote_current(struct hed_remote *r)
{
    const struct hed_context *c = r->driver ? hed_thread_context(r->driver) : NULL;

    return c && hed_context_alive(c) ? c->object.handle : 0;
}

void *
hed_remote_begin(struct hed_remote *r, enum hed_msg_kind kind, uint32_t size, uint64_t context,
                 uint64_t stream, uint64_t number, struct hed_remote_channel **channel)
{
    struct hed_remote_channel *ch = hed_remote_channel_need(r);
    struct hed_msg *m = ch ? hed_channel_begin(ch->channel, size) : NULL;

    if (!m) {
        if (ch)
            hed_remote_lose_channel(r, ch->channel, HED_EIO);
        return NULL;
    }

    /* Relaxed: the number itself orders the messages. It is taken before the message is written,
     * because those stores wait for cache lines that the worker has read last. */
    const uint64_t ticket = 1 + atomic_fetch_add_explicit(&r->tickets, 1, memory_order_relaxed);

    *m = (struct hed_msg){.size = size,
                          .kind = (uint16_t)kind,
                          .thread = ch->thread,
                          .ticket = ticket,
                          .context = context,
                          .stream = stream,
                          .number = number};
    memset(m + 1, 0, size - sizeof *m);
    *channel = ch;
    return m;
}

int
hed_remote_end(struct hed_remote_channel *channel, struct hed_msg *msg, uint32_t size)
{
    const bool wants = msg->flags & HED_MSG_WANTS_ANSWER;

    msg->size = size;
    hed_dies_count("HED_TEST_CLIENT_DIES");
    if (wants)
        hed_remote_flush_others(channel->remote, channel, msg->ticket);

    /* If bulk follows, that sends the message as well. */
    const int err = hed_channel_end(channel->channel, size, wants && msg->bulk == 0);

    if (err)
        hed_remote_lose_channel(channel->remote, channel->channel, err);
    else if (!wants)
        hed_remote_flush_soon(channel);
    return err;
}

/* ---- what comes back ------------------------------------------------------------------------- */

/* Prints the output of kernels, after what the program has printed so far. */
static void
print_kernel_output(const struct hed_msg *m)
{
    const char *text = (const char *)(m + 1);
    size_t n = m->size - sizeof *m;

    (void)fflush(stdout);
    while (n > 0) {
        const ssize_t done = write(STDOUT_FILENO, text, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return;
        text += done;
        n -= (size_t)done;
    }
}

/* A kernel came to something that the server's GPU cannot do: the reason of a failure. */
static void
hear_refusal(const struct hed_msg *m)
{
    const int n = (int)(m->size - sizeof *m);

    hed_error(REMOTE, "on the server: %.*s", n, (const char *)(m + 1));
    hed_refused("%.*s", n, (const char *)(m + 1));
}

static int
deal_with(struct hed_remote_channel *channel, const struct hed_msg *m)
{
    switch (m->kind) {
    case HED_MSG_PING: /* a sign of life */
        return 0;
    case HED_MSG_PRINT:
        print_kernel_output(m);
        return 0;
    case HED_MSG_REFUSED:
        hear_refusal(m);
        return 0;
    case HED_MSG_DATA:
        return m->size < sizeof(struct hed_data)
                   ? HED_EFORMAT
                   : hed_remote_data(channel, (const struct hed_data *)m);
    default:
        return HED_EFORMAT;
    }
}

struct hed_answer *
hed_remote_answer(struct hed_remote_channel *channel)
{
    struct hed_remote *r = channel->remote;
    struct hed_msg *m = NULL;
    int err;

    do {
        err = hed_channel_next(channel->channel, -1, &m);
        if (!err && m->kind != HED_MSG_ANSWER)
            err = deal_with(channel, m);
        else if (!err && m->size < sizeof(struct hed_answer))
            err = HED_EFORMAT;
    } while (!err && m->kind != HED_MSG_ANSWER);
    if (err) {
        hed_remote_lose_channel(r, channel->channel, err);
        return NULL;
    }

    struct hed_answer *a = (struct hed_answer *)m;

    if (a->failed)
        hed_remote_failed(r, a->failed_context, (CUresult)a->failed);
    if (a->head.number)
        hed_remote_received(r, a->head.number);
    /* Relaxed: hed_remote_received() has ordered it. Data that should have come before may be
     * missing. */
    return a->head.number && atomic_load_explicit(&r->lost, memory_order_relaxed) ? NULL : a;
}

void
hed_remote_look(struct hed_remote *r)
{
    struct hed_remote_channel *channel;
    struct hed_msg *m = hed_remote_begin(r, HED_MSG_PING, sizeof *m, 0, 0, 0, &channel);

    if (!m)
        return;
    m->flags = HED_MSG_WANTS_ANSWER;
    /* Relaxed: it is only compared in hed_remote_healthy(). */
    if (r->slots)
        atomic_store_explicit(
            &r->failures_seen,
            atomic_load_explicit(&r->slots[HED_SLOT_FAILURES], memory_order_relaxed),
            memory_order_relaxed);
    if (hed_remote_end(channel, m, sizeof *m) == 0)
        (void)hed_remote_answer(channel);
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct naming {
    uint64_t names[NAMES_MAX];
    uint32_t count;
};

static int
note_name(void *arg, const char *kind, uint64_t *handle)
{
    struct naming *n = arg;

    (void)kind;
    if (n->count == NAMES_MAX)
        return HED_ELIMIT;
    n->names[n->count++] = *handle;
    return 0;
}

/* One of the two APIs whose calls are sent. */
struct call_api {
    void (*put_request)(struct hed_enc *e, uint32_t id, const void *args);
    void (*get_reply)(struct hed_dec *d, uint32_t id, void *args, int result);
    int lost; /* the result of a call if the connection is lost */
};

static void
put_cuda(struct hed_enc *e, uint32_t id, const void *args)
{
    hed_cuda_put_request(e, (enum hed_cuda_call)id, args);
}

static void
get_cuda(struct hed_dec *d, uint32_t id, void *args, int result)
{
    hed_cuda_get_reply(d, (enum hed_cuda_call)id, args, result);
}

static void
put_nvml(struct hed_enc *e, uint32_t id, const void *args)
{
    hed_nvml_put_request(e, (enum hed_nvml_call)id, args);
}

static void
get_nvml(struct hed_dec *d, uint32_t id, void *args, int result)
{
    hed_nvml_get_reply(d, (enum hed_nvml_call)id, args, result);
}

static const struct call_api api_cuda = {put_cuda, get_cuda, LOST};
static const struct call_api api_nvml = {put_nvml, get_nvml, NVML_ERROR_GPU_IS_LOST};

#define SMALL 512u /* bytes; enough for most calls */

/* Begins a message with a call. The call is encoded in a buffer first, because its length is not
 * known before. */
static struct hed_msg *
begin_call(struct hed_remote *r, const struct hed_msg *head, const struct call_api *api,
           const void *args, const struct naming *names, struct hed_remote_channel **channel)
{
    uint8_t small[SMALL], large[HED_MSG_MAX];
    struct hed_enc e = hed_enc_over(small, sizeof small);
    const uint8_t *from = small;

    api->put_request(&e, head->call, args);
    if (e.err) {
        e = hed_enc_over(large, sizeof large - 1024);
        from = large;
        api->put_request(&e, head->call, args);
    }
    if (e.err) {
        hed_warn(REMOTE, "call %u is too long for a message", head->call);
        return NULL;
    }

    const size_t request = (size_t)(e.at - from);
    const size_t at = (sizeof(struct hed_msg) + sizeof(struct hed_call_body) + request + 7) / 8 * 8;
    const size_t size = at + names->count * sizeof names->names[0];
    struct hed_msg *m = hed_remote_begin(r, (enum hed_msg_kind)head->kind, (uint32_t)size,
                                         head->context, head->stream, head->number, channel);

    if (!m)
        return NULL;

    struct hed_call_body *b = (struct hed_call_body *)(m + 1);

    m->call = head->call;
    m->flags = head->flags;
    b->request = (uint32_t)request;
    b->names = names->count;
    memcpy(b + 1, from, request);
    memcpy((char *)m + at, names->names, names->count * sizeof names->names[0]);
    return m;
}

void
hed_remote_send_call(struct hed_remote *r, uint64_t context, uint64_t stream, uint64_t number,
                     enum hed_cuda_call id, void *args)
{
    const struct hed_msg head = {.kind = HED_MSG_CALL,
                                 .call = (uint16_t)id,
                                 .context = context,
                                 .stream = stream,
                                 .number = number};
    struct hed_remote_channel *channel;
    struct naming names = {.count = 0};
    struct hed_msg *m = NULL;

    if (hed_cuda_each_new(id, args, note_name, &names) == 0)
        m = begin_call(r, &head, &api_cuda, args, &names, &channel);
    if (m)
        (void)hed_remote_end(channel, m, m->size);
    else /* the call cannot be made, which must be reported */
        hed_remote_failed(r, context, LOST);
}

/* Sends a call and waits for its answer: the result, and the outputs in args. */
static int
ask_call(struct hed_remote *r, const struct hed_msg *head, const struct call_api *api, void *args,
         const struct naming *names)
{
    struct hed_remote_channel *channel;
    struct hed_msg *m = begin_call(r, head, api, args, names, &channel);

    if (!m || hed_remote_end(channel, m, m->size) != 0)
        return api->lost;

    const struct hed_answer *a = hed_remote_answer(channel);

    if (!a)
        return api->lost;
    /* Few calls set an output when they fail. For the others the answer then ends here. */
    if (a->result == 0 || a->head.size > sizeof *a) {
        struct hed_dec d = hed_dec_over(a + 1, a->head.size - sizeof *a, NULL);

        api->get_reply(&d, head->call, args, a->result);
        if (d.err) {
            hed_remote_lose(r, "the worker sent an invalid reply");
            return api->lost;
        }
    }
    return a->result;
}

CUresult
hed_remote_ask_call(struct hed_remote *r, uint64_t context, uint64_t stream, enum hed_cuda_call id,
                    void *args, bool waits)
{
    const struct hed_msg head = {.kind = HED_MSG_CALL,
                                 .call = (uint16_t)id,
                                 .context = context,
                                 .stream = stream,
                                 .flags = HED_MSG_WANTS_ANSWER | (waits ? HED_MSG_BLOCKS : 0)};
    struct naming names = {.count = 0};

    if (hed_cuda_each_new(id, args, note_name, &names) != 0)
        return LOST;
    return (CUresult)ask_call(r, &head, &api_cuda, args, &names);
}

CUresult
hed_remote_wait(struct hed_remote *r, uint64_t context, uint64_t stream)
{
    struct hed_remote_channel *channel;
    struct hed_msg *m = hed_remote_begin(r, HED_MSG_WAIT, sizeof *m, context, stream, 0, &channel);
    const struct hed_answer *a = NULL;

    if (m) {
        m->flags = HED_MSG_WANTS_ANSWER | HED_MSG_BLOCKS;
        if (hed_remote_end(channel, m, sizeof *m) == 0)
            a = hed_remote_answer(channel);
    }
    return a ? (CUresult)a->result : LOST;
}

nvmlReturn_t
hed_remote_ask_nvml(struct hed_remote *r, enum hed_nvml_call id, void *args)
{
    const struct hed_msg head = {
        .kind = HED_MSG_NVML, .call = (uint16_t)id, .flags = HED_MSG_WANTS_ANSWER};
    const struct naming names = {.count = 0};

    return (nvmlReturn_t)ask_call(r, &head, &api_nvml, args, &names);
}
