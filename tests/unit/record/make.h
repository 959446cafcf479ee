/* For tests of record mode: a fake driver that logs its calls with their arguments. It can hold
 * launches, make calls fail, or pass every call to a test's hook. */
#pragma once

#include "harness/unit.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "core/session.h"
#include "layers/layers.h"
#include "share/record/engine.h"

#define LOG_MAX 20000
#define CONTEXT ((CUcontext)0xc0)
#define OTHER_CONTEXT ((CUcontext)0xd0) /* the context of STREAM(8) and above */
#define FUNCTION ((CUfunction)0x1000)
#define KERNEL ((CUfunction)0x2000) /* only cuKernelGetParamInfo knows its parameters */
#define SECRET ((CUfunction)0x3000) /* no call tells its parameters */
#define DEVICE_BEGIN 0x100000u
#define DEVICE_SIZE 0x100000u
#define STREAM(i) ((CUstream)(uintptr_t)(0x100 + 0x100 * (uintptr_t)(i)))
#define EVENT(i) ((CUevent)(uintptr_t)(0x9000 + 0x10 * (uintptr_t)(i)))
#define OWN(i) (0x7700 + 0x100 * (uint64_t)(i)) /* the streams that cuStreamCreate returns */

static _Thread_local CUcontext current_context;
static _Thread_local unsigned current_since; /* the value of fake.ended when it was set */
static char pinned[4096];

/* The arguments of a launch. */
struct arguments {
    uint32_t a;
    uint64_t b;
    uint32_t c;
    uint64_t d;
};

struct entry {
    enum hed_cuda_call id;
    uint64_t stream;
    CUcontext context;
    pthread_t thread;
    struct arguments args; /* of a launch */
    char data[64];         /* of a copy from the host, or of packed arguments */
    uint64_t handle;
    unsigned since; /* current_since of the calling thread */
};

struct fake {
    pthread_mutex_t lock;
    struct entry *log;
    unsigned count;
    CUresult answer;                    /* the result of launches */
    enum hed_cuda_call fails;           /* the call that answers with `answer`; 0: every launch */
    _Atomic bool hold;                  /* launches wait until it is false */
    _Atomic unsigned held;              /* launches that wait now */
    _Atomic unsigned ended;             /* contexts that have ended */
    _Atomic unsigned created;           /* streams that have been created */
    _Atomic uint64_t capturing_streams; /* one bit per stream, and one for all of OWN */
    _Atomic uint64_t captured_events;
    _Atomic unsigned broken; /* calls that ended a capture though they must not */
    void (*hook)(struct fake *, const struct entry *);
    void *user;
};

static const struct hed_record_param layout[] = {{0, 4}, {8, 8}, {16, 4}, {24, 8}};

static void
note_launch(struct entry *e, void **params, void **extra)
{
    if (extra) {
        memcpy(e->data, extra[1], *(size_t *)extra[3] < 64 ? *(size_t *)extra[3] : 64);
        return;
    }
    if (!params)
        return;
    memcpy(&e->args.a, params[0], 4);
    memcpy(&e->args.b, params[1], 8);
    memcpy(&e->args.c, params[2], 4);
    memcpy(&e->args.d, params[3], 8);
}

static CUresult
fake_param(CUfunction function, CUfunction known, size_t i, size_t *offset, size_t *size)
{
    if (function != known)
        return CUDA_ERROR_INVALID_HANDLE;
    if (i >= 4)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = layout[i].offset;
    *size = layout[i].size;
    return CUDA_SUCCESS;
}

static uint64_t
stream_bit(uint64_t stream)
{
    return UINT64_C(1) << (stream >= OWN(0) ? 63 : stream / 0x100);
}

static uint64_t
event_bit(uint64_t event)
{
    return UINT64_C(1) << ((event - 0x9000) / 0x10 & 63);
}

/* Questions, which are not logged. */
static bool
fake_question(struct fake *f, enum hed_cuda_call id, void *args, CUresult *r)
{
    const struct hed_cuFuncGetParamInfo *param = args;
    const struct hed_cuMemGetAddressRange_v2 *range = args;
    const struct hed_cuPointerGetAttribute *attribute = args;
    const struct hed_cuStreamGetCtx *context = args;
    const struct hed_cuStreamIsCapturing *capture = args;

    *r = CUDA_SUCCESS;
    switch ((int)id) {
    case HED_cuCtxGetCurrent:
        *((struct hed_cuCtxGetCurrent *)args)->pctx = current_context;
        return true;
    case HED_cuCtxSetCurrent:
        current_context = ((struct hed_cuCtxSetCurrent *)args)->ctx;
        current_since = atomic_load(&f->ended);
        return true;
    case HED_cuCtxGetDevice:
        *((struct hed_cuCtxGetDevice *)args)->device = 0;
        return true;
    case HED_cuDeviceGetUuid_v2:
        return true;
    case HED_cuStreamGetCtx:
        *context->pctx = context->hStream < STREAM(8) ? CONTEXT : OTHER_CONTEXT;
        return true;
    case HED_cuStreamIsCapturing:
        if (atomic_load(&f->capturing_streams) & stream_bit((uintptr_t)capture->hStream))
            *capture->captureStatus = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        return true;
    case HED_cuFuncGetParamInfo:
        *r = fake_param(param->func, FUNCTION, param->paramIndex, param->paramOffset,
                        param->paramSize);
        return true;
    case HED_cuKernelGetParamInfo:
        *r = fake_param(param->func, KERNEL, param->paramIndex, param->paramOffset,
                        param->paramSize);
        return true;
    case HED_cuMemGetAddressRange_v2:
        if (range->dptr < DEVICE_BEGIN || range->dptr >= DEVICE_BEGIN + DEVICE_SIZE)
            *r = CUDA_ERROR_INVALID_VALUE;
        *range->pbase = DEVICE_BEGIN;
        *range->psize = DEVICE_SIZE;
        return true;
    case HED_cuPointerGetAttribute:
        *r = attribute->ptr - (uintptr_t)pinned < sizeof pinned ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
        *(unsigned *)attribute->data = CU_MEMORYTYPE_HOST;
        return true;
    default:
        return false;
    }
}

/* A stream joins a capture through an event, and all streams leave when the capture ends. */
static void
note_capture(struct fake *f, const struct entry *e)
{
    const uint64_t stream = stream_bit(e->stream);
    const uint64_t event = event_bit(e->handle);

    switch ((int)e->id) {
    case HED_cuStreamBeginCapture_v2:
        atomic_fetch_or(&f->capturing_streams, stream);
        break;
    case HED_cuStreamEndCapture:
        atomic_store(&f->capturing_streams, 0);
        break;
    case HED_cuEventRecord:
        if (atomic_load(&f->capturing_streams) & stream)
            atomic_fetch_or(&f->captured_events, event);
        else
            atomic_fetch_and(&f->captured_events, ~event);
        break;
    case HED_cuStreamWaitEvent:
        if (atomic_load(&f->captured_events) & event)
            atomic_fetch_or(&f->capturing_streams, stream);
        break;
    case HED_cuCtxSynchronize:
        if (atomic_load(&f->capturing_streams))
            atomic_fetch_add(&f->broken, 1);
        break;
    default:
        break;
    }
}

static void
describe(struct entry *e, void *args)
{
    const struct hed_cuLaunchKernel *launch = args;
    const struct hed_cuLaunchCooperativeKernel *together = args;
    const struct hed_cuLaunchKernelEx *ex = args;
    const struct hed_cuMemcpyHtoDAsync_v2 *copy = args;
    const struct hed_cuEventRecord *rec = args;
    const struct hed_cuStreamWaitEvent *wait = args;

    (void)hed_call_stream(&hed_cuda_info[e->id], args, &e->stream);
    switch ((int)e->id) {
    case HED_cuLaunchKernel:
        note_launch(e, launch->kernelParams, launch->extra);
        break;
    case HED_cuLaunchCooperativeKernel:
        note_launch(e, together->kernelParams, NULL);
        break;
    case HED_cuLaunchKernelEx:
        note_launch(e, ex->kernelParams, ex->extra);
        e->handle = ex->config->numAttrs ? ex->config->attrs[0].value.clusterDim.x : 0;
        break;
    case HED_cuMemcpyHtoDAsync_v2:
        memcpy(e->data, copy->srcHost, copy->ByteCount < 64 ? copy->ByteCount : 64);
        break;
    case HED_cuEventRecord:
    case HED_cuEventQuery:
    case HED_cuEventSynchronize:
        e->handle = (uint64_t)(uintptr_t)rec->hEvent;
        break;
    case HED_cuStreamWaitEvent:
        e->handle = (uint64_t)(uintptr_t)wait->hEvent;
        break;
    default:
        break;
    }
}

static CUresult
fake_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct fake *f = self->state;
    struct entry e = {
        .id = id, .context = current_context, .thread = pthread_self(), .since = current_since};
    const bool launch = hed_cuda_info[id].does == HED_DOES_LAUNCH;
    CUresult r;

    if (fake_question(f, id, args, &r))
        return r;
    if (launch && atomic_load(&f->hold)) {
        atomic_fetch_add(&f->held, 1);
        WAIT_UNTIL(!atomic_load(&f->hold));
        atomic_fetch_sub(&f->held, 1);
    }
    describe(&e, args);
    if (id == HED_cuLaunchHostFunc)
        ((struct hed_cuLaunchHostFunc *)args)->fn(((struct hed_cuLaunchHostFunc *)args)->userData);
    if (id == HED_cuStreamAddCallback && f->fails != id) {
        const struct hed_cuStreamAddCallback *a = args;

        a->callback(a->hStream, CUDA_SUCCESS, a->userData);
    }
    if (id == HED_cuCtxDestroy_v2)
        atomic_fetch_add(&f->ended, 1);
    if (id == HED_cuStreamCreate)
        *((struct hed_cuStreamCreate *)args)->phStream =
            (CUstream)(uintptr_t)OWN(atomic_fetch_add(&f->created, 1));
    pthread_mutex_lock(&f->lock);
    if (f->count < LOG_MAX)
        f->log[f->count++] = e;
    note_capture(f, &e);
    r = (f->fails ? id == f->fails : launch) ? f->answer : CUDA_SUCCESS;
    if (f->hook)
        f->hook(f, &e);
    pthread_mutex_unlock(&f->lock);
    return r;
}

static const struct hed_layer_type fake_type = {.name = "fake", .cuda_any = fake_any};

/* ---- a chain: record, or record over sched --------------------------------------------------- */

struct chain {
    struct fake fake;
    struct hed_layer_room bottom;
    struct hed_layer *sched; /* NULL: the layer is not in the chain */
    struct hed_layer *top;
    struct hed_recorder *engine;
};

static char scope[32] = "unit"; /* the name under which processes meet, if sched is in the chain */

static struct chain *
chain(const char *settings, bool with_sched)
{
    static struct hed_config config; /* large */
    struct chain *c = calloc(1, sizeof *c);
    struct hed_layer *below = &c->bottom.layer;
    char text[256];
    struct hed_why why = {""};

    snprintf(text, sizeof text, "scope=%s,mode=record%s%s", scope, *settings ? "," : "", settings);
    hed_config_init(&config);
    assert_int_equal(hed_config_set(&config, "sched", text, NULL), 0);
    pthread_mutex_init(&c->fake.lock, NULL);
    c->fake.log = calloc(LOG_MAX, sizeof *c->fake.log);
    hed_layer_place(&c->bottom, &fake_type, NULL);
    c->bottom.layer.state = &c->fake;
    if (with_sched) {
        assert_int_equal(hed_layer_create(&hed_sched_layer, below, &config, &c->sched, &why), 0);
        below = c->sched;
    }
    if (hed_layer_create(&hed_record_layer, below, &config, &c->top, &why) != 0)
        fail_msg("%s", why.text);
    c->engine = c->top->state;
    current_context = CONTEXT;
    return c;
}

static void
discard(struct chain *c)
{
    struct hed_sched *s = c->sched ? c->sched->state : NULL;

    atomic_store(&c->fake.hold, false);
    hed_layer_free(c->top);
    hed_recorder_free(c->engine); /* the layer keeps it for calls that come late */
    if (s) {
        hed_layer_free(c->sched);
        for (uint32_t i = 0; i < atomic_load(&s->count); i++) {
            hed_meet_leave(s->gates[i]->meet);
            free(s->gates[i]);
        }
        for (uint32_t i = 0; i < s->named_count; i++)
            free(s->named[i]);
        free(s);
    }
    free(c->fake.log);
    free(c);
}

#define CALL(c, name, ...) ((c)->top->cuda->name((c)->top, &(struct hed_##name){__VA_ARGS__}))

/* Launches with these arguments, and overwrites them when the call has returned. */
static CUresult
launch_with(struct chain *c, CUfunction f, CUstream s, struct arguments with)
{
    void *params[] = {&with.a, &with.b, &with.c, &with.d};
    struct hed_cuLaunchKernel a = {.f = f, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};
    CUresult r;

    a.blockDimX = a.blockDimY = a.blockDimZ = 1;
    a.hStream = s;
    a.kernelParams = params;
    r = c->top->cuda->cuLaunchKernel(c->top, &a);
    memset(&with, 0xee, sizeof with);
    memset(params, 0, sizeof params);
    return r;
}

static inline CUresult
launch(struct chain *c, CUstream s, uint64_t number)
{
    return launch_with(c, FUNCTION, s, (struct arguments){1, number, 3, number * 3});
}

static inline uint64_t
queued(struct chain *c)
{
    struct hed_record_client *k = c->engine->clients[0];
    uint64_t n = 0;

    for (uint32_t i = 0; i < atomic_load(&k->count); i++)
        n += atomic_load(&k->queues[i]->in) - atomic_load(&k->queues[i]->out);
    return n;
}

/* How often that call has been made. */
static inline unsigned
made(struct chain *c, enum hed_cuda_call id)
{
    unsigned n = 0;

    pthread_mutex_lock(&c->fake.lock);
    for (unsigned i = 0; i < c->fake.count; i++)
        n += c->fake.log[i].id == id;
    pthread_mutex_unlock(&c->fake.lock);
    return n;
}

/* Makes the driver hold launches, and waits until it holds one: later calls stay queued. */
static inline void
hold(struct chain *c, CUstream s)
{
    (void)launch(c, s, 1); /* its kind is known now */
    assert_int_equal(CALL(c, cuStreamSynchronize, .hStream = s), CUDA_SUCCESS);
    atomic_store(&c->fake.hold, true);
    assert_int_equal(launch(c, s, 2), CUDA_SUCCESS);
    WAIT_UNTIL(atomic_load(&c->fake.held) != 0);
}
