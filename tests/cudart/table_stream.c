/* Streams and events. */
#include "table.h"

#include <string.h>

#define LEGACY ((void *)1)
#define PER_THREAD ((void *)2)

static void
stream_callback(void *stream, int status, void *data)
{
    (void)stream;
    *(int *)data = status == 0 ? 1 : 2;
}

static void
host_function(void *data)
{
    ++*(int *)data;
}

static void
making_streams(void)
{
    void *stream = NULL;
    unsigned flags = 77;
    int priority = 77;

    TRY("plain", cudaStreamCreate, (void **), (&stream));
    TRY("plain", cudaStreamDestroy, (void *), (stream));
    TRY("no place", cudaStreamCreate, (void **), (NULL));
    TRY("no place", cudaStreamCreateWithFlags, (void **, unsigned), (NULL, 0));
    TRY("bad", cudaStreamCreateWithFlags, (void **, unsigned), (&stream, 77));
    TRY("non-blocking", cudaStreamCreateWithFlags, (void **, unsigned), (&stream, 1));
    TRY("non-blocking", cudaStreamGetFlags, (void *, unsigned *), (stream, &flags));
    table_show("%u", flags);
    TRY("no place", cudaStreamGetFlags, (void *, unsigned *), (stream, NULL));
    TRY("default", cudaStreamGetFlags, (void *, unsigned *), (NULL, &flags));
    TRY("per thread", cudaStreamGetFlags, (void *, unsigned *), (PER_THREAD, &flags));
    QUIET(cudaStreamDestroy, (void *), (stream));
    TRY("high", cudaStreamCreateWithPriority, (void **, unsigned, int), (&stream, 0, -1));
    TRY("high", cudaStreamGetPriority, (void *, int *), (stream, &priority));
    table_show("%d", priority);
    QUIET(cudaStreamDestroy, (void *), (stream));
    TRY("too high", cudaStreamCreateWithPriority, (void **, unsigned, int), (&stream, 0, -1000));
    TRY("too high", cudaStreamGetPriority, (void *, int *), (stream, &priority));
    table_show("%d", priority);
    TRY("no place", cudaStreamGetPriority, (void *, int *), (stream, NULL));
    TRY("default", cudaStreamGetPriority, (void *, int *), (NULL, &priority));
    QUIET(cudaStreamDestroy, (void *), (stream));
    TRY("bad flags", cudaStreamCreateWithPriority, (void **, unsigned, int), (&stream, 9, 0));
    TRY("no place", cudaStreamCreateWithPriority, (void **, unsigned, int), (NULL, 0, 0));
    TRY("default", cudaStreamDestroy, (void *), (NULL));
    TRY("legacy", cudaStreamDestroy, (void *), (LEGACY));
    TRY("per thread", cudaStreamDestroy, (void *), (PER_THREAD));
}

static void
asking_streams(void *stream)
{
    unsigned long long id = 77;
    int device = 77, status = 77;

    TRY("plain", cudaStreamQuery, (void *), (stream));
    TRY("default", cudaStreamQuery, (void *), (NULL));
    TRY("legacy", cudaStreamQuery, (void *), (LEGACY));
    TRY("per thread", cudaStreamQuery, (void *), (PER_THREAD));
    TRY("plain", cudaStreamSynchronize, (void *), (stream));
    TRY("default", cudaStreamSynchronize, (void *), (NULL));
    TRY("legacy", cudaStreamSynchronize, (void *), (LEGACY));
    TRY("per thread", cudaStreamSynchronize, (void *), (PER_THREAD));
    TRY("plain", cudaStreamGetId, (void *, unsigned long long *), (stream, &id));
    TRY("no place", cudaStreamGetId, (void *, unsigned long long *), (stream, NULL));
    TRY("plain", cudaStreamGetDevice, (void *, int *), (stream, &device));
    table_show("%d", device);
    TRY("no capture", cudaStreamIsCapturing, (void *, int *), (stream, &status));
    table_show("%d", status);
    TRY("default", cudaStreamIsCapturing, (void *, int *), (NULL, &status));
    TRY_SINCE(11, "no place", cudaStreamIsCapturing, (void *, int *), (stream, NULL));
    TRY("old name", cudaStreamQuery_ptsz, (void *), (stream));
    TRY("default", cudaStreamQuery_ptsz, (void *), (NULL));
    TRY("default", cudaStreamSynchronize_ptsz, (void *), (NULL));
}

static void
work_on_streams(void *stream)
{
    int count = 0, called = 0;

    TRY("plain", cudaStreamAddCallback, (void *, void (*)(void *, int, void *), void *, unsigned),
        (stream, stream_callback, &called, 0));
    QUIET(cudaStreamSynchronize, (void *), (stream));
    table_show("called %d", called);
    TRY("bad flags", cudaStreamAddCallback,
        (void *, void (*)(void *, int, void *), void *, unsigned),
        (stream, stream_callback, &called, 5));
    TRY("no function", cudaStreamAddCallback,
        (void *, void (*)(void *, int, void *), void *, unsigned), (stream, NULL, &called, 0));
    TRY("plain", cudaLaunchHostFunc, (void *, void (*)(void *), void *),
        (stream, host_function, &count));
    TRY("default", cudaLaunchHostFunc, (void *, void (*)(void *), void *),
        (NULL, host_function, &count));
    QUIET(cudaDeviceSynchronize, (void), ());
    table_show("called %d times", count);
    TRY("no function", cudaLaunchHostFunc, (void *, void (*)(void *), void *),
        (stream, NULL, NULL));
}

static void
attributes_of_streams(void *stream, void *other)
{
    char value[64] = {0};
    int mode = 2;

    TRY("policy", cudaStreamGetAttribute, (void *, int, void *), (stream, 3, value));
    table_show("%d", *(int *)(void *)value);
    *(int *)(void *)value = 2;
    TRY("policy", cudaStreamSetAttribute, (void *, int, const void *), (stream, 3, value));
    TRY("policy, set", cudaStreamGetAttribute, (void *, int, void *), (stream, 3, value));
    table_show("%d", *(int *)(void *)value);
    TRY("bad", cudaStreamGetAttribute, (void *, int, void *), (stream, 77, value));
    TRY("bad", cudaStreamSetAttribute, (void *, int, const void *), (stream, 77, value));
    *(int *)(void *)value = 77;
    TRY("bad policy", cudaStreamSetAttribute, (void *, int, const void *), (stream, 3, value));
    TRY("plain", cudaStreamCopyAttributes, (void *, void *), (other, stream));
    TRY("relaxed", cudaThreadExchangeStreamCaptureMode, (int *), (&mode));
    table_show("%d", mode);
    TRY("back", cudaThreadExchangeStreamCaptureMode, (int *), (&mode));
    table_show("%d", mode);
    TRY_SOFT("no place", cudaThreadExchangeStreamCaptureMode, (int *), (NULL));
    mode = 9;
    TRY("bad", cudaThreadExchangeStreamCaptureMode, (int *), (&mode));
}

static void
attaching_memory(void *stream)
{
    void *managed = NULL, *plain = NULL;

    QUIET(cudaMallocManaged, (void **, size_t, unsigned), (&managed, 4096, 1));
    QUIET(cudaMalloc, (void **, size_t), (&plain, 4096));
    TRY("single", cudaStreamAttachMemAsync, (void *, void *, size_t, unsigned),
        (stream, managed, 0, 4));
    TRY("global", cudaStreamAttachMemAsync, (void *, void *, size_t, unsigned),
        (stream, managed, 0, 1));
    TRY("no memory", cudaStreamAttachMemAsync, (void *, void *, size_t, unsigned),
        (stream, NULL, 0, 4));
    TRY("plain memory", cudaStreamAttachMemAsync, (void *, void *, size_t, unsigned),
        (stream, plain, 0, 4));
    TRY("bad flags", cudaStreamAttachMemAsync, (void *, void *, size_t, unsigned),
        (stream, managed, 0, 9));
}

void
table_streams(void)
{
    void *stream = NULL, *other = NULL;

    making_streams();
    QUIET(cudaStreamCreate, (void **), (&stream));
    QUIET(cudaStreamCreate, (void **), (&other));
    asking_streams(stream);
    work_on_streams(stream);
    attributes_of_streams(stream, other);
    attaching_memory(stream);
    QUIET(cudaStreamDestroy, (void *), (stream));
}

static void
making_events(void)
{
    void *event = NULL;

    TRY("plain", cudaEventCreate, (void **), (&event));
    TRY("plain", cudaEventDestroy, (void *), (event));
    TRY("no event", cudaEventDestroy, (void *), (NULL));
    TRY("no place", cudaEventCreate, (void **), (NULL));
    TRY("no place", cudaEventCreateWithFlags, (void **, unsigned), (NULL, 0));
    TRY("blocking", cudaEventCreateWithFlags, (void **, unsigned), (&event, 1));
    QUIET(cudaEventDestroy, (void *), (event));
    TRY("bad", cudaEventCreateWithFlags, (void **, unsigned), (&event, 99));
    TRY("8", cudaEventCreateWithFlags, (void **, unsigned), (&event, 8));
    TRY("interprocess with times", cudaEventCreateWithFlags, (void **, unsigned), (&event, 4));
}

void
table_events(void)
{
    void *stream = NULL, *a = NULL, *b = NULL, *untimed = NULL;
    float ms = 0;

    making_events();
    QUIET(cudaStreamCreate, (void **), (&stream));
    QUIET(cudaEventCreate, (void **), (&a));
    QUIET(cudaEventCreate, (void **), (&b));
    TRY("without times", cudaEventCreateWithFlags, (void **, unsigned), (&untimed, 2));
    TRY("not recorded", cudaEventQuery, (void *), (a));
    TRY("not recorded", cudaEventSynchronize, (void *), (a));
    TRY("not recorded", cudaEventElapsedTime, (float *, void *, void *), (&ms, a, b));
    TRY("plain", cudaEventRecord, (void *, void *), (a, stream));
    TRY("default stream", cudaEventRecord, (void *, void *), (b, NULL));
    TRY("per thread", cudaEventRecord, (void *, void *), (b, PER_THREAD));
    TRY("no event", cudaEventRecord, (void *, void *), (NULL, NULL));
    TRY("untimed", cudaEventRecord, (void *, void *), (untimed, stream));
    TRY("default", cudaEventRecord_ptsz, (void *, void *), (b, NULL));
    TRY("plain", cudaEventRecordWithFlags, (void *, void *, unsigned), (a, stream, 0));
    TRY("external", cudaEventRecordWithFlags, (void *, void *, unsigned), (a, stream, 1));
    TRY("bad flags", cudaEventRecordWithFlags, (void *, void *, unsigned), (a, stream, 77));
    QUIET(cudaDeviceSynchronize, (void), ());
    TRY("plain", cudaEventQuery, (void *), (a));
    TRY("no event", cudaEventQuery, (void *), (NULL));
    TRY("plain", cudaEventSynchronize, (void *), (a));
    TRY("no event", cudaEventSynchronize, (void *), (NULL));
    TRY("plain", cudaEventElapsedTime, (float *, void *, void *), (&ms, a, b));
    TRY("plain", cudaEventElapsedTime_v2, (float *, void *, void *), (&ms, a, b));
    TRY("no place", cudaEventElapsedTime, (float *, void *, void *), (NULL, a, b));
    TRY("no first", cudaEventElapsedTime, (float *, void *, void *), (&ms, NULL, b));
    TRY("no second", cudaEventElapsedTime, (float *, void *, void *), (&ms, a, NULL));
    TRY("untimed", cudaEventElapsedTime, (float *, void *, void *), (&ms, a, untimed));
    TRY("plain", cudaStreamWaitEvent, (void *, void *, unsigned), (stream, a, 0));
    TRY("default", cudaStreamWaitEvent, (void *, void *, unsigned), (NULL, a, 0));
    TRY("bad flags", cudaStreamWaitEvent, (void *, void *, unsigned), (stream, a, 77));
    TRY("external", cudaStreamWaitEvent, (void *, void *, unsigned), (stream, a, 1));
    TRY("no event", cudaStreamWaitEvent, (void *, void *, unsigned), (stream, NULL, 0));
}
