/* Clients with connections for orders that are not theirs, or too many, or that lie about orders.
 */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "harness/patience.h"
#include "raw.h"
#include "remote/wire/order.h"

#define FLOOD 64 /* connections */

static struct hed_attach
orders_attach(const struct raw *r)
{
    struct hed_attach a = raw_attach(r, HED_CHANNEL_ORDERS);

    a.head.size = sizeof a;
    a.head.kind = HED_MSG_ATTACH;
    return a;
}

/* The worker says nothing on it before there is an order, so it ends, or stays silent. */
static bool
is_refused(struct raw *r, const struct hed_attach *a)
{
    struct hed_conn *conn = raw_orders(r, a);
    char byte;
    const bool refused = !conn || hed_conn_read(conn, &byte, 1, PATIENCE_MS) == HED_EIO;

    hed_conn_close(conn);
    return refused;
}

static void
a_connection_needs_the_secret(void)
{
    struct raw r;
    struct hed_attach a;

    raw_ready(&r, RAW_ALL);
    for (int i = 0; i < 16; i++) {
        a = orders_attach(&r);
        a.secret[i] ^= 1;
        MUST(is_refused(&r, &a));
    }
    for (uint32_t purpose = 0; purpose < HED_CHANNEL_ORDERS; purpose++) {
        a = orders_attach(&r);
        a.purpose = purpose;
        MUST(is_refused(&r, &a));
    }
    a = orders_attach(&r);
    a.head.size = 1;
    MUST(is_refused(&r, &a));
    a = orders_attach(&r);
    a.head.kind = HED_MSG_BYE;
    MUST(is_refused(&r, &a));
    memset(&a, 0xff, sizeof a);
    MUST(is_refused(&r, &a));
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
}

/* Orders are for connections of their own. */
static void
a_channel_is_no_connection_for_orders(void)
{
    struct raw r;
    struct hed_order o;
    struct hed_order_report p;
    struct hed_attach a;
    struct hed_channel *ch;

    raw_ready(&r, RAW_ALL);
    a = orders_attach(&r);
    ch = raw_channel(&r, r.welcome.session, &a);
    MUST(!ch || raw_is_closed(ch));
    hed_channel_free(ch);
    MUST(raw_ping(&r) == 0);
    hed_order_init(&o, HED_ORDER_MOVE);
    MUST(raw_ask(&r, &o.head) == RAW_GONE);
    raw_end(&r);
    raw_ready(&r, RAW_ALL);
    hed_order_report_init(&p, 1, HED_ORDER_DONE);
    MUST(raw_ask(&r, &p.head) == RAW_GONE);
    raw_end(&r);
}

static void
orders_need_both_sides(void)
{
    struct raw r;
    struct hed_attach a;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL & ~(uint64_t)HED_CAN_ORDERS);
    a = orders_attach(&r);
    MUST(is_refused(&r, &a));
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
    raw_begin(&r, RAW_ALL); /* before there is an arena */
    a = orders_attach(&r);
    MUST(is_refused(&r, &a));
    raw_end(&r);
    raw_ready(&r, RAW_ALL); /* while the client is away */
    MUST(raw_park(&r, key) == 0);
    a = orders_attach(&r);
    MUST(is_refused(&r, &a));
    raw_end(&r);
}

static int
count_open(struct hed_conn **all, int count)
{
    int open = 0;

    for (int i = 0; i < count; i++)
        open += all[i] && !hed_conn_gone(all[i]);
    return open;
}

/* The last connection counts, those before it are closed, and bad ones keep out nobody. */
static void
many_connections_hurt_nobody(void)
{
    struct hed_conn *flood[FLOOD];
    struct raw r;
    struct hed_attach a, wrong;

    raw_ready(&r, RAW_ALL);
    a = wrong = orders_attach(&r);
    wrong.secret[0] ^= 1;
    for (int i = 0; i < FLOOD; i++)
        flood[i] = raw_orders(&r, i % 2 ? &wrong : &a);

    const uint64_t end = hed_now_ns() + PATIENCE_MS * HED_NS_PER_MS;

    while (count_open(flood, FLOOD) > 1) {
        MUST(hed_now_ns() < end);
        MUST(raw_ping(&r) == 0);
    }
    for (int i = 0; i < FLOOD; i++)
        hed_conn_close(flood[i]);
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
}

/* ---- for ordered.py -------------------------------------------------------------------------- */

static void
put_report(struct hed_conn *c, uint64_t number, uint32_t state)
{
    struct hed_order_report p;

    hed_order_report_init(&p, number, state);
    memcpy(p.program, "li\x1b[2Jar", 8);
    memcpy(p.why, "be\ncause", 8);
    (void)hed_conn_write(c, &p, sizeof p);
}

/* Takes one order, and answers it in a way that no honest client would. */
static void
answer_badly(const char *how)
{
    struct raw r;
    struct hed_attach a;
    struct hed_conn *c;
    struct hed_order o;
    char junk[4096];

    raw_ready(&r, RAW_ALL);
    a = orders_attach(&r);
    c = raw_orders(&r, &a);
    MUST(c);
    printf("ready\n");
    (void)fflush(stdout);
    memset(junk, 0xee, sizeof junk);
    MUST(hed_conn_read(c, &o, sizeof o, PATIENCE_MS) == 0);
    if (strcmp(how, "junk") == 0)
        (void)hed_conn_write(c, junk, sizeof junk);
    else if (strcmp(how, "other") == 0)
        put_report(c, o.head.number + 1, HED_ORDER_DONE);
    else if (strcmp(how, "refuse") == 0)
        put_report(c, o.head.number, HED_ORDER_FAILED);
    else if (strcmp(how, "flood") == 0)
        for (int i = 0; i < 20000; i++)
            put_report(c, o.head.number, i < 19999 ? HED_ORDER_GOING : HED_ORDER_FAILED);
    else if (strcmp(how, "half") == 0)
        (void)hed_conn_write(c, junk, 100);
    if (strcmp(how, "refuse") != 0 && strcmp(how, "flood") != 0)
        hed_conn_break(c);
    while (getchar() != EOF)
        continue;
    MUST(raw_ping(&r) == 0); /* the session goes on */
    hed_conn_close(c);
    raw_end(&r);
}

int
main(int argc, char **argv)
{
    if (argc > 1) {
        answer_badly(argv[1]);
        return 0;
    }
    a_connection_needs_the_secret();
    a_channel_is_no_connection_for_orders();
    orders_need_both_sides();
    many_connections_hurt_nobody();
    return 0;
}
