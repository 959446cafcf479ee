#!/usr/bin/env python3
"""Two guests of one server: whatever one of them does, the other's programs go on, and the server
gets everything back. Guests are killed, paused and reset; one means harm.

    HED_BUILD=build/dev HED_SCRATCH=/tmp/scratch ends.py [Ends.test...]
"""

import case
from case import BUILD, TOP
from guests import COPY, HOSTILE, VmCase

# Not those about memory: what the device has left depends on all guests.
ANSWERS = {BUILD / f"tests/conformance/conf_answers_{n}": TOP / f"tests/conformance/golden/{n}.txt"
           for n in ("launch", "streams")}


class Ends(VmCase):
    """Guest `b` is an ordinary one. Each test has a guest `a` of its own."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = case.make_image(BUILD / "examples/array", COPY, HOSTILE, *ANSWERS)
        cls.server = cls.serve(cls.listen("a"), cls.listen("b"),
                               options=["--guest-timeout", "3"])
        cls.guest = cls.boot_guest("b", cls.image)

    def setUp(self):
        self.until_empty("a")
        self.until_empty("b")

    def boot_other(self, **more):
        other = self.boot_guest("a", self.image, **more)
        self.addCleanup(self.until_gone, "a")
        self.addCleanup(other.kill)
        return other

    def start(self, vm=None, kind="pinned"):
        """A program that copies for ever, and has begun."""
        job = self.job(f"{COPY} {kind} 16 0", vm)
        job.until_said("first")
        return job

    def check_other_goes_on(self, job):
        """The job in guest b still runs, and guest b can do everything."""
        self.assertIsNone(job.status, job.output)
        for program, golden in ANSWERS.items():
            self.agree(program, golden)
        self.assertIsNone(job.status, job.output)
        job.kill()
        job.wait()

    def test_killed(self):
        """A guest that is killed in the middle: workers end, and the memory is free again."""
        mine = self.start()
        other = self.boot_other()
        jobs = [self.start(other, kind) for kind in ("pinned", "pageable")]
        self.assertEqual(self.guest_state("a")["clients"], 2)
        self.assertGreater(self.guest_state("a")["used_bytes"], 2 * (16 << 20))
        self.assertGreater(self.window_pages("a"), 2 * (16 << 20))
        other.kill()
        self.until_gone("a")
        self.assertLess(self.window_pages("a"), 1 << 20)
        self.assertTrue(all(job.status is None for job in jobs))
        self.check_other_goes_on(mine)
        # The same guest again.
        again = self.boot_other()
        self.assertIn("ok", self.check(f"{COPY} pinned 16 64", again))

    def test_paused(self):
        """The clients of a guest that gives no answer are disconnected; later ones are served."""
        mine = self.start()
        other = self.boot_other()
        job = self.start(other)
        other.pause()
        self.until_empty("a")
        other.resume()
        self.assertNotEqual(job.wait().status, 0)
        self.assertIn("ok", self.check(f"{COPY} pinned 16 64", other))
        self.check_other_goes_on(mine)

    def test_paused_for_a_moment(self):
        other = self.boot_other()
        job = self.start(other)
        other.pause()
        other.resume()
        self.assertIn("ok", self.check(f"{COPY} pinned 16 64", other))
        self.assertIsNone(job.status, job.output)

    def test_reset(self):
        """The guest's kernel is gone, and QEMU is not."""
        mine = self.start()
        other = self.boot_other(reboots=True)
        self.start(other)
        other.reset()
        self.until_empty("a")
        self.assertIn("ok", self.check(f"{COPY} pageable 16 64", other))
        self.check_other_goes_on(mine)

    def test_scribbles(self):
        """One that writes all over its window harms nobody but itself."""
        mine = self.start()
        for way in ("scribble", "flip"):
            other = self.boot_other()
            victims = [self.start(other, kind) for kind in ("pinned", "pageable")]
            harm = self.job(f"{HOSTILE} {way} 1", other)
            harm.until_said("here")
            for program, golden in ANSWERS.items():
                self.agree(program, golden)
            for victim in victims:
                victim.kill()
            harm.kill()
            harm.wait()
            other.kill()
            self.until_gone("a")
            self.assertLess(self.window_pages("a"), 1 << 20)
        self.check_other_goes_on(mine)

    def test_connects(self):
        """One that connects often, and says nothing or nonsense."""
        mine = self.start()
        other = self.boot_other()
        harm = [self.job(f"{HOSTILE} connect {seed} 200", other) for seed in (1, 2)]
        for job in harm:
            job.until_said("here")
        for program, golden in ANSWERS.items():
            self.agree(program, golden)
        for job in harm:
            self.assertEqual(job.wait().status, 0, job.output)
        self.until_empty("a")
        self.assertIn("ok", self.check(f"{COPY} pinned 16 64", other))
        self.check_other_goes_on(mine)


if __name__ == "__main__":
    case.main()
