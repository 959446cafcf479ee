#!/usr/bin/env python3
"""`heddle top`: printed, as JSON, and on a terminal.

    HED_BUILD=build/dev HED_WORK=.../e2e_sched_work [HED_TOP_SCREEN=yes] top.py [Case.test...]

The terminal is a VT52: ncurses moves the cursor on it by three letters, so a few lines here know
what is on the screen.
"""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

from case import FOR_EVER, HEDDLE, PATIENCE, WORK, SchedCase, environment, listens, until

NOBODY = 65534


def top(*words, **more):
    return subprocess.run([HEDDLE, "top", *words], env={**environment(), "COLUMNS": "132"},
                          capture_output=True, text=True, timeout=PATIENCE, **more)


def rows(*words, **more):
    r = top("-1", "--json", "--every", "0.2", *words, **more)
    if r.returncode:
        raise AssertionError(r.stderr)
    return json.loads(r.stdout)


class Screen:
    """A VT52 of LINES x COLUMNS with `heddle top` on it."""

    def __init__(self, lines, columns, *words):
        self.lines, self.columns = lines, columns
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            # The program starts when the size is there.
            os.read(0, 1)
            # As some that start programs leave it.
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            env = {**environment(), "TERM": "vt52"}
            env.pop("COLUMNS", None)
            env.pop("LINES", None)
            os.execve(HEDDLE, [HEDDLE, "top", "--every", "0.2", *words], env)
        self.resize(lines, columns)
        self.before = termios.tcgetattr(self.terminal)
        os.write(self.terminal, b"\n")
        self.status = None

    def resize(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.text = [[" "] * columns for _ in range(lines)]
        self.y = self.x = 0
        self.rest = b""
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def clear(self, y, x, to_the_end):
        self.text[y][x:] = [" "] * (self.columns - x)
        for row in range(y + 1, self.lines if to_the_end else y + 1):
            self.text[row] = [" "] * self.columns

    def escape(self, data):
        """Obeys a sequence behind its escape; returns its length, 0 if there is more to come."""
        c = chr(data[0])
        if c == "Y":
            if len(data) < 3:
                return 0
            self.y = min(data[1] - 32, self.lines - 1)
            self.x = min(data[2] - 32, self.columns - 1)
            return 3
        if c == "H":
            self.y = self.x = 0
        elif c == "A":
            self.y = max(self.y - 1, 0)
        elif c == "B":
            self.y = min(self.y + 1, self.lines - 1)
        elif c == "C":
            self.x = min(self.x + 1, self.columns - 1)
        elif c == "D":
            self.x = max(self.x - 1, 0)
        elif c == "I" and self.y == 0:
            self.text = [[" "] * self.columns, *self.text[:-1]]
        elif c == "I":
            self.y -= 1
        elif c in "JK":
            self.clear(self.y, self.x, c == "J")
        return 1

    def letter(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n" and self.y == self.lines - 1:
            self.text = [*self.text[1:], [" "] * self.columns]
        elif c == "\n":
            self.y += 1
        elif c == "\b":
            self.x = max(self.x - 1, 0)
        elif c == "\t":
            self.x = min((self.x // 8 + 1) * 8, self.columns - 1)
        elif c >= " ":
            self.text[self.y][self.x] = c
            self.x = min(self.x + 1, self.columns - 1)

    def read(self):
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                data = self.rest + os.read(self.terminal, 65536)
            except OSError:
                return
            self.rest = b""
            at = 0
            while at < len(data):
                if data[at] != 27:
                    self.letter(chr(data[at]))
                    at += 1
                    continue
                n = self.escape(data[at + 1:]) if at + 1 < len(data) else 0
                if n == 0:
                    self.rest = data[at:]
                    break
                at += 1 + n

    def shown(self):
        self.read()
        return "\n".join("".join(line).rstrip() for line in self.text)

    def wait_for(self, condition):
        return until(lambda: condition(self.shown()), self.shown)

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def ended(self):
        self.read()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.status = os.waitstatus_to_exitcode(status)
        return pid != 0

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)


class Case(SchedCase):
    def start(self, settings="", *words):
        return self.launch(settings, [WORK, FOR_EVER, *(words or ("1000", "4"))])

    def row(self, p, *words):
        return next((r for r in rows(*words)["programs"] if r["pid"] == p.pid), None)


class Printed(Case):
    def test_a_program_and_its_numbers(self):
        p = self.start("prio=high,group=team")
        r = until(lambda: (r := self.row(p)) and (r["launches_per_second"] or 0) > 0 and r)
        self.assertEqual((r["priority"], r["group"], r["memory_limit_bytes"]),
                         ("high", "team", None))
        self.assertIn(os.path.basename(WORK), r["command"])
        self.assertIn(r["state"], ("running", "idle"))
        text = top("-1", "--every", "0.2").stdout
        self.assertRegex(text, r"(?m)^ +PID USER +PROGRAM .*BUSY% WAIT%")
        self.assertRegex(text, rf"(?m)^ *{p.pid} \S+ +{os.path.basename(WORK)[:5]}")

    def test_gpu_time_is_measured_while_somebody_looks(self):
        p = self.start()
        r = until(lambda: (r := self.row(p)) and r["busy_ratio"] is not None and r)
        self.assertLessEqual(r["busy_ratio"], 1)

    def test_the_same_is_in_the_list(self):
        p = self.start("prio=low")
        listed = json.loads(self.heddle("list", "--json", "--scope", self.scope).stdout)
        (client,) = [c for g in listed["gpus"] for c in g["clients"]]
        r = self.row(p)
        for key in ("pid", "name", "group", "priority", "share"):
            self.assertEqual(client[key], r[key], key)

    def test_a_program_that_is_gone_is_not_shown(self):
        p = self.start()
        self.assertTrue(self.row(p))
        p.kill()
        p.wait()
        until(lambda: self.row(p) is None)

    def test_paused(self):
        p = self.start()
        self.heddle("pause", "--pid", str(p.pid))
        until(lambda: self.row(p)["state"] == "paused")
        until(lambda: self.row(p)["waited_seconds"] > 0)

    def test_a_filter_and_a_tree(self):
        p = self.start("group=apples")
        self.start("group=pears")
        text = top("-1", "--every", "0.2", "--filter", "APPLES", "--tree").stdout
        self.assertRegex(text, r"/apples: 1\b")
        self.assertIn(f" {p.pid} ", text)
        self.assertNotIn("pears", text)

    def test_json_goes_on_until_its_reader_leaves(self):
        self.start()
        p = subprocess.Popen([HEDDLE, "top", "--json", "--every", "0.1"], env=environment(),
                             stdout=subprocess.PIPE, text=True)
        self.programs.append(p)
        first, second = (json.loads(p.stdout.readline()) for _ in range(2))
        self.assertIsNone(first["interval_seconds"])
        self.assertGreater(second["interval_seconds"], 0)
        p.stdout.close()
        p.wait(PATIENCE)

    def test_a_key_that_stops_it_does_not_stop_its_child(self):
        """The child may have a lock that programs wait for."""
        # In a group of its own: the kernel stops nobody who has no parent in the session.
        p = subprocess.Popen([HEDDLE, "top", "--json", "--every", "0.2"], env=environment(),
                             stdout=subprocess.PIPE, text=True, preexec_fn=os.setpgrp)
        self.programs.append(p)
        p.stdout.readline()
        with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="utf-8") as f:
            (child,) = f.read().split()
        os.killpg(p.pid, signal.SIGTSTP)
        until(lambda: state_of(p.pid) == "T")
        self.assertNotEqual(state_of(child), "T")
        os.killpg(p.pid, signal.SIGCONT)

    def test_wrong_words(self):
        for words, said in ((("--every", "0"), "--every '0'"), (("--every", "nan"), "'nan'"),
                            (("--sort", "colour"), "'colour' is not a key"),
                            (("--listen", "nowhere"), "'nowhere' is not the address"),
                            (("file",), "unexpected 'file'"), (("-2",), "no option '-2'")):
            r = top(*words)
            self.assertEqual(r.returncode, 2, words)
            self.assertIn(said, r.stderr)

    def test_a_server_and_its_client(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"shm:{folder}/s"
            # A name with an escape sequence: the server shows it to others.
            program = f"{folder}/\x1b[31mred"
            os.symlink(WORK, program)
            server = subprocess.Popen([HEDDLE, "serve", "--gpu", "null", "--listen", address,
                                       "--log", "error"], env=environment())
            self.programs.append(server)
            until(lambda: listens(address))
            p = subprocess.Popen([HEDDLE, "run", "--gpu", address, "--", program, FOR_EVER, "1000"],
                                 env=environment(), stdout=subprocess.PIPE, text=True)
            self.programs.append(p)
            self.assertEqual(p.stdout.readline(), "ready\n")
            view = until(lambda: (v := rows("--listen", address)) and v["programs"] and v)
            self.assertTrue(view["servers"][0]["answers"])
            r = next(r for r in view["programs"] if r["pid"] == p.pid)
            self.assertEqual((r["server"], r["priority"]), (0, None))
            text = top("-1", "--every", "0.2", "--listen", address).stdout
            self.assertNotIn("\x1b", text)
            self.assertIn("?[31mred", text)
            gone = rows("--listen", f"shm:{folder}/none")["servers"][0]
            self.assertFalse(gone["answers"])
            self.assertIn("No such file", gone["problem"])

    def test_a_server_that_never_ends_its_answer_holds_up_no_other(self):
        def trickle(listener):
            with contextlib.suppress(OSError), listener.accept()[0] as c:
                c.sendall(b'{"pid":1,"clients":[')
                while True:
                    c.sendall(b" ")
                    time.sleep(0.5)

        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{folder}/slow")
            listener.listen()
            threading.Thread(target=trickle, args=(listener,), daemon=True).start()
            slow, good = f"shm:{folder}/slow", f"shm:{folder}/s"
            server = subprocess.Popen([HEDDLE, "serve", "--gpu", "null", "--listen", good,
                                       "--log", "error"], env=environment())
            self.programs.append(server)
            until(lambda: listens(good))
            p = subprocess.Popen([HEDDLE, "top", "--json", "--every", "0.2", "--listen", slow,
                                  "--listen", good], env=environment(), stdout=subprocess.PIPE,
                                 text=True)
            self.programs.append(p)
            first = json.loads(p.stdout.readline())["servers"]
            self.assertEqual([s["address"] for s in first], [slow, good])
            self.assertEqual({s["problem"] for s in first}, {"it has not answered yet"})
            until(lambda: json.loads(p.stdout.readline())["servers"][1]["answers"])

    @unittest.skipUnless(os.geteuid() == 0, "root alone can be another user")
    def test_users_see_their_own_and_root_sees_all(self):
        with tempfile.TemporaryDirectory() as home:
            os.chown(home, NOBODY, NOBODY)
            more = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            env = {**environment(), "HOME": home}
            if subprocess.run([HEDDLE, "version"], env=env, capture_output=True, check=False,
                              **more).returncode:
                self.skipTest("another user cannot read the build's folder")
            p = subprocess.Popen([HEDDLE, "run", "--gpu", "null", "--sched", f"scope={self.scope}",
                                  "--", WORK, FOR_EVER, "1000"], env=env, stdout=subprocess.PIPE,
                                 text=True, **more)
            self.programs.append(p)
            self.assertEqual(p.stdout.readline(), "ready\n")
            mine = self.start()
            until(lambda: self.row(p))
            r = self.row(p)
            self.assertNotEqual(r["user"], self.row(mine)["user"])
            # Root's look has it measured, too.
            until(lambda: self.row(p)["busy_ratio"] is not None)
            seen = {r["pid"] for r in rows(**more)["programs"]}
            self.assertIn(p.pid, seen)
            self.assertNotIn(mine.pid, seen)
            # Somebody who takes the names of many other users hides nobody.
            with contextlib.ExitStack() as stack:
                for n in range(300):
                    squat = f"/dev/shm/heddle-{2000000000 + n}"
                    os.mkdir(squat, 0o700)
                    stack.callback(os.rmdir, squat)
                self.assertTrue(self.row(p))
            p.terminate()
            p.wait(PATIENCE)


@unittest.skipUnless(os.environ.get("HED_TOP_SCREEN"), "this heddle was built without ncurses")
class OnATerminal(Case):
    def open(self, lines, columns, *words):
        s = Screen(lines, columns, "--filter", self.scope_name(), *words)
        self.addCleanup(s.close)
        return s

    def scope_name(self):
        """Something that only this test's programs have: their group."""
        return f"g{os.getpid()}"

    def begin(self, settings=""):
        group = f"group={self.scope_name()}"
        return self.start(",".join([group, settings] if settings else [group]))

    def test_keys(self):
        p = self.begin("prio=low")
        s = self.open(24, 100)
        s.wait_for(lambda t: f" {p.pid} " in t and " low " in t)
        s.press("p")
        s.wait_for(lambda t: f"paused {os.path.basename(WORK)[:8]}" in t and " paused " in t)
        s.press("+")
        s.wait_for(lambda t: " normal " in t)
        s.press("++")
        s.wait_for(lambda t: " high " in t)
        s.press("p")
        s.wait_for(lambda t: "resumed" in t and " paused " not in t)
        s.press("t")
        s.wait_for(lambda t: f"/{self.scope_name()}" in t or "g+" in t or ": 1" in t)
        s.press("s")
        s.wait_for(lambda t: "by wait" in t)
        s.press("h")
        s.wait_for(lambda t: "any key: back" in t)
        s.press("x")
        s.wait_for(lambda t: f" {p.pid} " in t)
        s.press("/")
        s.press("none")
        s.wait_for(lambda t: "no program passes the filter" in t)
        s.press("\b" * 4 + "\n")
        s.wait_for(lambda t: f" {p.pid} " in t)
        s.press("q")
        until(s.ended, s.shown)
        self.assertEqual(s.status, 0)

    def test_small_and_large(self):
        p = self.begin()
        s = self.open(5, 20)
        s.wait_for(lambda t: t.startswith("heddle top") and t.split("\n")[1].startswith("PROG"))
        s.resize(24, 80)
        s.wait_for(lambda t: f" {p.pid} " in t and "q quit" in t)
        s.resize(1, 4)
        s.resize(30, 120)
        s.wait_for(lambda t: "p99 WAIT" in t and f" {p.pid} " in t)
        s.press("q")
        until(s.ended, s.shown)

    def test_programs_come_and_go(self):
        s = self.open(24, 100)
        s.wait_for(lambda t: "no program" in t)
        p, other = self.begin(), self.begin()
        s.wait_for(lambda t: f" {p.pid} " in t and f" {other.pid} " in t)
        s.press("j")
        p.kill()
        p.wait()
        s.wait_for(lambda t: f" {p.pid} " not in t and f" {other.pid} " in t)
        other.kill()
        other.wait()
        s.wait_for(lambda t: "no program" in t)
        s.press("p")
        s.wait_for(lambda t: "choose a program first" in t)
        s.press("q")
        until(s.ended, s.shown)

    def test_signals_leave_the_terminal_as_it_was(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                s = self.open(24, 80)
                s.wait_for(lambda t: "q quit" in t)
                self.assertNotEqual(termios.tcgetattr(s.terminal)[3], s.before[3])
                os.kill(s.pid, number)
                until(s.ended, s.shown)
                self.assertEqual(s.status, 0)
                self.assertEqual(termios.tcgetattr(s.terminal)[3], s.before[3])

    def test_no_process_is_left(self):
        s = self.open(24, 80)
        s.wait_for(lambda t: "q quit" in t)
        with open(f"/proc/{s.pid}/task/{s.pid}/children", encoding="utf-8") as f:
            (child,) = f.read().split()
        os.kill(s.pid, signal.SIGKILL)
        until(s.ended, s.shown)
        until(lambda: not os.path.exists(f"/proc/{child}") or gone(child), child)

    def test_the_child_that_asks_is_started_again(self):
        p = self.begin()
        s = self.open(24, 100)
        s.wait_for(lambda t: f" {p.pid} " in t)
        with open(f"/proc/{s.pid}/task/{s.pid}/children", encoding="utf-8") as f:
            (child,) = f.read().split()
        os.kill(int(child), signal.SIGKILL)

        def another():
            s.read()
            with open(f"/proc/{s.pid}/task/{s.pid}/children", encoding="utf-8") as f:
                return f.read().split() not in ([], [child])
        until(another, s.shown)
        s.press("q")
        until(s.ended, s.shown)


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def gone(pid):
    """Has the process ended, even if nobody has waited for it?"""
    try:
        return state_of(pid) in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


if __name__ == "__main__":
    unittest.main(verbosity=2)
