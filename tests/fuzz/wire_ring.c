/* Fuzz target: the worker's end of a channel over shared memory. Its client changes that memory as
 * the input says: words of the rings, bytes in them, and honest messages in between. The worker
 * reads and writes whenever that would not wait. Messages come out complete and within bounds. */
#include "harness/fuzz.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/err.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/channel/shm.h"

struct input {
    const uint8_t *at, *end;
};

/* The next n bytes as a number; missing bytes are 0. */
static uint64_t
number(struct input *in, size_t n)
{
    const size_t left = (size_t)(in->end - in->at);
    uint64_t v = 0;

    n = n < left ? n : left;
    memcpy(&v, in->at, n);
    in->at += n;
    return v;
}

static struct hed_channel *client, *worker;

static void
make_channels(void)
{
    struct hed_conn *conns[2];
    struct hed_why why;
    int fds[2];

    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    for (int i = 0; i < 2; i++)
        must(hed_conn_accept(fds[i], NULL, 1000, &conns[i], &why) == 0);
    must(hed_channel_create(conns[0], &hed_channel_shm, &client, &why) == 0);
    must(hed_channel_accept(conns[1], &hed_channel_shm, &worker, &why) == 0);
}

/* Changes a word of a ring: to any value, or by a little. */
static void
scribble_word(struct input *in)
{
    const uint8_t what = (uint8_t)number(in, 1);
    struct hed_ring_words *w = &hed_shm_of(client)->memory->rings[what % HED_SHM_RINGS];
    _Atomic uint64_t *position = what & 4 ? &w->tail : &w->head;

    if (what & 8)
        atomic_store(what & 4 ? &w->reader_parked : &w->writer_parked, (uint32_t)number(in, 4));
    else if (what & 16)
        atomic_store(position, number(in, 8));
    else if (what & 32)
        atomic_fetch_add(position, number(in, 3) * 16);
    else
        atomic_fetch_sub(position, number(in, 3));
}

/* Changes bytes of messages, where the worker reads next or anywhere. */
static void
scribble_bytes(struct input *in)
{
    const uint64_t where = number(in, 3);
    const size_t n = number(in, 1) % 80;

    for (size_t i = 0; i < n; i++) {
        const uint64_t base = where & 1 ? hed_shm_of(worker)->in.mine : 0;

        hed_shm_of(worker)->in.bytes[(base + where / 2 + i) % HED_SHM_CALL_SIZE] =
            (uint8_t)number(in, 1);
    }
}

static void
send_message(struct input *in)
{
    const uint32_t size = (uint32_t)(64 + number(in, 2) % (HED_MSG_MAX - 63));
    const uint64_t tail = hed_shm_of(client)->out.mine;

    /* The client believes what it wrote, so that it continues; it skips what would wait. */
    if (tail + 2 * HED_MSG_MAX - hed_shm_of(client)->out.peer > HED_SHM_CALL_SIZE &&
        tail + 2 * HED_MSG_MAX - atomic_load(&hed_shm_of(client)->out.words->head) >
            HED_SHM_CALL_SIZE)
        return;

    struct hed_msg *m = hed_channel_begin(client, size);

    if (m) {
        *m = (struct hed_msg){.kind = HED_MSG_PING};
        (void)hed_channel_end(client, size, true);
    }
}

static void
hear(void)
{
    struct hed_msg *m;
    const int e = hed_channel_next(worker, 0, &m);
    uint8_t sum = 0;

    if (e == 0) {
        must(m->size >= sizeof *m && m->size <= HED_MSG_MAX);
        for (uint32_t i = 0; i < m->size; i++)
            sum ^= ((const uint8_t *)m)[i];
        __asm__ __volatile__("" ::"r"(sum));
    } else {
        must(e == HED_ETIME || e == HED_EFORMAT);
    }
}

static void
answer(struct input *in)
{
    const uint32_t size = (uint32_t)(64 + number(in, 2) % (HED_MSG_MAX - 63));
    const uint64_t head = atomic_load(&hed_shm_of(worker)->out.words->head);

    /* It would wait. */
    if (hed_shm_of(worker)->out.shown - head <= HED_SHM_ANSWER_SIZE &&
        hed_shm_of(worker)->out.mine + 2 * HED_MSG_MAX - head > HED_SHM_ANSWER_SIZE)
        return;

    uint8_t *m = hed_channel_begin(worker, size);

    if (!m)
        return;
    must(m >= hed_shm_of(worker)->out.bytes &&
         m + size <= hed_shm_of(worker)->out.bytes + HED_SHM_ANSWER_SIZE);
    memset(m, 1, size);
    (void)hed_channel_end(worker, size, true);
}

static void
take_bulk(struct input *in, bool copy)
{
    static uint8_t data[70000];
    const size_t want = 1 + number(in, 2);
    const uint64_t tail = atomic_load(&hed_shm_of(worker)->bulk_in.words->tail);
    const uint64_t there = tail - hed_shm_of(worker)->bulk_in.mine;
    size_t n = 0;
    void *p;

    if (there == 0 || (copy && there <= HED_CHANNEL_STAGED && there < want))
        return; /* it would wait */
    if (copy) {
        (void)hed_channel_bulk_read(worker, data, want);
        return;
    }
    if (hed_channel_bulk_peek(worker, want, &p, &n))
        return;
    must(n >= 1 && n <= want);
    must((uint8_t *)p >= hed_shm_of(worker)->bulk_in.bytes &&
         (uint8_t *)p + n <= hed_shm_of(worker)->bulk_in.bytes + HED_CHANNEL_STAGED);
    memcpy(data, p, n);
}

static void
give_bulk(struct input *in)
{
    uint64_t out = 0;

    /* Sending more would be the worker's own mistake, and be reported as a bug. */
    for (uint32_t i = 0; i < hed_shm_of(worker)->bulk_in.taken.count; i++) {
        const uint32_t at = (hed_shm_of(worker)->bulk_in.taken.first + i) % HED_RING_SPANS;

        out += hed_shm_of(worker)->bulk_in.taken.span[at].finished
                   ? 0
                   : hed_shm_of(worker)->bulk_in.taken.span[at].size;
    }
    hed_channel_bulk_done(worker, number(in, 3) % (out + 1));
}

static void
send_bulk(struct input *in)
{
    const size_t want = 1 + number(in, 3);
    const uint64_t head = atomic_load(&hed_shm_of(worker)->bulk_out.words->head);
    size_t n;
    void *p;

    if (hed_shm_of(worker)->bulk_out.mine - head == HED_CHANNEL_STAGED)
        return; /* it would wait */
    if (hed_channel_bulk_space(worker, want, &p, &n))
        return;
    must(n >= 1 && n <= want);
    must((uint8_t *)p >= hed_shm_of(worker)->bulk_out.bytes &&
         (uint8_t *)p + n <= hed_shm_of(worker)->bulk_out.bytes + HED_CHANNEL_STAGED);
    *(uint8_t *)p = 1;
    (void)hed_channel_bulk_put(worker, n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};

    make_channels();
    while (in.at < in.end) {
        switch (number(&in, 1) % 9) {
        case 0:
            scribble_word(&in);
            break;
        case 1:
            scribble_bytes(&in);
            break;
        case 2:
            send_message(&in);
            break;
        case 3:
            answer(&in);
            break;
        case 4:
            take_bulk(&in, false);
            break;
        case 5:
            take_bulk(&in, true);
            break;
        case 6:
            give_bulk(&in);
            break;
        case 7:
            send_bulk(&in);
            break;
        default:
            hear();
        }
    }
    hed_channel_free(client);
    hed_channel_free(worker);
    return 0;
}
