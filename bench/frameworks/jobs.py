"""What bench/frameworks/run measures: jobs in plain PyTorch that need no other package.

Each function takes a device and returns a function that does one step and returns a number, by
which the two devices are compared.
"""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """A block of GPT-2."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, past=None):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, w // self.heads).transpose(1, 2)
                   for y in self.qkv(self.before(x)).split(w, 2))
        if past is not None:
            if past:
                k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
            past[:] = k, v
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, w))
        return x + self.down(F.gelu(self.up(self.behind(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, layers, width, heads, words, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x, at=0, past=None):
        places = torch.arange(at, at + x.shape[1], device=x.device)
        y = self.words(x) + self.places(places)
        for i, block in enumerate(self.blocks):
            y = block(y, None if past is None else past[i])
        return self.head(self.norm(y))


class Residual(nn.Module):
    """A block of ResNet18."""

    def __init__(self, into, out, stride):
        super().__init__()
        self.a = nn.Conv2d(into, out, 3, stride, 1, bias=False)
        self.b = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm_a, self.norm_b = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.short = nn.Sequential()
        if stride > 1 or into != out:
            self.short = nn.Sequential(nn.Conv2d(into, out, 1, stride, bias=False),
                                       nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.norm_b(self.b(F.relu(self.norm_a(self.a(x)))))
        return F.relu(y + self.short(x))


def training(model, optimizer, loss_of):
    def step():
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        return loss.item()
    return step


def random(*shape, device):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(device)


def numbers(end, *shape, device):
    return torch.randint(0, end, shape, generator=torch.Generator().manual_seed(1)).to(device)


def gpt2(device, compiled=False):
    model = Gpt2(layers=2, width=128, heads=4, words=512, length=64).to(device)
    data = numbers(512, 8, 64, device=device)
    forward = torch.compile(model) if compiled else model
    return training(model, torch.optim.AdamW(model.parameters(), lr=1e-3),
                    lambda _: F.cross_entropy(forward(data)[:, :-1].reshape(-1, 512),
                                              data[:, 1:].reshape(-1)))


def gpt2_compiled(device):
    return gpt2(device, compiled=True)


def resnet18(device):
    blocks, into = [], 64
    for out, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                        (512, 1)):
        blocks.append(Residual(into, out, stride))
        into = out
    model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                          nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(512, 10)).to(device)
    data, labels = random(8, 3, 32, 32, device=device), numbers(10, 8, device=device)
    return training(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9),
                    lambda m: F.cross_entropy(m(data), labels))


def lstm(device):
    model = nn.LSTM(64, 128, 2, batch_first=True).to(device)
    data = random(8, 32, 64, device=device)
    return training(model, torch.optim.Adam(model.parameters()),
                    lambda m: (m(data)[0] ** 2).mean())


def unet(device):
    """A block of a diffusion model's U-Net: group norms, convolutions, attention, up and down."""
    class Net(nn.Module):
        def __init__(self, width=64):
            super().__init__()
            self.first = nn.Conv2d(4, width, 3, padding=1)
            self.norms = nn.ModuleList(nn.GroupNorm(8, width) for _ in range(3))
            self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
            self.smaller = nn.Conv2d(width, width, 3, 2, 1)
            self.attend = nn.MultiheadAttention(width, 4, batch_first=True)
            self.last = nn.Conv2d(2 * width, 4, 3, padding=1)

        def forward(self, x):
            a = self.first(x)
            a = a + self.convs[0](F.silu(self.norms[0](a)))
            b = self.smaller(a)
            b = b + self.convs[1](F.silu(self.norms[1](b)))
            flat = self.norms[2](b).flatten(2).transpose(1, 2)
            b = b + self.attend(flat, flat, flat, need_weights=False)[0].transpose(1, 2).view_as(b)
            b = F.interpolate(self.convs[2](b), scale_factor=2)
            return self.last(torch.cat((a, b), 1))

    model, data = Net().to(device), random(2, 4, 32, 32, device=device)
    return training(model, torch.optim.AdamW(model.parameters()),
                    lambda m: (m(data) - data).pow(2).mean())


def decode(device):
    """A token of GPT-2 small with a key and value cache: fp16 on the GPU, fp32 on the CPU."""
    model = Gpt2(layers=12, width=768, heads=12, words=50257, length=1024).to(device).eval()
    if device == "cuda":
        model.half()
    past, at = [[] for _ in model.blocks], 0
    word = numbers(50257, 1, 16, device=device)

    @torch.no_grad()
    def step():
        nonlocal word, at
        logits = model(word, at, past)[:, -1]
        at += word.shape[1]
        word = logits.argmax(-1, keepdim=True)
        return float(word.item())
    return step


JOBS = {f.__name__: f for f in (gpt2, gpt2_compiled, resnet18, lstm, unet, decode)}
