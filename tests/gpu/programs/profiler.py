"""torch.profiler (CUPTI) must see the kernels of a matrix product. Prints their number."""

import torch
from torch.profiler import ProfilerActivity, profile

x = torch.randn(512, 512, device="cuda")
torch.cuda.synchronize()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
    for _ in range(4):
        y = torch.relu(x @ x)
    torch.cuda.synchronize()
kernels = [e for e in p.events() if e.device_type == torch.autograd.DeviceType.CUDA]
names = [e.name.lower() for e in kernels]
print(len(kernels) >= 8, any("gemm" in n or "cutlass" in n for n in names))
