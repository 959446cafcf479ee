/* The listener and its workers: connections are passed to the right worker, and the status
 * describes them. There are no real workers: the test has their lines and sockets.
 */
#include "harness/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "remote/server/gate/gate.h"
#include "remote/server/listener/listener.h"
#include "remote/server/status.h"
#include "remote/wire/link/link.h"

static struct hed_server_options options;

struct bench {
    struct hed_server server;
    struct hed_peer peer; /* a client that brings a channel of the worker's session */
    int control;          /* the worker's end */
    int far;              /* the peer's own end */
    struct hed_worker_status *status;
};

static int
setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    int control[2];
    int conns[2];

    if (!b || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM, 0, conns) != 0)
        return -1;
    b->server.options = &options;
    b->status = hed_status_create();
    b->control = control[1];
    b->server.children[0] = (struct hed_child){.pid = 1234,
                                               .control = control[0],
                                               .link = &hed_link_unix,
                                               .user.uid = 7,
                                               .status = b->status,
                                               .session = "fifteen letters"};
    b->server.child_count = 1;
    b->far = conns[1];
    b->peer.fd = conns[0];
    b->peer.link = &hed_link_unix;
    b->peer.user.uid = 7;
    memcpy(b->peer.in.preface.session, "fifteen letters", 16);
    *state = b;
    return 0;
}

static int
teardown(void **state)
{
    struct bench *b = *state;

    (void)close(b->control);
    (void)close(b->server.children[0].control);
    (void)close(b->peer.fd);
    (void)close(b->far);
    hed_status_free(b->status);
    free(b);
    return 0;
}

/* Takes a descriptor as the worker's control thread does; -1 if there is none. */
static int
take_fd(int socket)
{
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof control.room};
    int fd = -1;

    if (recvmsg(socket, &m, MSG_DONTWAIT) == 1)
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
}

/* Passes the peer's connection on, as the listener does. */
static int
pass(struct bench *b)
{
    struct hed_child *c;
    const int err = hed_child_find(&b->server, &b->peer, &c);

    return err ? err : hed_child_pass(c, &b->peer);
}

static void
channel_goes_to_its_worker(void **state)
{
    struct bench *b = *state;
    char text[3] = "";

    assert_int_equal(pass(b), 0);
    assert_int_equal(pass(b), 0);
    for (int i = 0; i < 2; i++) {
        const int fd = take_fd(b->control);

        assert_true(fd >= 0);
        assert_int_equal(write(b->far, "hi", 2), 2);
        assert_int_equal(read(fd, text, 2), 2);
        assert_string_equal(text, "hi");
        (void)close(fd);
    }
    assert_int_equal(take_fd(b->control), -1);
}

static void
channel_of_no_session_is_refused(void **state)
{
    struct bench *b = *state;

    b->peer.in.preface.session[15] ^= 1;
    assert_int_equal(pass(b), HED_ENOTFOUND);
    /* A worker that is gone has left its session number behind. */
    b->peer.in.preface.session[15] ^= 1;
    b->server.children[0].pid = 0;
    assert_int_equal(pass(b), HED_ENOTFOUND);
    memset(b->peer.in.preface.session, 0, 16);
    assert_int_equal(pass(b), HED_ENOTFOUND);
    assert_int_equal(take_fd(b->control), -1);
}

static void
channel_of_somebody_else_is_refused(void **state)
{
    struct bench *b = *state;

    b->peer.user.uid = 8;
    assert_int_equal(pass(b), HED_EACCESS);
    b->peer.user.uid = 7;
    b->peer.link = &hed_link_tcp;
    assert_int_equal(pass(b), HED_EACCESS);
    assert_int_equal(take_fd(b->control), -1);
}

/* A worker that does not read its control socket blocks nobody. */
static void
channel_to_a_busy_worker_does_not_block(void **state)
{
    struct bench *b = *state;
    int passed = 0;

    while (pass(b) == 0 && passed < 100000)
        passed++;
    assert_in_range(passed, 1, 99999);
    /* It is behind, not gone: when it has taken some, there is room again. */
    assert_int_equal(pass(b), HED_ETIME);
    for (int i = 0; i < passed; i++)
        (void)close(take_fd(b->control));
    assert_int_equal(pass(b), 0);
    (void)close(b->control);
    b->control = open("/dev/null", O_RDONLY);
    assert_int_equal(pass(b), HED_EIO);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* What the listener answers to an order for this worker; an empty text if it passes it on. */
static const char *
answer_order(struct bench *b, uid_t user, uint64_t worker, struct hed_order_report *out)
{
    struct hed_buf text;

    b->peer.in.preface.kind = HED_PREFACE_ORDER;
    b->peer.in.preface.worker = worker;
    b->peer.user.uid = user;
    hed_buf_init(&text, HED_STATUS_MAX);
    hed_operator_heard(&b->server, &b->peer, &text);
    assert_int_equal(text.err, 0);
    memset(out, 0, sizeof *out);
    if (text.size) {
        assert_int_equal(text.size, sizeof *out);
        memcpy(out, text.data, sizeof *out);
        assert_int_equal(out->state, HED_ORDER_FAILED);
    }
    hed_buf_fini(&text);
    return out->why;
}

static void
orders_of_operators_go_to_the_worker(void **state)
{
    struct bench *b = *state;
    struct hed_order_report r;
    char text[3] = "";

    assert_string_equal(answer_order(b, geteuid(), 1234, &r), "");
    assert_string_equal(answer_order(b, 0, 1234, &r), "");
    for (int i = 0; i < 2; i++) {
        const int fd = take_fd(b->control);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, "hi", 2), 2);
        assert_int_equal(read(b->far, text, 2), 2);
        (void)close(fd);
    }
}

static void
orders_of_others_are_refused(void **state)
{
    struct bench *b = *state;
    struct hed_order_report r;

    assert_non_null(strstr(answer_order(b, 7, 1234, &r), "only the server's user and root"));
    assert_non_null(strstr(answer_order(b, 0, 4321, &r), "no worker 4321"));
    assert_non_null(strstr(answer_order(b, 0, 0, &r), "no worker 0"));
    assert_int_equal(take_fd(b->control), -1);
}

/* ---- from the gate --------------------------------------------------------------------------- */

/* A peer that is at a gate, of which the test has the other end. */
static struct hed_peer *
put_at_gate(struct bench *b, int *gate)
{
    struct hed_peer *p = calloc(1, sizeof *p);
    int ends[2];
    int conns[2];

    assert_non_null(p);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, conns), 0);
    *p = b->peer;
    p->state = HED_PEER_GATE;
    p->deadline_ns = UINT64_MAX;
    p->fd = conns[0];
    p->gate = ends[0];
    p->in.preface.kind = HED_PREFACE_CHANNEL;
    (void)close(b->far);
    b->far = conns[1];
    *gate = ends[1];
    hed_origin_arrive(&b->server, &p->origin);
    b->server.peers = p;
    return p;
}

static bool
is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Its worker is behind, but the gate has nothing more to do for it. */
static void
channel_that_waits_has_left_its_gate(void **state)
{
    const struct hed_gate_answer answer = {.state.cipher = 0x1301};
    struct bench *b = *state;
    int gate;

    options.channels = 1;
    while (pass(b) == 0)
        ;

    struct hed_peer *p = put_at_gate(b, &gate);

    assert_int_equal(send(gate, &answer, sizeof answer, 0), sizeof answer);
    hed_peer_ready(&b->server, p);
    assert_int_equal(p->state, HED_PEER_PASSING);
    assert_int_equal(p->gate, -1);
    assert_true(is_closed(gate));
    assert_false(is_closed(b->far));
    hed_peers_close(&b->server);
    (void)close(gate);
}

/* What a gate says that somebody has taken over is refused, or is what any client may say. */
static void
wrong_answers_of_a_gate_are_refused(void **state)
{
    static const size_t sizes[] = {1, sizeof(struct hed_gate_answer) - 1,
                                   sizeof(struct hed_gate_answer)};
    static struct hed_gate_answer answer;
    struct bench *b = *state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int fill = 0; fill < 2; fill++) {
            int gate;
            struct hed_peer *p = put_at_gate(b, &gate);

            memset(&answer, fill ? 'x' : 0, sizeof answer);
            answer.state.who.certified = true;
            assert_int_equal(send(gate, &answer, sizes[i], 0), sizes[i]);
            hed_peer_ready(&b->server, p);
            assert_int_equal(p->state, HED_PEER_DEAD);
            assert_true(is_closed(b->far));
            assert_int_equal(b->server.peer_count, 0);
            (void)hed_peers_sweep(&b->server, 0);
            (void)close(gate);
        }
    }
    assert_int_equal(take_fd(b->control), -1);
}

/* As when too many others have come. The gate has the connection, too, and must notice. */
static void
a_gate_ends_with_the_peer(void **state)
{
    struct bench *b = *state;
    int gate;
    struct hed_peer *p = put_at_gate(b, &gate);
    const int copy = dup(p->fd);

    hed_peers_close(&b->server);
    assert_true(is_closed(copy));
    assert_true(is_closed(gate));
    (void)close(copy);
    (void)close(gate);
}

/* A worker copies text of its client into its line. */
static void
status_quotes_what_workers_write(void **state)
{
    struct bench *b = *state;
    struct hed_worker_status *w = b->status;
    struct hed_buf text;

    memset(w->program, '"', sizeof w->program); /* without a terminating NUL, too */
    (void)snprintf(b->server.children[0].peer, sizeof b->server.children[0].peer, "a\"b\\\n\x01");
    b->server.ledger.leased[0][2] = 5;
    w->failed = UINT32_MAX;
    w->last_ns = UINT64_MAX;
    hed_buf_init(&text, HED_STATUS_MAX);
    hed_status_write(&b->server, NULL, &text);
    assert_int_equal(text.err, 0);
    assert_non_null(strstr(hed_buf_cstr(&text), "\"peer\":\"a\\\"b\\\\\\n\\u0001\""));
    assert_non_null(strstr(hed_buf_cstr(&text), "\"leased_bytes\":[0,0,5]"));
    assert_non_null(strstr(hed_buf_cstr(&text), "\"devices\":[{\"index\":2,"));
    hed_buf_fini(&text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(channel_goes_to_its_worker, setup, teardown),
    cmocka_unit_test_setup_teardown(channel_of_no_session_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(channel_of_somebody_else_is_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(channel_to_a_busy_worker_does_not_block, setup, teardown),
    cmocka_unit_test_setup_teardown(orders_of_operators_go_to_the_worker, setup, teardown),
    cmocka_unit_test_setup_teardown(orders_of_others_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(channel_that_waits_has_left_its_gate, setup, teardown),
    cmocka_unit_test_setup_teardown(wrong_answers_of_a_gate_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(a_gate_ends_with_the_peer, setup, teardown),
    cmocka_unit_test_setup_teardown(status_quotes_what_workers_write, setup, teardown),
};

HED_UNIT_MAIN(tests)
