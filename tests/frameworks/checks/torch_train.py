"""PyTorch: training, graphs, compilers, several devices."""

import json
import os
import socket
import subprocess
import sys
import tempfile

import torch
from torch import nn


def losses(device, steps=5, amp=None, scaler=None, optimizer="AdamW"):
    """The losses of a small network on fixed data."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
    x, y = torch.randn(24, 16), torch.randint(0, 4, (24,))
    net, x, y = net.to(device), x.to(device), y.to(device)
    step = getattr(torch.optim, optimizer)(net.parameters(), lr=0.02)
    seen = []
    for _ in range(steps):
        step.zero_grad()
        with torch.autocast(device, dtype=amp or torch.float16, enabled=amp is not None):
            loss = nn.functional.cross_entropy(net(x), y)
        if scaler:
            scaler.scale(loss).backward()
            scaler.step(step)
            scaler.update()
        else:
            loss.backward()
            step.step()
        seen.append(loss.item())
    return seen


def expect_like_cpu(got, tolerance=1e-3):
    want = losses("cpu", len(got))
    assert all(abs(a - b) < tolerance for a, b in zip(got, want)), (got, want)
    return json.dumps([round(x, 4) for x in got])


def check_autograd():
    x = torch.linspace(-1, 1, 50, requires_grad=True)
    y = x.detach().cuda().requires_grad_()
    (x.sin() * x).sum().backward()
    (y.sin() * y).sum().backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad)


def check_adamw():
    return expect_like_cpu(losses("cuda"))


def check_sgd():
    got, want = losses("cuda", optimizer="SGD"), losses("cpu", optimizer="SGD")
    assert all(abs(a - b) < 1e-3 for a, b in zip(got, want)), (got, want)


def check_amp_f16():
    return expect_like_cpu(losses("cuda", amp=torch.float16, scaler=torch.amp.GradScaler()), 0.1)


def check_amp_bf16():
    return expect_like_cpu(losses("cuda", amp=torch.bfloat16), 0.1)


def check_streams_events():
    stream, begin, end = torch.cuda.Stream(), *[torch.cuda.Event(enable_timing=True)] * 2
    with torch.cuda.stream(stream):
        begin.record()
        x = torch.ones(1000, device="cuda").clone()
        end.record()
    stream.synchronize()
    assert x.cpu().sum().item() == 1000 and begin.elapsed_time(end) >= 0


def check_cuda_graph():
    x = torch.ones(100, device="cuda")
    y = torch.zeros(100, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        y.copy_(x * 2 + 1)
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.copy_(x * 2 + 1)
    x.fill_(5)
    graph.replay()
    assert y.cpu().tolist() == [11.0] * 100


def check_compile():
    compiled = torch.compile(lambda a, b: torch.relu(a * b + 1).sum(1))
    a, b = torch.randn(40, 30), torch.randn(40, 30)
    torch.testing.assert_close(compiled(a.cuda(), b.cuda()).cpu(), torch.relu(a * b + 1).sum(1),
                               rtol=1e-3, atol=1e-3)


def check_peer_copy(devices=2):
    x = torch.arange(100.0)
    assert torch.equal(x.to("cuda:0").to("cuda:1").cpu(), x)
    return f"peer access: {torch.cuda.can_device_access_peer(0, 1)}"


def check_data_parallel(devices=2):
    net = nn.Linear(8, 3)
    x = torch.randn(10, 8)
    want = net(x)
    got = nn.DataParallel(net.cuda(), device_ids=list(range(devices)))(x.cuda())
    torch.testing.assert_close(got.cpu(), want, rtol=1e-3, atol=1e-3)


def check_nccl_one_process(devices=2):
    from torch.cuda import nccl

    parts = [torch.full((100,), float(i + 1)).to(f"cuda:{i}") for i in range(devices)]
    nccl.all_reduce(parts)
    assert all(p.cpu().tolist() == [3.0] * 100 for p in parts)


MEMBER = """
import os, sys, torch
rank, devices = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(rank)
torch.distributed.init_process_group("nccl")
x = torch.full((64,), float(rank + 1)).cuda()
torch.distributed.all_reduce(x)
assert x.cpu().tolist() == [sum(range(1, devices + 1))] * 64, x.cpu()[:4]
torch.distributed.destroy_process_group()
"""


def check_distributed(devices=2):
    """Processes with a device each."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    where = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
             "WORLD_SIZE": str(devices)}
    members = [subprocess.Popen([sys.executable, "-c", MEMBER], env={**where, "RANK": str(i)})
               for i in range(devices)]
    assert [m.wait() for m in members] == [0] * devices


def check_distributed_alone():
    with tempfile.TemporaryDirectory() as folder:
        torch.cuda.set_device(0)
        torch.distributed.init_process_group("nccl", init_method=f"file://{folder}/meeting", rank=0,
                                             world_size=1)
        x = torch.full((64,), 3.0).cuda()
        torch.distributed.all_reduce(x)
        assert x.cpu().tolist() == [3.0] * 64
        torch.distributed.destroy_process_group()
