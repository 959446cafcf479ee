"""Numba-CUDA: Python functions as kernels."""

import math

import numpy as np
from numba import cuda, float32

R = np.random.default_rng(1)


def check_vector_add():
    @cuda.jit
    def add(a, b, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = a[i] + b[i]

    a, b = R.random(1000), R.random(1000)
    out = np.zeros(1000)
    add[8, 128](a, b, out)
    np.testing.assert_allclose(out, a + b)


def check_shared_reduction():
    @cuda.jit
    def total(x, out):
        part = cuda.shared.array(128, float32)
        t = cuda.threadIdx.x
        i = cuda.grid(1)
        part[t] = x[i] if i < x.size else 0
        cuda.syncthreads()
        width = 64
        while width:
            if t < width:
                part[t] += part[t + width]
            cuda.syncthreads()
            width //= 2
        if t == 0:
            cuda.atomic.add(out, 0, part[0])

    x = R.random(1000).astype(np.float32)
    out = np.zeros(1, np.float32)
    total[8, 128](x, out)
    np.testing.assert_allclose(out[0], x.sum(), rtol=1e-4)


def check_math():
    @cuda.jit
    def compute(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = math.sin(x[i]) + math.exp(x[i]) * math.log(x[i] + 1)

    x = R.random(500)
    out = np.zeros(500)
    compute[4, 128](x, out)
    np.testing.assert_allclose(out, np.sin(x) + np.exp(x) * np.log(x + 1), rtol=1e-10)


def check_vectorize():
    from numba import vectorize

    @vectorize(["float32(float32, float32)"], target="cuda")
    def weigh(a, b):
        return a * 2 + b

    a, b = (R.random(200).astype(np.float32) for _ in range(2))
    np.testing.assert_allclose(weigh(a, b), a * 2 + b, rtol=1e-6)


def check_grid_group():
    @cuda.jit
    def two_steps(x):
        grid = cuda.cg.this_grid()
        i = cuda.grid(1)
        x[i] += 1
        grid.sync()
        x[i] += x[(i + 64) % x.size] * 0 + 1

    x = np.zeros(128, np.float32)
    two_steps[2, 64](x)
    assert x.tolist() == [2.0] * 128


def check_streams():
    stream = cuda.stream()
    x = R.random(1000)
    d = cuda.to_device(x, stream)
    back = d.copy_to_host(stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(back, x)


def check_devices(devices=2):
    assert len(cuda.gpus) == devices
    return cuda.get_current_device().name
