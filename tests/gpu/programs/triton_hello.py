"""Triton: a kernel compiled at run time."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


torch.manual_seed(0)
x, y = torch.randn(100_000, device="cuda"), torch.randn(100_000, device="cuda")
out = torch.empty_like(x)
add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), block=1024)
print(torch.equal(out, x + y), float(out.double().sum()).hex())
