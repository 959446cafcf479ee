// Kernels that bench/cpu_start.c times. Their PTX is committed beside it; made with
//   nvcc -ptx -arch=compute_75 cpu_kernels.cu
extern "C" __global__ void
empty()
{
}

extern "C" __global__ void
saxpy(float a, const float *x, float *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        y[i] = a * x[i] + y[i];
}

// Sums 256 words a block, with a barrier at each step.
extern "C" __global__ void
reduce(const unsigned *in, unsigned *out)
{
    __shared__ unsigned part[256];
    const unsigned t = threadIdx.x;

    part[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (unsigned s = 128; s > 0; s >>= 1) {
        if (t < s)
            part[t] += part[t + s];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

// c = a * b, all n by n, in tiles of 16 by 16.
extern "C" __global__ void
matmul(const float *a, const float *b, float *c, int n)
{
    __shared__ float x[16][16], y[16][16];
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;

    for (int t = 0; t < n; t += 16) {
        x[threadIdx.y][threadIdx.x] = a[row * n + t + threadIdx.x];
        y[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += x[threadIdx.y][k] * y[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

extern "C" __global__ void
mandelbrot(unsigned *out, int width, int height)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float u = -2.0f + 3.0f * (float)(i % width) / width;
    const float v = -1.0f + 2.0f * (float)(i / width) / height;
    float x = 0, y = 0;
    unsigned n = 0;

    if (i >= width * height)
        return;
    while (n < 200 && x * x + y * y < 4) {
        const float next = x * x - y * y + u;

        y = 2 * x * y + v;
        x = next;
        n++;
    }
    out[i] = n;
}

// The sum of each warp, by shuffles.
extern "C" __global__ void
shuffle(unsigned *data)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = data[i];

    for (int s = 16; s > 0; s >>= 1)
        v += __shfl_xor_sync(0xffffffff, v, s);
    data[i] = v;
}
