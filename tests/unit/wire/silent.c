/* Tests of a peer whose machine disappears without notice: the test's own network goes dead under
 * connections that wait, with and without data under way.
 */
#include "unit/wire/make.h"

#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>

static bool
set_loopback(bool up)
{
    struct ifreq r = {.ifr_name = "lo"};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0;

    r.ifr_flags = (short)(up ? r.ifr_flags | IFF_UP : r.ifr_flags & ~IFF_UP);
    good = good && ioctl(fd, SIOCSIFFLAGS, &r) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* Some machines do not let a test create a network. */
static bool
own_network(void)
{
    return (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
           set_loopback(true);
}

enum what { WRITE_THEN_READ, READ, READ_TIMED, WRITE_MUCH };

struct waiting {
    struct pair pair;
    enum what what;
    int err;
};

static void *
wait_for_it(void *arg)
{
    static char much[1u << 20];
    struct waiting *w = arg;
    char byte = 0;

    if (w->what == WRITE_THEN_READ)
        w->err = hed_conn_write(w->pair.client, &byte, 1);
    while (w->what == WRITE_MUCH && !w->err)
        w->err = hed_conn_write(w->pair.client, much, sizeof much);
    if (!w->err)
        w->err = hed_conn_read(w->pair.client, &byte, 1, w->what == READ_TIMED ? PATIENCE_MS : -1);
    return NULL;
}

static void
a_silent_peer_is_left(void **state)
{
    struct waiting w[4];
    pthread_t threads[4];

    if (!own_network())
        skip();
    for (int i = 0; i < 4; i++)
        w[i] = (struct waiting){make_pair("tcp://127.0.0.1:0"), (enum what)i, 0};
    give_a_moment(50); /* nothing is under way */
    assert_true(set_loopback(false));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_it, &w[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w[i].err, HED_EIO);
        assert_true(hed_conn_gone(w[i].pair.client));
        close_pair(w[i].pair);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_silent_peer_is_left),
};

HED_UNIT_MAIN(tests)
