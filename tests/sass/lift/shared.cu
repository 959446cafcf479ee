/* Subroutines that are too large to have a copy for each call. */

/* Long enough, and the compiler cannot see through it. */
static __device__ __noinline__ double
twist(double x, double y)
{
    double z = x;

#pragma unroll 1
    for (int i = 0; i < 3; i++)
        z = pow(fabs(z) + 1, y) / (1 + sqrt(fabs(z))) + sin(z * 1e6) / (y + 3);
    return z;
}

static __device__ __noinline__ float
turn(float x, float y)
{
    return y > 1 ? tgammaf(x / y) + cosf(x * 12345) : sqrtf(fabsf(x)) / y;
}

template <int n>
static __device__ double
repeat(double x, float &f)
{
    f = turn(f + n, (float)x);
    if constexpr (n > 0)
        return repeat<n - 1>(n % 3 == 0 && x > 2 ? x / 3 : twist(x, n % 5), f);
    else
        return twist(x, 1);
}

extern "C" __global__ void
calls_large_functions(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float f = in[i] % 7;
    const double d = repeat<24>(in[i] % 100 / 10.0, f);

    out[3 * i] = __double2hiint(d);
    out[3 * i + 1] = __double2loint(d);
    out[3 * i + 2] = __float_as_uint(f);
}

static __device__ __noinline__ unsigned odd(unsigned x, unsigned y);

static __device__ __noinline__ unsigned
even(unsigned x, unsigned y)
{
    return x == 0 ? y : odd(x - 1, y * 3 + 1) ^ x;
}

static __device__ __noinline__ unsigned
odd(unsigned x, unsigned y)
{
    return x == 0 ? y + 1 : even(x - 1, y * 5 + 2) + x;
}

extern "C" __global__ void
functions_call_each_other(unsigned *out, const unsigned *in, unsigned n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

    out[i] = in[i] & 1 ? even(in[i] % 30, in[i]) : odd(in[i] % 20, in[i]);
}
