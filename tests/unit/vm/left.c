/* Streams that the guest leaves before the host has read all of them. */
#include "harness/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "unit/vm/guest.h"

static struct guest g;

/* A stream of which the bridge holds bytes that the socket does not take, and which the guest has
 * left. Returns the host's end. */
static int
leave_unread_stream(uint32_t n)
{
    const int fd = guest_connect(&g, n);
    struct guest_stream *s = &g.streams[n];
    int room;
    socklen_t size = sizeof room;

    assert_true(fd >= 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size), 0); /* as the bridge's */
    guest_write(&g, s, (uint32_t)room + HED_VSOCK_PACKET);
    guest_tell(&g, s, VIRTIO_VSOCK_OP_SHUTDOWN, HED_VSOCK_BOTH);
    while (!s->reset)
        (void)guest_take(&g);
    return fd;
}

/* The host hangs up without reading it. Nothing is left of the stream: the guest is told no more of
 * it, its place can be used, and the device can start anew. */
static void
a_left_stream_ends_once(void **state)
{
    guest_begin(&g, &(struct guest_how){.connections = 1});
    close(leave_unread_stream(0));

    const int fd = guest_connect(&g, 1);

    assert_true(fd >= 0);
    assert_int_equal(g.streams[0].host_shut, 0);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

static void
a_device_with_left_streams_starts_anew(void **state)
{
    guest_begin(&g, NULL);
    close(leave_unread_stream(0));
    guest_say(&g, RESET_DEVICE, 1, NULL, 0, NULL, 0);
    assert_int_equal(guest_end(&g), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_left_stream_ends_once),
    cmocka_unit_test(a_device_with_left_streams_starts_anew),
};

HED_UNIT_MAIN(tests)
