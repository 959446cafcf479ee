#!/usr/bin/env python3
"""Latency: asynchronous work does not wait for the network, however slow it is.

    HED_BUILD=build/dev HED_LATENCY=build/.../e2e_remote_latency latency.py [Case.test...]

The test counts the round trips that the program waits for: the answers that pass a proxy. Their
number must not grow with the amount of work. Times are printed, for people. With HED_NVCC, the
round trips of a program of CUDA's runtime are counted from its start to its first result.
"""

import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import faults  # noqa: E402
from serve_case import PATIENCE, clean_environment  # noqa: E402
from proxy import Plan, Proxy  # noqa: E402

PROGRAM = os.environ.get("HED_LATENCY", "")
NVCC = os.environ.get("HED_NVCC", "")
THINGS = ("launch", "record", "copy_pageable", "copy_pinned", "copy_back", "copy_device", "fill",
          "allocate", "allocate_in_order", "new_stream", "new_event", "launch_graph", "query")
WAYS = (0, 0.0002, 0.001, 0.010, 0.030)  # seconds, each
FEW, MANY = 10, 1000
CALL = 1  # HED_MSG_CALL
ALLOWED = 4  # other round trips in 1000 that are allowed: a lease, space for destroyed objects
START = 11  # answers to a program of the runtime, to its first result


class Latency(faults.Faults):
    def through(self, server, delay, words, talk):
        """Runs the program behind a proxy, and returns what talk() returns."""
        proxy = Proxy(f"unix:{self.dir}/p", server.address, Plan(delay=delay))
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   env=clean_environment(HEDDLE_GPU=proxy.address))
        try:
            return talk(proxy, process)
        finally:
            process.stdin.close()
            self.assertEqual(process.wait(PATIENCE), 0)
            process.stdout.close()
            proxy.close()

    def trips(self, server, thing, count, delay=0.0):
        def talk(proxy, process):
            self.assertEqual(process.stdout.readline().strip(), "ready")
            before = proxy.answers()
            process.stdin.write("\n")
            process.stdin.flush()
            us = int(process.stdout.readline())
            trips = proxy.answers() - before
            process.stdin.write("\n")
            return trips, us

        return self.through(server, delay, [PROGRAM, thing, str(count)], talk)

    def test_work_takes_no_more_round_trips(self):
        server = self.serve()
        for thing in THINGS:
            few, _ = self.trips(server, thing, FEW)
            many, us = self.trips(server, thing, MANY)
            print(f"{thing:20} {FEW:5}: {few:3} round trips, {MANY}: {many:3}, {us} us")
            self.assertLessEqual(many, few + ALLOWED, thing)
            self.assertLessEqual(few, 2 + ALLOWED, thing)

    def test_an_unused_event_sends_no_message(self):
        def talk(proxy, process):
            self.assertEqual(process.stdout.readline().strip(), "ready")
            before = proxy.kinds(True).get(CALL, 0)
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()  # the final wait was answered: everything has passed
            calls = proxy.kinds(True).get(CALL, 0) - before
            process.stdin.write("\n")
            return calls

        server = self.serve()
        calls = self.through(server, 0.0, [PROGRAM, "new_event", str(MANY)], talk)
        self.assertLessEqual(calls, ALLOWED)

    def test_slow_networks_cost_no_more_round_trips(self):
        server = self.serve()
        for thing in ("launch", "copy_pageable"):
            for delay in WAYS:
                trips, us = self.trips(server, thing, MANY, delay)
                print(f"{thing:20} {MANY} at {delay * 1000:4.1f} ms each way: {trips} round trips, "
                      f"{us / 1000:.1f} ms")
                self.assertLessEqual(trips, 2 + ALLOWED, thing)

    @unittest.skipUnless(NVCC, "no nvcc")
    def test_the_first_result_takes_few_round_trips(self):
        program = os.path.join(self.dir, "first")
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "latency.cu")
        subprocess.run([NVCC, "-arch=sm_90", "-cudart", "static", "-o", program, source],
                       check=True)
        os.environ["LD_LIBRARY_PATH"] = os.path.dirname(os.environ["HED_LIBCUDA"])
        server = self.serve()
        for turn in ("first", "second"):
            def talk(proxy, process):
                said = process.stdout.readline().strip()
                return said, proxy.answers(), proxy.kinds(True), proxy.connections

            said, trips, kinds, connections = self.through(server, 0.0, [program], talk)
            print(f"the {turn} run's result: {trips} answers, {connections} connections; "
                  f"messages by kind: {dict(sorted(kinds.items()))}")
            self.assertEqual(said, "42")
            self.assertLessEqual(trips, START)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("tc") and shutil.which("ip"),
                     "network namespaces need root, ip and tc")
class Netem(faults.Faults):
    """The same over a network of our own, which the kernel makes slow."""

    def run_all(self, *lines):
        for line in lines:
            if subprocess.run(line.split(), capture_output=True).returncode != 0:
                self.skipTest(f"the kernel does not let us: {line}")

    def test_namespaces(self):
        name = f"hed{os.getpid()}"
        self.addCleanup(subprocess.run, ["ip", "netns", "del", name], capture_output=True)
        self.run_all(f"ip netns add {name}",
                     f"ip link add {name}a type veth peer name {name}b",
                     f"ip link set {name}b netns {name}",
                     f"ip addr add 10.231.77.1/24 dev {name}a", f"ip link set {name}a up",
                     f"ip netns exec {name} ip addr add 10.231.77.2/24 dev {name}b",
                     f"ip netns exec {name} ip link set {name}b up")
        server = faults.Server(self, "--insecure", listen=["tcp://10.231.77.1:0"],
                                      gpu="cpu", env=clean_environment())
        address = f"tcp://10.231.77.1:{server.port()}"
        for delay in WAYS:
            us = int(delay * 1e6)
            slow = f"root netem delay {us}us"
            self.run_all(f"tc qdisc replace dev {name}a {slow}",
                         f"ip netns exec {name} tc qdisc replace dev {name}b {slow}")
            done = subprocess.run(
                ["ip", "netns", "exec", name, PROGRAM, "launch", str(MANY)], input="\n\n",
                capture_output=True, text=True, timeout=PATIENCE,
                env=clean_environment(HEDDLE_GPU=address, HEDDLE_INSECURE="yes"))
            self.assertEqual(done.returncode, 0, done.stderr)
            print(f"launch: {MANY} at {delay * 1000:4.1f} ms each way, by the kernel: "
                  f"{int(done.stdout.split()[1]) / 1000:.1f} ms")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(sys.argv[1:] or ["Latency", "Netem"])])
