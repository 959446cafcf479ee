/* A client without a driver. See raw.h. */
#include "raw.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "gen/cuda_hash.h"
#include "gen/nvml_hash.h"
#include "harness/patience.h"

#define WAIT_MS PATIENCE_MS

static void
read_address(struct raw *r)
{
    const struct {
        const char *name;
        char *to;
    } files[] = {{"HEDDLE_TLS_CA", r->tls.ca},
                 {"HEDDLE_TLS_CERT", r->tls.cert},
                 {"HEDDLE_TLS_KEY", r->tls.key}};
    const char *address = getenv("HEDDLE_GPU");
    struct hed_why why = {""};

    MUST(address && hed_address_parse(address, &r->address, &why) == 0);
    r->tls.insecure = getenv("HEDDLE_INSECURE") != NULL;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (getenv(files[i].name))
            (void)hed_str_copy(files[i].to, sizeof r->tls.ca, getenv(files[i].name));
}

static struct hed_conn *
raw_connect(struct raw *r, enum hed_preface_kind kind, const uint8_t *session)
{
    struct hed_preface p = {.kind = kind};
    struct hed_why why = {""};
    struct hed_conn *conn;

    memcpy(p.magic, HED_PREFACE_MAGIC, sizeof p.magic);
    if (session)
        memcpy(p.session, session, sizeof p.session);
    return hed_conn_open(&r->address, &r->tls, &p, WAIT_MS, &conn, &why) == 0 ? conn : NULL;
}

void
raw_begin(struct raw *r, uint64_t capabilities)
{
    struct hed_hello h = {.head = {.size = sizeof h, .kind = HED_MSG_HELLO},
                          .major = HED_WIRE_MAJOR,
                          .minor = HED_WIRE_MINOR,
                          .cuda_ids = HED_CUDA_HASH,
                          .nvml_ids = HED_NVML_HASH,
                          .capabilities = capabilities,
                          .page = 4096,
                          .name = "raw"};
    struct hed_why why = {""};
    struct hed_msg *m;

    memset(r, 0, sizeof *r);
    r->heap = -1;
    read_address(r);

    struct hed_conn *conn = raw_connect(r, HED_PREFACE_NEW, NULL);

    MUST(conn);
    h.transport = r->address.transport->id;
    MUST(hed_conn_write(conn, &h, sizeof h) == 0);
    MUST(hed_conn_read(conn, &r->welcome, sizeof r->welcome, WAIT_MS) == 0);
    if (r->welcome.head.result != 0)
        fprintf(stderr, "refused: %s\n", r->welcome.text);
    MUST(r->welcome.head.result == 0);
    MUST(hed_channel_create(conn, r->address.transport->channel, &r->channel, &why) == 0);
    for (uint32_t i = 0; i < r->welcome.device_count; i++)
        MUST(hed_channel_next(r->channel, WAIT_MS, &m) == 0);
}

void
raw_end(struct raw *r)
{
    hed_channel_free(r->channel);
    r->channel = NULL;
    if (r->heap >= 0)
        (void)close(r->heap);
    r->heap = -1;
}

/* Sends it as it is. Answers that are signs of life are left out. */
static int
raw_talk(struct raw *r, const struct hed_msg *m)
{
    void *out = hed_channel_begin(r->channel, m->size);
    struct hed_msg *got;

    if (!out)
        return HED_EIO;
    memcpy(out, m, m->size);

    int err = hed_channel_end(r->channel, m->size, true);

    do {
        if (!err)
            err = hed_channel_next(r->channel, WAIT_MS, &got);
    } while (!err && got->kind == HED_MSG_PING);
    return err ? err : got->kind == HED_MSG_ANSWER ? 0 : HED_EFORMAT;
}

const struct hed_answer *
raw_answer(const struct raw *r)
{
    return (const struct hed_answer *)r->channel->message;
}

int
raw_ask(struct raw *r, struct hed_msg *m)
{
    m->flags |= HED_MSG_WANTS_ANSWER;
    m->ticket = ++r->tickets;
    return raw_talk(r, m) == 0 ? raw_answer(r)->result : RAW_GONE;
}

/* ---- the arena ------------------------------------------------------------------------------- */

uint64_t
raw_offer(struct raw *r, uint64_t want, uint32_t devices)
{
    const struct hed_arena_offer o = {
        .head = {.size = sizeof o, .kind = HED_MSG_ARENA, .flags = HED_MSG_WANTS_ANSWER},
        .want = want,
        .devices = devices};

    return raw_talk(r, &o.head) == 0 ? ((const struct hed_arena_answer *)raw_answer(r))->base : 0;
}

int
raw_accept(struct raw *r, uint64_t base, int heap)
{
    const struct hed_arena_offer o = {
        .head = {.size = sizeof o, .kind = HED_MSG_ARENA, .flags = HED_MSG_WANTS_ANSWER},
        .base = base};
    const bool own = r->welcome.capabilities & HED_CAN_CLIENT_HEAP;
    int fds[2];
    int err = heap >= 0 ? hed_conn_send_fds(hed_channel_conn(r->channel), &heap, 1) : 0;

    r->heap = heap;
    if (!err)
        err = raw_talk(r, &o.head);
    if (!err && hed_channel_shares(r->channel)) {
        err = hed_conn_take_fds(hed_channel_conn(r->channel), fds, own ? 1 : 2, WAIT_MS);
        for (int i = 0; !err && i < (own ? 1 : 2); i++)
            (void)close(fds[i]);
    }
    if (!err)
        r->base = base;
    return err;
}

int
raw_memory(uint64_t size, unsigned flags, int seals)
{
    const int fd = memfd_create("raw", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

    if (fd < 0)
        return -1;
    MUST(ftruncate(fd, (off_t)size) == 0);
    MUST(fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

void
raw_ready(struct raw *r, uint64_t capabilities)
{
    raw_begin(r, capabilities);

    const uint64_t base = raw_offer(r, 0, r->welcome.device_count);
    const bool own = r->welcome.capabilities & HED_CAN_CLIENT_HEAP;

    MUST(base);
    MUST(raw_accept(r, base, own ? raw_memory(0, 0, F_SEAL_SHRINK) : -1) == 0);
}

int
raw_map_host(struct raw *r, uint64_t offset, uint64_t size)
{
    struct hed_map m = {.head = {.size = sizeof m, .kind = HED_MSG_MAP},
                        .kind = HED_MAP_HOST,
                        .device = -1,
                        .at = r->base + (uint64_t)r->welcome.device_count * r->welcome.stride +
                              offset,
                        .size = size};

    return raw_ask(r, &m.head);
}

struct hed_channel *
raw_channel(struct raw *r, const uint8_t *session, struct hed_attach *a)
{
    struct hed_conn *conn = raw_connect(r, HED_PREFACE_CHANNEL, session);
    struct hed_channel *channel = NULL;
    struct hed_why why = {""};

    if (!conn || hed_channel_create(conn, r->address.transport->channel, &channel, &why) != 0)
        return NULL;

    void *out = hed_channel_begin(channel, sizeof *a);

    a->head.size = sizeof *a;
    a->head.kind = HED_MSG_ATTACH;
    if (out)
        memcpy(out, a, sizeof *a);
    if (out && hed_channel_end(channel, sizeof *a, true) == 0)
        return channel;
    hed_channel_free(channel);
    return NULL;
}

bool
raw_is_closed(struct hed_channel *ch)
{
    struct hed_msg *m;
    int err;

    do
        err = hed_channel_next(ch, WAIT_MS, &m);
    while (err == 0 && m->kind == HED_MSG_PING);
    MUST(err == 0 || err == HED_EIO);
    return err != 0;
}

struct hed_attach
raw_attach(const struct raw *r, enum hed_channel_purpose purpose)
{
    struct hed_attach a = {.purpose = purpose};

    memcpy(a.session, r->welcome.session, sizeof a.session);
    memcpy(a.secret, r->welcome.secret, sizeof a.secret);
    return a;
}

struct hed_conn *
raw_orders(struct raw *r, const struct hed_attach *a)
{
    struct hed_conn *conn = raw_connect(r, HED_PREFACE_ORDERS, r->welcome.session);

    if (conn && hed_conn_write(conn, a, sizeof *a) == 0)
        return conn;
    hed_conn_close(conn);
    return NULL;
}

/* ---- parking --------------------------------------------------------------------------------- */

int
raw_ping(struct raw *r)
{
    struct hed_msg m = {.size = sizeof m, .kind = HED_MSG_PING};

    return raw_ask(r, &m);
}

int
raw_park(struct raw *r, uint8_t *key)
{
    struct hed_msg m = {.size = sizeof m, .kind = HED_MSG_PARK};
    const int result = raw_ask(r, &m);

    if (result == 0)
        memcpy(key, ((const struct hed_park_answer *)raw_answer(r))->key, 16);
    return result;
}

bool
raw_return(struct raw *r, const uint8_t *key)
{
    struct hed_attach a = raw_attach(r, HED_CHANNEL_RETURN);
    struct hed_channel *ch;
    int fd;

    memcpy(a.key, key, sizeof a.key);
    ch = raw_channel(r, r->welcome.session, &a);
    if (!ch || raw_is_closed(ch)) {
        hed_channel_free(ch);
        return false;
    }
    MUST(ch->message->kind == HED_MSG_ANSWER);
    MUST(((const struct hed_answer *)ch->message)->result == 0);
    if (hed_channel_shares(ch)) {
        MUST(hed_conn_take_fds(hed_channel_conn(ch), &fd, 1, WAIT_MS) == 0);
        (void)close(fd);
    }
    hed_channel_free(r->channel);
    r->channel = ch;
    memcpy(r->welcome.secret, key, sizeof r->welcome.secret);
    r->tickets = 0;
    return true;
}
