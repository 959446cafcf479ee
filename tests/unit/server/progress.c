/* --kernel-time with NVIDIA's driver: which streams do nothing for too long. The test plays the
 * device. */
#include "harness/unit.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "remote/server/worker/worker.h"

#define LATER (2 * HED_NS_PER_S) /* more than the limit */

static struct hed_worker worker;
static struct hed_worker_channel channel;
static struct hed_worker_start start;
static _Atomic uint64_t *words;
static uint64_t put[8]; /* numbers for word 0, in the order of the stream */
static unsigned put_count;

CUresult
hed_words_write(struct hed_worker *w, struct hed_words *to, CUstream stream, size_t i,
                uint64_t number)
{
    (void)w;
    (void)stream;
    words = to->first;
    if (i == 0)
        put[put_count++] = number;
    return CUDA_SUCCESS;
}

int
hed_worker_stream(struct hed_worker_channel *ch, const struct hed_msg *m, CUstream *out)
{
    (void)ch;
    (void)m;
    *out = NULL;
    return 0;
}

static int
setup(void **state)
{
    (void)state;
    start.kernel_ms = 1000;
    worker.start = &start;
    worker.backend = HED_BACKEND_GPU;
    hed_lock_init(&worker.lock, HED_RANK_WORKER);
    atomic_store(&worker.settled, true);
    channel.worker = &worker;
    put_count = 0;
    return hed_worker_progress_init(&worker);
}

/* The stream comes to the n-th number. */
static void
stream_arrives(unsigned n)
{
    atomic_store(&words[0], put[n]);
}

static void
a_stream_that_does_nothing_is_overdue(void **state)
{
    const struct hed_msg m = {.stream = 16, .context = 32};

    (void)state;
    hed_progress_put(&channel, &m);
    hed_progress_put(&channel, &m);

    const uint64_t now = hed_now_ns();

    assert_false(hed_progress_is_overdue(&worker, now));
    stream_arrives(0);
    assert_false(hed_progress_is_overdue(&worker, now + LATER)); /* it has just moved */
    assert_true(hed_progress_is_overdue(&worker, now + 2 * LATER));
    stream_arrives(1);
    assert_false(hed_progress_is_overdue(&worker, now + 3 * LATER));
}

static void
waiting_for_another_program_does_not_count(void **state)
{
    const struct hed_msg m = {.stream = 16, .context = 32};

    (void)state;
    hed_progress_put(&channel, &m);
    hed_progress_put_wait(&channel, &m);
    hed_progress_put(&channel, &m);
    hed_progress_put(&channel, &m);
    assert_int_equal(put_count, 4);
    for (unsigned i = 1; i < 4; i++)
        assert_true(put[i] > put[i - 1]);

    const uint64_t now = hed_now_ns();

    assert_true(hed_progress_is_overdue(&worker, now + LATER)); /* the kernel before the wait */
    stream_arrives(1);
    for (unsigned i = 0; i < 10; i++)
        assert_false(hed_progress_is_overdue(&worker, now + i * LATER));
    stream_arrives(2);
    assert_false(hed_progress_is_overdue(&worker, now + 10 * LATER));
    assert_true(hed_progress_is_overdue(&worker, now + 11 * LATER)); /* that behind it */
    stream_arrives(3);
    assert_false(hed_progress_is_overdue(&worker, now + 12 * LATER));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_stream_that_does_nothing_is_overdue, setup),
    cmocka_unit_test_setup(waiting_for_another_program_does_not_count, setup),
};

HED_UNIT_MAIN(tests)
