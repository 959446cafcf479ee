#!/usr/bin/env python3
"""Programs in a guest on the host's CPU GPU, over TCP and the guest's network card.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch [HED_NVCC=nvcc] tcp.py [Tcp.test...]
"""

import unittest

import case
from case import BUILD, TOP

GATEWAY = "10.0.2.100"  # an address at which the server seems to have its usual port


class Tcp(case.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.array = case.array_programs()
        cls.answers = [BUILD / f"tests/conformance/conf_answers_{n}" for n in ("launch", "modules")]
        cls.server = cls.serve("tcp://127.0.0.1:0", options=["--insecure"])
        cls.address = f"tcp://10.0.2.2:{cls.server.port()}"
        cls.guest = cls.boot(case.make_image(
            BUILD / "examples/array", *cls.array, *cls.answers, BUILD / "tests/cu/cu_run",
            TOP / "tests/cu/ptx/warps.ptx", TOP / "tests/cu/warps.cu"),
            network=f",guestfwd=tcp:{GATEWAY}:7717-tcp:127.0.0.1:{cls.server.port()}")

    def test_jobs(self):
        """The harness itself: output, status, users, several jobs at once, signals."""
        done = self.guest.run("id -u; echo no >&2; exit 3", uid=1000)
        self.assertEqual((done.status, done.output), (3, "1000\nno\n"))
        self.assertEqual(self.guest.run("head -c 3000000 /dev/zero | tr '\\0' x").output,
                         "x" * 3000000)
        self.assertEqual(self.guest.run("mkfifo /tmp/fifo0 /tmp/fifo1 /tmp/fifo2").status, 0)
        jobs = [self.guest.start(f"echo here; read -r x </tmp/fifo{i}; echo $x")
                for i in range(3)]
        for i, job in enumerate(jobs):
            self.assertEqual(self.guest.run(f"echo {i} >/tmp/fifo{i}").status, 0)
            self.assertEqual(job.wait().output, f"here\n{i}\n")
        job = self.guest.start("echo here; cat /dev/zero >/dev/null")
        job.until_said("here")
        job.kill()
        self.assertEqual(job.wait().status, 128 + 9)

    def test_pause(self):
        self.guest.pause()
        job = self.guest.start("echo here")
        self.assertEqual(self.guest.command("query-status")["status"], "paused")
        self.assertIsNone(job.status)
        self.guest.resume()
        self.assertEqual(job.wait().output, "here\n")

    def test_driver_api(self):
        output = self.check(f"{case.HEDDLE} run -- {BUILD}/examples/array", uid=1000)
        self.assertIn("1 2 3 4 5 6 7 8", output)

    def test_gateway(self):
        """vm: in a guest that has no vsock device is its gateway, if TCP is allowed."""
        command = f"{case.HEDDLE} run --gpu vm: -- {BUILD}/examples/array"
        self.assertEqual(self.guest.run(f"ip route add default via {GATEWAY}").status, 0)
        self.assertIn("1 2 3 4 5 6 7 8", self.check(command, uid=1000))
        self.assertNotEqual(self.job(command, HEDDLE_INSECURE="no").wait().status, 0)

    @unittest.skipUnless(case.NVCC, "no nvcc")
    def test_runtimes(self):
        for program in self.array:
            self.assertEqual(self.check(program), case.ARRAY)

    def test_answers(self):
        for program in self.answers:
            name = program.name.removeprefix("conf_answers_")
            self.agree(program, TOP / f"tests/conformance/golden/{name}.txt")

    def test_kernels(self):
        self.agree(f"{BUILD}/tests/cu/cu_run {TOP}/tests/cu/ptx/warps.ptx {TOP}/tests/cu/warps.cu",
                   TOP / "tests/cu/golden/warps.txt")


if __name__ == "__main__":
    case.main()
