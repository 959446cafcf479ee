"""NVIDIA Warp: Python functions as kernels, compiled by its own NVRTC."""

import numpy as np

import warp as wp

R = np.random.default_rng(1)


@wp.kernel
def saxpy(a: float, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def lengths(points: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, wp.length(points[i]))


def check_saxpy():
    x, y = (R.random(1000).astype(np.float32) for _ in range(2))
    gx, gy = wp.array(x, device="cuda"), wp.array(y, device="cuda")
    wp.launch(saxpy, 1000, [2.0, gx, gy], device="cuda")
    np.testing.assert_allclose(gy.numpy(), 2 * x + y, rtol=1e-5)


def check_saxpy_from_ptx():
    wp.config.cuda_output = "ptx"
    check_saxpy()


def check_saxpy_from_cubin():
    wp.config.cuda_output = "cubin"
    check_saxpy()


def check_vectors_atomics():
    points = R.random((500, 3)).astype(np.float32)
    out = wp.zeros(1, dtype=float, device="cuda")
    wp.launch(lengths, 500, [wp.array(points, dtype=wp.vec3, device="cuda"), out], device="cuda")
    np.testing.assert_allclose(out.numpy()[0], np.linalg.norm(points, axis=1).sum(), rtol=1e-3)


def check_gradient():
    x = wp.array(R.random(100).astype(np.float32), device="cuda", requires_grad=True)
    y = wp.zeros(100, dtype=float, device="cuda", requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(saxpy, 100, [3.0, x, y], device="cuda")
    tape.backward(grads={y: wp.array(np.ones(100, np.float32), device="cuda")})
    np.testing.assert_allclose(x.grad.numpy(), 3.0)


def check_sort_scan():
    values = R.permutation(200).astype(np.int32)
    keys = wp.array(np.concatenate([values, values * 0]), device="cuda")
    payload = wp.array(np.arange(400, dtype=np.int32), device="cuda")
    wp.utils.radix_sort_pairs(keys, payload, 200)
    assert keys.numpy()[:200].tolist() == list(range(200))


def check_graph():
    x, y = wp.array(np.ones(50, np.float32), device="cuda"), wp.zeros(50, device="cuda")
    wp.launch(saxpy, 50, [2.0, x, y], device="cuda")
    with wp.ScopedCapture(device="cuda") as capture:
        wp.launch(saxpy, 50, [2.0, x, y], device="cuda")
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(y.numpy(), 4.0)
