#!/usr/bin/env python3
"""`heddle trace` from the outside: what it prints, how it reports damage, its exit codes, and
whether the Chrome events that it exports are consistent.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch trace_files.py [Case.test...]
"""

import itertools
import json
import os
import pty
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from harness.patience import PATIENCE, until  # noqa: E402
from harness.trace_file import (  # noqa: E402
    BEGIN, FINISH, INFO, MARK, SCHEMA, UNTIMED, TraceFile, begin, bulk, call, gpu_sample, info,
    launch, record, repeated, sample, u8, u32, u64)
from trace_case import HEDDLE, Case, ExportCase  # noqa: E402


def counted():
    """12 calls in 4 records. Two are timed, one of them with a coarse clock; one has failed."""
    t = 1_000_000_000
    f = begin()
    f.records(4242, [
        repeated(call(3, t, 100, u32(0)), 8),
        repeated(call(3, t + 1000, 0, u32(0), flags=UNTIMED), 2),
        call(3, t + 2000, 0, u32(0), result=2, flags=UNTIMED),
        repeated(call(3, t + 3000, 0, u32(0)), 1),
    ])
    f.end()
    return f


class Show(Case):
    def test_everything_is_in_order_of_time(self):
        out, err = self.run_it("show", self.write(sample().data))
        lines = out.splitlines()
        self.assertEqual(err, "")
        self.assertEqual(lines[0], "# ./saxpy 1024 (pid 4242 on box), began 2023-11-14 22:13:20 "
                                   "+0000, chain trace>null")
        self.assertEqual(len(lines), 16)
        times = [float(line.split()[0]) for line in lines[1:]]
        self.assertEqual(times, sorted(times))
        self.assertEqual(lines[3], "    0.000003  4242 main      120 us  cuMemAlloc_v2"
                                   "(bytesize=1048576) -> dptr=0x302000000 = CUDA_SUCCESS")
        self.assertIn("= CUDA_ERROR_OUT_OF_MEMORY", lines[4])
        self.assertIn('range begins: "setup"', lines[2])
        self.assertIn("cuLaunchKernelEx_ptsz(", out)
        self.assertNotIn("\033", out)

    def test_files_of_version_1_are_read_alike(self):
        for make in (sample, gpu_sample):
            old = self.write(make(major=1).data, "old.trace")
            new = self.write(make(major=2).data, "new.trace")
            self.assertGreater(os.path.getsize(old), os.path.getsize(new))
            self.assertEqual(self.run_it("show", old), self.run_it("show", new))
            self.assertEqual(self.run_it("show", "--json", old), self.run_it("show", "--json", new))
            tables = [self.run_it("summary", path)[0].split("\n\n")[1:] for path in (old, new)]
            self.assertEqual(*tables)

    def test_filters_select_lines(self):
        path = self.write(sample().data)
        self.assertEqual(len(self.lines(path, "--errors")), 1)
        self.assertEqual(len(self.lines("--call", "cuMem*", path)), 4)
        self.assertEqual(len(self.lines("--call=cuLaunchKernelEx", path)), 2)
        self.assertEqual(len(self.lines("--call", "*_ptsz", path)), 1)
        self.assertEqual(len(self.lines(path, "--thread", "4243")), 5)
        self.assertEqual(len(self.lines(path, "--thread", "main")), 10)
        self.assertEqual(len(self.lines(path, "--limit", "3")), 3)
        self.assertEqual(len(self.lines(path, "--limit", "0")), 0)
        self.assertEqual(len(self.lines(path, "--from", "0.00015", "--to", "0.00021")), 3)
        self.assertIn("cuInit = CUDA_SUCCESS", self.lines(path, "--no-args")[0])

    def test_the_order_of_the_file_can_be_kept(self):
        lines = self.lines(self.write(sample().data), "--file-order")
        self.assertEqual([line.split()[1] for line in lines], ["4242"] * 10 + ["4243"] * 5)

    def test_json(self):
        out, _ = self.run_it("show", "--json", self.write(sample().data))
        head, *records = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(head["program"], "./saxpy 1024")
        self.assertEqual(len(records), 15)
        self.assertEqual(records[2], {
            "kind": "call", "time_ns": 3000, "thread": 4242, "thread_name": "main",
            "duration_ns": 120000, "api": "cuda", "name": "cuMemAlloc_v2",
            "args": {"in": {"bytesize": 1048576}, "out": {"dptr": "0x302000000"}},
            "result": 0, "result_name": "CUDA_SUCCESS"})
        kinds = {r["kind"] for r in records}
        self.assertEqual(kinds, {"call", "begin", "end", "mark", "client", "dropped"})
        self.assertTrue(all("result_name" in r for r in records if r["kind"] == "call"))

    def test_counted_calls(self):
        path = self.write(counted().data)
        lines = self.lines(path)
        self.assertIn("100 ns  cuInit(Flags=0) = CUDA_SUCCESS (8 times)", lines[0])
        self.assertIn(" -  cuInit(Flags=0) = CUDA_SUCCESS (2 times)", lines[1])
        self.assertTrue(lines[3].endswith(" 0 ns  cuInit(Flags=0) = CUDA_SUCCESS"), lines[3])
        out, _ = self.run_it("show", "--json", path)
        _, *records = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([r.get("calls", 1) for r in records], [8, 2, 1, 1])
        self.assertEqual([r.get("timed", True) for r in records], [True, False, False, True])

    def test_ends_of_ranges_without_a_beginning_are_shown(self):
        f = begin()
        f.records(1, [record(BEGIN, 10, body=b"a"), record(FINISH, 20), record(FINISH, 30)])
        f.records(2, [record(FINISH, 15), record(BEGIN, 25), record(FINISH, 35)])
        f.end()
        path = self.write(f.data)
        wanted = ["begins", "beginning", "ends", "begins", "beginning", "ends"]
        words = {"begins": 'range begins: "', "ends": "range ends",
                 "beginning": "range ends without a beginning"}
        for more in ([], ["--file-order"]):
            lines = self.lines(path, *more)
            if more:
                wanted = ["begins", "ends", "beginning", "beginning", "begins", "ends"]
            for line, word in zip(lines, wanted, strict=True):
                self.assertTrue(line.rstrip('a"').endswith(words[word].rstrip('"')), line)
        # Lines that are not shown still count.
        self.assertTrue(self.lines(path, "--thread", "1", "--from", "0.00000001")[0]
                        .endswith("range ends"))
        out, _ = self.run_it("show", "--json", path)
        ends = [json.loads(line) for line in out.splitlines() if '"end"' in line]
        self.assertEqual([e.get("begun") for e in ends], [False, None, False, None])

    def test_control_characters_do_not_reach_the_terminal(self):
        f = TraceFile()
        f.block(INFO, info(pid=1, cmdline="a\033[2Jb", host="h\033[2J", chain="c\x07",
                           clock_wall=1))
        f.end()
        path = self.write(f.data, "a\033[2J\n.hed")
        for words in (["show"], ["summary"], ["export", "--chrome"]):
            out, err = self.run_it(*words, path)
            self.assertNotRegex(out + err, "[\033\x07]")
        _, err = self.run_it("show", self.path("no\033[2J\nsuch"), code=1)
        self.assertIn("no?[2J?such: No such file", err)
        self.assertEqual(err.count("\n"), 1)

    def test_colour_on_a_terminal_only(self):
        path = self.write(sample().data)
        for no_color, wanted in (("", True), ("1", False)):
            try:
                parent, child = pty.openpty()
            except OSError as e:
                self.skipTest(f"no terminal to be had: {e}")
            env = dict(os.environ, TERM="xterm", NO_COLOR=no_color)
            with subprocess.Popen([HEDDLE, "trace", "show", path], stdout=child, env=env) as p:
                os.close(child)
                out = b""
                try:
                    while piece := os.read(parent, 65536):
                        out += piece
                except OSError:
                    pass  # how Linux says that the other end is closed
            os.close(parent)
            self.assertEqual(p.returncode, 0)
            self.assertEqual(b"\033[1;31m" in out, wanted)

    def test_closed_pipe_is_quiet(self):
        f = begin()
        f.records(1, [call(3, 10, 1, u32(0))] * 20000)
        path = self.write(f.data)
        p = subprocess.run(f"'{HEDDLE}' trace show '{path}' | head -n 2", shell=True,
                           capture_output=True, text=True)
        self.assertEqual(p.stderr, "")
        self.assertEqual(len(p.stdout.splitlines()), 2)


class Damage(Case):
    def test_a_missing_end_is_no_failure(self):
        data = sample().data
        out, err = self.run_it("show", self.write(data[:-20]))
        self.assertEqual(len(out.splitlines()), 16)
        self.assertEqual(len(err.splitlines()), 1)
        self.assertIn("last block is incomplete", err)
        self.assertIn("or the disk was full", err)
        out, err = self.run_it("show", self.write(data[:-48]))
        self.assertIn("was not closed", err)
        self.assertIn("or the disk was full", err)

    def test_a_file_that_shrinks_is_told_and_nothing_is_left(self):
        f = begin()
        f.records(1, [call(3, i * 10, 1, u32(0)) for i in range(100_000)])
        path = self.write(f.data)
        for words in (["show", path], ["export", "--chrome", path, "-o", "-"]):
            self.write(f.data)
            with subprocess.Popen([HEDDLE, "trace", *words], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, bufsize=0) as p:
                p.stdout.read(1)  # the file is open, and the pipe cannot hold all of the output
                os.truncate(path, 4096)
                out, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 1, err)
            self.assertTrue(out)
            self.assertIn(b"a.trace: the file became shorter while it was read", err)
            self.assertEqual(err.count(b"\n"), 1)
        self.assertEqual(os.listdir(self.dir), ["a.trace"])

    def test_traces_of_other_processes_are_named(self):
        for name in ("t.17.hed", "t.18-2.hed", "t.x.hed", "t.19.hed.json", "tt.20.hed", "t..hed"):
            self.write(b"", name)
        _, err = self.run_it("show", self.path("t.hed"), code=1)
        self.assertIn("t.hed: No such file or directory; its child processes wrote ", err)
        found = err.split(" wrote ")[1].strip().split(", ")
        self.assertEqual(sorted(found), [self.path("t.17.hed"), self.path("t.18-2.hed")])
        for i in range(30, 40):
            self.write(b"", f"t.{i}.hed")
        _, err = self.run_it("summary", self.path("t.hed"), code=1)
        self.assertIn(" and 7 more\n", err)
        self.assertEqual(self.run_it("show", self.path("u.hed"), code=1)[1].count(";"), 0)

    def test_damage_is_a_failure_and_the_rest_is_shown(self):
        data = bytearray(sample().data)
        data[data.rindex(b"never ended")] ^= 1
        path = self.write(bytes(data))
        out, err = self.run_it("show", path, code=1)
        self.assertEqual(len(out.splitlines()), 11)
        self.assertRegex(err,
                         r"^heddle: .*a.trace: the file is damaged: 1 block \(\d+ bytes\) lost\n$")
        out, _ = self.run_it("summary", path, code=1)
        self.assertIn("damage    1 block", out)
        self.run_it("export", "--chrome", path, "-o", self.path("a.json"), code=1)
        self.assertTrue(json.loads(Path(self.path("a.json")).read_text())["traceEvents"])

    def test_files_that_are_no_traces_are_refused(self):
        for data, message in ((b"", "the file is empty"), (b"hello" * 10, "not a heddle trace"),
                              (TraceFile(major=3).data, "format version 3")):
            for words in (["show"], ["summary"], ["export", "--chrome"]):
                _, err = self.run_it(*words, self.write(data), code=1)
                self.assertIn(message, err)
                self.assertEqual(len(err.splitlines()), 1)
        self.run_it("show", self.path("missing"), code=1)
        self.run_it("show", self.dir, code=1)
        self.run_it("show", self.write(TraceFile().data), code=1)
        self.assertEqual([n for n in os.listdir(self.dir) if n.endswith(".json")], [])


class Summary(Case):
    def test_table(self):
        out, _ = self.run_it("summary", self.write(sample().data))
        head, table = out.split("\n\n")
        self.assertIn("program   ./saxpy 1024 (pid 4242)", head)
        self.assertIn("15: 9 calls, 1 failed; 3 more were dropped", head)
        lines = table.splitlines()
        self.assertEqual(lines[0].split(), ["calls", "total", "%", "mean", "p50", "p99", "max",
                                            "errors", "call"])
        self.assertEqual(lines[1].split(), "2 129 us 68.5 64.5 us 9.00 us 120 us 120 us 1 "
                                           "cuMemAlloc_v2".split())

    def test_counted_calls(self):
        path = self.write(counted().data)
        out, _ = self.run_it("summary", path)
        self.assertIn("4: 12 calls, 1 failed", out)
        self.assertEqual(out.splitlines()[-1].split(), "12 ~600 ns 100.0 50 ns 0 ns 100 ns 100 ns "
                                                       "1 cuInit".split())
        out, _ = self.run_it("summary", path, "--json")
        line = json.loads(out)["calls"][0]
        self.assertEqual([line[k] for k in ("count", "timed", "total_ns", "mean_ns", "errors")],
                         [12, 2, 600, 50, 1])

    def test_counts_that_make_no_sense(self):
        f = begin()
        f.records(1, [repeated(call(3, 1, (1 << 64) - 1, u32(0)), n)
                      for n in (0, 1, 0x7fffffff, 0x7fffffff)] +
                     [call(3, 1, 5, b"no", flags=8)])
        f.end()
        out, _ = self.run_it("summary", self.write(f.data), "--json")
        line = json.loads(out)["calls"][0]
        self.assertEqual((line["count"], line["timed"]), (3 + 2 * 0x7fffffff, 5))
        self.assertEqual(line["total_ns"], (1 << 64) - 1)

    def test_sort(self):
        path = self.write(sample().data)
        for key, first in (("total", "cuMemAlloc_v2"), ("name", "cuInit"),
                           ("errors", "cuMemAlloc_v2"), ("count", "cuLaunchKernelEx")):
            out, _ = self.run_it("summary", path, "--sort", key, "--json")
            self.assertEqual(json.loads(out)["calls"][0]["name"], first)
        self.run_it("summary", path, "--sort", "colour", code=2)

    def test_narrow_terminals_lose_columns(self):
        path = self.write(sample().data)
        names = [c["name"] for c in json.loads(self.run_it("summary", path, "--json")[0])["calls"]]
        for columns in (80, 100, 132, 200):
            for more in ([], ["--by", "thread"]):
                out, _ = self.run_it("summary", path, *more, COLUMNS=str(columns))
                table = out.split("\n\n")[1].splitlines()
                self.assertLessEqual(max(map(len, table)), columns)
                for line in table[1:]:
                    self.assertIn(line.split()[-1], names)

    def test_names_are_never_shortened(self):
        f = TraceFile()
        names = ["cuLaunchKernel", "cuLaunchKernelEx", "cu" + "N" * 60, "cu" + "N" * 61]
        f.block(SCHEMA, b"api cuda CUresult\n" +
                b"".join(b"call %d %s\n" % (i, n.encode()) for i, n in enumerate(names)))
        f.records(1, [call(i, i, 1) for i in range(len(names))])
        f.end()
        path = self.write(f.data)
        for columns in (40, 80, 100, 132, 200):
            for more in ([], ["--by", "thread"]):
                out, _ = self.run_it("summary", path, *more, COLUMNS=str(columns))
                table = out.split("\n\n")[1].splitlines()
                last = [line.split()[-1] for line in table[1:]]
                for name in names:
                    self.assertIn(name, last)
                if columns >= 80:
                    self.assertLessEqual(max(map(len, table)), columns)

    def test_several_files_are_counted_together(self):
        a = self.write(sample().data)
        f = begin(pid=5000)
        f.records(5000, [call(3, 1, 1000, u32(0))])
        f.end()
        out, _ = self.run_it("summary", a, self.write(f.data, "b.trace"), "--json")
        d = json.loads(out)
        self.assertEqual([x["pid"] for x in d["files"]], [4242, 5000])
        init = next(c for c in d["calls"] if c["name"] == "cuInit")
        self.assertEqual((init["count"], init["total_ns"]), (2, 1500))
        out, _ = self.run_it("summary", a, self.path("b.trace"), "--json", "--by", "thread")
        threads = [c["thread"] for c in json.loads(out)["calls"] if c["name"] == "cuInit"]
        self.assertEqual(sorted(threads), ["4242/4242", "5000/5000"])

    def test_one_bad_file_among_good_ones(self):
        out, err = self.run_it("summary", self.write(sample().data), self.path("missing"), code=1)
        self.assertIn("cuMemAlloc_v2", out)
        self.assertIn("missing", err)


class Export(ExportCase):
    def test_sample(self):
        events = self.export(sample().data)
        names = self.check(events)
        labels = sorted(v["name"] for (what, pid, _), v in names.items()
                        if what == "thread_name" and pid != 4242)
        self.assertEqual(labels, ["stream 0x0 (default)", "stream 0x2 (per-thread default of 4242)",
                                  "stream 0x5500", "stream 0x5500 #2"])
        self.assertIn("Streams (host issue time)",
                      [v["name"] for (what, *_), v in names.items() if what == "process_name"])
        slices = [e for e in events if e["ph"] == "X"]
        self.assertEqual(len(slices), 9 + 5)
        self.assertEqual(sum(e["ph"] == "s" for e in events), 5)
        failed = [e for e in slices if "error" in e["args"]]
        self.assertEqual([e["args"]["error"] for e in failed], ["CUDA_ERROR_OUT_OF_MEMORY"])
        self.assertEqual(failed[0]["cname"], "terrible")
        alloc = next(e for e in slices if e["name"] == "cuMemAlloc_v2")
        self.assertEqual(alloc["args"], {"result": "CUDA_SUCCESS", "in": {"bytesize": 1048576},
                                         "out": {"dptr": "0x302000000"}})
        self.assertEqual((alloc["ts"], alloc["dur"], alloc["cat"]), (3, 120, "memory"))
        self.assertEqual(sorted(e["name"] for e in events if e["ph"] == "i"),
                         ["3 records dropped", "client 7", "go"])

    def test_many_threads_on_one_stream(self):
        f = begin()
        for thread in range(1, 7):
            f.records(thread, [launch(10_000 * i + thread * 100, 9_000, 0x10) for i in range(20)])
        f.end()
        self.check(self.export(f.data))

    def test_ranges_that_do_not_pair(self):
        f = begin()
        f.records(1, [record(FINISH, 10), record(BEGIN, 20, body=b'a"\n\xff'), record(BEGIN, 30)])
        f.end()
        self.check(self.export(f.data) + [])

    def test_strange_text_is_still_json(self):
        f = begin()
        f.block(SCHEMA, b"api cuda CUresult\ncall 3 cuInit\n")
        f.records(1, [record(MARK, 10, body=bytes(range(256))),
                      call(31, 20, 1, u64(1) + bulk(4, bytes([1, 2, 3, 4])) + u64(4) + u8(1)),
                      call(31, 30, 1, u64(1)), call(999, 40, 1), call(3, 50, 1, api=9)])
        f.end()
        self.check(self.export(f.data))

    def test_the_output_can_be_chosen_but_not_be_the_trace(self):
        path = self.write(sample().data)
        out, _ = self.run_it("export", "--chrome", path, "-o", "-")
        self.check(json.loads(out)["traceEvents"])
        self.assertFalse(os.path.exists(path + ".json"))
        for words in (["-o", path], ["--output", os.path.join(self.dir, ".", "a.trace")]):
            _, err = self.run_it("export", path, "--chrome", *words, code=1)
            self.assertIn("is the trace itself", err)
        self.assertEqual(Path(path).read_bytes(), sample().data)
        self.run_it("export", "--chrome", path, "-o", "/dev/null")
        _, err = self.run_it("export", "--chrome", path, "-o", self.path("no/such/dir"), code=1)
        self.assertIn("No such file", err)
        if os.path.exists("/dev/full"):
            self.run_it("export", "--chrome", path, "-o", "/dev/full", code=1)
        self.assertEqual(os.listdir(self.dir), ["a.trace"])


class Signals(Case):
    def interrupt(self, act, **options):
        """Exports, and acts once the file has been begun. Returns the exit code and the files that
        are left. If the export ends before it can be stopped, it is repeated with more to do."""
        for blocks in itertools.count(20, 20):
            f = begin()
            for _ in range(blocks):
                f.records(1, [launch(i * 10, 1, 0x10) for i in range(10_000)])
            f.end()
            path = self.write(f.data)
            with subprocess.Popen([HEDDLE, "trace", "export", "--chrome", path],
                                  stderr=subprocess.DEVNULL, **options) as p:
                until(lambda: len(os.listdir(self.dir)) > 1 or p.poll() is not None)
                if p.poll() is None:
                    p.send_signal(signal.SIGSTOP)
                    os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
                if p.poll() is None:
                    act(p, path)
                    p.send_signal(signal.SIGCONT)
                    code = p.wait(PATIENCE)
                    return code, sorted(os.listdir(self.dir))
            for name in os.listdir(self.dir):
                os.unlink(os.path.join(self.dir, name))

    def test_nothing_is_left_of_an_export(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.interrupt(lambda p, _, n=number: p.send_signal(n)),
                             (-number, ["a.trace"]))

    def test_nothing_is_left_when_the_trace_shrinks(self):
        self.assertEqual(self.interrupt(lambda _, path: os.truncate(path, 4096)), (1, ["a.trace"]))

    def test_ignored_signals_stay_ignored(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.assertEqual(self.interrupt(lambda p, _: p.send_signal(signal.SIGHUP),
                                        preexec_fn=ignore), (0, ["a.trace", "a.trace.json"]))


class Words(Case):
    def test_help_on_every_level(self):
        for words in ([], ["show"], ["summary"], ["export"]):
            out, _ = self.run_it(*words, "--help")
            self.assertTrue(out.startswith("usage: heddle trace"))
            self.assertLessEqual(max(map(len, out.splitlines())), 100)

    def test_wrong_options_are_refused(self):
        path = self.write(sample().data)
        for words in ([], ["shw"], ["show"], ["show", path, path], ["show", path, "--from", "x"],
                      ["show", path, "--limit", "-1"], ["show", path, "--bogus"], ["summary"],
                      ["summary", path, "--by", "moon"], ["export", path], ["export", "--chrome"],
                      ["export", "--chrome", path, "-o"]):
            _, err = self.run_it(*words, code=2)
            self.assertTrue(err)
        self.assertIn("did you mean 'show'", self.run_it("shw", code=2)[1])


if __name__ == "__main__":
    unittest.main()
