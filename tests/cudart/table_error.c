/* The last error: what is recorded, who sees it, how it is cleared; threads; kernels that fail. */
#include "table.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

/* A stream is busy while its host function waits here. */
static sem_t error_gate;

static void
wait_at_gate(void *unused)
{
    (void)unused;
    while (sem_wait(&error_gate) != 0)
        ;
}

/* A hash of a text (FNV-1a): NVIDIA's words are not repeated here. */
static uint32_t
hash_text(const char *text)
{
    uint32_t hash = 2166136261u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

static void
names_of_errors(void)
{
    static const int texts[] = {1, 2, 27, 35, 46, 98, 100, 400, 700, 719};

    for (int i = 0; i < 1000; i++) {
        if (strcmp(table_error(i), "unknown") != 0)
            printf("error %d: %s\n", i, table_error(i));
    }
    for (int i = -1; i < 1200; i += 100) {
        if (table_find("cudaGetErrorString")) {
            const char *text = ((const char *(*)(int))table_function())(i);

            /* Not the text itself: each runtime has its own words. */
            printf("error %d: name %s, %s\n", i, table_error(i),
                   text && *text ? "text" : "no text");
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (table_find("cudaGetErrorString"))
            printf("error %d: text %08x\n", texts[i],
                   hash_text(((const char *(*)(int))table_function())(texts[i])));
    }
}

static void
recording_of_errors(void)
{
    void *pointer = NULL;
    int device;

    table_keep(true);
    TRY("a first failure", cudaSetDevice, (int), (7));
    TRY("success does not clear it", cudaGetDevice, (int *), (&device));
    TRY("looked at", cudaPeekAtLastError, (void), ());
    TRY("a second failure replaces it", cudaMalloc, (void **, size_t), (NULL, 4));
    TRY("success after it", cudaMalloc, (void **, size_t), (&pointer, 4));
    TRY("taken", cudaGetLastError, (void), ());
    TRY("taken again", cudaGetLastError, (void), ());
    TRY("looked at again", cudaPeekAtLastError, (void), ());
    TRY("a direction", cudaMemcpy, (void *, const void *, size_t, int),
        (pointer, &device, 4, BAD_KIND));
    TRY("the same failure", cudaMemcpy, (void *, const void *, size_t, int),
        (pointer, &device, 4, BAD_KIND));
    TRY("taken a third time", cudaGetLastError, (void), ());
    TRY("from the driver", cudaFree, (void *), ((void *)0x1234));
    TRY("a failure, then a wait", cudaDeviceSynchronize, (void), ());
    TRY("taken a fourth time", cudaGetLastError, (void), ());
    TRY("twice", cudaFree, (void *), (pointer));
    TRY("twice, second", cudaFree, (void *), (pointer));
    TRY("taken a fifth time", cudaGetLastError, (void), ());
    TRY("failure before a reset", cudaSetDevice, (int), (-1));
    TRY("after a failure", cudaDeviceReset, (void), ());
    TRY("taken after a reset", cudaGetLastError, (void), ());
    table_keep(false);
}

/* "Not ready" is an answer rather than a failure. */
static void
not_ready(void)
{
    void *stream = NULL, *event = NULL, *second = NULL;
    float ms = 0;

    sem_init(&error_gate, 0, 0);
    QUIET(cudaStreamCreate, (void **), (&stream));
    QUIET(cudaEventCreate, (void **), (&event));
    QUIET(cudaEventCreate, (void **), (&second));
    QUIET(cudaEventRecord, (void *, void *), (second, stream));
    table_keep(true);
    TRY("that waits", cudaLaunchHostFunc, (void *, void (*)(void *), void *),
        (stream, wait_at_gate, NULL));
    TRY("behind it", cudaEventRecord, (void *, void *), (event, stream));
    TRY("busy", cudaStreamQuery, (void *), (stream));
    TRY("after a busy stream", cudaPeekAtLastError, (void), ());
    TRY("after a busy stream", cudaGetLastError, (void), ());
    TRY("busy", cudaEventQuery, (void *), (event));
    TRY("after a busy event", cudaGetLastError, (void), ());
    TRY("to a busy event", cudaEventElapsedTime, (float *, void *, void *), (&ms, second, event));
    TRY("after a busy time", cudaGetLastError, (void), ());
    sem_post(&error_gate);
    TRY("done", cudaStreamSynchronize, (void *), (stream));
    TRY("done", cudaStreamQuery, (void *), (stream));
    TRY("done", cudaEventQuery, (void *), (event));
    TRY("at last", cudaGetLastError, (void), ());
    table_keep(false);
    QUIET(cudaStreamDestroy, (void *), (stream));
    sem_destroy(&error_gate);
}

static void *
other_thread(void *unused)
{
    int device = 77;

    (void)unused;
    TRY("of a new thread", cudaPeekAtLastError, (void), ());
    TRY("of a new thread", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("in a new thread", cudaSetDevice, (int), (9));
    TRY("device 0 in a new thread", cudaSetDevice, (int), (0));
    return NULL;
}

static void
threads_have_their_own(void)
{
    pthread_t thread;
    int device = 77;

    QUIET(cudaSetDevice, (int), (1));
    table_keep(true);
    TRY("for this thread", cudaSetDevice, (int), (8));
    if (pthread_create(&thread, NULL, other_thread, NULL) == 0)
        pthread_join(thread, NULL);
    TRY("after the other thread", cudaGetDevice, (int *), (&device));
    table_show("device %d", device);
    TRY("after the other thread", cudaGetLastError, (void), ());
    TRY("after that", cudaGetLastError, (void), ());
    table_keep(false);
}

void
table_errors(void)
{
    names_of_errors();
    recording_of_errors();
    not_ready();
    threads_have_their_own();
}

/* A kernel writes where nothing is: everything fails from then on. */
void
table_faults(void)
{
    void *nowhere = (void *)16, *args[] = {&nowhere}, *pointer = NULL, *stream = NULL, *old = NULL;
    void *event = NULL;
    struct table_function_info info;
    int device = 77;

    table_register();
    QUIET(cudaStreamCreate, (void **), (&old));
    QUIET(cudaEventCreate, (void **), (&event));
    table_keep(true);
    TRY("writes nowhere", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_store, (struct table_dim3){1, 1, 1}, (struct table_dim3){1, 1, 1}, args, 0, NULL));
    TRY("after the fault", cudaDeviceSynchronize, (void), ());
    TRY("first", cudaPeekAtLastError, (void), ());
    TRY("first", cudaGetLastError, (void), ());
    TRY("second", cudaGetLastError, (void), ());
    TRY("after the fault", cudaMalloc, (void **, size_t), (&pointer, 16));
    TRY("third", cudaGetLastError, (void), ());
    TRY("after the fault", cudaStreamCreate, (void **), (&stream));
    TRY("after the fault", cudaStreamQuery, (void *), (NULL));
    TRY("a stream of before", cudaStreamSynchronize, (void *), (old));
    TRY("after the fault", cudaFree, (void *), (NULL));
    TRY("nothing, after the fault", cudaFreeHost, (void *), (NULL));
    TRY("after the fault", cudaFuncGetAttributes, (struct table_function_info *, const void *),
        (&info, &table_add));
    TRY("after the fault", cudaFuncSetAttribute, (const void *, int, int), (&table_add, 9, 50));
    TRY("after the fault", cudaFuncSetCacheConfig, (const void *, int), (&table_add, 1));
    TRY("after the fault", cudaGetDevice, (int *), (&device));
    TRY("after the fault", cudaSetDevice, (int), (0));
    TRY("after the fault", cudaGetDeviceCount, (int *), (&device));
    TRY("again", cudaDeviceSynchronize, (void), ());
    TRY("after the fault", cudaLaunchKernel,
        (const void *, struct table_dim3, struct table_dim3, void **, size_t, void *),
        (&table_store, (struct table_dim3){1, 1, 1}, (struct table_dim3){1, 1, 1}, args, 0, NULL));
    TRY("the other device", cudaSetDevice, (int), (1));
    TRY("the other device", cudaMalloc, (void **, size_t), (&pointer, 16));
    TRY("back", cudaSetDevice, (int), (0));
    TRY("back", cudaGetLastError, (void), ());
    TRY("repairs", cudaDeviceReset, (void), ());
    TRY("of before the reset", cudaEventDestroy, (void *), (event));
    TRY("after the reset", cudaGetLastError, (void), ());
    TRY("after the reset", cudaMalloc, (void **, size_t), (&pointer, 16));
    TRY("after the reset", cudaDeviceSynchronize, (void), ());
    TRY("after all", cudaGetLastError, (void), ());
    table_keep(false);
}
