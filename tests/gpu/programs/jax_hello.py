"""JAX: a jitted function and its gradient on the GPU."""

import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
# Otherwise algorithms are chosen by their times, which changes the last bits.
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

print(jax.devices()[0].platform)
w = jax.random.normal(jax.random.key(0), (64, 64))
f = jax.jit(lambda w: jnp.tanh(w @ w.T).sum())
print(float(f(w)).hex())
print(float(jnp.abs(jax.grad(f)(w)).sum()).hex())
