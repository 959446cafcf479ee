"""CuPy: elementwise, reduction, matrix product, FFT, a raw kernel."""

import cupy as cp

a = cp.arange(1 << 16, dtype=cp.float64)
print(float((a * 2 + 1).sum()).hex())
m = cp.random.default_rng(0).standard_normal((128, 128))
print(float(cp.linalg.norm(m @ m.T)).hex())
print(float(cp.abs(cp.fft.fft(a[:4096])).sum()).hex())
k = cp.RawKernel(
    r"""extern "C" __global__ void f(double *x) { x[threadIdx.x] = threadIdx.x * 3.0; }""", "f")
x = cp.zeros(64)
k((1,), (64,), (x,))
print(float(x.sum()))
