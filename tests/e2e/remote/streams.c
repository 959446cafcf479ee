/* Streams, events, contexts and functions of the program on a remote GPU.
 *
 *     remote_streams [no_memory]
 *
 * `no_memory`: the server's GPU does nothing, so that only order and completion can be checked.
 */
#include "conformance/conf.h"

#include <pthread.h>
#include <stdatomic.h>

#define THREADS 6
#define ROUNDS 60
#define OK(call) CHECK_IS(call, CUDA_SUCCESS)
#define PER_THREAD ((CUstream)(uintptr_t)2) /* CU_STREAM_PER_THREAD */

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 p, .param .u32 v)\n{\n"
    ".reg .b32 %r<4>; .reg .b64 %d<2>;\n"
    "ld.param.u64 %d1, [p];\nld.param.u32 %r1, [v];\n"
    "ld.global.u32 %r2, [%d1];\nadd.u32 %r2, %r2, %r1;\nst.global.u32 [%d1], %r2;\nret;\n}\n"
    ".visible .entry bad()\n{\n.reg .b64 %d<2>; .reg .b32 %r<2>;\n"
    "mov.u64 %d1, 16;\nld.global.u32 %r1, [%d1];\nst.global.u32 [%d1+4], %r1;\nret;\n}\n";

static bool no_memory;
static CUcontext primary;

static CUstream
new_stream(unsigned flags, int priority)
{
    CUstream s;

    OK(CU(cuStreamCreateWithPriority)(&s, flags, priority));
    return s;
}

static CUevent
new_event(unsigned flags)
{
    CUevent e;

    OK(CU(cuEventCreate)(&e, flags));
    return e;
}

/* ---- functions in order ---------------------------------------------------------------------- */

struct step {
    const uint32_t *seen;
    uint32_t expected;
    _Atomic int *count;
    int place;
};

static void
check_step(void *arg)
{
    const struct step *s = arg;

    CHECK_IS(atomic_fetch_add(s->count, 1), s->place);
    if (!no_memory)
        CHECK_IS(*s->seen, s->expected);
}

/* When a function runs, copies before it have arrived in the program's memory, and nothing after it
 * has happened yet. */
static void
functions_run_in_stream_order(bool pinned)
{
    const int n = 20;
    CUstream s = new_stream(CU_STREAM_NON_BLOCKING, 0);
    struct step steps[20];
    uint32_t *host;
    uint32_t plain = 0;
    CUdeviceptr p;
    _Atomic int count = 0;

    OK(CU(cuMemAlloc_v2)(&p, 4096));
    OK(CU(cuMemHostAlloc)((void **)&host, 4096, 0));
    *host = 0;
    for (int i = 0; i < n; i++) {
        steps[i] = (struct step){pinned ? host : &plain, (uint32_t)i * 3 + 1, &count, i};
        OK(CU(cuMemsetD32Async)(p, (uint32_t)i * 3 + 1, 4, s));
        OK(CU(cuMemcpyDtoHAsync_v2)(pinned ? host : &plain, p, 4, s));
        OK(CU(cuLaunchHostFunc)(s, check_step, &steps[i]));
    }
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(count, n);
    OK(CU(cuStreamQuery)(s));
    OK(CU(cuStreamDestroy_v2)(s));
    OK(CU(cuMemFreeHost)(host));
    OK(CU(cuMemFree_v2)(p));
}

/* The same with kernels, and with memory that both sides share, if the transport can. */
static void
functions_run_between_kernels(void)
{
    const int n = 20;
    CUstream s = new_stream(0, 0);
    struct step steps[20];
    uint32_t *host;
    uint32_t three = 3;
    CUdeviceptr p;
    CUmodule m;
    CUfunction f;
    _Atomic int count = 0;
    void *params[] = {&p, &three};

    OK(CU(cuModuleLoadData)(&m, ptx));
    OK(CU(cuModuleGetFunction)(&f, m, "add"));
    OK(CU(cuMemAlloc_v2)(&p, 4096));
    OK(CU(cuMemsetD32_v2)(p, 0, 4));
    OK(CU(cuMemHostAlloc)((void **)&host, 4096, 0));
    for (int i = 0; i < n; i++) {
        steps[i] = (struct step){host, (uint32_t)(i + 1) * 3, &count, i};
        OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
        OK(CU(cuMemcpyDtoHAsync_v2)(host, p, 4, s));
        OK(CU(cuLaunchHostFunc)(s, check_step, &steps[i]));
    }
    OK(CU(cuCtxSynchronize)());
    CHECK_IS(count, n);
    OK(CU(cuStreamDestroy_v2)(s));
    OK(CU(cuModuleUnload)(m));
    OK(CU(cuMemFreeHost)(host));
    OK(CU(cuMemFree_v2)(p));
}

static void
count_one(void *arg)
{
    atomic_fetch_add((_Atomic int *)arg, 1);
}

static void
count_slowly(void *arg)
{
    give_a_moment(30); /* a wait that ends too early would end meanwhile */
    count_one(arg);
}

static void
a_wait_is_over_when_functions_have_run(void)
{
    CUstream s = new_stream(0, 0);
    CUevent e = new_event(CU_EVENT_DISABLE_TIMING);
    _Atomic int count = 0;

    OK(CU(cuLaunchHostFunc)(s, count_slowly, &count));
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(count, 1);
    OK(CU(cuLaunchHostFunc)(s, count_slowly, &count));
    OK(CU(cuCtxSynchronize)());
    CHECK_IS(count, 2);
    OK(CU(cuLaunchHostFunc)(s, count_slowly, &count));
    OK(CU(cuEventRecord)(e, s));
    OK(CU(cuEventSynchronize)(e));
    CHECK_IS(count, 3);
    if (!no_memory) {
        OK(CU(cuLaunchHostFunc)(s, count_slowly, &count));
        OK(CU(cuEventRecord)(e, s));
        while (CU(cuEventQuery)(e) == CUDA_ERROR_NOT_READY)
            continue;
        CHECK_IS(count, 4);
        OK(CU(cuLaunchHostFunc)(s, count_slowly, &count));
        CHECK_IS(CU(cuStreamQuery)(s), CUDA_ERROR_NOT_READY);
        /* The legacy stream waits for blocking ones. */
        OK(CU(cuLaunchHostFunc)(NULL, count_one, &count));
        OK(CU(cuStreamSynchronize)(NULL));
        CHECK_IS(count, 6);
    }
    OK(CU(cuEventDestroy_v2)(e));
    OK(CU(cuStreamDestroy_v2)(s));
    OK(CU(cuCtxSynchronize)());
}

static void
note_status(CUstream s, CUresult status, void *arg)
{
    (void)s;
    *(_Atomic int *)arg = (int)status;
}

static void
callbacks_are_told(void)
{
    CUstream s = new_stream(0, 0);
    _Atomic int status = -1;

    OK(CU(cuStreamAddCallback)(s, note_status, (void *)&status, 0));
    OK(CU(cuStreamSynchronize)(s));
    CHECK_IS(status, CUDA_SUCCESS);
    OK(CU(cuStreamDestroy_v2)(s));
}

static void
ask_what_is_forbidden(void *arg)
{
    CUcontext c;

    *(CUresult *)arg = CU(cuCtxGetCurrent)(&c);
}

static void
functions_may_not_call_back(void)
{
    CUresult answer = CUDA_SUCCESS;

    OK(CU(cuLaunchHostFunc)(NULL, ask_what_is_forbidden, &answer));
    OK(CU(cuStreamSynchronize)(NULL));
    CHECK_IS(answer, CUDA_ERROR_NOT_PERMITTED);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void
events_order_streams_and_contexts(void)
{
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING, -1);
    CUstream b = new_stream(CU_STREAM_NON_BLOCKING, 0);
    CUevent e = new_event(0);
    CUevent f = new_event(0);
    CUcontext other;
    CUstream c;
    _Atomic int count = 0;
    struct step second = {NULL, 0, &count, 1};
    struct step third = {NULL, 0, &count, 2};
    const uint32_t zero = 0;
    float ms = -1;
    int priority = 0;

    second.seen = third.seen = &zero;
    OK(CU(cuStreamGetPriority)(a, &priority));
    CHECK_IS(priority, -1);
    OK(CU(cuCtxCreate_v2)(&other, 0, 0));
    c = new_stream(CU_STREAM_NON_BLOCKING, 0);
    OK(CU(cuCtxSetCurrent)(primary));
    OK(CU(cuEventRecord)(e, a));
    OK(CU(cuLaunchHostFunc)(a, count_slowly, &count));
    OK(CU(cuEventRecord)(e, a));
    OK(CU(cuStreamWaitEvent)(b, e, 0));
    OK(CU(cuLaunchHostFunc)(b, check_step, &second));
    OK(CU(cuEventRecord)(f, b));
    OK(CU(cuStreamWaitEvent)(c, f, 0));
    OK(CU(cuLaunchHostFunc)(c, check_step, &third));
    OK(CU(cuStreamSynchronize)(c));
    CHECK_IS(count, 3);
    OK(CU(cuEventQuery)(e));
    OK(CU(cuEventElapsedTime)(&ms, e, f));
    CHECK(ms >= 0, "%f ms", (double)ms);
    OK(CU(cuEventDestroy_v2)(e));
    OK(CU(cuEventDestroy_v2)(f));
    OK(CU(cuStreamDestroy_v2)(a));
    OK(CU(cuStreamDestroy_v2)(b));
    OK(CU(cuCtxDestroy_v2)(other));
    CHECK_IS(CU(cuStreamSynchronize)(c), CUDA_ERROR_INVALID_HANDLE);
}

static void
values_hold_streams(void)
{
    CUstream a = new_stream(CU_STREAM_NON_BLOCKING, 0);
    CUstream b = new_stream(CU_STREAM_NON_BLOCKING, 0);
    _Atomic int count = 0;
    uint32_t word = 0;
    CUdeviceptr p;

    OK(CU(cuMemAlloc_v2)(&p, 64));
    OK(CU(cuMemsetD32_v2)(p, 0, 16));
    OK(CU(cuStreamWaitValue32_v2)(a, p, 7, CU_STREAM_WAIT_VALUE_EQ));
    OK(CU(cuLaunchHostFunc)(a, count_one, &count));
    give_a_moment(20);
    if (!no_memory) {
        CHECK_IS(count, 0);
        CHECK_IS(CU(cuStreamQuery)(a), CUDA_ERROR_NOT_READY);
    }
    OK(CU(cuStreamWriteValue32_v2)(b, p, 7, 0));
    OK(CU(cuStreamSynchronize)(a));
    CHECK_IS(count, 1);
    OK(CU(cuMemcpyDtoH_v2)(&word, p, 4));
    if (!no_memory)
        CHECK_IS(word, 7);
    OK(CU(cuMemFree_v2)(p));
    OK(CU(cuStreamDestroy_v2)(a));
    OK(CU(cuStreamDestroy_v2)(b));
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Creates and destroys streams, and uses the thread's own default stream. */
static void *
use_streams(void *arg)
{
    _Atomic int count = 0;
    int expected = 0;

    (void)arg;
    OK(CU(cuCtxSetCurrent)(primary));
    for (int i = 0; i < ROUNDS; i++) {
        CUstream s = new_stream(i % 2 ? CU_STREAM_NON_BLOCKING : 0, -(i % 6));
        CUevent e = new_event(i % 3 ? CU_EVENT_DISABLE_TIMING : 0);

        OK(CU(cuLaunchHostFunc)(s, count_one, &count));
        OK(CU(cuEventRecord)(e, s));
        OK(CU(cuStreamWaitEvent)(PER_THREAD, e, 0));
        OK(CU(cuLaunchHostFunc)(PER_THREAD, count_one, &count));
        expected += 2;
        if (i % 4 == 0) {
            OK(CU(cuStreamSynchronize)(PER_THREAD));
            CHECK_IS(count, expected);
        } else if (i % 4 == 1) {
            while (CU(cuEventQuery)(e) == CUDA_ERROR_NOT_READY)
                continue;
        } else if (i % 4 == 2) {
            while (CU(cuStreamQuery)(s) == CUDA_ERROR_NOT_READY)
                continue;
        }
        OK(CU(cuEventDestroy_v2)(e));
        OK(CU(cuStreamDestroy_v2)(s));
    }
    OK(CU(cuCtxSynchronize)());
    CHECK_IS(count, expected);
    return NULL;
}

static void
threads_do_not_disturb_each_other(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_IS(pthread_create(&threads[i], NULL, use_streams, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_IS(pthread_join(threads[i], NULL), 0);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void
a_failure_is_told_and_can_be_reset(void)
{
    CUstream s = new_stream(CU_STREAM_NON_BLOCKING, 0);
    CUevent e = new_event(0);
    _Atomic int status = -1;
    CUmodule m;
    CUfunction f;
    CUcontext again;
    CUresult r;

    OK(CU(cuModuleLoadData)(&m, ptx));
    OK(CU(cuModuleGetFunction)(&f, m, "bad"));
    OK(CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL));
    (void)CU(cuStreamAddCallback)(s, note_status, (void *)&status, 0);
    (void)CU(cuEventRecord)(e, s);
    /* A query, which does not wait, must find out, too. */
    WAIT_UNTIL((r = CU(cuEventQuery)(e)) != CUDA_ERROR_NOT_READY);
    if (r == CUDA_SUCCESS)
        r = CU(cuStreamSynchronize)(s);
    CHECK_IS(r, CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_IS(CU(cuStreamSynchronize)(s), CUDA_ERROR_ILLEGAL_ADDRESS);
    WAIT_UNTIL(status != -1);
    CHECK_IS(status, CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(CU(cuDevicePrimaryCtxReset_v2)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&again, 0));
    CHECK(again == primary, "the primary context has another name");
    OK(CU(cuCtxSetCurrent)(again));
    OK(CU(cuCtxSynchronize)());
    a_wait_is_over_when_functions_have_run();
}

int
main(int argc, char **argv)
{
    no_memory = argc > 1 && strcmp(argv[1], "no_memory") == 0;
    OK(CU(cuInit)(0));
    OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
    OK(CU(cuCtxSetCurrent)(primary));
    functions_run_in_stream_order(true);
    functions_run_in_stream_order(false);
    if (!no_memory)
        functions_run_between_kernels();
    a_wait_is_over_when_functions_have_run();
    callbacks_are_told();
    functions_may_not_call_back();
    events_order_streams_and_contexts();
    values_hold_streams();
    threads_do_not_disturb_each_other();
    if (!no_memory)
        a_failure_is_told_and_can_be_reset();
    return 0;
}
