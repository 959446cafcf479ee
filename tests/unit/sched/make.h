/* Shared by tests of the sched layer: a fake driver, whose GPU runs one kernel after the other by
 * the real clock; clients; calls that may be held. */
#pragma once

#include "harness/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/config.h"
#include "core/layer.h"
#include "harness/meeting.h"
#include "layers/layers.h"
#include "share/sched/gate.h"

#define EVENTS 256
#define STREAMS 6

/* ---- the driver ------------------------------------------------------------------------------ */

struct fake {
    pthread_mutex_t lock;
    uint64_t kernel_ns; /* how long a kernel takes */
    uint64_t free_at;   /* when the work on the GPU ends */
    uint64_t in_flight; /* the most work that a launch has found there, ns */
    unsigned launches;
    unsigned own;     /* calls of the layer's own */
    unsigned bad;     /* uses of destroyed events; own calls while capturing */
    unsigned context; /* number of the current context, which changes when it ends */
    CUdevice device;  /* of the current context */
    bool capturing;   /* stream 0x100 captures */
    bool no_memory;   /* allocations fail */
    unsigned allocations;
    struct {
        unsigned context; /* 0: no event */
        uint64_t at;
    } events[EVENTS];
    unsigned next_event;
    uint64_t order[STREAMS]; /* for each stream, the number of its last launch */
    unsigned disorder;
};

static CUresult
fake_event(struct fake *f, enum hed_cuda_call id, void *args)
{
    const struct hed_cuEventCreate *create = args;
    const struct hed_cuEventRecord *rec = args;
    const struct hed_cuEventQuery *query = args;
    const struct hed_cuEventElapsedTime *elapsed = args;
    const uint64_t now = hed_now_ns();
    uintptr_t e;

    f->own++;
    f->bad += f->capturing;
    if (id == HED_cuEventCreate) {
        e = ++f->next_event % (EVENTS - 1) + 1;
        f->events[e].context = f->context;
        *create->phEvent = (CUevent)e;
        return CUDA_SUCCESS;
    }
    e = id == HED_cuEventElapsedTime ? (uintptr_t)elapsed->hEnd : (uintptr_t)query->hEvent;
    if (e == 0 || e >= EVENTS || f->events[e].context != f->context) {
        f->bad++;
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (id == HED_cuEventDestroy_v2)
        f->events[e].context = 0;
    if (id == HED_cuEventRecord)
        f->events[(uintptr_t)rec->hEvent].at = f->free_at > now ? f->free_at : now;
    if (id == HED_cuEventQuery)
        return f->events[e].at <= now ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
    if (id == HED_cuEventElapsedTime)
        *elapsed->pMilliseconds =
            (float)(f->events[e].at - f->events[(uintptr_t)elapsed->hStart].at) / 1e6f;
    return CUDA_SUCCESS;
}

static void
fake_launch(struct fake *f, const struct hed_cuLaunchKernel *a)
{
    const uint64_t now = hed_now_ns();
    const uintptr_t stream = (uintptr_t)a->hStream >> 8;
    const uint64_t number = (uintptr_t)a->kernelParams;

    if (f->free_at > now && f->free_at - now > f->in_flight)
        f->in_flight = f->free_at - now;
    f->free_at = (f->free_at > now ? f->free_at : now) + f->kernel_ns;
    f->launches++;
    if (stream < STREAMS && number) {
        f->disorder += number != f->order[stream] + 1;
        f->order[stream] = number;
    }
}

static CUresult
fake_locked(struct fake *f, enum hed_cuda_call id, void *args)
{
    switch ((int)id) {
    case HED_cuCtxGetDevice:
        *((struct hed_cuCtxGetDevice *)args)->device = f->device;
        return CUDA_SUCCESS;
    case HED_cuDeviceGetUuid_v2: {
        const struct hed_cuDeviceGetUuid_v2 *a = args;

        a->uuid->bytes[15] = (char)a->dev;
        return CUDA_SUCCESS;
    }
    case HED_cuCtxGetCurrent:
        *((struct hed_cuCtxGetCurrent *)args)->pctx = (CUcontext)(uintptr_t)f->context;
        return CUDA_SUCCESS;
    case HED_cuEventCreate:
    case HED_cuEventRecord:
    case HED_cuEventQuery:
    case HED_cuEventElapsedTime:
    case HED_cuEventDestroy_v2:
        return fake_event(f, id, args);
    case HED_cuCtxDestroy_v2:
        f->context++;
        return CUDA_SUCCESS;
    case HED_cuStreamBeginCapture_v2:
        f->capturing = true;
        return CUDA_SUCCESS;
    case HED_cuStreamEndCapture:
        f->capturing = false;
        return CUDA_SUCCESS;
    case HED_cuStreamIsCapturing: {
        const struct hed_cuStreamIsCapturing *a = args;

        *a->captureStatus = f->capturing && (uintptr_t)a->hStream == 0x100
                                ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                : CU_STREAM_CAPTURE_STATUS_NONE;
        return CUDA_SUCCESS;
    }
    case HED_cuLaunchKernel:
        fake_launch(f, args);
        return CUDA_SUCCESS;
    case HED_cuDeviceTotalMem_v2:
        *((struct hed_cuDeviceTotalMem_v2 *)args)->bytes = 1000;
        return CUDA_SUCCESS;
    case HED_cuMemAlloc_v2:
        f->allocations++;
        return f->no_memory ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

/* A test can end a kernel early with fake_end(). */
static void
fake_wait(struct fake *f)
{
    uint64_t now;
    uint64_t until;

    do {
        pthread_mutex_lock(&f->lock);
        now = hed_now_ns();
        until = f->free_at;
        pthread_mutex_unlock(&f->lock);
        if (until > now)
            hed_sleep_ns(until - now < HED_NS_PER_MS ? until - now : HED_NS_PER_MS);
    } while (until > now);
}

static inline void
fake_end(struct fake *f)
{
    pthread_mutex_lock(&f->lock);
    f->free_at = 0;
    pthread_mutex_unlock(&f->lock);
}

static CUresult
fake_any(struct hed_layer *self, enum hed_cuda_call id, void *args)
{
    struct fake *f = self->state;

    pthread_mutex_lock(&f->lock);

    const CUresult r = fake_locked(f, id, args);

    pthread_mutex_unlock(&f->lock);
    if (id == HED_cuCtxSynchronize || id == HED_cuStreamSynchronize)
        fake_wait(f);
    return r;
}

static const struct hed_layer_type fake_type = {.name = "fake", .cuda_any = fake_any};

/* ---- clients --------------------------------------------------------------------------------- */

struct client {
    struct fake fake;
    struct hed_layer_room bottom;
    struct hed_layer *top;
};

static char scope[32];

static struct client *
client(const char *settings)
{
    static struct hed_config config; /* large */
    struct client *c = calloc(1, sizeof *c);
    char text[256];
    struct hed_why why;
    CUcontext context;
    struct hed_cuDevicePrimaryCtxRetain retain = {&context, 0};

    snprintf(text, sizeof text, "scope=%s%s%s", scope, *settings ? "," : "", settings);
    hed_config_init(&config);
    assert_int_equal(hed_config_set(&config, "sched", text, NULL), 0);
    pthread_mutex_init(&c->fake.lock, NULL);
    c->fake.context = 1;
    hed_layer_place(&c->bottom, &fake_type, NULL);
    c->bottom.layer.state = &c->fake;
    assert_int_equal(hed_layer_create(&hed_sched_layer, &c->bottom.layer, &config, &c->top, &why),
                     0);
    assert_int_equal(c->top->cuda->cuDevicePrimaryCtxRetain(c->top, &retain), CUDA_SUCCESS);
    return c;
}

static struct hed_gate *
gate_of(struct client *c)
{
    return ((struct hed_sched *)c->top->state)->gates[0];
}

static void
discard(struct client *c)
{
    struct hed_sched *s = c->top->state;

    hed_layer_free(c->top); /* its state stays, for late calls */
    for (uint32_t i = 0; i < atomic_load(&s->count); i++) {
        hed_meet_leave(s->gates[i]->meet);
        free(s->gates[i]);
    }
    free(s);
    free(c);
}

static int
setup(void **state)
{
    static int n;

    snprintf(scope, sizeof scope, "unit%ld.%d", (long)getpid(), n++);
    return 0;
}

static int
teardown(void **state)
{
    char name[HED_SCHED_MEET_MAX];
    unsigned char uuid[16] = {0};

    for (; uuid[15] < 2; uuid[15]++) {
        hed_sched_meet_name(scope, uuid, name);
        forget_meetings(name);
    }
    return 0;
}

static void
launch_on(struct client *c, uintptr_t stream, uint64_t number)
{
    struct hed_cuLaunchKernel a = {
        .f = (CUfunction)0x1000, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};

    a.hStream = (CUstream)stream;
    a.kernelParams = (void **)(uintptr_t)number;
    assert_int_equal(c->top->cuda->cuLaunchKernel(c->top, &a), CUDA_SUCCESS);
}

static void
launch_kernel(struct client *c)
{
    launch_on(c, 0, 0);
}

static void
sync_all(struct client *c)
{
    struct hed_cuCtxSynchronize a = {0};

    assert_int_equal(c->top->cuda->cuCtxSynchronize(c->top, &a), CUDA_SUCCESS);
}

static inline uint32_t
gate_word(struct client *c)
{
    return atomic_load(&gate_of(c)->slot->gate);
}

#define SYNC UINTPTR_MAX /* instead of a stream: wait for everything, launch nothing */

/* A launch in a thread of its own, because it may be held. */
struct held {
    pthread_t thread;
    struct client *c;
    uintptr_t stream;
    _Atomic bool done;
};

static void *
held_main(void *arg)
{
    struct held *h = arg;

    if (h->stream == SYNC)
        sync_all(h->c);
    else
        launch_on(h->c, h->stream, 0);
    atomic_store(&h->done, true);
    return NULL;
}

static inline void
start_held(struct held *h, struct client *c, uintptr_t stream)
{
    *h = (struct held){.c = c, .stream = stream};
    assert_int_equal(pthread_create(&h->thread, NULL, held_main, h), 0);
}

static inline void
until_it_waits(struct client *c)
{
    WAIT_UNTIL(atomic_load(&gate_of(c)->slot->waiting));
}

static inline void
pause_or_release(struct client *c, int paused, int release)
{
    struct hed_meet *m = gate_of(c)->meet;
    const struct hed_sched_change what = {.paused = paused, .release = release};

    assert_int_equal(hed_meet_lock(m), 0);
    hed_sched_change_locked(gate_of(c)->slot, &what);
    hed_sched_decide_locked(m, hed_now_ns());
    hed_meet_unlock(m);
}
