"""PyTorch and Triton for tests/gpu/share.py: prints `row NAME RESULT` lines, with results bit for
bit. All rows run in one process, because starting takes long."""

import ctypes
import hashlib
import sys

import torch
import torch_train
import triton
import triton.language as tl
from torch import nn
from torch.nn import functional

torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False


def bits(tensor):
    host = tensor.detach().contiguous().cpu()
    data = ctypes.string_at(host.data_ptr(), host.nbytes)
    return hashlib.sha256(data).hexdigest()[:16]


def cudnn_conv():
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(),
                          nn.Conv2d(32, 64, 3, stride=2), nn.ReLU(), nn.Flatten(),
                          nn.LazyLinear(10)).cuda()
    x = torch.randn(16, 3, 32, 32, device="cuda")
    y = torch.randint(0, 10, (16,), device="cuda")
    model(x)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(10):
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item().hex())
    return losses[-1], bits(torch.cat([p.flatten() for p in model.parameters()]))


def cublaslt():
    torch.manual_seed(2)
    x = torch.randn(512, 1024, device="cuda", dtype=torch.bfloat16)
    w = torch.randn(2048, 1024, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(2048, device="cuda", dtype=torch.bfloat16)
    for _ in range(20):
        y = torch._addmm_activation(b, x, w.t(), use_gelu=True)
        z = functional.linear(x, w, b)
    return bits(y), bits(z)


def cublaslt_fp8():
    torch.manual_seed(3)
    a = torch.randn(256, 512, device="cuda").to(torch.float8_e4m3fn)
    b = torch.randn(256, 512, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    for _ in range(20):
        y = torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
    return bits(y)


def eager():
    parts = torch_train.make()
    return [torch_train.step(*parts).item().hex() for _ in range(8)][-1]


def graph():
    torch.manual_seed(0)
    replay, loss = torch_train.capture(torch_train.make())
    for _ in range(8):
        replay()
    return loss.item().hex()


def streams():
    torch.manual_seed(4)
    a = torch.randn(1024, 1024, device="cuda")
    sides = [torch.cuda.Stream() for _ in range(4)]
    for i in range(40):
        side = sides[i % 4]
        side.wait_stream(sides[(i - 1) % 4] if i else torch.cuda.current_stream())
        with torch.cuda.stream(side):
            a = torch.tanh(a @ a * 0.03)
    torch.cuda.current_stream().wait_stream(sides[39 % 4])
    return bits(a)


def copies():
    torch.manual_seed(5)
    total = 0
    pinned = torch.empty(1 << 20, dtype=torch.int32).pin_memory()
    for i in range(20):
        pageable = torch.full((1 << 18,), i, dtype=torch.int32)
        there = pageable.to("cuda", non_blocking=True)
        pageable.fill_(-1)
        pinned.fill_(i)
        also = pinned.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        total += int(there.sum()) + int(also.sum())
    return total


# The third and the fourth need more shared memory than there is: the tuner must get that error and
# go on. Small integers are added up exactly, whatever the tuner prefers.
@triton.autotune(configs=[
    triton.Config({"m": 64, "n": 64, "k": 32}, num_stages=2, num_warps=4),
    triton.Config({"m": 128, "n": 64, "k": 32}, num_stages=3, num_warps=4),
    triton.Config({"m": 256, "n": 256, "k": 128}, num_stages=5, num_warps=8),
    triton.Config({"m": 256, "n": 256, "k": 64}, num_stages=7, num_warps=8),
    triton.Config({"m": 32, "n": 128, "k": 64}, num_stages=2, num_warps=2),
], key=["size"])
@triton.jit
def multiply(a, b, c, size, m: tl.constexpr, n: tl.constexpr, k: tl.constexpr):
    row = tl.program_id(0) * m + tl.arange(0, m)
    column = tl.program_id(1) * n + tl.arange(0, n)
    total = tl.zeros((m, n), dtype=tl.float32)
    for start in range(0, size, k):
        inner = start + tl.arange(0, k)
        x = tl.load(a + row[:, None] * size + inner[None, :])
        y = tl.load(b + inner[:, None] * size + column[None, :])
        total += tl.dot(x, y)
    tl.store(c + row[:, None] * size + column[None, :], total)


def triton_tuned():
    torch.manual_seed(6)
    size = 1024
    a = torch.randint(-4, 5, (size, size), device="cuda").half()
    b = torch.randint(-4, 5, (size, size), device="cuda").half()
    c = torch.empty(size, size, device="cuda")
    multiply[lambda meta: (size // meta["m"], size // meta["n"])](a, b, c, size)
    return torch.equal(c, (a.double() @ b.double()).float()), bits(c)


ROWS = {f.__name__: f for f in (cudnn_conv, cublaslt, cublaslt_fp8, eager, graph, streams, copies,
                                triton_tuned)}


def main():
    for name in sys.argv[1:] or ROWS:
        try:
            result = ROWS[name]()
        except Exception as e:  # a row that fails must not hide the others
            result = f"failed: {type(e).__name__}: {e}".replace("\n", " ")[:200]
        print("row", name, result, flush=True)


if __name__ == "__main__":
    main()
