/* Tests of TLS records: both ends are made by hand, and the records between them are kept, changed,
 * repeated and made up.
 */
#include "unit/wire/records_make.h"

#define PER_KEY (UINT64_C(1) << 24) /* records */
#define BIG (3u << 20)

/* What comes without waiting: an error, or how many bytes. */
static ssize_t
read_now(struct hed_tls_end *t)
{
    char piece[RECORD_ROOM];

    return hed_tls_read(t, piece, sizeof piece, 0);
}

static void *
drink(void *arg)
{
    struct flow *f = arg;

    f->err = read_bytes(f->end, f->n);
    return NULL;
}

static void
check_flow(struct hed_tls_end *from, struct hed_tls_end *to, size_t n)
{
    struct flow f = {from, n, 1};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, pour, &f), 0);
    assert_int_equal(read_bytes(to, n), 0);
    pthread_join(thread, NULL);
    assert_int_equal(f.err, 0);
}

/* The bytes that wait at a socket. */
static size_t
take_raw(int fd, uint8_t *out, size_t room)
{
    const ssize_t n = recv(fd, out, room, MSG_DONTWAIT);

    return n > 0 ? (size_t)n : 0;
}

static void
put_raw(int fd, const void *p, size_t n)
{
    assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), n);
}

static void
send_sealed(struct sealer *s, int fd, uint8_t type, const char *content, size_t n, size_t zeros)
{
    static const char any[CONTENT_MAX + 1] = {'x'};
    uint8_t record[RECORD_ROOM];

    put_raw(fd, record, seal_content(s, type, content ? content : any, n, zeros, record));
}

/* ---- what is carried ------------------------------------------------------------------------- */

static void
all_suites_carry_all_sizes(void **state)
{
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 65536, 65537, 1 << 20};

    for (size_t k = 0; k < 3; k++) {
        struct two t = open_two(&suites[k], 0, false);

        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            check_flow(t.a, t.b, sizes[i]);
            check_flow(t.b, t.a, sizes[i]);
        }
        assert_int_equal(read_now(t.a), HED_ETIME);
        close_two(&t);
    }
}

/* Four threads, and both keys change on the way. */
static void
both_directions_at_once(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        struct two t = open_two(&suites[k], PER_KEY - 20, false);
        struct flow flows[] = {{t.a, BIG, 1}, {t.b, BIG, 1}, {t.a, BIG, 1}, {t.b, BIG, 1}};
        pthread_t threads[4];

        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? pour : drink, &flows[i]), 0);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(flows[i].err, 0);
        }
        close_two(&t);
    }
}

static void
no_key_is_used_for_too_long(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        struct two t = open_two(&suites[k], PER_KEY - 1, false);
        struct hed_conn_state a, b;

        check_flow(t.a, t.b, 1);
        check_flow(t.a, t.b, 10);
        check_flow(t.b, t.a, 1);
        assert_int_equal(hed_tls_suspend(t.a, &a), 0);
        assert_int_equal(hed_tls_suspend(t.b, &b), 0);
        assert_int_equal(a.write.records, 1);
        assert_int_equal(b.read.records, 1);
        assert_memory_equal(a.write.bytes, b.read.bytes, sizeof a.write.bytes);
        assert_memory_not_equal(a.write.bytes, state_of(&suites[k], true, 0).write.bytes,
                                suites[k].secret);
        assert_int_equal(a.read.records, PER_KEY);
        close_two(&t);
    }
}

/* ---- what does not belong there -------------------------------------------------------------- */

static void
a_changed_bit_is_noticed(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        struct two from = open_two(&suites[k], 0, false);
        uint8_t good[100];

        assert_int_equal(write_bytes(from.a, 20), 0);

        const size_t n = take_raw(from.fds[1], good, sizeof good);

        assert_int_equal(n, 5 + 20 + 1 + 16);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            struct two t = open_two(&suites[k], 0, false);
            uint8_t changed[100];

            memcpy(changed, good, n);
            changed[bit / 8] ^= (uint8_t)(1 << bit % 8);
            put_raw(t.fds[0], changed, n);
            /* If it says that it is longer, the rest may still come; but it does not. */
            if (read_now(t.b) == HED_ETIME) {
                assert_int_equal(shutdown(t.fds[0], SHUT_WR), 0);
                assert_int_equal(read_now(t.b), HED_EIO);
            } else {
                assert_int_equal(read_now(t.b), HED_EIO);
                put_raw(t.fds[0], good, n); /* too late */
                assert_int_equal(read_now(t.b), HED_EIO);
            }
            close_two(&t);
        }
        close_two(&from);
    }
}

/* Twice, in another order, with one left out, sent back. */
static void
records_come_once_and_in_order(void **state)
{
    static const char *const orders[] = {"00", "1", "02", "010", "r"};
    struct two from = open_two(&suites[0], 0, false);
    uint8_t records[3][64], back[64];
    size_t n = 0;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(write_bytes(from.a, 10), 0);
        n = take_raw(from.fds[1], records[i], sizeof records[i]);
        assert_int_equal(n, 32);
    }
    assert_int_equal(write_bytes(from.b, 10), 0);
    assert_int_equal(take_raw(from.fds[0], back, sizeof back), n);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct two t = open_two(&suites[0], 0, false);
        const char *order = orders[i];

        for (; order[1]; order++) {
            put_raw(t.fds[0], records[*order - '0'], n);
            assert_int_equal(read_now(t.b), 10);
        }
        put_raw(t.fds[0], *order == 'r' ? back : records[*order - '0'], n);
        assert_int_equal(read_now(t.b), HED_EIO);
        close_two(&t);
    }
    close_two(&from);
}

static void
a_part_of_a_record_is_nothing(void **state)
{
    struct two from = open_two(&suites[0], 0, false);
    uint8_t good[64];

    assert_int_equal(write_bytes(from.a, 10), 0);

    const size_t n = take_raw(from.fds[1], good, sizeof good);

    for (size_t part = 0; part < n; part++) {
        struct two t = open_two(&suites[0], 0, part % 2);
        struct two u = open_two(&suites[0], 0, part % 2);
        struct hed_conn_state none;

        put_raw(t.fds[0], good, part);
        assert_int_equal(read_now(t.b), HED_ETIME);
        if (part)
            assert_int_equal(hed_tls_suspend(t.b, &none), HED_ESTATE);
        put_raw(u.fds[0], good, part);
        assert_int_equal(shutdown(u.fds[0], SHUT_WR), 0);
        assert_int_equal(read_now(u.b), HED_EIO);
        put_raw(t.fds[0], good + part, n - part);
        assert_int_equal(read_bytes(t.b, 10), 0);
        close_two(&t);
        close_two(&u);
    }
    close_two(&from);
}

/* Refused as soon as the head is there. */
static void
wrong_heads_are_refused(void **state)
{
    static const uint8_t heads[][5] = {
        {23, 3, 3, 0, 0},          {23, 3, 3, 0, 16}, {23, 3, 3, 0x41, 1}, {23, 3, 3, 0xff, 0xff},
        {22, 3, 3, 0, 64},         {21, 3, 3, 0, 2},  {20, 3, 3, 0, 1},    {24, 3, 3, 0, 64},
        {23, 3, 1, 0, 64},         {23, 3, 4, 0, 64}, {23, 2, 3, 0, 64},   {0, 0, 0, 0, 0},
        {'G', 'E', 'T', ' ', '/'},
    };

    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct two t = open_two(&suites[0], 0, i % 2);

        put_raw(t.fds[0], heads[i], 5);
        assert_int_equal(read_now(t.b), HED_EIO);
        close_two(&t);
    }
}

static void
contents_are_checked(void **state)
{
    static const struct {
        uint8_t type;
        const char *content;
        size_t n, zeros;
        ssize_t result;
    } rows[] = {
        {DATA, "hi", 2, 0, 2},
        {DATA, "hi\0", 3, 100, 3},
        {DATA, NULL, CONTENT_MAX, 0, CONTENT_MAX},
        {DATA, NULL, CONTENT_MAX, 256 - 17, CONTENT_MAX},
        {DATA, NULL, CONTENT_MAX + 1, 0, HED_EIO},
        {DATA, NULL, CONTENT_MAX, 256 - 16, HED_EIO}, /* the record is too large */
        {DATA, NULL, 1, CONTENT_MAX - 1, 1},
        {DATA, "", 0, 0, HED_ETIME},
        {0, "", 0, 0, HED_EIO},
        {0, "", 0, 1000, HED_EIO},
        {ALERT, "\1\0", 2, 0, HED_EIO},
        {ALERT, "\2\50", 2, 0, HED_EIO},
        {20, "\1", 1, 0, HED_EIO},
        {24, "x", 1, 0, HED_EIO},
        {255, "x", 1, 0, HED_EIO},
        {HANDSHAKE, "", 0, 0, HED_EIO},
        {HANDSHAKE, "\30\0\0\1\0", 5, 0, HED_ETIME},
        {HANDSHAKE, "\30\0\0\1\1", 5, 9, HED_ETIME},
        {HANDSHAKE, "\30\0\0\1\2", 5, 0, HED_EIO},
        {HANDSHAKE, "\30\0\0\1", 4, 0, HED_EIO},
        {HANDSHAKE, "\30\0\0\1\0\30\0\0\1\0", 10, 0, HED_EIO},
        {HANDSHAKE, "\4\0\0\1\0", 5, 0, HED_EIO},
        {HANDSHAKE, NULL, CONTENT_MAX, 0, HED_EIO},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct two t = open_two(&suites[i % 3], 0, false);
        struct sealer s = sealer_for(&suites[i % 3], false);

        send_sealed(&s, t.fds[0], rows[i].type, rows[i].content, rows[i].n, rows[i].zeros);
        if (read_now(t.b) != rows[i].result)
            fail_msg("row %zu", i);
        close_two(&t);
    }
}

/* Records without data keep a reader busy for nothing. */
static void
empty_records_come_to_an_end(void **state)
{
    struct two t = open_two(&suites[0], 0, false);
    struct sealer s = sealer_for(&suites[0], false);

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 32; i++)
            send_sealed(&s, t.fds[0], DATA, "", 0, 0);
        send_sealed(&s, t.fds[0], DATA, "hi", 2, 0);
        assert_int_equal(read_now(t.b), 2);
    }
    for (int i = 0; i < 33; i++)
        send_sealed(&s, t.fds[0], DATA, "", 0, 0);
    send_sealed(&s, t.fds[0], DATA, "hi", 2, 0);
    assert_int_equal(read_now(t.b), HED_EIO);
    close_two(&t);
}

/* ---- keys that change ------------------------------------------------------------------------ */

static void
the_peer_s_key_changes(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        struct two t = open_two(&suites[k], 0, false);
        struct sealer s = sealer_for(&suites[k], false);

        for (int i = 0; i < 3; i++) {
            send_sealed(&s, t.fds[0], HANDSHAKE, "\30\0\0\1\0", 5, 0);
            sealer_change_key(&s);
            send_sealed(&s, t.fds[0], DATA, "hi", 2, 0);
            assert_int_equal(read_now(t.b), 2);
        }
        /* The old key is no good any more. */
        send_sealed(&s, t.fds[0], HANDSHAKE, "\30\0\0\1\0", 5, 0);
        send_sealed(&s, t.fds[0], DATA, "hi", 2, 0);
        assert_int_equal(read_now(t.b), HED_EIO);
        close_two(&t);
    }
}

/* Who is asked to change its key does, even if another process goes on. */
static void
a_key_changes_on_request(void **state)
{
    for (int moved = 0; moved < 2; moved++) {
        struct two t = open_two(&suites[1], 0, true);
        struct sealer s = sealer_for(&suites[1], false);
        struct hed_conn_state a, b;

        send_sealed(&s, t.fds[0], HANDSHAKE, "\30\0\0\1\1", 5, 0);
        sealer_change_key(&s);
        send_sealed(&s, t.fds[0], DATA, "hi", 2, 0);
        assert_int_equal(read_now(t.b), 2);
        if (moved) {
            assert_int_equal(hed_tls_suspend(t.b, &b), 0);
            hed_tls_close(t.b, true);
            t.b = resume(t.fds[1], &b, false);
        }
        check_flow(t.b, t.a, 100);
        assert_int_equal(hed_tls_suspend(t.a, &a), 0);
        assert_memory_not_equal(a.read.bytes, state_of(&suites[1], true, 0).read.bytes, 48);
        assert_int_equal(a.read.records, 1);
        close_two(&t);
    }
}

/* ---- a connection that moves ----------------------------------------------------------------- */

static void
a_connection_goes_on_elsewhere(void **state)
{
    for (size_t k = 0; k < 3; k++) {
        struct two t = open_two(&suites[k], 7, true);
        uint8_t raw[64];

        for (int i = 0; i < 4; i++) {
            struct hed_conn_state b;

            /* What follows the first record stays in the socket. */
            assert_int_equal(write_bytes(t.a, 100), 0);
            assert_int_equal(write_bytes(t.a, 40000), 0);
            assert_int_equal(read_bytes(t.b, 100), 0);
            assert_int_equal(write_bytes(t.b, 5), 0);
            assert_int_equal(hed_tls_suspend(t.b, &b), 0);
            assert_int_equal(read_bytes(t.a, 5), 0);
            /* The old end says and hears nothing. */
            assert_int_equal(write_bytes(t.b, 1), HED_EIO);
            assert_int_equal(read_now(t.b), HED_EIO);
            assert_int_equal(hed_tls_suspend(t.b, &b), HED_EIO);
            hed_tls_close(t.b, true);
            assert_int_equal(take_raw(t.fds[0], raw, sizeof raw), 0);
            t.b = resume(t.fds[1], &b, true);
            assert_int_equal(read_bytes(t.b, 40000), 0);
        }
        close_two(&t);
    }
}

static void
unread_bytes_do_not_move(void **state)
{
    struct two t = open_two(&suites[0], 0, true);
    struct hed_conn_state b;
    char byte;

    assert_int_equal(write_bytes(t.a, 2), 0);
    assert_int_equal(hed_tls_read(t.b, &byte, 1, 0), 1);
    assert_int_equal(hed_tls_suspend(t.b, &b), HED_ESTATE);
    assert_int_equal(hed_tls_read(t.b, &byte, 1, 0), 1);
    assert_int_equal(hed_tls_suspend(t.b, &b), 0);
    close_two(&t);
}

static void
unknown_suites_are_refused(void **state)
{
    static const uint32_t numbers[] = {0, 1, 0x1300, 0x1304, 0x1305, 0x03001301, UINT32_MAX};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct hed_conn_state s = {.cipher = numbers[i]};
        struct hed_tls_end *t = NULL;

        assert_int_equal(hed_tls_resume(0, &hed_link_unix, &s, false, &t), HED_EINVAL);
        assert_null(t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_suites_carry_all_sizes),
    cmocka_unit_test(both_directions_at_once),
    cmocka_unit_test(no_key_is_used_for_too_long),
    cmocka_unit_test(a_changed_bit_is_noticed),
    cmocka_unit_test(records_come_once_and_in_order),
    cmocka_unit_test(a_part_of_a_record_is_nothing),
    cmocka_unit_test(wrong_heads_are_refused),
    cmocka_unit_test(contents_are_checked),
    cmocka_unit_test(empty_records_come_to_an_end),
    cmocka_unit_test(the_peer_s_key_changes),
    cmocka_unit_test(a_key_changes_on_request),
    cmocka_unit_test(a_connection_goes_on_elsewhere),
    cmocka_unit_test(unread_bytes_do_not_move),
    cmocka_unit_test(unknown_suites_are_refused),
};

HED_UNIT_MAIN(tests)
