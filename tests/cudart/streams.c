/* Streams and events, also those of two threads. `cudart_streams CASE...`. A gate is a function of
 * the host that a stream waits in until the test opens it: what is behind it cannot be done yet. */
#include "program.h"

#include <pthread.h>

#define LEGACY ((cudaStream_t)1)
#define PER_THREAD ((cudaStream_t)2)

struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
};

#define GATE                                                       \
    {                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false \
    }

static void
wait_at_gate(void *data)
{
    struct gate *g = data;

    pthread_mutex_lock(&g->lock);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void
open_gate(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void
launch(const void *stub, unsigned *numbers, unsigned n, cudaStream_t stream)
{
    void *args[] = {&numbers, &n};

    OK(cudaLaunchKernel(stub, one_block, all_threads, args, 0, stream));
}

/* Kernels are loaded when they are first launched, and that may wait for what runs: "loading
 * kernels may require context synchronization" (CUDA programming guide, lazy loading). */
static void
load_kernels(void)
{
    unsigned *numbers = make_numbers(1);

    launch(&add, numbers, 1, NULL);
    launch(&multiply, numbers, 1, NULL);
    OK(cudaDeviceSynchronize());
    OK(cudaFree(numbers));
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void
orders_streams(void)
{
    struct gate gate = GATE;
    unsigned *numbers = make_numbers(1);
    cudaStream_t a, b;
    cudaEvent_t event;

    load_kernels();
    OK(cudaStreamCreateWithFlags(&a, 1));
    OK(cudaStreamCreateWithFlags(&b, 1));
    OK(cudaEventCreateWithFlags(&event, 2));
    OK(cudaLaunchHostFunc(a, wait_at_gate, &gate));
    launch(&add, numbers, 2, a);
    OK(cudaEventRecord(event, a));
    OK(cudaStreamWaitEvent(b, event, 0));
    launch(&multiply, numbers, 5, b);
    FAILS(cudaErrorNotReady, cudaStreamQuery(b));
    open_gate(&gate);
    OK(cudaStreamSynchronize(b));
    EXPECT(numbers_are(numbers, 15));
    /* Recorded again: waits that are there already do not change. */
    OK(cudaEventRecordWithFlags(event, b, 0));
    OK(cudaEventSynchronize(event));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
}

static void
is_not_ready(void)
{
    struct gate gate = GATE;
    cudaStream_t s;
    cudaEvent_t before, after;
    float ms = -1;

    OK(cudaStreamCreate(&s));
    OK(cudaEventCreate(&before));
    OK(cudaEventCreate(&after));
    OK(cudaEventRecord(before, s));
    OK(cudaLaunchHostFunc(s, wait_at_gate, &gate));
    OK(cudaEventRecord(after, s));
    FAILS(cudaErrorNotReady, cudaStreamQuery(s));
    FAILS(cudaErrorNotReady, cudaEventQuery(after));
    FAILS(cudaErrorNotReady, cudaEventElapsedTime(&ms, before, after));
    EXPECT(cudaPeekAtLastError() == cudaSuccess); /* it is no error */
    FAILS(cudaErrorInvalidValue, cudaStreamCreate(NULL));
    FAILS(cudaErrorNotReady, cudaStreamQuery(s));
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    open_gate(&gate);
    OK(cudaEventSynchronize(after));
    OK(cudaEventQuery(after));
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamQuery(s));
    OK(cudaEventElapsedTime(&ms, before, after));
    EXPECT(ms >= 0);
}

static struct {
    cudaStream_t stream[4];
    cudaError_t status[4];
    int count;
} called;

static void
note_call(cudaStream_t stream, cudaError_t status, void *data)
{
    called.stream[called.count] = stream;
    called.status[called.count] = status;
    called.count += *(int *)data;
}

static void
calls_back(void)
{
    int one = 1;
    cudaStream_t s;

    OK(cudaStreamCreate(&s));
    OK(cudaStreamAddCallback(s, note_call, &one, 0));
    OK(cudaStreamSynchronize(s));
    OK(cudaStreamAddCallback(NULL, note_call, &one, 0));
    OK(cudaStreamSynchronize(NULL));
    OK(cudaStreamAddCallback(PER_THREAD, note_call, &one, 0));
    OK(cudaStreamSynchronize(PER_THREAD));
    OK(cudaStreamAddCallback_ptsz(NULL, note_call, &one, 0));
    OK(cudaStreamSynchronize_ptsz(NULL));
    EXPECT(called.count == 4);
    EXPECT(called.stream[0] == s && !called.stream[1] && called.stream[2] == PER_THREAD &&
           !called.stream[3]);
    for (int i = 0; i < 4; i++)
        EXPECT(called.status[i] == cudaSuccess);
    FAILS(cudaErrorInvalidValue, cudaStreamAddCallback(s, NULL, &one, 0));
    FAILS(cudaErrorInvalidValue, cudaStreamAddCallback(s, note_call, &one, 3));
    EXPECT(called.count == 4);
}

static void
has_priorities(void)
{
    int least = 9, greatest = 9, priority = 9;
    unsigned flags = 9;
    cudaLaunchAttributeValue v = {.syncPolicy = cudaSyncPolicySpin}, got = {0};
    cudaStream_t high, plain;

    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(greatest <= least);
    OK(cudaStreamCreateWithPriority(&high, 1, greatest - 1));
    OK(cudaStreamGetPriority(high, &priority));
    OK(cudaStreamGetFlags(high, &flags));
    EXPECT(priority == greatest && flags == 1);
    OK(cudaStreamCreate(&plain));
#if EDITION >= 12
    int device = 9;
    unsigned long long id = 0, other = 0;

    OK(cudaStreamGetDevice(high, &device));
    EXPECT(device == 0);
    OK(cudaStreamGetId(high, &id));
    OK(cudaStreamGetId(plain, &other));
    EXPECT(id != other);
#endif
    OK(cudaStreamSetAttribute(high, cudaLaunchAttributeSynchronizationPolicy, &v));
    OK(cudaStreamCopyAttributes(plain, high));
    OK(cudaStreamGetAttribute(plain, cudaLaunchAttributeSynchronizationPolicy, &got));
    EXPECT(got.syncPolicy == cudaSyncPolicySpin);
    FAILS(cudaErrorInvalidValue, cudaStreamSetAttribute(plain, (cudaLaunchAttributeID)77, &v));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(LEGACY));
}

/* The legacy default stream waits for other streams, but not for those that do not want it. */
static void
waits_for_the_default_stream(void)
{
    struct gate gate = GATE, other = GATE;
    unsigned *numbers = make_numbers(1), *more = make_numbers(1);
    cudaStream_t blocking, free_one;

    load_kernels();
    OK(cudaStreamCreate(&blocking));
    OK(cudaStreamCreateWithFlags(&free_one, 1));
    OK(cudaLaunchHostFunc(blocking, wait_at_gate, &gate));
    launch(&add, numbers, 1, blocking);
    launch(&multiply, numbers, 3, LEGACY);
    launch(&add, more, 1, free_one);
    OK(cudaStreamSynchronize(free_one));
    FAILS(cudaErrorNotReady, cudaStreamQuery(LEGACY));
    FAILS(cudaErrorNotReady, cudaStreamQuery(NULL));
    open_gate(&gate);
    OK(cudaStreamSynchronize(NULL));
    EXPECT(numbers_are(numbers, 6));
    OK(cudaLaunchHostFunc(free_one, wait_at_gate, &other));
    launch(&add, numbers, 1, NULL);
    OK(cudaStreamSynchronize(LEGACY));
    FAILS(cudaErrorNotReady, cudaStreamQuery(free_one));
    open_gate(&other);
    OK(cudaDeviceSynchronize());
    EXPECT(numbers_are(numbers, 7) && numbers_are(more, 2));
}

static void
times_events(void)
{
    cudaEvent_t timed, again, plain;
    float ms = -1;

    OK(cudaEventCreate(&timed));
    OK(cudaEventCreate(&again));
    OK(cudaEventCreateWithFlags(&plain, 2));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, timed, again));
    OK(cudaEventRecord(timed, NULL));
    OK(cudaEventRecord_ptsz(again, NULL));
    OK(cudaEventRecord(plain, NULL));
    OK(cudaDeviceSynchronize());
    OK(cudaEventElapsedTime(&ms, timed, timed));
    EXPECT(ms == 0);
    OK(cudaEventElapsedTime(&ms, timed, again));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, timed, plain));
    FAILS(cudaErrorInvalidValue, cudaEventElapsedTime(NULL, timed, again));
}

/* ---- two threads ----------------------------------------------------------------------------- */

static struct {
    struct gate gate;
    pthread_barrier_t met;
    unsigned long long id[2];
    cudaEvent_t event;
    unsigned *shared, *own;
} both = {.gate = GATE};

/* Each thread has a stream of its own behind the same handle, and behind 0 in the functions of
 * programs that ask for that. The first one is held up; the second goes on, and then waits for
 * the first by an event. */
static void *
work_in_thread(void *which)
{
    const int me = which ? 1 : 0;

#if EDITION >= 12
    OK(cudaStreamGetId(PER_THREAD, &both.id[me]));
#else
    both.id[me] = (unsigned)me;
#endif
    if (me == 0) {
        OK(cudaLaunchHostFunc_ptsz(NULL, wait_at_gate, &both.gate));
        launch(&add, both.shared, 4, PER_THREAD);
        OK(cudaEventRecord_ptsz(both.event, NULL));
    }
    pthread_barrier_wait(&both.met);
    if (me == 1) {
        launch(&add, both.own, 1, PER_THREAD);
        OK(cudaStreamSynchronize(PER_THREAD));
        OK(cudaStreamQuery_ptsz(NULL));
        FAILS(cudaErrorNotReady, cudaEventQuery(both.event));
        OK(cudaStreamWaitEvent_ptsz(NULL, both.event, 0));
        launch(&multiply, both.shared, 3, PER_THREAD);
        FAILS(cudaErrorNotReady, cudaStreamQuery(PER_THREAD));
        open_gate(&both.gate);
    }
    OK(cudaStreamSynchronize_ptsz(NULL));
    EXPECT(cudaGetLastError() == cudaSuccess);
    return NULL;
}

static void
threads_have_streams(void)
{
    pthread_t threads[2];

    load_kernels();
    both.shared = make_numbers(1);
    both.own = make_numbers(1);
    OK(cudaEventCreateWithFlags(&both.event, 2));
    pthread_barrier_init(&both.met, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work_in_thread, i ? &both : NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    EXPECT(both.id[0] != both.id[1]);
    EXPECT(numbers_are(both.shared, 15) && numbers_are(both.own, 2));
}

int
main(int argc, char **argv)
{
    static const struct program_case cases[] = {
        {"orders_streams", orders_streams},
        {"is_not_ready", is_not_ready},
        {"calls_back", calls_back},
        {"has_priorities", has_priorities},
        {"threads_have_streams", threads_have_streams},
        {"waits_for_the_default_stream", waits_for_the_default_stream},
        {"times_events", times_events},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
