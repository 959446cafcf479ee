"""PyTorch with several processes that have a device each, started by torchrun: NCCL, DDP, FSDP2,
DTensor. The processes run this file, with the name of a member's function."""

import os
import subprocess
import sys

import torch
from torch import distributed, nn

ROUNDS = 20  # with each size
SIZES = (7, 1000, 5000, 40000)


def run_members(name, devices, **settings):
    """This folder is not searched for modules, since the files are called like the frameworks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
               f"--nproc-per-node={devices}", __file__, name]
    subprocess.run(command, env={**os.environ, "PYTHONSAFEPATH": "1", **settings}, check=True)


# ---- what the processes do -----------------------------------------------------------------------


def member_sums(rank, devices):
    for i in range(ROUNDS):
        for size in SIZES:
            x = torch.full((size,), float(rank + 1 + i), device="cuda")
            distributed.all_reduce(x)
            want = devices * (devices + 1) / 2 + devices * i
            wrong = int((x.cpu() != want).sum())
            assert wrong == 0, f"round {i}: {wrong} of {size} elements are wrong"


def member_collectives(rank, devices):
    own = torch.arange(12.0) + 100 * rank
    everything = torch.stack([torch.arange(12.0) + 100 * r for r in range(devices)])
    gathered = torch.zeros(devices * 12, device="cuda")
    distributed.all_gather_into_tensor(gathered, own.cuda())
    assert torch.equal(gathered.cpu(), everything.flatten())
    part = torch.zeros(12, device="cuda")
    distributed.reduce_scatter_tensor(part, gathered)
    assert torch.equal(part.cpu(), everything[rank] * devices)
    got = torch.zeros(devices * 3, device="cuda")
    distributed.all_to_all_single(got, torch.arange(devices * 3.0, device="cuda") + 100 * rank)
    assert got.cpu().tolist() == [100 * r + 3 * rank + i for r in range(devices) for i in range(3)]
    told = torch.full((5,), float(rank), device="cuda")
    distributed.broadcast(told, devices - 1)
    assert told.cpu().tolist() == [devices - 1.0] * 5
    got = torch.zeros(5, device="cuda")
    for work in distributed.batch_isend_irecv([
            distributed.P2POp(distributed.isend, told + rank, (rank + 1) % devices),
            distributed.P2POp(distributed.irecv, got, (rank - 1) % devices)]):
        work.wait()
    assert got.cpu().tolist() == [devices - 1.0 + (rank - 1) % devices] * 5


def make_net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(),
                         nn.Linear(64, 8))


def train(net, rank, devices, whole):
    """Five steps, of the whole batch or of this process's part."""
    step = torch.optim.AdamW(net.parameters(), lr=0.01)
    torch.manual_seed(2)
    for _ in range(5):
        x, y = torch.randn(8 * devices, 64), torch.randn(8 * devices, 8)
        if not whole:
            x, y = (t[8 * rank:8 * rank + 8].cuda() for t in (x, y))
        ((net(x) - y) ** 2).mean().backward()
        step.step()
        step.zero_grad()


def compare_nets(parameters, want):
    for got, p in zip(parameters, want.parameters(), strict=True):
        torch.testing.assert_close(got.cpu(), p, rtol=1e-3, atol=1e-4)


def member_ddp(rank, devices):
    net, want = nn.parallel.DistributedDataParallel(make_net().cuda()), make_net()
    train(net, rank, devices, False)
    train(want, rank, devices, True)
    compare_nets(net.parameters(), want)


def member_fsdp2(rank, devices):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cuda", (devices,))
    net, want = make_net().cuda(), make_net()
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    train(net, rank, devices, False)
    train(want, rank, devices, True)
    compare_nets([p.full_tensor() for p in net.parameters()], want)


def member_dtensor(rank, devices):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cuda", (devices,))
    torch.manual_seed(3)
    a, b = torch.randn(40, 24), torch.randn(24, 16)
    for one, two in ((Shard(0), Replicate()), (Shard(1), Shard(0)), (Replicate(), Shard(1))):
        product = distribute_tensor(a, mesh, [one]) @ distribute_tensor(b, mesh, [two])
        torch.testing.assert_close(product.full_tensor().cpu(), a @ b, rtol=1e-4, atol=1e-4)
    other = distribute_tensor(a, mesh, [Shard(1)]).redistribute(mesh, [Shard(0)])
    assert torch.equal(other.full_tensor().cpu(), a)
    total = distribute_tensor(a, mesh, [Shard(0)]).sum().full_tensor().cpu()
    torch.testing.assert_close(total, a.sum(), rtol=1e-4, atol=1e-4)


# ---- checks --------------------------------------------------------------------------------------


def check_streams_by_handle():
    """A stream that another library made, or that PyTorch made itself, by its handle."""
    for stream in [torch.cuda.Stream() for _ in range(32)]:
        other = torch.cuda.ExternalStream(stream.cuda_stream)
        with torch.cuda.stream(other):
            assert torch.cuda.current_stream().cuda_stream == stream.cuda_stream
            assert torch.ones(3, device="cuda").sum().item() == 3


def check_nccl_ll(devices=2):
    run_members("sums", devices, NCCL_PROTO="LL")


def check_nccl_ll128(devices=2):
    run_members("sums", devices, NCCL_PROTO="LL128")


def check_nccl_simple(devices=2):
    run_members("sums", devices, NCCL_PROTO="Simple")


def check_nccl_4_processes(devices=4):
    run_members("sums", devices)


def check_nccl_8_processes(devices=8):
    run_members("sums", devices)


def check_collectives(devices=4):
    run_members("collectives", devices)


def check_ddp(devices=2):
    run_members("ddp", devices)


def check_fsdp2(devices=2):
    run_members("fsdp2", devices)


def check_fsdp2_4_processes(devices=4):
    run_members("fsdp2", devices)


def check_dtensor(devices=2):
    run_members("dtensor", devices)


def check_dtensor_4_processes(devices=4):
    run_members("dtensor", devices)


def main():
    rank, devices = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    globals()[f"member_{sys.argv[1]}"](rank, devices)
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
