"""Programs and files that mean harm, and root, who saves and restores them. The programs belong to
another user (actor.c plays them)."""

import os
from pathlib import Path
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from actor import ACTOR, HEDDLE, PATIENCE, Case, can_criu, until  # noqa: E402

NOBODY = 65534
CAP_SYS_RESOURCE = 24

# Stands for CRIU where it is not what is attacked: CRIU cannot save other users' processes in every
# container.
CRIU = """#!/bin/sh
case "$1" in
--version) echo "Version: 3.17.1" ;;
dump)
    while [ "$1" != --images-dir ]; do shift; done
    images=$2
    while [ "$1" != --tree ]; do shift; done
    echo image >"$images/mm-$2.img"
    [ -z "$ZEROS" ] || truncate -s $ZEROS "$images/pages-1.img"
    [ "$3" = --leave-running ] || kill -STOP $2
    ;;
*)
    while [ "$1" != --images-dir ]; do shift; done
    [ -z "$ZEROS" ] || stat -c "%s %b" "$2/pages-1.img" >restored
    exit 1
    ;;
esac
"""


def can_save_others():
    """Why CRIU cannot save processes of other users here; None if it can."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:") and int(line.split()[1], 16) >> CAP_SYS_RESOURCE & 1:
            return can_criu()
    return can_criu() or "root lacks CAP_SYS_RESOURCE"


class Hostile(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o711)
        self.theirs = self.path("theirs")  # a folder of the other user
        os.mkdir(self.theirs)
        os.chown(self.theirs, NOBODY, NOBODY)
        self.ours = self.path("ours")
        os.mkdir(self.ours, 0o700)

        self.where = ""  # of the actor's files

    def text(self, name):
        return super().text(os.path.join(self.where, name))

    def play_criu(self):
        Path(self.path("criu")).write_text(CRIU)
        os.chmod(self.path("criu"), 0o755)
        self.env["PATH"] = self.folder + ":" + self.env["PATH"]

    def other(self, *words, steps=0, user=NOBODY):
        """Starts an actor of another user."""
        self.where = "theirs"
        out = open(os.path.join(self.theirs, "out"), "ab")
        os.chown(os.path.join(self.theirs, "out"), user, user)
        env = dict(self.env, **({"STEPS": str(steps)} if steps else {}))
        p = subprocess.Popen([ACTOR, os.path.join(self.theirs, "log"), *words], env=env, user=user,
                             group=user, extra_groups=[], stdin=subprocess.DEVNULL, stdout=out,
                             stderr=out, start_new_session=True, cwd="/")
        out.close()

        def end():
            if p.poll() is None:
                p.kill()
            p.wait()
        self.addCleanup(end)
        until(lambda: f"ready {p.pid}" in self.text("log"))
        return p

    def alive_and_well(self, p):
        self.goes_on()
        self.assertIsNone(p.poll())


@unittest.skipIf(os.geteuid() != 0, "needs root")
class Programs(Hostile):
    @unittest.skipIf(can_save_others(), str(can_save_others()))
    def test_an_honest_one(self):
        p = self.other(steps=200)
        self.heddle("snap", "save", p.pid, "-o", "ours/a.snap")
        self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("ours/a.snap")).st_mode), 0o600)
        pid = int(self.heddle("snap", "restore", "ours/a.snap", "--detach", "--trust-user"))
        status = Path(f"/proc/{pid}/status").read_text()
        self.assertIn(f"Uid:\t{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}", status)
        self.assertIn(f"Gid:\t{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}", status)
        self.assertIn("CapEff:\t0000000000000000", status)
        open_files = {os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd")}
        self.assertFalse([f for f in open_files if "ours" in f or "pipe" in f or f == "/"],
                         open_files)
        self.goes_on()
        os.kill(pid, signal.SIGKILL)
        until(lambda: not os.path.exists(f"/proc/{pid}"))

    def test_a_file_that_is_not_given_back(self):
        """Whoever could still write to it could become root when it is restored."""
        self.play_criu()
        for words in (["keep"], ["map"], ["keep", "no-staging"]):
            p = self.other(*words)
            for more in ([], ["--leave-running"]):
                err = self.heddle("snap", "save", p.pid, *more, "-o", "ours/a.snap", code=1)
                self.assertIn("did not give the snapshot's file back", err)
                self.assertEqual(os.listdir(self.ours), [])
                self.alive_and_well(p)
            p.kill()
            p.wait()

    def test_images_that_are_not_criu_s(self):
        self.play_criu()
        for word, text in (("smuggle", "which it must not do"), ("other", "a different snapshot")):
            p = self.other(word)
            for more in ([], ["--leave-running"]):
                err = self.heddle("snap", "save", p.pid, *more, "-o", "ours/a.snap", code=1)
                self.assertIn(text, err)
                self.assertEqual(os.listdir(self.ours), [])
                self.alive_and_well(p)
            p.kill()
            p.wait()

    def exchange_folders(self):
        while True:
            for name in os.listdir(self.theirs):
                path = os.path.join(self.theirs, name)
                if name.startswith(".heddle-criu-") and not name.endswith("-gone"):
                    try:
                        if os.stat(path).st_uid != NOBODY:
                            os.rename(path, path + "-gone")
                            os.mkdir(path)
                    except OSError:
                        pass

    def in_spite_of_them(self, *words):
        """If they are quick, ours is exchanged before it is opened. Then nothing is done."""
        while True:
            r = subprocess.run([HEDDLE, *map(str, words)], env=self.env, cwd=self.folder, text=True,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
            if "another process has replaced" not in r.stderr:
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
                return r.stdout

    @unittest.skipIf(can_criu(), str(can_criu()))
    def test_the_folder_of_images_is_exchanged(self):
        """In a folder of their own, they can rename ours and put another in its place."""
        p = self.actor()
        exchange = os.fork()
        if exchange == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            self.exchange_folders()

        def end():
            os.kill(exchange, signal.SIGKILL)
            os.waitpid(exchange, 0)
        self.addCleanup(end)
        self.in_spite_of_them("snap", "save", p.pid, "-o", "theirs/a.snap")
        self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
        pid = int(self.in_spite_of_them("snap", "restore", "theirs/a.snap", "--detach"))
        self.assertEqual(pid, p.pid)
        self.goes_on()
        os.kill(pid, signal.SIGKILL)
        gone = [n for n in os.listdir(self.theirs) if n.endswith("-gone")]
        self.assertGreaterEqual(len(gone), 2)
        for name in gone:
            self.assertEqual(os.listdir(os.path.join(self.theirs, name)), [])

    @unittest.skipIf(can_criu(), str(can_criu()))
    def test_options_of_criu_in_another_home(self):
        os.makedirs(os.path.join(self.theirs, ".criu"))
        script = Path(self.theirs, "script")
        script.write_text(f"#!/bin/sh\nid -u >{self.theirs}/owned\n")
        script.chmod(0o755)
        Path(self.theirs, ".criu/default.conf").write_text(f"action-script {script}\n")
        self.env["HOME"] = self.theirs
        p = self.actor()
        self.heddle("snap", "save", p.pid, "--leave-running", "-o", "ours/a.snap")
        self.assertFalse(os.path.exists(os.path.join(self.theirs, "owned")))

    def test_a_name_that_gives_orders_to_a_terminal(self):
        self.play_criu()
        p = self.other("odd")
        said = self.heddle("snap", "out", p.pid) + self.heddle("snap", "in", p.pid)
        said += self.heddle("migrate", p.pid, "--to", "unix:/there")
        said += self.heddle("snap", "save", p.pid, "--leave-running", "--dir", "ours")
        said += self.heddle("snap", "list", "ours") + "".join(os.listdir(self.ours))
        for text in ("\033", "\007", "\u009b", "\r"):
            self.assertNotIn(text, said)


@unittest.skipIf(can_criu(), str(can_criu()))
class Files(Hostile):
    def test_files_of_others_are_not_restored(self):
        p = self.actor(steps=100)
        self.heddle("snap", "save", p.pid, "-o", "ours/a.snap")
        p.wait()
        shutil.copy(self.path("ours/a.snap"), os.path.join(self.theirs, "b.snap"))
        os.chown(os.path.join(self.theirs, "b.snap"), NOBODY, NOBODY)
        for command in (["snap", "restore", "theirs/b.snap"], ["snap", "fork", "theirs/b.snap"],
                        ["snap", "restore", "theirs"], ["run", "--resume", "theirs/b.snap"]):
            self.assertIn(f"belongs to user {NOBODY}", self.heddle(*command, code=1))
        os.chmod(self.path("ours/a.snap"), 0o620)
        self.assertIn("mode 0620", self.heddle("snap", "restore", "ours/a.snap", code=1))
        os.chmod(self.path("ours/a.snap"), 0o600)
        self.heddle("snap", "restore", "ours/a.snap", code=7)

    def test_programs_of_others_are_restored_only_if_asked_for(self):
        """CRIU opens a program's files as root, and its user may have exchanged them."""
        self.play_criu()
        p = self.other()
        self.heddle("snap", "save", p.pid, "-o", "ours/a.snap")
        p.wait()
        self.assertIn(f"belongs to user {NOBODY}", self.heddle("snap", "restore", "ours/a.snap",
                                                               code=1))
        self.assertNotIn("belongs to", self.heddle("snap", "restore", "ours/a.snap",
                                                   "--trust-user", code=1))
        self.env["SUDO_UID"] = str(NOBODY)
        self.assertNotIn("belongs to", self.heddle("snap", "restore", "ours/a.snap", code=1))

    def test_names_that_forge_lines(self):
        Path(self.path("ours/a\nb ok\x1b[31m.snap")).write_text("x")
        os.mkfifo(self.path("ours/fifo.snap"))
        os.symlink("/etc/passwd", self.path("ours/link.snap"))
        said = self.heddle_says("snap", "list", "ours")
        self.assertEqual(len([n for n in said.splitlines() if n.split()[-1] == "damaged"]), 3)
        self.assertNotIn("\033", said)
        for name in ("fifo", "link"):
            for command in ("info", "verify", "restore", "compact"):
                self.heddle("snap", command, f"ours/{name}.snap", code=1)

    def heddle_says(self, *words):
        return subprocess.run([HEDDLE, *words], env=self.env, text=True, cwd=self.folder,
                              stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE).stdout

    def test_a_home_of_others_is_not_restored(self):
        p = self.actor()
        for _ in range(2):
            self.heddle("snap", "save", p.pid, "--leave-running", "--dir", "ours")
        p.kill()
        p.wait()
        os.chown(self.path("ours/actor-000001.snap"), NOBODY, NOBODY)
        self.assertIn("belongs to user", self.heddle("snap", "restore", "ours/actor-000002.snap",
                                                     code=1))


    def test_a_parent_of_others_is_not_used(self):
        self.play_criu()
        p = self.actor()
        for i in range(3):
            self.heddle("snap", "save", p.pid, "--leave-running", "--dir", "ours")
            for name in os.listdir(self.ours):
                os.chown(self.path(os.path.join("ours", name)), NOBODY, NOBODY)
            self.assertIn("0 B in older ones", self.heddle("snap", "info",
                                                           f"ours/actor-{i + 1:06}.snap"))

    def test_zeros_do_not_fill_the_disk(self):
        """They are free in a snapshot, so a small file can have many."""
        self.play_criu()
        self.env["ZEROS"] = "512M"
        p = self.actor()
        self.heddle("snap", "save", p.pid, "-o", "ours/a.snap")
        p.wait()
        self.heddle("snap", "restore", "ours/a.snap", code=1)
        size, used = self.text("restored").split()
        self.assertEqual(int(size), 512 << 20)
        self.assertLess(int(used), 1 << 20)

    def test_the_library_for_criu_leaves_files_alone(self):
        """criu opens the files of a program that it restores, whatever they are called."""
        library = os.path.join(os.environ["HED_BUILD"], "lib", "heddle", "libheddle-criu.so")
        for name in ("maps", "smaps"):
            path = self.path(name)
            Path(path).write_text("7f0000000000-7f0000001000 r--p 00000000 00:00 0  [vvar]\n")
            out = subprocess.run(
                [sys.executable, "-c", "import os, sys\n"
                 "for p in sys.argv[1:]:\n"
                 "    print(os.readlink(f'/proc/self/fd/{os.open(p, os.O_RDONLY)}'))",
                 path, "/proc/self/" + name],
                env=dict(self.env, LD_PRELOAD=library), check=True, capture_output=True, text=True)
            self.assertEqual(out.stdout.splitlines()[0], path)
            self.assertIn("memfd", out.stdout.splitlines()[1])


@unittest.skipIf(can_criu(), str(can_criu()))
class Killed(Hostile):
    """The command is killed while it saves: the program goes on."""

    def leave(self, p, words, after, how):
        command = subprocess.Popen([HEDDLE, "snap", "save", str(p.pid), *words], env=self.env,
                                   cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   start_new_session=True)
        time.sleep(after)
        os.killpg(command.pid, how)
        said = command.communicate(timeout=PATIENCE)[0]  # its guard has it, too
        return command.returncode, said

    def test_at_any_moment(self):
        dice = random.Random(7)
        p = self.actor()
        for i in range(30):
            how = signal.SIGKILL if i % 2 else signal.SIGINT
            code, said = self.leave(p, ["--leave-running", "-o", f"ours/{i}.snap"],
                                    dice.uniform(0, 0.25), how)
            with self.subTest(i=i, said=said, code=code):
                self.assertIsNone(p.poll())
                self.goes_on()
                if "the program goes on" in said:  # the guard was there
                    self.assertEqual([n for n in os.listdir(self.ours) if ".snap" != n[-5:]], [])
            for name in os.listdir(self.ours):
                path = self.path(os.path.join("ours", name))
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)

    def test_before_it_would_end(self):
        dice = random.Random(8)
        for i in range(15):
            p = self.actor()
            code, said = self.leave(p, ["-o", f"ours/{i}.snap"], dice.uniform(0, 0.2),
                                    signal.SIGKILL if i % 2 else signal.SIGINT)
            with self.subTest(i=i, said=said, code=code):
                if code != 0 and p.poll() is None:
                    self.goes_on()
                else:  # then there is a snapshot
                    self.assertEqual(p.wait(PATIENCE), -signal.SIGKILL)
                    self.heddle("snap", "verify", f"ours/{i}.snap")
            p.kill()
            p.wait()


if __name__ == "__main__":
    unittest.main()
