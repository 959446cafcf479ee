/* A channel in memory, and the worker behind it. See worker_play.h. */
#include "worker_play.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "remote/server/status.h"

#define STAGED (1u << 16)
#define NAMES_FOR 1000 /* inputs; making the tables anew takes long */

static _Alignas(16) uint8_t message[HED_MSG_MAX];
static uint8_t staged[2][STAGED];
static volatile uint8_t sink;
static struct play_channel callbacks;
int play_result;

/* The process keeps what inputs leave behind. To look for leaks after each of them would take a
 * hundred times as long as the input. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- the channel ----------------------------------------------------------------------------- */

/* Reads every byte that is sent, so that a sanitizer checks it. */
static void
read_bytes(const void *p, size_t n)
{
    uint8_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum ^= ((const uint8_t *)p)[i];
    sink = sum;
}

static struct play_channel *
play_of(struct hed_channel *ch)
{
    return (struct play_channel *)ch;
}

static void *
play_channel_begin(struct hed_channel *ch, uint32_t size)
{
    struct play_channel *p = play_of(ch);

    must(size >= sizeof(struct hed_msg) && size <= HED_MSG_MAX && !p->begun && !p->owed);
    p->begun = size;
    memset(message, 0xa5, sizeof message);
    return message;
}

static int
play_channel_end(struct hed_channel *ch, uint32_t size, bool urgent)
{
    const struct hed_msg *m = (const struct hed_msg *)message;
    struct play_channel *p = play_of(ch);

    must(p->begun && size <= p->begun && m->size == size && m->bulk <= HED_BULK_CHUNK);
    must(m->kind >= HED_MSG_ANSWER && m->kind < HED_MSG_KINDS);
    read_bytes(message, size);
    if (m->kind == HED_MSG_ANSWER && size >= sizeof(struct hed_answer))
        play_result = ((const struct hed_answer *)m)->result;
    p->begun = 0;
    p->owed = m->bulk;
    return 0;
}

/* Only the thread of the callback channel waits here. Its client never sends anything. */
static int
play_channel_next(struct hed_channel *ch, int timeout_ms)
{
    while (ch == &callbacks.channel)
        (void)pause();
    return HED_EIO;
}

static int
play_bulk_write(struct hed_channel *ch, const void *p, size_t n)
{
    must(n <= play_of(ch)->owed);
    read_bytes(p, n);
    play_of(ch)->owed -= n;
    return 0;
}

static int
play_bulk_space(struct hed_channel *ch, size_t want, void **p, size_t *n)
{
    *p = staged[1];
    *n = want < STAGED ? want : STAGED;
    return 0;
}

static int
play_bulk_put(struct hed_channel *ch, size_t n)
{
    must(n <= play_of(ch)->owed && n <= STAGED);
    play_of(ch)->owed -= n;
    return 0;
}

static int
play_bulk_read(struct hed_channel *ch, void *p, size_t n)
{
    struct play_channel *c = play_of(ch);

    if (n > c->bulk_size)
        return HED_EIO;
    memcpy(p, c->bulk, n);
    c->bulk += n;
    c->bulk_size -= n;
    return 0;
}

static int
play_bulk_peek(struct hed_channel *ch, size_t most, void **p, size_t *n)
{
    *n = most < STAGED ? most : STAGED;
    *n = *n < play_of(ch)->bulk_size ? *n : play_of(ch)->bulk_size;
    *p = staged[0];
    return *n == 0 ? HED_EIO : play_bulk_read(ch, staged[0], *n);
}

static int
play_bulk_done(struct hed_channel *ch, size_t n)
{
    must(n <= STAGED);
    return 0;
}

static void *
play_bulk_area(struct hed_channel *ch, int direction)
{
    return staged[direction];
}

static const struct hed_channel_ops play_ops = {
    .begin = play_channel_begin,
    .end = play_channel_end,
    .next = play_channel_next,
    .bulk_write = play_bulk_write,
    .bulk_space = play_bulk_space,
    .bulk_put = play_bulk_put,
    .bulk_read = play_bulk_read,
    .bulk_peek = play_bulk_peek,
    .bulk_done = play_bulk_done,
    .bulk_area = play_bulk_area,
};

static struct play_channel callbacks = {.channel.ops = &play_ops};

/* ---- the worker ------------------------------------------------------------------------------ */

static void *
serve_callbacks(void *worker)
{
    (void)hed_worker_callback_channel(worker, &callbacks.channel, 0);
    return NULL;
}

static struct hed_worker *
make_worker(void)
{
    static struct hed_worker_status status;
    static const struct hed_worker_start start = {.conn = -1,
                                                  .control = -1,
                                                  .lease_socket = -1,
                                                  .channel_limit = 4,
                                                  .images = "",
                                                  .status = &status};
    struct hed_worker *w = calloc(1, sizeof *w);

    must(w != NULL);
    w->start = &start;
    w->transport = hed_transport_by_id(HED_TRANSPORT_UNIX);
    w->heap = -1;
    w->device_count = 1;
    hed_lock_init(&w->lock, HED_RANK_WORKER);
    hed_lock_init(&w->lease_socket_lock, HED_RANK_LEASE_SOCKET);
    w->names = hed_names_create();
    must(w->names != NULL);
    return w;
}

static struct hed_worker_channel *
start_worker(struct hed_channel *channel)
{
    struct hed_worker *w = make_worker();
    struct hed_worker_channel *ch = hed_worker_channel_add(w, channel, 0, 0);
    struct hed_why why = {""};
    pthread_t thread;

    must(ch != NULL);
    play_backend_start(ch);
    must(hed_worker_print_init(w, &why) == 0);
    must(pthread_create(&thread, NULL, serve_callbacks, w) == 0 && pthread_detach(thread) == 0);
    return ch;
}

struct hed_worker_channel *
play_begin(const uint8_t *bulk, size_t size)
{
    static struct hed_worker_channel *ch;
    static struct play_channel channel;
    static unsigned inputs;

    channel = (struct play_channel){.channel.ops = &play_ops, .bulk = bulk, .bulk_size = size};
    if (!ch)
        ch = start_worker(&channel.channel);

    struct hed_worker *w = ch->worker;

    channel.begun = channel.owed = 0;
    ch->ticket = ch->context = 0;
    atomic_store(&w->next_ticket, 1);
    atomic_store(&w->failed, 0);
    if (inputs++ % NAMES_FOR == 0) {
        hed_names_free(w->names);
        w->names = hed_names_create();
        must(w->names != NULL);
    }
    play_backend_names(w);
    return ch;
}

int
play_message(struct hed_worker_channel *ch, struct hed_msg *m)
{
    if (!play_backend_takes(m))
        return 0;
    if (m->ticket)
        m->ticket = atomic_load(&ch->worker->next_ticket);

    const int err = hed_worker_handle(ch, m);

    /* A handler that succeeded has completed its message and sent the bulk that it promised. */
    must(err != 0 || (!play_of(ch->channel)->begun && !play_of(ch->channel)->owed));
    must(ch->ticket == 0);
    play_of(ch->channel)->begun = 0;
    play_of(ch->channel)->owed = 0;
    return err;
}
