/* Kernels that launch kernels (dynamic parallelism): order in a stream, tail launches, children of
 * children, what a child sees of its parent's work, copies and fills, streams and events, errors of
 * bad launches, and what the device runtime tells. Built with -rdc=true.
 */
#include "run.cuh"

/* ---- what a child sees, and where it runs ---------------------------------------------------- */

__global__ void
twice(unsigned *out, unsigned from, unsigned to)
{
    out[to + threadIdx.x] = 2 * out[from + threadIdx.x];
}

KERNEL(sees_parent)
{
    out[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0)
        twice<<<1, 32>>>(out, 0, 32);
}

__global__ void
place(unsigned *out, char small, double large, short last)
{
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    extern __shared__ unsigned words[];

    words[thread] = thread;
    __syncthreads();
    out[block * 24 + thread] = block * 10000 + words[23 - thread] * 100 + (unsigned)large +
                               (unsigned)small + (unsigned)last;
}

KERNEL(shapes)
{
    if (ME == 0)
        place<<<dim3(2, 1, 3), dim3(4, 3, 2), 24 * sizeof(unsigned)>>>(out, 1, 2.5, 3);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* out[0] counts. */
__global__ void
append(unsigned *out, unsigned value)
{
    out[++out[0]] = value;
}

__global__ void
append_and_follow(unsigned *out, unsigned value)
{
    out[++out[0]] = value;
    append<<<1, 1, 0, cudaStreamTailLaunch>>>(out, value + 1);
    append<<<1, 1, 0, cudaStreamTailLaunch>>>(out, value + 2);
}

KERNEL(in_order)
{
    if (ME == 0)
        for (unsigned i = 1; i <= 12; i++)
            append<<<1, 1>>>(out, i);
}

/* The children of a child are a part of it. */
__global__ void
append_by_child(unsigned *out, unsigned value)
{
    append<<<1, 1>>>(out, value);
}

KERNEL(nested_order)
{
    if (ME == 0)
        for (unsigned i = 1; i <= 6; i++) {
            append_by_child<<<1, 1>>>(out, 10 * i);
            append<<<1, 1>>>(out, 10 * i + 1);
        }
}

KERNEL(tails)
{
    if (ME == 0) {
        append_and_follow<<<1, 1, 0, cudaStreamTailLaunch>>>(out, 20);
        append<<<1, 1, 0, cudaStreamTailLaunch>>>(out, 30);
        append_and_follow<<<1, 1>>>(out, 1);
        append<<<1, 1>>>(out, 10);
    }
}

__global__ void
follow_itself(unsigned *out, unsigned left)
{
    out[0]++;
    if (left)
        follow_itself<<<1, 1, 0, cudaStreamTailLaunch>>>(out, left - 1);
}

/* More than kernels can be nested: a tail launch is no child of a child. */
KERNEL(long_tail)
{
    if (ME == 0)
        follow_itself<<<1, 1, 0, cudaStreamTailLaunch>>>(out, 99);
}

KERNEL(streams)
{
    if (ME == 0) {
        cudaStream_t one, other;
        cudaEvent_t event;

        out[8] = cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
        out[9] = cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
        out[10] = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        append<<<1, 1, 0, one>>>(out, 5);
        out[11] = cudaEventRecord(event, one);
        out[12] = cudaStreamWaitEvent(other, event, 0);
        append<<<1, 1, 0, other>>>(out, 6);
        out[13] = cudaEventDestroy(event);
        out[14] = cudaStreamDestroy(one);
        out[15] = cudaStreamDestroy(other);
    }
}

/* ---- many ------------------------------------------------------------------------------------ */

__global__ void
fan_out(unsigned *out, unsigned depth)
{
    atomicAdd(&out[depth], 1);
    if (depth < 5 && threadIdx.x < 3)
        fan_out<<<1, 4, 0, cudaStreamFireAndForget>>>(out, depth + 1);
}

KERNEL(fans_out)
{
    if (ME == 0)
        fan_out<<<2, 4>>>(out, 0);
}

/* Every thread of every block launches. */
KERNEL(by_all)
{
    atomicAdd(&out[0], 1);
    fan_out<<<1, 2>>>(out, 5);
}

/* ---- sorting --------------------------------------------------------------------------------- */

__global__ void
quicksort(unsigned *data, int left, int right)
{
    int l = left, r = right;
    const unsigned pivot = data[(left + right) / 2];

    while (l <= r) {
        while (data[l] < pivot)
            l++;
        while (data[r] > pivot)
            r--;
        if (l <= r) {
            const unsigned x = data[l];

            data[l++] = data[r];
            data[r--] = x;
        }
    }
    /* The stack of nested launches is limited: short pieces are sorted here. */
    for (int part = 0; part < 2; part++) {
        const int from = part ? l : left, to = part ? right : r;

        if (to - from > 16) {
            cudaStream_t s;

            cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
            quicksort<<<1, 1, 0, s>>>(data, from, to);
            cudaStreamDestroy(s);
            continue;
        }
        for (int i = from + 1; i <= to; i++)
            for (int k = i; k > from && data[k - 1] > data[k]; k--) {
                const unsigned x = data[k];

                data[k] = data[k - 1];
                data[k - 1] = x;
            }
    }
}

KERNEL(sorts)
{
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = i * 2654435761u >> 20;
    __syncthreads();
    if (threadIdx.x == 0)
        quicksort<<<1, 1>>>(out, 0, (int)n - 1);
}

/* ---- copies and fills ------------------------------------------------------------------------ */

KERNEL(copies)
{
    if (ME == 0) {
        for (unsigned i = 0; i < 16; i++)
            out[i] = i + 1;
        out[60] = cudaMemcpyAsync(out + 16, out, 16 * sizeof *out, cudaMemcpyDeviceToDevice, 0);
        twice<<<1, 16>>>(out, 16, 16);
        out[61] = cudaMemsetAsync(out + 20, 0, 2 * sizeof *out, 0);
        out[62] = cudaMemcpy2DAsync(out + 32, 4 * sizeof *out, out + 16, 8 * sizeof *out,
                                    3 * sizeof *out, 2, cudaMemcpyDeviceToDevice, 0);
        out[63] = cudaMemset2DAsync(out + 24, 4 * sizeof *out, 0, sizeof *out, 2, 0);
    }
}

/* ---- errors and questions -------------------------------------------------------------------- */

KERNEL(errors)
{
    __shared__ unsigned mine;

    if (ME == 0) {
        append<<<1, 2048>>>(out, 1);
        out[8] = cudaPeekAtLastError();
        out[9] = cudaGetLastError();
        out[10] = cudaGetLastError();
        append<<<1, dim3(1, 1, 65)>>>(out, 2);
        out[11] = cudaGetLastError();
        append<<<1, 1, 1 << 20>>>(out, 3);
        out[12] = cudaGetLastError();
        append<<<1, 1>>>(out, 4);
        out[13] = cudaGetLastError();
        out[15] = cudaMemsetAsync(&mine, 0, sizeof mine, 0);
    } else if (ME == 1) {
        /* Another thread's errors are its own. */
        out[14] = cudaGetLastError();
    }
}

typedef void (*kernel_pointer)(unsigned *, unsigned);

__device__ kernel_pointer table[2] = {append, append_by_child};

KERNEL(by_pointer)
{
    if (ME == 0) {
        kernel_pointer k = n > 4 ? append_by_child : append;

        k<<<1, 1>>>(out, 7);
        for (unsigned i = 0; i < 2; i++)
            table[i]<<<1, 1>>>(out, 8 + i);
    }
}

KERNEL(questions)
{
    if (ME == 0) {
        cudaFuncAttributes a;
        int value = -1, count = 0;
        size_t limit = 0;
        void *p = nullptr;

        out[0] = cudaGetDevice(&value);
        out[1] = (unsigned)value;
        out[2] = cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0);
        out[3] = (unsigned)value;
        out[4] = cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount);
        out[5] = (unsigned)limit;
        out[6] = cudaFuncGetAttributes(&a, twice);
        out[7] = (unsigned)a.maxThreadsPerBlock;
        out[8] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, twice, 64, 0);
        out[9] = count > 0;
        out[10] = cudaMalloc(&p, 64);
        out[11] = p != nullptr;
        out[12] = cudaFree(p);
    }
}

RUNS(
    RUN(sees_parent, 1, 32, 0, 64),
    RUN(shapes, 1, 32, 0, 144),
    RUN(in_order, 2, 32, 0, 16),
    RUN(nested_order, 1, 1, 0, 16),
    RUN(tails, 1, 1, 0, 16),
    RUN(long_tail, 1, 1, 0, 1),
    RUN(streams, 1, 1, 0, 16),
    RUN(fans_out, 1, 1, 0, 8),
    RUN(by_all, 3, 33, 0, 8),
    RUN(sorts, 1, 64, 0, 600),
    RUN(copies, 1, 1, 0, 64),
    RUN(errors, 1, 32, 0, 16),
    RUN(by_pointer, 1, 1, 0, 16),
    RUN(questions, 1, 1, 0, 16))
