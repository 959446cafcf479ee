/* The bridge with an honest guest: streams both ways, their ends, and those of the guest. */
#include "harness/unit.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/sanitize.h"
#include "unit/vm/guest.h"

#define MEGABYTE (1u << 20)

static struct guest g;

static void
expect_end_of_stream(int fd)
{
    char byte;

    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

static void
the_device_describes_itself(void **state)
{
    struct {
        uint32_t offset, size, flags;
        uint64_t cid;
    } __attribute__((packed)) config = {0, 8, 0, 0};

    guest_begin(&g, NULL);
    guest_say(&g, GET_CONFIG, 1, &config, sizeof config, NULL, 0);
    assert_int_equal(guest_hear(&g, &config, sizeof config), sizeof config);
    assert_int_equal(config.cid, GUEST_CID);
    config.offset = 8;
    guest_say(&g, GET_CONFIG, 1, &config, sizeof config, NULL, 0);
    assert_int_equal(guest_hear(&g, &config, sizeof config), 0);
    assert_int_equal(guest_end(&g), 0);
}

/* To the host, to the guest, and both at the same time. */
static void
exchange_bytes(const struct guest_how *how)
{
    struct guest_stream *s = &g.streams[3];
    struct host_task reader, writer;

    guest_begin(&g, how);

    const int fd = guest_connect(&g, 3);

    assert_true(fd >= 0);
    host_read(&reader, fd, s->port, 0, 8 * MEGABYTE);
    guest_write(&g, s, 8 * MEGABYTE);
    host_wait(&reader);
    host_write(&writer, fd, s->port, 0, 8 * MEGABYTE);
    guest_read_until(&g, s, 8 * MEGABYTE);
    host_wait(&writer);
    host_read(&reader, fd, s->port, 8 * MEGABYTE, 4 * MEGABYTE);
    host_write(&writer, fd, s->port, 8 * MEGABYTE, 4 * MEGABYTE);
    guest_write(&g, s, 4 * MEGABYTE);
    guest_read_until(&g, s, 12 * MEGABYTE);
    host_wait(&reader);
    host_wait(&writer);
    assert_int_equal(guest_end(&g), 0);
    expect_end_of_stream(fd);
}

static void
bytes_go_both_ways(void **state)
{
    exchange_bytes(NULL);
}

static void
bytes_go_without_event_indexes(void **state)
{
    exchange_bytes(&(struct guest_how){.no_events = true});
}

static void
bytes_go_through_indirect_tables(void **state)
{
    exchange_bytes(&(struct guest_how){.indirect = true});
}

/* ThreadSanitizer has a thread of its own, with which no process enters the sandbox. */
#define HAS_ONE_THREAD (!HED_TSAN)

static void
bytes_go_in_the_sandbox(void **state)
{
    if (!HAS_ONE_THREAD)
        skip();
    exchange_bytes(&(struct guest_how){.confined = true, .silent_ms = 60000});
}

static void
single_bytes_go_back_and_forth(void **state)
{
    struct guest_stream *s = &g.streams[0];
    uint8_t byte;

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    for (uint32_t i = 0; i < 2000; i++) {
        guest_write(&g, s, 1);
        assert_int_equal(read(fd, &byte, 1), 1);
        assert_int_equal(byte, guest_pattern(s->port, i));
        assert_int_equal(write(fd, &byte, 1), 1);
        guest_read_until(&g, s, i + 1);
    }
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

static void
many_streams_live_side_by_side(void **state)
{
    static struct host_task readers[GUEST_STREAMS], writers[GUEST_STREAMS];
    static int fds[GUEST_STREAMS];

    guest_begin(&g, NULL);
    for (uint32_t i = 0; i < GUEST_STREAMS; i++)
        fds[i] = guest_connect(&g, i);
    for (uint32_t i = 0; i < GUEST_STREAMS; i++) {
        host_read(&readers[i], fds[i], g.streams[i].port, 0, 100000);
        host_write(&writers[i], fds[i], g.streams[i].port, 0, 50000);
    }
    for (uint32_t round = 0; round < 4; round++)
        for (uint32_t i = 0; i < GUEST_STREAMS; i++)
            guest_write(&g, &g.streams[i], 25000);
    for (uint32_t i = 0; i < GUEST_STREAMS; i++) {
        guest_read_until(&g, &g.streams[i], 50000);
        host_wait(&readers[i]);
        host_wait(&writers[i]);
    }
    assert_int_equal(guest_end(&g), 0);
    for (uint32_t i = 0; i < GUEST_STREAMS; i++)
        expect_end_of_stream(fds[i]);
}

static void
streams_over_the_limit_and_other_ports_are_refused(void **state)
{
    struct virtio_vsock_hdr h = guest_header(&g.streams[0], VIRTIO_VSOCK_OP_REQUEST);
    int fds[4];

    guest_begin(&g, &(struct guest_how){.connections = 3});
    for (uint32_t i = 0; i < 3; i++)
        fds[i] = guest_connect(&g, i);
    assert_int_equal(guest_connect(&g, 3), -1);

    /* Another port, another machine, another kind of socket. */
    h = guest_header(&g.streams[9], VIRTIO_VSOCK_OP_REQUEST);
    h.dst_port = 22;
    guest_send(&g, &h, NULL);
    h = guest_header(&g.streams[9], VIRTIO_VSOCK_OP_REQUEST);
    h.dst_cid = 3;
    guest_send(&g, &h, NULL);
    h = guest_header(&g.streams[9], VIRTIO_VSOCK_OP_REQUEST);
    h.type = VIRTIO_VSOCK_TYPE_SEQPACKET;
    guest_send(&g, &h, NULL);
    while (g.stray_resets < 3)
        (void)guest_take(&g);

    /* The place of one that has ended is free again. */
    guest_tell(&g, &g.streams[1], VIRTIO_VSOCK_OP_RST, 0);
    fds[3] = guest_connect(&g, 3);
    assert_true(fds[3] >= 0);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    assert_int_equal(guest_end(&g), 0);
}

/* Sends on the stream until nothing more is taken, although the guest waits for it. */
static void
fill_stream(struct guest_stream *s, struct guest_stream *other, int other_fd)
{
    uint8_t byte;

    while (s->sent - s->host_read < s->host_buffer) {
        guest_write(&g, s, s->host_buffer - (s->sent - s->host_read));
        /* When the answer is here, everything before was handled. */
        guest_write(&g, other, 1);
        assert_int_equal(read(other_fd, &byte, 1), 1);
        const uint32_t credits = other->credits;

        guest_tell(&g, other, VIRTIO_VSOCK_OP_CREDIT_REQUEST, 0);
        while (other->credits == credits)
            (void)guest_take(&g);
    }
}

static void
a_stalled_reader_of_the_host_stops_no_other_stream(void **state)
{
    struct guest_stream *stalled = &g.streams[0], *running = &g.streams[1];
    struct host_task reader, writer;

    guest_begin(&g, NULL);

    const int stalled_fd = guest_connect(&g, 0), fd = guest_connect(&g, 1);

    fill_stream(stalled, running, fd);

    const uint32_t before = running->sent, filled = stalled->sent;

    host_read(&reader, fd, running->port, before, 4 * MEGABYTE);
    host_write(&writer, fd, running->port, 0, 4 * MEGABYTE);
    guest_write(&g, running, 4 * MEGABYTE);
    guest_read_until(&g, running, 4 * MEGABYTE);
    host_wait(&reader);
    host_wait(&writer);
    assert_int_equal(stalled->sent, filled);
    /* It goes on where it was. */
    host_read(&reader, stalled_fd, stalled->port, 0, filled + MEGABYTE);
    guest_write(&g, stalled, MEGABYTE);
    host_wait(&reader);
    close(fd);
    close(stalled_fd);
    assert_int_equal(guest_end(&g), 0);
}

static void
a_stalled_reader_of_the_guest_stops_no_other_stream(void **state)
{
    struct guest_stream *stalled = &g.streams[0], *running = &g.streams[1];
    struct host_task first, second;

    guest_begin(&g, NULL);

    const int stalled_fd = guest_connect(&g, 0), fd = guest_connect(&g, 1);

    stalled->stalled = true;
    host_write(&first, stalled_fd, stalled->port, 0, 4 * MEGABYTE);
    host_write(&second, fd, running->port, 0, 4 * MEGABYTE);
    guest_read_until(&g, running, 4 * MEGABYTE);
    guest_read_until(&g, stalled, GUEST_BUFFER);
    host_wait(&second);
    assert_int_equal(stalled->got, GUEST_BUFFER);
    stalled->stalled = false;
    guest_tell(&g, stalled, VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0);
    guest_read_until(&g, stalled, 4 * MEGABYTE);
    host_wait(&first);
    close(fd);
    close(stalled_fd);
    assert_int_equal(guest_end(&g), 0);
}

/* ---- ends of streams ------------------------------------------------------------------------- */

static void
the_guest_may_close_one_direction(void **state)
{
    struct guest_stream *s = &g.streams[0];
    struct host_task task;

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);
    char byte;

    host_read(&task, fd, s->port, 0, MEGABYTE);
    guest_write(&g, s, MEGABYTE);
    guest_tell(&g, s, VIRTIO_VSOCK_OP_SHUTDOWN, VIRTIO_VSOCK_SHUTDOWN_SEND);
    host_wait(&task);
    assert_int_equal(read(fd, &byte, 1), 0);
    host_write(&task, fd, s->port, 0, MEGABYTE);
    guest_read_until(&g, s, MEGABYTE);
    host_wait(&task);
    close(fd);
    while (s->host_shut != HED_VSOCK_BOTH)
        (void)guest_take(&g);
    guest_tell(&g, s, VIRTIO_VSOCK_OP_RST, 0);
    assert_int_equal(guest_end(&g), 0);
}

static void
the_host_may_close_one_direction(void **state)
{
    struct guest_stream *s = &g.streams[0];
    struct host_task task;

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    host_write(&task, fd, s->port, 0, MEGABYTE);
    host_wait(&task);
    shutdown(fd, SHUT_WR);
    while (!s->host_shut)
        (void)guest_take(&g);
    assert_int_equal(s->host_shut, VIRTIO_VSOCK_SHUTDOWN_SEND);
    assert_int_equal(s->got, MEGABYTE);
    host_read(&task, fd, s->port, 0, MEGABYTE);
    guest_write(&g, s, MEGABYTE);
    host_wait(&task);
    close(fd);
    while (s->host_shut != HED_VSOCK_BOTH)
        (void)guest_take(&g);
    assert_int_equal(guest_end(&g), 0);
}

/* What the guest had sent before it closed a stream arrives, however late the host reads it. */
static void
bytes_outlive_the_stream(void **state)
{
    struct guest_stream *s = &g.streams[0];
    struct host_task task;

    guest_begin(&g, &(struct guest_how){.connections = 2});

    const int other = guest_connect(&g, 1), fd = guest_connect(&g, 0);

    fill_stream(s, &g.streams[1], other);
    guest_tell(&g, s, VIRTIO_VSOCK_OP_SHUTDOWN, HED_VSOCK_BOTH);
    while (!s->reset)
        (void)guest_take(&g);
    host_read(&task, fd, s->port, 0, s->sent);
    host_wait(&task);
    expect_end_of_stream(fd);
    close(other);
    assert_int_equal(guest_end(&g), 0);
}

/* What the host had sent before it closed its socket arrives, and then the end. */
static void
the_last_bytes_of_the_host_arrive(void **state)
{
    guest_begin(&g, NULL);
    for (uint32_t i = 0; i < 200; i++) {
        struct guest_stream *s = &g.streams[i];
        const int fd = guest_connect(&g, i);
        struct host_task task;

        host_write(&task, fd, s->port, 0, 1 + i * 100);
        host_wait(&task);
        close(fd);
        while (s->host_shut != HED_VSOCK_BOTH)
            (void)guest_take(&g);
        assert_int_equal(s->got, 1 + i * 100);
        guest_tell(&g, s, VIRTIO_VSOCK_OP_RST, 0);
    }
    assert_int_equal(guest_end(&g), 0);
}

static void
a_reset_by_the_guest_closes_the_socket(void **state)
{
    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    guest_tell(&g, &g.streams[0], VIRTIO_VSOCK_OP_RST, 0);
    expect_end_of_stream(fd);
    assert_int_equal(guest_end(&g), 0);
}

/* Whoever says something on a stream that has ended, or never was, hears that it is gone. */
static void
unknown_streams_are_reset(void **state)
{
    guest_begin(&g, NULL);
    for (uint32_t i = 0; i < 200; i++) {
        guest_tell(&g, &g.streams[i], VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0);
        guest_tell(&g, &g.streams[i], VIRTIO_VSOCK_OP_RST, 0);
    }
    for (uint32_t i = 0; i < 200; i++)
        while (!g.streams[i].reset)
            (void)guest_take(&g);
    assert_int_equal(guest_end(&g), 0);
}

static void
a_closed_reader_of_the_host_is_told(void **state)
{
    struct guest_stream *s = &g.streams[0];

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    close(fd);
    while (s->host_shut != HED_VSOCK_BOTH)
        (void)guest_take(&g);
    guest_write(&g, s, 1000); /* on its way when the host closed it: no answer */
    guest_tell(&g, s, VIRTIO_VSOCK_OP_SHUTDOWN, HED_VSOCK_BOTH);
    while (!s->reset)
        (void)guest_take(&g);
    assert_int_equal(guest_end(&g), 0);
}

/* ---- ends of guests -------------------------------------------------------------------------- */

static void
a_silent_guest_is_cut_off(void **state)
{
    struct pollfd hung = {.events = POLLIN};

    guest_begin(&g, &(struct guest_how){.silent_ms = 30});
    hung.fd = guest_connect(&g, 0);
    g.mute = true;
    assert_int_equal(poll(&hung, 1, PATIENCE_MS), 1);
    expect_end_of_stream(hung.fd);
    while (!g.streams[0].reset)
        (void)guest_take(&g);
    assert_true(g.streams[0].asked > 0);
    /* It may come back. */
    g.mute = false;

    const int fd = guest_connect(&g, 1);

    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

static void
a_guest_that_answers_stays(void **state)
{
    struct guest_stream *s = &g.streams[0];
    struct host_task task;

    guest_begin(&g, &(struct guest_how){.silent_ms = 3000});

    const int fd = guest_connect(&g, 0);

    while (s->asked < 2)
        (void)guest_take(&g);
    host_read(&task, fd, s->port, 0, 1000);
    guest_write(&g, s, 1000);
    host_wait(&task);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

static void
a_stopped_guest_goes_on(void **state)
{
    struct guest_stream *s = &g.streams[0];
    struct host_task task;

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    for (uint32_t i = 0; i < 2; i++)
        assert_true(guest_stop_queue(&g, i) <= guest_queue(&g, i)->next);
    host_write(&task, fd, s->port, 0, MEGABYTE);
    guest_say_memory(&g);
    for (uint32_t i = 0; i < 2; i++)
        guest_start_queue(&g, i, guest_queue(&g, i)->used->idx);
    guest_read_until(&g, s, MEGABYTE);
    host_wait(&task);
    /* Memory may move while queues are used. */
    guest_say_memory(&g);
    host_write(&task, fd, s->port, MEGABYTE, MEGABYTE);
    guest_read_until(&g, s, 2 * MEGABYTE);
    host_wait(&task);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

/* QEMU hands queues over before it says how to interrupt the guest. What is used in between must
 * not wait for the next packet. */
static void
an_interrupt_before_its_descriptor_is_not_lost(void **state)
{
    const uint64_t queue = 0, no_fd = 0x100;
    struct pollfd p;
    uint64_t count;

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    guest_say_number(&g, SET_VRING_CALL, queue | no_fd);
    (void)guest_ask_number(&g, GET_FEATURES); /* it has heard that */
    (void)!read(g.rx.call, &count, sizeof count);
    assert_int_equal(write(fd, "x", 1), 1);
    while (__atomic_load_n(&g.rx.used->idx, __ATOMIC_ACQUIRE) == g.rx.seen)
        sched_yield();
    p = (struct pollfd){.fd = g.rx.call, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 0), 0);
    guest_say(&g, SET_VRING_CALL, 1, &queue, sizeof queue, &g.rx.call, 1);
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

/* Makes the queues as empty as they are for a driver that begins. */
static void
renew_queues(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct guest_queue *q = guest_queue(&g, i);

        q->avail->idx = 0;
        q->used->idx = 0;
        q->next = 0;
        q->seen = 0;
        guest_start_queue(&g, i, 0);
    }
}

static void
a_guest_that_starts_anew_has_no_streams(void **state)
{
    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    for (uint32_t i = 0; i < 2; i++)
        (void)guest_stop_queue(&g, i);
    renew_queues();
    expect_end_of_stream(fd);
    assert_int_equal(guest_end(&g), 0);
}

static void
a_reset_device_has_no_streams(void **state)
{
    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    guest_say(&g, RESET_DEVICE, 1, NULL, 0, NULL, 0);
    expect_end_of_stream(fd);
    assert_int_equal(guest_end(&g), 0);
}

static void
the_bridge_ends_with_its_listener(void **state)
{
    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    shutdown(g.listener, SHUT_RDWR);
    assert_int_equal(guest_wait_end(&g), 0);
    expect_end_of_stream(fd);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_device_describes_itself),
    cmocka_unit_test(bytes_go_both_ways),
    cmocka_unit_test(bytes_go_without_event_indexes),
    cmocka_unit_test(bytes_go_through_indirect_tables),
    cmocka_unit_test(bytes_go_in_the_sandbox),
    cmocka_unit_test(single_bytes_go_back_and_forth),
    cmocka_unit_test(many_streams_live_side_by_side),
    cmocka_unit_test(streams_over_the_limit_and_other_ports_are_refused),
    cmocka_unit_test(a_stalled_reader_of_the_host_stops_no_other_stream),
    cmocka_unit_test(a_stalled_reader_of_the_guest_stops_no_other_stream),
    cmocka_unit_test(the_guest_may_close_one_direction),
    cmocka_unit_test(the_host_may_close_one_direction),
    cmocka_unit_test(bytes_outlive_the_stream),
    cmocka_unit_test(the_last_bytes_of_the_host_arrive),
    cmocka_unit_test(a_reset_by_the_guest_closes_the_socket),
    cmocka_unit_test(unknown_streams_are_reset),
    cmocka_unit_test(a_closed_reader_of_the_host_is_told),
    cmocka_unit_test(a_silent_guest_is_cut_off),
    cmocka_unit_test(a_guest_that_answers_stays),
    cmocka_unit_test(a_stopped_guest_goes_on),
    cmocka_unit_test(an_interrupt_before_its_descriptor_is_not_lost),
    cmocka_unit_test(a_guest_that_starts_anew_has_no_streams),
    cmocka_unit_test(a_reset_device_has_no_streams),
    cmocka_unit_test(the_bridge_ends_with_its_listener),
};

HED_UNIT_MAIN(tests)
