"""Clients that answer an order with anything but the truth: the operator is told, and the server
and the session go on.

    ordered.py      HED_BUILD: the build; HED_ORDERS: the program attack_orders
"""

import os
from pathlib import Path
import subprocess
import sys
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e" / "remote"))
from serve_case import Case, Server, clean_environment, until  # noqa: E402

ORDERS = os.environ.get("HED_ORDERS", "")


class Ordered(Case):
    def lie(self, how, words):
        server = Server(self)
        client = subprocess.Popen([ORDERS, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  text=True,
                                  env=clean_environment(HEDDLE_GPU=f"shm:{server.path}"))
        self.addCleanup(client.communicate)
        self.assertEqual(client.stdout.readline(), "ready\n")
        until(lambda: server.status()["clients"][0]["orders"])
        r = self.heddle("migrate", str(server.workers()[0]), "--to", "unix:/x", "--listen",
                        f"shm:{server.path}")
        self.assertEqual(r.returncode, 1, r.stdout)
        self.assertIn(words, r.stderr)
        self.assertNotIn("\x1b", r.stdout + r.stderr)
        self.assertEqual(len(server.workers()), 1)
        client.communicate()
        self.assertEqual(client.returncode, 0)
        until(lambda: not server.workers())
        self.assertEqual(server.stop(), 0)

    def test_junk(self):
        self.lie("junk", "not a report")

    def test_about_another_order(self):
        self.lie("other", "another order")

    def test_half_a_report(self):
        self.lie("half", "hung up")

    def test_nothing(self):
        self.lie("nothing", "hung up")

    def test_a_flood(self):
        self.lie("flood", "be?cause")

    def test_no(self):
        self.lie("refuse", "be?cause")


if __name__ == "__main__":
    unittest.main()
