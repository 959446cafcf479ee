"""JAX: compiled functions on the device."""

import numpy as np

import jax
import jax.numpy as jnp

R = np.random.default_rng(1)


def made(*shape):
    return R.standard_normal(shape).astype(np.float32)


def close(got, want, tolerance=1e-3):
    assert all(d.platform == "gpu" for d in got.devices()), got.devices()
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


def check_devices(devices=2):
    found = jax.devices("gpu")
    assert len(found) == devices, found
    return found[0].device_kind


def check_put():
    x = made(100)
    close(jax.device_put(x), x)


def check_jit_add():
    x, y = made(100), made(100)
    close(jax.jit(lambda a, b: a * 2 + b)(x, y), x * 2 + y)


def check_matmul():
    a, b = made(32, 48), made(48, 16)
    close(jax.jit(jnp.matmul)(a, b), a @ b, 0.05)


def check_matmul_f16():
    a, b = made(64, 64).astype(np.float16), made(64, 64).astype(np.float16)
    close(jax.jit(jnp.matmul)(a, b), a.astype("f4") @ b.astype("f4"), 0.2)


def check_grad():
    x = made(50)
    close(jax.grad(lambda v: jnp.sum(jnp.sin(v) * v))(jnp.asarray(x)), np.cos(x) * x + np.sin(x))


def check_reduction():
    x = made(30, 40)
    close(jax.jit(lambda v: v.sum(0))(x), x.sum(0))


def check_scan():
    x = made(20)
    close(jax.jit(jnp.cumsum)(x), np.cumsum(x))


def check_sort():
    x = made(500)
    close(jax.jit(jnp.sort)(x), np.sort(x))


def check_random():
    x = jax.random.normal(jax.random.key(0), (10000,))
    assert all(d.platform == "gpu" for d in x.devices()), x.devices()
    assert abs(float(x.mean())) < 0.05 and abs(float(x.std()) - 1) < 0.05


def check_conv():
    x, w = made(1, 1, 12, 12), made(2, 1, 3, 3)
    got = jax.lax.conv(jnp.asarray(x), jnp.asarray(w), (1, 1), "VALID")
    want = sum(x[:, :, i:i + 10, j:j + 10] * w[:, 0, i, j].reshape(1, 2, 1, 1)
               for i in range(3) for j in range(3))
    close(got, want, 0.05)


def check_fft():
    x = made(64)
    close(jax.jit(lambda v: jnp.abs(jnp.fft.fft(v)))(x), np.abs(np.fft.fft(x)))


def check_cholesky():
    a = made(10, 10)
    a = a @ a.T + 10 * np.eye(10, dtype=np.float32)
    close(jax.jit(jnp.linalg.cholesky)(a), np.linalg.cholesky(a), 0.01)
