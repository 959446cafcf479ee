"""Triton: kernels of our own in the manner of its tutorials."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(a + at, inside) + tl.load(b + at, inside), inside)


def check_vector_add():
    a, b = torch.randn(5000), torch.randn(5000)
    ga, gb = a.cuda(), b.cuda()
    out = torch.empty_like(ga)
    add_kernel[(triton.cdiv(5000, 256),)](ga, gb, out, 5000, BLOCK=256)
    torch.testing.assert_close(out.cpu(), a + b)


@triton.jit
def softmax_kernel(x, out, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    v = tl.load(x + row * columns + at, at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * columns + at, e / tl.sum(e, 0), at < columns)


def check_softmax():
    x = torch.randn(20, 100)
    gx = x.cuda()
    out = torch.empty_like(gx)
    softmax_kernel[(20,)](gx, out, 100, WIDTH=128)
    torch.testing.assert_close(out.cpu(), x.softmax(1), rtol=1e-3, atol=1e-4)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + depth[None, :],
                       (rows[:, None] < M) & (depth[None, :] < K), other=0.0)
        right = tl.load(b + depth[:, None] * N + columns[None, :],
                        (depth[:, None] < K) & (columns[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total,
             (rows[:, None] < M) & (columns[None, :] < N))


def matmul(dtype, tolerance):
    a, b = torch.randn(50, 70).to(dtype), torch.randn(70, 40).to(dtype)
    ga, gb = a.cuda(), b.cuda()
    c = torch.empty(50, 40, device="cuda")
    matmul_kernel[(2, 2)](ga, gb, c, 50, 40, 70, BM=32, BN=32, BK=32)
    torch.testing.assert_close(c.cpu(), a.float() @ b.float(), rtol=tolerance, atol=tolerance)


def check_matmul_f16():
    matmul(torch.float16, 1e-2)


def check_matmul_f32():
    matmul(torch.float32, 0.1)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, epsilon, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    inside = at < columns
    v = tl.load(x + row * columns + at, inside, other=0.0)
    mean = tl.sum(v, 0) / columns
    centred = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / columns + epsilon)
    y = centred * scale * tl.load(weight + at, inside) + tl.load(bias + at, inside)
    tl.store(out + row * columns + at, y, inside)


def check_layer_norm():
    x, w, b = torch.randn(10, 60), torch.randn(60), torch.randn(60)
    gx = x.cuda()
    out = torch.empty_like(gx)
    layer_norm_kernel[(10,)](gx, w.cuda(), b.cuda(), out, 60, 1e-5, WIDTH=64)
    torch.testing.assert_close(out.cpu(), torch.nn.functional.layer_norm(x, (60,), w, b),
                               rtol=1e-3, atol=1e-3)


@triton.jit
def attention_kernel(q, k, v, out, length, scale, ROWS: tl.constexpr, KEYS: tl.constexpr,
                     DEPTH: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    depth = tl.arange(0, DEPTH)
    query = tl.load(q + rows[:, None] * DEPTH + depth[None, :], rows[:, None] < length, other=0.0)
    highest = tl.full((ROWS,), -float("inf"), tl.float32)
    weight = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, DEPTH), tl.float32)
    for begin in range(0, length, KEYS):
        keys = begin + tl.arange(0, KEYS)
        key = tl.load(k + keys[None, :] * DEPTH + depth[:, None], keys[None, :] < length, other=0.0)
        value = tl.load(v + keys[:, None] * DEPTH + depth[None, :], keys[:, None] < length,
                        other=0.0)
        score = tl.where(keys[None, :] < length, tl.dot(query, key) * scale, -float("inf"))
        now = tl.maximum(highest, tl.max(score, 1))
        part = tl.exp(score - now[:, None])
        shrink = tl.exp(highest - now)
        weight = weight * shrink + tl.sum(part, 1)
        total = total * shrink[:, None] + tl.dot(part.to(value.dtype), value)
        highest = now
    tl.store(out + rows[:, None] * DEPTH + depth[None, :], total / weight[:, None],
             rows[:, None] < length)


def check_attention():
    q, k, v = (torch.randn(48, 32).half() for _ in range(3))
    out = torch.empty(48, 32, device="cuda")
    attention_kernel[(3,)](q.cuda(), k.cuda(), v.cuda(), out, 48, 32 ** -0.5, ROWS=16, KEYS=16,
                           DEPTH=32)
    want = torch.nn.functional.scaled_dot_product_attention(*(x.float()[None] for x in (q, k, v)))
    torch.testing.assert_close(out.cpu(), want[0], rtol=2e-2, atol=2e-2)


@triton.jit
def histogram_kernel(x, counts, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + at, at < n, other=0), 1, at < n)


def check_atomics():
    x = torch.randint(0, 10, (1000,), dtype=torch.int32)
    counts = torch.tensor([0] * 10, dtype=torch.int32).cuda()
    histogram_kernel[(8,)](x.cuda(), counts, 1000, BLOCK=128)
    assert counts.cpu().tolist() == torch.bincount(x, minlength=10).tolist()
