#!/usr/bin/env python3
"""The pytest plug-in: suites that are run with it, and what becomes of their tests.

    HEDDLE_PREFIX=build/dev PYTHONPATH=python suites.py [TEST...]
"""

import os
import re
import subprocess
import textwrap
from pathlib import Path

from programs import BEGIN, PATIENCE, Programs, main, python_with

PYTHON = python_with("pytest")
HEAD = "import pytest\n" + BEGIN


class Suites(Programs):
    def pytest(self, text, *words, code=0, conftest=None, plugin=True, **more):
        """Runs a suite. Returns {test: [outcomes]} and the output."""
        Path(self.folder, "test_it.py").write_text(HEAD + textwrap.dedent(text), encoding="utf-8")
        if conftest:
            Path(self.folder, "conftest.py").write_text(textwrap.dedent(conftest), encoding="utf-8")
        command = [PYTHON, "-m", "pytest", "-rA", "--tb=short", "-p", "no:cacheprovider"]
        if plugin:
            command += ["-p", "heddle.pytest_plugin"]
        done = subprocess.run([*command, *words, "test_it.py"], cwd=self.folder,
                              env=self.environment(**more), capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, code, output)
        outcomes = {}
        for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR|XFAIL) test_it.py::(\w+)", output,
                                        re.MULTILINE):
            outcomes.setdefault(name, []).append(outcome)
        return outcomes, output

    def test_tests_run_on_heddle(self):
        outcomes, output = self.pytest("""
            def test_alloc():
                assert allocate(cuda())[0] == 0
            def test_chain():
                assert heddle.chain()[-1] == "cpu"
            def test_devices(heddle_devices):
                assert [d.name[:11] for d in heddle_devices] == ["NVIDIA H100"] * 2
        """, "--heddle", "cpu:h100x2")
        self.assertEqual(outcomes, {name: ["PASSED"] for name in
                                    ("test_alloc", "test_chain", "test_devices")})
        self.assertIn("heddle: cpu:h100x2, layers trace > fault > watch > cpu", output)

    def test_heddle_comes_before_conftest(self):
        self.pytest("""
            def test_it():
                pass
        """, "--heddle", "cpu:a100", "--heddle-set", "mem=64M", conftest="""
            import ctypes
            library = ctypes.CDLL("libcuda.so.1")
            assert library.cuInit(0) == 0
            import heddle
            assert heddle.chain() == ["trace", "fault", "watch", "quota", "cpu"]
        """)

    def test_without_the_option_nothing_happens(self):
        outcomes, output = self.pytest("""
            @pytest.mark.heddle(devices=64, nonsense=1)
            def test_it():
                assert "heddle._process" not in sys.modules
                assert "heddle._native" not in sys.modules
                assert not [name for name in os.environ if name.startswith("HEDDLE_GPU")]
                with open("/proc/self/maps") as maps:
                    assert "libcuda.so" not in maps.read()
            def test_fixture(heddle_fail):
                assert False
            def test_devices(heddle_devices):
                assert False
        """, "--strict-markers", "-W", "error")
        self.assertEqual(outcomes, {"test_it": ["PASSED"]})
        self.assertIn("2 skipped", output)
        self.assertIn("needs --heddle", output)

    def test_a_broken_context_fails_the_test_that_broke_it(self):
        outcomes, output = self.pytest("""
            def test_before():
                assert allocate(cuda())[0] == 0
            def test_bad():
                assert launch(cuda(), b"bad") == 0  # nobody waits for it
            def test_without_cuda():
                pass
            def test_after():
                assert allocate(cuda())[0] == 0
        """, "--heddle", "cpu:a100", code=1)
        self.assertEqual(outcomes, {"test_before": ["PASSED"], "test_bad": ["FAILED"],
                                    "test_without_cuda": ["PASSED"], "test_after": ["FAILED"]})
        self.assertIn("illegal address 0x10: kernel bad", output)
        self.assertIn("test_it.py::test_bad has broken the GPU's context", output)

    def test_what_heddle_refuses_fails_the_test_each_time(self):
        text = """
            def refuse():
                # A program has this function from a table of the driver's.
                library = cuda()
                state = ctypes.c_void_p()
                return library.cuCoredumpGetAttribute(999, None, None)
            def test_one():
                refuse()
            def test_two():
                refuse()
            @pytest.mark.heddle(check=False)
            def test_allowed():
                refuse()
            def test_fine():
                pass
            def test_broken_anyway():
                refuse()
                assert 1 == 2
            @pytest.fixture
            def refusing():
                refuse()
            def test_with_fixture(refusing):
                pass
            @pytest.fixture
            def late():
                yield
                refuse()
            def test_with_late_fixture(late):
                pass
            @pytest.mark.xfail
            def test_known():
                refuse()
        """
        outcomes, output = self.pytest(text, "--heddle", "cpu:a100", code=1)
        self.assertEqual(outcomes, {
            "test_one": ["FAILED"], "test_two": ["FAILED"], "test_allowed": ["PASSED"],
            "test_fine": ["PASSED"], "test_broken_anyway": ["FAILED"],
            "test_with_fixture": ["FAILED"], "test_with_late_fixture": ["PASSED", "ERROR"],
            "test_known": ["XFAIL"]}, output)
        self.assertIn("assert 1 == 2", output)
        self.assertIn("heddle: cuCoredumpGetAttribute is not supported", output)

    def test_failures_of_unittest_are_explained(self):
        outcomes, output = self.pytest('''
            import unittest
            class Case(unittest.TestCase):
                def test_own(self):
                    assert launch(cuda(), b"bad") == 0
                    self.fail("its own failure")
                def test_after(self):
                    pass
            def test_once():
                library = cuda()
                library.cuCoredumpGetAttribute(999, None, None)
        ''', "--heddle", "cpu:a100", code=1)
        self.assertEqual(output.count("FAILED test_it.py::Case::test_own"), 1, output)
        self.assertIn("its own failure", output)
        self.assertIn("illegal address 0x10: kernel bad", output)
        self.assertEqual(outcomes["test_once"], ["FAILED"])
        self.assertEqual(output.count("cuCoredumpGetAttribute is not supported"), 2, output)

    def test_problems_of_imports_are_not_the_first_tests(self):
        text = '''
            launch(cuda(), b"bad")
            def test_first():
                pass
        '''
        outcomes, output = self.pytest(text, "--heddle", "cpu:a100",
                                       "--continue-on-collection-errors", code=1)
        self.assertEqual(outcomes, {"test_first": ["PASSED"]}, output)
        self.assertIn("illegal address 0x10: kernel bad", output)
        self.assertIn("while test modules were imported", output)
        outcomes, output = self.pytest(text, "--heddle", "cpu:a100", code=2)
        self.assertEqual(outcomes, {}, output)
        self.assertIn("illegal address 0x10: kernel bad", output)

    def test_leaks_fail_if_asked_for(self):
        text = """
            kept = []
            def keep(size=4096):
                result, address = allocate(cuda(), size)
                assert result == 0
                kept.append(address)
                return address
            def free(address):
                assert cuda().cuMemFree_v2(address) == 0
            def test_leak():
                keep(1000)
            def test_clean():
                free(keep())
            @pytest.mark.heddle(leaks=False)
            def test_allowed():
                keep()
            @pytest.fixture(scope="module")
            def shared():
                yield keep()
            @pytest.fixture
            def own():
                address = keep()
                yield address
                free(address)
            def test_shared(shared):
                pass
            def test_own(own):
                pass
            def test_frees_in_teardown(request):
                address = keep()
                request.addfinalizer(lambda: free(address))
            def test_fails():
                keep()
                assert False
            def test_cycle():
                class Holder:
                    def __init__(self):
                        self.me, self.address = self, keep()
                    def __del__(self):
                        free(self.address)
                Holder()
            @pytest.mark.heddle(leaks=True)
            def test_marked():
                keep(2000)
        """
        outcomes, output = self.pytest(text, "--heddle", "cpu:a100", "--heddle-leaks", code=1)
        self.assertEqual(outcomes, {
            "test_leak": ["PASSED", "ERROR"], "test_clean": ["PASSED"], "test_allowed": ["PASSED"],
            "test_shared": ["PASSED"], "test_own": ["PASSED"],
            "test_frees_in_teardown": ["PASSED"], "test_fails": ["FAILED"],
            "test_cycle": ["PASSED"], "test_marked": ["PASSED", "ERROR"]}, output)
        self.assertIn("heddle: the test left 1000 bytes of device memory allocated", output)
        outcomes, _ = self.pytest(text, "--heddle", "cpu:a100", code=1)
        self.assertEqual([name for name, all_ in outcomes.items() if "ERROR" in all_],
                         ["test_marked"])

    def test_failures_end_with_their_test(self):
        self.pytest("""
            def test_one(heddle_fail):
                failure = heddle_fail("cuMemAlloc", times=None)
                assert allocate(cuda())[0] == 2 and allocate(cuda())[0] == 2
                assert failure.count == 2
            def test_two():
                assert allocate(cuda())[0] == 0
            def test_injected_sticky_error_is_none(heddle_fail):
                heddle_fail("cuCtxSynchronize", error="ILLEGAL_ADDRESS")
                assert cuda().cuCtxSynchronize() == 700
        """, "--heddle", "cpu:a100")

    def test_tests_are_skipped_where_devices_are_missing(self):
        text = """
            @pytest.mark.heddle(devices=2)
            def test_two():
                assert len(heddle.devices()) >= 2
            @pytest.mark.heddle(memory="70G")
            def test_large():
                pass
            @pytest.mark.heddle(memory="1T")
            def test_huge():
                pass
            @pytest.mark.heddle(devices=4)
            class TestFour:
                @pytest.mark.heddle(devices=1)
                def test_one(self):
                    pass
                def test_four(self):
                    pass
        """
        _, output = self.pytest(text, "--heddle", "cpu:a100", "-rs")
        self.assertIn("2 passed, 3 skipped", output)
        self.assertIn("needs 2 devices, and --heddle cpu:a100 has 1", output)
        _, output = self.pytest(text, "--heddle", "cpu:t4x4", "-rs")
        self.assertIn("3 passed, 2 skipped", output)
        self.assertIn("needs 1 device with 70 GiB, and --heddle cpu:t4x4 has 0", output)

    def test_wrong_markers_are_errors_of_their_test(self):
        for marker in ("2", "device=2", "devices=0", "memory='lots'", "check=1"):
            outcomes, output = self.pytest(f"""
                @pytest.mark.heddle({marker})
                def test_it():
                    pass
                def test_fine():
                    pass
            """, "--heddle", "cpu:a100", code=1)
            self.assertEqual(outcomes, {"test_it": ["ERROR"], "test_fine": ["PASSED"]}, output)
            self.assertIn("pytest.mark.heddle", output)

    def test_wrong_options_are_one_line(self):
        for words, says in (
                (("--heddle", "cpu:a1000"), "--heddle cpu:a1000: there is no device 'a1000'"),
                (("--heddle", "cpu", "--heddle-set", "memm=1"), "there is no setting 'memm'"),
                (("--heddle", "cpu", "--heddle-set", "mem"), "this is not KEY=VALUE"),
                (("--heddle", "cpu", "--heddle-set", "gpu=cpu"), "is that of --heddle"),
                (("--heddle", "cpu", "--heddle-set", "children=no"), "always get heddle"),
                (("--heddle", "cpu", "--heddle-set", "layers=trace,fault"), "the layer `watch`"),
                (("--heddle", "cpu:a100", "--heddle-devices", "2"), "--heddle cpu:a100 has 1"),
                (("--heddle", "cpu:a100", "--heddle-devices", "0"), "needs a device"),
                (("--heddle-leaks",), "--heddle-leaks needs --heddle"),
                (("--heddle-cache", "x"), "--heddle-cache needs --heddle")):
            _, output = self.pytest("def test_it(): pass", *words, code=4)
            self.assertIn(says, output)
            self.assertNotIn("Traceback", output)
            self.assertNotIn("INTERNALERROR", output)
        _, output = self.pytest("def test_it(): pass", "--heddle", "cpu", code=4,
                                conftest="pytest_plugins = ['heddle.pytest_plugin']", plugin=False)
        self.assertIn("loaded too late", output)

    def test_devices_can_be_fewer(self):
        self.pytest("""
            def test_it(heddle_devices):
                count = ctypes.c_int()
                assert cuda().cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 2
                assert len(heddle_devices) == 2
        """, "--heddle", "cpu:a100x4", "--heddle-devices", "2")

    def test_workers_have_their_own(self):
        if PYTHON != python_with("xdist"):
            self.skipTest("there is no pytest-xdist here (Debian's package python3-pytest-xdist)")
        _, output = self.pytest("""
            @pytest.mark.parametrize("i", range(8))
            def test_it(i, heddle_devices, record_property):
                worker = os.environ["PYTEST_XDIST_WORKER"]
                assert [d.uuid for d in heddle_devices] == [
                    d.uuid for d in heddle.devices("cpu:a100x4")], "of CUDA_VISIBLE_DEVICES"
                assert os.environ["CUDA_VISIBLE_DEVICES"] == {"gw0": "0,1", "gw1": "2,3"}[worker]
                assert os.environ["HEDDLE_CACHE"] == os.path.join(os.environ["TMPDIR"], "c", worker)
                assert int(os.environ["HEDDLE_CPU_THREADS"]) == max(1, os.cpu_count() // 2)
                assert allocate(cuda())[0] == 0
            def test_bad():
                launch(cuda(), b"bad")
        """, "--heddle", "cpu:a100x4", "-n", "2", "--heddle-devices", "2", "--heddle-cache",
            os.path.join(self.folder, "c"), code=1)
        self.assertIn("1 failed, 8 passed", output)
        self.assertIn("illegal address", output)
        _, output = self.pytest("def test_it(): pass", "--heddle", "cpu:a1000", "-n", "2", code=4)
        self.assertIn("there is no device 'a1000'", output)


if __name__ == "__main__":
    main("pytest", "Debian's package python3-pytest")
