#!/usr/bin/env python3
"""heddle.use(): whose driver is it, who gets it, and when is it too late?

    HEDDLE_PREFIX=build/dev PYTHONPATH=python process.py [TEST...]
"""

import os
import shutil
import unittest

from programs import HEDDLE, LIBRARIES, PREFIX, Programs, main


class Process(Programs):
    def test_later_openings_find_heddle(self):
        self.program("""
            heddle.use("cpu:a100x2")
            library = cuda()
            count = ctypes.c_int()
            assert library.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value == 2
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            assert nvml.nvmlInit_v2() == 0
            assert nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 and count.value == 2
        """)

    def test_settings_count(self):
        self.program("""
            heddle.use("cpu:a100", mem="64M", cpu_threads=1, lift=False)
            library = cuda()
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            assert library.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)) == 0
            assert total.value == 64 << 20, total
            assert heddle.chain() == ["trace", "fault", "watch", "quota", "cpu"]
        """)

    def test_a_second_call_must_say_the_same(self):
        self.program("""
            heddle.use("cpu:a100", mem="64M")
            heddle.use("cpu:a100", mem="64M")
            kind, text = error(heddle.use, "cpu:h100")
            assert kind == "LoadedError", kind
            assert "heddle.use('cpu:a100', mem='64M') was called before" in text, text
            assert "heddle.use('cpu:h100')" in text and "\\n" not in text, text
            assert error(heddle.use, "cpu:a100")[0] == "LoadedError"
        """)

    def test_wrong_settings_leave_the_process_alone(self):
        self.program("""
            before = dict(os.environ)
            for arguments, settings, says in (
                    (("cpu:a1000",), {}, "there is no device 'a1000'; choose from a100"),
                    (("cup",), {}, "there is no 'cup'; choose from"),
                    (("a100",), {}, "did you mean 'cpu:a100'?"),
                    (("cpu",), {"memm": "4G"}, "there is no setting 'memm'"),
                    (("cpu",), {"mem": "lots"}, "mem: 'lots' is not a size"),
                    (("cpu",), {"mem": "1\\n2"}, "cannot have a newline"),
                    (("cpu",), {"cudart": "own"}, "use `heddle run --cudart`"),
                    (("cpu",), {"gpu": "cpu"}, None),
                    (("cpu",), {"control": True}, "heddle.use() sets it itself"),
                    (("cpu",), {"fail_on_refusal": True}, "heddle.stats().refusals"),
                    (("cpu",), {"trace": "/no/where/t.hed"}, "/no/where"),
                    ((3,), {}, "must be a string"),
                    (("shm:/no/where.sock",), {}, "is heddled running there?")):
                try:
                    kind, text = error(heddle.use, *arguments, **settings)
                    assert says in text and "\\n" not in text, text
                except TypeError:
                    assert says is None
            assert dict(os.environ) == before
            assert not [line for line in open("/proc/self/maps") if "libcuda.so" in line]
            heddle.use("cpu:a100")
            assert allocate(cuda())[0] == 0
        """)

    def test_children_get_it(self):
        self.program("""
            import multiprocessing, subprocess
            if __name__ == "__main__":
                heddle.use("cpu:a100x3")
                ask = ("import ctypes; n = ctypes.c_int(); c = ctypes.CDLL('libcuda.so.1'); "
                       "c.cuInit(0); c.cuDeviceGetCount(ctypes.byref(n)); print(n.value)")
                out = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
                assert out.stdout == "3\\n", out
                # It calls heddle.use() itself when it imports this program, as scripts do.
                ask = "import heddle; heddle.use('cpu:a100x3'); print(*heddle.chain())"
                out = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
                assert out.stdout == "trace fault watch cpu\\n", out
                # Another device is fine there, too: nothing has been started yet.
                ask = "import heddle; heddle.use('cpu:t4'); print(heddle.devices()[0].name)"
                out = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)
                assert out.stdout == "Tesla T4\\n", out
                for way in ("spawn", "fork"):
                    with multiprocessing.get_context(way).Pool(1) as pool:
                        assert pool.apply(len, (b"abc",)) == 3
                        assert pool.apply(os.getenv, ("HEDDLE_GPU",)) == "cpu:a100x3"
        """)

    def test_forked_children_have_a_driver_of_their_own(self):
        self.program("""
            heddle.use("cpu:a100")
            child = os.fork()
            if child == 0:
                os._exit(0 if allocate(cuda())[0] == 0 and heddle.stats().allocations == 1 else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert allocate(cuda())[0] == 0
        """)

    def test_children_do_not_get_it_if_told_so(self):
        self.program("""
            before = dict(os.environ)
            heddle.use("cpu:a100x3", children=False)
            assert dict(os.environ) == before
            assert allocate(cuda())[0] == 0 and len(heddle.devices()) == 3
        """)
        self.program("""
            heddle.use("cpu:a100", children=False, mem="3G")
            [device] = heddle.devices()
            assert device.memory == 3 << 30, device
        """)

    def test_names_that_are_no_text_stay_as_they_are(self):
        self.program('''
            folder = os.fsencode(os.getcwd()) + b"/caf\\xe9"
            os.mkdir(folder)
            # What a message says of it can be printed.
            kind, text = error(heddle.use, "cpu:a100", trace=os.fsdecode(folder))
            assert "caf" in text and text.encode(), text
            heddle.use("cpu:a100", cache=os.fsdecode(folder))
            assert os.environb[b"HEDDLE_CACHE"] == folder, os.environb[b"HEDDLE_CACHE"]
        ''')

    def test_another_driver_is_refused(self):
        other = os.path.join(self.folder, "libcuda.so.1")
        shutil.copy(os.path.join(LIBRARIES, "libheddle-nodes.so"), other)
        self.program("""
            ctypes.CDLL(sys.argv[1])
            kind, text = error(heddle.use, "cpu")
            assert kind == "LoadedError" and sys.argv[1] in text, text
            assert "before `import torch`" in text and "\\n" not in text, text
            sys.modules["ipykernel"] = sys
            assert "restart the kernel" in error(heddle.use, "cpu")[1]
        """, other)

    def test_packages_that_remember_are_named(self):
        begin = """
            import types
            class Failed(Exception):
                pass
            def count():
                raise Failed
            broken = types.SimpleNamespace(initialization_error="no library")
            fine = types.SimpleNamespace(initialization_error=None)
        """
        for name, module, remembers, forgets in (
                ("CuPy", "cupy_backends.cuda.api.runtime",
                 "getDeviceCount=count, CUDARuntimeError=Failed",
                 "getDeviceCount=int, CUDARuntimeError=Failed"),
                ("Numba", "numba.cuda.cudadrv.driver", "driver=broken", "driver=fine"),
                ("JAX", "jax._src.xla_bridge", "_backends={'cpu': 1}", "_backends={}")):
            self.program(begin + f"""
            sys.modules["{module}"] = types.SimpleNamespace({remembers})
            before = dict(os.environ)
            for device in ("cpu", "cpu", "cpu:h100"):
                kind, text = error(heddle.use, device)
                assert kind == "LoadedError" and "{name} remembers" in text, text
                assert error(heddle.stats)[0] == "NotInUseError"
            assert dict(os.environ) == before
            """)
            self.program(begin + f"""
            sys.modules["{module}"] = types.SimpleNamespace({forgets})
            heddle.use("cpu")
            """)

    def test_a_program_that_runs_under_heddle_may_call_it(self):
        self.program("""
            heddle.use("cpu:a100x2")
            assert len(heddle.devices()) == 2 and heddle.chain()[-1] == "cpu"
        """, before=[HEDDLE, "run", "--gpu", "cpu:h100", "--"])
        self.program("""
            library = ctypes.CDLL("libcuda.so.1")
            assert library.cuInit(0) == 0
            kind, text = error(heddle.use, "cpu:a100x2")
            assert kind == "LoadedError" and "runs in this process already" in text, text
            assert "HEDDLE_GPU" in text, text
        """, before=[HEDDLE, "run", "--gpu", "cpu:h100", "--"])
        text = """
            library = ctypes.CDLL("libcuda.so.1")
            assert library.cuInit(0) == 0
            heddle.use()
            heddle.use()
            assert error(heddle.use, "cpu:a100")[0] == "LoadedError"
            assert heddle.chain() == sys.argv[1].split(), heddle.chain()
            assert heddle.devices()[0].compute_capability == (9, 0)
        """
        before = [HEDDLE, "run", "--gpu", "cpu:h100"]
        self.program(text, "trace fault watch cpu", before=[*before, "--set", "control=yes", "--"])
        self.program(text + """
            kind, reason = error(heddle.fail, "cuInit")
            assert "control=yes" in reason, reason
            assert "control=yes" in error(heddle.trace("t.hed").start)[1]
            assert "control=yes" in error(heddle.memory)[1]
            assert heddle.stats().problems == 0
        """, "cpu", before=[*before, "--"])

    def test_settings_are_for_calls_without_a_device(self):
        self.program("""
            heddle.use()
            assert heddle.devices()[0].compute_capability == (7, 5)
        """, HEDDLE_GPU="cpu:t4")
        self.program("""
            assert "HEDDLE_GPU" in error(heddle.use)[1]
        """, HEDDLE_GPU="cpu:t5")

    def test_jax_is_warned_of(self):
        os.makedirs(os.path.join(self.folder, "jax", "_src"))
        for name in ("jax/__init__.py", "jax/_src/__init__.py", "jax/_src/xla_bridge.py"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8"):
                pass
        text = """
            import warnings
            heddle.use("cpu")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                import jax._src.xla_bridge
            there = any(os.path.exists(path) for path in ("/dev/nvidia0", "/dev/nvidiactl"))
            assert bool(caught) != there, caught
            assert there or "heddle run" in str(caught[0].message)
        """
        self.program(text)
        self.program(text, before=[HEDDLE, "run", "--gpu", "cpu", "--"])

    def test_missing_libraries_are_named(self):
        text = """
            kind, text = error(heddle.use, "cpu")
            assert kind == "NotInstalledError" and sys.argv[1] in text, text
            assert "\\n" not in text, text
        """
        self.program(text, "HEDDLE_PREFIX is '/no/where'", HEDDLE_PREFIX="/no/where")
        package = os.path.join(self.folder, "alone")
        shutil.copytree(os.path.dirname(__import__("heddle").__file__),
                        os.path.join(package, "heddle"))
        self.program(text, "libraries are missing", HEDDLE_PREFIX=None, PYTHONPATH=package,
                     PATH="/usr/bin:/bin")
        # Not what somebody else has put into a folder above.
        shutil.copytree(os.path.join(PREFIX, "bin"), os.path.join(self.folder, "bin"))
        os.makedirs(os.path.join(self.folder, "lib"))
        os.symlink(LIBRARIES, os.path.join(self.folder, "lib", "heddle"))
        self.program(text, "libraries are missing", HEDDLE_PREFIX=None, PYTHONPATH=package,
                     PATH="/usr/bin:/bin")
        for layout in ("share/heddle/python", "lib/python3/dist-packages",
                       "lib64/python3.11/site-packages"):
            there = os.path.join(self.folder, layout)
            shutil.copytree(package, there)
            self.program("from heddle import _install; print(_install.find().command)",
                         HEDDLE_PREFIX=None, PYTHONPATH=there, PATH="/usr/bin:/bin")
        # As a wheel has it.
        native = os.path.join(package, "heddle", "_native")
        os.makedirs(os.path.join(native, "bin"))
        os.makedirs(os.path.join(native, "lib"))
        shutil.copy(HEDDLE, os.path.join(native, "bin"))
        shutil.copytree(LIBRARIES, os.path.join(native, "lib", "heddle"), symlinks=True)
        os.makedirs(os.path.join(native, "share", "heddle"))
        devices = os.path.join(PREFIX, "share", "heddle", "devices")
        if os.path.isdir(devices):
            shutil.copytree(devices, os.path.join(native, "share", "heddle", "devices"))
        self.program("""
            heddle.use("cpu")
            assert allocate(cuda())[0] == 0
            [maps] = {line.split()[-1] for line in open("/proc/self/maps") if "libcuda.so" in line}
            assert maps.startswith(sys.argv[1]), maps
        """, native, HEDDLE_PREFIX=None, PYTHONPATH=package, PATH="/usr/bin:/bin")
        # A file that is not a library.
        with open(os.path.join(native, "lib", "heddle", "libcuda.so.1"), "wb") as file:
            file.write(b"not a library")
        self.program(text, "libcuda.so.1 is not a library", HEDDLE_PREFIX=None, PYTHONPATH=package)

    @unittest.skipUnless("HED_SERVES" in os.environ, "this build has no servers")
    def test_a_server_that_is_late_can_be_tried_again(self):
        address = f"shm:{self.folder}/heddle.sock"
        self.program("""
            import subprocess
            address = sys.argv[2]
            kind, text = error(heddle.use, address)
            assert kind == "Error" and "is heddled running there?" in text, text
            server = subprocess.Popen([sys.argv[1], "serve", "--gpu", "cpu:a100", "--listen",
                                       address], stderr=subprocess.DEVNULL)
            try:
                while True:
                    try:
                        heddle.use(address)
                        break
                    except heddle.Error:
                        assert server.poll() is None
                assert allocate(cuda())[0] == 0
                assert heddle.chain() == ["trace", "fault", "watch", "remote"]
                assert heddle.devices()[0].name.startswith("NVIDIA A100")
                assert heddle.stats().memory_bytes == 4096
            finally:
                server.terminate()
                server.wait()
        """, HEDDLE, address)


if __name__ == "__main__":
    main()
