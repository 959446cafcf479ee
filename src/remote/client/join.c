/* Joining a worker: hello, devices, the arena, shared memory. See remote.h.
 *
 * A client joins its first worker with connect, which also learns what the program's devices are.
 * It may join others later (mover.h), as long as they can have the same arena; the program's
 * devices stay what they were.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/reserve.h"
#include "base/sealed.h"
#include "base/str.h"
#include "base/thread.h"
#include "core/config.h"
#include "driver/driver.h"
#include "gen/cuda_hash.h"
#include "gen/nvml_hash.h"
#include "remote/client/mover.h"
#include "remote/client/remote.h"
#include "remote/wire/link/link.h"
#include "remote/wire/window.h"

#define OFFERS_MAX 16  /* addresses for the arena that are tried */
#define BEGIN_TIMES 12 /* times the time to connect, since a driver may take that long to start */

/* ---- hello ----------------------------------------------------------------------------------- */

static void
fill_hello(const struct hed_remote *r, bool secure, struct hed_hello *h)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    memset(h, 0, sizeof *h);
    h->head.size = sizeof *h;
    h->head.kind = HED_MSG_HELLO;
    h->major = HED_WIRE_MAJOR;
    h->minor = HED_WIRE_MINOR;
    h->transport = r->address.transport->id;
    h->cuda_ids = HED_CUDA_HASH;
    h->nvml_ids = HED_NVML_HASH;
    h->capabilities = HED_REMOTE_CAN | (hed_remote_heap_can_grow() ? HED_CAN_CLIENT_HEAP : 0) |
                      (r->mover ? r->mover->capabilities(r) : 0);
    h->pid = (uint32_t)getpid();
    h->page = (uint32_t)sysconf(_SC_PAGESIZE);
    (void)hed_str_copy(h->version, sizeof h->version, HED_VERSION);
    (void)hed_str_copy(h->name, sizeof h->name, program_invocation_short_name);
    (void)hed_str_copy(h->visible, sizeof h->visible, visible ? visible : "-");
    if (secure) /* the token is a secret */
        (void)hed_str_copy(h->token, sizeof h->token, r->token);
}

/* The text is shown to people, and the server may be hostile. */
static void
take_shown_text(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < ' ' || (unsigned char)*p == 0x7f)
            *p = '?';
}

static int
take_welcome(struct hed_remote *r, struct hed_conn *conn, uint32_t *devices, struct hed_why *why)
{
    struct hed_welcome a;
    int err = hed_conn_read(conn, &a, sizeof a, BEGIN_TIMES * r->timeout_ms);

    if (err == HED_ETIME) {
        hed_why_set(why,
                    "the server does not answer; is heddled stopped, or does its driver hang?");
        return err;
    }
    if (err || a.head.head.size != sizeof a || a.head.head.kind != HED_MSG_ANSWER) {
        hed_why_set(why, "%s%s",
                    err ? "the server hung up instead of answering; its log says why"
                        : "the answer is not that of heddled; check the address",
                    !r->address.transport->link->private && r->tls.insecure
                        ? " (does it use TLS? Then set tls_ca, not insecure)"
                        : "");
        return err ? err : HED_EFORMAT;
    }
    take_shown_text(a.text, sizeof a.text);
    if (a.head.result != CUDA_SUCCESS) {
        hed_why_set(why, "the server refuses: %s", a.text);
        return HED_EACCESS;
    }
    if (a.major != HED_WIRE_MAJOR || a.device_count > HED_PROFILE_DEVICES_MAX || a.stride == 0 ||
        (a.stride & (a.stride - 1)) || a.usable > a.stride || a.stride > UINT64_C(1) << 40 ||
        a.map_unit == 0 || a.slots > HED_SLOTS_MAX) {
        hed_why_set(why, "the server sent an invalid welcome");
        return HED_EFORMAT;
    }
    memcpy(r->session, a.session, sizeof r->session);
    memcpy(r->secret, a.secret, sizeof r->secret);
    r->capabilities = a.capabilities;
    r->backend = (enum hed_wire_backend)a.backend;
    r->stride = a.stride;
    r->usable = a.usable;
    r->map_unit = a.map_unit;
    r->slot_count = a.slots;
    if (!r->turns) /* those of the first worker hold for later ones */
        hed_remote_turns_told(r, a.head.head.thread);
    *devices = a.device_count;
    return 0;
}

/* A worker that is being joined. */
struct joining {
    struct hed_channel *channel;        /* the first one */
    uint32_t there;                     /* devices of the server */
    struct hed_profile_device *devices; /* HED_PROFILE_DEVICES_MAX of them */
    bool real[HED_PROFILE_DEVICES_MAX];
};

/* ---- the arena ------------------------------------------------------------------------------- */

static int
ask_arena(struct hed_channel *channel, const struct hed_arena_offer *what, uint64_t *offered)
{
    struct hed_arena_offer *o = hed_channel_begin(channel, sizeof *o);
    struct hed_msg *m;
    int err;

    if (!o)
        return HED_EIO;
    memset(o, 0, sizeof *o);
    o->head.size = sizeof *o;
    o->head.kind = HED_MSG_ARENA;
    o->head.flags = HED_MSG_WANTS_ANSWER;
    o->base = what->base;
    o->refused = what->refused;
    o->want = what->want;
    o->devices = what->devices;
    err = hed_channel_end(channel, sizeof *o, true);
    if (!err)
        err = hed_channel_next(channel, -1, &m);
    if (!err && (m->kind != HED_MSG_ANSWER || m->size != sizeof(struct hed_arena_answer)))
        err = HED_EFORMAT;
    if (!err)
        *offered = ((const struct hed_arena_answer *)m)->base;
    return err;
}

/* Accepts a base that this process has reserved. If the heap is ours, the worker gets it first. */
static int
accept_arena(struct hed_remote *r, struct hed_channel *channel, uint64_t base)
{
    uint64_t accepted = 0;
    int err = r->capabilities & HED_CAN_CLIENT_HEAP
                  ? hed_remote_heap_send(r, hed_channel_conn(channel))
                  : 0;

    if (!err)
        err = ask_arena(channel, &(struct hed_arena_offer){.base = base}, &accepted);
    return err ? err : accepted == base ? 0 : HED_EFORMAT;
}

/* Takes the first base that is free here, too. `shares` are those of devices. */
static int
agree_on_arena(struct hed_remote *r, struct hed_channel *channel, uint32_t shares,
               struct hed_why *why)
{
    struct hed_arena_offer offer = {.devices = shares};
    uint64_t offered = 0;
    int err = 0;

    for (int i = 0; i < OFFERS_MAX && !err; i++) {
        err = ask_arena(channel, &offer, &offered);
        if (err || !offered)
            break;
        if (hed_reserve_addresses(offered, ((uint64_t)shares + 1) * r->stride)) {
            err = accept_arena(r, channel, offered);
            r->arena = offered;
            break;
        }
        offer.refused = offered;
    }
    if (!err && !r->arena)
        err = HED_ENOMEM;
    if (err)
        hed_why_set(why, "found no addresses that are free both here and at the server: %s",
                    hed_err_text(err));
    return err;
}

int
hed_remote_reserve(void *m, uint64_t want, uint64_t size, uint64_t *base)
{
    const struct hed_remote *r = m;

    (void)want;
    if (size != r->size)
        return HED_ERANGE; /* the driver then asks for less until it fits */
    *base = r->base;
    return 0;
}

/* Takes the page of slots, which the worker sends once the arena is agreed, and the heap, if that
 * is the worker's. */
static int
take_shared_memory(struct hed_remote *r, struct hed_conn *conn, struct hed_why *why)
{
    const size_t size = r->slot_count * sizeof *r->slots;
    const int count = r->capabilities & HED_CAN_CLIENT_HEAP ? 1 : 2;
    int fds[2] = {-1, -1};
    int err = hed_conn_take_fds(conn, fds, count, r->timeout_ms);

    if (err) {
        hed_why_set(why, "the server did not send its shared memory: %s", hed_err_text(err));
        return err;
    }
    /* They must not shrink: touching memory that is no longer there would kill the program. */
    if (!hed_fd_is_sealed(fds[0], size) || (count > 1 && !hed_fd_is_sealed(fds[1], r->usable))) {
        for (int i = 0; i < count; i++)
            (void)close(fds[i]);
        hed_why_set(why, "the server sent shared memory that is too small or not sealed");
        return HED_EFORMAT;
    }
    r->slots = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    (void)close(fds[0]);
    if (count > 1)
        r->heap = fds[1];
    if (r->slots == MAP_FAILED) {
        r->slots = NULL;
        hed_why_set(why, "the server's shared memory cannot be mapped");
        return HED_ENOMEM;
    }
    return 0;
}

/* The same in a guest: slots and heap are in its window, of which the channel has a piece. */
static int
take_window(struct hed_remote *r, struct hed_channel *channel, struct hed_why *why)
{
    void *slots = NULL;
    const struct hed_window *window = hed_channel_window_of(channel, &slots);

    if (r->slot_count * sizeof *r->slots > HED_CHANNEL_SLOTS) {
        hed_why_set(why, "the server sent an invalid welcome");
        return HED_EFORMAT;
    }
    r->heap = fcntl(window->fd, F_DUPFD_CLOEXEC, 0);
    if (r->heap < 0) {
        hed_why_set(why, "no descriptor is left for the window");
        return HED_ENOMEM;
    }
    r->in_window = true;
    r->window = *window;
    r->window.fd = r->heap;
    r->slots = slots;
    return 0;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static int
read_settings(struct hed_remote *r, const struct hed_config *c, struct hed_why *why)
{
    r->timeout_ms = (int)c->connect_timeout;
    r->silent_ms = (int)c->server_timeout;
    (void)hed_str_copy(r->tls.ca, sizeof r->tls.ca, c->tls_ca);
    (void)hed_str_copy(r->tls.cert, sizeof r->tls.cert, c->tls_cert);
    (void)hed_str_copy(r->tls.key, sizeof r->tls.key, c->tls_key);
    (void)hed_str_copy(r->token, sizeof r->token, c->tls_token);
    r->tls.insecure = strcmp(c->insecure, "yes") == 0;
    return hed_address_parse(c->gpu, &r->address, why);
}

static int
exchange_hello(struct hed_remote *r, struct hed_conn **conn, uint32_t *count, struct hed_why *why)
{
    struct hed_why reason = {""};
    char text[HED_ADDRESS_TEXT];
    struct hed_hello hello;
    int err = hed_remote_call_on(r, HED_PREFACE_NEW, conn, why);

    if (err)
        return err;
    fill_hello(r, hed_conn_secure(*conn), &hello);
    /* A server that refuses may have closed the connection already, but its answer can still be
     * read. */
    (void)hed_conn_write(*conn, &hello, sizeof hello);
    err = take_welcome(r, *conn, count, &reason);
    if (err) {
        hed_conn_close(*conn);
        hed_address_text(&r->address, text, sizeof text);
        hed_why_set(why, "%s: %s", text, reason.text);
    }
    return err;
}

/* A guest that has no vsock may reach its host over the network. The user has said how that is
 * secured; otherwise there is nothing to fall back to. */
static int
say_hello(struct hed_remote *r, struct hed_conn **conn, uint32_t *count, struct hed_why *why)
{
    const bool any = r->address.transport->id == HED_TRANSPORT_VM && !r->address.host[0];
    int err = exchange_hello(r, conn, count, why);

    if (err != HED_ENOTSUP || !any || (!r->tls.insecure && !r->tls.ca[0]) ||
        hed_vm_gateway("/proc/net/route", &r->address) != 0)
        return err;
    hed_info(REMOTE, "there is no vsock, so the host is reached over TCP");
    return exchange_hello(r, conn, count, why);
}

/* Hello, a first channel, and the server's devices. */
static int
meet_worker(struct hed_remote *r, struct joining *j, struct hed_why *why)
{
    struct hed_conn *conn;
    int err = say_hello(r, &conn, &j->there, why);

    if (!err)
        err = hed_channel_create(conn, r->address.transport->channel, &j->channel, why);
    if (!err)
        err = hed_remote_patience(r, j->channel);
    if (!err && j->there > HED_PROFILE_DEVICES_MAX)
        err = HED_ELIMIT;
    if (!err &&
        (err = hed_remote_take_devices(r, j->channel, j->there, j->real, j->devices)) != 0) {
        char text[HED_ADDRESS_TEXT];

        hed_address_text(&r->address, text, sizeof text);
        hed_why_set(why, "%s: the server did not send its devices: %s%s", text, hed_err_text(err),
                    r->address.transport->id == HED_TRANSPORT_SHM
                        ? " (is it on this machine? Over a forwarded socket use unix:)"
                        : "");
    }
    return err;
}

/* The arena is agreed: takes what both sides share. */
static int
share_memory(struct hed_remote *r, struct hed_channel *channel, struct hed_why *why)
{
    r->shares_heap = hed_channel_shares(channel);
    if (hed_channel_window_of(channel, &(void *){NULL}))
        return take_window(r, channel, why);
    return r->shares_heap ? take_shared_memory(r, hed_channel_conn(channel), why) : 0;
}

int
hed_remote_connect(struct hed_remote *r, const struct hed_config *config,
                   struct hed_profile_device *devices, size_t *count, struct hed_why *why)
{
    struct joining j = {.devices = devices};
    int err = read_settings(r, config, why);

    if (!err)
        err = meet_worker(r, &j, why);
    /* Before 2.1 there is a share for each of the server's devices, and we use the last ones. */
    if (!err) {
        *count = hed_remote_choose_visible(r, devices, j.there, j.real);
        err = agree_on_arena(r, j.channel,
                             r->capabilities & HED_CAN_BASE ? (uint32_t)*count : j.there, why);
    }
    if (!err)
        err = share_memory(r, j.channel, why);
    if (err) {
        hed_channel_free(j.channel);
        return err;
    }
    r->all_in_heap = r->shares_heap;
    r->base = r->arena;
    if (!(r->capabilities & HED_CAN_BASE))
        r->base += (j.there - *count) * r->stride;
    r->size = (*count + 1) * r->stride;
    return hed_remote_channel_add(r, j.channel, 0) ? 0 : HED_ENOMEM;
}

/* ---- another worker -------------------------------------------------------------------------- */

/* The worker must be able to have the arena where it is. */
static int
keep_arena(struct hed_remote *r, struct hed_channel *channel, const struct hed_remote *before,
           struct hed_why *why)
{
    const struct hed_arena_offer offer = {.devices = (uint32_t)r->device_count, .want = r->base};
    uint64_t offered = 0;
    int err = 0;

    if (!(r->capabilities & HED_CAN_BASE) || r->stride != before->stride ||
        r->usable != before->usable) {
        hed_why_set(why, "the server lays out addresses in another way (is it an older heddle?)");
        return HED_ENOTSUP;
    }
    err = ask_arena(channel, &offer, &offered);
    if (!err && offered != r->base) {
        hed_why_set(why, "the server cannot have the program's addresses, which begin at %#llx",
                    (unsigned long long)r->base);
        return HED_ENOTSUP;
    }
    return err ? err : accept_arena(r, channel, r->base);
}

int
hed_remote_join_again(struct hed_remote *r, struct hed_channel **out, struct hed_why *why)
{
    const struct hed_remote before = {.stride = r->stride, .usable = r->usable};
    struct hed_profile_device *devices = calloc(HED_PROFILE_DEVICES_MAX, sizeof *devices);
    struct joining j = {.devices = devices};
    int err = devices ? meet_worker(r, &j, why) : HED_ENOMEM;

    if (!err)
        err = hed_remote_choose_again(r, devices, j.there, j.real, why);
    if (!err)
        err = keep_arena(r, j.channel, &before, why);
    if (!err)
        err = share_memory(r, j.channel, why);
    if (!err && hed_channel_window_of(j.channel, &(void *){NULL})) {
        hed_why_set(why, "a program cannot move into the window of a QEMU guest");
        err = HED_ENOTSUP;
    }
    r->stride = before.stride;
    r->usable = before.usable;
    free(devices);
    if (err)
        hed_channel_free(j.channel);
    else
        *out = j.channel;
    return err;
}

/* The calling thread gets the first channel. */
int
hed_remote_first_channel(struct hed_remote *r, struct hed_channel *channel)
{
    struct hed_remote_channel *ch = hed_remote_channel_of_thread(r);

    if (ch)
        hed_remote_channel_use(ch, channel);
    if (ch || hed_remote_channel_add(r, channel, 0))
        return 0;
    hed_channel_free(channel);
    return HED_ENOMEM;
}
