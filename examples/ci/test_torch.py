"""Trains a small model on whatever GPU there is, and checks that it learns; in CI that is heddle's CPU GPU."""

import torch

assert torch.cuda.is_available(), "PyTorch sees no GPU"
torch.manual_seed(0)
x = torch.randn(2048, 64, device="cuda")
y = torch.sin(x.sum(1, keepdim=True) / 4)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for _ in range(20):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"{torch.cuda.get_device_name()}: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
assert losses[-1] < losses[0] / 2, losses
