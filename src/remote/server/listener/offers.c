/* See offers.h. */
#include "remote/server/listener/offers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/number.h"
#include "base/sealed.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"

#define STAT_BLOCK 512u /* bytes; the unit of st_blocks on Linux */

struct opening { /* by one worker */
    struct opening *next;
    uint32_t place; /* of the worker, among the children */
    uint32_t count; /* how often it has opened it */
};

struct hed_offer {
    struct hed_offer *next;
    uint8_t key[HED_LEASE_SOCKET_KEY];
    uint8_t owner[HED_LEASE_SOCKET_OWNER];
    char client[HED_OWNER_NAME]; /* whose workers may open it */
    struct hed_conn_who who;
    int place;  /* of the worker that has offered it; -1: that one does not have it any more */
    int fd;     /* -1: it can no longer be opened */
    int device; /* whose ledger has it; HED_LEASE_SOCKET_NO_DEVICE: none has */
    uint32_t thing;
    uint64_t bytes;
    uint64_t orphaned; /* of these, in the ledger without a lease */
    struct opening *openings;
};

/* hed_confine_owner(): an address is not somebody. */
static bool
is_somebody(const char *client)
{
    return client[0] && strncmp(client, "net-", 4) != 0;
}

bool
hed_offers_may(const struct hed_peer *p)
{
    char client[HED_OWNER_NAME];

    hed_confine_owner(p, client, sizeof client);
    return is_somebody(client);
}

static uint32_t
place_of_worker(const struct hed_server *s, const struct hed_child *c)
{
    return (uint32_t)(c - s->children);
}

static bool
is_owners(const struct hed_offer *o, const struct hed_child *c)
{
    return strcmp(o->client, c->client) == 0 && o->who.certified == c->who.certified &&
           memcmp(o->who.subject, c->who.subject, sizeof o->who.subject) == 0;
}

static struct hed_offer *
find_offer_by_key(const struct hed_server *s, const uint8_t key[HED_LEASE_SOCKET_KEY])
{
    struct hed_offer *o = s->offers;

    while (o && !hed_same_secret(o->key, key, sizeof o->key))
        o = o->next;
    return o;
}

static void
free_offer(struct hed_server *s, struct hed_offer *o)
{
    struct hed_offer **link = &s->offers;

    while (*link != o)
        link = &(*link)->next;
    *link = o->next;
    if (o->fd >= 0)
        (void)close(o->fd);
    free(o);
}

/* ---- offering -------------------------------------------------------------------------------- */

/* Would one more be too many? An owner gets at most half of what other owners leave, and a worker
 * half of what other workers of its owner leave. So there is something for everybody who comes. */
static bool
is_full_of_offers(const struct hed_server *s, const struct hed_child *c)
{
    uint64_t all = 0, owners = 0, own = 0;
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) != 0)
        return true;
    for (const struct hed_offer *o = s->offers; o; o = o->next) {
        all++;
        owners += is_owners(o, c);
        own += o->place == (int)place_of_worker(s, c);
    }

    const uint64_t most = r.rlim_cur / HED_OFFERS_PART;
    const uint64_t left = most - hed_min(most, all - owners);
    const uint64_t for_owner = hed_min(HED_OFFERS_OWNER, (left + 1) / 2);
    const uint64_t for_worker = (for_owner - hed_min(for_owner, owners - own) + 1) / 2;

    return owners >= for_owner || own >= hed_min(HED_OFFERS_WORKER, for_worker);
}

/* Events are in nobody's lease, memory is in that of its device. */
static bool
is_sensible(const struct hed_lease_socket_ask *ask)
{
    return ask->thing == HED_LEASE_SOCKET_EVENT
               ? ask->device == HED_LEASE_SOCKET_NO_DEVICE && ask->bytes == 0
               : ask->thing == HED_LEASE_SOCKET_MEMORY && ask->device >= 0 &&
                     ask->device < HED_LEASE_SOCKET_PLACES;
}

/* Bytes of a worker's lease that are in its offers. */
static uint64_t
bytes_offered(const struct hed_server *s, uint32_t place, int device)
{
    uint64_t sum = 0;

    for (const struct hed_offer *o = s->offers; o; o = o->next)
        sum += o->place == (int)place && o->device == device ? o->bytes : 0;
    return sum;
}

uint64_t
hed_offers_leave(const struct hed_server *s, uint32_t place, int device)
{
    if (device < 0 || device >= HED_LEASE_SOCKET_PLACES)
        return 0;

    const uint64_t leased = s->ledger.leased[place][device];

    return leased - hed_min(leased, bytes_offered(s, place, device));
}

/* The system may give a file large pages, the last of which is not full. */
static uint64_t
large_page(void)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return page * (page / sizeof(uint64_t));
}

/* Is the descriptor what the worker says that it offers, and no more? A worker that was taken over
 * could otherwise give others memory that is in no lease, and no limit would hold. */
static bool
is_as_large_as_told(const struct hed_server *s, const struct hed_lease_socket_ask *ask, int fd)
{
    const bool event = ask->thing == HED_LEASE_SOCKET_EVENT;
    uint64_t size, taken;
    struct stat st;

    if (fstat(fd, &st) != 0)
        return false;
    /* Memory of a GPU is known to NVIDIA's driver only. The descriptor is one of its device, or has
     * no place in a file system (dma-buf). */
    if (s->plan.driver && !event && (S_ISCHR(st.st_mode) || !(st.st_mode & S_IFMT)))
        return true;
    return hed_fd_is_fixed(fd, &size, &taken) && taken <= size + large_page() &&
           size <= (event ? HED_LEASE_SOCKET_EVENT_SIZE : ask->bytes + HED_LEASE_SOCKET_MORE);
}

/* No client can make an honest worker do this. */
static void
warn_of_offer(struct hed_server *s, const struct hed_child *c, const char *what)
{
    if (hed_bucket_take(&s->quiet, hed_now_ns()))
        hed_warn(SERVER, "worker %d offers others %s: refused", (int)c->pid, what);
}

/* Whether this may be offered: 0, or why not. */
static int
check_offer(struct hed_server *s, const struct hed_child *c, const struct hed_lease_socket_ask *ask,
            int fd)
{
    const uint32_t place = place_of_worker(s, c);

    if (fd < 0 || !is_sensible(ask))
        return HED_EINVAL;
    if (!is_somebody(c->client))
        return HED_EACCESS;
    if (ask->thing == HED_LEASE_SOCKET_MEMORY &&
        ask->bytes > hed_offers_leave(s, place, ask->device)) {
        warn_of_offer(s, c, "memory that it has not leased");
        return HED_EINVAL;
    }
    if (!is_as_large_as_told(s, ask, fd)) {
        warn_of_offer(s, c, "a file that is larger than it says, or can grow");
        return HED_EINVAL;
    }
    return is_full_of_offers(s, c) ? HED_ELIMIT : 0;
}

void
hed_offers_wipe(const struct hed_server *s)
{
    for (struct hed_offer *o = s->offers; o; o = o->next) {
        explicit_bzero(o->key, sizeof o->key);
        explicit_bzero(o->owner, sizeof o->owner);
    }
}

int
hed_offer_make(struct hed_server *s, const struct hed_child *c,
               const struct hed_lease_socket_ask *ask, int fd,
               struct hed_lease_socket_answer *answer)
{
    struct hed_offer *o = NULL;
    int err = check_offer(s, c, ask, fd);

    if (!err && (!(o = calloc(1, sizeof *o)) ||
                 getrandom(o->key, sizeof o->key, GRND_NONBLOCK) != (ssize_t)sizeof o->key))
        err = HED_ENOMEM;
    if (err) {
        free(o);
        hed_lease_socket_drop(fd);
        return err;
    }
    memcpy(o->owner, ask->owner, sizeof o->owner);
    memcpy(o->client, c->client, sizeof o->client);
    o->who = c->who;
    o->place = (int)place_of_worker(s, c);
    o->fd = fd;
    o->device = ask->device;
    o->thing = ask->thing;
    o->bytes = ask->bytes;
    o->next = s->offers;
    s->offers = o;
    memcpy(answer->key, o->key, sizeof answer->key);
    return 0;
}

/* Its worker does not have it any more. Returns how much of the worker's lease has gone with it. */
static uint64_t
give_up_offer(struct hed_server *s, struct hed_offer *o)
{
    const uint32_t place = (uint32_t)o->place;

    if (o->openings)
        o->orphaned = hed_ledger_orphan(&s->ledger, place, o->device, o->bytes);

    const uint64_t gone = o->orphaned;

    o->place = -1;
    if (o->fd >= 0)
        (void)close(o->fd);
    o->fd = -1;
    if (!o->openings)
        free_offer(s, o);
    return gone;
}

uint64_t
hed_offer_withdraw(struct hed_server *s, const struct hed_child *c,
                   const uint8_t key[HED_LEASE_SOCKET_KEY])
{
    struct hed_offer *o = find_offer_by_key(s, key);

    return o && o->place == (int)place_of_worker(s, c) ? give_up_offer(s, o) : 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct opening **
find_opening(struct hed_offer *o, uint32_t place)
{
    struct opening **link = &o->openings;

    while (*link && (*link)->place != place)
        link = &(*link)->next;
    return link;
}

/* How many different things a worker has opened. */
static uint32_t
count_openings(const struct hed_server *s, uint32_t place)
{
    uint32_t n = 0;

    for (struct hed_offer *o = s->offers; o; o = o->next)
        n += *find_opening(o, place) != NULL;
    return n;
}

static int
add_opening(struct hed_server *s, struct hed_offer *o, uint32_t place, uint64_t limit)
{
    struct opening *p = *find_opening(o, place);

    if (p) {
        p->count++;
        return 0;
    }
    if (count_openings(s, place) >= HED_OFFERS_WORKER)
        return HED_ELIMIT;
    p = calloc(1, sizeof *p);
    if (!p)
        return HED_ENOMEM;
    if (o->device != HED_LEASE_SOCKET_NO_DEVICE &&
        !hed_ledger_open(&s->ledger, place, o->device, o->bytes, limit)) {
        free(p);
        return HED_ENOMEM;
    }
    *p = (struct opening){.next = o->openings, .place = place, .count = 1};
    o->openings = p;
    return 0;
}

int
hed_offer_open(struct hed_server *s, const struct hed_child *c,
               const struct hed_lease_socket_ask *ask, struct hed_lease_socket_answer *answer,
               int *fd)
{
    struct hed_offer *o = find_offer_by_key(s, ask->key);

    /* A client is not told that another owner has such a key. */
    if (!is_somebody(c->client) || !o || !is_owners(o, c) || o->fd < 0 || o->thing != ask->thing)
        return HED_ENOTFOUND;
    if (o->place == (int)place_of_worker(s, c))
        return HED_ESTATE;

    const int err = add_opening(s, o, place_of_worker(s, c),
                                o->device == HED_LEASE_SOCKET_HOST ? s->options->host_memory
                                                                   : s->options->memory);

    if (err)
        return err;
    answer->bytes = o->bytes;
    answer->device = o->device;
    memcpy(answer->owner, o->owner, sizeof answer->owner);
    *fd = o->fd;
    return 0;
}

static void
drop_opening(struct hed_server *s, struct hed_offer *o, struct opening **link)
{
    struct opening *p = *link;

    if (o->device != HED_LEASE_SOCKET_NO_DEVICE)
        hed_ledger_close(&s->ledger, p->place, o->device, o->bytes);
    *link = p->next;
    free(p);
    if (o->openings || o->place >= 0)
        return;
    hed_ledger_bury(&s->ledger, o->device, o->orphaned);
    free_offer(s, o);
}

void
hed_offer_close(struct hed_server *s, const struct hed_child *c,
                const uint8_t key[HED_LEASE_SOCKET_KEY])
{
    struct hed_offer *o = find_offer_by_key(s, key);
    struct opening **link = o ? find_opening(o, place_of_worker(s, c)) : NULL;

    if (link && *link && --(*link)->count == 0)
        drop_opening(s, o, link);
}

void
hed_offers_forget(struct hed_server *s, const struct hed_child *c)
{
    const uint32_t place = place_of_worker(s, c);
    struct hed_offer *next;

    for (struct hed_offer *o = s->offers; o; o = next) {
        next = o->next;
        if (o->place == (int)place)
            (void)give_up_offer(s, o);
        else if (*find_opening(o, place))
            drop_opening(s, o, find_opening(o, place));
    }
}

/* ---- counting -------------------------------------------------------------------------------- */

/* What there really is of an offer that others have opened, which may be more than its worker has
 * touched. */
static uint64_t
real_bytes(const struct hed_offer *o)
{
    struct stat st;

    return o->openings && fstat(o->fd, &st) == 0 ? (uint64_t)st.st_blocks * STAT_BLOCK : 0;
}

void
hed_offers_count(const struct hed_server *s, const struct hed_child *c, uint64_t *own,
                 uint64_t *others)
{
    const uint32_t place = place_of_worker(s, c);

    *own = *others = 0;
    for (struct hed_offer *o = s->offers; o; o = o->next) {
        if (o->place == (int)place)
            *own += real_bytes(o);
        /* The first of those that have an orphan takes the place of its owner. */
        else if (*find_opening(o, place) && (o->place >= 0 || o->openings->place != place))
            *others += o->bytes;
    }
}
