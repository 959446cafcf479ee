/* A guest and a QEMU that mean harm. The bridge ends with an error, or does without the stream; it
 * never touches memory that is not the guest's. */
#include "harness/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "unit/vm/guest.h"

#define HEADER sizeof(struct virtio_vsock_hdr)

static struct guest g;

/* ---- messages -------------------------------------------------------------------------------- */

struct row {
    const char *what;
    uint32_t request, flags, said; /* the size that the head says */
    uint64_t words[5];
    uint32_t size; /* that is sent */
    int fds;
    int result;
};

#define MAX UINT64_MAX
#define STATE(queue, number) ((uint64_t)(number) << 32 | (queue))

static const struct row rows[] = {
    {"number 0", 0, 1, 0, {0}, 0, 0, HED_ENOTSUP},
    {"an unknown number", 1000, 1, 0, {0}, 0, 0, HED_ENOTSUP},
    {"the largest number", UINT32_MAX, 1, 0, {0}, 0, 0, HED_ENOTSUP},
    {"what was not offered", SET_LOG_BASE, 1, 16, {0}, 16, 0, HED_ENOTSUP},
    {"version 2", GET_FEATURES, 2, 0, {0}, 0, 0, HED_EFORMAT},
    {"an answer", GET_FEATURES, 5, 0, {0}, 0, 0, HED_EFORMAT},
    {"a question with bytes", GET_FEATURES, 1, 8, {0}, 8, 0, HED_EFORMAT},
    {"a number without", SET_FEATURES, 1, 0, {0}, 0, 0, HED_EFORMAT},
    {"a huge size", SET_FEATURES, 1, UINT32_MAX, {0}, 8, 0, HED_EFORMAT},
    {"features that were not offered", SET_FEATURES, 1, 8, {MAX}, 8, 0, HED_EFORMAT},
    {"the same", SET_PROTOCOL_FEATURES, 1, 8, {MAX}, 8, 0, HED_EFORMAT},
    {"a descriptor for nothing", SET_OWNER, 1, 0, {0}, 0, 1, HED_EFORMAT},
    {"too many descriptors", SET_MEM_TABLE, 1, 8, {0}, 8, 40, HED_EFORMAT},
    {"as many descriptors as can be", SET_OWNER, 1, 0, {0}, 0, 8, HED_EFORMAT},
    {"a queue that there is not", SET_VRING_NUM, 1, 8, {STATE(2, 128)}, 8, 0, HED_EFORMAT},
    {"the same, far away", SET_VRING_BASE, 1, 8, {STATE(UINT32_MAX, 0)}, 8, 0, HED_EFORMAT},
    {"the same, with a descriptor", SET_VRING_KICK, 1, 8, {5}, 8, 1, HED_EFORMAT},
    {"a queue without a size", SET_VRING_NUM, 1, 8, {STATE(0, 0)}, 8, 0, HED_EFORMAT},
    {"a size that is no power of two", SET_VRING_NUM, 1, 8, {STATE(0, 100)}, 8, 0, HED_EFORMAT},
    {"a huge queue", SET_VRING_NUM, 1, 8, {STATE(0, 65536)}, 8, 0, HED_EFORMAT},
    {"a huge base", SET_VRING_BASE, 1, 8, {STATE(0, 65536)}, 8, 0, HED_EFORMAT},
    {"a kick before all else", SET_VRING_KICK, 1, 8, {0}, 8, 1, HED_EFORMAT},
    {"a kick without its descriptor", SET_VRING_KICK, 1, 8, {0}, 8, 0, HED_EFORMAT},
    {"a queue to be polled", SET_VRING_KICK, 1, 8, {0x100}, 8, 0, HED_EFORMAT},
    {"a descriptor that is said not to be", SET_VRING_CALL, 1, 8, {0x100}, 8, 1, HED_EFORMAT},
    {"bits that mean nothing", SET_VRING_CALL, 1, 8, {0x1000}, 8, 1, HED_EFORMAT},
    {"a queue half enabled", SET_VRING_ENABLE, 1, 8, {STATE(0, 2)}, 8, 0, HED_EFORMAT},
    {"a question of another size", GET_CONFIG, 1, 16, {STATE(0, 200), 0}, 16, 0, HED_EFORMAT},
    {"a table that is too short", SET_MEM_TABLE, 1, 8, {1}, 8, 1, HED_EFORMAT},
    {"a table without descriptors", SET_MEM_TABLE, 1, 40, {1, 0, 4096, 0, 0}, 40, 0, HED_EFORMAT},
    {"too many regions", SET_MEM_TABLE, 1, 8, {STATE(UINT32_MAX, 0)}, 8, 1, HED_EFORMAT},
    {"a region without a size", SET_MEM_TABLE, 1, 40, {1, 0, 0, 0, 0}, 40, 1, HED_EFORMAT},
    {"a region that wraps", SET_MEM_TABLE, 1, 40, {1, MAX - 1, 4096, 0, 0}, 40, 1, HED_EFORMAT},
    {"the same for QEMU", SET_MEM_TABLE, 1, 40, {1, 0, 4096, MAX - 1, 0}, 40, 1, HED_EFORMAT},
    {"an offset that wraps", SET_MEM_TABLE, 1, 40, {1, 0, 4096, 0, MAX - 1}, 40, 1, HED_EFORMAT},
    {"a region over the end", SET_MEM_TABLE, 1, 40, {1, 0, 1 << 30, 0, 0}, 40, 1, HED_EFORMAT},
};

static void
impossible_messages_end_the_bridge(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        struct {
            struct hed_vhost_head head;
            uint64_t words[5];
        } __attribute__((packed)) m = {{r->request, r->flags, r->said}, {0}};
        int fds[40];

        guest_open(&g, NULL);
        for (int j = 0; j < r->fds; j++)
            fds[j] = g.memory;
        memcpy(m.words, r->words, sizeof m.words);
        guest_say_raw(&g, &m, sizeof m.head + r->size, fds, r->fds);

        const int result = guest_wait_end(&g);

        if (result != r->result)
            fail_msg("%s: %d", r->what, result);
    }
}

/* QEMU's socket may give its bytes one by one, and may end anywhere. */
static void
messages_may_come_in_pieces(void **state)
{
    const struct hed_vhost_head question = {GET_FEATURES, 1, 0};
    const struct hed_vhost_head chosen = {SET_FEATURES, 1, 8};
    uint64_t features;

    guest_open(&g, NULL);
    for (size_t i = 0; i < sizeof question; i++)
        guest_say_raw(&g, (const uint8_t *)&question + i, 1, NULL, 0);
    assert_int_equal(guest_hear(&g, &features, sizeof features), sizeof features);
    guest_say_raw(&g, &chosen, sizeof chosen, NULL, 0);
    guest_say_raw(&g, &features, 3, NULL, 0);
    assert_int_equal(guest_end(&g), 0);
}

static void
overlapping_regions_are_refused(void **state)
{
    static const struct hed_guest_place pairs[][2] = {
        {{0, 8192, 0, 0}, {4096, 8192, 1 << 20, 0}},    /* for the guest */
        {{0, 8192, 0, 0}, {1 << 20, 8192, 8191, 0}},    /* for QEMU */
        {{4096, 4096, 0, 0}, {0, 1 << 20, 1 << 20, 0}}, /* one inside the other */
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct {
            uint64_t count;
            struct hed_guest_place places[2];
        } m = {2, {pairs[i][0], pairs[i][1]}};

        guest_open(&g, NULL);
        guest_say(&g, SET_MEM_TABLE, 1, &m, sizeof m, (int[]){g.memory, g.memory}, 2);
        assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
    }
}

/* Memory that cannot be mapped, because it is no file or may not be written. */
static void
memory_must_be_a_file(void **state)
{
    const uint64_t words[] = {1, 0, 4096, 0, 0};

    guest_open(&g, NULL);
    guest_say(&g, SET_MEM_TABLE, 1, words, sizeof words, &g.listener, 1);
    assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
}

static void
queues_must_be_inside_the_memory(void **state)
{
    static const uint64_t places[][3] = {
        /* desc, used, avail */
        {0, 4096, 8192},                                             /* nowhere */
        {GUEST_USER + GUEST_RAM / 2 - 1024, GUEST_USER, GUEST_USER}, /* over the end */
        {GUEST_USER, GUEST_USER + GUEST_RAM / 2 - 8, GUEST_USER},
        {GUEST_USER, GUEST_USER, GUEST_USER + GUEST_RAM / 2 - 2},
        {GUEST_USER + 8, GUEST_USER, GUEST_USER}, /* not aligned */
        {GUEST_USER, GUEST_USER + 2, GUEST_USER},
        {GUEST_USER, GUEST_USER, GUEST_USER + 1},
        {UINT64_MAX - 15, UINT64_MAX - 3, UINT64_MAX - 1},
    };

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const struct {
            uint32_t queue, flags;
            uint64_t desc, used, avail, log;
        } address = {0, 0, places[i][0], places[i][1], places[i][2], 0};
        const uint64_t queue = 0;

        guest_open(&g, NULL);
        guest_say_number(&g, SET_PROTOCOL_FEATURES, 8);
        guest_say_memory(&g);
        guest_say_state(&g, SET_VRING_NUM, 0, 128);
        guest_say(&g, SET_VRING_ADDR, 1, &address, sizeof address, NULL, 0);
        guest_say(&g, SET_VRING_KICK, 1, &queue, sizeof queue, &g.rx.kick, 1);
        if (guest_wait_end(&g) != HED_EFORMAT)
            fail_msg("place %zu", i);
    }
}

static void
a_queue_that_is_used_does_not_change(void **state)
{
    guest_begin(&g, NULL);
    guest_say_state(&g, SET_VRING_NUM, 0, 256);
    assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
    guest_begin(&g, NULL);
    guest_say_state(&g, SET_VRING_BASE, 1, 0);
    assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
}

/* The memory goes away under queues that are used. */
static void
memory_is_not_taken_from_queues(void **state)
{
    const uint64_t none = 0;

    guest_begin(&g, NULL);
    guest_say(&g, SET_MEM_TABLE, 1, &none, sizeof none, NULL, 0);
    assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
}

/* ---- queues ---------------------------------------------------------------------------------- */

static void
set_desc(struct guest_queue *q, uint16_t i, uint64_t address, uint32_t n, uint16_t flags,
         uint16_t next)
{
    q->desc[i] = (struct vring_desc){.addr = address, .len = n, .flags = flags, .next = next};
}

enum { NEXT = VRING_DESC_F_NEXT, WRITE = VRING_DESC_F_WRITE, TABLE = VRING_DESC_F_INDIRECT };

static const struct chain_row {
    const char *what;
    uint64_t address;
    uint32_t n;
    uint16_t flags, next, head;
} chain_rows[] = {
    {"a loop", GUEST_BASE, 1, NEXT, 0, 0},
    {"a next that there is not", GUEST_BASE, 1, NEXT, 128, 0},
    {"a head that there is not", GUEST_BASE, HEADER, 0, 0, 128},
    {"the last head", GUEST_BASE, HEADER, 0, 0, 65535},
    {"before the memory", GUEST_BASE - 1, HEADER, 0, 0, 0},
    {"after the memory", GUEST_BASE + GUEST_RAM, HEADER, 0, 0, 0},
    {"over the end", GUEST_BASE + GUEST_RAM - 8, HEADER, 0, 0, 0},
    {"all of the memory and more", GUEST_BASE, UINT32_MAX, 0, 0, 0},
    {"the last address", UINT64_MAX, HEADER, 0, 0, 0},
    {"a wrap", UINT64_MAX - 8, HEADER, 0, 0, 0},
    {"to be written", GUEST_BASE, HEADER, WRITE, 0, 0},
    {"a table that was not agreed on", GUEST_BASE, 32, TABLE, 0, 0},
    {"shorter than a header", GUEST_BASE, HEADER - 1, 0, 0, 0},
    {"nothing", GUEST_BASE, 0, 0, 0, 0},
};

static void
impossible_chains_end_the_bridge(void **state)
{
    for (size_t i = 0; i < sizeof chain_rows / sizeof *chain_rows; i++) {
        const struct chain_row *r = &chain_rows[i];

        guest_begin(&g, NULL);
        set_desc(&g.tx, 0, r->address, r->n, r->flags, r->next);
        guest_offer(&g, &g.tx, r->head);

        const int result = guest_wait_end(&g);

        if (result != HED_EFORMAT)
            fail_msg("%s: %d", r->what, result);
    }
}

static void
impossible_tables_end_the_bridge(void **state)
{
    const uint64_t place = GUEST_BASE + 65536;
    static const struct {
        uint32_t n;
        uint16_t flags, inner;
        uint64_t moved;
    } tables[] = {
        {0, TABLE, 0, 0},                           /* empty */
        {24, TABLE, 0, 0},                          /* not whole */
        {16 * 2048, TABLE, 0, 0},                   /* too long */
        {32, TABLE | NEXT, 0, 0},                   /* with something after it */
        {32, TABLE, TABLE, 0},                      /* in a table */
        {32, TABLE, NEXT, 0},                       /* a loop */
        {32, TABLE, 0, GUEST_RAM},                  /* outside */
        {32, TABLE, 0, GUEST_RAM / 2 - 65536 - 16}, /* in two regions */
    };

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct vring_desc *inner = NULL;

        guest_begin(&g, &(struct guest_how){.indirect = true});
        inner = (void *)(g.ram + 65536);
        inner[0] = (struct vring_desc){GUEST_BASE, 16, tables[i].inner, 0};
        set_desc(&g.tx, 0, place + tables[i].moved, tables[i].n, tables[i].flags, 0);
        guest_offer(&g, &g.tx, 0);

        const int result = guest_wait_end(&g);

        if (result != HED_EFORMAT)
            fail_msg("table %zu: %d", i, result);
    }
}

static void
an_endless_chain_ends_the_bridge(void **state)
{
    guest_begin(&g, NULL);
    for (uint16_t i = 0; i < GUEST_QUEUE; i++)
        set_desc(&g.tx, i, GUEST_BASE, 1, NEXT, (uint16_t)(i + 1));
    guest_offer(&g, &g.tx, 0);
    assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
}

static void
an_index_that_jumps_ends_the_bridge(void **state)
{
    static const uint16_t jumps[] = {GUEST_QUEUE + 1, 0x8000, 0xffff};

    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        const uint64_t one = 1;

        guest_begin(&g, NULL);
        __atomic_store_n(&g.tx.avail->idx, jumps[i], __ATOMIC_RELEASE);
        assert_int_equal(write(g.tx.kick, &one, sizeof one), sizeof one);
        assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
    }
}

/* Buffers that the bridge would have to write to. */
static void
impossible_buffers_to_fill_end_the_bridge(void **state)
{
    static const struct {
        uint64_t address;
        uint32_t n;
        uint16_t flags;
    } buffers[] = {
        {GUEST_BASE, HEADER, 0},                 /* to be read */
        {GUEST_BASE, HEADER - 1, WRITE},         /* too small */
        {GUEST_BASE + GUEST_RAM, HEADER, WRITE}, /* outside */
        {GUEST_BASE + GUEST_RAM - 1, UINT32_MAX, WRITE},
    };

    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        guest_begin(&g, NULL);
        for (uint16_t d = 0; d < GUEST_QUEUE; d++)
            set_desc(&g.rx, d, buffers[i].address, buffers[i].n, buffers[i].flags, 0);
        guest_tell(&g, &g.streams[0], VIRTIO_VSOCK_OP_REQUEST, 0);
        if (guest_wait_end(&g) != HED_EFORMAT)
            fail_msg("buffer %zu", i);
    }
}

/* ---- packets --------------------------------------------------------------------------------- */

static void
a_packet_that_lies_about_its_size_ends_the_bridge(void **state)
{
    static const uint32_t sizes[] = {1, 65536, UINT32_MAX, UINT32_MAX - 43};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct virtio_vsock_hdr h;

        guest_begin(&g, NULL);
        h = guest_header(&g.streams[0], VIRTIO_VSOCK_OP_RW);
        h.len = sizes[i];
        memcpy(g.ram + 65536, &h, HEADER);
        set_desc(&g.tx, 0, GUEST_BASE + 65536, HEADER, 0, 0);
        guest_offer(&g, &g.tx, 0);
        assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
    }
}

/* QEMU truncates a file of memory. Only the kernel looks at the bytes of a packet, and says so. */
static void
memory_that_becomes_shorter_ends_the_bridge(void **state)
{
    struct virtio_vsock_hdr h;

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    assert_int_equal(ftruncate(g.memory, GUEST_RAM / 2), 0);
    h = guest_header(&g.streams[0], VIRTIO_VSOCK_OP_RW);
    h.len = 4096;
    memcpy(g.ram + 65536, &h, HEADER);
    set_desc(&g.tx, 126, GUEST_BASE + 65536, HEADER, NEXT, 127);
    set_desc(&g.tx, 127, GUEST_BASE + GUEST_RAM / 2, 4096, 0, 0);
    guest_offer(&g, &g.tx, 126);
    assert_int_equal(guest_wait_end(&g), HED_EFORMAT);
    close(fd);
}

/* A guest that sends more than it may loses the stream, and only that. */
static void
more_than_the_credit_resets_the_stream(void **state)
{
    struct guest_stream *s = &g.streams[0];
    struct virtio_vsock_hdr h;
    static uint8_t bytes[GUEST_TX_BYTES];

    guest_begin(&g, NULL);

    const int other = guest_connect(&g, 1), fd = guest_connect(&g, 0);

    while (!s->reset) {
        h = guest_header(s, VIRTIO_VSOCK_OP_RW);
        h.len = sizeof bytes;
        guest_send(&g, &h, bytes);
        while (guest_has_packet(&g))
            (void)guest_take(&g);
    }
    guest_write(&g, &g.streams[1], 1);
    assert_int_equal(read(other, bytes, 1), 1);
    close(other);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

/* What makes no sense on a stream resets it. */
static void
senseless_packets_reset_the_stream(void **state)
{
    static const uint16_t ops[] = {VIRTIO_VSOCK_OP_INVALID, VIRTIO_VSOCK_OP_REQUEST,
                                   VIRTIO_VSOCK_OP_RESPONSE, 99};

    guest_begin(&g, NULL);
    for (uint32_t i = 0; i < 4; i++) {
        const int fd = guest_connect(&g, i);
        char byte;

        guest_tell(&g, &g.streams[i], ops[i], 0);
        while (!g.streams[i].reset)
            (void)guest_take(&g);
        assert_int_equal(read(fd, &byte, 1), 0);
        close(fd);
    }

    /* Bytes after the end of them. */
    const int fd = guest_connect(&g, 4);

    guest_tell(&g, &g.streams[4], VIRTIO_VSOCK_OP_SHUTDOWN, VIRTIO_VSOCK_SHUTDOWN_SEND);
    guest_write(&g, &g.streams[4], 1);
    while (!g.streams[4].reset)
        (void)guest_take(&g);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

/* A guest that lies about what it has read gets no more than its buffers hold. */
static void
impossible_credit_is_no_harm(void **state)
{
    struct guest_stream *s = &g.streams[0];
    struct virtio_vsock_hdr h;
    struct host_task task;

    guest_begin(&g, NULL);

    const int fd = guest_connect(&g, 0);

    h = guest_header(s, VIRTIO_VSOCK_OP_CREDIT_UPDATE);
    h.fwd_cnt = 1000; /* more than it got */
    guest_send(&g, &h, NULL);
    h.buf_alloc = UINT32_MAX;
    h.fwd_cnt = 0;
    guest_send(&g, &h, NULL);
    host_write(&task, fd, s->port, 0, 200000);
    guest_read_until(&g, s, 200000);
    host_wait(&task);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

/* Packets that pretend to come from another guest are dropped. */
static void
foreign_packets_are_dropped(void **state)
{
    struct virtio_vsock_hdr h;

    guest_begin(&g, NULL);
    h = guest_header(&g.streams[0], VIRTIO_VSOCK_OP_REQUEST);
    h.src_cid = GUEST_CID + 1;
    guest_send(&g, &h, NULL);

    const int fd = guest_connect(&g, 1);

    assert_true(fd >= 0);
    assert_false(g.streams[0].up || g.streams[0].reset);
    close(fd);
    assert_int_equal(guest_end(&g), 0);
}

/* Without buffers for answers, a flood of packets that need some waits in the guest's queue. */
static void
a_guest_without_buffers_only_stops_itself(void **state)
{
    guest_begin(&g, NULL);
    for (uint32_t round = 0; round < 4; round++)
        for (uint32_t i = 0; i < 60; i++)
            guest_tell(&g, &g.streams[i], VIRTIO_VSOCK_OP_CREDIT_UPDATE, 0);
    /* Nobody has taken an answer; now all of them come. */
    for (uint32_t taken = 0; taken < 240; taken++)
        assert_int_equal(guest_take(&g).op, VIRTIO_VSOCK_OP_RST);
    assert_int_equal(guest_end(&g), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(impossible_messages_end_the_bridge),
    cmocka_unit_test(messages_may_come_in_pieces),
    cmocka_unit_test(overlapping_regions_are_refused),
    cmocka_unit_test(memory_must_be_a_file),
    cmocka_unit_test(queues_must_be_inside_the_memory),
    cmocka_unit_test(a_queue_that_is_used_does_not_change),
    cmocka_unit_test(memory_is_not_taken_from_queues),
    cmocka_unit_test(impossible_chains_end_the_bridge),
    cmocka_unit_test(impossible_tables_end_the_bridge),
    cmocka_unit_test(an_endless_chain_ends_the_bridge),
    cmocka_unit_test(an_index_that_jumps_ends_the_bridge),
    cmocka_unit_test(impossible_buffers_to_fill_end_the_bridge),
    cmocka_unit_test(a_packet_that_lies_about_its_size_ends_the_bridge),
    cmocka_unit_test(memory_that_becomes_shorter_ends_the_bridge),
    cmocka_unit_test(more_than_the_credit_resets_the_stream),
    cmocka_unit_test(senseless_packets_reset_the_stream),
    cmocka_unit_test(impossible_credit_is_no_harm),
    cmocka_unit_test(foreign_packets_are_dropped),
    cmocka_unit_test(a_guest_without_buffers_only_stops_itself),
};

HED_UNIT_MAIN(tests)
