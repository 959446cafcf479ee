/* Conditional graph nodes: if, if-else, while and switch, nested, built by hand and by capture,
 * launched twice. The program prints the same on every GPU that can do it; its status says whether
 * the calls succeeded. */
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

static void
check(cudaError_t e, const char *what, int line)
{
    if (e == cudaSuccess)
        return;
    printf("line %d: %s: %s\n", line, what, cudaGetErrorString(e));
    exit(1);
}

#define CHECK(call) check(call, #call, __LINE__)

/* The condition is whether the counter, which goes down, is over 0. */
__global__ void
count_down(cudaGraphConditionalHandle handle, int *counter)
{
    const int left = --*counter;

    cudaGraphSetConditional(handle, left > 0);
}

__global__ void
set(cudaGraphConditionalHandle handle, const int *value)
{
    cudaGraphSetConditional(handle, *value);
}

__global__ void
add(int *to, int n)
{
    *to += n;
}

static cudaGraphNode_t
add_kernel(cudaGraph_t graph, cudaGraphNode_t after, void *kernel, void **params)
{
    cudaGraphNodeParams p = {cudaGraphNodeTypeKernel};
    cudaGraphNode_t node;

    p.kernel.func = kernel;
    p.kernel.gridDim = p.kernel.blockDim = dim3(1);
    p.kernel.kernelParams = params;
    CHECK(cudaGraphAddNode(&node, graph, &after, nullptr, after ? 1 : 0, &p));
    return node;
}

static cudaGraphNode_t
add_choice(cudaGraph_t graph, cudaGraphNode_t after, cudaGraphConditionalHandle handle,
           cudaGraphConditionalNodeType type, unsigned size, cudaGraph_t *branches)
{
    cudaGraphNodeParams p = {cudaGraphNodeTypeConditional};
    cudaGraphNode_t node;

    p.conditional.handle = handle;
    p.conditional.type = type;
    p.conditional.size = size;
    CHECK(cudaGraphAddNode(&node, graph, &after, nullptr, after ? 1 : 0, &p));
    for (unsigned i = 0; i < size; i++)
        branches[i] = p.conditional.phGraph_out[i];
    return node;
}

static void
add_to(cudaGraph_t graph, int *to, int n)
{
    void *params[] = {&to, &n};

    add_kernel(graph, nullptr, (void *)add, params);
}

/* Launches it twice, each time with `first` in the words, and prints the words afterwards. */
static void
run(const char *name, cudaGraph_t graph, int *device, const int *first)
{
    cudaGraphExec_t exec;
    int words[4];

    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphDestroy(graph)); /* what runs does not need it */
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMemcpy(device, first, sizeof words, cudaMemcpyHostToDevice));
        CHECK(cudaGraphLaunch(exec, 0));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(words, device, sizeof words, cudaMemcpyDeviceToHost));
        printf("%s: %d %d %d %d\n", name, words[0], words[1], words[2], words[3]);
    }
    CHECK(cudaGraphExecDestroy(exec));
}

static void
choose(const char *name, cudaGraphConditionalNodeType type, unsigned size, int *device, int value)
{
    cudaGraphConditionalHandle handle;
    cudaGraph_t graph, branches[4];
    const int first[4] = {value};
    void *params[] = {&handle, &device};

    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));

    const cudaGraphNode_t before = add_kernel(graph, nullptr, (void *)set, params);

    add_choice(graph, before, handle, type, size, branches);
    for (unsigned i = 0; i < size; i++)
        add_to(branches[i], device + 1, 10 * (int)(i + 1));
    run(name, graph, device, first);
}

/* A loop whose body was captured, and which has an if inside. */
static void
loop(int *device)
{
    cudaGraphConditionalHandle handle, inside;
    cudaGraph_t graph, body, branch, captured;
    cudaStream_t s;
    const int first[4] = {5, 0, 1};
    int *flag = device + 2;

    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    add_choice(graph, nullptr, handle, cudaGraphCondTypeWhile, 1, &body);
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCaptureToGraph(s, body, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    add<<<1, 1, 0, s>>>(device + 1, 1);
    count_down<<<1, 1, 0, s>>>(handle, device);
    CHECK(cudaStreamEndCapture(s, &captured));
    CHECK(cudaStreamDestroy(s));
    CHECK(cudaGraphConditionalHandleCreate(&inside, body, 0, 0));

    void *params[] = {&inside, &flag};
    const cudaGraphNode_t before = add_kernel(body, nullptr, (void *)set, params);

    add_choice(body, before, inside, cudaGraphCondTypeIf, 1, &branch);
    add_to(branch, device + 3, 100);
    run("while", graph, device, first);
}

int
main()
{
    int *device;

    CHECK(cudaMalloc(&device, 4 * sizeof(int)));
    choose("if 1", cudaGraphCondTypeIf, 1, device, 1);
    choose("if 0", cudaGraphCondTypeIf, 1, device, 0);
    choose("else", cudaGraphCondTypeIf, 2, device, 0);
    choose("switch 2", cudaGraphCondTypeSwitch, 4, device, 2);
    choose("switch 9", cudaGraphCondTypeSwitch, 4, device, 9);
    loop(device);
    return 0;
}
