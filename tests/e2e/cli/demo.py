#!/usr/bin/env python3
"""`make demo` works, its output has colours only on a terminal without NO_COLOR, and the commands
that it ends with can be typed."""

import os
import pathlib
import pty
import subprocess
import sys

BUILD = os.environ["HED_BUILD"]
DEMO = pathlib.Path(__file__).resolve().parents[3] / "tools/demo"


def environment(no_color):
    env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return {**env, **({"NO_COLOR": "1"} if no_color else {})}


def run_in_pipe():
    done = subprocess.run([DEMO, BUILD], env=environment(False), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def run_on_terminal(no_color):
    master, slave = pty.openpty()
    process = subprocess.Popen([DEMO, BUILD], env=environment(no_color), stdout=slave, stderr=slave)
    os.close(slave)
    output = b""
    try:
        while piece := os.read(master, 65536):
            output += piece
    except OSError:  # the other end is closed, and everything has been read
        pass
    os.close(master)
    return process.wait(), output


def check(what, good, output):
    if not good:
        sys.exit(f"demo: {what}; it printed:\n{output.decode(errors='replace')}")


def try_what_comes_next(output):
    """Each command of the last part, as it is printed there."""
    lines = output.decode().partition("What to try next\n")[2].splitlines()
    commands = [line.strip() for line in lines if line.startswith("  ") and line[2] != " "]
    check("it ends without commands to try next", len(commands) >= 2, output)
    for command in commands:
        done = subprocess.run(command, shell=True, env=environment(True), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        # 1 is how doctor says that something is wrong with this machine.
        good = done.returncode == 0 or (done.returncode == 1 and command.endswith(" doctor"))
        check(f"'{command}' ends with {done.returncode}", good, done.stdout)


def main():
    for where, (code, output), colours in (
            ("in a pipe", run_in_pipe(), False),
            ("on a terminal", run_on_terminal(False), True),
            ("on a terminal with NO_COLOR", run_on_terminal(True), False)):
        check(f"{where} it ends with {code}", code == 0, output)
        check(f"colours {where} are wrong", (b"\033" in output) == colours, output)
        if where == "in a pipe":
            try_what_comes_next(output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
