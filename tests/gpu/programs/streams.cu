// Streams, events, a callback, a captured graph and the per-thread default stream in one program.
#include <cstdio>
#include <thread>

static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess) {
        std::printf("%s: %s\n", what, cudaGetErrorString(e));
        std::exit(1);
    }
}

__global__ void scale(float *x, int n, float by)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        x[i] = x[i] * by + 1.0f;
}

static void called(void *p)
{
    ++*static_cast<int *>(p);
}

static double total(const float *x, int n)
{
    double t = 0;

    for (int i = 0; i < n; i++)
        t += x[i];
    return t;
}

static void work(int id, double *result)
{
    const int n = 1 << 16;
    float *host = nullptr;
    float *device = nullptr;
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int calls = 0;

    check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "stream");
    check(cudaMallocHost(&host, n * sizeof(float)), "cudaMallocHost");
    check(cudaMallocAsync(&device, n * sizeof(float), s), "cudaMallocAsync");
    for (int i = 0; i < n; i++)
        host[i] = float((i + id) % 97);
    check(cudaMemcpyAsync(device, host, n * sizeof(float), cudaMemcpyHostToDevice, s), "copy");
    check(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "capture");
    scale<<<n / 256, 256, 0, s>>>(device, n, 0.5f);
    scale<<<n / 256, 256, 0, s>>>(device, n, 0.25f);
    check(cudaStreamEndCapture(s, &graph), "end capture");
    check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
    for (int i = 0; i < 10; i++)
        check(cudaGraphLaunch(exec, s), "graph launch");
    check(cudaLaunchHostFunc(s, called, &calls), "host function");
    check(cudaMemcpyAsync(host, device, n * sizeof(float), cudaMemcpyDeviceToHost, s), "copy");
    check(cudaStreamSynchronize(s), "synchronize");
    *result = total(host, n) + calls;
    check(cudaGraphExecDestroy(exec), "destroy");
    check(cudaGraphDestroy(graph), "destroy");
    check(cudaFreeAsync(device, s), "free");
    check(cudaStreamSynchronize(s), "synchronize");
    check(cudaFreeHost(host), "free");
    check(cudaStreamDestroy(s), "destroy");
}

int main()
{
    double results[4];
    std::thread threads[4];
    cudaEvent_t a, b;
    float ms = -1;

    check(cudaEventCreate(&a), "event");
    check(cudaEventCreate(&b), "event");
    check(cudaEventRecord(a, cudaStreamPerThread), "record");
    for (int i = 0; i < 4; i++)
        threads[i] = std::thread(work, i, &results[i]);
    for (int i = 0; i < 4; i++)
        threads[i].join();
    check(cudaEventRecord(b, cudaStreamPerThread), "record");
    check(cudaEventSynchronize(b), "event");
    check(cudaEventElapsedTime(&ms, a, b), "elapsed");
    for (double r : results)
        std::printf("%.17g\n", r);
    std::printf("%s\n", ms >= 0 ? "time passed" : "no time");
    return 0;
}
