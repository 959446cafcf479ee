"""PyTorch: devices, operators, libraries. Results are compared with those of PyTorch's CPU."""

import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def same(on_gpu, *inputs, tolerance=1e-4):
    """Computes on_gpu(inputs) on both devices and compares."""
    got = on_gpu(*[x.cuda() for x in inputs])
    want = on_gpu(*inputs)
    torch.testing.assert_close(got.cpu(), want, rtol=tolerance, atol=tolerance)


def made(*shape, dtype=torch.float32):
    torch.manual_seed(1)
    return torch.randn(*shape).to(dtype)


def check_devices(devices=8):
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == devices, torch.cuda.device_count()
    torch.cuda.set_device(devices - 1)
    assert torch.cuda.current_device() == devices - 1
    return torch.cuda.get_device_name()


def check_copies():
    x = made(1000)
    y = x.cuda()
    assert torch.equal(y.cpu(), x) and torch.equal(y.clone().cpu(), x)


def check_add():
    same(lambda a, b: a + b, made(33, 65), made(33, 65))


def check_randn():
    x = torch.randn(20000, device="cuda")
    assert abs(x.mean().item()) < 0.03 and abs(x.std().item() - 1) < 0.03


def check_fill_arange():
    assert torch.arange(100, device="cuda").cpu().tolist() == list(range(100))
    assert torch.full((7,), 3.0, device="cuda").cpu().tolist() == [3.0] * 7


def check_elementwise():
    same(lambda a: torch.tanh(a) * torch.sigmoid(a) + torch.exp(-a.abs()).sqrt(), made(1000))


def check_matmul_f32():
    same(lambda a, b: a @ b, made(64, 96), made(96, 48))


def check_matmul_tf32():
    torch.backends.cuda.matmul.allow_tf32 = True
    same(lambda a, b: a @ b, made(64, 96), made(96, 48), tolerance=0.1)


def check_matmul_f16():
    same(lambda a, b: a @ b, made(64, 96, dtype=torch.float16), made(96, 64, dtype=torch.float16),
         tolerance=0.05)


def check_matmul_bf16():
    same(lambda a, b: a @ b, made(64, 96, dtype=torch.bfloat16), made(96, 64, dtype=torch.bfloat16),
         tolerance=0.3)


def check_matmul_batched():
    same(torch.bmm, made(4, 16, 24), made(4, 24, 8))


def check_linear_bias():
    same(F.linear, made(32, 64), made(16, 64), made(16))


def check_conv():
    same(lambda a, w: F.conv2d(a, w, padding=1), made(2, 3, 16, 16), made(8, 3, 3, 3),
         tolerance=1e-2)


def check_conv_without_cudnn():
    torch.backends.cudnn.enabled = False
    same(lambda a, w: F.conv2d(a, w, padding=1), made(2, 3, 16, 16), made(8, 3, 3, 3),
         tolerance=1e-2)


def check_batch_norm():
    same(lambda a: F.batch_norm(a, None, None, training=True), made(4, 8, 6, 6), tolerance=1e-3)


def check_layer_norm():
    same(lambda a: F.layer_norm(a, (64,)), made(10, 64), tolerance=1e-3)


def sdpa(backend, dtype, tolerance):
    def attend(q, k, v):
        if not q.is_cuda:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    same(attend, *[made(2, 4, 32, 64, dtype=dtype) for _ in range(3)], tolerance=tolerance)


def check_sdpa_math():
    sdpa(SDPBackend.MATH, torch.float32, 1e-3)


def check_sdpa_flash():
    sdpa(SDPBackend.FLASH_ATTENTION, torch.float16, 0.05)


def check_sdpa_efficient():
    sdpa(SDPBackend.EFFICIENT_ATTENTION, torch.float32, 1e-2)


def check_sdpa_cudnn():
    sdpa(SDPBackend.CUDNN_ATTENTION, torch.float16, 0.05)


def check_reductions():
    same(lambda a: torch.stack([a.sum(), a.mean(), a.max(), a.min(), a.norm(), a.var()]),
         made(50, 70), tolerance=1e-3)
    same(lambda a: a.sum(0), made(50, 70), tolerance=1e-3)
    same(lambda a: a.argmax(1), made(50, 70))


def check_softmax():
    same(lambda a: F.softmax(a, -1), made(20, 100))


def check_cumsum():
    same(lambda a: a.cumsum(1), made(5, 300), tolerance=1e-3)


def check_sort():
    same(lambda a: a.sort().values, made(3000))
    same(lambda a: a.topk(5).values, made(8, 200))


def check_unique():
    same(torch.unique, torch.randint(0, 50, (1000,)))


def check_index():
    rows = torch.randint(0, 40, (17,))
    same(lambda a, i: a[i], made(40, 8), rows)
    same(lambda a, i: a.index_select(0, i), made(40, 8), rows)
    same(lambda a: a[a > 0], made(500))
    same(lambda a: a.nonzero(), (made(300) > 0))


def check_scatter():
    where = torch.randint(0, 20, (200,))
    same(lambda i, x: torch.zeros(20, device=x.device).scatter_add(0, i, x), where, made(200),
         tolerance=1e-3)
    same(lambda i, x: torch.zeros(20, device=x.device).index_add(0, i, x), where, made(200),
         tolerance=1e-3)


def check_gather():
    same(lambda a, i: a.gather(1, i), made(10, 30), torch.randint(0, 30, (10, 4)))


def check_cat_permute():
    same(lambda a, b: torch.cat([a, b], 1).permute(1, 0).contiguous(), made(8, 5), made(8, 9))


def check_embedding():
    same(lambda i, w: F.embedding(i, w), torch.randint(0, 50, (6, 7)), made(50, 16))


def check_dropout():
    x = F.dropout(torch.ones(20000, device="cuda"), 0.25)
    kept = (x > 0).float().mean().item()
    assert abs(kept - 0.75) < 0.02 and abs(x.max().item() - 1 / 0.75) < 1e-4


def check_fft():
    same(lambda a: torch.fft.rfft(a).abs(), made(4, 256), tolerance=1e-3)
    same(lambda a: torch.fft.irfft2(torch.fft.rfft2(a)), made(16, 24), tolerance=1e-3)


def positive():
    a = made(12, 12)
    return a @ a.T + 12 * torch.eye(12)


def check_linalg_cholesky():
    same(torch.linalg.cholesky, positive(), tolerance=1e-3)


def check_linalg_solve():
    same(torch.linalg.solve, positive(), made(12, 3), tolerance=1e-2)


def check_linalg_svd():
    same(torch.linalg.svdvals, made(12, 8), tolerance=1e-2)


def check_linalg_eigh():
    same(torch.linalg.eigvalsh, positive(), tolerance=1e-2)


def check_linalg_qr():
    same(lambda a: torch.linalg.qr(a).R.abs(), made(12, 8), tolerance=1e-2)


def check_sparse():
    dense = made(20, 30) * (made(20, 30) > 1)
    got = dense.cuda().to_sparse_csr() @ made(30, 5).cuda()
    torch.testing.assert_close(got.cpu(), dense @ made(30, 5), rtol=1e-3, atol=1e-3)


def check_profiler():
    from torch.profiler import ProfilerActivity, profile

    x = torch.ones(10).cuda()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        y = x.clone()
    assert y.cpu().tolist() == [1.0] * 10
    assert any("clone" in e.key for e in seen.key_averages())


# A program of its own: the process that it starts must find the function in a file.
BETWEEN_PROCESSES = """
import torch
import torch.multiprocessing


def change_and_answer(received, sent):
    x = received.get()
    x += 1
    torch.cuda.synchronize()
    sent.put(x.sum().item())
    sent.put(torch.full((7,), 3.0, device="cuda"))
    received.get()  # what was sent must live until it has been received


if __name__ == "__main__":
    context = torch.multiprocessing.get_context("spawn")
    to, back = context.Queue(), context.Queue()
    child = context.Process(target=change_and_answer, args=(to, back))
    child.start()
    x = torch.arange(1000.0, device="cuda")
    to.put(x)
    assert back.get(timeout=200) == x.sum().item() == 999 * 500 + 1000
    y = back.get(timeout=200)
    assert y.tolist() == [3.0] * 7
    del y
    to.put(0)
    child.join(200)
    assert child.exitcode == 0, child.exitcode
"""


def run_between_processes(**more):
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "between.py")
        with open(program, "w", encoding="utf-8") as f:
            f.write(BETWEEN_PROCESSES)
        subprocess.run([sys.executable, program], check=True, env={**os.environ, **more})


def check_multiprocessing():
    run_between_processes()


def check_multiprocessing_expandable():
    run_between_processes(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")


def check_event_between_processes():
    event = torch.cuda.Event(interprocess=True, enable_timing=False)
    event.record()
    assert len(event.ipc_handle()) == 64
