#!/usr/bin/env python3
"""Programs in a guest that have a session and then break the rules of their channel: the session
ends, or goes on without costing the host anything.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch attack.py [Attack.test...]
"""

import os
import time

import case
from case import BUILD
from guests import COPY, VmCase
from vm.guest import cpu_seconds

ATTACK = BUILD / "tests/vm/vm_attack"
WATCHED = 3      # seconds in which the host's processes are watched
IDLE = 0.3       # of these they may use, all together


class Attack(VmCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = cls.serve(cls.listen("a"))
        cls.guest = cls.boot_guest("a", case.make_image(COPY, ATTACK))

    def attack(self, kind):
        job = self.job(f"{ATTACK} {kind}")
        job.until_said("done")
        return job

    def host_seconds(self):
        """Processor time of the listener, the bridge and the workers."""
        top = self.server.process.pid
        with open(f"/proc/{top}/task/{top}/children", encoding="ascii") as f:
            return sum(cpu_seconds(int(pid)) for pid in (top, *f.read().split()))

    def tearDown(self):
        self.assertIn("ok", self.check(f"{COPY} pinned 16 64"))
        self.until_empty("a")

    def test_sessions_end(self):
        for kind in ("size", "pad", "tail", "noise", "send-no-more"):
            with self.subTest(kind):
                job = self.attack(kind)
                self.until_empty("a")
                self.assertIsNone(job.status, job.output)
                job.kill()
                job.wait()

    def test_sessions_are_idle(self):
        for kind in ("ring-for-nothing", "odd-words", "read-no-more"):
            with self.subTest(kind):
                job = self.attack(kind)
                time.sleep(1)  # what was sent has been heard by then
                before = self.host_seconds()
                time.sleep(WATCHED)
                self.assertLess(self.host_seconds() - before, IDLE)
                job.kill()
                job.wait()
                self.until_empty("a")


if __name__ == "__main__":
    case.main()
