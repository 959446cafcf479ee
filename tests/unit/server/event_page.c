/* The page of an event that several workers share. Processes that are forked here play workers. */
#include "harness/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "remote/server/worker/event_page.h"

static int
setup(void **state)
{
    static struct hed_event_page page;
    int fd;

    if (hed_event_file(&fd) != 0 || hed_event_page_map(&page, fd) != 0)
        return -1;
    *state = &page;
    return 0;
}

static int
teardown(void **state)
{
    struct hed_event_page *p = *state;
    const int fd = p->fd;

    hed_event_page_unmap(p);
    (void)close(fd);
    return 0;
}

/* What a stream does when it comes to a record. */
static void
reach(struct hed_event_page *p, uint64_t number, int place)
{
    ((_Atomic uint64_t *)(void *)p->words)[hed_event_page_word(place)] = number;
}

static void
record(struct hed_event_page *p, uint64_t stream, uint64_t *number, int *place)
{
    assert_int_equal(hed_event_page_begin(p, 1, stream, number, place), 0);
    hed_event_page_end(p, *number, *place);
}

static void
the_last_record_is_waited_for(void **state)
{
    struct hed_event_page *p = *state;
    uint64_t first, second, last;
    int places[2], at;

    assert_false(hed_event_page_last(p, &last, &at)); /* nothing to wait for */
    record(p, 16, &first, &places[0]);
    record(p, 32, &second, &places[1]);
    assert_int_not_equal(places[0], places[1]); /* they may be reached in any order */
    assert_true(hed_event_page_last(p, &last, &at));
    assert_int_equal(last, second);
    assert_int_equal(at, places[1]);
    reach(p, second, places[1]);
    assert_false(hed_event_page_last(p, &last, &at));
    assert_false(hed_event_page_is_over(p, first, places[0]));
    reach(p, first, places[0]);
    assert_true(hed_event_page_is_over(p, first, places[0]));
}

static void
a_stream_has_one_place_for_all_its_records(void **state)
{
    struct hed_event_page *p = *state;
    uint64_t first, number;
    int place, at;

    record(p, 16, &first, &place);
    for (int i = 0; i < 10 * HED_EVENT_PLACES; i++) {
        record(p, 16, &number, &at);
        assert_int_equal(at, place);
    }
    reach(p, first, place);
    assert_true(hed_event_page_last(p, &number, &at));
    reach(p, number, place);
    assert_false(hed_event_page_last(p, &number, &at));
}

static void
so_many_streams_and_no_more(void **state)
{
    struct hed_event_page *p = *state;
    uint64_t number, streams = 0;
    int place;

    while (hed_event_page_begin(p, 1, 16 * (streams + 1), &number, &place) == 0)
        streams++;
    assert_int_equal(streams, HED_EVENT_PLACES);
    /* A record that failed frees its place. */
    assert_int_equal(hed_event_page_begin(p, 1, 16, &number, &place), 0);
    hed_event_page_drop(p, number, place);
    assert_int_equal(hed_event_page_begin(p, 1, 16 * (streams + 1), &number, &place), 0);
}

/* A context that has failed does not come to its records. */
static void
records_of_a_failed_context_count_as_reached(void **state)
{
    struct hed_event_page *p = *state;
    uint64_t failed, good;
    int places[2];

    assert_int_equal(hed_event_page_begin(p, 7, 16, &failed, &places[0]), 0);
    hed_event_page_end(p, failed, places[0]);
    assert_int_equal(hed_event_page_begin(p, 8, 16, &good, &places[1]), 0);
    hed_event_page_end(p, good, places[1]);
    hed_event_page_give_up(p, 7);
    assert_true(hed_event_page_is_reached(p, failed, places[0]));
    assert_false(hed_event_page_is_over(p, good, places[1]));
    /* Once: the place may be another's by now. */
    reach(p, 0, places[0]);
    hed_event_page_give_up(p, 7);
    assert_false(hed_event_page_is_reached(p, failed, places[0]));
}

/* Another worker, which records and then waits to be killed. */
static pid_t
begin_recorder(int fd, int *says)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);

    const pid_t child = fork();

    if (child == 0) {
        struct hed_event_page p;
        uint64_t number;
        int place;
        char good = hed_event_page_map(&p, fd) == 0 &&
                    hed_event_page_begin(&p, 1, 16, &number, &place) == 0;

        if (good)
            hed_event_page_end(&p, number, place);
        (void)!write(ends[1], &good, 1);
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    *says = ends[0];
    return child;
}

static void
records_of_the_dead_count_as_reached(void **state)
{
    struct hed_event_page *p = *state;
    uint64_t number, mine;
    int place, own, says, status;
    char good = 0;

    record(p, 16, &mine, &own);

    const pid_t child = begin_recorder(p->fd, &says);

    assert_int_equal(read(says, &good, 1), 1);
    assert_true(good);
    assert_true(hed_event_page_last(p, &number, &place));
    assert_int_not_equal(number, mine);
    hed_event_page_bury(p);
    assert_false(hed_event_page_is_over(p, number, place)); /* it lives */
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    hed_event_page_bury(p);
    assert_true(hed_event_page_is_reached(p, number, place));
    assert_false(hed_event_page_is_over(p, mine, own)); /* this process lives */
    (void)close(says);
}

static void
other_files_are_refused(void **state)
{
    struct hed_event_page p;
    const int small = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const int shrinks = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const int empty = memfd_create("page", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    (void)state;
    assert_int_equal(ftruncate(small, HED_EVENT_PAGE - 1), 0);
    assert_int_equal(fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(hed_event_page_map(&p, small), HED_EFORMAT);
    assert_int_equal(ftruncate(shrinks, HED_EVENT_PAGE), 0);
    assert_int_equal(hed_event_page_map(&p, shrinks), HED_EFORMAT);
    assert_int_equal(ftruncate(empty, HED_EVENT_PAGE), 0);
    assert_int_equal(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(hed_event_page_map(&p, empty), HED_EFORMAT);
    (void)close(small);
    (void)close(shrinks);
    (void)close(empty);
}

/* Whatever another worker writes, nothing is read or written outside of the page. */
static void
nonsense_in_the_page_is_survived(void **state)
{
    struct hed_event_page *p = *state;
    uint64_t *words = (uint64_t *)(void *)p->words;
    uint64_t number;
    int place;

    for (unsigned round = 0; round < 200; round++) {
        for (size_t i = 1; i < HED_EVENT_PAGE / sizeof *words; i++)
            words[i] = round % 2 ? UINT64_MAX - (unsigned)rand() : (uint64_t)rand() << rand() % 48;
        hed_event_page_bury(p);
        hed_event_page_give_up(p, round % 3);
        if (hed_event_page_last(p, &number, &place))
            (void)hed_event_page_is_over(p, number, place);
        if (hed_event_page_begin(p, 1, 16, &number, &place) == 0)
            hed_event_page_end(p, number, place);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_last_record_is_waited_for, setup, teardown),
    cmocka_unit_test_setup_teardown(a_stream_has_one_place_for_all_its_records, setup, teardown),
    cmocka_unit_test_setup_teardown(so_many_streams_and_no_more, setup, teardown),
    cmocka_unit_test_setup_teardown(records_of_a_failed_context_count_as_reached, setup, teardown),
    cmocka_unit_test_setup_teardown(records_of_the_dead_count_as_reached, setup, teardown),
    cmocka_unit_test(other_files_are_refused),
    cmocka_unit_test_setup_teardown(nonsense_in_the_page_is_survived, setup, teardown),
};

HED_UNIT_MAIN(tests)
