"""Times the PyTorch training step: launch-bound (small), GPU-bound (large), and as a CUDA graph.

Prints `time KIND MICROSECONDS` lines, medians over the steps of one process. Under a traced heddle
it also prints `time small_off`: the same step with recording switched off, in alternating blocks of
the same process, which separates the trace's cost from the machine's noise.
"""

import ctypes
import os
import time

import torch
import torch_train


def affinity():
    """Uses a few fixed processors: a launch-bound step varies by a fifth when threads move."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) >= 8:
        os.sched_setaffinity(0, {cpus[2], cpus[4], cpus[6]})


def steps_us(f, n):
    torch.cuda.synchronize()
    times = []
    for _ in range(n):
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e6)
    return times


def median(times):
    return sorted(times)[len(times) // 2]


def recorder():
    """heddle_record, if heddle traces this process."""
    try:
        return ctypes.CDLL("libcuda.so.1").heddle_record if os.environ.get("HEDDLE_TRACE") else None
    except AttributeError:
        return None


def small():
    parts = torch_train.make()
    steps_us(lambda: torch_train.step(*parts), 20)
    record = recorder()
    on, off = [], []
    for _ in range(4):
        on += steps_us(lambda: torch_train.step(*parts), 25)
        if record:
            record(0)
            off += steps_us(lambda: torch_train.step(*parts), 25)
            record(1)
    print("time small", median(on))
    if off:
        print("time small_off", median(off))


def large():
    torch.backends.cuda.matmul.allow_tf32 = True
    parts = torch_train.make(layers=4, width=2048, batch=32, length=512)
    steps_us(lambda: torch_train.step(*parts), 5)
    print("time large", median(steps_us(lambda: torch_train.step(*parts), 40)))


def graph():
    replay = torch_train.capture(torch_train.make())[0]
    steps_us(replay, 20)
    print("time graph", median(steps_us(replay, 200)))


affinity()
small()
large()
graph()
