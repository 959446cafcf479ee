/* Streams and events: arguments, what waits for what, callbacks, stream memory operations. */
#include "answers.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static sem_t gate;
static volatile int started;
static CUcontext context;
static CUstream blocking;
static CUstream other;
static CUevent event;
static CUdeviceptr memory;

static void CUDA_CB
hold(void *unused)
{
    __atomic_store_n(&started, 1, __ATOMIC_RELEASE);
    while (sem_wait(&gate) != 0)
        ;
    (void)unused;
}

static void CUDA_CB
nothing(void *unused)
{
    (void)unused;
}

static void CUDA_CB
nothing_there(CUstream s, CUresult r, void *unused)
{
    (void)s;
    (void)r;
    (void)unused;
}

/* Keeps a stream busy until the gate is opened. */
static void
busy(CUstream s)
{
    __atomic_store_n(&started, 0, __ATOMIC_RELEASE);
    MUST(cuLaunchHostFunc, s, hold, NULL);
    WAIT_UNTIL(__atomic_load_n(&started, __ATOMIC_ACQUIRE));
}

struct waiter {
    CUresult (*call)(void *);
    void *argument;
    CUresult result;
    int done;
};

static void *
wait_thread(void *p)
{
    struct waiter *w = p;

    MUST(cuCtxSetCurrent, context);
    w->result = w->call(w->argument);
    __atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* Asks whether a call comes back before the gate opens, then opens it. A call that is expected to
 * return gets all the time that it needs. */
static void
ask_wait(const char *words, CUresult (*call)(void *), void *argument, bool returns)
{
    struct waiter w = {.call = call, .argument = argument};
    pthread_t t;

    CHECK(pthread_create(&t, NULL, wait_thread, &w) == 0, "no thread");
    if (returns)
        WAIT_UNTIL(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE));
    else
        give_a_moment(250);

    const int done = __atomic_load_n(&w.done, __ATOMIC_ACQUIRE);

    sem_post(&gate);
    pthread_join(t, NULL);
    printf("%s: %s, %s\n", words, done ? "returns" : "waits", ask_result(w.result));
    MUST(cuCtxSynchronize);
}

static void
waits(const char *words, CUresult (*call)(void *), void *argument)
{
    ask_wait(words, call, argument, false);
}

static void
returns(const char *words, CUresult (*call)(void *), void *argument)
{
    ask_wait(words, call, argument, true);
}

static CUresult
sync_stream(void *s)
{
    return CU(cuStreamSynchronize)(s);
}

static CUresult
sync_event(void *e)
{
    return CU(cuEventSynchronize)(e);
}

static CUresult
sync_context(void *unused)
{
    (void)unused;
    return CU(cuCtxSynchronize)();
}

static void
start(void)
{
    context = ask_context();
    CHECK(sem_init(&gate, 0, 0) == 0, "no semaphore");
    MUST(cuStreamCreate, &blocking, CU_STREAM_DEFAULT);
    MUST(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
    MUST(cuEventCreate, &event, CU_EVENT_DEFAULT);
    MUST(cuMemAlloc_v2, &memory, 64);
}

static void
arguments(void)
{
    CUstream s;
    CUcontext c;
    unsigned flags = 99;
    unsigned long long id;
    unsigned long long id2;
    int priority = 99;

    start();
    ASK(cuStreamCreate, &s, 2);
    ASK(cuStreamCreate, NULL, 0);
    ASK(cuStreamCreateWithPriority, &s, 0, -100);
    MUST(cuStreamGetPriority, s, &priority);
    SAY("priority", priority);
    ASK(cuStreamCreateWithPriority, &s, 0, 7);
    MUST(cuStreamGetPriority, s, &priority);
    SAY("priority", priority);
    ASK(cuStreamGetPriority, NULL, &priority);
    ASK(cuStreamGetPriority, s, NULL);
    ASK(cuStreamGetFlags, NULL, &flags);
    SAY("flags", flags);
    ASK(cuStreamGetFlags, CU_STREAM_LEGACY, &flags);
    SAY("flags", flags);
    ASK(cuStreamGetFlags, CU_STREAM_PER_THREAD, &flags);
    SAY("flags", flags);
    ASK(cuStreamGetFlags, other, &flags);
    SAY("flags", flags);
    ASK(cuStreamGetFlags, other, NULL);
    ASK(cuStreamGetId, NULL, &id);
    ASK(cuStreamGetId, CU_STREAM_LEGACY, &id2);
    SAY("the same id", id == id2);
    ASK(cuStreamGetId, CU_STREAM_PER_THREAD, &id2);
    SAY("the same id", id == id2);
    ASK(cuStreamGetCtx, NULL, &c);
    SAY("its context", c == context);
    ASK(cuStreamGetCtx, blocking, &c);
    SAY("its context", c == context);
    ASK(cuStreamQuery, blocking);
    ASK(cuStreamSynchronize, blocking);
    ASK(cuStreamDestroy_v2, NULL);
    ASK(cuStreamDestroy_v2, CU_STREAM_LEGACY);
    ASK(cuStreamDestroy_v2, CU_STREAM_PER_THREAD);
    ASK(cuStreamDestroy_v2, s);
    ASK(cuStreamWaitEvent, blocking, NULL, 0);
    ASK(cuStreamWaitEvent, blocking, event, 2);
    ASK(cuStreamAddCallback, blocking, NULL, NULL, 0);
    ASK(cuStreamAddCallback, blocking, nothing_there, NULL, 1);
    ASK(cuLaunchHostFunc, blocking, NULL, NULL);
}

static void
waiting(void)
{
    start();
    busy(blocking);
    ASK(cuStreamQuery, NULL);
    ASK(cuStreamQuery, CU_STREAM_PER_THREAD);
    ASK(cuStreamQuery, other);
    ASK(cuStreamQuery, blocking);
    waits("the legacy stream, a blocking one busy", sync_stream, NULL);
    busy(blocking);
    returns("the thread's stream, a blocking one busy", sync_stream, CU_STREAM_PER_THREAD);
    busy(other);
    returns("the legacy stream, a non-blocking one busy", sync_stream, NULL);
    busy(other);
    waits("the context, a non-blocking one busy", sync_context, NULL);
    busy(NULL);
    returns("an empty blocking stream, the legacy one busy", sync_stream, blocking);
    busy(NULL);
    MUST(cuLaunchHostFunc, blocking, nothing, NULL);
    waits("work in a blocking stream, the legacy one busy", sync_stream, blocking);
    /* Not a host function: NVIDIA's driver runs those of all streams one after the other. */
    busy(NULL);
    MUST(cuMemsetD8Async, memory, 1, 64, other);
    returns("work in a non-blocking stream, the legacy one busy", sync_stream, other);
    busy(blocking);
    MUST(cuEventRecord, event, NULL);
    ASK(cuEventQuery, event);
    waits("an event in the legacy stream, a blocking one busy", sync_event, event);
    busy(blocking);
    MUST(cuEventRecord, event, blocking);
    MUST(cuStreamWaitEvent, other, event, 0);
    waits("a stream that waits for a busy one's event", sync_stream, other);
    busy(blocking);
    ASK(cuStreamDestroy_v2, blocking);
    waits("the context, a destroyed stream busy", sync_context, NULL);
}

static void
events(void)
{
    CUevent e;
    CUevent untimed;
    float ms = -1;

    start();
    ASK(cuEventCreate, &e, 8);
    ASK(cuEventCreate, &e, CU_EVENT_INTERPROCESS);
    ASK(cuEventCreate, NULL, 0);
    ASK(cuEventCreate, &untimed, CU_EVENT_DISABLE_TIMING);
    ASK(cuEventCreate, &e, CU_EVENT_BLOCKING_SYNC);
    ASK(cuEventQuery, e);
    ASK(cuEventSynchronize, e);
    ASK(cuEventElapsedTime_v2, &ms, event, e);
    ASK(cuEventRecord, event, blocking);
    ASK(cuEventElapsedTime_v2, &ms, event, e);
    ASK(cuEventRecord, untimed, blocking);
    ASK(cuEventSynchronize, untimed);
    ASK(cuEventElapsedTime_v2, &ms, event, untimed);
    ASK(cuEventElapsedTime_v2, &ms, event, event);
    SAY("no time", ms == 0);
    ASK(cuEventElapsedTime_v2, NULL, event, event);
    busy(blocking);
    MUST(cuEventRecord, e, blocking);
    ASK(cuEventQuery, e);
    ASK(cuEventElapsedTime_v2, &ms, event, e);
    sem_post(&gate);
    ASK(cuEventSynchronize, e);
    ASK(cuEventElapsedTime_v2, &ms, event, e);
    SAY("later", ms > 0);
    ASK(cuEventElapsedTime_v2, &ms, e, event);
    SAY("earlier", ms < 0);
    ASK(cuEventRecordWithFlags, e, blocking, 1);
    ASK(cuEventRecordWithFlags, e, blocking, 2);
    ASK(cuEventDestroy_v2, e);
    ASK(cuEventDestroy_v2, NULL);
}

static CUresult in_callback[4];

static void CUDA_CB
make_calls(void *unused)
{
    CUcontext c;
    CUdeviceptr p;
    size_t size;

    in_callback[0] = CU(cuStreamQuery)(blocking);
    in_callback[1] = CU(cuCtxGetCurrent)(&c);
    in_callback[2] = CU(cuMemGetInfo_v2)(&size, &size);
    in_callback[3] = CU(cuMemAlloc_v2)(&p, 16);
    (void)unused;
}

static CUstream told_stream;
static CUresult told_result;

static void CUDA_CB
tell(CUstream s, CUresult r, void *unused)
{
    told_stream = s;
    told_result = r;
    (void)unused;
}

static void
say_callback(const char *words, CUstream s)
{
    const CUresult r = CU(cuStreamAddCallback)(s, tell, NULL, 0);

    MUST(cuCtxSynchronize);
    printf("callback of %s: %s, %s, %s\n", words, ask_result(r), ask_result(told_result),
           told_stream == NULL                   ? "no stream"
           : told_stream == blocking             ? "the stream"
           : told_stream == CU_STREAM_LEGACY     ? "the legacy stream"
           : told_stream == CU_STREAM_PER_THREAD ? "the thread's stream"
                                                 : "another stream");
}

static char order[8];
static int orders;

static void CUDA_CB
note(void *letter)
{
    order[orders++] = *(const char *)letter;
}

static void
callbacks(void)
{
    static char letters[] = "abcd";

    start();
    say_callback("no stream", NULL);
    say_callback("the legacy stream", CU_STREAM_LEGACY);
    say_callback("the thread's stream", CU_STREAM_PER_THREAD);
    say_callback("a stream", blocking);
    ASK(cuLaunchHostFunc, blocking, make_calls, NULL);
    MUST(cuCtxSynchronize);
    for (int i = 0; i < 4; i++)
        printf("call %d in a host function: %s\n", i, ask_result(in_callback[i]));
    MUST(cuLaunchHostFunc, blocking, note, &letters[0]);
    MUST(cuLaunchHostFunc, NULL, note, &letters[1]);
    MUST(cuLaunchHostFunc, blocking, note, &letters[2]);
    MUST(cuEventRecord, event, blocking);
    MUST(cuStreamWaitEvent, other, event, 0);
    MUST(cuLaunchHostFunc, other, note, &letters[3]);
    MUST(cuCtxSynchronize);
    printf("order: %s\n", order);
}

static void
memory_operations(void)
{
    CUstreamBatchMemOpParams op = {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32};
    CUdeviceptr m;
    unsigned long long v = 0;
    unsigned mine = 0;

    start();
    m = memory;
    MUST(cuMemsetD8_v2, m, 0, 64);
    ASK(cuStreamWriteValue32_v2, blocking, m, 5, 0);
    ASK(cuStreamWriteValue32_v2, blocking, m + 2, 5, 0);
    ASK(cuStreamWriteValue32_v2, blocking, (CUdeviceptr)&mine, 5, 0);
    ASK(cuStreamWriteValue32_v2, blocking, 0, 5, 0);
    ASK(cuStreamWriteValue32_v2, blocking, m, 5, 8);
    ASK(cuStreamWriteValue64_v2, blocking, m + 8, 1ull << 40, 0);
    ASK(cuStreamWriteValue64_v2, blocking, m + 4, 5, 0);
    ASK(cuStreamWaitValue32_v2, blocking, m, 5, CU_STREAM_WAIT_VALUE_EQ);
    ASK(cuStreamWaitValue32_v2, blocking, m, 4, CU_STREAM_WAIT_VALUE_GEQ);
    ASK(cuStreamWaitValue32_v2, blocking, m, 1, CU_STREAM_WAIT_VALUE_AND);
    ASK(cuStreamWaitValue32_v2, blocking, m, 5, 4);
    ASK(cuStreamBatchMemOp_v2, blocking, 0, &op, 0);
    op.writeValue.address = m + 16;
    op.writeValue.value = 9;
    ASK(cuStreamBatchMemOp_v2, blocking, 1, &op, 0);
    ASK(cuStreamBatchMemOp_v2, blocking, 1, &op, 1);
    ASK(cuStreamSynchronize, blocking);
    MUST(cuMemcpyDtoH_v2, &v, m + 8, 8);
    SAY("64 bits", v);
    MUST(cuMemcpyDtoH_v2, &mine, m + 16, 4);
    SAY("32 bits", mine);
}

static void
attributes(void)
{
    CUlaunchAttributeValue v = {0};
    int priority = 99;

    start();
    v.syncPolicy = 4;
    ASK(cuStreamSetAttribute, blocking, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v);
    v.syncPolicy = 9;
    ASK(cuStreamSetAttribute, blocking, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &v);
    v.priority = -2;
    ASK(cuStreamSetAttribute, blocking, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v);
    MUST(cuStreamGetPriority, blocking, &priority);
    SAY("priority", priority);
    ASK(cuStreamSetAttribute, blocking, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v);
    ASK(cuStreamGetAttribute, blocking, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v);
    SAY("priority", v.priority);
    ASK(cuStreamCopyAttributes, other, blocking);
    MUST(cuStreamGetPriority, other, &priority);
    SAY("priority", priority);
}

static void
other_contexts(void)
{
    CUcontext second;
    CUstream s;
    CUevent e;
    float ms;

    start();
    MUST(cuEventRecord, event, blocking);
    MUST(cuCtxCreate_v2, &second, 0, 0);
    /* Recording takes time if the GPU is far. The question is only whether it may be queried. */
    while (CU(cuStreamQuery)(blocking) == CUDA_ERROR_NOT_READY)
        continue;
    ASK(cuStreamQuery, blocking);
    ASK(cuStreamSynchronize, blocking);
    ASK(cuEventRecord, event, NULL);
    ASK(cuEventRecord, event, blocking);
    ASK(cuStreamSynchronize, blocking);
    ASK(cuEventQuery, event);
    ASK(cuStreamWaitEvent, NULL, event, 0);
    ASK(cuLaunchHostFunc, blocking, nothing, NULL);
    MUST(cuStreamSynchronize, blocking);
    MUST(cuEventCreate, &e, 0);
    MUST(cuEventRecord, e, NULL);
    MUST(cuEventSynchronize, e);
    ASK(cuEventElapsedTime_v2, &ms, event, e);
    MUST(cuStreamCreate, &s, 0);
    ASK(cuCtxDestroy_v2, second);
    MUST(cuCtxSetCurrent, NULL);
    ASK(cuStreamQuery, NULL);
    ASK(cuStreamQuery, blocking);
    ASK(cuStreamSynchronize, blocking);
    ASK(cuEventQuery, event);
    ASK(cuEventRecord, event, blocking);
    ASK(cuLaunchHostFunc, blocking, nothing, NULL);
    ASK(cuEventCreate, &e, 0);
    ASK(cuStreamWaitEvent, blocking, event, 0);
    ASK(cuEventSynchronize, event);
    ASK(cuEventElapsedTime_v2, &ms, event, event);
    ASK(cuEventDestroy_v2, event);
    ASK(cuStreamDestroy_v2, other);
}

ASK_MAIN({"arguments", arguments}, {"waiting", waiting}, {"events", events},
         {"callbacks", callbacks}, {"memory_operations", memory_operations},
         {"attributes", attributes}, {"other_contexts", other_contexts})
