/* Tests of channels whose peer is hostile: impossible positions and sizes, and memory that is not a
 * channel's. */
#include "unit/wire/channel_make.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>

static struct hed_ring_words *
words_of(struct hed_channel *ch, enum hed_shm_ring ring)
{
    return &hed_shm_of(ch)->memory->rings[ring];
}

/* Tails that the worker must not believe, of a ring in which 128 bytes were written and 64 read. */
static void
tails_that_cannot_be(void **state)
{
    static const uint64_t tails[] = {0,
                                     64,
                                     128 + 8,
                                     HED_SHM_CALL_SIZE + 80,
                                     UINT64_MAX,
                                     UINT64_MAX - 15,
                                     UINT64_C(1) << 63,
                                     UINT64_C(1) << 32};

    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        struct pair p = make_pair(OVER_SHM);
        struct hed_msg *m;

        for (uint64_t n = 0; n < 2; n++) {
            assert_int_equal(send_one(p.client, n, 64, 0, true), 0);
            assert_int_equal(hed_channel_next(p.worker, 0, &m), 0);
        }
        assert_int_equal(hed_channel_next(p.worker, 0, &m), HED_ETIME); /* 128 read and told */
        atomic_store(&words_of(p.client, HED_SHM_CALL)->tail, tails[i]);
        assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), HED_EFORMAT);
        assert_int_equal(hed_channel_next(p.worker, PATIENCE_MS, &m), HED_EFORMAT);
        free_pair(&p);
    }
}

static void
heads_that_cannot_be(void **state)
{
    static const uint64_t heads[] = {HED_SHM_CALL_SIZE * 2, UINT64_MAX, 8, UINT64_MAX - 15};

    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct pair p = make_pair(OVER_SHM);
        uint64_t n = 0;

        atomic_store(&words_of(p.worker, HED_SHM_CALL)->head, heads[i]);
        while (send_one(p.client, n, 1000, 0, true) == 0)
            n++;
        assert_in_range(n, 200, HED_SHM_CALL_SIZE / 1000);
        assert_int_equal(hed_shm_of(p.client)->out.error, HED_EFORMAT);
        assert_int_equal(hed_channel_end(p.client, 64, true), HED_EFORMAT);
        free_pair(&p);
    }
}

static void
sizes_that_cannot_be(void **state)
{
    static const uint32_t sizes[] = {
        0, 1, 63, 128, HED_MSG_MAX, HED_MSG_MAX + 1, UINT32_MAX, INT32_MAX, UINT32_MAX - 1};

    for (enum over over = 0; over < OVERS; over++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct pair p = make_pair(over);
            struct hed_msg message = {.size = sizes[i]};
            struct hed_msg *m;
            const bool plausible = sizes[i] >= 64 && sizes[i] <= HED_MSG_MAX;

            if (in_memory(over)) {
                assert_int_equal(send_one(p.client, 1, 64, 0, true), 0);
                memcpy(hed_shm_of(p.client)->out.bytes, &message, sizeof message.size);
            } else {
                assert_int_equal(
                    hed_conn_write(hed_channel_conn(p.client), &message, sizeof message), 0);
            }
            /* Over a socket, the rest of a message may still come. */
            assert_int_equal(hed_channel_next(p.worker, 10, &m),
                             !in_memory(over) && plausible ? HED_ETIME : HED_EFORMAT);
            free_pair(&p);
        }
    }
}

/* A message may not continue beyond the end of the ring, and a pad may not stand alone or at the
 * beginning. */
static void
ends_of_the_ring_that_cannot_be(void **state)
{
    for (int kind = 0; kind < 2; kind++) {
        struct pair p = make_pair(OVER_SHM);
        struct hed_ring_words *w = words_of(p.client, HED_SHM_CALL);
        const uint32_t size = kind ? HED_RING_PAD : 128;
        struct hed_msg *m;
        uint64_t n = 0;

        /* Up to 64 bytes before the end. */
        for (; n < HED_SHM_CALL_SIZE / 64 - 1; n++) {
            assert_int_equal(send_one(p.client, n, 64, 0, true), 0);
            assert_int_equal(hed_channel_next(p.worker, 0, &m), 0);
        }
        memcpy(hed_shm_of(p.client)->out.bytes + HED_SHM_CALL_SIZE - 64, &size, sizeof size);
        atomic_store(&w->tail, n * 64 + (kind ? 64 : 128));
        assert_int_equal(hed_channel_next(p.worker, 0, &m), HED_EFORMAT);
        free_pair(&p);
    }

    struct pair p = make_pair(OVER_SHM);
    struct hed_msg *m;

    memset(hed_shm_of(p.client)->out.bytes, 0xff, HED_SHM_CALL_SIZE);
    atomic_store(&words_of(p.client, HED_SHM_CALL)->tail, HED_SHM_CALL_SIZE);
    assert_int_equal(hed_channel_next(p.worker, 0, &m), HED_EFORMAT);
    free_pair(&p);
}

static void
bulk_positions_that_cannot_be(void **state)
{
    static const uint64_t positions[] = {HED_CHANNEL_STAGED + 101, UINT64_MAX, 50, 99,
                                         UINT64_C(1) << 63};

    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        struct pair p = make_pair(OVER_SHM);
        static uint8_t data[HED_CHANNEL_STAGED];
        size_t n;
        void *at;

        /* 100 bytes are sent, and given back. */
        assert_int_equal(hed_channel_bulk_write(p.client, data, 100), 0);
        assert_int_equal(hed_channel_bulk_read(p.worker, data, 100), 0);
        atomic_store(&words_of(p.client, HED_SHM_BULK_IN)->tail, positions[i]);
        assert_int_equal(hed_channel_bulk_peek(p.worker, 10, &at, &n), HED_EFORMAT);
        assert_int_equal(hed_channel_bulk_read(p.worker, data, 10), HED_EFORMAT);

        /* And in the other direction: the client knows that 100 bytes were read once it has
         * looked. */
        free_pair(&p);
        p = make_pair(OVER_SHM);
        assert_int_equal(hed_channel_bulk_write(p.client, data, 100), 0);
        assert_int_equal(hed_channel_bulk_read(p.worker, data, 100), 0);
        assert_int_equal(hed_channel_bulk_write(p.client, data, HED_CHANNEL_STAGED), 0);
        atomic_store(&words_of(p.worker, HED_SHM_BULK_IN)->head, positions[i]);
        assert_int_equal(hed_channel_bulk_write(p.client, data, 1), HED_EFORMAT);
        free_pair(&p);
    }
}

/* The size is changed while the message is copied: what is returned is what was checked. */
static void
a_size_that_changes_is_read_once(void **state)
{
    struct pair p = make_pair(OVER_SHM);
    struct hed_msg *m;

    assert_int_equal(send_one(p.client, 5, 100, 0, true), 0);
    assert_int_equal(hed_channel_next(p.worker, 0, &m), 0);
    memset(hed_shm_of(p.client)->out.bytes, 0xff, 200);
    assert_true(is_right(m, 5, 100));
    free_pair(&p);
}

static void
parked_words_are_not_trusted(void **state)
{
    struct pair p = make_pair(OVER_SHM);
    struct hed_msg *m;

    for (uint32_t word = 0; word < 5; word++) {
        atomic_store(&words_of(p.client, HED_SHM_CALL)->reader_parked, word * 0x7fffffffu);
        atomic_store(&words_of(p.client, HED_SHM_CALL)->writer_parked, word * 0x7fffffffu);
        assert_int_equal(send_one(p.client, word, 64, 0, true), 0);
        assert_int_equal(hed_channel_next(p.worker, 0, &m), 0);
        assert_int_equal(hed_channel_next(p.worker, 3, &m), HED_ETIME);
    }
    free_pair(&p);
}

static int
memory_of(off_t size, int seals, unsigned flags)
{
    const int fd = memfd_create("test", flags);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    if (seals)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void
memory_that_could_be_pulled_away_is_refused(void **state)
{
    const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const unsigned sealing = MFD_ALLOW_SEALING;
    int pipes[2];

    assert_int_equal(pipe(pipes), 0);

    const int fds[] = {
        memory_of(HED_SHM_SIZE, 0, 0),
        memory_of(HED_SHM_SIZE, 0, sealing),
        memory_of(HED_SHM_SIZE, F_SEAL_SHRINK | F_SEAL_SEAL, sealing),
        memory_of(HED_SHM_SIZE, F_SEAL_GROW | F_SEAL_SEAL, sealing),
        memory_of(HED_SHM_SIZE, F_SEAL_SHRINK | F_SEAL_GROW, sealing),
        memory_of(HED_SHM_SIZE - 4096, all, sealing),
        memory_of(HED_SHM_SIZE + 4096, all, sealing),
        memory_of(0, all, sealing),
        memory_of(HED_SHM_SIZE, all | F_SEAL_WRITE, sealing),
        open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        pipes[0],
        pipes[1],
    };

    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        struct hed_conn *conns[2];
        struct hed_why why = {""};
        struct hed_channel *ch;

        make_conns(OVER_UNIX, conns);
        assert_int_equal(hed_conn_send_fds(conns[0], &fds[i], 1), 0);
        assert_int_not_equal(hed_channel_accept(conns[1], &hed_channel_shm, &ch, &why), 0);
        assert_string_not_equal(why.text, "");
        hed_conn_close(conns[0]);
        close(fds[i]);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(tails_that_cannot_be),
    cmocka_unit_test(heads_that_cannot_be),
    cmocka_unit_test(sizes_that_cannot_be),
    cmocka_unit_test(ends_of_the_ring_that_cannot_be),
    cmocka_unit_test(bulk_positions_that_cannot_be),
    cmocka_unit_test(a_size_that_changes_is_read_once),
    cmocka_unit_test(parked_words_are_not_trusted),
    cmocka_unit_test(memory_that_could_be_pulled_away_is_refused),
};

HED_UNIT_MAIN(tests)
