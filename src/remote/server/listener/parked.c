/* Sessions whose clients are away: how many there may be. See listener.h.
 *
 * A parked session costs its client nothing, not even a connection, so one client could leave
 * hundreds behind. What goes first is the oldest of the origin that has most of them. A newcomer
 * takes the place of one only if its origin has fewer clients, so that nobody can drive others out.
 * A worker says itself that it is parked; one that lies about it can only end itself, or count as a
 * client that is there.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "remote/server/listener/listener.h"
#include "remote/server/status.h"
#include "remote/wire/link/link.h"

#define LOOK_NS HED_NS_PER_S

static uint64_t
parked_since(const struct hed_child *c)
{
    if (c->pid <= 0 || c->spare || c->evicted || !c->status)
        return 0;
    /* Relaxed: the worker may write anything there at any time. */
    return atomic_load_explicit(&c->status->parked_ns, memory_order_relaxed);
}

static bool
is_same_origin(const struct hed_child *a, const struct hed_child *b)
{
    return memcmp(&a->origin, &b->origin, sizeof a->origin) == 0;
}

static uint32_t
count_parked_of(const struct hed_server *s, const struct hed_child *of)
{
    uint32_t n = 0;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        n += parked_since(&s->children[i]) && is_same_origin(&s->children[i], of);
    return n;
}

/* The oldest parked session of the origin that has most, at least `least`; NULL if there is none.
 * *all is the number of parked sessions. */
static struct hed_child *
pick_parked_session(struct hed_server *s, uint32_t least, uint32_t *all)
{
    struct hed_child *worst = NULL;
    uint64_t since = 0;
    uint32_t most = 0;

    *all = 0;
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_child *c = &s->children[i];
        const uint64_t at = parked_since(c);

        if (!at)
            continue;
        ++*all;

        const uint32_t n = worst && is_same_origin(c, worst) ? most : count_parked_of(s, c);

        if (n >= least && (n > most || (n == most && at < since))) {
            worst = c;
            most = n;
            since = at;
        }
    }
    return worst;
}

static void
end_parked(struct hed_server *s, struct hed_child *c, const char *why)
{
    hed_warn(SERVER, "worker %d is ended, because its client is away and %s", (int)c->pid, why);
    (void)hed_child_evict(s, (uint64_t)c->pid);
}

static uint32_t
count_clients_of(const struct hed_server *s, const struct hed_origin *o)
{
    uint32_t n = 0;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        const struct hed_child *c = &s->children[i];

        n += c->pid > 0 && !c->spare && !c->evicted && memcmp(&c->origin, o, sizeof *o) == 0;
    }
    return n;
}

bool
hed_parked_make_room(struct hed_server *s, const struct hed_origin *newcomer)
{
    uint32_t all, ending = 0;
    struct hed_child *c;

    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        ending += s->children[i].pid > 0 && !s->children[i].spare && s->children[i].evicted;
    if (s->child_count - hed_min(ending, s->child_count) < s->options->clients)
        return true;
    c = pick_parked_session(s, 1, &all);
    if (!c || count_clients_of(s, &c->origin) <= count_clients_of(s, newcomer))
        return false;
    end_parked(s, c, "others need its place (--clients)");
    return true;
}

/* No connection tells that the client of a parked session has died. Only processes of this machine
 * can be looked for. */
static void
end_deserted(struct hed_server *s)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_child *c = &s->children[i];

        if (!parked_since(c) || !c->link || !c->link->local || c->user.pid <= 0 ||
            kill(c->user.pid, 0) == 0 || errno != ESRCH)
            continue;
        c->deserted = true;
        (void)hed_child_evict(s, (uint64_t)c->pid);
    }
}

uint64_t
hed_parked_look(struct hed_server *s, uint64_t now_ns)
{
    const struct hed_server_options *o = s->options;
    struct hed_child *c;
    uint32_t all;

    if (s->child_count == 0)
        return UINT64_MAX;
    if (now_ns < s->parked_ns)
        return s->parked_ns;
    s->parked_ns = now_ns + LOOK_NS;
    end_deserted(s);
    while (o->parked_source && (c = pick_parked_session(s, o->parked_source + 1, &all)) != NULL)
        end_parked(s, c, "too many others of its origin are, too (--parked-per-source)");
    while ((c = pick_parked_session(s, 1, &all)) != NULL && o->parked && all > o->parked)
        end_parked(s, c, "too many others are, too (--parked)");
    return s->parked_ns;
}
