/* See offers.h. */
#include "remote/server/listener/offers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "remote/server/listener/listener.h"

struct opening { /* by one worker */
    struct opening *next;
    uint32_t place; /* of the worker, among the children */
    uint32_t count; /* how often it has opened it */
};

struct hed_offer {
    struct hed_offer *next;
    uint8_t key[HED_DESK_KEY];
    uint8_t owner[HED_DESK_OWNER];
    char client[HED_OWNER_NAME]; /* whose workers may open it */
    struct hed_conn_who who;
    int place;  /* of the worker that has offered it; -1: that one does not have it any more */
    int fd;     /* -1: it can no longer be opened */
    int device; /* whose ledger has it; HED_DESK_NO_DEVICE: none has */
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
find_offer_by_key(const struct hed_server *s, const uint8_t key[HED_DESK_KEY])
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

/* Would one more be too many? */
static bool
is_full_of_offers(const struct hed_server *s, const struct hed_child *c)
{
    uint32_t all = 0, owners = 0, own = 0;
    struct rlimit r;

    for (const struct hed_offer *o = s->offers; o; o = o->next) {
        all++;
        owners += is_owners(o, c);
        own += o->place == (int)place_of_worker(s, c);
    }
    return own >= HED_OFFERS_WORKER || owners >= HED_OFFERS_OWNER ||
           getrlimit(RLIMIT_NOFILE, &r) != 0 || all >= r.rlim_cur / HED_OFFERS_PART;
}

static bool
is_sensible(const struct hed_desk_ask *ask)
{
    return (ask->thing == HED_DESK_MEMORY || ask->thing == HED_DESK_EVENT) &&
           (ask->device == HED_DESK_NO_DEVICE ||
            (ask->device >= 0 && ask->device < HED_DESK_PLACES));
}

void
hed_offers_wipe(const struct hed_server *s)
{
    for (struct hed_offer *o = s->offers; o; o = o->next) {
        explicit_bzero(o->key, sizeof o->key);
        explicit_bzero(o->owner, sizeof o->owner);
    }
}

/* A worker has its client's socket, and closing one can take as long as its options say. */
static bool
is_socket(int fd)
{
    struct stat st;

    return fstat(fd, &st) != 0 || S_ISSOCK(st.st_mode);
}

int
hed_offer_make(struct hed_server *s, const struct hed_child *c, const struct hed_desk_ask *ask,
               int fd, struct hed_desk_answer *answer)
{
    struct hed_offer *o = NULL;
    int err = 0;

    if (fd < 0 || !is_sensible(ask) || is_socket(fd))
        err = HED_EINVAL;
    else if (!is_somebody(c->client))
        err = HED_EACCESS;
    else if (is_full_of_offers(s, c))
        err = HED_ELIMIT;
    else if (!(o = calloc(1, sizeof *o)) ||
             getrandom(o->key, sizeof o->key, GRND_NONBLOCK) != (ssize_t)sizeof o->key)
        err = HED_ENOMEM;
    if (err) {
        free(o);
        if (fd >= 0)
            (void)close(fd);
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
hed_offer_withdraw(struct hed_server *s, const struct hed_child *c, const uint8_t key[HED_DESK_KEY])
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
    if (o->device != HED_DESK_NO_DEVICE &&
        !hed_ledger_open(&s->ledger, place, o->device, o->bytes, limit)) {
        free(p);
        return HED_ENOMEM;
    }
    *p = (struct opening){.next = o->openings, .place = place, .count = 1};
    o->openings = p;
    return 0;
}

int
hed_offer_open(struct hed_server *s, const struct hed_child *c, const struct hed_desk_ask *ask,
               struct hed_desk_answer *answer, int *fd)
{
    struct hed_offer *o = find_offer_by_key(s, ask->key);

    /* A client is not told that another owner has such a key. */
    if (!is_somebody(c->client) || !o || !is_owners(o, c) || o->fd < 0 || o->thing != ask->thing)
        return HED_ENOTFOUND;
    if (o->place == (int)place_of_worker(s, c))
        return HED_ESTATE;

    const int err =
        add_opening(s, o, place_of_worker(s, c),
                    o->device == HED_DESK_HOST ? s->options->host_memory : s->options->memory);

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

    if (o->device != HED_DESK_NO_DEVICE)
        hed_ledger_close(&s->ledger, p->place, o->device, o->bytes);
    *link = p->next;
    free(p);
    if (o->openings || o->place >= 0)
        return;
    hed_ledger_bury(&s->ledger, o->device, o->orphaned);
    free_offer(s, o);
}

void
hed_offer_close(struct hed_server *s, const struct hed_child *c, const uint8_t key[HED_DESK_KEY])
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
