"""Trains a small network, eagerly or as a CUDA graph, and prints each step's loss bit for bit.

    snap_train.py STEPS [WIDTH] [MIB] [graph]        MIB: of memory that only lies there
"""

import struct
import sys
import time

import torch

graph = sys.argv[-1] == "graph"
numbers = [int(word) for word in sys.argv[1:] if word != "graph"]
steps, width, mib = (numbers + [512, 256][len(numbers) - 1:])[:3]
torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
torch.use_deterministic_algorithms(True, warn_only=True)
net = torch.nn.Sequential(
    torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.LayerNorm(4 * width),
    torch.nn.Linear(4 * width, 4 * width), torch.nn.GELU(), torch.nn.Dropout(0.1),
    torch.nn.Linear(4 * width, width)).cuda()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, capturable=graph)
ballast = torch.arange(mib << 18, device="cuda", dtype=torch.float32)
x, y = (torch.randn(64, width, device="cuda") for _ in range(2))


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    return loss


if graph:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    whole = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(whole):
        kept = step()
torch.cuda.synchronize()
print("ready", flush=True)
for i in range(steps):
    if graph:
        whole.replay()
    loss = kept if graph else step()
    print(i, struct.pack(">f", loss.item()).hex(), flush=True)
    time.sleep(0.03)  # time for what is done to it meanwhile
weights = sum(p.double().sum() for p in net.parameters())
print("end", struct.pack(">dd", ballast.double().sum().item(), weights.item()).hex(), flush=True)
