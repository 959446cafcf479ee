/* Clients that park their worker and return, and others that try to return in their place.
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "raw.h"

#define UNIT UINT64_C(65536)
#define FLOOD 64 /* attempts */

static void
hang_up(struct raw *r)
{
    hed_channel_free(r->channel);
    r->channel = NULL;
}

/* What was made before is still there, and tickets begin at 1. */
static void
a_client_returns(void)
{
    struct raw r;
    uint8_t key[16], before[16] = {0};

    raw_ready(&r, RAW_ALL);
    if (r.heap >= 0)
        MUST(ftruncate(r.heap, 4 * (off_t)UNIT) == 0);
    MUST(raw_map_host(&r, 0, UNIT) == 0);
    for (int i = 0; i < 3; i++) {
        MUST(raw_park(&r, key) == 0);
        MUST(memcmp(key, before, sizeof key) != 0);
        memcpy(before, key, sizeof key);
        hang_up(&r);
        MUST(raw_return(&r, key));
        MUST(raw_ping(&r) == 0);
        MUST(raw_map_host(&r, (uint64_t)(i + 1) * UNIT, UNIT) == 0);
    }
    MUST(raw_map_host(&r, 0, UNIT) == RAW_GONE); /* it is mapped already */
    raw_end(&r);
}

/* Further channels go with the client, and new ones come with it. */
static void
other_channels_go_and_come(void)
{
    struct raw r;
    struct hed_attach a;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL);
    a = raw_attach(&r, HED_CHANNEL_CALLS);
    a.head.thread = 1;

    struct hed_attach back = raw_attach(&r, HED_CHANNEL_CALLBACKS);

    for (int i = 0; i < 5; i++) {
        struct hed_channel *other = raw_channel(&r, r.welcome.session, &a);
        struct hed_channel *callbacks = raw_channel(&r, r.welcome.session, &back);

        MUST(other && callbacks);
        MUST(raw_ping(&r) == 0);
        MUST(raw_park(&r, key) == 0);
        hed_channel_free(other);
        hed_channel_free(callbacks);
        hang_up(&r);
        MUST(raw_return(&r, key));
    }
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
}

static void
a_return_needs_the_key_and_the_secret(void)
{
    struct raw r;
    uint8_t key[16], wrong[16];
    struct hed_attach a;
    struct hed_channel *ch;

    raw_ready(&r, RAW_ALL);
    memset(wrong, 0, sizeof wrong);
    MUST(!raw_return(&r, wrong)); /* nobody is away */
    MUST(raw_park(&r, key) == 0);
    hang_up(&r);
    MUST(!raw_return(&r, wrong));
    for (int i = 0; i < 16; i++) {
        memcpy(wrong, key, sizeof key);
        wrong[i] ^= 1;
        MUST(!raw_return(&r, wrong));
    }
    a = raw_attach(&r, HED_CHANNEL_RETURN);
    memcpy(a.key, key, sizeof key);
    a.secret[15] ^= 1;
    ch = raw_channel(&r, r.welcome.session, &a);
    MUST(!ch || raw_is_closed(ch));
    hed_channel_free(ch);
    a = raw_attach(&r, (enum hed_channel_purpose)77);
    ch = raw_channel(&r, r.welcome.session, &a);
    MUST(!ch || raw_is_closed(ch));
    hed_channel_free(ch);
    MUST(raw_return(&r, key));
    MUST(raw_ping(&r) == 0);
    MUST(!raw_return(&r, key)); /* it was good for once */
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
}

/* A channel of before the return, which comes late, is closed, and the session goes on. */
static void
the_secret_changes_with_a_return(void)
{
    struct raw r;
    struct hed_attach a;
    struct hed_channel *ch;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL);
    a = raw_attach(&r, HED_CHANNEL_CALLS);
    MUST(raw_park(&r, key) == 0);
    hang_up(&r);
    MUST(raw_return(&r, key));
    ch = raw_channel(&r, r.welcome.session, &a);
    MUST(!ch || raw_is_closed(ch));
    hed_channel_free(ch);
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
}

/* While the client is away, nothing else is let in: no channel of calls, no functions. */
static void
a_parked_worker_hears_nobody_else(void)
{
    static const enum hed_channel_purpose others[] = {HED_CHANNEL_CALLS, HED_CHANNEL_CALLBACKS};
    struct raw r;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL);
    MUST(raw_park(&r, key) == 0);
    hang_up(&r);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct hed_attach a = raw_attach(&r, others[i]);
        struct hed_channel *ch = raw_channel(&r, r.welcome.session, &a);

        MUST(!ch || raw_is_closed(ch));
        hed_channel_free(ch);
    }
    MUST(raw_return(&r, key));
    raw_end(&r);
}

/* A session that talks after it has parked ends. */
static void
nothing_may_follow_on_the_old_channels(void)
{
    struct raw r;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL);
    MUST(raw_park(&r, key) == 0);
    MUST(raw_ping(&r) == RAW_GONE);
    MUST(!raw_return(&r, key));
    raw_end(&r);
    raw_ready(&r, RAW_ALL);
    MUST(raw_park(&r, key) == 0);
    MUST(raw_park(&r, key) == RAW_GONE);
    MUST(!raw_return(&r, key));
    raw_end(&r);
}

/* Channels that a client has left open are closed when it returns. */
static void
old_channels_are_closed(void)
{
    struct raw r;
    uint8_t key[16];
    struct hed_attach a, back;

    raw_ready(&r, RAW_ALL);
    a = raw_attach(&r, HED_CHANNEL_CALLS);
    back = raw_attach(&r, HED_CHANNEL_CALLBACKS);

    struct hed_channel *old[] = {raw_channel(&r, r.welcome.session, &a),
                                 raw_channel(&r, r.welcome.session, &back), r.channel};

    MUST(raw_ping(&r) == 0);
    MUST(raw_park(&r, key) == 0); /* maybe before the others have come */
    r.channel = NULL;
    MUST(raw_return(&r, key));
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
        MUST(raw_is_closed(old[i]));
        hed_channel_free(old[i]);
    }
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
}

static void
parking_needs_both_sides(void)
{
    struct raw r;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL & ~(uint64_t)HED_CAN_PARK);
    MUST(raw_park(&r, key) == RAW_GONE);
    raw_end(&r);
    raw_begin(&r, RAW_ALL); /* before there is an arena */
    MUST(raw_park(&r, key) == RAW_GONE);
    raw_end(&r);
}

static void
many_try_to_return(void)
{
    struct hed_channel *flood[FLOOD];
    struct raw r;
    struct hed_attach a;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL);
    MUST(raw_park(&r, key) == 0);
    hang_up(&r);
    a = raw_attach(&r, HED_CHANNEL_RETURN);
    for (int i = 0; i < FLOOD; i++)
        flood[i] = raw_channel(&r, r.welcome.session, &a);
    MUST(raw_return(&r, key));
    for (int i = 0; i < FLOOD; i++) {
        MUST(!flood[i] || raw_is_closed(flood[i]));
        hed_channel_free(flood[i]);
    }
    MUST(raw_ping(&r) == 0);
    raw_end(&r);
}

/* For parked.py: parks, waits for a line, and says whether the worker takes it back. */
static void
stay_away(void)
{
    struct raw r;
    uint8_t key[16];

    raw_ready(&r, RAW_ALL);
    MUST(raw_park(&r, key) == 0);
    hang_up(&r);
    printf("parked\n");
    (void)fflush(stdout);
    if (getchar() == EOF)
        return;
    printf("%s\n", raw_return(&r, key) ? "returned" : "refused");
    (void)fflush(stdout);
    while (getchar() != EOF)
        continue;
    raw_end(&r);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "stay") == 0) {
        stay_away();
        return 0;
    }
    a_client_returns();
    other_channels_go_and_come();
    a_return_needs_the_key_and_the_secret();
    the_secret_changes_with_a_return();
    a_parked_worker_hears_nobody_else();
    nothing_may_follow_on_the_old_channels();
    old_channels_are_closed();
    parking_needs_both_sides();
    many_try_to_return();
    return 0;
}
