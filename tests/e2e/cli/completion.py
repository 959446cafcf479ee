#!/usr/bin/env python3
"""Completion in bash, zsh and fish, which is generated from share/completion/commands.txt.

    HED_BUILD=build/dev completion.py [Case.test...]
"""

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import unittest

from case import BUILD, PATIENCE, Case, clean_environment, options_in

FOLDER = os.path.join(os.path.realpath(BUILD), "completion")


def environment(**more):
    return clean_environment(PATH=os.path.join(os.path.realpath(BUILD), "bin") + ":"
                             + os.environ["PATH"], **more)


class Shell(Case):
    def run_shell(self, *command):
        r = subprocess.run(command, env=environment(), cwd=self.dir, capture_output=True, text=True,
                           timeout=PATIENCE, stdin=subprocess.DEVNULL)
        self.assertEqual(r.returncode, 0, r.stderr)
        return [line for line in r.stdout.split("\n") if line]

    def listed_options(self):
        """(command, the options that its help lists) of all commands."""
        for words in self.subcommands():
            yield words, options_in(self.expect(0, *words, "--help").stdout) | {"--help"}

    def listed_commands(self):
        return re.findall(r"^  ([a-z]+) {2,}", self.expect(0, "help").stdout.split("\n\n")[2],
                          re.MULTILINE)

    def read_until(self, fd, wanted):
        seen = b""
        while wanted not in seen and select.select([fd], [], [], PATIENCE)[0]:
            seen = (seen + os.read(fd, 4096)).replace(b"\x07", b"")  # the bell
        self.assertIn(wanted, seen)

    def type_into(self, command, setup, typed):
        """Types into a shell in a terminal: pairs of keys, and what is then on the line."""
        try:
            pid, fd = pty.fork()
        except OSError as e:
            self.skipTest(f"no terminal to be had: {e}")
        if pid == 0:
            os.execvpe(command[0], command, environment(TERM="dumb", PS1="$ ", HISTFILE=""))
        try:
            os.write(fd, f"{setup}; echo rea''dy\n".encode())
            self.read_until(fd, b"ready")
            for keys, line in typed:
                os.write(fd, keys)
                self.read_until(fd, line)
                os.write(fd, b"\x15")  # begin a new line
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(fd)


@unittest.skipUnless(shutil.which("bash"), "no bash")
class Bash(Shell):
    SCRIPT = os.path.join(FOLDER, "heddle.bash")

    def complete(self, *words):
        """COMPREPLY for the last of the words, in bash's own splitting."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
                  '_heddle 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"')
        return self.run_shell("bash", "--norc", "-c", script, "bash", self.SCRIPT, *words)

    def test_commands(self):
        self.assertEqual(self.complete("heddle", "d"), ["devices", "doctor"])
        self.assertEqual(set(self.complete("heddle", "")),
                         {*self.listed_commands(), "--help", "--version"})

    def test_every_option_is_known(self):
        for words, listed in self.listed_options():
            self.assertEqual(listed, set(self.complete("heddle", *words, "--")), words)

    def test_values(self):
        self.assertEqual(self.complete("heddle", "run", "--gpu", ""),
                         ["auto", "gpu", "cpu", "cpu:", "null", "shm:", "unix:", "tcp://", "vm:"])
        self.assertEqual(self.complete("heddle", "run", "--gpu", "=", "n"), ["null"])
        self.assertEqual(self.complete("heddle", "devices", "--gpu", "n"), ["null"])
        self.assertEqual(self.complete("heddle", "trace", "summary", "--sort", "c"), ["count"])
        self.assertEqual(self.complete("heddle", "run", "--trace-full", "d"), ["drop"])
        self.assertEqual(self.complete("heddle", "sched", "r"), ["resume", "release"])
        self.assertEqual(self.complete("heddle", "sched", "set", "po"), ["policy="])
        self.assertEqual(self.complete("heddle", "sched", "set", "policy", "=", "f"),
                         ["fair", "fifo"])
        self.assertIn("trace_buffer=", self.complete("heddle", "run", "--set", "trace_b"))

    def test_lists(self):
        self.assertEqual(self.complete("heddle", "run", "--sched", "prio", "=", "lo"), ["low"])
        self.assertEqual(self.complete("heddle", "run", "--sched", "prio", "=", "low,sh"),
                         ["low,share="])
        self.assertEqual(self.complete("heddle", "run", "--sched", "swa"), ["swap="])
        self.assertEqual(self.complete("heddle", "run", "--layers", "trace,qu"), ["trace,quota"])

    def test_devices_of_the_cpu(self):
        self.assertEqual(self.complete("heddle", "run", "--gpu", "cpu", ":", "h"),
                         ["h100", "h200"])
        self.assertIn("t4", self.complete("heddle", "run", "--gpu", "cpu", ":"))
        self.assertEqual(self.complete("heddle", "run", "--gpu", "=", "cpu", ":", "t4x2,rtx5"),
                         ["t4x2,rtx5090"])
        self.assertEqual(self.complete("heddle", "serve", "--gpu", "cpu", ":", "l"), ["l4"])

    def test_files_for_traces(self):
        self.write("my trace.hed", "")
        self.assertEqual(self.complete("heddle", "run", "--trace", "my"), ["my trace.hed"])
        self.assertIn("my trace.hed", self.complete("heddle", "trace", "show", "my"))

    def test_programs_and_then_their_files(self):
        self.write("data.bin", "")
        self.assertIn("python3", self.complete("heddle", "run", "--gpu", "null", "--", "python3"))
        self.assertEqual(self.complete("heddle", "run", "cat", "da"), ["data.bin"])
        self.assertEqual(self.complete("heddle", "run", "--", "cat", "--gpu", "da"), ["data.bin"])
        self.assertEqual(self.complete("heddle", "run", "--gpu", "cpu", ":", "t4", "cat", "da"),
                         ["data.bin"])

    def test_a_real_terminal(self):
        self.type_into(["bash", "--norc", "-i"], f"source '{self.SCRIPT}'", [
            (b"heddle devi\t--js\t", b"heddle devices --json "),
            (b"heddle run --gpu cpu:h1\t", b"--gpu cpu:h100 "),
        ])


@unittest.skipUnless(shutil.which("zsh"), "no zsh")
class Zsh(Shell):
    def test_every_option_is_known(self):
        # The words that _arguments would be given.
        script = ('_arguments() { print -rl -- "$@" }; source "$1/_heddle"; '
                  'print -- ---; _heddle_options "$2"')
        for words, listed in self.listed_options():
            lines = self.run_shell("zsh", "-f", "-c", script, "zsh", FOLDER, " ".join(words))
            found = re.findall(r"^(?:\([^)]*\))?(--[a-z-]+)=?\[",
                               "\n".join(lines[lines.index("---"):]), re.MULTILINE)
            self.assertEqual(listed, set(found), words)

    def test_a_real_terminal(self):
        setup = f"fpath=('{FOLDER}' $fpath); autoload -U compinit; compinit -u -D"
        self.type_into(["zsh", "-f", "-i"], setup, [
            (b"heddle fatb\t", b"fatbin "),
            (b"heddle run --gpu cpu:h2\t", b"cpu:h200"),
            (b"heddle run --gpu=cpu:t4,rtx5\t", b"cpu:t4,rtx5090"),
            (b"heddle trace show --file\t", b"--file-order "),
            (b"heddle run --sched prio=hi\t", b"prio=high"),
            (b"heddle run --trace-full d\t", b"drop "),
        ])


@unittest.skipUnless(shutil.which("fish"), "no fish")
class Fish(Shell):
    def complete(self, *lines):
        """What fish offers for each of the lines, without descriptions."""
        script = 'source $argv[1]; for line in $argv[2..-1]; complete -C $line; echo ---; end'
        out = self.run_shell("fish", "--no-config", "-c", script,
                             os.path.join(FOLDER, "heddle.fish"), *lines)
        groups = "\n".join(out).split("---")[:-1]
        return [[word.split("\t")[0] for word in group.split("\n") if word] for group in groups]

    def test_every_option_is_known(self):
        known = list(self.listed_options())
        found = self.complete(*(f"heddle {' '.join(words)} --" for words, _ in known))
        for (words, listed), offered in zip(known, found):
            self.assertEqual(listed, set(offered), words)

    def test_values(self):
        commands, devices, several, priorities, parts, words = self.complete(
            "heddle ", "heddle run --gpu cpu:h", "heddle run --gpu=cpu:t4,rtx5",
            "heddle run --sched prio=", "heddle trace ", "heddle run --trace-full ")
        self.assertEqual(set(commands), set(self.listed_commands()))
        self.assertEqual(devices, ["cpu:h100", "cpu:h200"])
        self.assertEqual(several, ["--gpu=cpu:t4,rtx5090"])
        self.assertEqual(set(priorities), {"prio=high", "prio=normal", "prio=low"})
        self.assertEqual(set(parts), {"show", "summary", "export"})
        self.assertEqual(words, ["block", "drop"])


if __name__ == "__main__":
    unittest.main()
