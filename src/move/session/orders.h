/* Orders: what the server's operators tell this program to do (wire.h), and whether it obeys.
 *
 *   worker ──struct hed_order──> agent ── may it? ──> as if the heddle command had asked
 *          <──struct hed_order_report──
 *
 * The agent opens the connection a moment after the program has come to a worker, so short
 * programs have none, and looks at it while it waits for requests. Nothing else uses it.
 *
 * An order sends the program's data to a server that somebody else names. The setting `orders` says
 * when that is allowed; docs/security.md explains the rules, and trust.c has them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hed_address;
struct hed_config;
struct hed_conn;
struct hed_remote_agent;
struct hed_remote_request;
struct hed_tls;
struct hed_why;

struct hed_remote_orders { /* of the agent */
    struct hed_conn *conn; /* NULL: there is none now */
    uint8_t session[16];   /* to which it belongs; kept when it is closed */
    unsigned tries;        /* to open one, in this session, since the last order */
    uint64_t due;          /* ns: when to open it, or to hear it again */
    uint64_t number;       /* of the order that is being carried out */
    uint64_t told;         /* ns: when that was last reported */
};

/* All of these are for the agent's thread. tend opens and closes the connection as needed. fd
 * is what to poll (-1: nothing), and wait for how many ms at most (-1: for ever). heard: there is
 * something to read. leave closes it, before the program parts from its worker. */
void hed_remote_orders_init(struct hed_remote_agent *a);
void hed_remote_orders_tend(struct hed_remote_agent *a);
int hed_remote_orders_fd(const struct hed_remote_agent *a);
int hed_remote_orders_wait(const struct hed_remote_agent *a);
void hed_remote_orders_heard(struct hed_remote_agent *a);
void hed_remote_orders_leave(struct hed_remote_agent *a);
/* In the child of a fork: the parent's connection stays as it is. */
void hed_remote_orders_forked(struct hed_remote_agent *a);
/* Says how far an order has come, if the request is one; from time to time, and without waiting. */
void hed_remote_orders_going(const struct hed_remote_request *q, uint64_t bytes);

/* ---- trust.c --------------------------------------------------------------------------------- */

enum hed_remote_obeys { HED_OBEYS_NONE, HED_OBEYS_TRUSTED, HED_OBEYS_ALL };
enum hed_remote_obeys hed_remote_obeys(const char *setting);

/* What decides, besides the address. */
struct hed_remote_trust {
    enum hed_remote_obeys obeys;
    bool local;    /* the present server is a process of this machine */
    uid_t server;  /* its user, if it is */
    uid_t own;     /* the user of this program */
    bool secure;   /* the connection to it is secured by TLS */
    bool insecure; /* this program's connections over TCP are not */
};

/* May a server send this program there? HED_EACCESS, and the reason. */
int hed_remote_may_go(const struct hed_remote_trust *t, const struct hed_address *to,
                      struct hed_why *why);
/* Is the user of another server of this machine trusted, too? */
int hed_remote_may_trust(const struct hed_remote_trust *t, uid_t user, struct hed_why *why);
