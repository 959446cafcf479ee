/* What does a channel cost beyond its primitives? Measures the bare primitives between two
 * processes of this machine (spinning on a word, a futex, sockets, memcpy), and beside each the
 * same over a channel.
 *
 * Prints `name value unit` lines; `x` rows are ratios of a channel to its primitive. The best of
 * many short batches is kept, because these machines are noisy.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/futex.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/channel/shm.h"

#define BATCHES 200
#define TRIPS 200      /* round trips a batch */
#define MESSAGES 20000 /* one way, a batch */
#define ONE_WAY_BATCHES 40
#define BULK (UINT64_C(128) << 20)
#define BULK_ROUNDS 5
#define MANY 8 /* channels at once */
#define MANY_TRIPS 4000

enum over { OVER_SHM, OVER_UNIX, OVER_TCP };
static const char *const over_names[] = {"shm", "unix", "tcp"};

static void
must(bool holds, const char *what)
{
    if (holds)
        return;
    perror(what);
    _exit(1);
}

static double
smaller(double a, double b)
{
    return a < b ? a : b;
}

/* ---- bare primitives ------------------------------------------------------------------------- */

struct words {
    _Alignas(128) _Atomic uint32_t there;
    _Alignas(128) _Atomic uint32_t back;
};

static struct words *words;

static void
await_word(_Atomic uint32_t *word, uint32_t value, bool sleeps)
{
    uint32_t now;

    /* Acquire: pairs with the store in set_word(). */
    while ((now = atomic_load_explicit(word, memory_order_acquire)) != value)
        if (sleeps)
            hed_futex_wait(word, now, -1);
}

static void
set_word(_Atomic uint32_t *word, uint32_t value, bool sleeps)
{
    atomic_store_explicit(word, value, memory_order_release); /* pairs with await_word() */
    if (sleeps)
        hed_futex_wake(word, 1);
}

/* Runs batches of round trips with the two functions; returns microseconds of the best. */
static double
best_trip(void (*trip)(void *), void *arg)
{
    double best = 1e9;

    for (int b = 0; b < BATCHES; b++) {
        const uint64_t start = hed_now_ns();

        for (int i = 0; i < TRIPS; i++)
            trip(arg);
        best = smaller(best, (double)(hed_now_ns() - start) / TRIPS / 1000);
    }
    return best;
}

struct bare {
    uint32_t number;
    bool sleeps;
    int fd;
};

static void
word_trip(void *arg)
{
    struct bare *b = arg;

    set_word(&words->there, ++b->number, b->sleeps);
    await_word(&words->back, b->number, b->sleeps);
}

static double
bare_words(bool sleeps)
{
    words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(words != MAP_FAILED, "mmap");

    const pid_t child = fork();

    if (child == 0) {
        for (uint32_t i = 1; i <= BATCHES * TRIPS; i++) {
            await_word(&words->there, i, sleeps);
            set_word(&words->back, i, sleeps);
        }
        _exit(0);
    }

    struct bare b = {.sleeps = sleeps};
    const double us = best_trip(word_trip, &b);

    waitpid(child, NULL, 0);
    munmap(words, 4096);
    return us;
}

static void
make_sockets(enum over over, int *fds)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof a;
    const int one = 1;

    if (over != OVER_TCP) {
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
        return;
    }

    const int l = socket(AF_INET, SOCK_STREAM, 0);

    must(bind(l, (struct sockaddr *)&a, sizeof a) == 0 && listen(l, 1) == 0 &&
             getsockname(l, (struct sockaddr *)&a, &size) == 0,
         "listen");
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    must(connect(fds[0], (struct sockaddr *)&a, sizeof a) == 0, "connect");
    fds[1] = accept(l, NULL, NULL);
    close(l);
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void
read_all(int fd, void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t got = read(fd, (char *)p + at, n - at);

        must(got > 0, "read");
        at += (size_t)got;
    }
}

static void
write_all(int fd, const void *p, size_t n)
{
    for (size_t at = 0; at < n;) {
        const ssize_t put = write(fd, (const char *)p + at, n - at);

        must(put > 0, "write");
        at += (size_t)put;
    }
}

static void
socket_trip(void *arg)
{
    char message[64] = "";
    const struct bare *b = arg;

    write_all(b->fd, message, sizeof message);
    read_all(b->fd, message, sizeof message);
}

static double
bare_socket(enum over over)
{
    char message[64];
    int fds[2];

    make_sockets(over, fds);

    const pid_t child = fork();

    if (child == 0) {
        for (int i = 0; i < BATCHES * TRIPS; i++) {
            read_all(fds[1], message, sizeof message);
            write_all(fds[1], message, sizeof message);
        }
        _exit(0);
    }

    struct bare b = {.fd = fds[0]};
    const double us = best_trip(socket_trip, &b);

    waitpid(child, NULL, 0);
    close(fds[0]);
    close(fds[1]);
    return us;
}

static char *memory[2]; /* BULK bytes each, there already */

static double
gigabytes(uint64_t start)
{
    return (double)BULK / (double)(hed_now_ns() - start);
}

static double
bare_copy(void)
{
    double best = 0;

    for (int i = 0; i < BULK_ROUNDS; i++) {
        const uint64_t start = hed_now_ns();
        double speed;

        memcpy(memory[0], memory[1], BULK);
        speed = gigabytes(start);
        best = speed > best ? speed : best;
    }
    return best;
}

static double
bare_stream(enum over over)
{
    double best = 0;
    char byte = 0;
    int fds[2];

    make_sockets(over, fds);

    const pid_t child = fork();

    if (child == 0) {
        memset(memory[0], 1, BULK); /* its own */
        write_all(fds[1], &byte, 1);
        for (int i = 0; i < BULK_ROUNDS; i++) {
            read_all(fds[1], memory[0], BULK);
            write_all(fds[1], &byte, 1);
        }
        _exit(0);
    }
    read_all(fds[0], &byte, 1);
    for (int i = 0; i < BULK_ROUNDS; i++) {
        const uint64_t start = hed_now_ns();
        double speed;

        write_all(fds[0], memory[1], BULK);
        read_all(fds[0], &byte, 1);
        speed = gigabytes(start);
        best = speed > best ? speed : best;
    }
    waitpid(child, NULL, 0);
    close(fds[0]);
    close(fds[1]);
    return best;
}

/* ---- channels -------------------------------------------------------------------------------- */

static struct hed_conn *
connection(int fd)
{
    static const struct hed_tls none = {.insecure = true};
    struct hed_conn *c;
    struct hed_why why;

    must(hed_conn_accept(fd, &none, 1000, &c, &why) == 0, "a connection");
    return c;
}

static void
never_spin(struct hed_channel *ch)
{
    struct hed_waiter *w = &hed_shm_of(ch)->in.waiter;

    w->spin = w->spin_least = w->spin_most = 0;
}

static const struct hed_channel_ops *
ops_of(enum over over)
{
    return over == OVER_SHM ? &hed_channel_shm : &hed_channel_stream;
}

/* Starts the worker's side in a child, and returns the client's side. */
static struct hed_channel *
start_peer(enum over over, bool sleeps, void (*serve)(struct hed_channel *), pid_t *child)
{
    struct hed_channel *ch = NULL;
    struct hed_why why;
    int fds[2];

    make_sockets(over, fds);
    *child = fork();
    if (*child == 0) {
        close(fds[0]);
        must(hed_channel_accept(connection(fds[1]), ops_of(over), &ch, &why) == 0, "a channel");
        if (sleeps)
            never_spin(ch);
        serve(ch);
        hed_channel_free(ch);
        _exit(0);
    }
    close(fds[1]);
    must(hed_channel_create(connection(fds[0]), ops_of(over), &ch, &why) == 0, "a channel");
    if (sleeps)
        never_spin(ch);
    return ch;
}

static void
stop_peer(struct hed_channel *ch, pid_t child)
{
    hed_channel_free(ch);
    waitpid(child, NULL, 0);
}

static void
send_message(struct hed_channel *ch, uint32_t size, uint64_t number, uint64_t bulk, bool urgent)
{
    struct hed_msg *m = hed_channel_begin(ch, size);

    must(m != NULL, "begin");
    *m = (struct hed_msg){.size = size, .number = number, .bulk = bulk};
    must(hed_channel_end(ch, size, urgent) == 0, "end");
}

static uint64_t
hear(struct hed_channel *ch)
{
    struct hed_msg *m;

    must(hed_channel_next(ch, -1, &m) == 0, "next");
    return m->number;
}

static void
echo(struct hed_channel *ch)
{
    struct hed_msg *m;

    while (hed_channel_next(ch, -1, &m) == 0)
        send_message(ch, sizeof *m, m->number, 0, true);
}

static void
channel_trip(void *arg)
{
    send_message(arg, sizeof(struct hed_msg), 1, 0, true);
    hear(arg);
}

static double
channel_trips(enum over over, bool sleeps)
{
    pid_t child;
    struct hed_channel *ch = start_peer(over, sleeps, echo, &child);
    const double us = best_trip(channel_trip, ch);

    stop_peer(ch, child);
    return us;
}

/* Answers messages whose number is not 0. */
static void
swallow(struct hed_channel *ch)
{
    struct hed_msg *m;

    while (hed_channel_next(ch, -1, &m) == 0)
        if (m->number)
            send_message(ch, sizeof *m, m->number, 0, true);
}

/* Millions of messages per second. */
static double
channel_one_way(enum over over, uint32_t size)
{
    pid_t child;
    struct hed_channel *ch = start_peer(over, false, swallow, &child);
    double best = 0;

    for (int b = 0; b < ONE_WAY_BATCHES; b++) {
        const uint64_t start = hed_now_ns();
        double speed;

        for (int i = 0; i < MESSAGES; i++)
            send_message(ch, size, i == MESSAGES - 1, 0, i == MESSAGES - 1);
        hear(ch);
        speed = MESSAGES * 1e3 / (double)(hed_now_ns() - start);
        best = speed > best ? speed : best;
    }
    stop_peer(ch, child);
    return best;
}

static void
send_bulk(struct hed_channel *ch, const char *from)
{
    for (uint64_t at = 0; at < BULK; at += HED_BULK_CHUNK) {
        send_message(ch, sizeof(struct hed_msg), 0, HED_BULK_CHUNK, false);
        must(hed_channel_bulk_write(ch, from + at, HED_BULK_CHUNK) == 0, "bulk");
    }
}

static bool
take_bulk(struct hed_channel *ch, char *to)
{
    for (uint64_t at = 0; at < BULK; at += HED_BULK_CHUNK) {
        struct hed_msg *m;

        if (hed_channel_next(ch, -1, &m) || hed_channel_bulk_read(ch, to + at, HED_BULK_CHUNK))
            return false;
    }
    return true;
}

/* Receives the bulk data, and sends it back when asked. */
static void
bulk_server(struct hed_channel *ch)
{
    memset(memory[0], 1, BULK); /* its own */
    send_message(ch, sizeof(struct hed_msg), 1, 0, true);
    while (take_bulk(ch, memory[0])) {
        send_message(ch, sizeof(struct hed_msg), 1, 0, true);
        hear(ch);
        send_bulk(ch, memory[0]);
    }
}

static void
channel_bulk(enum over over, double *in, double *out)
{
    pid_t child;
    struct hed_channel *ch = start_peer(over, false, bulk_server, &child);

    hear(ch);
    *in = *out = 0;
    for (int i = 0; i < BULK_ROUNDS; i++) {
        uint64_t begin = hed_now_ns();
        double speed;

        send_bulk(ch, memory[1]);
        hear(ch);
        speed = gigabytes(begin);
        *in = speed > *in ? speed : *in;
        begin = hed_now_ns();
        send_message(ch, sizeof(struct hed_msg), 1, 0, true);
        must(take_bulk(ch, memory[0]), "bulk");
        speed = gigabytes(begin);
        *out = speed > *out ? speed : *out;
    }
    stop_peer(ch, child);
}

static void *
many_trips(void *arg)
{
    for (int i = 0; i < MANY_TRIPS; i++)
        channel_trip(arg);
    return NULL;
}

/* Several channels at once, more than there are cores: thousands of round trips per second, in
 * all. */
static double
channel_many(enum over over, int channels)
{
    struct hed_channel *ch[MANY];
    pthread_t threads[MANY];
    pid_t children[MANY];
    uint64_t begin;

    for (int i = 0; i < channels; i++)
        ch[i] = start_peer(over, false, echo, &children[i]);
    begin = hed_now_ns();
    for (int i = 0; i < channels; i++)
        must(pthread_create(&threads[i], NULL, many_trips, ch[i]) == 0, "a thread");
    for (int i = 0; i < channels; i++)
        pthread_join(threads[i], NULL);

    const double speed = (double)channels * MANY_TRIPS * 1e6 / (double)(hed_now_ns() - begin);

    /* Later children have inherited the connections of earlier channels, so all are freed before
     * any child is waited for. */
    for (int i = 0; i < channels; i++)
        hed_channel_free(ch[i]);
    for (int i = 0; i < channels; i++)
        waitpid(children[i], NULL, 0);
    return speed;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void
row(const char *over, const char *what, double value, const char *unit)
{
    printf("%s/%s %.3f %s\n", over, what, value, unit);
}

static void
trip_rows(const char *over, const char *what, double bare, double channel)
{
    char name[64];

    snprintf(name, sizeof name, "%s_bare", what);
    row(over, name, bare, "us");
    snprintf(name, sizeof name, "%s_channel", what);
    row(over, name, channel, "us");
    snprintf(name, sizeof name, "%s_channel_x", what);
    row(over, name, channel / bare, "ratio");
}

int
main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < 2; i++) {
        memory[i] = malloc(BULK);
        must(memory[i] != NULL, "malloc");
        memset(memory[i], i + 1, BULK);
    }
    trip_rows("shm", "spin", bare_words(false), channel_trips(OVER_SHM, false));
    trip_rows("shm", "park", bare_words(true), channel_trips(OVER_SHM, true));
    for (enum over over = OVER_UNIX; over <= OVER_TCP; over++)
        trip_rows(over_names[over], "trip", bare_socket(over), channel_trips(over, false));

    const double copy = bare_copy();

    for (enum over over = OVER_SHM; over <= OVER_TCP; over++) {
        const char *name = over_names[over];
        double in, out;

        row(name, "one_way_64", channel_one_way(over, 64), "million/s");
        row(name, "one_way_128", channel_one_way(over, 128), "million/s");
        row(name, "bulk_bare", over == OVER_SHM ? copy : bare_stream(over), "GB/s");
        channel_bulk(over, &in, &out);
        row(name, "bulk_to_worker", in, "GB/s");
        row(name, "bulk_to_client", out, "GB/s");
        for (int channels = 1; channels <= MANY; channels *= 2) {
            char what[32];

            snprintf(what, sizeof what, "trips_of_%d_channels", channels);
            row(name, what, channel_many(over, channels), "thousand/s");
        }
    }
    return 0;
}
