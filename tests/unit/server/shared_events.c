/* Events that workers share: when their pages are freed, and by whom. Stand-ins replace the backend
 * and the rest of the worker. */
#include "harness/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/lock.h"
#include "core/layer.h"
#include "gen/cuda_calls.h"
#include "remote/server/worker/memory.h"
#include "remote/server/worker/share.h"

#define CONTEXT UINT64_C(32)

static struct hed_worker worker;
static struct hed_worker_channel channel;
static struct hed_layer top;

/* The backend: what a stream was told, and whether it lets go of memory. */
static struct write {
    _Atomic uint64_t *word;
    uint64_t number;
} writes[64];
static unsigned write_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_busy; /* the context has work, which unregistering waits for */
static unsigned waiting, forgotten;

/* ---- the rest of a worker -------------------------------------------------------------------- */

static CUresult
use_word(struct hed_words *words, size_t i, uint64_t number)
{
    words->at = 0x1000;
    writes[write_count++] = (struct write){&words->first[i], number};
    return CUDA_SUCCESS;
}

CUresult
hed_words_write(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i,
                uint64_t number)
{
    (void)w;
    (void)stream;
    return use_word(words, i, number);
}

CUresult
hed_words_await(struct hed_worker *w, struct hed_words *words, CUstream stream, size_t i,
                uint64_t number)
{
    (void)w;
    (void)stream;
    words->at = 0x1000;
    (void)i;
    (void)number;
    return CUDA_SUCCESS;
}

CUresult
hed_words_forget(struct hed_worker *w, struct hed_words *words)
{
    (void)w;
    (void)words;
    (void)pthread_mutex_lock(&lock);
    waiting++;
    (void)pthread_cond_broadcast(&changed);
    while (is_busy)
        (void)pthread_cond_wait(&changed, &lock);
    waiting--;
    forgotten++;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult
set_current(struct hed_layer *self, struct hed_cuCtxSetCurrent *a)
{
    (void)self;
    return a->ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static struct hed_cuda_ops ops;

int
hed_name_real(struct hed_names *names, uint64_t name, uint64_t *real)
{
    (void)names;
    *real = name;
    return name ? 0 : HED_ENOTFOUND;
}

int
hed_worker_stream(struct hed_worker_channel *ch, const struct hed_msg *m, CUstream *out)
{
    (void)ch;
    (void)m;
    *out = NULL;
    return 0;
}

void
hed_ticket_pass(struct hed_worker_channel *ch)
{
    (void)ch;
}

int
hed_worker_before_answer(struct hed_worker_channel *ch)
{
    (void)ch;
    return 0;
}

int
hed_memory_missing(const struct hed_worker *w)
{
    (void)w;
    return HED_EFORMAT;
}

CUresult
hed_share_result(int err)
{
    return err ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

int
hed_share_offer(struct hed_worker *w, const struct hed_lease_socket_ask *what, int fd,
                uint8_t key[HED_SHARE_KEY])
{
    (void)w;
    (void)what;
    (void)fd;
    memset(key, 1, HED_SHARE_KEY);
    return 0;
}

uint64_t
hed_share_withdraw(struct hed_worker *w, const uint8_t key[HED_SHARE_KEY])
{
    (void)w;
    (void)key;
    return 0;
}

void
hed_share_close(struct hed_worker *w, const uint8_t key[HED_SHARE_KEY])
{
    (void)w;
    (void)key;
}

int
hed_lease_exchange(struct hed_worker *w, const struct hed_lease_socket_ask *ask, int fd,
                   struct hed_lease_socket_answer *answer, int *got)
{
    (void)w;
    (void)ask;
    (void)fd;
    (void)answer;
    (void)got;
    return HED_ENOTFOUND;
}

void
hed_progress_put(struct hed_worker_channel *ch, const struct hed_msg *m)
{
    (void)ch;
    (void)m;
}

void
hed_progress_put_wait(struct hed_worker_channel *ch, const struct hed_msg *m)
{
    (void)ch;
    (void)m;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int
setup(void **state)
{
    (void)state;
    ops.cuCtxSetCurrent = set_current;
    top.cuda = &ops;
    worker = (struct hed_worker){.top = &top};
    hed_lock_init(&worker.lock, HED_RANK_WORKER);
    channel.worker = &worker;
    write_count = waiting = forgotten = 0;
    is_busy = false;
    return 0;
}

static void
say(enum hed_share_op op, uint64_t name)
{
    const struct hed_share_body b = {
        .head = {.context = CONTEXT, .stream = 16}, .op = op, .name = name};
    uint8_t key[HED_SHARE_KEY];
    CUresult r = CUDA_SUCCESS;

    assert_int_equal(hed_shared_event_do(&channel, &b, key, &r), 0);
    assert_int_equal(r, CUDA_SUCCESS);
}

/* Makes an event, records it and destroys it. */
static void
use_event(uint64_t name)
{
    say(HED_SHARE_EVENT_MADE, name);
    say(HED_SHARE_EVENT_RECORD, name);
    say(HED_SHARE_EVENT_GONE, name);
}

/* The stream comes to everything that was put on it so far. */
static void
stream_arrives(void)
{
    for (unsigned i = 0; i < write_count; i++)
        atomic_store(writes[i].word, writes[i].number);
    write_count = 0;
}

static void
await_count(const unsigned *count, unsigned n)
{
    (void)pthread_mutex_lock(&lock);
    while (*count < n)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
}

static void
end_work(void)
{
    (void)pthread_mutex_lock(&lock);
    is_busy = false;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

static void
a_page_is_freed_when_the_stream_is_done(void **state)
{
    (void)state;
    use_event(1);
    say(HED_SHARE_EVENT_MADE, 2); /* looks for pages that can go */
    assert_int_equal(forgotten + waiting, 0);
    stream_arrives();
    say(HED_SHARE_EVENT_MADE, 3);
    await_count(&forgotten, 1);
}

/* Others can write anything into the page. */
static void
what_the_page_says_frees_nothing(void **state)
{
    (void)state;
    use_event(1);
    atomic_store(writes[0].word, UINT64_MAX); /* the place of the record */
    say(HED_SHARE_EVENT_MADE, 2);
    say(HED_SHARE_EVENT_MADE, 3);
    assert_int_equal(forgotten + waiting, 0);
    stream_arrives();
    say(HED_SHARE_EVENT_MADE, 4);
    await_count(&forgotten, 1);
}

/* Messages go on while the driver waits for the context. */
static void
nobody_waits_for_the_driver(void **state)
{
    (void)state;
    is_busy = true;
    use_event(1);
    stream_arrives();
    say(HED_SHARE_EVENT_MADE, 2);
    await_count(&waiting, 1);
    use_event(3);
    say(HED_SHARE_EVENT_QUERY, 2);
    stream_arrives();
    say(HED_SHARE_EVENT_GONE, 2);
    say(HED_SHARE_EVENT_MADE, 4);
    end_work();
    await_count(&forgotten, 2); /* the third was never used by a device */
}

static void *
end_context(void *arg)
{
    hed_shared_events_context_ends(&worker, CONTEXT);
    *(_Atomic bool *)arg = true;
    hed_shared_events_context_ended(&worker, CONTEXT);
    return NULL;
}

/* Who ends a context waits for the thread that uses it, and frees what was used in it. */
static void
a_context_ends_when_it_is_not_used(void **state)
{
    _Atomic bool ended = false;
    pthread_t thread;

    (void)state;
    is_busy = true;
    use_event(1);
    stream_arrives();
    use_event(2); /* on its way, for ever */
    await_count(&waiting, 1);
    assert_int_equal(pthread_create(&thread, NULL, end_context, &ended), 0);
    assert_false(ended);
    end_work();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(ended);
    await_count(&forgotten, 1);
    say(HED_SHARE_EVENT_MADE, 3);
    say(HED_SHARE_EVENT_MADE, 4);
    assert_int_equal(forgotten, 1); /* a registration ends with its context */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(a_page_is_freed_when_the_stream_is_done, setup),
    cmocka_unit_test_setup(what_the_page_says_frees_nothing, setup),
    cmocka_unit_test_setup(nobody_waits_for_the_driver, setup),
    cmocka_unit_test_setup(a_context_ends_when_it_is_not_used, setup),
};

HED_UNIT_MAIN(tests)
