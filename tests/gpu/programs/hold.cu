// Launches that heddle may hold.
//
//     hold results        all kinds of launches, on several streams; prints what they computed
//     hold by-number N    with a batch of N and a long wait: prints what ran when
//     hold by-wait        with a large batch and a long wait: the same
//     hold by-time        with a large batch and a short wait: the same
//
// The program waits for a time only to see that something does not happen.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cooperative_groups.h>
#include <cuda_runtime.h>

static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        std::printf("%s: %s\n", what, cudaGetErrorString(e));
        std::exit(1);
    }
}

struct Wide {
    double x[9];
    int n;
};

// The result depends on the order.
__global__ void mix(unsigned *word, unsigned value)
{
    *word = *word * 31 + value;
}

__global__ void wide(unsigned *word, Wide w, const float *scale)
{
    double t = 0;

    for (int i = 0; i < 9; i++)
        t += w.x[i] * w.n;
    *word = *word * 31 + unsigned(t * *scale);
}

__global__ void together(unsigned *words, int n)
{
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0 && blockIdx.x < n)
        words[blockIdx.x] = words[blockIdx.x] * 31 + blockIdx.x;
}

// The host sees it at once.
__global__ void signal(volatile unsigned *counter)
{
    atomicAdd(const_cast<unsigned *>(counter), 1);
    __threadfence_system();
}

static const int streams = 4;

static void results()
{
    cudaStream_t s[streams];
    unsigned *words;
    unsigned host[64];
    float *scale;
    const float two = 2;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    check(cudaMalloc(&words, sizeof host), "malloc");
    check(cudaMemset(words, 0, sizeof host), "memset");
    check(cudaMalloc(&scale, sizeof *scale), "malloc");
    check(cudaMemcpy(scale, &two, sizeof two, cudaMemcpyHostToDevice), "copy");
    for (int i = 0; i < streams; i++)
        check(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking), "stream");
    for (unsigned i = 0; i < 4000; i++) {
        Wide w = {{1, 2, 3, 4, 5, 6, 7, 8, double(i)}, int(i % 5)};

        mix<<<1, 1, 0, s[i % streams]>>>(words + i % streams, i);
        wide<<<1, 1, 0, s[i % streams]>>>(words + i % streams, w, scale);
        std::memset(&w, 0xff, sizeof w);
        if (i % 97 == 0)
            check(cudaStreamSynchronize(s[i % streams]), "synchronize");
        if (i % 331 == 0) {
            check(cudaMemcpyAsync(host, words, 4, cudaMemcpyDeviceToHost, s[0]), "copy");
            check(cudaStreamSynchronize(s[0]), "synchronize");
            std::printf("%u ", host[0]);
        }
    }
    // The default stream, a launch with attributes, a cooperative one.
    check(cudaDeviceSynchronize(), "synchronize");
    for (int i = 0; i < 100; i++) {
        int n = 16;
        unsigned *from = words + 16;
        void *args[] = {&from, &n};
        cudaLaunchConfig_t config = {};

        mix<<<1, 1>>>(words + 8, unsigned(i));
        config.gridDim = 1;
        config.blockDim = 1;
        config.stream = s[1];
        check(cudaLaunchKernelEx(&config, mix, words + 9, unsigned(i)), "launch");
        check(cudaLaunchCooperativeKernel((void *)together, 16, 32, args, 0, s[2]), "cooperative");
    }
    check(cudaDeviceSynchronize(), "synchronize");
    // A graph, among launches.
    check(cudaStreamBeginCapture(s[3], cudaStreamCaptureModeGlobal), "capture");
    for (unsigned i = 0; i < 5; i++)
        mix<<<1, 1, 0, s[3]>>>(words + 10, i);
    check(cudaStreamEndCapture(s[3], &graph), "end of capture");
    check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    for (unsigned i = 0; i < 50; i++) {
        mix<<<1, 1, 0, s[3]>>>(words + 10, 100 + i);
        check(cudaGraphLaunch(exec, s[3]), "graph");
    }
    check(cudaMemcpyAsync(host, words, sizeof host, cudaMemcpyDeviceToHost, s[3]), "copy");
    check(cudaStreamSynchronize(s[3]), "synchronize");
    // CUDA's refusals are as ever.
    mix<<<0, 1>>>(words, 1);
    std::printf("\n%s\n", cudaGetErrorName(cudaGetLastError()));
    mix<<<1, 4096>>>(words, 1);
    std::printf("%s\n", cudaGetErrorName(cudaGetLastError()));
    for (unsigned w : host)
        std::printf("%u ", w);
    std::printf("\n");
}

// Does it become n within the time limit?
static bool becomes(const volatile unsigned *counter, unsigned n, int ms)
{
    for (int i = 0; i < ms && *counter != n; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return *counter == n;
}

static void held(const char *how, unsigned number)
{
    cudaStream_t s[2];
    unsigned *counter;

    check(cudaMallocHost(&counter, sizeof *counter), "malloc");
    *counter = 0;
    for (cudaStream_t &one : s)
        check(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking), "stream");
    // Only launches that have succeeded once are held.
    for (cudaStream_t one : s)
        signal<<<1, 1, 0, one>>>(counter);
    check(cudaDeviceSynchronize(), "synchronize");
    for (unsigned i = 1; i < number; i++)
        signal<<<1, 1, 0, s[i % 2]>>>(counter);
    check(cudaGetLastError(), "launch");
    std::printf("held %d\n", !becomes(counter, 1 + number, 500) && *counter == 2);
    if (std::strcmp(how, "by-number") == 0)
        signal<<<1, 1, 0, s[0]>>>(counter);
    if (std::strcmp(how, "by-wait") == 0)
        check(cudaStreamSynchronize(s[1]), "synchronize");
    std::printf("released %d\n",
                becomes(counter, std::strcmp(how, "by-number") == 0 ? 2 + number : 1 + number,
                        20000));
    check(cudaDeviceSynchronize(), "synchronize");
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "results";

    if (std::strcmp(what, "results") == 0)
        results();
    else
        held(what, argc > 2 ? unsigned(std::atoi(argv[2])) : 8);
    return 0;
}
