/* How many clients may come in: the token bucket. Which: by the user at the other end of a
 * socket. */
#include "harness/unit.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "remote/server/listener/listener.h"

#define MS UINT64_C(1000000)

static void
bucket_lets_so_many_through_a_second(void **state)
{
    struct hed_bucket b;
    uint64_t now = 5 * HED_NS_PER_S;
    int let = 0;

    (void)state;
    hed_bucket_init(&b, 10, now);
    for (int i = 0; i < 100; i++)
        let += hed_bucket_take(&b, now);
    assert_int_equal(let, 10);
    /* 500 ms in small steps: five more. */
    for (int i = 0; i < 500; i++)
        let += hed_bucket_take(&b, now += MS);
    assert_in_range(let, 14, 15);
    /* After a long silence there are no more tokens than for one second. */
    now += 1000 * HED_NS_PER_S;
    let = 0;
    for (int i = 0; i < 100; i++)
        let += hed_bucket_take(&b, now);
    assert_int_equal(let, 10);
    /* A clock that stands still, or goes back, adds no tokens. */
    assert_false(hed_bucket_take(&b, now));
    assert_false(hed_bucket_take(&b, now - HED_NS_PER_S));
}

static uint32_t
begin_as_many_as_may(struct hed_server *s, uid_t user, uint64_t now)
{
    const struct sockaddr_storage local = {.ss_family = AF_UNIX};
    const struct hed_origin o = hed_origin_of(&local, user);
    uint32_t n = 0;

    while (n < 1000 && hed_origin_may_begin(s, &o, now))
        n++;
    return n;
}

static void
who_floods_the_server_leaves_some_to_others(void **state)
{
    struct hed_server *s = calloc(1, sizeof *s);
    uint64_t now = HED_NS_PER_S;
    uint32_t sum = 0;

    (void)state;
    assert_non_null(s);
    hed_bucket_init(&s->rate, 100, now);
    assert_in_range(begin_as_many_as_may(s, 1, now), 80, 99);
    assert_int_equal(begin_as_many_as_may(s, 1, now), 0);
    assert_in_range(begin_as_many_as_may(s, 2, now), 5, 20);
    assert_in_range(begin_as_many_as_may(s, 3, now), 1, 20);
    /* Whoever is alone has the whole rate in the long run. */
    for (int i = 0; i < 1000; i++)
        sum += begin_as_many_as_may(s, 1, now += HED_NS_PER_S / 100);
    assert_in_range(sum, 950, 1100);
    free(s);
}

static void
bucket_without_a_rate_is_open(void **state)
{
    struct hed_bucket b;

    (void)state;
    hed_bucket_init(&b, 0, 0);
    for (int i = 0; i < 1000; i++)
        assert_true(hed_bucket_take(&b, 0));
}

static void
user_is_who_the_kernel_says(void **state)
{
    static struct hed_server_options o;
    struct hed_peer_user user;
    int pair[2];
    int pipes[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_true(hed_user_may(&o, pair[0], &user));
    assert_int_equal(user.uid, geteuid());
    assert_int_equal(user.pid, getpid());
    (void)close(pair[0]);
    (void)close(pair[1]);
    /* A descriptor that is not a socket has no user. */
    assert_int_equal(pipe(pipes), 0);
    o.allow_all = true;
    assert_false(hed_user_may(&o, pipes[0], &user));
    assert_int_equal(user.uid, (uid_t)-1);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

static void
options_have_defaults_and_reasons(void **state)
{
    static struct hed_server_options o;
    struct hed_why why = {""};
    char *good[] = {(char[]){"--listen=unix:/tmp/x"},
                    (char[]){"--memory"},
                    (char[]){"1.5G"},
                    (char[]){"--idle=7"},
                    (char[]){"--listen"},
                    (char[]){"tcp://"},
                    (char[]){"--insecure"},
                    (char[]){"--allow-uid=1,2"}};
    char *bad[] = {(char[]){"--listen=unix:/tmp/x"}, (char[]){"--rate"}};

    (void)state;
    assert_int_equal(hed_server_options_read(&o, 8, good, &why), 0);
    assert_int_equal(o.memory, UINT64_C(3) << 29);
    assert_int_equal(o.idle_ms, 7000);
    assert_int_equal(o.mode, 0600);
    assert_int_equal(o.uid_count, 2);
    assert_int_equal(o.listen_count, 2);
    assert_string_equal(o.listen[1].host, "127.0.0.1");
    assert_int_equal(o.listen[1].port, HED_ADDRESS_PORT);
    assert_string_equal(o.gpu, "auto");
    assert_int_not_equal(hed_server_options_read(&o, 2, bad, &why), 0);
    assert_string_equal(why.text, "--rate needs a value");
    /* Without --insecure, and without certificates, TCP is refused. */
    good[6] = (char[]){"--rate=1"};
    assert_int_not_equal(hed_server_options_read(&o, 8, good, &why), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bucket_lets_so_many_through_a_second),
    cmocka_unit_test(who_floods_the_server_leaves_some_to_others),
    cmocka_unit_test(bucket_without_a_rate_is_open),
    cmocka_unit_test(user_is_who_the_kernel_says),
    cmocka_unit_test(options_have_defaults_and_reasons),
};

HED_UNIT_MAIN(tests)
