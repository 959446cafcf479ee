#!/usr/bin/env python3
"""A training step of a small GPT-2 (transformers, unmodified PyTorch) on the CPU GPU beside
PyTorch's own CPU device.

    gpt2.py --python ENVIRONMENT/bin/python [--heddle build/dev/bin/heddle] [--rounds 3]

The environment is one that tests/frameworks/run.py --install makes. Rounds alternate. The first
round fills the kernel cache and does not count. Prints the median step of each and their ratio,
in wall time and in processor time.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

HEDDLE, PYTHON = "build/dev/bin/heddle", "python3"


def train(device, steps):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=512, n_positions=64,
                        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.randint(0, 512, (8, 64), generator=torch.Generator().manual_seed(1)).to(device)
    wall, cpu, losses = [], [], []
    for _ in range(steps):
        began, used = time.monotonic(), time.process_time()
        optimizer.zero_grad()
        loss = model(data, labels=data).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        wall.append(time.monotonic() - began)
        cpu.append(time.process_time() - used)
    print("RESULT " + json.dumps({"wall": statistics.median(wall), "cpu": statistics.median(cpu),
                                  "losses": losses}))


def run(command):
    out = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in out.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        sys.exit(f"{' '.join(command)} failed:\n{out.stderr[-2000:]}")
    return json.loads(lines[0][7:])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--python", default=PYTHON)
    p.add_argument("--heddle", default=HEDDLE)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--train", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.train:
        train(o.train, o.steps)
        return
    own = [o.python, __file__, "--steps", str(o.steps), "--train"]
    ways = {"cpu": own + ["cpu"],
            "heddle": [o.heddle, "run", "--gpu", "cpu:a100", "--"] + own + ["cuda"]}
    results = {"cpu": [], "heddle": []}
    for i in range(o.rounds + 1):
        for name, command in ways.items():
            r = run(command)
            if i:
                results[name].append(r)
            print(f"{f'round {i}' if i else 'warm-up'}: {name} step {r['wall'] * 1e3:.0f} ms wall, "
                  f"{r['cpu'] * 1e3:.0f} ms processor, loss {r['losses'][0]:.5f} .. "
                  f"{r['losses'][-1]:.5f}", flush=True)
    for what in ("wall", "cpu"):
        ratios = [b[what] / a[what] for a, b in zip(results["cpu"], results["heddle"])]
        print(f"gpt2_step/{what}_x {statistics.median(ratios):.1f} ratio")
    worst = max(abs(a - b) / abs(a) for x, y in zip(results["cpu"], results["heddle"])
                for a, b in zip(x["losses"], y["losses"]))
    print(f"gpt2_step/losses_differ {worst:.2e} relative")


if __name__ == "__main__":
    main()
