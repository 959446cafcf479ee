#!/usr/bin/env python3
"""A PyTorch program of bench/share: prepares what its kind needs, then works as it is told.

    workers.py KIND [CORE]

It runs on the processor CORE and the next one. It prints {"ready": KIND} and then answers each line
of standard input with a line of JSON:

    closed S            steps for S seconds, one after the other
    open S PERIOD       a step at each arrival, PERIOD seconds apart; the latency counts from the
                        arrival. The first few do not count, since a policy may have to learn
    busy S PERIOD KIND  the same, and between steps this process does the work of KIND and waits for
                        it: the GPU is as hot and slow as beside another program, but free
    quit

Latencies are in milliseconds, in the order of arrival.
"""

import gc
import json
import os
import sys
import time

import torch
from torch import nn
from torch.nn import functional

DEVICE = "cuda"
SPIN = 0.002  # a thread that sleeps to the last moment finds a cold processor
FIRST = 6     # arrivals before those that count


def encoder(batch, length, layers=24, width=1024):
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, batch_first=True,
                                       dtype=torch.bfloat16, device=DEVICE)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval()
    x = torch.randn(batch, length, width, dtype=torch.bfloat16, device=DEVICE)

    def step():
        with torch.no_grad():
            model(x)
        torch.cuda.synchronize()
    return step


class Decoder:
    """24 layers, one token at a time, with a cache of keys and values; 300 kernels per step."""

    def __init__(self, layers=24, width=1024, heads=16, room=256, vocabulary=32000):
        kind = {"dtype": torch.bfloat16, "device": DEVICE}
        self.heads, self.width = heads, width
        self.embedding = nn.Embedding(vocabulary, width, **kind)
        self.layers = [(nn.LayerNorm(width, **kind), nn.Linear(width, 3 * width, **kind),
                        nn.Linear(width, width, **kind), nn.LayerNorm(width, **kind),
                        nn.Linear(width, 4 * width, **kind), nn.Linear(4 * width, width, **kind))
                       for _ in range(layers)]
        self.head = nn.Linear(width, vocabulary, **kind)
        self.cache = [torch.zeros(2, 1, heads, room, width // heads, **kind)
                      for _ in range(layers)]
        self.token = torch.zeros(1, 1, dtype=torch.long, device=DEVICE)
        self.place = torch.full((1,), room - 1, dtype=torch.long, device=DEVICE)

    @torch.no_grad()
    def step(self):
        x = self.embedding(self.token)
        for (norm1, qkv, out, norm2, up, down), cache in zip(self.layers, self.cache):
            q, k, v = qkv(norm1(x)).view(1, 1, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            cache[0].index_copy_(2, self.place, k)
            cache[1].index_copy_(2, self.place, v)
            y = functional.scaled_dot_product_attention(q, cache[0], cache[1])
            x = x + out(y.transpose(1, 2).reshape(1, 1, self.width))
            x = x + down(functional.gelu(up(norm2(x))))
        return self.head(x).argmax(-1)


def captured(work):
    """Captures a function as a CUDA graph, and returns its replay function."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def decoder(steps, graph):
    model = Decoder()
    if graph:
        replay = captured(model.step)

        def step():
            for _ in range(steps):
                replay()
                torch.cuda.synchronize()
    else:
        def step():
            for _ in range(steps):
                model.step().item()  # the host looks at every token
    return step


def gemm(a_sync=4, size=8192):
    a = torch.randn(size, size, dtype=torch.bfloat16, device=DEVICE)
    b, c = torch.randn_like(a), torch.empty_like(a)

    def step():
        for _ in range(a_sync):
            torch.mm(a, b, out=c)
        torch.cuda.synchronize()
    return step


def train(graph, a_sync=4):
    model = nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(),
        nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(128, 128, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(128 * 32 * 32, 10)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    x = torch.randn(128, 3, 64, 64, device=DEVICE)
    y = torch.randint(0, 10, (128,), device=DEVICE)

    def once():
        optimizer.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss
    if not graph:
        return lambda: once().item()
    replay = captured(once)

    def step():
        for _ in range(a_sync):
            replay()
        torch.cuda.synchronize()
    return step


KINDS = {
    "short": lambda: encoder(8, 128),
    "long": lambda: encoder(32, 256),
    "generate": lambda: decoder(16, False),
    "decoder": lambda: decoder(1, False),
    "decoder_graph": lambda: decoder(1, True),
    "gemm": gemm,
    "train": lambda: train(False),
    "replay": lambda: train(True),
}


def closed(step, seconds):
    latency = []
    start = before = time.perf_counter()
    while before - start < seconds:
        step()
        now = time.perf_counter()
        latency.append(now - before)
        before = now
    return latency


def open_loop(step, seconds, period, fill=None):
    latency = []
    longest = 0.003
    arrival = start = time.perf_counter() + SPIN
    while arrival - start < seconds:
        left = arrival - time.perf_counter()
        while fill and left > SPIN / 2 + longest * 1.1:
            before = time.perf_counter()
            fill()
            longest = max(longest * 0.99, time.perf_counter() - before)
            left = arrival - time.perf_counter()
        if not fill and left > SPIN:
            time.sleep(left - SPIN)
        while time.perf_counter() < arrival:
            pass
        step()
        latency.append(time.perf_counter() - arrival)
        arrival += period
    return latency[FIRST:]


FILLERS = {}


def filler(kind):
    """Short pieces of the work of a kind, at low priority."""
    if kind not in FILLERS:
        FILLERS[kind] = gemm(1) if kind == "gemm" else train(kind == "replay", 1)
        closed(FILLERS[kind], 0.3)
    return FILLERS[kind]


def main():
    if len(sys.argv) > 2:
        os.sched_setaffinity(0, {int(sys.argv[2]), int(sys.argv[2]) + 1})
    torch.set_num_threads(2)
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(0)
    step = KINDS[sys.argv[1]]()
    closed(step, 0.3)
    for _ in range(5):
        step()
    print(json.dumps({"ready": sys.argv[1]}), flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "quit":
            break
        fill = filler(words[3]) if words[0] == "busy" else None
        gc.collect()
        gc.disable()
        cpu = time.process_time()
        start = time.perf_counter()
        latency = (closed(step, float(words[1])) if words[0] == "closed"
                   else open_loop(step, float(words[1]), float(words[2]), fill))
        seconds = time.perf_counter() - start
        cpu = time.process_time() - cpu
        gc.enable()
        print(json.dumps({"n": len(latency), "seconds": seconds, "rate": len(latency) / seconds,
                          "cpu": cpu / seconds, "latency": [round(x * 1e3, 4) for x in latency]}),
              flush=True)
    sys.stdout.flush()
    os._exit(0)  # nothing is measured any more, so skip the interpreter's slow end


if __name__ == "__main__":
    main()
