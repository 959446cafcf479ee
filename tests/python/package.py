#!/usr/bin/env python3
"""What a program asks of heddle from Python: devices, counters, faults, traces, memory.

    HEDDLE_PREFIX=build/dev PYTHONPATH=python HED_HEADER=include/heddle.h package.py [TEST...]
"""

import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from programs import HEDDLE, PATIENCE, Programs, main


class Package(Programs):
    def test_devices_are_those_of_the_command(self):
        self.program("""
            import json, subprocess
            there = heddle.devices("cpu:h100x2,t4")
            assert [d.compute_capability for d in there] == [(9, 0), (9, 0), (7, 5)], there
            assert [d.index for d in there] == [0, 1, 2] and len({d.uuid for d in there}) == 3
            assert there[2].name == "Tesla T4" and there[2].memory > 14 << 30
            heddle.use("cpu:l4")
            [device] = heddle.devices()
            assert "L4" in device.name
            # Nobody has initialised CUDA here.
            count = ctypes.c_int()
            assert ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count)) == 3
            kind, text = error(heddle.devices, "cpu:l5")
            assert kind == "SettingError" and "no device 'l5'; choose from" in text, text
        """)

    def test_everything_needs_use(self):
        self.program("""
            for call in (heddle.stats, heddle.chain, heddle.problems, heddle.memory,
                         lambda: heddle.trace("t.hed"), lambda: heddle.fail("cuInit"),
                         lambda: heddle.snapshot("s.snap")):
                kind, text = error(call)
                assert kind == "NotInUseError" and "call heddle.use() first" in text, text
            assert issubclass(heddle.SettingError, (heddle.Error, ValueError))
            assert "stats" in dir(heddle)
            try:
                heddle.nothing
            except AttributeError as reason:
                assert "no attribute 'nothing'" in str(reason)
        """)

    def test_counters_count(self):
        self.program("""
            heddle.use("cpu:a100")
            assert heddle.chain() == ["trace", "fault", "watch", "cpu"]
            assert heddle.stats().launches == 0
            library = cuda()
            r, address = allocate(library, 1000)
            assert r == 0 and launch(library, b"fine") == 0
            assert library.cuCtxSynchronize() == 0
            s = heddle.stats()
            assert s.launches == 1 and s.grids_interpreted + s.grids_compiled == 1, s
            assert s.memory_bytes == s.memory_peak == 1000 and s.live_allocations == 1, s
            [block] = heddle.memory()
            assert (block.address, block.bytes, block.serial) == (address.value, 1000, 1), block
            assert block.library, "who has asked for it?"
            assert heddle.memory(after=1) == []
            assert library.cuMemFree_v2(address) == 0
            s = heddle.stats()
            assert (s.memory_bytes, s.memory_peak, s.allocations) == (0, 1000, 1), s
            assert s.problems == 0 and heddle.problems() == []
        """)

    def test_problems_tell_what_went_wrong(self):
        self.program("""
            heddle.use("cpu:a100")
            library = cuda()
            assert launch(library, b"bad") == 0
            assert library.cuCtxSynchronize() == 700
            assert library.cuCtxSynchronize() == 700
            s = heddle.stats()
            assert s.context_errors == s.problems == 1 and s.refusals == 0, s
            [text] = heddle.problems()
            assert "illegal address 0x10: kernel bad" in text and "ILLEGAL_ADDRESS" in text, text
            assert heddle.problems(after=1) == []
        """)

    def test_calls_fail_on_purpose(self):
        self.program("""
            heddle.use("cpu:a100")
            library = cuda()
            results = lambda n: [allocate(library)[0] for _ in range(n)]
            with heddle.fail("cuMemAlloc", after=3) as failure:
                assert results(6) == [0, 0, 0, 2, 0, 0]
                assert failure.count == 1 and "cuMemAlloc:4-4" in repr(failure)
            assert failure.count == 1 and results(6) == [0] * 6
            with heddle.fail("cuMem*", times=None, error=1), heddle.fail("cuCtxS*", error=999):
                assert results(3) == [1, 1, 1] and library.cuCtxSynchronize() == 999
            failure = heddle.fail("cuMemAlloc_v2", after=1, times=2, error="UNKNOWN")
            assert results(4) == [0, 999, 999, 0]
            failure.remove()
            failure.remove()
            assert failure.count == 2
            try:
                with heddle.fail("cuMemAlloc", times=None):
                    raise KeyError
            except KeyError:
                assert results(1) == [0]
            assert heddle.stats().faults_injected == 1 + 3 + 1 + 2
            assert heddle.stats().problems == 0
        """)

    def test_lists_of_memory_have_no_end(self):
        self.program("""
            import heddle._api
            heddle._api.MEMORY_PART = 10
            heddle.use("cpu:a100")
            library = cuda()
            addresses = [allocate(library, 16)[1].value for _ in range(35)]
            assert [block.address for block in heddle.memory()] == addresses
            assert [block.address for block in heddle.memory(after=20)] == addresses[20:]
        """)

    def test_wrong_failures_are_refused(self):
        self.program("""
            heddle.use("cpu:a100")
            cuda()
            for arguments, says in (
                    ((("cuMemAlok",), {}), "there is no call 'cuMemAlok'"),
                    ((("cudaMalloc",), {}), "of the CUDA runtime"),
                    ((("cuInit:1:2",), {}), "is not the name of a call"),
                    (((3,), {}), "is not the name of a call"),
                    ((("",), {}), "there is no call ''"),
                    ((("cuInit",), {"after": -1}), "after is -1"),
                    ((("cuInit",), {"after": True}), "after is True"),
                    ((("cuInit",), {"times": 0}), "times is 0"),
                    ((("cuInit",), {"error": "NOPE"}), "'CUDA_ERROR_NOPE' is not the name"),
                    ((("cuInit",), {"error": 0}), "'0' is not the name or number"),
                    ((("nvmlInit_v2",), {"error": 4711}), "'4711' is not")):
                kind, text = error(heddle.fail, *arguments[0], **arguments[1])
                assert kind == "SettingError" and says in text, text
            if os.fork() == 0:
                # Not a wrong setting: this process cannot have a driver.
                kind, text = error(heddle.fail, "cuInit")
                os._exit(0 if kind == "Error" and "was forked from" in text else 1)
            assert os.wait()[1] == 0
            rules = [heddle.fail("cuInit") for _ in range(64)]
            kind, text = error(heddle.fail, "cuInit")
            assert "more than 64 rules" in text, text
            for rule in rules:
                rule.remove()
            heddle.fail("cuInit")
        """)

    def test_traces_begin_and_end(self):
        out = self.program("""
            heddle.use("cpu:a100")
            library = cuda()
            for size in (10, 20):
                with heddle.trace("t.hed") as trace:
                    allocate(library, size)
                    assert "already" in error(heddle.trace("u.hed").start)[1]
                allocate(library, 30)
            assert trace.path == os.path.abspath("t.hed")
            assert "cuMemAlloc_v2" in trace.summary() and "records   1:" in trace.summary()
            assert "is not being written" in error(trace.stop)[1]
            open("letter", "w").write("dear reader")
            assert "is not a trace" in error(heddle.trace("letter").start)[1]
            assert "No such file" in error(heddle.trace("no/where.hed").start)[1]
            assert "No such file" in error(heddle.trace("missing.hed").summary)[1]
            assert heddle.stats().trace_records == 2
            print(trace.path)
        """)
        shown = subprocess.run([HEDDLE, "trace", "show", out.strip()], capture_output=True,
                               text=True, check=True, env=self.environment(), timeout=PATIENCE)
        self.assertEqual(re.findall(r"bytesize=(\d+)", shown.stdout), ["20"])

    def test_a_trace_of_the_whole_program_can_be_ended(self):
        self.program("""
            heddle.use("cpu:a100", trace="whole.hed")
            library = cuda()
            assert "already" in error(heddle.trace("t.hed").start)[1]
            heddle.trace("whole.hed").stop()
            with heddle.trace("t.hed") as trace:
                allocate(library)
            assert "cuInit" in heddle.trace("whole.hed").summary()
            assert "cuInit" not in trace.summary()
        """)

    def test_an_older_trace_of_the_program_is_replaced(self):
        text = '''
            heddle.use("cpu:a100", trace="t.hed")
            # Children have files of their own, also those that call use() themselves.
            child = os.fork()
            if child == 0:
                os._exit(allocate(cuda(), 77)[0])
            assert os.waitpid(child, 0)[1] == 0
            import subprocess
            ask = ("import heddle, os; heddle.use('cpu:a100', trace='t.hed'); "
                   "heddle.trace(f't.{os.getpid()}.hed').stop()")
            subprocess.run([sys.executable, "-c", ask], check=True)
            assert allocate(cuda(), int(sys.argv[1]))[0] == 0
        '''
        for size in ("1000", "2000"):
            self.program(text, size)
            shown = subprocess.run([HEDDLE, "trace", "show", os.path.join(self.folder, "t.hed")],
                                   capture_output=True, text=True, check=True, timeout=PATIENCE,
                                   env=self.environment())
            self.assertEqual(re.findall(r"bytesize=(\d+)", shown.stdout), [size])

    def test_a_trace_that_another_process_writes_is_left_alone(self):
        self.program('''
            import subprocess
            heddle.use("cpu:a100")
            with heddle.trace("t.hed"):
                ask = ("import heddle\\nheddle.use('cpu:a100')\\n"
                       "try: heddle.trace('t.hed').start()\\n"
                       "except heddle.Error as reason: print(reason)")
                done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
                assert "is being written by another process" in done.stdout, done
            assert "records" in heddle.trace("t.hed").summary()
        ''')

    def test_a_trace_has_the_kernels_of_its_block(self):
        self.program("""
            heddle.use("cpu:a100")
            library = cuda()
            assert launch(library, b"fine") == 0
            with heddle.trace("t.hed") as trace:
                assert launch(library, b"fine") == 0 and launch(library, b"fine") == 0
            assert launch(library, b"fine") == 0
            print(trace.path)
        """)
        shown = subprocess.run([HEDDLE, "trace", "show", os.path.join(self.folder, "t.hed")],
                               capture_output=True, text=True, check=True, timeout=PATIENCE,
                               env=self.environment())
        self.assertEqual(len(re.findall(r"kernel fine\b", shown.stdout)), 2, shown.stdout)

    def test_a_snapshot_needs_a_server(self):
        self.program("""
            heddle.use("cpu:a100")
            kind, text = error(heddle.snapshot, "s.snap")
            assert "only programs that use a GPU through a server" in text, text
            open("there.snap", "w").close()
            assert "exists already" in error(heddle.snapshot, "there.snap")[1]
            assert "quotes" in error(heddle.snapshot, "it's.snap")[1]
            assert os.listdir(os.environ["TMPDIR"]) == os.listdir(".")
            assert not [name for name in os.listdir(".") if name.startswith("heddle-snapshot")]
        """)

    def test_a_saver_that_is_gone_is_not_waited_for(self):
        command = os.path.join(self.folder, "killed")
        Path(command).write_text("#!/bin/sh\nkill -9 $PPID\n", encoding="utf-8")
        os.chmod(command, 0o755)
        folder = os.path.join(self.folder, "bin")
        os.mkdir(folder)
        for name in ("sh", "rm"):
            os.symlink(shutil.which(name), os.path.join(folder, name))
        self.program('''
            heddle.use("cpu:a100")
            from heddle import _process
            _process.current().install = _process.current().install._replace(command=sys.argv[1])
            assert "ended with a signal" in error(heddle.snapshot, "s.snap")[1]
            os.environ["PATH"] = sys.argv[2]
            assert "there is no command setsid" in error(heddle.snapshot, "s.snap")[1]
        ''', command, folder)

    @unittest.skipUnless("HED_SERVES" in os.environ, "this build has no servers")
    def test_a_snapshot_goes_on_behind_the_call(self):
        if not shutil.which("criu") or os.geteuid() != 0:
            self.skipTest("criu is not installed, or this is not root")
        out = self.program("""
            heddle.use()
            library = cuda()
            address = allocate(library)[1]
            assert library.cuMemsetD8_v2(address, 7, ctypes.c_size_t(4096)) == 0
            print("before", flush=True)
            heddle.snapshot("it has blanks.snap")
            byte = ctypes.c_ubyte()
            assert library.cuMemcpyDtoH_v2(ctypes.byref(byte), address, ctypes.c_size_t(1)) == 0
            print("after", byte.value, flush=True)
        """, before=[HEDDLE, "run", "--gpu", "cpu:a100", "--ckpt", "on", "--"])
        self.assertEqual(out, "before\nafter 7\n")
        done = subprocess.run([HEDDLE, "snap", "restore", "it has blanks.snap", "--gpu", "auto"],
                              cwd=self.folder, env=self.environment(), capture_output=True,
                              text=True, check=False, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, "after 7\n"), done.stderr)

    def test_the_module_is_the_command(self):
        ours = subprocess.run([sys.executable, "-m", "heddle", "version"], capture_output=True,
                              text=True, check=True, env=self.environment(), timeout=PATIENCE)
        command = subprocess.run([HEDDLE, "version"], capture_output=True, text=True, check=True,
                                 env=self.environment(), timeout=PATIENCE)
        self.assertEqual(ours.stdout, command.stdout)
        number = subprocess.run([sys.executable, "-c", "import heddle; print(heddle.__version__)"],
                                capture_output=True, text=True, check=True,
                                env=self.environment(), timeout=PATIENCE)
        self.assertEqual(number.stdout.split(), command.stdout.split()[1:2])
        wrong = subprocess.run([sys.executable, "-m", "heddle", "rnu"], capture_output=True,
                               text=True, check=False, env=self.environment(), timeout=PATIENCE)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("did you mean 'run'", wrong.stderr)

    def test_importing_costs_nothing(self):
        loaded = subprocess.run(
            [sys.executable, "-S", "-c", "import sys; before = set(sys.modules); import heddle; "
             "print(*sorted(set(sys.modules) - before))"], capture_output=True, text=True,
            check=True, env=self.environment(), timeout=PATIENCE).stdout.split()
        self.assertNotIn("ctypes", loaded)
        self.assertNotIn("subprocess", loaded)
        self.assertIn("heddle._errors", loaded)
        self.assertNotIn("heddle._process", loaded)

    def test_structs_are_those_of_the_header(self):
        header = Path(os.environ["HED_HEADER"]).read_text(encoding="utf-8")
        from heddle import _native
        for name, mirror in (("heddle_counters", _native.Counters),
                             ("heddle_memory", _native.MemoryItem)):
            body = re.search(r"struct " + name + r" \{(.*?)\n\};", header, re.DOTALL)[1]
            body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL)
            fields = re.findall(r"(size_t|uint64_t|char) (\w+)(?:\[(\d+)\])?;", body)
            self.assertEqual([f[1] for f in fields], [f[0] for f in mirror._fields_])
            size = sum(int(count) if count else 8 for _, _, count in fields)
            import ctypes
            self.assertEqual(size, ctypes.sizeof(mirror))
        functions = set(re.findall(r"HEDDLE_FUNCTION [\w \*]*?(heddle_\w+)\(", header))
        self.assertLessEqual(set(_native.FUNCTIONS), functions)


if __name__ == "__main__":
    main()
