/* Orders to the clients of a server, which the server passes on (wire.h): `heddle serve --drain`
 * and `heddle migrate` use them for programs that they cannot reach themselves.
 */
#pragma once

#include <stdint.h>

struct hed_conn;
struct hed_order_report;
struct hed_why;

struct hed_cli_order {  /* to go elsewhere */
    const char *listen; /* the server; NULL: at the usual address */
    uint64_t worker;
    const char *to;
    uint32_t deadline_ms, budget_ms; /* 0: the client's choice */
};

/* Gives the order; the answer comes over the connection. */
int hed_cli_order_give(const struct hed_cli_order *o, struct hed_conn **out, struct hed_why *why);

/* Waits for the last report, and closes the connection. HED_EACCESS: the client has not done it,
 * and `why` is its reason. */
int hed_cli_order_wait(struct hed_conn *c, struct hed_order_report *out, struct hed_why *why);
