/* A program on the null backend, with any runtime: every call succeeds, nothing is computed. */
#include <pthread.h>
#include <stdlib.h>

#include "program.h"

static void
works(void)
{
    unsigned four = 4;
    unsigned n[COUNT];
    unsigned *p = make_numbers(1);
    void *pinned = NULL;
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    void *arguments[] = {&p, &four};

    EXPECT(p != NULL);
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreateWithFlags(&event, 2));
    OK(cudaLaunchKernel(&add, one_block, all_threads, arguments, 0, stream));
    OK(cudaMemcpyToSymbol(kept, &four, sizeof four, 0, cudaMemcpyHostToDevice));
    OK(cudaEventRecord(event, stream));
    OK(cudaStreamWaitEvent(stream, event, 0));
    OK(cudaStreamSynchronize(stream));
    OK(cudaEventSynchronize(event));
    OK(cudaMemcpy(n, p, BYTES, cudaMemcpyDeviceToHost));
    OK(cudaMallocHost(&pinned, BYTES));
    memset(pinned, 1, BYTES);
    OK(cudaMemcpyAsync(pinned, p, BYTES, cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeHost(pinned));
    OK(cudaEventDestroy(event));
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(p));
    OK(cudaDeviceSynchronize());
    OK(cudaGetLastError());
}

static void
has_one_device(void)
{
    int count = 0;
    int device = -1;

    OK(cudaGetDeviceCount(&count));
    EXPECT(count == 1);
    OK(cudaSetDevice(0));
    OK(cudaGetDevice(&device));
    EXPECT(device == 0);
    FAILS(cudaErrorInvalidDevice, cudaSetDevice(1));
}

static void
begins_anew_after_a_reset(void)
{
    works();
    OK(cudaDeviceReset());
    works();
}

static void *
work_in_thread(void *unused)
{
    works();
    return NULL;
}

static void
has_threads(void)
{
    pthread_t threads[4];

    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, work_in_thread, NULL) != 0)
            abort();
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

int
main(int argc, char **argv)
{
    static const struct program_case cases[] = {
        {"works", works},
        {"has_one_device", has_one_device},
        {"begins_anew_after_a_reset", begins_anew_after_a_reset},
        {"has_threads", has_threads},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
