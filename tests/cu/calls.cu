/* Calls: direct, recursive, through pointers (of one function, of a table, from the host's side of
 * a variable), virtual, with many arguments, structures and floats; divergent calls.
 */
#include "run.cuh"

__device__ static __noinline__ unsigned
add(unsigned a, unsigned b)
{
    return a + b;
}

__device__ static __noinline__ unsigned
twist(unsigned a, unsigned b)
{
    return a * 31 ^ b;
}

__device__ static __noinline__ unsigned
less(unsigned a, unsigned b)
{
    return a - 2 * b;
}

typedef unsigned (*binary)(unsigned, unsigned);

__device__ binary functions[3] = {add, twist, less};
__constant__ binary fixed = less;

KERNEL(direct)
{
    out[ME] = add(ME, 3) + twist(ME, 5) + less(ME, 7);
}

KERNEL(indirect)
{
    binary f = functions[ME % 3];

    out[ME] = f(ME, 10) + fixed(ME, 1);
    out[64 + ME] = (f == (binary)functions[0]) + 2 * (f == (binary)functions[1]);
}

__device__ static __noinline__ unsigned
fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ static __noinline__ unsigned
ackermann(unsigned m, unsigned n)
{
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

KERNEL(recursive)
{
    out[ME] = fibonacci(ME % 14) + ackermann(2, ME % 4);
}

__device__ static __noinline__ unsigned even(unsigned n);

__device__ static __noinline__ unsigned
odd(unsigned n)
{
    return n == 0 ? 0 : even(n - 1);
}

__device__ static __noinline__ unsigned
even(unsigned n)
{
    return n == 0 ? 1 : odd(n - 1);
}

KERNEL(mutual)
{
    out[ME] = even(ME);
}

/* In three of four lanes, to different depths, through different functions. */
KERNEL(divergent)
{
    unsigned v = ME;

    if (ME % 4 == 0)
        v = fibonacci(ME % 9);
    else if (ME % 4 == 1)
        v = functions[(ME / 4) % 3](v, ackermann(1, ME % 5));
    else if (ME % 4 == 2)
        v = even(ME % 11) + twist(v, v);
    out[ME] = v;
}

struct shape {
    __device__ virtual unsigned area(unsigned) const = 0;
    __device__ virtual ~shape()
    {
    }
};

struct square : shape {
    __device__ unsigned
    area(unsigned a) const override
    {
        return a * a;
    }
};

struct strip : shape {
    unsigned width;
    __device__ strip(unsigned w) : width(w)
    {
    }
    __device__ unsigned
    area(unsigned a) const override
    {
        return a * width;
    }
};

KERNEL(virtual_calls)
{
    const square q;
    const strip s(ME);
    const shape *p = ME % 2 ? (const shape *)&q : (const shape *)&s;

    out[ME] = p->area(ME + 1);
}

struct four {
    float x;
    double y;
    unsigned char z;
    unsigned long long w;
};

__device__ static __noinline__ four
many(unsigned a, float b, double c, unsigned char d, short e, four f, unsigned long long g, float h)
{
    return {b * f.x + h, c + f.y * e, (unsigned char)(d + f.z), g * a + f.w};
}

KERNEL(arguments)
{
    const four f = {1.5f, 2.25, 3, 4};
    const four r = many(ME, 2.f, 0.5, (unsigned char)ME, (short)-ME, f, 1ull << 33, 0.25f * ME);

    out[ME] = __float_as_uint(r.x) ^ (unsigned)(int)(r.y * 4);
    out[32 + ME] = r.z + (unsigned)(r.w >> 30);
}

template <typename F>
__device__ static __noinline__ unsigned
apply(F f, unsigned v)
{
    return f(v) + f(v + 1);
}

KERNEL(closures)
{
    const unsigned k = ME * 5;

    out[ME] = apply([k](unsigned v) { return v * k; }, 3) + apply([](unsigned v) { return v; }, 9);
}

/* The depth that a thread's default stack allows. */
__device__ static __noinline__ unsigned
deep(unsigned n)
{
    volatile unsigned room[4] = {n, n + 1, n + 2, n + 3};

    return n == 0 ? room[3] : deep(n - 1) + room[n % 4];
}

KERNEL(stack)
{
    out[ME] = deep(8 + ME % 3);
}

RUNS(
    RUN(direct, 1, 64, 0, 64),
    RUN(indirect, 1, 64, 0, 128),
    RUN(recursive, 1, 64, 0, 64),
    RUN(mutual, 1, 32, 0, 32),
    RUN(divergent, 1, 64, 0, 64),
    RUN(virtual_calls, 1, 32, 0, 32),
    RUN(arguments, 1, 32, 0, 64),
    RUN(closures, 1, 32, 0, 32),
    RUN(stack, 1, 32, 0, 32))
