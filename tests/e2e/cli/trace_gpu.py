#!/usr/bin/env python3
"""`heddle trace` on traces with GPU activity: lines, tables, tracks and arrows.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch trace_gpu.py [Case.test...]
"""

import json
import random
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.trace_file import (  # noqa: E402
    ACTIVITY, BEGIN, DEVICE, FINISH, HOST, KERNEL, RECORDS, SCHEMA, SCHEMA_TEXT, TraceFile,
    activity, begin, call, copy, gpu_sample, kernel, launch, linked, record, u32, u64)
from trace_case import Case, ExportCase  # noqa: E402

T = 1_000_000_000


class Show(Case):
    def test_activity_is_listed_with_its_call(self):
        lines = self.lines(self.write(gpu_sample().data))
        self.assertEqual(len(lines), 18)
        self.assertEqual(lines[2], "    0.000020  GPU 0 stream 7   25.0 us  copy host to device, "
                                   "1048576 bytes [17]")
        self.assertTrue(lines[1].endswith("= CUDA_SUCCESS [17]"))
        self.assertTrue(lines[4].endswith("= CUDA_SUCCESS [18: saxpy]"))
        self.assertTrue(lines[7].endswith(r'= CUDA_SUCCESS [20: odd \"name\"\n and 1 more]'))
        self.assertIn("    0.000070  GPU 0 stream 13  30.0 us  kernel saxpy grid 256x1x1 "
                      "block 128x1x1 registers 16 [18]", lines)
        text = "\n".join(lines)
        self.assertIn("shared 64+1024", text)
        self.assertIn(r'kernel odd \"name\"\n grid 1x2x3 block 4x5x6', text)
        self.assertIn("GPU 1 stream 7   1.00 us  copy device to peer, 64 bytes\n", text)
        self.assertIn("other barrier", text)
        self.assertIn("unknown something newer", text)

    def test_activity_can_be_selected(self):
        path = self.write(gpu_sample().data)
        self.assertEqual(len(self.lines(path, "--activity")), 9)
        self.assertEqual(len(self.lines(path, "--call", "*saxpy*")), 2)
        self.assertEqual(len(self.lines(path, "--activity", "--call", "cu*")), 0)
        self.assertEqual(len(self.lines(path, "--call", "cu*")), 7)
        self.assertEqual(len(self.lines(path, "--thread", "main")), 9)
        self.assertEqual(len(self.lines(path, "--errors")), 1)

    def test_json(self):
        out, _ = self.run_it("show", "--json", self.write(gpu_sample().data))
        records = [json.loads(line) for line in out.splitlines()][1:]
        by_kind = {}
        for r in records:
            by_kind.setdefault(r["kind"], []).append(r)
        self.assertEqual([r.get("correlation") for r in by_kind["call"]],
                         [None, 17, 18, 19, 20, 21, 22])
        self.assertEqual([(r["kernel"], r["kernels"], r["kernel_ns"]) for r in by_kind["call"]
                          if "kernel" in r],
                         [("saxpy", 1, 30000), ("saxpy", 1, 20000), ('odd "name"\n', 2, 45000)])
        self.assertEqual(by_kind["activity"][1], {
            "kind": "activity", "time_ns": 70000, "thread": 4250, "thread_name": "cupti",
            "duration_ns": 30000, "activity": "kernel", "name": "_Z5saxpyifPfS_",
            "readable": "saxpy", "device": 0,
            "context": 1, "stream": 13, "correlation": 18, "grid": [256, 1, 1],
            "block": [128, 1, 1], "static_shared": 0, "dynamic_shared": 0, "registers": 16})
        self.assertEqual(by_kind["activity"][0]["from"], "host")
        self.assertIn('odd "name"\n', [r.get("name") for r in by_kind["activity"]])

    def test_incomplete_records_are_shown_as_such(self):
        f = begin()
        f.records(1, [record(ACTIVITY, T, 5, b"short", number=KERNEL),
                      activity(KERNEL, T + 10, 5, name="k", rest=u32(1))])
        f.end()
        path = self.write(f.data)
        self.assertEqual([line.split("  ")[-1] for line in self.lines(path)], ["kernel <cut>"] * 2)
        out, _ = self.run_it("show", "--json", path)
        self.assertTrue(all(json.loads(line)["cut"] for line in out.splitlines()[1:]))


class Summary(Case):
    def summary(self, *files, more=()):
        return json.loads(self.run_it("summary", "--json", *files, *more)[0])

    def test_tables(self):
        out, _ = self.run_it("summary", self.write(gpu_sample().data))
        head, calls, kernels, streams, ranges, copies, idle, waits = out.split("\n\n")
        self.assertIn("GPU 0     busy for 76.0 us (56.3 %): 4 kernels, 1 copy, 1 fill\n", head)
        self.assertIn("GPU 1     busy for 3.00 us (2.2 %): 1 copy, 2 others\n", head)
        self.assertTrue(head.endswith("launches  3, 3 with the name and times of a kernel"))
        self.assertEqual(calls.splitlines()[1].split()[-1], "cuMemcpyHtoD_v2")
        self.assertEqual([line.split() for line in kernels.splitlines()][:2],
                         ["kernels total % mean min p99 max kernel".split(),
                          "2 50.0 us 52.6 25.0 us 20.0 us 30.0 us 30.0 us saxpy".split()])
        self.assertNotIn("\n", kernels.splitlines()[3].replace('odd "name"?', ""))
        self.assertEqual([line.split() for line in streams.splitlines()][:2],
                         ["works total % mean p99 max stream".split(),
                          "2 50.0 us 40.3 25.0 us 30.0 us 30.0 us GPU 0 stream 13".split()])
        self.assertTrue(streams.splitlines()[4].endswith("GPU 1 stream 7 of context 3"))
        self.assertEqual(ranges.splitlines()[1].split()[-1], "step")
        self.assertIn("the GPU was idle, and meanwhile", idle)
        self.assertEqual(copies.splitlines()[1].split(),
                         "1 25.0 us 1.05 MB 41.94 25.0 us 25.0 us host to device".split())
        self.assertEqual([line.split()[0] + " " + line.split()[-1]
                          for line in waits.splitlines()[1:]],
                         ["3 cuLaunchKernelEx", "1 cuMemcpyHtoD_v2"])

    def test_json(self):
        d = self.summary(self.write(gpu_sample().data))
        self.assertEqual(d["files"][0]["gpus"], [
            {"device": 0, "busy_ns": 76000, "kernels": 4, "copies": 1, "fills": 1, "others": 0},
            {"device": 1, "busy_ns": 3000, "kernels": 0, "copies": 1, "fills": 0, "others": 2}])
        saxpy = d["kernels"][0]
        self.assertEqual((saxpy["count"], saxpy["min_ns"], saxpy["max_ns"]), (2, 20000, 30000))
        self.assertEqual((d["copies"][0]["bytes"], d["copies"][0]["gb_per_s"]), (1 << 20, 41.943))
        # A graph's kernels count once, from the launch to the first of them.
        launches = d["waits"][0]
        self.assertEqual((launches["count"], launches["min_ns"], launches["max_ns"]),
                         (3, 9000, 34000))

    def test_idle_time_is_explained(self):
        d = self.summary(self.write(gpu_sample().data))
        # From 45 to 70 us: the copy's end, no call, the launch, and the driver until the kernel;
        # and a gap of each GPU before work that no call is known for.
        self.assertEqual({line["name"]: line["total_ns"] for line in d["idle"]}, {
            "the program made no CUDA call": 11000, "cuMemcpyHtoD_v2": 5000,
            "cuLaunchKernelEx": 4000, "the next work had been asked for, but had not begun": 6000,
            "(the call that caused the next work is not in the trace)": 2000})
        spans = sorted([(20, 45), (70, 100), (90, 110), (95, 120), (100, 120), (121, 122)])
        gaps = sum(max(0, b[0] - max(e for _, e in spans[:i + 1]))
                   for i, b in enumerate(spans[1:])) + 1 + 1
        self.assertEqual(sum(line["total_ns"] for line in d["idle"]), gaps * 1000)

    def test_calls_that_overlap_count_once(self):
        f = begin()
        f.records(1, [linked(call(3, T, 5, u32(0)), 1)] +
                  [call(3, T + i % 7, 60 + i, u32(0)) for i in range(20)] +
                  [linked(call(3, T + 90, 5, u32(0)), 2)])
        f.records(2, [kernel("a", T + 10, 10, 1), kernel("b", T + 100, 10, 2)])
        f.end()
        d = self.summary(self.write(f.data))
        self.assertEqual(sum(line["total_ns"] for line in d["idle"]), 80)

    def test_ranges_nest_and_share_lines(self):
        f = begin()
        records, t = [], T
        for name in ("outer", "step", None, "step", None, None, "step", None, None):
            t += 10
            records.append(record(BEGIN, t, body=name.encode()) if name else record(FINISH, t))
            t += 10
            records.append(linked(call(3, t, 5, u32(0)), t - T))
        f.records(1, records)
        f.records(2, [kernel("k", T + 1000 + i, 1, i) for i in range(20, 200, 20)])
        f.end()
        d = self.summary(self.write(f.data))
        self.assertEqual({line["name"]: line["count"] for line in d["ranges"]},
                         {"outer": 3, "outer > step": 2, "step": 1})

    def test_ranges_have_their_own_names(self):
        f = begin()
        f.records(1, [record(BEGIN, T + 10, body=b'load "a\\b"\n\0c'),
                      linked(call(3, T + 20, 5, u32(0)), 7)])
        f.records(2, [kernel("k", T + 100, 1, 7)])
        f.end()
        path = self.write(f.data)
        self.assertEqual([line["name"] for line in self.summary(path)["ranges"]],
                         ['load "a\\b"??c'])
        self.assertIn(' load "a\\b"??c\n', self.run_it("summary", path)[0])

    def test_the_clock_is_named(self):
        for chain, clock, text in (("trace>watch>cpu", "executor", "the executor of the CPU GPU"),
                                   ("trace>gpu", "cupti", "CUPTI")):
            data = gpu_sample().data
            f = begin(chain=chain)
            f.records(1, [kernel("k", T, 5)])
            f.end()
            path = self.write(f.data)
            self.assertIn(f"GPU times measured by {text}\n", self.run_it("summary", path)[0])
            self.assertEqual(self.summary(path)["files"][0]["gpu_clock"], clock)
            f = begin(chain=chain)
            f.records(1, [launch(T, 5, 0)])
            f.end()
            path = self.write(f.data)
            self.assertEqual("--inject" in self.run_it("summary", path)[0], clock == "cupti")
            self.assertIsNone(self.summary(path)["files"][0]["gpu_clock"])
        self.assertIsNone(self.summary(self.write(data))["files"][0]["gpu_clock"])

    def test_names_cannot_control_a_terminal(self):
        f = begin()
        f.records(1, [record(BEGIN, T, body="r\x1b[2J\u202e".encode()),
                      linked(launch(T + 1, 5, 0), 1), record(FINISH, T + 8)])
        f.records(2, [kernel("k\x1b]0;x\x07\u009b2J\u202e", T + 10, 5, 1)])
        f.end()
        path = self.write(f.data)
        for words in (["summary"], ["summary", "--json"], ["show"], ["show", "--json"]):
            out, _ = self.run_it(*words, path)
            self.assertTrue(out and not set(out) & set("\x1b\x07\u009b\u202e"), out)

    def test_no_activity_says_nothing(self):
        f = begin()
        f.records(1, [call(3, T, 5, u32(0))])
        f.end()
        path = self.write(f.data)
        out, _ = self.run_it("summary", path)
        self.assertNotIn("GPU", out)
        d = self.summary(path)
        self.assertEqual([d["files"][0]["gpus"]] + [d[key] for key in (
            "kernels", "streams", "ranges", "copies", "idle", "waits")], [[]] * 7)

    def test_only_activity(self):
        f = begin()
        f.records(1, [kernel("k", T, 5)])
        f.end()
        out, _ = self.run_it("summary", self.write(f.data))
        self.assertIn("1 kernel\n", out)
        self.assertTrue(out.rstrip().endswith("  GPU 0 stream 7"))

    def test_busy_is_a_union(self):
        f = begin()
        f.records(1, [kernel("k", T + start, length, stream=i) for i, (start, length)
                      in enumerate([(50, 10), (0, 100), (20, 10), (100, 5), (300, 10), (305, 10),
                                    (400, 0)])])
        f.end()
        self.assertEqual(self.summary(self.write(f.data))["files"][0]["gpus"][0]["busy_ns"], 120)

    def test_activity_before_its_call_does_no_harm(self):
        f = begin()
        f.records(1, [linked(call(3, T + 100, 5, u32(0)), 1)])
        f.records(2, [kernel("k", T + 90, 50, 1)])
        f.end()
        self.assertEqual(self.summary(self.write(f.data))["waits"][0]["max_ns"], 0)

    def test_several_files_and_orders(self):
        a = self.write(gpu_sample().data)
        b = self.write(gpu_sample().data, "b.trace")
        d = self.summary(a, b)
        self.assertEqual([len(x["gpus"]) for x in d["files"]], [2, 2])
        self.assertEqual(d["kernels"][0]["count"], 4)
        d = self.summary(a, more=("--sort", "name"))
        self.assertEqual([k["name"] for k in d["kernels"]],
                         ["_Z5saxpyifPfS_", 'odd "name"?', "reduce"])

    def test_long_names_are_not_shortened(self):
        f = begin()
        name = "void cutlass::" + "Kernel<" * 50
        f.records(1, [kernel(name, T, 5)])
        f.end()
        for columns in ("80", "120", "1000"):
            out, _ = self.run_it("summary", self.write(f.data), COLUMNS=columns)
            self.assertIn(" " + name + "\n", out)


class Export(ExportCase):
    def labels(self, names, what):
        return {v["name"]: (pid, tid) for (kind, pid, tid), v in names.items() if kind == what}

    def test_tracks_and_arrows(self):
        events = self.export(gpu_sample().data)
        names = self.check(events)
        gpus = {name: pid for name, (pid, _) in self.labels(names, "process_name").items()}
        self.assertEqual(sorted(gpus), ["./saxpy 1024", "GPU 0", "GPU 1",
                                        "Streams (host issue time)"])
        tracks = {(gpu, v["name"]) for gpu, pid in gpus.items() if gpu.startswith("GPU")
                  for (kind, p, _), v in names.items() if kind == "thread_name" and p == pid}
        self.assertEqual(tracks, {("GPU 0", "stream 7"), ("GPU 0", "stream 13"),
                                  ("GPU 0", "stream 14"), ("GPU 0", "stream 14 #2"),
                                  ("GPU 1", "stream 7"), ("GPU 1", "stream 7 of context 3")})
        # The thread that delivered the records has no track of its own.
        self.assertNotIn("cupti 4250", self.labels(names, "thread_name"))
        slices = [e for e in events if e["ph"] == "X"]
        saxpy = next(e for e in slices if e["name"] == "saxpy")
        self.assertEqual((saxpy["cat"], saxpy["ts"], saxpy["dur"]), ("kernel", 70, 30))
        self.assertEqual((saxpy["args"]["grid"], saxpy["args"]["block"]), ([256, 1, 1],
                                                                         [128, 1, 1]))
        self.assertIn("copy host to device", [e["name"] for e in slices])

    def test_arrows_lead_from_the_call(self):
        events = self.export(gpu_sample().data)
        flows = {}
        for e in events:
            if e["ph"] in "sf" and e["cat"] == "gpu":
                flows.setdefault(e["id"], []).append(e)
        ends = sorted((first["tid"], round(first["ts"]), round(last["ts"]))
                      for first, last in flows.values())
        self.assertEqual(ends, [(4242, 10, 20), (4242, 61, 70), (4242, 66, 100), (4242, 71, 90),
                                (4242, 71, 95), (4242, 71, 121)])
        # A call whose work is shown on the GPU is not also shown as issued.
        issued = [e["name"] for e in events if e["ph"] == "X" and e["pid"] == 10004242]
        self.assertEqual(issued, ["cuStreamQuery", "cuLaunchKernelEx"])

    def test_arrows_do_not_go_back(self):
        f = begin()
        f.records(1, [linked(call(3, T + 100, 50, u32(0)), n) for n in (1, 2, 3)])
        f.records(2, [kernel("across", T + 90, 50, 1), kernel("before", T + 10, 20, 2),
                      kernel("orphan", T + 300, 20, 99)])
        f.end()
        events = self.export(f.data)
        self.assertEqual(sum(e["ph"] == "s" for e in events), 1)
        flow = {e["ph"]: e["ts"] for e in events if e["ph"] in "sf"}
        self.assertEqual(flow["s"], flow["f"])

    def test_overlapping_work_of_a_stream_gets_a_second_track(self):
        f = begin()
        f.records(1, [kernel(f"k{i}", T + i * 10, 45) for i in range(100)])
        f.end()
        self.check(self.export(f.data))

    def test_every_gpu_has_its_tracks(self):
        f = begin()
        f.records(1, [kernel("k", T + i, 1, device=i * 0x10000001 % (1 << 32), context=0xFFFFFFFF,
                             stream=0xFFFFFFFF) for i in range(50)])
        f.end()
        names = self.check(self.export(f.data))
        self.assertEqual(len(self.labels(names, "process_name")), 52)


class Damage(Case):
    def test_damaged_bodies_do_no_harm(self):
        """Random bodies with right checksums: every command prints something and ends."""
        chance = random.Random(5)
        payloads = [kernel("name", T + 10, 20, 3), copy(T + 40, 10, 64, HOST, DEVICE, 3),
                    linked(launch(T, 5, 0x10), 3), linked(call(3, T, 5, u32(0)), 4)]
        for _ in range(25):
            f = TraceFile()
            f.block(SCHEMA, SCHEMA_TEXT)
            data = bytearray(b"".join(payloads * 3))
            for _ in range(chance.randrange(1, 12)):
                data[chance.randrange(len(data))] = chance.choice((0, 1, 7, 0x7F, 0x80, 0xFF))
            f.block(RECORDS, bytes(data), 9)
            path = self.write(f.data + b"")
            for words in (["show"], ["show", "--json"], ["summary"], ["summary", "--json"],
                          ["export", "--chrome", "-o", "-"]):
                out, _ = self.run_any(*words, path)
                if "--json" in words:
                    for line in out.split("\n") if words[0] == "show" else [out]:
                        json.loads(line or "{}")
                elif words[0] == "export":
                    json.loads(out)

    def test_times_that_overflow_do_no_harm(self):
        f = begin()
        f.records(1, [kernel("k", (1 << 64) - 5, 100), kernel("k", 5, (1 << 64) - 1),
                      copy(7, (1 << 64) - 1, (1 << 64) - 1, 200, 201),
                      copy(7, (1 << 64) - 9, (1 << 64) - 1, 200, 201)])
        f.end()
        path = self.write(f.data)
        for words in (["show"], ["summary"], ["summary", "--json"], ["export", "--chrome"]):
            self.run_it(*words, path)

    def test_old_files_are_read(self):
        for minor in (0, 1):
            f = TraceFile(minor=minor)
            f.block(SCHEMA, SCHEMA_TEXT)
            f.records(1, [call(3, T, 5, u32(0) + u64(77))])
            f.end()
            self.assertTrue(self.lines(self.write(f.data))[0].endswith("= CUDA_SUCCESS"))


if __name__ == "__main__":
    unittest.main()
