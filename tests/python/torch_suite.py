#!/usr/bin/env python3
"""The package with PyTorch, where it is installed: use(), when it is too late, and a suite.

    HEDDLE_PREFIX=build/dev PYTHONPATH=python torch_suite.py [TEST...]
"""

import subprocess
import textwrap
from pathlib import Path

from programs import BEGIN, PATIENCE, Programs, main, python_with

SUITE = '''
import pytest
import torch

kept = []

def test_matmul():
    x = torch.randn(64, 64, device="cuda")
    assert torch.allclose((x @ x).cpu(), x.cpu() @ x.cpu(), atol=1e-3)

def test_training():
    model = torch.nn.Linear(16, 4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(8, 16, device="cuda")).square().mean().backward()
        optimizer.step()

def test_leak():
    kept.append(torch.ones(1000, device="cuda"))

def test_leak_in_a_block_that_is_there():
    kept.append(torch.ones(1000, device="cuda"))

def test_fine():
    torch.ones(1000, device="cuda")

@pytest.fixture(scope="module")
def shared():
    return torch.ones(5000, device="cuda")

def test_shared(shared):
    assert shared.sum().item() == 5000

def test_out_of_memory(heddle_fail):
    heddle_fail("cuMemAlloc", times=None)
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 30, device="cuda")
'''


class Torch(Programs):
    def torch_program(self, text):
        path = Path(self.folder, "program.py")
        path.write_text(BEGIN + textwrap.dedent(text), encoding="utf-8")
        done = subprocess.run([python_with("torch"), str(path)], env=self.environment(),
                              cwd=self.folder, capture_output=True, text=True, check=False,
                              timeout=4 * PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_use_before_and_after_import(self):
        for lines in ("heddle.use('cpu:a100x2'); import torch",
                      "import torch; heddle.use('cpu:a100x2')"):
            self.torch_program(f"""
                {lines}
                assert torch.cuda.device_count() == 2
                x = torch.arange(1000., device="cuda:1")
                assert (x * 2).sum().item() == 999000
                assert heddle.stats().launches > 0
                assert "libc10_cuda.so" in {{block.library for block in heddle.memory()}}
            """)

    def test_too_late_is_an_error(self):
        self.torch_program("""
            import torch
            assert not torch.cuda.is_available()
            kind, text = error(heddle.use, "cpu:a100")
            assert kind == "LoadedError" and "the CUDA runtime remembers" in text, text
        """)

    def test_loaders_have_workers(self):
        self.torch_program("""
            if __name__ == "__main__":
                heddle.use("cpu:a100")
                import torch
                data = torch.utils.data.TensorDataset(torch.arange(16.))
                for way in ("fork", "spawn"):
                    loader = torch.utils.data.DataLoader(
                        data, batch_size=4, num_workers=2, multiprocessing_context=way)
                    assert sum(batch.cuda().sum().item() for [batch] in loader) == 120
        """)

    def test_a_suite_with_leaks(self):
        if python_with("pytest") != python_with("torch"):
            self.skipTest("PyTorch and pytest are not in one environment")
        Path(self.folder, "test_it.py").write_text(SUITE, encoding="utf-8")
        done = subprocess.run([python_with("torch"), "-m", "pytest", "-rA", "--tb=short", "-p",
                               "no:cacheprovider", "-p", "heddle.pytest_plugin", "--heddle",
                               "cpu:a100", "--heddle-leaks", "test_it.py"],
                              env=self.environment(), cwd=self.folder, capture_output=True,
                              text=True, check=False, timeout=4 * PATIENCE)
        wrong = [line.split()[1] for line in done.stdout.splitlines()
                 if line.startswith("ERROR test_it")]
        self.assertIn("7 passed, 2 errors", done.stdout, done.stdout + done.stderr)
        self.assertEqual(wrong, ["test_it.py::test_leak",
                                 "test_it.py::test_leak_in_a_block_that_is_there"])
        self.assertIn("allocated by libc10_cuda.so", done.stdout)
        self.assertIn("in tensors of PyTorch", done.stdout)


if __name__ == "__main__":
    main("torch", "pip install torch")
