"""CuPy: kernels that it compiles, and NVIDIA's libraries. Compared with NumPy."""

import cupy as cp
import numpy as np

R = np.random.default_rng(1)


def made(*shape, dtype=np.float32):
    return R.standard_normal(shape).astype(dtype)


def close(got, want, tolerance=1e-4):
    np.testing.assert_allclose(cp.asnumpy(got), want, rtol=tolerance, atol=tolerance)


def check_elementwise():
    x = made(1000)
    close(cp.sin(cp.asarray(x)) * 2 + 1, np.sin(x) * 2 + 1)


def check_elementwise_kernel():
    square = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)",
                                  "square_difference")
    x, y = made(100), made(100)
    close(square(cp.asarray(x), cp.asarray(y)), (x - y) ** 2)


def check_reduction():
    x = made(100, 30)
    close(cp.asarray(x).sum(0), x.sum(0), 1e-3)
    close(cp.asarray(x).max(), x.max())


def check_reduction_kernel():
    norm = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    x = made(1000)
    close(norm(cp.asarray(x)), np.sqrt((x * x).sum()), 1e-3)


def check_raw_kernel():
    kernel = cp.RawKernel('extern "C" __global__ void twice(float *x, int n) {'
                          " int i = blockIdx.x * blockDim.x + threadIdx.x;"
                          " if (i < n) x[i] *= 2; }", "twice")
    x = made(300)
    g = cp.asarray(x)
    kernel((3,), (128,), (g, 300))
    close(g, x * 2)


def check_sort_scan():
    x = made(2000)
    close(cp.sort(cp.asarray(x)), np.sort(x))
    close(cp.cumsum(cp.asarray(x)), np.cumsum(x), 1e-2)


def check_index():
    x, i = made(50, 4), R.integers(0, 50, 20)
    close(cp.asarray(x)[cp.asarray(i)], x[i])
    close(cp.asarray(x)[cp.asarray(x) > 0], x[x > 0])


def check_cublas_axpy():
    from cupy import cublas

    x, y = made(100), made(100)
    g = cp.asarray(y)
    cublas.axpy(2.0, cp.asarray(x), g)
    close(g, 2 * x + y)


def check_cublas_gemm():
    a, b = made(40, 30), made(30, 20)
    close(cp.asarray(a) @ cp.asarray(b), a @ b, 1e-3)


def check_cublas_gemm_f16():
    a, b = made(64, 64, dtype=np.float16), made(64, 64, dtype=np.float16)
    close(cp.asarray(a) @ cp.asarray(b), (a.astype("f4") @ b.astype("f4")), 0.1)


def check_cublas_gemm_f64():
    a, b = made(40, 30, dtype=np.float64), made(30, 20, dtype=np.float64)
    close(cp.asarray(a) @ cp.asarray(b), a @ b)


def check_cufft():
    x = made(4, 64)
    close(cp.fft.fft(cp.asarray(x)), np.fft.fft(x), 1e-3)


def check_curand():
    x = cp.random.standard_normal(20000)
    assert abs(float(x.mean())) < 0.03 and abs(float(x.std()) - 1) < 0.03


def check_curand_legacy():
    from cupy.cuda import curand

    out = cp.empty(10000, cp.float32)
    generator = curand.createGenerator(curand.CURAND_RNG_PSEUDO_DEFAULT)
    curand.generateUniform(generator, out.data.ptr, out.size)
    x = cp.asnumpy(out)
    assert 0 < x.min() and x.max() <= 1 and abs(x.mean() - 0.5) < 0.02, (x.min(), x.max())


def check_cusparse():
    import cupyx.scipy.sparse as sparse

    dense = made(20, 30) * (made(20, 30) > 1)
    m = sparse.csr_matrix(cp.asarray(dense))
    x = made(30)
    close(m @ cp.asarray(x), dense @ x, 1e-3)


def check_cusolver():
    a = made(10, 10)
    a = a @ a.T + 10 * np.eye(10, dtype=np.float32)
    close(cp.linalg.cholesky(cp.asarray(a)), np.linalg.cholesky(a), 1e-3)
    close(cp.linalg.eigvalsh(cp.asarray(a)), np.linalg.eigvalsh(a), 1e-2)


def check_devices(devices=2):
    assert cp.cuda.runtime.getDeviceCount() == devices
    with cp.cuda.Device(1):
        x = cp.asarray(made(10))
    assert x.device.id == 1


def check_graph():
    x = cp.asarray(made(100))
    y = cp.asarray(np.zeros(100, np.float32))
    cp.multiply(x, 2, out=y)
    cp.cuda.Device().synchronize()  # the stream below does not wait for this one
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        cp.multiply(x, 3, out=y)
        graph = stream.end_capture()
    graph.launch(stream)
    stream.synchronize()
    close(y, cp.asnumpy(x) * 3)
