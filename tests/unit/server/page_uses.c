/* Which streams still use a shared page. The test plays the device. */
#include "harness/unit.h"

#include <stdlib.h>

#include "remote/server/worker/page_uses.h"

static struct hed_words *written; /* the last that a stream was told to write */
static size_t written_at;
static uint64_t written_number;
static CUresult result;

CUresult
hed_words_write(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i,
                uint64_t number)
{
    (void)w;
    (void)stream;
    written = words;
    written_at = i;
    written_number = number;
    return result;
}

/* The stream comes to what was put last. */
static void
stream_arrives(void)
{
    atomic_store(&written->first[written_at], written_number);
}

static int
use(struct hed_uses *u, uint64_t context, uint64_t stream, struct hed_page_uses *page)
{
    const int place = hed_uses_begin(u, context, stream);

    if (place >= 0)
        hed_uses_end(u, NULL, NULL, place, page);
    return place;
}

static int
setup(void **state)
{
    result = CUDA_SUCCESS;
    *state = hed_uses_create();
    return *state ? 0 : -1;
}

static void
a_page_is_used_until_the_stream_says_so(void **state)
{
    struct hed_page_uses first = {0}, second = {0};

    assert_true(hed_uses_are_over(*state, &first));
    (void)use(*state, 1, 16, &first);
    assert_false(hed_uses_are_over(*state, &first));
    assert_true(hed_uses_are_over(*state, &second));
    (void)use(*state, 1, 16, &second); /* the same stream, later */
    stream_arrives();
    assert_true(hed_uses_are_over(*state, &first) && hed_uses_are_over(*state, &second));
}

static void
streams_arrive_in_any_order(void **state)
{
    struct hed_page_uses page = {0};
    const int first = use(*state, 1, 16, &page);
    const size_t at = written_at;
    const uint64_t number = written_number;

    assert_int_not_equal(use(*state, 1, 32, &page), first);
    stream_arrives();
    assert_false(hed_uses_are_over(*state, &page));
    atomic_store(&written->first[at], number);
    assert_true(hed_uses_are_over(*state, &page));
}

/* It is not known what became of the stream. */
static void
a_stream_that_says_nothing_keeps_the_page(void **state)
{
    struct hed_page_uses page = {0}, other = {0};

    result = CUDA_ERROR_LAUNCH_FAILED;
    (void)use(*state, 1, 16, &page);
    (void)use(*state, 2, 16, &other);
    assert_false(hed_uses_are_over(*state, &page));
    hed_uses_context_ended(*state, 1);
    assert_true(hed_uses_are_over(*state, &page));
    assert_false(hed_uses_are_over(*state, &other));
}

static void
so_many_streams_and_no_more(void **state)
{
    struct hed_page_uses page = {0};
    uint64_t streams = 0;

    while (use(*state, 1, 16 * (streams + 1), &page) >= 0)
        streams++;
    assert_int_equal(streams, HED_USES_STREAMS);
    stream_arrives();
    assert_true(use(*state, 2, 16, &page) >= 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_page_is_used_until_the_stream_says_so, setup),
    cmocka_unit_test_setup(streams_arrive_in_any_order, setup),
    cmocka_unit_test_setup(a_stream_that_says_nothing_keeps_the_page, setup),
    cmocka_unit_test_setup(so_many_streams_and_no_more, setup),
};

HED_UNIT_MAIN(tests)
