/* Which users are let in, how many clients per second, who has how many connections, and how often
 * the log says that one was refused. See listener.h. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "remote/server/listener/listener.h"
#include "remote/wire/link/link.h"

#define KEPT_PART 8     /* who has had n tokens lately leaves n / KEPT_PART to others */
#define GROUPS_MAX 4096 /* bytes; the peer's supplementary groups beyond that are ignored */

void
hed_bucket_init(struct hed_bucket *b, uint32_t rate, uint64_t now_ns)
{
    *b = (struct hed_bucket){.rate = rate, .at_ns = now_ns, .tokens = rate};
}

/* Takes a token if at least one and `kept` are there. */
static bool
take_token(struct hed_bucket *b, uint64_t now_ns, uint32_t kept)
{
    if (b->rate == 0)
        return true;
    if (now_ns > b->at_ns) {
        b->tokens += (double)(now_ns - b->at_ns) * b->rate / (double)HED_NS_PER_S;
        b->at_ns = now_ns;
    }
    if (b->tokens > b->rate)
        b->tokens = b->rate;
    if (b->tokens < 1 + (double)kept)
        return false;
    b->tokens -= 1;
    return true;
}

bool
hed_bucket_take(struct hed_bucket *b, uint64_t now_ns)
{
    return take_token(b, now_ns, 0);
}

static bool
is_among(const uint32_t *list, uint32_t count, uint32_t id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i] == id)
            return true;
    }
    return false;
}

/* Checks the groups that the peer had when it connected, as the kernel recorded them. */
static bool
is_group_allowed(const struct hed_server_options *o, int fd, gid_t gid)
{
    gid_t groups[GROUPS_MAX / sizeof(gid_t)];
    socklen_t size = sizeof groups;

    if (is_among(o->gids, o->gid_count, gid))
        return true;
    if (o->gid_count == 0 || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0)
        return false;
    for (size_t i = 0; i < size / sizeof groups[0]; i++) {
        if (is_among(o->gids, o->gid_count, groups[i]))
            return true;
    }
    return false;
}

bool
hed_user_may(const struct hed_server_options *o, int fd, struct hed_peer_user *out)
{
    *out = (struct hed_peer_user){.uid = (uid_t)-1, .gid = (gid_t)-1};
    if (hed_fd_peer(fd, &out->uid, &out->gid, &out->pid) != 0)
        return false;
    return out->uid == 0 || out->uid == geteuid() || o->allow_all ||
           is_among(o->uids, o->uid_count, out->uid) || is_group_allowed(o, fd, out->gid);
}

/* ---- refusals -------------------------------------------------------------------------------- */

void
hed_server_refused(struct hed_server *s, const struct hed_peer *p, const char *text)
{
    s->refused++;
    if (!hed_bucket_take(&s->quiet, hed_now_ns())) {
        s->unsaid++;
        return;
    }
    if (s->unsaid)
        hed_warn(SERVER, "%llu more clients were refused", (unsigned long long)s->unsaid);
    s->unsaid = 0;
    if (p->link->local)
        hed_warn(SERVER, "refused process %d of user %u: %s", (int)p->user.pid, p->user.uid, text);
    else
        hed_warn(SERVER, "refused %s: %s", p->name, text);
}

/* ---- origins --------------------------------------------------------------------------------- */

struct hed_origin
hed_origin_of(const struct sockaddr_storage *at, uid_t uid)
{
    struct hed_origin o = {.family = at->ss_family};

    if (at->ss_family == AF_INET)
        memcpy(o.bytes, &((const struct sockaddr_in *)at)->sin_addr, 4);
    else if (at->ss_family == AF_INET6) /* who has one address has the whole network */
        memcpy(o.bytes, &((const struct sockaddr_in6 *)at)->sin6_addr, 8);
    else
        memcpy(o.bytes, &uid, sizeof uid);
    return o;
}

struct hed_origin
hed_origin_of_guest(const struct hed_guest *g)
{
    struct hed_origin o = {.family = AF_VSOCK};

    memcpy(o.bytes, &g, sizeof g); /* there is one of each */
    return o;
}

/* The seed keeps a client from choosing an address that shares the number of another's. */
static uint32_t
origin_place(const struct hed_server *s, const struct hed_origin *o)
{
    uint64_t hash = s->origin_seed ^ o->family;

    for (size_t i = 0; i < sizeof o->bytes; i++)
        hash = (hash ^ o->bytes[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    return hash >> 32 & (HED_ORIGINS - 1);
}

/* What an origin has had is forgotten as fast as new tokens come. So one that is alone gets as many
 * per second as all would, only fewer at once. */
bool
hed_origin_may_begin(struct hed_server *s, const struct hed_origin *o, uint64_t now_ns)
{
    struct hed_recent *r = &s->recent[origin_place(s, o)];
    const double gone = (double)(now_ns - r->at_ns) * s->rate.rate / (double)HED_NS_PER_S;

    r->count = r->count > gone ? r->count - gone : 0;
    r->at_ns = now_ns;
    if (!take_token(&s->rate, now_ns, (uint32_t)(r->count / KEPT_PART)))
        return false;
    r->count++;
    return true;
}

void
hed_origin_arrive(struct hed_server *s, const struct hed_origin *o)
{
    s->peer_count++;
    s->origins[origin_place(s, o)]++;
}

void
hed_origin_leave(struct hed_server *s, const struct hed_origin *o)
{
    s->peer_count--;
    s->origins[origin_place(s, o)]--;
}

uint32_t
hed_origin_count(struct hed_server *s, const struct hed_origin *o)
{
    return s->origins[origin_place(s, o)];
}
