/* Copies to the client's memory that nobody waits for: in which order a worker sends them. The
 * backend here says which of its events have passed, and the rest of the worker is replaced. */
#include "harness/unit.h"

#include <stdlib.h>
#include <string.h>

#include "remote/server/worker/copy.h"
#include "remote/server/worker/worker.h"
#include "remote/wire/channel/channel.h"
#include "remote/wire/channel/ops.h"

#define BYTES 64u

static uintptr_t events;  /* made so far */
static uintptr_t passed;  /* the copies up to this one are done */
static uintptr_t passing; /* as many more are done after the next question */
static uint64_t sent[16]; /* where the client puts the bytes, in the order of messages */
static size_t sent_count;
static _Alignas(16) char room[4096];

/* ---- the rest of a worker -------------------------------------------------------------------- */

uint64_t
hed_copy_size(const struct hed_copy *c, const struct hed_copy_side *side)
{
    return c->box.width;
}

CUresult
hed_copy_open(struct hed_worker_channel *ch, const struct hed_copy_body *b, bool in,
              struct hed_opened_copy *out)
{
    *out = (struct hed_opened_copy){.body = b};
    return CUDA_SUCCESS;
}

CUresult
hed_copy_bytes(struct hed_worker *w, const struct hed_opened_copy *c, uint64_t from, void *p,
               uint64_t n)
{
    return CUDA_SUCCESS;
}

bool
hed_copy_register(struct hed_worker *w, void *p, size_t n)
{
    return true;
}

void
hed_worker_failed(struct hed_worker *w, uint64_t context, CUresult error)
{
}

static void *
begin_message(struct hed_channel *c, uint32_t size)
{
    return size <= sizeof room ? room : NULL;
}

static int
end_message(struct hed_channel *c, uint32_t size, bool urgent)
{
    const struct hed_data *d = (const struct hed_data *)room;

    assert_int_equal(d->head.number, sent_count + 1);
    sent[sent_count++] = d->to.at;
    return 0;
}

static int
write_bulk(struct hed_channel *c, const void *p, size_t n)
{
    assert_int_equal(n, BYTES);
    return 0;
}

static const struct hed_channel_ops channel_ops = {
    .begin = begin_message, .end = end_message, .bulk_write = write_bulk};

/* ---- a backend ------------------------------------------------------------------------------- */

#define CALL(call) static CUresult fake_##call(struct hed_layer *self, struct hed_##call *a)

CALL(cuEventCreate)
{
    *a->phEvent = (CUevent)++events;
    return CUDA_SUCCESS;
}

CALL(cuEventRecord)
{
    return CUDA_SUCCESS;
}

CALL(cuEventQuery)
{
    const bool done = (uintptr_t)a->hEvent <= passed;

    passed += passing;
    passing = 0;
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CALL(cuEventDestroy_v2)
{
    return CUDA_SUCCESS;
}

static const struct hed_cuda_ops ops = {
    .cuEventCreate = fake_cuEventCreate,
    .cuEventRecord = fake_cuEventRecord,
    .cuEventQuery = fake_cuEventQuery,
    .cuEventDestroy_v2 = fake_cuEventDestroy_v2,
};

/* ---- tests ----------------------------------------------------------------------------------- */

struct scene {
    struct hed_layer layer;
    struct hed_worker worker;
    struct hed_worker_memory memory;
    struct hed_channel channel;
    struct hed_worker_channel here;
};

/* Deferred copies live as long as their worker, which is a process. They are kept here so that they
 * do not count as leaks. */
static struct scene kept[4];
static size_t kept_count;

static struct scene *
begin_scene(void)
{
    struct scene *s = &kept[kept_count++];

    s->layer.cuda = &ops;
    s->worker = (struct hed_worker){.top = &s->layer, .memory = &s->memory};
    s->memory.deferred = hed_deferred_copies_create();
    assert_non_null(s->memory.deferred);
    s->channel.ops = &channel_ops;
    s->here = (struct hed_worker_channel){.worker = &s->worker, .channel = &s->channel};
    events = passed = passing = 0;
    sent_count = 0;
    return s;
}

static void
request_copy(struct scene *s, uint64_t to)
{
    struct hed_copy_body b = {.head = {.size = sizeof b, .kind = HED_MSG_COPY_DEFERRED},
                              .copy = {.to = {.at = to, .host = true}, .box = {BYTES, 1, 1}}};

    assert_int_equal(hed_do_copy_deferred(&s->here, &b.head), 0);
}

static void
copies_that_are_done_are_sent_in_their_order(void **state)
{
    struct scene *s = begin_scene();

    for (uint64_t i = 1; i <= 4; i++)
        request_copy(s, i * 0x1000);
    passed = 3;
    assert_int_equal(hed_copies_deliver(&s->here), 0);
    assert_int_equal(sent_count, 3);
    assert_int_equal(hed_copies_delivered(&s->worker), 3);
    assert_true(hed_copies_are_deferred(&s->worker));
    request_copy(s, 5 * 0x1000);
    passed = 5;
    assert_int_equal(hed_copies_deliver(&s->here), 0);
    assert_int_equal(sent_count, 5);
    for (uint64_t i = 1; i <= 5; i++)
        assert_int_equal(sent[i - 1], i * 0x1000);
    assert_false(hed_copies_are_deferred(&s->worker));
}

/* All become done while a worker looks. If it had asked the first one before, it would send the
 * others, and the first one after them. */
static void
no_copy_overtakes_an_earlier_one(void **state)
{
    struct scene *s = begin_scene();

    for (uint64_t i = 1; i <= 3; i++)
        request_copy(s, i * 0x1000);
    passing = 3;
    assert_int_equal(hed_copies_deliver(&s->here), 0);
    assert_int_equal(hed_copies_deliver(&s->here), 0);
    assert_int_equal(sent_count, 3);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(sent[i - 1], i * 0x1000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(copies_that_are_done_are_sent_in_their_order),
    cmocka_unit_test(no_copy_overtakes_an_earlier_one),
};

HED_UNIT_MAIN(tests)
