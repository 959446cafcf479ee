/* Which connections go to a gate now, and which wait. See listener.h.
 *
 * A handshake takes processor time, and hundreds of them at once take so long that all of them are
 * late. So only a few are begun at a time, and the others wait, oldest first; but a connection
 * comes before those of origins that have more gates. A gate whose client is silent takes no time,
 * so it counts for YOUNG_NS only: silent clients slow others down, but do not keep them out.
 * --startups bounds all of them.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/number.h"
#include "remote/server/listener/listener.h"

#define GATES_PER_CORE 8
#define YOUNG_NS HED_NS_PER_S
#define GATE_MORE_NS HED_NS_PER_S /* the gate itself notices first that a client is late */
#define QUEUE_TIMES 8             /* times --patience, to wait for a gate */

static bool
has_gate(const struct hed_peer *p)
{
    return p->state == HED_PEER_GATE && p->gate >= 0;
}

static bool
waits_for_gate(const struct hed_peer *p)
{
    return p->state == HED_PEER_GATE && p->gate < 0 && p->speaks;
}

static uint32_t
count_gates_of(const struct hed_server *s, const struct hed_origin *o)
{
    uint32_t n = 0;

    for (const struct hed_peer *p = s->peers; p; p = p->next)
        n += has_gate(p) && memcmp(&p->origin, o, sizeof *o) == 0;
    return n;
}

static bool
are_gates_full(const struct hed_server *s, uint64_t now_ns)
{
    const uint32_t most = GATES_PER_CORE * (uint32_t)hed_max((uint64_t)get_nprocs(), 1);
    uint32_t young = 0;

    for (const struct hed_peer *p = s->peers; p; p = p->next)
        young += has_gate(p) && now_ns - p->gate_ns < YOUNG_NS;
    return young >= most;
}

static struct hed_peer *
next_for_gate(const struct hed_server *s)
{
    const struct hed_peer *last = NULL;
    struct hed_peer *best = NULL;
    uint32_t least = UINT32_MAX;

    for (struct hed_peer *p = s->peers; p && least > 0; p = p->next) {
        /* Connections that come together often have one origin. */
        if (!waits_for_gate(p) ||
            (last && memcmp(&p->origin, &last->origin, sizeof p->origin) == 0))
            continue;

        const uint32_t n = count_gates_of(s, &p->origin);

        last = p;
        if (n < least) {
            best = p;
            least = n;
        }
    }
    return best;
}

/* Asks the keeper for a gate. If the keeper is behind, the connection waits and asks again. */
static void
ask_for_gate(struct hed_server *s, struct hed_peer *p, uint64_t now_ns)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    const int gate = hed_keeper_ask(s, p);

    if (gate == HED_ETIME)
        return;
    if (gate < 0) {
        hed_server_refused(s, p, "the server cannot do TLS handshakes now");
        hed_peer_close(s, p);
        return;
    }
    p->gate = gate;
    p->gate_ns = now_ns;
    p->deadline_ns = now_ns + s->options->patience_ms * HED_NS_PER_MS * 2 + GATE_MORE_NS;
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, p->gate, &e) != 0)
        hed_peer_close(s, p);
}

void
hed_gates_fill(struct hed_server *s, uint64_t now_ns)
{
    struct hed_peer *p;

    while (!are_gates_full(s, now_ns) && (p = next_for_gate(s)) != NULL) {
        ask_for_gate(s, p, now_ns);
        if (p->state == HED_PEER_GATE && p->gate < 0)
            return;
    }
}

void
hed_gates_await(struct hed_server *s, struct hed_peer *p)
{
    char byte;
    const ssize_t n = recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        hed_server_refused(s, p, "it hung up instead of beginning TLS");
        hed_peer_close(s, p);
        return;
    }
    p->speaks = true;
    p->deadline_ns = hed_now_ns() + s->options->patience_ms * HED_NS_PER_MS * QUEUE_TIMES;
    (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, p->fd, NULL);
    hed_gates_fill(s, hed_now_ns());
}
