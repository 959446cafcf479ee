#!/usr/bin/env python3
"""PyTorch's own database of operators on heddle: does each give what PyTorch gives on the host?

    opdb.py --python PYTHON [OPTION...] [OPERATOR...]

PYTHON has torch, expecttest, hypothesis and pytest. Workers run under `heddle run`, each for many
operators: the first samples of an operator are computed on the host and on the GPU, with float32 or
else int64. A worker is started again when an operator did not do well: it may have crashed, hung,
or left an error in the context, and heddle says only once why a kernel cannot run. What became of
each operator is a line of JSON, and the end is a summary:

    agrees    within the tolerance, or as the database itself compares results that are not unique
    differs   another result
    refused   heddle said that it cannot do this
    failed    an error of PyTorch or CUDA
    crashed   the process ended
    slow      no end within the time limit
    left out  random or uninitialised results, no such type, no result on the host, not for CUDA,
              or another result by PyTorch's own word
"""

import argparse
import collections
import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from run import TOP, shorten

# Operators whose results are whatever was in memory.
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
                 "new_empty_strided"}

# Operators whose other tensors have to be on the host.
HOST_ARGUMENTS = {"tensor_split"}

# Lines of heddle's log.
HEDDLE = re.compile(r"heddle\[\d+\] error \w+: (.+)")
NOT_TAKEN = re.compile(r"machine code for sm_\w+: (.+)")
REFUSED = re.compile(r"(.+?)(?: \(sm_[\w ]+\))?: kernel (.+) cannot run here")


# ---- a worker ----------------------------------------------------------------------------------

def move(torch, value, device):
    """A sample's tensors, devices and their names on another device."""
    def one(x):
        if isinstance(x, torch.Tensor):
            return x.detach().to(device).requires_grad_(x.requires_grad)
        if isinstance(x, torch.device) or x == "cpu":
            return device
        return x
    return torch.utils._pytree.tree_map(one, value)


def differentiate(torch, sample, result, inputs):
    """The gradients of the sum of a result."""
    process = sample.output_process_fn_grad or (lambda x: x)
    tree_leaves = torch.utils._pytree.tree_leaves
    outputs = [x for x in tree_leaves(process(result))
               if isinstance(x, torch.Tensor) and x.requires_grad]
    inputs = [x for x in tree_leaves(inputs) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not outputs or not inputs:
        return []
    # Not ones: the gradient of a softmax, for example, would be zero.
    weights = [torch.linspace(1, 2, x.numel(), device=x.device).reshape(x.shape).to(x.dtype)
               for x in outputs]
    return torch.autograd.grad(outputs, inputs, weights, allow_unused=True)


def compute(torch, op, sample, device, backward, seed=0):
    """Inputs are copied, since some operators write to them."""
    def copy(x):
        return x.clone() if isinstance(x, torch.Tensor) else x
    first, args, kwargs = torch.utils._pytree.tree_map(
        copy, (sample.input, sample.args, sample.kwargs))
    first, others = move(torch, first, device), "cpu" if op.name in HOST_ARGUMENTS else device
    args, kwargs = move(torch, args, others), move(torch, kwargs, others)
    # The database sets the same seed before each random operator: not if it comes from here.
    set_seed = torch.manual_seed
    torch.manual_seed = lambda given: set_seed(given + seed)
    try:
        torch.manual_seed(0)
        result = op(first, *args, **kwargs)
        if backward:
            result = differentiate(torch, sample, result, (first, args, kwargs))
    finally:
        torch.manual_seed = set_seed
    if device != "cpu":
        torch.cuda.synchronize()
    return result


def leaves(torch, result):
    """The tensors of a result, dense and on the host, and its other values."""
    out = []
    for x in torch.utils._pytree.tree_leaves(result):
        if isinstance(x, torch.Tensor):
            x = x.detach()
            x = x if x.layout == torch.strided else x.to_dense()
            x = x.dequantize() if x.is_quantized else x
            x = x.cpu().resolve_conj().resolve_neg()
        out.append(x)
    return out


def wide_type(torch, dtype):
    """The type in which results are compared; None if they must be equal. Statistics of narrow
    types are float32 on a GPU only."""
    return (torch.complex128 if dtype.is_complex else
            torch.float64 if dtype.is_floating_point else None)


def compare(torch, ours, theirs, tolerance):
    """None if results agree, else what differs."""
    ours, theirs = leaves(torch, ours), leaves(torch, theirs)
    if len(ours) != len(theirs):
        return f"{len(ours)} results, not {len(theirs)}"
    for n, (a, b) in enumerate(zip(ours, theirs)):
        if not isinstance(a, torch.Tensor):
            same = a == b or isinstance(a, torch.device) or (
                isinstance(a, float) and abs(a - b) <= tolerance * (1 + abs(b)))
            if not same:
                return f"result {n}: {a}, not {b}"
            continue
        wide = wide_type(torch, a.dtype)
        if a.shape != b.shape or wide != wide_type(torch, b.dtype):
            return f"result {n}: {a.dtype} {list(a.shape)}, not {b.dtype} {list(b.shape)}"
        if wide:
            bad = ~torch.isclose(a.to(wide), b.to(wide), tolerance, tolerance, equal_nan=True)
        else:
            bad = a != b
        if bad.any():
            at = tuple(int(i) for i in bad.nonzero()[0])
            return (f"result {n}: {int(bad.sum())} of {bad.numel()} differ, at {list(at)} "
                    f"{a[at].item()}, not {b[at].item()}")
    return None


def is_expected_to_differ(op):
    """The database's word about PyTorch's own comparison of host and GPU."""
    return any(d.test_name == "test_compare_cpu" and d.device_type in (None, "cuda") and
               unittest.expectedFailure in d.decorators
               for d in op.decorators if hasattr(d, "test_name"))


def check_sample(torch, op, sample, args):
    """(outcome, reason) of one sample."""
    try:
        theirs = compute(torch, op, sample, "cpu", args.backward)
        again = compute(torch, op, sample, "cpu", args.backward, 1)
    except Exception as error:
        return "left out", f"no result on the host: {type(error).__name__}"
    if op.name in UNINITIALISED or compare(torch, again, theirs, 0):
        return "left out", "random"
    ours = compute(torch, op, sample, "cuda", args.backward)
    differs = compare(torch, ours, theirs, args.tolerance)
    if differs and sample.output_process_fn_grad is not None and not args.backward:
        # Eigenvectors, for example, have no sign: the database says what can be compared.
        process = sample.output_process_fn_grad
        differs = compare(torch, process(ours), process(theirs), args.tolerance) and differs
    if differs and is_expected_to_differ(op):
        return "left out", "PyTorch expects other results on a GPU"
    return ("differs", differs) if differs else ("agrees", "")


def check(torch, op, args):
    supported = op.supported_dtypes("cuda") & op.supported_dtypes("cpu")
    dtype = next((t for t in args.types.split(",") if getattr(torch, t) in supported), None)
    if dtype is None:
        return "left out", "no such type"
    dtype = getattr(torch, dtype)
    if args.backward and not (op.supports_autograd and
                              (dtype.is_floating_point or dtype.is_complex)):
        return "left out", "no gradient"
    torch.manual_seed(0)
    count = 0
    try:
        inputs = op.reference_inputs if args.reference else op.sample_inputs
        for sample in inputs("cpu", dtype, requires_grad=args.backward):
            if count == args.samples:
                break
            outcome, reason = check_sample(torch, op, sample, args)
            if outcome != "agrees":
                return outcome, f"sample {count}: {reason}" if outcome != "left out" else reason
            count += 1
    except Exception as error:
        if re.search("Could not run .* backend|not supported on CUDA", str(error)):
            return ("agrees", "") if count else ("left out", "not for CUDA")
        return "failed", shorten(f"sample {count}: {type(error).__name__}: {error}", 300)
    return ("agrees", "") if count else ("left out", "no samples")


def name_of(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def work(args):
    """Reads the positions of operators, writes what became of them."""
    import torch
    # As in PyTorch's own tests, since the host does not round to TF32.
    torch.backends.cudnn.allow_tf32 = False
    from torch.testing._internal import common_methods_invocations as databases
    operators = [op for name in args.databases.split(",") for op in getattr(databases, name)]
    print("NAMES " + json.dumps([name_of(op) for op in operators]), flush=True)
    for line in sys.stdin:
        outcome, reason = check(torch, operators[int(line)], args)
        print("ANSWER " + json.dumps([outcome, reason]), flush=True)
    # What libraries do when they are unloaded is not asked here.
    os._exit(0)


# ---- the parent --------------------------------------------------------------------------------

class Worker:
    """A process that checks operators one after another."""

    def __init__(self, args, number):
        self.log = open(args.logs / f"worker{number}.log", "a+", errors="replace")
        command = [args.python, "-B", __file__, "--worker", "--databases", args.databases,
                   "--samples", args.samples, "--tolerance", args.tolerance, "--types", args.types,
                   *(["--backward"] if args.backward else []),
                   *(["--reference"] if args.reference else [])]
        if args.gpu != "none":
            command = [args.heddle, "run", "--gpu", args.gpu, "--log", "info", *args.option,
                       "--", *command]
        self.child = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=self.log, text=True,
                                      errors="replace", start_new_session=True)
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.child.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def wait(self, word, limit):
        """What follows that word; None if the process ended; queue.Empty if there is no end."""
        end = time.monotonic() + limit
        while True:
            line = self.lines.get(timeout=max(0.01, end - time.monotonic()))
            if line is None or line.startswith(word):
                return line and json.loads(line.removeprefix(word))

    def ask(self, position, limit):
        """(outcome, reason, what the process wrote) of an operator."""
        self.log.seek(0, os.SEEK_END)
        begin = self.log.tell()
        try:
            self.child.stdin.write(f"{position}\n")
            self.child.stdin.flush()
            answer = self.wait("ANSWER ", limit)
            if answer is None:
                status = self.child.wait()
                status = status - 128 if status > 128 else -status
                answer = "crashed", (signal.Signals(status).name if status > 0
                                     else f"exit code {-status}")
        except queue.Empty:
            answer = "slow", f"no end within {limit:.0f} s"
        except BrokenPipeError:
            answer = "crashed", "before the operator"
        self.log.seek(begin)
        return *answer, self.log.read()

    def end(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        self.log.close()


def explain(outcome, reason, output):
    """With what heddle said: a refusal is heddle's word for an error."""
    said = HEDDLE.findall(output)
    if outcome not in ("failed", "crashed", "slow") or not said:
        return outcome, reason
    refused, not_taken = REFUSED.search(said[-1]), NOT_TAKEN.findall(output)
    if refused:
        # The name goes last, so that reasons can be grouped.
        return "refused", f"{not_taken[-1] if not_taken else refused.group(1)} | {refused.group(2)}"
    return outcome, f"{shorten(said[-1], 300)} | {reason}"


def serve(args, number, positions, results):
    """Checks operators until there are no more, with as many processes as that takes."""
    worker = None
    while True:
        try:
            position = positions.get_nowait()
        except queue.Empty:
            break
        if worker is None:
            worker = Worker(args, number)
            names = worker.wait("NAMES ", 300)
        begun = time.monotonic()
        outcome, reason, output = worker.ask(position, args.limit)
        outcome, reason = explain(outcome, reason, output)
        results.put({"position": position, "operator": names[position], "outcome": outcome,
                     "reason": reason, "seconds": round(time.monotonic() - begun, 1)})
        if outcome not in ("agrees", "left out"):
            worker.end()
            worker = None
    if worker:
        worker.end()
    results.put(None)


def list_operators(args):
    """Names in the order of the database, without heddle."""
    command = [args.python, "-B", __file__, "--worker", "--databases", args.databases]
    names = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(names.stdout.partition("NAMES ")[2])


def choose(args, names):
    end = args.end if args.end is not None else len(names)
    wanted = set(args.operators)
    for position, name in enumerate(names[:end]):
        if position < args.begin or (wanted and name not in wanted):
            continue
        if re.search(args.only, name):
            yield position


def summarise(results):
    by_outcome = collections.Counter(r["outcome"] for r in results)
    groups = collections.defaultdict(list)
    for r in results:
        if r["outcome"] not in ("agrees", "left out"):
            group = re.sub(r"sample \d+: |result \d+: |0x[0-9a-f]+|\d+", "", r["reason"])
            key = "" if r["outcome"] == "differs" else shorten(group.partition(" | ")[0], 110)
            groups[r["outcome"], key].append(r["operator"])
    for (outcome, reason), operators in sorted(groups.items(), key=lambda g: -len(g[1])):
        print(f"{len(operators):4} {outcome} {reason}: {' '.join(operators)}")
    asked = len(results) - by_outcome["left out"]
    print(", ".join(f"{count} {outcome}" for outcome, count in by_outcome.most_common()))
    share = 100 * by_outcome["agrees"] / asked if asked else 0
    print(f"{by_outcome['agrees']} of {asked} operators agree ({share:.1f} %)")
    return by_outcome["agrees"] == asked


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="default: all")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--python", default=str(TOP / "build/frameworks/torch/bin/python"))
    parser.add_argument("--heddle", type=Path, default=TOP / "build/dev/bin/heddle")
    parser.add_argument("--gpu", default="cpu:a100", help="as for heddle run; none: without heddle")
    parser.add_argument("--option", action="append", default=[], metavar="OPTION",
                        help="another option of heddle run")
    parser.add_argument("--databases", default="op_db", metavar="NAME,...",
                        help="others are foreach_unary_op_db, foreach_binary_op_db, ...")
    parser.add_argument("--begin", type=int, default=0, help="position of the first operator")
    parser.add_argument("--end", type=int, help="position behind the last operator")
    parser.add_argument("--only", default="", metavar="REGEX", help="only operators of this name")
    parser.add_argument("--samples", type=int, default=2, help="samples of each operator")
    parser.add_argument("--types", default="float32,int64", metavar="TYPE,...",
                        help="the first that an operator has (default: float32,int64)")
    parser.add_argument("--tolerance", type=float, default=2e-3, help="relative and absolute")
    parser.add_argument("--backward", action="store_true",
                        help="compare gradients instead of results")
    parser.add_argument("--reference", action="store_true",
                        help="the larger set of samples, with larger and extreme values")
    parser.add_argument("--limit", type=float, default=120, help="seconds for an operator")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--logs", type=Path, default=TOP / "build/opdb")
    parser.add_argument("--json", type=Path, help="append results to this file; those that it has "
                                                  "already are not computed again")
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.worker:
        return work(args)
    args.logs.mkdir(parents=True, exist_ok=True)
    done = []
    if args.json and args.json.exists():
        done = [json.loads(line) for line in args.json.read_text().splitlines()]
    known = {r["position"] for r in done}
    positions, results = queue.Queue(), queue.Queue()
    for position in choose(args, list_operators(args)):
        if position not in known:
            positions.put(position)
    for number in range(args.workers):
        threading.Thread(target=serve, args=(args, number, positions, results),
                         daemon=True).start()
    running = args.workers
    while running:
        result = results.get()
        if result is None:
            running -= 1
            continue
        done.append(result)
        print(f"{result['position']:4} {result['operator']:40} {result['seconds']:6.1f} s  "
              f"{result['outcome']} {shorten(result['reason'], 200)}", flush=True)
        if args.json:
            with open(args.json, "a") as out:
                out.write(json.dumps(result) + "\n")
    return 0 if summarise(done) else 1


if __name__ == "__main__":
    sys.exit(main())
