#!/usr/bin/env python3
"""Record mode (`heddle run --sched mode=record`) as users see it.

    HED_BUILD=build/dev HED_WORK=.../e2e_sched_work HED_CLIENTS=.../e2e_record_clients
        [HED_SCHED_GPU=cpu] record.py [Case.test...]
"""

import json
import os
import subprocess
import unittest

from case import (
    FOR_EVER, GPU, HEDDLE, LAUNCHES, PATIENCE, WORK, SchedCase, environment, states, until)

CLIENTS = os.environ.get("HED_CLIENTS", "")


class Case(SchedCase):
    scope_begins = "rec"

    def start(self, settings, *command):
        return self.launch("mode=record" + ("," + settings if settings else ""), command,
                           stdin=subprocess.PIPE)

    def end(self, p):
        out, err = p.communicate(timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, err)
        self.assertNotIn("sched:", err)  # nothing that was queued has failed
        return int(out.split()[-1])

    def sched(self, *words):
        return self.heddle(*words, "--scope", self.scope)

    def clients(self):
        r = self.sched("list", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        return [c for g in json.loads(r.stdout)["gpus"] for c in g["clients"]]

    def held(self):
        """The number of held calls of the first client, or 0 while it may still change. It does
        not change any more when all threads are asleep and it was the same before."""
        first = self.clients()[0]
        still = states(first["pid"]) == {"S"}
        second = self.clients()[0]
        same = all(first[k] == second[k] for k in ("calls", "queued", "waiting"))
        return first["queued"] + 1 if still and same and first["waiting"] == 1 else 0

    def pause_at_work(self):
        """Lets the first calls of each kind go on: they are not queued, but hold the thread."""
        until(lambda: any(c["calls"] > 10 for c in self.clients()))
        self.assertEqual(self.sched("pause").returncode, 0)


class Alone(Case):
    """A program computes the same as without record mode."""

    def test_work_is_done(self):
        self.assertGreater(self.end(self.start("", WORK, "1", "0", LAUNCHES)), 0)

    def test_work_is_done_on_a_stream_of_our_own(self):
        self.assertGreater(self.end(self.start("stream=own", WORK, "1", "0", LAUNCHES)), 0)

    def test_work_is_done_with_a_short_queue(self):
        self.assertGreater(self.end(self.start("queue=2", WORK, "1", "0", LAUNCHES)), 0)

    def test_work_is_done_with_a_wait_after_each_call(self):
        self.assertGreater(self.end(self.start("", WORK, "1", "0", "1")), 0)

    def test_work_is_done_in_batches(self):
        self.assertGreater(self.end(self.start("policy=batch,batch=4", WORK, "1", "0", LAUNCHES)),
                           0)


class Together(Case):
    def test_programs_share_the_gpu(self):
        programs = [self.start(w, WORK, "2", "0", LAUNCHES)
                    for w in ("policy=fair,share=300", "share=100", "share=100,stream=own")]
        for p in programs:
            self.assertGreater(self.end(p), 0)

    def test_held_calls_are_listed(self):
        p = self.start("", WORK, FOR_EVER, "0", "1000000" if GPU == "null" else "200")
        self.pause_at_work()
        until(lambda: any(c["queued"] > 0 for c in self.clients()))
        self.assertIn("HELD", self.sched("list").stdout)
        self.assertEqual(self.sched("resume").returncode, 0)
        p.terminate()
        self.assertGreater(self.end(p), 0)

    def test_queued_calls_are_released_together(self):
        p = self.start("queue=100", WORK, FOR_EVER, "0", "1000000")
        self.pause_at_work()
        for _ in range(3):
            # The queue is full, or nearly full, and the program waits.
            held = until(lambda: (n := self.held()) > 50 and n, self.clients)
            before = self.clients()[0]["calls"]
            self.assertEqual(self.sched("release").returncode, 0)
            # The queued calls go on, and the next ones are held at the gate.
            until(lambda: self.clients()[0]["calls"] == before + held, self.clients)
            until(self.held, self.clients)
            self.assertEqual(self.clients()[0]["calls"], before + held)
        p.kill()

    def test_a_program_that_is_held_ends(self):
        p = self.start("", CLIENTS, "leave")
        self.assertEqual(self.sched("pause").returncode, 0)
        p.stdin.write("go\n")
        p.stdin.flush()
        self.assertEqual(self.end(p), 100)

    def test_threads_are_clients(self):
        p = self.start("", CLIENTS, FOR_EVER, "web:prio=high", "bulk:share=50",
                       "bulk:share=50")
        until(lambda: {c["name"].split("/")[-1] for c in self.clients()} >= {"web", "bulk"})
        found = {c["name"].split("/")[-1]: c for c in self.clients()}
        self.assertEqual(found["web"]["priority"], "high")
        self.assertEqual(found["bulk"]["share"], 50)
        p.terminate()
        self.assertGreater(self.end(p), 0)

    def test_threads_are_clients_on_one_stream(self):
        p = self.start("stream=own", CLIENTS, "1", "web:prio=high", "bulk", "rest")
        self.assertGreater(self.end(p), 0)


class Words(Case):
    def run_with(self, settings):
        return subprocess.run([HEDDLE, "run", "--gpu", GPU, "--sched", settings, "--", "true"],
                              env=environment(), capture_output=True, text=True, timeout=PATIENCE)

    def test_wrong_settings_are_refused(self):
        for settings, said in (("mode=later", "use gate or record"),
                               ("mode=record,stream=mine", "use client or own"),
                               ("mode=record,queue=0", "use a number from 1 to 65536"),
                               ("queue=8", "mode=record"), ("stream=own", "mode=record")):
            r = self.run_with(settings)
            self.assertEqual(r.returncode, 2, settings)
            self.assertIn(said, r.stderr)

    def test_a_program_keeps_its_mode(self):
        for settings in ("mode=record", "mode=record,queue=3"):
            r = self.sched("set", settings)
            self.assertEqual(r.returncode, 2)
            self.assertIn("keeps its mode", r.stderr)


if __name__ == "__main__":
    unittest.main()
