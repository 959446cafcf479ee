"""A PyTorch training step (forward, backward, AdamW), eager and as a CUDA graph. Prints the losses
bit for bit."""

import torch
from torch import nn

torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
torch.use_deterministic_algorithms(True, warn_only=True)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width,
        width))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, c // self.heads).unbind(2)
        att = (q.transpose(1, 2) @ k.transpose(1, 2).transpose(-2, -1)) * (c // self.heads) ** -0.5
        y = (att.softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).reshape(b, t, c)
        x = x + self.out(y)
        return x + self.mlp(self.norm2(x))


def make(layers=6, width=256, vocab=1000, batch=8, length=128):
    model = nn.Sequential(nn.Embedding(vocab, width), *[Block(width, 8) for _ in range(layers)],
                          nn.Linear(width, vocab)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    x = torch.randint(0, vocab, (batch, length), device="cuda")
    y = torch.randint(0, vocab, (batch, length), device="cuda")
    return model, optimizer, x, y


def step(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    optimizer.step()
    return loss


def capture(parts):
    """The step as a CUDA graph: its replay function, and the tensor with the loss."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(*parts)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    parts[1].zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = step(*parts)
    return graph.replay, loss


def main():
    parts = make()
    print("eager", [step(*parts).item().hex() for _ in range(5)])
    torch.manual_seed(0)
    replay, loss = capture(make())
    losses = []
    for _ in range(5):
        replay()
        losses.append(loss.item())
    print("graph", [x.hex() for x in losses])


if __name__ == "__main__":
    main()
