/* Which users are let in, and how many clients per second. See listener.h. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/listener/listener.h"

#define GROUPS_MAX 4096 /* bytes; the peer's supplementary groups beyond that are ignored */

void
hed_bucket_init(struct hed_bucket *b, uint32_t rate, uint64_t now_ns)
{
    *b = (struct hed_bucket){.rate = rate, .at_ns = now_ns, .tokens = rate};
}

bool
hed_bucket_take(struct hed_bucket *b, uint64_t now_ns)
{
    if (b->rate == 0)
        return true;
    if (now_ns > b->at_ns) {
        b->tokens += (double)(now_ns - b->at_ns) * b->rate / (double)HED_NS_PER_S;
        b->at_ns = now_ns;
    }
    if (b->tokens > b->rate)
        b->tokens = b->rate;
    if (b->tokens < 1)
        return false;
    b->tokens -= 1;
    return true;
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
