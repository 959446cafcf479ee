#!/usr/bin/env python3
"""What the workers of a real server have given up, as the kernel sees it, and the options that say
what they have to. attack.c tries what that is worth."""

import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e" / "remote"))
from serve_case import (HEDDLED, NOBODY, ROOT, Case, Server, clean_environment,  # noqa: E402
                        until)
from harness.patience import listens  # noqa: E402

NEEDED = {"environment", "session", "privileges", "limits", "files", "calls"}
SKIPPED = 77


def possible():
    """The steps that this machine can take, as a server says them."""
    class Nothing(Case):
        def runTest(self):
            server = Server(self)
            line = next(x for x in server.log().splitlines() if "sandbox: " in x and " info " in x)
            self.said = line.split("sandbox: ")[1].split(", ")
    case = Nothing()
    case.debug()
    return case.said


class Workers(Case):
    def worker(self, *options, **more):
        """A server, what it tells of its worker, and the worker's lines in /proc, as soon as it
        waits for its client's first message."""
        server = Server(self, *options, **more)
        self.client(server)
        until(server.workers)
        told = server.status()["clients"][0]
        filtered = bool(told["sandbox"])
        until(lambda: not filtered or self.lines(told["worker"])["Seccomp"] == "2")
        return server, told, self.lines(told["worker"])

    def lines(self, pid):
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            return {k: v.strip() for k, v in (x.split(":", 1) for x in f)}

    def space(self, pid, name):
        return os.readlink(f"/proc/{pid}/ns/{name}")

    def test_a_worker_is_confined_by_default(self):
        server, told, lines = self.worker()
        self.assertEqual(told["sandbox"], possible_steps)
        self.assertEqual((lines["NoNewPrivs"], lines["Seccomp"]), ("1", "2"))
        self.assertEqual(int(lines["CapEff"], 16) | int(lines["CapPrm"], 16), 0)
        self.assertEqual(os.stat(f"/proc/{told['worker']}/environ").st_uid, 0)  # not dumpable
        if ROOT and "namespaces" in told["sandbox"]:
            for name in ("net", "ipc", "uts"):
                self.assertNotEqual(self.space(told["worker"], name), self.space("self", name))

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_worker_has_a_root_of_its_own(self):
        if "root" not in possible_steps:
            self.skipTest("this machine cannot make one")
        server, told, lines = self.worker()
        inside = f"/proc/{told['worker']}/root"
        self.assertNotEqual(self.space(told["worker"], "mnt"), self.space("self", "mnt"))
        self.assertLessEqual({"dev", "proc", "usr", "client"}, set(os.listdir(inside)))
        # Only what leads to heddle's own libraries, wherever they were built.
        ours = os.path.realpath(os.environ["HED_BUILD"]).split("/")[1]
        for path in {"etc/passwd", "tmp", "root", self.dir.lstrip("/")} - {ours}:
            self.assertFalse(os.path.exists(os.path.join(inside, path)), path)
        # Its folders lie in it.
        for fd in os.listdir(f"/proc/{told['worker']}/fd"):
            path = os.readlink(f"/proc/{told['worker']}/fd/{fd}")
            self.assertNotIn("images", path)

    @unittest.skipUnless(ROOT, "needs root")
    def test_every_worker_of_root_has_its_own_user(self):
        server, told, lines = self.worker("--worker-uids", "70100-70101")
        self.client(server)
        until(lambda: len(server.workers()) == 2)
        self.assertEqual(sorted(c["worker_uid"] for c in server.status()["clients"]),
                         [70100, 70101])
        self.assertEqual(lines["Uid"].split(), ["70100"] * 4)
        self.assertEqual(lines["Gid"].split(), ["70100"] * 4)
        self.assertEqual(lines["Groups"], "")
        third = self.client(server)
        self.assertIn("--worker-uids", self.refusal(third))

    def test_off_means_off(self):
        server, told, lines = self.worker("--sandbox", "off")
        self.assertEqual((told["sandbox"], told["worker_uid"]), ([], os.geteuid()))
        self.assertEqual(lines["Seccomp"], "0")
        server.until_logged("sandbox: off (--sandbox off)")

    def test_the_log_says_if_kernels_are_not_confined(self):
        text = "kernels are not confined"
        self.assertNotIn(text, Server(self, gpu="cpu").log())
        Server(self, "--confine", "no", gpu="cpu", listen=[f"shm:{self.dir}/n"]).until_logged(text)

    def test_a_layer_that_shares_turns_it_off_and_require_refuses_it(self):
        env = clean_environment(HEDDLE_TRACE=os.path.join(self.dir, "t.trace"))
        server, told, _ = self.worker(env=env)
        self.assertEqual(told["sandbox"], [])
        refused = Server(self, "--sandbox", "require", listen=[f"shm:{self.dir}/r"], env=env,
                         wait=False)
        self.assertEqual(refused.process.wait(60), 1)
        self.assertIn("workers cannot have a sandbox", refused.log())

    def words(self, told):
        """The worker's standard error, as code in the worker has it."""
        return os.open(f"/proc/{told['worker']}/fd/2", os.O_WRONLY | os.O_NONBLOCK)

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_worker_has_none_of_the_servers_files(self):
        for sandbox in ("auto", "off"):
            server, told, _ = self.worker("--sandbox", sandbox, "--grace", "0")
            folder = Path(f"/proc/{told['worker']}/fd")
            # Without a sandbox, nothing shows when it has closed them.
            until(lambda: os.path.realpath(server.log_path) not in
                  [os.path.realpath(x) for x in folder.iterdir()])
            server.stop()

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_worker_cannot_forge_lines_of_the_log(self):
        server, told, _ = self.worker()
        words = self.words(told)
        os.write(words, b"heddle[1] error server: forged\n" b"\x1b[2J\x9b\r\x00 bare\n\n\n"
                 + b"l" * 5000 + b"\nlast\n" b"unfinished")
        server.until_logged("last")
        os.kill(told["worker"], 9)
        server.until_logged("signal 9")
        os.close(words)
        lines = server.log().splitlines()
        head = rf"heddle\[{told['worker']}/[0-9a-f]{{8}}\] "
        said = [x for x in lines if re.match(head, x)]
        said = [re.sub(head, "", x) for x in said]
        self.assertEqual(said[-5:-3] + said[-2:], ["error server: forged", "stderr: ?[2J??? bare",
                                                   "stderr: last", "stderr: unfinished"])
        self.assertTrue(said[-3].startswith("stderr: lll") and said[-3].endswith("l..."))
        self.assertLess(len(said[-3]), 1100)
        self.assertTrue(all(x.startswith("heddle[") and x.isprintable() for x in lines))
        # The line that says how the worker ended comes after what it wrote.
        self.assertIn("signal 9", lines[-1])

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_worker_that_writes_too_much_is_cut_off(self):
        server, told, _ = self.worker()
        words = self.words(told)
        line = b"flood " * 20 + b"\n"

        def flood():
            for _ in range(1000):
                try:
                    os.write(words, line * 30)
                except BlockingIOError:
                    break
            self.assertEqual(len(server.status()["clients"]), 1)
            return "bytes are not in this log" in server.log()

        until(flood)
        dropped = int(re.search(r"at least (\d+) bytes", server.log())[1])
        self.assertGreater(dropped, 0)
        self.assertLess(os.path.getsize(server.log_path), 4 << 20)
        os.close(words)

    @unittest.skipUnless(ROOT, "needs root")
    def test_a_log_that_nobody_reads_does_not_stop_the_server(self):
        server = Server(self, "--grace", "0", stderr=subprocess.PIPE, wait=False)
        until(lambda: listens(f"shm:{server.path}"))
        self.client(server)
        until(server.workers)
        told = server.status()["clients"][0]
        until(lambda: os.readlink(f"/proc/{told['worker']}/fd/2").startswith("pipe:"))
        words = self.words(told)
        for _ in range(50):
            for _ in range(100):
                try:
                    os.write(words, b"flood " * 200 + b"\n")
                except BlockingIOError:
                    break
            self.assertEqual(len(server.status()["clients"]), 1)
        os.close(words)
        self.assertEqual(server.stop(), 0)
        said = server.process.stderr.read().decode()
        self.assertIn("flood", said)
        self.assertIn("bytes are not in this log", said)
        self.assertIn("stopped after", said)
        server.process.stderr.close()

    def test_a_terminated_worker_ends_at_once(self):
        server, told, _ = self.worker("--grace", "0")
        self.assertEqual(server.stop(), 0)
        self.assertNotIn("signal 9", server.log())

    def test_clients_have_folders_of_their_own(self):
        server, told, _ = self.worker()
        folder = os.path.join(self.dir, "images", f"uid-{os.geteuid()}")
        self.assertEqual(os.stat(folder).st_mode & 0o007, 0)

    @unittest.skipUnless(ROOT, "needs root")
    def test_an_ordinary_users_server_confines_its_workers(self):
        os.chown(self.dir, NOBODY, NOBODY)
        build = os.path.join(self.dir, "log")
        with open(build, "wb") as log:
            p = subprocess.Popen([HEDDLED, "--listen", f"shm:{self.dir}/u", "--gpu", "null",
                                  "--images", f"{self.dir}/i", "--sandbox", "require"],
                                 stderr=log, stdin=subprocess.DEVNULL, user=NOBODY, group=NOBODY,
                                 extra_groups=[], env=clean_environment(HOME=self.dir))
        try:
            until(lambda: b"serves --gpu" in Path(build).read_bytes() or p.poll() is not None)
            said = Path(build).read_text(encoding="utf-8")
            self.assertIsNone(p.poll(), said)
            for step in NEEDED:
                self.assertIn(step, said.split("sandbox: ")[1].splitlines()[0])
        finally:
            p.kill()
            p.wait()

    def test_wrong_options_are_refused(self):
        for words in (["--sandbox", "maybe"], ["--worker-uids", "5"], ["--worker-uids", "9-3"],
                      ["--worker-uids", "0-10"], ["--worker-memory", "much"]):
            r = subprocess.run([HEDDLED, *words], capture_output=True, text=True,
                               env=clean_environment())
            self.assertEqual(r.returncode, 2, words)
            self.assertIn(words[0], r.stderr)


if __name__ == "__main__":
    shutil.rmtree(os.environ["HED_SCRATCH"], ignore_errors=True)
    os.makedirs(os.environ["HED_SCRATCH"])
    possible_steps = possible()
    if not NEEDED <= set(possible_steps):
        print("this machine cannot have a sandbox:", possible_steps)
        sys.exit(SKIPPED)
    unittest.main()
