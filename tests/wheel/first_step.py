"""How long a new user waits for the first right result of PyTorch: one step of training, compared
with the same step on the host. Prints the time beyond `import torch`."""

import time

import torch

start = time.monotonic()


def step(device):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
    model = model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
    loss.backward()
    optimizer.step()
    return loss.item(), [p.detach().cpu() for p in model.parameters()]


loss, parameters = step("cuda")
seconds = time.monotonic() - start
want, wanted = step("cpu")
assert abs(loss - want) < 1e-4, (loss, want)
for a, b in zip(parameters, wanted):
    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)
print(f"first step of PyTorch {torch.__version__} in {seconds:.1f} s beyond its import")
