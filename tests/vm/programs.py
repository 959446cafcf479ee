#!/usr/bin/env python3
"""Programs in a guest on the host's CPU GPU, over `vm:`: what they compute, and what is left of
them when they end.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch [HED_NVCC=nvcc] programs.py [Window.test...]
"""

import unittest

import case
from case import BUILD, TOP
from guests import VmCase, COPY
from harness.patience import until

LIVES = BUILD / "tests/cudart/cudart_lives_13"
OUR_RUNTIME = case.LIBRARIES / "cudart/libcudart.so.13"

class Window(VmCase):
    """A guest with a window: rings, staging and pinned memory lie in it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.array = case.array_programs()
        cls.answers = case.answer_programs()
        cls.kernels = case.kernel_programs()
        sources = [TOP / f"tests/cu/{golden.stem}.cu" for golden in cls.kernels.values()]
        cls.image = case.make_image(BUILD / "examples/array", COPY, *cls.array, *cls.answers,
                                    *cls.kernels, *sources, BUILD / "tests/cu/cu_run", LIVES,
                                    OUR_RUNTIME)
        cls.server = cls.serve(cls.listen("a"))
        cls.guest = cls.boot_guest("a", cls.image)

    def test_driver_api(self):
        for uid in (0, 1000):
            output = self.check(f"{case.HEDDLE} run --gpu vm: -- {BUILD}/examples/array", uid=uid)
            self.assertIn("1 2 3 4 5 6 7 8", output)

    def test_name(self):
        """A name is this guest's own, or an error."""
        array = f"{case.HEDDLE} run -- {BUILD}/examples/array"
        self.assertIn("1 2 3 4 5 6 7 8", self.check(array, HEDDLE_GPU=f"vm:{self.name('a')}"))
        done = self.job(array, HEDDLE_GPU="vm:other").wait()
        self.assertNotEqual(done.status, 0)
        self.assertIn(f"this guest is '{self.name('a')}' for its host", done.output)

    def test_auto(self):
        """A guest finds its host by itself. The CPU GPU is not in the image."""
        output = self.check(f"{case.HEDDLE} run -- {BUILD}/examples/array", uid=1000,
                            HEDDLE_GPU="auto")
        self.assertIn("1 2 3 4 5 6 7 8", output)
        self.assertIn("H200", self.check(f"{case.HEDDLE} devices", HEDDLE_GPU="auto"))

    @unittest.skipUnless(case.NVCC, "no nvcc")
    def test_runtimes(self):
        for program in self.array:
            for uid in (0, 1000):
                self.assertEqual(self.check(program, uid=uid), case.ARRAY)

    def test_our_runtime(self):
        """heddle's libcudart: before main(), in threads, at the end; and in NVIDIA's place."""
        folders = f"{OUR_RUNTIME.parent}:{case.LIBRARIES}"
        for what in ("order", "threads", "exit", "fork"):
            self.check(f"{LIVES} {what}", LD_LIBRARY_PATH=folders)
        for program in self.array:
            self.assertEqual(self.check(program, uid=1000, LD_LIBRARY_PATH=folders), case.ARRAY)

    def test_answers(self):
        for program, golden in self.answers.items():
            with self.subTest(golden.stem):
                self.agree(program, golden)

    def test_kernels(self):
        for ptx, golden in self.kernels.items():
            with self.subTest(golden.stem):
                self.agree(f"{BUILD}/tests/cu/cu_run {ptx} {TOP}/tests/cu/{golden.stem}.cu", golden)

    def test_copies(self):
        """Every word of 2 GB each way, in and out of pinned and of pageable memory."""
        for kind in ("pinned", "pageable"):
            for size, total in ((48, 1920), (1, 128)):
                self.assertIn("ok", self.check(f"{COPY} {kind} {size} {total}"))

    def test_several(self):
        """Processes of several users at once; each has a worker, and pieces of the window."""
        jobs = [self.job(f"{COPY} {kind} 8 0", uid=uid)
                for kind in ("pinned", "pageable") for uid in (0, 1000)]
        for job in jobs:
            job.until_said("first")
        state = self.guest_state("a")
        self.assertEqual(state["clients"], 4)
        self.assertGreater(state["used_bytes"], 4 * (8 << 20))
        self.assertEqual(len(set(self.server.workers())), 4)
        for job in jobs:
            job.kill()
            self.assertEqual(job.wait().status, 128 + 9)
        self.until_empty("a")

    def test_killed(self):
        """A process that is killed in the middle leaves nothing, every time."""
        for kind in ("pinned", "pageable"):
            for _ in range(3):
                job = self.job(f"{COPY} {kind} 32 0")
                job.until_said("first")
                self.assertGreater(self.guest_state("a")["used_bytes"], 0)
                job.kill()
                job.wait()
                self.until_empty("a")
        self.assertIn("ok", self.check(f"{COPY} pinned 32 64"))

    def test_not_allowed(self):
        """A user who may not map the window works over the vsock."""
        self.check("chmod 600 /sys/bus/pci/devices/*/resource2*")
        try:
            job = self.job(f"{COPY} pinned 8 0", uid=1000, HEDDLE_LOG="warn")
            job.until_said("first")
            self.assertIn("cannot be used: this user may not map the device", job.output)
            state = self.guest_state("a")
            self.assertEqual((state["clients"], state["used_bytes"]), (1, 0))
            self.assertIn("may not", self.job(f"{case.HEDDLE} doctor", uid=1000).wait().output)
        finally:
            self.check("chmod 666 /sys/bus/pci/devices/*/resource2*")
        job.kill()
        job.wait()
        self.until_empty("a")

    def test_doctor_finds_the_host(self):
        done = self.job(f"{case.HEDDLE} doctor", HEDDLE_GPU="auto").wait()
        self.assertIn("programs use the host's GPUs", done.output)

    def test_doctor(self):
        output = self.job(f"{case.HEDDLE} doctor", uid=1000).wait().output
        for words in ("this machine is a guest of QEMU", "the host answers", "256 MiB"):
            self.assertIn(words, output)

    def test_worker_killed(self):
        """A program whose worker is killed gets an error, and the next one works."""
        job = self.job(f"{COPY} pinned 8 0")
        job.until_said("first")
        self.kill_worker(self.server.workers()[0])
        self.assertNotEqual(job.wait().status, 0)
        self.until_empty("a")
        self.assertIn("ok", self.check(f"{COPY} pinned 8 16"))


class SmallWindow(VmCase):
    """A window that has room for one thread's channel."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.serve(cls.listen("s", 32))
        cls.guest = cls.boot_guest("s", case.make_image(COPY))

    def test_full(self):
        """Pinned memory that does not fit is refused, and programs without room for a channel use
        the vsock."""
        done = self.job(f"{COPY} pinned 12 120").wait()
        self.assertEqual(done.status, 1)
        self.assertIn("cuMemAllocHost", done.output)
        self.until_empty("s")
        job = self.job(f"{COPY} pageable 8 0")
        job.until_said("first")
        self.assertIn("ok", self.check(f"{COPY} pageable 8 32", uid=1000))
        self.assertIn("the window of this guest is full", self.server.log())
        self.assertIsNone(job.status, job.output)


class NoWindow(VmCase):
    """A guest without a window: everything goes through the vsock."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.answers = [BUILD / f"tests/conformance/conf_answers_{n}" for n in ("memory", "streams")]
        cls.server = cls.serve(cls.listen("n", 0))
        cls.guest = cls.boot_guest("n", case.make_image(BUILD / "examples/array", COPY,
                                                        *cls.answers))

    def test_programs(self):
        output = self.check(f"{case.HEDDLE} run --gpu vm: -- {BUILD}/examples/array", uid=1000)
        self.assertIn("1 2 3 4 5 6 7 8", output)
        for program in self.answers:
            name = program.name.removeprefix("conf_answers_")
            self.agree(program, TOP / f"tests/conformance/golden/{name}.txt")

    def test_copies(self):
        for kind in ("pinned", "pageable"):
            self.assertIn("ok", self.check(f"{COPY} {kind} 8 128"))

    def test_killed(self):
        job = self.job(f"{COPY} pageable 8 0")
        job.until_said("first")
        self.assertEqual(self.guest_state("n")["clients"], 1)
        job.kill()
        job.wait()
        self.until_empty("n")


if __name__ == "__main__":
    case.main()
