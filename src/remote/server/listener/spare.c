/* Spares: workers that are started before their client comes (--spare). What they do is in
 * remote/server/worker/spare.c.
 *
 *   look ──fork──> warming ──ready──> spare ──client──> an ordinary worker
 *     ^               │ ends             │ ends            │
 *     └─ back-off ────┴──────────────────┴─ a second ──────┘
 *
 * A spare has a place among the children, and with it a user, a control group and a lease socket,
 * but it is no client: it counts for no limit of clients, and has no leases.
 *
 * The sandbox of a worker has the folders of its client, and nothing can be added to it later. So a
 * spare is for one owner of folders: that of the client that came last. Other clients get a new
 * worker, and so do guests, and clients that have not chosen the device that the spare has a
 * context of.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "remote/server/hello.h"
#include "remote/server/listener/listener.h"
#include "remote/server/listener/offers.h"
#include "remote/server/status.h"
#include "remote/wire/link/link.h"

/* A new spare loads the driver and makes a context, which would slow down the client that has just
 * come. */
#define AFTER_CLIENT_MS 1000
#define AFTER_END_MS 1000 /* doubled with each that was never ready */
#define DOUBLINGS_MAX 6

/* ---- how many -------------------------------------------------------------------------------- */

static bool
keeps_spares(const struct hed_server *s)
{
    /* A layer that works with other processes would show them a program that is none. */
    return s->options->spare && !s->plan.shares;
}

/* Users that have not come yet are unknown, but the server's own is a good guess. */
static void
guess_owner(struct hed_server *s)
{
    const struct hed_server_options *o = s->options;
    const uint32_t uid =
        geteuid() == 0 && o->uid_count == 1 && !o->allow_all ? o->uids[0] : geteuid();

    for (uint32_t i = 0; i < o->listen_count && !s->spare_owner[0]; i++)
        if (o->listen[i].transport->link->local)
            (void)snprintf(s->spare_owner, sizeof s->spare_owner, "uid-%u", uid);
}

void
hed_spares_begin(struct hed_server *s)
{
    if (s->options->spare && s->plan.shares)
        hed_warn(SERVER, "--spare has no effect: a layer in the settings (trace, sched, record, "
                         "mem_group) uses files or other processes");
    s->ledger.kept[0] = keeps_spares(s) && s->plan.driver ? s->options->spare * HED_SPARE_BYTES : 0;
    s->spare_failures = 0;
    guess_owner(s);
    (void)hed_spares_end(s, 0);
}

/* How many there should be: no more than clients may still come. A place is left for a client that
 * no spare fits. */
static uint32_t
count_wanted(const struct hed_server *s)
{
    const uint32_t clients = s->options->clients;
    const uint32_t places = hed_child_places(s);
    const uint32_t taken = s->child_count;

    if (!keeps_spares(s) || s->stopping || s->probe >= 0 || taken >= clients ||
        taken + 1 >= places || (s->sandbox.steps && !s->spare_owner[0]))
        return 0;
    return hed_min(s->options->spare, hed_min(clients - taken, places - taken - 1));
}

/* ---- starting and ending --------------------------------------------------------------------- */

static bool
is_spare(const struct hed_child *c)
{
    return c->pid > 0 && c->spare && !c->evicted;
}

bool
hed_spare_is_ready(const struct hed_child *c)
{
    /* Acquire: pairs with the release in hed_worker_spare(). */
    return is_spare(c) && atomic_load_explicit(&c->status->ready, memory_order_acquire) != 0;
}

static uint32_t
count_spares(const struct hed_server *s)
{
    uint32_t n = 0;

    for (int i = 0; i < HED_LEDGER_WORKERS && s->spare_count; i++)
        n += is_spare(&s->children[i]);
    return n;
}

static bool
start_spare(struct hed_server *s)
{
    struct hed_child *c = hed_child_place(s);

    if (!c || c - s->children >= hed_child_places(s))
        return false;
    *c = (struct hed_child){
        .spare = true, .started_ns = hed_now_ns(), .started_wall_ns = hed_wall_ns()};
    (void)hed_str_copy(c->owner, sizeof c->owner, s->sandbox.steps ? s->spare_owner : "");
    if (hed_child_fork(s, NULL, c) < 0)
        return false;
    s->spare_count++;
    hed_debug(SERVER, "spare worker %d", (int)c->pid);
    return true;
}

/* It has no client and holds nothing, so there is nothing to wait for. */
static void
end_spare(struct hed_child *c)
{
    c->evicted = true;
    (void)kill(c->pid, SIGKILL);
}

/* Ends the oldest ones, up to `count` of them. With an owner, only those that are for another
 * one. */
static uint32_t
end_oldest(struct hed_server *s, uint32_t count, const char *owner)
{
    uint32_t n = 0;

    for (; n < count; n++) {
        struct hed_child *oldest = NULL;

        for (int i = 0; i < HED_LEDGER_WORKERS && s->spare_count; i++) {
            struct hed_child *c = &s->children[i];

            if (is_spare(c) && (!owner || strcmp(c->owner, owner) != 0) &&
                (!oldest || c->started_ns < oldest->started_ns))
                oldest = c;
        }
        if (!oldest)
            break;
        end_spare(oldest);
    }
    return n;
}

uint32_t
hed_spares_end(struct hed_server *s, uint32_t wait_ms)
{
    s->spare_ns = hed_now_ns() + wait_ms * HED_NS_PER_MS;
    return end_oldest(s, HED_LEDGER_WORKERS, NULL);
}

static void
wait_longer(struct hed_server *s, uint64_t ms)
{
    s->spare_ns = hed_max(s->spare_ns, hed_now_ns() + ms * HED_NS_PER_MS);
}

uint64_t
hed_spares_look(struct hed_server *s, uint64_t now_ns)
{
    const uint32_t wanted = count_wanted(s);
    uint32_t have = count_spares(s);

    if (have > wanted)
        (void)end_oldest(s, have - wanted, NULL);
    if (have >= wanted)
        return UINT64_MAX;
    if (now_ns < s->spare_ns)
        return s->spare_ns;
    /* After failures, one at a time. */
    for (; have < wanted; have = s->spare_failures ? wanted : have + 1) {
        if (!start_spare(s)) {
            s->spare_failures = hed_min(s->spare_failures + 1, DOUBLINGS_MAX);
            wait_longer(s, AFTER_END_MS << s->spare_failures);
            return s->spare_ns;
        }
    }
    return UINT64_MAX;
}

void
hed_spare_ended(struct hed_server *s, const struct hed_child *c, int how)
{
    const bool ready = atomic_load(&c->status->ready) != 0;

    if (c->evicted) {
        hed_debug(SERVER, "spare worker %d is gone", (int)c->pid);
        return;
    }
    s->spare_failures = ready ? 0 : hed_min(s->spare_failures + 1, DOUBLINGS_MAX);
    wait_longer(s, AFTER_END_MS << s->spare_failures);
    if (!s->stopping)
        hed_warn(SERVER, "spare worker %d %s %d%s; the next is started in %u s", (int)c->pid,
                 WIFSIGNALED(how) ? "was killed by signal" : "ended with status",
                 WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how),
                 ready ? "" : " before it was ready", (AFTER_END_MS << s->spare_failures) / 1000);
}

/* ---- a client comes -------------------------------------------------------------------------- */

/* A spare has a context of the first device. With several devices, a client that has chosen others
 * (CUDA_VISIBLE_DEVICES) has no use for it. Whoever will be refused has none either. */
bool
hed_spare_fits(const struct hed_server *s, const struct hed_peer *p)
{
    const char *text = p->in.hello.visible;

    if (!keeps_spares(s) || p->guest || hed_hello_check(&p->in.hello, p->link, NULL) != 0)
        return false;
    return s->ledger.total[1] == 0 || text[0] == '-' ||
           (text[0] == '0' && (text[1] == ',' || text[1] == '\0'));
}

static bool
pass_client(const struct hed_child *c, const struct hed_peer *p)
{
    static struct hed_worker_client client; /* large; the listener has one thread */

    memset(&client, 0, sizeof client);
    client.link = p->link;
    if (p->conn)
        client.state = *p->conn;
    client.hello = p->in.hello;
    (void)hed_str_copy(client.peer, sizeof client.peer, p->name);
    client.client_pid = (uint32_t)p->user.pid;
    client.client_uid = (uint32_t)p->user.uid;
    client.offers = hed_offers_may(p);

    const int err = hed_fd_send(c->control, &p->fd, 1, &client, sizeof client);

    explicit_bzero(&client, sizeof client); /* secrets */
    return err == 0;
}

static struct hed_child *
find_spare(struct hed_server *s, const struct hed_peer *p, const char *owner)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++) {
        struct hed_child *c = &s->children[i];

        if (!hed_spare_is_ready(c) || strcmp(c->owner, owner) != 0)
            continue;
        if (pass_client(c, p))
            return c;
        end_spare(c); /* it has just died, or does not answer */
    }
    return NULL;
}

static bool
has_spare_for(const struct hed_server *s, const char *owner)
{
    for (int i = 0; i < HED_LEDGER_WORKERS; i++)
        if (is_spare(&s->children[i]) && strcmp(s->children[i].owner, owner) == 0)
            return true;
    return false;
}

bool
hed_spare_take(struct hed_server *s, const struct hed_peer *p)
{
    char owner[HED_OWNER_NAME] = "";
    const uint64_t now = hed_now_ns();

    if (!hed_spare_fits(s, p))
        return false;
    if (s->sandbox.steps)
        hed_confine_owner(p, owner, sizeof owner);
    (void)hed_str_copy(s->spare_owner, sizeof s->spare_owner, owner);
    /* Not later if clients keep coming. */
    if (s->spare_ns <= now)
        s->spare_ns = now + AFTER_CLIENT_MS * HED_NS_PER_MS;

    struct hed_child *c = s->spare_count ? find_spare(s, p, owner) : NULL;

    if (!c) {
        if (count_spares(s) >= count_wanted(s) && !has_spare_for(s, owner))
            (void)end_oldest(s, 1, owner);
        return false;
    }
    c->spare = false;
    hed_child_meet(s, p, c);
    s->spare_count--;
    s->spare_failures = 0;
    hed_child_log(c, "spare worker");
    return true;
}
